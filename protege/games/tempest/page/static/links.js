// Where games of runs and leagues are watched, and the small one beside a run's charts.

import { whole } from "/numbers.js";
import { address, ask, el, liveAddress, write } from "/page.js";
import { Audience, GAME, tube } from "./audience.js";
import { Screen } from "./tube.js";

const view = (settings) => `#/${GAME}/live?${new URLSearchParams(settings)}`;

/** The run's pupil at play, small, as long as it is in sight. */
class Preview {
  constructor(player) {
    this.canvas = tube(`${player} playing ${GAME}`);
    this.note = el("p", { class: "tube-note" }, "waiting for the game");
    this.figures = el("p", { class: "tube-figures" });
    this.element = el(
      "a",
      {
        class: "preview",
        href: view({ player }),
        "aria-label": `Watch ${player} play, large`,
      },
      this.canvas,
      this.note,
      this.figures,
    );
    this.sight = new IntersectionObserver(([seen]) => (seen.isIntersecting ? this.begin(player) : this.rest()));
    this.sight.observe(this.canvas);
  }

  async begin(player) {
    this.wanted = true;
    const { arcades = [] } = await ask(address("games", GAME)).catch(() => ({}));
    if (this.audience || !this.wanted) return;
    const arcade = arcades.find((one) => one.player === player);
    this.audience = new Audience(
      arcade ? liveAddress(GAME, "arcade", { server: arcade.server }) : liveAddress(GAME, "watch", { player }),
      [new Screen(this.canvas)],
      ({ games: [one], note }) => {
        write(this.note, one ? "" : note);
        if (one) write(this.figures, `${whole(one.score)} · level ${one.level}`);
      },
      (reason) => {
        if (reason) write(this.note, reason);
      },
    );
  }

  rest() {
    this.wanted = false;
    this.audience?.close();
    this.audience = null;
  }

  close() {
    this.sight.disconnect();
    this.rest();
  }
}

export const preview = (run) => new Preview(run.name);

export const recordingAddress = (run, file) =>
  file.endsWith(`.${GAME}`) ? view({ player: run.name, kind: "recording", recording: file }) : null;

/** The game that the entry played in a match, played again from its seed. */
export function matchAddress(league, entry, match) {
  const { seed, level } = league.signature;
  return view({ kind: "film", player: entry.name, league: league.name, seed, number: match.map, level });
}
