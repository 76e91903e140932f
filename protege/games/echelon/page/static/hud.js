// What stands over the picture: the race of the scores, who is alive, who killed whom, and one mech from the inside.

import { CLASSES, TEAMS } from "./battle.js";
import { short } from "/numbers.js";
import { el, svg, write } from "/page.js";

const FEED_LINES = 5;
const FEED_S = 14; // a kill stays in sight so long
const SHAPES = ["M0 -9L9 7L-9 7Z", "M0 -9L9 0L0 9L-9 0Z", "M-8 0A8 8 0 1 0 8 0A8 8 0 1 0 -8 0Z", "M-8 -8H8V8H-8Z"];
const ORDERS = ["", "focus fire", "advance", "hold", "rally", "cover"];
const BUTTONS = ["primary", "secondary", "tertiary", "special", "vent"];
const EWAR = ["", "jamming", "countering"];
const PARTS = ["forward", "strafe", "vertical", "turn"];
const NAMES = { projectile_hit: "shell" };

/** The sign of a class, as on the marks in the picture. */
export function sign(kind) {
  return svg(
    "svg",
    { viewBox: "-11 -11 22 22", class: "sign", "aria-hidden": "true" },
    svg("path", { d: SHAPES[kind] }),
  );
}

export const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Who is ahead and why, in one sentence. */
export function headline(battle, time) {
  if (time >= battle.duration) return verdict(battle);
  const { score, living, tonnage } = battle.standing(time);
  const gap = Math.abs(score[0] - score[1]);
  const leader = gap < 0.05 ? -1 : score[0] > score[1] ? 0 : 1;
  const holder = tonnage[0] > 0 && tonnage[1] > 0 ? 2 : tonnage[0] > 0 ? 0 : tonnage[1] > 0 ? 1 : -1;
  const heavier = TEAMS[tonnage[0] >= tonnage[1] ? 0 : 1];
  const zone =
    holder === 2
      ? `the zone is contested (${heavier} is heavier)`
      : holder < 0
        ? "nobody is in the zone"
        : `${holder === leader ? "it" : TEAMS[holder]} holds the zone`;
  const more = living[0] === living[1] ? -1 : living[0] > living[1] ? 0 : 1;
  const also =
    more === leader && holder === leader ? " and has" : `, ${more === 1 - leader ? "but " : ""}${TEAMS[more]} has`;
  const alive = more < 0 ? `, ${living[0]} mechs each` : `${also} ${living[more]} mechs against ${living[1 - more]}`;
  return `${leader < 0 ? "Level" : `${capital(TEAMS[leader])} leads by ${gap.toFixed(1)} s`}: ${zone}${alive}`;
}

/** How it ended. */
function verdict({ header, frames, now }) {
  const { winner, ending } = header.result;
  const how = ["where the recording ends", "by elimination", "by score", "when time was up"][ending];
  if (winner < 0) return `A draw ${how}`;
  const [blue, red] = [now.score[2 * frames - 2], now.score[2 * frames - 1]].map((value) => value.toFixed(1));
  return `${capital(TEAMS[winner])} (${header.players?.[winner] ?? "?"}) wins ${how}, ${blue} to ${red}`;
}

/** Score, zone, clock, teams and kills of one battle. `choose` is told which mech was clicked. */
export class Hud {
  constructor(choose) {
    this.choose = choose;
    /** @type {HTMLElement[][]} how many of each class are alive, by team */
    this.numbers = [];
    this.race = TEAMS.map(() => ({
      name: el("b", { class: "race-name" }),
      score: el("output", { class: "race-score" }),
      goal: el("small", { title: "the score that wins" }),
      bar: el("i", { class: "race-bar" }),
    }));
    this.clock = el("time", { class: "race-clock" });
    this.zone = el("div", { class: "zone-bar", role: "img" }, el("i"), el("i"));
    this.zoneText = el("span", { class: "zone-text" });
    this.head = el("p", { class: "headline" });
    this.rosters = TEAMS.map((team) => el("ul", { class: `roster ${team}`, "aria-label": `${team}'s mechs` }));
    this.counts = TEAMS.map((team) => el("p", { class: `counts ${team}` }));
    this.feed = el("ol", { class: "kills", "aria-label": "Kills" });
    const side = (team) =>
      el(
        "div",
        { class: `race-side ${TEAMS[team]}` },
        el("div", {}, this.race[team].name, el("span", {}, this.race[team].score, this.race[team].goal)),
        el("div", { class: "race-track" }, this.race[team].bar),
        this.counts[team],
      );
    this.element = el(
      "div",
      { class: "hud" },
      el(
        "div",
        { class: "race" },
        side(0),
        el("div", { class: "race-middle" }, this.clock, this.zone, this.zoneText),
        side(1),
      ),
      this.head,
      ...this.rosters,
      this.feed,
    );
  }

  take(battle) {
    this.battle = battle;
    this.kills = battle.moments.filter(({ kind }) => kind === "kill");
    this.shownKills = "";
    this.rows = battle.names.map((name, i) => {
      const bar = el("i");
      const row = el(
        "button",
        { type: "button", class: "mech", title: name, "aria-label": name, onclick: () => this.choose(i) },
        sign(battle.kinds[i]),
        el("span", { class: "mech-bar" }, bar),
      );
      return { row, bar };
    });
    TEAMS.forEach((_, team) => {
      write(this.race[team].name, battle.header.players?.[team] ?? TEAMS[team]);
      write(this.race[team].goal, ` / ${Number(battle.goal.toFixed(1))}`);
      this.rosters[team].replaceChildren(
        ...this.rows.filter((row, i) => battle.teams[i] === team).map(({ row }) => el("li", {}, row)),
      );
      this.numbers[team] = CLASSES.map(() => el("b"));
      this.counts[team].replaceChildren(
        ...CLASSES.map((name, kind) => el("span", { title: `${name}s alive` }, sign(kind), this.numbers[team][kind])),
      );
    });
  }

  update(time, chosen) {
    const { battle } = this;
    const { score, tonnage, classes } = battle.standing(time);
    write(this.clock, clock(time));
    TEAMS.forEach((_, team) => {
      write(this.race[team].score, score[team].toFixed(1));
      this.race[team].bar.style.setProperty("--share", String(Math.min(1, score[team] / battle.goal)));
      classes[team].forEach((count, kind) => write(this.numbers[team][kind], count));
    });
    const weight = tonnage[0] + tonnage[1];
    this.zone.style.setProperty("--blue-share", String(weight ? tonnage[0] / weight : 0));
    this.zone.style.setProperty("--red-share", String(weight ? tonnage[1] / weight : 0));
    const state = !weight
      ? "zone empty"
      : tonnage[0] && tonnage[1]
        ? "zone contested"
        : `zone ${TEAMS[tonnage[0] ? 0 : 1]}`;
    this.zone.setAttribute("aria-label", state);
    write(this.zoneText, state);
    write(this.head, headline(battle, time));
    this.rows.forEach(({ row, bar }, i) => {
      const alive = battle.isAlive(i, time);
      row.dataset.state = !alive
        ? "dead"
        : battle.at(i, "fallen", time) > 0
          ? "down"
          : battle.flag(i, "shut", time)
            ? "shut"
            : "";
      row.classList.toggle("painted", alive && battle.at(i, "painted", time) > 0);
      row.setAttribute("aria-pressed", String(i === chosen));
      bar.style.setProperty(
        "--share",
        alive ? battle.at(i, "hp", time) / battle.header.classes[battle.kinds[i]].hp : 0,
      );
    });
    this.updateFeed(time);
  }

  updateFeed(time) {
    const recent = this.kills.filter((kill) => kill.time <= time && kill.time > time - FEED_S).slice(-FEED_LINES);
    const key = recent.map((kill) => this.kills.indexOf(kill)).join();
    if (key === this.shownKills) return;
    this.shownKills = key;
    const { battle } = this;
    const name = (i) =>
      el(
        "b",
        { class: TEAMS[battle.teams[i]] },
        sign(battle.kinds[i]),
        `${CLASSES[battle.kinds[i]]} ${battle.header.mechs[i].rank + 1}`,
      );
    this.feed.replaceChildren(
      ...recent.map(({ who, whom, weapon, time: when }) => {
        const how =
          who < 0
            ? "burns"
            : weapon < 0
              ? "kills"
              : (NAMES[battle.header.weapons[weapon]] ?? battle.header.weapons[weapon]);
        return el(
          "li",
          {},
          el("time", {}, clock(when)),
          who >= 0 ? name(who) : null,
          el("span", {}, who < 0 ? "burnt:" : how),
          name(whom),
        );
      }),
    );
  }
}

// --- one mech --------------------------------------------------------------------------------------------------------

/** What the chosen mech is, sees, wants and does, and what a learned player thought of it. */
export class MechPanel {
  constructor(close) {
    this.title = el("h2");
    this.state = el("p", { class: "mech-state" });
    this.bars = this.meters(["health", "legs", "heat", "balance", "jet"]);
    this.action = Object.fromEntries(PARTS.map((name) => [name, el("i", { class: "swing" })]));
    this.buttons = BUTTONS.map((name) => el("i", { class: "lamp-button" }, name));
    this.target = el("b");
    this.order = el("b");
    this.ewar = el("b");
    this.contacts = el("ul", { class: "contacts" });
    this.channels = el("div", { class: "channels" });
    this.element = el(
      "aside",
      { class: "mech-panel", "aria-label": "The chosen mech", hidden: true },
      el(
        "header",
        {},
        this.title,
        el("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: close }, "✕"),
      ),
      this.state,
      el(
        "dl",
        { class: "meters" },
        Object.entries(this.bars).flatMap(([name, { bar, text }]) => [el("dt", {}, name), el("dd", {}, bar, text)]),
      ),
      el("h3", {}, "Does"),
      el(
        "dl",
        { class: "meters" },
        PARTS.flatMap((name) => [el("dt", {}, name), el("dd", {}, this.action[name])]),
      ),
      el("p", { class: "panel" }, this.buttons),
      el("p", {}, "target ", this.target),
      el("p", {}, "order ", this.order, " ", this.ewar),
      this.channels,
      el("h3", {}, "Knows of"),
      this.contacts,
    );
  }

  meters(names) {
    return Object.fromEntries(names.map((name) => [name, { bar: el("i", { class: "meter" }), text: el("span") }]));
  }

  update(battle, i, time) {
    this.element.hidden = i === null || i >= battle.count;
    if (this.element.hidden) return;
    const chassis = battle.header.classes[battle.kinds[i]];
    const mech = battle.header.mechs[i];
    write(this.title, capital(battle.names[i]));
    this.element.dataset.team = TEAMS[mech.team];
    const alive = battle.isAlive(i, time);
    write(this.state, alive ? this.condition(battle, i, time) : `destroyed at ${clock(battle.died[i])}`);
    const shares = {
      health: ["hp", chassis.hp],
      legs: ["leg_hp", chassis.leg_hp],
      heat: ["heat", chassis.heat_capacity],
      balance: ["stability", chassis.stability],
      jet: ["jet", chassis.jet ? 1 : 0],
    };
    for (const [name, [field, most]] of Object.entries(shares)) {
      const value = alive ? battle.at(i, field, time) : 0;
      this.bars[name].bar.style.setProperty("--share", most ? Math.min(1, value / most) : 0);
      write(
        this.bars[name].text,
        most ? `${short(Math.round(value * (most > 1 ? 1 : 100)))}${most > 1 ? ` / ${most}` : " %"}` : "none",
      );
    }
    for (const name of PARTS) this.action[name].style.setProperty("--value", alive ? battle.at(i, name, time) : 0);
    const pressed = alive ? battle.at(i, "buttons", time) : 0;
    this.buttons.forEach((lamp, n) => lamp.classList.toggle("on", Boolean((pressed >> n) & 1)));
    const focus = battle.at(i, "focus", time);
    write(
      this.target,
      alive && focus >= 0 ? `${battle.names[focus]}, ${this.distance(battle, i, focus, time)} m away` : "nobody",
    );
    write(this.order, ORDERS[battle.at(i, "order", time)] || "none");
    write(this.ewar, EWAR[battle.at(i, "ewar", time)] ? `· ${EWAR[battle.at(i, "ewar", time)]}` : "");
    this.showContacts(battle, i, time, alive);
    this.showChannels(battle, i, time);
  }

  condition(battle, i, time) {
    const painter = battle.at(i, "painter", time);
    const found = [
      battle.flag(i, "shut", time) && "shut down by heat",
      battle.at(i, "fallen", time) > 0 && "knocked down",
      battle.flag(i, "legged", time) && "legs shot",
      battle.at(i, "suppressed", time) > 0 && "suppressed",
      battle.at(i, "painted", time) > 0 && `painted${painter >= 0 ? ` by ${battle.names[painter]}` : ""}`,
      battle.flag(i, "warned", time) && "missile warning",
      battle.flag(i, "inside", time) && "in the zone",
    ].filter(Boolean);
    return found.join(", ") || "in good order";
  }

  distance(battle, i, j, time) {
    const [a, b] = [battle.pose(i, time), battle.pose(j, time)];
    return Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z).toFixed(0);
  }

  showContacts(battle, i, time, alive) {
    const foe = (j) => battle.teams[j] !== battle.teams[i] && battle.isAlive(j, time);
    const seen = new Set(alive ? battle.marked(i, "sees", time).filter(foe) : []);
    const known = alive ? [...new Set([...seen, ...battle.marked(i, "knows", time).filter(foe)])] : [];
    const rows = known
      .map((j) => ({ j, far: Number(this.distance(battle, i, j, time)) }))
      .sort((a, b) => a.far - b.far);
    while (this.contacts.children.length > rows.length) this.contacts.lastChild?.remove();
    rows.forEach(({ j, far }, n) => {
      const there = /** @type {HTMLElement | undefined} */ (this.contacts.children[n]);
      const line = there ?? this.contacts.appendChild(el("li", {}, el("span"), el("b")));
      write(line.children[0], battle.names[j]);
      write(line.children[1], `${far} m · ${seen.has(j) ? "in sight" : "on sensors"}`);
      line.dataset.seen = String(seen.has(j));
    });
    this.contacts.dataset.empty = String(rows.length === 0);
  }

  /** Values and reward parts, where a player told any. */
  showChannels(battle, i, time) {
    const channels = battle.header.channels ?? [];
    this.channels.hidden = !channels.length;
    if (!channels.length) return;
    if (this.channelsOf !== battle) {
      this.channelsOf = battle;
      this.channelRows = channels.map(({ name, numbers }) => {
        const rows = numbers.map((number) => ({ bar: el("i", { class: "swing" }), text: el("b"), number }));
        const values = battle.channels[name].filter(Number.isFinite);
        return {
          name,
          rows,
          size: numbers.length,
          most: values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6),
        };
      });
      this.channels.replaceChildren(
        ...this.channelRows.flatMap(({ name, rows }) => [
          el("h3", {}, { value: "Expects", reward: "Was rewarded for" }[name] ?? name),
          el(
            "dl",
            { class: "meters" },
            rows.flatMap(({ number, bar, text }) => [el("dt", {}, number), el("dd", {}, bar, text)]),
          ),
        ]),
      );
    }
    const row = battle.frameAt(time) * battle.count + i;
    for (const { name, rows, size, most } of this.channelRows) {
      rows.forEach(({ bar, text }, n) => {
        const value = battle.channels[name][row * size + n];
        bar.style.setProperty("--value", Number.isFinite(value) ? value / most : 0);
        write(text, Number.isFinite(value) ? short(value) : "–");
      });
    }
  }
}
