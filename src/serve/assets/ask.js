"use strict";
// Questions, each answered without the edits and with them.

const kMostQuestions = 5;
const ownAnswers = new Set(); // items of the work that this tab waits for
const questions = []; // the latest first

/** What a question is asked with; the seed counts only where tokens are drawn. */
function askedOptions() {
  const options = { tokens: Number(at("ask-tokens").value) };
  const temperature = Number(at("ask-temperature").value);
  if (temperature > 0) Object.assign(options, { temperature, seed: Number(at("ask-seed").value) });
  if (at("ask-chat").checked) options.chat = true;
  return options;
}

const optionsText = ({ tokens, temperature, seed, chat }) =>
  [`${tokens} tokens at most`, temperature ? `temperature ${temperature}, seed ${seed}` : "likeliest tokens", chat ? "as a chat" : ""].filter(Boolean).join(" · ");

/** One answer: its place on the page, and the model that gave it. */
function makeAnswer(weights, title) {
  const heading = make("h3", { text: title });
  const state = make("span", { className: "soft state" });
  const text = make("bdi");
  const box = make("div", { className: `side ${weights === "edited" ? "after" : "before"}` }, heading, make("p", {}, text), state);
  return { weights, heading, state, text, box, version: -1, isWhole: false, told: "" };
}

function makeQuestion(prompt, options) {
  const again = make("button", { type: "button", text: "Ask again", hidden: true });
  const stale = make("p", { className: "why", hidden: true, text: "The edits changed since it answered." });
  const [without, within] = nInside() ? ["Without the new edits", "With the new edits"] : ["Without the edits", "With the edits"];
  const question = { prompt, options, again, stale, without, base: makeAnswer("unedited", without), edited: makeAnswer("edited", within) };
  again.setAttribute("aria-label", `Ask again: ${prompt}`);
  again.addEventListener("click", () => run(again, "ask-error", () => askAll(question)));
  question.sides = make("div", { className: "sides" }, question.base.box, question.edited.box);
  question.row = make("li", {}, make("div", { className: "fact-head" }, make("bdi", { className: "prompt", text: prompt }), again),
    question.sides, stale, make("p", { className: "soft small", text: optionsText(options) }));
  return question;
}

/** The answers that are missing, or of other edits than those that stand. Without edits one answer is both. */
async function askAll(question) {
  const isPlain = seen.edits === 0 && !question.base.isWhole;
  question.edited.box.hidden = isPlain;
  question.sides.classList.toggle("one", isPlain);
  question.base.heading.textContent = !isPlain ? question.without : nInside() ? "With the edits inside it" : "No edit stands";
  question.again.hidden = question.stale.hidden = true;
  at("ask-stop").hidden = false;
  question.isAsked = true;
  try {
    await ask(question, [question.base.isWhole ? null : question.base, isPlain ? null : question.edited].filter(Boolean));
  } finally {
    question.isAsked = false;
    at("ask-stop").hidden = !questions.some((each) => each.isAsked);
    markStale();
  }
}

/** One answer, or both, whose tokens come in turns. */
async function ask(question, answers) {
  for (const answer of answers) {
    Object.assign(answer, { isWhole: false, version: -1, told: "" });
    answer.text.textContent = "";
    answer.state.textContent = "waits for its turn";
  }
  let item = 0;
  try {
    const weights = answers.length > 1 ? "both" : answers[0].weights;
    const reply = await send("/api/ask", { prompt: question.prompt, weights, ...question.options });
    const pieces = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "", done = false; !done; ) {
      const piece = await pieces.read();
      done = piece.done;
      rest += piece.value || "";
      const whole = rest.split("\n");
      rest = whole.pop();
      for (const line of whole) {
        const told = JSON.parse(line);
        if (told.item) ownAnswers.add((item = told.item));
        for (const answer of answers) if ((told.weights ?? answer.weights) === answer.weights) showAnswer(answer, told);
      }
    }
  } catch (error) {
    for (const answer of answers) answer.state.textContent = "no answer";
    throw error;
  } finally {
    ownAnswers.delete(item);
  }
}

function showAnswer(answer, told) {
  if (told.begun) {
    answer.version = told.model_version;
    answer.state.textContent = "answers …";
  }
  if (told.text) {
    answer.told += told.text;
    answer.text.textContent = answer.told.replace(/^ /, ""); // without the space between prompt and answer
  }
  if (told.done) answer.isWhole = true;
  if (told.done) answer.state.textContent = "";
  if (told.cancelled) answer.state.textContent = "stopped";
  if (told.error) throw new Error(told.error);
}

/** Says which answers are of other edits than those that stand, or are not whole. */
function markStale() {
  for (const question of questions) {
    if (question.isAsked) continue;
    const { base, edited } = question;
    const isPlain = edited.box.hidden;
    const isStale = isPlain ? base.isWhole && seen.edits > 0 : edited.isWhole && edited.version !== seen.modelVersion;
    question.stale.hidden = !isStale;
    question.again.hidden = !isStale && base.isWhole && (isPlain || edited.isWhole);
    question.sides.classList.toggle("stale", isStale);
  }
}

/** The latest question once more, where its answer is of other edits: an edit of this tab is seen at the top at once. */
function askLatestAgain() {
  const [latest] = questions;
  if (latest && !latest.isAsked && latest.base.isWhole) run(latest.again, "ask-error", () => askAll(latest));
}

at("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = makeQuestion(at("ask-prompt").value, askedOptions());
  questions.unshift(question);
  for (const old of questions.splice(kMostQuestions)) old.row.remove();
  at("answers").prepend(question.row);
  run(at("ask-go"), "ask-error", () => askAll(question));
});

at("ask-prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!at("ask-go").disabled) at("ask-form").requestSubmit();
});

at("ask-stop").addEventListener("click", () => {
  for (const item of ownAnswers) send("/api/cancel", { item }).catch(() => {}); // it came to its end meanwhile
});

/** Asks about an example, and puts it into the form of edits. */
function takeExample(example) {
  at("ask-prompt").value = filled(example);
  useFile(false);
  at("facts").replaceChildren();
  addFact(example);
  at("ask-form").requestSubmit();
  say("It is asked, and the form of edits has this example.");
}

/** Facts to click. */
function showExamples(examples) {
  at("examples").hidden = examples.length === 0;
  for (const example of examples) {
    const button = make("button", { type: "button", className: "example" }, make("bdi", { text: `${filled(example)} → ${example.target}` }));
    button.addEventListener("click", () => takeExample(example));
    at("examples").append(button);
  }
}
