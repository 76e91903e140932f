// The live view: a player's games, its reasons, and its games on film.

import { short, whole } from "/numbers.js";
import { address, ask, choice, el, field, liveAddress, write } from "/page.js";
import { Audience, GAME, tube } from "./audience.js";
import { Screen } from "./tube.js";
import { commandName, lives } from "./words.js";

/**
 * The live view: a player's games, those of an arcade server's clients, or one evaluation game on film; and why the
 * player does what it does.
 */
export default class LiveView {
  /** @type {ReturnType<LiveView["buildReasons"]> | null} */
  parts = null;
  /** @type {Audience | null} */
  audience = null;
  /** @type {HTMLButtonElement | null} there while a film is shown */
  playButton = null;
  /** @type {{ paused: boolean } | null} */
  filmed = null;
  clock = el("output", { class: "film-clock" });
  scrub = el("input", {
    type: "range",
    min: 0,
    max: 1,
    value: 0,
    "aria-label": "Position in the game",
    oninput: () => {
      this.scrubbing = performance.now();
      this.audience?.say({ seek: Number(this.scrub.value) });
    },
  });
  scrubbing = -Infinity; // when the slider was last moved
  rate = 27; // ticks a second

  constructor(settings) {
    this.settings = { player: "champion", games: "1", level: "1", kind: "", seed: "1", number: "0", ...settings };
    if (!["watch", "arcade", "film", "recording"].includes(this.settings.kind)) this.settings.kind = "";
    this.stage = el("div", { class: "stage" });
    this.reasons = el("aside", { class: "reasons", "aria-label": "What the player does and why" });
    this.tools = el("form", { class: "tools", onsubmit: (event) => event.preventDefault() });
    this.note = el("p", { class: "stage-note", role: "status" });
    this.film = el("div", { class: "film", hidden: true });
    this.element = el(
      "div",
      { class: "view live-view" },
      this.tools,
      el("div", { class: "stage-side" }, this.stage, this.note, this.film),
      this.reasons,
    );
    this.onKey = (event) => this.key(event);
    window.addEventListener("keydown", this.onKey);
    this.build();
  }

  async build() {
    const { settings } = this;
    const nothing = { players: [], recordings: {}, arcades: [], grid: [1], rate: 27 };
    const { players, recordings, arcades, grid, rate } = await ask(address("games", GAME)).catch(() => nothing);
    this.rate = rate;
    if (!players.includes(settings.player)) players.unshift(settings.player);
    const arcade = arcades.find(({ player }) => player === settings.player);
    if (!settings.kind) Object.assign(settings, arcade ? { kind: "arcade", server: arcade.server } : { kind: "watch" });
    const servers = new Set(arcades.map(({ server }) => server));
    if (settings.kind === "arcade") servers.add(settings.server);
    const alive = settings.kind === "watch" || settings.kind === "arcade";
    const films = recordings[settings.player] ?? [];
    const set = (name) => (value) => this.change({ [name]: value });
    const number = (name, least, most) =>
      el("input", {
        type: "number",
        min: least,
        max: most,
        value: settings[name],
        onchange: (event) => set(name)(event.target.value),
      });
    this.tools.replaceChildren(
      settings.kind === "arcade"
        ? ""
        : field(
            "Player",
            choice(
              players.map((name) => [name, name]),
              settings.player,
              set("player"),
            ),
          ),
      field(
        "Show",
        choice(
          [
            ["watch", "live"],
            ["film", "an evaluation game"],
            ...films.map((file) => [`recording ${file}`, file]),
            ...[...servers].map((server) => [`arcade ${server}`, `arcade clients, port ${server}`]),
          ],
          [settings.kind, { recording: settings.recording, arcade: settings.server }[settings.kind]]
            .filter(Boolean)
            .join(" "),
          (value) => {
            const [kind, ...which] = value.split(" ");
            this.change({ kind, recording: which.join(" "), server: which.join(" ") });
          },
        ),
      ),
      alive
        ? field(
            "Games",
            choice(
              grid.map((size) => [size, size]),
              settings.games,
              set("games"),
            ),
          )
        : "",
      settings.kind === "film" ? field("Seed", number("seed", 0, 2 ** 31 - 1)) : "",
      settings.kind === "film" ? field("Game", number("number", 0, 999_999)) : "",
      settings.kind === "watch" || settings.kind === "film" ? field("Level", number("level", 1, 99)) : "",
      alive
        ? el(
            "button",
            { type: "button", class: "pause", "aria-pressed": "false", onclick: () => this.pause() },
            "Pause",
          )
        : "",
    );
    if (!alive) this.buildFilm();
    this.start();
  }

  change(settings) {
    const asked = { ...this.settings, ...settings };
    if (settings.player && asked.kind === "recording") asked.kind = "watch"; // it belongs to the other player
    if (settings.player) delete asked.league; // so does the league
    const kept = {
      watch: ["player", "kind", "games", "level", "league"],
      arcade: ["player", "kind", "server", "games"],
      film: ["player", "kind", "seed", "number", "level", "league"],
      recording: ["player", "kind", "recording"],
    }[asked.kind];
    const given = kept.filter((name) => asked[name] !== undefined);
    location.hash = `/${GAME}/live?${new URLSearchParams(given.map((name) => [name, asked[name]]))}`;
  }

  start() {
    const { kind, player, games, level, seed, number, recording, server, league } = this.settings;
    const count = kind === "watch" || kind === "arcade" ? Number(games) : 1;
    const whose = kind === "arcade" ? "the arcade clients" : player;
    const cells = Array.from({ length: count }, (_, i) => tube(`game ${i + 1} of ${whose}`));
    this.stage.style.setProperty("--across", String(Math.round(Math.sqrt(count))));
    this.element.dataset.kind = kind;
    this.stage.replaceChildren(...cells);
    const screens = cells.map((canvas) => new Screen(canvas, { fine: count <= 4 }));
    const asked = {
      watch: { player, games, level, ...(league && { league }) },
      arcade: { server, games },
      film: { player, level, seed, game: number, ...(league && { league }) },
      recording: { player, recording },
    }[kind];
    write(this.note, "setting up the game");
    this.audience = new Audience(
      liveAddress(GAME, kind === "recording" ? "film" : kind, asked),
      screens,
      (said) => {
        write(this.note, said.note);
        this.explain(said);
        if (said.film) this.showFilm(said.film);
      },
      (reason) => {
        write(this.note, reason || "the connection is lost, trying again");
      },
      () => this.parts?.attention.checked ?? false,
    );
  }

  pause() {
    const button = /** @type {HTMLElement} */ (this.tools.querySelector(".pause"));
    const resting = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(resting));
    button.textContent = resting ? "Go on" : "Pause";
    if (resting) this.audience?.rest();
    else this.audience?.begin();
  }

  /** What the first game's player did in the last frame. */
  explain(said) {
    const [game] = said.games;
    if (!game) return;
    this.parts ??= this.buildReasons();
    const { control, action, advice, spin, fire, zap, heading, values, figures, gaze } = this.parts;
    if (said.games.some((one) => one.gaze)) gaze.hidden = false;
    control.dataset.control = game.control;
    write(control, game.control || "–");
    write(figures.score, whole(game.score));
    write(figures.level, game.level);
    write(figures.lives, lives(game.lives));
    write(figures.frame, whole(game.frame));
    if (!game.action) return;
    write(action, commandName(game.action));
    const same = game.advice.every((part, i) => part === game.action[i]);
    write(advice, commandName(game.advice));
    advice.classList.toggle("differs", !same);
    spin.style.setProperty("--turn", `${-game.action[2] * 5}deg`);
    fire.classList.toggle("on", Boolean(game.action[0]));
    zap.classList.toggle("on", Boolean(game.action[1]));
    values.hidden = heading.hidden = !game.values;
    if (!game.values) return;
    const [low, high] = game.range;
    game.values.forEach(([f, z, s, value], i) => {
      const line = values.children[i] ?? values.appendChild(el("li", {}, el("span"), el("b"), el("i")));
      write(line.children[0], commandName([f, z, s]));
      write(line.children[1], short(value));
      const bar = /** @type {HTMLElement} */ (line.children[2]);
      bar.style.setProperty("--fraction", String((value - low) / (high - low || 1)));
      if (game.probabilities) this.showProbabilities(line, game.probabilities[i], game.support);
    });
  }

  /** How likely a move leads to how much: a small hill over the range of returns that has any probability at all. */
  showProbabilities(line, probabilities, [low, high]) {
    const hill =
      line.querySelector("canvas") ?? line.appendChild(el("canvas", { class: "probabilities", role: "img" }));
    const wide = (hill.width = Math.max(1, Math.round(hill.clientWidth * devicePixelRatio)));
    const tall = (hill.height = Math.max(1, Math.round(hill.clientHeight * devicePixelRatio)));
    const context = hill.getContext("2d");
    context.fillStyle = getComputedStyle(hill).color;
    const most = Math.max(...probabilities);
    const bar = wide / probabilities.length;
    probabilities.forEach((probability, i) => {
      const height = (tall * probability) / most;
      context.fillRect(i * bar, tall - height, Math.max(1, bar - 1), height);
    });
    const at = low + ((high - low) * probabilities.indexOf(most)) / (probabilities.length - 1);
    hill.setAttribute("aria-label", `most likely return ${short(at)} of ${short(low)} to ${short(high)}`);
    hill.title = `returns from ${short(low)} to ${short(high)}, most likely ${short(at)}`;
  }

  buildReasons() {
    const attention = el("input", { type: "checkbox", checked: true });
    const parts = {
      attention,
      gaze: el("label", { class: "gaze", hidden: true }, attention, " attention from lanes to enemies"),
      control: el("b", { class: "control" }),
      action: el("b", { class: "action" }),
      advice: el("b", { class: "advice" }),
      spin: el("i", { class: "knob" }),
      fire: el("i", { class: "lamp-button" }, "fire"),
      zap: el("i", { class: "lamp-button" }, "zap"),
      values: el("ol", { class: "values" }),
      heading: el("h3", {}, "Best actions by value"),
      figures: Object.fromEntries(["score", "level", "lives", "frame"].map((name) => [name, el("dd")])),
    };
    const figures = Object.entries(parts.figures).map(([name, value]) => el("div", {}, el("dt", {}, name), value));
    this.reasons.replaceChildren(
      el("h2", {}, "At the controls: ", parts.control),
      el("dl", { class: "figures" }, figures),
      el("div", { class: "panel" }, parts.spin, parts.fire, parts.zap),
      el("p", {}, el("span", {}, "does "), parts.action),
      el("p", {}, el("span", {}, "teacher says "), parts.advice),
      parts.gaze,
      parts.heading,
      parts.values,
    );
    return parts;
  }

  // --- films: play, pause, step, scrub ---

  buildFilm() {
    const button = (label, text, act) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    this.playButton = button("Play or pause", "❚❚", () => this.audience?.say({ pause: !this.filmed?.paused }));
    this.film.replaceChildren(
      button("Back to the start", "|◂", () => this.audience?.say({ seek: 0 })),
      button("One tick back", "◂", () => this.audience?.say({ step: -1 })),
      this.playButton,
      button("One tick on", "▸", () => this.audience?.say({ step: 1 })),
      choice(
        [
          [0.25, "¼×"],
          [0.5, "½×"],
          [1, "1×"],
          [2, "2×"],
          [4, "4×"],
          [8, "8×"],
        ],
        1,
        (speed) => this.audience?.say({ speed: Number(speed) }),
      ),
      this.scrub,
      this.clock,
    );
    this.film.hidden = false;
  }

  showFilm(film) {
    this.filmed = film;
    if (this.playButton) this.playButton.textContent = film.paused ? "▶" : "❚❚";
    this.scrub.max = String(Math.max(1, film.ticks));
    if (performance.now() - this.scrubbing >= 400) this.scrub.value = film.tick;
    this.scrub.setAttribute("aria-valuetext", `tick ${film.tick} of ${film.ticks}`);
    const clock = (ticks) =>
      `${Math.floor(ticks / this.rate / 60)}:${String(Math.floor((ticks / this.rate) % 60)).padStart(2, "0")}`;
    this.clock.value = `${clock(film.tick)} / ${clock(film.ticks)}${film.complete ? "" : " and counting"}`;
    this.film.dataset.tick = film.tick;
  }

  key(event) {
    if (!this.playButton || event.target.closest?.("input, select, textarea, button")) return;
    const words = {
      " ": { pause: !this.filmed?.paused },
      ArrowLeft: { step: -1 },
      ArrowRight: { step: 1 },
      Home: { seek: 0 },
    }[event.key];
    if (!words) return;
    event.preventDefault();
    this.audience?.say(words);
  }

  destroy() {
    window.removeEventListener("keydown", this.onKey);
    this.audience?.close();
  }
}
