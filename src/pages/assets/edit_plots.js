// What is drawn of an edit: streams, the losses of the value optimisation, time and memory.

const counting = (n) => Array.from({ length: n }, (_, i) => i + 1);

/** Round numbers of batches or steps; of few, each. */
const countingAxis = (label, n) => ({ label, low: 1, high: Math.max(2, n), ticks: n <= 12 ? counting(n) : undefined });

const hasValues = ({ y }) => y.some((value) => value !== null);

/** A metric's figure of each batch. */
const batchSeries = (batches, metric,
  figure) => ({ name: metric.name, x: counting(batches.length),
  y: batches.map((batch) => numberOf(part(batch, "metrics", metric.name, figure))) });

const shareFrame = (title, subtitle, xLabel,
  batches) => ({ title, subtitle, x: countingAxis(xLabel, batches.length),
  y: { label: "share of prompts, %", isPercent: true, high: 1 } });

function retentionPlot(batches, metrics) {
  const series = metrics.map((metric) => batchSeries(batches, metric, "first_batch")).filter(hasValues);
  return series.length > 0 && linePlot(shareFrame("Retention", "the first batch's requests", "batches edited", batches),
    series);
}

function bothViewsPlot(batches, metrics) {
  const series = metrics.flatMap((metric, color) => {
    const rightAfter = batchSeries(batches, metric, "right_after"), after = batchSeries(batches, metric, "after_all");
    return [{ ...rightAfter, color }, { ...after, color, name: `${metric.name}, after all`, isDashed: true }];
  });
  const shown = series.filter(hasValues);
  return shown.length > 0 && linePlot(shareFrame("Each batch's own requests", "right after the batch, and after all batches",
    "batch", batches), shown);
}

/** "layer 1 down_proj" of "model.layers.1.mlp.down_proj.weight". */
function weightLabel(name) {
  const words = name.split("."), layers = words.indexOf("layers");
  return layers < 0 || words.length - layers < 4 ? name : `layer ${words[layers + 1]} ${words.at(-2)}`;
}

function growthPlot(batches) {
  const byWeight = new Map();
  batches.forEach((batch, i) => {
    for (const [name, size] of entriesOf(part(batch, "growth"))) {
      if (!byWeight.has(name)) byWeight.set(name, { name: weightLabel(name), x: [], y: [] });
      byWeight.get(name).x.push(i + 1);
      byWeight.get(name).y.push(numberOf(size));
    }
  });
  const frame = { title: "Growth of the weights", subtitle: "norm of a weight's whole change by its own norm",
    x: countingAxis("batches edited", batches.length), y: { label: "%", isPercent: true, low: 0 } };
  return byWeight.size > 0 && linePlot(frame, [...byWeight.values()]);
}

function streamSection(report, metrics) {
  const batches = listOf(part(report, "batches")), headline = headlineMetrics(metrics),
    each = numberOf(part(report, "schedule", "batch"));
  if (batches.length < 2) return null;
  const lead = [`${countText(batches.length)} batches, one after the other`,
    each !== null && `, ${counted(each, "request")} each`, ". Of each group of metrics the first one is drawn."];
  return section("stream", "The stream", lead,
    figures([retentionPlot(batches, headline), bothViewsPlot(batches, headline), growthPlot(batches)]));
}

/** Interpolates between the neighbours in order; `sorted` is not empty. */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1), below = Math.floor(at), above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** By step: quartiles over all requests, the 95th percentile, and the share of requests that still ran. */
function lossCurves(all) {
  const x = counting(all.reduce((most, losses) => Math.max(most, losses.length), 0));
  const sorted = x.map((step) => Float64Array.from(all, (losses) => losses[Math.min(step, losses.length) - 1]).sort());
  const at = (share) => sorted.map((losses) => quantile(losses, share));
  return {
    quartiles: { name: "median and quartiles", x, low: at(0.25), y: at(0.5), high: at(0.75) },
    tail: { name: "95 % of the requests are below", x, y: at(0.95), isDashed: true },
    running: { name: "requests under way", x,
      y: x.map((step) => all.filter((losses) => losses.length >= step).length / all.length) },
  };
}

function lossesSection(report) {
  const all = requestsOf(report).map((request) => listOf(part(request, "value",
    "losses")).filter((loss) => numberOf(loss) !== null)).filter((losses) => losses.length);
  if (!all.length) return null;
  const { quartiles, tail, running } = lossCurves(all), steps = quartiles.x.length;
  const least = Math.min(...quartiles.low), isLogarithmic = least > 0 && Math.max(...tail.y) / least > 20;
  const losses = { title: "Loss by step", subtitle: `${counted(all.length, "request")}: median, quartiles, 95th percentile`,
    x: countingAxis("step", steps), y: { label: isLogarithmic ? "total loss, logarithmic" : "total loss", isLogarithmic } };
  const underWay = { title: "Requests under way", subtitle: "those that are not below the stop loss yet",
    x: countingAxis("step", steps), y: { label: "% of the requests", isPercent: true, low: 0, high: 1 } };
  const subset = numberOf(part(report, "values", "contexts_per_step"));
  const lead = ["How far the optimisation of the requests' values came. A request that is finished keeps its last loss.",
    subset > 0 &&
      [` Each step saw ${shortNumber(subset)} of ${listOf(part(report, "contexts")).length} contexts, the next one others: `,
        "neighbouring losses are not of the same contexts."]];
  return section("losses", "Value optimisation", lead,
    figures([linePlot(losses, [quartiles, tail]), linePlot(underWay, [running])]));
}

function costSection(report) {
  const devices = [], colorOf = (device) => (devices.includes(device) ? devices.indexOf(device) : devices.push(device) - 1);
  const times = entriesOf(part(report,
    "seconds")).map(([label, seconds]) => ({ label, value: numberOf(seconds) ?? 0,
    text: secondsText(numberOf(seconds) ?? 0) }));
  const peaks = entriesOf(part(report, "stage_peak_bytes")).flatMap(([stage, bytes]) =>
    peaksOf(bytes).map(([device, size]) => ({ label: `${stage}, ${device}`, value: size, text: bytesText(size),
      color: colorOf(device) })));
  return section("cost", "Time and memory", "", figures([
    times.length > 0 && barPlot({ title: "Time by stage", subtitle: `${secondsText(totalSeconds(report))} in all` }, times),
    peaks.length > 0 && barPlot({ title: "Peak memory by stage",
      subtitle: "CPU: resident, mapped files included; GPU: in tensors" }, peaks)]));
}
