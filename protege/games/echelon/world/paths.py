"""Where bodies can stand, and how far it is from anywhere to the zone on foot.

For each gait every column has one place to stand: the lowest height at which the footprint is free. A body steps to one
of the eight columns around it, up by one voxel at most, down as far as it likes. Each column's distance to the zone is
exact for these steps. What no step can do (up a wall) costs WALL more, so that a distance exists everywhere. After
voxels changed, `update_paths` corrects only what depends on them: exactly, or with some slack, because a single wreck
makes thousands of ways a little longer.
"""

from math import floor, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.echelon.world.mechs import FOOTPRINTS, LAVA, WATER
from protege.games.echelon.world.voxels import HEIGHT, MOST_CHANGES, NO_LEVEL, NO_WAY, Columns, Small, World
from protege.kernels import kernel

# Tenths of a voxel.
STRAIGHT, DIAGONAL, STRAIGHT_UP, DIAGONAL_UP = 10, 14, 12, 17
WATER_TOLL, LAVA_TOLL = 7, 30  # water slows to 0.6; lava is worth a detour
WALL: Final = 5000

SLACK: Final[Any] = np.int64(8)  # in battle: less than a step, so that ways lead down wherever distances are off by it

STEP: Final = 1  # whole voxels up: what is left of the rules' step height
ZONE_LEVEL: Final = 5  # higher up, the zone's columns are not in it
LOOK_AHEAD: Final = 3  # columns from here to a waypoint
NEAR: Final = 2  # columns around a body among which its own is sought

# Straight steps first, then diagonal ones.
DX: Final = (1, 0, -1, 0, 1, -1, -1, 1)
DY: Final = (0, 1, 0, -1, 1, 1, -1, -1)

Distances = npt.NDArray[np.uint16]
Indices = npt.NDArray[np.int32]


class Queue(NamedTuple):
    """Cells (y * width + x) waiting in order of a key below NO_WAY, and lists of cells; one per thread."""

    head: Indices  # (NO_WAY,): first cell with this key, or -1
    after: Indices  # (cells,): the next with the same key
    before: Indices  # (cells,): the one before
    key: Indices  # (cells,): -1 while not waiting
    state: Indices  # how many wait, and a key that none is below
    cells: Indices  # (cells,): a list for whoever needs one
    listed: npt.NDArray[np.bool_]  # (cells,): whether it is in the list


def path_queue(x: int, y: int) -> Queue:
    """Room for a map of x by y columns."""
    cells = [np.full(x * y, -1, np.int32) for _ in range(4)]
    return Queue(
        head=np.full(NO_WAY, -1, np.int32), after=cells[0], before=cells[1], key=cells[2],
        state=np.array([0, NO_WAY], np.int32), cells=cells[3], listed=np.zeros(x * y, np.bool_),
    )  # fmt: skip


@kernel
def push(queue: Queue, cell: int, key: int) -> None:
    """Let a cell wait, or move it ahead if it waits with a higher key."""
    if queue.key[cell] >= 0:
        if queue.key[cell] <= key:
            return
        _unlink(queue, cell)
    first = queue.head[key]
    queue.after[cell], queue.before[cell], queue.key[cell] = first, -1, key
    if first >= 0:
        queue.before[first] = cell
    queue.head[key] = cell
    queue.state[0] += 1
    queue.state[1] = min(queue.state[1], key)


@kernel
def _unlink(queue: Queue, cell: int) -> None:
    after, before = queue.after[cell], queue.before[cell]
    if before >= 0:
        queue.after[before] = after
    else:
        queue.head[queue.key[cell]] = after
    if after >= 0:
        queue.before[after] = before
    queue.key[cell] = -1
    queue.state[0] -= 1


@kernel
def pop(queue: Queue) -> int:
    """The cell with the lowest key, or -1."""
    if queue.state[0] == 0:
        return -1
    key = queue.state[1]
    while queue.head[key] < 0:
        key += 1
    cell = int(queue.head[key])
    _unlink(queue, cell)
    queue.state[1] = key if queue.state[0] > 0 else NO_WAY
    return cell


# --- where to stand ------------------------------------------------------------------------------------------------
@kernel
def free_span(blocked: Columns, gait: int, y: int, x: int) -> tuple[int, int]:
    """The lowest height at which a body centred in this column can stand, and how far up it is free from there."""
    radius, tall = FOOTPRINTS[gait]
    height, width = blocked.shape
    if y < radius or x < radius or y >= height - radius or x >= width - radius:
        return NO_LEVEL, NO_LEVEL
    column = np.uint32(0)
    for j in range(y - radius, y + radius + 1):
        for i in range(x - radius, x + radius + 1):
            column |= blocked[j, i]
    if column == 0:
        return 0, HEIGHT
    needed = np.uint32((1 << tall) - 1)
    for z in range(HEIGHT - tall + 1):
        floor_here = z == 0 or column >> np.uint32(z - 1) & np.uint32(1) != 0
        if floor_here and column >> np.uint32(z) & needed == 0:
            top = z + tall
            while top < HEIGHT and column >> np.uint32(top) & np.uint32(1) == 0:
                top += 1
            return z, top
    return NO_LEVEL, NO_LEVEL


@kernel
def _stand(world: World, b: int, gait: int, y: int, x: int) -> bool:
    """Look again at where a body stands in this column; true if that is not as it was."""
    level, top = free_span(world.blocked[b], gait, y, x)
    toll = 0
    if level != NO_LEVEL:
        ground = world.material[b, level, y, x]
        toll = LAVA_TOLL if ground == LAVA else WATER_TOLL if ground == WATER else 0
    levels, ceilings, tolls = world.level[b, gait], world.ceiling[b, gait], world.toll[b, gait]
    changed = bool(levels[y, x] != level or ceilings[y, x] != top or tolls[y, x] != toll)
    levels[y, x], ceilings[y, x], tolls[y, x] = level, top, toll
    return changed


@kernel
def step_cost(level: Small, ceiling: Small, toll: Small, tall: int, y: int, x: int, v: int, u: int) -> int:
    """What it takes a body to get from column (y, x) to its neighbour (v, u), in tenths of a voxel."""
    here, there = int(level[y, x]), int(level[v, u])
    diagonal = y != v and x != u
    if here == NO_LEVEL:  # on top of something, or in the air: it can go down from there
        return DIAGONAL if diagonal else STRAIGHT
    if there > here:
        cost = DIAGONAL_UP if diagonal else STRAIGHT_UP
    else:
        cost = DIAGONAL if diagonal else STRAIGHT
    cost += int(toll[v, u])
    high = max(here, there)
    if there > here + STEP or min(ceiling[y, x], ceiling[v, u]) < high + tall:  # NO_LEVEL is above all
        return cost + WALL
    if diagonal and not (_passable(level, ceiling, tall, y, u, high) and _passable(level, ceiling, tall, v, x, high)):
        return cost + WALL
    return cost


@kernel
def _passable(level: Small, ceiling: Small, tall: int, y: int, x: int, high: int) -> bool:
    """Whether a body at this height may brush the column."""
    return bool(level[y, x] <= high and ceiling[y, x] >= high + tall)


# --- distances -----------------------------------------------------------------------------------------------------
@kernel
def in_zone(world: World, b: int, y: int, x: int, level: int) -> bool:
    """Whether a body that stands in the middle of this column is in the zone."""
    dx, dy, radius = x + 0.5 - world.zone[b, 0], y + 0.5 - world.zone[b, 1], world.zone[b, 2]
    return bool(level <= ZONE_LEVEL and dx * dx + dy * dy <= radius * radius)


@kernel
def relax(level: Small, ceiling: Small, toll: Small, tall: int, distance: Distances, queue: Queue, slack: int) -> None:
    """Lower distances until no waiting cell, and none it leads to, can be had for less, by more than the slack."""
    height, width = level.shape
    while queue.state[0] > 0:
        cell = pop(queue)
        v, u = cell // width, cell % width
        base = int(distance[v, u])
        for k in range(8):
            y, x = v + DY[k], u + DX[k]
            least = base + (STRAIGHT if k < 4 else DIAGONAL)
            if 0 <= y < height and 0 <= x < width and distance[y, x] > least:
                found = base + step_cost(level, ceiling, toll, tall, y, x, v, u)
                if found + slack < distance[y, x]:
                    distance[y, x] = found
                    push(queue, y * width + x, found)


@kernel
def measure_paths(world: World, b: int, queue: Queue) -> None:
    """Find out where to stand and how far the zone is, for a whole map."""
    height, width = world.blocked.shape[1:]
    for gait in range(len(FOOTPRINTS)):
        for y in range(height):
            for x in range(width):
                _stand(world, b, gait, y, x)
        measure_distance(world, b, gait, world.toll[b, gait], world.distance[b, gait], queue)
    world.changed[b, 0] = 0


@kernel
def measure_distance(world: World, b: int, gait: int, toll: Small, distance: Distances, queue: Queue) -> None:
    """Distances to the zone of one gait, with these tolls."""
    level = world.level[b, gait]
    height, width = level.shape
    for y in range(height):
        for x in range(width):
            distance[y, x] = NO_WAY
            if in_zone(world, b, y, x, level[y, x]):
                distance[y, x] = 0
                push(queue, y * width + x, 0)
    relax(level, world.ceiling[b, gait], toll, FOOTPRINTS[gait][1], distance, queue, np.int64(0))  # type: ignore[arg-type]


@kernel
def update_paths(world: World, b: int, queue: Queue, slack: int) -> None:
    """Bring places and distances up to date; a column keeps its distance if the way on differs by at most the slack."""
    changes = world.changed[b, 0]
    if changes > MOST_CHANGES:
        measure_paths(world, b, queue)
        return
    width = world.blocked.shape[2]
    for gait in range(len(FOOTPRINTS)):
        count = 0
        for i in range(1, changes + 1):
            column = world.changed[b, i]
            count = _stand_around(world, b, gait, column // width, column % width, queue, count)
        if count > 0:
            _repair(world, b, gait, queue, count, slack)
    world.changed[b, 0] = 0


@kernel
def _stand_around(world: World, b: int, gait: int, y: int, x: int, queue: Queue, count: int) -> int:
    """Look again at every column whose footprint holds this one; list those whose steps may have changed."""
    height, width = world.blocked.shape[1:]
    radius = FOOTPRINTS[gait][0]
    for j in range(max(0, y - radius), min(height, y + radius + 1)):
        for i in range(max(0, x - radius), min(width, x + radius + 1)):
            if _stand(world, b, gait, j, i):
                for v in range(max(0, j - 1), min(height, j + 2)):
                    for u in range(max(0, i - 1), min(width, i + 2)):
                        count = _list(queue, v * width + u, count)
    return count


@kernel
def _list(queue: Queue, cell: int, count: int) -> int:
    if not queue.listed[cell]:
        queue.listed[cell] = True
        queue.cells[count] = cell
        count += 1
    return count


@kernel
def _repair(world: World, b: int, gait: int, queue: Queue, count: int, slack: int) -> None:
    """Correct the distances after steps from and to the listed cells changed."""
    # First, nearest to the zone first, whatever has lost its way forgets its distance, and so does all that went by it.
    # Then all these find their distance again, from neighbours that still have one.
    level, ceiling, toll = world.level[b, gait], world.ceiling[b, gait], world.toll[b, gait]
    distance, tall = world.distance[b, gait], FOOTPRINTS[gait][1]
    height, width = level.shape
    for i in range(count):
        cell = queue.cells[i]
        if distance[cell // width, cell % width] != NO_WAY:
            push(queue, cell, int(distance[cell // width, cell % width]))
    while queue.state[0] > 0:
        cell = pop(queue)
        v, u = cell // width, cell % width
        base = int(distance[v, u])
        if _shortest(world, b, gait, v, u) <= base + slack:
            continue
        distance[v, u] = NO_WAY
        count = _list(queue, cell, count)
        for k in range(8):
            y, x = v + DY[k], u + DX[k]
            if 0 <= y < height and 0 <= x < width and base < distance[y, x] < NO_WAY:
                if base + step_cost(level, ceiling, toll, tall, y, x, v, u) <= distance[y, x] + slack:
                    push(queue, y * width + x, int(distance[y, x]))
    for i in range(count):
        cell = queue.cells[i]
        queue.listed[cell] = False
        found = _shortest(world, b, gait, cell // width, cell % width)
        if found + slack < distance[cell // width, cell % width]:
            distance[cell // width, cell % width] = found
            push(queue, cell, found)
    relax(level, ceiling, toll, tall, distance, queue, slack)


@kernel
def _shortest(world: World, b: int, gait: int, y: int, x: int) -> int:
    """The distance of a column, by those around it."""
    if in_zone(world, b, y, x, world.level[b, gait, y, x]):
        return 0
    return next_cell(world, b, gait, world.toll[b, gait], world.distance[b, gait], y, x)[1]


@kernel
def next_cell(world: World, b: int, gait: int, toll: Small, distance: Distances, y: int, x: int) -> tuple[int, int]:
    """The neighbour on the shortest way to the zone, or -1, and how long that way is."""
    level, ceiling, tall = world.level[b, gait], world.ceiling[b, gait], FOOTPRINTS[gait][1]
    height, width = level.shape
    best, chosen = NO_WAY, -1
    for k in range(8):
        v, u = y + DY[k], x + DX[k]
        if 0 <= v < height and 0 <= u < width and distance[v, u] < best:
            way = int(distance[v, u]) + step_cost(level, ceiling, toll, tall, y, x, v, u)
            if way < best:
                best, chosen = way, v * width + u
    return chosen, best


# --- asking the way ------------------------------------------------------------------------------------------------
@kernel
def _own_cell(world: World, b: int, gait: int, x: float, y: float, feet: float) -> tuple[int, float]:
    """The column a body is at for the purpose of walking, and its distance to the zone by way of its middle."""
    # A body close to a wall is nearest to a column whose middle it cannot reach, because its footprint would rest on
    # the wall. So the columns around are candidates too: those it can step or drop to.
    height, width = world.blocked.shape[1:]
    column, row = int(floor(x)), int(floor(y))
    best, chosen = 1e9, -1
    for off_path in (False, True):
        for v in range(max(0, row - NEAR), min(height, row + NEAR + 1)):
            for u in range(max(0, column - NEAR), min(width, column + NEAR + 1)):
                level = world.level[b, gait, v, u]
                if off_path or level <= feet + STEP + 0.1:
                    dx, dy = u + 0.5 - x, v + 0.5 - y
                    way = 0.1 * world.distance[b, gait, v, u] + sqrt(dx * dx + dy * dy)
                    if way < best:
                        best, chosen = way, v * width + u
        if chosen >= 0:
            break
    return chosen, best


@kernel
def distance_at(world: World, b: int, gait: int, x: float, y: float, feet: float) -> float:
    """How far a body with its feet at this height has to walk to the zone's edge, in voxels; 0 inside."""
    dx, dy, radius = x - world.zone[b, 0], y - world.zone[b, 1], world.zone[b, 2]
    if dx * dx + dy * dy <= radius * radius:
        return 0.0
    return _own_cell(world, b, gait, x, y, feet)[1]


@kernel
def waypoint(world: World, b: int, gait: int, x: float, y: float, feet: float) -> tuple[float, float]:
    """A point a few voxels ahead on the way to the zone; inside it, its centre."""
    width = world.blocked.shape[2]
    cell = _own_cell(world, b, gait, x, y, feet)[0]
    if cell < 0 or world.distance[b, gait, cell // width, cell % width] == 0:
        return world.zone[b, 0], world.zone[b, 1]
    for _ in range(LOOK_AHEAD):
        v, u = cell // width, cell % width
        onward, _ = next_cell(world, b, gait, world.toll[b, gait], world.distance[b, gait], v, u)
        if onward < 0:
            break
        cell = onward
    return cell % width + 0.5, cell // width + 0.5
