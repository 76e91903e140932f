// A battle at any moment: where everybody is, what flies, what burns, how the map stands. Nothing here draws.
//
// Time runs in seconds from the start. Everything but the map is a function of time alone, and the map is brought to a
// time by changes that can be undone, so going back shows the same world as coming from the start.

import { checksum, unpackRecording } from "./file.js";

const TICKS = 20; // a second
export const TEAMS = ["blue", "red"];
export const CLASSES = ["scout", "light", "medium", "heavy"];
const LAUNCHES = new Set(["missile_launch", "kinetic_fire", "smoke_launch"]);
const ENDS = new Set(["projectile_hit", "explosion", "smoke_cloud", "ams_intercept"]);
const SHOT_SPEED = 25; // voxels a second, of one that hits a wall before any frame shows it
const CONTEST_GAP = 4; // seconds between two fights for the zone that are told apart

export class Battle {
  static async open(buffer, name) {
    return new Battle(await unpackRecording(buffer, name), name);
  }

  /** @type {any[]} events in the order of time */
  happened = [];
  /** @type {any[]} shots from muzzle to end, in the order of their launches */
  flights = [];
  /** @type {{ time: number, cell: number, before: number, after: number }[]} of voxels, in the order of time */
  changed = [];
  applied = 0; // changes that the map holds now
  died = new Float64Array(0); // when each mech died
  walked = new Float32Array(0); // how far each has walked by each frame
  times = new Float64Array(0); // of what happened
  /** @type {any[]} what is worth a mark on the timeline and a look by the director */
  moments = [];

  /**
   * @param {{ header: any, start: Uint8Array, groups: Record<string, any> }} recording
   * @param {string} name
   */
  constructor({ header, start, groups }, name) {
    const { mechs, shots, clouds, events, changes, now, channels } = groups;
    this.header = header;
    this.name = name;
    this.mechs = mechs;
    this.shots = shots;
    this.clouds = clouds;
    this.events = events;
    this.changes = changes;
    this.now = now;
    this.channels = channels;
    this.X = header.size[0];
    this.Y = header.size[1];
    this.Z = header.size[2];
    this.count = header.mechs.length;
    this.frames = header.frames;
    this.step = header.seconds_per_frame;
    this.duration = (this.frames - 1) * this.step;
    this.goal = header.score_to_win ?? 0.5 * header.length * this.step;
    this.jamRange = header.jam_range ?? 50;
    this.start = start;
    this.grid = start.slice();
    this.kinds = header.mechs.map((mech) => mech.kind);
    this.teams = header.mechs.map((mech) => mech.team);
    this.names = header.mechs.map((mech) => `${TEAMS[mech.team]} ${CLASSES[mech.kind]} ${mech.rank + 1}`);
    this.offsets = Object.fromEntries(header.lists.map((list) => [list, sums(groups[list].count)]));
    this.listEvents();
    this.listFlights();
    this.listChanges();
    this.listWalks();
    this.listMoments();
  }

  // --- reading once ---

  listEvents() {
    const { events, header, offsets } = this;
    const names = header.events;
    this.died = new Float64Array(this.count).fill(Infinity);
    for (let frame = 0; frame < this.frames; frame++) {
      for (let i = offsets.events[frame]; i < offsets.events[frame + 1]; i++) {
        /** @type {any} */
        const event = { frame, time: events.tick[i] / TICKS, kind: names[events.kind[i]] };
        for (const field of ["who", "whom", "weapon", "amount", "x", "y", "z"]) event[field] = events[field][i];
        this.happened.push(event);
        if (event.kind === "death") this.died[event.who] = Math.min(this.died[event.who], event.time);
      }
    }
    this.happened.sort((a, b) => a.time - b.time);
    this.times = Float64Array.from(this.happened, (event) => event.time);
  }

  /** Every shot from muzzle to end, put together from launches, the frames in which it flew, and what it hit. */
  listFlights() {
    const { shots, offsets } = this;
    const open = new Map(); // who, weapon, tick of launch -> flight
    /** @type {any[][]} */
    const byFrame = Array.from({ length: this.frames }, () => []);
    for (const event of this.happened) byFrame[event.frame].push(event);
    for (let frame = 0; frame < this.frames; frame++) {
      const seen = new Set();
      for (const event of byFrame[frame]) {
        if (!LAUNCHES.has(event.kind)) continue;
        const { who, weapon, time, x, y, z } = event;
        const yaw = this.mechs.yaw[frame * this.count + who];
        const [vx, vy] = [SHOT_SPEED * Math.cos(yaw), SHOT_SPEED * Math.sin(yaw)];
        const flight = { who, weapon, begin: time, end: Infinity, at: [{ time, x, y, z, vx, vy, vz: 0 }] };
        open.set(`${who} ${weapon} ${Math.round(time * TICKS)}`, flight);
        this.flights.push(flight);
      }
      const tick = Math.round(frame * this.step * TICKS);
      for (let i = offsets.shots[frame]; i < offsets.shots[frame + 1]; i++) {
        const key = `${shots.who[i]} ${shots.weapon[i]} ${tick - shots.age[i]}`;
        const flight = open.get(key);
        if (!flight) continue;
        const point = { time: frame * this.step };
        for (const field of ["x", "y", "z", "vx", "vy", "vz"]) point[field] = shots[field][i];
        if (point.time > flight.begin) flight.at.push(point);
        else flight.at[0] = point;
        seen.add(key);
      }
      this.endFlights(byFrame[frame], open, seen, frame);
    }
    this.flights.sort((a, b) => a.begin - b.begin);
  }

  /** Shots that are gone in this frame ended at what they hit, or just vanished. */
  endFlights(events, open, seen, frame) {
    const ends = new Set(); // one shot may hit and burst
    for (const event of events) {
      const who = event.kind === "ams_intercept" ? event.whom : event.who;
      const end = `${who} ${event.weapon} ${event.time}`;
      if (!ENDS.has(event.kind) || ends.has(end)) continue;
      ends.add(end);
      let [ended, nearest] = [null, Infinity];
      for (const [key, flight] of open) {
        if (flight.who !== who || flight.weapon !== event.weapon || seen.has(key)) continue;
        const { x, y } = alongFlight(flight, event.time);
        const away = Math.hypot(x - event.x, y - event.y);
        if (away < nearest) [ended, nearest] = [key, away];
      }
      if (!ended) continue;
      const flight = open.get(ended);
      flight.end = event.time;
      flight.at.push({ time: event.time, x: event.x, y: event.y, z: event.z });
      open.delete(ended);
    }
    for (const [key, flight] of open) {
      if (seen.has(key) || frame === 0) continue;
      const last = flight.at.at(-1);
      flight.end = Math.min(frame * this.step, last.time + 2 / TICKS);
      open.delete(key);
    }
  }

  /** Changes of voxels in the order of time, each at the tick of the burst or death that made it. */
  listChanges() {
    const { changes, offsets, X, Y } = this;
    const list = [];
    let i = 0;
    for (let frame = 0; frame < this.frames; frame++) {
      const broken = new Map();
      const deaths = [];
      for (; i < this.happened.length && this.happened[i].frame <= frame; i++) {
        const { kind, time, x, y, z } = this.happened[i];
        if (kind === "voxel_destroyed") broken.set((Math.floor(z) * Y + Math.floor(y)) * X + Math.floor(x), time);
        if (kind === "death") deaths.push({ time, x, y });
      }
      for (let c = offsets.changes[frame]; c < offsets.changes[frame + 1]; c++) {
        const cell = changes.cell[c];
        const [x, y] = [cell % X, Math.floor(cell / X) % Y];
        const near = deaths.sort((a, b) => Math.hypot(a.x - x, a.y - y) - Math.hypot(b.x - x, b.y - y))[0];
        const time = broken.get(cell) ?? near?.time ?? frame * this.step;
        list.push({ time, cell, before: changes.before[c], after: changes.after[c] });
      }
    }
    this.changed = list.sort((a, b) => a.time - b.time);
  }

  /** How far everybody has walked by each frame: legs step with it. */
  listWalks() {
    const { mechs, count } = this;
    this.walked = new Float32Array(this.frames * count);
    for (let i = count; i < this.walked.length; i++) {
      const step = Math.hypot(mechs.x[i] - mechs.x[i - count], mechs.y[i] - mechs.y[i - count]);
      this.walked[i] = this.walked[i - count] + step;
    }
  }

  /** What is worth a mark on the timeline and a look by the director. */
  listMoments() {
    const moments = [];
    for (const event of this.happened) {
      const { kind, time, who, whom, x, y, z } = event;
      if (kind === "kill" || kind === "friendly_kill") {
        const text = `${this.names[who]} kills ${this.names[whom]}${kind === "kill" ? "" : ", its own side"}`;
        moments.push({
          time,
          kind: "kill",
          team: this.teams[whom],
          who,
          whom,
          x,
          y,
          z,
          text,
          weapon: event.weapon,
          event,
        });
      } else if (kind === "death" && whom < 0) {
        moments.push({
          time,
          kind: "kill",
          team: this.teams[who],
          who: -1,
          whom: who,
          x,
          y,
          z,
          text: `${this.names[who]} burns`,
          weapon: -1,
          event,
        });
      } else if (kind === "knockdown") {
        const by = who >= 0 ? ` by ${this.names[who]}` : "";
        moments.push({
          time,
          kind,
          team: this.teams[whom],
          who,
          whom,
          x,
          y,
          z,
          text: `${this.names[whom]} is knocked down${by}`,
        });
      } else if (kind === "legged") {
        moments.push({
          time,
          kind,
          team: this.teams[whom],
          who,
          whom,
          x,
          y,
          z,
          text: `${this.names[whom]} loses its legs`,
        });
      } else if (kind === "shutdown") {
        moments.push({
          time,
          kind,
          team: this.teams[who],
          who,
          whom: who,
          x,
          y,
          z,
          text: `${this.names[who]} overheats`,
        });
      }
    }
    const [zx, zy] = this.header.zone;
    const { tonnage, score } = this.now;
    let contest = -Infinity;
    let leader = -1;
    for (let frame = 1; frame < this.frames; frame++) {
      const time = frame * this.step;
      const place = { time, x: zx, y: zy, z: 1, who: -1, whom: -1, team: -1 };
      if (tonnage[2 * frame] > 0 && tonnage[2 * frame + 1] > 0) {
        if (time - contest > CONTEST_GAP)
          moments.push({ ...place, kind: "contest", text: "both teams are in the zone" });
        contest = time;
      }
      const ahead = score[2 * frame] - score[2 * frame + 1];
      const now = ahead > 0 ? 0 : ahead < 0 ? 1 : leader;
      if (now !== leader && leader >= 0)
        moments.push({ ...place, kind: "lead", team: now, text: `${TEAMS[now]} takes the lead` });
      leader = now;
    }
    this.moments = moments.sort((a, b) => a.time - b.time);
  }

  // --- asking ---

  /** The frame at or before a time, and how far it is to the next, 0 to 1. */
  place(time) {
    const at = Math.min(this.duration, Math.max(0, time)) / this.step;
    const frame = Math.min(this.frames - 1, Math.floor(at + 1e-9));
    return { frame, part: Math.max(0, Math.min(1, at - frame)) };
  }

  /** The frame whose condition, score and thoughts hold at a time. */
  frameAt(time) {
    return this.place(time).frame;
  }

  isAlive(i, time) {
    return time < this.died[i];
  }

  /** Where a mech is and looks, smooth between frames and never farther than they say. */
  pose(i, time, out = {}) {
    const { mechs, count, step } = this;
    const { frame, part } = this.place(time);
    const a = frame * count + i;
    const b = Math.min(this.frames - 1, frame + 1) * count + i;
    for (const axis of ["x", "y", "z"]) {
      out[axis] = eased(mechs[axis][a], mechs[axis][b], mechs[`v${axis}`][a] * step, mechs[`v${axis}`][b] * step, part);
    }
    let turn = mechs.yaw[b] - mechs.yaw[a];
    turn -= 2 * Math.PI * Math.round(turn / (2 * Math.PI));
    out.yaw = mechs.yaw[a] + part * turn;
    out.walked = this.walked[a] + part * (this.walked[b] - this.walked[a]);
    out.row = part < 0.5 ? a : b;
    return out;
  }

  /** A field of a mech in the frame that holds at a time; `part` picks from fields of several numbers. */
  at(i, field, time) {
    return this.mechs[field][this.frameAt(time) * this.count + i];
  }

  flag(i, name, time) {
    return (this.at(i, "flags", time) >> this.header.flags.indexOf(name)) & 1;
  }

  /** The mechs a 64-bit row names: whom mech i `sees` or `knows`. */
  marked(i, field, time) {
    const row = this.frameAt(time) * this.count + i;
    const [low, high] = [this.mechs[field][2 * row], this.mechs[field][2 * row + 1]];
    return this.names.map((_, j) => j).filter((j) => ((j < 32 ? low >>> j : high >>> (j - 32)) & 1) !== 0);
  }

  /** Events in a stretch of time, from `begin` (excluded) up to `end`. */
  between(begin, end) {
    return this.happened.slice(above(this.times, begin), above(this.times, end));
  }

  /** Where the shots in the air are: position, direction, weapon. */
  *flying(time) {
    for (const flight of this.flights) {
      if (flight.begin > time) return;
      if (time >= flight.end) continue;
      yield { flight, ...alongFlight(flight, time) };
    }
  }

  /** Score, living and weight in the zone at a time. */
  standing(time) {
    const { frame, part } = this.place(time);
    const next = Math.min(this.frames - 1, frame + 1);
    const { score, tonnage } = this.now;
    const living = [0, 0];
    const classes = [
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ];
    for (let i = 0; i < this.count; i++) {
      if (!this.isAlive(i, time)) continue;
      living[this.teams[i]] += 1;
      classes[this.teams[i]][this.kinds[i]] += 1;
    }
    const both = (values) => [values[2 * frame], values[2 * frame + 1]];
    return {
      living,
      classes,
      score: both(score).map((value, team) => value + part * (score[2 * next + team] - value)),
      tonnage: both(tonnage),
    };
  }

  /**
   * Bring the map to a time; `changed` gets every cell that is different now.
   *
   * @param {number} time
   * @param {(cell: number) => void} changed
   */
  seek(time, changed = () => {}) {
    const { grid } = this;
    while (this.applied < this.changed.length && this.changed[this.applied].time <= time) {
      const { cell, after } = this.changed[this.applied++];
      grid[cell] = after;
      changed(cell);
    }
    while (this.applied > 0 && this.changed[this.applied - 1].time > time) {
      const { cell, before } = this.changed[--this.applied];
      grid[cell] = before;
      changed(cell);
    }
  }

  /** One number for the whole world at the map's time: voxels, and where everybody alive is. */
  fingerprint(time) {
    const places = new Float32Array(5 * this.count);
    for (let i = 0; i < this.count; i++) {
      const { x, y, z, yaw } = this.pose(i, time);
      places.set([this.isAlive(i, time) ? 1 : 0, x, y, z, yaw], 5 * i);
    }
    return `${checksum(this.grid)} ${checksum(new Uint8Array(places.buffer))}`;
  }
}

/** Where each list begins, frame by frame, and ends. */
function sums(counts) {
  const found = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) found[i + 1] = found[i] + counts[i];
  return found;
}

/** The first place in ascending times that is later than one. */
function above(times, time) {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** From a to b with the speeds at both ends, held back where they would overshoot: a mech stops at its wall. */
function eased(a, b, speedA, speedB, part) {
  const way = b - a;
  const tame = (speed) => (speed * way <= 0 ? 0 : Math.sign(way) * Math.min(Math.abs(speed), 3 * Math.abs(way)));
  const [p2, p3] = [part * part, part * part * part];
  return a + way * (3 * p2 - 2 * p3) + tame(speedA) * (p3 - 2 * p2 + part) + tame(speedB) * (p3 - p2);
}

function alongFlight({ at }, time) {
  let i = at.length - 1;
  while (i > 0 && at[i].time > time) i--;
  const [from, to] = [at[i], at[i + 1]];
  if (to) {
    const part = (time - from.time) / (to.time - from.time || 1);
    const [dx, dy, dz] = [to.x - from.x, to.y - from.y, to.z - from.z];
    return { x: from.x + part * dx, y: from.y + part * dy, z: from.z + part * dz, dx, dy, dz };
  }
  const { vx = 0, vy = 0, vz = 0 } = from;
  const past = time - from.time;
  return { x: from.x + past * vx, y: from.y + past * vy, z: from.z + past * vz, dx: vx, dy: vy, dz: vz };
}
