"""Landscapes: each is what its description says, and stays inside its rectangle."""

import numpy as np
import pytest

from protege.games.echelon.world.biomes import BIOMES, BRUSHES, Area, box, place, stairs, tunnel
from protege.games.echelon.world.mechs import AIR, FOLIAGE, GLASS, LAVA, REINFORCED, SOLID, STOPS_BODIES, WATER
from protege.games.echelon.world.portable_math import start_stream
from protege.games.echelon.world.voxels import HEIGHT

SIDE = 50
SEEDS = range(12)


def painted(biome, seed=0, side=SIDE, margin=5):
    """A landscape in an area with this margin around it: the area's voxels (z, y, x)."""
    grid, rng = np.zeros((HEIGHT, side + 2 * margin, side + 2 * margin), np.uint8), np.zeros(1, np.uint64)
    start_stream(rng, np.uint64(seed), 0)
    BRUSHES[biome](grid, Area(margin, margin, margin + side, margin + side), rng)
    inside = grid[:, margin : margin + side, margin : margin + side].copy()
    grid[:, margin : margin + side, margin : margin + side] = AIR
    assert not grid.any(), f"{biome} leaves its area"
    return inside


def tops(voxels):
    """Height of each column: one above its highest voxel."""
    return np.where(voxels.any(0), HEIGHT - (voxels != AIR)[::-1].argmax(0), 0)


def used(voxels):
    return set(np.unique(voxels)) - {AIR}


def cover(voxels):
    """Share of columns with something on the ground."""
    return (voxels[0] != AIR).mean()


def runs(line):
    """Lengths of unbroken stretches of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
    return (edges[1::2] - edges[::2]).tolist()


@pytest.mark.parametrize("biome", BIOMES)
def test_a_landscape_is_its_seeds_alone_and_fits_any_quadrant(biome):
    assert (painted(biome, 3) == painted(biome, 3)).all()
    assert biome == "mining pit" or (painted(biome, 3) != painted(biome, 4)).any()
    for side in (16, 24, 110):
        assert painted(biome, 5, side=side).any()


def test_urban_blocks_stand_around_glass_courtyards():
    for seed in SEEDS:
        voxels = painted("urban residential", seed)
        assert used(voxels) == {SOLID, GLASS}
        walls, floors = voxels[0] == SOLID, voxels[0] == GLASS
        assert set(tops(voxels)[walls]) <= {4, 5, 6, 7, 8} and set(tops(voxels)[floors]) == {1}
        assert 0.15 < (walls | floors).mean() * 0.75 < 0.40  # stops at 35 %, or when streets leave no room
        assert all(2 <= length <= 10 for row in walls | floors for length in runs(row))


def test_a_refinery_has_tanks_and_pipe_walls():
    for seed in SEEDS:
        voxels = painted("industrial refinery", seed)
        assert used(voxels) == {SOLID}
        assert set(tops(voxels)[voxels[0] == SOLID]) <= set(range(2, 12))
        assert 0.24 < cover(voxels) < 0.29


def test_civic_buildings_stand_on_plazas_one_step_high():
    for seed in SEEDS:
        voxels = painted("civic government", seed)
        assert used(voxels) == {SOLID} and set(np.unique(tops(voxels))) <= {0, 1, 6, 7, 8, 9}
        buildings = tops(voxels) >= 6
        assert 0.08 < buildings.mean() < 0.30
        ringed = np.zeros_like(buildings)
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                shifted = np.roll(buildings, (dy, dx), (0, 1))
                ringed[2:-2, 2:-2] |= shifted[2:-2, 2:-2]
        assert (tops(voxels)[2:-2, 2:-2][ringed[2:-2, 2:-2]] >= 1).all()


def test_a_forest_has_trunks_crowns_and_rocks():
    for seed in SEEDS:
        voxels = painted("forest park", seed)
        assert used(voxels) == {SOLID, FOLIAGE}
        assert {z for z in range(HEIGHT) if (voxels[z] == FOLIAGE).any()} == {3, 4}
        assert tops(voxels == SOLID).max() <= 7
        assert 0.15 < cover(voxels) < 0.32  # 125 trunks of 1 or 4 columns, 25 rocks of 9 to 25, some on top of others


def test_barrens_have_low_rocks():
    for seed in SEEDS:
        voxels = painted("barrens", seed)
        assert used(voxels) == {SOLID} and set(np.unique(tops(voxels))) == {0, 1, 2}
        assert 0.10 < cover(voxels) < 0.22  # 50 rocks of 4, 9 or 16 columns


def test_a_spire_rises_in_the_middle_third_with_tunnels_through_its_foot():
    for seed in SEEDS:
        voxels = painted("arcology spire", seed)
        assert used(voxels) == {SOLID}
        third = SIDE // 3
        tower = voxels[:, third : 2 * third, third : 2 * third]
        assert (tops(tower) == HEIGHT - 2).all()
        assert (tower[0] == AIR).any() and (tower[5] == SOLID).any()
        around = tops(voxels).copy()
        around[third : 2 * third, third : 2 * third] = 0
        assert around.max() in (6, 11, 16)  # one above a platform at 5, 10 or 15


def test_a_canal_runs_from_side_to_side_under_bridges():
    for seed in SEEDS:
        voxels = painted("sunken canal", seed)
        assert used(voxels) == {SOLID, WATER} and not (voxels[1:] == WATER).any()
        water = voxels[0] == WATER
        along = water if water.all(1).any() else water.T
        wet = along.all(1)
        assert len(runs(wet)) == 1 and 8 <= wet.sum() <= 13 or (along.mean(1) > 0.5).sum() >= 8
        over = (voxels[4:8] == SOLID) & water
        assert over.any()


def test_a_geo_front_is_rock_with_ways_through_and_lava():
    for seed in SEEDS:
        voxels = painted("geo front", seed)
        assert used(voxels) == {SOLID, LAVA}
        assert 10 <= tops(voxels).max() <= HEIGHT - 3 and len(np.unique(tops(voxels))) == 1
        assert not STOPS_BODIES[voxels[0]].all(0).any()  # every line across meets a tunnel
        assert not STOPS_BODIES[voxels[0]].all(1).any()
        assert 16 <= (voxels[0] == LAVA).sum() <= 80 and not (voxels[1:] == LAVA).any()


def test_a_glass_desert_is_glass():
    for seed in SEEDS:
        voxels = painted("glass desert", seed)
        assert used(voxels) == {GLASS}
        assert set(np.unique(tops(voxels))) <= {0, 1, *range(5, 12)}


def test_an_outpost_is_a_bunker_behind_a_fence():
    for seed in SEEDS:
        voxels = painted("command outpost", seed)
        assert used(voxels) == {SOLID, REINFORCED}
        low = SIDE // 2 - 6
        bunker = voxels[:, low : low + 12, low : low + 12]
        assert (tops(bunker) == 6).all()
        door = bunker[0] == AIR
        assert door.sum() == 12 and {*door.any(0).nonzero()[0].shape, *door.any(1).nonzero()[0].shape} == {3, 4}
        fence = tops(voxels) == 1
        assert fence.sum() == 4 * 27 and fence[low - 8].sum() == 28 and fence[low + 19].sum() == 28


def test_a_jungle_has_thin_trunks_under_one_roof():
    for seed in SEEDS:
        voxels = painted("dense jungle", seed)
        assert used(voxels) == {SOLID, FOLIAGE}
        assert {z for z in range(HEIGHT) if (voxels[z] == FOLIAGE).any()} == {3, 4, 5}
        assert (voxels[3] != AIR).mean() > 0.9
        assert 0.12 < cover(voxels) <= 0.15  # 375 trunks, some in one place


def test_a_mining_pit_goes_down_in_terraces_and_a_road_leads_in():
    for seed in SEEDS:
        voxels = painted("mining pit", seed)
        heights = tops(voxels)
        assert used(voxels) == {SOLID} and heights.max() == 10
        middle = SIDE // 2
        assert (heights[middle - 4 : middle + 5, middle - 4 : middle + 5] == 0).all()
        corner_to_middle = [int(heights[i, i]) for i in range(0, 24, 4)]
        assert corner_to_middle == [10, 8, 6, 4, 2, 0]
        lines = [heights[:, middle - 1], heights[::-1, middle - 1], heights[middle - 1], heights[middle - 1, ::-1]]
        roads = [line[:21] for line in lines if line[0] == 1]
        assert len(roads) == 1 and np.abs(np.diff(roads[0].astype(int))).max() == 1
        assert roads[0].max() == 7 and roads[0][-1] == 0


def test_a_ridge_is_four_high_with_lava_on_and_beside_it():
    for seed in SEEDS:
        voxels = painted("volcanic ridge", seed)
        assert used(voxels) == {SOLID, LAVA}
        ridge = voxels[0] == SOLID
        assert ridge.sum() == 8 * SIDE and (voxels[3][ridge] == SOLID).all() and (voxels[5] == AIR).all()
        lava = (voxels == LAVA).any(0)
        assert 36 <= lava.sum() <= 108  # two or three strips of 3 by 12
        assert ((voxels[4] == LAVA) <= ridge).all() and ((voxels[0] == LAVA) <= ~ridge).all()


def test_hydroponic_labs_are_glass_with_rows_of_plants_and_strong_corners():
    for seed in SEEDS:
        voxels = painted("hydroponic lab", seed)
        assert used(voxels) == {GLASS, FOLIAGE, REINFORCED}
        assert set(np.unique(tops(voxels))) <= {0, 5, 6, 7}
        assert {z for z in range(HEIGHT) if (voxels[z] == FOLIAGE).any()} == {0, 1}
        assert 2 <= (voxels[0] == REINFORCED).sum() <= 6


def test_a_server_farm_is_a_grid_of_racks_some_joined_by_glass():
    for seed in SEEDS:
        voxels = painted("server farm", seed)
        assert used(voxels) == {REINFORCED, GLASS}
        racks = voxels[0] == REINFORCED
        places = np.zeros_like(racks)
        for dy in (1, 2):
            for dx in (1, 2):
                places[dy::5, dx::5] = True
        assert not (racks & ~places).any()
        assert 0.5 < racks[1::5, 1::5].mean() < 0.9
        assert set(tops(voxels)[racks]) <= set(range(6, 12))
        assert (voxels == GLASS).any((1, 2)).nonzero()[0].tolist() == [4]


def test_an_orbital_relay_is_a_ring_of_pillars_under_bridges():
    for seed in SEEDS:
        voxels = painted("orbital relay", seed)
        assert used(voxels) == {SOLID, REINFORCED}
        y, x = np.nonzero(voxels[0] == REINFORCED)
        far = np.hypot(x - SIDE // 2, y - SIDE // 2)
        assert 5.8 <= far.min() and far.max() <= 13.2  # radius 8 to 11, and half a diagonal of 3 x 3
        pillars = tops(voxels == REINFORCED)[y, x]
        assert 8 <= pillars.min() and pillars.max() <= 14
        bridges = (voxels == SOLID).any((1, 2)).nonzero()[0]
        assert 1 <= len(bridges) <= 3 and set(bridges) <= set(range(10, 15))


# --- shapes --------------------------------------------------------------------------------------------------------


def empty():
    return np.zeros((HEIGHT, 12, 12), np.uint8), Area(2, 2, 10, 10)


def test_a_box_is_cut_off_at_the_area_and_growth_leaves_what_is_there():
    grid, area = empty()
    box(grid, area, 0, 4, 18, 4, 3, 9, SOLID)
    assert (grid == SOLID).sum() == 2 * 3 * 2  # columns 2 and 3, rows 4 to 6, layers 18 and 19
    box(grid, area, 0, 0, 18, 12, 12, 1, FOLIAGE, in_air=True)
    assert (grid == SOLID).sum() == 12 and (grid == FOLIAGE).sum() == 64 - 6


def test_stairs_go_down_by_one():
    grid, area = empty()
    stairs(grid, area, 5, 3, (1, 0), 4, 3)
    assert tops(grid)[3].tolist() == [0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0]
    assert (tops(grid)[3] == tops(grid)[5]).all() and not tops(grid)[6].any()
    grid, area = empty()
    stairs(grid, area, 5, 6, (0, -1), 3, 2)
    assert tops(grid)[:, 6].tolist() == [0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0]


def test_a_tunnel_is_round_and_reaches_both_ends():
    grid, area = empty()
    box(grid, area, 0, 0, 0, 12, 12, HEIGHT, SOLID)
    tunnel(grid, area, 2, 6, 9, 6, 2, 2)
    profile = (grid[:, 2:10, 5] == AIR).sum(1)
    assert profile[:6].tolist() == [3, 5, 5, 5, 3, 0]
    assert (grid[2, 6, 2:10] == AIR).all()


def test_things_are_placed_where_they_fit():
    rng = np.zeros(1, np.uint64)
    start_stream(rng, np.uint64(0), 0)
    assert {place(rng, 3, 8, 3) for _ in range(100)} == {3, 4, 5}
    assert {place(rng, 3, 8, 9) for _ in range(10)} == {3}  # too large for anywhere: cut off on the far side
