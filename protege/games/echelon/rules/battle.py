"""A battle as one record: its rules, mechs, shots, clouds, events, and what is counted about them.

Kernels pass the record around and read it like an object (`battle.mechs[i].hp`); to NumPy a batch of battles is one
array in which every field is an array of its own (`records["mechs"]["hp"]`, battles x MOST_MECHS). Quantities are
float64, times are whole ticks, mechs are named by their index (-1: nobody). Only the map lies elsewhere (voxels.py).
"""

from math import floor
from typing import Any, Final

import numpy as np

from protege.games.echelon.rules import events
from protege.games.echelon.world.mechs import BUILD, NOBODY
from protege.kernels import kernel
from protege.seeds import STREAM_STEP, random_bits

Battle = Any  # one record of BATTLE, as numba hands it out
Record = Any  # any other record

MOST_MECHS: Final = 40  # 20 a side; rows of sight have 64 bits
MOST_SHOTS: Final = 6 * MOST_MECHS  # cooldowns allow fewer
MOST_CLOUDS: Final = 3 * MOST_MECHS
MESSAGE: Final = 8  # numbers in a message

RUNNING, BY_ELIMINATION, BY_SCORE, BY_TIME = range(4)  # how a battle ends
JAMMING, COUNTERING = 1, 2  # electronic warfare; 0 is off
VENT: Final = 4  # the button after the four that fire
NO_ORDER, FOCUS_FIRE, ADVANCE, HOLD, RALLY, COVER = range(6)
ORDER_TICKS: Final = 200

# --- records ---------------------------------------------------------------------------------------------------------
MECH: Final = np.dtype(
    [
        # who: from the roster, never changes
        ("team", "i8"), ("kind", "i8"), ("pack", "i8"), ("rank", "i8"), ("suite", "i8"), ("leader", "i8"),
        ("half_width", "f8"), ("half_height", "f8"),
        # where
        ("x", "f8"), ("y", "f8"), ("z", "f8"),  # the centre of the box
        ("vx", "f8"), ("vy", "f8"), ("vz", "f8"),
        ("yaw", "f8"), ("sin", "f8"), ("cos", "f8"),
        ("grounded", "i8"), ("material", "i8"),  # at its feet
        # condition
        ("alive", "i8"), ("shut", "i8"), ("legged", "i8"), ("fallen", "i8"),  # fallen: ticks until it stands
        ("hp", "f8"), ("leg_hp", "f8"), ("heat", "f8"), ("stability", "f8"), ("jet", "f8"),  # jet energy, 0 to 1
        ("wait", "i8", (4,)), ("ams_wait", "i8"), ("suppressed", "i8"),  # ticks left
        ("painted", "i8"), ("painter", "i8"), ("paint_damage", "f8"),  # ticks left, by whom, what it helped to do
        # what its player wants in this decision
        ("forward", "f8"), ("strafe", "f8"), ("vertical", "f8"), ("turn", "f8"),
        ("buttons", "i8"), ("ewar", "i8"), ("focus", "i8"),
        ("order", "i8"), ("order_from", "i8"), ("order_target", "i8"), ("order_left", "i8"),
        # what it perceives, as of the end of the last decision
        ("sees", "u8"), ("knows", "u8"),  # bit j: line of sight to mech j; enemy j is on its sensors
        ("quality", "f8"), ("jam", "f8"), ("noise", "f8"), ("sound", "f8", (4,)), ("warned", "i8"),
        # what happened to it in this decision
        ("hit", "i8"), ("hurt_x", "f8"), ("hurt_y", "f8"), ("hurt_z", "f8"),  # towards where the damage came from
        ("inside", "i8"),  # the zone
        # sums over the battle
        ("dealt", "f8"), ("friendly", "f8"), ("taken", "f8"),  # HP taken off enemies, off friends or itself, lost
        ("tally", "i8", (len(events.EVENT_NAMES),)), ("bad_actions", "i8"),
    ],
    align=True,
)  # fmt: skip

SHOT: Final = np.dtype(
    [
        ("x", "f8"), ("y", "f8"), ("z", "f8"), ("vx", "f8"), ("vy", "f8"), ("vz", "f8"),
        ("weapon", "i8"), ("who", "i8"), ("target", "i8"), ("age", "i8"), ("life", "i8"),
        ("fate", "i8"), ("victim", "i8"), ("cell", "i8"),  # what this tick's flight came to
    ],
    align=True,
)  # fmt: skip

CLOUD: Final = np.dtype(
    [("x", "f8"), ("y", "f8"), ("z", "f8"), ("radius", "f8"), ("left", "i8"), ("who", "i8")], align=True
)

# What the hits of one tick add up to for one mech, until they are applied together.
PENDING: Final = np.dtype(
    [
        ("touched", "i8"), ("suppress", "i8"), ("painter", "i8"), ("worst_by", "i8"), ("worst_weapon", "i8"),
        ("burn", "f8"), ("leg", "f8"), ("stability", "f8"), ("heat", "f8"), ("boosted", "f8"),
        ("worst", "f8"), ("from_x", "f8"), ("from_y", "f8"), ("from_z", "f8"),
    ],
    align=True,
)  # fmt: skip


BATTLE: Final = np.dtype(
    [
        ("rules", BUILD.record().dtype),
        ("stream", "u8", (2,)), ("key", "u8", (2,)),  # of each team's random draws: for the battle, for this tick
        ("tick", "i8"), ("decision", "i8"), ("length", "i8"),  # length in decisions
        ("count", "i8"), ("members", "i8", (2,)), ("living", "i8", (2,)),  # mechs: all, of each team, alive
        ("score", "f8", (2,)), ("share", "f8", (2,)), ("tonnage", "f8", (2,)),  # share: of the last decision's seconds
        ("over", "i8"), ("ending", "i8"), ("winner", "i8"),
        ("mechs", MECH, (MOST_MECHS,)),
        ("shot_count", "i8"), ("shots", SHOT, (MOST_SHOTS,)),
        ("cloud_count", "i8"), ("clouds", CLOUD, (MOST_CLOUDS,)),
        ("messages", "f4", (MOST_MECHS, MESSAGE)),  # sent in the last decision
        ("ledger", "f8", (MOST_MECHS, MOST_MECHS)),  # who, whom: HP taken off, over the battle
        # Of the last decision.
        ("event_count", "i8"), ("events_lost", "i8"), ("events", events.EVENT, (events.MOST_EVENTS,)),
        ("change_count", "i8"), ("changes_lost", "i8"), ("changes", events.CHANGE, (events.MOST_CHANGES,)),
        # Within a decision; between ticks `damage` and `pending` are blank.
        ("crowded", "i8"), ("near_count", "i8", (MOST_MECHS,)), ("near", "i8", (MOST_MECHS, MOST_MECHS)),
        ("order", "i8", (MOST_MECHS,)), ("order_keys", "u8", (MOST_MECHS,)),
        ("damage", "f8", (MOST_MECHS, MOST_MECHS)), ("pending", PENDING, (MOST_MECHS,)),  # whom, who
    ],
    align=True,
)  # fmt: skip


# --- used by all parts of the tick -----------------------------------------------------------------------------------

# What a draw is for. A draw is a function of team stream, tick, purpose, rank and number: no draw shifts another.
FOR_ORDER, FOR_AIM, FOR_AMS, FOR_WRECK = events.numbered(4)


@kernel
def tick_key(stream: np.uint64, tick: int) -> np.uint64:
    """Where a team's draws of one tick begin."""
    return random_bits(stream + STREAM_STEP * np.uint64(tick))


@kernel
def draw_bits(key: np.uint64, purpose: int, rank: int, number: int) -> np.uint64:
    """64 random bits for one use by one mech in one tick."""
    return random_bits(key + STREAM_STEP * np.uint64(1 + (purpose << 16) + (rank << 8) + number))


@kernel
def draw(key: np.uint64, purpose: int, rank: int, number: int) -> float:
    """The same as a number in [0, 1)."""
    return float(draw_bits(key, purpose, rank, number) >> np.uint64(11)) * 2.0**-53


@kernel
def points(amount: float) -> float:
    """Rounded to 1/1024: sums of such amounts are exact, so that they do not depend on who is added first."""
    return floor(amount * 1024.0 + 0.5) * (1.0 / 1024.0)


@kernel
def squared_distance(a: Record, b: Record) -> float:
    """Between two things that have a place."""
    dx, dy, dz = b.x - a.x, b.y - a.y, b.z - a.z
    return float(dx * dx + dy * dy + dz * dz)


@kernel
def enemies_of(battle: Battle, mech: Record) -> tuple[int, int]:
    """The first of a mech's enemies, and the index after the last."""
    blue = battle.members[0]
    return (blue, battle.count) if mech.team == 0 else (0, blue)


@kernel
def give_order(battle: Battle, i: int, order: Any) -> None:
    """An order (kind, to whom, about which mech) from one mech to another that it commands."""
    kind, whom, about = order[0], order[1], order[2]
    if kind <= NO_ORDER or kind > COVER or whom < 0 or whom >= battle.count:
        return
    other = battle.mechs[whom]
    if other.alive and other.leader == i:
        other.order, other.order_from, other.order_left = kind, i, ORDER_TICKS
        other.order_target = about if kind == FOCUS_FIRE and 0 <= about < battle.count else NOBODY
        events.emit_at(battle, events.ORDER, i, whom, events.NO_WEAPON, float(kind), other)
