// Columns of numbers over time: a metric's history in bounded memory, and what charts ask of columns. Touches no page.

const MOST_POINTS = 700; // of one metric in memory, however long the page stays open
const FINENESS = 34; // points kept for each factor e of age: the last minute stays whole

/** One metric of one run. Old values are merged as they age, so it never holds more than MOST_POINTS. */
export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.steps = [];
    this.times = [];
    this.mean = [];
    this.low = [];
    this.high = [];
    this.weight = [];
  }

  get length() {
    return this.steps.length;
  }

  get last() {
    return this.length ? this.mean[this.length - 1] : null;
  }

  /** Append columns as the server sends them. A resumed run may go back: what came after is no longer true. */
  add({ steps, times, mean, low = mean, high = mean }) {
    for (let i = 0; i < steps.length; i++) {
      if (this.length && this.times[this.length - 1] >= times[i]) continue; // sent twice around a reconnect
      while (this.length && this.steps[this.length - 1] >= steps[i]) this.drop();
      this.steps.push(steps[i]);
      this.times.push(times[i]);
      this.mean.push(mean[i]);
      this.low.push(low[i]);
      this.high.push(high[i]);
      this.weight.push(1);
    }
    if (this.length > MOST_POINTS) this.thin();
  }

  drop() {
    for (const column of [this.steps, this.times, this.mean, this.low, this.high, this.weight]) column.pop();
  }

  thin() {
    const old = { ...this };
    const now = old.times[old.times.length - 1];
    const bucket = (i) => Math.floor(FINENESS * Math.log1p(now - old.times[i]));
    this.clear();
    for (let i = 0; i < old.steps.length;) {
      let [sum, weight, low, high, end] = [0, 0, null, null, i];
      for (; end < old.steps.length && bucket(end) === bucket(i); end++) {
        if (old.mean[end] === null) continue;
        sum += old.mean[end] * old.weight[end];
        weight += old.weight[end];
        low = low === null ? old.low[end] : Math.min(low, old.low[end]);
        high = high === null ? old.high[end] : Math.max(high, old.high[end]);
      }
      this.steps.push(old.steps[end - 1]);
      this.times.push(old.times[end - 1]);
      this.mean.push(weight ? sum / weight : null);
      this.low.push(low);
      this.high.push(high);
      this.weight.push(Math.max(1, weight));
      i = end;
    }
  }

  /** The highest value so far. */
  most() {
    const known = this.high.filter((value) => value !== null);
    return known.length ? Math.max(...known) : null;
  }
}

/** A line without the points that do not come after the one before them: charts want ascending x. */
export function ascending(line) {
  const keep = line.x.map((x, i) => i === 0 || x > line.x[i - 1]);
  if (keep.every(Boolean)) return line;
  return { x: line.x.filter((_, i) => keep[i]), columns: line.columns.map((c) => c.filter((_, i) => keep[i])) };
}

/** The value at an index, or the newest one before it. */
export function nearest(column, index) {
  if (!column) return null;
  for (let i = index; i >= 0; i--) if (column[i] !== null && column[i] !== undefined) return column[i];
  return null;
}
