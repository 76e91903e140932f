"""Ways from the two spawn squares to the zone: cut into the terrain, then checked, and mended where they fail.

A map is sound when a heavy can walk from each team's square to the zone by two ways that differ, and when nobody who
walks anywhere can get to a place without a way out. What is missing is dug, and each digging is noted.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.echelon.world import paths
from protege.games.echelon.world.mechs import AIR, BLUE, DIRT, FOOTPRINTS, STOPS_BODIES, WIDE
from protege.games.echelon.world.paths import DX, DY, WALL, Distances, Indices, next_cell
from protege.games.echelon.world.portable_math import Stream, below, uniform
from protege.games.echelon.world.voxels import HEIGHT, NO_WAY, Materials, Small, World, derive
from protege.kernels import kernel

LANE_LAYERS: Final = 5
LANE_PERCENT: Final = 6  # hundredths of the shorter side
LANE_LEAST, LANE_MOST = 5, 8  # a heavy in the middle of a column takes five

DIG_WIDTH: Final = 5
DIG_COST: Final = 80  # of a blocked column, in columns of detour
AVOID_COST: Final = 320  # of a column beside the first route, where a second one is dug
MOST_DIGS, MOST_NOTED = 40, 14
NEAR_LEAST, NEAR_MOST = 3, 6  # columns on each side of a route that its alternative shall avoid, by size of map
NEAR_ROUTE_TOLL: Final = 20  # tenths of a voxel: another way may be three times as long
MOST_OVERLAP: Final = 650  # thousandths of the second route

# What can be wrong with a map, and what a digging was for.
SOUND, NO_PATH, NO_SECOND_PATH, TRAP = 0, 1, 2, 3
DIG_NAMES: Final = {NO_PATH: "path", NO_SECOND_PATH: "second path", TRAP: "way out"}

# Places in a map's facts.
SPLIT, BIOME, CORNER, TRANSFORM = 0, 2, 6, 7
LANE_WIDTH, SHIFT = 8, 9  # SHIFT: x and y of blue's flank lane, then of red's
ZONES_TRIED, MIRRORED = 13, 14
WALK, OVERLAP = 15, 17  # by team: tenths of a voxel, thousandths
DIGS, DIG_NOTES = 19, 20  # notes: what for, which team, how many voxels


class Workshop(NamedTuple):
    """What one thread needs to make maps of one size."""

    draft: Materials  # (z, y, x)
    queue: paths.Queue
    toll: Small  # (y, x)
    distance: Distances  # (y, x)
    route: Indices  # (2, cells)
    near: npt.NDArray[np.bool_]  # (y, x)
    rng: Stream


def workshop(x: int, y: int) -> Workshop:
    """A workshop for maps of x by y columns."""
    return Workshop(
        draft=np.zeros((HEIGHT, y, x), np.uint8), queue=paths.path_queue(x, y), toll=np.zeros((y, x), np.uint8),
        distance=np.zeros((y, x), np.uint16), route=np.zeros((2, x * y), np.int32), near=np.zeros((y, x), np.bool_),
        rng=np.zeros(1, np.uint64),
    )  # fmt: skip


@kernel
def clear(grid: Materials, x0: int, y0: int, x1: int, y1: int, layers: int) -> int:
    """Make a box of columns air from the ground up; the number of voxels that were in the way of bodies."""
    height, width = grid.shape[1:]
    removed = 0
    for z in range(layers):
        for y in range(max(0, y0), min(height, y1)):
            for x in range(max(0, x0), min(width, x1)):
                removed += STOPS_BODIES[grid[z, y, x]]
                grid[z, y, x] = AIR
    return removed


@kernel
def carve(grid: Materials, xa: int, ya: int, xb: int, yb: int, wide: int) -> None:
    """Cut a lane from a to b by moving a square along it, never diagonally: so whoever fits the square can follow."""
    steps = max(1, max(abs(xb - xa), abs(yb - ya)))
    x, y = xa, ya
    for s in range(steps + 1):
        x = xa + (xb - xa) * s // steps
        clear(grid, x - wide // 2, y - wide // 2, x - wide // 2 + wide, y - wide // 2 + wide, LANE_LAYERS)
        y = ya + (yb - ya) * s // steps
        clear(grid, x - wide // 2, y - wide // 2, x - wide // 2 + wide, y - wide // 2 + wide, LANE_LAYERS)


def lane_width(shorter: int) -> int:
    """Of corridors on a map whose shorter side this is."""
    return max(LANE_LEAST, min(LANE_MOST, shorter * LANE_PERCENT // 100))


def centre_of(world: World, b: int, team: int) -> tuple[int, int]:
    """The column, x and y, in the middle of a team's spawn square."""
    x0, y0, x1, y1 = (int(edge) for edge in world.square[b, team])
    return (x0 + x1) // 2, (y0 + y1) // 2


def carve_corridors(world: World, b: int, rng: Stream) -> None:
    """Cut the ring around the zone, and for each team a straight lane to it and a second one beside that."""
    grid, facts = world.material[b], world.facts[b]
    height, width = grid.shape[1:]
    wide = lane_width(min(height, width))
    facts[LANE_WIDTH] = wide
    x, y, radius = floor(world.zone[b, 0]), floor(world.zone[b, 1]), float(world.zone[b, 2])
    half = max(3, min(min(height, width) * 35 // 100, floor(radius + 1.25 * wide)))
    x0, x1 = max(wide // 2, x - half), min(width - 1 - wide // 2, x + half)
    y0, y1 = max(wide // 2, y - half), min(height - 1 - wide // 2, y + half)
    carve_along(grid, [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], wide)
    sign = 1 - 2 * below(rng, 2)
    for team in range(2):
        sx, sy = centre_of(world, b, team)
        away = (1.5 + uniform(rng)) * wide / sqrt((x - sx) ** 2 + (y - sy) ** 2)
        dx, dy = floor(0.5 - sign * away * (y - sy)), floor(0.5 + sign * away * (x - sx))
        ends, edge = ((sx + dx, sy + dy), (x + dx, y + dy)), wide // 2
        if not all(edge <= i < width - edge and edge <= j < height - edge for i, j in ends):
            dx, dy = -dx, -dy  # to the side on which the lane stays on the map
        facts[SHIFT + 2 * team : SHIFT + 2 * team + 2] = dx, dy
        sign = -sign
    for lane in corridors(world, b):
        carve_along(grid, lane["points"], wide)


def carve_along(grid: Materials, points: Sequence[Sequence[int]], wide: int) -> None:
    for (xa, ya), (xb, yb) in pairwise(points):
        carve(grid, xa, ya, xb, yb, wide)


def corridors(world: World, b: int) -> list[dict[str, Any]]:
    """The teams' lanes: what kind, how wide, from where over where to where (x, y)."""
    wide = int(world.facts[b, LANE_WIDTH])
    x, y = floor(world.zone[b, 0]), floor(world.zone[b, 1])
    found = []
    for team, name in enumerate(("blue", "red")):
        sx, sy = centre_of(world, b, team)
        dx, dy = (int(shift) for shift in world.facts[b, SHIFT + 2 * team : SHIFT + 2 * team + 2])
        flank = [[sx, sy], [sx + dx, sy + dy], [x + dx, y + dy], [x, y]]
        found.append({"kind": f"{name} lane", "width": wide, "points": [[sx, sy], [x, y]]})
        found.append({"kind": f"{name} flank", "width": wide, "points": flank})
    return found


@kernel
def trace(world: World, b: int, toll: Small, distance: Distances, x: int, y: int, route: Indices) -> int:
    """Follow the distances of a heavy from here to the zone; the number of columns written to the route."""
    width = world.blocked.shape[2]
    count = 0
    while count < len(route):
        route[count] = y * width + x
        count += 1
        if distance[y, x] == 0:
            break
        cell, _ = next_cell(world, b, WIDE, toll, distance, y, x)
        if cell < 0:
            break
        y, x = cell // width, cell % width
    return count


@kernel
def mark_near(near: npt.NDArray[np.bool_], route: Indices, count: int, radius: int) -> None:
    """Mark the columns this close to a route, and no others."""
    width = near.shape[1]
    near[:] = False
    for i in range(count):
        y, x = route[i] // width, route[i] % width
        near[max(0, y - radius) : y + radius + 1, max(0, x - radius) : x + radius + 1] = True


@kernel
def second_route(world: World, b: int, x: int, y: int, shop: Workshop) -> int:
    """Find the best way from here and the best other way; what they have in common, in thousandths of the second."""
    height, width = world.blocked.shape[1:]
    first = trace(world, b, world.toll[b, WIDE], world.distance[b, WIDE], x, y, shop.route[0])
    near = max(NEAR_LEAST, min(NEAR_MOST, min(height, width) * LANE_PERCENT // 100))
    mark_near(shop.near, shop.route[0], first, near)
    for v in range(height):
        for u in range(width):
            shop.toll[v, u] = world.toll[b, WIDE, v, u] + (NEAR_ROUTE_TOLL if shop.near[v, u] else 0)
    paths.measure_distance(world, b, WIDE, shop.toll, shop.distance, shop.queue)
    second = trace(world, b, shop.toll, shop.distance, x, y, shop.route[1])
    mark_near(shop.near, shop.route[0], first, near - 1)
    shared = 0
    for i in range(second):
        shared += shop.near[shop.route[1, i] // width, shop.route[1, i] % width]
    return 1000 * shared // second


@kernel
def find_trap(world: World, b: int, gait: int, starts: npt.NDArray[np.int64], shop: Workshop) -> int:
    """A column to which one can walk from a start (x, y), but not on to the zone; -1 if there is none."""
    level, ceiling, toll = world.level[b, gait], world.ceiling[b, gait], world.toll[b, gait]
    distance, tall = world.distance[b, gait], FOOTPRINTS[gait][1]
    height, width = level.shape
    waiting, seen = shop.route[0], shop.near
    seen[:] = False
    count = 0
    for x, y in starts:
        waiting[count] = y * width + x
        seen[y, x] = True
        count += 1
    while count > 0:
        count -= 1
        y, x = waiting[count] // width, waiting[count] % width
        if distance[y, x] >= WALL:
            return int(y * width + x)
        for k in range(8):
            v, u = y + DY[k], x + DX[k]
            if 0 <= v < height and 0 <= u < width and not seen[v, u]:
                if paths.step_cost(level, ceiling, toll, tall, y, x, v, u) < WALL:
                    seen[v, u] = True
                    waiting[count] = v * width + u
                    count += 1
    return -1


@kernel
def in_the_way(world: World, b: int, y: int, x: int) -> bool:
    """Whether a heavy on the ground could not stand in this column."""
    height, width = world.blocked.shape[1:]
    radius = DIG_WIDTH // 2
    if y < radius or x < radius or y >= height - radius or x >= width - radius:
        return True
    low = np.uint32((1 << LANE_LAYERS) - 1)
    for v in range(y - radius, y + radius + 1):
        for u in range(x - radius, x + radius + 1):
            if world.blocked[b, v, u] & low != 0:
                return True
    return False


@kernel
def dig(world: World, b: int, x: int, y: int, avoid: bool, shop: Workshop) -> int:
    """Cut the cheapest level way from here to the zone, if asked away from the first route; the voxels removed."""
    height, width = world.blocked.shape[1:]
    distance, queue, radius = shop.distance, shop.queue, DIG_WIDTH // 2
    for v in range(height):
        for u in range(width):
            distance[v, u] = NO_WAY
            if paths.in_zone(world, b, v, u, 0) and not in_the_way(world, b, v, u):
                distance[v, u] = 0
                paths.push(queue, v * width + u, 0)
    while queue.state[0] > 0:
        cell = paths.pop(queue)
        v, u = cell // width, cell % width
        cost = int(distance[v, u]) + 1
        if in_the_way(world, b, v, u):
            cost += DIG_COST
        if avoid and shop.toll[v, u] >= world.toll[b, WIDE, v, u] + NEAR_ROUTE_TOLL:
            cost += AVOID_COST
        for k in range(4):
            j, i = v + DY[k], u + DX[k]
            inside = radius <= j < height - radius and radius <= i < width - radius
            if inside and cost < distance[j, i]:
                distance[j, i] = cost
                paths.push(queue, j * width + i, cost)
    x, y, removed = max(radius, min(width - 1 - radius, x)), max(radius, min(height - 1 - radius, y)), 0
    while True:
        removed += clear(world.material[b], x - radius, y - radius, x + radius + 1, y + radius + 1, LANE_LAYERS)
        if distance[y, x] == 0 or distance[y, x] == NO_WAY:
            return removed
        best, onward = int(distance[y, x]), 0
        for k in range(4):
            if distance[y + DY[k], x + DX[k]] < best:
                best, onward = int(distance[y + DY[k], x + DX[k]]), k
        y, x = y + DY[onward], x + DX[onward]


def finish(world: World, b: int, shop: Workshop) -> None:
    """Everything that follows from a map's materials, once dirt lies where nothing else does."""
    ground = world.material[b, 0]
    ground[ground == AIR] = DIRT
    derive(world, b)
    paths.measure_paths(world, b, shop.queue)


def find_fault(world: World, b: int, shop: Workshop) -> tuple[int, int, int, int]:
    """The first thing wrong with a map: what is missing, for whom, and the column x, y it starts from."""
    facts, width = world.facts[b], world.blocked.shape[2]
    starts = [centre_of(world, b, team) for team in range(2)]
    for team, (x, y) in enumerate(starts):
        facts[WALK + team] = world.distance[b, WIDE, y, x]
        if facts[WALK + team] >= WALL:
            return NO_PATH, team, x, y
    for team, (x, y) in enumerate(starts):
        facts[OVERLAP + team] = second_route(world, b, x, y, shop)
        if facts[OVERLAP + team] > MOST_OVERLAP:
            return NO_SECOND_PATH, team, x, y
    for gait in range(len(FOOTPRINTS)):
        cell = find_trap(world, b, gait, np.array(starts), shop)
        if cell >= 0:
            return TRAP, BLUE, cell % width, cell // width
    return SOUND, BLUE, 0, 0


def validate(world: World, b: int, shop: Workshop) -> bool:
    """Make a map sound by digging what is missing, and note each digging; false if that was not enough."""
    facts = world.facts[b]
    for digs in range(MOST_DIGS + 1):
        reason, team, x, y = find_fault(world, b, shop)
        if reason == SOUND or digs == MOST_DIGS:
            break
        removed = dig(world, b, x, y, reason == NO_SECOND_PATH, shop)
        facts[DIGS] = digs + 1
        if digs < MOST_NOTED:
            facts[DIG_NOTES + 3 * digs : DIG_NOTES + 3 * digs + 3] = reason, team, removed
        finish(world, b, shop)
    return reason == SOUND
