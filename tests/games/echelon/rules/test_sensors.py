"""Who perceives whom: sight, radar, heat, noise, with numbers worked by hand."""

from math import pi

import pytest

from protege.games.echelon.world.mechs import (
    BLUE,
    HEAVY,
    MEDIUM,
    RED,
    SCOUT,
)
from tests.games.echelon.rules.fields import act, block, field, mechs, placed


def test_cover_up_to_the_chest_leaves_the_head_in_sight():
    for height, seen in ((2, True), (3, False)):  # heads of mediums are at 2.7
        battles = field(
            placed(BLUE, MEDIUM, 5, 20), placed(RED, MEDIUM, 15, 20), build=block(slice(0, height), slice(None), 10)
        )
        assert (mechs(battles)["sees"][0] == 0b10) == seen


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
