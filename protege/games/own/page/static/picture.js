// Pictures of a game over a socket, drawn as they come.

import { HOPELESS, Line, el } from "/page.js";

/** The game whose part of the page this is: the folder that the module came from. */
export const GAME = decodeURIComponent(new URL(import.meta.url).pathname.split("/")[2]);

/** A message: the length of a JSON text, the text, and a PNG file. */
export function decode(message) {
  const length = new DataView(message).getUint32(0, true);
  const said = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, length)));
  return { said, picture: new Blob([new Uint8Array(message, 4 + length)], { type: "image/png" }) };
}

/** A live view on the server and the canvas it is drawn on. Rests while nobody can see it. */
export class Picture {
  /** @type {Line | null} */
  line = null;

  constructor(path, heard, failed) {
    this.path = path;
    this.heard = heard;
    this.failed = failed;
    this.canvas = el("canvas", {
      class: "picture",
      width: 320,
      height: 240,
      role: "img",
      "aria-label": `${GAME}, live`,
    });
    this.onHidden = () => (document.hidden ? this.rest() : this.begin());
    document.addEventListener("visibilitychange", this.onHidden);
    this.begin();
  }

  begin() {
    if (this.line || document.hidden) return;
    this.line = new Line(this.path, {
      patience: 30_000,
      heard: (message) => {
        if (typeof message === "string") return this.failed(JSON.parse(message).error);
        const { said, picture } = decode(message);
        this.draw(picture);
        this.heard(said);
      },
      lost: (code) => code === HOPELESS || this.failed(""), // then it has been said why
    });
  }

  async draw(picture) {
    const bitmap = await createImageBitmap(picture);
    if (this.canvas.width !== bitmap.width) this.canvas.width = bitmap.width;
    if (this.canvas.height !== bitmap.height) this.canvas.height = bitmap.height;
    this.canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    bitmap.close();
  }

  say(words) {
    this.line?.say(words);
  }

  rest() {
    this.line?.close();
    this.line = null;
  }

  close() {
    this.rest();
    document.removeEventListener("visibilitychange", this.onHidden);
  }
}
