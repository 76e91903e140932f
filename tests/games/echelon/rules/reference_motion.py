"""The slow reference's movement: the last part of a tick."""

from math import floor

from protege.games.echelon.world.mechs import MATERIALS
from tests.games.echelon.rules.reference_hits import footprint
from tests.games.echelon.rules.reference_state import (
    FOR_ORDER,
    LAYERS,
    TOUCH,
    Battle,
    Mech,
    length,
    overlap,
    sine_and_cosine,
    wrap,
)

PUSH = 0.1


def move_everybody(battle: Battle) -> None:
    for mech in sorted(battle.living(), key=lambda mech: battle.draw_bits(mech, FOR_ORDER)):
        set_velocity(battle, mech)
        dt = battle.rules.dt
        dx, dy = mech.vx * dt, mech.vy * dt
        if battle.crowded:
            push_x, push_y = push(battle, mech)
            dx, dy = dx + push_x, dy + push_y
        if dx != 0:
            walk(battle, mech, dx, 0.0)
        if dy != 0:
            walk(battle, mech, 0.0, dy)
        rise_or_fall(battle, mech)
        noise = length(mech.vx, mech.vy, mech.vz) * battle.chassis(mech).noise
        mech.noise = 0.0 if mech.fallen else noise


def set_velocity(battle: Battle, mech: Mech) -> None:
    rules, chassis = battle.rules, battle.chassis(mech)
    lift = 0.0
    if mech.fallen:
        mech.vx = mech.vy = 0.0
    elif mech.shut:
        keep = rules.slide if mech.grounded else rules.damping
        mech.vx, mech.vy = mech.vx * keep, mech.vy * keep
    else:
        if mech.turn != 0:
            mech.yaw = wrap(mech.yaw + mech.turn * chassis.yaw_rate * rules.dt)
            mech.sin, mech.cos = sine_and_cosine(mech.yaw)
        s = chassis.speed * MATERIALS[mech.material].speed * rules.damping
        if mech.legged:
            s *= rules.legged_speed
        mech.vx = (mech.forward * mech.cos - mech.strafe * mech.sin) * s
        mech.vy = (mech.forward * mech.sin + mech.strafe * mech.cos) * s
        if chassis.jet > 0 and mech.jet > 0:
            lift = max(mech.vertical, 0.0)
        thrust = chassis.jet * rules.legged_jet if mech.legged else chassis.jet
        mech.vz += lift * thrust * rules.dt
    mech.vz = (mech.vz - rules.gravity * rules.dt) * rules.damping
    if lift > 0:
        mech.jet = max(mech.jet - lift * rules.jet_drain * rules.dt, 0.0)
    elif mech.grounded:
        mech.jet = min(mech.jet + rules.jet_refill * rules.dt, 1.0)


def push(battle: Battle, mech: Mech) -> tuple[float, float]:
    """Away from everybody it is inside of."""
    push_x = push_y = 0.0
    for other in battle.others(mech):
        if overlap(mech, other):
            dx, dy = mech.x - other.x, mech.y - other.y
            if abs(dx) >= abs(dy):
                push_x += PUSH if dx >= 0 else -PUSH
            else:
                push_y += PUSH if dy >= 0 else -PUSH
    return push_x, push_y


def body_layers(feet: float, height: float) -> range:
    return range(floor(feet + TOUCH), floor(feet + height - TOUCH) + 1)


def layers_in_the_way(battle: Battle, x: float, y: float, feet: float, mech: Mech) -> list[int]:
    """Layers in which a body there would touch a voxel that stops it."""
    return [
        z
        for z in body_layers(feet, mech.height)
        if any(battle.terrain.stops_bodies(z, row, column) for column, row in footprint(x, y, mech.half_width))
    ]


def walk(battle: Battle, mech: Mech, dx: float, dy: float) -> None:
    """Move along one axis if that is possible."""
    half = mech.half_width
    x = min(max(mech.x + dx, half), battle.terrain.columns - half)
    y = min(max(mech.y + dy, half), battle.terrain.rows - half)
    clamped = (x != mech.x + dx) if dx else (y != mech.y + dy)
    z = mech.z
    blocking = layers_in_the_way(battle, x, y, mech.feet, mech)
    blocked = False
    if blocking:
        top = max(blocking) + 1
        z = top + mech.half_height
        blocked = not can_step(battle, mech, x, y, top)
    blocked = blocked or any(in_the_way(mech, other, x, y, z) for other in battle.others(mech))
    if blocked or clamped:
        if dx:
            mech.vx = 0.0
        else:
            mech.vy = 0.0
    if not blocked:
        mech.x, mech.y, mech.z = x, y, z


def can_step(battle: Battle, mech: Mech, x: float, y: float, top: int) -> bool:
    return (
        mech.grounded
        and mech.vz < 1
        and top - mech.feet <= battle.rules.step_height
        and top + mech.height <= LAYERS + TOUCH
        and not layers_in_the_way(battle, x, y, top, mech)
        and not layers_in_the_way(battle, mech.x, mech.y, top, mech)
    )


def in_the_way(mech: Mech, other: Mech, x: float, y: float, z: float) -> bool:
    """Whether another mech keeps this one from going there."""
    wide = mech.half_width + other.half_width - TOUCH
    high = mech.half_height + other.half_height - TOUCH

    if not (abs(x - other.x) < wide and abs(y - other.y) < wide and abs(z - other.z) < high):
        return False
    nearer = abs(x - other.x) < abs(mech.x - other.x) or abs(y - other.y) < abs(mech.y - other.y)
    return nearer or not overlap(mech, other)


def rise_or_fall(battle: Battle, mech: Mech) -> None:
    ground, ceiling = room(battle, mech)
    feet = mech.feet + mech.vz * battle.rules.dt
    if feet + mech.height >= ceiling and mech.vz > 0:
        feet, mech.vz = ceiling - mech.height, 0.0
    mech.grounded = False
    if feet <= ground:
        feet = ground
        if mech.vz <= 0:
            mech.vz, mech.grounded = 0.0, True
    mech.z = feet + mech.half_height


def room(battle: Battle, mech: Mech) -> tuple[float, float]:
    """How far down the feet, and how far up the head, may go."""
    layers = body_layers(mech.feet, mech.height)
    ground, ceiling = 0.0, float(LAYERS)
    for column, row in footprint(mech.x, mech.y, mech.half_width):
        stopping = [z for z in range(LAYERS) if battle.terrain.stops_bodies(z, row, column)]
        ground = max([ground] + [z + 1.0 for z in stopping if z < layers[0]])
        ceiling = min([ceiling] + [float(z) for z in stopping if z > layers[-1]])
    for other in battle.others(mech):
        wide = mech.half_width + other.half_width - TOUCH
        if abs(mech.x - other.x) < wide and abs(mech.y - other.y) < wide:
            if other.z + other.half_height <= mech.feet + TOUCH:
                ground = max(ground, other.z + other.half_height)
            elif other.feet >= mech.feet + mech.height - TOUCH:
                ceiling = min(ceiling, other.feet)
    return ground, ceiling
