"""The memory: returns and weights by hand, streams that never mix, and a plain model of it all."""

import gc
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import psutil
import pytest

from protege.games.tempest.task.packing import PACKING
from protege.learn.packing import packing
from protege.learn.replay import TOP_DECAY, Actor, Batch, Replay, ReplayConfig, ReplayError, bytes_needed
from protege.learn.sumtree import WIDTH, Tree, find, sum_all, sum_up, tree_over

PUPIL, TEACHER, RANDOM = Actor.PUPIL, Actor.TEACHER, Actor.RANDOM
NUMBERED = packing([1000])  # an observation is a number of thousandths
SMALL = ReplayConfig(capacity=100, n_step=3, gamma=0.5, priority_alpha=1.0, terminal_floor=0.0)


def memory(**changes: Any) -> Replay:
    return Replay(NUMBERED, replace(SMALL, **changes))


def add(
    replay: Replay, numbers: list[int], *, stream: int = 0, rewards: list[float] | None = None, dies: bool = False,
    cut: bool = False, actors: list[Actor] | None = None, actions: list[int] | None = None,
) -> None:  # fmt: skip
    """Steps of one stream, seen as the given numbers; the last one is deadly, or where the stream is cut."""
    count = len(numbers)
    ends = np.arange(count) == count - 1
    replay.add(
        [stream] * count,
        np.array(numbers)[:, None] / 1000,
        [7] * count if actions is None else actions,
        [0.0] * count if rewards is None else rewards,
        ends & dies,
        ends & cut,
        [PUPIL] * count if actors is None else actors,
    )


@dataclass
class Drawn:
    """A drawn step in plain numbers."""

    returns: float
    following: int
    bootstrap: float
    horizon: int
    own: int
    action: int
    actor: int
    handle: int


def drawn(replay: Replay, count: int = 500) -> dict[int, Drawn]:
    """Everything that can be drawn, by what was seen; every step must have a share above 2 / count."""
    batch = replay.sample(count, 0.0, np.random.default_rng(0))
    assert len(batch.handle) == count
    return {
        round(1000 * float(batch.observation[i, 0])): Drawn(
            float(batch.returns[i]),
            round(1000 * float(batch.next_observation[i, 0])),
            float(batch.bootstrap[i]),
            *(int(array[i]) for array in (batch.horizon, batch.own, batch.action, batch.actor, batch.handle)),
        )
        for i in range(count)
    }


# --- returns ----------------------------------------------------------------------------------------------------------


def test_a_return_adds_up_n_discounted_rewards_and_goes_on_with_what_was_seen_then():
    replay = memory()
    add(replay, [10, 11, 12, 13, 14], rewards=[1, 2, 4, 8, 16])
    found = drawn(replay)
    assert sorted(found) == [10, 11]  # 12 still waits for what follows 14
    assert (found[10].returns, found[10].following, found[10].bootstrap) == (1 + 0.5 * 2 + 0.25 * 4, 13, 0.125)
    assert (found[11].returns, found[11].following, found[11].bootstrap) == (2 + 0.5 * 4 + 0.25 * 8, 14, 0.125)
    assert found[10].horizon == found[11].horizon == 3


def test_a_death_flushes_the_tail_with_shrinking_horizons_and_nothing_after_it():
    replay = memory()
    add(replay, [10, 11, 12, 13], rewards=[1, 2, 4, -8], dies=True)
    add(replay, [50, 51], rewards=[100, 100])
    found = drawn(replay)
    assert sorted(found) == [10, 11, 12, 13]
    assert (found[10].returns, found[10].bootstrap, found[10].horizon, found[10].following) == (3.0, 0.125, 3, 13)
    assert (found[11].returns, found[11].bootstrap, found[11].horizon) == (2 + 0.5 * 4 - 0.25 * 8, 0.0, 3)
    assert (found[12].returns, found[12].bootstrap, found[12].horizon) == (4 - 0.5 * 8, 0.0, 2)
    assert (found[13].returns, found[13].bootstrap, found[13].horizon) == (-8.0, 0.0, 1)


def test_a_cut_goes_on_with_the_last_thing_seen_and_leaks_nothing_into_the_next_episode():
    replay = memory()
    add(replay, [10, 11, 12], rewards=[1, 2, 99], cut=True)  # what was done in 12 came to nothing
    add(replay, [50, 51, 52, 53], rewards=[100, 200, 400, 800])
    found = drawn(replay)
    assert sorted(found) == [10, 11, 50]
    assert (found[10].returns, found[10].following, found[10].bootstrap, found[10].horizon) == (2.0, 12, 0.25, 2)
    assert (found[11].returns, found[11].following, found[11].bootstrap, found[11].horizon) == (2.0, 12, 0.5, 1)
    assert found[50].returns == 100 + 0.5 * 200 + 0.25 * 400


def test_streams_never_mix_however_they_take_turns():
    replay = memory()
    for step in range(6):
        streams = [0, 1, 2] if step % 2 else [2, 0, 1]
        seen = [[(100 * stream + step) / 1000] for stream in streams]
        rewards = [10.0**stream for stream in streams]
        replay.add(streams, seen, streams, rewards, [False] * 3, [False] * 3, [PUPIL] * 3)
    found = drawn(replay)
    assert {number // 100 for number in found} == {0, 1, 2}
    for number, one in found.items():
        assert one.action == number // 100 == one.following // 100
        assert one.returns == 1.75 * 10 ** (number // 100)


def test_streams_of_one_client_at_a_time_are_the_same_as_a_batch():
    together, apart = memory(), memory()
    dice = np.random.default_rng(3)
    for _ in range(40):
        streams, seen = dice.permutation(3), dice.integers(0, 1000, (3, 1)) / 1000
        what = seen, dice.integers(0, 9, 3), dice.random(3), dice.random(3) < 0.2, np.zeros(3, bool), [PUPIL] * 3
        together.add(streams, *what)
        for i in range(3):
            apart.add(streams[i : i + 1], *(array[i : i + 1] for array in what))
    assert drawn(together) == drawn(apart)


def test_an_action_that_is_none_counts_in_returns_but_is_not_drawn():
    replay = memory()
    add(replay, [10, 11, 12, 13, 14, 15], rewards=[1, 2, 4, 8, 16, 32], actions=[5, -1, 5, 5, 5, 5])
    found = drawn(replay)
    assert sorted(found) == [10, 12]
    assert (found[10].returns, found[10].following, found[10].own) == (3.0, 13, 1)


def test_a_window_tells_where_another_actor_took_over_and_can_end_there():
    actors = [TEACHER, TEACHER, PUPIL, PUPIL, PUPIL, RANDOM, PUPIL, PUPIL]
    whole, cut = memory(), memory(cut_off_policy=True)
    for replay in (whole, cut):
        add(replay, list(range(10, 18)), rewards=[1, 2, 4, 8, 16, 32, 64, 128], actors=actors)
    found = drawn(whole)
    assert [(found[n].actor, found[n].horizon, found[n].own) for n in range(10, 15)] == [
        (TEACHER, 3, 2), (TEACHER, 3, 1), (PUPIL, 3, 3), (PUPIL, 3, 2), (PUPIL, 3, 1)
    ]  # fmt: skip
    found = drawn(cut)
    # 10 goes on with the teacher's move in 11, and 13 and 14 with the random one in 15: those moves are left out.
    assert [(found[n].horizon, found[n].following) for n in range(10, 15)] == [
        (1, 11), (3, 14), (3, 15), (2, 15), (1, 15)
    ]  # fmt: skip
    assert (found[10].returns, found[10].bootstrap) == (1.0, 0.5)
    assert (found[13].returns, found[13].bootstrap) == (8 + 0.5 * 16, 0.25)


def test_advice_comes_back_with_its_step():
    replay = memory(n_step=1)
    replay.add([0] * 3, [[0.1], [0.2], [0.3]], [1] * 3, [0.0] * 3, [0] * 3, [0] * 3, [PUPIL] * 3, [43, -1, 5])
    batch = replay.sample(8, 0.0, np.random.default_rng(0))
    advice = {round(10 * float(seen[0])): int(action) for seen, action in zip(batch.observation, batch.teacher_action)}
    assert advice == {1: 43, 2: -1}
    assert not batch.teacher.any()


def test_streams_that_do_not_go_on_lose_one_step_each():
    replay = memory()
    add(replay, [10, 11, 12, 13], rewards=[1, 2, 4, 8])
    add(replay, [20], stream=1)
    assert sorted(drawn(replay)) == [10]
    replay.abandon()
    add(replay, [50, 51], rewards=[100, 100])
    found = drawn(replay)
    assert sorted(found) == [10, 11, 12]
    assert (found[11].returns, found[11].following, found[11].bootstrap) == (2 + 0.5 * 4, 13, 0.25)
    assert (found[12].returns, found[12].following, found[12].bootstrap) == (4.0, 13, 0.5)
    assert replay.figures()["dropped"] == 2  # 13 and 20, whose results are unknown


# --- capacity ---------------------------------------------------------------------------------------------------------


def test_capacity_is_true():
    replay = memory(capacity=40)
    for number in range(500):
        add(replay, [number])
        assert len(replay) == max(0, min(number + 1, 40) - 3)  # all but the three that wait for what follows
    assert sorted(drawn(replay)) == list(range(460, 497))
    add(replay, [500], dies=True)
    assert len(replay) == 40


def test_a_batch_is_full_from_a_single_step():
    replay = memory()
    with pytest.raises(ReplayError, match="nothing can be drawn yet"):
        replay.sample(256, 0.4, np.random.default_rng(0))
    add(replay, [10], dies=True)
    batch = replay.sample(256, 0.4, np.random.default_rng(0))
    assert len(batch.action) == 256
    assert (batch.observation == np.float32(0.01)).all() and (batch.weight == 1).all()


def test_more_steps_than_there_is_room_for_leave_the_newest():
    replay = memory(capacity=40)
    add(replay, list(range(100)), dies=True)
    assert sorted(drawn(replay)) == list(range(60, 100))


def test_a_stream_that_waits_too_long_loses_what_was_overwritten_and_nothing_else():
    replay = memory(capacity=40)
    add(replay, [10, 11, 12, 13])
    add(replay, list(range(100, 138)), stream=1)
    add(replay, [14, 15, 16, 17, 18, 19], rewards=[1, 2, 4, 8, 16, 32])
    found = drawn(replay)
    assert sorted(n for n in found if n < 100) == [14, 15, 16]
    assert found[14].returns == 3.0
    assert replay.figures()["dropped"] == 3  # 11 to 13: 10 could be drawn


def test_too_many_streams_for_the_capacity_are_refused():
    replay = memory(capacity=40)
    with pytest.raises(ReplayError, match="11 streams with returns of 3 steps need a capacity of 44"):
        add(replay, [10], stream=10)
    add(replay, [10], stream=9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": [[np.nan]]}, r"value 0 of stream 4 is nan"),
        ({"observations": [[1.5]]}, r"values lie in \[-1, 1\]; value 0 of stream 4 is 1.5"),
        ({"observations": [[0.5, 0.5]]}, r"observations of 1 steps must have shape \(1, 1\); got \(1, 2\)"),
        ({"rewards": [1.0, 2.0]}, r"rewards of 1 steps must have shape \(1,\); got \(2,\)"),
        ({"rewards": [np.inf]}, "rewards lie between -1e.30 and 1e.30; found inf"),
        ({"rewards": [np.nan]}, "rewards lie between .* found nan"),
        ({"actions": [256]}, "actions lie between -1 and 254; found 256"),
        ({"actors": [4]}, "actors lie between 1 and 3; found 4"),
        ({"streams": [-1]}, "streams lie between 0 and 100; found -1"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(changes, message):
    replay = memory()
    step: dict[str, Any] = {"streams": [4], "observations": [[0.5]], "actions": [1], "rewards": [1.0]}
    step |= {"terminated": [True], "truncated": [False], "actors": [PUPIL]}
    with pytest.raises(ReplayError, match=message):
        replay.add(**{**step, **changes})
    assert len(replay) == 0 and replay.state()["end"] == 0
    replay.add(**step)
    assert len(replay) == 1


# --- priorities -------------------------------------------------------------------------------------------------------


def leaves(replay: Replay) -> dict[int, float]:
    """The drawing weight of everything that can be drawn, by what was seen."""
    state = replay.state()
    block = replay.block(state["first"], state["end"])
    seen = [round(float(row[0]) / float(NUMBERED.scale[0]) * 1000) for row in block.rows]
    return {number: float(leaf) for number, leaf in zip(seen, block.leaves) if leaf > 0}


def handles(replay: Replay) -> dict[int, int]:
    return {number: step.handle for number, step in drawn(replay, 5000).items()}


def update(replay: Replay, priorities: dict[int, float]) -> None:
    known = handles(replay)
    replay.update(np.array([known[number] for number in priorities]), list(priorities.values()))


def test_importance_weights_undo_the_priorities():
    replay = memory(n_step=1)
    add(replay, [10, 11, 12])
    update(replay, {10: 1.0, 11: 3.0})
    batch = replay.sample(400, 1.0, np.random.default_rng(1))
    first = batch.observation[:, 0] == np.float32(0.01)
    assert first.sum() == 100  # a quarter of the priority
    assert np.allclose(batch.weight[first], 1.0)  # (2 * 1/4) ** -1 = 2, over 2
    assert np.allclose(batch.weight[~first], 1 / 3)  # (2 * 3/4) ** -1 = 2/3, over 2
    half = replay.sample(400, 0.5, np.random.default_rng(1)).weight
    assert np.allclose(half[~first], (1 / 3) ** 0.5)
    assert (replay.sample(400, 0.0, np.random.default_rng(1)).weight == 1).all()


def test_alpha_flattens_priorities_and_zero_draws_all_alike():
    replay = memory(n_step=1, priority_alpha=0.5)
    add(replay, [10, 11, 12])
    update(replay, {10: 1.0, 11: 9.0})
    assert leaves(replay) == {10: 1.0, 11: 3.0}
    even = memory(n_step=1, priority_alpha=0.0)
    add(even, [10, 11, 12])
    update(even, {10: 0.0, 11: 9.0})
    assert leaves(even) == {10: 1.0, 11: 1.0}


def test_a_new_step_has_the_highest_recent_priority_but_at_most_three_times_the_mean():
    replay = memory(n_step=1)
    add(replay, [10, 11, 12])
    assert leaves(replay) == {10: 1.0, 11: 1.0}
    update(replay, {10: 1.0, 11: 5.0})
    add(replay, [13])
    assert leaves(replay)[12] == 5.0  # below 3 times the mean of 3
    update(replay, {10: 0.5, 11: 0.5, 12: 2.0})
    add(replay, [14])
    assert leaves(replay)[13] == 3.0  # the mean is 1, and 5 was seen recently


def test_a_deadly_return_has_its_floor_whatever_the_limit():
    # Where the mean is about 1 and the highest 6, an ordinary new step gets 3 times the mean.
    replay = memory(n_step=1, terminal_floor=4.0, capacity=200)
    add(replay, list(range(101)))
    update(replay, dict.fromkeys(range(100), 1.0) | {99: 6.0})
    add(replay, [200, 201])
    add(replay, [300], stream=1, dies=True)
    found = leaves(replay)
    mean = (99 + 6) / 100
    assert found[200] == pytest.approx(3 * mean, rel=0.01)
    assert found[300] == 4.0


def test_the_whole_tail_of_a_death_has_the_floor():
    replay = memory(terminal_floor=2.0)
    add(replay, [10, 11, 12, 13, 14], dies=True)
    assert leaves(replay) == {10: 1.0, 11: 1.0, 12: 2.0, 13: 2.0, 14: 2.0}


def test_the_highest_recent_priority_is_forgotten():
    replay = memory(n_step=1, new_limit=1e9)
    add(replay, [10, 11])
    update(replay, {10: 50.0})
    first = np.array([handles(replay)[10]])
    for _ in range(1000):
        replay.update(first, [1.0])
    add(replay, [12])
    assert leaves(replay)[11] == pytest.approx(50 * TOP_DECAY**1000, rel=1e-3)  # about 18
    for _ in range(4000):
        replay.update(first, [1.0])
    add(replay, [13])
    assert leaves(replay)[12] == 1.0


def test_a_priority_that_comes_too_late_is_not_given_to_the_step_that_took_the_place():
    replay = memory(capacity=10, n_step=1)
    add(replay, list(range(10)), dies=True)
    known = handles(replay)
    add(replay, [100, 101, 102], dies=True)  # in the places of 0, 1, 2
    before = leaves(replay)
    replay.update(np.array([known[0], known[2], known[3]]), [7.0, 8.0, 9.0])
    assert leaves(replay) == before | {3: 9.0}
    assert replay.stale == 2


def test_priorities_that_are_no_numbers_are_refused():
    replay = memory(n_step=1)
    add(replay, [10, 11])
    for wrong in (np.nan, np.inf, -1.0):
        with pytest.raises(AssertionError, match="priorities are numbers"):
            update(replay, {10: wrong})
    update(replay, {10: 0.0})
    assert leaves(replay)[10] == pytest.approx(1e-6)  # low, but it can still be drawn


# --- the tree ---------------------------------------------------------------------------------------------------------


def plain_sums(numbers: list[np.float32]) -> list[list[np.float32]]:
    """All levels over the leaves, by adding 16 at a time from left to right."""
    levels = [numbers]
    while len(levels[-1]) > 1:
        below = levels[-1] + [np.float32(0)] * (-len(levels[-1]) % WIDTH)
        sums = []
        for start in range(0, len(below), WIDTH):
            total = np.float32(0)
            for number in below[start : start + WIDTH]:
                total = np.float32(total + number)
            sums.append(total)
        levels.append(sums)
    return levels


def levels_of(tree: Tree, leaf_count: int) -> list[list[np.float32]]:
    found, size = [], leaf_count
    for start in tree.levels:
        found.append(list(tree.sums[start : start + size]))
        size = -(-size // WIDTH)
    return found


@pytest.mark.parametrize("leaf_count", [1, 2, 15, 16, 17, 255, 256, 257, 5000])
def test_sums_and_their_plain_twin_agree_after_any_changes(leaf_count):
    dice = np.random.default_rng(leaf_count)
    tree = tree_over(leaf_count)
    for _ in range(30):
        touched = dice.integers(0, leaf_count, dice.integers(1, 40))
        tree.sums[touched] = dice.exponential(size=len(touched)) * (dice.random(len(touched)) < 0.8)
        sum_up(tree, touched.copy())
        assert levels_of(tree, leaf_count) == plain_sums(list(tree.sums[:leaf_count]))
    again = tree_over(leaf_count)
    again.sums[:leaf_count] = tree.sums[:leaf_count]
    sum_all(again)
    assert again.sums.tolist() == tree.sums.tolist()


@pytest.mark.parametrize("leaf_count", [1, 16, 300, 5000])
def test_drawing_and_its_plain_twin_agree(leaf_count):
    dice = np.random.default_rng(leaf_count)
    tree = tree_over(leaf_count)
    # Quarters, so that no sum is rounded and the twin may simply add up.
    tree.sums[:leaf_count] = dice.integers(0, 9, leaf_count) / 4 * (dice.random(leaf_count) < 0.7)
    tree.sums[dice.integers(0, leaf_count)] = 1.25
    sum_all(tree)
    targets = dice.random(1000) * float(tree.sums[-1])
    slots = np.empty(1000, np.int64)
    find(tree, targets.copy(), slots)
    ends = np.cumsum(tree.sums[:leaf_count].astype(np.float64))
    assert slots.tolist() == [next(i for i, end in enumerate(ends) if target < end) for target in targets]


def test_no_leaf_of_zero_is_drawn_even_past_the_end():
    dice = np.random.default_rng(8)
    for _ in range(200):
        tree = tree_over(700)
        some = dice.integers(0, 700, 5)
        tree.sums[some] = dice.random(5) + 1e-6
        sum_all(tree)
        total = float(tree.sums[-1])
        slots = np.empty(4, np.int64)
        find(tree, np.array([0.0, total * (1 - 1e-16), total, total * 1.001]), slots)
        assert set(slots.tolist()) <= set(some.tolist())
        assert slots[2] == some.max()


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_figures_say_what_the_memory_holds():
    replay = memory(n_step=1, capacity=20)
    assert replay.figures() == {
        "steps": 0, "filled": 0.0, "dropped": 0, "stale": 0, "pupil": 0.0, "teacher": 0.0, "random": 0.0
    }  # fmt: skip
    add(replay, list(range(11)), actors=[TEACHER] * 5 + [PUPIL] * 4 + [RANDOM] * 2)
    update(replay, dict.fromkeys(range(9), 1.0) | {9: 9.0})
    found = replay.figures()
    assert (found["steps"], found["filled"]) == (10, 11 / 20)
    assert (found["teacher"], found["pupil"], found["random"]) == (0.5, 0.4, 0.1)
    assert (found["priority_p10"], found["priority_p50"]) == (1.0, 1.0)
    assert found["age_p10"] == found["age_p50"] == 1  # step 9, one before the newest, is half of what is drawn
    assert found["age_p90"] == 9  # step 1: of 18 parts 17 are no older than it, 16 no older than step 2
    add(replay, list(range(100, 120)), dies=True)
    assert replay.figures()["steps"] == 20 and replay.figures()["pupil"] == 1.0


def test_a_flush_forgets_everything_and_late_priorities_change_nothing():
    replay = memory(n_step=1)
    add(replay, list(range(30)))
    known = handles(replay)
    replay.flush()
    assert len(replay) == 0 and replay.figures()["filled"] == 0
    replay.update(np.array(list(known.values())), [1.0] * len(known))
    assert len(replay) == 0 and replay.stale == 29
    add(replay, [40, 41], rewards=[1, 2])
    found = drawn(replay)
    assert sorted(found) == [40] and found[40].following == 41


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def test_fifteen_million_steps_fit_in_six_and_a_half_gigabytes_and_take_them_only_as_they_come():
    seen, zeros = np.zeros((10_000, 195)), np.zeros(10_000)
    few = Replay(PACKING, ReplayConfig(capacity=10_000))
    few.add(np.arange(700), seen[:700], zeros[:700], zeros[:700], zeros[:700], zeros[:700], zeros[:700] + 1)
    gc.collect()  # what other tests left behind must not go meanwhile
    before = resident()
    replay = Replay(PACKING)
    assert replay.config.capacity == 15_000_000
    assert replay.nbytes <= 6.5e9
    assert replay.nbytes == pytest.approx(bytes_needed(PACKING, 15_000_000), rel=1e-4)
    for _ in range(10):
        replay.add(np.arange(10_000), seen, zeros, zeros, zeros, zeros, zeros + 1)
    grown = resident() - before
    assert 30e6 < grown < 100e6  # 100,000 steps of 426 bytes, and what tables and pages take; 15 million take 6.4 GB
    replay.flush()
    assert resident() - before < grown - 20e6


def test_a_capacity_beyond_all_memory_is_refused():
    with pytest.raises(ReplayError, match=r"takes 4,262,666.7 GB, more than there is"):
        Replay(PACKING, ReplayConfig(capacity=10**13))


# --- the plain model --------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """One position of the model."""

    episode: list[int]  # positions of all its entries, shared between them
    seen: int
    action: int
    reward: float
    terminated: bool
    actor: int  # 0 where there is no action to learn from


@dataclass
class Model:
    """The memory as lists and dictionaries: every definition spelled out, nothing fast."""

    config: ReplayConfig
    entries: list[Entry] = field(default_factory=list)  # by position, from the first one ever
    running: dict[int, list[int]] = field(default_factory=dict)  # the open episode of each stream
    priorities: dict[int, float] = field(default_factory=dict)  # of everything that can be drawn
    windows: dict[int, tuple[float, int, float, int, int]] = field(default_factory=dict)  # as they were then
    top: float = 1.0
    flushed: int = 0  # the position since the last flush

    def oldest(self) -> int:
        return max(self.flushed, len(self.entries) - self.config.capacity)

    def new_priorities(self) -> tuple[float, float]:
        c, count = self.config, len(self.priorities)
        usual = min(self.top, c.new_limit * sum(self.priorities.values()) / count) if count else self.top
        return usual, max(usual, c.terminal_floor**c.priority_alpha)

    def add(self, stream: int, entry: Entry, truncated: bool, usual: float, deadly: float) -> None:
        position = len(self.entries)
        entry.episode = self.running.setdefault(stream, [])
        entry.episode.append(position)
        self.entries.append(entry)
        self.forget()
        if len(entry.episode) > self.config.n_step:
            self.complete(entry.episode[-1 - self.config.n_step], usual)
        if entry.terminated or truncated:
            self.end(stream, deadly if entry.terminated else usual)

    def end(self, stream: int, priority: float) -> None:
        for position in self.running.pop(stream)[-self.config.n_step :]:
            self.complete(position, priority)

    def complete(self, position: int, priority: float) -> None:
        if position >= self.oldest() and self.entries[position].actor and position not in self.priorities:
            self.priorities[position] = priority
            self.windows[position] = self.window(position)

    def forget(self) -> None:
        self.priorities = {p: priority for p, priority in self.priorities.items() if p >= self.oldest()}

    def abandon(self) -> None:
        usual = self.new_priorities()[0]
        for stream in list(self.running):
            self.entries[self.running[stream][-1]].actor = 0
            self.end(stream, usual)

    def update(self, positions: list[int], priorities: list[float]) -> None:
        powers = [max(p, 1e-6) ** self.config.priority_alpha for p in priorities]
        for position, power in zip(positions, powers):
            if position >= self.oldest():
                self.priorities[position] = power
        self.top = max(self.top * TOP_DECAY, *powers)

    def flush(self) -> None:
        self.flushed, self.priorities, self.running = len(self.entries), {}, {}

    def resize(self, config: ReplayConfig) -> None:
        self.config = config
        self.forget()
        for episode in self.running.values():
            for position in episode[: -config.n_step]:
                self.complete(position, self.top)
        self.windows = {position: self.window(position) for position in self.priorities}

    def window(self, position: int) -> tuple[float, int, float, int, int]:
        """Returns, what was seen next, bootstrap, horizon, own."""
        c, first = self.config, self.entries[position]
        places = first.episode[first.episode.index(position) :]
        returns, horizon, changed = 0.0, 0, None
        for k, place in enumerate(places[: c.n_step]):
            entry = self.entries[place]
            if not entry.terminated and k + 1 == len(places):
                break  # what this led to is not known
            if c.cut_off_policy and k > 0 and entry.actor != PUPIL:
                break
            if changed is None and entry.actor != first.actor:
                changed = k
            returns += c.gamma**k * entry.reward
            horizon = k + 1
            if entry.terminated:
                return returns, entry.seen, 0.0, horizon, horizon if changed is None else changed
        following = self.entries[places[horizon]].seen
        return returns, following, c.gamma**horizon, horizon, horizon if changed is None else changed


def compare(replay: Replay, model: Model, dice: np.random.Generator) -> Batch | None:
    """Everything that can be drawn, how often it is, and every number that comes with it."""
    assert len(replay) == len(model.priorities)
    if not model.priorities:
        return None
    count = 4000
    batch = replay.sample(count, 0.6, dice)
    positions, first, drawn_count = np.unique(batch.handle, return_index=True, return_counts=True)
    assert positions.tolist() == sorted(model.priorities)
    total = sum(model.priorities.values())
    shares = np.array([model.priorities[p] / total for p in positions.tolist()])
    assert np.abs(drawn_count / count - shares).max() < 2.1 / count
    weights = (len(positions) * shares) ** -0.6
    assert batch.weight[first] == pytest.approx(weights / weights.max(), rel=1e-4)
    for i, position in zip(first.tolist(), positions.tolist()):
        entry = model.entries[position]
        returns, following, bootstrap, horizon, own = model.windows[position]
        assert round(1000 * float(batch.observation[i, 0])) == entry.seen
        assert (batch.action[i], batch.actor[i]) == (entry.action, entry.actor)
        assert round(1000 * float(batch.next_observation[i, 0])) == following
        assert batch.returns[i] == pytest.approx(returns, abs=1e-4)
        assert batch.bootstrap[i] == pytest.approx(bootstrap, rel=1e-6)
        assert (batch.horizon[i], batch.own[i]) == (horizon, own)
    return batch


def some_config(dice: np.random.Generator) -> ReplayConfig:
    return ReplayConfig(
        capacity=int(dice.integers(40, 90)),
        n_step=int(dice.integers(1, 6)),
        gamma=float(dice.choice([0.5, 0.9, 1.0])),
        cut_off_policy=bool(dice.random() < 0.5),
        priority_alpha=float(dice.choice([0.5, 1.0])),
        terminal_floor=float(dice.choice([0.0, 2.0])),
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_memory_and_its_plain_model_agree_over_any_sequence(seed):
    dice = np.random.default_rng(seed)
    config = some_config(dice)
    replay, model = Replay(NUMBERED, config), Model(config)
    old: list[int] = []  # handles drawn at some time
    for turn in range(150):
        streams = dice.permutation(4)[: dice.integers(1, 5)] if dice.random() < 0.8 else dice.integers(0, 2, 30)
        count = len(streams)
        seen, rewards = dice.integers(-1000, 1001, count), dice.normal(size=count)
        actions, actors = dice.integers(-1, 9, count), dice.integers(1, 4, count)
        terminated = dice.random(count) < 0.1
        truncated = ~terminated & (dice.random(count) < 0.05)
        fresh = model.new_priorities()
        replay.add(streams, seen[:, None] / 1000, actions, rewards, terminated, truncated, actors)
        for i in range(count):
            actor = 0 if truncated[i] or actions[i] < 0 else int(actors[i])
            entry = Entry([], int(seen[i]), int(actions[i]), float(rewards[i]), bool(terminated[i]), actor)
            model.add(int(streams[i]), entry, bool(truncated[i]), *fresh)
        if turn % 5 == 0:
            batch = compare(replay, model, dice)
            old += [] if batch is None else dice.choice(batch.handle, 5).tolist()
        if old and dice.random() < 0.5:
            chosen = list({int(handle) for handle in dice.choice(old, 6)})
            priorities = dice.uniform(0.5, 4, len(chosen)).tolist()
            replay.update(np.array(chosen), priorities)
            model.update(chosen, priorities)
        match dice.random():
            case chance if chance < 0.03:
                replay.abandon()
                model.abandon()
            case chance if chance < 0.05:
                replay.flush()
                model.flush()
            case chance if chance < 0.15:  # on into another capacity and other returns
                config = replace(some_config(dice), priority_alpha=config.priority_alpha)
                old_replay, replay = replay, Replay(NUMBERED, config)
                state = old_replay.state()
                first, end = state["first"], state["end"]
                blocks = []
                while first < end:
                    blocks.append(old_replay.block(first, end))
                    first += len(blocks[-1].steps)
                replay.restore(state, blocks)
                model.flushed = state["first"]
                model.resize(config)
                compare(replay, model, dice)


# --- threads ----------------------------------------------------------------------------------------------------------


def test_one_thread_may_add_while_another_draws_and_updates():
    replay = Replay(packing([1000, 1000]), ReplayConfig(capacity=3000, n_step=3, gamma=1.0))
    failures: list[BaseException] = []
    stop = threading.Event()

    def write() -> None:
        try:
            for step in range(100_000):
                if stop.is_set():
                    return
                stream = np.arange(50)
                seen = np.stack([stream, np.full(50, step % 500)], axis=1) / 1000
                replay.add(stream, seen, stream, np.full(50, step % 500), stream < 0, stream < 0, stream * 0 + 1)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    dice = np.random.default_rng(1)
    draws = 0
    try:
        while draws < 400:
            if len(replay) == 0:
                continue
            batch = replay.sample(64, 0.4, dice)
            stream, step = np.rint(batch.observation * 1000).astype(int).T
            assert (batch.action == stream).all()
            assert (np.rint(batch.next_observation * 1000).astype(int).T == [stream, (step + 3) % 500]).all()
            assert (batch.returns == step + (step + 1) % 500 + (step + 2) % 500).all()
            replay.update(batch.handle, dice.random(64))
            draws += 1
    finally:
        stop.set()
        writer.join()
    assert not failures
