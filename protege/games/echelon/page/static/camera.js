// Where a battle is looked at from: by hand, behind a mech, over a team, or where the director finds it worth a look.

import * as THREE from "/vendor/three-0.170.0.module.min.js";

export const CAMERAS = ["director", "free", "team", "follow"];
const LEAD_S = 1.8; // a shot begins so long before what it is about
const STAY_S = 1.7; // and goes on so long after it
const LEAST_S = 2.4; // no shot is shorter
const WORTH = { kill: 4, contest: 2, knockdown: 3, legged: 2, lead: 1, shutdown: 1 };
const EASE = 3.2; // per second: how fast the camera follows

/** The director's plan: shots that follow each other from the first to the last second, each with what it looks at. */
export function planShots(battle) {
  const shots = [];
  let free = 0;
  const chosen = battle.moments
    .filter((one) => WORTH[one.kind] > 1)
    .sort((a, b) => WORTH[b.kind] - WORTH[a.kind] || a.time - b.time);
  const kept = [];
  for (const one of chosen) if (kept.every((other) => Math.abs(other.time - one.time) > LEAST_S)) kept.push(one);
  kept.sort((a, b) => a.time - b.time);
  for (const moment of kept) {
    const begin = Math.max(free, moment.time - LEAD_S);
    if (begin > free + LEAST_S) shots.push({ begin: free, end: begin, moment: null });
    else if (shots.length) shots.at(-1).end = begin;
    shots.push({ begin: shots.length ? begin : 0, end: moment.time + STAY_S, moment });
    free = moment.time + STAY_S;
  }
  if (free < battle.duration || !shots.length)
    shots.push({ begin: Math.min(free, battle.duration), end: Infinity, moment: null });
  shots.at(-1).end = Infinity;
  shots[0].begin = 0;
  return shots;
}

/** The middle of some places, and how far the farthest is from it. */
function middleOf(places) {
  const between = (axis) => {
    const all = places.map((place) => place[axis]);
    return (Math.max(...all) + Math.min(...all)) / 2;
  };
  const [x, y] = [between("x"), between("y")];
  return { x, y, spread: Math.max(...places.map((place) => Math.hypot(place.x - x, place.y - y))) };
}

/** One camera; `update` puts it where the chosen way of looking wants it. */
export class Rig {
  /** @type {ReturnType<typeof planShots>} */
  shots = [];

  constructor(battle, aspect) {
    this.camera = new THREE.PerspectiveCamera(42, aspect, 1, 600);
    this.camera.up.set(0, 0, 1);
    this.target = new THREE.Vector3();
    this.wanted = new THREE.Vector3();
    this.mode = "director";
    this.team = 0;
    this.hands = { turn: -2.2, rise: 0.95, far: 0, x: 0, y: 0, z: 0 };
    this.take(battle);
  }

  take(battle) {
    this.battle = battle;
    this.shots = planShots(battle);
    this.shot = null;
    Object.assign(this.hands, {
      x: battle.X / 2,
      y: battle.Y / 2,
      z: 0,
      far: this.fit(1.3 * Math.max(battle.X, battle.Y)),
    });
    this.jump = true;
  }

  set(mode) {
    if (mode === "free" && this.mode !== "free" && !this.jump) this.borrow();
    this.mode = mode;
    this.jump ||= mode !== "free";
  }

  /** Hands take over where the camera is. */
  borrow() {
    const away = this.camera.position.clone().sub(this.target);
    const far = away.length();
    Object.assign(this.hands, {
      x: this.target.x,
      y: this.target.y,
      z: this.target.z,
      far,
      turn: Math.atan2(away.y, away.x),
      rise: Math.asin(Math.min(0.99, away.z / far)),
    });
  }

  /** What a shot looks at, from where, and how far away. */
  view(time, chosen) {
    const { battle } = this;
    if (this.mode === "follow" && chosen !== null) return this.behind(chosen, time);
    const members = battle.teams.flatMap((team, i) => (team === this.team ? [i] : []));
    if (this.mode === "team") return members.length ? this.over(members, time) : this.wide(time);
    const shot = this.shots.find(({ end }) => time < end) ?? this.shots[this.shots.length - 1];
    if (this.shot !== shot) this.jump = true;
    this.shot = shot;
    return shot.moment ? this.close(shot, time) : this.wide(time);
  }

  behind(i, time) {
    const { x, y, z, yaw } = this.battle.pose(i, Math.min(time, this.battle.died[i]));
    const { height } = this.battle.header.classes[this.battle.kinds[i]];
    return {
      x: x + 5 * Math.cos(yaw),
      y: y + 5 * Math.sin(yaw),
      z: z + 0.4 * height,
      turn: yaw + Math.PI,
      rise: 0.5,
      far: 13 + 2.6 * height,
    };
  }

  /** All of a team that is alive, from its own side. */
  over(members, time) {
    const { battle } = this;
    const poses = (some) => some.map((i) => battle.pose(i, time));
    const isAlive = (i) => battle.isAlive(i, time);
    const own = poses(members.some(isAlive) ? members.filter(isAlive) : members);
    const others = poses(battle.teams.flatMap((team, i) => (team !== this.team && isAlive(i) ? [i] : [])));
    const { x, y, spread } = middleOf(own);
    const [zx, zy] = battle.header.zone;
    const enemy = others.length ? middleOf(others) : { x: zx, y: zy };
    return {
      x: 0.8 * x + 0.2 * enemy.x,
      y: 0.8 * y + 0.2 * enemy.y,
      z: 1,
      turn: Math.atan2(y - enemy.y, x - enemy.x),
      rise: 0.78,
      far: this.fit(20 + 2.1 * Math.max(8, spread)),
    };
  }

  /** Both who take part, from the side, so that neither hides the other. */
  close({ moment }, time) {
    const { battle } = this;
    const [zx, zy, radius] = battle.header.zone;
    if (moment.kind === "contest" || moment.who < 0) {
      const far = moment.kind === "contest" ? 20 + 3.4 * radius : 24;
      const [x, y] = moment.kind === "contest" ? [zx, zy] : [moment.x, moment.y];
      return { x, y, z: 1, turn: -2.2 + 0.03 * (time - moment.time), rise: 0.75, far };
    }
    const when = (i) => Math.min(time, battle.died[i]);
    const [a, b] = [battle.pose(moment.who, when(moment.who)), battle.pose(moment.whom, when(moment.whom))];
    const apart = Math.hypot(a.x - b.x, a.y - b.y);
    const turn = Math.atan2(b.y - a.y, b.x - a.x) + Math.PI / 2;
    const side = Math.sin(turn) < 0 ? turn : turn + Math.PI; // from the south, where the light is
    return { x: 0.4 * a.x + 0.6 * b.x, y: 0.4 * a.y + 0.6 * b.y, z: 1, turn: side, rise: 0.74, far: 17 + 1.25 * apart };
  }

  /** Everybody who is alive, and the zone. */
  wide(time) {
    const { battle } = this;
    const places = battle.teams.flatMap((_, i) => (battle.isAlive(i, time) ? [battle.pose(i, time)] : []));
    const [zx, zy] = battle.header.zone;
    places.push({ x: zx, y: zy });
    const { x, y, spread } = middleOf(places);
    return { x, y, z: 0, turn: -2.2 + 0.02 * time, rise: 1.0, far: this.fit(16 + 2.2 * spread) };
  }

  /** A narrow picture must be farther away to show as much. */
  fit(far) {
    return far * Math.max(1, 1.5 / this.camera.aspect);
  }

  update(time, chosen, seconds) {
    const byHand = this.mode === "free" || (this.mode === "follow" && chosen === null);
    const { x, y, z, turn, rise, far } = byHand ? this.hands : this.view(time, chosen);
    const { camera, target, wanted } = this;
    const flat = Math.cos(rise) * far;
    wanted.set(x + flat * Math.cos(turn), y + flat * Math.sin(turn), z + far * Math.sin(rise));
    const share = this.jump || byHand ? 1 : 1 - Math.exp(-EASE * seconds);
    camera.position.lerp(wanted, share);
    target.lerp(wanted.set(x, y, z), share);
    this.jump = false;
    camera.lookAt(target);
  }

  // --- by hand ---

  orbit(dx, dy) {
    this.hands.turn -= 0.006 * dx;
    this.hands.rise = Math.min(1.5, Math.max(0.12, this.hands.rise + 0.006 * dy));
  }

  pan(dx, dy) {
    const { hands } = this;
    const [sin, cos] = [Math.sin(hands.turn), Math.cos(hands.turn)];
    const step = 0.0014 * hands.far;
    hands.x += step * (dx * sin - dy * cos);
    hands.y += step * (-dx * cos - dy * sin);
    hands.x = Math.min(this.battle.X, Math.max(0, hands.x));
    hands.y = Math.min(this.battle.Y, Math.max(0, hands.y));
  }

  zoom(factor) {
    this.hands.far = Math.min(2.2 * this.battle.X, Math.max(6, this.hands.far * factor));
  }
}
