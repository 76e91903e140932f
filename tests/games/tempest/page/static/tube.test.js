import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "#tempest/tube.js";

/** What a canvas would be told to draw. */
class Path {
  /** @type {number[][]} */
  lines = [];
  moveTo(/** @type {number} */ x, /** @type {number} */ y) {
    this.lines.push([x, y]);
  }
  lineTo(/** @type {number} */ x, /** @type {number} */ y) {
    this.lines[this.lines.length - 1].push(x, y);
  }
}
Object.assign(globalThis, { Path2D: Path });

/** A message as the server sends it: length, text, ends of lines, their colours, their brightness. */
function message(/** @type {object} */ said, ends = [0], tints = [0], light = [0]) {
  let text = JSON.stringify(said);
  text += " ".repeat((4 - (text.length % 4)) % 4);
  const bytes = new TextEncoder().encode(text);
  const size = new Uint8Array(new Uint32Array([bytes.length]).buffer);
  const parts = [
    size,
    bytes,
    new Uint8Array(new Int16Array(ends).buffer),
    new Uint8Array(tints),
    new Uint8Array(light),
  ];
  return new Blob(parts).arrayBuffer();
}

test("lines of one colour and brightness become one path, upwards being up", async () => {
  const full = 32767;
  const buffer = await message(
    { games: [{ score: 5, lines: 3 }] },
    [0, 0, full, full, -full, 0, 0, -full, 0, full, full, 0],
    [255, 0, 0, 255, 0, 0, 0, 0, 255],
    [100, 100, 50],
  );
  const [game] = decode(buffer).games;
  assert.equal(game.score, 5);
  const picture = game.picture.map((/** @type {any} */ group) => [group.colour, group.light, group.path.lines]);
  assert.deepEqual(picture, [
    [
      "rgb(255 0 0)",
      1,
      [
        [0, -0, 1, -1],
        [-1, -0, 0, 1],
      ],
    ],
    ["rgb(0 0 255)", 0.5, [[0, -1, 1, -0]]],
  ]);
});

test("a point is drawn as a line long enough to be seen", async () => {
  const buffer = await message({ games: [{ lines: 1 }] }, [1000, 0, 1000, 0], [9, 9, 9], [100]);
  const [[x0, , x1]] = decode(buffer).games[0].picture[0].path.lines;
  assert.equal(Math.round((x1 - x0) * 32767), 80);
});

test("a game that is not drawn this time has no picture", async () => {
  assert.equal(decode(await message({ games: [{ lines: 0 }] })).games[0].picture, undefined);
});
