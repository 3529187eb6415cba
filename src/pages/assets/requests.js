// The table of requests, the worst first: search, order, rows that open. Rows are made when they are shown, 25 at first.

/** What a search looks in. */
function textsOf(request) {
  const given = ["prompt", "target", "target_true"].map((key) => textOf(part(request, key)));
  const said = ["before", "after"].map((when) => continuationOf(request, when));
  return [anyText(part(request, "id")), ...given, ...said, skippedOf(request), whyOf(request)].join("\n").toLowerCase();
}

/** "; weights followed 81.2 % of the way (layer 0: 80.1 %, layer 1: 82.5 %)"; empty: layers are asked for nothing. */
function followedText(request) {
  const total = numberOf(part(followedOf(request), "total"));
  if (total === null) return "";
  const layers = entriesOf(part(followedOf(request), "layers")).filter(([, share]) => numberOf(share) !== null);
  const each = layers.map(([layer, share]) => `layer ${layer}: ${percent(share)}`);
  return `; weights followed ${percent(total)} of the way${each.length > 1 ? ` (${each.join(", ")})` : ""}`;
}

/** "loss 8.12 → 0.049 in 14 steps", and how far the weights followed; empty: the method has none. */
function valueLine({ request, loss, steps }) {
  const initial = numberOf(part(request, "value", "initial_loss"));
  if (initial === null && loss === null) return "";
  return ["loss", initial !== null && ` ${shortNumber(initial)}`, loss !== null && ` → ${shortNumber(loss)}`,
    steps > 0 && ` in ${counted(steps, "step")}`, followedText(request)]
    .filter(Boolean).join("");
}

function shownFigure(value, metric) {
  if (value === null) return "–";
  const text = metric.isShare ? fixed(100 * value, 1).replace(/\.0$/, "") : shortNumber(value);
  return isMissed(value, metric) ? make("b.low", {}, text) : make("b", {}, text);
}

function verdictCell(request) {
  const took = tookOf(request);
  if (skippedOf(request)) return make("td.warn", {}, "left out");
  if (took === null) return make("td.soft", {}, "–");
  return took === true ? make("td.good", {}, "took") : make("td.bad", {}, "did not take");
}

/** What a row opens to. */
function detailsOf(item, metrics) {
  const { request } = item;
  const figuresOfMetric = (metric) => ["before", "after"].map((when) => ofMetric(request, metric, when));
  const chips = metrics.filter((metric) => figuresOfMetric(metric).some((value) => value !== null)).map((metric) => {
    const [before, after] = figuresOfMetric(metric);
    return make("li", {}, make("span.name", { title: metric.name }, metric.name),
      make("span.num", {}, shownFigure(before, { ...metric, better: 0 }), " → ", shownFigure(after, metric)));
  });
  const texts = pairs("dl.texts", [
    ["id", isolated(anyText(part(request, "id")))],
    ["instead of", textOf(part(request, "target_true")) && isolated(textOf(part(request, "target_true")), "bdi.true")],
    ["before", continuationOf(request, "before") && saidBefore(request)],
    ["after", continuationOf(request, "after") && saidAfter(request)],
    ["left out", skippedOf(request) && isolated(skippedOf(request), "bdi.warn")],
    ["did not take", whyOf(request) && isolated(whyOf(request), "bdi.warn")],
    ["value", valueLine(item)]]);
  return make("div.detail", {}, make("div", {}, texts, aboutSubject(item.request)),
    chips.length > 0 && make("ul.chips", { "aria-label": "Metrics before → after, shares in %" }, chips));
}

/** The two rows of a request: what is seen at once, and what it opens to. */
function rowsOf(item, metrics, columns) {
  const { request, place } = item, id = `request-${place + 1}`;
  const opener = make("button.opener", { type: "button", "aria-expanded": "false", "aria-controls": id },
    `#${countText(place + 1)}`);
  const row = make("tr.request", {}, make("td.num", {}, opener),
    make("th.fact", { scope: "row" }, factOf(request, "div")),
    make("td.says", {}, saidAfter(request)),
    columns.map((metric) => make("td.num.figure", {}, shownFigure(ofMetric(request, metric, "after"), metric))),
    verdictCell(request));
  const opened = make("tr", { id, hidden: true });
  row.addEventListener("click", (event) => {
    if (event.detail && String(getSelection())) return; // whoever marks text of a row does not open it
    if (!opened.firstChild) opened.append(make("td", { colspan: row.children.length }, detailsOf(item, metrics)));
    opened.hidden = !opened.hidden;
    opener.setAttribute("aria-expanded", String(!opened.hidden));
  });
  return [row, opened];
}

// ---- Search, filter and order ----

const filters = {
  all: ["all requests", () => true],
  failed: ["did not take", ({ request }) => tookOf(request) === false],
  missed: ["some metric missed",
    ({ request }, metrics) => metrics.some((metric) => isMissed(ofMetric(request, metric, "after"), metric))],
  worse: ["some metric worse than before", ({ request }, metrics) => metrics.some((metric) => {
    const before = ofMetric(request, metric, "before"), after = ofMetric(request, metric, "after");
    return before !== null && after !== null && metric.better * (after - before) < 0;
  })],
  skipped: ["left out of the edit", ({ request }) => skippedOf(request) !== ""],
};

/** By a number of each item, those without one last. */
const byNumber = (numberOfItem, sign) => (a, b) => {
  const x = numberOfItem(a), y = numberOfItem(b);
  return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
};

/** By name: what it is called, and how items are compared; null: they stand so already. */
const ordersOf = (metrics) => ({
  worst: ["worst first", null],
  file: ["as in the file", (a, b) => a.place - b.place],
  loss: ["largest final loss", byNumber(({ loss }) => loss, -1)],
  steps: ["most steps", byNumber(({ steps }) => steps, -1)],
  ...Object.fromEntries(metrics.filter(({ better }) => better).map((metric) =>
    [`metric:${metric.name}`, [`${metric.better < 0 ? "highest" : "lowest"} ${metric.name}`,
      byNumber(({ request }) => ofMetric(request, metric, "after"), metric.better)]])),
});

const choices = (id, label, named) => make("select", { id, "aria-label": label },
  Object.entries(named).map(([value, [text]]) => make("option", { value }, text)));

/** Connects the tools with the table, and both with the page's address. */
function connect({ items, metrics, columns, orders, search, show, order, count, body, more }) {
  const first = 25, step = 200;
  let limit = first, found = items;
  const rows = new Map();
  const rowOf = (item) => rows.get(item) ?? rows.set(item, rowsOf(item, metrics, columns)).get(item);

  function drawRows() {
    body.replaceChildren(...found.slice(0, limit).flatMap(rowOf));
    more.hidden = found.length <= limit;
    more.textContent = `Show ${countText(Math.min(step, found.length - limit))} more`;
    const all = counted(items.length, "request"), shown = Math.min(limit, found.length);
    const kept = found.length === items.length ? all : `${countText(found.length)} of ${all}`;
    count.textContent = shown < found.length ? `${kept}, ${countText(shown)} shown` : kept;
  }
  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), keeps = filters[show.value][1];
    found = items.filter((item) => keeps(item, metrics)
      && words.every((word) => (item.words ??= textsOf(item.request)).includes(word)));
    if (orders[order.value][1]) found.sort(orders[order.value][1]);
    limit = first;
    drawRows();
  }
  function remember() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (order.value !== "worst") state.set("order", order.value);
    if (show.value !== "all") state.set("show", show.value);
    history.replaceState(null, "", `#${state.toString() || "requests"}`);
  }
  function recall() {
    if (!location.hash.includes("=")) return;
    const state = new URLSearchParams(location.hash.slice(1));
    search.value = state.get("q") ?? "";
    order.value = Object.hasOwn(orders, state.get("order") ?? "") ? state.get("order") : "worst";
    show.value = Object.hasOwn(filters, state.get("show") ?? "") ? state.get("show") : "all";
    update();
    document.getElementById("requests")?.scrollIntoView();
  }
  for (const tool of [search, show, order]) tool.addEventListener("input", () => (update(), remember()));
  more.addEventListener("click", () => {
    const next = found[limit];
    limit += step;
    drawRows();
    rowOf(next)[0].querySelector("button").focus();
  });
  window.addEventListener("hashchange", recall);
  window.addEventListener("beforeprint", () => {
    limit = Math.max(limit, 1000); // paper has no button
    drawRows();
  });
  update();
  return recall;
}

function requestsSection(report, allMetrics) {
  const requests = requestsOf(report);
  if (!requests.length) return null;
  const metrics = allMetrics.filter(({ name }) => requests.some((request) => part(request, "metrics", name) !== null));
  const columns = headlineMetrics(metrics).slice(0, 3), orders = ordersOf(metrics);
  const search = make("input", { id: "search", type: "search", placeholder: "Search prompts, targets, answers, ids",
    "aria-label": "Search the requests" });
  const show = choices("show", "Which", filters), order = choices("order", "Order", orders);
  const count = make("span.soft.small", { id: "request-count", role: "status" }),
    more = make("button", { id: "more", type: "button" });
  const heads = [numberColumn("#"), column("fact"), make("th.says", { scope: "col" }, "the model says"),
    ...columns.map((metric) => make("th.num.figure", { scope: "col", title: metric.name }, metric.heading)), column("edit")];
  const holder = table("table.requests", "Requests", heads, []);
  const recall = connect({ items: itemsOf(requests, metrics), metrics, columns, orders, search, show, order, count,
    body: holder.querySelector("tbody"), more });
  afterwards.push(recall);
  const lead = ["The worst first: edits that did not take, then by the mean of a request's shares after the edit, ",
    "then by its loss. Shares in %. A row opens to all of it."];
  return section("requests", "Requests", lead,
    make("div.tools", { id: "tools" }, search, show, order, count), holder, make("p.more", {}, more));
}
