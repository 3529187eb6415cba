"use strict";
// Facts that are typed, chosen from a file or clicked, and their edit.

let file = null;

function addFact(values = {}) {
  const row = at("fact-row").content.firstElementChild.cloneNode(true);
  for (const [name, value] of Object.entries(values)) row.querySelector(`[name=${name}]`).value = Array.isArray(value) ? value.join("\n") : value;
  row.querySelector("details").open = ["target_true", "paraphrases", "neighborhood"].some((name) => values[name]?.length);
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
  const value = (field) => (field.tagName === "TEXTAREA" ? field.value.split("\n").map((line) => line.trim()).filter(Boolean) : field.value);
  return [...at("facts").children].map((row) => Object.fromEntries([...row.querySelectorAll("input, textarea")].map((field) => [field.name, value(field)])));
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
  at("facts").querySelectorAll("input, textarea").forEach((field) => (field.disabled = isUsed));
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
    askLatestAgain();
  });
});
