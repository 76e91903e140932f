"""Saved replays: the same after loading, whole or refused, and saved while others go on."""

import copy
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from protege.learn.packing import packing
from protege.learn.replay import BLOCK, Batch, Block, Replay, ReplayConfig, ReplayError
from protege.learn.replay_file import load, save, saved_bytes

THREE = packing([1000, 1000, 1000])  # stream, and the step in thousands and ones
CONFIG = ReplayConfig(capacity=20_000, n_step=3, gamma=1.0)
STREAMS = 40


class World:
    """Streams in which every step says who and when it is, pays its number, and now and then ends."""

    def __init__(self) -> None:
        self.steps = np.zeros(STREAMS, np.int64)

    def add(self, replay: Replay, rounds: int) -> None:
        streams = np.arange(STREAMS)
        for _ in range(rounds):
            seen = np.stack([streams, self.steps // 1000, self.steps % 1000], axis=1) / 1000
            dies, cut = self.steps % 101 == streams, self.steps % 103 == streams
            actors = 1 + self.steps % 3
            replay.add(streams, seen, streams, self.steps, dies, cut & ~dies, actors)
            self.steps += 1


def filled(rounds: int, config: ReplayConfig = CONFIG) -> tuple[Replay, World]:
    replay, world = Replay(THREE, config), World()
    world.add(replay, rounds)
    dice = np.random.default_rng(rounds)
    for _ in range(10):
        batch = replay.sample(64, 0.5, dice)
        replay.update(batch.handle, dice.random(64))
    return replay, world


def check(replay: Replay, *, newest: int | None = None) -> set[tuple[int, int]]:
    """Everything that can be drawn is right; returns it as (stream, step)."""
    batch = replay.sample(2 * len(replay) + 1, 0.0, np.random.default_rng(0))
    _, first = np.unique(batch.handle, return_index=True)
    stream, high, low = np.rint(batch.observation[first] * 1000).astype(int).T
    step, horizon = 1000 * high + low, batch.horizon[first]
    after = np.rint(batch.next_observation[first] * 1000).astype(int).T
    assert (batch.action[first] == stream).all()
    assert (after[0] == stream).all()
    died = batch.bootstrap[first] == 0
    assert (1000 * after[1] + after[2] == step + horizon - died).all()
    assert (batch.returns[first] == [sum(range(s, s + h)) for s, h in zip(step.tolist(), horizon.tolist())]).all()
    assert ((step + horizon - 1) % 101 == stream)[died].all()
    assert newest is None or (step + horizon - died).max() <= newest
    return set(zip(stream.tolist(), step.tolist()))


def even(replay: Replay) -> Replay:
    """All priorities alike, so that `check` meets every step."""
    state = replay.state()
    first, end = state["first"], state["end"]
    while first < end:
        block = replay.block(first, end)
        can_be_drawn = first + np.flatnonzero(block.leaves)
        if len(can_be_drawn):
            replay.update(can_be_drawn, np.ones(len(can_be_drawn)))
        first += len(block.steps)
    return replay


def test_the_next_hundred_updates_are_bit_for_bit_the_same_after_loading(tmp_path):
    replay, world = filled(rounds=700)
    save(replay, tmp_path / "replay")
    again, world_again = Replay(THREE, CONFIG), copy.deepcopy(world)
    load(again, tmp_path / "replay")
    dice, dice_again = np.random.default_rng(5), np.random.default_rng(5)
    for number in range(100):
        batch, batch_again = replay.sample(256, 0.4, dice), again.sample(256, 0.4, dice_again)
        for name in Batch._fields:
            assert getattr(batch, name).tobytes() == getattr(batch_again, name).tobytes(), (number, name)
        losses = np.random.default_rng(number).exponential(size=256)
        replay.update(batch.handle, losses)
        again.update(batch_again.handle, losses)
        world.add(replay, 2)
        world_again.add(again, 2)
    assert replay.state() == again.state()
    assert replay.figures() == again.figures()


def test_a_larger_memory_keeps_all_and_a_smaller_one_the_newest(tmp_path):
    replay, world = filled(rounds=700)  # 28,000 steps into 20,000 places
    save(replay, tmp_path / "replay")
    everything = check(even(replay))
    larger = Replay(THREE, replace(CONFIG, capacity=50_000))
    load(larger, tmp_path / "replay")
    assert check(even(larger)) == everything and len(larger) == len(replay)
    smaller = Replay(THREE, replace(CONFIG, capacity=7_000))
    load(smaller, tmp_path / "replay")
    assert check(even(smaller)) == {(stream, step) for stream, step in everything if step >= 700 - 7_000 // STREAMS}
    for other in (larger, smaller):  # and both go on
        copy.deepcopy(world).add(other, 1300)
        check(even(other))
        cuts, waiting = other.config.capacity / 103, 3 * STREAMS  # which take places, but cannot be drawn
        assert len(other) == pytest.approx(other.config.capacity - cuts - waiting, abs=STREAMS)


def test_returns_may_be_longer_or_shorter_after_loading(tmp_path):
    replay, world = filled(rounds=300)
    save(replay, tmp_path / "replay")
    for steps in (1, 5):
        other = Replay(THREE, replace(CONFIG, n_step=steps))
        load(other, tmp_path / "replay")
        batch = even(other).sample(1000, 0.0, np.random.default_rng(0))
        assert batch.horizon.max() == steps
        check(other, newest=299)
        assert (steps == 1) == (len(other) > len(replay))  # fewer steps wait, the others already did
        copy.deepcopy(world).add(other, 50)
        check(even(other))


def test_an_empty_replay_is_saved_too(tmp_path):
    save(Replay(THREE, CONFIG), tmp_path / "replay")
    replay, _ = filled(rounds=10)
    load(replay, tmp_path / "replay")
    assert len(replay) == 0


class Busy(Replay):
    """A replay that is used by others whenever saving lets go of it."""

    def busy_with(self, world: World, rounds: int) -> "Busy":
        self.world, self.rounds, self.dice = world, rounds, np.random.default_rng(9)
        return self

    def block(self, first: int, end: int) -> Block:
        self.world.add(self, self.rounds)
        batch = self.sample(256, 0.5, self.dice)
        self.update(batch.handle, 0.5 + self.dice.random(256))
        return super().block(first, end)


PROBED = 8  # blocks that are looked at to tell the size, before the moment that is saved


@pytest.mark.parametrize("rounds", [0, 1, 20])
@pytest.mark.parametrize("before", [300, 1200])
def test_what_is_saved_while_others_go_on_is_consistent(tmp_path, rounds, before):
    world = World()
    replay = Busy(THREE, replace(CONFIG, capacity=1000 * STREAMS)).busy_with(world, rounds)
    world.add(replay, before)
    save(replay, tmp_path / "replay")
    loaded = Replay(THREE, replay.config)
    load(loaded, tmp_path / "replay")
    newest = before - 1 + PROBED * rounds
    found = check(even(loaded), newest=newest)
    # All streams in step, so what is there is the last so many steps of each; the first block came a little later.
    oldest = max(0, newest + 1 + rounds - 1000)
    expected = {(stream, step) for stream in range(STREAMS) for step in range(oldest, newest - 2)}
    assert expected - found == {(stream, step) for stream, step in expected if step % 103 == stream != step % 101}
    assert {step for _, step in found - expected} <= {newest - 2, newest - 1, newest}  # near an end
    world_after = World()
    world_after.steps[:] = newest + 1
    world_after.add(loaded, 20)  # streams go on where they were
    check(even(loaded))


def test_a_flush_in_the_middle_leaves_the_file_before(tmp_path):
    class Flushed(Replay):
        def block(self, first: int, end: int) -> Block:
            if first >= 2 * BLOCK:
                self.flush()
            return super().block(first, end)

    save(filled(rounds=10)[0], tmp_path / "replay")
    before = (tmp_path / "replay").read_bytes()
    replay = Flushed(THREE, CONFIG)
    World().add(replay, 450)
    with pytest.raises(ReplayError, match="was flushed, or written faster"):
        save(replay, tmp_path / "replay")
    assert (tmp_path / "replay").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["replay"]


# --- room on the disk -------------------------------------------------------------------------------------------------


def test_the_size_is_known_before_anything_is_written(tmp_path):
    for rounds in (5, 700):
        replay, _ = filled(rounds)
        told = saved_bytes(replay)
        written = save(replay, tmp_path / "replay")
        assert (tmp_path / "replay").stat().st_size == written
        assert 0.9 * written - 4096 < told < 1.5 * written


def test_a_full_disk_is_noticed_first(tmp_path, monkeypatch):
    replay, _ = filled(rounds=700)

    nearly_full = shutil.disk_usage(tmp_path)._replace(free=5000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: nearly_full)
    with pytest.raises(ReplayError, match="takes about 0.00 GB, and .* has 0.00 GB free: make room there"):
        save(replay, tmp_path / "replay")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    replay, _ = filled(rounds=10)
    for place in (tmp_path, tmp_path / "missing" / "replay"):
        with pytest.raises(ReplayError, match="could not be saved"):
            save(replay, place)


# --- what is refused --------------------------------------------------------------------------------------------------


def refusal(replay: Replay, path: Path) -> str:
    with pytest.raises(ReplayError) as caught:
        load(replay, path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message
    return message


def test_damaged_files_are_refused_and_leave_an_empty_memory(tmp_path):
    replay, _ = filled(rounds=400)
    path = tmp_path / "replay"
    save(replay, path)
    good = path.read_bytes()
    dice = np.random.default_rng(1)
    places = [*range(60), *range(len(good) - 8, len(good)), *dice.integers(0, len(good), 60).tolist()]
    for place in places:
        path.write_bytes(good[:place] + bytes([good[place] ^ (1 << int(dice.integers(8)))]) + good[place + 1 :])
        refusal(replay, path)
    for length in (0, 5, 17, len(good) // 2, len(good) - 8, len(good) - 1):
        path.write_bytes(good[:length])
        refusal(replay, path)
    assert len(replay) == 0
    path.write_bytes(good)
    load(replay, path)
    check(even(replay))


def test_a_memory_too_small_for_the_streams_is_refused_and_left_empty(tmp_path):
    save(filled(rounds=50)[0], tmp_path / "replay")
    small = Replay(THREE, replace(CONFIG, capacity=159))
    with pytest.raises(ReplayError, match="40 streams with returns of 3 steps need a capacity of 160"):
        load(small, tmp_path / "replay")
    assert len(small) == 0 and small.figures()["filled"] == 0


def test_foreign_files_are_refused_before_anything_is_lost(tmp_path):
    replay, _ = filled(rounds=50)
    steps = len(replay)
    path = tmp_path / "replay"
    assert "there is no replay" in refusal(replay, path)
    path.write_text("something else\n")
    assert "is no replay that this version" in refusal(replay, path)
    other = Replay(packing([1000, 1000, 255]), CONFIG)
    save(other, path)
    assert "packed in another way" in refusal(replay, path)
    assert len(replay) == steps
