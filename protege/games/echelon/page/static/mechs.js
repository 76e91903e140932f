// The mechs: for each class a body and a leg of boxes, that walk, lean, recoil and fall.

import { drawBox, rgb } from "./draw.js";

export const TEAM_COLOURS = [rgb(0x3aa2ff), rgb(0xff5340)];
const STRIDE = 0.55; // of its height: how far a mech walks in one swing of a leg
const SCALE = 1.12; // a little larger than life, to be seen from afar
const RECOIL_S = 0.16;
const DARK = 0.34;
const LIGHT = 1.3;

/** A part of a model: size, middle, brightness of the team's colour, and how far it is tilted forward. */
const box = (size, middle, shade = 1, tilt = 0) => ({
  half: size.map((part) => (SCALE * part) / 2),
  middle,
  shade,
  tilt,
});

// Each as tall and wide as its box in the game. Hip: how high above the middle, how far apart, the legs begin.
const MODELS = [
  {
    // scout: a mast with a dish on thin legs
    hip: { z: -0.15, y: 0.26 },
    leg: [box([0.16, 0.16, 0.72], [0, 0, -0.36], DARK), box([0.42, 0.2, 0.1], [0.08, 0, -0.7], 0.7)],
    body: [
      box([0.62, 0.5, 0.42], [0, 0, 0.02]),
      box([0.26, 0.3, 0.2], [0.34, 0, 0.06], LIGHT),
      box([0.1, 0.1, 0.6], [-0.12, 0, 0.5], DARK),
      box([0.1, 0.78, 0.46], [-0.02, 0, 0.72], LIGHT, -0.5),
      box([0.3, 0.16, 0.3], [-0.36, 0.22, 0], DARK),
      box([0.3, 0.16, 0.3], [-0.36, -0.22, 0], DARK),
    ],
  },
  {
    // light: a bird with swept wings, on its toes
    hip: { z: -0.1, y: 0.34 },
    leg: [
      box([0.5, 0.18, 0.2], [-0.12, 0, -0.16], DARK, 0.7),
      box([0.18, 0.16, 0.62], [-0.12, 0, -0.5], DARK, -0.3),
      box([0.5, 0.26, 0.1], [0.1, 0, -0.86], 0.7),
    ],
    body: [
      box([1.0, 0.5, 0.42], [0.05, 0, 0.2]),
      box([0.5, 0.28, 0.24], [0.72, 0, 0.12], LIGHT),
      box([0.7, 0.5, 0.08], [-0.2, 0.48, 0.42], 0.85),
      box([0.7, 0.5, 0.08], [-0.2, -0.48, 0.42], 0.85),
      box([0.34, 0.08, 0.62], [-0.5, 0.62, 0.66], LIGHT),
      box([0.34, 0.08, 0.62], [-0.5, -0.62, 0.66], LIGHT),
      box([0.44, 0.12, 0.12], [0.7, 0, -0.1], DARK),
    ],
  },
  {
    // medium: a man in armour with a gun for an arm
    hip: { z: -0.25, y: 0.42 },
    leg: [
      box([0.5, 0.46, 0.7], [0, 0, -0.3]),
      box([0.4, 0.38, 0.5], [0, 0, -0.8], DARK),
      box([0.8, 0.5, 0.2], [0.12, 0, -1.15], 0.75),
    ],
    body: [
      box([0.9, 1.0, 0.35], [0, 0, -0.12], DARK),
      box([1.1, 1.5, 0.85], [0, 0, 0.5]),
      box([0.5, 0.56, 0.4], [0.3, 0, 1.12], LIGHT),
      box([0.7, 0.5, 0.5], [0, 1.0, 0.72], 0.85),
      box([0.7, 0.5, 0.5], [0, -1.0, 0.72], 0.85),
      box([1.5, 0.3, 0.3], [0.6, -1.05, 0.3], DARK),
      box([0.4, 0.36, 0.8], [0.05, 1.05, 0.15], DARK),
      box([0.35, 1.0, 0.5], [-0.6, 0, 0.6], DARK),
    ],
  },
  {
    // heavy: a fortress with two racks of missiles and a long gun
    hip: { z: -0.5, y: 0.85 },
    leg: [
      box([0.9, 0.8, 0.8], [0, 0, -0.3]),
      box([0.7, 0.62, 0.6], [0, 0, -0.9], DARK),
      box([1.4, 1.0, 0.3], [0.1, 0, -1.35], 0.75),
    ],
    body: [
      box([1.5, 1.5, 0.5], [0, 0, -0.4], DARK),
      box([2.0, 2.2, 1.1], [0, 0, 0.35]),
      box([0.8, 0.9, 0.5], [0.9, 0, 0.75], LIGHT),
      box([1.3, 0.85, 0.85], [-0.1, 1.3, 1.3]),
      box([1.3, 0.85, 0.85], [-0.1, -1.3, 1.3]),
      box([0.1, 0.65, 0.65], [0.58, 1.3, 1.3], DARK),
      box([0.1, 0.65, 0.65], [0.58, -1.3, 1.3], DARK),
      box([2.9, 0.26, 0.26], [1.3, 0, 1.25], DARK),
      box([0.9, 0.6, 0.6], [-0.4, 0, 1.25], 0.8),
      box([0.5, 1.6, 1.0], [-1.1, 0, 0.4], DARK),
    ],
  },
];

const HOT = rgb(0xffb020);
const COLD = rgb(0x3a3f4c);

/** Draw everybody who is alive. */
export function drawMechs(brush, eye, battle, time) {
  const shots = battle.between(time - RECOIL_S, time);
  const pose = {};
  for (let i = 0; i < battle.count; i++) {
    if (!battle.isAlive(i, time)) continue;
    const { hip, leg, body } = MODELS[battle.kinds[i]];
    const { height } = battle.header.classes[battle.kinds[i]];
    const fallen = battle.at(i, "fallen", time) > 0;
    battle.pose(i, time, pose);
    const axes = stance(pose.yaw, fallen, battle.flag(i, "legged", time));
    const colour = tint(battle, i, time);
    // Who lies has its back on the ground, not its middle where it was.
    const middle = [pose.x, pose.y, pose.z - (fallen ? 0.25 * height : 0)];
    const swing = fallen ? 0.2 : Math.sin((pose.walked / (STRIDE * height)) * Math.PI) * 0.55;
    for (const side of [-1, 1]) {
      drawParts(brush, eye, leg, moved(middle, axes, [0, side * hip.y, hip.z]), turned(axes, side * swing), colour);
    }
    const shot = shots.find(({ who, kind }) => who === i && (kind === "kinetic_fire" || kind === "missile_launch"));
    const back = shot ? RECOIL_S * (1 - (time - shot.time) / RECOIL_S) : 0;
    drawParts(brush, eye, body, moved(middle, axes, [-back, 0, 0]), axes, colour);
  }
}

/** A body's forward, left and up: on its back when it has fallen, to one side without its legs. */
function stance(yaw, fallen, legged) {
  const [sin, cos] = [Math.sin(yaw), Math.cos(yaw)];
  const axes = [
    [cos, sin, 0],
    [-sin, cos, 0],
    [0, 0, 1],
  ];
  if (fallen) return turned(axes, -1.4);
  if (!legged) return axes;
  const [lean, rest] = [Math.sin(0.22), Math.cos(0.22)];
  return [axes[0], [-rest * sin, rest * cos, lean], [lean * sin, -lean * cos, rest]];
}

/**
 * Axes turned forward around their left one.
 *
 * @param {number[][]} axes forward, left and up
 * @param {number} angle
 */
function turned([forward, left, up], angle) {
  const [sin, cos] = [Math.sin(angle), Math.cos(angle)];
  const mix = (a, b) => forward.map((part, n) => a * part + b * up[n]);
  return [mix(cos, -sin), left, mix(sin, cos)];
}

/** A place given along some axes. */
function moved(from, axes, way) {
  return from.map((part, n) => part + SCALE * (way[0] * axes[0][n] + way[1] * axes[1][n] + way[2] * axes[2][n]));
}

function drawParts(brush, eye, parts, origin, axes, colour) {
  for (const { half, middle, shade, tilt } of parts) {
    const [x, y, z] = moved(origin, axes, middle);
    drawBox(brush, eye, x, y, z, tilt ? turned(axes, tilt) : axes, half, colour, shade);
  }
}

/** The team's colour; dull when shut down, glowing when hot, bright for a moment when hit. */
function tint(battle, i, time) {
  const team = TEAM_COLOURS[battle.teams[i]];
  const heat = battle.at(i, "heat", time) / battle.header.classes[battle.kinds[i]].heat_capacity;
  let [other, share] = [HOT, 0];
  if (battle.flag(i, "shut", time)) [other, share] = [COLD, 0.75];
  else if (heat > 0.6) share = Math.min(0.7, (heat - 0.6) * 1.6) * (0.75 + 0.25 * Math.sin(time * 18));
  const bright = battle.flag(i, "hit", time) ? 1.3 : 1;
  return team.map((part, n) => bright * (part + share * (other[n] - part)));
}
