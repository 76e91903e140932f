// The map as meshes: surfaces of voxels, shaded once when they are built, in square chunks that are rebuilt when
// something in them changes. Light and corners are baked into the colours, so a pixel costs next to nothing.

import { coloured } from "./draw.js";
import * as THREE from "/vendor/three-0.170.0.module.min.js";

const CHUNK = 25; // columns along a side
const AIR = 0;
const LAVA = 2;
const WATER = 3;
const DIRT = 6;
const GLASS = 7;
const FOLIAGE = 9;
const FLAT = new Set([AIR, LAVA, WATER, DIRT]); // on the lowest layer these are ground to walk on, not blocks
const ROW = 1024; // more than a map is long
const TILE = 10; // columns: ground and walls change their shade a little from tile to tile, to give a scale

// Seen from the default camera: what the sun lights. Axis, side, light, and the two axes across the face.
const FACES = [
  { axis: 2, side: 1, light: 1.0, u: 0, v: 1 },
  { axis: 0, side: 1, light: 0.8, u: 1, v: 2 },
  { axis: 0, side: -1, light: 0.6, u: 1, v: 2 },
  { axis: 1, side: 1, light: 0.52, u: 0, v: 2 },
  { axis: 1, side: -1, light: 0.7, u: 0, v: 2 },
  { axis: 2, side: -1, light: 0.4, u: 0, v: 1 },
];
const OPEN = 255; // all four corners free, as two bits each
const ABOVE_FLOOR = 0.015; // voxels: what lies on the floor must not flicker with it
const CORNER_LIGHT = [0.55, 0.7, 0.85, 1.0]; // by how many of a corner's three neighbours are free

// What the page shows of a material where the recording's own colour would not tell it from the rest.
const TINTS = {
  1: [0.5, 0.53, 0.6],
  2: [1.0, 0.36, 0.1],
  3: [0.13, 0.36, 0.62],
  4: [0.3, 0.25, 0.22],
  5: [0.2, 0.18, 0.18],
  6: [0.235, 0.255, 0.285],
  8: [0.3, 0.34, 0.45],
  9: [0.2, 0.46, 0.26],
};

export class WorldMesh {
  constructor(battle) {
    this.battle = battle;
    this.object = new THREE.Group();
    this.chunks = new Map();
    this.dirty = new Set();
    this.solid = coloured();
    this.clear = new THREE.MeshBasicMaterial({
      vertexColors: true,
      transparent: true,
      opacity: 0.38,
      depthWrite: false,
    });
    this.tints = battle.header.materials.map(({ colour }, id) => TINTS[id] ?? colour.map((value) => value / 255));
    this.top = 1 + this.highest();
    this.floor = new THREE.Mesh(this.tiles(), this.solid);
    this.floor.renderOrder = 1; // after the blocks, which hide much of it
    this.object.add(this.floor);
    for (let y = 0; y < battle.Y; y += CHUNK) for (let x = 0; x < battle.X; x += CHUNK) this.dirty.add(`${x} ${y}`);
    this.update();
  }

  /** Open ground: large tiles under the whole map, on which everything else stands. */
  tiles() {
    const { X, Y } = this.battle;
    const made = new Quads();
    for (let y = 0; y < Y; y += TILE) {
      for (let x = 0; x < X; x += TILE) {
        const [right, back] = [Math.min(X, x + TILE), Math.min(Y, y + TILE)];
        const points = [
          [x, y, 0],
          [right, y, 0],
          [right, back, 0],
          [x, back, 0],
        ];
        const shade = shadeOfTile(x, y);
        made.add(points, [shade, shade, shade, shade], this.tints[DIRT], true, [3, 3, 3, 3]);
      }
    }
    return made.geometry();
  }

  /** The highest layer that ever holds anything. */
  highest() {
    const { grid, changed, X, Y } = this.battle;
    let last = grid.length - 1;
    while (last > 0 && grid[last] === AIR) last--;
    return Math.floor(Math.max(last, ...changed.map(({ cell }) => cell)) / (X * Y));
  }

  /** A voxel is another one: its chunk, and those whose corners it shades, must be built anew. */
  touch(cell) {
    const { X, Y } = this.battle;
    const [x, y] = [cell % X, Math.floor(cell / X) % Y];
    for (const dy of [-1, 0, 1]) {
      for (const dx of [-1, 0, 1]) {
        const [ox, oy] = [x + dx, y + dy];
        if (ox >= 0 && oy >= 0 && ox < X && oy < Y) this.dirty.add(`${ox - (ox % CHUNK)} ${oy - (oy % CHUNK)}`);
      }
    }
  }

  update() {
    for (const key of this.dirty) {
      const [x, y] = key.split(" ").map(Number);
      const old = this.chunks.get(key);
      for (const mesh of old ?? []) {
        this.object.remove(mesh);
        mesh.geometry.dispose();
      }
      const [solid, clear] = this.build(x, y);
      const meshes = [];
      if (solid.count) meshes.push(new THREE.Mesh(solid.geometry(), this.solid));
      if (clear.count) meshes.push(new THREE.Mesh(clear.geometry(), this.clear));
      for (const mesh of meshes) {
        mesh.matrixAutoUpdate = false;
        this.object.add(mesh);
      }
      this.chunks.set(key, meshes);
    }
    const built = this.dirty.size;
    this.dirty.clear();
    return built;
  }

  material(x, y, z) {
    const { grid, X, Y, Z } = this.battle;
    if (x < 0 || y < 0 || z < 0 || x >= X || y >= Y || z >= Z) return AIR;
    return grid[(z * Y + y) * X + x];
  }

  /** Whether a voxel hides the faces of its neighbours. */
  fills(x, y, z) {
    const material = this.material(x, y, z);
    return material !== AIR && material !== GLASS && !(z === 0 && FLAT.has(material));
  }

  build(x0, y0) {
    const { battle } = this;
    const made = [new Quads(), new Quads()];
    const from = [x0, y0, 0];
    const ends = [Math.min(battle.X, x0 + CHUNK), Math.min(battle.Y, y0 + CHUNK), this.top];
    for (const face of FACES) {
      const { axis, u, v } = face;
      /** @type {[number, number, number]} */
      const at = [0, 0, 0];
      for (at[axis] = from[axis]; at[axis] < ends[axis]; at[axis]++) {
        const seen = new Map(); // row by row: what is to be seen of this layer
        for (at[v] = from[v]; at[v] < ends[v]; at[v]++) {
          for (at[u] = from[u]; at[u] < ends[u]; at[u]++) {
            const found = this.face(face, at);
            if (found) seen.set(at[v] * ROW + at[u], found);
          }
        }
        this.merge(seen, face, at[axis], made);
      }
    }
    return made;
  }

  /** Equal faces beside each other become one, as far as the shade at their corners allows it. */
  merge(seen, face, layer, made) {
    for (const [start, one] of seen) {
      const [a, b, c, d] = one.corners;
      const same = (place) => seen.get(place)?.key === one.key;
      let [wide, tall] = [1, 1];
      if (a === b && c === d) while (same(start + wide)) wide += 1;
      const row = (n) => Array.from({ length: wide }, (_, i) => start + n * ROW + i);
      if (a === d && b === c) while (row(tall).every(same)) tall += 1;
      for (let n = 0; n < tall; n++) for (const place of row(n)) seen.delete(place);
      /** @type {[number, number, number]} */
      const at = [0, 0, 0];
      [at[face.axis], at[face.u], at[face.v]] = [layer, start % ROW, Math.floor(start / ROW)];
      this.emit({ ...one, at, wide, tall }, face, made);
    }
  }

  /** What a face looks like, or null where there is none to see. */
  face(face, [x, y, z]) {
    const material = this.material(x, y, z);
    const ground = z === 0 && FLAT.has(material);
    if (ground ? face.axis !== 2 || face.side < 0 : material === AIR) return null;
    /** @type {[number, number, number]} */
    const next = [x, y, z];
    next[face.axis] += face.side;
    if (!ground) {
      if (next[2] < 0 || this.fills(...next)) return null;
      if (material === GLASS && this.material(...next) === GLASS) return null;
    } else {
      next[2] = 0; // ground lies under its own layer
    }
    const corners = [0, 1, 2, 3].map((corner) => this.corner(face, next, corner));
    const shade = corners.reduce((sum, free) => 4 * sum + free, 0);
    if (ground && shade === OPEN && material !== LAVA && material !== WATER) return null; // the floor shows it
    const tile = shadeOfTile(x, y) === 1 ? 1 : 0;
    return { material, ground, corners, key: (material * 2 + tile) * 256 + shade };
  }

  /** How many of the three neighbours at a corner of a face are free, in the layer before it. */
  corner({ u, v }, [x, y, z], corner) {
    const du = corner === 1 || corner === 2 ? 1 : -1;
    const dv = corner >= 2 ? 1 : -1;
    const look = (alongU, alongV) => {
      const at = [x, y, z];
      at[u] += alongU;
      at[v] += alongV;
      return this.fills(...at) ? 0 : 1;
    };
    const [one, two] = [look(du, 0), look(0, dv)];
    return one + two === 0 ? 0 : one + two + look(du, dv);
  }

  emit({ material, ground, corners, at, wide, tall }, { axis, side, light, u, v }, [solid, clear]) {
    const leaf = material === FOLIAGE ? 0.06 : 0;
    const tint = this.tints[material === AIR ? DIRT : material];
    const glow = light * shadeOfTile(at[0], at[1]);
    const base = [...at];
    base[axis] += ground ? ABOVE_FLOOR : side > 0 ? 1 - leaf : leaf;
    const points = [0, 1, 2, 3].map((corner) => {
      const point = [...base];
      if (corner === 1 || corner === 2) point[u] += wide;
      if (corner >= 2) point[v] += tall;
      return point;
    });
    const shades = points.map(([, , z], corner) =>
      material === LAVA ? 1 : glow * CORNER_LIGHT[corners[corner]] * (ground ? 1 : 0.86 + 0.024 * z),
    );
    // Which way round is seen depends on the axes: y across x and z is left-handed.
    const forward = (axis === 1 ? -1 : 1) * side > 0;
    (material === GLASS ? clear : solid).add(points, shades, tint, forward, corners);
  }

  dispose() {
    for (const meshes of this.chunks.values()) for (const mesh of meshes) mesh.geometry.dispose();
    this.floor.geometry.dispose();
    this.solid.dispose();
    this.clear.dispose();
  }
}

const shadeOfTile = (x, y) => ((Math.floor(x / TILE) + Math.floor(y / TILE)) & 1 ? 1 : 0.955);

/** Quads on their way to a geometry. */
class Quads {
  constructor() {
    this.count = 0;
    this.positions = [];
    this.colours = [];
    this.order = [];
  }

  add(points, shades, tint, forward, corners) {
    const first = 4 * this.count++;
    points.forEach((point, i) => {
      this.positions.push(...point);
      for (const part of tint) this.colours.push(Math.min(255, 255 * part * shades[i]));
    });
    // The diagonal runs between the brighter corners, or the shade would show a crease.
    const turn = corners[0] + corners[2] < corners[1] + corners[3] ? 1 : 0;
    const ring = [0, 1, 2, 3].map((i) => first + ((i + turn) % 4));
    if (!forward) ring.reverse();
    this.order.push(ring[0], ring[1], ring[2], ring[0], ring[2], ring[3]);
  }

  geometry() {
    const made = new THREE.BufferGeometry();
    made.setAttribute("position", new THREE.BufferAttribute(new Float32Array(this.positions), 3));
    made.setAttribute("color", new THREE.BufferAttribute(new Uint8Array(this.colours), 3, true));
    made.setIndex(
      this.positions.length / 3 > 65535 ? this.order : new THREE.BufferAttribute(new Uint16Array(this.order), 1),
    );
    made.computeBoundingSphere();
    return made;
  }
}

/** Where things happened, as a sheet of light over the map: `places` are x, y and how much. */
export function heatMap(battle, places, colour) {
  const { X, Y } = battle;
  const spread = 2.2; // voxels
  const heat = new Float32Array(X * Y);
  for (const [px, py, amount] of places) {
    for (let y = Math.max(0, Math.floor(py - 7)); y < Math.min(Y, py + 7); y++) {
      for (let x = Math.max(0, Math.floor(px - 7)); x < Math.min(X, px + 7); x++) {
        const far = ((x + 0.5 - px) ** 2 + (y + 0.5 - py) ** 2) / (2 * spread * spread);
        heat[y * X + x] += amount * Math.exp(-far);
      }
    }
  }
  const most = heat.reduce((high, value) => Math.max(high, value), 1e-9);
  const pixels = new Uint8Array(4 * X * Y);
  heat.forEach((value, i) => {
    const share = Math.sqrt(value / most);
    pixels.set(
      [...colour.map((part) => Math.min(255, part + 110 * share * share)), 225 * Math.min(1, 1.15 * share)],
      4 * i,
    );
  });
  const texture = new THREE.DataTexture(pixels, X, Y);
  texture.magFilter = THREE.LinearFilter;
  texture.needsUpdate = true;
  const sheet = new THREE.Mesh(
    new THREE.PlaneGeometry(X, Y),
    new THREE.MeshBasicMaterial({ map: texture, transparent: true, depthTest: false, depthWrite: false }),
  );
  sheet.position.set(X / 2, Y / 2, 0.1);
  sheet.renderOrder = 5;
  return sheet;
}
