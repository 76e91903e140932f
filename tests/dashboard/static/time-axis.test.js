import assert from "node:assert/strict";
import { test } from "node:test";
import { apart, compress, markLabel, marksFrom } from "#page/time-axis.js";

test("now is 0, and older is further to the left", () => {
  assert.equal(Math.abs(compress(0)), 0);
  assert.equal(compress(20), -Math.LN2); // log(1 + 20 / 20)
  assert.equal(compress(140), -3 * Math.LN2); // log(1 + 140 / 20) = log 8
  assert.ok(compress(3600) < compress(60) && compress(60) < compress(5));
  assert.equal(Math.abs(compress(-3)), 0, "nothing is newer than now");
});

test("an age that is ten times as old is about as far away as any other such step", () => {
  const step = compress(36_000) - compress(360_000);
  assert.ok(Math.abs(step - Math.LN10) < 0.001);
});

test("marks begin with the run and are named by their age", () => {
  assert.deepEqual(marksFrom(compress(100)).map(markLabel), ["1 min", "20 s", "5 s", "now"]);
  assert.deepEqual(marksFrom(compress(60)).map(markLabel), ["1 min", "20 s", "5 s", "now"]);
  assert.equal(marksFrom(-Infinity).length, 11);
  assert.equal(markLabel(null), "");
  assert.equal(markLabel(-0.123), "");
});

test("labels that would touch give way to newer ones", () => {
  const shown = apart([0, 10, 14, 30], (x) => 2 * x, 20);
  assert.deepEqual(shown, [0, null, 14, 30]); // at 0, 20, 28 and 60 pixels
  assert.deepEqual(
    apart([], (x) => x, 5),
    [],
  );
});
