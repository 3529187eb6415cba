// The page about several runs. Runs on the same model and requests are a group; numbers are compared within groups only.

/** Whether the prompts are the same, as far as is known: older reports have their number alone. */
const samePrompts = (a, b) => a.prompts === b.prompts && (!a.asked || !b.asked || a.asked === b.asked);
const sameDefinition = (a, b) => a.name === b.name && a.protocol === b.protocol && a.unit === b.unit;

/** A line for each metric of one definition over the same prompts: {shown, ofRuns}, null for a run that has none. */
function metricLines(group) {
  const lines = [];
  group.forEach((run, i) => {
    for (const metric of run.metrics) {
      let line = lines.find(({ shown }) => sameDefinition(shown, metric) && samePrompts(shown, metric));
      if (!line) lines.push((line = { shown: metric, ofRuns: group.map(() => null) }));
      line.ofRuns[i] = metric;
    }
  });
  return lines;
}

/** Requests below which a report has no intervals: what is best of so few may be chance. */
const leastRequests = 10;

/** The runs' figures that are the best of a line: none where an interval of another one reaches the best's. */
function bestOf({ shown, ofRuns }, requests) {
  const measured = ofRuns.filter((metric) => metric && metric.after.value !== null);
  if (measured.length < 2 || shown.better === 0) return [];
  if (requests < leastRequests && measured.some(({ after }) => !after.interval)) return [];
  const value = measured.map(({ after }) => after.value).reduce((a, b) => (shown.better > 0 ? Math.max(a, b) : Math.min(a, b)));
  const best = measured.filter(({ after }) => after.value === value),
    others = measured.filter(({ after }) => after.value !== value);
  const isApart = (a, b) => !a || !b || a[1] < b[0] || b[1] < a[0];
  if (!others.length && best.some(({ after }) => after.interval)) return [];
  return best.every((one) => others.every((other) => isApart(one.after.interval, other.after.interval))) ? best : [];
}

function metricCell(metric, best) {
  if (!metric) return make("td.num.soft", {}, "–");
  const { before, after } = metric, isBest = best.includes(metric);
  return make("td", { class: isBest ? "num best" : "num" }, make("span.after", {}, valueText(after.value, metric)),
    isBest && make("span.tag", {}, "best"),
    after.interval && make("span.range", {}, spreadText(after, metric)),
      before.value !== null && make("span.from", {}, `from ${bareValue(before.value, metric)}`));
}

/** "accepted" of a run that was asked for something, and met it. */
function statusCell({ report, isRejected: isAnyRejected }) {
  if (isAnyRejected || isRejected(report)) return make("td.num.bad", {}, "✕ rejected");
  const isAccepted = part(report, "status") === "accepted" && thresholdsOf(report).length > 0;
  return isAccepted ? make("td.num.good", {}, "✓ accepted") : make("td.num.soft", {}, "no thresholds");
}

function tookCell({ report, took }) {
  const count = took ?? tookCount(report);
  if (!count) return make("td.num.soft", {}, "–");
  return make("td", { class: count.took ? "num" : "num bad" },
    `${count.took ? "" : "✕ "}${countText(count.took)} of ${countText(count.of)}`);
}

const labelColumns = (runs) => runs.map(({ label }) => make("th.num", { scope: "col" }, isolated(label)));

function metricsTable(group, lines) {
  const rowHead = (...content) => make("th", { scope: "row" }, content);
  const rows = groupedRows(lines.map((line) => ({ ...line, heading: line.shown.heading })), group.length + 1, (line) => {
    const { shown } = line, best = bestOf(line, group[0].requests);
    const definition = [shown.protocol,
      shown.prompts !== null && `over ${counted(shown.prompts, "prompt")}`].filter(Boolean).join("; ");
    return make("tr", {}, nameCell(shown, definition), line.ofRuns.map((metric) => metricCell(metric, best)));
  });
  return table("table.runs", "Metrics", [column("metric"), labelColumns(group)], [
    make("tr", {}, rowHead("verdict"), group.map(statusCell)),
    make("tr", {}, rowHead(opening("edits that took", make("p.protocol", {}, "the model says the target (efficacy_argmax)"))),
      group.map(tookCell)),
    rows]);
}

/** The points that no other one beats in both, as steps from left to right. */
function frontOf(points) {
  const beats = (a, b) => a.x >= b.x && a.y >= b.y && (a.x > b.x || a.y > b.y);
  const front = points.filter((point) => !points.some((other) => beats(other, point))).sort((a, b) => a.x - b.x);
  const steps = front.flatMap((point, i) => (i ? [{ x: front[i - 1].x, y: point.y }, point] : [point]));
  return { x: steps.map(({ x }) => x), y: steps.map(({ y }) => y) };
}

/** Success against specificity, for each way in which both are measured. */
function balancePlots(group, lines) {
  const plots = [];
  for (const success of lines.filter(({ shown }) => shown.name.startsWith("efficacy_") && shown.isShare)) {
    const other = `specificity_${success.shown.name.slice("efficacy_".length)}`;
    for (const specificity of lines.filter(({ shown }) => shown.name === other)) {
      const valueOf = (line, i) => line.ofRuns[i]?.after.value ?? null;
      const spreadOf = (line, i) => line.ofRuns[i]?.after.deviation ?? 0;
      const points = group.map(({ label, color }, i) => ({ name: label, color, x: valueOf(specificity, i),
        y: valueOf(success, i), dx: spreadOf(specificity, i), dy: spreadOf(success, i) }))
        .filter(({ x, y }) => x !== null && y !== null);
      const frame = { title: "Success against specificity", subtitle: "dashed: the runs that no other one beats in both",
        x: { label: `${other}, %`, isPercent: true }, y: { label: `${success.shown.name}, %`, isPercent: true } };
      if (points.length > 1) plots.push(scatterPlot(frame, points, frontOf(points)));
    }
  }
  return plots;
}

function runCostPlots(group) {
  const times = group.map((run) => ({ ...run, seconds: run.secondsOfRuns ? meanOf(run.secondsOfRuns) : run.seconds }))
    .filter(({ seconds, requests }) => seconds > 0 && requests > 0)
    .map(({ label, color, seconds, requests }) => ({ label, color, value: seconds / requests,
      text: `${shortNumber(seconds / requests)}\u00A0s` }));
  const peaks = group.flatMap(({ label, color, report }) =>
    peaksOf(part(report, "peak_bytes")).map(([device, bytes]) => ({ label: `${label}, ${device}`, color, value: bytes,
      text: bytesText(bytes) })));
  return [times.length > 0 && barPlot({ title: "Time per edit",
    subtitle: "editing alone, without load, statistics and measures" }, times),
    peaks.length > 0 && barPlot({ title: "Peak memory", subtitle: "CPU: resident; GPU: in tensors" }, peaks)];
}

/** Metrics that have several rows, and why. */
function metricNotices(lines) {
  const names = [...new Set(lines.map(({ shown }) => shown.name))];
  const rowsByName = names.map((name) => lines.map(({ shown }) => shown).filter((shown) => shown.name === name));
  return rowsByName.filter((rows) => rows.length > 1).map((rows) => {
    const protocols = new Set(rows.map(({ protocol, unit }) => `${protocol}\n${unit}`)).size;
    const counts = rows.map(({ prompts }) => (prompts === null ? "?" : countText(prompts))).join(", ");
    return [make("code", {}, rows[0].name),
      protocols > 1 ? ` was measured by ${protocols} different protocols`
      : ` rests on other prompts in some runs (${counts} of them)`, ": a row each, not comparable."];
  });
}

/** What each run's model says of a fact, and whether its edit took. */
function answerCell(request) {
  const took = tookOf(request), isNoText = !isObject(part(request, "continuation"));
  return make("td", {}, isNoText ? make("span.soft", {}, "–") : saidAfter(request),
    took === false && make("span.bad.small", {}, " ✕ did not take"));
}

/** Rows of facts: those first of which some runs' edits took and others' did not. */
function answersTable(group) {
  const ofRuns = group.map(({ report }) => requestsOf(report));
  const rows = ofRuns[0].map((fact, i) => ({ fact, answers: ofRuns.map((requests) => requests[i] ?? null) }));
  const isSplit = ({ answers }) => new Set(answers.map(tookOf)).size > 1;
  if (!rows.some(({ answers }) => answers.some((one) => isObject(part(one, "continuation"))))) return null;
  const first = ({ fact }) => make("td", {}, isObject(part(fact, "continuation")) ? saidBefore(fact) : "–");
  return table("table.runs.answers", "Answers by fact", [column("fact"), column("before"), group.map(({ label }) => column(isolated(label)))],
    [...rows.filter(isSplit), ...rows.filter((row) => !isSplit(row))].map((row) => make("tr", {},
      make("th", { scope: "row" }, factOf(row.fact, "div")), first(row), row.answers.map(answerCell))));
}

function answersSection(group, title, id) {
  const { report, requests } = group[0], shown = requestsOf(report).length;
  const lead = ["What the model writes by itself after each prompt; first the facts that some took and others did not",
    shown < requests && `. The first ${countText(shown)} of ${countText(requests)}`, "."];
  return section(id, title, lead, answersTable(group));
}

function groupSections(group, i, groups) {
  const suffix = groups.length > 1 ? `, group ${i + 1}` : "", id = groups.length > 1 ? `-${i + 1}` : "",
    lines = metricLines(group), { report, requests } = group[0];
  const lead = [`${counted(requests, "request")} on `, isolated(modelName(report)), " ",
    make("code", {}, textOf(part(report, "model", "content_hash"))),
    group.some(({ seeds }) => seeds) ? ". After the edit: means over seeds; small: standard deviation, and the value before. "
      : ". After the edit; small: 95\u00A0% confidence interval where measured, and the value before. ",
    "Best: where its interval lies apart from all others'. A metric opens to its definition."];
  return [section(`balance${id}`, `Balance${suffix}`, "", figures(balancePlots(group, lines))),
    section(`metrics${id}`, `Metrics${suffix}`, lead, metricsTable(group, lines)),
    answersSection(group, `Answers by fact${suffix}`, `answers${id}`),
    section(`cost${id}`, `Time and memory${suffix}`, "", figures(runCostPlots(group)))];
}

function differencesSection(runs, differences) {
  const rows = differences.map(({ key, values }) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, key)),
    values.map((value) => make("td.num", {}, make("code", {}, value || "–")))));
  const title = "What the jobs differ in";
  return section("differences", title, rows.length > 0 && "Keys of the resolved jobs that are not equal everywhere.",
    rows.length ? table("table.runs.compact", title, [column("key"), labelColumns(runs)], rows)
      : make("p.soft", {}, "Nothing that is known."));
}

/** What went wrong with runs, behind what went well. */
function runProblems(runs) {
  const items = runs.map((run) => !run.report ? [isolated(run.label), " failed: ", isolated(run.failure)]
    : !run.has_job && [isolated(run.label),
      ": there is no job.yaml, so what its job differs in is not known."]).filter(Boolean);
  return section("problems", "What failed, or is not known", "",
    items.length > 0 && make("div.note.warn", {}, make("ul", {}, items.map((item) => make("li", {}, item)))));
}

/** Makes the page of {title, runs, differences}. */
function showComparison({ title, runs, differences }) {
  const secondsOf = ({ report }) => sum(listOf(part(report, "batches")).map((batch) => numberOf(part(batch, "seconds")) ?? 0));
  const read = joinedSeeds(runs.map((run) => ({ ...run, seconds: secondsOf(run),
    metrics: run.report ? figuresOf(part(run.report, "metrics")) : [] }))).map((run, color) => ({ ...run, color }));
  const done = read.filter(({ report }) => report);
  const groups = [...new Set(done.map(({ group }) => group))].map((number) => done.filter(({ group }) => group === number));
  const notices = groups.flatMap((group) => metricNotices(metricLines(group)));
  if (groups.length > 1)
    notices.unshift(["These runs are not all on the same model and requests: ",
      `their numbers are not comparable across the ${groups.length} tables below.`]);
  const only = groups.length === 1 ? groups[0][0] : null;
  showPage({
    eyebrow: "Comparison",
    title: isolated(title),
    facts: [["Runs", countText(runs.length)],
      ...(only ? [["Model", isolated(modelName(only.report))], ["Requests", countText(only.requests)],
        ["Devices", textOf(part(only.report, "run", "devices"))]] : [])],
    notes: notices.length ? [make("div.note.warn", {}, make("ul", {}, notices.map((notice) => make("li", {}, notice))))] : [],
    sections: [...groups.flatMap(groupSections), runProblems(read), differencesSection(runs, differences)],
  });
}
