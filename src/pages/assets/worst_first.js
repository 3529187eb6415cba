// The order in which a page has requests.

/** How good a request is, 1 at best; requests that were left out come first, then edits that did not take. */
function goodness(request, metrics) {
  if (skippedOf(request)) return -2;
  const shares = metrics.filter((metric) => metric.isShare && metric.better && ofMetric(request, metric, "after") !== null);
  const good = shares.map((metric) => ofMetric(request, metric, "after")).map((share, i) => (shares[i].better > 0 ? share : 1 - share));
  return (good.length ? sum(good) / good.length : 1) - (tookOf(request) === false ? 1 : 0);
}

/** What search, order and rows need of a request, in the order of the worst first. */
function itemsOf(requests, metrics) {
  const items = requests.map((request, place) => ({ request, place, good: goodness(request, metrics),
    loss: numberOf(part(request, "value", "final_loss")), steps: numberOf(part(request, "value", "steps")) }));
  return items.sort((a, b) => a.good - b.good || (b.loss ?? 0) - (a.loss ?? 0) || a.place - b.place);
}
