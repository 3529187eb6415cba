// Runs of one method that differ in the seed alone, shown as one run: means, and standard deviations beside them.

function deviationOf(values) {
  if (values.every((value) => value === values[0])) return 0; // their mean may be another number in the last bit
  const mean = meanOf(values);
  return Math.sqrt(sum(values.map((value) => (value - mean) ** 2)) / (values.length - 1));
}

/** A metric of all runs: its figure is the mean, its interval a standard deviation to either side. */
function metricOverSeeds(metric, runs) {
  const values = runs.map(({ metrics }) => metrics.find(({ name }) => name === metric.name)?.after.value ?? null);
  if (values.includes(null)) return { ...metric, after: { value: null, interval: null } };
  const value = meanOf(values), deviation = deviationOf(values);
  return { ...metric, after: { value, deviation, interval: [value - deviation, value + deviation] } };
}

function overSeeds(runs) {
  const counts = runs.map(({ report }) => tookCount(report)), [first] = runs;
  return { ...first, label: first.series, seeds: runs.length,
    metrics: first.metrics.map((metric) => metricOverSeeds(metric, runs)),
    took: counts.includes(null) ? null : { took: sum(counts.map(({ took }) => took)), of: sum(counts.map(({ of }) => of)) },
    secondsOfRuns: runs.map(({ seconds }) => seconds), isRejected: runs.some(({ report }) => isRejected(report)) };
}

/** The runs, with one in the place of each series of several that came to their end. */
function joinedSeeds(runs) {
  const isOfSeries = ({ series, report }, name) => Boolean(report) && series === name;
  return runs.flatMap((run) => {
    const own = run.series && run.report ? runs.filter((other) => isOfSeries(other, run.series)) : [run];
    if (own.length < 2) return [run];
    return own[0] === run ? [overSeeds(own)] : [];
  });
}

/** "± 0.4" of several seeds, else the interval. */
const spreadText = ({ deviation, interval }, metric) =>
  (deviation === undefined ? intervalText(interval, metric) : `± ${bareValue(deviation, metric)}`);
