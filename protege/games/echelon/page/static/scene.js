// A battle on a canvas: the scene put together, drawn at a time, and what a pointer does to it.

import * as THREE from "/vendor/three-0.170.0.module.min.js";
import { Rig } from "./camera.js";
import { Effects } from "./effects.js";
import { Marks } from "./marks.js";
import { WorldMesh, heatMap } from "./world.js";

const SKY = 0x0a0d14;
const SLOW_S = 1 / 21; // between two pictures: slower, and they get coarser
const FAST_S = 1 / 34; // faster, and they get finer again
const COARSEST = 0.5; // of the width
const STEP = 0.125;
const SETTLE = 12; // pictures before it is judged again
const CLICK_PIXELS = 5; // a press that moves less is a click
const UNDER_FIGURES = 0.07; // of the height: the middle of the picture is moved down, because its top is written on
const REACH_PIXELS = 34; // how near a click must be to a mech

/** Whether pictures are computed by the processor: then every pixel counts. */
function isSoftware() {
  const probe = document.createElement("canvas").getContext("webgl2");
  if (!probe) return null;
  const info = probe.getExtension("WEBGL_debug_renderer_info");
  const name = info ? probe.getParameter(info.UNMASKED_RENDERER_WEBGL) : "";
  probe.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software|basic render/i.test(name);
}

/** A canvas with a battle on it. `clicked` is told which mech was meant, or null. */
export class Stage {
  /** @type {import("./battle.js").Battle | null} */
  battle = null;
  /** @type {Rig | null} */
  rig = null;
  /** @type {WorldMesh | null} */
  world = null;
  /** @type {Effects | null} */
  effects = null;
  /** @type {Marks | null} */
  marks = null;
  /** @type {{ object: THREE.Object3D, dispose: () => void }[]} */
  layers = [];
  /** @type {ReturnType<typeof heatMap> | null} */
  heat = null;
  scene = new THREE.Scene();
  time = 0;
  stale = true;
  drawn = 0;
  rebuilt = 0;
  fineness = 1; // of the picture while the battle plays
  shownFineness = 1;
  mean = 1 / 30; // seconds a picture
  judged = 0; // pictures since the fineness was last changed

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(mech: number | null) => void} clicked
   * @param {() => void} grabbed
   */
  constructor(canvas, clicked, grabbed) {
    this.canvas = canvas;
    this.clicked = clicked;
    this.grabbed = grabbed;
    const software = isSoftware();
    if (software === null) throw new Error("this browser draws no WebGL, which the 3D view needs");
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !software, powerPreference: "high-performance" });
    this.renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
    this.ratio = software ? 1 : Math.min(2, devicePixelRatio);
    this.renderer.setPixelRatio(this.ratio);
    this.renderer.setClearColor(SKY);
    canvas.dataset.software = String(software);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(canvas);
    this.listen();
    this.resize();
  }

  resize() {
    const [width, height] = [this.canvas.clientWidth || 300, this.canvas.clientHeight || 200];
    this.renderer.setSize(width, height, false);
    if (this.rig) {
      this.rig.camera.aspect = width / height;
      this.rig.camera.setViewOffset(width, height, 0, -UNDER_FIGURES * height, width, height);
    }
    this.stale = true;
  }

  /** Show another battle. */
  take(battle) {
    this.clear();
    this.battle = battle;
    this.world = new WorldMesh(battle);
    this.effects = new Effects(battle);
    this.marks = new Marks(battle);
    this.layers = [this.world, this.effects, this.marks];
    for (const layer of this.layers) this.scene.add(layer.object);
    if (this.rig) this.rig.take(battle);
    else this.rig = new Rig(battle, this.canvas.clientWidth / this.canvas.clientHeight || 1);
    this.resize();
  }

  /** Where mechs died or were hurt, over the whole battle. */
  showHeat(kind) {
    if (this.heat) {
      this.scene.remove(this.heat);
      this.heat.geometry.dispose();
      this.heat.material.map?.dispose();
      this.heat.material.dispose();
    }
    this.heat = null;
    this.stale = true;
    if (!kind || !this.battle) return;
    const kinds = kind === "deaths" ? ["death"] : ["laser_hit", "projectile_hit"];
    const found = this.battle.happened.filter((event) => kinds.includes(event.kind));
    const places = found.map(({ x, y, amount }) => [x, y, kind === "deaths" ? 1 : amount]);
    this.heat = heatMap(this.battle, places, kind === "deaths" ? [255, 40, 60] : [255, 150, 20]);
    this.scene.add(this.heat);
  }

  /** Coarser pictures before slower ones, as long as the battle plays; a picture that stands is as fine as can be. */
  keepPace(seconds, playing) {
    if (playing) {
      this.mean += 0.12 * (Math.min(0.2, seconds) - this.mean);
      this.judged += 1;
      const change = this.mean > SLOW_S ? -STEP : this.mean < FAST_S ? STEP : 0;
      const wanted = Math.min(1, Math.max(COARSEST, this.fineness + change));
      if (this.judged > SETTLE && wanted !== this.fineness) Object.assign(this, { fineness: wanted, judged: 0 });
    }
    const fineness = playing ? this.fineness : 1;
    if (fineness === this.shownFineness) return;
    this.shownFineness = fineness;
    this.renderer.setPixelRatio(this.ratio * fineness);
    this.canvas.dataset.fineness = String(fineness);
  }

  draw(time, chosen, seconds, playing) {
    const { battle, renderer, rig, world } = this;
    if (!battle || !rig || !world) return;
    this.keepPace(seconds, playing);
    battle.seek(time, (cell) => world.touch(cell));
    this.rebuilt += world.update();
    rig.update(time, chosen, seconds);
    rig.camera.updateMatrixWorld();
    this.effects?.update(time, chosen, rig.camera);
    this.marks?.update(time, chosen, this.canvas.clientWidth, this.canvas.clientHeight);
    renderer.render(this.scene, rig.camera);
    this.drawn += 1;
    this.canvas.dataset.drawn = String(this.drawn);
    this.stale = false;
    this.time = time;
  }

  /** The living mech whose mark or body is nearest to a place on the canvas. */
  pick(px, py) {
    const { battle, rig, canvas } = this;
    if (!battle || !rig) return null;
    const place = new THREE.Vector3();
    /** @type {number | null} */
    let best = null;
    let nearest = REACH_PIXELS;
    for (let i = 0; i < battle.count; i++) {
      if (!battle.isAlive(i, this.time)) continue;
      const { x, y, z } = battle.pose(i, this.time);
      place.set(x, y, z + 0.5).project(rig.camera);
      if (place.z > 1) continue;
      const away = Math.hypot(
        ((place.x + 1) / 2) * canvas.clientWidth - px,
        ((1 - place.y) / 2) * canvas.clientHeight - py,
      );
      if (away < nearest) [best, nearest] = [i, away];
    }
    return best;
  }

  // --- hands ---

  listen() {
    const { canvas } = this;
    const held = new Map();
    let moved = 0;
    let spread = 0;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [event.clientX, event.clientY]);
      if (held.size === 1) moved = 0;
      spread = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId) || !this.battle) return;
      const [x, y] = held.get(event.pointerId);
      const [dx, dy] = [event.clientX - x, event.clientY - y];
      moved += Math.abs(dx) + Math.abs(dy);
      held.set(event.pointerId, [event.clientX, event.clientY]);
      if (moved < CLICK_PIXELS) return;
      this.grab();
      if (held.size > 1) {
        const [[ax, ay], [bx, by]] = [...held.values()];
        const now = Math.hypot(ax - bx, ay - by);
        if (spread) this.rig?.zoom(spread / now);
        spread = now;
        this.rig?.pan(dx / 2, dy / 2);
      } else if (event.buttons & 2 || event.shiftKey) this.rig?.pan(dx, dy);
      else this.rig?.orbit(dx, dy);
      this.stale = true;
    });
    const release = (event) => {
      const was = held.delete(event.pointerId);
      if (!was || event.type !== "pointerup" || moved >= CLICK_PIXELS || !this.battle) return;
      const box = canvas.getBoundingClientRect();
      this.clicked(this.pick(event.clientX - box.left, event.clientY - box.top));
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (!this.battle) return;
        this.grab();
        this.rig?.zoom(Math.exp(0.0012 * Math.max(-240, Math.min(240, event.deltaY))));
        this.stale = true;
      },
      { passive: false },
    );
  }

  /** A hand on the picture: from here on it is the one that moves the camera. */
  grab() {
    if (!this.rig || this.rig.mode === "free") return;
    this.rig.set("free");
    this.grabbed();
  }

  clear() {
    this.showHeat(null);
    for (const layer of this.layers) {
      this.scene.remove(layer.object);
      layer.dispose();
    }
    this.layers = [];
    this.battle = null;
  }

  destroy() {
    this.clear();
    this.watcher.disconnect();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }
}
