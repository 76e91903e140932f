import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, mainOf, onTwoScales } from "#page/families.js";

/** @returns {import("#page/families.js").Metric} */
const metric = (/** @type {string} */ name, family = "score", better = "", unit = "points") => ({
  name,
  unit,
  meaning: name,
  family,
  better,
});

/** @returns {import("#page/families.js").Drawn} */
const drawn = (/** @type {number[]} */ values, unit = "", yardstick = false) => ({
  x: values,
  columns: [values],
  interval: false,
  unit,
  label: "",
  colour: "",
  sparse: false,
  yardstick,
});

test("the ends of an interval belong to their metric's line", () => {
  const names = ["exam_score", "exam_score_low", "exam_score_high", "teacher_score"];
  const lines = linesOf(names.map((name) => metric(name)));
  assert.deepEqual(
    lines.map(({ label, low, high, yardstick }) => [label, low, high, yardstick]),
    [
      ["exam", "exam_score_low", "exam_score_high", false],
      ["teacher", null, null, true],
    ],
  );
});

test("a metric that only ends in low is a line of its own", () => {
  assert.deepEqual(
    linesOf([metric("supply_low", "supply"), metric("supply_left", "supply")]).map(({ label }) => label),
    ["low", "left"],
  );
});

test("labels leave out what the family or all its lines say, and never become empty", () => {
  const labels = (/** @type {string[]} */ names, /** @type {string} */ family) =>
    linesOf(names.map((name) => metric(name, family))).map(({ label }) => label);
  assert.deepEqual(labels(["q_min", "q_mean", "q_max"], "action values"), ["min", "mean", "max"]);
  assert.deepEqual(labels(["reward_100k", "reward_1m"], "reward"), ["100k", "1M"]);
  assert.deepEqual(labels(["loss"], "loss"), ["loss"]);
});

test("a family is known by what should get better, else by its mean, else by its first line", () => {
  const main = (/** @type {import("#page/families.js").Metric[]} */ ...metrics) => mainOf(linesOf(metrics)).metric.name;
  assert.equal(main(metric("teacher_score", "score", "higher"), metric("exam_score", "score", "higher")), "exam_score");
  assert.equal(main(metric("q_min"), metric("q_mean")), "q_mean");
  assert.equal(main(metric("q_min"), metric("q_max")), "q_min");
});

test("lines that would lie flat get the scale on the right", () => {
  const right = (/** @type {import("#page/families.js").Drawn[]} */ lines, comparing = false) =>
    onTwoScales(lines, comparing).map((line) => line.right);
  assert.deepEqual(right([drawn([100]), drawn([3])]), [false, true]); // 33 times as small
  assert.deepEqual(right([drawn([100]), drawn([5])]), [false, false]); // 20 times
  assert.deepEqual(right([drawn([1]), drawn([0])]), [false, false], "nothing is flat anywhere");
  assert.deepEqual(right([drawn([1], "share"), drawn([0.001], "share")]), [false, false], "shares share a scale");
  assert.deepEqual(right([drawn([1], "s"), drawn([1], "1/s")]), [false, true], "units differ");
  assert.deepEqual(
    right([drawn([100]), drawn([1], "", true)]),
    [false, false],
    "a yardstick lies beside what it measures",
  );
  assert.deepEqual(right([drawn([100]), drawn([1])], true), [false, false], "runs side by side share one");
  assert.deepEqual(right([]), []);
});
