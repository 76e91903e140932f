// What happens in a game, in words. Touches no page.

/**
 * A command in words: which way, how fast, which buttons. Turning below zero goes to the right.
 *
 * @param {number[]} command fire, zap, spinner
 */
export function commandName([fire, zap, spinner]) {
  const way = spinner === 0 ? "stay" : `${spinner < 0 ? "right" : "left"} ${Math.abs(spinner)}`;
  return [way, fire ? "fire" : "", zap ? "zap" : ""].filter(Boolean).join(" + ");
}

export const lives = (/** @type {number} */ count) => (count > 0 ? "▲".repeat(Math.min(6, count)) : "over");
