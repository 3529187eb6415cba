// The chart of facts by metric for pages that a server makes, which have a report and no section for it.

/** Returns what stands above the chart, and the chart; null: the report has no figures of single facts. */
function factChart(report) {
  const drawn = factStrips(report, figuresOf(part(report, "metrics")));
  return drawn && [make("p.soft.small", {}, drawn.lead), drawn.figure];
}
globalThis.factChart = factChart;
