"""Friends and enemies as a mech's displays show them: who is listed, and what is told of each.

The suite decides: how many friends and in what detail, how many contacts, how clearly, and what others report. All is
in the viewer's own frame: forward, left, up. `list_...` fill slots with indices, `show_...` fill a slot's values, which
are 0 before.
"""

from math import atan, floor, pi, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules.battle import COUNTERING, JAMMING, Battle, Record, enemies_of, squared_distance
from protege.games.echelon.rules.sensors import emits
from protege.games.echelon.rules.weapons import can_target, has_bit, painted_for, within_arc
from protege.games.echelon.task import features as at
from protege.games.echelon.world.mechs import FULL, GAUSS, HITSCAN, MISSILE, NOBODY, SMOKE, STATUS
from protege.kernels import kernel

Values = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int16]
Keys = npt.NDArray[np.float64]

BLUR: Final = 5.0  # voxels to which a place is rounded at no clarity at all
ROUGHNESS: Final = 0.5  # steps in which condition shows at no clarity at all
REPORT_CLARITY: Final = 0.5  # of one's own displays, for what others report


@kernel
def in_frame(mech: Record, dx: float, dy: float) -> tuple[float, float]:
    """How much of a way goes forward and to the left, as a mech sees it."""
    return dx * mech.cos + dy * mech.sin, dy * mech.cos - dx * mech.sin


@kernel
def bounded(value: float, most: float) -> float:
    """Cut off at both sides of zero."""
    return min(max(value, -most), most)


@kernel
def show_way(row: Values, place: int, viewer: Record, dx: float, dy: float, unit: float, most: float) -> None:
    """A way or a velocity, forward and to the left."""
    forward, left = in_frame(viewer, dx, dy)
    row[place], row[place + 1] = bounded(forward / unit, most), bounded(left / unit, most)


@kernel
def show_icon(row: Values, viewer: Record, kind: int, x: float, y: float, z: float) -> None:
    """Where somebody is, and of which class."""
    dx, dy, dz = x - viewer.x, y - viewer.y, z - viewer.z
    across = sqrt(dx * dx + dy * dy)
    show_way(row, at.PLACE, viewer, dx, dy, at.LENGTH, at.FARTHEST)
    row[at.PLACE + 2] = bounded(dz / at.LENGTH, at.FARTHEST)
    row[at.NEARNESS] = at.NEAR / (at.NEAR + sqrt(across * across + dz * dz))
    if across > 0.0:
        show_way(row, at.BEARING, viewer, dx, dy, across, 2.0)
    row[at.CLASS + kind] = 1.0


@kernel
def stepped(value: float, step: float) -> float:
    """Rounded to steps; 0 is no rounding."""
    return floor(value / step + 0.5) * step if step > 0.0 else value


@kernel
def show_status(battle: Battle, row: Values, viewer: Record, other: Record, blur: float, rough: float) -> None:
    """How somebody moves, and what condition it is in, as well as the display can tell."""
    dvx, dvy = stepped(other.vx, blur) - viewer.vx, stepped(other.vy, blur) - viewer.vy
    chassis = battle.rules.chassis[other.kind]
    show_way(row, at.VELOCITY, viewer, dvx, dvy, at.SPEED, at.FASTEST)
    row[at.VELOCITY + 2] = bounded((stepped(other.vz, blur) - viewer.vz) / at.SPEED, at.FASTEST)
    row[at.HP] = min(stepped(other.hp / chassis.hp, rough), 1.0)
    row[at.HEAT] = min(stepped(other.heat / chassis.heat_capacity, rough), 2.0)
    row[at.STABILITY] = min(stepped(other.stability / chassis.stability, rough), 1.0)
    row[at.FALLEN], row[at.LEGGED], row[at.SHUT] = other.fallen > 0, other.legged, other.shut


@kernel
def show_facing(row: Values, viewer: Record, other: Record) -> None:
    """Where somebody looks, from where the viewer looks."""
    row[at.FACING] = other.sin * viewer.cos - other.cos * viewer.sin
    row[at.FACING + 1] = other.cos * viewer.cos + other.sin * viewer.sin


@kernel
def insert(slots: Indices, keys: Keys, first: int, count: int, most: int, who: int, key: float) -> int:
    """Put somebody into a list that is sorted by key from place `first` on and holds `most` at most; the new count."""
    if count == most:
        if count == first or keys[count - 1] <= key:
            return count
        count -= 1
    place = count
    while place > first and keys[place - 1] > key:
        keys[place], slots[place] = keys[place - 1], slots[place - 1]
        place -= 1
    keys[place], slots[place] = key, who
    return count + 1


@kernel
def list_friends(battle: Battle, i: int, slots: Indices, keys: Keys) -> int:
    """The nearest friends, as many as the squad display shows; how many."""
    viewer = battle.mechs[i]
    most, count = min(at.SQUAD_SLOTS[viewer.suite], len(slots)), 0
    for j in range(battle.count):
        friend = battle.mechs[j]
        if j != i and friend.alive and friend.team == viewer.team:
            count = insert(slots, keys, 0, count, most, j, squared_distance(viewer, friend))
    return count


@kernel
def show_friend(battle: Battle, i: int, j: int, row: Values) -> None:
    """One friend, in as much detail as the suite gives."""
    viewer, friend = battle.mechs[i], battle.mechs[j]
    show_icon(row, viewer, friend.kind, friend.x, friend.y, friend.z)
    row[at.SAME_PACK], row[at.COMMANDS_ME] = friend.pack == viewer.pack, viewer.leader == j
    row[at.UNDER_ME] = friend.leader == i
    if at.SQUAD_DETAIL[viewer.suite] >= STATUS:
        show_status(battle, row, viewer, friend, 0.0, 0.0)
        show_facing(row, viewer, friend)
    if at.SQUAD_DETAIL[viewer.suite] >= FULL:
        row[at.FRIEND_LEGS] = friend.leg_hp / battle.rules.chassis[friend.kind].leg_hp
        row[at.FRIEND_PAINTED], row[at.FRIEND_INSIDE] = friend.painted > 0, friend.inside
        row[at.FRIEND_ORDERED] = friend.order != 0
    if at.SEES_FIGHTS[viewer.suite] and friend.focus != NOBODY and has_bit(friend.knows, friend.focus):
        target = battle.mechs[friend.focus]
        dx, dy = target.x - viewer.x, target.y - viewer.y
        row[at.FRIEND_FIGHTS] = 1.0
        show_way(row, at.FRIEND_TARGET, viewer, dx, dy, at.LENGTH, at.FARTHEST)


@kernel
def list_contacts(battle: Battle, i: int, slots: Indices, keys: Keys) -> int:
    """Enemies on the own sensors: the focus and painted ones first, then the nearest, as many as the suite shows."""
    viewer = battle.mechs[i]
    most, count = min(at.CONTACT_SLOTS[viewer.suite], len(slots)), 0
    if viewer.knows == 0:
        return 0
    first, last = enemies_of(battle, viewer)
    for j in range(first, last):
        if has_bit(viewer.knows, j):
            enemy = battle.mechs[j]
            key = squared_distance(viewer, enemy)
            if viewer.focus == j or painted_for(battle, viewer, enemy):
                key -= 1e9
            count = insert(slots, keys, 0, count, most, j, key)
    return count


@kernel
def list_reports(battle: Battle, i: int, slots: Indices, keys: Keys, contacts: int) -> int:
    """Add enemies known by report alone, nearest first, as many as the suite's intel shows; all slots in use.

    A mech is told of what its pack painted and, with contact reports, of what pack and subordinates sense.
    """
    viewer = battle.mechs[i]
    if viewer.shut:
        return contacts
    told = np.uint64(0)
    first, last = enemies_of(battle, viewer)
    for j in range(first, last):
        enemy = battle.mechs[j]
        if enemy.alive and enemy.painted > 0 and battle.mechs[enemy.painter].pack == viewer.pack:
            told |= np.uint64(1) << np.uint64(j)
    if at.GETS_REPORTS[viewer.suite]:
        for j in range(battle.count):
            friend = battle.mechs[j]
            if j != i and friend.team == viewer.team and (friend.pack == viewer.pack or friend.leader == i):
                told |= friend.knows
    for n in range(contacts):
        told &= ~(np.uint64(1) << np.uint64(slots[n]))
    count, most = contacts, min(contacts + at.INTEL_SLOTS[viewer.suite], len(slots))
    for j in range(first, last if told != 0 else first):
        if has_bit(told, j):
            count = insert(slots, keys, contacts, count, most, j, squared_distance(viewer, battle.mechs[j]))
    return count


@kernel
def show_fits(battle: Battle, viewer: Record, j: int, known: bool, row: Values) -> None:
    """Which buttons would now fire something at this enemy: in reach, within the arc and in sight."""
    enemy = battle.mechs[j]
    distance = squared_distance(viewer, enemy)
    for weapon in range(battle.rules.trigger.shape[1]):
        button, gun = battle.rules.trigger[viewer.kind, weapon], battle.rules.weapons[weapon]
        if button < 0 or distance > gun.reach * gun.reach:
            continue
        if gun.guidance == HITSCAN or weapon == MISSILE:
            fits = can_target(battle, viewer, j, weapon)
        elif weapon == SMOKE:
            fits = known and within_arc(viewer, enemy, gun.cos_half_arc)
        else:
            fits = has_bit(viewer.sees, j) and within_arc(viewer, enemy, battle.rules.cos_focus_assist)
        if fits:
            row[at.FITS + button] = 1.0


@kernel
def show_geometry(battle: Battle, viewer: Record, enemy: Record, row: Values) -> None:
    """What takes a clear view: where it looks and goes, and how high a gauss shot has to be aimed."""
    dx, dy, dz = enemy.x - viewer.x, enemy.y - viewer.y, enemy.z - viewer.z
    across = sqrt(dx * dx + dy * dy)
    distance = sqrt(across * across + dz * dz)
    show_facing(row, viewer, enemy)
    if across > 0.0:
        row[at.BEHIND] = bounded((dx * enemy.cos + dy * enemy.sin) / across, 1.0)
        closing = -(dx * (enemy.vx - viewer.vx) + dy * (enemy.vy - viewer.vy)) / across
        row[at.CLOSING] = bounded(closing / at.SPEED, at.FASTEST)
        pace = sqrt(enemy.vx * enemy.vx + enemy.vy * enemy.vy)
        if pace > 0.5:
            row[at.CROSSING] = min(abs(dx * enemy.vy - dy * enemy.vx) / (across * pace), 1.0)
    if battle.rules.trigger[viewer.kind, GAUSS] >= 0:
        flight = distance / battle.rules.weapons[GAUSS].speed
        rise = dz + 0.5 * battle.rules.gravity * flight * flight
        row[at.PITCH] = bounded(atan(rise / max(across, 1e-6)) * (4.0 / pi), 1.0)


@kernel
def show_enemy(battle: Battle, i: int, j: int, reported: bool, row: Values) -> None:
    """One enemy, as clearly as it is known."""
    viewer, enemy = battle.mechs[i], battle.mechs[j]
    seen = has_bit(viewer.sees, j) and not reported
    clarity = at.FIDELITY[viewer.suite]
    if reported:
        clarity *= REPORT_CLARITY
    elif not seen:
        clarity *= min(viewer.quality, 1.0)
    blur = 0.0 if seen else BLUR * (1.0 - clarity)
    x, y, z = stepped(enemy.x, blur), stepped(enemy.y, blur), stepped(enemy.z, blur)
    show_icon(row, viewer, enemy.kind, x, y, z)
    show_status(battle, row, viewer, enemy, blur, ROUGHNESS * (1.0 - clarity))
    if seen:
        show_geometry(battle, viewer, enemy, row)
    painted = enemy.painted > 0 and battle.mechs[enemy.painter].pack == viewer.pack
    row[at.ENEMY_PAINTED], row[at.EMITS] = painted, emits(enemy, JAMMING) or emits(enemy, COUNTERING)
    row[at.SEEN], row[at.REPORTED], row[at.CLARITY] = seen, reported, clarity
    row[at.ENEMY_FOCUS] = viewer.focus == j
    show_fits(battle, viewer, j, not reported, row)
