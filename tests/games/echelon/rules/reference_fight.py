"""The slow reference's parts of a tick in which mechs burn, cool and hurt each other: time, shots, fire."""

from collections import Counter
from dataclasses import dataclass, replace
from math import floor, sqrt

from tests.games.echelon.rules.reference_state import (
    FOR_AIM,
    FOR_AMS,
    LAYERS,
    TOUCH,
    Battle,
    Block,
    Cloud,
    Hit,
    Mech,
    Shot,
    Vector,
    Voxel,
    points,
    ray,
)
from tests.games.echelon.rules.reference_tables import DEBRIS_FIELD, MATERIALS, Column

VENT = 4
ONE_TICK = Counter(["weapon 0", "weapon 1", "weapon 2", "weapon 3", "ams", "suppressed", "order"])
MOST_SHOTS, MOST_CLOUDS = 240, 120
PULLED_BACK = 0.01  # so far from the wall that stopped it a shot bursts

# --- 2. time ---------------------------------------------------------------------------------------------------------


def pass_time(battle: Battle) -> None:
    for mech in battle.living():
        mech.timers -= ONE_TICK  # those that come to 0 leave the counter
        if not mech.timers["order"]:
            mech.order = 0
        if mech.paint:
            mech.paint.left -= 1
            if not mech.paint.left:
                end_paint(battle, mech)
        mech.ground = ground_under(battle, mech)
        if mech.fallen:
            lie(battle, mech)
        else:
            steady(battle, mech)
        mech.heat = max(mech.heat + heat_per_second(battle, mech) * battle.rules.dt, 0.0)
        mech.burn += points(mech.ground.damage * battle.rules.dt)


def end_paint(battle: Battle, mech: Mech) -> None:
    assert mech.paint
    battle.emit("paint_expired", mech.paint.by, mech.place, whom=mech, amount=mech.paint.damage)
    mech.paint = None


def ground_under(battle: Battle, mech: Mech) -> Column:
    """What it stands in; of a debris field, what it stands on."""
    x, y, layer = floor(mech.place.x), floor(mech.place.y), floor(mech.feet + TOUCH)
    below = battle.terrain.at((x, y, layer - 1)) if mech.grounded and layer else None
    return below if below and below.id == DEBRIS_FIELD else battle.terrain.at((x, y, layer))


def lie(battle: Battle, mech: Mech) -> None:
    mech.fallen -= 1
    if not mech.fallen:
        mech.stability = battle.rules.stand_up_stability * battle.stability_limit(mech)
        battle.emit("stand_up", mech, mech.place, amount=mech.stability)


def steady(battle: Battle, mech: Mech) -> None:
    rules, pace = battle.rules, mech.velocity.level
    handicaps = [
        (mech.legged, rules.regen_legged),
        (pace @ pace > rules.moving_speed**2, rules.regen_moving),
        (mech.timers["suppressed"] > 0, rules.regen_suppressed),
    ]
    share = 1 - sum(handicap for applies, handicap in handicaps if applies)
    regained = rules.regen * max(share, rules.regen_floor) * rules.dt
    mech.stability = min(mech.stability + regained, battle.stability_limit(mech))


def heat_per_second(battle: Battle, mech: Mech) -> float:
    rules, cooling = battle.rules, mech.chassis.dissipation
    emitter = {"off": 0, "jam": rules.jam_heat, "counter": rules.counter_heat}[mech.emits]
    if mech.controls.pressed[VENT] and not mech.shut:
        cooling += rules.vent_factor * cooling
    return float(mech.ground.heats - mech.ground.cools + emitter - cooling)


# --- 3. shots --------------------------------------------------------------------------------------------------------


@dataclass
class Burst:
    """How a shot's flight ended: on a mech, on terrain (perhaps outside the map), or because its time was up."""

    shot: Shot
    victim: Mech | None = None
    terrain: Block | None = None


def fly_shots(battle: Battle) -> None:
    for shot in battle.shots:
        shot.age += 1
    # Anti-missile systems and the flight of later shots do not depend on where earlier ones end.
    battle.shots = [shot for shot in battle.shots if not intercepted(battle, shot)]
    flights = [(shot, move_shot(battle, shot)) for shot in battle.shots]
    bursts = [burst for _, burst in flights if burst]
    battle.shots = [shot for shot, burst in flights if not burst]
    for burst in bursts:
        act_on_mechs(battle, burst)
    first = battle.keys.index(min(battle.keys))
    for team in (first, 1 - first):
        for burst in bursts:
            if burst.shot.who.team == team and (burst.victim or burst.terrain):
                break_voxels(battle, burst)


def intercepted(battle: Battle, shot: Shot) -> bool:
    """Whether an anti-missile system of the other side, each of which may try once, gets a missile."""
    if shot.weapon.flight != "homing":
        return False
    for defender in sorted(battle.enemies(shot.who), key=lambda mech: mech.rank):
        ready = defender.chassis.anti_missile and not defender.shut and not defender.timers["ams"]
        if ready and defender.within(battle.rules.ams_range, shot):
            defender.timers["ams"] = battle.rules.ams_ticks
            if battle.draw(defender, FOR_AMS) < battle.rules.ams_probability:
                battle.emit("ams_intercept", defender, shot.place, whom=shot.who, weapon=shot.weapon.id)
                return True
    return False


def new_velocity(battle: Battle, shot: Shot) -> Vector:
    rules, v = battle.rules, shot.velocity
    if shot.weapon.flight == "ballistic":
        return v - Vector(0.0, 0.0, rules.gravity * rules.dt)
    if shot.weapon.flight == "homing" and shot.target and shot.target.alive and shot.place != shot.target.place:
        speed, way = float(shot.weapon.speed), shot.target.place - shot.place
        wanted = way * (speed / abs(way))
        turned: Vector = v + (wanted - v) * (rules.homing * rules.dt)
        return turned * (speed / abs(turned))
    return v


def move_shot(battle: Battle, shot: Shot) -> Burst | None:
    shot.velocity = new_velocity(battle, shot)
    way = shot.velocity * battle.rules.dt
    meetings = [(meeting(shot, way, enemy), enemy) for enemy in battle.enemies(shot.who)]
    share, victim = min(((s, mech) for s, mech in meetings if s is not None), key=lambda m: m[0], default=(1.0, None))
    if victim:
        way *= share
    block = ray(battle.terrain, shot.place, shot.place + way, "bodies")
    if block:
        length = abs(way)
        way *= max(block.share - PULLED_BACK / length, 0.0) if length else 0.0
    shot.place += way
    if block:
        return Burst(shot, terrain=block)
    if victim:
        return Burst(shot, victim=victim)
    return Burst(shot) if shot.age >= shot.weapon.life_ticks else None


def meeting(shot: Shot, way: Vector, mech: Mech) -> float | None:
    """The share of its way at which a shot comes into the sphere around a mech.

    That is the smaller root of |p + share way|² = r², p being where the shot is, seen from the mech.
    """
    p, r = shot.place - mech.place, max(mech.half)
    a, half_b, c = way @ way, p @ way, p @ p - r * r
    if c <= 0:
        return 0.0
    discriminant = half_b * half_b - a * c
    if half_b >= 0 or discriminant < 0:
        return None
    root = (-half_b - sqrt(discriminant)) / a
    return root if root <= 1 else None


def act_on_mechs(battle: Battle, burst: Burst) -> None:
    shot, victim, weapon = burst.shot, burst.victim, burst.shot.weapon
    if weapon.name == "smoke":
        battle.emit("smoke_cloud", shot.who, shot.place, weapon=weapon.id, amount=weapon.splash_radius)
        if len(battle.clouds) < MOST_CLOUDS:
            battle.clouds.append(Cloud(shot.place, weapon.splash_radius, battle.rules.smoke_ticks, shot.who.index))
        return
    if victim:
        height = (shot.place.z - victim.feet) / victim.height
        amount = hit_directly(battle, shot.who, victim, weapon, height, shot.velocity)
        battle.emit("projectile_hit", shot.who, shot.place, victim, weapon.id, amount)
    if weapon.splash_radius and (victim or burst.terrain):
        battle.emit("explosion", shot.who, shot.place, victim, weapon.id, weapon.splash_radius)
        for mech in battle.living():
            if mech is not victim:
                splash(battle, shot, mech)


def splash(battle: Battle, shot: Shot, mech: Mech) -> None:
    weapon, way = shot.weapon, mech.place - shot.place
    gaps = Vector(*(max(abs(along) - half, 0.0) for along, half in zip(way, mech.half)))
    left = 1 - abs(gaps) / weapon.splash_radius
    if left <= 0 or ray(battle.terrain, shot.place, mech.place, "bodies"):
        return
    body, stability = (points(full * (weapon.splash_scale * left)) for full in (weapon.damage, weapon.stability_damage))
    if body:
        mech.hits.append(Hit(shot.who, weapon, way, body, stability))


def break_voxels(battle: Battle, burst: Burst) -> None:
    weapon = burst.shot.weapon
    losses = [(voxel, weapon.damage * weapon.splash_scale) for voxel in voxels_around(battle, burst.shot)]
    if burst.terrain and burst.terrain.voxel:
        losses.insert(0, (burst.terrain.voxel, weapon.damage))
    for voxel, amount in losses:
        material, cell = battle.terrain.at(voxel), battle.terrain.cell(voxel)
        if amount and material.breaks:
            battle.terrain.hp[cell] -= floor(amount + 0.5)
            if battle.terrain.hp[cell] <= 0:
                battle.changes.append(battle.terrain.put(voxel, MATERIALS["air"]))
                battle.emit("voxel_destroyed", burst.shot.who, centre_of(voxel), weapon=material.id)


def centre_of(voxel: Voxel) -> Vector:
    return Vector(*(at + 0.5 for at in voxel))


def voxels_around(battle: Battle, shot: Shot) -> list[Voxel]:
    """Those whose centres a burst reaches, z slowest, x fastest."""
    radius, sides = shot.weapon.splash_radius, (battle.terrain.columns, battle.terrain.rows, LAYERS)
    if not radius:
        return []
    across, along, up = (
        [n for n in range(floor(at - radius) - 1, floor(at + radius) + 2) if 0 <= n < side]
        for at, side in zip(shot.place, sides)
    )
    box = [(x, y, layer) for layer in up for y in along for x in across]
    ways = {voxel: centre_of(voxel) - shot.place for voxel in box}
    return [voxel for voxel, way in ways.items() if way @ way <= radius * radius]


# --- 4. fire ---------------------------------------------------------------------------------------------------------


def fire(battle: Battle) -> None:
    for mech in battle.living():
        if mech.shut or mech.fallen:
            continue
        for pressed, names in zip(mech.controls.pressed, battle.preset.buttons[mech.chassis.name]):
            for name in names if pressed else ():
                weapon = battle.preset.weapons[name]
                waits = mech.timers[f"weapon {weapon.timer}"] > 0
                full = weapon.flight != "at_once" and len(battle.shots) >= MOST_SHOTS
                if not waits and not full and TRIGGERS[name](battle, mech, weapon):
                    mech.timers[f"weapon {weapon.timer}"] = weapon.cooldown_ticks
                    mech.heat += weapon.heat


def scatter(battle: Battle, mech: Mech, weapon: Column) -> float:
    return float((2 * battle.draw(mech, FOR_AIM, weapon.id) - 1) * battle.rules.aim_spread)


def nearest(mech: Mech, candidates: list[Mech]) -> Mech | None:
    def squared(enemy: Mech) -> float:
        way = enemy.place - mech.place
        return way @ way

    return min(candidates, key=squared, default=None)


def choose_target(battle: Battle, mech: Mech, weapon: Column) -> Mech | None:
    """The focus target if it can be fired at, else the nearest that can."""
    reach = weapon.sight_lock or weapon.reach
    seen = [e for e in battle.enemies(mech) if e.index in mech.picture.sees and mech.within(reach, e)]
    painted = [e for e in battle.enemies(mech) if weapon.name == "missile" and paint_serves(battle, mech, e, weapon)]
    candidates = [e for e in battle.enemies(mech) if e in seen + painted and mech.covers(e, weapon.cos_half_arc)]
    return mech.controls.focus if mech.controls.focus in candidates else nearest(mech, candidates)


def paint_serves(battle: Battle, mech: Mech, target: Mech, weapon: Column) -> bool:
    """Whether a missile can be guided by paint."""
    good = mech.picture.quality >= battle.rules.paint_quality
    return good and target.painted_for(mech) and mech.within(weapon.reach, target)


def launch(battle: Battle, mech: Mech, weapon: Column, start: Vector, direction: Vector, target: Mech | None) -> None:
    battle.shots.append(Shot(start, direction * weapon.speed, weapon, mech, target))


def fire_beam(battle: Battle, mech: Mech, weapon: Column) -> bool:
    target = choose_target(battle, mech, weapon)
    if target:
        height = 0.5 + 0.5 * scatter(battle, mech, weapon)
        amount = hit_directly(battle, mech, target, weapon, height, target.place - mech.place)
        battle.emit("laser_hit", mech, target.place, target, weapon.id, amount)
    return target is not None


def fire_painter(battle: Battle, mech: Mech, weapon: Column) -> bool:
    target = choose_target(battle, mech, weapon)
    if target:
        target.painters.append(mech)
    return target is not None


def fire_missile(battle: Battle, mech: Mech, weapon: Column) -> bool:
    target = choose_target(battle, mech, weapon)
    if target:
        straight = target.place - mech.place
        upwards = straight / abs(straight) + Vector(0.0, 0.0, battle.rules.launch_up)
        start = replace(mech.place, z=mech.top + battle.rules.launch_above)
        launch(battle, mech, weapon, start, upwards / abs(upwards), target)
        by_paint = float(paint_serves(battle, mech, target, weapon))
        battle.emit("missile_launch", mech, mech.place, target, weapon.id, by_paint)
    return target is not None


def fire_gun(battle: Battle, mech: Mech, weapon: Column) -> bool:
    rules, focus = battle.rules, mech.controls.focus
    known = [enemy for enemy in battle.enemies(mech) if enemy.index in mech.picture.knows]
    if focus in known and mech.covers(focus, rules.cos_focus_assist):
        target: Mech | None = focus
    else:
        target = nearest(mech, [enemy for enemy in known if mech.covers(enemy, rules.cos_aim_assist)])
    direction = mech.heading
    if target:
        aimed_at = target.place.z + scatter(battle, mech, weapon) * target.half.z
        way = replace(target.place, z=aimed_at) - mech.place
        if weapon.flight == "ballistic":
            seconds = abs(way) / weapon.speed
            way += Vector(0.0, 0.0, 0.5 * rules.gravity * seconds * seconds)
        direction = way / abs(way)
    launch(battle, mech, weapon, mech.place, direction, target)
    battle.emit("kinetic_fire", mech, mech.place, target, weapon.id)
    return True


def fire_smoke(battle: Battle, mech: Mech, weapon: Column) -> bool:
    target = mech.controls.focus
    if target and not (target.alive and mech.covers(target, weapon.cos_half_arc) and mech.within(weapon.reach, target)):
        target = None
    way = (target.place - mech.place).level if target else mech.heading
    if target and not abs(way):  # straight above or below
        target, way = None, mech.heading
    launch(battle, mech, weapon, mech.place, way / abs(way) if target else way, target)
    battle.emit("smoke_launch", mech, mech.place, target, weapon.id)
    return True


# Each pulls a trigger; false if the weapon finds no target that it needs.
TRIGGERS = {
    "laser": fire_beam,
    "flamer": fire_beam,
    "missile": fire_missile,
    "gauss": fire_gun,
    "autocannon": fire_gun,
    "painter": fire_painter,
    "smoke": fire_smoke,
}


def hit_directly(battle: Battle, who: Mech, target: Mech, weapon: Column, height: float, travel: Vector) -> float:
    """Note a hit at a height from 0 (feet) to 1 (top); its damage before the leg rule."""
    rules, flat = battle.rules, abs(travel.level)
    from_behind = flat > 0 and travel.level @ target.heading >= rules.cos_rear * flat
    rear = rules.rear_factor if from_behind else 1
    boosted = target.painted_for(who)
    amount = points(weapon.damage * rear * (1 + rules.paint_bonus if boosted else 1))
    on_leg = height < rules.leg_height
    body = points(amount * rules.leg_body_fraction) if on_leg else amount
    target.hits.append(
        Hit(
            who,
            weapon,
            travel,
            body,
            stability=points(weapon.stability_damage * rear),
            leg=amount if on_leg else 0.0,
            heat=weapon.target_heat,
            boosted=body if boosted else 0.0,
        )
    )
    return amount
