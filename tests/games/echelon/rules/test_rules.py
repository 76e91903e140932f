"""The rules of Echelon, one by one, with numbers worked by hand. Mechs 0, 1 ... are blue's first, then red's."""

from dataclasses import replace
from math import hypot, pi

import numpy as np
import pytest

from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME, FOCUS_FIRE, HOLD
from protege.games.echelon.world.mechs import (
    AIR,
    BLUE,
    BUILD,
    DEBRIS,
    FOLIAGE,
    GLASS,
    HEAVY,
    LAVA,
    LIGHT,
    MEDIUM,
    NOBODY,
    RED,
    SCOUT,
    SOLID,
    SOLID_DEBRIS,
    SUITE,
    WATER,
    find_roster,
)
from tests.games.echelon.rules.fields import act, field, named, placed, rough_field

STEADY = replace(BUILD, aim_spread=0.0)  # shots go to the middle of the body


def block(z, y, x, material=SOLID):
    """A map maker that fills some voxels."""

    def build(materials):
        materials[z, y, x] = material

    return build


def mechs(battles):
    return battles.mechs[0]


# --- movement --------------------------------------------------------------------------------------------------------


def test_a_medium_walks_at_its_speed_less_two_percent_damping():
    battles = field(placed(BLUE, MEDIUM, 10, 10))
    act(battles, {0: {"forward": 1.0}}, 4)  # 20 ticks of 5.5 * 0.98 * 0.05
    assert mechs(battles)["x"][0] == pytest.approx(10 + 5.39)
    assert mechs(battles)["y"][0] == 10
    assert mechs(battles)["z"][0] == 1.5


def test_nobody_is_faster_diagonally_and_positive_strafe_is_to_the_left():
    battles = field(placed(BLUE, MEDIUM, 10, 10))
    act(battles, {0: {"forward": 1.0, "strafe": 1.0}}, 4)
    dx, dy = mechs(battles)["x"][0] - 10, mechs(battles)["y"][0] - 10
    assert dx == pytest.approx(dy)
    assert hypot(dx, dy) == pytest.approx(5.39)


def test_a_turn_is_at_the_class_rate_and_forward_follows_the_heading():
    battles = field(placed(BLUE, MEDIUM, 10, 10, yaw=pi / 2 - 0.25))
    act(battles, {0: {"turn": 1.0}})  # 1 rad/s for a quarter of a second
    assert mechs(battles)["yaw"][0] == pytest.approx(pi / 2)
    act(battles, {0: {"forward": 1.0}})
    assert mechs(battles)["x"][0] == pytest.approx(10)
    assert mechs(battles)["y"][0] == pytest.approx(10 + 5 * 0.2695)


def test_a_wall_stops_a_walker_in_front_of_it():
    battles = field(placed(BLUE, MEDIUM, 10, 10), build=block(slice(0, 3), slice(None), 20))
    act(battles, {0: {"forward": 1.0}}, 12)
    assert 18.75 - 0.27 < mechs(battles)["x"][0] <= 18.75  # half a body, 1.25, before x = 20
    assert mechs(battles)["vx"][0] == 0


def test_a_step_of_one_voxel_is_climbed_and_one_of_two_is_not():
    for height, feet in ((1, 1.0), (2, 0.0)):
        battles = field(placed(BLUE, MEDIUM, 10, 10), build=block(slice(0, height), slice(None), slice(15, 40)))
        act(battles, {0: {"forward": 1.0}}, 8)
        assert mechs(battles)["z"][0] - 1.5 == feet
        assert (mechs(battles)["x"][0] > 16) == (height == 1)


def test_nobody_climbs_a_step_into_a_roof_above_it():
    def build(materials):
        materials[0, :, 15:] = SOLID
        materials[3, :, 15:] = SOLID  # a medium is 3 high: it would fit below, but not on the step

    battles = field(placed(BLUE, MEDIUM, 10, 10), build=build)
    act(battles, {0: {"forward": 1.0}}, 8)
    assert mechs(battles)["z"][0] == 1.5
    assert mechs(battles)["x"][0] <= 13.75


def test_a_roof_over_the_walker_keeps_it_from_stepping_up():
    def build(materials):
        materials[0, :, 12:] = SOLID
        materials[3, :, 5:13] = SOLID

    battles = field(placed(BLUE, MEDIUM, 10, 10), build=build)
    act(battles, {0: {"forward": 1.0}}, 8)
    assert mechs(battles)["z"][0] == 1.5
    assert mechs(battles)["x"][0] <= 10.75


def test_a_walker_falls_off_an_edge_and_lands_unhurt():
    battles = field(placed(BLUE, MEDIUM, 10, 10, feet=4), build=block(slice(0, 4), slice(None), slice(0, 14)))
    act(battles, {0: {"forward": 1.0}}, 12)
    assert mechs(battles)["z"][0] == 1.5
    assert mechs(battles)["grounded"][0] == 1
    assert mechs(battles)["hp"][0] == 150


def test_two_mechs_that_walk_into_each_other_stop_without_overlapping():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 20, 11, yaw=pi))
    act(battles, {0: {"forward": 1.0}, 1: {"forward": 1.0}}, 10)
    gap = mechs(battles)["x"][1] - mechs(battles)["x"][0]
    assert 2.5 - 1e-6 <= gap < 2.5 + 0.54


def test_heavies_that_begin_inside_each_other_come_apart_and_walk_away():
    battles = field(placed(BLUE, HEAVY, 10, 10), placed(BLUE, HEAVY, 12, 10), placed(BLUE, HEAVY, 10, 13.5))
    act(battles, {}, 10)
    x, y = mechs(battles)["x"], mechs(battles)["y"]
    for i in range(3):
        for j in range(i):
            assert abs(x[i] - x[j]) >= 3.5 - 1e-6 or abs(y[i] - y[j]) >= 3.5 - 1e-6
    act(battles, {0: {"forward": -1.0}, 1: {"forward": 1.0}}, 8)
    assert mechs(battles)["x"][1] - mechs(battles)["x"][0] > 3.5 + 8


def test_jets_lift_until_their_energy_is_used_up():
    battles = field(placed(BLUE, SCOUT, 10, 10), length=1000)
    act(battles, {0: {"vertical": 1.0}}, 6)  # 1.5 s
    assert mechs(battles)["jet"][0] == pytest.approx(0, abs=1e-9)
    assert mechs(battles)["z"][0] > 5
    act(battles, {0: {"vertical": 1.0}}, 40)
    assert mechs(battles)["z"][0] == 0.9
    act(battles, {}, 16)  # 4 s on the ground fill them again
    assert mechs(battles)["jet"][0] == pytest.approx(1)


def test_nobody_flies_above_the_map():
    forever = replace(BUILD, jet_drain=0.0)
    battles = field(placed(BLUE, SCOUT, 10, 10), rules=forever)
    act(battles, {0: {"vertical": 1.0}}, 40)
    assert mechs(battles)["z"][0] == pytest.approx(20 - 0.9)


def test_a_medium_has_no_jets():
    battles = field(placed(BLUE, MEDIUM, 10, 10))
    act(battles, {0: {"vertical": 1.0}}, 4)
    assert mechs(battles)["z"][0] == 1.5


def test_a_mech_can_stand_on_another():
    battles = field(placed(BLUE, HEAVY, 10, 10), placed(BLUE, SCOUT, 10, 10, feet=6))
    act(battles, {}, 6)
    assert mechs(battles)["z"][1] == pytest.approx(4 + 0.9)
    assert mechs(battles)["grounded"][1] == 1


# --- condition -------------------------------------------------------------------------------------------------------


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


# --- weapons ---------------------------------------------------------------------------------------------------------


def test_a_laser_hits_at_once_and_again_after_its_cooldown():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10, yaw=pi), rules=STEADY)
    happened = act(battles, {0: {"primary": True}}, 3)
    assert [(e["tick"], e["amount"]) for e in named(happened, "laser_hit")] == [(1, 14), (13, 14)]
    assert mechs(battles)["hp"][1] == 150 - 28
    assert mechs(battles)["heat"][0] == pytest.approx(22 - 0.55 * 11 + 22 - 0.55 * 3, abs=0.6)
    assert mechs(battles)["dealt"][0] == mechs(battles)["taken"][1] == 28


def test_a_shot_from_behind_does_half_as_much_again():
    battles = field(placed(BLUE, MEDIUM, 10, 10), placed(RED, MEDIUM, 16, 10), rules=STEADY)
    act(battles, {0: {"primary": True}})
    assert mechs(battles)["hp"][1] == 150 - 21


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
    rules = replace(STEADY, ams_chance=chance)
    battles = field(
        placed(BLUE, HEAVY, 5, 20), placed(RED, MEDIUM, 16, 20, yaw=pi), placed(RED, HEAVY, 16, 24, yaw=pi), rules=rules
    )
    happened = act(battles, {0: {"secondary": True, "target": 1}}, 8)
    assert bool(named(happened, "ams_intercept")) == saved
    assert (mechs(battles)["hp"][1] == 150) == saved


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


def test_cover_up_to_the_chest_leaves_the_head_in_sight():
    for height, seen in ((2, True), (3, False)):  # heads of mediums are at 2.7
        battles = field(
            placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 15, 20), build=block(slice(0, height), slice(None), 10)
        )
        assert (mechs(battles)["sees"][0] == 0b10) == seen


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


# --- sensors ---------------------------------------------------------------------------------------------------------


def test_radar_sees_through_walls_as_far_as_the_suite_allows():
    for x, known in ((5 + 13.9, True), (5 + 14.1, False)):
        battles = field(
            placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, x, 20), build=block(slice(0, 20), slice(None), 10)
        )
        assert mechs(battles)["sees"][0] == 0
        assert (mechs(battles)["knows"][0] == 0b10) == known
    battles = field(placed(BLUE, SCOUT, 5, 20), placed(RED, SCOUT, 25, 20), build=block(slice(0, 20), slice(None), 10))
    assert mechs(battles)["knows"][0] == 0b10  # 1.5 times 14


def test_sight_reaches_as_far_as_the_suite_allows():
    battles = field(placed(BLUE, SCOUT, 5, 20), placed(RED, HEAVY, 60, 20), size=(80, 40))
    assert [int(s) for s in mechs(battles)["sees"]] == [0b10, 0]  # 60 and 32 voxels


def test_heat_and_emissions_give_away_unless_smoke_is_between():
    battles = field(
        placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 35, 20), placed(RED, SCOUT, 35, 25),
        build=block(slice(0, 20), slice(None), 20),
    )  # fmt: skip
    assert mechs(battles)["knows"][0] == 0
    mechs(battles)["heat"][1] = 90
    act(battles, {2: {"ewar": 1}})
    assert mechs(battles)["knows"][0] == 0b110
    battles.records["clouds"][0, 0] = (20.0, 20.0, 1.5, 4.0, 100, 0)
    battles.records["cloud_count"] = 1
    act(battles, {2: {"ewar": 1}})
    assert mechs(battles)["knows"][0] == 0


def test_a_mech_that_is_shut_down_knows_nobody():
    battles = field(placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 10, 20))
    mechs(battles)["heat"][0] = 200
    act(battles, {})
    assert (mechs(battles)["knows"][0], mechs(battles)["quality"][0]) == (0, 0.25)
    assert mechs(battles)["knows"][1] == 1


def test_noise_comes_from_its_quadrant_and_through_walls_at_a_fifth():
    battles = field(
        placed(BLUE, MEDIUM, 20, 20), placed(RED, HEAVY, 30, 25, yaw=pi / 2), placed(RED, SCOUT, 10, 10, yaw=pi / 2),
        build=block(slice(0, 20), slice(None), 15),
    )  # fmt: skip
    act(battles, {1: {"forward": 1.0}, 2: {"forward": 1.0}})
    m = mechs(battles)
    speed_heavy, speed_scout = 2.5 * 0.98, 7 * 0.98
    d_heavy = (m["x"][1] - 20) ** 2 + (m["y"][1] - 20) ** 2 + 0.5**2
    d_scout = (m["x"][2] - 20) ** 2 + (m["y"][2] - 20) ** 2 + 0.6**2
    front_left = 4 * speed_heavy / (1 + d_heavy)
    rear_right = 0.2 * speed_scout / (1 + d_scout)
    assert m["sound"][0] == pytest.approx([front_left, 0, 0, rear_right])


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


# --- zone and end ----------------------------------------------------------------------------------------------------


def test_a_lone_team_in_the_zone_scores_its_seconds():
    battles = field(placed(BLUE, SCOUT, 20, 20), placed(RED, MEDIUM, 5, 5))
    happened = act(battles, {})
    assert [(e["name"], e["who"]) for e in happened] == [("zone_enter", 0)]
    act(battles, {}, 3)
    assert list(battles.records["score"][0]) == [1.0, 0.0]


def test_a_contested_zone_pays_by_tonnage():
    battles = field(placed(BLUE, HEAVY, 18, 20), placed(RED, MEDIUM, 23, 20))
    act(battles, {})
    # 85 against 55: margin 30 / 140
    assert battles.records["share"][0] == pytest.approx([0.25 + 0.75 * 30 / 140, 0.25])
    battles = field(placed(BLUE, HEAVY, 18, 20), placed(RED, MEDIUM, 23, 20), rules=SUITE)
    act(battles, {})
    assert battles.records["share"][0] == pytest.approx([0.5 + 0.5 * 30 / 140, 0.5])


def test_whoever_hovers_above_the_zone_does_not_hold_it():
    battles = field(placed(BLUE, SCOUT, 20, 20, feet=8), placed(RED, MEDIUM, 5, 5))
    act(battles, {0: {"vertical": 1.0}}, 2)
    assert mechs(battles)["z"][0] > 8
    assert list(battles.records["score"][0]) == [0, 0]


def test_half_of_the_seconds_as_score_ends_the_battle_and_it_cannot_go_on():
    battles = field(placed(BLUE, SCOUT, 20, 20), placed(RED, MEDIUM, 5, 5), length=40)
    act(battles, {}, 19)
    assert not battles.over[0]
    act(battles, {})  # 5 of 10 seconds
    assert battles.over[0]
    record = battles.records[0]
    assert (record["ending"], record["winner"]) == (BY_SCORE, BLUE)
    assert battles.terminated.all() and not battles.truncated.any()
    with pytest.raises(Exception, match="battle 0 is over: reset it"):
        act(battles, {})
    battles.reset()
    act(battles, {})
    assert not battles.over[0]


def test_time_up_goes_by_score_then_by_hp_then_to_nobody():
    def winner(prepare):
        battles = field(placed(BLUE, MEDIUM, 5, 5), placed(RED, MEDIUM, 35, 35), length=2)
        act(battles, {})
        prepare(battles)
        act(battles, {})
        assert battles.records["ending"][0] == BY_TIME
        assert battles.truncated.all() and not battles.terminated.any()
        return battles.records["winner"][0]

    def set_score(battles):
        battles.records["score"][0] = 0.1, 0.2
        battles.mechs["hp"][0, 1] = 1

    def set_hp(battles):
        battles.mechs["hp"][0] = 150, 149

    assert winner(set_score) == RED
    assert winner(set_hp) == BLUE
    assert winner(lambda battles: None) == NOBODY


def test_the_suite_rules_decide_by_presence_losses_and_damage():
    battles = field(placed(BLUE, MEDIUM, 20, 20), placed(RED, MEDIUM, 5, 5), length=3, rules=SUITE)
    battles.records["score"][0] = 0, 100
    act(battles, {}, 3)
    assert (battles.records["ending"][0], battles.records["winner"][0]) == (BY_TIME, BLUE)
    battles = field(placed(BLUE, MEDIUM, 35, 20), placed(RED, MEDIUM, 5, 5), length=3, rules=SUITE)
    mechs(battles)["dealt"][1] = 1
    act(battles, {}, 3)
    assert battles.records["winner"][0] == RED


def test_a_dead_mech_is_terminated_while_its_battle_goes_on():
    battles = field(placed(BLUE, MEDIUM, 5, 5), placed(BLUE, MEDIUM, 5, 15), placed(RED, MEDIUM, 35, 35))
    mechs(battles)["hp"][0] = 0.25
    battles.world.material[0, 0, 5, 5] = LAVA
    act(battles, {})
    assert list(battles.terminated[0]) == [True, False, False]
    assert not battles.truncated.any() and not battles.over[0]
    assert list(battles.records["living"][0]) == [1, 1]


def test_without_opponents_a_battle_ends_by_score():
    battles = field(placed(BLUE, MEDIUM, 20, 20), length=8)
    act(battles, {}, 3)
    assert not battles.over[0]
    act(battles, {})
    assert (battles.records["ending"][0], battles.records["winner"][0]) == (BY_SCORE, BLUE)
