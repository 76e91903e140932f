import assert from "node:assert/strict";
import { test } from "node:test";
import { FollowedRun } from "#page/followed.js";
import { History } from "#page/series.js";

const START = "2026-01-01T00:00:00Z";
const at = (/** @type {number} */ seconds) => Date.parse(START) / 1000 + seconds;

/** A run that logged a loss at these seconds after its start. */
function run(/** @type {number[]} */ seconds, config = {}, starts = [0]) {
  const followed = new FollowedRun("one");
  const times = starts.map((start) => ({ time: new Date(1000 * at(start)).toISOString() }));
  followed.info = { config, starts: times, unit: "agent-step" };
  const steps = seconds.map((_, i) => 100 * i);
  followed.hear({
    row: 7,
    event: 3,
    status: "running",
    step: steps.at(-1),
    controls: {},
    events: [],
    points: { loss: { steps, times: seconds.map(at), mean: seconds.map(() => 1) } },
  });
  return followed;
}

test("news tell where to go on, the newest values and when they came", () => {
  const followed = run([10, 20]);
  assert.deepEqual(followed.place, { row: 7, event: 3 });
  assert.equal(followed.last("loss"), 1);
  assert.equal(followed.last("nothing"), null);
  assert.equal(followed.now, at(20));
  assert.equal(followed.first, at(10));
});

test("time between two starts in which nothing was logged was no training", () => {
  assert.equal(run([10, 60, 1010, 1030], {}, [0, 1000]).trained, 60 + 30);
});

test("progress is that of the budget which is used up first", () => {
  assert.deepEqual(run([60], { minutes: 2, agent_steps: 0 }).progress, { fraction: 0.5, left: 60 });
  assert.deepEqual(run([30, 60], { minutes: 4, agent_steps: 200 }).progress, { fraction: 0.5, left: 60 }); // step 100 of 200
  assert.equal(run([60]).progress, null, "there is no budget");
  assert.deepEqual(run([0], { minutes: 10 }).progress, { fraction: 0, left: null }, "too early to say");
});

test("progress that a run logs itself is believed", () => {
  const followed = run([60], { minutes: 2 });
  followed.metrics = /** @type {any} */ ([{ name: "loss" }, { name: "done", role: "progress" }]);
  assert.equal(followed.progress?.fraction, 0.5, "nothing was logged yet");
  followed.histories.set("done", Object.assign(new History(), { steps: [0], times: [at(60)], mean: [0.8] }));
  assert.equal(followed.progress?.fraction, 0.8);
});

test("only the newest events are kept", () => {
  const followed = run([1]);
  const events = Array.from({ length: 100 }, (_, i) => ({ kind: "exam", text: String(i), time: i }));
  followed.hear({ row: 8, event: 103, status: "running", step: 0, controls: {}, points: {}, events });
  assert.equal(followed.events.length, 60);
  assert.equal(followed.events[59].text, "99");
});

test("a switch is changed when it is not as the settings say", () => {
  const followed = run([1]);
  followed.controls = {
    learning: { on: false },
    greedy: { on: false },
    epsilon: { value: null },
    rate: { value: 0.1 },
  };
  assert.deepEqual(
    ["learning", "greedy", "epsilon", "rate", "none"].map((name) => followed.isChanged(name)),
    [true, false, false, true, false],
  );
});
