"""What a tick does to a mech by itself: timers, ground, balance, heat."""

from math import floor

from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import COUNTERING, JAMMING, NO_ORDER, VENT, Battle, Record, points
from protege.games.echelon.world.mechs import DEBRIS, HAZARD_DAMAGE, HAZARD_HEAT, NOBODY
from protege.games.echelon.world.sight import TOUCH
from protege.games.echelon.world.voxels import Materials
from protege.kernels import kernel


@kernel
def stability_limit(battle: Battle, mech: Record) -> float:
    whole: float = battle.rules.chassis[mech.kind].stability
    return whole * battle.rules.legged_stability if mech.legged else whole


@kernel
def end_paint(battle: Battle, i: int) -> None:
    """The paint on a mech is gone: tell what it was good for."""
    mech = battle.mechs[i]
    events.emit_at(battle, events.PAINT_EXPIRED, mech.painter, i, events.NO_WEAPON, mech.paint_damage, mech)
    mech.painted, mech.painter, mech.paint_damage = 0, NOBODY, 0.0


@kernel
def run_timers(battle: Battle, i: int) -> None:
    mech = battle.mechs[i]
    for timer in range(len(mech.wait)):
        mech.wait[timer] = max(mech.wait[timer] - 1, 0)
    mech.ams_wait = max(mech.ams_wait - 1, 0)
    mech.suppressed = max(mech.suppressed - 1, 0)
    mech.order_left = max(mech.order_left - 1, 0)
    if mech.order_left == 0:
        mech.order = NO_ORDER
    if mech.painted > 0:
        mech.painted -= 1
        if mech.painted == 0:
            end_paint(battle, i)


@kernel
def keep_balance(battle: Battle, i: int) -> None:
    """Stand up, or regain stability."""
    mech, rules = battle.mechs[i], battle.rules
    if mech.fallen > 0:
        mech.fallen -= 1
        if mech.fallen == 0:
            mech.stability = rules.stand_up_stability * stability_limit(battle, mech)
            events.emit_at(battle, events.STAND_UP, i, NOBODY, events.NO_WEAPON, mech.stability, mech)
        return
    factor = 1.0
    if mech.legged:
        factor -= rules.regen_legged
    if mech.vx * mech.vx + mech.vy * mech.vy > rules.moving_speed * rules.moving_speed:
        factor -= rules.regen_moving
    if mech.suppressed > 0:
        factor -= rules.regen_suppressed
    gain = rules.regen * max(factor, rules.regen_floor) * rules.dt
    mech.stability = min(mech.stability + gain, stability_limit(battle, mech))


@kernel
def warm_and_cool(battle: Battle, i: int) -> None:
    """Heat of ground and emitters in, cooling out. What the ground burns off waits with the tick's hits."""
    mech, rules = battle.mechs[i], battle.rules
    gain, loss = HAZARD_HEAT[mech.material], rules.chassis[mech.kind].dissipation
    if not mech.shut:
        if mech.ewar == JAMMING:
            gain += rules.jam_heat
        elif mech.ewar == COUNTERING:
            gain += rules.counter_heat
        if mech.buttons >> VENT & 1:
            loss += rules.vent_factor * loss
    mech.heat = max(mech.heat + (gain - loss) * rules.dt, 0.0)
    if HAZARD_DAMAGE[mech.material] > 0.0:
        battle.pending[i].touched = 1
        battle.pending[i].burn += points(HAZARD_DAMAGE[mech.material] * rules.dt)


@kernel
def pass_time(battle: Battle, material: Materials) -> None:
    for i in range(battle.count):
        mech = battle.mechs[i]
        if mech.alive:
            run_timers(battle, i)
            x, y, feet = int(floor(mech.x)), int(floor(mech.y)), int(floor(mech.z - mech.half_height + TOUCH))
            # Nobody can have its feet in a debris field, so standing on one counts.
            on_debris = mech.grounded and feet > 0 and material[feet - 1, y, x] == DEBRIS
            mech.material = DEBRIS if on_debris else material[feet, y, x]
            keep_balance(battle, i)
            warm_and_cool(battle, i)


@kernel
def switch_reactors(battle: Battle) -> None:
    """Too hot shuts a mech down, cool enough starts it again."""
    for i in range(battle.count):
        mech = battle.mechs[i]
        too_hot = mech.heat > battle.rules.chassis[mech.kind].heat_capacity
        if mech.alive and too_hot != mech.shut:
            mech.shut = too_hot
            kind = events.SHUTDOWN if too_hot else events.RESTART
            events.emit_at(battle, kind, i, NOBODY, events.NO_WEAPON, mech.heat, mech)
