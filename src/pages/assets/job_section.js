// What the run was: its journal, model, statistics, contexts, weights, versions, the resolved job.

function journalSection(report) {
  const batches = listOf(part(report, "journal", "batches")), undone = listOf(part(report, "journal", "undone"));
  if (batches.length < 2 && !undone.length) return null;
  const rows = batches.map((batch, i) => make("tr", {}, make("td.num", {}, i + 1), make("td", {}, textOf(part(batch, "when"))),
    make("td", {}, textOf(part(batch, "method"))), make("td.num", {}, anyText(part(batch, "edits")))));
  const takenBack = undone.map((undo) => {
    const givesUp = textOf(part(undo, "gives_up"));
    return make("li", {}, `${textOf(part(undo, "when"))}, ${textOf(part(undo, "mode"))}: `,
      isolated(anyText(part(undo, "edits"))), givesUp && [" (", isolated(givesUp), ")"]);
  });
  return section("journal", "Journal", "The batches whose edits stand, in order; lancet log shows each edit.",
    table("table.compact", "Journal", [numberColumn("batch"), column("when"), column("method"), numberColumn("edits")], rows),
    takenBack.length > 0 && [make("h3", {}, "Taken back"), make("div.card", {}, make("ul", {}, takenBack))]);
}

const card = (title, entries) => {
  const shown = entries.filter(([, value]) => value).map(([name, value]) => [name,
    value instanceof Node ? value : isolated(value)]);
  return shown.length > 0 && make("div", {}, make("h3", {}, title), pairs("dl.card.pairs", shown));
};

function runCards(report) {
  const at = (...keys) => anyText(part(report, ...keys)), tokens = numberOf(part(report, "statistics", "tokens_used"));
  const imported = listOf(part(report, "statistics", "imported_from")).map((file) =>
    [`Layer ${anyText(part(file, "layer"))}`,
      make("span", {}, isolated(anyText(part(file, "file"))), " ", make("code", {}, anyText(part(file, "content_hash"))))]);
  return [
    card("Model and program", [["Folder", at("model", "folder")], ["Content hash", at("model", "content_hash")],
      ["Precision", at("model", "run_dtype")],
      ["lancet", at("lancet")], ["Report", at("format")]]),
    card("Run", [["Devices", at("run", "devices")], ["Processes", at("run", "ranks")],
      ["Threads", part(report, "run", "threads") === 0 ? "all" : at("run", "threads")],
      ["Seed", at("run", "seed")], ["Order", at("schedule", "order")], ["Continues", at("schedule", "continued_from")],
      ["Batches of values", at("values", "batches")], ["Values resumed", at("values", "resumed")]]),
    card("Statistics", [["Corpus", at("statistics", "corpus")], ["Tokens", tokens !== null && countText(tokens)], ...imported,
      ["Ridge", at("statistics", "ridge")], ["Layers from the cache", at("statistics", "layers_from_cache")]]),
  ];
}

function weightRow(weight) {
  const norm = numberOf(part(weight, "weight_norm")), delta = numberOf(part(weight, "delta_norm")),
    lost = numberOf(part(weight, "rounding_loss"));
  const figures = [norm !== null && shortNumber(norm), delta !== null && shortNumber(delta),
    norm > 0 && delta !== null && percent(delta / norm, 2), lost !== null && percent(lost, 2)];
  return make("tr", {}, make("th", { scope: "row" }, make("code", {}, textOf(part(weight, "name")))),
    figures.map((figure) => make("td.num", {}, figure || "–")));
}

function jobSection(report, job) {
  const weights = listOf(part(report, "weights")), contexts = listOf(part(report, "contexts"));
  const heads = [column("weight"), ...["norm before", "norm of the change", "relative", "lost in rounding"].map(numberColumn)];
  return section("job", "Job and versions", "", make("div.two", {}, runCards(report)),
    weights.length > 0 && opening(`Edited weights: ${countText(weights.length)}`,
      table("table.compact", "Edited weights", heads, weights.map(weightRow))),
    contexts.length > 0 && opening(`Contexts of the prompts: ${countText(contexts.length)}`,
      make("div.card", {}, make("pre", {}, contexts.map((context) => [isolated(anyText(context)), "\n"])))),
    job && opening("The resolved job: job.yaml, runs again as it is", make("div.card", {}, make("pre", {}, job))));
}
