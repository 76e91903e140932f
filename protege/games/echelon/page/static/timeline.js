// The course of a battle on one strip: who led by how much, when the zone was fought for, and every moment worth a look.

import { clock } from "./hud.js";
import { el } from "/page.js";

const COLOURS = ["#3aa2ff", "#ff5340"];
const NEAR_PIXELS = 7;

/** A strip to see and to seek in; `sought` gets seconds. */
export class Timeline {
  /** @type {import("./battle.js").Battle[]} */
  battles = [];
  duration = 0;

  constructor(sought) {
    this.canvas = el("canvas", { class: "course", "aria-hidden": "true" });
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: 1,
      step: 0.05,
      value: 0,
      "aria-label": "Time in the battle",
      oninput: () => sought(Number(this.slider.value)),
      onpointermove: (event) => this.hint(event),
    });
    this.element = el("div", { class: "timeline" }, this.canvas, this.slider);
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.canvas);
  }

  take(battles) {
    this.battles = battles;
    this.duration = Math.max(...battles.map(({ duration }) => duration));
    this.slider.max = String(this.duration);
    this.draw();
  }

  show(time) {
    this.slider.value = time;
    this.slider.setAttribute("aria-valuetext", `${clock(time)} of ${clock(this.duration)}`);
  }

  x(time) {
    return (time / this.duration) * this.canvas.width;
  }

  draw() {
    if (!this.battles.length) return;
    const { canvas } = this;
    canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
    canvas.height = Math.max(1, Math.round(canvas.clientHeight * devicePixelRatio));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const tall = canvas.height / this.battles.length;
    this.battles.forEach((battle, n) => {
      context.save();
      context.translate(0, n * tall);
      this.drawOne(context, battle, tall);
      context.restore();
    });
  }

  drawOne(context, battle, tall) {
    const { score, tonnage } = battle.now;
    const middle = tall / 2;
    const wide = this.x(battle.step) + 0.6;
    let most = 5;
    for (let frame = 0; frame < battle.frames; frame++)
      most = Math.max(most, Math.abs(score[2 * frame] - score[2 * frame + 1]));
    for (let frame = 0; frame < battle.frames; frame++) {
      const at = this.x(frame * battle.step);
      const [blue, red] = [tonnage[2 * frame] > 0, tonnage[2 * frame + 1] > 0];
      context.globalAlpha = 0.22;
      context.fillStyle = blue && red ? "#ffffff" : COLOURS[blue ? 0 : 1];
      if (blue || red) context.fillRect(at, 0, wide, tall);
      const lead = (score[2 * frame] - score[2 * frame + 1]) / most;
      context.globalAlpha = 0.85;
      context.fillStyle = COLOURS[lead > 0 ? 0 : 1];
      context.fillRect(at, lead > 0 ? middle * (1 - lead) : middle, wide, Math.abs(lead) * middle);
    }
    context.globalAlpha = 1;
    for (const { time, kind, team } of battle.moments) {
      if (kind !== "kill" && kind !== "knockdown" && kind !== "lead") continue;
      const [at, up] = [this.x(time), team === 1]; // what hurts red is blue's, and stands above
      context.fillStyle = kind === "lead" ? "#ffe61e" : kind === "kill" ? "#fff" : "#9aa3b8";
      const size = (kind === "kill" ? 0.3 : 0.18) * tall;
      if (kind === "lead") context.fillRect(at - 0.75, 0, 1.5, tall);
      else {
        context.beginPath();
        context.moveTo(at, up ? size : tall - size);
        context.lineTo(at - size * 0.55, up ? 0 : tall);
        context.lineTo(at + size * 0.55, up ? 0 : tall);
        context.fill();
      }
    }
  }

  /** What the mark under the pointer stands for. */
  hint(event) {
    if (!this.battles.length) return;
    const box = this.canvas.getBoundingClientRect();
    const time = ((event.clientX - box.left) / box.width) * this.duration;
    const reach = (NEAR_PIXELS / box.width) * this.duration;
    const near = this.battles[0].moments.filter((one) => Math.abs(one.time - time) < reach);
    this.slider.title = near.map((one) => `${clock(one.time)} ${one.text}`).join("\n");
  }

  destroy() {
    this.watcher.disconnect();
  }
}
