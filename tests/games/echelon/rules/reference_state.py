"""What a battle of the slow reference consists of, and the arithmetic of the game card: rays, draws, angles.

Plain Python: dataclasses, lists and `math`. Fields that the simulator's records have too are called the same there.
"""

from dataclasses import dataclass, field
from math import ceil, floor, inf, pi, sqrt
from typing import Any

from protege.games.echelon.rules.battle import EVENT_NAMES
from protege.games.echelon.world.mechs import AIR, MATERIALS, NOBODY, Chassis, Rules, Weapon, cosine

TOUCH = 1e-6
LAYERS = 20
MOST_SHOTS, MOST_CLOUDS = 240, 120
NO_WEAPON = -1

# --- arithmetic ------------------------------------------------------------------------------------------------------


def points(amount: float) -> float:
    """P: to 1/1024."""
    return floor(amount * 1024 + 0.5) / 1024


def length(*d: float) -> float:
    return sqrt(dot(d, d))


def dot(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Summed from left to right."""
    total = a[0] * b[0]
    for i in range(1, len(a)):
        total += a[i] * b[i]
    return total


def wrap(angle: float) -> float:
    return angle - 2 * pi * ceil((angle - pi) / (2 * pi))


def sine_and_cosine(angle: float) -> tuple[float, float]:
    quarters = floor(angle * (2 / pi) + 0.5)
    x = angle - quarters * 1.5707963267341256 - quarters * 6.077100506506192e-11
    q = x * x
    s = 1 - q * (1 / 272)
    for n in (210, 156, 110, 72, 42, 20):
        s = 1 - q * (1 / n) * s
    s = x - x * (q * (1 / 6) * s)
    c = 1 - q * (1 / 240)
    for n in (182, 132, 90, 56, 30, 12, 2):
        c = 1 - q * (1 / n) * c
    return ((s, c), (c, -s), (-s, -c), (-c, s))[quarters % 4]


STEP = 0x9E3779B97F4A7C15
FOR_ORDER, FOR_AIM, FOR_AMS, FOR_WRECK = range(4)


def bits(s: int) -> int:
    """A number of 64 bits, stirred; what is beyond 64 bits in `s` counts as nothing."""
    s %= 2**64
    z = (s ^ s >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def team_streams(seed: int) -> list[int]:
    simulation = bits(bits(seed) + STEP * 4)
    return [bits(simulation + STEP * (team + 1)) for team in (0, 1)]


# --- the battle ------------------------------------------------------------------------------------------------------


@dataclass
class Hit:
    """One hit on a mech, kept until the hits of the tick take effect."""

    who: int
    weapon: int
    body: float
    travel: tuple[float, float, float]
    leg: float = 0.0
    stability: float = 0.0
    heat: float = 0.0
    boosted: float = 0.0
    suppresses: bool = False


@dataclass
class Mech:
    # who
    index: int
    team: int
    kind: int
    pack: int
    rank: int
    suite: int
    leader: int
    half_width: float
    half_height: float
    # where
    x: float
    y: float
    z: float
    yaw: float
    sin: float
    cos: float
    vx: float = 0.0
    vy: float = 0.0
    vz: float = 0.0
    grounded: bool = False
    material: int = AIR
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
    wait: list[int] = field(default_factory=lambda: [0] * 4)
    ams_wait: int = 0
    suppressed: int = 0
    painted: int = 0
    painter: int = NOBODY
    paint_damage: float = 0.0
    # wishes
    forward: float = 0.0
    strafe: float = 0.0
    vertical: float = 0.0
    turn: float = 0.0
    pressed: list[bool] = field(default_factory=lambda: [False] * 5)
    ewar: int = 0
    focus: int = NOBODY
    order: int = 0
    order_from: int = NOBODY
    order_target: int = NOBODY
    order_left: int = 0
    # the last picture
    sees: set[int] = field(default_factory=set)
    knows: set[int] = field(default_factory=set)
    quality: float = 0.0
    jam: float = 0.0
    noise: float = 0.0
    sound: list[float] = field(default_factory=lambda: [0.0] * 4)
    warned: bool = False
    # this decision
    hit: bool = False
    hurt: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inside: bool = False
    # sums
    dealt: float = 0.0
    friendly: float = 0.0
    taken: float = 0.0
    tally: list[int] = field(default_factory=lambda: [0] * len(EVENT_NAMES))
    bad_actions: int = 0
    # this tick
    burn: float = 0.0
    hits: list[Hit] = field(default_factory=list)
    painters: list[int] = field(default_factory=list)

    @property
    def place(self) -> tuple[float, float, float]:
        return self.x, self.y, self.z

    @property
    def feet(self) -> float:
        return self.z - self.half_height

    @property
    def height(self) -> float:
        return self.half_height * 2

    @property
    def emits(self) -> bool:
        return self.alive and not self.shut and self.ewar > 0


@dataclass
class Shot:
    x: float
    y: float
    z: float
    vx: float
    vy: float
    vz: float
    weapon: int
    who: int
    target: int
    life: int
    age: int = 0

    @property
    def place(self) -> tuple[float, float, float]:
        return self.x, self.y, self.z


@dataclass
class Cloud:
    x: float
    y: float
    z: float
    radius: float
    left: int
    who: int


@dataclass(frozen=True, order=True)
class Event:
    tick: int
    name: str
    who: int
    whom: int
    weapon: int
    amount: float
    place: tuple[float, float, float]


@dataclass
class Terrain:
    """The map: materials and HP in one list each, x fastest, then y, then z."""

    columns: int
    rows: int
    material: bytearray
    hp: list[int]

    def at(self, z: int, y: int, x: int) -> int:
        """Material of a voxel; above the top layer is air."""
        return self.material[(z * self.rows + y) * self.columns + x] if z < LAYERS else AIR

    def stops_bodies(self, z: int, y: int, x: int) -> bool:
        return MATERIALS[self.at(z, y, x)].stops_bodies

    def stops_sight(self, z: int, y: int, x: int) -> bool:
        return MATERIALS[self.at(z, y, x)].stops_sight

    def put(self, z: int, y: int, x: int, material: int) -> tuple[int, int]:
        """Change a voxel, with full HP; which cell it is, and the material."""
        cell = (z * self.rows + y) * self.columns + x
        self.material[cell], self.hp[cell] = material, MATERIALS[material].hp
        return cell, material


@dataclass
class Battle:
    rules: Rules
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
    messages: list[list[float]] = field(default_factory=list)
    ledger: list[list[float]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    changes: list[tuple[int, int]] = field(default_factory=list)
    crowded: bool = False

    def living(self) -> list[Mech]:
        return [mech for mech in self.mechs if mech.alive]

    def enemies(self, mech: Mech) -> list[Mech]:
        """The living ones, by index."""
        return [other for other in self.living() if other.team != mech.team]

    def others(self, mech: Mech) -> list[Mech]:
        """Everybody else alive, own team first, by index."""
        others = [other for other in self.living() if other is not mech]
        return sorted(others, key=lambda other: other.team != mech.team)

    def chassis(self, mech: Mech) -> Chassis:
        return self.rules.chassis[mech.kind]

    def stability_limit(self, mech: Mech) -> float:
        limit = self.chassis(mech).stability
        return limit * self.rules.legged_stability if mech.legged else limit

    def painted_by_pack_of(self, mech: Mech, target: Mech) -> bool:
        return target.painted > 0 and self.mechs[target.painter].pack == mech.pack

    def draw_bits(self, mech: Mech, purpose: int, number: int = 0) -> int:
        return bits(self.keys[mech.team] + STEP * (1 + purpose * 65536 + mech.rank * 256 + number))

    def draw(self, mech: Mech, purpose: int, number: int = 0) -> float:
        return (self.draw_bits(mech, purpose, number) >> 11) * 2.0**-53

    def emit(
        self,
        name: str,
        who: int,
        place: tuple[float, float, float],
        whom: int = NOBODY,
        weapon: int = NO_WEAPON,
        amount: float = 0.0,
    ) -> None:
        if who != NOBODY:
            self.mechs[who].tally[EVENT_NAMES.index(name)] += 1
        self.events.append(Event(self.tick, name, who, whom, weapon, amount, place))


def ticks(seconds: float, rules: Rules) -> int:
    return round(seconds / rules.dt)


def flight_ticks(weapon: Weapon, rules: Rules) -> int:
    return ceil(weapon.reach / (weapon.speed * rules.dt) - 1e-9)


def cos_half_arc(weapon: Weapon) -> float:
    return cosine(weapon.arc / 2)


def within(mech: Mech, target: Mech, least_cosine: float) -> bool:
    """Whether a target is that near to straight ahead, seen from above."""
    dx, dy = target.x - mech.x, target.y - mech.y
    return dx * mech.cos + dy * mech.sin >= least_cosine * sqrt(dx * dx + dy * dy)


def way(start: Any, end: Any) -> tuple[float, float, float]:
    """From one thing that has a place to another."""
    return end.x - start.x, end.y - start.y, end.z - start.z


def squared_distance(a: Any, b: Any) -> float:
    return dot(way(a, b), way(a, b))


def overlap(a: Mech, b: Mech) -> bool:
    wide = a.half_width + b.half_width - TOUCH
    high = a.half_height + b.half_height - TOUCH
    return abs(a.x - b.x) < wide and abs(a.y - b.y) < wide and abs(a.z - b.z) < high


# --- rays ------------------------------------------------------------------------------------------------------------


@dataclass
class Block:
    """Where a ray ends: at which share of it, and in which voxel (z, y, x), if it is one."""

    share: float
    voxel: tuple[int, int, int] | None


def ray(
    terrain: Terrain,
    a: tuple[float, float, float],
    b: tuple[float, float, float],
    of_sight: bool = False,
    ends_count: bool = True,
) -> Block | None:
    """What stops the way from a to b first, or None."""
    (ax, ay, az), (bx, by, bz) = a, b
    dx, dy, dz = bx - ax, by - ay, bz - az
    x, y = floor(ax), floor(ay)
    entry = 0.0
    wait_x = abs(1 / dx) if dx else inf
    wait_y = abs(1 / dy) if dy else inf
    next_x = (x + 1 - ax if dx > 0 else ax - x) * wait_x if dx else inf
    next_y = (y + 1 - ay if dy > 0 else ay - y) * wait_y if dy else inf
    ends = () if ends_count else tuple((floor(pz), floor(py), floor(px)) for px, py, pz in (a, b))
    stops = terrain.stops_sight if of_sight else terrain.stops_bodies
    while True:
        if not (0 <= x < terrain.columns and 0 <= y < terrain.rows):
            return Block(entry, None)
        leave = min(next_x, next_y, 1)
        from_z, to_z = az + dz * entry, az + dz * leave
        low, high = sorted((floor(from_z), floor(to_z)))
        met = [z for z in range(max(low, 0), min(high, LAYERS - 1) + 1) if stops(z, y, x) and (z, y, x) not in ends]
        if met:
            layer = met[0] if dz >= 0 else met[-1]
            share = (layer - az) / dz if dz > 0 else (layer + 1 - az) / dz if dz < 0 else entry
            return Block(entry if layer == floor(from_z) else share, (layer, y, x))
        if dz < 0 and to_z < 0:
            return Block(-az / dz, None)
        if leave >= 1:
            return None
        if next_x < next_y:
            x, next_x = (x + 1 if dx > 0 else x - 1), next_x + wait_x
        else:
            y, next_y = (y + 1 if dy > 0 else y - 1), next_y + wait_y
        entry = leave
