import assert from "node:assert/strict";
import { test } from "node:test";
import { History, MOST_POINTS, ascending, nearest } from "#page/series.js";

test("values come in order, and what is sent twice around a reconnect counts once", () => {
  const history = new History();
  history.add({ steps: [1, 2, 3], times: [10, 20, 30], mean: [5, null, 7] });
  history.add({ steps: [2, 3, 4], times: [20, 30, 40], mean: [null, 7, 9] });
  assert.deepEqual(history.steps, [1, 2, 3, 4]);
  assert.deepEqual(history.mean, [5, null, 7, 9]);
  assert.deepEqual(history.low, history.mean, "without an interval both ends are the value");
  assert.equal(history.last, 9);
  assert.equal(history.most(), 9);
});

test("a resumed run goes back to the step it resumed from", () => {
  const history = new History();
  history.add({ steps: [100, 200, 300], times: [1, 2, 3], mean: [1, 2, 3] });
  history.add({ steps: [200, 250], times: [4, 5], mean: [20, 25] });
  assert.deepEqual(history.steps, [100, 200, 250]);
  assert.deepEqual(history.mean, [1, 20, 25]);
});

test("an empty history has no last and no highest value", () => {
  assert.equal(new History().last, null);
  assert.equal(new History().most(), null);
});

/** A value a second: as many as asked, each its own number. */
const seconds = (/** @type {number} */ count) => {
  const numbers = Array.from({ length: count }, (_, i) => i);
  return { steps: numbers, times: numbers, mean: numbers };
};

test("up to the limit nothing is merged", () => {
  const history = new History();
  history.add(seconds(MOST_POINTS));
  assert.equal(history.length, MOST_POINTS);
  assert.ok(history.weight.every((weight) => weight === 1));
});

test("a long history is thinned: its newest values stay whole, old ones are merged, and none is lost", () => {
  const history = new History();
  const count = 20_000;
  history.add(seconds(count));
  assert.ok(history.length <= MOST_POINTS, `${history.length} points`);
  assert.equal(
    history.weight.reduce((sum, weight) => sum + weight, 0),
    count,
  );
  const total = history.mean.reduce((sum, mean, i) => /** @type {number} */ (sum) + (mean ?? 0) * history.weight[i], 0);
  assert.ok(Math.abs(Number(total) / ((count * (count - 1)) / 2) - 1) < 1e-9, "the mean of everything is kept");
  // 34 / (1 + age) > 1 up to an age of 33 seconds: there each second has a bucket of its own.
  assert.deepEqual(
    history.mean.slice(-30),
    Array.from({ length: 30 }, (_, i) => count - 30 + i),
  );
  assert.equal(history.low[0], 0);
  assert.equal(history.most(), count - 1);
  history.mean.forEach((mean, i) =>
    assert.ok(Number(history.low[i]) <= Number(mean) && Number(mean) <= Number(history.high[i])),
  );
});

test("a merged point spans its values, weighs them all and stands at the last of them", () => {
  const history = new History();
  history.add({ steps: [1, 2, 3], times: [0, 100, 1e6], mean: [4, 8, 1], low: [3, 6, 1], high: [9, 8, 1] });
  history.thin(); // seen from a million seconds on, the first two are of the same age
  assert.deepEqual([...history.mean], [6, 1]);
  assert.deepEqual([...history.low], [3, 1]);
  assert.deepEqual([...history.high], [9, 1]);
  assert.deepEqual([...history.steps], [2, 3]);
  assert.deepEqual([...history.weight], [2, 1]);
});

test("points that were not measured stay gaps", () => {
  const history = new History();
  history.add({ steps: [1, 2, 3], times: [0, 100, 1e6], mean: [null, null, 1] });
  history.thin();
  assert.deepEqual([...history.mean], [null, 1]);
});

test("lines for charts ascend", () => {
  const line = { x: [1, 2, 3], columns: [[4, 5, 6]] };
  assert.equal(ascending(line), line, "one that does is left as it is");
  const back = { x: [1, 3, 3, 2, 2.5, 4], columns: [[1, 2, 3, 4, 5, 6]] };
  assert.deepEqual(ascending(back), { x: [1, 3, 4], columns: [[1, 2, 6]] });
});

test("where nothing was measured, the value before it holds", () => {
  assert.equal(nearest([1, null, undefined, 4], 2), 1);
  assert.equal(nearest([1, null, undefined, 4], 3), 4);
  assert.equal(nearest([null, 2], 0), null);
  assert.equal(nearest(undefined, 3), null);
});
