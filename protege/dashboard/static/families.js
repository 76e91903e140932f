// What the chart of a family of metrics shows: which lines, under which names, on which scales. Touches no page.

/** @typedef {{ name: string, unit: string, meaning: string, family: string, better: string }} Metric */
/** @typedef {{ metric: Metric, low: string | null, high: string | null, yardstick: boolean, label: string }} FamilyLine */

/**
 * A line as it is drawn.
 *
 * @typedef {object} Drawn
 * @property {number[]} x
 * @property {(number | null)[][]} columns the last are its values, two before them the ends of their interval
 * @property {boolean} interval
 * @property {string} unit
 * @property {string} label
 * @property {string} colour
 * @property {boolean} sparse whether its points are marked
 * @property {string} [meaning]
 * @property {boolean} [yardstick] whether it is what others are measured against
 * @property {boolean} [right] whether it has the scale on the right
 * @property {number | null} [last] its newest value
 */

/**
 * Lines of a family: its metrics, with interval ends folded into the metric they belong to.
 *
 * @param {Metric[]} metrics
 */
export function linesOf(metrics) {
  const names = new Set(metrics.map((metric) => metric.name));
  const isEnd = (/** @type {string} */ name) =>
    /_(low|high)$/.test(name) && names.has(name.replace(/_(low|high)$/, ""));
  const lines = metrics
    .filter((metric) => !isEnd(metric.name))
    .map((metric) => ({
      metric,
      low: names.has(`${metric.name}_low`) ? `${metric.name}_low` : null,
      high: names.has(`${metric.name}_high`) ? `${metric.name}_high` : null,
      yardstick: /^(teacher|baseline)_/.test(metric.name) && metrics.length > 1,
      label: "",
    }));
  return nameLines(lines, metrics[0].family);
}

/**
 * The line a family is known by.
 *
 * @param {FamilyLine[]} lines
 */
export function mainOf(lines) {
  return (
    lines.find((line) => line.metric.better && !line.yardstick) ??
    lines.find((line) => line.metric.name.endsWith("_mean")) ??
    lines[0]
  );
}

const APART = 25; // lines of one unit that differ by this factor need scales of their own, too

/**
 * Lines that would lie flat on the first one's scale get the scale on the right; runs side by side share one.
 *
 * @param {Drawn[]} lines
 * @param {boolean} comparing
 */
export function onTwoScales(lines, comparing) {
  const size = (/** @type {Drawn} */ line) =>
    Math.max(0, ...line.columns[line.columns.length - 1].map((value) => Math.abs(value ?? 0)));
  const first = lines[0] && size(lines[0]);
  for (const line of lines) {
    const far = Math.max(size(line), first) > APART * Math.min(size(line), first) && !line.yardstick;
    const other = line.unit !== lines[0].unit || (far && size(line) > 0 && line.unit !== "share");
    line.right = !comparing && line !== lines[0] && other;
  }
  return lines;
}

/**
 * Names without what the family says already: "exam_score" of "score" is "exam".
 *
 * @param {FamilyLine[]} lines
 * @param {string} family
 */
function nameLines(lines, family) {
  const known = new Set(family.split(" "));
  const first = lines[0]?.metric.name.split("_")[0];
  if (lines.length > 1 && lines.every(({ metric }) => metric.name.startsWith(`${first}_`))) known.add(first);
  for (const line of lines) {
    const words = line.metric.name.split("_").map((word) => word.replace(/^(\d+)m$/, "$1M"));
    const left = words.filter((word) => !known.has(word));
    line.label = (left.length ? left : words).join(" ");
  }
  return lines;
}
