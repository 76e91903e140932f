// The time axis of the small charts. Touches no page.

/** Where an age in seconds lies: equal ways for equal factors, so an hour and a night both fit beside the last minute. */
export const compress = (/** @type {number} */ age) => -Math.log1p(Math.max(0, age) / 20);

const NAMES = {
  2592000: "1 mo",
  604800: "1 w",
  86400: "1 d",
  21600: "6 h",
  3600: "1 h",
  1200: "20 min",
  300: "5 min",
  60: "1 min",
  20: "20 s",
  5: "5 s",
  0: "now",
};
const LABELS = new Map(Object.entries(NAMES).map(([age, name]) => [compress(Number(age)), name]));

/** Marks on the axis from a place on, the oldest first. */
export const marksFrom = (/** @type {number} */ start) =>
  [...LABELS.keys()].filter((x) => x >= start - 1e-9).sort((a, b) => a - b);

export const markLabel = (/** @type {number | null} */ x) => (x === null ? "" : (LABELS.get(x) ?? ""));

/**
 * Places with null for those whose label would touch that of a newer one, less than `gap` away.
 *
 * @param {number[]} places
 * @param {(place: number) => number} position on the screen
 * @param {number} gap
 */
export function apart(places, position, gap) {
  const kept = new Set();
  let right = Infinity;
  for (const x of [...places].reverse()) {
    const at = position(x);
    if (right - at < gap) continue;
    kept.add(x);
    right = at;
  }
  return places.map((x) => (kept.has(x) ? x : null));
}
