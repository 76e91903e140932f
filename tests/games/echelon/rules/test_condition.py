"""Heat, balance, legs and ground, with numbers worked by hand."""

from dataclasses import replace
from math import pi

import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    BUILD,
    DEBRIS,
    LAVA,
    MEDIUM,
    NOBODY,
    RED,
    WATER,
)
from tests.games.echelon.rules.fields import act, block, field, mechs, named, placed


def test_a_medium_cools_by_11_a_second_and_three_times_as_fast_when_it_vents():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(BLUE, MEDIUM, 20, 10))
    mechs(battles)["heat"] = 50
    act(battles, {1: {"vent": True}}, 4)
    assert mechs(battles)["heat"] == pytest.approx([39, 17])


def test_too_much_heat_shuts_a_mech_down_until_it_is_cool_again():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 15, 10, yaw=pi))
    mechs(battles)["heat"][0] = 105.3  # 4.75 above capacity after the first tick's 0.55: nine more to get rid of it
    happened = act(battles, {0: {"forward": 1.0}})
    happened += act(battles, {0: {"forward": 1.0, "primary": True}})
    assert [(e["name"], e["tick"]) for e in happened] == [("shutdown", 1), ("restart", 10)]
    assert mechs(battles)["x"][0] == pytest.approx(10 + 0.2695)  # moves again in tick 10
    assert named(act(battles, {0: {"primary": True}}), "laser_hit")


def test_stability_comes_back_slower_when_moving_suppressed_or_legged():
    battles = field(*(placed(BLUE, MEDIUM, 10, 5 + 5 * i) for i in range(5)))
    mechs(battles)["stability"] = 20
    mechs(battles)["suppressed"][2] = mechs(battles)["suppressed"][4] = 100
    mechs(battles)["legged"][3] = mechs(battles)["legged"][4] = 1
    mechs(battles)["vx"][1] = 5
    act(battles, {1: {"forward": 1.0}}, 4)
    # 10 a second; halved; a quarter; halved; and never less than a tenth
    assert mechs(battles)["stability"] == pytest.approx([30, 25, 22.5, 25, 21])


def test_whoever_loses_its_balance_lies_for_three_seconds_and_cannot_move_or_fire():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi))
    mechs(battles)["stability"][1] = 1  # an autocannon hit takes 8, and comes in the fifth tick
    happened = act(battles, {0: {"tertiary": True}})
    assert named(happened, "knockdown")[0] | {"who": 0, "whom": 1} == named(happened, "knockdown")[0]
    assert mechs(battles)["fallen"][1] == 60
    happened = act(battles, {1: {"forward": 1.0, "turn": 1.0, "primary": True, "secondary": True, "special": True}}, 11)
    assert {e["name"] for e in happened} == {"projectile_hit"}  # the second shell was in the air
    assert (mechs(battles)["x"][1], mechs(battles)["yaw"][1]) == (16, pi)
    happened = act(battles, {})
    assert [(e["name"], e["amount"], e["tick"]) for e in happened] == [("stand_up", 50, 65)]


@pytest.mark.parametrize(
    ("material", "feet", "heat", "hp"),
    [(LAVA, 0, 50 + 40 - 11, 145), (WATER, 0, 50 - 30 - 11, 150), (DEBRIS, 1, 50 + 20 - 11, 148.75)],
)
def test_ground_burns_and_cools(material, feet, heat, hp):
    battles = field(placed(BLUE, MEDIUM, 10, 10, feet=feet), build=block(0, slice(None), slice(None), material))
    mechs(battles)["grounded"] = 1
    mechs(battles)["heat"] = 50
    act(battles, {}, 4)
    assert mechs(battles)["heat"][0] == pytest.approx(heat)
    assert mechs(battles)["hp"][0] == hp
    assert mechs(battles)["hit"][0] == 0  # nobody shot


def test_death_in_lava_has_no_killer():
    battles = field(
        placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 30, 30), build=block(0, slice(0, 20), slice(None), LAVA)
    )
    mechs(battles)["hp"][0] = 0.5
    happened = act(battles, {})
    assert [(e["name"], e["whom"]) for e in happened] == [("death", NOBODY)]
    assert battles.records["winner"][0] == RED


def test_water_slows_to_six_tenths():
    battles = field(placed(BLUE, MEDIUM, 10, 10), build=block(0, slice(None), slice(None), WATER))
    act(battles, {0: {"forward": 1.0}}, 4)
    assert mechs(battles)["x"][0] == pytest.approx(10 + 0.6 * 5.39)


def test_a_mech_without_legs_limps():
    low = replace(BUILD, aim_spread=0.0, leg_height=0.6)  # now the middle of the body counts as leg
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi), rules=low)
    mechs(battles)["leg_hp"][1] = 20
    happened = act(battles, {0: {"primary": True}}, 3)  # two hits of 14
    assert len(named(happened, "legged")) == 1
    assert mechs(battles)["leg_hp"][1] == 0
    assert mechs(battles)["hp"][1] == 150 - 7 - 7  # half of a leg hit
    assert mechs(battles)["stability"][1] == 50  # half of its maximum
    act(battles, {1: {"forward": 1.0}}, 4)
    assert mechs(battles)["x"][1] == pytest.approx(16 - 0.4 * 5.39)
