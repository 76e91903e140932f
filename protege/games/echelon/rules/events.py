"""What can happen in a battle, and how it is noted: the events and changed voxels of the last decision."""

from typing import Any, Final

import numpy as np

from protege.kernels import kernel


def numbered(count: int) -> Any:
    """0, 1 ... as NumPy's whole numbers: numba would compile a kernel anew for every one of Python's."""
    return np.arange(count)


MOST_EVENTS: Final = 512  # a decision; more are counted, not kept
MOST_CHANGES: Final = 2048  # voxels a decision
NO_WEAPON: Final = -1

EVENT_NAMES: Final = (
    "kill", "friendly_kill", "assist", "death", "paint", "paint_expired", "laser_hit", "projectile_hit",
    "missile_launch", "kinetic_fire", "smoke_launch", "smoke_cloud", "explosion", "ams_intercept", "knockdown",
    "stand_up", "shutdown", "restart", "legged", "zone_enter", "zone_leave", "voxel_destroyed", "order",
)  # fmt: skip
(
    KILL, FRIENDLY_KILL, ASSIST, DEATH, PAINT, PAINT_EXPIRED, LASER_HIT, PROJECTILE_HIT,
    MISSILE_LAUNCH, KINETIC_FIRE, SMOKE_LAUNCH, SMOKE_CLOUD, EXPLOSION, AMS_INTERCEPT, KNOCKDOWN,
    STAND_UP, SHUTDOWN, RESTART, LEGGED, ZONE_ENTER, ZONE_LEAVE, VOXEL_DESTROYED, ORDER,
) = numbered(23)  # fmt: skip

EVENT: Final = np.dtype(
    [
        ("tick", "i4"), ("kind", "i1"), ("weapon", "i1"), ("who", "i1"), ("whom", "i1"),
        ("amount", "f4"), ("x", "f4"), ("y", "f4"), ("z", "f4"),
    ],
    align=True,
)  # fmt: skip
CHANGE: Final = np.dtype([("cell", "i4"), ("material", "i4")], align=True)  # cell: (z * Y + y) * X + x


@kernel
def emit(battle: Any, kind: int, who: int, whom: int, weapon: int, amount: float, x: float, y: float, z: float) -> None:
    """Note an event, and count it for `who` even when the list is full."""
    if who >= 0:
        battle.mechs[who].tally[kind] += 1
    if battle.event_count == MOST_EVENTS:
        battle.events_lost += 1
        return
    event = battle.events[battle.event_count]
    battle.event_count += 1
    event.tick, event.kind, event.weapon, event.who, event.whom = battle.tick, kind, weapon, who, whom
    event.amount, event.x, event.y, event.z = amount, x, y, z


@kernel
def emit_at(battle: Any, kind: int, who: int, whom: int, weapon: int, amount: float, place: Any) -> None:
    """Note an event where a mech, shot or cloud is."""
    emit(battle, kind, np.int64(who), np.int64(whom), np.int64(weapon), amount, place.x, place.y, place.z)  # type: ignore[arg-type]


@kernel
def note_change(battle: Any, cell: int, material: int) -> None:
    """Note that a voxel is of another material now."""
    if battle.change_count == MOST_CHANGES:
        battle.changes_lost += 1
        return
    change = battle.changes[battle.change_count]
    battle.change_count += 1
    change.cell, change.material = cell, material
