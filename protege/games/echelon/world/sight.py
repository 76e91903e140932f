"""Rays through the voxels, and bodies among them.

A map is given as columns: (y, x) whole numbers whose bit z is set where that voxel is in the way, of sight or of bodies
and projectiles. So a ray walks the plane, column by column, and looks at heights only where a column holds anything; a
body asks for the columns under its footprint once and compares bits.
"""

from math import floor, inf, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.kernels import kernel

Columns = npt.NDArray[np.uint32]  # (y, x)

CLEAR: Final = 2.0  # of a ray that meets nothing: beyond its end, which is 1
NO_CELL: Final = -1
TOUCH: Final = 1e-6  # bodies and voxels that overlap by less than this only touch
_TOP_BIT: Final = 31


@kernel
def layers(low: int, high: int) -> int:
    """Bits low..high, both included and cut to 0..31; none if high is below low."""
    low, high = max(low, 0), min(high, _TOP_BIT)
    return (2 << high) - (1 << low) if low <= high else 0


@kernel
def highest_layer(bits: int) -> int:
    """The highest bit set, -1 for none."""
    found = -1
    for step in (16, 8, 4, 2, 1):
        if bits >> step:
            bits >>= step
            found += step
    return found + bits


@kernel
def lowest_layer(bits: int) -> int:
    """The lowest bit set; 32 for none."""
    return highest_layer(bits & -bits) if bits else _TOP_BIT + 1


@kernel
def footprint(columns: Columns, x: float, y: float, half_width: float) -> int:
    """All layers in which something is in the way of a square body, somewhere between floor and sky."""
    x0, x1 = int(floor(x - half_width + TOUCH)), int(floor(x + half_width - TOUCH))
    y0, y1 = int(floor(y - half_width + TOUCH)), int(floor(y + half_width - TOUCH))
    found = np.uint32(0)
    for row in range(y0, y1 + 1):
        for column in range(x0, x1 + 1):
            found |= columns[row, column]
    return int(found)


@kernel
def trace(
    columns: Columns, ax: float, ay: float, az: float, bx: float, by: float, bz: float, ends: bool
) -> tuple[float, int]:
    """Where the way from a to b is first blocked, as a fraction (CLEAR: nowhere), and by voxel (z * Y + y) * X + x.

    Leaving the map sideways or through the floor counts as blocked, by no voxel. Above the map nothing is in the way.
    Without `ends` the two voxels that hold the end points do not count: whoever stands in foliage looks out of it.
    """
    rows, width = columns.shape
    dx, dy, dz = bx - ax, by - ay, bz - az
    x, y = int(floor(ax)), int(floor(ay))
    start_x, start_y, end_x, end_y = x, y, int(floor(bx)), int(floor(by))
    step_x, step_y = 1 if dx > 0.0 else -1, 1 if dy > 0.0 else -1
    wait_x = abs(1.0 / dx) if dx != 0.0 else inf  # between two crossings of column borders, in fractions of the way
    wait_y = abs(1.0 / dy) if dy != 0.0 else inf
    next_x = (x + 1.0 - ax if dx > 0.0 else ax - x) * wait_x if dx != 0.0 else inf
    next_y = (y + 1.0 - ay if dy > 0.0 else ay - y) * wait_y if dy != 0.0 else inf
    entry = 0.0
    while True:
        if x < 0 or y < 0 or x >= width or y >= rows:
            return entry, NO_CELL
        leave = min(min(next_x, next_y), 1.0)
        if columns[y, x] != 0 or (dz < 0.0 and az + dz * leave < 0.0):
            from_z, to_z = az + dz * entry, az + dz * leave
            first, last = int(floor(from_z)), int(floor(to_z))
            met = int(columns[y, x]) & layers(min(first, last), max(first, last))
            if not ends:
                if x == start_x and y == start_y:
                    met &= ~layers(int(floor(az)), int(floor(az)))
                if x == end_x and y == end_y:
                    met &= ~layers(int(floor(bz)), int(floor(bz)))
            if met != 0:
                layer = lowest_layer(met) if dz >= 0.0 else highest_layer(met)
                fraction = entry
                if layer != first:
                    fraction = ((layer if dz >= 0.0 else layer + 1) - az) / dz
                return fraction, (layer * rows + y) * width + x
            if to_z < 0.0:
                return -az / dz, NO_CELL
        if leave >= 1.0:
            return CLEAR, NO_CELL
        if next_x < next_y:
            x += step_x
            next_x += wait_x
        else:
            y += step_y
            next_y += wait_y
        entry = leave


@kernel
def through_smoke(clouds: Any, count: int, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Whether the way from a to b touches one of the first `count` clouds."""
    dx, dy, dz = bx - ax, by - ay, bz - az
    length = dx * dx + dy * dy + dz * dz
    scale, far = 1.0 / length if length > 0.0 else 0.0, sqrt(length) + TOUCH
    for c in range(count):
        cloud = clouds[c]
        px, py, pz = cloud.x - ax, cloud.y - ay, cloud.z - az
        if px * px + py * py + pz * pz > (far + cloud.radius) * (far + cloud.radius):
            continue  # out of reach of the whole way: the usual case, and cheap to find
        fraction = min(max((px * dx + py * dy + pz * dz) * scale, 0.0), 1.0)
        px, py, pz = px - fraction * dx, py - fraction * dy, pz - fraction * dz
        if px * px + py * py + pz * pz < cloud.radius * cloud.radius:
            return True
    return False


@kernel
def in_sight(opaque: Columns, ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Whether a and b see each other. Traced from the smaller x (then y, then z), so both get the same answer."""
    if bx < ax or (bx == ax and (by < ay or (by == ay and bz < az))):
        ax, ay, az, bx, by, bz = bx, by, bz, ax, ay, az
    fraction, _ = trace(opaque, ax, ay, az, bx, by, bz, False)
    return fraction == CLEAR
