"""What a battle of the slow reference consists of, and the card's arithmetic: vectors, draws, angles, rays.

Nothing is imported from the product. Three things must agree with it to the last bit and are therefore the card's own
recipes, written out again: the mixing of random bits, the series for sine and cosine, and the order in which a formula
adds and multiplies. Everything else is arranged differently: a place is a vector, a mech's timers are a dictionary, its
controls, its paint and its picture are objects of their own, and a ray is a merge of two sequences of borders.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from itertools import accumulate, chain, repeat
from math import ceil, floor, pi, sqrt

from tests.games.echelon.rules.reference_tables import EVENTS, MATERIALS, SUITE_RANGES, Column, Preset

TOUCH = 1e-6
LAYERS = 20
NOBODY = NO_WEAPON = -1
MESSAGE = 8

# --- arithmetic ------------------------------------------------------------------------------------------------------


@dataclass(order=True, slots=True, unsafe_hash=True)
class Vector:
    """Three numbers; never changed once made. The smaller of two is that with the smaller x, then y, then z."""

    x: float
    y: float
    z: float

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor: float) -> "Vector":
        return Vector(self.x * factor, self.y * factor, self.z * factor)

    def __truediv__(self, divisor: float) -> "Vector":
        return Vector(self.x / divisor, self.y / divisor, self.z / divisor)

    def __matmul__(self, other: "Vector") -> float:
        """The dot product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def __abs__(self) -> float:
        return sqrt(self @ self)

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y, self.z))

    @property
    def level(self) -> "Vector":
        """As seen from above."""
        return Vector(self.x, self.y, 0.0)


ZERO = Vector(0.0, 0.0, 0.0)


def clamp(value: float, low: float, high: float) -> float:
    return sorted((low, value, high))[1]


def points(amount: float) -> float:
    """P of the card: rounded to 1/1024."""
    return floor(amount * 1024 + 0.5) / 1024


def wrap(angle: float) -> float:
    return angle - 2 * pi * ceil((angle - pi) / (2 * pi))


def heading_of(yaw: float) -> Vector:
    """Forward: the cosine and the sine of a yaw."""
    quarters = floor(yaw * (2 / pi) + 0.5)
    x = yaw - quarters * 1.5707963267341256 - quarters * 6.077100506506192e-11
    q = x * x
    sine = cosine = 1.0
    for n in (272, 210, 156, 110, 72, 42, 20):
        sine = 1 - q * (1 / n) * sine
    for n in (240, 182, 132, 90, 56, 30, 12, 2):
        cosine = 1 - q * (1 / n) * cosine
    forward = Vector(cosine, x - x * (q * (1 / 6) * sine), 0.0)
    for _ in range(quarters % 4):
        forward = left_of(forward)
    return forward


def left_of(forward: Vector) -> Vector:
    """Turned by 90 degrees, counter-clockwise."""
    return Vector(-forward.y, forward.x, 0.0)


STEP = 0x9E3779B97F4A7C15
FOR_ORDER, FOR_AIM, FOR_AMS, FOR_WRECK = range(4)


def bits(state: int) -> int:
    """A number of 64 bits, stirred; what is beyond 64 bits in `state` counts as nothing."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state %= 2**64
        state = (state ^ state >> shift) * factor
    state %= 2**64
    return state ^ state >> 31


def team_streams(seed: int) -> list[int]:
    simulation = bits(bits(seed) + STEP * 4)
    return [bits(simulation + STEP * (team + 1)) for team in (0, 1)]


# --- the battle ------------------------------------------------------------------------------------------------------


@dataclass
class Hit:
    """One hit on a mech, kept until the hits of the tick take effect."""

    who: "Mech"
    weapon: Column
    travel: Vector
    body: float
    stability: float
    leg: float = 0.0
    heat: float = 0.0
    boosted: float = 0.0


@dataclass
class Paint:
    by: "Mech"
    left: int
    damage: float = 0.0


@dataclass
class Controls:
    """What a mech's player wants in this decision."""

    forward: float = 0.0
    strafe: float = 0.0
    vertical: float = 0.0
    turn: float = 0.0
    pressed: tuple[bool, ...] = (False,) * 5
    ewar: str = "off"
    focus: "Mech | None" = None


@dataclass
class Picture:
    """What a mech perceives."""

    quality: float
    jam: float = 0.0
    sees: set[int] = field(default_factory=set)
    knows: set[int] = field(default_factory=set)
    sound: list[float] = field(default_factory=lambda: [0.0] * 4)
    warned: bool = False


@dataclass(eq=False)
class Mech:
    # who
    index: int
    team: int
    rank: int
    pack: int
    suite: int
    leader: int
    chassis: Column
    # where
    place: Vector
    yaw: float
    heading: Vector
    velocity: Vector = ZERO
    grounded: bool = False
    ground: Column = field(default_factory=lambda: MATERIALS["air"])
    # condition
    alive: bool = True
    shut: bool = False
    legged: bool = False
    fallen: int = 0
    hp: float = 0.0
    leg_hp: float = 0.0
    heat: float = 0.0
    stability: float = 0.0
    jet: float = 1.0
    noise: float = 0.0
    timers: Counter[str] = field(default_factory=Counter)  # ticks left: weapon 0 to 3, ams, suppressed, order
    paint: Paint | None = None
    controls: Controls = field(default_factory=Controls)
    order: int = 0
    order_from: int = NOBODY
    order_target: int = NOBODY
    picture: Picture = field(default_factory=lambda: Picture(0.0))
    message: list[float] = field(default_factory=lambda: [0.0] * MESSAGE)
    # this decision
    hit: bool = False
    hurt: Vector = ZERO
    inside: bool = False
    # sums
    dealt: float = 0.0
    friendly: float = 0.0
    taken: float = 0.0
    taken_from: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    tally: Counter[str] = field(default_factory=Counter)
    bad_actions: int = 0
    # this tick
    burn: float = 0.0
    hits: list[Hit] = field(default_factory=list)
    painters: list["Mech"] = field(default_factory=list)

    @cached_property
    def half(self) -> Vector:
        """Half the sides of its box."""
        return Vector(self.chassis.width / 2, self.chassis.width / 2, self.chassis.height / 2)

    @property
    def height(self) -> float:
        return self.half.z * 2

    @property
    def feet(self) -> float:
        return self.place.z - self.half.z

    @property
    def top(self) -> float:
        return self.place.z + self.half.z

    @property
    def suite_range(self) -> float:
        return SUITE_RANGES[self.suite]

    @property
    def emits(self) -> str:
        """What its electronic warfare does, which is nothing while it is off, shut down or dead."""
        return self.controls.ewar if self.alive and not self.shut else "off"

    def painted_for(self, shooter: "Mech") -> bool:
        """Whether somebody of the shooter's pack has painted it."""
        return self.paint is not None and self.paint.by.pack == shooter.pack

    def covers(self, target: "Mech", least_cosine: float) -> bool:
        """Whether a target is within an arc around straight ahead, seen from above."""
        way = (target.place - self.place).level
        return way @ self.heading >= least_cosine * abs(way)

    def within(self, reach: float, thing: "Mech | Shot") -> bool:
        way = thing.place - self.place
        return way @ way <= reach * reach


@dataclass
class Shot:
    place: Vector
    velocity: Vector
    weapon: Column
    who: Mech
    target: Mech | None
    age: int = 0


@dataclass
class Cloud:
    place: Vector
    radius: float
    left: int
    who: int


@dataclass(frozen=True)
class Event:
    tick: int
    name: str
    who: int
    whom: int
    weapon: int
    amount: float
    place: Vector


# By what is stopped: the materials that stop it.
STOPS = {
    "bodies": {material.id for material in MATERIALS.values() if material.bodies},
    "sight": {material.id for material in MATERIALS.values() if material.sight},
}
MATERIAL_LIST = list(MATERIALS.values())

Voxel = tuple[int, int, int]  # x, y, layer


@dataclass
class Terrain:
    """The map: materials and HP in one list each, x fastest, then y, then z."""

    columns: int
    rows: int
    material: bytearray
    hp: list[int]
    in_the_way: dict[tuple[int, int, str], list[int]] = field(default_factory=dict)  # by column, until it changes

    def cell(self, voxel: Voxel) -> int:
        x, y, layer = voxel
        return x + self.columns * (y + self.rows * layer)

    def at(self, voxel: Voxel) -> Column:
        """The material of a voxel; above the top layer is air."""
        return MATERIAL_LIST[self.material[self.cell(voxel)] if voxel[2] < LAYERS else 0]

    def layers_of(self, x: int, y: int, what: str) -> list[int]:
        """The layers of a column that are in the way of bodies or of sight, from below."""
        if (x, y, what) not in self.in_the_way:
            column = self.material[self.cell((x, y, 0)) :: self.columns * self.rows]
            self.in_the_way[x, y, what] = [layer for layer, material in enumerate(column) if material in STOPS[what]]
        return self.in_the_way[x, y, what]

    def layers_under(self, place: Vector, half: Vector) -> set[int]:
        """All layers in which something stops bodies, anywhere in the footprint of a box."""
        across, along = (range(floor(at - half.x + TOUCH), floor(at + half.x - TOUCH) + 1) for at in (place.x, place.y))
        return {layer for x in across for y in along for layer in self.layers_of(x, y, "bodies")}

    def put(self, voxel: Voxel, material: Column) -> tuple[int, int]:
        """Change a voxel, with full HP; which cell it is, and the material's id."""
        cell = self.cell(voxel)
        for what in STOPS:
            self.in_the_way.pop((*voxel[:2], what), None)
        self.material[cell], self.hp[cell] = material.id, material.hp
        return cell, material.id


@dataclass
class Battle:
    preset: Preset
    terrain: Terrain
    zone: tuple[float, float, float]
    mechs: list[Mech]
    streams: list[int]
    length: int
    keys: list[int] = field(default_factory=lambda: [0, 0])
    tick: int = 0
    decision: int = 0
    score: list[float] = field(default_factory=lambda: [0.0, 0.0])
    share: list[float] = field(default_factory=lambda: [0.0, 0.0])
    tonnage: list[float] = field(default_factory=lambda: [0.0, 0.0])
    ending: int = 0
    winner: int = NOBODY
    shots: list[Shot] = field(default_factory=list)
    clouds: list[Cloud] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    changes: list[tuple[int, int]] = field(default_factory=list)
    crowded: bool = False

    @property
    def rules(self) -> Column:
        return self.preset.rules

    def living(self) -> list[Mech]:
        return [mech for mech in self.mechs if mech.alive]

    def team(self, number: int) -> list[Mech]:
        return [mech for mech in self.mechs if mech.team == number]

    def enemies(self, mech: Mech) -> list[Mech]:
        """The living ones, by index."""
        return [other for other in self.living() if other.team != mech.team]

    def others(self, mech: Mech) -> list[Mech]:
        """Everybody else alive, own team first, by index."""
        return [m for m in self.living() if m.team == mech.team and m is not mech] + self.enemies(mech)

    def stability_limit(self, mech: Mech) -> float:
        return float(mech.chassis.stability * (self.rules.legged_stability if mech.legged else 1))

    def draw_bits(self, mech: Mech, purpose: int, number: int = 0) -> int:
        return bits(self.keys[mech.team] + STEP * (1 + purpose * 65536 + mech.rank * 256 + number))

    def draw(self, mech: Mech, purpose: int, number: int = 0) -> float:
        return (self.draw_bits(mech, purpose, number) >> 11) * 2.0**-53

    def emit(
        self,
        name: str,
        who: Mech | None,
        place: Vector,
        whom: Mech | None = None,
        weapon: int = NO_WEAPON,
        amount: float = 0.0,
    ) -> None:
        assert name in EVENTS
        if who:
            who.tally[name] += 1
        self.events.append(Event(self.tick, name, number_of(who), number_of(whom), weapon, amount, place))


def number_of(mech: Mech | None) -> int:
    return mech.index if mech else NOBODY


def boxes_overlap(place: Vector, mech: Mech, other: Mech) -> bool:
    """Whether a mech, were it at this place, would overlap another."""
    apart, reach = place - other.place, mech.half + other.half
    return all(abs(a) < r - TOUCH for a, r in zip(apart, reach))


# --- rays ------------------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """Where a ray ends: at which share of it, and in which voxel, if it is one."""

    share: float
    voxel: Voxel | None = None


def borders(start: float, way: float) -> Iterator[float]:
    """The shares of a way at which it crosses the borders of columns, along one axis; they never end."""
    if way:
        first = floor(start) + 1 - start if way > 0 else start - floor(start)
        apart = abs(1 / way)
        yield from accumulate(chain([first * apart], repeat(apart)))


def columns_along(start: Vector, way: Vector) -> Iterator[tuple[int, int, float, float]]:
    """The columns that a way passes through, with the shares at which it comes in and goes out."""
    x, y, entry = floor(start.x), floor(start.y), 0.0
    # Where both borders are crossed at once, a corner, the way goes along y first.
    along_y, along_x = zip(borders(start.y, way.y), repeat(0)), zip(borders(start.x, way.x), repeat(1))
    for share, axis in merge(along_y, along_x):
        if share >= 1:
            break
        yield x, y, entry, share
        if axis == 0:
            y += 1 if way.y > 0 else -1
        else:
            x += 1 if way.x > 0 else -1
        entry = share
    yield x, y, entry, 1.0


def ray(terrain: Terrain, start: Vector, end: Vector, what: str, ends_count: bool = True) -> Block | None:
    """Where bodies or sight are first stopped on the way from one point to another, or None."""
    way = end - start
    exempt = [] if ends_count else [tuple(map(floor, point)) for point in (start, end)]
    for x, y, entry, leave in columns_along(start, way):
        if x not in range(terrain.columns) or y not in range(terrain.rows):
            return Block(entry)
        first, last = start.z + way.z * entry, start.z + way.z * leave
        low, high = floor(min(first, last)), floor(max(first, last))
        met = [layer for layer in terrain.layers_of(x, y, what) if low <= layer <= high and (x, y, layer) not in exempt]
        if met:
            layer, face = (met[0], met[0]) if way.z >= 0 else (met[-1], met[-1] + 1)
            return Block(entry if layer == floor(first) else (face - start.z) / way.z, (x, y, layer))
        if last < 0 and way.z < 0:
            return Block(-start.z / way.z)
    return None
