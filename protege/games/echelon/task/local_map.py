"""The ground around a mech as a small picture: walls and steps, cover, hazards, scars, the zone, smoke.

The picture turns with the mech: up is forward. Cells are points `CELL` voxels apart, looked at from the mech's own
height, so that a roof overhead is no wall and a floor below is none either.
"""

from math import floor, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules.battle import Battle, Record
from protege.games.echelon.rules.sensors import HEAD
from protege.games.echelon.task import features as at
from protege.games.echelon.task.displays import Keys, in_frame
from protege.games.echelon.world.mechs import DEBRIS
from protege.games.echelon.world.paths import LAVA_TOLL
from protege.games.echelon.world.sight import TOUCH, layers
from protege.games.echelon.world.voxels import HEIGHT, World
from protege.kernels import kernel

Picture = npt.NDArray[np.int8]  # (channels, cells, cells)

MIDDLE: Final = at.CELLS // 2


class Ground(NamedTuple):
    """The maps as pictures are taken from them: a column is one number, y * width + x."""

    blocked: npt.NDArray[np.uint32]  # (battles, columns)
    opaque: npt.NDArray[np.uint32]  # (battles, columns)
    toll: npt.NDArray[np.uint8]  # (battles, gaits, columns)
    material: npt.NDArray[np.uint8]  # (battles, layers, columns)
    scars: npt.NDArray[np.uint8]  # (battles, columns): whether a voxel has changed since the battle began
    size: tuple[int, int]  # width and height


def ground_of(world: World) -> Ground:
    """The same arrays, seen as lists of columns, and no scars."""
    arrays: tuple[npt.NDArray[Any], ...] = (world.blocked, world.opaque, world.toll, world.material)
    blocked, opaque, toll, material = (array.reshape(*array.shape[:-2], -1) for array in arrays)
    size = world.blocked.shape[2], world.blocked.shape[1]
    return Ground(blocked, opaque, toll, material, scars=np.zeros(blocked.shape, np.uint8), size=size)


@kernel
def survey(mech: Record, gait: int, ground: Ground, b: int, out: Picture) -> None:
    """Walls, steps, cover, hazards and scars, cell by cell, seen from the mech's own height. Cells are 0 before."""
    blocked, opaque, toll, scars = ground.blocked[b], ground.opaque[b], ground.toll[b, gait], ground.scars[b]
    columns, rows = ground.size
    foot, tall = mech.z - mech.half_height, 2.0 * mech.half_height
    low, high = int(floor(foot + TOUCH)), int(floor(foot + tall - TOUCH))
    body, step, over = layers(low + 1, high), layers(low, low), layers(high + 1, high + 1)
    centre, head = np.uint32(int(mech.z)), np.uint32(min(int(mech.z + HEAD * mech.half_height), HEIGHT - 1))
    ahead_x, ahead_y = at.CELL * mech.cos, at.CELL * mech.sin
    for r in range(at.CELLS):
        first_x = mech.x + (MIDDLE - r) * ahead_x - MIDDLE * ahead_y
        first_y = mech.y + (MIDDLE - r) * ahead_y + MIDDLE * ahead_x
        for c in range(at.CELLS):
            x, y = first_x + c * ahead_y, first_y - c * ahead_x
            if x < 0.0 or y < 0.0 or x >= columns or y >= rows:
                out[at.WALL, r, c] = out[at.COVER, r, c] = 4
                continue
            cell = np.uint64(int(y) * columns + int(x))  # unsigned: no check for an index from the end
            bits, hidden = int(blocked[cell]), opaque[cell]
            wall = 0
            if bits != 0:
                if bits & body:
                    wall = 4
                elif bits & step:
                    wall = 4 if bits & over else 2
                out[at.WALL, r, c] = wall
                under = low if wall == 2 else low - 1  # the layer it would stand on, after a step up or without
                if wall < 4 and under >= 0 and ground.material[b, under, cell] == DEBRIS:
                    out[at.HAZARD, r, c] = 1
            if hidden != 0:
                out[at.COVER, r, c] = 2 * (hidden >> centre & np.uint32(1)) + 2 * (hidden >> head & np.uint32(1))
            if toll[cell] != 0:
                out[at.HAZARD, r, c] = 4 if toll[cell] == LAVA_TOLL else -2
            if scars[cell] != 0:
                out[at.SCAR, r, c] = 4


@kernel
def stamp(channel: npt.NDArray[np.int8], forward: float, left: float, radius: float) -> None:
    """Fill the cells whose middles lie in a circle."""
    first_row = max(int(floor(MIDDLE - (forward + radius) / at.CELL)), 0)
    last_row = min(int(floor(MIDDLE - (forward - radius) / at.CELL)) + 1, at.CELLS - 1)
    first_column = max(int(floor(MIDDLE - (left + radius) / at.CELL)), 0)
    last_column = min(int(floor(MIDDLE - (left - radius) / at.CELL)) + 1, at.CELLS - 1)
    for r in range(first_row, last_row + 1):
        for c in range(first_column, last_column + 1):
            df, dl = (MIDDLE - r) * at.CELL - forward, (MIDDLE - c) * at.CELL - left
            if df * df + dl * dl < radius * radius:
                channel[r, c] = 4


@kernel
def draw_circles(battle: Battle, zone: Keys, mech: Record, out: Picture) -> None:
    """The zone, and smoke at the mech's height, into a picture that shows neither."""
    forward, left = in_frame(mech, zone[0] - mech.x, zone[1] - mech.y)
    stamp(out[at.ZONE], forward, left, zone[2])
    for n in range(battle.cloud_count):
        cloud = battle.clouds[n]
        dz = cloud.z - mech.z
        if abs(dz) < cloud.radius:
            forward, left = in_frame(mech, cloud.x - mech.x, cloud.y - mech.y)
            stamp(out[at.SMOKE_CHANNEL], forward, left, sqrt(cloud.radius * cloud.radius - dz * dz))
