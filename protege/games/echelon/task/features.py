"""What an observation is made of: every value's name, place and range, and the schema that says so to a program.

A group is an array; its last axis holds fields one after the other. Lengths are in units of `LENGTH` voxels, speeds of
`SPEED` voxels a second, in the observer's own frame: forward, left, up. How many slots a group has follows from the
roster (`Layout`), what a slot holds does not. Constants here are compiled into what `@kernel` marks.
"""

import hashlib
import json
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np

from protege.games.echelon.rules.battle import MESSAGE
from protege.games.echelon.world.mechs import NO_ORDERS, SUITES, Roster, columns

MEANING: Final = 1  # goes up when a value comes to mean something else under the same name

LENGTH: Final = 50.0
SPEED: Final = 10.0
NEAR: Final = 8.0  # a laser's reach: at this distance `near` is one half
HEIGHTS: Final = 20.0
FARTHEST: Final = 3.0  # places are cut off here
FASTEST: Final = 4.0

MOST_FRIENDS: Final = 12  # slots
MOST_ENEMIES: Final = 32


class Field(NamedTuple):
    """One or more values of a kind, side by side."""

    name: str
    size: int = 1
    low: float = 0.0
    high: float = 1.0


Fields = tuple[Field, ...]


def width(fields: Fields) -> int:
    """How many values they are together."""
    return sum(field.size for field in fields)


def starts(fields: Fields) -> tuple[int, ...]:
    """Where each field begins."""
    return tuple(accumulate((field.size for field in fields[:-1]), initial=0))


# --- the observer itself ---------------------------------------------------------------------------------------------
OWN: Final = (
    Field("class", 4), Field("suite", 14), Field("can", 7), Field("facing", 2, -1.0),
    Field("velocity", 3, -FASTEST, FASTEST), Field("feet"), Field("altitude"), Field("hp"), Field("legs"),
    Field("heat", high=2.0), Field("headroom"), Field("stability"), Field("shut"), Field("hot"), Field("legged"),
    Field("grounded"), Field("painted"), Field("warned"), Field("hit"), Field("watched"), Field("fallen"),
    Field("suppressed"), Field("jet"), Field("hurt", 3, -1.0), Field("waits", 4), Field("ams_wait"), Field("ewar", 2),
    Field("quality"), Field("jam"), Field("sound", 4), Field("zone", 3, -FARTHEST, FARTHEST), Field("zone_radius"),
    Field("inside"), Field("walk", high=FARTHEST), Field("way", 2, -1.0), Field("share", 2), Field("margin", 1, -1.0),
    Field("score", 2, high=2.0), Field("time"), Field("living", 2), Field("contacts", 2), Field("focus"),
    Field("move", 4, -1.0), Field("buttons", 5), Field("order", 5), Field("order_left"),
    Field("order_place", 2, -FARTHEST, FARTHEST),
)  # fmt: skip
(
    OWN_CLASS, OWN_SUITE, OWN_CAN, OWN_FACING,
    OWN_VELOCITY, OWN_FEET, OWN_ALTITUDE, OWN_HP, OWN_LEGS,
    OWN_HEAT, OWN_HEADROOM, OWN_STABILITY, OWN_SHUT, OWN_HOT, OWN_LEGGED,
    OWN_GROUNDED, OWN_PAINTED, OWN_WARNED, OWN_HIT, OWN_WATCHED, OWN_FALLEN,
    OWN_SUPPRESSED, OWN_JET, OWN_HURT, OWN_WAITS, OWN_AMS_WAIT, OWN_EWAR,
    OWN_QUALITY, OWN_JAM, OWN_SOUND, OWN_ZONE, OWN_ZONE_RADIUS,
    OWN_INSIDE, OWN_WALK, OWN_WAY, OWN_SHARE, OWN_MARGIN,
    OWN_SCORE, OWN_TIME, OWN_LIVING, OWN_CONTACTS, OWN_FOCUS,
    OWN_MOVE, OWN_BUTTONS, OWN_ORDER, OWN_ORDER_LEFT,
    OWN_ORDER_PLACE,
) = starts(OWN)  # fmt: skip

# --- friends and enemies ---------------------------------------------------------------------------------------------
ICON: Final = (Field("place", 3, -FARTHEST, FARTHEST), Field("near"), Field("bearing", 2, -1.0), Field("class", 4))
STATUS: Final = (
    Field("velocity", 3, -FASTEST, FASTEST), Field("facing", 2, -1.0), Field("hp"), Field("heat", high=2.0),
    Field("stability"), Field("fallen"), Field("legged"), Field("shut"),
)  # fmt: skip
PLACE, NEARNESS, BEARING, CLASS, VELOCITY, FACING, HP, HEAT, STABILITY, FALLEN, LEGGED, SHUT = starts(ICON + STATUS)

FRIEND: Final = (
    *ICON, *STATUS, Field("same_pack"), Field("commands_me"), Field("under_me"),
    Field("legs"), Field("painted"), Field("inside"), Field("ordered"), Field("fights"),
    Field("target", 2, -FARTHEST, FARTHEST),
)  # fmt: skip
(
    SAME_PACK, COMMANDS_ME, UNDER_ME, FRIEND_LEGS, FRIEND_PAINTED, FRIEND_INSIDE, FRIEND_ORDERED, FRIEND_FIGHTS,
    FRIEND_TARGET,
) = starts(FRIEND)[len(ICON + STATUS) :]  # fmt: skip

ENEMY: Final = (
    *ICON, *STATUS, Field("behind", 1, -1.0), Field("closing", 1, -FASTEST, FASTEST), Field("crossing"),
    Field("painted"), Field("emits"), Field("seen"), Field("reported"), Field("clarity"), Field("focus"),
    Field("fits", 4), Field("pitch", 1, -1.0),
)  # fmt: skip
(
    BEHIND, CLOSING, CROSSING, ENEMY_PAINTED, EMITS, SEEN, REPORTED, CLARITY, ENEMY_FOCUS, FITS, PITCH,
) = starts(ENEMY)[len(ICON + STATUS) :]  # fmt: skip

# --- the ground around -----------------------------------------------------------------------------------------------
CELLS: Final = 11  # on a side; row 0 is farthest ahead, column 0 farthest left
CELL: Final = 1.5  # voxels between two cells' middles
QUARTERS: Final = 4  # map values are whole quarters: 4 means 1
CHANNELS: Final = (
    Field("wall", 1, 0, 4), Field("cover", 1, 0, 4), Field("hazard", 1, -2, 4),
    Field("scar", 1, 0, 4), Field("zone", 1, 0, 4), Field("smoke", 1, 0, 4),
)  # fmt: skip
WALL, COVER, HAZARD, SCAR, ZONE, SMOKE_CHANNEL = starts(CHANNELS)

# --- for the critic alone --------------------------------------------------------------------------------------------
STATE: Final = (
    Field("time"), Field("score", 2, high=2.0), Field("share", 2), Field("tonnage", 2), Field("living", 2),
    Field("hp", 2), Field("zone_radius"),
)  # fmt: skip
STATE_TIME, STATE_SCORE, STATE_SHARE, STATE_TONNAGE, STATE_LIVING, STATE_HP, STATE_ZONE_RADIUS = starts(STATE)
MECH_STATE: Final = (
    Field("own"), Field("alive"), Field("class", 4), Field("place", 3, -FARTHEST, FARTHEST),
    Field("velocity", 3, -FASTEST, FASTEST), Field("facing", 2, -1.0), Field("hp"), Field("legs"),
    Field("heat", high=2.0), Field("stability"), Field("shut"), Field("fallen"), Field("legged"), Field("painted"),
    Field("inside"), Field("jet"), Field("waits", 4), Field("known"),
)  # fmt: skip
(
    MECH_OWN, MECH_ALIVE, MECH_CLASS, MECH_PLACE, MECH_VELOCITY, MECH_FACING, MECH_HP, MECH_LEGS, MECH_HEAT,
    MECH_STABILITY, MECH_SHUT, MECH_FALLEN, MECH_LEGGED, MECH_PAINTED, MECH_INSIDE, MECH_JET, MECH_WAITS, MECH_KNOWN,
) = starts(MECH_STATE)  # fmt: skip

# --- legal actions ---------------------------------------------------------------------------------------------------
ORDER_KINDS: Final = 6  # none and five
LEGAL_MOVE, LEGAL_BUTTONS, LEGAL_EWAR, LEGAL_TARGET = 0, 4, 9, 12  # then order kinds, then order addressees

# --- suites as arrays over their ids ---------------------------------------------------------------------------------
(
    _, CONTACT_SLOTS, _RANGE, FIDELITY, SQUAD_SLOTS, SQUAD_DETAIL, SEES_FIGHTS, _ORDERS, GETS_REPORTS, INTEL_SLOTS,
) = columns(SUITES)  # fmt: skip
GIVES_ORDERS: Final = _ORDERS != NO_ORDERS
# (suites, 14), all in [0, 1]: which one, then what it can do.
DESCRIPTORS: Final = np.column_stack([
    np.eye(len(SUITES)), CONTACT_SLOTS / 20, (_RANGE - 0.8) / 0.7, FIDELITY, SQUAD_DETAIL / 2, SEES_FIGHTS,
    GIVES_ORDERS, GETS_REPORTS, INTEL_SLOTS > 5,
]).astype(np.float32).clip(0.0, 1.0)  # fmt: skip


# --- layout and schema -----------------------------------------------------------------------------------------------
class Layout(NamedTuple):
    """How many slots the groups have."""

    mechs: int  # in a battle
    friends: int
    enemies: int
    pack: int  # mechs that hear each other's messages

    @property
    def legal(self) -> int:
        """How many choices have a mask."""
        return LEGAL_TARGET + self.enemies + 1 + ORDER_KINDS + self.friends


def layout_of(roster: Roster) -> Layout:
    """The slots of a roster: all friends and all enemies, as far as any display goes; never fewer than one."""
    members = roster.members()
    largest = int(np.bincount(members.team).max())
    friends, enemies = min(max(largest - 1, 1), MOST_FRIENDS), min(largest, MOST_ENEMIES)
    return Layout(len(members.team), friends, enemies, pack=int(np.bincount(members.pack).max()))


def legal_fields(layout: Layout) -> Fields:
    """The choices that have a mask."""
    return (
        Field("move", 4), Field("buttons", 5), Field("ewar", 3), Field("target", layout.enemies + 1),
        Field("order", ORDER_KINDS), Field("order_to", layout.friends),
    )  # fmt: skip


def arrays_of(layout: Layout) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and type of every array of one mech, or of one team: `state` and `mechs`, for the critic alone."""
    friends, enemies = (layout.friends,), (layout.enemies,)
    return {
        "own": ((width(OWN),), "float32"),
        "friends": ((*friends, width(FRIEND)), "float32"), "friend_mask": (friends, "bool"),
        "friend_index": (friends, "int16"),
        "enemies": ((*enemies, width(ENEMY)), "float32"), "enemy_mask": (enemies, "bool"),
        "enemy_index": (enemies, "int16"),
        "map": ((len(CHANNELS), CELLS, CELLS), "int8"), "messages": ((layout.pack, MESSAGE), "float32"),
        "legal": ((layout.legal,), "bool"), "alive": ((), "bool"),
        "state": ((width(STATE),), "float32"), "mechs": ((layout.mechs, width(MECH_STATE)), "float32"),
    }  # fmt: skip


def _listed(fields: Fields) -> list[dict[str, Any]]:
    rows = zip(fields, starts(fields))
    return [{"name": f.name, "offset": at, "size": f.size, "low": f.low, "high": f.high} for f, at in rows]


def schema(layout: Layout) -> dict[str, Any]:
    """Everything a program needs to read the arrays of one mech; "version" is a hash of what the values mean."""
    meanings: dict[str, Any] = {
        "own": _listed(OWN), "friends": _listed(FRIEND), "enemies": _listed(ENEMY), "map": _listed(CHANNELS),
        "messages": _listed((Field("message", MESSAGE, -1.0),)), "state": _listed(STATE), "mechs": _listed(MECH_STATE),
    }  # fmt: skip
    units = {
        "length_voxels": LENGTH, "speed_voxels_per_s": SPEED, "near_voxels": NEAR, "heights_voxels": HEIGHTS,
        "cell_voxels": CELL, "map_unit": 1 / QUARTERS,
    }  # fmt: skip
    text = json.dumps({"meaning": MEANING, "fields": meanings, "units": units}, sort_keys=True)
    arrays, told = arrays_of(layout), {}
    for name, fields in (meanings | {"legal": _listed(legal_fields(layout))}).items():
        told[name] = {"shape": list(arrays[name][0]), "dtype": arrays[name][1], "fields": fields}
    return {"version": hashlib.sha256(text.encode()).hexdigest()[:16], "units": units, "groups": told}
