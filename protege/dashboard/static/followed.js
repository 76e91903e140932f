// A run that the page follows: what it is, and everything it has measured, in bounded memory.

import { address, ask } from "./page.js";
import { History } from "./series.js";

const MOST_EVENTS = 60; // kept on the page

export class FollowedRun {
  /** @type {Map<string, History>} */
  histories = new Map();
  /** @type {{ kind: string, text: string, time: number }[]} */
  events = [];
  place = { row: 0, event: 0 };
  status = "";
  /** @type {Record<string, any>} */
  controls = {};
  step = 0;
  /** @type {any} */
  info;
  /** @type {import("./families.js").Metric[]} */
  metrics = [];
  /** @type {string[]} */
  recordings = [];
  /** @type {Map<string, import("./families.js").Metric[]>} */
  families = new Map();

  /** @param {string} name */
  constructor(name) {
    this.name = name;
  }

  async load() {
    const { info, status, metrics, controls, recordings } = await ask(address("runs", this.name));
    Object.assign(this, { info, status, metrics, controls, recordings });
    this.families = Map.groupBy(metrics, (/** @type {any} */ metric) => metric.family);
  }

  /** Take news from the feed. */
  hear(news) {
    this.place = { row: news.row, event: news.event };
    this.status = news.status;
    this.step = news.step;
    this.controls = news.controls;
    for (const [name, points] of Object.entries(news.points)) {
      const history = this.histories.get(name) ?? new History();
      this.histories.set(name, history);
      history.add(points);
    }
    this.events.push(...news.events);
    this.events.splice(0, Math.max(0, this.events.length - MOST_EVENTS));
  }

  metric(name) {
    return this.metrics.find((one) => one.name === name) ?? null;
  }

  last(name) {
    return this.histories.get(name)?.last ?? null;
  }

  /** Whether a person has switched this control to something else than the settings say. */
  isChanged(name) {
    const { on, value = null, scheduled = name === "learning" } = this.controls[name] ?? {};
    return on === undefined ? value !== null : on !== scheduled;
  }

  /** Whether what this control rules differs from its schedule, by whatever switch. */
  isOverridden(name) {
    return Boolean(this.controls[name]?.overridden);
  }

  /** When the newest value came, by the server's clock. */
  get now() {
    let newest = 0;
    for (const values of this.histories.values()) newest = Math.max(newest, values.times[values.length - 1] ?? 0);
    return newest;
  }

  /** When the first value came. */
  get first() {
    let oldest = Infinity;
    for (const values of this.histories.values()) oldest = Math.min(oldest, values.times[0] ?? Infinity);
    return oldest;
  }

  /** Seconds of training: from each start to the last value before the next one. */
  get trained() {
    const columns = [...this.histories.values()].map((one) => one.times);
    const times = columns.reduce((most, one) => (one.length > most.length ? one : most), []);
    const starts = this.info.starts.map((start) => Date.parse(start.time) / 1000);
    return starts.reduce((sum, start, i) => {
      const next = starts[i + 1] ?? Infinity;
      const end = times.reduce((found, time) => (time >= start && time < next ? time : found), start);
      return sum + end - start;
    }, 0);
  }

  /** Fraction of the budget that is used up, and seconds left, as far as the settings tell. */
  get progress() {
    const { minutes = 0, deterministic, [`${this.info.unit.replace("-", "_")}s`]: steps = 0 } = this.info.config;
    const fractions = [];
    if (steps) fractions.push(this.step / steps);
    if (minutes && !deterministic) fractions.push(this.trained / (60 * minutes));
    if (!fractions.length) return null;
    const logged = this.metrics.find((metric) => metric.role === "progress");
    const fraction = (logged && this.last(logged.name)) ?? Math.min(1, Math.max(...fractions));
    return { fraction, left: fraction > 0.005 ? (this.trained * (1 - fraction)) / fraction : null };
  }
}
