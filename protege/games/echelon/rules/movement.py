"""How mechs move: turning, walking, steps, jets, falling, and keeping out of walls and of each other.

A body is an upright box. Mechs move one after the other, in an order drawn anew for every tick, along x, then y, then
z; a way that is blocked is not taken and that part of the velocity is lost. Boxes never come to overlap; should a
battle begin with boxes that do, they are pushed apart and only ever move away from each other.
"""

from math import floor, inf, sqrt
from typing import Final

import numpy as np

from protege.games.echelon.rules.battle import FOR_ORDER, Battle, Record, draw_bits
from protege.games.echelon.world.mechs import SPEED_FACTOR
from protege.games.echelon.world.portable_math import sin_cos, wrap_angle
from protege.games.echelon.world.sight import TOUCH, Columns, footprint, highest_layer, layers, lowest_layer
from protege.games.echelon.world.voxels import HEIGHT
from protege.kernels import kernel

PUSH: Final = 0.1  # voxels a tick, for boxes that overlap


@kernel
def shuffle(battle: Battle) -> int:
    """Write the living into `order`, sorted by a draw of each; their number."""
    count = 0
    for i in range(battle.count):
        mech = battle.mechs[i]
        if not mech.alive:
            continue
        key = draw_bits(battle.key[mech.team], FOR_ORDER, mech.rank, 0)
        place = count
        while place > 0 and battle.order_keys[place - 1] > key:
            battle.order_keys[place], battle.order[place] = battle.order_keys[place - 1], battle.order[place - 1]
            place -= 1
        battle.order_keys[place], battle.order[place] = key, i
        count += 1
    return count


@kernel
def overlap(a: Record, x: float, y: float, z: float, b: Record) -> bool:
    """Whether mech a, if its centre were at (x, y, z), would overlap mech b."""
    wide = a.half_width + b.half_width - TOUCH
    return bool(abs(x - b.x) < wide and abs(y - b.y) < wide and abs(z - b.z) < a.half_height + b.half_height - TOUCH)


@kernel
def list_neighbours(battle: Battle, room: float) -> bool:
    """List for each mech the others it could touch if each pair came closer by so much; whether any two overlap."""
    crowded = False
    for i in range(battle.count):
        mech = battle.mechs[i]
        battle.near_count[i] = 0
        for j in range(i if mech.alive else 0):
            other = battle.mechs[j]
            reach = mech.half_width + other.half_width + room
            if other.alive and abs(mech.x - other.x) < reach and abs(mech.y - other.y) < reach:
                battle.near[i, battle.near_count[i]], battle.near[j, battle.near_count[j]] = j, i
                battle.near_count[i] += 1
                battle.near_count[j] += 1
                crowded = crowded or overlap(mech, mech.x, mech.y, mech.z, other)
    return crowded


@kernel
def find_neighbours(battle: Battle) -> None:
    """Prepare a decision: who could touch whom until it ends. Where boxes overlap, pushes may go any way."""
    fastest = 0.0
    for kind in range(len(battle.rules.chassis)):
        fastest = max(fastest, battle.rules.chassis[kind].speed)
    room = 2.0 * fastest * battle.rules.dt * battle.rules.ticks_per_decision
    battle.crowded = list_neighbours(battle, room)
    if battle.crowded:
        list_neighbours(battle, inf)


@kernel
def meets_mech(battle: Battle, i: int, x: float, y: float, z: float) -> bool:
    """Whether mech i may not go to (x, y, z) because of another: unless the two overlap now and it moves away."""
    mech = battle.mechs[i]
    for n in range(battle.near_count[i]):
        other = battle.mechs[battle.near[i, n]]
        if other.alive and overlap(mech, x, y, z, other):
            if not overlap(mech, mech.x, mech.y, mech.z, other):
                return True
            if abs(x - other.x) < abs(mech.x - other.x) or abs(y - other.y) < abs(mech.y - other.y):
                return True
    return False


@kernel
def body_layers(foot: float, mech: Record) -> int:
    """The layers that a body standing at this height reaches into."""
    return layers(int(floor(foot + TOUCH)), int(floor(foot + 2.0 * mech.half_height - TOUCH)))


@kernel
def push_from_others(battle: Battle, i: int) -> tuple[float, float]:
    """Which way to shift a mech that overlaps others: along the shorter way out of each, own team first."""
    mech, push_x, push_y = battle.mechs[i], 0.0, 0.0
    for own in (True, False):
        for n in range(battle.near_count[i]):
            other = battle.mechs[battle.near[i, n]]
            if not other.alive or (other.team == mech.team) != own:
                continue
            if overlap(mech, mech.x, mech.y, mech.z, other):
                dx, dy = mech.x - other.x, mech.y - other.y
                if abs(dx) >= abs(dy):
                    push_x += PUSH if dx >= 0.0 else -PUSH
                else:
                    push_y += PUSH if dy >= 0.0 else -PUSH
    return push_x, push_y


@kernel
def swept(blocked: Columns, mech: Record, dx: float, dy: float) -> int:
    """All layers in which something is in the way between here and there, corners included."""
    wide, (rows, width) = mech.half_width, blocked.shape
    x0 = int(floor(min(mech.x, mech.x + dx) - wide + TOUCH))
    x1 = int(floor(max(mech.x, mech.x + dx) + wide - TOUCH))
    y0 = int(floor(min(mech.y, mech.y + dy) - wide + TOUCH))
    y1 = int(floor(max(mech.y, mech.y + dy) + wide - TOUCH))
    found = np.uint32(0)
    for row in range(max(y0, 0), min(y1, rows - 1) + 1):
        for column in range(max(x0, 0), min(x1, width - 1) + 1):
            found |= blocked[row, column]
    return int(found)


@kernel
def step_up(battle: Battle, blocked: Columns, mech: Record, ahead: int, met: int) -> float:
    """The height of a step that a mech can climb, feet on it and head free here and there; -1 if there is none."""
    foot = mech.z - mech.half_height
    top = highest_layer(met) + 1.0
    if not mech.grounded or mech.vz >= 1.0 or top - foot > battle.rules.step_height:
        return -1.0
    room = body_layers(top, mech)
    if top + 2.0 * mech.half_height > HEIGHT + TOUCH or ahead & room:
        return -1.0
    return -1.0 if footprint(blocked, mech.x, mech.y, mech.half_width) & room else top


@kernel
def walk(battle: Battle, blocked: Columns, i: int, dx: float, dy: float, open_way: bool) -> bool:
    """Move along one axis (the other step is 0), up a step if need be; false if the way is blocked."""
    mech, (rows, width) = battle.mechs[i], blocked.shape
    wide, z = mech.half_width, mech.z
    x = min(max(mech.x + dx, wide), width - wide)
    y = min(max(mech.y + dy, wide), rows - wide)
    if not open_way:
        ahead = footprint(blocked, x, y, wide)
        met = ahead & body_layers(z - mech.half_height, mech)
        if met != 0:
            top = step_up(battle, blocked, mech, ahead, met)
            if top < 0.0:
                return False
            z = top + mech.half_height
    if meets_mech(battle, i, x, y, z):
        return False
    free = x == mech.x + dx and y == mech.y + dy  # not stopped by the map's edge
    mech.x, mech.y, mech.z = x, y, z
    return bool(free)


@kernel
def rise_or_fall(battle: Battle, i: int, around: int) -> None:
    """Move along z, onto the floor or up to the ceiling: voxels `around`, other mechs, the map's bottom and top."""
    mech = battle.mechs[i]
    foot, tall = mech.z - mech.half_height, 2.0 * mech.half_height
    ground, ceiling = 0.0, float(HEIGHT)
    if around != 0:
        lowest, highest = int(floor(foot + TOUCH)), int(floor(foot + tall - TOUCH))
        ground = highest_layer(around & layers(0, lowest - 1)) + 1.0
        ceiling = min(float(lowest_layer(around & layers(highest + 1, HEIGHT - 1))), ceiling)
    for n in range(battle.near_count[i]):
        other = battle.mechs[battle.near[i, n]]
        wide = mech.half_width + other.half_width - TOUCH
        if not other.alive or abs(mech.x - other.x) >= wide or abs(mech.y - other.y) >= wide:
            continue
        if other.z + other.half_height <= foot + TOUCH:
            ground = max(ground, other.z + other.half_height)
        elif other.z - other.half_height >= foot + tall - TOUCH:
            ceiling = min(ceiling, other.z - other.half_height)
    foot += mech.vz * battle.rules.dt
    mech.grounded = 0
    if foot + tall >= ceiling and mech.vz > 0.0:
        foot, mech.vz = ceiling - tall, 0.0
    if foot <= ground:
        foot = ground
        if mech.vz <= 0.0:
            mech.vz, mech.grounded = 0.0, 1
    mech.z = foot + mech.half_height


@kernel
def steer(battle: Battle, mech: Record) -> None:
    """Set heading and velocity from the controls; without control a mech only slows down and falls."""
    rules, chassis = battle.rules, battle.rules.chassis[mech.kind]
    lift = 0.0
    if mech.fallen > 0:
        mech.vx = mech.vy = 0.0
    elif mech.shut:
        keep = rules.slide if mech.grounded else rules.damping
        mech.vx, mech.vy = mech.vx * keep, mech.vy * keep
    else:
        if mech.turn != 0.0:
            mech.yaw = wrap_angle(mech.yaw + mech.turn * chassis.yaw_rate * rules.dt)
            mech.sin, mech.cos = sin_cos(mech.yaw)
        speed = chassis.speed * SPEED_FACTOR[mech.material] * rules.damping
        lift = max(mech.vertical, 0.0)
        thrust = chassis.jet
        if mech.legged:
            speed, thrust = speed * rules.legged_speed, thrust * rules.legged_jet
        if thrust == 0.0 or mech.jet <= 0.0:
            lift = 0.0
        mech.vx = (mech.forward * mech.cos - mech.strafe * mech.sin) * speed
        mech.vy = (mech.forward * mech.sin + mech.strafe * mech.cos) * speed
        mech.vz += lift * thrust * rules.dt
    mech.vz = (mech.vz - rules.gravity * rules.dt) * rules.damping
    if lift > 0.0:
        mech.jet = max(mech.jet - lift * rules.jet_drain * rules.dt, 0.0)
    elif mech.grounded:
        mech.jet = min(mech.jet + rules.jet_refill * rules.dt, 1.0)


@kernel
def move_one(battle: Battle, blocked: Columns, i: int) -> None:
    mech, dt = battle.mechs[i], battle.rules.dt
    steer(battle, mech)
    dx, dy = mech.vx * dt, mech.vy * dt
    if battle.crowded:
        push_x, push_y = push_from_others(battle, i)
        dx, dy = dx + push_x, dy + push_y
    around = swept(blocked, mech, dx, dy)
    open_way = around & body_layers(mech.z - mech.half_height, mech) == 0
    if dx != 0.0 and not walk(battle, blocked, i, dx, 0.0, open_way):
        mech.vx = 0.0
    if dy != 0.0 and not walk(battle, blocked, i, 0.0, dy, open_way):
        mech.vy = 0.0
    if around != 0:
        around = footprint(blocked, mech.x, mech.y, mech.half_width)
    rise_or_fall(battle, i, around)
    speed = sqrt(mech.vx * mech.vx + mech.vy * mech.vy + mech.vz * mech.vz)
    mech.noise = 0.0 if mech.fallen > 0 else speed * battle.rules.chassis[mech.kind].noise


@kernel
def move_all(battle: Battle, blocked: Columns) -> None:
    """All living mechs, in this tick's order."""
    for n in range(shuffle(battle)):
        move_one(battle, blocked, battle.order[n])


@kernel
def stands_free(mech: Record, blocked: Columns) -> bool:
    """Whether a body is inside the map and in no wall."""
    wide, foot, (rows, width) = mech.half_width, mech.z - mech.half_height, blocked.shape
    inside_x = wide <= mech.x + TOUCH and mech.x <= width - wide + TOUCH
    inside_y = wide <= mech.y + TOUCH and mech.y <= rows - wide + TOUCH
    if not inside_x or not inside_y or foot < -TOUCH or foot + 2.0 * mech.half_height > HEIGHT + TOUCH:
        return False
    return footprint(blocked, mech.x, mech.y, wide) & body_layers(foot, mech) == 0
