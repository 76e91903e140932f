// What the chart of a family of metrics shows: which lines, under which names, on which scales. Touches no page.

/** What a metric is called beside others of its family. */
export const labelOf = (metric) => metric.label || metric.name.replaceAll("_", " ");

/** Lines of a family: its metrics, with interval ends folded into the metric they belong to. */
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

/** The line a family is known by. */
export function mainOf(lines) {
  return lines.find((line) => line.metric.better && !line.yardstick) ?? lines[0];
}

/** Every card that metrics declare, in its place, with the metrics that share it. */
export function sharedCards(metrics) {
  const found = new Map();
  for (const metric of metrics.filter((one) => one.card)) {
    const { title } = metric.card;
    if (!found.has(title)) found.set(title, [metric.card, []]);
    found.get(title)[1].push(metric);
  }
  return [...found.values()].sort(([one], [other]) => one.place - other.place);
}

const APART = 25; // lines of one unit that differ by this factor need scales of their own, too

/** Lines that would lie flat on the first one's scale get the scale on the right; runs side by side share one. */
export function onTwoScales(lines, comparing) {
  const size = (line) => Math.max(0, ...line.columns.at(-1).map((value) => Math.abs(value ?? 0)));
  const first = lines[0] && size(lines[0]);
  for (const line of lines) {
    const far = Math.max(size(line), first) > APART * Math.min(size(line), first) && !line.yardstick;
    const other = line.unit !== lines[0].unit || (far && size(line) > 0 && line.unit !== "fraction");
    line.right = !comparing && line !== lines[0] && other;
  }
  return lines;
}
