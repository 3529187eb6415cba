"use strict";
// The token stands in the address that was opened; from here on it is kept by this tab alone and sent as a header.
const token = (() => {
  const given = new URLSearchParams(location.search).get("token");
  if (given) sessionStorage.setItem("lancet-token", given);
  if (location.search) history.replaceState(null, "", location.pathname);
  return given || sessionStorage.getItem("lancet-token") || "";
})();

const at = (id) => document.getElementById(id);

function figure(value, unit = "share") {
  if (value === null || value === undefined) return "n/a";
  return unit === "share" ? `${(100 * value).toFixed(1)} %` : value.toPrecision(4);
}

function make(tag, options = {}, ...children) {
  const { text, ...rest } = options;
  const element = Object.assign(document.createElement(tag), rest);
  if (text !== undefined) element.textContent = text;
  element.append(...children.filter(Boolean));
  return element;
}

function show(id, text) {
  at(id).textContent = text || "";
  at(id).hidden = !text;
}

/** What a screen reader says. */
function say(text) {
  at("said").textContent = text;
}

async function call(path, options = {}) {
  const headers = { "X-Lancet-Token": token, ...options.headers };
  let reply;
  try {
    reply = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch {
    throw new Error("lancet serve does not answer: has it ended?");
  }
  if (reply.ok) return reply;
  const body = await reply.json().catch(() => ({}));
  const problem = new Error(body.error || `${reply.status} ${reply.statusText}`);
  problem.status = reply.status;
  throw problem;
}

const read = async (path) => (await call(path)).json();

const send = (path, body) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// ---- Work that this tab asked for ----------------------------------------------------------------------------------

const seen = { state: 0, editsVersion: -1, modelVersion: -1, pushVersion: 0, edits: 0 };
const awaited = new Map(); // item -> what to do at its end

/** Sends an order; resolves with the work's message, rejects with its error. */
async function work(path, body) {
  const { item } = await (await send(path, body)).json();
  return new Promise((resolve, reject) => awaited.set(item, { resolve, reject }));
}

function settle(finished) {
  for (const { item, what, outcome, message } of finished) {
    const waiting = awaited.get(item);
    if (!waiting) continue;
    awaited.delete(item);
    if (outcome === "done") waiting.resolve(message);
    else waiting.reject(new Error(outcome === "cancelled" ? `Cancelled: ${what}. Nothing was changed.` : message));
  }
}

/** Runs an order of a form: its button rests meanwhile, an error is shown below it. */
async function run(button, errorId, order) {
  show(errorId, "");
  button.disabled = true;
  try {
    return await order();
  } catch (error) {
    show(errorId, error.message);
    return undefined;
  } finally {
    button.disabled = false;
  }
}

let cancellable = 0;
let about = null; // what /api/about says

function showWork(state) {
  const running = state.running;
  const isOwnAnswer = running && ownAnswers.has(running.item); // which has a place and a button of its own
  at("work").hidden = !running || isOwnAnswer;
  if (!running) return;
  const { stage, line, share } = running.progress;
  at("work-what").textContent = running.what;
  at("work-line").textContent = line || stage || "begins";
  if (share === null) at("work-share").removeAttribute("value");
  else at("work-share").value = share;
  cancellable = running.item;
  at("work-cancel").disabled = !running.cancellable;
  show("work-waiting", state.waiting.length ? `Then: ${state.waiting.map((item) => item.what).join(", ")}` : "");
}

at("work-cancel").addEventListener("click", async () => {
  at("work-cancel").disabled = true;
  await send("/api/cancel", { item: cancellable }).catch(() => {}); // it came to its end meanwhile
});

// ---- What the server has -------------------------------------------------------------------------------------------

async function watch() {
  for (;;) {
    try {
      const state = await read(`/api/state?since=${seen.state}`);
      show("lost", "");
      seen.state = state.state;
      showWork(state);
      show("unsaved", state.unsaved);
      at("method-in-use").textContent = state.method;
      at("count").textContent = countText(state.n_edits);
      at("reports").hidden = !state.has_report;
      seen.edits = state.n_edits;
      seen.modelVersion = state.model_version;
      markStale();
      if (state.edits_version !== seen.editsVersion) await showEdits();
      if (state.push_version !== seen.pushVersion) await showPush(state.push_version);
      settle(state.finished);
      await new Promise((resolve) => setTimeout(resolve, 100));
    } catch (error) {
      show("lost", error.message);
      if (error.status === 401) return;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

/** How many edits stand here, and how many the model's folder had in its weights already. */
function countText(n) {
  const inside = nInside();
  const standing = n === 0 ? "" : `${n} ${n === 1 ? "edit stands" : "edits stand"}`;
  const before = inside === 0 ? "" : `${inside} ${inside === 1 ? "edit" : "edits"} inside`;
  return [standing, before].filter(Boolean).join(" · ") || "no edits";
}

async function showEdits() {
  const all = await read("/api/edits");
  seen.editsVersion = all.edits_version;
  showList(all.list);
  showUndone(all.list);
  if (all.result) showResult(all.result, all.result_is_past);
  else showInvitation();
}

/** Rows of a list, the first of them at once and the others behind a click. */
function longList(rows, ofWhat) {
  const [first, rest] = [rows.slice(0, kShownRows), rows.slice(kShownRows)];
  const list = make("ul", { className: "pairs" }, ...first);
  if (!rest.length) return [list];
  return [list, make("details", { className: "pad small" }, make("summary", { text: `${rest.length} more ${ofWhat}` }), make("ul", { className: "pairs" }, ...rest))];
}

function mark(success, replacedBy) {
  if (replacedBy) return make("span", { className: "bad mark", text: `replaced by #${replacedBy}` });
  if (success === null || success === undefined) return make("span", { className: "soft", text: "not measured" });
  return make("span", { className: success ? "good mark" : "bad mark", text: success ? "took" : "did not take" });
}

const fact = (one) => make("p", {}, make("bdi", { className: "prompt", text: one.prompt }), " → ", make("bdi", { className: "to", text: one.target }));

function figures(before, after, units = {}) {
  const list = make("div", { className: "figures" });
  for (const name of Object.keys(after)) list.append(make("span", { text: `${name} ${figure(before[name], units[name])} → ${figure(after[name], units[name])}` }));
  return list;
}

const kShownRows = 5;
const moment = (when) => new Date(when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const filled = (one) => one.prompt.replace("{}", () => one.subject);
/** The prompt of an edit with {} where its subject stands, as undone ones have it. */
const marked = (one) => (one.subject && one.prompt.includes(one.subject) ? one.prompt.replace(one.subject, () => "{}") : one.prompt);

function showList(list) {
  at("edits-buttons").hidden = list.edits.length === 0;
  const items = list.edits.map((one) => {
    const button = make("button", { type: "button", text: "Undo" });
    button.setAttribute("aria-label", `Undo edit ${one.id}: ${one.prompt} → ${one.target}`);
    button.addEventListener("click", () => undo(button, [one.id]));
    const about = make("p", { className: "small soft" }, `#${one.id} · ${one.method} · ${moment(one.when)} · `, mark(one.success, one.replaced_by));
    return make("li", { className: "stands" }, fact(one), about, button, one.after ? make("details", { className: "small soft" }, make("summary", { text: "Measures" }), figures(one.before, one.after), one.why ? make("p", { className: "why", text: one.why }) : null) : null);
  });
  at("edit-list").replaceChildren(...(items.length ? longList(items, "edits") : [make("p", { className: "pad soft", text: "None." })]));
}

const nInside = () => about?.inside?.edits.length ?? 0;

/** The edits of `lancet edit` that are in the weights which are served: undone elsewhere, or where their base is served. */
function showInside() {
  const { edits, base, problem } = about.inside ?? { edits: [], problem: "" };
  at("inside").hidden = edits.length === 0 && !problem;
  at("inside-title").textContent = problem ? "Edits inside the model: they cannot be read" : `Inside the model: ${edits.length} ${edits.length === 1 ? "edit" : "edits"}`;
  at("inside-about").textContent = problem ||
    `They were in these weights before the page opened; the answers without the edits have them too. lancet log ${about.model} lists them, lancet undo ${about.model} --edits ID --out DIR takes one back. They were made on ${base}.`;
  const rows = edits.map((one) => make("li", {}, fact(one), make("p", { className: "small soft" }, `#${one.id} · ${one.method} · ${moment(one.when)} · `, mark(one.success, one.replaced_by))));
  at("inside-list").replaceChildren(...longList(rows, "edits"));
  at("inside-list").hidden = rows.length === 0;
  at("inside").open = rows.length > 0 && rows.length <= kShownRows;
}

const same = (one, other) => ["prompt", "subject", "target"].every((key) => one[key] === other[key]);

/** What was taken back, the latest first. */
function showUndone(list) {
  const facts = list.undone.flatMap((undo) => undo.facts.map((fact) => ({ ...fact, when: undo.when })));
  at("undone").hidden = facts.length === 0;
  at("undone-title").textContent = `Undone: ${facts.length}`;
  const rows = facts.slice(0, 50).map((one) => {
    const stands = list.edits.some((edit) => same({ ...edit, prompt: marked(edit) }, one));
    const button = make("button", { type: "button", text: "Edit again" });
    button.setAttribute("aria-label", `Edit again: ${one.prompt} → ${one.target}`);
    button.addEventListener("click", () => editAgain(button, one));
    return make("li", { className: "stands undone" }, fact({ ...one, prompt: filled(one) }),
      make("p", { className: "small soft" }, `undone ${moment(one.when)}`, stands ? " · stands again" : ""), stands ? null : button);
  });
  at("undone-list").replaceChildren(make("ul", { className: "pairs" }, ...rows));
}

const editAgain = (button, { when, ...one }) => run(button, "again-error", () => work("/api/edit", { facts: [one], method: at("edit-method").value }));

/** Before a first edit: what to do, with a fact to begin with. */
function showInvitation() {
  if (seen.edits > 0) return at("result-body").replaceChildren(make("p", { className: "card pad soft", text: "What the model said of the last edit was not kept: Measure again says how all edits hold." }));
  const [example] = about.examples;
  const take = example && make("button", { type: "button", className: "example", id: "invite-go" }, make("bdi", { text: `${filled(example)} → ${example.target}` }));
  take?.addEventListener("click", () => {
    takeExample(example);
    at("edit-go").scrollIntoView({ block: "center" });
    at("edit-go").focus({ preventScroll: true });
  });
  at("result-body").replaceChildren(make("div", { className: "card pad invite" }, make("h3", { text: "Change what the model says" }),
    make("ol", {},
      make("li", {}, ...(take ? ["Take a fact: ", take] : ["Write a fact into the form of edits."])),
      make("li", { text: "Press Edit. The first edit of a model takes longer: the model reads some text for its statistics." }),
      make("li", { text: "Here stands what the model says before and after, and whether the edit took." }))));
}

const side = (name, text) => make("div", { className: `side ${name}` }, make("h3", { text: name === "before" ? "Before" : "After" }), make("bdi", { text: text === undefined ? "not generated" : text }));

/** `isPast`: edits that it was measured with were taken back. */
function showResult(result, isPast) {
  const areMetricsOpen = at("metrics")?.open ?? false; // as whoever looks has them
  const took = (one) => one.verdict.success;
  const inOrder = [...result.requests.filter((one) => took(one) === false), ...result.requests.filter((one) => took(one) !== false)];
  const rows = inOrder.map((one) => {
    const said = one.continuation || {};
    return make("li", {}, make("div", { className: "fact-head" }, fact(one), mark(took(one))),
      make("div", { className: inOrder.length > 3 ? "sides many" : "sides" }, side("before", said.before), side("after", said.after)),
      one.verdict.why ? make("p", { className: "why", text: one.verdict.why }) : null);
  });
  const chart = result.requests.length > 1 ? factChart({ ...result, metrics: Object.fromEntries(result.metrics.map((metric) => [metric.name, metric])) }) : null;
  const drawn = new Set(chart ? [...chart[1].querySelectorAll(".name")].map((name) => name.textContent) : []);
  const metrics = result.metrics.filter((metric) => !drawn.has(metric.name)).map((metric) => {
    const name = metric.name.split("_").flatMap((part, i) => (i ? ["_", make("wbr"), part] : [part]));
    const row = make("tr", {}, make("th", { scope: "row", title: metric.protocol }, ...name));
    for (const [side, value] of [["", metric.before], ["after", metric.after]])
      row.append(make("td", { className: `num ${side}`, text: figure(value, metric.unit) }));
    row.append(make("td", { className: "num soft", text: metric.prompts }));
    return row;
  });
  const head = make("tr", {}, ...[["Metric", ""], ["Before", "num"], ["After", "num"], ["Prompts", "num"]].map(([text, className]) => make("th", { text, className, scope: "col" })));
  at("result-body").replaceChildren(
    isPast ? make("p", { className: "note warn", text: "Taken back since, in whole or in part: this is how it was before." }) : "",
    make("div", { className: "card" }, ...longList(rows, "facts")),
    make("p", { className: "soft", text: `${result.success}; method ${result.method}.` }),
    make("details", { id: "metrics", open: areMetricsOpen }, make("summary", { text: "Metrics" }), ...(chart ?? []),
      metrics.length ? make("div", { className: "card" }, make("table", {}, make("caption", { className: "visually-hidden", text: "Metrics of these facts" }), make("thead", {}, head), make("tbody", {}, ...metrics))) : null),
    ...result.warnings.map((text) => make("p", { className: "note warn", text })));
}

// ---- Undoing and exporting -----------------------------------------------------------------------------------------

async function changeList(button, order) {
  show("undo-done", "");
  show("undo-done", await run(button, "undo-error", order));
}

const undo = (button, ids) => changeList(button, () => work("/api/undo", { ...(ids ? { ids } : {}), edits_version: seen.editsVersion }));

at("measure-all").addEventListener("click", () => changeList(at("measure-all"), () => work("/api/measure", {})));

at("undo-last").addEventListener("click", () => undo(at("undo-last")));

at("export-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  show("export-done", "");
  const body = { kind: at("export-kind").value, name: at("export-name").value };
  show("export-done", await run(at("export-go"), "export-error", () => work("/api/export", body)));
});

for (const name of ["report.html", "report.json"]) {
  const button = at(name.replace(".", "-"));
  button.addEventListener("click", () =>
    run(button, "report-error", async () => {
      const address = URL.createObjectURL(await (await call(`/api/${name}`)).blob());
      make("a", { href: address, download: name }).click();
      URL.revokeObjectURL(address);
    }));
}

// ---- The beginning -------------------------------------------------------------------------------------------------

async function begin() {
  addFact();
  try {
    about = await read("/api/about");
  } catch (error) {
    at("model").textContent = "No access";
    show("lost", error.message);
    return;
  }
  const name = about.model.split("/").filter((part) => part && part !== ".").pop() || about.model;
  at("model").textContent = name;
  document.title = `${name} – lancet serve`;
  at("folder").textContent = about.model;
  at("dir").textContent = about.dir;
  at("export-dir").textContent = about.dir;
  at("version").textContent = `lancet ${about.version}`;
  showInside();
  for (const method of about.methods) at("edit-method").append(make("option", { value: method.name, text: method.name + (method.name === about.default_method ? " (default)" : "") }));
  at("edit-method").value = about.default_method;
  at("edit-method").dispatchEvent(new Event("change"));
  showExamples(about.examples);
  at("ask-chat").disabled = about.chat === null;
  at("ask-chat-why").textContent = about.chat === null ? about.why_no_chat : `The template: ${about.chat}.`;
  at("push-server").append(...about.servers.map((name) => make("option", { value: name, text: name === "auto" ? "found out by asking" : name })));
  watch();
}

document.addEventListener("DOMContentLoaded", begin); // after the other scripts
