// Numbers as texts: as lancet prints them, where it prints them too.

/** An exact half goes to the even digit, as in the terminal: toFixed() alone rounds it up. */
function fixed(value, digits) {
  const exact = value.toFixed(digits + 40), kept = exact.slice(0, -40);
  return /^50+$/.test(exact.slice(-40)) && "02468".includes(kept.at(-1)) ? kept : value.toFixed(digits);
}

/** Four digits, or whole: "0.05", "12.5", "51,200", "1.2e-7". */
function shortNumber(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3).replace(/\.?0*e/, "e");
  return size >= 1e4 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}

const countText = (count) => Math.round(count).toLocaleString("en");
const counted = (count, what) => `${countText(count)} ${what}${count === 1 ? "" : "s"}`;
const percent = (share, digits = 1) => `${fixed(100 * share, digits)}\u00A0%`;

function secondsText(seconds) {
  if (seconds < 10) return `${shortNumber(Math.round(seconds * 100) / 100)}\u00A0s`;
  const whole = Math.round(seconds);
  if (whole < 120) return `${whole}\u00A0s`;
  return whole < 7200 ? `${Math.floor(whole / 60)} min ${whole % 60} s`
    : `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** Powers of 1000, one decimal. */
function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.length; ++unit) bytes /= 1000;
  return `${unit ? fixed(bytes, 1) : bytes}\u00A0${units[unit]}`;
}

/** A metric's value without its unit; n/a: null. */
const bareValue = (value, metric) => (value === null ? "n/a" : metric.isShare ? fixed(100 * value, 1) : shortNumber(value));
const valueText = (value, metric) => (value === null ? "n/a"
  : `${bareValue(value, metric)}\u00A0${metric.isShare ? "%" : metric.unit}`);
const intervalText = ([low, high], metric) => `${bareValue(low, metric)}\u2009–\u2009${bareValue(high, metric)}`;
