"""Hits: collected while everybody acts, then applied to all at once, so that nobody shoots first.

`hurt` and `strike` add to `pending` and `damage`; `apply_hits` turns the sums into lost HP, broken legs, falls, deaths,
credit and wrecks. Amounts are multiples of 1/1024, whose sums are exact in any order.
"""

from math import ceil, floor, sqrt

from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import FOR_WRECK, Battle, Record, draw, enemies_of, points
from protege.games.echelon.rules.condition import end_paint, stability_limit
from protege.games.echelon.world.mechs import AIR, AUTOCANNON, DEBRIS, DIRT, NOBODY, PAINTER, SOLID_DEBRIS
from protege.games.echelon.world.sight import TOUCH, footprint, highest_layer, layers
from protege.games.echelon.world.voxels import HEIGHT, World, set_voxel
from protege.kernels import kernel


@kernel
def comes_first(battle: Battle, whom: int, a: int, b: int) -> bool:
    """Which of two equally strong attackers counts: an enemy before a friend, then the lower rank."""
    if b == NOBODY:
        return True
    team = battle.mechs[whom].team
    hostile_a, hostile_b = battle.mechs[a].team != team, battle.mechs[b].team != team
    if hostile_a != hostile_b:
        return bool(hostile_a)
    return bool(battle.mechs[a].rank < battle.mechs[b].rank)


@kernel
def hurt(
    battle: Battle, who: int, whom: int, weapon: int, amount: float, stability: float, dx: float, dy: float, dz: float
) -> None:
    """Add damage that travels along (dx, dy, dz)."""
    pending = battle.pending[whom]
    pending.touched = 1
    pending.stability += stability
    battle.damage[whom, who] += amount
    if amount > pending.worst or (amount == pending.worst and comes_first(battle, whom, who, pending.worst_by)):
        length = sqrt(dx * dx + dy * dy + dz * dz)
        scale = -1.0 / length if length > 0.0 else 0.0
        pending.worst, pending.worst_by, pending.worst_weapon = amount, who, weapon
        pending.from_x, pending.from_y, pending.from_z = dx * scale, dy * scale, dz * scale


@kernel
def strike(battle: Battle, who: int, whom: int, weapon: int, dx: float, dy: float, dz: float, height: float) -> float:
    """A direct hit that travels along (dx, dy, dz) and lands at this fraction of the target's height; the damage."""
    rules, gun = battle.rules, battle.rules.weapons[weapon]
    shooter, target, pending = battle.mechs[who], battle.mechs[whom], battle.pending[whom]
    amount, stability = gun.damage, gun.stability_damage
    along, across = dx * target.cos + dy * target.sin, sqrt(dx * dx + dy * dy)
    if across > 0.0 and along >= rules.cos_rear * across:
        amount, stability = amount * rules.rear_factor, stability * rules.rear_factor
    boosted = target.painted > 0 and battle.mechs[target.painter].pack == shooter.pack
    if boosted:
        amount *= 1.0 + rules.paint_bonus
    amount = body = points(amount)
    if height < rules.leg_height:
        pending.leg += amount
        body = points(amount * rules.leg_body_fraction)
    if boosted:
        pending.boosted += body
    pending.heat += gun.target_heat
    if weapon == AUTOCANNON:
        pending.suppress = 1
    hurt(battle, who, whom, weapon, body, points(stability), dx, dy, dz)
    return amount


@kernel
def divide_credit(battle: Battle, whom: int) -> None:
    """Take the tick's damage off, and book it; of more than is left each has its part, the strongest the rest."""
    mech, pending = battle.mechs[whom], battle.pending[whom]
    total = pending.burn
    for who in range(battle.count):
        total += battle.damage[whom, who]
    lost = min(total, mech.hp)
    scale = 1.0 if total <= mech.hp else mech.hp / total
    rest = lost - floor(pending.burn * scale * 1024.0) * (1.0 / 1024.0)
    for who in range(battle.count):
        amount = floor(battle.damage[whom, who] * scale * 1024.0) * (1.0 / 1024.0)
        if amount > 0.0:
            rest -= amount
            book(battle, who, whom, amount)
    if pending.worst_by != NOBODY and rest > 0.0:
        book(battle, pending.worst_by, whom, rest)
    mech.hp -= lost
    mech.taken += lost


@kernel
def book(battle: Battle, who: int, whom: int, amount: float) -> None:
    """HP that one mech took off another, or off itself."""
    battle.ledger[who, whom] += amount
    if battle.mechs[who].team != battle.mechs[whom].team:
        battle.mechs[who].dealt += amount
    else:
        battle.mechs[who].friendly += amount


@kernel
def shake(battle: Battle, whom: int) -> None:
    """Legs, heat, suppression and balance of whoever survived the tick's hits."""
    mech, pending, rules = battle.mechs[whom], battle.pending[whom], battle.rules
    mech.heat += pending.heat
    if pending.suppress:
        mech.suppressed = rules.suppress_ticks
    if mech.painted > 0:
        mech.paint_damage += pending.boosted
    mech.leg_hp = max(mech.leg_hp - pending.leg, 0.0)
    if mech.leg_hp == 0.0 and not mech.legged:
        mech.legged = 1
        events.emit_at(battle, events.LEGGED, pending.worst_by, whom, pending.worst_weapon, 0.0, mech)
    if mech.fallen > 0:
        return
    mech.stability = min(mech.stability - pending.stability, stability_limit(battle, mech))
    if mech.stability <= 0.0:
        mech.stability = 0.0
        mech.fallen = rules.knockdown_ticks
        mech.vx = mech.vy = mech.vz = 0.0
        events.emit_at(battle, events.KNOCKDOWN, pending.worst_by, whom, pending.worst_weapon, 0.0, mech)


@kernel
def give_credit(battle: Battle, whom: int) -> None:
    """The kill to whoever hit hardest in the last tick, an assist to every other enemy who helped, each once."""
    mech, pending = battle.mechs[whom], battle.pending[whom]
    killer, weapon = pending.worst_by, pending.worst_weapon
    events.emit_at(battle, events.DEATH, whom, killer, weapon, 0.0, mech)
    if killer == NOBODY:
        return
    if battle.mechs[killer].team == mech.team:
        events.emit_at(battle, events.FRIENDLY_KILL, killer, whom, weapon, 0.0, mech)
        return
    events.emit_at(battle, events.KILL, killer, whom, weapon, 0.0, mech)
    enough = battle.rules.assist_fraction * battle.rules.chassis[mech.kind].hp
    first, last = enemies_of(battle, mech)
    for who in range(first, last):
        helped = battle.ledger[who, whom] >= enough or (mech.painted > 0 and mech.painter == who)
        if helped and who != killer:
            events.emit_at(battle, events.ASSIST, who, whom, events.NO_WEAPON, battle.ledger[who, whom], mech)


@kernel
def die(battle: Battle, whom: int) -> None:
    mech = battle.mechs[whom]
    give_credit(battle, whom)
    if mech.painted > 0:
        mech.paint_damage += battle.pending[whom].boosted
        end_paint(battle, whom)
    battle.living[mech.team] -= 1
    mech.alive = mech.shut = mech.fallen = mech.suppressed = mech.grounded = 0
    mech.buttons = mech.ewar = mech.order = mech.order_left = 0
    mech.focus = NOBODY
    mech.vx = mech.vy = mech.vz = mech.noise = 0.0
    mech.forward = mech.strafe = mech.vertical = mech.turn = 0.0


@kernel
def touches_living(battle: Battle, x: int, y: int, z: int) -> bool:
    """Whether a living mech's box reaches into a voxel."""
    for i in range(battle.count):
        mech = battle.mechs[i]
        wide, high = mech.half_width + 0.5 - TOUCH, mech.half_height + 0.5 - TOUCH
        beside = abs(x + 0.5 - mech.x) < wide and abs(y + 0.5 - mech.y) < wide
        if mech.alive and beside and abs(z + 0.5 - mech.z) < high:
            return True
    return False


@kernel
def leave_wreck(battle: Battle, world: World, b: int, mech: Record, base: int, material: int) -> None:
    """Fill the voxels whose centres a body with its feet at `base` covers with what is left of it."""
    wide, (rows, width) = mech.half_width, world.blocked.shape[1:]
    for z in range(base, min(int(floor(base + 2.0 * mech.half_height - 0.5)), HEIGHT - 1) + 1):
        for y in range(int(ceil(mech.y - wide - 0.5)), int(floor(mech.y + wide - 0.5)) + 1):
            for x in range(int(ceil(mech.x - wide - 0.5)), int(floor(mech.x + wide - 0.5)) + 1):
                before = world.material[b, z, y, x]
                if (before == AIR or before == DIRT) and not touches_living(battle, x, y, z):
                    set_voxel(world, b, z, y, x, material)
                    events.note_change(battle, (z * rows + y) * width + x, material)


@kernel
def leave_wrecks(battle: Battle, world: World, b: int, count: int) -> None:
    """Wrecks of the `count` mechs in `order`."""
    # Where two meet, who is listed first must not matter: all drop onto the ground as it is now, solid ones go first.
    for n in range(count):
        mech = battle.mechs[battle.order[n]]
        below = layers(0, int(floor(mech.z - mech.half_height + TOUCH)) - 1)
        around = footprint(world.blocked[b], mech.x, mech.y, mech.half_width)
        battle.order_keys[n] = highest_layer(around & below) + 1  # the layer onto which the body drops
    for material in (SOLID_DEBRIS, DEBRIS):
        for n in range(count):
            mech = battle.mechs[battle.order[n]]
            solid = draw(battle.key[mech.team], FOR_WRECK, mech.rank, 0)
            hard = solid < battle.rules.chassis[mech.kind].solid_wreck
            if hard == (material == SOLID_DEBRIS):
                leave_wreck(battle, world, b, mech, int(battle.order_keys[n]), material)


@kernel
def apply_hits(battle: Battle, world: World, b: int) -> None:
    """All hits of the tick take effect, on everybody at the same time."""
    deaths = 0
    for i in range(battle.count):
        pending = battle.pending[i]
        if not pending.touched:
            continue
        mech = battle.mechs[i]
        if pending.worst_by != NOBODY:
            mech.hit = 1
            mech.hurt_x, mech.hurt_y, mech.hurt_z = pending.from_x, pending.from_y, pending.from_z
        divide_credit(battle, i)
        if mech.hp > 0.0:
            shake(battle, i)
            if pending.painter != NOBODY:
                if mech.painted > 0 and mech.painter != pending.painter:
                    end_paint(battle, i)  # another's mark gives way
                mech.painted, mech.painter = battle.rules.paint_ticks, pending.painter
                events.emit_at(battle, events.PAINT, pending.painter, i, PAINTER, 0.0, mech)
        else:
            die(battle, i)
            battle.order[deaths] = i
            deaths += 1
        clear_pending(battle, i)
    if deaths > 0:
        leave_wrecks(battle, world, b, deaths)


@kernel
def clear_pending(battle: Battle, i: int) -> None:
    pending = battle.pending[i]
    pending.touched = pending.suppress = 0
    pending.painter = pending.worst_by = NOBODY
    pending.worst_weapon = events.NO_WEAPON
    pending.burn = pending.leg = pending.stability = pending.heat = pending.boosted = 0.0
    pending.worst = pending.from_x = pending.from_y = pending.from_z = 0.0
    battle.damage[i] = 0.0
