// The live view: a player's episodes as the game draws them.

import { short, whole } from "/numbers.js";
import { address, ask, choice, el, field, liveAddress, write } from "/page.js";
import { GAME, Picture } from "./picture.js";

export default class LiveView {
  /** @type {Picture | null} */
  picture = null;
  paused = false;

  constructor(settings) {
    this.settings = settings;
    this.tools = el("form", { class: "tools", onsubmit: (event) => event.preventDefault() });
    this.stage = el("div", { class: "picture-stage" });
    this.figures = el("p", { class: "picture-figures", role: "status" }, "waiting for the game");
    this.element = el("div", { class: "view" }, this.tools, this.stage, this.figures);
    this.build();
  }

  async build() {
    const { players } = await ask(address("games", GAME)).catch(() => ({ players: [] }));
    const player = this.settings.player ?? players[0] ?? "random";
    if (!players.includes(player)) players.unshift(player);
    this.pauseButton = el("button", { type: "button", "aria-pressed": "false", onclick: () => this.pause() }, "Pause");
    const change = (name) => (location.hash = `#/${GAME}/live?${new URLSearchParams({ player: name })}`);
    const names = players.map((name) => [name, name]);
    this.tools.replaceChildren(field("Player", choice(names, player, change)), this.pauseButton);
    this.picture = new Picture(
      liveAddress(GAME, "watch", { player }),
      (said) =>
        write(
          this.figures,
          `episode ${whole(said.episode)} · frame ${whole(said.frame)} · return ${short(said.return)} · ` +
            `last episode ${short(said.last)}`,
        ),
      (reason) => write(this.figures, reason || "waiting for the game"),
    );
    this.stage.replaceChildren(this.picture.canvas);
  }

  pause() {
    this.paused = !this.paused;
    this.pauseButton?.setAttribute("aria-pressed", String(this.paused));
    this.picture?.say({ pause: this.paused });
  }

  destroy() {
    this.picture?.close();
  }
}
