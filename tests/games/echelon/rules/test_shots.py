"""Missiles, shells and smoke in flight, and what they burst on, with numbers worked by hand."""

from dataclasses import replace
from math import pi

import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    BUILD,
    FOLIAGE,
    GLASS,
    HEAVY,
    MEDIUM,
    RED,
    SCOUT,
    SOLID,
)
from tests.games.echelon.rules.fields import STEADY, act, block, field, mechs, named, placed


def test_a_missile_homes_in_and_does_its_damage():
    battles = field(placed(BLUE, HEAVY, 5, 20), placed(RED, MEDIUM, 16, 20, yaw=pi), rules=STEADY)
    act(battles, {0: {"secondary": True}})
    happened = act(battles, {1: {"strafe": 1.0}}, 8)
    hit = named(happened, "projectile_hit")
    assert [(e["who"], e["whom"], e["amount"]) for e in hit] == [(0, 1, 40)]
    assert len(named(happened, "explosion")) == 1
    assert mechs(battles)["taken"][1] == 40
    assert mechs(battles)["warned"][1] == 0


def test_a_missile_is_announced_to_its_target():
    battles = field(placed(BLUE, HEAVY, 5, 20), placed(RED, MEDIUM, 16, 20), placed(RED, MEDIUM, 16, 30))
    act(battles, {0: {"secondary": True}})
    assert list(mechs(battles)["warned"]) == [0, 1, 0]


@pytest.mark.parametrize(("chance", "saved"), [(1.0, True), (0.0, False)])
def test_an_anti_missile_system_protects_its_friends(chance, saved):
    rules = replace(STEADY, ams_probability=chance)
    battles = field(
        placed(BLUE, HEAVY, 5, 20), placed(RED, MEDIUM, 16, 20, yaw=pi), placed(RED, HEAVY, 16, 24, yaw=pi), rules=rules
    )
    happened = act(battles, {0: {"secondary": True, "target": 1}}, 8)
    assert bool(named(happened, "ams_intercept")) == saved
    assert (mechs(battles)["hp"][1] == 150) == saved


def test_smoke_bursts_at_the_end_of_its_reach_and_hides():
    battles = field(placed(BLUE, SCOUT, 5, 20), placed(RED, MEDIUM, 33, 20), placed(RED, MEDIUM, 20, 30), size=(60, 40))
    assert mechs(battles)["sees"][0] == 0b110
    happened = act(battles, {0: {"special": True}})
    assert len(named(happened, "smoke_launch")) == 1
    happened = act(battles, {}, 5)
    (cloud,) = named(happened, "smoke_cloud")
    assert cloud["x"] == pytest.approx(5 + 27 * 0.75)  # the first whole tick beyond 20
    assert mechs(battles)["sees"][0] == 0b100
    act(battles, {}, 40)
    assert mechs(battles)["sees"][0] == 0b110  # ten seconds later


def test_glass_shows_and_stops_shells_and_foliage_hides_and_does_not():
    def fired_through(material):
        battles = field(
            placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 12, 20, yaw=pi),
            build=block(slice(0, 6), slice(None), 9, material), rules=STEADY,
        )  # fmt: skip
        seen = mechs(battles)["sees"][0] != 0
        happened = act(battles, {0: {"tertiary": True}}, 2)
        return seen, bool(named(happened, "projectile_hit")), bool(named(happened, "voxel_destroyed"))

    assert fired_through(GLASS) == (True, False, True)  # 10 HP: the second shell breaks it
    assert fired_through(FOLIAGE) == (False, True, False)
    assert fired_through(SOLID) == (False, False, False)


def test_a_shell_damages_the_voxel_that_stopped_it():
    battles = field(placed(BLUE, HEAVY, 5, 20), placed(RED, MEDIUM, 35, 35), build=block(slice(0, 6), slice(None), 12))
    act(battles, {0: {"tertiary": True}})  # gauss, level from z = 2, falling: bursts before voxel 1, 20, 12
    hp = battles.world.hp[0]
    assert hp[1, 20, 12] == 100 - 50 - 25  # direct, and its own splash
    assert hp[1, 19, 12] == hp[2, 20, 12] == 75
    assert hp[1, 21, 12] == hp[4, 20, 12] == 100  # their centres are more than 1.5 away
    act(battles, {}, 15)
    gone = named(act(battles, {0: {"tertiary": True}}), "voxel_destroyed")
    assert [(e["x"], e["y"], e["z"], e["who"], e["weapon"]) for e in gone] == [(12.5, 20.5, 1.5, 0, SOLID)]
    assert battles.world.material[0, 1, 20, 12] == 0
    assert not battles.world.blocked[0, 20, 12] >> 1 & 1
    changes = battles.records["changes"][0][: battles.records["change_count"][0]]
    assert [tuple(change) for change in changes] == [((1 * 40 + 20) * 40 + 12, 0)]


def test_splash_hurts_friends_too_and_less_with_distance():
    battles = field(
        placed(BLUE, HEAVY, 5, 20), placed(BLUE, SCOUT, 18, 21.5), placed(RED, HEAVY, 30, 30),
        placed(RED, SCOUT, 20, 20, yaw=pi), rules=STEADY,
    )  # fmt: skip
    act(battles, {0: {"tertiary": True, "target": 3}}, 3)
    taken = mechs(battles)["taken"]
    assert taken[3] == 50
    # The burst is where the shell meets a sphere of 0.9 around the target; half the damage, none at 1.5 from the body.
    burst = battles.records["events"][0][0]
    assert 0 < taken[1] < 25 and taken[2] == 0, burst
    assert mechs(battles)["friendly"][0] == taken[1]
    assert mechs(battles)["dealt"][0] == 50


@pytest.mark.parametrize("wall", [False, True])
def test_cover_shields_from_splash(wall):
    wide = tuple(replace(weapon, splash_radius=4.0) if weapon.name == "gauss" else weapon for weapon in BUILD.weapons)
    battles = field(
        placed(BLUE, HEAVY, 5, 20), placed(RED, HEAVY, 18, 24.8, yaw=pi), placed(RED, SCOUT, 20, 20.5, yaw=pi),
        build=block(slice(0, 5), 22, slice(None)) if wall else None, rules=replace(STEADY, weapons=wide),
    )  # fmt: skip
    act(battles, {0: {"tertiary": True, "target": 2}}, 3)
    assert mechs(battles)["taken"][2] == 50
    assert (mechs(battles)["taken"][1] > 0) != wall
