"""The battlefields of many battles as arrays, and the only ways to change a voxel.

A voxel's HP, and whether it stops bodies or sight, follow from its material. `derive` works them out for a whole map;
`set_voxel` and `damage_voxel` change one voxel and keep everything in step. Coordinates are in the order z, y, x; a
column is all voxels above one another.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.echelon.world.mechs import AIR, BREAKABLE, HAZARD_HEAT, MATERIAL_HP, STOPS_BODIES, STOPS_SIGHT
from protege.kernels import kernel

HEIGHT: Final = 20  # layers
NO_LEVEL: Final = 255
NO_WAY: Final = 65535
MATTERS_TO_WALKERS: Final = STOPS_BODIES | (HAZARD_HEAT != 0.0)  # walls, water, lava
FACTS: Final = 64  # numbers
MOST_CHANGES: Final = 256  # columns remembered; with more, everything is measured anew

Size = tuple[int, int]  # columns, x and y
Materials = npt.NDArray[np.uint8]  # (z, y, x)
Columns = npt.NDArray[np.uint32]  # (y, x): bit z stands for the voxel at z
Small = npt.NDArray[np.uint8]


class World(NamedTuple):
    """Battlefields of the same size. The first axis is the battle; where two gaits differ, the second is the gait."""

    material: Small  # (battles, z, y, x)
    hp: npt.NDArray[np.int16]  # (battles, z, y, x), whole points
    blocked: Columns  # (battles, y, x): bit z is set where the voxel stops bodies and projectiles
    opaque: Columns  # (battles, y, x): where it stops sight
    level: Small  # (battles, gaits, y, x): the lowest height at which a body in this column can stand, or NO_LEVEL
    ceiling: Small  # (battles, gaits, y, x): how far up a body is free from there on
    toll: Small  # (battles, gaits, y, x): what it costs to step there besides the way itself
    distance: npt.NDArray[np.uint16]  # (battles, gaits, y, x): to the zone's edge, in tenths of a voxel
    zone: npt.NDArray[np.float64]  # (battles, 3): x, y, radius
    square: npt.NDArray[np.int64]  # (battles, teams, 4): x and y of the first column, x and y after the last
    spawn: npt.NDArray[np.float64]  # (battles, mechs, 4): centre of the body x, y, z, and yaw
    changed: npt.NDArray[np.int32]  # (battles, 1 + MOST_CHANGES): how many columns, then their y * width + x
    seed: npt.NDArray[np.uint64]  # (battles,)
    facts: npt.NDArray[np.int64]  # (battles, ...): how the map came about; world.py names the places


def empty_world(battles: int, size: Size, mechs: int) -> World:
    """Arrays for maps of x by y columns, all air."""
    x, y = size
    voxels, columns, gaits = (battles, HEIGHT, y, x), (battles, y, x), (battles, 2, y, x)
    return World(
        material=np.zeros(voxels, np.uint8), hp=np.zeros(voxels, np.int16),
        blocked=np.zeros(columns, np.uint32), opaque=np.zeros(columns, np.uint32),
        level=np.zeros(gaits, np.uint8), ceiling=np.full(gaits, HEIGHT, np.uint8),
        toll=np.zeros(gaits, np.uint8), distance=np.zeros(gaits, np.uint16),
        zone=np.zeros((battles, 3)), square=np.zeros((battles, 2, 4), np.int64), spawn=np.zeros((battles, mechs, 4)),
        changed=np.zeros((battles, 1 + MOST_CHANGES), np.int32), seed=np.zeros(battles, np.uint64),
        facts=np.zeros((battles, FACTS), np.int64),
    )  # fmt: skip


@kernel
def derive(world: World, b: int) -> None:
    """Work out HP, blocked and opaque of a whole map from its materials."""
    material, hp, blocked, opaque = world.material[b], world.hp[b], world.blocked[b], world.opaque[b]
    layers, height, width = material.shape
    blocked[:] = opaque[:] = 0
    for z in range(layers):
        for y in range(height):
            for x in range(width):
                kind = material[z, y, x]
                hp[z, y, x] = MATERIAL_HP[kind]
                blocked[y, x] |= np.uint32(STOPS_BODIES[kind]) << np.uint32(z)
                opaque[y, x] |= np.uint32(STOPS_SIGHT[kind]) << np.uint32(z)
    world.changed[b, 0] = 0


@kernel
def set_voxel(world: World, b: int, z: int, y: int, x: int, material: int) -> None:
    """Make one voxel of another material, as good as new."""
    bit, before = np.uint32(1 << z), world.material[b, z, y, x]
    blocked, opaque = world.blocked[b], world.opaque[b]
    world.material[b, z, y, x] = material
    world.hp[b, z, y, x] = MATERIAL_HP[material]
    blocked[y, x] = blocked[y, x] | bit if STOPS_BODIES[material] else blocked[y, x] & ~bit
    opaque[y, x] = opaque[y, x] | bit if STOPS_SIGHT[material] else opaque[y, x] & ~bit
    if not MATTERS_TO_WALKERS[before] and not MATTERS_TO_WALKERS[material]:
        return
    changed, column = world.changed[b], y * blocked.shape[1] + x
    count = changed[0]
    if 0 < count <= MOST_CHANGES and changed[count] == column:
        return
    if count < MOST_CHANGES:
        changed[count + 1] = column
    changed[0] = min(count + 1, MOST_CHANGES + 1)


@kernel
def damage_voxel(world: World, b: int, z: int, y: int, x: int, amount: int) -> bool:
    """Take whole points off one voxel's HP; true if that made it air."""
    if not BREAKABLE[world.material[b, z, y, x]]:
        return False
    left = world.hp[b, z, y, x] - amount
    if left <= 0:
        set_voxel(world, b, z, y, x, AIR)
        return True
    world.hp[b, z, y, x] = left
    return False
