"""Games in step: seeds, endings, what is handed out, and teachers of every kind."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from protege.games.own.agents.players import Random, play
from protege.games.own.agents.scaling import RewardScale, Scaling
from protege.games.own.world.arena import Arena, GameFault, World
from protege.games.own.world.copies import gym_world
from protege.games.own.world.spaces import sight_of
from protege.seeds import EVALUATION, TRAINING

HERE = "tests.games.own.worlds"
WALK = f"gym:{HERE}:tests/Walk-v0"


def arena_of(place, teacher="", count=4, domain=TRAINING, **more):
    return Arena(gym_world(place, teacher), count, domain, 7, **more)


def test_an_end_hands_out_the_last_observation_and_begins_the_next_episode_at_once():
    arena = arena_of(WALK + "?wind=0.0")
    total = np.zeros(4)
    for _ in range(9):
        before = arena.observation.copy()
        step = arena.step(np.ones(4, np.int64))
        total += step.reward
        if len(step.ended):
            break
    assert step.terminated[step.ended].all() and not step.truncated.any()
    assert (step.last[:, 0] == 1.0).all() and (before[step.ended, 0] == np.float32(5 / 6)).all()
    assert (np.abs(arena.observation[step.ended, 0]) <= 2 / 6 + 1e-6).all() and (arena.frame[step.ended] == 0).all()
    ended = arena.taken_episodes()
    assert [e.number for e in ended] == step.ended.tolist() and arena.begun == 4 + len(ended)
    assert [e.reward for e in ended] == pytest.approx(total[step.ended]) and not any(e.truncated for e in ended)
    assert arena.taken_episodes() == []


def test_a_time_limit_is_a_cut_and_not_an_end():
    for arena in (arena_of(f"gym:{HERE}:tests/Endless-v0", longest=5), arena_of(f"{WALK}?wind=0.5", longest=2)):
        for _ in range(arena.longest):
            step = arena.step(np.arange(4) % 2)
        assert step.truncated.all() and not step.terminated.any()
    # Who reaches the end in the very frame of the cut has reached it.
    arena = arena_of(
        f"{WALK}?wind=0.0", count=1, longest=6 - round(6 * float(arena_of(WALK, count=1).observation[0, 0]))
    )
    while not len(step := arena.step(np.ones(1, np.int64)).ended):
        pass
    assert not arena.taken_episodes()[0].truncated


def test_episodes_follow_from_their_seeds_alone():
    world = gym_world(WALK)
    many, few = play(world, Random(), 20, seed=3), play(world, Random(), 5, seed=3)
    assert many[:5] == few and play(world, Random(), 5, seed=4) != few
    assert play(world, Random(), 20, seed=3, domain=TRAINING) != many
    training, held_out = (arena_of(WALK, count=64, domain=domain).seeds for domain in (TRAINING, EVALUATION))
    assert not set(training.tolist()) & set(held_out.tolist()) and held_out.min() >= 2**30 > training.max()


def test_random_moves_are_uniform_and_differ_between_games_and_frames():
    arena = arena_of(WALK, count=2000)
    first = arena.uniform()
    assert first.shape == (2000, 1) and 0.48 < first.mean() < 0.52 and 0.27 < first.std() < 0.31
    assert (first >= 0).all() and (first < 1).all() and len(np.unique(first)) == 2000
    arena.step(np.ones(2000, np.int64))
    assert abs(np.corrcoef(first[:, 0], arena.uniform()[:, 0])[0, 1]) < 0.1


@pytest.mark.parametrize(
    "kind, teacher, advice",
    [
        ("Walk", "teach_with_env", [1, 1]),
        ("Walk", "teach_env", [1, 1]),
        ("Walk", "teach_all", [1, 1]),
        ("Walk", "Taught", [1, 1]),
        ("Walk", "teach", None),
        ("NamedWalk", "teach_named", None),
        ("PushedWalk", "teach_push", [[1.0, 0.5]] * 2),
        ("LeverWalk", "teach_levers", [[1, 2]] * 2),
    ],
)
def test_a_teacher_is_asked_as_it_wants_to_be(kind, teacher, advice):
    arena = arena_of(f"gym:{HERE}:tests/{kind}-v0", f"{HERE}:{teacher}", count=2)
    at = arena.observation[:, 0]
    assert arena.advice().tolist() == ((at >= 0).astype(int).tolist() if advice is None else advice)


def test_who_has_no_teacher_says_how_to_name_one():
    with pytest.raises(GameFault, match="has no teacher: name one with --teacher"):
        arena_of(WALK).advice()


def test_scales_are_those_of_all_that_was_seen():
    random = np.random.default_rng(0)
    seen = (random.normal(size=(600, 3)) * [1, 100, 0] + [5, -7, 3]).astype(np.float32)
    scaling = Scaling(sight_of(spaces.Box(-1e6, 1e6, (3,)), "x"))
    for part in np.array_split(seen, 7):
        scaling.note(part)
    assert np.allclose(scaling.mean, seen.mean(0), rtol=1e-4) and np.allclose(scaling.variance, seen.var(0), rtol=1e-4)
    found = scaling.see(seen)
    assert np.allclose(found.mean(0), 0, atol=1e-3) and np.allclose(found.std(0), [1, 1, 0], atol=1e-3)
    assert scaling.see(np.array([[1e9, 0, 3]], np.float32))[0].tolist() == pytest.approx(
        [10.0, -seen[:, 1].mean() / seen[:, 1].std(), 0.0], abs=1e-3
    )


def test_rewards_are_scaled_by_their_discounted_returns():
    scale = RewardScale(2, gamma=0.5)
    assert scale.factor == 1.0
    scale.note(np.array([4.0, 0.0], np.float32), np.array([], np.int64))  # returns 4 and 0: mean square 8
    assert scale.factor == pytest.approx(8**-0.5)
    scale.note(np.array([0.0, 2.0], np.float32), np.array([0]))  # 2 and 2: mean square 4, over both frames 6
    assert scale.factor == pytest.approx(6**-0.5) and scale.returns.tolist() == [0.0, 2.0]


class Arrays:
    """Two numbers that count frames; games end when the first reaches 3."""

    observation_space: Any = spaces.Box(-10, 10, (2,))
    action_space: Any = spaces.Discrete(2)

    def __init__(self, games):
        self.seen = np.zeros((games, 2), np.float32)

    def reset(self, which, seeds):
        self.seen[which] = [0, 1]

    def observe(self):
        return self.seen

    def step(self, actions):
        self.seen[:, 0] += 1
        over = self.seen[:, 0] >= 3
        return over.astype(np.float32), over, np.zeros(len(over), np.bool_)


def test_what_a_game_of_arrays_hands_out_may_change_without_harm():
    arena = Arena(World("mine", "mine.py", "Mine", Arrays), 3, TRAINING, 1)
    seen = [arena.observation]
    for _ in range(3):
        step = arena.step(np.zeros(3, np.int64))
        seen.append(arena.observation)
    assert [row[0, 0] for row in seen] == [0, 1, 2, 0] and step.last[:, 0].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "method, result, said",
    [
        ("observe", np.zeros((3, 4)), r"observations of shape \(3, 2\) were expected, and \(3, 4\) came"),
        ("step", (np.zeros(2), np.zeros(3, bool), np.zeros(3, bool)), r"rewards of 3 games were expected, and shape"),
        ("step", (np.zeros(3), np.zeros(3), np.zeros(3, bool)), "terminated must be True or False, and float64 came"),
        ("step", (np.full(3, np.inf), np.zeros(3, bool), np.zeros(3, bool)), "the reward inf came"),
    ],
)
def test_a_game_of_arrays_that_breaks_its_promise_is_told(method, result, said, monkeypatch):
    arena = Arena(World("mine", "mine.py", "Mine", Arrays), 3, TRAINING, 1)
    monkeypatch.setattr(arena.games, method, lambda *given: result)
    with pytest.raises(GameFault, match=f"^mine.py: .*{said}"):
        arena.step(np.zeros(3, np.int64))
