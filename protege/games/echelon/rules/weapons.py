"""Who shoots at whom, and with what: targets, locks, aim, and the seven weapons.

Everybody decides on the field as it was when firing began; hits and paint wait in `pending`, shots begin to fly in the
next tick.
"""

from math import sqrt

import numpy as np

from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import FOR_AIM, VENT, Battle, Record, draw, enemies_of, squared_distance
from protege.games.echelon.rules.damage import strike
from protege.games.echelon.rules.shots import launch
from protege.games.echelon.world.mechs import BALLISTIC, HITSCAN, KINETIC_TIMER, MISSILE, NOBODY, PAINTER, SMOKE
from protege.kernels import kernel


@kernel
def within_arc(mech: Record, target: Record, cosine: float) -> bool:
    """Whether the target lies within an angle of the mech's heading, seen from above."""
    dx, dy = target.x - mech.x, target.y - mech.y
    return bool(dx * mech.cos + dy * mech.sin >= cosine * sqrt(dx * dx + dy * dy))


@kernel
def has_bit(bits: np.uint64, j: int) -> bool:
    return bool(bits >> np.uint64(j) & np.uint64(1))


@kernel
def painted_for(battle: Battle, mech: Record, target: Record) -> bool:
    """Whether a mech may use the paint on a target: from its own pack, on sensors good enough."""
    if target.painted == 0 or mech.quality < battle.rules.paint_quality:
        return False
    return bool(battle.mechs[target.painter].pack == mech.pack)


@kernel
def can_target(battle: Battle, mech: Record, whom: int, weapon: int) -> bool:
    """Whether a weapon could be fired at a target now; guns are drawn to a known one that is nearly straight ahead."""
    target, gun, rules = battle.mechs[whom], battle.rules.weapons[weapon], battle.rules
    if gun.timer == KINETIC_TIMER:
        cosine = rules.cos_focus_assist if whom == mech.focus else rules.cos_aim_assist
        return has_bit(mech.knows, whom) and target.alive and within_arc(mech, target, cosine)
    seen = has_bit(mech.sees, whom)
    if not target.alive or not (seen or weapon == MISSILE) or not within_arc(mech, target, gun.cos_half_arc):
        return False
    distance = squared_distance(mech, target)
    reach = gun.sight_lock if gun.sight_lock > 0.0 else gun.reach
    if seen and distance <= reach * reach:
        return True
    return weapon == MISSILE and distance <= gun.reach * gun.reach and painted_for(battle, mech, target)


@kernel
def choose_target(battle: Battle, mech: Record, weapon: int) -> int:
    """The focus target if the weapon can be fired at it, else the nearest enemy that it can be fired at."""
    if mech.focus != NOBODY and can_target(battle, mech, mech.focus, weapon):
        return int(mech.focus)
    nearest, found = 0.0, NOBODY
    first, last = enemies_of(battle, mech)
    for i in range(first, last):
        if can_target(battle, mech, i, weapon):
            distance = squared_distance(mech, battle.mechs[i])
            if found == NOBODY or distance < nearest:
                nearest, found = distance, i
    return found


@kernel
def scatter(battle: Battle, who: int, weapon: int) -> float:
    """How far from the middle of its target a shot goes, up or down, in half heights."""
    mech = battle.mechs[who]
    drawn = draw(battle.key[mech.team], FOR_AIM, mech.rank, weapon)
    return float((2.0 * drawn - 1.0) * battle.rules.aim_spread)


@kernel
def fire_hitscan(battle: Battle, who: int, weapon: int) -> bool:
    """Laser, flamer, painter: at once, if there is a target."""
    whom = choose_target(battle, battle.mechs[who], weapon)
    if whom == NOBODY:
        return False
    mech, target = battle.mechs[who], battle.mechs[whom]
    if weapon == PAINTER:
        battle.pending[whom].touched = 1
        battle.pending[whom].painter = who
        return True
    height = 0.5 + 0.5 * scatter(battle, who, weapon)
    amount = strike(battle, who, whom, weapon, target.x - mech.x, target.y - mech.y, target.z - mech.z, height)
    events.emit_at(battle, events.LASER_HIT, who, whom, weapon, amount, target)
    return True


@kernel
def fire_missile(battle: Battle, who: int) -> bool:
    """Needs a lock: paint by the own pack, or sight. Leaves upwards."""
    whom = choose_target(battle, battle.mechs[who], MISSILE)
    if whom == NOBODY:
        return False
    mech, target, rules = battle.mechs[who], battle.mechs[whom], battle.rules
    dx, dy, dz = target.x - mech.x, target.y - mech.y, target.z - mech.z
    distance = sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx / distance, dy / distance, dz / distance + rules.launch_up
    length = sqrt(dx * dx + dy * dy + dz * dz)
    muzzle = mech.z + mech.half_height + rules.launch_above
    dx, dy, dz = dx / length, dy / length, dz / length
    by_paint = 1.0 if painted_for(battle, mech, target) else 0.0
    return launch(battle, who, MISSILE, whom, muzzle, dx, dy, dz, events.MISSILE_LAUNCH, by_paint)


@kernel
def fire_kinetic(battle: Battle, who: int, weapon: int) -> bool:
    """Gauss and autocannon always fire: at whom they are drawn to, with lead for gravity, or straight ahead."""
    mech, gun, rules = battle.mechs[who], battle.rules.weapons[weapon], battle.rules
    whom = choose_target(battle, mech, weapon)
    dx, dy, dz = mech.cos, mech.sin, 0.0
    if whom != NOBODY:
        target = battle.mechs[whom]
        dx, dy = target.x - mech.x, target.y - mech.y
        dz = target.z + scatter(battle, who, weapon) * target.half_height - mech.z
        if gun.guidance == BALLISTIC:
            flight = sqrt(dx * dx + dy * dy + dz * dz) / gun.speed
            dz += 0.5 * rules.gravity * flight * flight
        length = sqrt(dx * dx + dy * dy + dz * dz)
        dx, dy, dz = dx / length, dy / length, dz / length
    return launch(battle, who, weapon, whom, mech.z, dx, dy, dz, events.KINETIC_FIRE, 0.0)


@kernel
def fire_smoke(battle: Battle, who: int) -> bool:
    """Level, towards the focus target if that is near, else straight ahead."""
    mech, gun = battle.mechs[who], battle.rules.weapons[SMOKE]
    dx, dy, whom = mech.cos, mech.sin, NOBODY
    if mech.focus != NOBODY and battle.mechs[mech.focus].alive:
        target = battle.mechs[mech.focus]
        near = squared_distance(mech, target) <= gun.reach * gun.reach
        across, along = target.x - mech.x, target.y - mech.y
        length = sqrt(across * across + along * along)
        if near and length > 0.0 and within_arc(mech, target, gun.cos_half_arc):
            dx, dy, whom = across / length, along / length, mech.focus
    return launch(battle, who, SMOKE, whom, mech.z, dx, dy, 0.0, events.SMOKE_LAUNCH, 0.0)


@kernel
def fire(battle: Battle, who: int, weapon: int) -> None:
    """Pull one trigger: if the weapon is ready and finds what it needs, it costs heat and time."""
    mech, gun = battle.mechs[who], battle.rules.weapons[weapon]
    if mech.wait[gun.timer] > 0:
        return
    if gun.guidance == HITSCAN:
        fired = fire_hitscan(battle, who, weapon)
    elif weapon == MISSILE:
        fired = fire_missile(battle, who)
    elif weapon == SMOKE:
        fired = fire_smoke(battle, who)
    else:
        fired = fire_kinetic(battle, who, weapon)
    if fired:
        mech.wait[gun.timer] = gun.cooldown_ticks
        mech.heat += gun.heat


@kernel
def fire_all(battle: Battle) -> None:
    """Everybody who stands and runs fires what its player asks for, button by button."""
    triggers = battle.rules.trigger
    for who in range(battle.count):
        mech = battle.mechs[who]
        if not mech.alive or mech.shut or mech.fallen > 0:
            continue
        for button in range(VENT):
            if mech.buttons >> button & 1:
                for weapon in range(triggers.shape[1]):
                    if triggers[mech.kind, weapon] == button:
                        fire(battle, who, weapon)
