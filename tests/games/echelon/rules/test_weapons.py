"""Targets, locks and aim of the seven weapons, with numbers worked by hand."""

from math import pi

import numpy as np
import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    HEAVY,
    LIGHT,
    MEDIUM,
    RED,
    SCOUT,
)
from tests.games.echelon.rules.fields import STEADY, act, block, field, mechs, named, placed

ALL_WEAPONS = {"primary": True, "secondary": True, "tertiary": True, "special": True}


def test_a_laser_hits_at_once_and_again_after_its_cooldown():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi), rules=STEADY)
    happened = act(battles, {0: {"primary": True}}, 3)
    assert [(e["tick"], e["amount"]) for e in named(happened, "laser_hit")] == [(1, 14), (13, 14)]
    assert mechs(battles)["hp"][1] == 150 - 28
    assert mechs(battles)["heat"][0] == pytest.approx(22 - 0.55 * 11 + 22 - 0.55 * 3, abs=0.6)
    assert mechs(battles)["dealt"][0] == mechs(battles)["taken"][1] == 28


@pytest.mark.parametrize(
    ("x", "y", "fires"),
    [(18, 10, True), (18.1, 10, False), (10 + 3.1, 10 + 5.2, True), (10 + 2.9, 10 + 5.2, False)],
    ids=["in reach", "out of reach", "59 degrees", "61 degrees"],
)
def test_a_laser_needs_reach_and_arc_and_costs_nothing_without_a_target(x, y, fires):
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, x, y))
    happened = act(battles, {0: {"primary": True}})
    assert bool(named(happened, "laser_hit")) == fires
    assert (mechs(battles)["heat"][0] > 0) == fires


def test_a_flamer_heats_its_target_and_comes_before_the_laser():
    battles = field(placed(BLUE, LIGHT, 10, 10), placed(RED, HEAVY, 14, 10, yaw=pi), rules=STEADY)
    act(battles, {0: {"primary": True, "secondary": True}})
    assert mechs(battles)["hp"][1] == 200 - 8  # ticks 1 and 4
    assert mechs(battles)["heat"][1] == pytest.approx(30 - 4 * 0.5, abs=0.51)


def test_the_focus_target_is_hit_although_another_is_nearer():
    battles = field(
        placed(BLUE, MEDIUM, 10, 10),
        placed(RED, MEDIUM, 14, 12, yaw=pi),
        placed(RED, MEDIUM, 17, 9, yaw=pi),
        rules=STEADY,
    )
    act(battles, {0: {"primary": True, "target": 2}})
    assert list(mechs(battles)["hp"]) == [150, 150, 136]
    act(battles, {0: {"primary": True, "target": 0}}, 2)  # no enemy: no focus, the nearest
    assert list(mechs(battles)["hp"]) == [150, 136, 136]


def test_a_medium_paints_without_firing_and_fires_without_painting():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi))
    happened = act(battles, {0: {"secondary": True}})
    assert [e["name"] for e in happened] == ["paint"]
    assert mechs(battles)["painted"][1] == 96  # of 100 ticks, set in the first of five
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi))
    happened = act(battles, {0: {"tertiary": True}}, 2)
    assert named(happened, "kinetic_fire") and not named(happened, "paint")


def test_a_missile_needs_sight_within_12_or_paint_by_its_own_pack():
    def launches(distance, painter_pack=None, wall=False):
        blue = [placed(BLUE, HEAVY, 5, 20)]
        if painter_pack is not None:
            blue.append(placed(BLUE, SCOUT, 5 + distance - 8, 20, pack=painter_pack))
        battles = field(
            *blue,
            placed(RED, MEDIUM, 5 + distance, 20, yaw=pi),
            size=(60, 40),
            build=block(slice(0, 8), slice(None), 10) if wall else None,
        )
        if painter_pack is not None:
            act(battles, {1: {"primary": True}})
            assert mechs(battles)["painted"][2] > 0
        return named(act(battles, {0: {"secondary": True}}), "missile_launch")

    assert launches(11.9)
    assert not launches(12.1)
    assert not launches(11.9, wall=True)
    assert launches(40, painter_pack=0)[0]["amount"] == 1
    assert launches(40, painter_pack=0, wall=True)
    assert not launches(40, painter_pack=1)


def test_jamming_makes_paint_useless_and_counter_jamming_helps():
    def locks(*more, wish):
        battles = field(
            placed(BLUE, HEAVY, 5, 20), placed(BLUE, SCOUT, 37, 20), placed(BLUE, SCOUT, 7, 14),
            placed(RED, MEDIUM, 45, 20, yaw=pi), placed(RED, SCOUT, 20, 38), size=(60, 40),
        )  # fmt: skip
        act(battles, {1: {"primary": True}} | wish)
        act(battles, wish)
        return battles, bool(named(act(battles, {0: {"secondary": True}} | wish), "missile_launch"))

    battles, locked = locks(wish={})
    assert (mechs(battles)["quality"][0], locked) == (1, True)
    battles, locked = locks(wish={4: {"ewar": 1}})
    jam = 1 - np.sqrt(15**2 + 18**2 + (2 - 0.9) ** 2) / 50
    assert mechs(battles)["jam"][0] == pytest.approx(jam)  # 0.53
    assert mechs(battles)["quality"][0] == pytest.approx(1 - 0.85 * jam)
    assert not locked
    battles, locked = locks(wish={4: {"ewar": 1}, 2: {"ewar": 2}})
    assert mechs(battles)["quality"][0] > 1
    assert locked


def test_gauss_leads_for_gravity_and_knocks_down_with_two_hits():
    battles = field(placed(BLUE, HEAVY, 5, 20), placed(RED, HEAVY, 23, 20, yaw=pi), rules=STEADY, length=200)
    happened = act(battles, {0: {"tertiary": True}}, 3)
    assert [(e["amount"], e["whom"]) for e in named(happened, "projectile_hit")] == [(50, 1)]
    assert mechs(battles)["stability"][1] < 50
    mechs(battles)["wait"][0] = 0
    mechs(battles)["stability"][1] = 40
    assert named(act(battles, {0: {"tertiary": True}}, 3), "knockdown")


def test_an_autocannon_suppresses():
    battles = field(placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 15, 20, yaw=pi), rules=STEADY)
    happened = act(battles, {0: {"tertiary": True}}, 4)
    assert {e["amount"] for e in named(happened, "projectile_hit")} == {8}
    assert len(named(happened, "kinetic_fire")) == 5  # every fourth of 20 ticks
    assert mechs(battles)["suppressed"][1] > 20


def test_kinetic_weapons_fire_straight_ahead_when_nobody_is_there():
    battles = field(placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 15, 30))
    happened = act(battles, {0: {"tertiary": True}}, 4)
    assert len(named(happened, "kinetic_fire")) == 5
    assert not named(happened, "projectile_hit")


@pytest.mark.parametrize("kind", [SCOUT, LIGHT, MEDIUM, HEAVY])
@pytest.mark.parametrize("fallen", [False, True])
def test_nobody_fires_anything_while_it_lies(kind, fallen):
    battles = field(placed(BLUE, kind, 10, 10), placed(RED, MEDIUM, 14, 10, yaw=np.pi))
    battles.mechs["fallen"][0, 0] = 20 if fallen else 0
    happened = act(battles, {0: ALL_WEAPONS})
    assert bool(happened) != fallen
    assert bool(battles.mechs["wait"][0, 0].any()) != fallen


@pytest.mark.parametrize(
    ("kind", "button"), [(SCOUT, "primary"), (LIGHT, "primary"), (LIGHT, "secondary"), (HEAVY, "secondary")]
)
def test_painter_flamer_laser_and_missile_prefer_the_focus_target_to_a_nearer_one(kind, button):
    for focus, first in ((2, 2), (-1, 1)):
        battles = field(placed(BLUE, kind, 10, 10), placed(RED, SCOUT, 13, 11), placed(RED, SCOUT, 14, 9.5))
        happened = act(battles, {0: {button: True, "target": focus}})
        assert happened[0]["whom"] == first
