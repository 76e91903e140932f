// Numbers and times as people read them. Touches no page.

const MINUS = "\u2212";
const THIN = "\u202f";

/**
 * A number for reading at a glance: 3 or 4 digits, thousands as k and M.
 *
 * @param {number | null | undefined} value
 */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const sign = value < 0 ? MINUS : "";
  const three = (/** @type {number} */ number) => String(Number(number.toPrecision(3)));
  if (size >= 1e9) return `${sign}${three(size / 1e9)}G`;
  if (size >= 1e6) return `${sign}${three(size / 1e6)}M`;
  if (size >= 1e4) return `${sign}${three(size / 1e3)}k`;
  if (size >= 1000) return sign + whole(size);
  if (size >= 100 || Number.isInteger(value)) return sign + size.toFixed(0);
  if (size >= 0.01) return sign + three(size);
  if (size === 0) return "0";
  const [digits, exponent] = size.toExponential(1).split("e");
  return `${sign}${Number(digits)}·10${superscript(Number(exponent))}`;
}

/** @param {number} number */
function superscript(number) {
  const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  return (number < 0 ? "⁻" : "") + [...String(Math.abs(number))].map((digit) => digits[Number(digit)]).join("");
}

export const whole = (/** @type {number} */ value) => Math.round(value).toLocaleString("en-US");

/**
 * A value with its unit, as the metric declares it.
 *
 * @param {number | null | undefined} value
 * @param {string} unit
 */
export function withUnit(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "fraction") return `${short(100 * value)}${THIN}%`;
  if (unit === "1/s") return `${short(value)}/s`;
  return unit && !["reward", "weight", "level"].includes(unit) ? `${short(value)} ${unit}` : short(value);
}

/** @param {number} seconds */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")} min`;
  if (s < 86400) return `${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} h`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** @param {number} seconds */
export function ago(seconds) {
  /** @type {[number, string]} */
  const [size, name] =
    seconds < 90 ? [1, "s"] : seconds < 5400 ? [60, "min"] : seconds < 129600 ? [3600, "h"] : [86400, "days"];
  return seconds < 3 ? "now" : `${Math.round(seconds / size)} ${name} ago`;
}

/**
 * The least of 1, 2, 5, 10, 20 … that is not below a value.
 *
 * @param {number} value
 */
export function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((end) => end >= value) ?? 10 * power;
}
