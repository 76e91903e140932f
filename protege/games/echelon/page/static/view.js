// Battles to watch: recordings of this server and of its runs, files dropped on the page, one alone or two side by side.

import { Battle, TEAMS } from "./battle.js";
import { CAMERAS } from "./camera.js";
import { MOST_BYTES } from "./file.js";
import { Hud, MechPanel, clock } from "./hud.js";
import { Stage } from "./scene.js";
import { Timeline } from "./timeline.js";
import { Line, address, ask, choice, el, field, liveAddress, toast, write } from "/page.js";

const GAME = "echelon";
const SPEEDS = [
  [0.25, "¼×"],
  [0.5, "½×"],
  [1, "1×"],
  [2, "2×"],
  [4, "4×"],
];
const HUD_MS = 140; // between two writings of what stands over the picture
const LONGEST_STEP_S = 0.25; // a page that was hidden goes on where it was
const NOTHING = "Drop a recording here, or make one: protege match echelon --blue hard --red medium --out fight.rec";

/** The name of a battle in a list, and where it comes from: settings of an address, or a file of the visitor's. */
const keyOf = ({ run, league, file, given }) =>
  given !== undefined ? `given ${given}` : run ? `run ${run} ${file}` : league ? `league ${league} ${file}` : "";
const NAMED_BY = ["given", "run", "league", "file"];

const button = (label, text, act) =>
  el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);

/** One battle on the page: picture and what stands over it. */
class Screen {
  /** @type {any} */
  battle = null;

  constructor(view) {
    this.canvas = el("canvas", {
      class: "battle-canvas",
      tabIndex: 0,
      role: "img",
      "aria-label": "The battle, in three dimensions",
    });
    this.hud = new Hud((i) => view.choose(i));
    this.element = el("div", { class: "battle-screen" }, this.canvas, this.hud.element);
    this.stage = new Stage(
      this.canvas,
      (i) => view.choose(i),
      () => view.setCamera("free"),
    );
    this.hud.element.hidden = true;
  }

  take(battle) {
    this.battle = battle;
    this.stage.take(battle);
    this.hud.take(battle);
    this.hud.element.hidden = false;
    this.canvas.dataset.name = battle.name;
  }

  destroy() {
    this.stage.destroy();
    this.element.remove();
  }
}

export default class BattleView {
  stages = el("div", { class: "battle-stages" });
  note = el("p", { class: "battle-note", role: "status" }, "looking for battles");
  panel = new MechPanel(() => this.choose(null));
  timeline = new Timeline((time) => this.seek(time));
  clock = el("output", { class: "film-clock" });
  lists = el("div", { class: "battle-lists" });
  playButton = button("Play or pause", "❚❚", () => this.play(!this.playing));
  cameras = el(
    "div",
    { class: "cameras", role: "group", "aria-label": "Camera" },
    CAMERAS.map((name) =>
      el("button", { type: "button", "data-camera": name, onclick: () => this.pressCamera(name) }, name),
    ),
  );
  picker = el("input", {
    type: "file",
    accept: ".rec",
    hidden: true,
    onchange: () => this.openFiles(this.picker.files ?? []),
  });
  /** @type {Screen[]} */
  screens = [];
  /** @type {{ settings: any, title: string }[]} battles to choose from */
  listed = [];
  /** @type {symbol[]} what was last asked for, in either place */
  asked = [];
  /** @type {any[]} settings of the battles on the page */
  shown = [];
  /** @type {any} a battle that is shown when the one on the page has ended */
  waiting = null;
  /** @type {number | null} */
  chosen = null;
  /** @type {Line | null} */
  line = null;
  newest = false; // whether a run's newest battle is shown as it comes
  /** @type {string | null} which battles a training was last heard to have */
  heardKey = null;
  time = 0;
  speed = 1;
  playing = true;
  team = 0;
  heat = "";
  drawnTime = -1;
  moving = 0; // until when a camera is on its way
  written = -Infinity; // when what stands over the picture was last written

  constructor(settings) {
    this.settings = settings;
    this.camera = CAMERAS.includes(settings.camera) ? settings.camera : "director";
    this.element = this.build();
    this.setCamera(this.camera);
    this.stop = new AbortController();
    const on = (target, type, act) => target.addEventListener(type, act, { signal: this.stop.signal });
    on(window, "keydown", (event) => this.key(event));
    for (const type of ["dragenter", "dragover"]) on(window, type, (event) => this.dragged(event, true));
    on(window, "dragleave", (event) => event.relatedTarget || this.dragged(event, false));
    on(window, "drop", (event) => this.dropped(event));
    this.before = performance.now();
    this.frame = requestAnimationFrame((now) => this.tick(now));
    this.begin();
  }

  build() {
    const maps = choice(
      [
        ["", "no map"],
        ["deaths", "deaths"],
        ["damage", "damage"],
      ],
      "",
      (kind) => this.showHeat(kind),
    );
    const element = el(
      "div",
      { class: "battle-view" },
      el("div", { class: "battle-main" }, this.stages, this.note, this.panel.element),
      el(
        "div",
        { class: "battle-controls" },
        el(
          "div",
          { class: "film" },
          button("Back to the start", "|◂", () => this.seek(0)),
          button("The moment before", "◂", () => this.jump(-1)),
          this.playButton,
          button("The next moment", "▸", () => this.jump(1)),
          choice(SPEEDS, 1, (speed) => (this.speed = Number(speed))),
          this.clock,
        ),
        this.timeline.element,
        el(
          "div",
          { class: "tools" },
          this.cameras,
          field("Heat map", maps),
          this.lists,
          el("button", { type: "button", onclick: () => this.picker.click() }, "Open a file"),
          this.picker,
        ),
      ),
    );
    return Object.assign(element, { view: this }); // for whoever wants to compare what is shown
  }

  // --- where battles come from ---

  async begin() {
    const { run } = this.settings;
    if (run) {
      this.newest = this.settings.file === undefined;
      this.line = new Line(liveAddress(GAME, "battles", { run }), {
        heard: (message) => this.arrived(message),
        patience: 30_000,
      });
      if (this.newest) return this.list();
    }
    await this.list();
    const wanted = keyOf(this.settings) ? this.settings : this.listed[0]?.settings;
    if (!wanted) return write(this.note, NOTHING);
    await this.open(wanted, 0);
    if (this.settings.beside !== undefined) await this.open({ given: this.settings.beside }, 1);
  }

  /** All that the server offers, for the two lists to choose from. */
  async list() {
    const about = await ask(address("games", GAME)).catch(() => null);
    this.offer(
      (about?.battles ?? []).map((one) => ({ settings: one, title: one.run ? `${one.run}: ${one.file}` : one.file })),
    );
  }

  offer(listed) {
    this.listed = listed;
    const options = (none) => [["", none], ...listed.map(({ settings, title }) => [keyOf(settings), title])];
    const pick = (place) => (key) => {
      const found = this.listed.find(({ settings }) => keyOf(settings) === key);
      this.newest = false;
      if (found) this.open(found.settings, place);
      else if (place === 1) this.closeSecond();
    };
    this.lists.replaceChildren(
      field("Battle", choice(options("choose"), keyOf(this.shown[0] ?? {}), pick(0))),
      field("Beside it", choice(options("nothing"), keyOf(this.shown[1] ?? {}), pick(1))),
    );
  }

  /** News from a running training: its battles, the newest first. */
  arrived(message) {
    if (typeof message === "string") return write(this.note, JSON.parse(message).error);
    const { battles } = JSON.parse(new TextDecoder().decode(message));
    const key = battles.map(keyOf).join();
    if (key === this.heardKey) return;
    this.heardKey = key;
    this.offer([
      ...battles.map((one) => ({ settings: one, title: `${one.run}: ${one.file}` })),
      ...this.listed.filter(({ settings }) => settings.run !== this.settings.run),
    ]);
    if (!battles.length) return write(this.note, `waiting for the first battle of ${this.settings.run}`);
    if (!this.newest || keyOf(battles[0]) === keyOf(this.shown[0] ?? {})) return;
    if (!this.screens.length || this.isOver()) this.open(battles[0], 0);
    else this.waiting = battles[0]; // shown when the one on the page has ended
  }

  async open(settings, place) {
    if (!this.screens.length) write(this.note, "loading the battle");
    const ticket = (this.asked[place] = Symbol("asked"));
    const listed = this.listed.find((one) => keyOf(one.settings) === keyOf(settings));
    const name = settings.file ?? listed?.settings.file ?? "the recording";
    try {
      const asked = NAMED_BY.filter((part) => settings[part] !== undefined).map((part) => [part, settings[part]]);
      const answer = await fetch(`${address("games", GAME, "file")}?${new URLSearchParams(asked)}`);
      if (!answer.ok)
        throw new Error((await answer.json().catch(() => ({}))).error ?? `the server answered ${answer.status}`);
      const contents = await answer.arrayBuffer();
      if (this.asked[place] === ticket) await this.show(contents, name, place, settings); // else another was chosen
    } catch (error) {
      this.refuse(error);
    }
  }

  async openFiles(files) {
    for (const [place, file] of [...files].slice(0, 2).entries()) {
      try {
        if (file.size > MOST_BYTES)
          throw new Error(
            `${file.name} has ${file.size.toLocaleString("en-US")} bytes, recordings have at most 67,108,864: not a battle`,
          );
        this.newest = false;
        await this.show(await file.arrayBuffer(), file.name, place, { file: file.name });
      } catch (error) {
        this.refuse(error);
      }
    }
  }

  /** Put a battle in the first or second place. */
  async show(buffer, name, place, settings) {
    const battle = await Battle.open(buffer, name);
    if (this.stop.signal.aborted) return;
    if (place === 0) this.closeSecond();
    if (place === 1 && this.screens[0]?.battle.header.recipe?.hashes?.map !== battle.header.recipe?.hashes?.map) {
      toast("The two battles are on different maps");
    }
    place = Math.min(place, this.screens.length);
    this.shown[place] = settings;
    if (!this.screens[place]) {
      this.screens[place] = new Screen(this);
      this.stages.append(this.screens[place].element);
    }
    this.screens[place].take(battle);
    this.stages.dataset.count = String(this.screens.length);
    if (place === 0) {
      this.chosen = null;
      this.time = 0;
      this.play(true);
    }
    this.waiting = null;
    this.timeline.take(this.battles);
    for (const { stage } of this.screens) {
      const [first] = this.screens;
      if (stage.rig && first.stage.rig) stage.rig.hands = first.stage.rig.hands; // both are moved by the same hand
      stage.showHeat(this.heat);
    }
    this.setCamera(this.camera);
    this.offer(this.listed);
    write(this.note, "");
    this.note.classList.remove("bad");
    this.element.dataset.ready = String(place + 1);
  }

  closeSecond() {
    this.screens.splice(1).forEach((screen) => screen.destroy());
    this.shown.splice(1);
    this.stages.dataset.count = String(this.screens.length);
    if (this.screens.length) this.timeline.take(this.battles);
  }

  /** One line that says what is wrong; what is shown stays. */
  refuse(error) {
    write(this.note, error.message);
    this.note.classList.add("bad");
    this.element.dataset.refused = error.message;
    if (this.screens.length) {
      toast(error.message, "bad");
      write(this.note, "");
    }
  }

  get battles() {
    return this.screens.map(({ battle }) => battle);
  }

  dragged(event, over) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.element.classList.toggle("dragging", over);
  }

  dropped(event) {
    this.dragged(event, false);
    if (event.dataTransfer?.files.length) this.openFiles(event.dataTransfer.files);
  }

  // --- time ---

  isOver() {
    return this.time >= Math.max(0, ...this.battles.map(({ duration }) => duration));
  }

  tick(now) {
    this.frame = requestAnimationFrame((next) => this.tick(next));
    const seconds = Math.min(LONGEST_STEP_S, (now - this.before) / 1000);
    this.before = now;
    if (!this.screens.length) return;
    if (this.playing) {
      const { duration } = this.timeline;
      this.time = Math.min(duration, this.time + seconds * this.speed);
      if (this.time >= duration) this.end();
    }
    const moved = this.playing || this.drawnTime !== this.time || this.moving > now;
    if (moved || this.screens.some(({ stage }) => stage.stale)) {
      for (const { stage, battle } of this.screens) {
        stage.draw(Math.min(this.time, battle.duration), this.chosen, seconds, this.playing);
      }
      if (this.drawnTime !== this.time) this.moving = now + 900; // a camera on its way arrives also when time stands
      this.drawnTime = this.time;
    }
    if (now - this.written >= HUD_MS) this.write(now);
  }

  end() {
    const next = this.waiting;
    this.waiting = null;
    this.play(false);
    if (next) this.open(next, 0);
  }

  write(now) {
    this.written = now;
    for (const { hud, battle } of this.screens) hud.update(Math.min(this.time, battle.duration), this.chosen);
    this.panel.update(this.screens[0].battle, this.chosen, this.time);
    this.timeline.show(this.time);
    write(this.clock, `${clock(this.time)} / ${clock(this.timeline.duration)}`);
    this.element.dataset.time = this.time.toFixed(2);
  }

  play(on) {
    if (on && this.screens.length && this.isOver()) this.time = 0;
    this.playing = on;
    this.refresh();
    this.playButton.textContent = on ? "❚❚" : "▶";
  }

  seek(time) {
    this.time = Math.min(this.timeline.duration, Math.max(0, time));
    for (const { stage } of this.screens) if (stage.rig) stage.rig.jump = true;
  }

  /** To the next moment worth a look, or the one before: a second ahead of it. */
  jump(way) {
    const times = this.battles[0]?.moments.map(({ time }) => Math.max(0, time - 1)) ?? [];
    const next =
      way > 0 ? times.find((time) => time > this.time + 0.3) : times.findLast((time) => time < this.time - 0.8);
    if (next !== undefined) this.seek(next);
  }

  // --- what is looked at ---

  choose(i) {
    this.chosen = i === this.chosen ? null : i;
    if (this.camera === "follow" && this.chosen === null) this.setCamera("director");
    this.refresh();
  }

  pressCamera(name) {
    if (name === "team" && this.camera === "team") this.team = 1 - this.team;
    if (name === "follow" && this.chosen === null) this.chosen = this.busiest();
    this.setCamera(name);
  }

  /** Somebody worth following when nobody is chosen: who did the most damage of those alive. */
  busiest() {
    const battle = this.battles[0];
    if (!battle) return null;
    const alive = battle.names.map((_, i) => i).filter((i) => battle.isAlive(i, this.time));
    const dealt = (i) => battle.at(i, "dealt", battle.duration);
    return alive.sort((a, b) => dealt(b) - dealt(a))[0] ?? null;
  }

  setCamera(name) {
    this.camera = name;
    for (const { rig } of this.screens.map(({ stage }) => stage)) {
      if (!rig) continue;
      rig.team = this.team;
      rig.set(name);
    }
    for (const pressed of /** @type {HTMLCollectionOf<HTMLElement>} */ (this.cameras.children)) {
      const { camera } = pressed.dataset;
      pressed.setAttribute("aria-pressed", String(camera === name));
      if (camera === "team") pressed.textContent = name === "team" ? `team: ${TEAMS[this.team]}` : "team";
    }
    this.refresh();
  }

  showHeat(kind) {
    this.heat = kind;
    for (const { stage } of this.screens) stage.showHeat(kind);
  }

  refresh() {
    this.written = -Infinity;
    for (const { stage } of this.screens) stage.stale = true;
  }

  /** The whole state of the world as shown, for whoever wants to compare. */
  fingerprint() {
    return this.screens.map(({ stage, battle }) => battle.fingerprint(stage.time)).join("; ");
  }

  key(event) {
    if (
      event.target.closest?.("input:not([type=range]), select, textarea, dialog") ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey
    )
      return;
    const far = event.shiftKey ? 5 : 0.25;
    const act = {
      " ": () => this.play(!this.playing),
      ArrowLeft: () => this.seek(this.time - far),
      ArrowRight: () => this.seek(this.time + far),
      Home: () => this.seek(0),
      End: () => this.seek(Infinity),
      j: () => this.jump(-1),
      k: () => this.jump(1),
      Escape: () => this.chosen !== null && this.choose(null),
      ...Object.fromEntries(CAMERAS.map((name, n) => [String(n + 1), () => this.pressCamera(name)])),
    }[event.key];
    if (!act || (event.key === " " && event.target.closest?.("button"))) return;
    event.preventDefault();
    act();
  }

  destroy() {
    this.stop.abort();
    cancelAnimationFrame(this.frame);
    this.line?.close();
    this.timeline.destroy();
    for (const screen of this.screens) screen.destroy();
  }
}
