"""Voxels: whatever changes one, its HP and what it stops stay in step with its material."""

import numpy as np
import pytest

from protege.games.echelon.world.mechs import (
    AIR,
    DEBRIS,
    DIRT,
    FOLIAGE,
    GLASS,
    LAVA,
    MATERIALS,
    REINFORCED,
    SOLID,
    WATER,
)
from protege.games.echelon.world.voxels import HEIGHT, MOST_CHANGES, damage_voxel, derive, set_voxel
from tests.games.echelon.rules.fields import blank


def expected(material):
    """HP and the two sets of bits of a map (z, y, x), the plain way."""
    hp = np.array([m.hp for m in MATERIALS], np.int16)[material]
    bits = (1 << np.arange(HEIGHT))[:, None, None]
    blocked = (np.array([m.stops_bodies for m in MATERIALS])[material] * bits).sum(0)
    opaque = (np.array([m.stops_sight for m in MATERIALS])[material] * bits).sum(0)
    return hp, blocked, opaque


def assert_in_step(world, b):
    hp, blocked, opaque = expected(world.material[b])
    assert (world.hp[b] == hp).all() and (world.blocked[b] == blocked).all() and (world.opaque[b] == opaque).all()


def test_everything_follows_from_the_materials_of_a_map():
    world = blank(2, 12, 9, 0)
    world.material[1] = np.random.default_rng(0).integers(0, len(MATERIALS), (HEIGHT, 9, 12))
    derive(world, 0)
    derive(world, 1)
    assert_in_step(world, 0)
    assert_in_step(world, 1)
    assert world.blocked[0].sum() == 0 and world.blocked[1].any()


def test_a_thousand_changes_leave_everything_in_step():
    world, generator = blank(1, 10, 8, 0), np.random.default_rng(1)
    for _ in range(1000):
        z, y, x, kind = generator.integers(0, (HEIGHT, 8, 10, len(MATERIALS)))
        set_voxel(world, 0, z, y, x, kind)
    assert_in_step(world, 0)


def test_a_changed_voxel_is_as_good_as_new():
    world = blank(1, 8, 8, 0)
    set_voxel(world, 0, 1, 2, 3, SOLID)
    assert not damage_voxel(world, 0, 1, 2, 3, 60) and world.hp[0, 1, 2, 3] == 40
    set_voxel(world, 0, 1, 2, 3, GLASS)
    assert world.hp[0, 1, 2, 3] == 10
    assert world.blocked[0, 2, 3] == 0b10 and world.opaque[0, 2, 3] == 0


def test_a_voxel_without_hp_left_is_air():
    world = blank(1, 8, 8, 0)
    set_voxel(world, 0, 5, 2, 3, SOLID)
    assert [damage_voxel(world, 0, 5, 2, 3, 40) for _ in range(4)] == [False, False, True, False]  # 100, 60, 20, gone
    assert world.material[0, 5, 2, 3] == AIR and world.hp[0, 5, 2, 3] == 0
    assert world.blocked[0, 2, 3] == 0 and world.opaque[0, 2, 3] == 0


@pytest.mark.parametrize("material", [AIR, DIRT, WATER, LAVA, REINFORCED])
def test_what_cannot_break_does_not(material):
    world = blank(1, 8, 8, 0)
    set_voxel(world, 0, 0, 1, 1, material)
    assert not damage_voxel(world, 0, 0, 1, 1, 5000)
    assert world.material[0, 0, 1, 1] == material and world.hp[0, 0, 1, 1] == MATERIALS[material].hp


def test_one_point_clears_foliage_and_ten_clear_glass():
    world = blank(1, 8, 8, 0)
    set_voxel(world, 0, 3, 1, 1, FOLIAGE)
    set_voxel(world, 0, 3, 1, 2, GLASS)
    assert damage_voxel(world, 0, 3, 1, 1, 1)
    assert not damage_voxel(world, 0, 3, 1, 2, 9) and damage_voxel(world, 0, 3, 1, 2, 1)


def test_columns_that_may_have_changed_for_walkers_are_remembered_and_no_others():
    world = blank(2, 10, 8, 0)
    set_voxel(world, 1, 4, 2, 3, DEBRIS)  # column 2 * 10 + 3
    set_voxel(world, 1, 5, 2, 3, DEBRIS)  # the same one again
    set_voxel(world, 1, 5, 2, 4, FOLIAGE)  # walked through as before
    set_voxel(world, 1, 5, 7, 9, GLASS)  # column 7 * 10 + 9
    damage_voxel(world, 1, 4, 2, 3, 10)  # still stands
    set_voxel(world, 1, 0, 1, 1, LAVA)  # column 1 * 10 + 1
    assert world.changed[1, : world.changed[1, 0] + 1].tolist() == [3, 23, 79, 11]
    assert world.changed[0, 0] == 0


def test_more_changes_than_there_is_room_for_are_counted_as_one_too_many():
    world = blank(1, 40, 40, 0)
    for i in range(MOST_CHANGES + 50):
        set_voxel(world, 0, 1, i // 40, i % 40, SOLID)
    assert world.changed[0, 0] == MOST_CHANGES + 1
    assert world.changed[0, MOST_CHANGES] == MOST_CHANGES - 1
    derive(world, 0)
    assert world.changed[0, 0] == 0
