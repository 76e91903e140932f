import assert from "node:assert/strict";
import { test } from "node:test";
import { commandName, lives } from "#tempest/words.js";

test("commands are told in words, and turning below zero goes to the right", () => {
  assert.equal(commandName([0, 0, 0]), "stay");
  assert.equal(commandName([1, 0, -9]), "right 9 + fire");
  assert.equal(commandName([1, 1, 12]), "left 12 + fire + zap");
});

test("lives are ships, six at most", () => {
  assert.equal(lives(3), "▲▲▲");
  assert.equal(lives(9), "▲▲▲▲▲▲");
  assert.equal(lives(0), "over");
});
