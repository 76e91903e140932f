// The league view: who is how strong and how sure that is, over time, who beats whom, where everybody comes from, and
// for each entry how it plays and its latest matches.

import uPlot from "/vendor/uplot-1.6.32.js";
import { colours, dressed, joined, letters, verticalAxes } from "./charts.js";
import { labelOf } from "./families.js";
import { linksOf } from "./games.js";
import { ago, short, whole, withUnit } from "./numbers.js";
import { address, ask, choice, el, field, write } from "./page.js";

const LOOK_MS = 5000;
const MOST_LINES = 8; // ratings drawn at once, and the colours there are
const KINDS = { scripted: "scripted", candidate: "candidate", member: "member", agent: "learning", retired: "retired" };
const RESULTS = new Map([
  [1, "won"],
  [0.5, "drew"],
  [0, "lost"],
]);

export class LeagueView {
  /** @type {any} the server's report */
  league = null;
  /** @type {any[]} */
  leagues = [];
  /** @type {Map<number | null, any>} */
  entries = new Map();
  /** @type {Map<number, number | null>} which colour an entry has */
  colour = new Map();
  /** @type {uPlot | null} */
  plot = null;
  name = "";
  seen = "";
  gone = false;

  constructor(name, settings) {
    this.wanted = name;
    this.chosen = settings.entry ? Number(settings.entry) : null;
    this.note = el("p", { class: "stage-note", role: "status", hidden: true });
    this.head = el("header", { class: "league-head" });
    this.table = el("table", { class: "standings" });
    this.place = el("div", { class: "league-chart" });
    this.keys = el("ul", { class: "chart-keys" });
    this.matrix = el("div", { class: "payoff-scroll", tabIndex: 0, role: "group", "aria-label": "Payoff matrix" });
    this.lineage = el("div", { class: "lineage" });
    this.events = el("ol", { class: "events" });
    this.detail = el("section", { class: "league-entry", "aria-label": "One entry" });
    const panel = (title, about, ...parts) =>
      el("section", { class: "league-panel" }, el("h2", {}, title), about ? el("small", {}, about) : null, ...parts);
    this.body = el(
      "div",
      { class: "league-body" },
      panel("Standings", "ranked by what a rating is almost surely worth: two deviations below it", this.table),
      this.detail,
      panel("Ratings over time", "by rating period, with two deviations to either side", this.place, this.keys),
      panel("Who beats whom", "score of the row against the column, in percent", this.matrix),
      panel("Lineage", "what was trained on from what", this.lineage),
      panel("What happened", "", this.events),
    );
    this.element = el("div", { class: "view league-view" }, this.head, this.note, this.body);
    this.onTheme = () => this.drawChart();
    document.addEventListener("theme", this.onTheme);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.place);
    this.timer = setInterval(() => document.hidden || this.read(), LOOK_MS);
    this.read();
  }

  async read() {
    try {
      const leagues = await ask("/api/leagues");
      this.name = this.wanted ?? leagues[0]?.name;
      this.leagues = leagues;
      if (!this.name) return this.say("There is no league yet. Make one with: protege league init mine --game GAME");
      const league = await ask(address("leagues", this.name));
      if (this.gone) return;
      const same = JSON.stringify(league) === this.seen;
      this.seen = JSON.stringify(league);
      if (!same || !this.note.hidden) this.show(league);
    } catch (error) {
      this.say(error.message);
    }
  }

  say(text) {
    write(this.note, text);
    this.note.hidden = false;
    this.body.hidden = true;
  }

  show(league) {
    this.note.hidden = true;
    this.body.hidden = false;
    this.league = league;
    this.entries = new Map(league.entries.map((entry) => [entry.id, entry]));
    if (!this.entries.has(this.chosen)) this.chosen = league.entries[0]?.id ?? null;
    const palette = league.entries.filter((entry) => entry.kind !== "retired" && !entry.is_anchor);
    this.colour = new Map(palette.map((entry, i) => [entry.id, i < MOST_LINES ? i : null]));
    this.showHead();
    this.showTable();
    this.showMatrix();
    this.showLineage();
    this.showEvents();
    this.drawChart();
    this.showEntry();
    this.element.dataset.league = league.name;
  }

  showHead() {
    const { league } = this;
    const { rated, matches, periods, pending } = league.counts;
    const options = this.leagues.map((one) => [
      one.name,
      one.game && one.game !== one.name ? `${one.name} · ${one.game}` : one.name,
    ]);
    this.head.replaceChildren(
      el(
        "div",
        { class: "run-title" },
        el("h1", {}, `League ${league.name}`),
        el(
          "p",
          {},
          `${league.game} · ${whole(rated)} rated matches in ${whole(periods)} periods`,
          matches > rated ? ` · ${whole(matches - rated)} in training` : "",
          pending ? ` · ${whole(pending)} not yet rated` : "",
        ),
      ),
      field(
        "League",
        choice(options, league.name, (name) => (location.hash = `/league/${encodeURIComponent(name)}`)),
      ),
    );
  }

  // --- standings -----------------------------------------------------------------------------------------------------

  showTable() {
    const rows = this.league.entries;
    const ends = rows.flatMap((entry) => [entry.rating - 2 * entry.deviation, entry.rating + 2 * entry.deviation]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const at = (value) => (100 * (value - low)) / (high - low || 1);
    const line = (entry, i) => {
      const bar = el("i", { class: "interval" }, el("b", {}));
      bar.style.setProperty("--from", `${at(entry.rating - 2 * entry.deviation)}%`);
      bar.style.setProperty("--to", `${at(entry.rating + 2 * entry.deviation)}%`);
      bar.style.setProperty("--at", `${at(entry.rating)}%`);
      const number = this.colour.get(entry.id) ?? null;
      if (number !== null) bar.dataset.line = String(number + 1);
      return el(
        "tr",
        {
          "data-entry": entry.id,
          "data-kind": entry.kind,
          "aria-selected": entry.id === this.chosen ? "true" : null,
          onclick: () => this.choose(entry.id),
        },
        el("td", { class: "rank" }, entry.kind === "retired" ? "" : i + 1),
        el(
          "th",
          { scope: "row" },
          el("button", { class: "entry-name", type: "button", onclick: () => this.choose(entry.id) }, entry.name),
          el("small", {}, entry.is_anchor ? "anchor" : entry.role || KINDS[entry.kind]),
        ),
        el("td", { class: "count" }, whole(entry.rating)),
        el("td", { class: "count wide" }, entry.is_anchor ? "fixed" : `± ${whole(2 * entry.deviation)}`),
        el("td", { class: "wide strip" }, bar),
        el("td", { class: "count wide" }, entry.strength === null || entry.is_anchor ? "" : whole(entry.strength)),
        el("td", { class: "count" }, whole(entry.games)),
        el("td", { class: "wide" }, this.rowLink(entry)),
      );
    };
    const heads = ["", "player", "rating", "95 %", "", "by all matches", "games", ""].map((text, i) =>
      el("th", { scope: "col", class: (i >= 3 && i <= 5) || i === 7 ? "wide" : "" }, text),
    );
    const active = document.activeElement;
    const focused = this.table.contains(active) ? active?.closest("tr")?.dataset.entry : undefined;
    this.table.replaceChildren(el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows.map(line)));
    /** @type {HTMLElement | null} */ (
      focused && this.table.querySelector(`tr[data-entry="${focused}"] button`)
    )?.focus();
  }

  choose(id) {
    if (this.chosen === id) return;
    this.chosen = id;
    history.replaceState(null, "", `#/league/${encodeURIComponent(this.league.name)}?entry=${id}`);
    this.showTable();
    this.showEntry();
    this.drawChart();
  }

  // --- ratings over time ---------------------------------------------------------------------------------------------

  drawChart() {
    if (!this.league) return;
    const palette = colours();
    const shown = this.league.entries.filter(
      (entry) =>
        this.league.history[entry.id]?.length &&
        ((this.colour.get(entry.id) ?? null) !== null || entry.is_anchor || entry.id === this.chosen),
    );
    const lines = shown.map((entry) => {
      const points = this.league.history[entry.id];
      const ends = (sign) => points.map(([, , rating, deviation]) => rating + sign * 2 * deviation);
      const number = this.colour.get(entry.id) ?? null;
      return {
        id: entry.id,
        x: points.map(([period]) => period),
        columns: [ends(1), ends(-1), points.map(([, , rating]) => rating)],
        interval: true,
        label: entry.name,
        colour: number === null ? palette.yardstick : palette.lines[number],
        yardstick: entry.is_anchor,
        sparse: points.length < 30,
        unit: "",
      };
    });
    this.plot?.destroy();
    this.plot = null;
    this.keys.replaceChildren(
      ...lines.map((line) => {
        const lamp = el("i", { class: "key" });
        lamp.style.setProperty("--key", line.colour);
        const last = this.entries.get(line.id).rating;
        return el(
          "li",
          { "data-chosen": line.id === this.chosen ? "" : null },
          lamp,
          `${line.label} `,
          el("b", {}, whole(last)),
        );
      }),
    );
    if (!lines.length)
      return this.place.replaceChildren(el("p", { class: "empty-note" }, "No period has been rated yet."));
    this.place.replaceChildren();
    const { series, bands } = dressed(lines, 2);
    for (const [i, one] of series.entries())
      if (i && one.label === this.entries.get(this.chosen)?.name) one.width = 3.5;
    const axis = {
      stroke: palette.text,
      grid: { stroke: palette.grid, width: 1 },
      ticks: { show: false },
      font: letters().font,
    };
    this.plot = new uPlot(
      {
        width: Math.max(200, this.place.clientWidth),
        height: 300,
        legend: { show: false },
        cursor: { y: false, drag: { setScale: false } },
        scales: { x: { time: false } },
        series,
        bands,
        axes: [
          { ...axis, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? tick : "")) },
          ...verticalAxes(lines, axis, 44),
        ],
        hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx, lines)] },
      },
      joined(lines),
      this.place,
    );
    this.place.dataset.lines = lines.length;
  }

  /** The ratings under the cursor in the legend, or the newest ones. */
  tell(index, lines) {
    [...this.keys.children].forEach((key, i) => {
      const column = this.plot?.data[3 * i + 3];
      const value = index === null || index === undefined ? null : column?.[index];
      write(key.querySelector("b"), whole(value ?? this.entries.get(lines[i].id).rating));
    });
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: 300 });
  }

  // --- who beats whom ------------------------------------------------------------------------------------------------

  showMatrix() {
    const { entries: ids, cells } = this.league.payoff;
    const name = (id) => this.entries.get(id).name;
    const cell = (found, row, column) => {
      if (!found) return el("td", { class: "none" }, row === column ? "" : "·");
      const percent = Math.round(100 * found.score);
      const said = `${name(ids[row])} against ${name(ids[column])}: ${percent} % of ${whole(found.games)} games`;
      const made = el(
        "td",
        {
          title: `${said}, ${Math.round(100 * found.low)} to ${Math.round(100 * found.high)} % at 95 %, ${found.draws} drawn`,
          "data-sure": found.low > 0.5 || found.high < 0.5 ? "" : null,
        },
        percent,
      );
      made.style.setProperty("--score", `${100 * found.score}%`);
      return made;
    };
    this.matrix.replaceChildren(
      el(
        "table",
        { class: "payoff" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("td", {}),
            ids.map((id, i) => el("th", { scope: "col", title: name(id) }, i + 1)),
          ),
        ),
        el(
          "tbody",
          {},
          ids.map((id, row) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, el("small", {}, row + 1), name(id)),
              cells[row].map((found, column) => cell(found, row, column)),
            ),
          ),
        ),
      ),
      el("p", { class: "matrix-key" }, "loses", el("i", {}), "wins; pale where the 95 % interval holds one half"),
    );
  }

  // --- lineage and events --------------------------------------------------------------------------------------------

  showLineage() {
    const learned = this.league.entries.filter((entry) => entry.kind !== "scripted");
    const known = new Set(learned.map((entry) => entry.id));
    // Whoever learns goes on from its newest copy.
    const isCopy = (entry, agent) => entry.hash && entry.run === agent.name && entry.parent !== agent.id;
    const newest = (agent) => Math.max(...learned.filter((entry) => isCopy(entry, agent)).map((copy) => copy.id));
    const origin = (entry) => (entry.hash || newest(entry) < 0 ? entry.parent : newest(entry));
    const children = (id) => learned.filter((entry) => (known.has(origin(entry)) ? origin(entry) : null) === id);
    const branch = (id) => {
      const found = children(id).sort((a, b) => a.created - b.created);
      if (!found.length) return null;
      const item = (entry) =>
        el(
          "li",
          {},
          el(
            "button",
            { class: "entry-name", type: "button", "data-kind": entry.kind, onclick: () => this.choose(entry.id) },
            entry.name,
          ),
          el(
            "small",
            {},
            `${entry.role || KINDS[entry.kind]} · ${whole(entry.rating)}`,
            entry.step ? ` · step ${whole(entry.step)}` : "",
          ),
          branch(entry.id),
        );
      return el("ul", {}, found.map(item));
    };
    this.lineage.replaceChildren(branch(null) ?? el("p", { class: "empty-note" }, "Nobody here has learned yet."));
  }

  showEvents() {
    this.events.replaceChildren(
      ...this.league.events.map((event) =>
        el(
          "li",
          { "data-kind": event.kind },
          el("time", { title: new Date(1000 * event.time).toLocaleString() }, ago(Date.now() / 1000 - event.time)),
          el("b", {}, event.kind),
          el("span", {}, `${this.entries.get(event.entry)?.name ?? ""}: ${event.text}`),
        ),
      ),
    );
    if (this.events.parentElement) this.events.parentElement.hidden = !this.league.events.length;
  }

  // --- one entry -----------------------------------------------------------------------------------------------------

  showEntry() {
    const entry = this.entries.get(this.chosen);
    if (!entry) return this.detail.replaceChildren();
    const facts = [
      [
        "rating",
        entry.is_anchor
          ? `${whole(entry.rating)}, fixed: it is what 1500 means`
          : `${whole(entry.rating)} ± ${whole(2 * entry.deviation)}`,
      ],
      entry.strength === null || entry.is_anchor
        ? null
        : ["by all matches", `${whole(entry.strength)} ± ${whole(2 * entry.strength_deviation)}`],
      ["games", whole(entry.games)],
      entry.run ? ["comes from", `${entry.run}${entry.step ? `, step ${whole(entry.step)}` : ""}`] : null,
      entry.parent && this.entries.has(entry.parent) ? ["trained on from", this.entries.get(entry.parent).name] : null,
      entry.hash ? ["contents", entry.hash.slice(0, 16)] : null,
    ].filter((fact) => fact !== null);
    this.detail.dataset.entry = entry.id;
    this.detail.replaceChildren(
      el("h2", {}, entry.name),
      el(
        "small",
        {},
        entry.is_anchor ? "scripted, the anchor" : [KINDS[entry.kind], entry.role].filter(Boolean).join(", "),
      ),
      el(
        "dl",
        { class: "facts" },
        facts.map(([what, text]) => el("div", {}, el("dt", {}, what), el("dd", {}, text))),
      ),
      el("h3", {}, "Latest matches"),
      this.matches(entry),
      el("h3", {}, "How it plays"),
      this.style(entry),
    );
  }

  matches(entry) {
    const found = this.league.matches[entry.id] ?? [];
    if (!found.length) {
      const why =
        entry.kind === "agent" ? "It plays in training; its copies play rated matches." : "It has not played yet.";
      return el("p", { class: "empty-note" }, why);
    }
    return el(
      "ul",
      { class: "matches" },
      found.map((match) => {
        const rival = this.entries.get(match.opponent)?.name ?? "somebody";
        const [unit, both] = match.detail.kills ? ["kills", match.detail.kills] : ["points", match.detail.scores ?? []];
        const [mine, theirs] = match.is_first ? both : [...both].reverse();
        const result = RESULTS.get(match.score);
        return el(
          "li",
          { "data-result": result },
          el("b", {}, result),
          el(
            "span",
            {},
            `against ${rival}`,
            mine === undefined
              ? ""
              : el("small", {}, `${short(mine)} : ${short(theirs)} ${unit}, ${ago(Date.now() / 1000 - match.time)}`),
          ),
          this.watchLink(entry, match),
        );
      }),
    );
  }

  watchLink(entry, match) {
    const href = this.addressOf(entry, match);
    return href ? el("a", { class: "button watch", href }, "Watch") : el("small", {}, `map ${match.map}`);
  }

  /** The newest match of an entry that can be seen, if there is one. */
  rowLink(entry) {
    const href = (this.league.matches[entry.id] ?? []).map((match) => this.addressOf(entry, match)).find(Boolean);
    return href ? el("a", { class: "row-watch", href, "aria-label": `Watch ${entry.name}` }, "Watch") : null;
  }

  /** Where a match can be seen, if the game has a place for it. */
  addressOf(entry, match) {
    return linksOf(this.league.game).matchAddress?.(this.league, entry, match) ?? null;
  }

  style(entry) {
    const own = this.league.styles[entry.id];
    if (!own) return el("p", { class: "empty-note" }, "No match of it has been looked at yet.");
    const others = Object.entries(this.league.styles).filter(([id]) => Number(id) !== entry.id);
    const declared = this.league.style_metrics;
    const rest = Object.keys(own).filter((name) => !declared.some((metric) => metric.name === name));
    const metrics = [...declared, ...rest.map((name) => ({ name, unit: "", meaning: "", family: "Else" }))].filter(
      (metric) => own[metric.name] !== undefined,
    );
    const families = [...new Set(metrics.map((metric) => metric.family))];
    const near = Object.entries(this.league.distances[entry.id] ?? {}).sort((a, b) => a[1] - b[1])[0];
    return el(
      "div",
      { class: "style-report" },
      families.map((family) =>
        el(
          "section",
          {},
          el("h4", {}, family),
          metrics.filter((metric) => metric.family === family).map((metric) => this.figure(metric, own, others)),
        ),
      ),
      near
        ? el(
            "p",
            { class: "alike" },
            "Plays most like ",
            el("b", {}, this.entries.get(Number(near[0]))?.name),
            `, ${near[1].toFixed(2)} spreads away.`,
          )
        : null,
    );
  }

  /** One figure on a strip with everybody's: where this entry stands among them. */
  figure(metric, own, others) {
    const key = metric.name;
    const values = others.map(([, style]) => style[key]).filter((value) => value !== undefined);
    const [low, high] = [Math.min(own[key], ...values), Math.max(own[key], ...values)];
    const at = (value) => `${high > low ? (100 * (value - low)) / (high - low) : 50}%`;
    const mark = (value, kind) => {
      const made = el("i", { class: kind });
      made.style.setProperty("--at", at(value));
      return made;
    };
    const isFraction = metric.unit === "fraction";
    const text = isFraction ? withUnit(own[key], metric.unit) : short(Number(own[key].toPrecision(3)));
    return el(
      "div",
      { class: "figure", title: [metric.unit, metric.meaning].filter(Boolean).join(": "), "data-figure": key },
      el("span", {}, labelOf(metric)),
      el(
        "div",
        { class: "strip" },
        values.map((value) => mark(value, "other")),
        mark(own[key], "own"),
      ),
      el("output", {}, text),
    );
  }

  destroy() {
    this.gone = true;
    clearInterval(this.timer);
    this.watcher.disconnect();
    this.plot?.destroy();
    document.removeEventListener("theme", this.onTheme);
  }
}
