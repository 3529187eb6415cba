// Elements. What documents say becomes text nodes alone: nothing of it is ever read as HTML.

/** Control characters, which no font shows, become U+FFFD. */
const visible = (text) => String(text).replace(/[\0-\x08\x0b-\x1f\x7f]/g, "\uFFFD");

/** Fills an element; children are nodes or texts, and null, undefined, false and "" are left out. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name,
      value === true ? "" : visible(value));
  for (const child of children.flat(Infinity))
    if (child || child === 0) element.append(child instanceof Node ? child : visible(child));
  return element;
}

/** `what`: "div", or with classes "div.card.tile". */
function make(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  return fill(document.createElement(tag), classes.length ? { class: classes.join(" "), ...attributes } : attributes, children);
}

const makeSvg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/** A text of unknown language and direction. */
const isolated = (text, kind = "bdi") => make(kind, { dir: "auto" }, text);

/** The text with its beginning marked where it is the target. */
function marked(text, target) {
  const begins = target && text.toLowerCase().startsWith(target.toLowerCase());
  return make("bdi", { dir: "auto" }, begins && make("mark", {}, text.slice(0, target.length)),
    begins ? text.slice(target.length) : text);
}

/** A list of names and what belongs to them, without those that have nothing. */
const pairs = (kind, entries) =>
  make(kind, {}, entries.filter(([, value]) => value || value === 0).map(([name, value]) => make("div", {},
    make("dt", {}, name), make("dd", {}, value))));

const column = (text) => make("th", { scope: "col" }, text);
const numberColumn = (text) => make("th.num", { scope: "col" }, text);
const groupRow = (text, width) => make("tr.group", {}, make("th", { scope: "colgroup", colspan: width }, text));

/** A table that scrolls to the side by itself, by the keyboard too. */
const table = (kind, label, columns, rows) =>
  make("div.card.scroll", { tabindex: 0, role: "region", "aria-label": label },
    make(kind, { "aria-label": label }, make("thead", {}, make("tr", {}, columns)), make("tbody", {}, rows)));

/** What opens when it is asked for. */
const opening = (summary, ...content) => make("details", {}, make("summary", {}, summary), content);

/** A note with a heading and a list, of which the first five are shown. */
function note(tone, heading, items, elsewhere) {
  const most = 5, more = items.length - most;
  return make("div.note", { class: `note ${tone}` }, heading && make("b", {}, heading),
    make("ul", {}, items.slice(0, most).map((item) => make("li", {}, item)),
      more > 0 && make("li", {}, `and ${more} more${elsewhere}`)));
}

/** null: there is nothing to show. */
function section(id, title, lead, ...body) {
  const content = body.flat(Infinity).filter(Boolean);
  if (!content.length) return null;
  return make("section", { id, "aria-labelledby": `${id}-title` },
    make("h2", { id: `${id}-title` }, title), lead && make("p.lead", {}, lead), content);
}

const figures = (plots) => plots.some(Boolean)
  && make("div.plots", {}, plots.filter(Boolean).map((plot) => make("figure.card", {}, plot)));

/** Puts the page together: its head, the links to the sections, the sections. */
function showPage({ eyebrow, title, badges = [], facts, notes, sections }) {
  const there = sections.filter(Boolean);
  const links = there.map((one) => make("a", { href: `#${one.id}` }, one.querySelector("h2").textContent));
  document.getElementById("page").replaceChildren(
    make("header.top", {}, make("div.wrap", {}, make("p.eyebrow", {}, eyebrow),
      make("div.headline", {}, make("h1", {}, title), badges), pairs("dl.facts", facts), notes)),
    make("nav", { "aria-label": "Sections" }, make("div.wrap", {}, links)),
    make("main.wrap", {}, there));
}
