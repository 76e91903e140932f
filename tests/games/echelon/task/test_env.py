"""The task as learners see it: many battles in step, and one battle for PettingZoo."""

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from protege import ProtegeError
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_TIME
from protege.games.echelon.task.env import Arena, Choices, Frames
from protege.games.echelon.task.rewards import PARTS, RewardConfig
from protege.games.echelon.task.zoo import EchelonEnv
from protege.games.echelon.world.mechs import BLUE, NOBODY
from protege.seeds import EVALUATION, TRAINING, seed_of

SMALL: dict[str, Any] = {"roster": "2v2", "size": (40, 40), "length": 12}


def random_choices(arena: Arena, *streams: np.random.Generator) -> Choices:
    """Anything at all by everybody, from one stream of chance for each battle."""
    drawn, layout = [], arena.layout
    for rng in streams:
        n = layout.mechs
        drawn.append(
            (
                rng.uniform(-1, 1, (n, 4)).astype(np.float32),
                rng.random((n, 5)) < 0.4,
                rng.integers(0, 3, n),
                rng.integers(0, layout.enemies + 1, n),
                rng.uniform(-1, 1, (n, 8)).astype(np.float32),
                rng.integers(0, [6, layout.friends, layout.enemies], (n, 3)),
            )
        )
    return Choices(*map(np.stack, zip(*drawn)))


def copied(frames: Frames) -> dict[str, Any]:
    """All of a step that is promised, for comparison; without the rows of `final` that mean nothing."""
    found = {f"seen {name}": array.copy() for name, array in frames.observation._asdict().items()}
    found |= {f"final {name}": array[frames.over].copy() for name, array in frames.final._asdict().items()}
    return found | {n: a.copy() for n, a in frames._asdict().items() if n not in ("observation", "final")}


def play(arena: Arena, steps: int, seed: int = 3) -> list[dict[str, Any]]:
    streams = [np.random.default_rng([seed, b]) for b in range(len(arena))]
    return [copied(arena.step(arena.decode(random_choices(arena, *streams)))) for _ in range(steps)]


def idle(arena: Arena) -> Frames:
    return arena.step(arena.battles.no_actions())


# --- beginnings and ends ---------------------------------------------------------------------------------------------


def test_a_battle_that_ends_is_followed_by_the_next_on_another_map():
    arena = Arena(3, **SMALL)
    maps = [arena.battles.world.material.copy()]
    for n in range(1, 30):
        frames = idle(arena)
        assert frames.over.all() == (n % 12 == 0) and frames.over.any() == frames.over.all()
        if frames.over.all():
            maps.append(arena.battles.world.material.copy())
            assert (frames.decisions == 12).all() and (arena.battles.records["decision"] == 0).all()
            assert (frames.ending == BY_TIME).all()
    assert arena.number.tolist() == [3, 3, 3]
    prints = {material[b].tobytes() for material in maps for b in range(3)}
    assert len(prints) == 9


def test_the_last_observation_is_kept_beside_the_first_of_the_next_battle():
    arena = Arena(2, **SMALL)
    clock = [f["name"] for f in arena.schema["groups"]["own"]["fields"]].index("time")
    place = arena.schema["groups"]["own"]["fields"][clock]["offset"]
    for _ in range(11):
        frames = idle(arena)
    assert frames.observation.own[0, :, place] == pytest.approx(11 / 12)
    frames = idle(arena)
    assert frames.final.own[:, :, place] == pytest.approx(1.0) and (frames.observation.own[:, :, place] == 0).all()
    assert frames.final.alive.all() and frames.observation.alive.all()


def test_death_decision_and_time_are_told_apart():
    arena = Arena(3, **SMALL)
    mechs = arena.battles.mechs
    mechs["hp"][0, 0] = 0.001  # one dies
    mechs["hp"][1, 2:] = 0.001  # a team dies
    arena.battles.world.material[0, :, :, :], arena.battles.world.material[1, :, :, :] = 2, 2  # lava everywhere
    frames = idle(arena)
    assert frames.over.tolist() == [False, True, False]
    assert frames.terminated.tolist() == [[True, False, False, False], [True] * 4, [False] * 4]
    assert not frames.truncated.any() and frames.acted.all()
    assert (frames.ending[1], frames.winner[1]) == (BY_ELIMINATION, BLUE)
    frames = idle(arena)
    assert frames.acted.tolist() == [[False, True, True, True], [True] * 4, [True] * 4]
    assert frames.terminated[0].tolist() == [True, False, False, False]  # the battle goes on without the dead
    for _ in range(10):
        frames = idle(arena)
    assert frames.over.tolist() == [True, False, True]
    assert frames.truncated[2].all() and not frames.terminated[2].any()
    assert frames.truncated[0].tolist() == [not dead for dead in frames.terminated[0]]


def test_the_outcome_pays_in_the_step_that_ends_the_battle():
    arena = Arena(1, **SMALL, rewards=RewardConfig(own_fraction=1.0))
    arena.battles.mechs["hp"][0, 2:] = 0.001
    arena.battles.world.material[0] = 2
    frames = idle(arena)
    assert frames.parts[0, :, PARTS.index("outcome")].tolist() == [1, 1, -1, -1]
    assert frames.parts[0, :, PARTS.index("death")].tolist() == pytest.approx([0, 0, -0.2, -0.2])
    assert frames.reward[0] == pytest.approx(frames.parts[0].sum(1), abs=1e-6)
    frames = idle(arena)
    assert not frames.parts[0, :, PARTS.index("outcome")].any()


def test_few_maps_are_played_over_and_over_as_good_as_new():
    arena = Arena(4, **SMALL, maps=2)
    assert arena.maps is not None
    fresh = [arena.maps.material[n].tobytes() for n in range(2)]
    streams = [np.random.default_rng(b) for b in range(4)]
    seeds = set()
    for _ in range(5 * 12):
        frames = arena.step(arena.decode(random_choices(arena, *streams)))
        for b in np.flatnonzero(frames.over):
            assert arena.battles.world.material[b].tobytes() in fresh
            seeds.add(int(arena.battles.world.seed[b]))
    assert len(seeds) >= 16  # other dice each time


def test_seeds_of_training_and_evaluation_never_meet():
    training, evaluation = (Arena(2, **SMALL, domain=domain) for domain in (TRAINING, EVALUATION))
    assert training.battles.world.seed[1] == seed_of(TRAINING, 0, 1 << 32)
    assert (training.battles.world.seed >> np.uint64(63) == 0).all()
    assert (evaluation.battles.world.seed >> np.uint64(63) == 1).all()


# --- the same everywhere ---------------------------------------------------------------------------------------------


def test_battles_depend_neither_on_the_batch_nor_on_threads():
    whole = play(Arena(4, **SMALL), 30)
    threaded = play(Arena(4, **SMALL, threads=3), 30)
    alone = play(Arena(2, **SMALL), 30)
    for one, two, few in zip(whole, threaded, alone):
        for name, array in one.items():
            assert np.array_equal(array, two[name]), name
            if not name.startswith("final"):
                assert np.array_equal(array[:2], few[name]), name


def test_a_seed_can_be_played_again_and_another_is_another():
    arena = Arena(2, **SMALL)
    first = play(arena, 15)
    arena.reset()
    again = play(arena, 15)
    arena.reset(seed=9)
    other = play(arena, 15)
    assert all(np.array_equal(a[name], b[name]) for a, b in zip(first, again) for name in a)
    assert not np.array_equal(first[0]["seen own"], other[0]["seen own"])


def test_a_saved_arena_goes_on_where_it_was():
    arena, other = Arena(3, **SMALL), Arena(3, **SMALL, seed=5)
    play(arena, 8)
    saved = arena.save()
    expected = play(arena, 20, seed=4)
    seen = other.load(saved)
    assert np.array_equal(seen.own, other.observation.own)
    found = play(other, 20, seed=4)
    for one, two in zip(expected, found):
        for name, array in one.items():
            assert np.array_equal(array, two[name]), name
    with pytest.raises(ProtegeError, match="do not fit this arena: number is missing or has another shape"):
        Arena(2, **SMALL).load(saved)


def test_the_callers_arrays_are_left_alone():
    arena = Arena(1, **SMALL)
    choices = random_choices(arena, np.random.default_rng(1))
    arrays: list[Any] = list(choices)
    kept = [array.copy() for array in arrays]
    arena.step(arena.decode(choices))
    assert all(np.array_equal(a, b) for a, b in zip(kept, arrays))


def test_weights_follow_the_schedule_from_the_next_step_on():
    arena = Arena(1, **SMALL, rewards=RewardConfig(outcome_first=0.25, outcome=1.0))
    arena.schedule(0.0)
    arena.battles.mechs["hp"][0, 2:] = 0.001
    arena.battles.world.material[0] = 2
    assert idle(arena).parts[0, 0, PARTS.index("outcome")] == 0.25


# --- choices ---------------------------------------------------------------------------------------------------------


def blank_choices(arena: Arena) -> Choices:
    actions = arena.battles.no_actions()
    return Choices(actions.move, actions.buttons, actions.ewar, np.full_like(actions.target, arena.layout.enemies))


def test_slots_become_the_mechs_that_stand_in_them():
    arena = Arena(1, "5v5", size=(40, 40))
    seen = arena.observation
    seen.enemy_index[0, 0, :2], seen.friend_index[0, 0, 0] = [7, 9], 3
    choices = blank_choices(arena)
    choices.target[0, :3] = [1, arena.layout.enemies, 4]
    order = np.zeros((1, 10, 3), np.int64)
    order[0, 0] = [1, 0, 1]
    actions = arena.decode(choices._replace(order=order))
    assert actions.target[0, 0] == 9 and actions.target[0, 1] == NOBODY
    assert actions.target[0, 2] == seen.enemy_index[0, 2, 4]
    assert actions.order[0, 0].tolist() == [1, 3, 9] and actions.order[0, 1, 0] == 0


def test_what_is_not_an_action_is_refused_in_one_line():
    arena = Arena(2, **SMALL)
    good = blank_choices(arena)
    bad = good.move.copy()
    bad[1, 2, 0] = np.nan
    for choices, message in (
        (good._replace(move=bad), r"move of mech 2 in battle 1 must be finite; got \[nan, 0.0, 0.0, 0.0\]"),
        (good._replace(move=bad[:1]), r"move must have shape \(2, 4, 4\); got \(1, 4, 4\)"),
        (good._replace(target=good.target + 1), r"target must be 0..2; got 3..3"),
        (good._replace(ewar=good.ewar + 3), r"ewar must be 0..2; got 3..3"),
        (good._replace(target=good.target * 1.0), "target must hold whole numbers; got float64"),
    ):
        with pytest.raises(ProtegeError, match=message) as caught:
            arena.decode(choices)
        assert "\n" not in str(caught.value)


def test_what_cannot_be_an_arena_is_refused_in_one_line():
    for options, message in (
        ({"roster": "3v7"}, "no roster is called '3v7'; there are 1v0, 1v1"),
        ({"roster": "20v20", "size": (40, 40)}, "larger map or a smaller roster"),
        ({"size": (30, 30)}, "40..200 columns on each side, got 30 x 30"),
        ({"battles": 0}, "at least one battle and one map are needed; got 0 battles"),
        ({"maps": 0, **SMALL}, "got 64 battles and 0 maps"),
        ({"length": 0, "battles": 1, "size": (50, 50)}, "at least 1 decision; got 0"),
    ):
        with pytest.raises(ProtegeError, match=message) as caught:
            Arena(**options)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("roster", ["1v0", "1v1", "5v5", "base-5v5", "suite-6v6"])
def test_every_roster_plays(roster):
    arena = Arena(2, roster, size=(50, 50), length=8)
    frames = play(arena, 20)[-1]
    assert np.isfinite(frames["reward"]).all() and frames["reward"].shape == (2, arena.layout.mechs)


# --- PettingZoo ------------------------------------------------------------------------------------------------------


def duel(**options: Any) -> EchelonEnv:
    chosen: dict[str, Any] = {"size": (40, 40), "length": 40} | options
    return EchelonEnv("2v2", **chosen)


def stand(env: EchelonEnv) -> dict[str, dict[str, Any]]:
    quiet = {"move": np.zeros(4, np.float32), "buttons": np.zeros(5, np.int8), "ewar": 0, "target": 2}
    return {name: dict(quiet) for name in env.agents}


def test_the_environment_passes_pettingzoos_own_tests():
    parallel_api_test(duel(), num_cycles=100)
    parallel_api_test(duel(talk=True), num_cycles=50)
    parallel_seed_test(duel, num_cycles=50)


def test_observations_lie_in_their_spaces_and_belong_to_the_caller():
    env = duel()
    seen, told = env.reset(seed=1)
    assert list(seen) == list(told) == ["blue_0", "blue_1", "red_0", "red_1"]
    for _ in range(10):
        for name in env.agents:
            assert env.observation_space(name).contains(seen[name])
            for array in seen[name].values():
                array[...] = 0
        assert env.state() in env.state_space
        seen, *_ = env.step({name: env.action_space(name).sample() for name in env.agents})
    assert seen["blue_0"]["own"].any()


def test_the_dead_leave_and_the_end_says_who_won():
    env = duel()
    env.reset(seed=2)
    env.arena.battles.mechs["hp"][0, 2] = 0.001
    env.arena.battles.world.material[0] = 2
    _, _, terminated, truncated, _ = env.step(stand(env))
    assert terminated == {"blue_0": False, "blue_1": False, "red_0": True, "red_1": False} and not any(
        truncated.values()
    )
    assert env.agents == ["blue_0", "blue_1", "red_1"]
    env.arena.battles.mechs["hp"][0, 3] = 0.001
    seen, reward, terminated, _, told = env.step(stand(env))
    assert set(seen) == {"blue_0", "blue_1", "red_1"} and all(terminated.values())
    assert told["blue_0"] == {"ending": "elimination", "winner": "blue"}
    assert reward["blue_0"] > 0.3 > -1 > reward["red_1"]
    assert env.agents == []


def test_time_cuts_and_is_not_an_end_by_the_rules():
    env = duel(length=3)
    env.reset(seed=3)
    for _ in range(3):
        _, _, terminated, truncated, told = env.step(stand(env))
    assert all(truncated.values()) and not any(terminated.values())
    assert told["red_1"]["ending"] == "time"


def test_stepping_a_battle_that_is_over_or_never_began_is_an_error():
    env = duel(length=1)
    with pytest.raises(ProtegeError, match="no battle is going on: call reset before step"):
        env.step({})
    env.reset(seed=1)
    actions = stand(env)
    env.step(actions)
    with pytest.raises(ProtegeError, match="no battle is going on: call reset before step"):
        env.step(actions)
    with pytest.raises(ProtegeError, match="battle 0 is over: reset it before the next step"):
        env.arena.step(env.arena.battles.no_actions())
    env.reset()
    assert len(env.agents) == 4


def test_bad_actions_are_refused_in_one_line():
    env = duel()
    env.reset(seed=1)
    good = stand(env)
    for change, message in (
        ({"red_7": {}}, "one action for each of 4 agents is needed; red_7 is missing or not one"),
        ({"blue_0": {"move": 0}}, "an action consists of .*; that of blue_0 of move"),
        (
            {"blue_0": good["blue_0"] | {"move": np.zeros(3)}},
            r"move of blue_0 must be float32 of shape \(4,\); got float64 of \(3,\)",
        ),
        ({"blue_0": good["blue_0"] | {"target": 0.5}}, r"target of blue_0 must be int64 of shape \(\); got float64"),
        ({"blue_0": good["blue_0"] | {"target": 9}}, "target must be 0..2; got"),
        ({"blue_0": good["blue_0"] | {"move": np.full(4, np.nan)}}, "move of mech 0 in battle 0 must be finite"),
    ):
        with pytest.raises(ProtegeError, match=message) as caught:
            env.step(good | change)
        assert "\n" not in str(caught.value)
    env.step(good)


def test_an_agent_gets_what_the_arena_gives_its_mech():
    env, arena = duel(seed=4), Arena(1, "2v2", size=(40, 40), length=40, seed=4)
    seen, _ = env.reset(seed=4)
    for i, name in enumerate(env.possible_agents):
        assert np.array_equal(seen[name]["own"], arena.observation.own[0, i])
        assert np.array_equal(seen[name]["map"], arena.observation.map[0, i])
    rng = np.random.default_rng(5)
    choices = random_choices(arena, rng)._replace(message=None, order=None)
    frames = arena.step(arena.decode(choices))
    parts = ("move", "buttons", "ewar", "target")
    taken = {n: {p: getattr(choices, p)[0, i] for p in parts} for i, n in enumerate(env.agents)}
    _, reward, *_ = env.step(taken)
    assert list(reward.values()) == pytest.approx(frames.reward[0].tolist())
