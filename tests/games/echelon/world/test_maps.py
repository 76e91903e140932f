"""Generated battlefields: the same everywhere, fair, walkable, and made again from their recipes.

A change of the generator gives other maps: then its VERSION goes up, and the hashes are recorded anew with

    python -m tests.games.echelon.world.test_maps
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.echelon.world import maps as worlds
from protege.games.echelon.world import routes
from protege.games.echelon.world.biomes import BIOMES
from protege.games.echelon.world.maps import (
    formation,
    generate,
    map_hash,
    recipe,
    swap_sides,
)
from protege.games.echelon.world.mechs import AIR, CHASSIS, DIRT, MATERIALS, ROSTERS, find_roster
from protege.games.echelon.world.voxels import HEIGHT, empty_world, set_voxel
from tests.games.echelon.world.soundness import assert_sound, walks

GOLDEN = Path(__file__).parents[3] / "golden" / "echelon" / "maps.json"
GOLDEN_SEEDS = [1, 2, 3, 12345, 99991]
GOLDEN_MAPS = {"100 x 100, 10v10": ((100, 100), "10v10"), "40 x 40, 1v1": ((40, 40), "1v1")}


def everything(world, b):
    """A hash of all that a battle starts from, in fixed byte order."""
    digest = hashlib.sha256()
    for array in (world.material, world.level, world.distance, world.zone, world.square, world.spawn, world.facts):
        digest.update(np.ascontiguousarray(array[b]).astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def golden(*names):
    found = {}
    for name in names or GOLDEN_MAPS:
        size, roster = GOLDEN_MAPS[name]
        maps = generate(GOLDEN_SEEDS, size, roster)
        found[name] = {
            str(seed): {"map": map_hash(maps, b), "all": everything(maps, b)} for b, seed in enumerate(GOLDEN_SEEDS)
        }
    return {"version": worlds.VERSION, "maps": found}


@pytest.fixture(scope="module")
def standard():
    """Sixty standard maps."""
    return generate(range(60))


def quadrants(world, b):
    x, y = (int(fact) for fact in world.facts[b, routes.SPLIT : routes.SPLIT + 2])
    return [
        (slice(0, y), slice(0, x)),
        (slice(0, y), slice(x, None)),
        (slice(y, None), slice(0, x)),
        (slice(y, None), slice(x, None)),
    ]


# --- the same everywhere -------------------------------------------------------------------------------------------


def test_seeds_give_the_recorded_maps():
    assert golden() == json.loads(GOLDEN.read_text()), "maps changed: raise VERSION in world.py and record them anew"


def test_a_map_does_not_depend_on_the_batch_it_is_made_in(standard):
    out = empty_world(5, (100, 100), 20)
    out.material[:] = 9  # whatever was there before
    out.facts[:] = 77
    generate([3, 59], out=out, at=[4, 1])
    assert everything(out, 4) == everything(standard, 3) and everything(out, 1) == everything(standard, 59)
    assert (out.material[0] == 9).all() and (out.material[2:4] == 9).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_DISABLE_JIT": "1"}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}],
    ids=["plain Python", "any processor"],
)
def test_maps_are_the_same_however_the_kernels_are_run(environment):
    code = "import json; from tests.games.echelon.world.test_maps import *; print(json.dumps(golden('40 x 40, 1v1')))"
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=Path(__file__).parents[4], capture_output=True, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    recorded = json.loads(GOLDEN.read_text())["maps"]
    assert json.loads(run.stdout)["maps"] == {"40 x 40, 1v1": recorded["40 x 40, 1v1"]}


def test_different_seeds_give_different_maps(standard):
    assert len({map_hash(standard, b) for b in range(60)}) == 60


# --- what a map is made of -----------------------------------------------------------------------------------------


def test_every_landscape_appears_and_no_map_has_one_twice(standard):
    chosen = standard.facts[:, routes.BIOME : routes.BIOME + 4]
    assert set(chosen.ravel()) == set(range(len(BIOMES)))
    assert all(len(set(row)) == 4 for row in chosen)
    assert np.bincount(chosen.ravel(), minlength=16).min() >= 5  # 15 of each are expected


def test_every_corner_and_every_variant_appears(standard):
    assert set(standard.facts[:, routes.CORNER]) == {0, 1, 2, 3} == set(standard.facts[:, routes.TRANSFORM])
    for b in range(60):
        corner = standard.facts[b, routes.CORNER]
        x, y = 73 if corner & 1 else 0, 73 if corner & 2 else 0
        assert standard.square[b, 0].tolist() == [x, y, x + 27, y + 27]
        assert standard.square[b, 1].tolist() == [73 - x, 73 - y, 100 - x, 100 - y]


def test_the_split_is_near_the_middle(standard):
    split = standard.facts[:, routes.SPLIT : routes.SPLIT + 2]
    assert split.min() >= 40 and split.max() <= 60 and len(np.unique(split)) > 12


@pytest.mark.parametrize(
    ("biome", "materials"),
    [
        ("sunken canal", {"water"}),
        ("server farm", {"reinforced", "glass"}),
        ("glass desert", {"glass"}),
        ("forest park", {"foliage", "solid"}),
    ],
)
def test_a_quadrant_holds_the_landscape_that_the_map_names(standard, biome, materials):
    seen = 0
    for b in range(60):
        for part, area in enumerate(quadrants(standard, b)):
            if standard.facts[b, routes.BIOME + part] == BIOMES.index(biome):
                seen += 1
                present = {MATERIALS[kind].name for kind in np.unique(standard.material[b][:, *area])}
                assert materials <= present
    assert seen >= 5


def test_the_ground_has_no_holes(standard):
    assert (standard.material[:, 0] != AIR).all()
    assert not (standard.material[:, 1:] == DIRT).any()


def test_spawn_squares_and_zone_are_clear_to_the_sky(standard):
    y, x = np.mgrid[:100, :100]
    for b in range(60):
        for x0, y0, x1, y1 in standard.square[b]:
            assert not standard.material[b, 1:, y0:y1, x0:x1].any() and not standard.blocked[b, y0:y1, x0:x1].any()
        zone = np.hypot(x + 0.5 - standard.zone[b, 0], y + 0.5 - standard.zone[b, 1]) <= standard.zone[b, 2] + 0.7
        assert zone.any() and not standard.material[b, 1:, zone].any()


def test_zones_have_all_sizes_stay_inside_and_off_the_squares(standard):
    x, y, radius = standard.zone.T
    assert 3.75 <= radius.min() < 5.0 and 9.5 < radius.max() <= 11.25
    assert (x - radius >= 2).all() and (x + radius <= 98).all() and (y - radius >= 2).all() and (y + radius <= 98).all()
    for b in range(60):
        for x0, y0, x1, y1 in standard.square[b]:
            gap = np.hypot(max(x0 - x[b], x[b] - x1, 0), max(y0 - y[b], y[b] - y1, 0))
            assert gap >= radius[b]


def test_hp_is_in_step_on_every_map_whatever_its_variant(standard):
    hp = np.array([material.hp for material in MATERIALS])
    stops = np.array([material.stops_bodies for material in MATERIALS])
    assert set(standard.facts[:, routes.TRANSFORM]) == {0, 1, 2, 3}
    assert (standard.hp == hp[standard.material]).all()
    bits = (stops[standard.material] << np.arange(HEIGHT)[:, None, None]).sum(1)
    assert (bits == standard.blocked).all()


# --- fair and walkable ---------------------------------------------------------------------------------------------


def test_both_teams_reach_the_zone_by_two_ways_of_nearly_equal_length(standard):
    assert_sound(standard)
    assert walks(standard).min() > 10.0


@pytest.mark.parametrize(
    ("size", "roster"), [((40, 40), "5v5"), ((60, 60), "10v10"), ((64, 150), "20v20"), ((200, 200), "10v10")]
)
def test_maps_of_other_sizes_are_sound_too(size, roster):
    assert_sound(generate(range(100, 106), size, roster))


def test_where_no_zone_is_fair_the_map_becomes_its_own_image():
    maps = generate(range(80), (40, 40), "1v1")
    mirrored = np.flatnonzero(maps.facts[:, routes.MIRRORED])
    assert 0 < len(mirrored) < 12
    for b in mirrored:
        assert maps.zone[b].tolist() == [20.0, 20.0, 3.75]
        if maps.facts[b, routes.DIGS] == 0:
            assert (maps.material[b] == maps.material[b, :, ::-1, ::-1]).all()
            assert maps.facts[b, routes.WALK] == maps.facts[b, routes.WALK + 1]


# --- places to start -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("roster", ROSTERS)
def test_nobody_starts_inside_another_or_a_wall_or_outside_its_square(roster):
    world = generate(range(8), (100, 100), roster)
    members = find_roster(roster).members()
    half = np.array([CHASSIS[kind].width / 2 for kind in members.kind])
    tall = np.array([CHASSIS[kind].height for kind in members.kind])
    for b in range(8):
        x, y, z, _ = world.spawn[b].T
        apart = np.maximum(abs(x[:, None] - x), abs(y[:, None] - y)) - half[:, None] - half
        assert (apart[~np.eye(len(x), dtype=bool)] > 0.5).all()
        assert (z == tall / 2).all()
        for i, team in enumerate(members.team):
            x0, y0, x1, y1 = world.square[b, team]
            assert x0 <= x[i] - half[i] and x[i] + half[i] <= x1 and y0 <= y[i] - half[i] and y[i] + half[i] <= y1


def test_everybody_faces_the_zone_roughly(standard):
    x, y, _, yaw = np.moveaxis(standard.spawn, 2, 0)
    wanted = np.arctan2(standard.zone[:, 1, None] - y, standard.zone[:, 0, None] - x)
    miss = (yaw - wanted + np.pi) % (2 * np.pi) - np.pi
    assert abs(miss).max() <= 0.15 + 1e-9 and abs(miss).max() > 0.14
    assert (abs(yaw) <= np.pi).all()


def test_the_teams_line_up_as_images_of_each_other(standard):
    blue, red = standard.spawn[:, :10, :2], standard.spawn[:, 10:, :2]
    assert abs(blue + red - 100.0).max() <= 0.5  # but for the jitter


def test_sides_can_be_swapped(standard):
    world = generate([4, 5, 6])
    swap_sides(world, np.array([0, 2]))
    for b, swapped in enumerate([True, False, True]):
        places = [*range(10, 20), *range(10)] if swapped else [*range(20)]
        assert (world.spawn[b] == standard.spawn[4 + b][places]).all()
        assert (world.square[b] == standard.square[4 + b][[1, 0] if swapped else [0, 1]]).all()
        assert (world.material[b] == standard.material[4 + b]).all()


def test_formations_take_what_room_they_need():
    assert formation(10, 100) == (5, 27)  # 2 + 4 * 5 + 3.5 + 1, rounded up
    assert formation(10, 60) == (5, 27)
    assert formation(10, 50) == (4, 22)  # closer together on a small map: 2 + 3 * 5 + 3.5 + 1
    assert formation(1, 100) == (5, 25)
    assert formation(20, 200) == (5, 50)  # a quarter of the side


# --- recipes -------------------------------------------------------------------------------------------------------


def test_a_recipe_makes_the_same_map_again(standard):
    for b in (0, 17, 42):
        written = json.loads(json.dumps(recipe(standard, b, "10v10")))
        width, height, _ = written["generator"]["config"]["size"]
        again = generate([written["seed"]], (width, height), written["generator"]["config"]["roster"])
        assert everything(again, 0) == everything(standard, b)
        assert recipe(again, 0, "10v10") == written


def test_a_recipe_says_what_the_map_is():
    world = generate([5], (60, 50), "5v5")
    found = recipe(world, 0, "5v5")
    assert found["generator"]["config"] == {"size": [60, 50, HEIGHT], "roster": "5v5"} and found["seed"] == 5
    assert len(found["variant"]["biomes"]) == 4 and set(found["variant"]["biomes"]) <= set(BIOMES)
    assert [lane["kind"] for lane in found["regions"]["corridors"]] == [
        "blue lane",
        "blue flank",
        "red lane",
        "red flank",
    ]
    assert found["stats"]["walk"] == walks(world)[:, 0].tolist()
    assert 0.0 < found["stats"]["density"] < 1.0


def test_the_hash_tells_materials_apart_not_only_air():
    world = generate([5], (60, 60), "5v5")
    before = map_hash(world, 0)
    z, y, x = np.argwhere(world.material[0] == 1)[0]
    set_voxel(world, 0, z, y, x, 8)
    assert map_hash(world, 0) != before


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"roster": "11v11"}, "no roster is called '11v11'"),
        ({"size": (39, 100)}, "40..200 columns on each side, got 39 x 100"),
        ({"size": (100, 201)}, "40..200 columns on each side, got 100 x 201"),
        ({"size": (40, 40)}, "10 mechs on a side need a map of at least 50 x 50 columns, got a side of 40"),
        ({"size": (58, 100), "roster": "20v20"}, "20 mechs on a side need a map of at least 60 x 60"),
        ({"seeds": [-1]}, "0..2\\*\\*64-1, got -1"),
        ({"seeds": [2**64]}, "got 18446744073709551616"),
        (
            {"out": empty_world(1, (60, 60), 20)},
            "arrays for 100 x 100 columns and 20 mechs are needed; got 60 x 60 and 20",
        ),
        ({"out": empty_world(1, (100, 100), 10)}, "got 100 x 100 and 10"),
        (
            {"seeds": [1, 2], "out": empty_world(1, (100, 100), 20)},
            "2 maps need as many places among 0..0, got \\[0, 1\\]",
        ),
        ({"out": empty_world(2, (100, 100), 20), "at": [2]}, "places among 0..1, got \\[2\\]"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(arguments, message):
    with pytest.raises(ProtegeError, match=message) as error:
        generate(**{"seeds": [1], **arguments})
    assert "\n" not in str(error.value)


def test_no_seeds_make_no_maps():
    assert len(generate([]).material) == 0


if __name__ == "__main__":
    found = golden()
    if GOLDEN.exists():
        recorded = json.loads(GOLDEN.read_text())
        assert found["version"] != recorded["version"] or found == recorded, "maps changed: raise VERSION in world.py"
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
