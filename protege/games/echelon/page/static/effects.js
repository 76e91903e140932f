// Everything that moves on the map. Every picture is made anew from the time alone, so it is the same on the way back.

import * as THREE from "/vendor/three-0.170.0.module.min.js";
import {
  Brush,
  UPRIGHT,
  coloured,
  drawBall,
  drawBox,
  drawHoop,
  drawRod,
  glowing,
  plain,
  rgb,
  ringing,
  smoking,
} from "./draw.js";
import { TEAM_COLOURS, drawMechs } from "./mechs.js";

const SMOKE_S = 10; // how long a cloud lasts
const BEAM_S = { laser: 0.22, flamer: 0.16, painter: 0.4 };
const BLAST_S = 0.55;
const DEATH_S = 1.6;
const TRAIL = 7; // puffs behind a missile
const MISSILE_SPEED = 12; // voxels a second
const JAMMING = 1;
const FIELD_WIDTH = 0.55; // of the line around a jammer's field

const WHITE = rgb(0xffffff);
const SHOTS = {
  missile: { colour: rgb(0xffd27a), length: 0.9, width: 0.28 },
  gauss: { colour: rgb(0xbfe6ff), length: 2.2, width: 0.2 },
  autocannon: { colour: rgb(0xffe08a), length: 1.0, width: 0.13 },
  smoke: { colour: rgb(0xd8dde6), length: 0.6, width: 0.3 },
};
const BEAMS = { laser: rgb(0x59ff9c), flamer: rgb(0xff8a2a), painter: rgb(0xff3df0) };
const FIRE = rgb(0xff7a22);
const FLASH = rgb(0xffc060);
const SPARK = rgb(0x9fd8ff);
const SMOKE = rgb(0xc9ced8);
const SOOT = rgb(0x66676e);
const RUBBLE = rgb(0x8b8f98);

/** The same numbers for the same thing, at any time: 0 to 1. */
function chance(seed, number) {
  const value = Math.sin(seed * 127.1 + number * 311.7) * 43758.5453;
  return value - Math.floor(value);
}

export class Effects {
  constructor(battle) {
    this.battle = battle;
    this.object = new THREE.Group();
    this.brushes = {
      solids: new Brush(coloured({ side: THREE.DoubleSide }), 6000),
      fields: new Brush(plain({ transparent: true, opacity: 0.8, depthTest: false, depthWrite: false }), 3000),
      rings: new Brush(ringing(0.86), 100),
      smoke: new Brush(smoking(), 1500),
      beams: new Brush(plain({ transparent: true, blending: THREE.AdditiveBlending, depthWrite: false }), 500),
      glows: new Brush(glowing(), 500),
    };
    Object.values(this.brushes).forEach(({ mesh }, order) => {
      mesh.renderOrder = order ? 4 + order : 3;
      this.object.add(mesh);
    });
    // What walls and roofs hide shines through them faintly, so that nobody is lost from sight: drawn after the map and
    // before the mechs themselves, or these would shine through each other.
    const hidden = { depthFunc: THREE.GreaterDepth, depthWrite: false, blending: THREE.CustomBlending };
    const ghosts = this.brushes.solids.again(coloured({ opacity: 0.35, side: THREE.DoubleSide, ...hidden }));
    ghosts.renderOrder = 2;
    this.object.add(ghosts);
    this.lines = sightLines(battle.count);
    this.zone = new Zone(battle);
    this.object.add(this.lines, this.zone.object);
  }

  /** Draw the moment as the camera sees it. */
  update(time, chosen, camera) {
    this.camera = camera;
    this.eye = camera.position;
    const brushes = Object.values(this.brushes);
    for (const brush of brushes) brush.begin();
    drawMechs(this.brushes.solids, this.eye, this.battle, time);
    this.drawShots(time);
    for (const event of this.battle.between(time - DEATH_S, time)) this.drawEvent(event, time - event.time, time);
    this.drawClouds(time);
    this.drawRings(time, chosen);
    this.drawSight(time, chosen);
    this.zone.update(time);
    for (const brush of brushes) brush.end();
  }

  glow(x, y, z, size, colour, bright) {
    drawBall(this.brushes.glows, this.camera, x, y, z, size, colour, bright);
  }

  puff(x, y, z, size, colour, bright = 1, alpha = 0.75) {
    drawBall(this.brushes.smoke, this.camera, x, y, z, size, colour, bright, alpha);
  }

  drawShots(time) {
    for (const { flight, x, y, z, dx, dy, dz } of this.battle.flying(time)) {
      const name = this.battle.header.weapons[flight.weapon];
      const look = SHOTS[name];
      const length = Math.hypot(dx, dy, dz);
      if (!look || length < 1e-6) continue;
      const [ux, uy, uz] = [dx / length, dy / length, dz / length];
      const tail = { x: x - look.length * ux, y: y - look.length * uy, z: z - look.length * uz };
      drawRod(this.brushes.solids, this.eye, tail, { x, y, z }, look.width, look.colour, 1.5);
      if (name !== "missile") continue;
      this.glow(tail.x, tail.y, tail.z, 0.8, FIRE, 1);
      for (let i = 1; i <= TRAIL; i++) {
        const back = 0.75 * i;
        if (back > MISSILE_SPEED * (time - flight.begin)) break; // there was nothing yet
        this.puff(x - back * ux, y - back * uy, z - back * uz, 0.2 + 0.05 * i, SMOKE, 0.8, 0.7 - 0.08 * i);
      }
    }
  }

  drawEvent(event, age, time) {
    const { kind, x, y, z, who, whom } = event;
    const name = kind === "paint" ? "painter" : this.battle.header.weapons[event.weapon];
    if ((kind === "laser_hit" || kind === "paint") && age < BEAM_S[name]) {
      this.drawBeam(name, this.muzzle(who, time), this.battle.pose(whom, time), age);
    } else if ((kind === "kinetic_fire" || kind === "missile_launch") && age < 0.09) {
      const muzzle = this.muzzle(who, time);
      this.glow(muzzle.x, muzzle.y, muzzle.z, 0.8, FLASH, 1 - age / 0.09);
    } else if (kind === "projectile_hit" && age < 0.2) {
      this.glow(x, y, z, 0.5 + 2 * age, FLASH, 1 - age / 0.2);
    } else if (kind === "explosion" && age < BLAST_S) {
      this.drawBlast(event, age / BLAST_S, Math.max(1.2, event.amount));
      this.drawRubble(event, age, 6, RUBBLE);
    } else if (kind === "ams_intercept" && age < 0.3) {
      this.glow(x, y, z, 0.7 + 4 * age, SPARK, 1 - age / 0.3);
      if (age < 0.12) drawRod(this.brushes.beams, this.eye, this.muzzle(who, time), event, 0.07, SPARK, 1);
    } else if (kind === "death") {
      this.drawBlast(event, age / DEATH_S, 1.4 * this.battle.header.classes[this.battle.kinds[who]].width);
      this.drawRubble(event, age, 14, SOOT);
    } else if (kind === "voxel_destroyed" && age < 0.7) {
      this.drawRubble(event, age, 3, RUBBLE);
    }
  }

  /** Where a mech's weapons are: before it, in the upper half of its body. */
  muzzle(who, time) {
    const { x, y, z, yaw } = this.battle.pose(who, time);
    const { width, height } = this.battle.header.classes[this.battle.kinds[who]];
    return { x: x + 0.5 * width * Math.cos(yaw), y: y + 0.5 * width * Math.sin(yaw), z: z + 0.18 * height };
  }

  drawBeam(name, from, to, age) {
    const fade = 1 - age / BEAM_S[name];
    if (name !== "flamer") {
      const bright = 0.5 + fade;
      drawRod(this.brushes.beams, this.eye, from, to, name === "painter" ? 0.09 : 0.16, BEAMS[name], bright);
      this.glow(to.x, to.y, to.z, 0.8, BEAMS[name], fade);
      return;
    }
    for (let i = 0; i < 8; i++) {
      const part = (i + ((age * 30) % 1)) / 8;
      const at = (axis) => from[axis] + part * (to[axis] - from[axis]);
      this.glow(at("x"), at("y"), at("z"), 0.3 + 0.7 * part, i < 4 ? FLASH : BEAMS.flamer, 0.9 * fade);
    }
  }

  /** A ball of fire, and the smoke that is left of it. */
  drawBlast({ x, y, z }, part, radius) {
    if (part > 0.1) this.puff(x, y, z + 0.5 + part * radius, radius * (0.5 + 0.5 * part), SOOT, 1, 0.8 * (1 - part));
    if (part > 0.55) return;
    const fade = 1 - part / 0.55;
    this.glow(x, y, z, radius * (0.7 + 1.6 * Math.sqrt(part)), FIRE, 1.3 * fade);
    if (part < 0.3) this.glow(x, y, z, 0.7 * radius, FLASH, fade);
  }

  /** Pieces thrown about; the same pieces every time this is looked at. */
  drawRubble({ x, y, z, time: seed }, age, pieces, colour) {
    for (let i = 0; i < pieces; i++) {
      const way = 2 * Math.PI * chance(seed + x, i);
      const far = age * (1.5 + 4 * chance(seed + y, i + 50));
      const up = z + (3 + 4 * chance(seed, i + 90)) * age - 4.9 * age * age;
      const half = 0.07 + 0.1 * chance(seed, i + 7);
      if (up < half) continue;
      const [px, py] = [x + far * Math.cos(way), y + far * Math.sin(way)];
      drawBox(this.brushes.solids, this.eye, px, py, up, UPRIGHT, [half, half, half], colour);
    }
  }

  drawClouds(time) {
    const { battle } = this;
    const { clouds, offsets } = battle;
    const { frame, part } = battle.place(time);
    for (let c = offsets.clouds[frame]; c < offsets.clouds[frame + 1]; c++) {
      const left = clouds.left[c] / 20 - part * battle.step;
      const full = Math.min(1, (SMOKE_S - left) / 0.6 + 0.25) * Math.min(1, Math.max(0, left / 1.2));
      const [x, y, z, radius] = ["x", "y", "z", "radius"].map((field) => clouds[field][c]);
      for (let i = 0; i < 7; i++) {
        const way = (2 * Math.PI * i) / 6 + 0.15 * time;
        const far = i === 0 ? 0 : radius * (0.45 + 0.15 * chance(x + y, i)) * full;
        const size = radius * (i === 0 ? 0.7 : 0.5 + 0.12 * chance(x, i)) * full;
        const up = Math.max(0.8 * size, z + (i % 3) * 0.16 * radius - 0.2 * radius); // not cut off by the ground
        const bright = 0.88 + 0.12 * chance(y, i);
        this.puff(x + far * Math.cos(way), y + far * Math.sin(way), up, size, SMOKE, bright, 0.62);
      }
    }
  }

  /** A ring under everybody in the team's colour, and the reach of every jammer. */
  drawRings(time, chosen) {
    const { battle } = this;
    const { rings, fields } = this.brushes;
    for (let i = 0; i < battle.count; i++) {
      if (!battle.isAlive(i, time)) continue;
      const { x, y, z } = battle.pose(i, time);
      const { width, height } = battle.header.classes[battle.kinds[i]];
      const colour = TEAM_COLOURS[battle.teams[i]];
      const size = 0.85 * width + (i === chosen ? 0.5 : 0);
      rings.quad(x, y, z - 0.5 * height + 0.07, size, 0, 0, 0, size, 0, i === chosen ? WHITE : colour);
      if (battle.at(i, "ewar", time) !== JAMMING || battle.flag(i, "shut", time)) continue;
      drawHoop(fields, x, y, 0.3, battle.jamRange, FIELD_WIDTH, 96, colour);
      for (const start of [0, 1 / 3, 2 / 3]) {
        const grown = battle.jamRange * ((time / 2.5 + start) % 1);
        drawHoop(fields, x, y, 0.3, grown, 0.6 * FIELD_WIDTH, 64, colour, 1, 0.35);
      }
    }
  }

  /** What the chosen mech sees (bright), knows from others (dim), and aims at. */
  drawSight(time, chosen) {
    const { battle, lines } = this;
    lines.visible = chosen !== null && battle.isAlive(chosen, time);
    if (!lines.visible) return;
    const { position, color } = lines.geometry.attributes;
    const eye = battle.pose(chosen, time);
    let ends = 0;
    const draw = (/** @type {number} */ whom, /** @type {[number, number, number]} */ shade) => {
      const { x, y, z } = battle.pose(whom, time);
      position.setXYZ(ends, eye.x, eye.y, eye.z + 0.4);
      position.setXYZ(ends + 1, x, y, z);
      for (const end of [ends, ends + 1]) color.setXYZ(end, ...shade);
      ends += 2;
    };
    const hostile = (i) => battle.teams[i] !== battle.teams[chosen] && battle.isAlive(i, time);
    const seen = new Set(battle.marked(chosen, "sees", time).filter(hostile));
    for (const i of battle.marked(chosen, "knows", time).filter(hostile)) if (!seen.has(i)) draw(i, [0.42, 0.42, 0.5]);
    for (const i of seen) draw(i, [0.4, 1.0, 0.6]);
    const target = battle.at(chosen, "focus", time);
    if (target >= 0 && battle.isAlive(target, time)) draw(target, [1.0, 0.9, 0.2]);
    lines.geometry.setDrawRange(0, ends);
    position.needsUpdate = color.needsUpdate = true;
  }

  dispose() {
    for (const brush of Object.values(this.brushes)) brush.dispose();
    this.lines.geometry.dispose();
    this.lines.material.dispose();
    this.zone.dispose();
  }
}

function sightLines(count) {
  const geometry = new THREE.BufferGeometry();
  for (const name of ["position", "color"]) {
    geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(3 * 2 * (2 * count + 2)), 3));
  }
  const material = new THREE.LineBasicMaterial({
    vertexColors: true,
    depthTest: false,
    transparent: true,
    opacity: 0.85,
  });
  const lines = new THREE.LineSegments(geometry, material);
  lines.frustumCulled = false;
  lines.renderOrder = 15;
  return lines;
}

const FREE = rgb(0xffe61e);

/** The zone: a disc and a low wall of light in the colour of whoever holds it, blinking while it is fought for. */
class Zone {
  constructor(battle) {
    this.battle = battle;
    const [x, y, radius] = battle.header.zone;
    const sheet = (opacity, more = {}) =>
      new THREE.MeshBasicMaterial({ transparent: true, opacity, depthWrite: false, side: THREE.DoubleSide, ...more });
    const wall = new THREE.CylinderGeometry(radius, radius, 2.2, 40, 1, true);
    this.parts = [
      new THREE.Mesh(new THREE.CircleGeometry(radius, 40), sheet(0.3)),
      new THREE.Mesh(wall.rotateX(Math.PI / 2).translate(0, 0, 1.1), sheet(0.4, { side: THREE.BackSide })),
      new THREE.Mesh(new THREE.RingGeometry(radius - 0.35, radius, 40), sheet(0.95, { depthTest: false })),
    ];
    this.object = new THREE.Group();
    this.object.add(...this.parts);
    this.object.position.set(x, y, 0.05);
    for (const part of this.parts) part.renderOrder = 4;
  }

  update(time) {
    const frame = this.battle.frameAt(time);
    const [blue, red] = this.battle.now.tonnage.subarray(2 * frame, 2 * frame + 2);
    const fought = blue > 0 && red > 0;
    let colour = blue + red > 0 ? TEAM_COLOURS[blue >= red ? 0 : 1] : FREE;
    if (fought && Math.floor(time * 5) % 2) colour = WHITE;
    for (const part of this.parts) part.material.color.setRGB(...colour);
  }

  dispose() {
    for (const part of this.parts) {
      part.geometry.dispose();
      part.material.dispose();
    }
  }
}
