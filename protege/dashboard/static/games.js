// The games of this server, and what each adds to the page: tabs, styles, and links from the views that all share.

import { toast } from "./page.js";

/** By name: what the server says of a game, and `links`, what its own module exports. */
export const games = new Map();

/** What a game's module offers to the shared views: `preview`, `recordingAddress`, `matchAddress`, each if it has it. */
export const linksOf = (game) => games.get(game)?.links ?? {};

/** Take over what the server says of its games, and wait until their styles and links are there. */
export async function loadGames(told) {
  await Promise.all(
    told.map(async (game) => {
      games.set(game.name, { ...game, links: {} });
      try {
        const [links] = await Promise.all([game.links ? import(game.links) : {}, ...game.styles.map(loadStyle)]);
        games.get(game.name).links = links;
      } catch {
        toast(`The page's part about ${game.name} could not be loaded`, "bad");
      }
    }),
  );
}

function loadStyle(href) {
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  return new Promise((loaded, failed) => {
    link.onload = loaded;
    link.onerror = failed;
    document.head.append(link);
  });
}

/** Every tab of every game; where two have the same title, it says whose they are. */
export function tabs() {
  const all = [...games.values()].flatMap((game) => game.tabs.map((tab) => ({ ...tab, game: game.name })));
  return all.map((tab) => {
    const alone = all.filter((other) => other.title === tab.title).length === 1;
    return { ...tab, address: `#/${tab.game}/${tab.name}`, title: alone ? tab.title : `${tab.title}, ${tab.game}` };
  });
}
