// Reading of report.json, of other versions too: what is not there, or is something else, counts as nothing.

/** What lies at the end of the keys; null where one of them is missing. */
function part(json, ...keys) {
  for (const key of keys) {
    if (json === null || typeof json !== "object" || !Object.hasOwn(json, key)) return null;
    json = json[key];
  }
  return json;
}

const isObject = (json) => json !== null && typeof json === "object" && !Array.isArray(json);
const numberOf = (json) => (Number.isFinite(json) ? json : null);
const textOf = (json) => (typeof json === "string" ? json : "");
const listOf = (json) => (Array.isArray(json) ? json : []);
const entriesOf = (json) => (isObject(json) ? Object.entries(json) : []);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Of a list with at least one number in it; null is no number. */
function meanOf(numbers) {
  const known = numbers.filter((number) => number !== null);
  return sum(known) / known.length;
}

/** A text, or a number or boolean as JSON has it; lists with ", " between. */
function anyText(json) {
  if (json === null) return "";
  if (Array.isArray(json)) return json.map(anyText).join(", ");
  return typeof json === "string" ? json : JSON.stringify(json);
}

const sideEffectsOf = (report) => part(report, "side_effects");
/** true, false, or null where it was not measured. */
const tookOf = (request) => part(request, "verdict", "success");
/** How far the weights followed a request's value: {total, layers}. */
const followedOf = (request) => part(request, "value", "realised");
/** How many edits took, of how many; null: not measured. */
function tookCount(report) {
  const verdicts = part(report, "verdicts");
  const took = numberOf(part(verdicts, "success")), of = numberOf(part(verdicts, "measured"));
  return took === null || took < 0 || !(of >= 1) ? null : { took, of };
}

/** After how many of the other prompts about the subjects the model goes on as before; null: not measured. */
function subjectCount(report) {
  const subjects = part(report, "verdicts", "subjects"), kept = numberOf(part(subjects, "kept")), prompts = numberOf(part(subjects, "prompts"));
  return kept === null || !(prompts >= 1) ? null : { kept, prompts, isLow: part(subjects, "is_low") === true };
}

const requestsOf = (report) => listOf(part(report, "requests"));
const isRejected = (report) => part(report, "status") === "rejected";
const thresholdsOf = (report) => entriesOf(part(report, "accept"));
const modelName = (report) => textOf(part(report, "model", "folder")).split("/").filter(Boolean).pop() ?? "";
const skippedOf = (request) => textOf(part(request, "skipped"));
/** Why the edit did not take, unless it was left out, which is said already. */
const whyOf = (request) => (skippedOf(request) ? "" : textOf(part(request, "verdict", "why")));
const ofMetric = (request, metric, when) => numberOf(part(request, "metrics", metric.name, when));
const peaksOf = (bytes) => entriesOf(bytes).filter(([, size]) => numberOf(size) !== null);

/** What the model went on with "before" or "after", without the blanks before it. */
const continuationOf = (request, when) => textOf(part(request, "continuation", when)).replace(/^[ \n\t]+/, "");

function intervalOf(json) {
  const ends = listOf(json).map(numberOf);
  return ends.length === 2 && !ends.includes(null) ? ends : null;
}

const capitalised = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** The figures of a report's metrics or side effects, in the file's order. */
const figuresOf = (all) =>
  entriesOf(all).map(([name, json]) => {
    const figure = { name, protocol: textOf(part(json, "protocol")), unit: textOf(part(json, "unit")) || "share" };
    figure.isShare = figure.unit === "share";
    figure.heading = capitalised(textOf(part(json, "group")) || name.replace(/_[^_]*$/, "").replaceAll("_", " "));
    figure.better = { lower: -1, none: 0 }[textOf(part(json, "better"))] ?? 1;
    for (const when of ["before", "right_after", "after"])
      figure[when] = { value: numberOf(part(json, when)), interval: intervalOf(part(json, "interval", when)) };
    figure.prompts = numberOf(part(json, "prompts") ?? part(json, "count"));
    figure.asked = textOf(part(json, "asked")); // a hash of the prompts that it rests on; empty: not known
    return figure;
  });

/** The first metric of each heading that is a share, six at most: those that a page shows first. */
function headlineMetrics(metrics) {
  const headings = new Set();
  const isFirst = ({ heading }) => !headings.has(heading) && headings.add(heading);
  return metrics.filter((metric) => metric.isShare && metric.after.value !== null && isFirst(metric)).slice(0, 6);
}

/** Whether a share is not the best that it can be. */
const isMissed = (value, metric) => value !== null && metric.isShare
  && (metric.better > 0 ? value < 1 : metric.better < 0 && value > 0);
