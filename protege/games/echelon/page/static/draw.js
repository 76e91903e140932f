// Shapes that are written anew for every picture: boxes, balls, rings, ribbons. All of a kind are one mesh of plain
// quads: to software that plays graphics card, every copy of an instanced mesh would cost as much as a mesh of its own.

import * as THREE from "/vendor/three-0.170.0.module.min.js";

THREE.ColorManagement.enabled = false; // colours are meant as they are written, and a pixel less has to be computed

const CORNERS = [-1, -1, 1, -1, 1, 1, -1, 1];

/** Quads of one material, as many as a picture needs. */
export class Brush {
  constructor(material, most) {
    this.most = most;
    this.count = 0;
    const geometry = new THREE.BufferGeometry();
    this.places = new Float32Array(12 * most);
    this.colours = new Uint8Array(16 * most);
    const order = new Uint16Array(6 * most);
    const corners = new Float32Array(8 * most);
    for (let quad = 0; quad < most; quad++) {
      order.set(
        [0, 1, 2, 0, 2, 3].map((corner) => 4 * quad + corner),
        6 * quad,
      );
      corners.set(CORNERS, 8 * quad);
    }
    geometry.setIndex(new THREE.BufferAttribute(order, 1));
    geometry.setAttribute("position", new THREE.BufferAttribute(this.places, 3).setUsage(THREE.DynamicDrawUsage));
    geometry.setAttribute("color", new THREE.BufferAttribute(this.colours, 4, true).setUsage(THREE.DynamicDrawUsage));
    geometry.setAttribute("corner", new THREE.BufferAttribute(corners, 2));
    this.mesh = new THREE.Mesh(geometry, material);
    this.mesh.frustumCulled = false;
  }

  /** The same quads once more, in another material. */
  again(material) {
    this.second = new THREE.Mesh(this.mesh.geometry, material);
    this.second.frustumCulled = false;
    return this.second;
  }

  begin() {
    this.count = 0;
  }

  /** A quad around a middle, reaching to both sides along two vectors; its colour is red, green, blue, 0 to 1. */
  quad(x, y, z, ux, uy, uz, vx, vy, vz, [red, green, blue], bright = 1, alpha = 1) {
    if (this.count >= this.most) return;
    const { places, colours } = this;
    let at = 12 * this.count;
    for (let corner = 0; corner < 4; corner++) {
      const [u, v] = [CORNERS[2 * corner], CORNERS[2 * corner + 1]];
      places[at++] = x + u * ux + v * vx;
      places[at++] = y + u * uy + v * vy;
      places[at++] = z + u * uz + v * vz;
    }
    at = 16 * this.count;
    const scale = 255 * bright;
    for (let corner = 0; corner < 4; corner++) {
      colours[at++] = Math.min(255, red * scale);
      colours[at++] = Math.min(255, green * scale);
      colours[at++] = Math.min(255, blue * scale);
      colours[at++] = 255 * alpha;
    }
    this.count += 1;
  }

  end() {
    const { geometry } = this.mesh;
    geometry.setDrawRange(0, 6 * this.count);
    this.mesh.visible = this.count > 0;
    for (const name of ["position", "color"]) {
      const attribute = /** @type {THREE.BufferAttribute} */ (geometry.attributes[name]);
      attribute.clearUpdateRanges();
      attribute.addUpdateRange(0, 4 * this.count * attribute.itemSize);
      attribute.needsUpdate = true;
    }
  }

  dispose() {
    this.mesh.geometry.dispose();
    this.mesh.material.dispose();
    this.second?.material.dispose();
  }
}

/**
 * Red, green and blue of a colour, 0 to 1.
 *
 * @param {number} hex
 * @returns {[number, number, number]}
 */
export const rgb = (hex) => [(hex >> 16) / 255, ((hex >> 8) & 255) / 255, (hex & 255) / 255];

/**
 * What is as bright as it was built: the least that can be computed for a pixel.
 *
 * @param {THREE.ShaderMaterialParameters} settings
 */
export const coloured = ({ opacity = 1, ...options } = {}) =>
  new THREE.ShaderMaterial({
    vertexShader: `
      attribute vec4 color;
      varying vec3 tint;
      void main() {
        tint = color.rgb;
        gl_Position = projectionMatrix * viewMatrix * vec4(position, 1.0);
      }`,
    fragmentShader: `varying vec3 tint; void main() { gl_FragColor = vec4(tint, ${opacity.toFixed(2)}); }`,
    ...options,
  });

export const plain = (options = {}) =>
  new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.DoubleSide, ...options });

/** Balls and rings on flat quads: what is drawn of a quad is decided by how far a pixel is from its middle. */
function shaped(fragment, options) {
  return new THREE.ShaderMaterial({
    vertexShader: `
      attribute vec4 color;
      attribute vec2 corner;
      varying vec2 at;
      varying vec4 tint;
      void main() {
        at = corner;
        tint = color;
        gl_Position = projectionMatrix * viewMatrix * vec4(position, 1.0);
      }`,
    fragmentShader: `
      varying vec2 at;
      varying vec4 tint;
      void main() {
        float far = dot(at, at);
        if (far > 1.0) discard;
        ${fragment}
      }`,
    side: THREE.DoubleSide,
    transparent: true,
    depthWrite: false,
    ...options,
  });
}

export const glowing = () =>
  shaped("gl_FragColor = vec4(tint.rgb * (1.0 - far), 1.0);", { blending: THREE.AdditiveBlending });

export const smoking = () =>
  shaped(`
    float up = 0.8 + 0.2 * at.y;
    gl_FragColor = vec4(tint.rgb * up, tint.a * min(1.0, 2.2 * (1.0 - far)));`);

export const ringing = (inner) =>
  shaped(`
    if (far < ${(inner * inner).toFixed(4)}) discard;
    gl_FragColor = vec4(tint.rgb, tint.a);`);

const SUN = [0.35, -0.5, 0.79];

/** A box along three unit axes; only the faces that look at the eye, each as bright as the sun makes it. */
export function drawBox(brush, eye, x, y, z, axes, half, colour, bright = 1) {
  for (let n = 0; n < 3; n++) {
    const [nx, ny, nz] = axes[n];
    const reach = half[n];
    const toEye = nx * (eye.x - x) + ny * (eye.y - y) + nz * (eye.z - z);
    if (Math.abs(toEye) <= reach) continue;
    const side = Math.sign(toEye);
    const light = 0.62 + 0.42 * side * (nx * SUN[0] + ny * SUN[1] + nz * SUN[2]);
    const [u, v] = [axes[(n + 1) % 3], axes[(n + 2) % 3]];
    const [a, b] = [half[(n + 1) % 3], half[(n + 2) % 3]];
    const out = side * reach;
    brush.quad(
      ...[x + out * nx, y + out * ny, z + out * nz],
      ...[a * u[0], a * u[1], a * u[2]],
      ...[b * v[0], b * v[1], b * v[2]],
      colour,
      bright * light,
    );
  }
}

const EAST = [1, 0, 0];
const NORTH = [0, 1, 0];
const UP = [0, 0, 1];
export const UPRIGHT = [EAST, NORTH, UP];

/** A rod from here to there. */
export function drawRod(brush, eye, from, to, width, colour, bright = 1) {
  const way = [to.x - from.x, to.y - from.y, to.z - from.z];
  const length = Math.hypot(...way);
  if (length < 1e-6) return;
  const along = way.map((part) => part / length);
  const side = Math.hypot(along[0], along[1]) > 1e-3 ? normal([-along[1], along[0], 0]) : NORTH;
  const middle = [(from.x + to.x) / 2, (from.y + to.y) / 2, (from.z + to.z) / 2];
  drawBox(brush, eye, ...middle, [along, side, cross(along, side)], [length / 2, width / 2, width / 2], colour, bright);
}

/** A ball that always faces the camera; drawn at its front, so that what stands in its middle does not cut it. */
export function drawBall(brush, camera, x, y, z, size, colour, bright = 1, alpha = 1) {
  const m = camera.matrixWorld.elements;
  const [ex, ey, ez] = [camera.position.x - x, camera.position.y - y, camera.position.z - z];
  const far = Math.hypot(ex, ey, ez);
  if (far < 2 * size) return; // the camera is inside
  const near = size / far;
  const shown = size * (1 - near);
  brush.quad(
    ...[x + near * ex, y + near * ey, z + near * ez],
    ...[shown * m[0], shown * m[1], shown * m[2]],
    ...[shown * m[4], shown * m[5], shown * m[6]],
    colour,
    bright,
    alpha,
  );
}

/** A ring that lies flat, of quads: for those too wide to be cut out of one. */
export function drawHoop(brush, x, y, z, radius, width, parts, colour, bright = 1, alpha = 1) {
  const turn = Math.PI / parts;
  const half = radius * Math.sin(turn);
  for (let i = 0; i < parts; i++) {
    const [sin, cos] = [Math.sin((2 * i + 1) * turn), Math.cos((2 * i + 1) * turn)];
    const middle = radius * Math.cos(turn) - width / 2;
    brush.quad(
      ...[x + middle * cos, y + middle * sin, z],
      ...[-half * sin, half * cos, 0],
      ...[(width / 2) * cos, (width / 2) * sin, 0],
      colour,
      bright,
      alpha,
    );
  }
}

const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

function normal(vector) {
  const length = Math.hypot(...vector);
  return vector.map((part) => part / length);
}
