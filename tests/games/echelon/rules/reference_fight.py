"""The slow reference's parts of a tick in which mechs burn, cool and hurt each other: time, shots, fire."""

from dataclasses import dataclass
from math import floor, sqrt

from protege.games.echelon.world.mechs import (
    AIR,
    AUTOCANNON,
    BALLISTIC,
    DEBRIS,
    GAUSS,
    HITSCAN,
    HOMING,
    MATERIALS,
    MISSILE,
    NOBODY,
    PAINTER,
    SMOKE,
)
from tests.games.echelon.rules.reference_state import (
    FOR_AIM,
    FOR_AMS,
    LAYERS,
    MOST_CLOUDS,
    MOST_SHOTS,
    TOUCH,
    Battle,
    Block,
    Cloud,
    Hit,
    Mech,
    Shot,
    cos_half_arc,
    dot,
    flight_ticks,
    length,
    points,
    ray,
    squared_distance,
    ticks,
    way,
    within,
)

JAM, COUNTER = 1, 2
VENT = 4

# --- 2. time ---------------------------------------------------------------------------------------------------------


def pass_time(battle: Battle) -> None:
    for mech in battle.living():
        run_down_timers(battle, mech)
        mech.material = ground_under(battle, mech)
        keep_balance(battle, mech)
        change_heat(battle, mech)
        damage = MATERIALS[mech.material].damage
        if damage > 0:
            mech.burn += points(damage * battle.rules.dt)


def run_down_timers(battle: Battle, mech: Mech) -> None:
    mech.wait = [max(left - 1, 0) for left in mech.wait]
    mech.ams_wait = max(mech.ams_wait - 1, 0)
    mech.suppressed = max(mech.suppressed - 1, 0)
    mech.order_left = max(mech.order_left - 1, 0)
    if mech.order_left == 0:
        mech.order = 0
    if mech.painted > 0:
        mech.painted -= 1
        if mech.painted == 0:
            end_paint(battle, mech)


def end_paint(battle: Battle, mech: Mech) -> None:
    battle.emit("paint_expired", mech.painter, mech.place, whom=mech.index, amount=mech.paint_damage)
    mech.painted, mech.painter, mech.paint_damage = 0, NOBODY, 0.0


def ground_under(battle: Battle, mech: Mech) -> int:
    x, y, layer = floor(mech.x), floor(mech.y), floor(mech.feet + TOUCH)
    if mech.grounded and layer > 0 and battle.terrain.at(layer - 1, y, x) == DEBRIS:
        return DEBRIS
    return battle.terrain.at(layer, y, x)


def keep_balance(battle: Battle, mech: Mech) -> None:
    rules, limit = battle.rules, battle.stability_limit(mech)
    if mech.fallen > 0:
        mech.fallen -= 1
        if mech.fallen == 0:
            mech.stability = rules.stand_up_stability * limit
            battle.emit("stand_up", mech.index, mech.place, amount=mech.stability)
        return
    factor = 1.0
    if mech.legged:
        factor -= rules.regen_legged
    if mech.vx * mech.vx + mech.vy * mech.vy > rules.moving_speed * rules.moving_speed:
        factor -= rules.regen_moving
    if mech.suppressed > 0:
        factor -= rules.regen_suppressed
    mech.stability = min(mech.stability + rules.regen * max(factor, rules.regen_floor) * rules.dt, limit)


def change_heat(battle: Battle, mech: Mech) -> None:
    rules, chassis = battle.rules, battle.chassis(mech)
    gain, loss = MATERIALS[mech.material].heat, chassis.dissipation
    if mech.emits:
        gain += rules.jam_heat if mech.ewar == JAM else rules.counter_heat
    if mech.pressed[VENT] and not mech.shut:
        loss += rules.vent_factor * chassis.dissipation
    mech.heat = max(mech.heat + (gain - loss) * rules.dt, 0.0)


# --- 3. shots --------------------------------------------------------------------------------------------------------


@dataclass
class Burst:
    """How a shot's flight ended: on a mech, on terrain (perhaps outside the map), or because its time was up."""

    shot: Shot
    victim: Mech | None = None
    terrain: Block | None = None


def fly_shots(battle: Battle) -> None:
    bursts, flying = [], []
    for shot in battle.shots:
        shot.age += 1
        if battle.rules.weapons[shot.weapon].guidance == HOMING:
            if intercepted(battle, shot):
                continue
            steer(battle, shot)
        elif battle.rules.weapons[shot.weapon].guidance == BALLISTIC:
            shot.vz -= battle.rules.gravity * battle.rules.dt
        burst = move_shot(battle, shot)
        if burst:
            bursts.append(burst)
        else:
            flying.append(shot)
    battle.shots = flying
    for burst in bursts:
        act_on_mechs(battle, burst)
    break_voxels(battle, bursts)


def intercepted(battle: Battle, shot: Shot) -> bool:
    rules, shooter = battle.rules, battle.mechs[shot.who]
    for defender in sorted(battle.enemies(shooter), key=lambda mech: mech.rank):
        ready = battle.chassis(defender).has_ams and not defender.shut and defender.ams_wait == 0
        if ready and squared_distance(defender, shot) <= rules.ams_range * rules.ams_range:
            defender.ams_wait = ticks(rules.ams_s, rules)
            if battle.draw(defender, FOR_AMS) < rules.ams_chance:
                battle.emit("ams_intercept", defender.index, shot.place, whom=shot.who, weapon=shot.weapon)
                return True
    return False


def steer(battle: Battle, shot: Shot) -> None:
    target, rules = battle.mechs[shot.target], battle.rules
    speed = rules.weapons[shot.weapon].speed
    dx, dy, dz = way(shot, target)
    distance = length(dx, dy, dz)
    if not target.alive or distance == 0:
        return
    shot.vx += (dx * (speed / distance) - shot.vx) * (rules.homing * rules.dt)
    shot.vy += (dy * (speed / distance) - shot.vy) * (rules.homing * rules.dt)
    shot.vz += (dz * (speed / distance) - shot.vz) * (rules.homing * rules.dt)
    scale = speed / length(shot.vx, shot.vy, shot.vz)
    shot.vx, shot.vy, shot.vz = shot.vx * scale, shot.vy * scale, shot.vz * scale


def move_shot(battle: Battle, shot: Shot) -> Burst | None:
    dt = battle.rules.dt
    d = shot.vx * dt, shot.vy * dt, shot.vz * dt
    victim, nearest = None, 2.0
    for enemy in battle.enemies(battle.mechs[shot.who]):
        share = meeting(shot, d, enemy)
        if share is not None and share < nearest:
            victim, nearest = enemy, share
    if victim:
        d = d[0] * nearest, d[1] * nearest, d[2] * nearest
    block = ray(battle.terrain, shot.place, (shot.x + d[0], shot.y + d[1], shot.z + d[2]))
    if block:
        s = max(block.share - 0.01 / length(*d), 0.0) if length(*d) > 0 else 0.0
        d = d[0] * s, d[1] * s, d[2] * s
    shot.x, shot.y, shot.z = shot.x + d[0], shot.y + d[1], shot.z + d[2]
    if block:
        return Burst(shot, terrain=block)
    if victim:
        return Burst(shot, victim=victim)
    return Burst(shot) if shot.age >= shot.life else None


def meeting(shot: Shot, d: tuple[float, float, float], mech: Mech) -> float | None:
    """The share of its way at which a shot comes into the sphere around a mech."""
    p, radius = way(mech, shot), max(mech.half_width, mech.half_height)
    outside = dot(p, p) - radius * radius
    if outside <= 0:
        return 0.0
    along = dot(p, d)
    if along >= 0:
        return None
    inner = along * along - dot(d, d) * outside
    if inner < 0:
        return None
    share = (-along - sqrt(inner)) / dot(d, d)
    return share if share <= 1 else None


def act_on_mechs(battle: Battle, burst: Burst) -> None:
    shot, victim = burst.shot, burst.victim
    weapon = battle.rules.weapons[shot.weapon]
    if shot.weapon == SMOKE:
        if len(battle.clouds) < MOST_CLOUDS:
            left = ticks(battle.rules.smoke_s, battle.rules)
            battle.clouds.append(Cloud(*shot.place, weapon.splash_radius, left, shot.who))
            battle.emit("smoke_cloud", shot.who, shot.place, weapon=SMOKE, amount=weapon.splash_radius)
        return
    if victim:
        height = (shot.z - victim.feet) / victim.height
        amount = hit_directly(battle, shot.who, victim, shot.weapon, height, (shot.vx, shot.vy, shot.vz))
        battle.emit("projectile_hit", shot.who, shot.place, victim.index, shot.weapon, amount)
    if weapon.splash_radius > 0 and (victim or burst.terrain):
        whom = victim.index if victim else NOBODY
        battle.emit("explosion", shot.who, shot.place, whom, shot.weapon, weapon.splash_radius)
        for mech in battle.living():
            if mech is not victim:
                splash(battle, shot, mech)


def splash(battle: Battle, shot: Shot, mech: Mech) -> None:
    weapon, d = battle.rules.weapons[shot.weapon], way(shot, mech)
    halves = mech.half_width, mech.half_width, mech.half_height
    distance = length(*(max(abs(along) - half, 0.0) for along, half in zip(d, halves)))
    if distance >= weapon.splash_radius or ray(battle.terrain, shot.place, mech.place):
        return
    strength = weapon.splash_scale * (1 - distance / weapon.splash_radius)
    amount = points(weapon.damage * strength)
    if amount:
        stability = points(weapon.stability_damage * strength)
        mech.hits.append(Hit(shot.who, shot.weapon, amount, d, stability=stability))


def break_voxels(battle: Battle, bursts: list[Burst]) -> None:
    first = 0 if battle.keys[0] < battle.keys[1] else 1
    for burst in sorted(bursts, key=lambda burst: battle.mechs[burst.shot.who].team != first):
        shot, weapon = burst.shot, battle.rules.weapons[burst.shot.weapon]
        if weapon.damage == 0 or not (burst.victim or burst.terrain):
            continue
        if burst.terrain and burst.terrain.voxel:
            damage_voxel(battle, burst.terrain.voxel, weapon.damage, shot.who)
        if weapon.splash_radius > 0:
            for voxel in voxels_around(battle, shot, weapon.splash_radius):
                damage_voxel(battle, voxel, weapon.damage * weapon.splash_scale, shot.who)


def voxels_around(battle: Battle, shot: Shot, radius: float) -> list[tuple[int, int, int]]:
    """Those whose centres are within the radius, z slowest, x fastest."""
    ranges = [
        range(max(floor(at - radius) - 1, 0), min(floor(at + radius) + 2, end))
        for at, end in zip((shot.z, shot.y, shot.x), (LAYERS, battle.terrain.rows, battle.terrain.columns))
    ]
    found = []
    for z in ranges[0]:
        for y in ranges[1]:
            for x in ranges[2]:
                d = x + 0.5 - shot.x, y + 0.5 - shot.y, z + 0.5 - shot.z
                if dot(d, d) <= radius * radius:
                    found.append((z, y, x))
    return found


def damage_voxel(battle: Battle, voxel: tuple[int, int, int], amount: float, who: int) -> None:
    terrain, (z, y, x) = battle.terrain, voxel
    material = terrain.at(z, y, x)
    if not MATERIALS[material].breakable:
        return
    cell = (z * terrain.rows + y) * terrain.columns + x
    terrain.hp[cell] -= floor(amount + 0.5)
    if terrain.hp[cell] <= 0:
        battle.changes.append(terrain.put(z, y, x, AIR))
        battle.emit("voxel_destroyed", who, (x + 0.5, y + 0.5, z + 0.5), weapon=material)


# --- 4. fire ---------------------------------------------------------------------------------------------------------


def fire(battle: Battle) -> None:
    for mech in battle.living():
        if mech.shut or mech.fallen:
            continue
        carried = battle.rules.loadout[mech.kind]
        for button in range(4):
            for weapon in sorted(carried):
                if carried[weapon] == button and mech.pressed[button]:
                    fire_weapon(battle, mech, weapon)


def fire_weapon(battle: Battle, mech: Mech, number: int) -> None:
    weapon = battle.rules.weapons[number]
    if mech.wait[weapon.timer] > 0:
        return
    if weapon.guidance != HITSCAN and len(battle.shots) >= MOST_SHOTS:
        return
    if number == GAUSS or number == AUTOCANNON:
        fire_kinetic(battle, mech, number)
    elif number == SMOKE:
        throw_smoke(battle, mech)
    else:
        target = choose_target(battle, mech, number)
        if target is None:
            return
        if number == MISSILE:
            launch_missile(battle, mech, target)
        elif number == PAINTER:
            target.painters.append(mech.index)
        else:
            d = way(mech, target)
            amount = hit_directly(battle, mech.index, target, number, 0.5 + 0.5 * scatter(battle, mech, number), d)
            battle.emit("laser_hit", mech.index, target.place, target.index, number, amount)
    mech.wait[weapon.timer] = ticks(weapon.cooldown_s, battle.rules)
    mech.heat += weapon.heat


def scatter(battle: Battle, mech: Mech, weapon: int) -> float:
    return (2 * battle.draw(mech, FOR_AIM, weapon) - 1) * battle.rules.aim_spread


def choose_target(battle: Battle, mech: Mech, number: int) -> Mech | None:
    """The focus target if it can be fired at, else the nearest that can."""
    weapon = battle.rules.weapons[number]

    def qualifies(enemy: Mech) -> bool:
        squared = squared_distance(mech, enemy)
        if not within(mech, enemy, cos_half_arc(weapon)):
            return False
        if number == MISSILE and paint_serves(battle, mech, enemy):
            return True
        reach = weapon.sight_lock if number == MISSILE else weapon.reach
        return enemy.index in mech.sees and squared <= reach * reach

    candidates = [enemy for enemy in battle.enemies(mech) if qualifies(enemy)]
    if any(enemy.index == mech.focus for enemy in candidates):
        return battle.mechs[mech.focus]
    return min(candidates, key=lambda enemy: squared_distance(mech, enemy), default=None)


def paint_serves(battle: Battle, mech: Mech, target: Mech) -> bool:
    """Whether a missile can be guided by paint."""
    reach = battle.rules.weapons[MISSILE].reach
    near = squared_distance(mech, target) <= reach * reach
    return near and battle.painted_by_pack_of(mech, target) and mech.quality >= battle.rules.paint_quality


def launch(
    battle: Battle,
    mech: Mech,
    number: int,
    direction: tuple[float, float, float],
    target: int,
    z: float,
) -> None:
    """A shot from the middle of a mech seen from above, at a height of z."""
    weapon = battle.rules.weapons[number]
    vx, vy, vz = (along * weapon.speed for along in direction)
    life = flight_ticks(weapon, battle.rules)
    battle.shots.append(Shot(mech.x, mech.y, z, vx, vy, vz, number, mech.index, target, life))


def launch_missile(battle: Battle, mech: Mech, target: Mech) -> None:
    rules, d = battle.rules, way(mech, target)
    distance = length(*d)
    u = d[0] / distance, d[1] / distance, d[2] / distance + rules.launch_up
    along = length(*u)
    above = mech.z + mech.half_height + rules.launch_above
    launch(battle, mech, MISSILE, (u[0] / along, u[1] / along, u[2] / along), target.index, above)
    by_paint = 1.0 if paint_serves(battle, mech, target) else 0.0
    battle.emit("missile_launch", mech.index, mech.place, target.index, MISSILE, by_paint)


def fire_kinetic(battle: Battle, mech: Mech, number: int) -> None:
    rules, weapon = battle.rules, battle.rules.weapons[number]
    known = [enemy for enemy in battle.enemies(mech) if enemy.index in mech.knows]
    focus = [e for e in known if e.index == mech.focus and within(mech, e, rules.cos_focus_assist)]
    ahead = [e for e in known if within(mech, e, rules.cos_aim_assist)]
    target = focus[0] if focus else min(ahead, key=lambda enemy: squared_distance(mech, enemy), default=None)
    if target is None:
        direction = mech.cos, mech.sin, 0.0
    else:
        dx, dy, _ = way(mech, target)
        dz = target.z + scatter(battle, mech, number) * target.half_height - mech.z
        if number == GAUSS:
            t = length(dx, dy, dz) / weapon.speed
            dz += 0.5 * rules.gravity * t * t
        distance = length(dx, dy, dz)
        direction = dx / distance, dy / distance, dz / distance
    whom = target.index if target else NOBODY
    launch(battle, mech, number, direction, whom, mech.z)
    battle.emit("kinetic_fire", mech.index, mech.place, whom, number)


def throw_smoke(battle: Battle, mech: Mech) -> None:
    weapon, direction, whom = battle.rules.weapons[SMOKE], (mech.cos, mech.sin, 0.0), NOBODY
    for enemy in battle.enemies(mech):
        if enemy.index == mech.focus and within(mech, enemy, cos_half_arc(weapon)):
            dx, dy, _ = way(mech, enemy)
            level = sqrt(dx * dx + dy * dy)
            if squared_distance(mech, enemy) <= weapon.reach * weapon.reach and level > 0:
                direction, whom = (dx / level, dy / level, 0.0), enemy.index
    launch(battle, mech, SMOKE, direction, whom, mech.z)
    battle.emit("smoke_launch", mech.index, mech.place, whom, SMOKE)


def hit_directly(
    battle: Battle, who: int, target: Mech, number: int, height: float, travel: tuple[float, float, float]
) -> float:
    """Note a hit at a height from 0 (feet) to 1 (top); its damage before the leg rule."""
    rules, weapon = battle.rules, battle.rules.weapons[number]
    amount, stability = weapon.damage, weapon.stability_damage
    level = sqrt(travel[0] * travel[0] + travel[1] * travel[1])
    if level > 0 and travel[0] * target.cos + travel[1] * target.sin >= rules.cos_rear * level:
        amount *= rules.rear_factor
        stability *= rules.rear_factor
    boosted = battle.painted_by_pack_of(battle.mechs[who], target)
    if boosted:
        amount *= 1 + rules.paint_bonus
    amount = points(amount)
    hit = Hit(who, number, amount, travel, 0.0, points(stability), weapon.target_heat)
    if height < rules.leg_height:
        hit.leg, hit.body = amount, points(amount * rules.leg_body_share)
    hit.boosted = hit.body if boosted else 0.0
    hit.suppresses = number == AUTOCANNON
    target.hits.append(hit)
    return amount
