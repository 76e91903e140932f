"""What holds in every battle, whatever anybody does: limits, books that agree, and the same battle everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from protege.games.echelon.rules.battle import (
    BY_SCORE,
    BY_TIME,
    FOCUS_FIRE,
    HOLD,
    RUNNING,
)
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import (
    BLUE,
    LAVA,
    MEDIUM,
    RED,
    find_roster,
)
from tests.games.echelon.rules.fields import (
    act,
    copy_of,
    ended,
    field,
    mechs,
    named,
    placed,
    random_actions,
    restart_ended,
    rough_field,
    wishes,
)
from tests.games.echelon.rules.invariants import (
    check_books,
    check_condition,
    check_map,
    check_places,
    fight_mirrored,
    play,
)

# --- limits ----------------------------------------------------------------------------------------------------------


def check_random_play(battles: Battles, decisions: int) -> None:
    """Let everybody do anything, and look at everything after each decision."""
    pristine, rng = copy_of(battles.world), np.random.default_rng(4)
    for _ in range(decisions):
        before = battles.records["score"].copy()
        dead = battles.mechs["alive"] == 0
        where = battles.mechs[["x", "y", "z"]].copy()
        battles.step(random_actions(battles, rng))
        assert (where[dead] == battles.mechs[["x", "y", "z"]][dead]).all(), "the dead lie still"
        for b in range(battles.count):
            check_places(battles, b)
            check_condition(battles, b)
            check_books(battles, b)
        shares = battles.records["score"] - before
        assert np.allclose(shares, battles.records["share"] * 0.25)
        restart_ended(battles, pristine)
    for b in range(battles.count):
        check_map(battles, b)


@pytest.mark.parametrize(("name", "count"), [("10v10", 20), ("5v5", 20), ("20v20", 5), ("suite-13v13", 5)])
def test_nothing_leaves_its_limits_and_all_books_agree(name, count):
    check_random_play(rough_field(find_roster(name), count, seed=3), 60)


def test_the_same_holds_on_generated_maps():
    battles = Battles(
        generate(np.arange(4, dtype=np.uint64), size=(60, 60), roster="10v10"), find_roster("10v10"), length=60
    )
    check_random_play(battles, 60)


def test_every_battle_ends_and_says_how():
    battles = rough_field(find_roster("5v5"), 16, length=40, seed=8)
    pristine, rng = copy_of(battles.world), np.random.default_rng(9)
    endings = []
    for _ in range(80):
        restart_ended(battles, pristine)
        battles.step(random_actions(battles, rng))
        records, over = battles.records, battles.over
        assert (over == (records["ending"] != RUNNING)).all()
        terminated, truncated = ended(battles)
        assert ((terminated | truncated).all(1) == over).all() and not (terminated & truncated).any()
        assert (records["decision"] <= 40).all()
        assert (
            over == ((records["decision"] == 40) | (records["score"].max(1) >= 5) | (records["living"] == 0).any(1))
        ).all()
        endings += list(records["ending"][over])
    assert len(endings) >= 2 * 16
    assert set(endings) >= {BY_SCORE, BY_TIME}


def test_nonsense_is_zeroed_and_counted_and_wrong_shapes_are_refused():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 30, 30))
    actions = wishes(battles, {0: {"forward": float("nan"), "strafe": float("inf"), "turn": 9.0, "ewar": 258}})
    kept = actions.move.copy()
    battles.step(actions)
    mechs = battles.mechs[0]
    assert (mechs["x"][0], mechs["y"][0]) == (10, 10)
    assert mechs["yaw"][0] == pytest.approx(0.25)  # 9 is cut to 1
    assert list(mechs["bad_actions"]) == [3, 0]
    assert np.array_equal(kept, actions.move, equal_nan=True)
    huge = battles.actions(np.full((1, 2, 4), 1e300), np.full((1, 2, 5), 256))
    assert np.isinf(huge.move).all() and huge.buttons.all()
    with pytest.raises(Exception, match=r"move must have shape \(1, 2, 4\); got \(1, 2, 3\)"):
        battles.actions(np.zeros((1, 2, 3)), np.zeros((1, 2, 5), bool))
    with pytest.raises(Exception, match="target must hold whole numbers; got float64"):
        battles.actions(np.zeros((1, 2, 4)), np.zeros((1, 2, 5), bool), target=np.zeros((1, 2)))


def test_a_roster_that_does_not_fit_the_map_is_refused():
    world = field(placed(BLUE, MEDIUM, 10, 10)).world
    with pytest.raises(Exception, match="places for 1 mechs, roster 5v5 has 10"):
        Battles(world, find_roster("5v5"))
    with pytest.raises(Exception, match="mech 0 of battle 0 would start in a wall or outside the map"):
        field(placed(BLUE, MEDIUM, 1, 10))


# --- the same battle everywhere --------------------------------------------------------------------------------------


def test_a_batch_is_so_many_single_battles_and_threads_change_nothing():
    roster = find_roster("10v10")
    together = rough_field(roster, 5, seed=11)
    whole = play(together, 12, 30)
    assert play(rough_field(roster, 5, seed=11, threads=3), 12, 30) == whole
    for b in (0, 4):
        alone = rough_field(roster, b + 1, seed=11)
        play(alone, 12, 30)
        assert np.array_equal(alone.mechs[b], together.mechs[b])
        assert np.array_equal(alone.world.material[b], together.world.material[b])


def test_a_saved_battle_goes_on_as_if_nothing_had_happened():
    roster = find_roster("5v5")
    first, second = rough_field(roster, 3, seed=13), rough_field(roster, 3, seed=14)
    play(first, 1, 20)
    second.load(first.save())
    assert play(second, 2, 20) == play(first, 2, 20)
    with pytest.raises(Exception, match="saved battles do not fit these: material"):
        rough_field(roster, 2, seed=13).load(first.save())


def test_swapping_teams_and_streams_swaps_the_battle():
    battles, mirror = (rough_field(find_roster("10v10"), 2, seed=21, length=300) for _ in range(2))
    assert fight_mirrored(battles, mirror, 22) > 5


SCRIPT = """
from protege.games.echelon.world.mechs import find_roster
from tests.games.echelon.rules.fields import rough_field
from tests.games.echelon.rules.invariants import play
print(play(rough_field(find_roster("10v10"), 2, seed=31), 32, 40))
"""


@pytest.mark.slow
def test_another_process_and_a_plain_processor_play_the_same_battle():
    here = play(rough_field(find_roster("10v10"), 2, seed=31), 32, 40)
    for extra in ({}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}):
        found = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=os.environ | extra,
            cwd=Path(__file__).parents[4],
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.split()[-1] == here


def test_the_same_seed_gives_the_same_battle_and_another_seed_another():
    roster = find_roster("5v5")
    first, again = rough_field(roster, 1, seed=41), rough_field(roster, 1, seed=41)
    assert play(first, 1, 20) == play(again, 1, 20)
    again = rough_field(roster, 1, seed=41)
    again.world.seed[:] += 1
    again.reset()
    assert play(again, 1, 20) != play(rough_field(roster, 1, seed=41), 1, 20)


def test_nobody_is_wedged_at_the_start():
    battles = field(*(placed(BLUE, 3, 6 + 3.5 * i, 10) for i in range(5)), length=200)  # heavies side by side
    act(battles, {i: {"strafe": 1.0} for i in range(5)}, 60)
    assert (battles.mechs["y"][0] > 20).all()


def test_messages_are_cut_to_size_and_the_dead_are_silent():
    battles = field(placed(BLUE, MEDIUM, 5, 5), placed(BLUE, MEDIUM, 5, 15), placed(RED, MEDIUM, 35, 35))
    spoken = [0.5, -0.5, 3.0, float("nan"), 0, 0, 0, 1]
    act(battles, {0: {"message": spoken}, 1: {"message": [0.25] * 8}})
    assert list(battles.records["messages"][0, 0]) == [0.5, -0.5, 1.0, 0.0, 0, 0, 0, 1]
    assert mechs(battles)["bad_actions"][0] == 1
    mechs(battles)["hp"][1] = 0.25
    battles.world.material[0, 0, 15, 5] = LAVA
    act(battles, {1: {"message": [0.25] * 8}})
    assert not battles.records["messages"][0, 1].any()


def test_only_its_commander_gives_a_mech_orders_and_they_last_ten_seconds():
    roster = find_roster("suite-6v6")
    leader = int(roster.members().leader[0])
    battles = rough_field(roster, length=100)
    happened = act(battles, {leader: {"order": (FOCUS_FIRE, 0, 9)}, 2: {"order": (HOLD, 1, 0)}})
    assert [(e["who"], e["whom"], e["amount"]) for e in named(happened, "order")] == [(leader, 0, FOCUS_FIRE)]
    assert [mechs(battles)[name][0] for name in ("order", "order_from", "order_target")] == [FOCUS_FIRE, leader, 9]
    assert mechs(battles)["order"][1] == 0
    act(battles, {}, 38)
    assert mechs(battles)["order"][0] == FOCUS_FIRE
    act(battles, {})
    assert mechs(battles)["order"][0] == 0


def test_a_dead_mech_is_terminated_while_its_battle_goes_on():
    battles = field(placed(BLUE, MEDIUM, 5, 5), placed(BLUE, MEDIUM, 5, 15), placed(RED, MEDIUM, 35, 35))
    mechs(battles)["hp"][0] = 0.25
    battles.world.material[0, 0, 5, 5] = LAVA
    act(battles, {})
    terminated, truncated = ended(battles)
    assert list(terminated[0]) == [True, False, False]
    assert not truncated.any() and not battles.over[0]
    assert list(battles.records["living"][0]) == [1, 1]


def test_nobody_is_stuck_where_a_generated_map_places_it():
    battles = Battles(generate(range(8), (60, 60), "10v10"), find_roster("10v10"))
    start, farthest = battles.mechs[["x", "y"]].copy(), np.zeros((8, 20))
    move = np.zeros((8, 20, 4), np.float32)
    move[..., 0] = 1.0
    for _ in range(60):  # 15 s
        battles.step(battles.actions(move, np.zeros((8, 20, 5), bool)))
        way = np.hypot(battles.mechs["x"] - start["x"], battles.mechs["y"] - start["y"])
        farthest = np.maximum(farthest, way)
    assert (farthest > 1).all()
