"""Corridors, and maps made sound: a wall is dug through, a second way found, a trap opened."""

import numpy as np
import pytest

from protege.games.echelon.world import routes
from protege.games.echelon.world.mechs import AIR, DIRT, GLASS, REINFORCED, SOLID, WIDE
from protege.games.echelon.world.paths import WALL
from protege.games.echelon.world.routes import (
    DIG_NOTES,
    DIGS,
    NO_PATH,
    NO_SECOND_PATH,
    OVERLAP,
    TRAP,
    carve,
    carve_corridors,
    centre_of,
    clear,
    find_fault,
    finish,
    lane_width,
    second_route,
    trace,
    validate,
    workshop,
)
from protege.games.echelon.world.voxels import HEIGHT
from tests.games.echelon.rules.fields import blank

SIDE = 60


def field(*boxes, zone=(30.5, 30.5, 4.0)):
    """A map with squares of 17 in two corners and boxes (x, y, z, dx, dy, dz, material) on it, ready to be checked."""
    world, shop = blank(1, SIDE, SIDE, 0), workshop(SIDE, SIDE)
    for x, y, z, dx, dy, dz, material in boxes:
        world.material[0, z : z + dz, y : y + dy, x : x + dx] = material
    world.square[0] = [[0, 0, 17, 17], [43, 43, 60, 60]]
    world.zone[0] = zone
    finish(world, 0, shop)
    return world, shop


def notes(world):
    digs = world.facts[0, DIGS]
    return world.facts[0, DIG_NOTES : DIG_NOTES + 3 * digs].reshape(-1, 3).tolist()


def test_an_open_field_is_sound_as_it_is():
    world, shop = field()
    assert validate(world, 0, shop) and notes(world) == []
    assert world.facts[0, OVERLAP] < 400


@pytest.mark.parametrize("material", [SOLID, GLASS, REINFORCED])
def test_a_wall_across_the_map_is_dug_through_whatever_it_is_made_of(material):
    world, shop = field((22, 0, 0, 2, SIDE, 8, material))
    assert find_fault(world, 0, shop)[:2] == (NO_PATH, 0)
    assert validate(world, 0, shop)
    assert notes(world)[0][:2] == [NO_PATH, 0]
    assert notes(world)[0][2] == 2 * 5 * 5  # a gap of five columns and five layers through two columns of wall
    assert world.distance[0, WIDE, 8, 8] < WALL
    assert (
        world.hp[0, 6, 30, 22] > 0
        and (world.hp[0] == 0).sum() == (world.blocked[0, :, :, None] >> np.arange(HEIGHT) & 1 == 0).sum()
    )


def test_a_second_way_is_dug_where_there_is_only_one():
    # Rock with one lane from each square to the zone.
    world, shop = field((0, 0, 0, SIDE, SIDE, 12, SOLID))
    for x, y in ((0, 0), (43, 43)):
        clear(world.material[0], x, y, x + 17, y + 17, HEIGHT)
        carve(world.material[0], x + 8, y + 8, 30, 30, 5)
    clear(world.material[0], 25, 25, 36, 36, HEIGHT)
    finish(world, 0, shop)
    assert find_fault(world, 0, shop) == (NO_SECOND_PATH, 0, 8, 8)
    before = world.facts[0, OVERLAP]
    assert validate(world, 0, shop)
    assert before > 650 >= world.facts[0, OVERLAP] and world.facts[0, OVERLAP + 1] <= 650
    assert {(reason, team) for reason, team, _ in notes(world)} == {(NO_SECOND_PATH, 0), (NO_SECOND_PATH, 1)}


def test_a_pit_that_one_can_fall_into_gets_a_way_out():
    # A hill of ten one-voxel steps, with a shaft in its top.
    hill = [(2 * i + 20, 44, 0, 26 - 2 * i, 14, i + 1, SOLID) for i in range(5)]
    world, shop = field(*hill, (36, 48, 0, 6, 6, HEIGHT, AIR), zone=(8.5, 30.5, 4.0))
    assert world.level[0, 0, 50, 38] == 0
    reason, _, x, y = find_fault(world, 0, shop)
    assert reason == TRAP and world.distance[0, 0, y, x] >= WALL
    assert validate(world, 0, shop)
    assert TRAP in {note[0] for note in notes(world)}
    assert world.distance[0, 0, 50, 38] < WALL


def test_the_route_traced_is_the_shortest_way():
    world, shop = field((22, 0, 0, 2, 40, 8, SOLID))
    route = np.zeros(SIDE * SIDE, np.int32)
    x, y = centre_of(world, 0, 0)
    count = trace(world, 0, world.toll[0, WIDE], world.distance[0, WIDE], x, y, route)
    cells = [(int(cell) % SIDE, int(cell) // SIDE) for cell in route[:count]]
    assert cells[0] == (8, 8) and np.hypot(cells[-1][0] - 30, cells[-1][1] - 30) <= 4.0
    steps = [max(abs(a - c), abs(b - d)) for (a, b), (c, d) in zip(cells, cells[1:])]
    assert set(steps) == {1} and max(y for _, y in cells) >= 42  # around the end of the wall, with room for a heavy
    length = sum(14 if a != c and b != d else 10 for (a, b), (c, d) in zip(cells, cells[1:]))
    assert length == world.distance[0, WIDE, 8, 8]


def test_two_ways_around_a_block_share_only_their_ends():
    world, shop = field((18, 18, 0, 8, 8, 8, SOLID), zone=(36.5, 36.5, 4.0))
    share = second_route(world, 0, *centre_of(world, 0, 0), shop)
    first, second = ({int(cell) for cell in route} for route in shop.route)
    assert 0 < share < 600
    assert len(first & second) < 0.5 * len(second)


def test_a_heavy_can_walk_along_a_carved_lane_in_any_direction():
    for x, y in ((50, 8), (50, 20), (50, 50), (20, 50), (8, 50), (47, 33)):
        world, shop = field((0, 0, 0, SIDE, SIDE, 12, SOLID))
        clear(world.material[0], 0, 0, 17, 17, HEIGHT)
        carve(world.material[0], 8, 8, x, y, 5)
        world.zone[0] = x + 0.5, y + 0.5, 2.0
        finish(world, 0, shop)
        assert world.distance[0, WIDE, 8, 8] < WALL


def test_corridors_lie_straight_and_beside_it_on_opposite_sides():
    world, shop = field((0, 0, 0, SIDE, SIDE, 12, SOLID))
    carve_corridors(world, 0, shop.rng)
    finish(world, 0, shop)
    assert (world.material[0, :5, 30, 30] == AIR).sum() == 4 and world.material[0, 0, 30, 30] == DIRT
    assert (world.material[0, 5] == SOLID).all()  # five layers and no more
    blue, red = world.facts[0, routes.SHIFT : routes.SHIFT + 2], world.facts[0, routes.SHIFT + 2 : routes.SHIFT + 4]
    for shift in (blue, red):
        assert 1.5 * 5 - 1 <= np.hypot(*shift) <= 2.5 * 5 + 1
        assert abs(shift[0] + shift[1]) <= 1  # at right angles to the diagonal


def test_lanes_are_six_hundredths_of_the_side_and_never_too_narrow_for_a_heavy():
    assert [lane_width(side) for side in (40, 90, 100, 120, 140, 200)] == [5, 5, 6, 7, 8, 8]


def test_clearing_counts_what_was_in_the_way():
    world, _ = field((5, 5, 0, 3, 3, 3, SOLID))
    assert clear(world.material[0], -5, 0, 7, 60, 2) == 2 * 3 * 2
    assert (world.material[0] == SOLID).sum() == 27 - 12
