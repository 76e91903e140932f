"""The slow reference's movement: the last part of a tick."""

from dataclasses import replace
from math import floor

from tests.games.echelon.rules.reference_state import (
    FOR_ORDER,
    LAYERS,
    TOUCH,
    ZERO,
    Battle,
    Mech,
    Vector,
    boxes_overlap,
    clamp,
    heading_of,
    left_of,
    wrap,
)

PUSH = 0.1


def move_everybody(battle: Battle) -> None:
    turns = {battle.draw_bits(mech, FOR_ORDER): mech for mech in battle.living()}
    for _, mech in sorted(turns.items()):
        lift = 0.0
        if mech.fallen:
            mech.velocity = replace(ZERO, z=mech.velocity.z)
        elif mech.shut:
            kept = battle.rules.slide if mech.grounded else battle.rules.damping
            mech.velocity = replace(mech.velocity.level * kept, z=mech.velocity.z)
        else:
            lift = drive(battle, mech)
        fall_and_refuel(battle, mech, lift)
        way = mech.velocity.level * battle.rules.dt
        if battle.crowded:
            way += push(battle, mech)
        for axis, along in (("x", Vector(way.x, 0.0, 0.0)), ("y", Vector(0.0, way.y, 0.0))):
            if along != ZERO and not walk(battle, mech, along):
                mech.velocity = replace(mech.velocity, **{axis: 0.0})
        rise_or_fall(battle, mech)
        mech.noise = 0.0 if mech.fallen else abs(mech.velocity) * mech.chassis.noise


def drive(battle: Battle, mech: Mech) -> float:
    """Turn, and take the velocity that is asked for; how much of the jets' thrust is used."""
    rules, chassis, wish = battle.rules, mech.chassis, mech.controls
    if wish.turn:
        mech.yaw = wrap(mech.yaw + wish.turn * chassis.yaw_rate * rules.dt)
        mech.heading = heading_of(mech.yaw)
    weakness = (rules.legged_speed, rules.legged_jet) if mech.legged else (1, 1)
    pace = chassis.speed * mech.ground.speed * rules.damping * weakness[0]
    level = (mech.heading * wish.forward + left_of(mech.heading) * wish.strafe) * pace
    lift = wish.vertical if wish.vertical > 0 and chassis.jet and mech.jet > 0 else 0.0
    mech.velocity = replace(level, z=mech.velocity.z + lift * (chassis.jet * weakness[1]) * rules.dt)
    return lift


def fall_and_refuel(battle: Battle, mech: Mech, lift: float) -> None:
    rules = battle.rules
    mech.velocity = replace(mech.velocity, z=(mech.velocity.z - rules.gravity * rules.dt) * rules.damping)
    if lift:
        mech.jet = max(mech.jet - lift * rules.jet_drain * rules.dt, 0.0)
    elif mech.grounded:
        mech.jet = min(mech.jet + rules.jet_refill * rules.dt, 1.0)


def push(battle: Battle, mech: Mech) -> Vector:
    """Away from everybody it is inside of, each time along the axis on which they are farther apart."""
    sum_of_pushes = ZERO
    for other in battle.others(mech):
        if boxes_overlap(mech.place, mech, other):
            apart = mech.place - other.place
            along_x = abs(apart.x) >= abs(apart.y)
            signed = PUSH if (apart.x if along_x else apart.y) >= 0 else -PUSH
            sum_of_pushes += Vector(signed, 0.0, 0.0) if along_x else Vector(0.0, signed, 0.0)
    return sum_of_pushes


def body_layers(feet: float, mech: Mech) -> set[int]:
    return set(range(floor(feet + TOUCH), floor(feet + mech.height - TOUCH) + 1))


def walk(battle: Battle, mech: Mech, way: Vector) -> bool:
    """Go along one axis if that is possible; whether it went all the way."""
    terrain, half, wanted = battle.terrain, mech.half, mech.place + way
    to = Vector(
        clamp(wanted.x, half.x, terrain.columns - half.x), clamp(wanted.y, half.y, terrain.rows - half.y), wanted.z
    )
    ahead = terrain.layers_under(to, half)
    in_the_way = ahead & body_layers(mech.feet, mech)
    if in_the_way:
        top = max(in_the_way) + 1
        to = replace(to, z=top + half.z)
        room = body_layers(top, mech)
        climbs = mech.grounded and mech.velocity.z < 1 and top - mech.feet <= battle.rules.step_height
        fits = top + mech.height <= LAYERS + TOUCH and not room & (ahead | terrain.layers_under(mech.place, half))
        if not climbs or not fits:
            return False
    if any(keeps_out(other, mech, to) for other in battle.others(mech)):
        return False
    mech.place = to
    return to.level == wanted.level


def keeps_out(other: Mech, mech: Mech, to: Vector) -> bool:
    """Whether another mech keeps this one from going there: not if it is inside of it already and gets no nearer."""
    if not boxes_overlap(to, mech, other):
        return False
    then, now = to - other.place, mech.place - other.place
    gets_nearer = abs(then.x) < abs(now.x) or abs(then.y) < abs(now.y)
    return gets_nearer or not boxes_overlap(mech.place, mech, other)


def rise_or_fall(battle: Battle, mech: Mech) -> None:
    ground, ceiling = room(battle, mech)
    feet, speed = mech.feet + mech.velocity.z * battle.rules.dt, mech.velocity.z
    if speed > 0 and feet + mech.height >= ceiling:
        feet, speed = ceiling - mech.height, 0.0
    mech.grounded = feet <= ground and speed <= 0
    if mech.grounded:
        speed = 0.0
    mech.velocity = replace(mech.velocity, z=speed)
    mech.place = replace(mech.place, z=max(feet, ground) + mech.half.z)


def room(battle: Battle, mech: Mech) -> tuple[float, float]:
    """How far down the feet, and how far up the head, may go."""
    own, stopping = body_layers(mech.feet, mech), battle.terrain.layers_under(mech.place, mech.half)
    floors = [0.0] + [layer + 1.0 for layer in stopping if layer < min(own)]
    ceilings = [float(LAYERS)] + [float(layer) for layer in stopping if layer > max(own)]
    for other in battle.others(mech):
        apart, reach = mech.place - other.place, mech.half + other.half
        if abs(apart.x) < reach.x - TOUCH and abs(apart.y) < reach.y - TOUCH:
            if other.top <= mech.feet + TOUCH:
                floors.append(other.top)
            elif other.feet >= mech.feet + mech.height - TOUCH:
                ceilings.append(other.feet)
    return max(floors), min(ceilings)
