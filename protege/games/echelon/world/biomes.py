"""Sixteen kinds of landscape, each a brush that fills a rectangle of empty ground.

A brush draws from the terrain stream alone, so a landscape depends on the seed, the rectangle and nothing else. All
measures are in voxels; ranges include both ends. Only what is done to many voxels or many times over is compiled.
"""

from typing import Final, NamedTuple

from protege.games.echelon.world.mechs import AIR, FOLIAGE, GLASS, LAVA, REINFORCED, SOLID, WATER
from protege.games.echelon.world.portable_math import Stream, below, between, uniform
from protege.games.echelon.world.voxels import HEIGHT, Materials
from protege.kernels import kernel

# Cosines of 0, 10, ... 90 degrees in thousandths: a ring of pillars needs no more.
COSINES: Final = (1000, 985, 940, 866, 766, 643, 500, 342, 174, 0)


class Area(NamedTuple):
    """A rectangle of columns; x1 and y1 lie outside."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def columns(self) -> int:
        return (self.x1 - self.x0) * (self.y1 - self.y0)


@kernel
def box(
    grid: Materials, area: Area, x: int, y: int, z: int, dx: int, dy: int, dz: int, material: int, in_air: bool = False
) -> None:
    """Fill a box, or only what is air in it, as far as it lies in the area."""
    for k in range(max(0, z), min(HEIGHT, z + dz)):
        for j in range(max(area.y0, y), min(area.y1, y + dy)):
            for i in range(max(area.x0, x), min(area.x1, x + dx)):
                if not in_air or grid[k, j, i] == AIR:
                    grid[k, j, i] = material


@kernel
def bare(grid: Materials, area: Area, x: int, y: int, dx: int, dy: int) -> bool:
    """Whether nothing stands on these columns, as far as they lie in the area."""
    for j in range(max(area.y0, y), min(area.y1, y + dy)):
        for i in range(max(area.x0, x), min(area.x1, x + dx)):
            if grid[0, j, i] != AIR:
                return False
    return True


@kernel
def place(rng: Stream, low: int, high: int, size: int) -> int:
    """Where something of this size may begin between low and high."""
    return low + below(rng, max(1, high - low - size + 1))


@kernel
def tunnel(grid: Materials, area: Area, xa: int, ya: int, xb: int, yb: int, z: int, radius: int) -> None:
    """Clear a round tube from a to b."""
    steps = max(1, max(abs(xb - xa), abs(yb - ya)))
    for s in range(steps + 1):
        x, y = xa + (xb - xa) * s // steps, ya + (yb - ya) * s // steps
        for k in range(max(0, z - radius), min(HEIGHT, z + radius + 1)):
            for j in range(max(area.y0, y - radius), min(area.y1, y + radius + 1)):
                for i in range(max(area.x0, x - radius), min(area.x1, x + radius + 1)):
                    if (k - z) ** 2 + (j - y) ** 2 + (i - x) ** 2 <= radius * radius + radius:
                        grid[k, j, i] = AIR


@kernel
def rocks(grid: Materials, area: Area, rng: Stream, count: int, least: int, most: int, low: int, high: int) -> None:
    """Boulders: their sides from least to most, their heights from low to high."""
    for _ in range(count):
        side, tall = between(rng, least, most), between(rng, low, high)
        x, y = place(rng, area.x0, area.x1, side), place(rng, area.y0, area.y1, side)
        box(grid, area, x, y, 0, side, side, tall, SOLID)


@kernel
def trees(grid: Materials, area: Area, rng: Stream, count: int, thickest: int, low: int, wider: int, deep: int) -> None:
    """Trunks up to so thick, from low to 7 high; from height 3 on a crown so much wider on each side, and so deep."""
    for _ in range(count):
        thick, tall = between(rng, 1, thickest), between(rng, low, 7)
        x, y = place(rng, area.x0, area.x1, thick), place(rng, area.y0, area.y1, thick)
        box(grid, area, x, y, 0, thick, thick, tall, SOLID)
        box(grid, area, x - wider, y - wider, 3, thick + 2 * wider, thick + 2 * wider, deep, FOLIAGE, True)


def somewhere(area: Area, rng: Stream, dx: int, dy: int) -> tuple[int, int]:
    """Where a rectangle of this size may begin."""
    return place(rng, area.x0, area.x1, dx), place(rng, area.y0, area.y1, dy)


def stairs(grid: Materials, area: Area, x: int, y: int, toward: tuple[int, int], top: int, across: int) -> None:
    """Steps that go down from a height of `top` at (x, y), one voxel each, along an axis."""
    dx, dy = (1, across) if toward[0] else (across, 1)
    for s in range(top):
        box(grid, area, x + s * toward[0], y + s * toward[1], 0, dx, dy, top - s, SOLID)


def urban(grid: Materials, area: Area, rng: Stream) -> None:
    """Blocks of houses around courtyards with a glass floor, streets between them."""
    built = 0.0
    for _ in range(100):
        dx, dy, tall = between(rng, 6, 10), between(rng, 6, 10), between(rng, 4, 8)
        x, y = (corner & ~1 for corner in somewhere(area, rng, dx, dy))
        if bare(grid, area, x - 2, y - 2, dx + 4, dy + 4):
            box(grid, area, x, y, 0, dx, dy, tall, SOLID)
            box(grid, area, x + 2, y + 2, 0, dx - 4, dy - 4, tall, AIR)
            box(grid, area, x + 2, y + 2, 0, dx - 4, dy - 4, 1, GLASS)
            built += 0.75 * dx * dy
            if built >= 0.35 * area.columns:
                break


def refinery(grid: Materials, area: Area, rng: Stream) -> None:
    """Tanks, and walls of pipes."""
    built = 0
    for _ in range(200):
        dx, dy, tall = between(rng, 3, 6), between(rng, 3, 6), between(rng, 4, 11)
        built += _tank(grid, area, rng, dx, dy, tall)
        if uniform(rng) < 0.3:
            thin, long, tall = between(rng, 1, 2), between(rng, 8, 15), between(rng, 2, 4)
            dx, dy = (long, thin) if below(rng, 2) == 0 else (thin, long)
            built += _tank(grid, area, rng, dx, dy, tall)
        if built >= 0.25 * area.columns:
            break


def _tank(grid: Materials, area: Area, rng: Stream, dx: int, dy: int, tall: int) -> int:
    """A block somewhere, if nothing stands there; the columns it takes."""
    x, y = somewhere(area, rng, dx, dy)
    if not bare(grid, area, x, y, dx, dy):
        return 0
    box(grid, area, x, y, 0, dx, dy, tall, SOLID)
    return dx * dy


def civic(grid: Materials, area: Area, rng: Stream) -> None:
    """Large buildings, each on a plaza one step high."""
    built = 0
    for _ in range(50):
        dx, dy, tall = between(rng, 8, 15), between(rng, 8, 15), between(rng, 6, 9)
        x, y = somewhere(area, rng, dx, dy)
        if bare(grid, area, x - 2, y - 2, dx + 4, dy + 4):
            box(grid, area, x - 2, y - 2, 0, dx + 4, dy + 4, 1, SOLID)
            box(grid, area, x, y, 0, dx, dy, tall, SOLID)
            built += dx * dy
            if built >= 0.20 * area.columns:
                break


def spire(grid: Materials, area: Area, rng: Stream) -> None:
    """A tower with tunnels through its foot, and platforms around it with stairs."""
    dx, dy = (area.x1 - area.x0) // 3, (area.y1 - area.y0) // 3
    x, y = area.x0 + dx, area.y0 + dy
    for _ in range(between(rng, 4, 7)):
        wide, deep, z = between(rng, 8, 12), between(rng, 8, 12), 5 * between(rng, 1, 3)
        i, j = somewhere(area, rng, wide, deep)
        box(grid, area, i, j, z, wide, deep, 1, SOLID)
        box(grid, area, i, j, z + 1, wide, deep, 4, AIR)
        step_x, step_y = place(rng, i, i + wide, 3), place(rng, j, j + deep, 3)
        ends = ((i + wide, step_y), (i - 1, step_y), (step_x, j + deep), (step_x, j - 1))
        side = below(rng, 4)
        stairs(grid, area, *ends[side], ((1, 0), (-1, 0), (0, 1), (0, -1))[side], z + 1, 3)
    box(grid, area, x, y, 0, dx, dy, HEIGHT - 2, SOLID)
    for _ in range(between(rng, 2, 3)):
        if below(rng, 2) == 0:
            j = y + between(rng, 2, max(2, dy - 3))
            tunnel(grid, area, area.x0, j, area.x1 - 1, j, 2, 2)
        else:
            i = x + between(rng, 2, max(2, dx - 3))
            tunnel(grid, area, i, area.y0, i, area.y1 - 1, 2, 2)


def outpost(grid: Materials, area: Area, rng: Stream) -> None:
    """A bunker with one door, in the middle of a fence."""
    x, y = (area.x0 + area.x1) // 2 - 6, (area.y0 + area.y1) // 2 - 6
    box(grid, area, x - 8, y - 8, 0, 28, 28, 1, SOLID)
    box(grid, area, x - 7, y - 7, 0, 26, 26, 1, AIR)
    box(grid, area, x, y, 0, 12, 12, 6, REINFORCED)
    box(grid, area, x + 2, y + 2, 0, 8, 8, 5, SOLID)
    side, shift = below(rng, 4), between(rng, 2, 7)
    door_x, door_y = ((0, shift), (8, shift), (shift, 0), (shift, 8))[side]
    dx, dy = (4, 3) if side < 2 else (3, 4)
    box(grid, area, x + door_x, y + door_y, 0, dx, dy, 3, AIR)


def hydroponic(grid: Materials, area: Area, rng: Stream) -> None:
    """Glass houses with rows of plants and two strong corners."""
    for _ in range(between(rng, 2, 3)):
        side, tall = between(rng, 10, 15), between(rng, 5, 7)
        x, y = somewhere(area, rng, side, side)
        box(grid, area, x, y, 0, side, side, tall, GLASS)
        for j in range(y + 1, y + side - 1, 3):
            box(grid, area, x + 1, j, 0, side - 2, 1, 2, FOLIAGE)
        box(grid, area, x, y, 0, 1, 1, tall, REINFORCED)
        box(grid, area, x + side - 1, y + side - 1, 0, 1, 1, tall, REINFORCED)


def servers(grid: Materials, area: Area, rng: Stream) -> None:
    """Racks in a grid, some joined overhead by glass."""
    for y in range(area.y0 + 1, area.y1 - 1, 5):
        for x in range(area.x0 + 1, area.x1 - 1, 5):
            if uniform(rng) < 0.7:
                box(grid, area, x, y, 0, 2, 2, between(rng, 6, 11), REINFORCED)
                if below(rng, 2) == 0:
                    box(grid, area, x + 2, y, 4, 5, 1, 1, GLASS, in_air=True)


def relay(grid: Materials, area: Area, rng: Stream) -> None:
    """A ring of pillars under high bridges."""
    radius = between(rng, 8, 11)
    x, y = (area.x0 + area.x1) // 2, (area.y0 + area.y1) // 2
    for part in range(9):
        along, aside = (COSINES[part] * radius + 500) // 1000, (COSINES[9 - part] * radius + 500) // 1000
        for dx, dy in ((along, aside), (-aside, along), (-along, -aside), (aside, -along)):
            box(grid, area, x + dx - 1, y + dy - 1, 0, 3, 3, between(rng, 8, 14), REINFORCED)
    for _ in range(between(rng, 2, 3)):
        dx, dy = (10, 2) if below(rng, 2) == 0 else (2, 10)
        i, j = somewhere(area, rng, dx, dy)
        box(grid, area, i, j, between(rng, 10, 14), dx, dy, 1, SOLID, in_air=True)


def barrens(grid: Materials, area: Area, rng: Stream) -> None:
    rocks(grid, area, rng, area.columns * 2 // 100, 2, 4, 1, 2)


def forest(grid: Materials, area: Area, rng: Stream) -> None:
    """Trees that hide whoever stands under them, and some rocks."""
    trees(grid, area, rng, area.columns * 5 // 100, 2, 3, 1, 2)
    rocks(grid, area, rng, area.columns // 100, 3, 5, 2, 3)


def jungle(grid: Materials, area: Area, rng: Stream) -> None:
    """Thin trunks everywhere under one roof of leaves."""
    trees(grid, area, rng, area.columns * 15 // 100, 1, 4, 2, 3)


def canal(grid: Materials, area: Area, rng: Stream) -> None:
    """Water from side to side, blocks along it, bridges with stairs over it."""
    along_x, wide = below(rng, 2) == 0, between(rng, 8, 13)
    bank_x, bank_y = place(rng, area.x0 + 2, area.x1 - 2, wide), place(rng, area.y0 + 2, area.y1 - 2, wide)
    dx, dy = area.x1 - area.x0, area.y1 - area.y0
    box(grid, area, *((area.x0, bank_y, 0, dx, wide) if along_x else (bank_x, area.y0, 0, wide, dy)), 1, WATER)
    for _ in range(between(rng, 10, 19)):
        tall = between(rng, 4, 9)
        any(_tank(grid, area, rng, 4, 4, tall) for _ in range(10))  # until one finds room
    for _ in range(between(rng, 2, 3)):
        z = between(rng, 4, 7)
        x, y = somewhere(area, rng, 4, 4)
        if along_x:
            box(grid, area, x, bank_y - 1, z, 4, wide + 2, 1, SOLID)
            stairs(grid, area, x, bank_y - 2, (0, -1), z + 1, 4)
            stairs(grid, area, x, bank_y + wide + 1, (0, 1), z + 1, 4)
        else:
            box(grid, area, bank_x - 1, y, z, wide + 2, 4, 1, SOLID)
            stairs(grid, area, bank_x - 2, y, (-1, 0), z + 1, 4)
            stairs(grid, area, bank_x + wide + 1, y, (1, 0), z + 1, 4)


def geo_front(grid: Materials, area: Area, rng: Stream) -> None:
    """Rock with tunnels in it, some of them with lava."""
    dx, dy = area.x1 - area.x0, area.y1 - area.y0
    box(grid, area, area.x0, area.y0, 0, dx, dy, between(rng, 10, HEIGHT - 3), SOLID)
    x, y = area.x0 + dx // 3 + below(rng, dx // 3), area.y0 + dy // 3 + below(rng, dy // 3)
    tunnel(grid, area, area.x0, y, area.x1 - 1, y, 2, 3)
    tunnel(grid, area, x, area.y0, x, area.y1 - 1, 2, 3)
    for _ in range(between(rng, 5, 9)):
        (xa, ya), (xb, yb) = somewhere(area, rng, 1, 1), somewhere(area, rng, 1, 1)
        if below(rng, 2) == 0:
            tunnel(grid, area, area.x0, ya, area.x1 - 1, yb, 2, 2)
        else:
            tunnel(grid, area, xa, area.y0, xb, area.y1 - 1, 2, 2)
    for _ in range(between(rng, 3, 5)):
        x, y = somewhere(area, rng, 4, 4)
        box(grid, area, x, y, 0, 4, 4, 4, AIR)
        box(grid, area, x, y, 0, 4, 4, 1, LAVA)


def glass_desert(grid: Materials, area: Area, rng: Stream) -> None:
    """Low glass one can step on, and pillars of glass."""
    for _ in range(between(rng, 5, 9)):
        dx, dy = between(rng, 1, 8), between(rng, 1, 8)
        x, y = somewhere(area, rng, dx, dy)
        box(grid, area, x, y, 0, dx, dy, 1, GLASS)
    for _ in range(between(rng, 10, 19)):
        side, tall = between(rng, 2, 5), between(rng, 5, 11)
        x, y = somewhere(area, rng, side, side)
        box(grid, area, x, y, 0, side, side, tall, GLASS)


def mining_pit(grid: Materials, area: Area, rng: Stream) -> None:
    """A hill ten high, hollowed out in terraces, with a road over its rim and down to the floor."""
    dx, dy = area.x1 - area.x0, area.y1 - area.y0
    box(grid, area, area.x0, area.y0, 0, dx, dy, 10, SOLID)
    for ring in range(1, 6):
        box(grid, area, area.x0 + 4 * ring, area.y0 + 4 * ring, 10 - 2 * ring, dx - 8 * ring, dy - 8 * ring, 2, AIR)
    x, y = (area.x0 + area.x1) // 2, (area.y0 + area.y1) // 2
    box(grid, area, x - 4, y - 4, 0, 9, 9, HEIGHT, AIR)
    side = below(rng, 4)
    length = (x - area.x0, area.x1 - 1 - x, y - area.y0, area.y1 - 1 - y)[side] - 4
    for s in range(length):
        i, j = ((area.x0 + s, y - 2), (area.x1 - 1 - s, y - 2), (x - 2, area.y0 + s), (x - 2, area.y1 - 1 - s))[side]
        across_x, across_y = (1, 4) if side < 2 else (4, 1)
        box(grid, area, i, j, 0, across_x, across_y, HEIGHT, AIR)
        box(grid, area, i, j, 0, across_x, across_y, min(s + 1, length - 1 - s, max(0, 10 - s // 2)), SOLID)


def ridge(grid: Materials, area: Area, rng: Stream) -> None:
    """A long ridge, and lava on and beside it."""
    along_x = below(rng, 2) == 0
    x, y = somewhere(area, rng, 8, 8)
    wide, deep = area.x1 - area.x0, area.y1 - area.y0
    box(grid, area, *((area.x0, y, 0, wide, 8) if along_x else (x, area.y0, 0, 8, deep)), 4, SOLID)
    dx, dy = (12, 3) if along_x else (3, 12)
    for _ in range(between(rng, 2, 3)):
        x, y = somewhere(area, rng, dx, dy)
        for j in range(y, min(area.y1, y + dy)):
            for i in range(x, min(area.x1, x + dx)):
                grid[4 if grid[0, j, i] == SOLID else 0, j, i] = LAVA


BRUSHES: Final = {
    "urban residential": urban, "industrial refinery": refinery, "civic government": civic, "forest park": forest,
    "barrens": barrens, "arcology spire": spire, "sunken canal": canal, "geo front": geo_front,
    "glass desert": glass_desert, "command outpost": outpost, "dense jungle": jungle, "mining pit": mining_pit,
    "volcanic ridge": ridge, "hydroponic lab": hydroponic, "server farm": servers, "orbital relay": relay,
}  # fmt: skip
BIOMES: Final = tuple(BRUSHES)
