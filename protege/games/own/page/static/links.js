// The small picture beside a run's charts.

import { el, liveAddress, write } from "/page.js";
import { GAME, Picture } from "./picture.js";

/** The run's pupil at play, small, as long as it is in sight. */
class Preview {
  /** @type {Picture | null} */
  picture = null;

  constructor(player) {
    this.note = el("p", {}, "waiting for the game");
    this.place = el("div", { class: "picture-stage" });
    const href = `#/${GAME}/live?${new URLSearchParams({ player })}`;
    this.element = el(
      "a",
      { class: "preview", href, "aria-label": `Watch ${player} play, large` },
      this.place,
      this.note,
    );
    this.sight = new IntersectionObserver(([seen]) => (seen.isIntersecting ? this.begin(player) : this.rest()));
    this.sight.observe(this.place);
  }

  begin(player) {
    this.picture ??= new Picture(
      liveAddress(GAME, "watch", { player }),
      () => write(this.note, ""),
      (reason) => write(this.note, reason || "waiting for the game"),
    );
    this.place.replaceChildren(this.picture.canvas);
  }

  rest() {
    this.picture?.close();
    this.picture = null;
  }

  close() {
    this.sight.disconnect();
    this.rest();
  }
}

export const preview = (run) => new Preview(run.name);
