"""The picture of the ground around a mech."""

import numpy as np

from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.task.features import (
    CELL,
    CELLS,
)
from protege.games.echelon.world.mechs import (
    BLUE,
    DEBRIS,
    FOLIAGE,
    GLASS,
    LAVA,
    MEDIUM,
    RED,
    REINFORCED,
    SCOUT,
    SOLID,
    WATER,
    find_roster,
)
from protege.games.echelon.world.voxels import set_voxel
from tests.games.echelon.rules.fields import act, placed, random_actions, rough_field
from tests.games.echelon.task.watch import QUARTER_TURN, Watch, watch


def cell(forward: float, left: float) -> tuple[int, int]:
    """Where the map shows this point."""
    return CELLS // 2 - round(forward / CELL), CELLS // 2 - round(left / CELL)


def test_the_map_shows_every_wall_and_step_at_the_mechs_own_height():
    def build(material):
        material[0:4, 20, 26] = GLASS
        material[0:4, 20, 23] = REINFORCED
        material[0:1, 23, 20] = SOLID  # a step
        material[5:8, 17, 20] = SOLID  # a roof, above a medium's head
        material[0:3, 14, 20] = FOLIAGE

    seen = watch(placed(BLUE, MEDIUM, 20.5, 20.5), build=build)
    wall, cover = seen.channel(0, "wall"), seen.channel(0, "cover")
    assert (wall[cell(6, 0)], cover[cell(6, 0)]) == (4, 0)  # glass stops bodies, not sight
    assert (wall[cell(3, 0)], cover[cell(3, 0)]) == (4, 4)
    assert (wall[cell(0, 3)], cover[cell(0, 3)]) == (2, 0)
    assert (wall[cell(0, -3)], cover[cell(0, -3)]) == (0, 0)
    assert (wall[cell(0, -6)], cover[cell(0, -6)]) == (0, 4)  # foliage stops sight, not bodies
    assert (wall > 0).sum() == 3


def test_the_map_turns_with_the_mech_and_ends_at_the_edge():
    def build(material):
        material[0:4, 26, 20] = SOLID

    seen = watch(placed(BLUE, MEDIUM, 20.5, 20.5, QUARTER_TURN), placed(BLUE, MEDIUM, 2.5, 10.5), build=build)
    assert seen.channel(0, "wall")[cell(6, 0)] == 4 and (seen.channel(0, "wall") > 0).sum() == 1
    behind = seen.channel(1, "wall")  # looks east, 2.5 columns from the west edge: cells 3 and more behind are outside
    assert (behind[7:] == 4).all() and (behind[:7] == 0).all()
    assert (seen.channel(1, "cover") == behind).all()


def test_the_map_shows_lava_water_debris_the_zone_and_smoke():
    def build(material):
        material[0, 20, 26] = LAVA
        material[0, 23, 20] = WATER
        material[0, 17, 20] = DEBRIS

    seen = watch(placed(BLUE, MEDIUM, 20.5, 20.5), zone=(26.5, 26.5, 3.0), build=build)
    hazard = seen.channel(0, "hazard")
    assert (hazard[cell(6, 0)], hazard[cell(0, 3)], hazard[cell(0, -3)]) == (4, -2, 1)
    assert np.count_nonzero(hazard) == 3
    zone = seen.channel(0, "zone")
    # Middles within 3 of (6, 6): 1.5 apart, so the offsets 0, +-1.5 on both axes, cut at the map's edge of 7.5.
    assert zone[cell(6, 6)] == 4 and zone[cell(6, 3)] == 0 and np.count_nonzero(zone) == 9
    record = seen.battles.records[0]
    record["cloud_count"] = 1
    record["clouds"][0]["x"], record["clouds"][0]["y"], record["clouds"][0]["z"] = 16.0, 20.5, 1.5
    record["clouds"][0]["radius"], record["clouds"][0]["left"] = 4.0, 100
    seen.look()
    smoke = seen.channel(0, "smoke")
    assert smoke[cell(-4.5, 0)] == 4 and smoke[cell(0, 0)] == 0 and smoke[cell(-4.5, 3)] == 4


def test_what_breaks_leaves_the_map_and_a_scar():
    def build(material):
        material[0:4, 20, 26] = GLASS

    seen = watch(placed(BLUE, MEDIUM, 20.5, 20.5), placed(RED, SCOUT, 35, 35), build=build)
    for _ in range(3):
        act(seen.battles, {0: {"tertiary": True}})  # straight ahead: the autocannon breaks the glass
        seen.look()
    x, y = seen.battles.mechs["x"][0, 0], seen.battles.mechs["y"][0, 0]
    assert (x, y) == (20.5, 20.5) and seen.battles.world.material[0, 1, 20, 26] == 0
    assert seen.channel(0, "scar")[cell(6, 0)] == 4 and np.count_nonzero(seen.channel(0, "scar")) == 1
    set_voxel(seen.battles.world, 0, 1, 20, 23, SOLID)  # as a wreck would be
    seen.look()
    assert seen.channel(0, "wall")[cell(3, 0)] == 4


def plain_walls(battles: Battles, i: int) -> np.ndarray:
    """The wall channel once more, voxel by voxel."""
    mech, world = battles.mechs[0][i], battles.world
    foot, tall = mech["z"] - mech["half_height"], 2 * mech["half_height"]
    low, high = int(np.floor(foot + 1e-6)), int(np.floor(foot + tall - 1e-6))
    found = np.zeros((CELLS, CELLS), np.int8)
    for r in range(CELLS):
        for c in range(CELLS):
            forward, left = (CELLS // 2 - r) * CELL, (CELLS // 2 - c) * CELL
            x = int(np.floor(mech["x"] + forward * mech["cos"] - left * mech["sin"]))
            y = int(np.floor(mech["y"] + forward * mech["sin"] + left * mech["cos"]))
            if not (0 <= x < world.material.shape[3] and 0 <= y < world.material.shape[2]):
                found[r, c] = 4
                continue
            stops = [bool(world.blocked[0, y, x] >> np.uint32(z) & np.uint32(1)) for z in range(24)]
            if any(stops[low + 1 : high + 1]):
                found[r, c] = 4
            elif stops[low]:
                found[r, c] = 4 if stops[high + 1] else 2
    return found


def test_the_wall_channel_agrees_with_a_plain_count_of_voxels():
    seen = Watch(rough_field(find_roster("10v10"), 1, seed=9))
    rng = np.random.default_rng(3)
    for _ in range(5):
        seen.battles.step(random_actions(seen.battles, rng))
        seen.look()
        for i in np.flatnonzero(seen.battles.mechs["alive"][0]).tolist():
            assert np.array_equal(seen.channel(i, "wall"), plain_walls(seen.battles, i))
