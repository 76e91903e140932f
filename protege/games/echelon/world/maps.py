"""Battlefields from seeds: landscape, spawn squares, zone, corridors, validation, places to start, and the recipe.

`generate` writes maps of many battles into arrays; a map depends on its seed, its size and its roster alone, and comes
out the same on every machine. A recipe is what it takes to make the same map again, with a hash of the result. For
practice there are an open field, a field with a wall, and a few maps over and over; all are `MapMaker`s.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from math import atan2, ceil, floor
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.world import portable_math, routes
from protege.games.echelon.world.biomes import BIOMES, BRUSHES, Area
from protege.games.echelon.world.mechs import AIR, BLUE, CHASSIS, DIRT, REINFORCED, STOPS_BODIES, Members, find_roster
from protege.games.echelon.world.paths import measure_paths, path_queue
from protege.games.echelon.world.portable_math import below, between, start_stream, uniform
from protege.games.echelon.world.routes import Workshop, carve_corridors, finish, validate, workshop
from protege.games.echelon.world.voxels import HEIGHT, Size, World, derive, empty_world
from protege.kernels import announce_compilation

GENERATOR: Final = "protege echelon"
VERSION: Final = 1  # goes up whenever a seed gives another map
SCHEMA: Final = 2
SMALLEST, LARGEST = 40, 200  # columns on a side
STANDARD: Final = (100, 100)

PITCH: Final = 5.0  # between the middles of two mechs that start: room for a heavy, the jitter and more
EDGE: Final = 6.0  # from a team's line on a practice field to the edge of the map
WALL_HEIGHT: Final = 4  # as high as a heavy: nobody on the ground sees over it; missiles clear it from nearby
JITTER: Final = 0.25
TURN: Final = 0.15  # radians by which the first heading may miss the zone
MARGIN: Final = 2.0  # between the map's corner and the first mech
WIDEST: Final = max(chassis.width for chassis in CHASSIS)
COLUMNS: Final = 5  # of a formation
SQUARE: Final = 25  # least side of a spawn square
APART: Final = 6  # columns between the two squares at least, along each axis

ZONE_RADIUS: Final = 7.5
ZONE_SAMPLES: Final = 256
ZONE_SAMPLES_APART: Final = 200  # of these, so many must not touch a spawn square
ZONE_BUILDS: Final = 8
UNFAIR: Final = 100  # thousandths by which the longer walk to the zone may exceed the shorter
PROMISING: Final = 0.06  # the same for the estimate that decides whether to try a place
HALF_DIAGONAL: Final = 0.7071067811865476

Seeds = Sequence[int] | npt.NDArray[np.uint64]
TRANSFORMS: Final = ("identity", "flip x", "flip y", "flip both")
CORNERS: Final = ("low x, low y", "high x, low y", "low x, high y", "high x, high y")


# --- landscape -----------------------------------------------------------------------------------------------------
def quadrant(world: World, b: int, number: int) -> Area:
    """One of the four parts of a map: bit 0 of the number is high x, bit 1 high y."""
    height, width = world.blocked.shape[1:]
    x, y = (int(split) for split in world.facts[b, routes.SPLIT : routes.SPLIT + 2])
    return Area(x if number & 1 else 0, y if number & 2 else 0, width if number & 1 else x, height if number & 2 else y)


def paint_landscape(world: World, b: int, shop: Workshop) -> None:
    """Four landscapes around a split near the middle, then flipped one of four ways."""
    rng, facts = shop.rng, world.facts[b]
    height, width = world.blocked.shape[1:]
    start_stream(rng, world.seed[b], portable_math.TERRAIN)
    facts[routes.SPLIT] = width // 2 + between(rng, -(width // 10), width // 10)
    facts[routes.SPLIT + 1] = height // 2 + between(rng, -(height // 10), height // 10)
    shop.draft[:] = AIR
    left, chosen = list(range(len(BIOMES))), []
    for number in range(4):
        chosen.append(left.pop(below(rng, len(left))))
        BRUSHES[BIOMES[chosen[number]]](shop.draft, quadrant(world, b, number), rng)
    start_stream(rng, world.seed[b], portable_math.VARIANT)
    corner, transform = below(rng, 4), below(rng, 4)
    world.material[b] = shop.draft[:, :: -1 if transform & 2 else 1, :: -1 if transform & 1 else 1]
    facts[routes.CORNER], facts[routes.TRANSFORM] = corner ^ transform, transform
    facts[routes.BIOME : routes.BIOME + 4] = [chosen[number ^ transform] for number in range(4)]
    if transform & 1:
        facts[routes.SPLIT] = width - facts[routes.SPLIT]
    if transform & 2:
        facts[routes.SPLIT + 1] = height - facts[routes.SPLIT + 1]


def clear_squares(world: World, b: int, side: int) -> None:
    """Blue's square in its corner, red's in the opposite one; nothing stands on either."""
    height, width = world.blocked.shape[1:]
    for team in range(2):
        corner = world.facts[b, routes.CORNER] ^ (3 * team)
        x, y = width - side if corner & 1 else 0, height - side if corner & 2 else 0
        world.square[b, team] = x, y, x + side, y + side
        world.material[b, :, y : y + side, x : x + side] = AIR


# --- zone ----------------------------------------------------------------------------------------------------------
Zone = tuple[float, float, float]  # x, y, radius


def touches(zone: Zone, square: Sequence[int]) -> bool:
    """Whether the zone's circle reaches into a spawn square."""
    x, y, radius = zone
    x0, y0, x1, y1 = square
    dx, dy, reach = max(0.0, x0 - x, x - x1), max(0.0, y0 - y, y - y1), radius + HALF_DIAGONAL
    return dx * dx + dy * dy < reach * reach


def estimated_walk(zone: Zone, x: int, y: int) -> float:
    """The way from a column to the zone's edge if nothing stood in between."""
    dx, dy = abs(x + 0.5 - zone[0]), abs(y + 0.5 - zone[1])
    return max(dx, dy) + 0.4 * min(dx, dy) - zone[2]


def drawn_together(x: int, y: int, blue: tuple[int, int], red: tuple[int, int]) -> tuple[int, int]:
    """The column nearest to (x, y) but ten times closer to the line on which both starts are equally far."""
    dx, dy = red[0] - blue[0], red[1] - blue[1]
    off = (dx * (2 * x - blue[0] - red[0]) + dy * (2 * y - blue[1] - red[1])) / (2 * (dx * dx + dy * dy))
    return floor(x + 0.5 - 0.9 * off * dx), floor(y + 0.5 - 0.9 * off * dy)


def draw_zone(world: World, b: int, shop: Workshop) -> Iterator[Zone]:
    """Places and radii for the zone, drawn one after the other; only those that may do."""
    rng, squares = shop.rng, world.square[b].tolist()
    height, width = world.blocked.shape[1:]
    parts = [quadrant(world, b, number) for number in range(4)]
    starts = [routes.centre_of(world, b, team) for team in range(2)]
    for sample in range(ZONE_SAMPLES):
        part = parts[below(rng, 4)]
        x, y = between(rng, part.x0, part.x1 - 1), between(rng, part.y0, part.y1 - 1)
        x, y = drawn_together(x, y, *starts)
        zone = (x + 0.5, y + 0.5, ZONE_RADIUS * (0.5 + uniform(rng)))
        edge = ceil(zone[2] + 2.0)
        if not (edge <= x < width - edge and edge <= y < height - edge):
            continue
        shorter, longer = sorted(estimated_walk(zone, *start) for start in starts)
        if longer - shorter > PROMISING * shorter:
            continue
        if sample < ZONE_SAMPLES_APART and any(touches(zone, square) for square in squares):
            continue
        if not STOPS_BODIES[shop.draft[0, y - 1 : y + 2, x - 1 : x + 2]].any():
            yield zone


def build(world: World, b: int, zone: Zone, shop: Workshop, mirrored: bool) -> bool:
    """Put zone and corridors into the landscape of the draft; false if the map is not sound or not fair."""
    grid, (height, width) = world.material[b], world.blocked.shape[1:]
    grid[:] = shop.draft
    world.facts[b, routes.DIGS :] = 0
    world.zone[b] = x, y, radius = zone
    dx, dy, reach = np.arange(width) + 0.5 - x, np.arange(height) + 0.5 - y, radius + HALF_DIAGONAL
    grid[:, dx * dx + (dy * dy)[:, None] <= reach * reach] = AIR
    carve_corridors(world, b, shop.rng)
    if mirrored:
        columns = grid.reshape(HEIGHT, -1)
        half = columns.shape[1] // 2
        columns[:, columns.shape[1] - half :] = columns[:, half - 1 :: -1]
    finish(world, b, shop)
    if not validate(world, b, shop):
        return False
    starts = [routes.centre_of(world, b, team) for team in range(2)]
    walks = [sorted(int(distance[y, x]) for x, y in starts) for distance in world.distance[b]]  # by gait
    return all(1000 * (longer - shorter) <= UNFAIR * shorter for shorter, longer in walks)


def place_zone(world: World, b: int, shop: Workshop) -> bool:
    """Find a zone that both teams reach equally well, or turn the map into one that is fair by symmetry."""
    shop.draft[:] = world.material[b]
    start_stream(shop.rng, world.seed[b], portable_math.LAYOUT)
    facts = world.facts[b]
    for tried, zone in enumerate(islice(draw_zone(world, b, shop), ZONE_BUILDS), 1):
        facts[routes.ZONES_TRIED] = tried
        if build(world, b, zone, shop, mirrored=False):
            return True
    height, width = world.blocked.shape[1:]
    facts[routes.MIRRORED] = 1
    return build(world, b, (width / 2, height / 2, ZONE_RADIUS / 2), shop, mirrored=True)


# --- places to start -----------------------------------------------------------------------------------------------
def place_mechs(world: World, b: int, members: Members, columns: int, shop: Workshop) -> None:
    """Line both teams up in their corners, roster order from the corner on, roughly facing the zone."""
    height, width = world.blocked.shape[1:]
    rng, corner = shop.rng, int(world.facts[b, routes.CORNER])
    zone_x, zone_y, _ = (float(value) for value in world.zone[b])
    start_stream(rng, world.seed[b], portable_math.SPAWN)
    for mech, (team, kind, rank) in enumerate(zip(members.team, members.kind, members.rank)):
        x = MARGIN + WIDEST / 2 + PITCH * (rank % columns) + JITTER * (2.0 * uniform(rng) - 1.0)
        y = MARGIN + WIDEST / 2 + PITCH * (rank // columns) + JITTER * (2.0 * uniform(rng) - 1.0)
        x = width - x if (corner ^ 3 * team) & 1 else x
        y = height - y if (corner ^ 3 * team) & 2 else y
        facing = portable_math.angle_of(zone_y - y, zone_x - x) + TURN * (2.0 * uniform(rng) - 1.0)
        world.spawn[b, mech] = x, y, CHASSIS[kind].height / 2, portable_math.wrap_angle(facing)


def swap_sides(world: World, battles: npt.NDArray[np.int64]) -> None:
    """Let the teams of these battles change places; for rosters whose teams are alike."""
    world.square[battles] = world.square[battles][:, ::-1]
    world.spawn[battles] = np.roll(world.spawn[battles], world.spawn.shape[1] // 2, axis=1)
    for b in battles:
        facts = world.facts[b]
        facts[routes.CORNER] ^= 3
        for place, width in ((routes.SHIFT, 2), (routes.WALK, 1), (routes.OVERLAP, 1)):
            facts[place : place + 2 * width] = np.roll(facts[place : place + 2 * width], width)


def formation(mechs: int, shorter: int) -> tuple[int, int]:
    """How many columns a team of so many lines up in, and the side of its square on a map with this shorter side."""
    limit = (shorter - APART) // 2
    for columns in (COLUMNS, ceil(mechs**0.5)):
        longest = max(min(columns, mechs), ceil(mechs / columns))
        room = ceil(MARGIN + PITCH * (longest - 1) + WIDEST + 1)
        if room <= limit:
            return columns, min(limit, max(SQUARE, shorter // 4, room))
    needed = f"{2 * room + APART} x {2 * room + APART} columns, got a side of {shorter}"
    raise ProtegeError(
        f"{mechs} mechs on a side need a map of at least {needed}: take a larger map or a smaller roster"
    )


def generate(
    seeds: Seeds, size: Size = STANDARD, roster: str = "10v10", out: World | None = None, at: Any = None
) -> World:
    """One map per seed: new arrays, or battles number `at` (the first ones, if not given) of `out`."""
    members, given = find_roster(roster).members(), [int(seed) for seed in seeds]
    bad = [seed for seed in given if not 0 <= seed < 2**64]
    if bad:
        raise ProtegeError(f"a map's seed is a whole number 0..2**64-1, got {bad[0]}")
    if out is None:
        if not all(SMALLEST <= side <= LARGEST for side in size):
            raise ProtegeError(f"a map has {SMALLEST}..{LARGEST} columns on each side, got {size[0]} x {size[1]}")
        out = empty_world(len(given), size, len(members.team))
    places, mechs = np.arange(len(given)) if at is None else np.asarray(at, np.int64), len(members.team)
    battles, _, y, x = out.material.shape
    if (x, y) != tuple(size) or out.spawn.shape[1] != mechs:
        needed, found = f"{size[0]} x {size[1]} columns and {mechs} mechs", f"{x} x {y} and {out.spawn.shape[1]}"
        raise ProtegeError(f"arrays for {needed} are needed; got {found}: make them with empty_world")
    if len(places) != len(given) or (given and not 0 <= places.min() <= places.max() < battles):
        raise ProtegeError(f"{len(given)} maps need as many places among 0..{battles - 1}, got {places.tolist()}")
    columns, side = formation(int(np.bincount(members.team).max()), min(size))
    announce_compilation("the battlefield", __name__)
    shop = workshop(*size)
    for b, seed in zip(places, given):
        out.seed[b], out.facts[b] = seed, 0
        paint_landscape(out, b, shop)
        clear_squares(out, b, side)
        sound = place_zone(out, b, shop)
        if not sound:  # one small map in thousands: no digging helps, so all that stands on it goes
            out.material[b] = AIR
            sound = place_zone(out, b, shop)
        assert sound, f"seed {seed} gave no sound map of {size}"
        place_mechs(out, b, members, columns, shop)
    return out


# --- recipes -------------------------------------------------------------------------------------------------------
def map_hash(world: World, b: int) -> str:
    """SHA-256 of a map's size and materials."""
    digest = hashlib.sha256(json.dumps(world.material.shape[1:]).encode())
    digest.update(np.ascontiguousarray(world.material[b]).tobytes())
    return digest.hexdigest()


def recipe(world: World, b: int, roster: str) -> dict[str, Any]:
    """All it takes to make a map again, what it holds, and hashes of both; to be asked before the battle changes it."""
    facts = world.facts[b].tolist()
    height, width = world.material.shape[2:]
    noted = min(facts[routes.DIGS], routes.MOST_NOTED)
    digs = np.reshape(facts[routes.DIG_NOTES :][: 3 * noted], (noted, 3)).tolist()
    config, teams = {"size": [width, height, HEIGHT], "roster": roster}, ("blue", "red")
    found: dict[str, Any] = {
        "schema": SCHEMA, "generator": {"id": GENERATOR, "version": VERSION, "config": config},
        "seed": int(world.seed[b]),
        "variant": {
            "transform": TRANSFORMS[facts[routes.TRANSFORM]],
            "corners": {"blue": CORNERS[facts[routes.CORNER]], "red": CORNERS[facts[routes.CORNER] ^ 3]},
            "biomes": [BIOMES[biome] for biome in facts[routes.BIOME : routes.BIOME + 4]],
            "mirrored": bool(facts[routes.MIRRORED]),
        },
        "regions": {
            "zone": world.zone[b].tolist(), "squares": dict(zip(teams, world.square[b].tolist())),
            "corridors": routes.corridors(world, b),
        },
        "stats": statistics(world, b),
        "fixups": [{"what": routes.DIG_NAMES[what], "team": teams[team], "attempt": attempt, "voxels": voxels}
                   for attempt, (what, team, voxels) in enumerate(digs, 1)],
    }  # fmt: skip
    text = json.dumps(found, sort_keys=True, separators=(",", ":"))
    return found | {"hashes": {"recipe": hashlib.sha256(text.encode()).hexdigest(), "map": map_hash(world, b)}}


def statistics(world: World, b: int) -> dict[str, Any]:
    """What the validator measured. Densities are fractions of columns that hold something as low as a heavy is tall."""
    facts = world.facts[b]
    ground = (world.blocked[b] & np.uint32(0b1111)) != 0
    zone_x, zone_y, radius = world.zone[b]
    dx, dy = np.arange(ground.shape[1]) + 0.5 - zone_x, np.arange(ground.shape[0]) + 0.5 - zone_y
    around = dx * dx + (dy * dy)[:, None] <= 4 * radius * radius
    return {
        "density": round(float(ground.mean()), 4),
        "zone_density": round(float(ground[around].mean()), 4),
        "walk": [float(walk) / 10 for walk in facts[routes.WALK : routes.WALK + 2]],
        "overlap": [float(part) / 1000 for part in facts[routes.OVERLAP : routes.OVERLAP + 2]],
        "zones_tried": int(facts[routes.ZONES_TRIED]),
    }


# --- for practice ---------------------------------------------------------------------------------------------------
class MapMaker(Protocol):
    """Makes maps, one per seed: new arrays, or battles number `at` of `out`."""

    def __call__(self, seeds: Seeds, size: Size, roster: str, out: World | None = None, at: Any = None) -> World: ...


def over_and_over(
    maps: World, seeds: Seeds, size: Size, roster: str, out: World | None = None, at: Any = None
) -> World:
    """A few maps, each battle on one of them; the seed says on which, and is the battle's own."""
    world = empty_world(len(seeds), size, maps.spawn.shape[1]) if out is None else out
    for b, seed in zip(range(len(seeds)) if at is None else at, seeds):
        for name, array in world._asdict().items():
            array[b] = getattr(maps, name)[seed % len(maps.seed)]
        world.seed[b] = seed
    return world


def open_field(
    seeds: Seeds, size: Size, roster: str, out: World | None = None, at: Any = None, *, wall: bool = False
) -> World:
    """Flat ground with the zone in the middle; teams line up at opposite edges, where the seed puts them.

    A wall goes from edge to edge between the teams and across the zone, and nothing goes through it.
    """
    members, (width, height) = find_roster(roster).members(), size
    world = empty_world(len(seeds), size, len(members.team)) if out is None else out
    for b, seed in zip(range(len(seeds)) if at is None else at, seeds):
        world.seed[b], world.square[b], world.facts[b], world.material[b] = seed, 0, 0, AIR
        world.zone[b], world.material[b, 0] = (width / 2, height / 2, 5.0), DIRT
        if wall:
            world.material[b, :WALL_HEIGHT, :, width // 2 - 1 : width // 2 + 1] = REINFORCED
        dice = np.random.default_rng(seed)
        line = PITCH * (np.bincount(members.team).max() - 1)
        first = dice.uniform(EDGE, height - EDGE - line, 2)
        for mech, (team, kind, rank) in enumerate(zip(members.team, members.kind, members.rank)):
            x, y = EDGE if team == BLUE else width - EDGE, first[team] + PITCH * rank
            facing = atan2(height / 2 - y, width / 2 - x) + dice.uniform(-0.5, 0.5)
            world.spawn[b, mech] = x, y, CHASSIS[kind].height / 2, facing
        derive(world, b)
        measure_paths(world, b, path_queue(width, height))
    return world
