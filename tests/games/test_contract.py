"""One check for every source of games: seeds, dtypes, shapes, endings kept apart, no shared buffers.

A source is whatever plays many games at once behind Gymnasium's vector interface, with next-step autoreset. Another
game joins by adding a line to SOURCES.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest

from protege.games.tempest.task.gym import TempestVectorEnv

GAMES = 4


@dataclass(frozen=True)
class Source:
    """How to make games of one kind."""

    make: Callable[..., gymnasium.vector.VectorEnv[Any, Any, Any]]  # takes the number of games
    terminates: dict[str, Any]  # options with which random play soon ends an episode by the rules
    truncates: dict[str, Any]  # options with which an episode is cut after 20 steps, before anything ends it
    most_steps: int  # within which random play has then seen an end


SOURCES = {
    "tempest over the simulator": Source(
        TempestVectorEnv, terminates={"level": 33, "episode": "life"}, truncates={"max_frames": 20}, most_steps=4000
    ),
}


@pytest.fixture(params=list(SOURCES.values()), ids=list(SOURCES))
def source(request: pytest.FixtureRequest) -> Source:
    chosen: Source = request.param
    return chosen


def leaves(value: Any) -> list[np.ndarray]:
    """Every array in what a step or reset gave."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [array for item in value.values() for array in leaves(item)]
    return [array for item in value for array in leaves(item)] if isinstance(value, tuple) else []


def same(ours: Any, theirs: Any) -> bool:
    pairs = list(zip(leaves(ours), leaves(theirs), strict=True))
    return bool(pairs) and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


def run(envs: Any, seed: int, steps: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    envs.action_space.seed(int(generator.integers(2**31)))
    return [envs.reset(seed=seed)] + [envs.step(envs.action_space.sample()) for _ in range(steps)]


def ending(envs: Any, kind: int, most: int) -> tuple[Any, np.ndarray]:
    """Random play until some episode ends that way (2: terminated, 3: truncated): the step, and which games ended."""
    envs.action_space.seed(1)
    envs.reset(seed=1)
    for _ in range(most):
        step = envs.step(envs.action_space.sample())
        if step[kind].any():
            return step, step[2] | step[3]
    raise AssertionError(f"no end within {most} steps")


def test_the_same_seed_gives_the_same_games(source):
    first, again, other = (run(source.make(GAMES), seed, 100) for seed in (5, 5, 6))
    assert all(same(a, b) for a, b in zip(first, again))
    assert not all(same(a, b) for a, b in zip(first, other))


def test_the_same_seed_gives_the_same_games_whatever_was_played_before(source):
    envs = source.make(GAMES)
    first = run(envs, 5, 60)
    assert all(same(a, b) for a, b in zip(first, run(envs, 5, 60)))


def test_games_do_not_depend_on_how_many_there_are(source):
    few, many = source.make(1), source.make(GAMES)
    assert np.array_equal(few.reset(seed=5)[0][0], many.reset(seed=5)[0][0])
    for action in few.single_action_space.sample(), few.single_action_space.sample():
        ours = few.step(np.array([action]))
        theirs = many.step(np.array([action] * GAMES))
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(ours[:4], theirs[:4]))


def test_the_games_of_a_batch_differ(source):
    envs = source.make(GAMES)
    envs.reset(seed=5)
    for _ in range(60):  # the first frames of two games may look alike
        observation, *_ = envs.step(np.array([envs.single_action_space.start] * GAMES))
    assert len({row.tobytes() for row in observation}) == GAMES


def test_dtypes_and_shapes_are_those_promised(source):
    envs = source.make(GAMES)
    assert envs.num_envs == GAMES
    assert envs.observation_space.shape == (GAMES, *envs.single_observation_space.shape)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    (observation, infos), *steps = run(envs, 5, 50)
    assert observation in envs.observation_space and isinstance(infos, dict)
    for observation, reward, terminated, truncated, infos in steps:
        assert observation in envs.observation_space and observation.dtype == np.float32
        assert reward.shape == (GAMES,) and reward.dtype == np.float64 and np.isfinite(reward).all()
        for flags in (terminated, truncated):
            assert flags.shape == (GAMES,) and flags.dtype == np.bool_
        for name, values in infos.items():
            assert len(values) == GAMES
            if not name.startswith("_"):
                assert infos[f"_{name}"].dtype == np.bool_


def test_an_end_by_the_rules_is_terminated_and_a_cut_is_truncated(source):
    (_, _, terminated, truncated, _), _ = ending(source.make(GAMES, **source.terminates), 2, source.most_steps)
    assert terminated.any() and not truncated.any()
    (_, _, terminated, truncated, _), _ = ending(source.make(GAMES, **source.truncates), 3, source.most_steps)
    assert truncated.any() and not terminated.any()


@pytest.mark.parametrize("kind", [2, 3], ids=["terminated", "truncated"])
def test_the_final_observation_is_kept_and_the_next_step_begins_anew(source, kind):
    """The step that ends an episode shows its last frame; the one after it plays nothing and shows a first frame."""
    envs = source.make(GAMES, **(source.terminates if kind == 2 else source.truncates))
    (last, *_), ended = ending(envs, kind, source.most_steps)
    kept = last.copy()
    first, reward, terminated, truncated, _ = envs.step(envs.action_space.sample())
    assert np.array_equal(last, kept)
    assert (reward[ended] == 0).all() and not (terminated | truncated)[ended].any()
    if kind == 3:
        assert not np.array_equal(first[ended], last[ended])
        assert (first[ended] != last[ended]).any(axis=1).all()


def test_nothing_handed_out_is_shared(source):
    envs = source.make(GAMES)
    arrays = [array for answer in run(envs, 5, 4) for array in leaves(answer)]
    for i, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[i + 1 :])


def test_writing_into_what_was_handed_out_does_not_reach_the_games(source):
    clean, spoilt = source.make(GAMES), source.make(GAMES)
    clean.action_space.seed(5)
    expected, found = clean.reset(seed=5), spoilt.reset(seed=5)
    for _ in range(40):
        for array in leaves(found):
            array[...] = 0
        actions = clean.action_space.sample()
        expected, found = clean.step(actions), spoilt.step(actions.copy())
        assert same(found, expected)
