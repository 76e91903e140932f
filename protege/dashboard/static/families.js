// What the chart of a family of metrics shows: which lines, under which names, on which scales. Touches no page.

/** Lines of a family: its metrics, with interval ends folded into the metric they belong to. */
export function linesOf(metrics) {
  const names = new Set(metrics.map((metric) => metric.name));
  const isEnd = (name) => /_(low|high)$/.test(name) && names.has(name.replace(/_(low|high)$/, ""));
  const lines = metrics
    .filter((metric) => !isEnd(metric.name))
    .map((metric) => ({
      metric,
      low: names.has(`${metric.name}_low`) ? `${metric.name}_low` : null,
      high: names.has(`${metric.name}_high`) ? `${metric.name}_high` : null,
      yardstick: /^(teacher|baseline)_/.test(metric.name) && metrics.length > 1,
    }));
  return nameLines(lines, metrics[0].family);
}

/** The line a family is known by. */
export function mainOf(lines) {
  return (
    lines.find((line) => line.metric.better && !line.yardstick) ??
    lines.find((line) => line.metric.name.endsWith("_mean")) ??
    lines[0]
  );
}

const APART = 25; // lines of one unit that differ by this factor need scales of their own, too

/** Lines that would lie flat on the first one's scale get the scale on the right; runs side by side share one. */
export function onTwoScales(lines, comparing) {
  const size = (line) => Math.max(0, ...line.columns.at(-1).map((value) => Math.abs(value ?? 0)));
  const first = lines[0] && size(lines[0]);
  for (const line of lines) {
    const far = Math.max(size(line), first) > APART * Math.min(size(line), first) && !line.yardstick;
    const other = line.unit !== lines[0].unit || (far && size(line) > 0 && line.unit !== "share");
    line.right = !comparing && line !== lines[0] && other;
  }
  return lines;
}

/** Names without what the family says already: "exam_score" of "score" is "exam". */
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
