"""What hits take off, who is credited, and what the dead leave behind, with numbers worked by hand."""

from dataclasses import replace
from math import pi

import pytest

from protege.games.echelon.rules.battle import BY_ELIMINATION
from protege.games.echelon.world.mechs import (
    AIR,
    BLUE,
    BUILD,
    DEBRIS,
    HEAVY,
    LAVA,
    MEDIUM,
    NOBODY,
    RED,
    SCOUT,
    SOLID_DEBRIS,
)
from tests.games.echelon.rules.fields import STEADY, act, field, mechs, named, placed


def test_a_shot_from_behind_does_half_as_much_again():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10), rules=STEADY)
    act(battles, {0: {"primary": True}})
    assert mechs(battles)["hp"][1] == 150 - 21


def test_paint_adds_a_tenth_for_the_painters_pack_only():
    battles = field(
        placed(BLUE, MEDIUM, 10, 10),
        placed(BLUE, MEDIUM, 10, 14),
        placed(BLUE, MEDIUM, 10, 6, pack=1),
        placed(RED, HEAVY, 15, 10, yaw=pi),
        rules=STEADY,
    )
    act(battles, {0: {"secondary": True}})
    happened = act(battles, {1: {"primary": True}, 2: {"primary": True}})
    assert {(e["who"], e["amount"]) for e in named(happened, "laser_hit")} == {(1, 15.400390625), (2, 14.0)}
    happened = act(battles, {}, 19)
    expired = named(happened, "paint_expired")
    assert [(e["who"], e["whom"], e["amount"], e["tick"]) for e in expired] == [(0, 3, 15.400390625, 101)]


def test_killing_a_friend_is_no_kill():
    battles = field(
        placed(BLUE, HEAVY, 5, 20), placed(BLUE, SCOUT, 18, 21.5), placed(RED, SCOUT, 20, 20, yaw=pi), rules=STEADY
    )
    mechs(battles)["hp"][1] = 1
    happened = act(battles, {0: {"tertiary": True}}, 3)
    assert [(e["name"], e["who"], e["whom"]) for e in happened if "kill" in e["name"]] == [("friendly_kill", 0, 1)]
    assert (mechs(battles)["dealt"][0], mechs(battles)["friendly"][0]) == (50, 1)


def test_two_who_shoot_each_other_at_once_both_die():
    for yaw in (0.0, pi):  # whoever is listed first has no advantage
        battles = field(
            placed(BLUE, MEDIUM, 20, 10, yaw=yaw), placed(RED, MEDIUM, 26 if yaw == 0 else 14, 10, yaw=pi - yaw)
        )
        mechs(battles)["hp"] = 1
        happened = act(battles, {0: {"primary": True}, 1: {"primary": True}})
        assert {(e["who"], e["whom"]) for e in named(happened, "kill")} == {(0, 1), (1, 0)}
        assert (battles.records["ending"][0], battles.records["winner"][0]) == (BY_ELIMINATION, NOBODY)


def test_help_counts_once_a_kill_however_many_hits():
    battles = field(
        placed(BLUE, SCOUT, 10, 10), placed(BLUE, MEDIUM, 10, 13), placed(BLUE, MEDIUM, 10, 16),
        placed(RED, MEDIUM, 16, 13, yaw=pi), placed(RED, SCOUT, 38, 38), rules=STEADY, length=400,
    )  # fmt: skip
    happened = act(battles, {0: {"primary": True}, 1: {"primary": True}}, 18)
    assert len(named(happened, "laser_hit")) >= 3
    assert not named(happened, "assist")
    mechs(battles)["hp"][3] = 1
    happened = act(battles, {0: {"primary": True}, 2: {"primary": True}})
    assert [(e["who"], e["whom"]) for e in named(happened, "kill")] == [(2, 3)]
    assert sorted(e["who"] for e in named(happened, "assist")) == [0, 1]  # the painter, and who did a quarter


def test_damage_beyond_the_last_hp_is_shared_among_the_shooters():
    battles = field(
        placed(BLUE, MEDIUM, 10, 10), placed(BLUE, MEDIUM, 10, 13), placed(RED, MEDIUM, 15, 11.5, yaw=pi), rules=STEADY
    )
    mechs(battles)["hp"][2] = 7
    act(battles, {0: {"primary": True}, 1: {"primary": True}})
    assert list(mechs(battles)["dealt"]) == [3.5, 3.5, 0]
    assert mechs(battles)["taken"][2] == 7


def test_a_wreck_stays_where_a_mech_died_and_never_in_somebody_else():
    hard = replace(BUILD, chassis=tuple(replace(c, solid_wreck=1.0) for c in BUILD.chassis))
    battles = field(
        placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 13, 10.5), placed(RED, SCOUT, 14.86, 10.5), rules=hard
    )
    mechs(battles)["hp"][1] = 0.25
    battles.world.material[0, 0, 10, 13] = LAVA
    act(battles, {})
    assert mechs(battles)["alive"][1] == 0
    material = battles.world.material[0]
    assert material[1, 10, 12] == SOLID_DEBRIS  # x 11.75 to 14.25 holds the centres of columns 12 and 13
    assert battles.world.hp[0, 1, 10, 12] == 200
    assert material[0, 10, 13] == LAVA  # only air and dirt give way
    assert material[1, 10, 14] != SOLID_DEBRIS
    assert material[3, 10, 12] == 0
    assert mechs(battles)["x"][2] == pytest.approx(14.86)


def test_whoever_dies_in_the_air_leaves_its_wreck_on_the_ground():
    battles = field(placed(BLUE, SCOUT, 10.5, 10.5, feet=9), placed(RED, SCOUT, 30, 30))
    battles.world.material[0, 9, 10, 10] = LAVA
    mechs(battles)["hp"][0] = 0.25
    act(battles, {})
    assert mechs(battles)["alive"][0] == 0
    assert set(battles.world.material[0, :2, 10, 10]) <= {DEBRIS, SOLID_DEBRIS}
    assert not (battles.world.material[0, 2:9] == DEBRIS).any()


@pytest.mark.parametrize("above", [BLUE, RED])
def test_wrecks_of_two_that_die_at_once_do_not_depend_on_their_teams(above):
    hard = replace(BUILD, chassis=tuple(replace(c, solid_wreck=1.0) for c in BUILD.chassis))
    one_on_another = placed(above, MEDIUM, 10.5, 10.5, feet=3), placed(1 - above, MEDIUM, 10.5, 10.5)
    battles = field(*one_on_another, rules=hard)
    mechs(battles)["hp"] = 0.25
    battles.world.material[0, [0, 3], 10, 10] = LAVA
    act(battles, {})
    assert not mechs(battles)["alive"].any()
    assert list(battles.world.material[0, :7, 9, 9]) == [SOLID_DEBRIS] * 3 + [AIR] * 4  # both drop to the floor
