// Tempest on a canvas: messages into lines, lines into light.

/** A message of a live view: what is said, and for each drawn game its lines, ready to be stroked. */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const said = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  for (const game of said.games) {
    if (!game.lines) continue;
    game.picture = strokes(buffer, at, game.lines);
    at += 12 * game.lines;
    if (!game.gaze) continue;
    game.attention = strokes(buffer, at, game.gaze);
    at += 12 * game.gaze;
  }
  return said;
}

const STEP = 25; // brightness is told apart in steps of a quarter of an ordinary line

/** Lines of one colour and brightness become one path: a few dozen strokes instead of hundreds. */
function strokes(buffer, at, lines) {
  const ends = new Int16Array(buffer, at, 4 * lines);
  const tints = new Uint8Array(buffer, at + 8 * lines, 3 * lines);
  const light = new Uint8Array(buffer, at + 11 * lines, lines);
  const groups = new Map();
  for (let i = 0; i < light.length; i++) {
    const level = Math.min(9, Math.max(1, Math.round(light[i] / STEP)));
    const key = (tints[3 * i] << 20) | (tints[3 * i + 1] << 12) | (tints[3 * i + 2] << 4) | level;
    let group = groups.get(key);
    if (!group) {
      const [red, green, blue] = tints.subarray(3 * i, 3 * i + 3);
      groups.set(
        key,
        (group = { colour: `rgb(${red} ${green} ${blue})`, light: (level * STEP) / 100, path: new Path2D() }),
      );
    }
    const [x0, y0, x1, y1] = ends.subarray(4 * i, 4 * i + 4);
    const still = Math.abs(x1 - x0) + Math.abs(y1 - y0) < 80; // a point: a line too short to show would vanish
    group.path.moveTo(x0 / 32767, -y0 / 32767);
    group.path.lineTo((still ? x0 + 80 : x1) / 32767, -y1 / 32767);
  }
  return [...groups.values()];
}

const AFTERGLOW_MS = 35; // how fast a picture fades that has been replaced
const MOST_PIXELS = 1400; // across: finer than that nobody sees, and it costs

/** A vector tube: draws the newest picture at the display's rate, over the fading light of those before it. */
export class Screen {
  constructor(canvas, { fine = true } = {}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.fine = fine;
    this.pictures = [];
    this.attention = []; // lines from lanes to what they attend to, thin and without glow
    this.drawn = 0; // pictures shown, for whoever wants to know whether the game moves
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(canvas);
  }

  resize() {
    const wanted = Math.min(MOST_PIXELS, Math.round(this.canvas.clientWidth * devicePixelRatio)) || 300;
    if (this.canvas.width !== wanted) {
      this.canvas.width = this.canvas.height = wanted;
      this.wake();
    }
  }

  show(picture, attention = []) {
    this.attention = attention;
    const now = performance.now();
    const [newest] = this.pictures;
    if (newest) newest.replaced = now;
    this.pictures = [{ strokes: picture, replaced: Infinity }, ...this.pictures].slice(0, 3);
    this.drawn += 1;
    this.canvas.dataset.drawn = this.drawn;
    this.canvas.dataset.attention = attention.length;
    this.wake();
  }

  wake() {
    this.frame ??= requestAnimationFrame((now) => this.draw(now));
  }

  draw(now) {
    this.frame = null;
    const { context, canvas } = this;
    const half = canvas.width / 2;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalCompositeOperation = "source-over";
    context.globalAlpha = 1;
    context.fillStyle = "#000";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(half, 0, 0, half, half, half);
    context.globalCompositeOperation = "lighter";
    context.lineCap = context.lineJoin = "round";
    let fading = false;
    for (const picture of this.pictures) {
      const light = Math.exp(-Math.max(0, now - picture.replaced) / AFTERGLOW_MS);
      if (light < 0.04) continue;
      this.stroke(picture.strokes, light * (picture.replaced === Infinity ? 1 : 0.4), half);
      fading ||= picture.replaced !== Infinity;
    }
    for (const { colour, light, path } of this.attention) {
      context.strokeStyle = colour;
      context.lineWidth = Math.max(0.7 / half, 0.002 + 0.005 * light);
      context.globalAlpha = Math.min(0.8, light);
      context.stroke(path);
    }
    if (fading) this.wake();
  }

  stroke(groups, fraction, half) {
    const { context, fine } = this;
    const core = Math.max(1.1 / half, 0.0046);
    for (const { colour, light, path } of groups) {
      const bright = fraction * light;
      context.strokeStyle = colour;
      if (fine) {
        context.lineWidth = 0.034;
        context.globalAlpha = Math.min(1, 0.09 * bright);
        context.stroke(path);
      }
      context.lineWidth = 3.1 * core;
      context.globalAlpha = Math.min(1, 0.26 * bright);
      context.stroke(path);
      context.lineWidth = core;
      context.globalAlpha = Math.min(1, bright);
      context.stroke(path);
      if (light > 1.1) {
        context.strokeStyle = "#fff";
        context.globalAlpha = Math.min(1, 0.45 * (light - 1) * fraction);
        context.stroke(path);
      }
    }
  }

  destroy() {
    this.watcher.disconnect();
    cancelAnimationFrame(this.frame);
  }
}
