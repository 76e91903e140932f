"""What mechs perceive, once per decision: sight, jamming, radar, heat, noise.

The picture is taken when a decision ends and holds until the next one ends: players see it, and the weapons of the next
decision aim by it.
"""

from math import sqrt
from typing import Final

import numpy as np

from protege.games.echelon.rules.battle import COUNTERING, JAMMING, Battle, Record, enemies_of, squared_distance
from protege.games.echelon.rules.weapons import has_bit, painted_for
from protege.games.echelon.world.mechs import SUITE_RANGE
from protege.games.echelon.world.sight import Columns, in_sight, through_smoke
from protege.kernels import kernel

HEAD: Final = 0.8  # of the half height, above the centre: from there, and from the centre, a mech looks and is seen


@kernel
def behind_smoke(battle: Battle, a: Record, b: Record) -> bool:
    """Whether a cloud lies between two mechs; seen from the smaller x (then y, then z), so that both agree."""
    if b.x < a.x or (b.x == a.x and (b.y < a.y or (b.y == a.y and b.z < a.z))):
        a, b = b, a
    return through_smoke(battle.clouds, battle.cloud_count, a.x, a.y, a.z, b.x, b.y, b.z)


@kernel
def see_each_other(battle: Battle, opaque: Columns, a: Record, b: Record) -> bool:
    """Head to head or centre to centre: whoever has cover up to the chest still sees and is seen over it."""
    head_a, head_b = a.z + HEAD * a.half_height, b.z + HEAD * b.half_height
    heads, middles = (a.x, a.y, head_a, b.x, b.y, head_b), (a.x, a.y, a.z, b.x, b.y, b.z)
    return (in_sight(opaque, *heads) or in_sight(opaque, *middles)) and not behind_smoke(battle, a, b)


@kernel
def look_around(battle: Battle, opaque: Columns) -> None:
    """Lines of sight between all living mechs, as far as each one's suite reaches."""
    reach = battle.rules.sight_range
    for i in range(battle.count):
        battle.mechs[i].sees = np.uint64(0)
    for i in range(battle.count):
        for j in range(i):
            a, b = battle.mechs[i], battle.mechs[j]
            if not a.alive or not b.alive:
                continue
            far_a, far_b = reach * SUITE_RANGE[a.suite], reach * SUITE_RANGE[b.suite]
            distance = squared_distance(a, b)
            if distance > max(far_a, far_b) * max(far_a, far_b) or not see_each_other(battle, opaque, a, b):
                continue
            if distance <= far_a * far_a:
                a.sees |= np.uint64(1) << np.uint64(j)
            if distance <= far_b * far_b:
                b.sees |= np.uint64(1) << np.uint64(i)


@kernel
def emits(mech: Record, mode: int) -> bool:
    """Whether a mech's electronic warfare runs in this mode."""
    return bool(mech.alive and mech.ewar == mode and not mech.shut)


@kernel
def rate_sensors(battle: Battle, i: int) -> None:
    """Jamming by enemies, help by friends, and how good that leaves a mech's sensors."""
    mech, rules = battle.mechs[i], battle.rules
    jam, counter = 0.0, 0.0
    for j in range(battle.count):
        other = battle.mechs[j]
        hostile = other.team != mech.team
        if (hostile and emits(other, JAMMING)) or (not hostile and j != i and emits(other, COUNTERING)):
            strength = 1.0 - sqrt(squared_distance(mech, other)) / rules.jam_range
            if hostile:
                jam = max(jam, strength)
            else:
                counter = max(counter, strength)
    quality = 1.0 - rules.jam_weight * jam + rules.counter_weight * counter
    quality = rules.quality_min if mech.shut else min(max(quality, rules.quality_min), rules.quality_max)
    mech.jam, mech.quality = jam, quality


@kernel
def is_known(battle: Battle, i: int, j: int) -> bool:
    """Whether enemy j shows on mech i's sensors: by sight, radar, paint, heat or emissions."""
    mech, enemy, rules = battle.mechs[i], battle.mechs[j], battle.rules
    if has_bit(mech.sees, j):
        return True
    radar = rules.radar_range * SUITE_RANGE[mech.suite] * mech.quality
    if squared_distance(mech, enemy) <= radar * radar or painted_for(battle, mech, enemy):
        return True
    hot = enemy.heat > rules.hot_fraction * rules.chassis[enemy.kind].heat_capacity
    return (hot or emits(enemy, JAMMING) or emits(enemy, COUNTERING)) and not behind_smoke(battle, mech, enemy)


@kernel
def listen(battle: Battle, i: int) -> None:
    """Noise by quadrant (front left, front right, rear left, rear right), of the own team first, then the other."""
    mech, deaf = battle.mechs[i], battle.rules.deaf_factor
    mech.sound[:] = 0.0
    for own in (True, False):
        for j in range(battle.count):
            other = battle.mechs[j]
            if j == i or not other.alive or other.noise == 0.0 or (other.team == mech.team) != own:
                continue
            dx, dy = other.x - mech.x, other.y - mech.y
            loudness = other.noise / (1.0 + squared_distance(mech, other))
            if not has_bit(mech.sees, j):
                loudness *= deaf
            rear = dx * mech.cos + dy * mech.sin < 0.0
            right = dy * mech.cos - dx * mech.sin <= 0.0
            mech.sound[2 * rear + right] += loudness


@kernel
def perceive(battle: Battle, opaque: Columns) -> None:
    """Take the picture for everybody. A mech that is shut down has no sensors, but still hears."""
    look_around(battle, opaque)
    for i in range(battle.count):
        mech = battle.mechs[i]
        mech.knows = np.uint64(0)
        if not mech.alive:
            mech.quality, mech.jam = battle.rules.quality_min, 0.0
            mech.sound[:] = 0.0
            continue
        rate_sensors(battle, i)
        listen(battle, i)
        if mech.shut:
            continue
        first, last = enemies_of(battle, mech)
        for j in range(first, last):
            if battle.mechs[j].alive and is_known(battle, i, j):
                mech.knows |= np.uint64(1) << np.uint64(j)
