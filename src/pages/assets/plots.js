// Plots as SVG: functions from numbers to an element, whose colours are classes of plot.css. Each has a title and, for who
// cannot see it, its figures as text.

const letterWidth = 6.6; // mean at 12 px of the fonts that readers have
const widthOf = (text) => letterWidth * [...text].length;
const colorClass = (color) => `c${(color % 8) + 1}`;
const place = (x, y) => `${x.toFixed(1)},${y.toFixed(1)}`;
let plotsMade = 0;

/** Cut in the middle with "…", so that it is at most `width` wide. */
function fitted(text, width) {
  const letters = [...text], most = Math.floor(Math.max(3, width / letterWidth));
  if (letters.length <= most) return text;
  const begin = Math.floor((most - 1) / 2), end = most - 1 - begin;
  return `${letters.slice(0, begin).join("")}…${letters.slice(-end).join("")}`;
}

const write = (text, x, y, anchor = "start", kind = "p-tick") => makeSvg("text",
  { class: kind, x: x.toFixed(1), y: y.toFixed(1), "text-anchor": anchor }, text);
const draw = (kind, x1, y1, x2, y2) => makeSvg("line",
  { class: kind, x1: x1.toFixed(1), y1: y1.toFixed(1), x2: x2.toFixed(1), y2: y2.toFixed(1) });

/** A group that says what it is when it is pointed at. */
const mark = (color, text, ...parts) => makeSvg("g", { class: `p-series ${colorClass(color)}` }, makeSvg("title", {}, text),
  parts);

/** Title and subtitle, and where what follows may begin. */
function heading({ title, subtitle }, width) {
  return { y: subtitle ? 33 : 16,
    parts: [write(fitted(title, width * 0.8), 2, 16, "start", "p-title"),
    subtitle && write(fitted(subtitle, width), 2, 33, "start", "p-sub")] };
}

function picture({ title, subtitle }, width, height, told, parts) {
  const id = `plot-${++plotsMade}`;
  return makeSvg("svg", { class: "plot", role: "img", "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-told`,
    viewBox: `0 0 ${width} ${Math.ceil(height)}` },
    makeSvg("title", { id: `${id}-title` }, subtitle ? `${title}: ${subtitle}` : title),
      makeSvg("desc", { id: `${id}-told` }, told.join("; ")), parts);
}

/** 1, 2 or 5 times a power of ten, about a fifth of the range. */
function roundStep(range) {
  const power = 10 ** Math.floor(Math.log10(range / 5));
  return [1, 2, 5, 10].find((factor) => factor * power >= (range / 5) * 0.999) * power;
}

function linearTicks(low, high, step) {
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push(k * step);
  return ticks;
}

function logarithmicTicks(low, high) {
  const factors = Math.log10(high / low) < 3 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    ticks.push(...factors.map((factor) => factor * 10 ** power).filter((tick) => tick >= low * 0.999 && tick <= high * 1.001));
  return ticks;
}

/** Chooses an axis' ends and ticks for the values that it has to show. */
function makeAxis({ low: asked, high: askedHigh, ticks: given, isPercent, isLogarithmic }, values) {
  const shows = (value) => Number.isFinite(value) && (!isLogarithmic || value > 0);
  const shown = values.filter(shows);
  let low = asked ?? shown.reduce((a, b) => Math.min(a, b), shown[0] ?? (isLogarithmic ? 0.1 : 0));
  let high = askedHigh ?? shown.reduce((a, b) => Math.max(a, b), shown[0] ?? 1);
  if (high - low < 1e-12 * Math.max(1, Math.abs(high))) {
    const room = Math.max(1e-9, Math.abs(high) * 0.1);
    if (asked === undefined && !isLogarithmic) low -= room;
    else high += room;
  }
  const step = roundStep(high - low);
  if (!isLogarithmic && !given) {
    if (asked === undefined) low = Math.floor(low / step + 1e-9) * step;
    if (askedHigh === undefined) high = Math.ceil(high / step - 1e-9) * step;
  }
  const scaled = isLogarithmic ? Math.log : (value) => value;
  const text = (value) => shortNumber(isPercent ? 100 * value : value);
  const ticks = given ?? (isLogarithmic ? logarithmicTicks(low, high) : linearTicks(low, high, step));
  const over = (from, to) => (value) => from + ((to - from) * (scaled(value) - scaled(low))) / (scaled(high) - scaled(low));
  return { shows, text, over, ticks };
}

/** The axes that lines and points stand on: functions from values to places, and the grid. */
function makeAxes(frame, xs, ys) {
  const width = 400, height = 270, x = makeAxis(frame.x, xs), y = makeAxis(frame.y, ys);
  const { y: below, parts } = heading(frame, width);
  const top = below + 32, bottom = height - 37, right = width - 16;
  const left = y.ticks.reduce((widest, tick) => Math.max(widest, widthOf(y.text(tick))), 0) + 10;
  const atX = x.over(left, right), atY = y.over(bottom, top);
  parts.push(write(frame.y.label, 2, below + 18, "start", "p-label"),
    write(frame.x.label, right, bottom + 34, "end", "p-label"));
  for (const tick of y.ticks)
    parts.push(draw("p-grid", left, atY(tick), right, atY(tick)), write(y.text(tick), left - 7, atY(tick) + 4, "end"));
  for (const tick of x.ticks) {
    const at = atX(tick), half = widthOf(x.text(tick)) / 2;
    parts.push(write(x.text(tick), at, bottom + 17, at - half < 0 ? "start" : at + half > width ? "end" : "middle"));
  }
  return { x, y, atX, atY, left, right, width, height, parts };
}

/** A line with gaps where a value is none. */
function linePath({ y, atX, atY }, series, kind) {
  let path = "", isDown = false;
  series.x.forEach((value, i) => {
    if (y.shows(series.y[i])) path += `${isDown ? "L" : "M"}${place(atX(value), atY(series.y[i]))}`;
    isDown = y.shows(series.y[i]);
  });
  return path && makeSvg("path", { class: kind, d: path });
}

function bandOf({ y, atX, atY }, { x, low, high }) {
  const shown = low ? x.map((_, i) => i).filter((i) => y.shows(low[i]) && y.shows(high[i])) : [];
  const points = [...shown.map((i) => place(atX(x[i]), atY(high[i]))),
    ...shown.reverse().map((i) => place(atX(x[i]), atY(low[i])))];
  return points.length > 0 && makeSvg("polygon", { class: "p-band", points: points.join(" ") });
}

/** Dots, where there are not so many that they make a caterpillar of the line. */
const dotsOf = ({ y, atX, atY }, { x, y: values, name }) =>
  x.length <= 60 && x.map((at, i) => y.shows(values[i]) &&
    makeSvg("circle", { class: "p-dot", cx: atX(at).toFixed(1), cy: atY(values[i]).toFixed(1), r: 2.6 },
      makeSvg("title", {}, `${name}: ${y.text(values[i])}`)));

/** The names of lines in rows below the plot, and the height of all. */
function legendOf(lines, { left, right, height }) {
  const parts = [];
  let x = left, y = height + 14;
  for (const { name, kind } of lines) {
    const text = fitted(name, right - left - 30), wide = 38 + widthOf(text);
    if (x > left && x + wide > right) [x, y] = [left, y + 17];
    parts.push(draw(kind, x, y - 4, x + 18, y - 4), write(text, x + 24, y));
    x += wide;
  }
  return { parts, height: y + 4 };
}

/** "efficacy: 4 values, from 90 to 85.5". */
function seriesText(axes, { name, y }) {
  const shown = y.filter(axes.y.shows);
  if (!shown.length) return `${name}: no values`;
  return `${name}: ${counted(shown.length, "value")}, from ${axes.y.text(shown[0])} to ${axes.y.text(shown.at(-1))}`;
}

/** Lines of {name, x, y}, perhaps with a band `low` to `high`, a `color` or `isDashed`; a y that is null is a gap. */
function linePlot(frame, series) {
  const axes = makeAxes(frame, series.flatMap((one) => one.x),
    series.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])]));
  const lines = series.map((one, i) => ({ ...one, color: one.color ?? i, kind: one.isDashed ? "p-line p-dashed" : "p-line" }));
  const marks = lines.map((one) => mark(one.color, one.name, bandOf(axes, one), linePath(axes, one, one.kind),
    !one.isDashed && dotsOf(axes, one)));
  const legend = lines.length > 1
    ? legendOf(lines.map(({ name, kind, color }) => ({ name, kind: `${kind} ${colorClass(color)}` })), axes) : null;
  return picture(frame, axes.width, legend?.height ?? axes.height, series.map((one) => seriesText(axes, one)),
    [axes.parts, marks, legend?.parts]);
}

/** Places for the names of dots, right or left of them and as near as others leave room: {left, right, y} each. */
function namePlaces(axes, dots) {
  const taken = [];
  return dots.map(({ x, y, name }) => {
    const wide = widthOf(name), shifts = [0, 12, -12, 24, -24, 36, -36, 48, -48];
    const boxes = shifts.flatMap((shift) => [x + 9, x - 9 - wide].map((left) => ({ left, right: left + wide, y: y + 4 + shift })));
    const fits = ({ left, right, y: line }) => left >= 0 && right <= axes.right + 16 && line > 44 && line < axes.height - 24 &&
      taken.every((other) => right < other.left || left > other.right || Math.abs(line - other.y) >= 12);
    const box = boxes.find(fits) ?? boxes[boxes[0].right <= axes.right + 16 ? 0 : 1];
    taken.push(box);
    return box;
  });
}

/** Bars from a point to either side, where it has a spread. */
const errorBars = ({ atX, atY }, { x, y, dx = 0, dy = 0 }) => [
  dx > 0 && draw("p-error", atX(x - dx), atY(y), atX(x + dx), atY(y)),
  dy > 0 && draw("p-error", atX(x), atY(y - dy), atX(x), atY(y + dy))];

/** Named points {name, x, y, color}, perhaps with spreads dx and dy, and a line without dots behind them. */
function scatterPlot(frame, points, line) {
  const ends = (at, spread) => points.flatMap((point) => [point[at] - (point[spread] ?? 0), point[at] + (point[spread] ?? 0)]);
  const axes = makeAxes(frame, ends("x", "dx"), ends("y", "dy"));
  const spread = (value, axis) => (value > 0 ? ` ± ${axis.text(value)}` : "");
  const texts = points.map(({ name, x, y, dx, dy }) =>
    `${name}: ${axes.x.text(x)}${spread(dx, axes.x)} / ${axes.y.text(y)}${spread(dy, axes.y)}`);
  const most = (axes.right - axes.left) / 2 - 20;
  const dots = points.map(({ name, x, y }) => ({ x: axes.atX(x), y: axes.atY(y), name: fitted(name, most) }));
  const places = namePlaces(axes, dots);
  const marks = points.map(({ color }, i) => mark(color, texts[i], errorBars(axes, points[i]),
    makeSvg("circle", { class: "p-dot", cx: dots[i].x.toFixed(1), cy: dots[i].y.toFixed(1), r: 5 }),
    write(dots[i].name, places[i].left, places[i].y, "start", "p-name")));
  return picture(frame, axes.width, axes.height, texts, [axes.parts, linePath(axes, line, "p-front"), marks]);
}

/** Lying bars {label, value, text, color}, the first on top. */
function barPlot(frame, bars) {
  const width = 400, row = 24, thick = 14, most = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0);
  const left = Math.min(1.1 * most(bars.map(({ label }) => widthOf(label))), width * 0.42) + 14;
  const room = width - left - most(bars.map(({ text }) => widthOf(text))) - 12, largest = most(bars.map(({ value }) => value));
  const { y, parts } = heading(frame, width);
  const marks = bars.map(({ label, value, text, color = 0 }, i) => {
    const top = y + 12 + i * row, wide = Math.max(1.5, largest > 0 ? (room * value) / largest : 0);
    return mark(color, `${label}: ${text}`, write(fitted(label, left - 8), left - 8, top + thick - 2, "end"),
      makeSvg("rect", { class: "p-bar", x: left.toFixed(1), y: top.toFixed(1), width: wide.toFixed(1), height: thick, rx: 2 }),
      write(text, left + wide + 7, top + thick - 2, "start", "p-value"));
  });
  return picture(frame, width, y + 12 + bars.length * row, bars.map(({ label, text }) => `${label}: ${text}`), [parts, marks]);
}
