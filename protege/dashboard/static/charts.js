// Small charts, drawn with compressed time, and what the big chart shares with them.

import uPlot from "/vendor/uplot-1.6.32.js";
import { linesOf, mainOf, onTwoScales } from "./families.js";
import { short, withUnit } from "./numbers.js";
import { el } from "./page.js";
import { ascending, nearest } from "./series.js";
import { apart, compress, markLabel, marksFrom } from "./time-axis.js";

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    lines: Array.from({ length: 8 }, (_, i) => read(`--line-${i + 1}`)),
    text: read("--text-2"),
    grid: read("--grid"),
    yardstick: read("--yardstick"),
  };
}

const withAlpha = (colour, alpha) =>
  colour.replace(
    /^#(\w\w)(\w\w)(\w\w)$/,
    (_, r, g, b) => `rgba(${parseInt(r, 16)}, ${parseInt(g, 16)}, ${parseInt(b, 16)}, ${alpha})`,
  );

/** Axis labels grow with the page's letters; everything about them is measured in these. */
export function letters() {
  const size = 0.72 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  return { size, font: `${size}px system-ui, sans-serif` };
}

/**
 * @param {import("./series.js").Line} line
 * @returns {uPlot.AlignedData}
 */
const tableOf = (line) => [line.x, ...line.columns];

/**
 * Columns of several lines on one axis.
 *
 * @param {import("./series.js").Line[]} lines
 * @returns {uPlot.AlignedData}
 */
export function joined(lines) {
  const tables = lines.filter((line) => line.x.length).map(tableOf);
  return tables.length ? uPlot.join(tables) : [[], ...lines.flatMap((line) => line.columns)];
}

/**
 * uPlot's series and bands for lines, each with its interval where it has one.
 *
 * @param {import("./families.js").Drawn[]} lines
 * @param {number} width
 */
export function dressed(lines, width) {
  /** @type {uPlot.Series[]} */
  const series = [{}];
  /** @type {uPlot.Band[]} */
  const bands = [];
  for (const line of lines) {
    const { colour } = line;
    const scale = line.right ? "right" : "y";
    if (line.interval) {
      const at = series.length;
      const unseen = { scale, stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      series.push({ ...unseen, label: `${line.label} to` }, { ...unseen, label: `${line.label} from` });
      bands.push({ series: [at, at + 1], fill: withAlpha(colour, 0.16) });
    }
    series.push({
      label: line.label,
      scale,
      stroke: colour,
      width,
      dash: line.yardstick ? [6, 5] : undefined,
      spanGaps: true,
      points: { show: line.sparse ? true : false, size: 4, fill: colour },
      value: (_, value) => (value === null || value === undefined ? "–" : withUnit(value, line.unit)),
    });
  }
  return { series, bands };
}

/** Room for the labels of a vertical axis. */
function axisSize(labels, least) {
  const longest = Math.max(0, ...(labels ?? []).map((label) => String(label ?? "").length));
  return Math.max(least, 10 + 0.6 * letters().size * longest);
}

export function verticalAxes(lines, axis, least) {
  const values = (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick)));
  const left = { ...axis, values, space: 34, size: (_, labels) => axisSize(labels, least) };
  return lines.some((line) => line.right)
    ? [left, { ...left, scale: "right", side: 1, grid: { show: false } }]
    : [left];
}

/** @type {uPlot.Cursor.Sync} */
const linkedMini = { key: "small charts", setSeries: false, scales: ["x", null] };

/** A small chart of a family: the newest values as text, compressed time, a click or Enter opens the big one. */
export class SmallChart {
  /** @type {uPlot | null} */
  plot = null;
  /** @type {import("./families.js").Drawn[]} */
  shown = [];
  start = 0;
  shape = "";
  text = "";

  /**
   * @param {string} family
   * @param {import("./families.js").Metric[]} metrics
   * @param {(family: string) => void} open
   */
  constructor(family, metrics, open) {
    this.family = family;
    this.lines = linesOf(metrics);
    this.main = mainOf(this.lines);
    this.value = el("output", { class: "chart-value" });
    this.keys = el("ul", { class: "chart-keys" });
    this.place = el("div", { class: "chart-place" });
    this.element = el(
      "article",
      {
        class: "chart",
        tabIndex: 0,
        role: "button",
        "data-family": family,
        "aria-label": `${family}: open the large chart`,
        onclick: () => open(family),
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            open(family);
          }
        },
      },
      el("header", {}, el("h3", {}, family), this.value),
      this.place,
      this.keys,
    );
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.place);
  }

  /** Show runs: one with all its lines, or several with the family's main line each. `runs` are {name, histories}. */
  show(runs) {
    const palette = colours();
    this.shown = runs.length > 1 ? this.compared(runs, palette) : this.single(runs[0], palette);
    this.start = compress(Math.max(10, runs[0].now - runs[0].first)); // all small charts begin with the run
    const shape =
      onTwoScales(this.shown, runs.length > 1)
        .map((line) => `${line.label}${line.interval}${line.sparse}${line.right}`)
        .join() + runs.length;
    const data = joined(this.shown);
    this.element.dataset.points = String(data[0].length);
    if (!this.plot || shape !== this.shape || palette.text !== this.text) {
      this.plot?.destroy();
      this.plot = this.make(runs.length > 1, palette, data);
      [this.shape, this.text] = [shape, palette.text];
    } else {
      this.plot.setData(data);
    }
    this.tell(null);
  }

  single(run, palette) {
    return this.lines
      .map((line, i) => {
        const values = run.histories.get(line.metric.name);
        if (!values?.length) return null;
        const x = values.times.map((time) => compress(run.now - time));
        const ends = line.low && run.histories.get(line.low)?.length === values.length;
        const columns = ends
          ? [run.histories.get(line.high).mean, run.histories.get(line.low).mean, values.mean]
          : [values.mean];
        return {
          ...ascending({ x, columns }),
          interval: Boolean(ends),
          unit: line.metric.unit,
          sparse: values.length < 60,
          label: line.label,
          meaning: line.metric.meaning,
          yardstick: line.yardstick,
          colour: line.yardstick ? palette.yardstick : palette.lines[i % palette.lines.length],
          last: values.last,
        };
      })
      .filter((line) => line !== null);
  }

  compared(runs, palette) {
    return runs
      .map((run, i) => {
        const values = run.histories.get(this.main.metric.name);
        if (!values?.length) return null;
        return {
          ...ascending({ x: values.steps, columns: [values.mean] }),
          unit: this.main.metric.unit,
          interval: false,
          label: run.name,
          meaning: this.main.metric.meaning,
          colour: palette.lines[i % palette.lines.length],
          last: values.last,
          sparse: values.length < 60,
        };
      })
      .filter((line) => line !== null);
  }

  make(bySteps, palette, data) {
    const { size, font } = letters();
    const axis = { stroke: palette.text, font, grid: { stroke: palette.grid, width: 1 }, ticks: { show: false } };
    const { series, bands } = dressed(this.shown, 1.6);
    /** @type {uPlot.Options} */
    const options = {
      ...this.size(),
      series,
      bands,
      padding: [8, 1.5 * size, 0, 0],
      scales: { x: { time: false, range: (_, min, max) => (bySteps ? [min, max] : [this.start, 0]) } },
      legend: { show: false },
      cursor: { sync: linkedMini, drag: { x: false, y: false, setScale: false }, y: false, points: { size: 6 } },
      axes: [
        bySteps
          ? { ...axis, size: 2.3 * size, values: (_, ticks) => ticks.map(short) }
          : {
              ...axis,
              size: 2.3 * size,
              splits: (plot) => marksFrom(plot.scales.x.min ?? this.start),
              filter: (plot, splits) => apart(splits, (x) => plot.valToPos(x, "x"), 3.9 * size),
              values: (_, splits) => splits.map(markLabel),
            },
        ...verticalAxes(this.shown, axis, 34),
      ],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
    };
    return new uPlot(options, data, this.place);
  }

  /** The values at the cursor, or the newest. */
  tell(index) {
    const newest = index === null || index === undefined;
    let at = 0;
    const items = this.shown.map((line) => {
      at += line.interval ? 3 : 1;
      const column = this.plot?.data[at];
      const value = newest ? line.last : nearest(column, index);
      return el(
        "li",
        { title: line.meaning },
        el("i", { class: line.yardstick ? "key yardstick" : "key", "data-colour": line.colour }),
        line.label,
        " ",
        el("b", {}, withUnit(value, line.unit)),
        line.right ? " →" : "",
      );
    });
    this.keys.replaceChildren(...items);
    paintKeys(this.keys);
    if (!this.shown.length) return;
    const main = this.shown.find((line) => line.label === this.main.label) ?? this.shown[0];
    const single = this.shown.length === 1;
    if (single) this.keys.replaceChildren(el("li", {}, main.meaning));
    this.value.value =
      single && !newest
        ? withUnit(nearest(this.plot?.data[main.interval ? 3 : 1], index), main.unit)
        : withUnit(main.last, main.unit);
  }

  size() {
    return { width: Math.max(120, this.place.clientWidth), height: Math.max(90, this.place.clientHeight) };
  }

  resize() {
    const size = this.size();
    if (this.plot && (this.plot.width !== size.width || this.plot.height !== size.height)) this.plot.setSize(size);
  }

  destroy() {
    this.watcher.disconnect();
    this.plot?.destroy();
  }
}

/** Colours are chosen here, and the page's policy allows no style attributes: they are set as properties. */
export function paintKeys(list) {
  for (const key of list.querySelectorAll("i")) key.style.setProperty("--key", key.dataset.colour);
}
