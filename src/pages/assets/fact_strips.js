// One chart of all facts: a strip for each metric, in it a pair of bars for each fact, before and after; and how much of
// the model's own text about a fact changed.

const mostFactsDrawn = 400;

/** Length of the longest row of words that both have, in the same order. */
function commonWords(one, other) {
  let above = new Array(other.length + 1).fill(0);
  for (const word of one) {
    const row = [0];
    other.forEach((each, i) => row.push(word === each ? above[i] + 1 : Math.max(row[i], above[i + 1])));
    above = row;
  }
  return above.at(-1);
}

/** Share of the longer text's words that the other one has not, in their order; null: a text is missing. */
function textChange(request) {
  if (!isObject(part(request, "continuation"))) return null;
  const [before, after] = ["before", "after"].map((when) => continuationOf(request, when).split(/\s+/).filter(Boolean).slice(0, 200));
  const longer = Math.max(before.length, after.length);
  return longer ? 1 - commonWords(before, after) / longer : 0;
}

/** Bars of {share, from, width}, in a picture as wide as there are facts, and 1 high. */
function barsPath(bars) {
  const shown = bars.filter(({ share }) => share !== null);
  const number = (value) => String(Number(value.toFixed(4)));
  return shown.map(({ share, from, width }) => {
    const top = Math.min(0.97, 1 - Math.min(1, Math.max(0, share))); // what is 0 can be seen as well
    return `M${number(from)} 1V${number(top)}h${number(width)}V1Z`;
  }).join("");
}

/** A strip {name, before, after, total}: shares of each fact, null where it has none, and what they come to, as text.
 * `before`: null where there is none at all. */
function stripOf({ name, what, before, after, total }, facts) {
  const half = before ? 0.4 : 0.8;
  const texts = after.map((share, i) => [before && (before[i] === null ? "–" : percent(before[i])), share === null ? "–" : percent(share)]
    .filter(Boolean).join(" → "));
  const told = `${what}: ${total}, by fact for ${counted(facts.length, "fact")}`;
  const drawn = makeSvg("svg", { class: "bars", role: "img", "aria-label": told, viewBox: `0 0 ${facts.length} 1`, preserveAspectRatio: "none" },
    before && makeSvg("path", { class: "was", d: barsPath(before.map((share, i) => ({ share, from: i + 0.1, width: half }))) }),
    makeSvg("path", { class: "now", d: barsPath(after.map((share, i) => ({ share, from: i + (before ? 0.5 : 0.1), width: half }))) }),
    facts.map((fact, i) => makeSvg("rect", { x: i, y: 0, width: 1, height: 1 }, makeSvg("title", {}, `${fact}: ${texts[i]}`))));
  drawn.style.maxWidth = `${4 * facts.length}rem`;
  return make("div.strip", {}, make("div.name", {}, name), drawn,
    make("div.num.small", {}, total));
}

/** The strips of facts x metrics, and of how many facts; null: the report has no figures of single facts. */
function factStrips(report, allMetrics) {
  const requests = requestsOf(report).filter((request) => !skippedOf(request));
  const metrics = headlineMetrics(allMetrics).filter((metric) => requests.some((request) => ofMetric(request, metric, "after") !== null));
  const items = itemsOf(requests, metrics).slice(0, mostFactsDrawn);
  const facts = items.map(({ request }) => `${textOf(part(request, "prompt"))} → ${textOf(part(request, "target"))}`);
  const strips = metrics.map((metric) => {
    const shares = (when) => items.map(({ request }) => ofMetric(request, metric, when));
    const hasBefore = metric.before.value !== null; // subject_kept compares with the time before: it has no value then
    const total = [hasBefore && metric.before, metric.after].filter(Boolean).map(({ value }) => valueText(value, metric)).join(" → ");
    return { name: make("code", {}, metric.name), what: metric.name, before: hasBefore ? shares("before") : null, after: shares("after"), total };
  });
  const changes = items.map(({ request }) => textChange(request));
  if (changes.some((change) => change !== null)) strips.push({ name: "text changed", what: "text changed", before: null, after: changes, total: percent(meanOf(changes)) });
  if (!strips.length) return null;
  const left = requests.length - items.length;
  const lead = ["A column is a fact, the worst first: ", make("span.was-key", {}, "before"), " and ", make("span.now-key", {}, "after"),
    left > 0 && `, the first ${countText(items.length)} of ${countText(requests.length)}`,
    ". Right: over all of them. “text changed”: share of the words after the prompt that changed."];
  return { lead, figure: make("figure.card.strips", {}, strips.map((strip) => stripOf(strip, facts))) };
}

/** The same as a section of a report. */
function factsSection(report, metrics) {
  const drawn = factStrips(report, metrics);
  return drawn && section("facts", "Fact by fact", drawn.lead, drawn.figure);
}
