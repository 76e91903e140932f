// Gauges: a figure as an arc, from nothing to the most it is expected to be.

import { niceAbove, short, withUnit } from "./numbers.js";
import { el, svg } from "./page.js";

const TURN = 240; // degrees of a gauge's scale

function arc(radius, fraction) {
  const point = (degrees) => {
    const angle = ((degrees - 90 - TURN / 2) * Math.PI) / 180;
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
  };
  const end = Math.max(0.001, Math.min(1, fraction)) * TURN;
  return `M${point(0)}A${radius} ${radius} 0 ${end > 180 ? 1 : 0} 1 ${point(end)}`;
}

export class Gauge {
  /**
   * @param {import("./families.js").Card} card
   * @param {import("./families.js").Metric} metric
   */
  constructor({ title, most }, metric) {
    this.metric = metric;
    this.most = most;
    this.value = svg("text", { class: "gauge-value", y: 4 });
    this.end = svg("text", { class: "gauge-end", x: 33, y: 33 });
    this.hand = svg("path", { class: "gauge-hand", d: arc(38, 0) });
    this.dial = svg(
      "svg",
      { viewBox: "-48 -46 96 86", role: "img", "aria-label": title },
      svg("path", { class: "gauge-scale", d: arc(38, 1) }),
      this.hand,
      this.value,
      this.end,
    );
    this.element = el(
      "figure",
      { class: "gauge", title: metric.meaning, "data-gauge": title },
      this.dial,
      el("figcaption", {}, title),
    );
  }

  /** Show the newest value, with a * where a person has overridden the schedule. */
  show(history, overridden) {
    const last = history?.last ?? null;
    const most = this.most ?? niceAbove(history?.most() ?? 1);
    const text = this.metric.unit === "fraction" ? withUnit(last, "fraction") : short(last);
    this.value.textContent = overridden ? `${text}*` : text;
    this.value.classList.toggle("long", this.value.textContent.length > 6);
    this.end.textContent = this.metric.unit === "fraction" ? "" : short(most);
    this.hand.setAttribute("d", arc(38, last === null ? 0 : last / most));
    this.dial.setAttribute("aria-label", `${this.metric.meaning}: ${this.value.textContent}`);
  }
}
