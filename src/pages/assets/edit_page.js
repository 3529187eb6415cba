// The page about one edit: its head, the first figures, and the sections in their order.

const badge = (tone, text) => make("span", { class: `verdict ${tone}` }, text);

/** Whether what was asked for was met, and whether the edits took. */
function badgesOf(report) {
  const count = tookCount(report), badges = [];
  if (isRejected(report)) badges.push(badge("no", "✕ Rejected"));
  else if (thresholdsOf(report).length) badges.push(badge("yes", "✓ Accepted"));
  if (count?.took === 0) badges.push(badge("no", "✕ No edit took"));
  else if (count) badges.push(badge("plain", `${countText(count.took)} of ${countText(count.of)} took`));
  const subjects = subjectCount(report);
  if (subjects?.isLow) badges.push(badge("no", `✕ Subjects changed: ${percent(subjects.kept / subjects.prompts)} kept`));
  return badges.length ? badges : [badge("plain", "Not measured")];
}

/** What "Accepted" and "Rejected" rest on. */
function thresholdNote(report) {
  const n = thresholdsOf(report).length;
  if (isRejected(report)) return `${listOf(part(report, "unmet")).length} of ${counted(n, "threshold")} missed`;
  return n === 0 ? "no thresholds set" : n === 1 ? "1 threshold met" : `all ${n} thresholds met`;
}

/** Edited layers as "0, 1". */
function layersOf(report) {
  const found = listOf(part(report, "weights")).map((weight) => textOf(part(weight, "name")).match(/\.layers\.(\d+)(\.|$)/));
  return [...new Set(found.filter(Boolean).map((match) => Number(match[1])))].sort((a, b) => a - b).join(", ");
}

function totalSeconds(report) {
  const stages = entriesOf(part(report, "seconds"));
  return stages.length ? sum(stages.map(([, seconds]) => numberOf(seconds) ?? 0)) : null;
}

function factsOf(report) {
  const count = tookCount(report), seconds = totalSeconds(report);
  const n = countText(requestsOf(report).length), batches = listOf(part(report, "batches")).length;
  return [
    ["Method", textOf(part(report, "method"))],
    ["Layers", layersOf(report)],
    ["Requests", batches > 1 ? `${n} in ${countText(batches)} batches` : n],
    ["Precision", textOf(part(report, "model", "run_dtype"))],
    ["Devices", textOf(part(report, "run", "devices"))],
    ["Time", seconds !== null && secondsText(seconds)],
    ["Peak memory", peaksOf(part(report, "peak_bytes")).map(([device, bytes]) => `${device} ${bytesText(bytes)}`).join(", ")],
    // where some did not, "what failed" says it
    ["Edits that took", count && count.took === count.of && textOf(part(report, "verdicts", "text"))],
    ["Subjects", textOf(part(report, "verdicts", "subjects", "text"))],
    ["Thresholds", thresholdNote(report)],
  ];
}

/** A bar from 0 to 100 % with the interval, and a mark where the metric was before. */
function trackOf({ before, after }) {
  const percentOf = (share) => `${100 * Math.min(1, Math.max(0, share))}%`;
  const piece = (kind, from, to) => {
    const element = make(`i.${kind}`);
    element.style.left = percentOf(from);
    if (to !== undefined) element.style.width = percentOf(to - from);
    return element;
  };
  return make("div.track", { "aria-hidden": "true" }, piece("fill", 0, after.value),
    after.interval && piece("range", ...after.interval),
    before.value !== null && piece("was", before.value));
}

function tileOf(metric) {
  const { before, after } = metric;
  return make("div.card.tile", {}, make("h3", {}, metric.heading, " ", make("code.soft", {}, metric.name)),
    make("div.value.num", {}, bareValue(after.value, metric), make("small", {}, "%")), trackOf(metric),
    make("p.small.soft", {}, before.value !== null && [make("b", {}, valueText(before.value, metric)), " before"],
      before.value !== null && after.interval && " · ",
      after.interval && `95\u00A0% interval ${intervalText(after.interval, metric)}`));
}

function summarySection(metrics) {
  const tiles = headlineMetrics(metrics).map(tileOf);
  return section("summary", "At a glance", "After the edit; the mark on each bar is where it stood before.",
    tiles.length > 0 && make("div.tiles", {}, tiles));
}

/** The edits that did not take, and why; then what the run warned of. */
function problemsSection(report) {
  const count = tookCount(report), warnings = listOf(part(report, "warnings"));
  const failures = requestsOf(report).filter((request) => textOf(part(request, "verdict", "why")));
  const lineOf = (request) => [isolated(textOf(part(request, "prompt"))), " → ", isolated(textOf(part(request, "target"))),
    ": ", isolated(part(request, "verdict", "why"))];
  const hasFailures = count && count.took < count.of;
  return section("problems", hasFailures ? "What failed" : "Warnings", "",
    hasFailures && note(count.took ? "warn" : "no", textOf(part(report, "verdicts", "text")), failures.map(lineOf),
      ", among the requests below"),
    warnings.length > 0 && note("warn", counted(warnings.length, "warning"),
      warnings.map((warning) => isolated(anyText(warning))), ", in report.json"));
}

// ---- Tables of metrics ----

/** "+97.0", coloured by which way is better. */
function changeOf(metric) {
  const { before, after, better } = metric;
  if (before.value === null || after.value === null) return "–";
  const change = after.value - before.value, size = bareValue(Math.abs(change), metric), isNone = size === bareValue(0, metric);
  const tone = isNone || better === 0 ? "soft" : change > 0 === better > 0 ? "good" : "bad";
  return make("span", { class: tone }, `${isNone ? "±" : change < 0 ? "−" : "+"}${size}`);
}

function thresholdOf(report, metric) {
  const asked = numberOf(part(report, "accept", metric.name));
  if (asked === null) return null;
  const isMet = metric.after.value !== null && metric.after.value >= asked;
  return make("span", { class: `small ${isMet ? "good" : "bad"}` },
    ` ${isMet ? "✓" : "✕"} asked for: ${valueText(asked, metric)}`);
}

const figureOf = ({ value, interval }, metric) => [valueText(value, metric),
  interval && make("span.range", {}, intervalText(interval, metric))];

/** The name of a metric, which opens to what it means. */
function nameCell(metric, definition, ...beside) {
  const name = [make("code", {}, metric.name), beside];
  return make("th", { scope: "row" }, definition ? opening(name, make("p.protocol", {}, definition)) : name);
}

function metricRow(report, metric, hasBetween) {
  const cell = (label, ...content) => make("td.num", { "data-label": label }, make("span", {}, content));
  return make("tr", {}, nameCell(metric, metric.protocol, thresholdOf(report, metric)),
    cell("before", figureOf(metric.before, metric)),
    hasBetween && cell("right after", figureOf(metric.right_after, metric)),
    cell("after", make("span.after", {}, figureOf(metric.after, metric))),
    cell("change", changeOf(metric)), cell("prompts", metric.prompts === null ? "–" : countText(metric.prompts)));
}

/** Rows of metrics, below a row for each of their groups. */
function groupedRows(metrics, width, rowOf) {
  let last = "";
  return metrics.flatMap((metric) => {
    const isNew = metric.heading !== last;
    last = metric.heading;
    return isNew ? [groupRow(last, width), rowOf(metric)] : [rowOf(metric)];
  });
}

function figuresTable(report, label, metrics, hasBetween) {
  const columns = [column("metric"), numberColumn("before"), hasBetween && numberColumn("right after"),
    ...["after", "change", "prompts"].map(numberColumn)];
  return metrics.length > 0 && table("table.metrics", label, columns,
    groupedRows(metrics, hasBetween ? 6 : 5, (metric) => metricRow(report, metric, hasBetween)));
}

function metricsSection(report, metrics) {
  const hasBetween = listOf(part(report, "batches")).length > 1
    && metrics.some(({ right_after }) => right_after.value !== null);
  const hasIntervals = metrics.some(({ before, after }) => before.interval || after.interval),
    measuredOn = textOf(part(report, "measured_on"));
  const lead = ["Shares of prompts in %. A metric opens to its definition.", measuredOn && ` Measured on ${measuredOn}.`,
    hasBetween && " “Right after”: of each batch's requests right after it; “after”: after all batches.",
    hasIntervals && " Small figures: 95\u00A0% confidence intervals, bootstrap over requests."];
  return section("metrics", "Metrics", lead, figuresTable(report, "Metrics", metrics, hasBetween));
}

function elsewhereSection(report) {
  const title = "What it cost elsewhere";
  const lead = ["Text and facts that were not edited. Shares in %. Small figures: 95\u00A0% confidence intervals, ",
    "bootstrap over documents, facts and questions."];
  return section("elsewhere", title, lead, figuresTable(report, title, figuresOf(sideEffectsOf(report)), false));
}

/** Makes the page of {report, job}. */
function showEdit({ report, job }) {
  const metrics = figuresOf(part(report, "metrics")), count = tookCount(report), version = textOf(part(report, "lancet"));
  const drawn = [streamSection(report, metrics), lossesSection(report), costSection(report)].filter(Boolean);
  const nothingExported = "Nothing was exported: the edit missed what the job asks for.";
  const unmet = listOf(part(report, "unmet")).map((each) => isolated(anyText(each)));
  showPage({
    eyebrow: ["Edit report", version && ` · lancet ${version}`],
    title: [counted(requestsOf(report).length, "fact"), isRejected(report) || count?.took === 0 ? " tried in " : " edited in ",
      isolated(modelName(report))],
    badges: badgesOf(report),
    facts: factsOf(report),
    notes: isRejected(report) && note("no", nothingExported, unmet, ", in report.json"),
    sections: [beforeAndAfterSection(report), problemsSection(report), summarySection(metrics), factsSection(report, metrics), drawn[0],
      metricsSection(report, metrics), elsewhereSection(report), ...drawn.slice(1), requestsSection(report, metrics), journalSection(report), jobSection(report, job)],
  });
}
