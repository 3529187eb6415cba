// Filter, search and order of the requests. The first rows stand in the page; the texts of the others are in the data,
// and their rows are made, by the pattern of the first, when they are shown.
(() => {
  "use strict";
  const holder = document.getElementById("request-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const list = document.getElementById("request-rows");
  const rows = [...list.children];
  const pattern = rows[0].cloneNode(true);
  const search = document.getElementById("search"), order = document.getElementById("order"), show = document.getElementById("show");
  const count = document.getElementById("request-count"), more = document.getElementById("more");
  const page = 50;
  let limit = page, found = [];

  const text = (row, name, value) => {
    const place = row.querySelector("." + name);
    const missing = value === null || value === undefined;
    (place.closest("[data-part]") || place).hidden = missing;
    place.textContent = missing ? "" : value;
    return place;
  };
  const said = (row, name, value, target) => {
    const place = text(row, name, value);
    if (!value || !target || !value.toLowerCase().startsWith(target.toLowerCase())) return;
    const mark = document.createElement("mark");
    mark.textContent = value.slice(0, target.length);
    place.replaceChildren(mark, value.slice(target.length));
  };
  const shown = (value, metric) =>
    value === null ? "–" : metric.share ? (Math.round(1000 * value) / 10).toString() : Number(value.toPrecision(4)).toString();
  const isLow = (value, metric) => value !== null && metric.share && (metric.better < 0 ? value > 0 : metric.better > 0 && value < 1);

  function build(i) {
    const item = data.rows[i], row = pattern.cloneNode(true);
    const [id, prompt, target, truth, before, after, skipped, why, value] = item.texts;
    row.title = id;
    text(row, "number", "#" + (item.place + 1));
    text(row, "prompt", prompt);
    text(row, "to-text", target);
    text(row, "true", truth);
    said(row, "before", before, target);
    said(row, "after", after, target);
    text(row, "skipped", skipped);
    text(row, "why", why);
    text(row, "value", value);
    [...row.querySelectorAll(".chips li")].forEach((chip, m) => {
      const metric = data.metrics[m], was = item.before[m], is = item.after[m];
      chip.hidden = was === null && is === null;
      const cell = chip.querySelector(".num");
      const now = document.createElement("b");
      now.className = isLow(is, metric) ? "low" : "";
      now.textContent = shown(is, metric);
      cell.replaceChildren(shown(was, metric) + " → ", now);
    });
    return row;
  }
  const searched = ["prompt", "to-text", "true", "before", "after", "skipped", "why"];
  const rowOf = (i) => (rows[i] = rows[i] || build(i));
  const wordsOf = (i) => {
    const item = data.rows[i];
    if (item.words === undefined) {
      const texts = item.texts ? item.texts.slice(0, -1) : [rows[i].title, ...searched.map((name) => rows[i].querySelector("." + name).textContent)];
      item.words = texts.join("\n").toLowerCase();
    }
    return item.words;
  };

  const missing = (value) => value === null || value === undefined;
  const by = (key, sign) => (a, b) => {
    const x = key(data.rows[a]), y = key(data.rows[b]);
    if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b;
    return sign * (x - y) || a - b;
  };
  function comparison(name) {
    if (name === "file") return by((item) => item.place, 1);
    if (name === "loss") return by((item) => item.loss, -1);
    if (name === "steps") return by((item) => item.steps, -1);
    const m = data.metrics.findIndex((metric) => "metric:" + metric.name === name);
    if (m >= 0) return by((item) => item.after[m], data.metrics[m].better < 0 ? -1 : 1);
    return (a, b) => a - b;
  }
  const keeps = {
    all: () => true,
    missed: (item) => item.after.some((value, m) => isLow(value, data.metrics[m])),
    worse: (item) => item.after.some((value, m) => value !== null && item.before[m] !== null && data.metrics[m].better * (value - item.before[m]) < 0),
    skipped: (item) => item.skipped === true,
    failed: (item) => item.failed === true,
  };

  function draw() {
    list.replaceChildren(...found.slice(0, limit).map(rowOf));
    more.hidden = found.length <= limit;
    const n = data.rows.length.toLocaleString("en"), all = found.length === data.rows.length;
    const shownNow = Math.min(limit, found.length);
    const what = data.rows.length === 1 ? " request" : " requests";
    count.textContent = (all ? n + what : found.length.toLocaleString("en") + " of " + n + what) +
      (shownNow < found.length ? ", " + shownNow + " shown" : "");
  }
  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const keep = keeps[show.value] || keeps.all;
    limit = page;
    found = data.rows.map((_, i) => i).filter((i) => keep(data.rows[i]) && words.every((word) => wordsOf(i).includes(word)));
    found.sort(comparison(order.value));
    draw();
  }
  function remember() {
    const state = new URLSearchParams();
    if (search.value) state.set("q", search.value);
    if (order.value !== "worst") state.set("order", order.value);
    if (show.value !== "all") state.set("show", show.value);
    history.replaceState(null, "", "#" + (state.toString() || "requests"));
  }
  function recall() {
    if (!location.hash.includes("=")) return;
    const state = new URLSearchParams(location.hash.slice(1));
    const choose = (select, value) => (select.value = [...select.options].some((option) => option.value === value) ? value : select.options[0].value);
    search.value = state.get("q") || "";
    choose(order, state.get("order"));
    choose(show, state.get("show"));
    update();
    document.getElementById("requests").scrollIntoView();
  }
  search.addEventListener("input", () => (update(), remember()));
  for (const select of [order, show]) select.addEventListener("change", () => (update(), remember()));
  more.addEventListener("click", () => ((limit += page), draw()));
  window.addEventListener("hashchange", recall);
  document.getElementById("tools").hidden = false;
  update();
  recall();
})();
