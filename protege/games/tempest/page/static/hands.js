// A person's hands: keys, mouse, wheel and fingers into commands.

const KEYS = {
  ArrowLeft: "left",
  a: "left",
  A: "left",
  ArrowRight: "right",
  d: "right",
  D: "right",
  " ": "fire",
  x: "fire",
  X: "fire",
  z: "zap",
  Z: "zap",
  Shift: "zap",
};
const SPIN_A_PIXEL = 0.55; // of mouse or finger; a lane is 16
const SPIN_A_NOTCH = 16; // of the wheel

/** Turns keys, mouse, wheel and fingers into words for the server; what the mouse turned is sent once a picture. */
export class Hands {
  held = new Set();
  spin = 0;
  touching = false;
  frame = 0;
  stop = new AbortController();

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(words: object) => void} say
   * @param {() => void} paused
   */
  constructor(canvas, say, paused) {
    this.canvas = canvas;
    this.say = say;
    this.paused = paused;
    const on = (target, type, act, passive = false) =>
      target.addEventListener(type, act, { signal: this.stop.signal, passive });
    on(window, "keydown", (event) => this.key(event, true));
    on(window, "keyup", (event) => this.key(event, false));
    on(window, "blur", () => this.release());
    on(canvas, "pointerdown", (event) => this.pointer(event, true));
    on(canvas, "pointerup", (event) => this.pointer(event, false));
    on(canvas, "pointermove", (event) => {
      if (event.pointerType === "mouse" || this.touching) this.turn(event.movementX * SPIN_A_PIXEL);
    });
    on(canvas, "contextmenu", (event) => event.preventDefault());
    on(canvas, "wheel", (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === 0 ? event.deltaY / 100 : event.deltaY / 3;
      this.turn(pixels * SPIN_A_NOTCH);
    });
  }

  key(event, down) {
    if (event.target.closest?.("input, select, textarea, button, dialog") || event.ctrlKey || event.metaKey) return;
    if (down && (event.key === "p" || event.key === "P" || event.key === "Escape")) return this.paused();
    const control = KEYS[event.key];
    if (!control) return;
    event.preventDefault();
    if (event.repeat) return;
    this.press(control, down);
  }

  press(control, down) {
    if (down) this.held.add(control);
    else this.held.delete(control);
    if (control === "fire" || control === "zap") this.say({ [control]: down });
    else this.say({ turn: Number(this.held.has("right")) - Number(this.held.has("left")) });
  }

  pointer(event, down) {
    event.preventDefault();
    if (event.pointerType === "mouse") {
      this.press(event.button === 2 ? "zap" : "fire", down);
    } else {
      this.touching = down;
      if (down) this.canvas.setPointerCapture(event.pointerId);
    }
  }

  turn(amount) {
    this.spin += amount;
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.say({ spin: this.spin });
      this.spin = 0;
    });
  }

  release() {
    for (const control of [...this.held]) this.press(control, false);
  }

  destroy() {
    this.stop.abort();
    cancelAnimationFrame(this.frame);
  }
}
