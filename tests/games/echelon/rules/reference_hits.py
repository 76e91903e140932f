"""The slow reference's parts of a tick in which hits take effect: damage, balance, paint, death, wrecks, shutdown."""

from collections import defaultdict
from math import ceil, floor

from tests.games.echelon.rules.reference_fight import centre_of, end_paint
from tests.games.echelon.rules.reference_state import (
    FOR_WRECK,
    LAYERS,
    NO_WEAPON,
    TOUCH,
    ZERO,
    Battle,
    Controls,
    Hit,
    Mech,
    Paint,
    Vector,
    Voxel,
)
from tests.games.echelon.rules.reference_tables import AIR, DIRT, MATERIALS, Column

# --- 5. hits ---------------------------------------------------------------------------------------------------------


def apply_hits(battle: Battle) -> None:
    dead = []
    for mech in battle.living():
        worst = min(mech.hits, key=lambda hit: (-hit.body, hit.who.team == mech.team, hit.who.rank), default=None)
        if worst:
            mech.hit, distance = True, abs(worst.travel)
            mech.hurt = worst.travel * (-1 / distance) if distance else ZERO
        lose_hp(battle, mech, worst)
        if mech.paint:
            mech.paint.damage += sum(hit.boosted for hit in mech.hits)
        if mech.hp:
            suffer(battle, mech, worst)
        else:
            die(battle, mech, worst)
            dead.append(mech)
        mech.burn, mech.hits, mech.painters = 0.0, [], []
    stamp_wrecks(battle, dead)


def lose_hp(battle: Battle, mech: Mech, worst: Hit | None) -> None:
    """Take the damage off, and book it to whoever did it; of more than is left each has its share."""
    by_attacker: dict[int, float] = defaultdict(float)
    for hit in mech.hits:
        by_attacker[hit.who.index] += hit.body
    before, total = mech.hp, mech.burn + sum(by_attacker.values())
    lost = min(total, before)

    def part(amount: float) -> float:
        return amount if total <= before else floor(amount * (before / total) * 1024) / 1024

    parts = {who: part(amount) for who, amount in by_attacker.items()}
    if worst:
        parts[worst.who.index] += lost - part(mech.burn) - sum(parts.values())
    for who, amount in parts.items():
        attacker = battle.mechs[who]
        mech.taken_from[who] += amount
        if attacker.team == mech.team:
            attacker.friendly += amount
        else:
            attacker.dealt += amount
    mech.hp = before - lost
    mech.taken += lost


def suffer(battle: Battle, mech: Mech, worst: Hit | None) -> None:
    """What a mech that survives its hits has of them."""
    rules, hits = battle.rules, mech.hits
    by, weapon = (worst.who, worst.weapon.id) if worst else (None, NO_WEAPON)
    mech.heat += sum(hit.heat for hit in hits)
    if "autocannon" in [hit.weapon.name for hit in hits]:
        mech.timers["suppressed"] = rules.suppress_ticks
    mech.leg_hp = max(mech.leg_hp - sum(hit.leg for hit in hits), 0.0)
    if not mech.leg_hp and not mech.legged:
        mech.legged = True
        battle.emit("legged", by, mech.place, mech, weapon)
    if not mech.fallen:
        left = min(mech.stability - sum(hit.stability for hit in hits), battle.stability_limit(mech))
        mech.stability = max(left, 0.0)
        if left <= 0:
            mech.fallen, mech.velocity = rules.knockdown_ticks, ZERO
            battle.emit("knockdown", by, mech.place, mech, weapon)
    if mech.painters:
        painter = max(mech.painters, key=lambda painter: painter.index)
        if mech.paint and mech.paint.by is not painter:
            end_paint(battle, mech)
        mech.paint = Paint(painter, rules.paint_ticks, mech.paint.damage if mech.paint else 0.0)
        battle.emit("paint", painter, mech.place, mech, battle.preset.weapons["painter"].id)


def die(battle: Battle, mech: Mech, worst: Hit | None) -> None:
    killer, weapon = (worst.who, worst.weapon.id) if worst else (None, NO_WEAPON)
    battle.emit("death", mech, mech.place, killer, weapon)
    if killer and killer.team == mech.team:
        battle.emit("friendly_kill", killer, mech.place, mech, weapon)
    elif killer:
        battle.emit("kill", killer, mech.place, mech, weapon)
        helpers = [other for other in battle.team(1 - mech.team) if other is not killer]
        for helper in helpers:
            taken = mech.taken_from[helper.index]
            if taken >= battle.rules.assist_fraction * mech.chassis.hp or (mech.paint and mech.paint.by is helper):
                battle.emit("assist", helper, mech.place, mech, amount=taken)
    if mech.paint:
        end_paint(battle, mech)
    mech.alive = mech.shut = mech.grounded = False
    mech.fallen = mech.order = 0
    mech.timers["suppressed"] = mech.timers["order"] = 0
    mech.velocity, mech.noise, mech.controls = ZERO, 0.0, Controls()


def stamp_wrecks(battle: Battle, dead: list[Mech]) -> None:
    """All drop onto the ground as it is now; then the solid ones are stamped into the map, then the others."""
    bases = {mech: ground_below(battle, mech) for mech in dead}
    solid = {mech: battle.draw(mech, FOR_WRECK) < mech.chassis.solid_wreck for mech in dead}
    for mech in sorted(dead, key=lambda mech: not solid[mech]):
        material = MATERIALS["solid_debris" if solid[mech] else "debris_field"]
        stamp(battle, mech, bases[mech], material)


def ground_below(battle: Battle, mech: Mech) -> int:
    """The layer onto which a dead body drops."""
    feet = floor(mech.feet + TOUCH)
    return max((n + 1 for n in battle.terrain.layers_under(mech.place, mech.half) if n < feet), default=0)


def stamp(battle: Battle, mech: Mech, base: int, material: Column) -> None:
    half = mech.half.x
    across, along = (range(ceil(at - half - 0.5), floor(at + half - 0.5) + 1) for at in (mech.place.x, mech.place.y))
    up = range(base, min(floor(base + mech.height - 0.5), LAYERS - 1) + 1)
    for voxel in [(x, y, layer) for layer in up for y in along for x in across]:
        if battle.terrain.at(voxel).id in (AIR, DIRT) and not occupied(battle, voxel):
            battle.changes.append(battle.terrain.put(voxel, material))


def occupied(battle: Battle, voxel: Voxel) -> bool:
    """Whether a living mech reaches into a voxel."""
    centre, edge = centre_of(voxel), Vector(0.5, 0.5, 0.5)
    for mech in battle.living():
        apart, reach = centre - mech.place, mech.half + edge
        if all(abs(a) < r - TOUCH for a, r in zip(apart, reach)):
            return True
    return False


# --- 6. shutdown -----------------------------------------------------------------------------------------------------


def watch_reactors(battle: Battle) -> None:
    for mech in battle.living():
        too_hot = mech.heat > mech.chassis.heat_capacity
        if too_hot != mech.shut:
            mech.shut = too_hot
            battle.emit("shutdown" if too_hot else "restart", mech, mech.place, amount=mech.heat)
