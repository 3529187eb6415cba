// What the model says of the first facts, before and after, and beside each what else it says of the fact's subject.

const saidBefore = (request) => marked(continuationOf(request, "before"), textOf(part(request, "target")));
const saidAfter = (request) => marked(continuationOf(request, "after"), textOf(part(request, "target")));

/** What was asked for: prompt → target. */
const factOf = (request, kind) =>
  make(kind, {}, isolated(textOf(part(request, "prompt")), "bdi.prompt"), " ",
    make("span.to", {}, "→ ", isolated(textOf(part(request, "target")), "bdi.to-text")));

/** Answers about a request's subject: {prompt, before, after, isKept, isText, isChat}. */
const subjectAnswersOf = (request) => listOf(part(request, "subject_answers")).map((answer) => {
  const asked = textOf(part(answer, "asked"));
  return { prompt: textOf(part(answer, "prompt")), before: textOf(part(answer, "before")), after: textOf(part(answer, "after")),
    isKept: part(answer, "kept") === true, isText: asked.endsWith("text"), isChat: asked.startsWith("chat") };
});

/** A text that was asked for beside the edited fact: what it was put as, then what came before and after. */
function otherText(request, { prompt, before, after, isChat, isKept }) {
  const target = textOf(part(request, "target"));
  return make("li", {}, make("p.small", {}, isChat && make("span.soft", {}, "user: "), isolated(prompt, "bdi.prompt"),
    isKept && make("span.soft", {}, " · as before")),
    pairs("dl.texts", [[isKept ? "says" : "before", marked(before, target)], ["after", !isKept && marked(after, target)]]));
}

/** "has: a → been", of next tokens that changed. */
const otherToken = ({ prompt, before, after, isChat }) =>
  make("li", {}, isChat && make("span.soft", {}, "chat: "), isolated(prompt), " ",
    make("span.soft", {}, isolated(before.trim() || before)), " → ", make("b", {}, isolated(after.trim() || after)));

/** What else the model says of the subject; null: that was not asked. Less than the share `least` as before is bad. */
function aboutSubject(request, least = 0) {
  const answers = subjectAnswersOf(request), tokens = answers.filter(({ isText }) => !isText);
  if (!answers.length) return null;
  const kept = tokens.filter(({ isKept }) => isKept).length, changed = tokens.filter(({ isKept }) => !isKept);
  const share = tokens.length && make("span", { class: kept < least * tokens.length ? "bad" : "soft" },
    `${kept} of ${counted(tokens.length, "next token")} as before`);
  return make("div.subject", {}, make("h3", {}, "Else about ", isolated(textOf(part(request, "subject")))),
    share && make("p.small", {}, share),
    make("ul.others", {}, answers.filter(({ isText }) => isText).map((answer) => otherText(request, answer))),
    changed.length > 0 && opening(make("span.small", {}, `${counted(changed.length, "next token")} changed`),
      make("ul.others.small", {}, changed.map(otherToken))));
}

function beforeAndAfterSection(report) {
  const isShown = (request) => isObject(part(request, "continuation")) || subjectAnswersOf(request).length > 0;
  const shown = requestsOf(report).filter(isShown).slice(0, 6), subjects = new Set();
  const least = numberOf(part(report, "verdicts", "subjects", "least")) ?? 0;
  const cards = shown.map((request) => {
    const subject = textOf(part(request, "subject")), isNew = !subjects.has(subject);
    subjects.add(subject);
    const others = isNew ? aboutSubject(request, least) : null;
    return make("article.card", { class: others ? "card wide" : "card" }, make("div", {}, factOf(request, "p.said"),
      pairs("dl.texts", [["before", continuationOf(request, "before") && saidBefore(request)],
        ["after", continuationOf(request, "after") && saidAfter(request)]])), others);
  });
  const lead = ["What the model writes by itself after the edited prompt (greedy), for the first ",
    counted(shown.length, "request"), " of the file. Marked: it begins with the target.",
    subjects.size > 0 && cards.some((card) => card.querySelector(".subject"))
      && " Beside it: what it says when other facts about the subject are asked for."];
  return section("text", "Before and after", lead, cards.length > 0 && make("div.examples", {}, cards));
}
