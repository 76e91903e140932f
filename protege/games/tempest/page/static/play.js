// Your own game, with the champion on the same seed beside it, and the table of high scores.

import { whole } from "/numbers.js";
import { address, ask, choice, el, field, liveAddress, write } from "/page.js";
import { Audience, GAME, tube } from "./audience.js";
import { Hands } from "./hands.js";
import { Screen } from "./tube.js";
import { commandName, lives } from "./words.js";

/** Your game, and the champion's beside it. */
export default class PlayView {
  state = ""; // "ready", "playing", "paused", "over", "entering"
  /** @type {{ mine: any, theirs: any, place: number | null }} what was last heard of both games */
  last = { mine: null, theirs: null, place: null };
  rivalName = "champion";

  constructor() {
    this.mine = tube("your game");
    this.theirs = tube("the champion's game");
    this.overlay = el("div", { class: "overlay" });
    this.myFigures = el("p", { class: "tube-figures" });
    this.theirFigures = el("p", { class: "tube-figures" });
    this.rival = el("h2", {}, "champion");
    this.lead = el("p", { class: "lead" });
    this.advice = el("p", { class: "tube-figures advice-line" });
    this.note = el("p", { class: "stage-note", role: "status" });
    this.table = el("table", { class: "scores" });
    this.level = choice([[1, "level 1"]], 1, () => {});
    this.element = el(
      "div",
      { class: "view play-view" },
      el(
        "section",
        { class: "mine", "aria-label": "Your game" },
        el("div", { class: "cell" }, this.mine, this.overlay),
        this.myFigures,
        this.touch(),
        this.note,
      ),
      el(
        "aside",
        { class: "theirs" },
        this.rival,
        el("div", { class: "cell" }, this.theirs),
        this.theirFigures,
        this.lead,
        this.advice,
        el("h2", {}, "High scores"),
        this.table,
        el("h2", {}, "Keys"),
        el(
          "dl",
          { class: "keys" },
          [
            ["← →  or  A D", "turn"],
            ["space, X", "fire"],
            ["Z, shift", "superzapper"],
            ["mouse, wheel", "turn; buttons fire and zap"],
            ["P, esc", "pause"],
          ].map(([keys, what]) => el("div", {}, el("dt", {}, keys), el("dd", {}, what))),
        ),
      ),
    );
    this.audience = new Audience(
      liveAddress(GAME, "play"),
      [new Screen(this.mine), new Screen(this.theirs)],
      (said) => this.hear(said),
      (reason) => {
        write(this.note, reason || "the connection is lost, trying again; the game is gone with it");
        this.state = "";
      },
    );
    this.hands = new Hands(
      this.mine,
      (words) => this.audience.say(words),
      () => this.pause(),
    );
    this.onKey = (event) => {
      const free = !event.target.closest?.("input, select, button, dialog");
      if (event.key === "Enter" && free && this.state !== "playing") this.start();
    };
    window.addEventListener("keydown", this.onKey);
    this.readScores();
    this.readLevels();
  }

  async readLevels() {
    const { start_levels: levels } = await ask(address("games", GAME));
    this.level.replaceChildren(...levels.map((level) => el("option", { value: level }, `level ${level}`)));
  }

  touch() {
    const hold = (label, control) =>
      el(
        "button",
        {
          type: "button",
          class: `touch ${control}`,
          onpointerdown: (event) => {
            event.preventDefault();
            this.hands.press(control, true);
          },
          onpointerup: () => this.hands.press(control, false),
          onpointercancel: () => this.hands.press(control, false),
        },
        label,
      );
    return el(
      "div",
      { class: "touches" },
      hold("◀", "left"),
      hold("▶", "right"),
      hold("zap", "zap"),
      hold("fire", "fire"),
    );
  }

  start() {
    this.mine.focus();
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
    this.asked = { level: Number(this.level.value), seed: Math.floor(Math.random() * 2 ** 31) };
    this.audience.say({ start: this.asked });
  }

  pause() {
    if (this.state === "playing" || this.state === "paused") this.audience.say({ pause: this.state === "playing" });
  }

  hear(said) {
    const [mine, theirs] = said.games;
    const { running, paused, place } = said.human;
    write(this.rival, `Beside you: ${said.player}`);
    this.rivalName = said.player;
    write(this.note, said.note);
    write(this.myFigures, running ? `${whole(mine.score)} · level ${mine.level} · ${lives(mine.lives)}` : "");
    write(this.theirFigures, running ? `${whole(theirs.score)} · level ${theirs.level} · ${lives(theirs.lives)}` : "");
    const lead = mine.score - theirs.score;
    write(this.lead, !running ? "" : lead >= 0 ? `you lead by ${whole(lead)}` : `${whole(-lead)} behind`);
    this.lead.classList.toggle("good", lead > 0);
    write(this.advice, running && mine.values ? `in your place it would ${commandName(mine.values[0])}` : "");
    const state = !running ? "ready" : place ? "entering" : mine.over ? "over" : paused ? "paused" : "playing";
    Object.assign(this.element.dataset, { state, score: mine.score, lane: mine.lane });
    if (state === this.state) return;
    this.state = state;
    this.last = { mine, theirs, place };
    this.showOverlay();
  }

  showOverlay() {
    const { mine, theirs, place } = this.last;
    const begin = (text) => el("button", { type: "button", class: "primary start", onclick: () => this.start() }, text);
    const result = () =>
      el(
        "p",
        {},
        `${whole(mine.score)} points, level ${mine.level}. `,
        theirs.over
          ? `The ${this.rivalName} made ${whole(theirs.score)}.`
          : `The ${this.rivalName} has ${whole(theirs.score)} and goes on.`,
      );
    const content = {
      ready: () => [
        el("h1", {}, "Your turn"),
        el("p", {}, "The same game is dealt to both of you."),
        field("Start at", this.level),
        begin("Start"),
      ],
      paused: () => [
        el("h1", {}, "Paused"),
        el("button", { type: "button", class: "primary", onclick: () => this.pause() }, "Go on"),
      ],
      over: () => [el("h1", {}, "Game over"), result(), field("Start at", this.level), begin("Again")],
      entering: () => [el("h1", {}, `Place ${place}`), result(), this.initials()],
      playing: () => null,
    }[this.state]();
    this.overlay.hidden = content === null;
    this.overlay.replaceChildren(...(content ?? []));
    (this.overlay.querySelector("input") ?? this.overlay.querySelector("button"))?.focus();
    if (this.state === "over") setTimeout(() => this.readScores(), 300);
  }

  initials() {
    const input = el("input", {
      maxLength: 3,
      size: 4,
      autocomplete: "off",
      spellcheck: false,
      "aria-label": "Your initials",
      class: "initials",
    });
    return el(
      "form",
      {
        onsubmit: (event) => {
          event.preventDefault();
          this.audience.say({ initials: input.value });
        },
      },
      input,
      el("button", { class: "primary" }, "Enter"),
    );
  }

  async readScores() {
    const scores = await ask(address("games", GAME, "scores")).catch(() => []);
    const rows = scores.map((line, i) =>
      el(
        "tr",
        {},
        el("td", {}, i + 1),
        el("th", { scope: "row" }, line.initials),
        el("td", {}, whole(line.score)),
        el("td", {}, `level ${line.level}`),
      ),
    );
    this.table.replaceChildren(el("tbody", {}, rows.length ? rows : el("tr", {}, el("td", {}, "nobody yet"))));
  }

  destroy() {
    window.removeEventListener("keydown", this.onKey);
    this.hands.destroy();
    this.audience.close();
  }
}
