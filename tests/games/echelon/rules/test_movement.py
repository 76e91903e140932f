"""How mechs move, with numbers worked by hand. Mechs 0, 1 ... are blue's first, then red's."""

from dataclasses import replace
from math import hypot, pi

import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    BUILD,
    HEAVY,
    MEDIUM,
    RED,
    SCOUT,
    SOLID,
)
from tests.games.echelon.rules.fields import act, block, field, mechs, placed


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


def test_nobody_in_the_air_is_lifted_onto_a_ledge():
    def build(materials):
        materials[:3, :, 12:] = SOLID

    battles = field(placed(BLUE, SCOUT, 11.3, 10, feet=2.5), build=build)  # half a voxel below the edge
    act(battles, {0: {"forward": 1.0}}, 8)
    assert battles.mechs["z"][0, 0] == 0.9
    assert battles.mechs["x"][0, 0] <= 11.4


def test_nobody_climbs_onto_another_by_walking_into_it():
    battles = field(placed(BLUE, HEAVY, 10, 10), placed(RED, SCOUT, 16, 10))
    act(battles, {0: {"forward": 1.0}}, 16)
    assert battles.mechs["z"][0, 0] == 2.0
    assert battles.mechs["x"][0, 0] + 1.75 <= 15.4 + 1e-5
