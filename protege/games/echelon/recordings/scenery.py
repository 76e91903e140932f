"""The map of a battle as a camera sees it from afar and aslant: pixels, and how near each of them is.

No perspective, so a camera is a middle and a scale, and every pixel's ray falls in the same direction.
"""

from dataclasses import dataclass
from math import cos, radians, sin
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.world.mechs import AIR, DIRT, FOLIAGE, GLASS, LAVA, WATER

Picture = npt.NDArray[np.uint8]  # (height, width, 3)
Grid = npt.NDArray[np.uint8]  # (z, y, x): materials
Values = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

TURN: Final = radians(-58.0)  # where the camera stands: around the map,
RISE: Final = radians(48.0)  # and above the ground
CAMERA: Final = np.array([cos(TURN) * cos(RISE), sin(TURN) * cos(RISE), sin(RISE)])  # towards it: east, north, up
LEAN: Final = cos(RISE) / sin(RISE)  # how far a ray moves over the ground while it falls by one
SUBSTEPS: Final = 6  # looks a layer on the way of a ray
REACH: Final = 4.0  # voxels around a change that are drawn again
TILE: Final = 5  # columns: the ground changes its shade a little from tile to tile, to give a scale
FACE_LIGHT: Final = np.array([0.62, 0.8, 1.0])  # of walls to the east or west, to the north or south, and of roofs
FLAT: Final = (AIR, DIRT, LAVA, WATER)  # on the lowest layer these are ground, not blocks
SKY: Final = (10, 13, 20)
TINTS: Final = np.array(
    [(60, 65, 73), (128, 136, 153), (255, 92, 26), (33, 92, 158), (78, 64, 56),
     (54, 48, 48), (60, 65, 73), (120, 165, 175), (77, 87, 115), (51, 117, 66)], np.float64,
)  # fmt: skip


@dataclass(frozen=True)
class View:
    """A camera that stands still."""

    x: float  # of the ground in the middle of the picture
    y: float
    across: float  # voxels from the left to the right
    width: int  # pixels
    height: int

    @property
    def scale(self) -> float:
        """Pixels a voxel."""
        return self.width / self.across

    def place(self, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
        """Where a point of the world is in the picture."""
        x, y = x - self.x, y - self.y
        right = -sin(TURN) * x + cos(TURN) * y
        up = -sin(RISE) * (cos(TURN) * x + sin(TURN) * y) + cos(RISE) * z
        return self.width / 2 + right * self.scale, self.height / 2 - up * self.scale

    def ground(self, column: Any, row: Any) -> tuple[Any, Any]:
        """The point of the ground at a place of the picture."""
        right, up = (column - self.width / 2) / self.scale, (self.height / 2 - row) / self.scale
        away = -up / sin(RISE)
        return self.x - sin(TURN) * right + cos(TURN) * away, self.y + cos(TURN) * right + sin(TURN) * away


def nearness(x: Any, y: Any, z: Any) -> Any:
    """How near a point is to the camera: larger is nearer."""
    east, north, up = CAMERA
    return east * x + north * y + up * z


def view_of(points: Values, width: int, height: int, *, margin: float, least_across: float) -> View:
    """The camera that shows nearly all of these places (points, 2) of the ground, with some voxels around them."""
    right = -sin(TURN) * points[:, 0] + cos(TURN) * points[:, 1]
    away = cos(TURN) * points[:, 0] + sin(TURN) * points[:, 1]
    (left, edge), (far, near) = ((np.percentile(side, 2), np.percentile(side, 98)) for side in (right, away))
    middle, level = (left + edge) / 2, (far + near) / 2
    tall = (near - far) * sin(RISE) + 2 * margin
    across = max(edge - left + 2 * margin, tall * width / height, least_across)
    x, y = -sin(TURN) * middle + cos(TURN) * level, cos(TURN) * middle + sin(TURN) * level
    return View(float(x), float(y), float(across), width, height)


class Scenery:
    """What one camera sees of a map: `picture`, and how `near` every pixel is."""

    def __init__(self, view: View, grid: Grid):
        """The grid stays the caller's; tell of changes by `update`."""
        self.view, self._grid = view, grid
        self.picture: Picture = np.zeros((view.height, view.width, 3), np.uint8)
        self.near = np.zeros((view.height, view.width), np.float32)
        self._draw(0, 0, view.width, view.height)

    def update(self, cells: Whole) -> None:
        """Draw again around voxels that have changed."""
        z, y, x = np.unravel_index(cells, self._grid.shape)
        columns, rows = self.view.place(x + 0.5, y + 0.5, z + 0.5)
        reach = REACH * self.view.scale
        left, top = int(max(0, columns.min() - reach)), int(max(0, rows.min() - reach))
        right, bottom = int(min(self.view.width, columns.max() + reach)), int(min(self.view.height, rows.max() + reach))
        if left < right and top < bottom:
            self._draw(left, top, right, bottom)

    def _draw(self, left: int, top: int, right: int, bottom: int) -> None:
        """Follow every pixel's ray from above to what it meets first."""
        rows, columns = np.mgrid[top:bottom, left:right]
        x, y = self.view.ground(columns.ravel() + 0.5, rows.ravel() + 0.5)
        material, places, falling = self._meet(x, y)
        colours, near = self._blocks(material, places)
        colours[falling], near[falling] = self._floor(x[falling], y[falling])
        self.picture[top:bottom, left:right] = np.clip(colours, 0, 255).reshape(*rows.shape, 3)
        self.near[top:bottom, left:right] = near.reshape(rows.shape)

    def _meet(self, ground_x: Values, ground_y: Values) -> tuple[Grid, Values, Whole]:
        """For rays by where they end on the ground: the block each meets, and where; and the rays that meet none."""
        _, deep, wide = self._grid.shape
        layers = np.flatnonzero(self._grid.any(axis=(1, 2)))
        found, places = np.zeros(len(ground_x), np.uint8), np.zeros((3, len(ground_x)))
        falling = np.arange(len(ground_x))
        for z in np.arange(layers[-1] + 1 - 0.5 / SUBSTEPS, 0, -1 / SUBSTEPS):
            x = ground_x[falling] + cos(TURN) * LEAN * z
            y = ground_y[falling] + sin(TURN) * LEAN * z
            inside = (x >= 0) & (x < wide) & (y >= 0) & (y < deep)
            material = np.zeros(len(falling), np.uint8)
            material[inside] = self._grid[int(z), y[inside].astype(np.int64), x[inside].astype(np.int64)]
            block = ~np.isin(material, FLAT) if z < 1 else material != AIR
            which = falling[block]
            found[which] = material[block]
            places[0, which], places[1, which], places[2, which] = x[block], y[block], z
            falling = falling[~block]
        return found, places, falling

    def _blocks(self, material: Grid, places: Values) -> tuple[Values, Values]:
        """Colours and nearness of blocks: by the face through which a ray came in, and how high it is."""
        # A ray is caught a little below the surface, so at the border of two blocks it seems to come in by a side:
        # these are the fine dark lines that tell blocks apart.
        cells = np.floor(places)
        ways = [(cells[n] + (side > 0) - places[n]) / side for n, side in enumerate(CAMERA)]
        light = FACE_LIGHT[np.argmin(ways, axis=0)] * (0.82 + 0.022 * cells[2]) * _tiles(cells[0], cells[1])
        return TINTS[material] * light[:, None], np.asarray(nearness(*places))

    def _floor(self, x: Values, y: Values) -> tuple[Values, Values]:
        """Colours and nearness of the ground, darker between walls; outside of the map there is none."""
        _, deep, wide = self._grid.shape
        inside = (x >= 0) & (x < wide) & (y >= 0) & (y < deep)
        column, row = np.clip(x.astype(np.int64), 0, wide - 1), np.clip(y.astype(np.int64), 0, deep - 1)
        material = self._grid[0, row, column]
        light = np.where(material == LAVA, 1.0, self._openness()[row, column] * _tiles(column, row))
        colours = np.where(inside[:, None], TINTS[material] * light[:, None], SKY)
        return colours, np.where(inside, nearness(x, y, 0.0), -np.inf)

    def _openness(self) -> Values:
        """How much light falls on each column of the ground, by how many walls are around it."""
        walls = ~np.isin(self._grid[0], (*FLAT, GLASS, FOLIAGE))
        padded, (rows, columns) = np.pad(walls.astype(np.float64), 1), walls.shape
        around = sum(padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3))
        return np.asarray(1.0 - 0.07 * np.minimum(around, 5))


def _tiles(x: Any, y: Any) -> Values:
    return np.where((x // TILE + y // TILE) % 2, 1.0, 0.955)
