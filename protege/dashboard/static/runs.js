// The training view: which runs there are, the headline figures of one, charts, events, controls.

import { BigChart } from "./bigchart.js";
import { Cards } from "./cards.js";
import { SmallChart } from "./charts.js";
import { Controls } from "./controls.js";
import { labelOf } from "./families.js";
import { FollowedRun } from "./followed.js";
import { games, linksOf, tabs } from "./games.js";
import { ago, duration, whole, withUnit } from "./numbers.js";
import { address, ask, el, toast } from "./page.js";

/** Links to tabs, as a sentence. */
const linkTo = (tab, i, all) => [
  i === 0 ? "" : i < all.length - 1 ? ", " : " or ",
  el("a", { href: tab.address }, tab.title),
  i < all.length - 1 ? "" : ".",
];

export class RunsView {
  /** @type {FollowedRun[]} the first is the one that the page is about */
  followed = [];
  /** @type {any[]} */
  summaries = [];
  /** @type {Map<string, SmallChart>} by family */
  charts = new Map();
  /** @type {{ cards: Cards, controls: Controls } | null} */
  built = null;
  /** @type {{ element: HTMLElement, close: () => void } | null} */
  preview = null;
  /** @type {BigChart | null} */
  big = null;
  frame = 0;
  title = el("div", { class: "run-title" });
  evaluation = el("div", { class: "evaluation" });
  progress = el("div", { class: "progress" });
  grid = el("section", { class: "charts", "aria-label": "Charts" });
  events = el("ol", { class: "events" });

  constructor(feed, about) {
    this.feed = feed;
    this.about = about;
    this.list = el("ul", { class: "runs-list" });
    this.main = el("div", { class: "run-main" });
    this.element = el(
      "div",
      { class: "view runs-view" },
      el(
        "details",
        { class: "runs-panel", open: matchMedia("(min-width: 75rem)").matches },
        el("summary", {}, "Runs"),
        this.list,
      ),
      this.main,
    );
    this.onTrust = () => this.draw();
    this.onTheme = () => this.draw();
    document.addEventListener("trust", this.onTrust);
    document.addEventListener("theme", this.onTheme);
    this.lister = setInterval(() => document.hidden || this.listRuns(), 10_000);
  }

  /** Show the runs of an address: /run/NAME?compare=A,B; without a name the newest. */
  async open(names) {
    await this.listRuns();
    if (!names.length && this.summaries.length) names = [this.summaries[0].name];
    if (!names.length) {
      this.feed.watch([]);
      this.main.replaceChildren(
        el(
          "section",
          { class: "empty" },
          el("h1", {}, "No runs yet"),
          el("p", {}, "A training that is started now appears here by itself:"),
          el("pre", {}, `protege train ${[...games.keys()][0] ?? "GAME"} --minutes 10`),
          tabs().length ? el("p", {}, "Or open ", tabs().flatMap(linkTo)) : null,
        ),
      );
      return;
    }
    try {
      const followed = names.map((name) => new FollowedRun(name));
      await Promise.all(followed.map((run) => run.load()));
      this.close();
      this.followed = followed;
    } catch (error) {
      this.main.replaceChildren(
        el("section", { class: "empty" }, el("h1", {}, "That run cannot be shown"), el("p", {}, error.message)),
      );
      return;
    }
    this.build();
    this.feed.watch(this.followed);
    this.showList();
  }

  async listRuns() {
    try {
      this.summaries = await ask("/api/runs");
    } catch {
      this.summaries ??= []; // the connection is lost; it is said elsewhere
    }
    this.showList();
    if (this.summaries.length && this.main.querySelector(".empty") && !this.followed.length) this.open([]);
  }

  get primary() {
    return this.followed[0];
  }

  showList() {
    const names = this.followed.map((run) => run.name);
    const lines = this.summaries.map((summary) => {
      const chosen = names.includes(summary.name);
      const compare = el("input", {
        type: "checkbox",
        checked: chosen,
        "aria-label": `compare ${summary.name}`,
        onchange: (event) => this.compare(summary.name, event.target.checked),
      });
      return el(
        "li",
        { class: summary.name === names[0] ? "current" : "" },
        compare,
        el(
          "a",
          {
            href: `#/run/${encodeURIComponent(summary.name)}`,
            "aria-current": summary.name === names[0] ? "true" : null,
          },
          el("i", { class: "lamp", "data-status": summary.status }),
          el("span", { class: "run-name" }, summary.name),
          el(
            "small",
            {},
            summary.status,
            summary.best_score === null
              ? ""
              : ` · ${withUnit(summary.best_score, summary.score_unit === "fraction" ? "fraction" : "")}`,
          ),
        ),
      );
    });
    if (this.list.contains(document.activeElement)) return; // nothing moves under a keyboard
    this.list.replaceChildren(...lines);
  }

  compare(name, wanted) {
    const others = this.followed.map((run) => run.name).filter((other) => other !== name);
    const names = wanted ? [...others, name] : others;
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    if (!names.length) return this.showList();
    const rest = names.slice(1).map(encodeURIComponent).join(",");
    location.hash = `/run/${encodeURIComponent(names[0])}${rest ? `?compare=${rest}` : ""}`;
  }

  // --- the parts of the page -----------------------------------------------------------------------------------------

  build() {
    const run = this.primary;
    const built = (this.built = { cards: new Cards(run), controls: new Controls(run, this.about.controls) });
    built.cards.add("web viewers", "pages that follow runs on this server", (value) => {
      value.value = whole(this.feed.viewers);
    });
    if (run.progress) {
      built.cards.add("time left", "estimated from the run's budget", (value, card) => {
        card.hidden = run.status !== "running";
        value.value = duration(run.progress?.left ?? NaN);
      });
    }
    this.preview?.close();
    this.preview = linksOf(run.info.game).preview?.(run) ?? null;
    this.grid.replaceChildren();
    for (const [family, metrics] of run.families) {
      const chart = new SmallChart(family, metrics, (name) => this.openBig(name));
      this.charts.set(family, chart);
      this.grid.append(chart.element);
    }
    this.main.replaceChildren(
      el(
        "section",
        { class: "hero" },
        el("div", { class: "hero-text" }, this.title, this.evaluation, this.progress, built.controls.actions),
        this.preview?.element ?? null,
        built.cards.gauges,
      ),
      built.controls.element,
      built.cards.cards,
      this.grid,
      el(
        "section",
        { class: "notes" },
        el("details", { open: true }, el("summary", {}, "What happened"), this.events),
        el("details", {}, el("summary", {}, "Settings"), this.settings(run)),
        this.recordings(run),
      ),
    );
    this.draw();
  }

  settings(run) {
    const rows = Object.entries(flat(run.info.config)).map(([name, value]) =>
      el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, JSON.stringify(value))),
    );
    const machine = Object.entries(run.info.machine).map(([name, value]) =>
      el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, String(value))),
    );
    return el(
      "div",
      { class: "tables" },
      el("table", {}, el("tbody", {}, rows)),
      el("table", {}, el("tbody", {}, machine)),
    );
  }

  recordings(run) {
    if (!run.recordings.length) return null;
    const show = (file) => {
      const watched = linksOf(run.info.game).recordingAddress?.(run, file);
      if (watched) return el("a", { class: "button", href: watched }, `Watch ${file}`);
      const source = address("runs", run.name, "recordings", file);
      return el(
        "figure",
        {},
        file.endsWith(".gif")
          ? el("img", { src: source, alt: file, loading: "lazy" })
          : el("video", { src: source, controls: true, preload: "metadata", muted: true }),
        el("figcaption", {}, file),
      );
    };
    return el(
      "details",
      { open: true },
      el("summary", {}, "Recordings"),
      el("div", { class: "films" }, run.recordings.map(show)),
    );
  }

  // --- what changes --------------------------------------------------------------------------------------------------

  /** News of a followed run. */
  follow(news) {
    const run = this.followed.find((one) => one.name === news.run);
    if (!run) return;
    if (news.error) return toast(news.error, "bad");
    const before = run.status;
    run.hear(news);
    if (before !== run.status && run === this.primary) this.listRuns();
    this.drawSoon();
  }

  drawSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const run = this.primary;
    if (!run || !this.built) return;
    for (const chart of this.charts.values()) chart.show(this.followed);
    this.grid.classList.toggle("comparing", this.followed.length > 1);
    this.built.cards.show();
    this.built.controls.show();
    this.title.replaceChildren(
      el("h1", {}, run.name),
      el(
        "p",
        {},
        el("i", { class: "lamp", "data-status": run.status }),
        run.status,
        ` · ${run.info.game}, ${run.info.learner} · ${run.info.unit} ${whole(run.step)}`,
        run.now && run.status === "running" ? "" : run.now ? ` · ${ago(Date.now() / 1000 - run.now)}` : "",
      ),
    );
    this.drawEvaluation(run);
    const { progress } = run;
    this.progress.hidden = progress === null || run.status !== "running";
    if (progress && !this.progress.hidden) {
      const { fraction, left } = progress;
      const text = left === null ? "just started" : `${duration(left)} left`;
      this.progress.replaceChildren(
        el("progress", { max: 1, value: fraction, "aria-label": "budget used" }),
        el("small", {}, `${Math.floor(100 * fraction)} % · ${text}`),
      );
    }
    this.events.replaceChildren(
      ...[...run.events]
        .reverse()
        .map((event) =>
          el(
            "li",
            { "data-kind": event.kind },
            el("time", {}, new Date(1000 * event.time).toLocaleTimeString()),
            el("b", {}, event.kind),
            el("span", {}, event.text),
          ),
        ),
    );
  }

  /** The figure it is all about: how the pupil does beside its teacher. */
  drawEvaluation(run) {
    const metric = run.metric(run.info.score);
    const score = metric ? run.last(metric.name) : null;
    this.evaluation.hidden = score === null;
    if (score === null) return;
    const isFraction = metric.unit === "fraction";
    const [what, unit] = isFraction ? [labelOf(metric), metric.unit] : [metric.unit, ""];
    const [low, high] = (metric.interval ?? []).map((end) => withUnit(run.last(end), unit));
    const baseline = metric.baseline ? run.last(metric.baseline) : null;
    const times = baseline && `${(score / baseline).toFixed(1)} × ${labelOf(run.metric(metric.baseline))}`;
    this.evaluation.replaceChildren(
      el("output", { class: "evaluation-score" }, isFraction ? withUnit(score, unit) : whole(score)),
      el(
        "p",
        {},
        low === undefined ? what : `${what}, ${low} to ${high}`,
        times ? el("b", { class: score > baseline ? "good" : "" }, ` ${times}`) : "",
      ),
    );
  }

  openBig(family) {
    this.big?.element.open && this.big.element.close();
    this.big = new BigChart(family, this.primary.families.get(family) ?? [], this.followed);
  }

  close() {
    for (const chart of this.charts.values()) chart.destroy();
    this.charts.clear();
    this.preview?.close();
    this.preview = null;
    if (this.big?.element.open) this.big.element.close();
    this.followed = [];
  }

  destroy() {
    this.close();
    clearInterval(this.lister);
    cancelAnimationFrame(this.frame);
    document.removeEventListener("trust", this.onTrust);
    document.removeEventListener("theme", this.onTheme);
    this.feed.watch([]);
  }
}

function flat(settings, prefix = "") {
  return Object.entries(settings).reduce(
    (found, [key, value]) => ({
      ...found,
      ...(value && typeof value === "object" && !Array.isArray(value)
        ? flat(value, `${prefix}${key}.`)
        : { [prefix + key]: value }),
    }),
    {},
  );
}
