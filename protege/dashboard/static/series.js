// Columns of numbers over time: a metric's history in bounded memory, and what charts ask of columns. Touches no page.

export const MOST_POINTS = 700; // of one metric in memory, however long the page stays open
const FINENESS = 34; // points kept for each factor e of age: the last minute stays whole

/** @typedef {number | null} Value not measured, or not finite, is null */
/** @typedef {{ steps: number[], times: number[], mean: Value[], low?: Value[], high?: Value[] }} Columns */
/** @typedef {{ x: number[], columns: Value[][] }} Line what a chart draws: the last column, and perhaps its interval */

/** One metric of one run. Old values are merged as they age, so it never holds more than MOST_POINTS. */
export class History {
  /** @type {number[]} */
  steps = [];
  /** @type {number[]} seconds */
  times = [];
  /** @type {Value[]} */
  mean = [];
  /** @type {Value[]} */
  low = [];
  /** @type {Value[]} */
  high = [];
  /** @type {number[]} how many values each point stands for */
  weight = [];

  get length() {
    return this.steps.length;
  }

  get last() {
    return this.length ? this.mean[this.length - 1] : null;
  }

  /**
   * Append columns as the server sends them. A resumed run may go back: what came after is no longer true.
   *
   * @param {Columns} columns
   */
  add({ steps, times, mean, low = mean, high = mean }) {
    for (let i = 0; i < steps.length; i++) {
      if (this.length && this.times[this.length - 1] >= times[i]) continue; // sent twice around a reconnect
      while (this.length && this.steps[this.length - 1] >= steps[i]) this.drop();
      this.push(steps[i], times[i], mean[i], low[i], high[i], 1);
    }
    if (this.length > MOST_POINTS) this.thin();
  }

  /**
   * @param {number} step
   * @param {number} time
   * @param {Value} mean
   * @param {Value} low
   * @param {Value} high
   * @param {number} weight
   */
  push(step, time, mean, low, high, weight) {
    this.steps.push(step);
    this.times.push(time);
    this.mean.push(mean);
    this.low.push(low);
    this.high.push(high);
    this.weight.push(weight);
  }

  drop() {
    for (const column of [this.steps, this.times, this.mean, this.low, this.high, this.weight]) column.pop();
  }

  thin() {
    const old = { ...this };
    const now = old.times[old.times.length - 1];
    const bucket = (/** @type {number} */ i) => Math.floor(FINENESS * Math.log1p(now - old.times[i]));
    Object.assign(this, new History());
    for (let i = 0; i < old.steps.length;) {
      let [sum, weight, end] = [0, 0, i];
      let [low, high] = [Infinity, -Infinity];
      for (; end < old.steps.length && bucket(end) === bucket(i); end++) {
        const mean = old.mean[end];
        if (mean === null) continue;
        sum += mean * old.weight[end];
        weight += old.weight[end];
        low = Math.min(low, old.low[end] ?? mean);
        high = Math.max(high, old.high[end] ?? mean);
      }
      const ends = weight ? [sum / weight, low, high] : [null, null, null];
      this.push(old.steps[end - 1], old.times[end - 1], ends[0], ends[1], ends[2], Math.max(1, weight));
      i = end;
    }
  }

  /** The highest value so far. */
  most() {
    const known = this.high.filter((value) => value !== null);
    return known.length ? Math.max(...known) : null;
  }
}

/**
 * A line without the points that do not come after the one before them: charts want ascending x.
 *
 * @param {Line} line
 * @returns {Line}
 */
export function ascending(line) {
  let last = -Infinity;
  const keep = line.x.map((x) => x > last && ((last = x), true));
  if (keep.every(Boolean)) return line;
  return { x: line.x.filter((_, i) => keep[i]), columns: line.columns.map((c) => c.filter((_, i) => keep[i])) };
}

/**
 * The value at an index, or the newest one before it.
 *
 * @param {ArrayLike<Value | undefined> | undefined} column
 * @param {number} index
 */
export function nearest(column, index) {
  for (let i = index; column && i >= 0; i--) {
    const value = column[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
