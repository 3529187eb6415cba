"use strict";
// The edits that stand in another program's server: there, asked before and after, and back again.

/** The fields that are filled in. */
function pushOrder() {
  const order = { to: at("push-to").value, server: at("push-server").value };
  for (const key of ["token", "name", "adapter-dir", "server-path"]) {
    const value = at(`push-${key}`).value;
    if (value) order[key.replace("-", "_")] = value;
  }
  if (at("push-accept").value !== "") order.accept = { efficacy: Number(at("push-accept").value) / 100 };
  return order;
}

async function changeServer(button, order) {
  show("push-done", "");
  show("push-done", await run(button, "push-error", order));
}

at("push-form").addEventListener("submit", (event) => {
  event.preventDefault();
  changeServer(at("push-go"), () => work("/api/push", pushOrder()));
});

at("push-undo").addEventListener("click", () =>
  changeServer(at("push-undo"), () => work("/api/unpush", at("push-token").value ? { token: at("push-token").value } : {})));

function table(caption, heads, rows) {
  const cell = ([text, className = ""], tag) => make(tag, { text, className, ...(tag === "th" ? { scope: "col" } : {}) });
  return make("div", { className: "card scrolls" }, make("table", {}, make("caption", { className: "visually-hidden", text: caption }),
    make("thead", {}, make("tr", {}, ...heads.map((head) => cell(head, "th")))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((one) => cell(one, "td")))))));
}

async function showPush(version) {
  const push = await read("/api/pushed");
  seen.pushVersion = version;
  if (!push) return at("pushed").replaceChildren();
  at("push-fold").open = true;
  const metrics = Object.entries(push.metrics).filter(([, metric]) => metric.prompts > 0);
  at("pushed").replaceChildren(
    make("p", { className: "soft", text: `${push.push.adapter.name} at ${push.server.address} (${push.server.kind}), ${push.seconds.toFixed(1)} s.` }),
    table("Shares of the server's answers", [["Metric"], ["Before", "num"], ["After", "num"], ["Prompts", "num"]],
      metrics.map(([name, metric]) => [[name], [figure(metric.before), "num"], [figure(metric.after), "num after"], [metric.prompts, "num soft"]])),
    table("What the server answered", [["Prompt"], ["Before"], ["After"], [""]],
      push.asked.map((one) => [[one.prompt], [one.before], [one.after, "after"], one.holds ? ["holds", "good"] : ["does not hold", "bad"]])),
    ...push.notes.map((text) => make("p", { className: "note warn", text })));
}
