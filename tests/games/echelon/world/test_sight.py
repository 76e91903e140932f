"""Rays and bodies among voxels."""

from fractions import Fraction

import numpy as np
import pytest

from protege.games.echelon.rules.battle import CLOUD
from protege.games.echelon.world.sight import (
    CLEAR,
    NO_CELL,
    footprint,
    highest_layer,
    in_sight,
    layers,
    lowest_layer,
    through_smoke,
    trace,
)


def columns_of(material: np.ndarray) -> np.ndarray:
    """Columns in which every voxel that is not 0 is in the way."""
    bits = (material != 0).astype(np.uint32) << np.arange(len(material), dtype=np.uint32)[:, None, None]
    return np.asarray(np.bitwise_or.reduce(bits, axis=0))


def wall(z: int, y: int, x: int, shape: tuple[int, int, int] = (8, 10, 12)) -> np.ndarray:
    material = np.zeros(shape, np.uint8)
    material[z, y, x] = 1
    return columns_of(material)


def test_layers_are_the_bits_between_two_heights():
    assert layers(2, 4) == 0b11100
    assert layers(-3, 1) == 0b11
    assert layers(3, 2) == 0
    assert layers(31, 40) == 1 << 31
    assert [highest_layer(bits) for bits in (0, 1, 0b1010, 1 << 31)] == [-1, 0, 3, 31]
    assert [lowest_layer(bits) for bits in (0, 1, 0b1010, 1 << 31)] == [32, 0, 1, 31]


def test_a_ray_stops_where_it_enters_a_voxel():
    columns = wall(2, 5, 6)
    share, cell = trace(columns, 2.0, 5.5, 2.5, 10.0, 5.5, 2.5, True)
    assert share == 0.5  # x = 6 of 2 to 10
    assert cell == (2 * 10 + 5) * 12 + 6
    assert trace(columns, 2.0, 5.5, 3.5, 10.0, 5.5, 3.5, True) == (CLEAR, NO_CELL)
    assert trace(columns, 2.0, 6.5, 2.5, 10.0, 6.5, 2.5, True) == (CLEAR, NO_CELL)


def test_a_ray_that_dives_onto_a_voxel_stops_at_its_top():
    share, cell = trace(wall(0, 5, 6), 6.5, 5.5, 5.0, 6.5, 5.5, 0.0, True)
    assert (share, cell) == (0.8, 5 * 12 + 6)  # z = 1 of 5 to 0


def test_the_edge_of_the_map_and_the_floor_stop_a_ray_and_the_sky_does_not():
    columns = wall(0, 0, 0)
    assert trace(columns, 4.0, 5.5, 2.5, 20.0, 5.5, 2.5, True) == (0.5, NO_CELL)  # x = 12
    assert trace(columns, 6.5, 5.5, 1.0, 8.5, 5.5, -1.0, True) == (0.5, NO_CELL)
    assert trace(columns, 1.5, 5.5, 30.0, 9.5, 5.5, 40.0, True) == (CLEAR, NO_CELL)


def test_whoever_stands_in_foliage_looks_out_of_it_but_not_through_the_next():
    columns = wall(2, 5, 6)
    into = 10.0, 5.5, 2.5, 6.5, 5.5, 2.5
    assert trace(columns, *into, False)[0] == CLEAR
    assert trace(columns, *into[3:], *into[:3], False)[0] == CLEAR
    assert trace(columns, *into, True)[0] != CLEAR
    assert trace(columns | wall(2, 5, 8), *into, False)[0] != CLEAR


def crosses(material: np.ndarray, a: list[Fraction], b: list[Fraction]) -> bool:
    """Whether the way from a to b runs through a voxel, found by asking every voxel, in exact numbers."""
    for cell in np.argwhere(material):
        enter, leave = Fraction(0), Fraction(1)
        for low, start, end in zip(cell[::-1], a, b):
            if start == end:
                if not low <= start < low + 1:
                    enter = Fraction(2)
                continue
            near, far = sorted(((int(low) - start) / (end - start), (int(low) + 1 - start) / (end - start)))
            enter, leave = max(enter, near), min(leave, far)
        if enter < leave:
            return True
    return False


def test_rays_agree_with_asking_every_voxel():
    rng = np.random.default_rng(5)
    blocked = 0
    for _ in range(400):
        material = (rng.random((6, 7, 8)) < 0.06).astype(np.uint8)
        a, b = (rng.uniform(0.01, 0.99, 3) * (8, 7, 6) for _ in range(2))
        share, cell = trace(columns_of(material), a[0], a[1], a[2], b[0], b[1], b[2], True)
        exact = [[Fraction(float(v)) for v in point] for point in (a, b)]
        assert (share != CLEAR) == crosses(material, *exact)
        if share != CLEAR:
            blocked += 1
            assert material.reshape(-1)[cell] == 1
            along = a + (b - a) * (share + 1e-9)
            assert cell == int(along[2]) * 56 + int(along[1]) * 8 + int(along[0])
    assert 100 < blocked < 300


def test_sight_is_the_same_from_both_ends():
    rng = np.random.default_rng(6)
    seen = 0
    for _ in range(300):
        columns = columns_of((rng.random((6, 7, 8)) < 0.1).astype(np.uint8))
        a, b = (rng.integers(0, 12, 3) / 2 for _ in range(2))  # corners and edges on purpose
        there = in_sight(columns, *a, *b)
        assert there == in_sight(columns, *b, *a)
        seen += there
    assert 30 < seen < 270


@pytest.mark.parametrize(
    ("end", "hidden"),
    [
        ((20.0, 3.9, 2.0), True),  # passes 3.9 from the middle of a cloud of radius 4
        ((20.0, 4.1, 2.0), False),
        ((5.0, 0.0, 2.0), False),  # ends before it
        ((9.0, 0.0, 2.0), True),  # ends inside it
    ],
)
def test_smoke_hides_what_lies_behind_and_inside(end, hidden):
    clouds = np.zeros(2, CLOUD)
    clouds[0] = (10.0, 0.0, 2.0, 4.0, 50, 0)
    clouds[1] = (15.0, 0.0, 2.0, 4.0, 50, 0)  # not among the first one
    start = (0.0, end[1], 2.0)
    assert through_smoke(clouds, 1, *start, *end) == hidden
    assert not through_smoke(clouds, 0, *start, *end)


def test_a_footprint_is_all_columns_the_body_reaches_into():
    columns = wall(2, 5, 6) | wall(4, 5, 7)
    assert footprint(columns, 5.0, 5.5, 0.75) == 0  # x 4.25 to 5.75
    assert footprint(columns, 5.5, 5.5, 0.75) == 0b100  # to 6.25
    assert footprint(columns, 6.5, 5.5, 0.75) == 0b10100
    assert footprint(columns, 5.25, 5.5, 0.75) == 0  # touches x = 6
