import assert from "node:assert/strict";
import { test } from "node:test";
import { Battle } from "#echelon/battle.js";
import { checksum } from "#echelon/file.js";

const FRAMES = 3;
const STEP = 0.25; // seconds a frame

/**
 * Two mechs on a map of 4 x 4 x 1 for three frames: the blue one walks two voxels a frame along x and kills the red one
 * at 0.3 seconds, which breaks the voxel at (1, 2). Red scores first.
 */
function battle(
  events = [
    { tick: 6, kind: 0 },
    { tick: 6, kind: 1 },
  ],
) {
  const zeros = () => new Float32Array(2 * FRAMES);
  const mechs = Object.fromEntries(["y", "z", "vx", "vy", "vz", "yaw"].map((name) => [name, zeros()]));
  const header = {
    size: [4, 4, 1],
    mechs: [
      { kind: 0, team: 0, rank: 0 },
      { kind: 3, team: 1, rank: 1 },
    ],
    frames: FRAMES,
    seconds_per_frame: STEP,
    score_to_win: 10,
    events: ["death", "kill"],
    lists: ["events", "shots", "changes"],
    zone: [2, 2],
    flags: ["alive", "shut"],
  };
  const groups = {
    mechs: {
      ...mechs,
      x: Float32Array.of(0, 3, 2, 3, 4, 3),
      yaw: Float32Array.of(3, 0, -3, 0, -3, 0),
      flags: Uint8Array.of(1, 3, 1, 3, 1, 3),
      sees: Uint32Array.of(2, 0, 1, 0, 2, 0, 1, 0, 0, 0, 0, 0),
    },
    now: { score: Float32Array.of(0, 0, 0, 1, 4, 1), tonnage: Float32Array.of(0, 0, 20, 0, 20, 0) },
    events: {
      count: Uint32Array.of(0, 0, events.length),
      tick: events.map((event) => event.tick),
      kind: events.map((event) => event.kind),
      who: [1, 0],
      whom: [0, 1],
      weapon: [0, 0],
      amount: [0, 0],
      x: [1.5, 1.5],
      y: [2.5, 2.5],
      z: [0.5, 0.5],
    },
    shots: { count: new Uint32Array(FRAMES) },
    changes: { count: Uint32Array.of(0, 0, 1), cell: [2 * 4 + 1], before: [7], after: [0] },
  };
  const start = new Uint8Array(16);
  start[9] = 7;
  return new Battle({ header, start, groups }, "test");
}

test("checksums are CRC-32", () => {
  assert.equal(checksum(new TextEncoder().encode("123456789")), 0xcbf43926);
  assert.equal(checksum(new Uint8Array()), 0);
});

test("between frames mechs move smoothly and turn the short way", () => {
  const pose = battle().pose(0, STEP / 2);
  assert.equal(pose.x, 1); // half of two voxels
  assert.ok(Math.abs(pose.yaw - Math.PI) < 1e-6, "from 3 to -3 radians it is shorter over pi");
  assert.equal(pose.walked, 1);
  assert.equal(battle().pose(0, STEP / 4).x, 2 * (3 / 16 - 2 / 64)); // way * (3 p^2 - 2 p^3)
});

test("times outside the battle are its first and last moment", () => {
  assert.equal(battle().pose(0, -5).x, 0);
  assert.equal(battle().pose(0, 99).x, 4);
  assert.equal(battle().duration, 2 * STEP);
});

test("a mech is alive until the tick of its death", () => {
  const found = battle();
  assert.deepEqual([...found.died], [Infinity, 0.3]); // tick 6 of 20 a second
  assert.ok(found.isAlive(1, 0.29) && !found.isAlive(1, 0.3));
  assert.deepEqual(found.standing(0.4).living, [1, 0]);
  assert.deepEqual(found.standing(0.4).classes, [
    [1, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
});

test("scores grow evenly between frames", () => {
  assert.deepEqual(battle().standing(1.5 * STEP).score, [2, 1]);
});

test("the map is brought to any time, and back", () => {
  const found = battle();
  const before = found.fingerprint(0);
  /** @type {number[]} */
  const touched = [];
  found.seek(0.5, (cell) => touched.push(cell));
  assert.deepEqual([touched, found.grid[9]], [[9], 0]);
  found.seek(0.2, (cell) => touched.push(cell));
  assert.deepEqual([touched, found.grid[9]], [[9, 9], 7]);
  assert.equal(found.fingerprint(0), before);
});

test("a voxel without a burst breaks with the death that is nearest to it", () => {
  assert.deepEqual(battle().changed, [{ time: 0.3, cell: 9, before: 7, after: 0 }]);
});

test("whom a mech sees is read from the bits of its row", () => {
  const found = battle();
  assert.deepEqual(
    [found.marked(0, "sees", 0), found.marked(1, "sees", 0), found.marked(0, "sees", 0.5)],
    [[1], [0], []],
  );
  assert.deepEqual([found.flag(0, "shut", 0), found.flag(1, "shut", 0)], [0, 1]);
});

test("kills and changes of the lead are moments", () => {
  assert.deepEqual(
    battle().moments.map(({ time, kind, text }) => [time, kind, text]),
    [
      [0.3, "kill", "blue scout 1 kills red heavy 2"],
      [0.5, "lead", "blue takes the lead"],
    ],
  );
});
