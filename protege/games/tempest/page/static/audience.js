// A live view on the server, and the tubes it is drawn on.

import { HOPELESS, Line, el } from "/page.js";
import { decode } from "./tube.js";

export const GAME = "tempest";

/** A live view on the server and the screens it is drawn on. Rests while nobody can see it. */
export class Audience {
  /** @type {Line | null} */
  line = null;

  /**
   * @param {string} path
   * @param {import("./tube.js").Screen[]} screens
   * @param {(said: any) => void} heard
   * @param {(reason: string) => void} failed
   * @param {() => boolean} attentive whether attention is drawn
   */
  constructor(path, screens, heard, failed, attentive = () => false) {
    this.path = path;
    this.screens = screens;
    this.heard = heard;
    this.failed = failed;
    this.attentive = attentive;
    this.onHidden = () => (document.hidden ? this.rest() : this.begin());
    document.addEventListener("visibilitychange", this.onHidden);
    this.begin();
  }

  begin() {
    if (this.line || document.hidden) return;
    this.line = new Line(this.path, {
      patience: 60_000, // the first picture may have to wait for a game to be compiled
      heard: (message) => {
        if (typeof message === "string") return this.failed(JSON.parse(message).error);
        const said = decode(message);
        const attentive = this.attentive();
        said.games.forEach((game, i) => {
          if (game.picture) this.screens[i]?.show(game.picture, attentive ? game.attention : []);
        });
        this.heard(said);
      },
      lost: (code) => code === HOPELESS || this.failed(""), // then it has been said why
    });
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
    for (const screen of this.screens) screen.destroy();
  }
}

export function tube(label) {
  return el("canvas", { class: "tube", width: 300, height: 300, role: "img", "aria-label": label });
}
