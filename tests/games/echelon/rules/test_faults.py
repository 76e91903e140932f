"""Faults that games of this kind have had and this one must not, where no rule's own test shows it already."""

import numpy as np
import pytest

from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import BLUE, HEAVY, LIGHT, MEDIUM, RED, SCOUT, SOLID, find_roster
from tests.games.echelon.rules.fields import act, field, placed

ALL_WEAPONS = {"primary": True, "secondary": True, "tertiary": True, "special": True}


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
