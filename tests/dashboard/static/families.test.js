import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, mainOf, onTwoScales, sharedCards } from "#page/families.js";

/** @returns {import("#page/families.js").Metric} */
const metric = (/** @type {string} */ name, /** @type {Partial<import("#page/families.js").Metric>} */ more = {}) => ({
  name,
  unit: "points",
  meaning: name,
  family: "score",
  better: "",
  label: "",
  interval: null,
  baseline: "",
  role: "",
  control: "",
  card: null,
  ...more,
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

test("the ends of an interval belong to their metric's line, and a baseline is a yardstick", () => {
  const score = metric("eval_score", { label: "pupil", interval: ["worst", "best"], baseline: "teacher_score" });
  const lines = linesOf([score, metric("worst"), metric("best"), metric("teacher_score", { label: "teacher" })]);
  assert.deepEqual(
    lines.map(({ label, low, high, yardstick }) => [label, low, high, yardstick]),
    [
      ["pupil", "worst", "best", false],
      ["teacher", null, null, true],
    ],
  );
});

test("names mean nothing: what no metric declares as its interval is a line, under its name", () => {
  assert.deepEqual(
    linesOf([metric("supply"), metric("supply_low"), metric("teacher_supply")]).map((one) => [
      one.label,
      one.yardstick,
    ]),
    [
      ["supply", false],
      ["supply low", false],
      ["teacher supply", false],
    ],
  );
});

test("a family is known by what should get better, else by its first line", () => {
  const main = (/** @type {import("#page/families.js").Metric[]} */ ...metrics) => mainOf(linesOf(metrics)).metric.name;
  const baseline = metric("teacher_score", { better: "higher" });
  assert.equal(main(baseline, metric("score", { better: "higher", baseline: "teacher_score" })), "score");
  assert.equal(main(metric("q_mean"), metric("q_min")), "q_mean");
});

test("metrics with the same card share it, and cards stand in their places", () => {
  const mix = { title: "mix", place: 2, format: "mix", most: null };
  const speed = { title: "speed", place: 1, format: "plain", most: null };
  const declared = [
    metric("a", { card: mix }),
    metric("none"),
    metric("fps", { card: speed }),
    metric("b", { card: mix }),
  ];
  assert.deepEqual(
    sharedCards(declared).map(({ card, metrics }) => [card.title, metrics.map(({ name }) => name)]),
    [
      ["speed", ["fps"]],
      ["mix", ["a", "b"]],
    ],
  );
});

test("lines that would lie flat get the scale on the right", () => {
  const right = (/** @type {import("#page/families.js").Drawn[]} */ lines, comparing = false) =>
    onTwoScales(lines, comparing).map((line) => line.right);
  assert.deepEqual(right([drawn([100]), drawn([3])]), [false, true]); // 33 times as small
  assert.deepEqual(right([drawn([100]), drawn([5])]), [false, false]); // 20 times
  assert.deepEqual(right([drawn([1]), drawn([0])]), [false, false], "nothing is flat anywhere");
  assert.deepEqual(
    right([drawn([1], "fraction"), drawn([0.001], "fraction")]),
    [false, false],
    "fractions share a scale",
  );
  assert.deepEqual(right([drawn([1], "s"), drawn([1], "1/s")]), [false, true], "units differ");
  assert.deepEqual(
    right([drawn([100]), drawn([1], "", true)]),
    [false, false],
    "a yardstick lies beside what it measures",
  );
  assert.deepEqual(right([drawn([100]), drawn([1])], true), [false, false], "runs side by side share one");
  assert.deepEqual(right([]), []);
});
