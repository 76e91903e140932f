"""Projectiles: launch, flight, interception, bursts, smoke, and what they break.

All shots fly through the map as it was when the tick began, and hit; then all bursts act; then voxels break.
"""

from math import ceil, floor, sqrt
from typing import Final

from protege.games.echelon.rules import events
from protege.games.echelon.rules.battle import FOR_AMS, Battle, Record, draw, enemies_of, points, squared_distance
from protege.games.echelon.rules.damage import hurt, strike
from protege.games.echelon.world.mechs import AIR, BALLISTIC, HOMING, MISSILE, NOBODY, SMOKE
from protege.games.echelon.world.sight import CLEAR, NO_CELL, Columns, trace
from protege.games.echelon.world.voxels import HEIGHT, World, damage_voxel
from protege.kernels import kernel

FLYING, GONE, AT_MECH, AT_TERRAIN, AT_END = range(5)  # fates
PULL_BACK: Final = 0.01  # a burst on a wall happens this far in front of it
NEVER: Final = 2.0


@kernel
def launch(
    battle: Battle, who: int, weapon: int, target: int, z: float, dx: float, dy: float, dz: float,
    event: int, amount: float,
) -> bool:  # fmt: skip
    """Send a shot off from the shooter's middle at height z, in a direction of length 1; false if no more can fly."""
    mech, gun = battle.mechs[who], battle.rules.weapons[weapon]
    if battle.shot_count == len(battle.shots):
        return False
    shot = battle.shots[battle.shot_count]
    battle.shot_count += 1
    shot.x, shot.y, shot.z = mech.x, mech.y, z
    shot.vx, shot.vy, shot.vz = dx * gun.speed, dy * gun.speed, dz * gun.speed
    shot.weapon, shot.who, shot.target = weapon, who, target
    shot.age, shot.fate, shot.victim, shot.cell = 0, FLYING, NOBODY, NO_CELL
    shot.life = int(ceil(gun.reach / (gun.speed * battle.rules.dt) - 1e-9))
    events.emit_at(battle, event, who, target, weapon, amount, mech)
    return True


@kernel
def intercepted(battle: Battle, shot: Record) -> bool:
    """Enemy anti-missile systems in reach each try once, in order of rank, until one succeeds."""
    rules = battle.rules
    first, last = enemies_of(battle, battle.mechs[shot.who])
    for i in range(first, last):
        mech = battle.mechs[i]
        ready = mech.alive and not mech.shut and mech.ams_wait == 0 and rules.chassis[mech.kind].has_ams
        if not ready or squared_distance(mech, shot) > rules.ams_range * rules.ams_range:
            continue
        mech.ams_wait = rules.ams_ticks
        if draw(battle.key[mech.team], FOR_AMS, mech.rank, 0) < rules.ams_probability:
            events.emit_at(battle, events.AMS_INTERCEPT, i, shot.who, shot.weapon, 0.0, shot)
            return True
    return False


@kernel
def steer(battle: Battle, shot: Record) -> None:
    """Turn a missile towards its target while that lives."""
    target, rules = battle.mechs[shot.target], battle.rules
    speed = battle.rules.weapons[shot.weapon].speed
    dx, dy, dz = target.x - shot.x, target.y - shot.y, target.z - shot.z
    distance = sqrt(dx * dx + dy * dy + dz * dz)
    if not target.alive or distance == 0.0:
        return
    scale, weight = speed / distance, rules.homing * rules.dt
    shot.vx += (dx * scale - shot.vx) * weight
    shot.vy += (dy * scale - shot.vy) * weight
    shot.vz += (dz * scale - shot.vz) * weight
    length = sqrt(shot.vx * shot.vx + shot.vy * shot.vy + shot.vz * shot.vz)
    if length > 0.0:
        scale = speed / length
        shot.vx, shot.vy, shot.vz = shot.vx * scale, shot.vy * scale, shot.vz * scale


@kernel
def meets_sphere(px: float, py: float, pz: float, dx: float, dy: float, dz: float, radius: float) -> float:
    """Where a way that starts at p from a sphere's centre and goes along d enters the sphere; NEVER if it does not."""
    outside = px * px + py * py + pz * pz - radius * radius
    if outside <= 0.0:
        return 0.0
    towards = px * dx + py * dy + pz * dz
    if towards >= 0.0:
        return NEVER
    length = dx * dx + dy * dy + dz * dz
    inner = towards * towards - length * outside
    if inner < 0.0:
        return NEVER
    fraction = (-towards - sqrt(inner)) / length
    return fraction if fraction <= 1.0 else NEVER


@kernel
def fly(battle: Battle, shot: Record, blocked: Columns) -> None:
    """One tick of flight, to the first enemy or voxel in the way."""
    dt = battle.rules.dt
    dx, dy, dz = shot.vx * dt, shot.vy * dt, shot.vz * dt
    nearest = NEVER
    first, last = enemies_of(battle, battle.mechs[shot.who])
    for i in range(first, last):
        mech = battle.mechs[i]
        if mech.alive:
            radius = max(mech.half_width, mech.half_height)
            fraction = meets_sphere(shot.x - mech.x, shot.y - mech.y, shot.z - mech.z, dx, dy, dz, radius)
            if fraction < nearest:
                nearest, shot.victim = fraction, i
    if nearest < NEVER:
        shot.fate = AT_MECH
        dx, dy, dz = dx * nearest, dy * nearest, dz * nearest
    fraction, cell = trace(blocked, shot.x, shot.y, shot.z, shot.x + dx, shot.y + dy, shot.z + dz, True)
    if fraction != CLEAR:
        shot.fate, shot.victim, shot.cell = AT_TERRAIN, NOBODY, cell
        length = sqrt(dx * dx + dy * dy + dz * dz)
        fraction = max(fraction - PULL_BACK / length, 0.0) if length > 0.0 else 0.0
        dx, dy, dz = dx * fraction, dy * fraction, dz * fraction
    elif shot.fate == FLYING and shot.age >= shot.life:
        shot.fate = AT_END
    shot.x, shot.y, shot.z = shot.x + dx, shot.y + dy, shot.z + dz


@kernel
def fly_all(battle: Battle, blocked: Columns) -> bool:
    """One tick of flight for all shots; whether any of them has come to its end."""
    rules, ended = battle.rules, False
    for n in range(battle.shot_count):
        shot = battle.shots[n]
        shot.age += 1
        guidance = rules.weapons[shot.weapon].guidance
        if guidance == HOMING and intercepted(battle, shot):
            shot.fate = GONE
        else:
            if guidance == HOMING:
                steer(battle, shot)
            elif guidance == BALLISTIC:
                shot.vz -= rules.gravity * rules.dt
            fly(battle, shot, blocked)
        ended = ended or shot.fate != FLYING
    return ended


@kernel
def splash(battle: Battle, shot: Record, blocked: Columns) -> None:
    """A burst hurts everybody near but the one it hit, less with distance from the body, not through walls."""
    gun = battle.rules.weapons[shot.weapon]
    events.emit_at(battle, events.EXPLOSION, shot.who, shot.victim, shot.weapon, gun.splash_radius, shot)
    for i in range(battle.count):
        mech = battle.mechs[i]
        if not mech.alive or i == shot.victim:
            continue
        dx, dy, dz = mech.x - shot.x, mech.y - shot.y, mech.z - shot.z
        gap_x, gap_y = max(abs(dx) - mech.half_width, 0.0), max(abs(dy) - mech.half_width, 0.0)
        gap_z = max(abs(dz) - mech.half_height, 0.0)
        distance = sqrt(gap_x * gap_x + gap_y * gap_y + gap_z * gap_z)
        if distance >= gun.splash_radius:
            continue
        strength = gun.splash_scale * (1.0 - distance / gun.splash_radius)
        amount, stability = points(gun.damage * strength), points(gun.stability_damage * strength)
        if amount > 0.0 and trace(blocked, shot.x, shot.y, shot.z, mech.x, mech.y, mech.z, True)[0] == CLEAR:
            hurt(battle, shot.who, i, shot.weapon, amount, stability, dx, dy, dz)


@kernel
def burst(battle: Battle, shot: Record, blocked: Columns) -> None:
    """What the end of a shot does to mechs; that of smoke is a cloud."""
    radius = battle.rules.weapons[shot.weapon].splash_radius
    if shot.weapon == SMOKE:
        events.emit_at(battle, events.SMOKE_CLOUD, shot.who, NOBODY, SMOKE, radius, shot)
        if battle.cloud_count < len(battle.clouds):
            cloud = battle.clouds[battle.cloud_count]
            battle.cloud_count += 1
            cloud.x, cloud.y, cloud.z, cloud.radius = shot.x, shot.y, shot.z, radius
            cloud.left, cloud.who = battle.rules.smoke_ticks, shot.who
        return
    if shot.fate == AT_MECH:
        target = battle.mechs[shot.victim]
        height = (shot.z - (target.z - target.half_height)) / (2.0 * target.half_height)
        amount = strike(battle, shot.who, shot.victim, shot.weapon, shot.vx, shot.vy, shot.vz, height)
        events.emit_at(battle, events.PROJECTILE_HIT, shot.who, shot.victim, shot.weapon, amount, shot)
    if shot.fate != AT_END and radius > 0.0:
        splash(battle, shot, blocked)


@kernel
def break_voxel(battle: Battle, world: World, b: int, who: int, x: int, y: int, z: int, damage: float) -> None:
    """Damage a voxel, in whole points."""
    before = int(world.material[b, z, y, x])
    if damage_voxel(world, b, z, y, x, int(floor(damage + 0.5))):
        rows, width = world.blocked.shape[1], world.blocked.shape[2]
        events.note_change(battle, (z * rows + y) * width + x, AIR)
        events.emit(battle, events.VOXEL_DESTROYED, who, NOBODY, before, 0.0, x + 0.5, y + 0.5, z + 0.5)


@kernel
def break_voxels(battle: Battle, world: World, b: int, shot: Record) -> None:
    """What the end of a shot does to the map: the voxel that stopped it, and those whose centres the burst reaches."""
    gun = battle.rules.weapons[shot.weapon]
    if gun.damage == 0.0:
        return
    rows, width = world.blocked.shape[1], world.blocked.shape[2]
    if shot.cell != NO_CELL:
        x, y, z = shot.cell % width, shot.cell // width % rows, shot.cell // (width * rows)
        break_voxel(battle, world, b, shot.who, x, y, z, gun.damage)
    radius = gun.splash_radius
    if radius == 0.0:
        return
    for z in range(max(int(floor(shot.z - radius)), 0), min(int(floor(shot.z + radius)), HEIGHT - 1) + 1):
        for y in range(max(int(floor(shot.y - radius)), 0), min(int(floor(shot.y + radius)), rows - 1) + 1):
            for x in range(max(int(floor(shot.x - radius)), 0), min(int(floor(shot.x + radius)), width - 1) + 1):
                dx, dy, dz = x + 0.5 - shot.x, y + 0.5 - shot.y, z + 0.5 - shot.z
                if dx * dx + dy * dy + dz * dz <= radius * radius:
                    break_voxel(battle, world, b, shot.who, x, y, z, gun.damage * gun.splash_scale)


@kernel
def move_shots(battle: Battle, world: World, b: int) -> None:
    if battle.shot_count == 0 or not fly_all(battle, world.blocked[b]):
        return
    for n in range(battle.shot_count):
        if battle.shots[n].fate > GONE:
            burst(battle, battle.shots[n], world.blocked[b])
    # Which team's shots break voxels first decides who is named for a voxel that two reach; the streams decide that.
    leading = 0 if battle.key[0] < battle.key[1] else 1
    for team in (leading, 1 - leading):
        for n in range(battle.shot_count):
            shot = battle.shots[n]
            if (shot.fate == AT_MECH or shot.fate == AT_TERRAIN) and battle.mechs[shot.who].team == team:
                break_voxels(battle, world, b, shot)
    kept = 0
    for n in range(battle.shot_count):
        if battle.shots[n].fate == FLYING:
            battle.shots[kept] = battle.shots[n]
            kept += 1
    battle.shot_count = kept


@kernel
def thin_clouds(battle: Battle) -> None:
    kept = 0
    for n in range(battle.cloud_count):
        cloud = battle.clouds[n]
        cloud.left -= 1
        if cloud.left > 0:
            battle.clouds[kept] = cloud
            kept += 1
    battle.cloud_count = kept


@kernel
def warn_of_missiles(battle: Battle) -> None:
    for i in range(battle.count):
        battle.mechs[i].warned = 0
    for n in range(battle.shot_count):
        shot = battle.shots[n]
        if shot.weapon == MISSILE and battle.mechs[shot.target].alive:
            battle.mechs[shot.target].warned = 1
