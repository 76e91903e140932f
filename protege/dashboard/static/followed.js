// A run that the page follows: what it is, and everything it has measured, in bounded memory.

import { address, ask } from "./page.js";
import { History } from "./series.js";

const MOST_EVENTS = 60; // kept on the page

export class FollowedRun {
  constructor(name) {
    this.name = name;
    this.histories = new Map();
    this.events = [];
    this.place = { row: 0, event: 0 };
    this.status = "";
    this.switches = {};
    this.step = 0;
  }

  async load() {
    const { info, status, metrics, latest, switches, recordings, playable } = await ask(address("runs", this.name));
    Object.assign(this, { info, status, metrics, latest, switches, recordings, playable });
    this.families = new Map();
    for (const metric of metrics) {
      if (!this.families.has(metric.family)) this.families.set(metric.family, []);
      this.families.get(metric.family).push(metric);
    }
  }

  /** Take news from the feed. */
  hear(news) {
    this.place = { row: news.row, event: news.event };
    this.status = news.status;
    this.step = news.step;
    this.switches = news.switches;
    for (const [name, points] of Object.entries(news.points)) {
      if (!this.histories.has(name)) this.histories.set(name, new History());
      this.histories.get(name).add(points);
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
    const { on, value = null, scheduled = name === "learning" } = this.switches[name] ?? {};
    return on === undefined ? value !== null : on !== scheduled;
  }

  /** Whether what this control rules differs from its schedule, by whatever switch. */
  isOverridden(name) {
    return Boolean(this.switches[name]?.overridden);
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
    const times = [...this.histories.values()].reduce((most, one) => (one.length > most.length ? one.times : most), []);
    const starts = this.info.starts.map((start) => Date.parse(start.time) / 1000);
    return starts.reduce((sum, start, i) => {
      const next = starts[i + 1] ?? Infinity;
      const end = times.reduce((found, time) => (time >= start && time < next ? time : found), start);
      return sum + end - start;
    }, 0);
  }

  /** Share of the budget that is used up, and seconds left, as far as the settings tell. */
  get progress() {
    const { minutes = 0, deterministic, [`${this.info.unit.replace("-", "_")}s`]: steps = 0 } = this.info.config;
    const shares = [];
    if (steps) shares.push(this.step / steps);
    if (minutes && !deterministic) shares.push(this.trained / (60 * minutes));
    if (!shares.length) return null;
    const logged = this.metrics.find((metric) => metric.role === "progress");
    const share = (logged && this.last(logged.name)) ?? Math.min(1, Math.max(...shares));
    return { share, left: share > 0.005 ? (this.trained * (1 - share)) / share : null };
  }
}
