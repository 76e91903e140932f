// What is shown of declared metrics: a chart's lines, their names and scales, and who shares a card. Touches no page.

/**
 * A card that metrics may share.
 *
 * @typedef {object} Card
 * @property {string} title
 * @property {number} place
 * @property {string} format
 * @property {number | null} most
 */

/**
 * What a run declares of a metric; protege/runs/metrics.py says what each part means.
 *
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} unit
 * @property {string} meaning
 * @property {string} family
 * @property {string} better
 * @property {string} label
 * @property {[string, string] | null} interval
 * @property {string} baseline
 * @property {string} role
 * @property {string} control
 * @property {Card | null} card
 */

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
 * What a metric is called beside others of its family.
 *
 * @param {{ name: string, label?: string }} metric
 */
export const labelOf = (metric) => metric.label || metric.name.replaceAll("_", " ");

/**
 * Lines of a family: its metrics, with interval ends folded into the metric they belong to.
 *
 * @param {Metric[]} metrics
 * @returns {FamilyLine[]}
 */
export function linesOf(metrics) {
  const ends = new Set(metrics.flatMap((metric) => metric.interval ?? []));
  const baselines = new Set(metrics.map((metric) => metric.baseline));
  return metrics
    .filter((metric) => !ends.has(metric.name))
    .map((metric) => ({
      metric,
      low: metric.interval?.[0] ?? null,
      high: metric.interval?.[1] ?? null,
      yardstick: baselines.has(metric.name),
      label: labelOf(metric),
    }));
}

/**
 * The line a family is known by.
 *
 * @param {FamilyLine[]} lines
 */
export function mainOf(lines) {
  return lines.find((line) => line.metric.better && !line.yardstick) ?? lines[0];
}

/**
 * Every card that metrics declare, in its place, with the metrics that share it.
 *
 * @param {Metric[]} metrics
 */
export function sharedCards(metrics) {
  /** @type {Map<string, { card: Card, metrics: Metric[] }>} */
  const found = new Map();
  for (const metric of metrics) {
    if (!metric.card) continue;
    const shared = found.get(metric.card.title) ?? { card: metric.card, metrics: [] };
    found.set(metric.card.title, shared);
    shared.metrics.push(metric);
  }
  return [...found.values()].sort((one, other) => one.card.place - other.card.place);
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
    const other = line.unit !== lines[0].unit || (far && size(line) > 0 && line.unit !== "fraction");
    line.right = !comparing && line !== lines[0] && other;
  }
  return lines;
}
