"""Standing and walking: terrains worked by hand, random ones against plain Python, changes against a fresh look."""

import heapq
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protege.games.echelon.world.mechs import (
    AIR,
    BUILD,
    CHASSIS,
    FOOTPRINTS,
    GLASS,
    LAVA,
    NARROW,
    REINFORCED,
    SOLID,
    WATER,
    WIDE,
    gait_of,
)
from protege.games.echelon.world.paths import (
    SLACK,
    STEP,
    WALL,
    ZONE_LEVEL,
    distance_at,
    free_span,
    in_zone,
    measure_paths,
    next_cell,
    path_queue,
    pop,
    push,
    step_cost,
    update_paths,
    waypoint,
)
from protege.games.echelon.world.voxels import HEIGHT, MOST_CHANGES, NO_LEVEL, NO_WAY, derive, set_voxel
from tests.games.echelon.rules.fields import blank

EXACT = 0  # slack


def terrain(x, y, *boxes, zone=(2.5, 2.5, 1.0)):
    """A flat map with boxes (x, y, z, dx, dy, dz, material) on it, measured."""
    world = blank(1, x, y, 0)
    for i, j, k, dx, dy, dz, material in boxes:
        world.material[0, k : k + dz, j : j + dy, i : i + dx] = material
    world.zone[0] = zone
    derive(world, 0)
    measure_paths(world, 0, path_queue(x, y))
    return world


# --- plain Python, written apart -----------------------------------------------------------------------------------


def plain_span(blocked, gait, y, x):
    """Lowest free place for a footprint, by looking at every voxel of it."""
    radius, tall = FOOTPRINTS[gait]
    rows, columns = blocked.shape
    if not (radius <= y < rows - radius and radius <= x < columns - radius):
        return NO_LEVEL, NO_LEVEL
    under = blocked[y - radius : y + radius + 1, x - radius : x + radius + 1]
    solid = [bool((under >> np.uint32(z) & np.uint32(1)).any()) for z in range(HEIGHT)] + [True]
    for z in range(HEIGHT):
        room = next(top for top in range(z, HEIGHT + 1) if solid[top])
        if (z == 0 or solid[z - 1]) and room - z >= tall:
            return z, room
    return NO_LEVEL, NO_LEVEL


def plain_cost(level, ceiling, toll, tall, y, x, v, u):
    """What one step costs, from the rules in words."""
    slant = y != v and x != u
    here, there = int(level[y, x]), int(level[v, u])
    if here == NO_LEVEL:
        return 14 if slant else 10
    cost = {(False, False): 10, (True, False): 14, (False, True): 12, (True, True): 17}[slant, there > here]
    cost += int(toll[v, u])
    high = max(here, there)
    touched = [(y, x), (v, u)] + ([(y, u), (v, x)] if slant else [])
    legal = there <= here + 1 and all(level[p] <= high and ceiling[p] >= high + tall for p in touched)
    return cost if legal else cost + 5000


def plain_distances(world, gait):
    """Dijkstra with a heap, over the map's standing places."""
    level, ceiling, toll = world.level[0, gait], world.ceiling[0, gait], world.toll[0, gait]
    rows, columns = level.shape
    best = np.full((rows, columns), NO_WAY)
    zx, zy, radius = world.zone[0]
    waiting = []
    for y in range(rows):
        for x in range(columns):
            if level[y, x] <= 5 and (x + 0.5 - zx) ** 2 + (y + 0.5 - zy) ** 2 <= radius**2:
                best[y, x] = 0
                waiting.append((0, y, x))
    heapq.heapify(waiting)
    while waiting:
        base, v, u = heapq.heappop(waiting)
        if base > best[v, u]:
            continue
        for y in range(max(0, v - 1), min(rows, v + 2)):
            for x in range(max(0, u - 1), min(columns, u + 2)):
                if (y, x) != (v, u):
                    way = base + plain_cost(level, ceiling, toll, FOOTPRINTS[gait][1], y, x, v, u)
                    if way < best[y, x]:
                        best[y, x] = way
                        heapq.heappush(waiting, (way, y, x))
    return best


def rough_ground(seed, x=22, y=18):
    """A random terrain of boxes on and above the ground, some of them liquid."""
    generator = np.random.default_rng(seed)
    boxes = []
    for _ in range(generator.integers(3, 22)):
        material = generator.choice([SOLID, SOLID, SOLID, GLASS, REINFORCED, AIR])
        z, dz = (0, generator.integers(1, 7)) if generator.random() < 0.7 else (generator.integers(2, 16), 1)
        boxes.append((*generator.integers(0, (x, y)), z, *generator.integers(1, 7, 2), dz, material))
    boxes += [(*generator.integers(0, (x, y)), 0, 3, 3, 1, liquid) for liquid in (LAVA, WATER)]
    return terrain(x, y, *boxes, zone=(*generator.uniform(4, 14, 2), generator.uniform(1, 4)))


@pytest.mark.parametrize("seed", range(20))
def test_standing_places_and_distances_are_what_plain_python_finds(seed):
    world = rough_ground(seed)
    for gait in (NARROW, WIDE):
        for y in range(18):
            for x in range(22):
                assert free_span(world.blocked[0], gait, y, x) == plain_span(world.blocked[0], gait, y, x)
        assert (world.distance[0, gait] == plain_distances(world, gait)).all()


def test_a_step_costs_what_plain_python_says():
    world, generator = rough_ground(3), np.random.default_rng(0)
    ground = (world.level[0, NARROW], world.ceiling[0, NARROW], world.toll[0, NARROW], FOOTPRINTS[NARROW][1])
    for y, x, dy, dx in generator.integers((1, 1, -1, -1), (17, 21, 2, 2), (500, 4)):
        if dy or dx:
            assert step_cost(*ground, y, x, y + dy, x + dx) == plain_cost(*ground, y, x, y + dy, x + dx)


@given(seed=st.integers(0, 10_000), rounds=st.integers(1, 4), many=st.booleans())
@settings(max_examples=25)
def test_after_any_changes_an_update_equals_a_fresh_measurement(seed, rounds, many):
    world, generator, queue = rough_ground(seed), np.random.default_rng(seed), path_queue(22, 18)
    for _ in range(rounds):
        for _ in range(generator.integers(1, 2 * MOST_CHANGES if many else 12)):
            z, y, x = generator.integers(0, (6, 18, 22))
            set_voxel(world, 0, z, y, x, generator.choice([AIR, AIR, SOLID, WATER, LAVA]))
        update_paths(world, 0, queue, EXACT)
    kept = [world.level.copy(), world.ceiling.copy(), world.toll.copy(), world.distance.copy()]
    measure_paths(world, 0, path_queue(22, 18))
    for before, array in zip(kept, [world.level, world.ceiling, world.toll, world.distance]):
        assert (before == array).all()
    assert world.changed[0, 0] == 0 and not queue.listed.any() and (queue.head == -1).all()


@given(seed=st.integers(0, 10_000), rounds=st.integers(1, 8))
@settings(max_examples=25)
def test_with_slack_every_way_still_leads_down_to_the_zone(seed, rounds):
    world, generator, queue = rough_ground(seed), np.random.default_rng(seed), path_queue(22, 18)
    for _ in range(rounds):
        for _ in range(generator.integers(1, 12)):
            z, y, x = generator.integers(0, (6, 18, 22))
            set_voxel(world, 0, z, y, x, generator.choice([AIR, AIR, SOLID, WATER, LAVA]))
        update_paths(world, 0, queue, SLACK)
        for gait in (NARROW, WIDE):
            distance = world.distance[0, gait]
            for y, x in np.argwhere((distance > 0) & (distance < NO_WAY)):
                onward, _ = next_cell(world, 0, gait, world.toll[0, gait], distance, y, x)
                assert distance[onward // 22, onward % 22] < distance[y, x]
    kept = world.level.copy()
    measure_paths(world, 0, path_queue(22, 18))
    assert (kept == world.level).all()  # only distances have slack


def test_slack_spares_a_small_detour_and_not_a_large_one():
    world, queue = terrain(40, 20, zone=(4.5, 10.5, 2)), path_queue(40, 20)
    before = world.distance.copy()
    for y in range(9, 12):  # a post that a body walks around within a step or two
        for z in range(3):
            set_voxel(world, 0, z, y, 20, SOLID)
    update_paths(world, 0, queue, SLACK)
    small = world.distance.copy()
    assert (small[0, NARROW, 10, 30:38] == before[0, NARROW, 10, 30:38]).all()
    for y in range(18):  # a wall with its only gap at one end
        for z in range(3):
            set_voxel(world, 0, z, y, 20, SOLID)
    update_paths(world, 0, queue, SLACK)
    large = world.distance.copy()
    measure_paths(world, 0, path_queue(40, 20))
    behind = np.s_[0, NARROW, 4:16, 23:37]
    assert (large[behind] > small[behind] + SLACK).any()
    assert (np.abs(large[behind].astype(int) - world.distance[behind]) <= 2 * SLACK).all()


def test_only_the_battles_asked_for_are_updated():
    world, queue = blank(3, 20, 20, 0), path_queue(20, 20)
    for b in range(3):
        measure_paths(world, b, queue)
        set_voxel(world, b, 0, 10, 10, SOLID)
        set_voxel(world, b, 1, 10, 10, SOLID)
    for b in (1, 2):
        update_paths(world, b, queue, SLACK)
    assert world.changed[:, 0].tolist() == [1, 0, 0]
    assert world.level[:, NARROW, 10, 10].tolist() == [0, 2, 2]


def test_the_queue_gives_cells_by_key_and_moves_one_ahead_when_asked():
    queue = path_queue(4, 4)
    for cell, key in ((3, 50), (7, 20), (1, 50), (9, 65000)):
        push(queue, cell, key)
    push(queue, 9, 10)  # sooner
    push(queue, 7, 900)  # later is not taken
    assert [pop(queue) for _ in range(5)] == [9, 7, 1, 3, -1]


# --- by hand -------------------------------------------------------------------------------------------------------


def test_on_flat_ground_distance_is_straight_and_diagonal_steps():
    world = terrain(30, 20)  # the zone holds column 2 and its four neighbours
    assert world.distance[0, NARROW, 2, 2] == 0
    assert world.distance[0, NARROW, 2, 13] == 100  # ten steps from column 3
    assert world.distance[0, NARROW, 12, 13] == 10 * 14  # all diagonal, to (3, 2)
    assert world.distance[0, NARROW, 12, 9] == 7 * 14 + 2 * 10  # to (2, 3)


def test_a_body_needs_its_whole_footprint():
    # A wall across the map with a gap of four columns: a medium passes, a heavy in mid-column does not.
    gap = terrain(30, 20, (15, 0, 0, 1, 8, HEIGHT, SOLID), (15, 12, 0, 1, 8, HEIGHT, SOLID))
    assert gap.distance[0, NARROW, 10, 25] < WALL <= gap.distance[0, WIDE, 10, 25]
    gap = terrain(30, 20, (15, 0, 0, 1, 8, HEIGHT, SOLID), (15, 13, 0, 1, 7, HEIGHT, SOLID))
    assert gap.distance[0, WIDE, 10, 25] < WALL  # five columns will do


def test_a_body_needs_its_height():
    # A roof over the only way, at a height of three, then of four.
    for clearance, passes in ((3, (True, False)), (4, (True, True)), (2, (False, False))):
        roofed = terrain(30, 20, (15, 0, clearance, 1, 20, HEIGHT - clearance, SOLID))
        found = [bool(roofed.distance[0, gait, 10, 25] < WALL) for gait in (NARROW, WIDE)]
        assert tuple(found) == passes


def test_walking_and_the_rules_agree_on_steps_and_on_the_zone():
    assert math.floor(BUILD.step_height) == STEP and BUILD.zone_height == ZONE_LEVEL
    for chassis in CHASSIS:
        radius, tall = FOOTPRINTS[gait_of(chassis)]
        assert chassis.width / 2 <= radius + 0.5 and chassis.height <= tall


def test_one_voxel_is_a_step_and_two_are_a_wall():
    # The zone lies on a terrace: one high, then two.
    step = terrain(30, 20, (0, 0, 0, 10, 20, 1, SOLID))
    assert step.distance[0, NARROW, 2, 13] == 9 * 10 + 12  # ten steps, one of them up
    assert step.level[0, NARROW, 2, 10] == 1  # the footprint still rests on the edge
    wall = terrain(30, 20, (0, 0, 0, 10, 20, 2, SOLID))
    assert wall.distance[0, NARROW, 2, 13] == 9 * 10 + 12 + WALL


def test_going_down_is_free_however_deep():
    cliff = terrain(30, 20, (10, 0, 0, 20, 20, 9, SOLID))
    assert cliff.level[0, NARROW, 2, 20] == 9
    assert cliff.distance[0, NARROW, 2, 20] == 170  # to column 3, as on flat ground


def test_a_step_up_needs_head_room_where_it_begins():
    # A roof before the terrace: at three a medium fits under it, but rising to the step its head would go through.
    low = terrain(30, 20, (0, 0, 0, 10, 20, 1, SOLID), (11, 0, 3, 2, 20, 1, SOLID))
    assert low.distance[0, NARROW, 2, 13] >= WALL
    high = terrain(30, 20, (0, 0, 0, 10, 20, 1, SOLID), (11, 0, 4, 2, 20, 1, SOLID))
    assert high.distance[0, NARROW, 2, 13] < WALL


def test_corners_are_not_cut():
    # A heavy wall with one corner: from (6, 6) to (5, 5) past a pillar's footprint at (4, 6).
    world = terrain(12, 12, (3, 7, 0, 1, 1, HEIGHT, SOLID), zone=(2.5, 2.5, 0.5))
    level, ceiling, toll = world.level[0, NARROW], world.ceiling[0, NARROW], world.toll[0, NARROW]
    assert level[6, 4] == NO_LEVEL and level[5, 4] == level[6, 5] == 0
    assert step_cost(level, ceiling, toll, 3, 6, 5, 5, 4) == 14 + WALL  # beside (6, 4)
    assert step_cost(level, ceiling, toll, 3, 5, 5, 4, 4) == 14


def test_water_and_lava_are_worth_a_detour():
    world = terrain(30, 20, (6, 0, 0, 4, 20, 1, WATER))
    assert world.distance[0, NARROW, 2, 13] == 100 + 4 * 7
    world = terrain(30, 20, (6, 0, 0, 4, 20, 1, LAVA))
    assert world.distance[0, NARROW, 2, 13] == 100 + 4 * 30
    world = terrain(30, 20, (6, 0, 0, 4, 3, 1, LAVA))  # a pool that ends beside the way
    assert world.distance[0, NARROW, 2, 13] == 100 + 2 * 4  # one column aside and back, on diagonal steps


def test_a_place_without_a_way_is_a_wall_away():
    pit = terrain(30, 20, (12, 5, 0, 11, 11, 6, SOLID), (15, 8, 0, 5, 5, 6, AIR))
    assert pit.level[0, NARROW, 10, 17] == 0
    assert WALL <= pit.distance[0, NARROW, 10, 17] < 2 * WALL


def test_on_top_of_what_nobody_can_stand_on_the_way_leads_down():
    tower = terrain(30, 20, (12, 5, 0, 9, 9, HEIGHT - 1, SOLID))
    assert tower.level[0, NARROW, 9, 16] == NO_LEVEL
    assert tower.distance[0, NARROW, 9, 16] < 250
    assert distance_at(tower, 0, NARROW, 16.5, 9.5, 19.0) < 25.0


def test_in_the_zone_there_is_nothing_to_walk_and_outside_the_distance_is_smooth():
    world = terrain(60, 40, (20, 0, 0, 2, 30, 8, SOLID), zone=(5.5, 5.5, 4.0))
    assert distance_at(world, 0, WIDE, 7.0, 7.0, 0.0) == 0.0
    assert in_zone(world, 0, 5, 9, 0) and not in_zone(world, 0, 5, 10, 0) and not in_zone(world, 0, 5, 9, 6)
    for x in np.arange(10.0, 17.0, 0.25):  # along the ground, and hugging the wall at the end
        step = distance_at(world, 0, WIDE, x + 0.25, 6.1, 0.0) - distance_at(world, 0, WIDE, x, 6.1, 0.0)
        assert 0.0 <= step <= 0.3


def test_behind_a_wall_the_distance_is_the_way_around_it():
    world = terrain(60, 40, (20, 0, 0, 2, 30, 8, SOLID), zone=(5.5, 5.5, 4.0))
    before, behind = distance_at(world, 0, WIDE, 17.9, 6.0, 0.0), distance_at(world, 0, WIDE, 24.1, 6.0, 0.0)
    assert before < 9.0
    assert behind > 2 * 25.0  # up to the end of the wall and down again


@pytest.mark.parametrize("gait", [NARROW, WIDE])
def test_whoever_follows_waypoints_arrives_without_a_detour(gait):
    radius, tall = FOOTPRINTS[gait]
    half = {NARROW: 1.25, WIDE: 1.75}[gait]
    for seed in range(6):
        world = terrain(60, 40, *random_pillars(seed), zone=(8.5, 8.5, 4.0))
        x, y = 52.5, 31.5
        expected = distance_at(world, 0, gait, x, y, 0.0)
        assert expected < WALL / 10
        walked = 0.0
        while math.hypot(x - 8.5, y - 8.5) > 4.0 and walked < 2 * expected:
            wx, wy = waypoint(world, 0, gait, x, y, 0.0)
            ahead = max(1e-9, math.hypot(wx - x, wy - y))
            for axis in (0, 1):  # slides along walls, one axis after the other, as bodies do
                dx, dy = ((wx - x) / ahead * 0.3, 0.0) if axis == 0 else (0.0, (wy - y) / ahead * 0.3)
                if free(world, x + dx, y + dy, half):
                    x, y = x + dx, y + dy
            walked += 0.3
        assert math.hypot(x - 8.5, y - 8.5) <= 4.0, f"seed {seed}: stuck at {x:.1f}, {y:.1f}"
        assert walked < 1.3 * expected


def random_pillars(seed):
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(14):
        x, y, dx, dy = generator.integers((12, 0, 1, 1), (46, 36, 4, 9))
        found.append((x, y, 0, dx, dy, 8, SOLID))
    return found


def free(world, x, y, half):
    """Whether a square of this half width touches no blocked column at ground height."""
    x0, x1 = math.floor(x - half + 1e-9), math.floor(x + half - 1e-9)
    y0, y1 = math.floor(y - half + 1e-9), math.floor(y + half - 1e-9)
    return not (world.blocked[0, y0 : y1 + 1, x0 : x1 + 1] & np.uint32(0b1111)).any()
