import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, duration, niceAbove, short, whole, withUnit } from "#page/numbers.js";

test("short numbers have three or four digits, and thousands have letters", () => {
  const cases = /** @type {const} */ ([
    [0, "0"],
    [7, "7"],
    [-7, "\u22127"],
    [3.14159, "3.14"],
    [0.0123, "0.0123"],
    [99.96, "100"],
    [123.4, "123"],
    [1234, "1,234"],
    [9999.6, "10,000"],
    [12_345, "12.3k"],
    [1_234_567, "1.23M"],
    [2.5e9, "2.5G"],
    [-15_000, "\u221215k"],
  ]);
  for (const [value, text] of cases) assert.equal(short(value), text);
});

test("numbers below a hundredth are written with a power of ten", () => {
  assert.equal(short(0.00025), "2.5·10⁻⁴");
  assert.equal(short(-1e-12), "\u22121·10⁻¹²");
});

test("what is no number is a dash", () => {
  for (const value of [null, undefined, NaN, Infinity]) assert.equal(short(value), "–");
  assert.equal(withUnit(null, "fraction"), "–");
});

test("whole numbers have commas", () => assert.equal(whole(1234567.8), "1,234,568"));

test("units stand beside their values, fractions in percent, and what says nothing is left out", () => {
  assert.equal(withUnit(0.256, "fraction"), "25.6\u202f%");
  assert.equal(withUnit(50_000, "1/s"), "50k/s");
  assert.equal(withUnit(3, "ms"), "3 ms");
  assert.equal(withUnit(3, "level"), "3");
  assert.equal(withUnit(3, ""), "3");
});

test("durations are told in the two largest units", () => {
  assert.equal(duration(59.4), "59 s");
  assert.equal(duration(61), "1:01 min");
  assert.equal(duration(3 * 3600 + 5 * 60), "3:05 h");
  assert.equal(duration(2 * 86400 + 3 * 3600 + 59), "2 d 3 h");
  assert.equal(duration(-5), "0 s");
  assert.equal(duration(NaN), "–");
});

test("ages are told in one unit", () => {
  assert.equal(ago(1), "now");
  assert.equal(ago(89), "89 s ago");
  assert.equal(ago(90), "2 min ago");
  assert.equal(ago(5400), "2 h ago");
  assert.equal(ago(3 * 86400), "3 days ago");
});

test("a scale ends at the next round number", () => {
  assert.deepEqual([0.9, 1, 1.1, 3, 501, 0.03].map(niceAbove), [1, 1, 2, 5, 1000, 0.05]);
  assert.equal(niceAbove(0), 1);
  assert.equal(niceAbove(-2), 1);
});
