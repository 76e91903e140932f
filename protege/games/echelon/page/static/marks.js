// The marks above heads: class, health, heat and paint of everybody alive, at the same size from any distance.

import { TEAM_COLOURS } from "./mechs.js";
import * as THREE from "/vendor/three-0.170.0.module.min.js";

const GLYPHS = ["S", "L", "M", "H"];
const CELL = 64; // pixels of one sign in the sheet

/** The signs of the four classes, each its own shape with its letter: what is told apart at a glance. */
function signSheet() {
  const canvas = document.createElement("canvas");
  canvas.width = CELL * GLYPHS.length;
  canvas.height = CELL;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.textAlign = "center";
  context.textBaseline = "middle";
  GLYPHS.forEach((letter, kind) => {
    context.save();
    context.translate(CELL * (kind + 0.5), CELL / 2);
    context.beginPath();
    shapeOf(context, kind, CELL * 0.44);
    context.fillStyle = "#fff";
    context.fill();
    context.fillStyle = "#000";
    context.font = `800 ${CELL * 0.5}px system-ui, sans-serif`;
    context.fillText(letter, 0, kind === 0 ? CELL * 0.1 : CELL * 0.03);
    context.restore();
  });
  const texture = new THREE.CanvasTexture(canvas);
  texture.generateMipmaps = true;
  texture.minFilter = THREE.LinearMipmapLinearFilter;
  return texture;
}

/** Triangle, diamond, disc, square: the heavier, the fuller. */
function shapeOf(context, kind, r) {
  if (kind === 0) {
    context.moveTo(0, -r);
    context.lineTo(r, 0.8 * r);
    context.lineTo(-r, 0.8 * r);
  } else if (kind === 1) {
    context.moveTo(0, -r);
    context.lineTo(r, 0);
    context.lineTo(0, r);
    context.lineTo(-r, 0);
  } else if (kind === 2) {
    context.arc(0, 0, r * 0.88, 0, 2 * Math.PI);
  } else {
    context.rect(-0.86 * r, -0.86 * r, 1.72 * r, 1.72 * r);
  }
  context.closePath();
}

const VERTEX = `
  attribute vec2 corner;
  attribute vec4 state; // class, health, heat, what is marked: 1 painted, 2 chosen, 4 down or shut
  attribute vec3 tint;
  uniform vec2 size; // of a mark, in clip space
  varying vec2 at;
  varying vec4 vState;
  varying vec3 vTint;
  void main() {
    at = corner;
    vState = state;
    vTint = tint;
    vec4 middle = projectionMatrix * viewMatrix * vec4(position, 1.0);
    float grow = clamp(46.0 / middle.w, 0.75, 1.5);
    middle.xy += (corner * size * grow + vec2(0.0, size.y * grow)) * middle.w;
    gl_Position = middle;
  }`;
const FRAGMENT = `
  uniform sampler2D signs;
  uniform float time;
  varying vec2 at;
  varying vec4 vState;
  varying vec3 vTint;
  void main() {
    float marks = vState.w;
    float chosen = mod(floor(marks / 2.0), 2.0);
    float painted = mod(marks, 2.0);
    float down = floor(marks / 4.0);
    vec4 colour = vec4(0.0);
    vec2 sign = vec2(at.x / 0.62, (at.y - 0.36) / 0.62); // the sign is above, the bars are below
    if (abs(sign.x) < 1.0 && abs(sign.y) < 1.0) {
      vec4 found = texture2D(signs, vec2((vState.x + 0.5 + 0.5 * sign.x) / 4.0, 0.5 + 0.5 * sign.y));
      vec3 body = mix(mix(vTint, vec3(1.0), chosen), vec3(0.35), 0.7 * down);
      colour = vec4(body * found.rgb, found.a);
    }
    if (abs(at.x) < 0.96 && at.y < -0.34 && at.y > -0.66) {
      float share = (at.x + 0.92) / 1.84;
      bool inside = abs(at.x) < 0.92 && at.y > -0.62 && at.y < -0.38;
      vec3 health = vState.y > 0.5 ? vec3(0.35, 0.92, 0.5) : vState.y > 0.25 ? vec3(1.0, 0.82, 0.25) : vec3(1.0, 0.35, 0.3);
      colour = vec4(inside && share < vState.y ? health : vec3(0.05), 0.95);
    }
    if (abs(at.x) < 0.92 && at.y < -0.68 && at.y > -0.82) {
      float share = (at.x + 0.92) / 1.84;
      colour = vec4(share < vState.z ? vec3(1.0, 0.55, 0.1) : vec3(0.05), 0.85);
    }
    if (painted > 0.5) {
      float ring = abs(max(abs(at.x), abs(at.y - 0.36)) - (0.76 + 0.05 * sin(time * 12.0)));
      float corner = min(abs(at.x), abs(at.y - 0.36));
      if (ring < 0.07 && corner > 0.3) colour = vec4(1.0, 0.25, 0.95, 1.0);
    }
    if (colour.a < 0.3) discard;
    gl_FragColor = colour;
  }`;

export class Marks {
  constructor(battle) {
    this.battle = battle;
    this.geometry = new THREE.BufferGeometry();
    const corners = new Float32Array(8 * battle.count);
    const order = [];
    for (let i = 0; i < battle.count; i++) {
      corners.set([-1, -1, 1, -1, 1, 1, -1, 1], 8 * i);
      order.push(...[0, 1, 2, 0, 2, 3].map((corner) => 4 * i + corner));
    }
    this.geometry.setIndex(order);
    this.geometry.setAttribute("corner", new THREE.BufferAttribute(corners, 2));
    for (const [name, size] of Object.entries({ position: 3, state: 4, tint: 3 })) {
      this.geometry.setAttribute(name, new THREE.BufferAttribute(new Float32Array(4 * size * battle.count), size));
    }
    this.material = new THREE.ShaderMaterial({
      uniforms: { signs: { value: signSheet() }, size: { value: new THREE.Vector2() }, time: { value: 0 } },
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      depthTest: false,
      transparent: true,
    });
    this.object = new THREE.Mesh(this.geometry, this.material);
    this.object.frustumCulled = false;
    this.object.renderOrder = 20;
  }

  update(time, chosen, width, height) {
    const { battle, geometry } = this;
    const { position, state, tint } = geometry.attributes;
    let shown = 0;
    for (let i = 0; i < battle.count; i++) {
      if (!battle.isAlive(i, time)) continue;
      const chassis = battle.header.classes[battle.kinds[i]];
      const { x, y, z } = battle.pose(i, time);
      const down = battle.flag(i, "shut", time) || battle.at(i, "fallen", time) > 0;
      const marks = (battle.at(i, "painted", time) > 0 ? 1 : 0) + (i === chosen ? 2 : 0) + (down ? 4 : 0);
      const heat = Math.min(1, battle.at(i, "heat", time) / chassis.heat_capacity);
      for (let corner = 0; corner < 4; corner++, shown++) {
        position.setXYZ(shown, x, y, z + 0.62 * chassis.height);
        state.setXYZW(shown, battle.kinds[i], battle.at(i, "hp", time) / chassis.hp, heat, marks);
        tint.setXYZ(shown, ...TEAM_COLOURS[battle.teams[i]]);
      }
    }
    geometry.setDrawRange(0, (6 * shown) / 4);
    for (const attribute of [position, state, tint]) attribute.needsUpdate = true;
    const pixels = Math.max(11, Math.min(16, width / 70)); // half a mark
    this.material.uniforms.size.value.set((2 * pixels) / width, (2 * pixels) / height);
    this.material.uniforms.time.value = time;
  }

  dispose() {
    this.geometry.dispose();
    this.material.uniforms.signs.value.dispose();
    this.material.dispose();
  }
}
