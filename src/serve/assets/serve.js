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
  } catch (error) {
    if (error.name === "AbortError") throw error;
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

let seen = { state: 0, editsVersion: -1 };
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
let asking = null; // {abort, item}: the answer that this tab waits for

function showWork(state) {
  const running = state.running;
  const isOwnAnswer = running && asking && asking.item === running.item; // which has a place and a button of its own
  at("work").hidden = !running || isOwnAnswer;
  if (!running) return;
  const { stage, line, share } = running.progress;
  at("work-what").textContent = running.what;
  at("work-line").textContent = line || stage || "begins";
  if (share === null) at("work-share").removeAttribute("value");
  else at("work-share").value = share;
  cancellable = running.item;
  at("work-cancel").disabled = !running.cancellable;
  show("work-waiting", state.waiting.length ? `Behind it: ${state.waiting.map((item) => item.what).join(", ")}` : "");
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
      at("count").textContent = state.n_edits === 0 ? "no edits" : `${state.n_edits} ${state.n_edits === 1 ? "edit stands" : "edits stand"}`;
      at("reports").hidden = !state.has_report;
      if (state.edits_version !== seen.editsVersion) await showEdits();
      settle(state.finished);
      await new Promise((resolve) => setTimeout(resolve, 100));
    } catch (error) {
      show("lost", error.message);
      if (error.status === 401) return;
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
}

async function showEdits() {
  const all = await read("/api/edits");
  const isFirst = seen.editsVersion < 0;
  seen.editsVersion = all.edits_version;
  showList(all.list);
  if (all.result || !isFirst) showResult(all.result);
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

function showList(list) {
  at("edits-buttons").hidden = list.edits.length === 0;
  const items = list.edits.map((one) => {
    const when = new Date(one.when).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    const button = make("button", { type: "button", text: "Undo" });
    button.setAttribute("aria-label", `Undo edit ${one.id}: ${one.prompt} → ${one.target}`);
    button.addEventListener("click", () => undo(button, [one.id]));
    const about = make("p", { className: "small soft" }, `#${one.id} · ${one.method} · ${when} · `, mark(one.success, one.replaced_by));
    return make("li", { className: "stands" }, fact(one), about, one.after ? make("details", { className: "small soft" }, make("summary", { text: "Measures" }), figures(one.before, one.after), one.why ? make("p", { className: "why", text: one.why }) : null) : null, button);
  });
  at("edit-list").replaceChildren(items.length ? make("ul", { className: "pairs" }, ...items) : make("p", { className: "pad soft", text: "None." }));
}

const side = (name, text) => make("div", { className: `side ${name}` }, make("h3", { text: name === "before" ? "Before" : "After" }), make("bdi", { text: text === undefined ? "not generated" : text }));

function showResult(result) {
  if (!result) {
    at("result-body").replaceChildren(make("p", { className: "card pad soft", text: "No edit was made, or one was taken back since." }));
    return;
  }
  const units = Object.fromEntries(result.metrics.map((metric) => [metric.name, metric.unit]));
  const rows = result.requests.map((one) => {
    const said = one.continuation || {};
    const scores = Object.entries(one.metrics);
    const before = Object.fromEntries(scores.map(([name, value]) => [name, value.before]));
    const after = Object.fromEntries(scores.map(([name, value]) => [name, value.after]));
    return make("li", {}, make("div", { className: "fact-head" }, fact(one), mark(one.verdict.success ?? one.verdict.took)),
      make("div", { className: "sides" }, side("before", said.before), side("after", said.after)),
      one.verdict.why ? make("p", { className: "why", text: one.verdict.why }) : null, figures(before, after, units));
  });
  const metrics = result.metrics.map((metric) => {
    const name = metric.name.split("_").flatMap((part, i) => (i ? ["_", make("wbr"), part] : [part]));
    const row = make("tr", {}, make("th", { scope: "row", title: metric.protocol }, ...name));
    for (const [side, value] of [["", metric.before], ["after", metric.after]])
      row.append(make("td", { className: `num ${side}`, text: figure(value, metric.unit) }));
    row.append(make("td", { className: "num soft", text: metric.prompts }));
    return row;
  });
  const head = make("tr", {}, ...[["Metric", ""], ["Before", "num"], ["After", "num"], ["Prompts", "num"]].map(([text, className]) => make("th", { text, className, scope: "col" })));
  at("result-body").replaceChildren(
    make("p", { className: "soft", text: `${result.success}; method ${result.method}.` }),
    make("div", { className: "card" }, make("ul", { className: "pairs" }, ...rows)),
    make("div", { className: "card" }, make("table", {}, make("caption", { className: "visually-hidden", text: "Metrics of these facts" }), make("thead", {}, head), make("tbody", {}, ...metrics))),
    ...result.warnings.map((text) => make("p", { className: "note warn", text })));
}

// ---- Asking --------------------------------------------------------------------------------------------------------

at("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const prompt = at("ask-prompt").value;
  run(at("ask-go"), "ask-error", async () => {
    asking = { abort: new AbortController(), item: 0 };
    at("ask-stop").hidden = false;
    at("answer").hidden = false;
    at("answer-prompt").textContent = prompt;
    at("answer-text").textContent = "";
    at("answer-state").textContent = "waits for its turn";
    try {
      await readAnswer(prompt);
    } finally {
      at("ask-stop").hidden = true;
      asking = null;
    }
  });
});

at("ask-prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!asking) at("ask-form").requestSubmit();
});

async function readAnswer(prompt) {
  const reply = await call("/api/ask", {
    method: "POST", headers: { "Content-Type": "application/json" }, signal: asking.abort.signal,
    body: JSON.stringify({ prompt, tokens: Number(at("ask-tokens").value) }),
  });
  const lines = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", done = false; !done; ) {
    const piece = await lines.read();
    done = piece.done;
    rest += piece.value || "";
    const whole = rest.split("\n");
    rest = whole.pop();
    for (const line of whole) showAnswer(JSON.parse(line));
  }
}

function showAnswer(told) {
  if (told.item) asking.item = told.item;
  if (told.begun) at("answer-state").textContent = "answers …";
  if (told.text) at("answer-text").textContent += told.text;
  if (told.done) at("answer-state").textContent = "the answer:";
  if (told.cancelled) at("answer-state").textContent = "stopped:";
  if (told.error) {
    at("answer").hidden = true;
    throw new Error(told.error);
  }
}

at("ask-stop").addEventListener("click", () => {
  if (asking && asking.item) send("/api/cancel", { item: asking.item }).catch(() => {}); // it came to its end meanwhile
});

// ---- Editing -------------------------------------------------------------------------------------------------------

let file = null;
let about = null;

function addFact(values = {}) {
  const row = at("fact-row").content.firstElementChild.cloneNode(true);
  for (const [name, value] of Object.entries(values)) row.querySelector(`[name=${name}]`).value = value;
  row.querySelector(".remove").addEventListener("click", () => {
    const next = row.nextElementSibling || row.previousElementSibling;
    row.remove();
    numberFacts();
    next.querySelector("[name=prompt]").focus();
  });
  at("facts").append(row);
  numberFacts();
  return row;
}

function numberFacts() {
  [...at("facts").children].forEach((row, i) => {
    row.querySelector("legend").textContent = `Fact ${i + 1}`;
    row.querySelector(".remove").setAttribute("aria-label", `Remove fact ${i + 1}`);
  });
}

at("fact-add").addEventListener("click", () => addFact().querySelector("[name=prompt]").focus());

function typedFacts() {
  return [...at("facts").children].map((row) => Object.fromEntries([...row.querySelectorAll("input")].map((input) => [input.name, input.value])));
}

async function takeFile(chosen) {
  show("edit-error", "");
  try {
    if (chosen.size > about.most_file_bytes) throw new Error(`${chosen.name}: too large: at most ${about.most_file_bytes >> 20} MiB`);
    const reply = await call(`/api/file?name=${encodeURIComponent(chosen.name)}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: chosen });
    file = await reply.json();
  } catch (error) {
    show("edit-error", error.message);
    return;
  }
  at("file-name").textContent = file.name;
  at("file-count").textContent = `${file.count} ${file.count === 1 ? "fact" : "facts"}, format ${file.format}`;
  const shown = file.facts.map((one) => make("li", {}, make("bdi", { text: one.prompt }), " → ", make("bdi", { text: one.target })));
  if (file.count > shown.length) shown.push(make("li", { text: `and ${file.count - shown.length} more` }));
  at("file-facts").replaceChildren(...shown);
  useFile(true);
  say(`${file.name}: ${file.count} facts`);
}

function useFile(isUsed) {
  at("file").hidden = !isUsed;
  at("facts").hidden = at("fact-tools").hidden = isUsed;
  at("facts").querySelectorAll("input").forEach((input) => (input.disabled = isUsed));
  if (!isUsed) file = null;
}

at("file-input").addEventListener("change", async (event) => {
  if (event.target.files.length) await takeFile(event.target.files[0]);
  event.target.value = "";
});
at("file-remove").addEventListener("click", () => {
  useFile(false);
  at("file-input").focus();
});
for (const [name, isOver] of [["dragover", true], ["dragleave", false], ["drop", false]])
  at("edit-form").addEventListener(name, (event) => {
    event.preventDefault();
    at("edit-form").classList.toggle("over", isOver);
    if (name === "drop" && event.dataTransfer.files.length) takeFile(event.dataTransfer.files[0]);
  });

at("edit-method").addEventListener("change", () => {
  const chosen = about.methods.find((method) => method.name === at("edit-method").value);
  at("method-summary").textContent = chosen.summary;
});

at("edit-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const body = { ...(file ? { file: file.file } : { facts: typedFacts() }), method: at("edit-method").value };
  run(at("edit-go"), "edit-error", async () => {
    say("The edit begins.");
    say(await work("/api/edit", body));
    if (file) useFile(false);
    at("facts").replaceChildren();
    addFact();
    at("result").scrollIntoView({ block: "nearest" });
  });
});

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
  for (const method of about.methods) at("edit-method").append(make("option", { value: method.name, text: method.name + (method.name === about.default_method ? " (default)" : "") }));
  at("edit-method").value = about.default_method;
  at("edit-method").dispatchEvent(new Event("change"));
  watch();
}

begin();
