"""What holds in every battle, whatever anybody does: limits, books that agree, and the same battle everywhere."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.battle import (
    ASSIST,
    BY_SCORE,
    BY_TIME,
    DEATH,
    FRIENDLY_KILL,
    KILL,
    MECH,
    RUNNING,
    ZONE_ENTER,
    ZONE_LEAVE,
)
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import (
    BLUE,
    CHASSIS,
    MATERIAL_HP,
    MEDIUM,
    NOBODY,
    RED,
    STOPS_BODIES,
    STOPS_SIGHT,
    find_roster,
)
from tests.games.echelon.rules.fields import (
    act,
    copy_of,
    field,
    placed,
    random_actions,
    restart_ended,
    rough_field,
    wishes,
)

HALF_WIDTH = np.array([c.width / 2 for c in CHASSIS])
HALF_HEIGHT = np.array([c.height / 2 for c in CHASSIS])
MOST = {
    "hp": [c.hp for c in CHASSIS],
    "leg_hp": [c.leg_hp for c in CHASSIS],
    "stability": [c.stability for c in CHASSIS],
}


def fingerprint(battles: Battles) -> str:
    """Of everything a battle consists of."""
    digest = hashlib.sha256()
    for name, array in sorted(battles.save().items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def play(battles: Battles, seed: int, decisions: int) -> str:
    """Random actions by everybody, battle b's from (seed, b); ended battles begin anew."""
    streams = [np.random.default_rng([seed, b]) for b in range(battles.count)]
    pristine = copy_of(battles.world)
    for _ in range(decisions):
        restart_ended(battles, pristine)
        battles.step(random_actions(battles, *streams))
    return fingerprint(battles)


# --- limits ----------------------------------------------------------------------------------------------------------


def check_places(battles: Battles, b: int) -> None:
    """Nobody alive is inside a wall, inside another, above the ceiling or outside the map."""
    mechs = battles.mechs[b][battles.mechs[b]["alive"] == 1]
    material = battles.world.material[b]
    size = np.array(material.shape[::-1])
    centre = np.stack([mechs["x"], mechs["y"], mechs["z"]], 1)
    half = np.stack([HALF_WIDTH[mechs["kind"]], HALF_WIDTH[mechs["kind"]], HALF_HEIGHT[mechs["kind"]]], 1)
    assert (centre - half >= -1e-6).all() and (centre + half <= size + 1e-6).all()
    for c, h in zip(centre, half):
        low, high = np.floor(c - h + 1e-5).astype(int), np.ceil(c + h - 1e-5).astype(int)
        assert not STOPS_BODIES[material[low[2] : high[2], low[1] : high[1], low[0] : high[0]]].any()
    gap = np.abs(centre[:, None] - centre) - (half[:, None] + half)
    assert (gap.max(2) + 10 * np.eye(len(mechs)) > -1e-5).all()


def check_condition(battles: Battles, b: int) -> None:
    """Everything within its limits, and numbers all the way."""
    mechs = battles.mechs[b]
    for name in MECH.names or ():
        assert np.isfinite(mechs[name]).all(), name
    for name, most in MOST.items():
        assert (mechs[name] >= 0).all() and (mechs[name] <= np.array(most)[mechs["kind"]]).all(), name
    assert (mechs["heat"] >= 0).all()
    assert (mechs["jet"] >= 0).all() and (mechs["jet"] <= 1).all()
    assert ((mechs["hp"] > 0) == (mechs["alive"] == 1)).all()
    assert (np.abs(mechs["yaw"]) <= np.pi + 1e-12).all()
    assert np.allclose(mechs["sin"], np.sin(mechs["yaw"]), atol=1e-14)


def check_books(battles: Battles, b: int) -> None:
    """Living, damage, kills, zone: every count agrees with every other."""
    mechs, battle = battles.mechs[b], battles.records[b]
    ledger = battle["ledger"][: len(mechs), : len(mechs)]
    dead = mechs["alive"] == 0
    for team in (BLUE, RED):
        assert battle["living"][team] == (~dead & (mechs["team"] == team)).sum()
    hostile = mechs["team"][:, None] != mechs["team"]
    assert ((ledger * hostile).sum(1) == mechs["dealt"]).all()
    assert ((ledger * ~hostile).sum(1) == mechs["friendly"]).all()
    assert (np.array(MOST["hp"])[mechs["kind"]] - mechs["hp"] == mechs["taken"]).all()
    assert (ledger.sum(0) <= mechs["taken"]).all()  # lava has no name in the ledger
    assert (mechs["tally"][:, DEATH] == dead).all()
    kills, friendly = mechs["tally"][:, KILL].sum(), mechs["tally"][:, FRIENDLY_KILL].sum()
    assert kills + friendly <= dead.sum()
    assert mechs["tally"][:, ASSIST].sum() <= kills * (len(mechs) - 1)
    assert (mechs["tally"][:, ZONE_ENTER] - mechs["tally"][:, ZONE_LEAVE] == mechs["inside"]).all()
    assert battle["events_lost"] == 0 and battle["changes_lost"] == 0


def check_map(battles: Battles, b: int) -> None:
    """Columns and HP follow from the materials."""
    material = battles.world.material[b]
    bit = np.uint32(1) << np.arange(len(material), dtype=np.uint32)[:, None, None]
    assert (battles.world.blocked[b] == (STOPS_BODIES[material] * bit).sum(0)).all()
    assert (battles.world.opaque[b] == (STOPS_SIGHT[material] * bit).sum(0)).all()
    assert (battles.world.hp[b] <= MATERIAL_HP[material]).all()
    assert (battles.world.hp[b][MATERIAL_HP[material] > 0] > 0).all()


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
        assert ((battles.terminated | battles.truncated).all(1) == over).all()
        assert not (battles.terminated & battles.truncated).any()
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


def fight_mirrored(battles: Battles, mirror: Battles, seed: int) -> int:
    """Swap teams and streams in one of two equal batches, fight in both, compare all the time; how many died."""
    half = battles.mech_count // 2
    other = np.roll(np.arange(2 * half), half)  # the index of the same mech under the other label
    mirror.world.spawn[:] = mirror.world.spawn[:, other]
    mirror.reset()
    mirror.records["stream"] = mirror.records["stream"][:, ::-1]
    for each in (battles, mirror):
        each.mechs["hp"] *= 0.25  # so that many die
    rng = np.random.default_rng(seed)
    while not battles.over.any():
        actions = random_actions(battles, rng)
        battles.step(actions)
        named = np.append(other, NOBODY).astype(np.int16)
        swapped: list[Any] = [array[:, other] for array in actions]
        swapped[3] = named[swapped[3]]
        swapped[5][..., 1] = named[swapped[5][..., 1]]
        swapped[5][..., 2] = named[swapped[5][..., 2]]
        mirror.step(mirror.actions(*swapped))
        compare_mirrored(battles, mirror, other)
    return int((battles.mechs["alive"] == 0).sum())


def compare_mirrored(battles: Battles, mirror: Battles, other: np.ndarray) -> None:
    """Equal, but for the names of teams and mechs."""
    mine, theirs = battles.mechs, mirror.mechs[:, other]
    for name in MECH.names or ():
        if name in ("team", "pack", "leader"):
            continue
        expected = theirs[name]
        if name in ("painter", "focus", "order_from", "order_target"):
            expected = np.append(other, NOBODY)[expected]
        elif name in ("sees", "knows"):
            bits = expected[..., None] >> np.arange(len(other), dtype=np.uint64) & np.uint64(1)
            expected = (bits[..., other] << np.arange(len(other), dtype=np.uint64)).sum(-1, dtype=np.uint64)
        assert np.array_equal(mine[name], expected), name
    for name in ("tick", "living", "score", "share", "tonnage", "ending", "winner", "shot_count", "cloud_count"):
        expected = mirror.records[name]
        if expected.ndim == 2:
            expected = expected[:, ::-1]
        elif name == "winner":
            expected = np.where(expected == NOBODY, NOBODY, 1 - expected)
        assert np.array_equal(battles.records[name], expected), name
    assert np.array_equal(battles.world.material, mirror.world.material)
    assert np.array_equal(battles.world.hp, mirror.world.hp)
    swapped = mirror.records["ledger"][:, other][:, :, other]
    assert np.array_equal(battles.records["ledger"][:, : len(other), : len(other)], swapped)


SCRIPT = """
from tests.games.echelon.rules.test_sim import play, rough_field, find_roster
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
