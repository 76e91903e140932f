"""Every number of the game as frozen tables: materials, chassis, weapons, sensor suites, rules, rosters.

`RULES` are presets: "build" is the game, "base" and "suite" keep the numbers of two older games for comparison. Kernels
take a preset as a record. Who takes part is a `Roster`; whatever depends on a member's role is derived from it.
Constants here are compiled into what `@kernel` marks; naming it makes a change in this file compile that anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, degrees, radians
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError

Whole = npt.NDArray[np.int64]

TICK_S: Final = 0.05
FAR: Final = 1e9  # beyond every map


def cosine(angle_degrees: float) -> float:
    """To 15 places: the digit after them is where libraries on different machines may disagree."""
    return round(cos(radians(angle_degrees)), 15)


def columns(rows: Sequence[tuple[Any, ...]]) -> tuple[npt.NDArray[Any], ...]:
    """The columns of a table as arrays."""
    return tuple(map(np.array, zip(*rows)))


# --- materials -----------------------------------------------------------------------------------------------------
AIR, SOLID, LAVA, WATER, DEBRIS, SOLID_DEBRIS, DIRT, GLASS, REINFORCED, FOLIAGE = range(10)


class Material(NamedTuple):
    """What a voxel is made of; the hazards act on whoever has its feet in it."""

    name: str
    hp: int
    stops_bodies: bool  # and projectiles
    stops_sight: bool
    colour: tuple[int, int, int]
    breakable: bool = False
    heat: float = 0.0  # per second
    damage: float = 0.0  # per second
    speed: float = 1.0  # factor on the planar speed


MATERIALS: Final = (
    Material("air", 0, False, False, (0, 0, 0)),
    Material("solid", 100, True, True, (128, 130, 136), breakable=True),
    Material("lava", 0, False, False, (230, 84, 24), heat=40.0, damage=5.0),
    Material("water", 0, False, False, (52, 110, 170), heat=-30.0, speed=0.6),
    Material("debris field", 50, True, True, (120, 96, 72), breakable=True, heat=20.0, damage=1.25),
    Material("solid debris", 200, True, True, (92, 78, 70), breakable=True),
    Material("dirt", 0, False, False, (96, 82, 60)),
    Material("glass", 10, True, False, (150, 205, 215), breakable=True),
    Material("reinforced", 1000, True, True, (70, 76, 92)),
    Material("foliage", 1, False, True, (60, 130, 62), breakable=True),
)

_, _HP, STOPS_BODIES, STOPS_SIGHT, _, BREAKABLE, HAZARD_HEAT, HAZARD_DAMAGE, SPEED_FACTOR = columns(MATERIALS)
MATERIAL_HP: Final = _HP.astype(np.int16)

# --- chassis and weapons -------------------------------------------------------------------------------------------
SCOUT, LIGHT, MEDIUM, HEAVY = range(4)
LASER, FLAMER, MISSILE, GAUSS, AUTOCANNON, PAINTER, SMOKE = range(7)
PRIMARY, SECONDARY, TERTIARY, SPECIAL = range(4)  # the buttons that fire
LASER_TIMER, MISSILE_TIMER, KINETIC_TIMER, PAINTER_TIMER = range(4)  # weapons on one timer wait for each other
HITSCAN, STRAIGHT, BALLISTIC, HOMING = range(4)
NOT_CARRIED: Final = -1


@dataclass(frozen=True)
class Chassis:
    """A class of mech. Lengths in voxels, times in seconds."""

    name: str
    width: float  # the box is square from above
    height: float
    speed: float
    yaw_rate: float
    jet: float  # upward acceleration at full throttle
    hp: float
    leg_hp: float
    heat_capacity: float
    dissipation: float  # heat per second
    tonnage: float  # weight in the zone
    noise: float  # per voxel/s of speed
    solid_wreck: float  # probability that the wreck is solid, not a debris field
    stability: float = 100.0
    has_ams: bool = False  # anti-missile system


CHASSIS: Final = (
    Chassis("scout", 1.2, 1.8, 7.0, 1.8, 18.0, 60.0, 30.0, 75.0, 13.0, 20.0, 1.0, 0.1),
    Chassis("light", 1.5, 2.0, 6.8, 1.5, 16.0, 80.0, 40.0, 80.0, 12.0, 35.0, 1.5, 0.3),
    Chassis("medium", 2.5, 3.0, 5.5, 1.0, 0.0, 150.0, 75.0, 100.0, 11.0, 55.0, 2.5, 0.6),
    Chassis("heavy", 3.5, 4.0, 2.5, 0.6, 0.0, 200.0, 100.0, 130.0, 10.0, 85.0, 4.0, 0.9, has_ams=True),
)
CLASS_NAMES: Final = tuple(chassis.name for chassis in CHASSIS)

NARROW, WIDE = 0, 1  # gaits: how much room a walker needs
FOOTPRINTS: Final = ((1, 3), (2, 4))  # by gait: columns on each side of its own, layers of height


def gait_of(chassis: Chassis) -> int:
    """The gait whose footprint, in whole columns around its own, holds a body in the middle of its column."""
    for gait, (radius, height) in enumerate(FOOTPRINTS):
        if chassis.width / 2 <= radius + 0.5 and chassis.height <= height:
            return gait
    raise ProtegeError(f"a {chassis.name} of {chassis.width} x {chassis.height} voxels fits none of {FOOTPRINTS}")


@dataclass(frozen=True)
class Weapon:
    """A weapon. Lengths in voxels, times in seconds."""

    name: str
    reach: float
    damage: float
    stability_damage: float
    heat: float  # of whoever fires it
    cooldown_s: float
    arc: float  # degrees, from edge to edge
    timer: int
    guidance: int = HITSCAN
    speed: float = 0.0
    splash_radius: float = 0.0
    splash_scale: float = 0.0  # fraction of the damage
    target_heat: float = 0.0
    sight_lock: float = 0.0  # reach without another's paint, where that is shorter


WEAPONS: Final = (
    Weapon("laser", 8.0, 14.0, 0.0, 22.0, 0.6, 120.0, LASER_TIMER, target_heat=6.0),
    Weapon("flamer", 4.5, 4.0, 0.0, 10.0, 0.15, 90.0, LASER_TIMER, target_heat=15.0),
    Weapon("missile", 50.0, 40.0, 15.0, 45.0, 3.0, 180.0, MISSILE_TIMER, HOMING, 12.0, 2.5, 0.5, sight_lock=12.0),
    Weapon("gauss", 20.0, 50.0, 60.0, 15.0, 4.0, 60.0, KINETIC_TIMER, BALLISTIC, 40.0, 1.5, 0.5),
    Weapon("autocannon", 12.0, 8.0, 8.0, 6.0, 0.2, 90.0, KINETIC_TIMER, STRAIGHT, 25.0),
    Weapon("painter", 10.0, 0.0, 0.0, 5.0, 1.0, 60.0, PAINTER_TIMER),
    Weapon("smoke", 20.0, 0.0, 0.0, 10.0, 5.0, 180.0, MISSILE_TIMER, STRAIGHT, 15.0, 4.0),
)

_BASE_AUTOCANNON = replace(WEAPONS[AUTOCANNON], stability_damage=5.0)
_BASE_WEAPONS: Final = (*WEAPONS[:AUTOCANNON], _BASE_AUTOCANNON, *WEAPONS[AUTOCANNON + 1 :])

Loadout = tuple[dict[int, int], ...]  # per class: weapon -> the button that fires it

_BASE_LOADOUT: Loadout = (
    {PAINTER: PRIMARY, SMOKE: SPECIAL},
    {FLAMER: PRIMARY, LASER: SECONDARY, PAINTER: TERTIARY, SMOKE: SPECIAL},
    {LASER: PRIMARY, AUTOCANNON: TERTIARY, PAINTER: TERTIARY, SMOKE: SPECIAL},
    {LASER: PRIMARY, MISSILE: SECONDARY, GAUSS: TERTIARY, SMOKE: SPECIAL},
)
# A medium paints and shoots by separate buttons.
_BUILD_LOADOUT: Loadout = (
    *_BASE_LOADOUT[:2],
    {LASER: PRIMARY, PAINTER: SECONDARY, AUTOCANNON: TERTIARY, SMOKE: SPECIAL},
    _BASE_LOADOUT[3],
)
_SUITE_LOADOUT: Loadout = (
    _BASE_LOADOUT[0],
    {FLAMER: PRIMARY, LASER: SECONDARY, PAINTER: TERTIARY},  # its special is electronic warfare
    *_BASE_LOADOUT[2:],
)


# --- rules ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Rules:
    """All numbers of a game. Lengths in voxels of a metre, times in seconds, names that begin with cos_ are cosines."""

    name: str = "build"
    chassis: tuple[Chassis, ...] = CHASSIS
    weapons: tuple[Weapon, ...] = WEAPONS
    loadout: Loadout = _BUILD_LOADOUT
    ewar: tuple[int, ...] = (SCOUT,)  # classes that jam

    dt: float = TICK_S
    ticks_per_decision: int = 5
    gravity: float = 9.81
    damping: float = 0.98  # of every velocity component, each tick
    slide: float = 0.8  # the same for the planar ones of a mech that is shut down on the ground
    step_height: float = 1.1  # a walker climbs this far without jets
    jet_drain: float = 1 / 1.5  # of the energy, per second of full throttle
    jet_refill: float = 1 / 4

    vent_factor: float = 2.0  # extra dissipation while venting, as a multiple
    hot_fraction: float = 0.8  # of capacity: from here on an enemy shows on any sensor
    jam_heat: float = 3.0  # per second
    counter_heat: float = 2.0

    regen: float = 10.0  # stability per second
    regen_legged: float = 0.5  # these add up, and are taken off the regeneration
    regen_moving: float = 0.5
    regen_suppressed: float = 0.75
    regen_floor: float = 0.1  # what is left at least
    moving_speed: float = 1.0  # faster is moving
    knockdown_s: float = 3.0
    stand_up_stability: float = 0.5  # fraction of the maximum
    legged_speed: float = 0.4
    legged_jet: float = 0.5
    legged_stability: float = 0.5

    paint_s: float = 5.0
    paint_bonus: float = 0.1
    paint_quality: float = 0.7  # sensors must be this good to use another's paint
    suppress_s: float = 1.2
    smoke_s: float = 10.0
    ams_s: float = 1.0
    ams_range: float = 5.5
    ams_probability: float = 0.6
    assist_fraction: float = 0.25  # damage that counts as help with a kill, as a fraction of the victim's full HP
    rear_factor: float = 1.5
    cos_rear: float = cosine(45.0)  # a shot that travels within this of the target's facing came from behind
    leg_height: float = 0.3  # fraction of the body, from below
    leg_body_fraction: float = 0.5  # of a leg hit goes to the body as well
    aim_spread: float = 0.75  # fraction of the half height over which hitscan aim scatters
    cos_focus_assist: float = cosine(degrees(0.2))  # kinetic weapons are drawn to a focus target within this angle
    cos_aim_assist: float = cosine(degrees(0.1))  # and to the nearest enemy within this
    homing: float = 4.0  # per second: how fast a missile turns to its target
    launch_up: float = 0.5
    launch_above: float = 0.5  # the body, whence missiles leave

    jam_range: float = 50.0
    jam_weight: float = 0.85
    counter_weight: float = 0.65
    quality_min: float = 0.25
    quality_max: float = 1.5
    radar_range: float = 14.0
    sight_range: float = 40.0
    deaf_factor: float = 0.2  # of the noise, without sight

    zone_height: float = 5.0  # feet above this do not count in the zone
    contested_floor: float = 0.25
    score_fraction: float = 0.5  # of the battle's seconds: the score to win
    score_ends: bool = True
    suite_tiebreak: bool = False  # at the end of time: presence, losses and damage decide, not score and HP
    hp_tolerance: float = 0.001

    def record(self) -> "Records":
        """The same as kernels take it: one record. A time `x_s` is also there in ticks, `x_ticks`.

        Numbers are float64 or int64. `chassis` holds half_width, gait and has_ewar besides, `weapons` half_arc in
        radians and cos_half_arc; `trigger`, (classes, weapons), is the button that fires it, or NOT_CARRIED.
        """
        chassis = [
            _record(vars(c) | {"half_width": c.width / 2, "gait": gait_of(c), "has_ewar": kind in self.ewar})
            for kind, c in enumerate(self.chassis)
        ]
        weapons = [
            _record(vars(w) | {"half_arc": radians(w.arc / 2), "cos_half_arc": cosine(w.arc / 2)}) for w in self.weapons
        ]
        trigger = np.full((len(chassis), len(weapons)), NOT_CARRIED)
        for kind, carried in enumerate(self.loadout):
            trigger[kind, list(carried)] = list(carried.values())
        numbers = _record(vars(self))[0]
        parts = {name: numbers[name] for name in numbers.dtype.names}
        parts |= {"chassis": np.concatenate(chassis), "weapons": np.concatenate(weapons), "trigger": trigger}
        types = np.dtype([(name, part.dtype, part.shape) for name, part in parts.items()], align=True)
        return np.array(tuple(parts.values()), types)


BUILD: Final = Rules()
BASE: Final = replace(
    BUILD, name="base", weapons=_BASE_WEAPONS, loadout=_BASE_LOADOUT,
    slide=0.98, jet_drain=0.0, aim_spread=0.5, sight_range=FAR, zone_height=FAR,
)  # fmt: skip
SUITE: Final = replace(
    BASE, name="suite", loadout=_SUITE_LOADOUT, ewar=(LIGHT,),
    contested_floor=0.5, score_ends=False, suite_tiebreak=True,
)  # fmt: skip
RULES: Final = {rules.name: rules for rules in (BUILD, BASE, SUITE)}

Records = npt.NDArray[Any]  # structured: a field for every number of a row


def _record(numbers: dict[str, float]) -> Records:
    """One row. Text and tables have no place in it."""
    row = {name: value for name, value in numbers.items() if isinstance(value, int | float)}
    row |= {f"{name[:-2]}_ticks": round(value / TICK_S) for name, value in row.items() if name.endswith("_s")}
    types = [(name, np.float64 if isinstance(value, float) else np.int64) for name, value in row.items()]
    return np.array([tuple(row.values())], types)


# --- sensor suites -------------------------------------------------------------------------------------------------
SCOUT_RECON, LIGHT_SKIRMISH, MEDIUM_ASSAULT, HEAVY_SUPPORT, PACK_COMMAND, SQUAD_COMMAND = range(6)
SUITE_OF_CLASS: Final = (SCOUT_RECON, LIGHT_SKIRMISH, MEDIUM_ASSAULT, HEAVY_SUPPORT)
ICON, STATUS, FULL = range(3)  # what a squad display shows of a friend
NO_ORDERS, TO_PACK, TO_SQUAD = range(3)


class Suite(NamedTuple):
    """What a role's sensors and displays give it."""

    name: str
    contact_slots: int
    sensor_range: float  # factor on radar reach
    fidelity: float
    squad_slots: int
    squad_detail: int
    sees_squad_fights: bool
    orders: int  # to whom it may give them; everyone receives
    contact_reports: bool
    intel_slots: int


SUITES: Final = (
    Suite("scout recon", 20, 1.5, 0.8, 5, ICON, False, NO_ORDERS, False, 5),
    Suite("light skirmish", 10, 1.2, 0.6, 5, STATUS, False, NO_ORDERS, True, 8),
    Suite("medium assault", 8, 1.0, 0.7, 5, STATUS, False, NO_ORDERS, True, 6),
    Suite("heavy fire support", 5, 0.8, 1.0, 5, ICON, False, NO_ORDERS, True, 3),
    Suite("pack command", 8, 1.0, 0.6, 5, FULL, True, TO_PACK, True, 10),
    Suite("squad command", 6, 1.0, 0.5, 12, FULL, True, TO_SQUAD, True, 12),
)
SUITE_RANGE: Final = np.array([suite.sensor_range for suite in SUITES])

# --- rosters -------------------------------------------------------------------------------------------------------
BLUE, RED = 0, 1
NOBODY: Final = -1


class Member(NamedTuple):
    """One mech's place in a team."""

    kind: int  # class
    suite: int


Pack = tuple[Member, ...]


class Side(NamedTuple):
    """A team: packs, and perhaps somebody who leads the packs' leaders."""

    packs: tuple[Pack, ...] = ()
    squad_leader: Member | None = None


class Members(NamedTuple):
    """A roster as arrays over the mechs of a battle, blue first, each team in roster order."""

    team: Whole
    kind: Whole
    suite: Whole
    pack: Whole  # numbered over both teams; a squad leader talks with its team's first pack
    leader: Whole  # the mech that gives it orders, or NOBODY
    rank: Whole  # place in its own team, 0 first


@dataclass(frozen=True)
class Roster:
    """Who fights."""

    name: str
    blue: Side
    red: Side

    def members(self) -> Members:
        rows: list[list[int]] = []
        packs = 0
        for team, side in ((BLUE, self.blue), (RED, self.red)):
            first = len(rows)
            squad_leader = len(rows) + sum(map(len, side.packs)) if side.squad_leader else NOBODY
            for number, pack in enumerate(side.packs, packs):
                leading = [len(rows) + i for i, member in enumerate(pack) if SUITES[member.suite].orders == TO_PACK]
                for member in pack:
                    leader = squad_leader if len(rows) in leading else leading[0] if leading else NOBODY
                    rows.append([team, *member, number, leader, len(rows) - first])
            if side.squad_leader:
                rows.append([team, *side.squad_leader, packs, NOBODY, len(rows) - first])
            packs += len(side.packs)
        return Members(*np.array(rows, np.int64).T.copy())


def _pack(*kinds: int) -> Pack:
    return tuple(Member(kind, SUITE_OF_CLASS[kind]) for kind in kinds)


_PACK_LEADER = Member(LIGHT, PACK_COMMAND)
_DOCS_PACK = (*_pack(HEAVY, MEDIUM, MEDIUM, MEDIUM, MEDIUM, MEDIUM, LIGHT, LIGHT), _PACK_LEADER, *_pack(SCOUT))
_BASE_PACK = _pack(HEAVY, MEDIUM, MEDIUM, LIGHT, SCOUT)
_SUITE_PACK = (*_pack(SCOUT, LIGHT, MEDIUM, MEDIUM, HEAVY), _PACK_LEADER)


def _mirror(name: str, *packs: Pack, squad_leader: Member | None = None) -> Roster:
    side = Side(packs, squad_leader)
    return Roster(name, side, side)


ROSTERS: Final = {
    roster.name: roster
    for roster in (
        Roster("1v0", Side((_pack(MEDIUM),)), Side()),
        _mirror("1v1", _pack(MEDIUM)),
        _mirror("2v2", _pack(HEAVY, SCOUT)),
        _mirror("5v5", _BASE_PACK),
        _mirror("10v10", _DOCS_PACK),
        _mirror("20v20", _DOCS_PACK, _DOCS_PACK),
        _mirror("base-5v5", _BASE_PACK),
        _mirror("base-10v10", _BASE_PACK, _BASE_PACK),
        _mirror("suite-6v6", _SUITE_PACK),
        _mirror("suite-13v13", _SUITE_PACK, _SUITE_PACK, squad_leader=Member(MEDIUM, SQUAD_COMMAND)),
    )
}


def find_roster(name: str) -> Roster:
    if name not in ROSTERS:
        raise ProtegeError(f"no roster is called {name!r}; there are {', '.join(ROSTERS)}")
    return ROSTERS[name]
