// The big chart: one family of one or more runs in a dialog, read from the server as finely as the zoom needs.

import uPlot from "/vendor/uplot-1.6.32.js";
import { colours, dressed, joined, letters, paintKeys, verticalAxes } from "./charts.js";
import { linesOf, mainOf, onTwoScales } from "./families.js";
import { duration, short, whole, withUnit } from "./numbers.js";
import { address, ask, el, toast } from "./page.js";
import { ascending, nearest } from "./series.js";

const FRESH_MS = 4000; // between two looks at the newest values while nothing is zoomed

/** Opens at once; drag to zoom, double-click to see everything, arrows and + - 0 for the keyboard. */
export class BigChart {
  /** @type {uPlot | null} */
  plot = null;
  /** @type {{ min: number, max: number } | null} */
  zoomed = null;
  all = { min: 0, max: 1 };
  along = "step";
  log = false;
  loads = 0;
  /** @type {string | null} */
  shape = null;
  /** @type {import("./families.js").Drawn[]} */
  shown = [];
  /** @type {Record<string, import("./series.js").Columns>[] | null} */
  found = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  later;

  /**
   * @param {string} family
   * @param {import("./families.js").Metric[]} metrics
   * @param {import("./followed.js").FollowedRun[]} runs
   */
  constructor(family, metrics, runs) {
    this.family = family;
    this.metrics = metrics;
    this.runs = runs;
    this.lines = linesOf(metrics);
    this.main = mainOf(this.lines);
    this.unit = runs[0].info.unit; // of the steps
    this.place = el("div", {
      class: "big-place",
      tabIndex: 0,
      role: "application",
      "aria-label": `${family}. Arrow keys move the cursor, plus and minus zoom, 0 shows everything.`,
      onkeydown: (event) => this.key(event),
    });
    this.seen = el("output", { class: "big-range", "aria-live": "polite" });
    this.keys = el("ul", { class: "big-keys" });
    const choice = (text, pressed, act) =>
      el(
        "button",
        { type: "button", "aria-pressed": String(pressed), onclick: (event) => act(event.currentTarget) },
        text,
      );
    this.axisButton = choice("Over time", false, (button) => this.switchAxis(button));
    this.element = el(
      "dialog",
      { class: "big", "aria-label": `${family}, large chart`, "data-family": family, onclose: () => this.destroy() },
      el(
        "header",
        {},
        el("h2", {}, family),
        this.seen,
        el(
          "button",
          { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => this.element.close() },
          "✕",
        ),
      ),
      this.place,
      el(
        "div",
        { class: "big-tools" },
        el("button", { type: "button", "aria-label": "Zoom in", onclick: () => this.zoom(0.5) }, "+"),
        el("button", { type: "button", "aria-label": "Zoom out", onclick: () => this.zoom(2) }, "−"),
        el("button", { type: "button", onclick: () => this.reset() }, "Show all"),
        this.axisButton,
        choice("Logarithmic", false, (button) => {
          this.log = !this.log;
          button.setAttribute("aria-pressed", String(this.log));
          this.draw(true);
        }),
        runs.map((run) =>
          el(
            "a",
            { class: "button", href: this.csv(run.name), download: `${run.name}.csv` },
            runs.length > 1 ? `CSV of ${run.name}` : "CSV",
          ),
        ),
      ),
      this.keys,
    );
    document.body.append(this.element);
    this.element.showModal();
    this.place.focus();
    this.watcher = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.watcher.observe(this.place);
    this.timer = setInterval(() => this.zoomed || document.hidden || this.load(), FRESH_MS);
    this.load();
  }

  csv(run) {
    const asked = new URLSearchParams(this.metrics.map((metric) => ["metric", metric.name]));
    return `${address("runs", run, "metrics.csv")}?${asked}`;
  }

  /** Read what is to be seen: everything, or the stretch that is zoomed to, in as many points as there are pixels. */
  async load() {
    const number = ++this.loads;
    const wanted = this.runs.length > 1 ? [this.main.metric] : this.metrics;
    const asked = new URLSearchParams(wanted.map((metric) => ["metric", metric.name]));
    asked.set("points", String(Math.min(1500, Math.max(200, this.place.clientWidth))));
    asked.set("along", this.along);
    const zoom = this.zoomed;
    if (zoom) {
      const spare = (zoom.max - zoom.min) / 2; // so that a line leaves the picture instead of ending in it
      asked.set("start", String(zoom.min - spare));
      asked.set("stop", String(zoom.max + spare));
    }
    try {
      const found = await Promise.all(this.runs.map((run) => ask(`${address("runs", run.name, "series")}?${asked}`)));
      if (number !== this.loads || !this.element.open) return;
      this.found = found.map((answer) => answer.points);
      this.draw(false);
    } catch (error) {
      toast(`${this.family}: ${error.message}`, "bad");
    }
  }

  draw(anew) {
    if (!this.found) return;
    const palette = colours();
    this.shown = this.runs.length > 1 ? this.compared(palette) : this.single(palette);
    const data = joined(this.shown);
    const shape = onTwoScales(this.shown, this.runs.length > 1)
      .map((line) => `${line.label}${line.interval}${line.sparse}${line.right}`)
      .join();
    if (!this.zoomed) this.all = { min: data[0][0] ?? 0, max: data[0][data[0].length - 1] ?? 1 };
    if (!anew && this.plot && shape === this.shape) {
      this.plot.setData(data);
    } else {
      this.plot?.destroy();
      this.plot = new uPlot(this.options(palette), data, this.place);
      this.shape = shape;
    }
    this.tell();
  }

  x(points) {
    return this.along === "time" ? points.times : points.steps;
  }

  single(palette) {
    const [points] = this.found ?? [];
    return this.lines
      .map((line, i) => {
        const values = points[line.metric.name];
        if (!values?.steps.length) return null;
        const ends =
          line.low && line.high && points[line.low].mean.length === values.mean.length
            ? [points[line.high].mean, points[line.low].mean]
            : values.low && values.high && this.lines.length < 4
              ? [values.high, values.low]
              : null;
        return {
          ...ascending({ x: this.x(values), columns: [...(ends ?? []), values.mean] }),
          interval: Boolean(ends),
          label: line.label,
          meaning: line.metric.meaning,
          unit: line.metric.unit,
          yardstick: line.yardstick,
          sparse: values.steps.length < 60,
          colour: line.yardstick ? palette.yardstick : palette.lines[i % palette.lines.length],
        };
      })
      .filter((line) => line !== null);
  }

  compared(palette) {
    const { name, meaning, unit } = this.main.metric;
    return (this.found ?? [])
      .map((points, i) => {
        const values = points[name];
        if (!values?.steps.length) return null;
        return {
          ...ascending({ x: this.x(values), columns: [values.mean] }),
          interval: false,
          label: this.runs[i].name,
          meaning,
          unit,
          sparse: values.steps.length < 60,
          colour: palette.lines[i % palette.lines.length],
        };
      })
      .filter((line) => line !== null);
  }

  /** @returns {uPlot.Options} */
  options(palette) {
    const { size, font } = letters();
    const axis = { stroke: palette.text, font, grid: { stroke: palette.grid, width: 1 }, ticks: { show: false } };
    return {
      ...this.size(),
      ...dressed(this.shown, 2),
      scales: {
        x: {
          time: this.along === "time",
          range: (_, min, max) => (this.zoomed ? [this.zoomed.min, this.zoomed.max] : [min, max]),
        },
        y: { distr: this.log ? 3 : 1 },
      },
      legend: { show: false },
      // Zooming is done here and not by uPlot, whose idea of "everything" would be the stretch that was read last.
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 6 },
        focus: { prox: 24 },
        bind: { dblclick: () => () => (this.reset(), null) },
      },
      focus: { alpha: 0.45 },
      axes: [
        this.along === "time"
          ? { ...axis, size: 3.8 * size }
          : { ...axis, size: 2.6 * size, values: (_, ticks) => ticks.map(short) },
        ...verticalAxes(this.shown, axis, 48),
      ],
      hooks: {
        setCursor: [() => this.tell()],
        setSelect: [(plot) => plot.select.width > 5 && this.choose(plot)],
        setScale: [(_, key) => key === "x" && this.say(this.range())],
      },
    };
  }

  choose(plot) {
    const { left, width } = plot.select;
    const range = { min: plot.posToVal(left, "x"), max: plot.posToVal(left + width, "x") };
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.setZoom(range);
  }

  setZoom(range) {
    if (!this.plot || (range && range.max - range.min < 1e-6 * (this.all.max - this.all.min))) return;
    const everything = range && range.min <= this.all.min && range.max >= this.all.max;
    this.zoomed = everything ? null : range;
    this.plot.setScale("x", this.zoomed ?? this.all);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.load(), 150);
  }

  /** The stretch that is seen. */
  range() {
    const { min = this.all.min, max = this.all.max } = this.plot?.scales.x ?? {};
    return { min, max };
  }

  reset() {
    this.setZoom(null);
  }

  zoom(factor) {
    if (!this.plot) return;
    const { min, max } = this.range();
    const left = this.plot.cursor.left ?? 0;
    const cursor = left > 0 ? this.plot.posToVal(left, "x") : (min + max) / 2;
    this.setZoom({
      min: Math.max(this.all.min, cursor - (cursor - min) * factor),
      max: Math.min(this.all.max, cursor + (max - cursor) * factor),
    });
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    if (!this.plot) return;
    if (step && event.shiftKey) {
      const { min, max } = this.range();
      const way = (step * (max - min)) / 4;
      if (this.zoomed) this.setZoom({ min: min + way, max: max + way });
    } else if (step) {
      const count = this.plot.data[0].length;
      const at = Math.max(0, Math.min(count - 1, (this.plot.cursor.idx ?? (step > 0 ? -1 : count)) + step));
      this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][at], "x"), top: 10 });
    } else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else return;
    event.preventDefault();
  }

  switchAxis(button) {
    this.along = this.along === "step" ? "time" : "step";
    button.setAttribute("aria-pressed", String(this.along === "time"));
    this.zoomed = null;
    this.shape = null;
    this.load();
  }

  /** Which stretch is seen. */
  say({ min, max }) {
    Object.assign(this.element.dataset, { from: min, to: max });
    this.seen.value =
      this.along === "step"
        ? `${this.unit}s ${short(min)} to ${short(max)}`
        : `${new Date(1000 * min).toLocaleString()}, ${duration(max - min)}`;
  }

  /** The values under the cursor, or the newest. */
  tell() {
    const { plot } = this;
    if (!plot) return;
    const index = plot.cursor.idx;
    let at = 0;
    const items = this.shown.map((line) => {
      at += line.interval ? 3 : 1;
      const column = plot.data[at];
      const here = index ?? plot.data[0].length - 1;
      const value = nearest(column, here);
      const ends = line.interval ? [nearest(plot.data[at - 1], here), nearest(plot.data[at - 2], here)] : null;
      return el(
        "li",
        {},
        el("i", { class: line.yardstick ? "key yardstick" : "key", "data-colour": line.colour }),
        el("span", {}, line.label),
        el("b", {}, withUnit(value, line.unit)),
        el("small", {}, ends && ends[0] !== null ? `${short(ends[0])} to ${short(ends[1])} · ` : "", line.meaning),
      );
    });
    if (index !== null && index !== undefined) {
      const x = plot.data[0][index];
      items.unshift(
        el(
          "li",
          { class: "where" },
          this.along === "step" ? `at ${this.unit} ${whole(x)}` : new Date(1000 * x).toLocaleString(),
        ),
      );
    }
    this.keys.replaceChildren(...items);
    paintKeys(this.keys);
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: Math.max(160, this.place.clientHeight) };
  }

  destroy() {
    clearInterval(this.timer);
    clearTimeout(this.later);
    this.watcher.disconnect();
    this.plot?.destroy();
    this.element.remove();
  }
}
