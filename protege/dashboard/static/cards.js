// Headline figures of a run: gauges and cards, as its metrics declare them.

import { Gauge } from "./gauge.js";
import { labelOf, sharedCards } from "./families.js";
import { short, withUnit } from "./numbers.js";
import { el } from "./page.js";

/** The gauges and cards of one run; `show` brings them up to date. */
export class Cards {
  /** @type {(() => void)[]} */
  fills = [];

  /** @param {import("./followed.js").FollowedRun} run */
  constructor(run) {
    this.run = run;
    this.gauges = el("div", { class: "gauges" });
    this.cards = el("div", { class: "cards" });
    for (const { card, metrics } of sharedCards(run.metrics)) {
      if (card.format === "gauge") this.addGauge(new Gauge(card, metrics[0]));
      else this.addFilled(card, metrics);
    }
  }

  addGauge(gauge) {
    const { name, control } = gauge.metric;
    this.gauges.append(gauge.element);
    this.fills.push(() => gauge.show(this.run.histories.get(name), this.run.isOverridden(control)));
  }

  /** A card for what metrics say; one that has nothing to say yet, or in this kind of training, is not shown. */
  addFilled(card, metrics) {
    const fill = this.filling(card, metrics);
    const shown = this.add(card.title, metrics[0].meaning, (value, element) => {
      element.hidden = metrics.every((metric) => this.run.last(metric.name) === null);
      fill(value, element);
    });
    shown.dataset.format = card.format;
  }

  /** A card of its own; `fill` is given its value and the card whenever there may be something new. */
  add(title, meaning, fill) {
    const value = el("output", { class: "card-value" });
    const card = el("div", { class: "card", title: meaning, "data-card": title }, el("h3", {}, title), value);
    this.fills.push(() => fill(value, card));
    this.cards.append(card);
    return card;
  }

  show() {
    for (const fill of this.fills) fill();
  }

  filling(card, metrics) {
    const { run } = this;
    const [metric] = metrics;
    if (card.format === "range") return (value) => fillRange(value, run, metrics);
    if (card.format === "mix") return (value, element) => fillMix(value, element, run, metrics);
    const unit = card.format === "plain" ? "" : metric.unit;
    return (value) => {
      value.value = withUnit(run.last(metric.name), unit) + (run.isOverridden(metric.control) ? "*" : "");
    };
  }
}

/** The lowest and the highest of several metrics, and each of them as a hint. */
function fillRange(value, run, metrics) {
  const known = metrics.map((metric) => run.last(metric.name)).filter((one) => one !== null);
  const ends = known.length ? [Math.min(...known), Math.max(...known)] : [];
  value.value = ends.map((end) => short(Number(end.toPrecision(2)))).join("…") || "–";
  value.title = metrics.map((metric) => `${labelOf(metric)} ${short(run.last(metric.name))}`).join(", ");
}

/** The parts of a whole, in percent and as a bar. */
function fillMix(value, card, run, metrics) {
  const parts = metrics.map((metric) => run.last(metric.name) ?? 0);
  const sum = parts.reduce((a, b) => a + b, 0) || 1;
  value.value = metrics.map((metric, i) => `${labelOf(metric)} ${Math.round((100 * parts[i]) / sum)} %`).join(", ");
  let bar = card.querySelector(".mix");
  if (!bar) {
    bar = el(
      "div",
      { class: "mix" },
      metrics.map(() => el("i")),
    );
    card.append(bar);
  }
  [...bar.children].forEach((piece, i) => piece.style.setProperty("flex-grow", parts[i] / sum));
}
