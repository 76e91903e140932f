"""What enemies and their shots do in a tick, on one game's row.

Each enemy stores the point where its movement script resumes; the functions here are those scripts, by the machine's
own resume points. `slot &= 7` is there for speed: see `motion`.
"""

from typing import Final

import numpy as np

from protege.games.tempest.rules import motion, ram
from protege.games.tempest.rules.ram import Row, get, random_byte
from protege.kernels import kernel

SHOT_THRESHOLD: Final = np.array([0x00, 0xE0, 0xF0, 0xFA, 0xFF], np.int64)  # by enemy shots in flight


@kernel
def leap(row: Row, slot: int, chase: bool) -> bool:
    """Leave a line for the next one, after the player or at random. Here a clear direction bit means increasing."""
    direction = motion.toward_player(row, slot) ^ ram.INCREASING if chase else random_byte(row) & ram.INCREASING
    line = get(row, ram.ENEMY_LANE + slot)
    if row[ram.OPEN] != 0 and (line == 15 and direction == 0 or line == 0 and direction != 0):
        direction ^= ram.INCREASING
    kind = get(row, ram.ENEMY_TYPE + slot) & ~ram.INCREASING
    row[ram.ENEMY_TYPE + slot] = kind | direction | ram.BETWEEN_LANES
    if direction == 0:
        row[ram.ENEMY_EDGE + slot] = 0x81
    else:
        row[ram.ENEMY_LANE + slot] = (line - 1) & 15
        row[ram.ENEMY_EDGE + slot] = 0x87
    return True


@kernel
def maybe_leap(row: Row, slot: int) -> bool:
    """Leap at random, only at depths with bit 5 set; odd slots chase where the level says so."""
    if row[ram.ENEMY_DEPTH + slot] & 0x20 == 0 or random_byte(row) < get(row, ram.FUSE_THRESHOLD):
        return False
    return leap(row, slot, row[ram.FUSE_FLAGS] & 0x40 != 0 and slot & 1 == 1)


@kernel
def move_fuseball(row: Row, slot: int) -> bool:
    """One tick along a line; True if it leapt."""
    slot &= 7
    flags = get(row, ram.FUSE_FLAGS)
    if row[ram.ENEMY_INFO + slot] & ram.MOVING_AWAY != 0:
        if motion.descend(row, slot, ram.FUSEBALL) >= 0x80:
            return leap(row, slot, flags & 0x40 != 0)
        return maybe_leap(row, slot)
    depth = motion.advance(row, slot, ram.FUSEBALL)
    player_depth = get(row, ram.PLAYER_DEPTH)
    if depth < player_depth:
        row[ram.ENEMY_DEPTH + slot] = player_depth
    elif row[ram.NYMPHS_LEFT] == 0:
        return False
    elif row[ram.LEVEL_INDEX] >= 17 or depth >= 0x20:
        return maybe_leap(row, slot)
    return leap(row, slot, flags & 0x80 != 0)


@kernel
def end_leap(row: Row, slot: int) -> bool:
    """A step of the leap; True when it has ended."""
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    if type_byte & ram.INCREASING == 0:
        row[ram.ENEMY_EDGE + slot] += 1
        if row[ram.ENEMY_EDGE + slot] != 0x88:
            return False
        row[ram.ENEMY_LANE + slot] = (row[ram.ENEMY_LANE + slot] + 1) & 15
    else:
        row[ram.ENEMY_EDGE + slot] -= 1
        if row[ram.ENEMY_EDGE + slot] != 0x80:
            return False
    row[ram.ENEMY_TYPE + slot] = type_byte & ~ram.BETWEEN_LANES
    row[ram.ENEMY_EDGE + slot] = 0x20
    row[ram.ENEMY_INFO + slot] ^= ram.MOVING_AWAY
    return True


@kernel
def touch(row: Row, slot: int, script: int) -> None:
    """A fuseball kills by touch, even a player who is already dying; then its script goes on at `script`."""
    if row[ram.ENEMY_DEPTH + slot] == row[ram.PLAYER_DEPTH] and row[ram.ENEMY_LANE + slot] == row[ram.PLAYER_LANE]:
        motion.kill_player(row, ram.BY_FUSE)
    row[ram.ENEMY_SCRIPT + slot] = script


@kernel
def wait_in_leap(row: Row, slot: int) -> None:
    """Three ticks until the next step of a leap."""
    row[ram.ENEMY_COUNTER + slot] = 3
    touch(row, slot, 0x6B)


@kernel
def run_fuseball(row: Row, slot: int, at: int) -> None:
    """The fuseball's script: along a line, then step by step across to the next."""
    slot &= 7
    if at == 0x67:
        wait_in_leap(row, slot)
        return
    if at == 0x6B:
        if motion.count_down(row, slot):
            touch(row, slot, 0x6B)
            return
        if not end_leap(row, slot):
            row[ram.ENEMY_SCRIPT + slot] = 0x67
            return
        if row[ram.NYMPHS_LEFT] == 0:
            if row[ram.ENEMY_DEPTH + slot] == row[ram.PLAYER_DEPTH]:
                leap(row, slot, True)
                wait_in_leap(row, slot)
                return
            # Meant to send it up; the machine masks the wrong way and clears its other bits.
            row[ram.ENEMY_INFO + slot] &= ram.MOVING_AWAY
    if move_fuseball(row, slot):
        wait_in_leap(row, slot)
    else:
        touch(row, slot, 0x64)


@kernel
def move_pulsar(row: Row, slot: int, script: int) -> None:
    """One tick up or down; the pulse kills whoever shares the lane. Then the script goes on at `script`."""
    slot &= 7
    row[ram.ENEMY_SCRIPT + slot] = script
    pulse_depth = get(row, ram.PULSE_DEPTH)
    outcome = motion.CLIMBED
    if row[ram.ENEMY_INFO + slot] & ram.MOVING_AWAY == 0:
        kind = ram.PULSAR if get(row, ram.ENEMY_DEPTH + slot) < pulse_depth else ram.FLIPPER
        outcome = motion.climb(row, slot, kind)
    elif motion.descend(row, slot, ram.PULSAR) >= pulse_depth or row[ram.NYMPHS_LEFT] == 0:
        row[ram.ENEMY_INFO + slot] ^= ram.MOVING_AWAY
    live = row[ram.PULSE_PHASE] & 0x80 == 0
    if live and get(row, ram.ENEMY_DEPTH + slot) < pulse_depth and motion.meets_player(row, slot):
        motion.kill_player(row, ram.BY_PULSE)
    if outcome == motion.BECAME_RIDER:
        motion.sit_on_rim(row, slot)


@kernel
def start_pulsar(row: Row, slot: int) -> None:
    row[ram.ENEMY_COUNTER + slot] = row[ram.PULSAR_WAIT]
    move_pulsar(row, slot, 0x76)


@kernel
def run_pulsar(row: Row, slot: int, at: int) -> None:
    """The pulsar's script: a wait, then a flip towards the player when no pulse is near."""
    slot &= 7
    if at == 0x72:
        start_pulsar(row, slot)
        return
    if at == 0x82:
        if motion.flip_step(row, slot):
            start_pulsar(row, slot)
        return
    if at == 0x76 and motion.count_down(row, slot):
        move_pulsar(row, slot, 0x76)
        return
    phase = get(row, ram.PULSE_PHASE)
    soon = (phase + 4 * get(row, ram.PULSE_STEP)) & 0xFF
    if phase & soon & 0x80 == 0:
        move_pulsar(row, slot, 0x7D)
        return
    motion.set_direction(row, slot, motion.toward_player(row, slot))
    motion.start_flip(row, slot)
    row[ram.ENEMY_SCRIPT + slot] = 0x82


@kernel
def relocate_spiker(row: Row, slot: int) -> None:
    """Move to the lane with the shortest spike; of equals the one visited last."""
    lane = random_byte(row) & 15
    best, best_tip = lane, -1
    for _ in range(ram.LANE_COUNT):
        if lane != 15 or row[ram.OPEN] == 0:
            tip = get(row, ram.SPIKE + lane)
            if tip == 0:
                tip = 0xFF
            if tip >= best_tip:
                best, best_tip = lane, tip
        lane = (lane - 1) & 15
    row[ram.ENEMY_LANE + slot] = best
    row[ram.ENEMY_EDGE + slot] = (best + 1) & 15
    row[ram.ENEMY_INFO + slot] &= 0xFF ^ ram.MOVING_AWAY
    row[ram.TYPE_ROOM + ram.SPIKER] = 0xFF  # the machine uses this byte as scratch


@kernel
def run_spiker(row: Row, slot: int) -> None:
    """Up and down a lane, growing its spike; at the bottom it moves on, or turns into a tanker when none wait."""
    slot &= 7
    if not motion.goes_on(row, slot):
        return
    row[ram.ENEMY_SCRIPT + slot] = 0x05
    depth = get(row, ram.ENEMY_DEPTH + slot)
    spike = ram.SPIKE + get(row, ram.ENEMY_LANE + slot)
    if row[spike] == 0:
        row[spike] = 0xF1
    if depth < get(row, spike):
        row[spike] = depth
    if depth < 0x20:
        row[ram.ENEMY_INFO + slot] |= ram.MOVING_AWAY
        row[ram.ENEMY_DEPTH + slot] = 0x20
    elif depth >= 0xF2:
        relocate_spiker(row, slot)
        row[ram.ENEMY_DEPTH + slot] = ram.FAR_END
        if row[ram.NYMPHS_LEFT] == 0:
            row[ram.ENEMY_TYPE + slot] = get(row, ram.ENEMY_TYPE + slot) & ~ram.TYPE_BITS | ram.TANKER
            row[ram.ENEMY_INFO + slot] = get(row, ram.ENEMY_INFO + slot) & ~ram.CARGO_BITS | 1
            row[ram.ENEMY_SCRIPT + slot] = 0x09
            motion.goes_on(row, slot)


@kernel
def march(row: Row, slot: int) -> None:
    """Eight climbs before the next flip."""
    row[ram.ENEMY_COUNTER + slot] = 8
    if motion.goes_on(row, slot):
        row[ram.ENEMY_SCRIPT + slot] = 0x0F


@kernel
def run_march(row: Row, slot: int, at: int) -> None:
    """March and flip: eight climbs, a flip without climbing."""
    slot &= 7
    if at == 0x0B:
        march(row, slot)
    elif at == 0x0F:
        if not motion.count_down(row, slot):
            motion.start_flip(row, slot)
            row[ram.ENEMY_SCRIPT + slot] = 0x13
        else:
            motion.goes_on(row, slot)
    elif motion.flip_step(row, slot):
        march(row, slot)


@kernel
def run_spiral(row: Row, slot: int, at: int) -> None:
    """Spiral: flip after flip, climbing all the while."""
    slot &= 7
    if at == 0x1B:
        motion.start_flip(row, slot)
        row[ram.ENEMY_SCRIPT + slot] = 0x1D
        return
    landed = at == 0x1D and motion.flip_step(row, slot)
    if not motion.goes_on(row, slot):
        return
    if at == 0x19 or landed and motion.goes_on(row, slot):
        row[ram.ENEMY_SCRIPT + slot] = 0x1B


@kernel
def run_zigzag(row: Row, slot: int, at: int) -> None:
    """Zigzag: two flips one way, three the other."""
    slot &= 7
    script = at
    if at == 0x24:
        if not motion.goes_on(row, slot):
            return
        script = 0x26
    elif at == 0x26:
        motion.begin(row, slot, 2)
        script = 0x2A
    elif at == 0x2A or at == 0x37:
        landed = motion.flip_step(row, slot)
        if not motion.goes_on(row, slot):
            return
        if landed:
            script = at + 6
    elif motion.count_down(row, slot):
        motion.start_flip(row, slot)
        script = at - 6
    else:
        row[ram.ENEMY_TYPE + slot] ^= ram.INCREASING
        if at == 0x30:
            motion.begin(row, slot, 3)
            script = 0x37
        else:
            if not motion.goes_on(row, slot):
                return
            script = 0x26
    row[ram.ENEMY_SCRIPT + slot] = script


@kernel
def run_rim(row: Row, slot: int, at: int) -> None:
    """A rim rider: four ticks in a lane, then over into the next, always the same way."""
    slot &= 7
    if at == 0x46:
        if motion.count_down(row, slot):
            motion.grab(row, slot)
        else:
            motion.start_flip(row, slot)
            row[ram.ENEMY_SCRIPT + slot] = 0x4A
        return
    for _ in range(row[ram.RIM_FLIP_STEPS]):
        if motion.flip_step(row, slot):
            motion.sit_on_rim(row, slot)
            return


@kernel
def run_spike_rider(row: Row, slot: int, at: int) -> None:
    """Climbs under the cover of spikes, flipping whenever it has left one."""
    slot &= 7
    script = 0x54
    if at == 0x54:
        if not motion.goes_on(row, slot):
            return
        tip = get(row, ram.SPIKE + (row[ram.ENEMY_LANE + slot] & 15))
        if tip == 0 or tip >= get(row, ram.ENEMY_DEPTH + slot):
            motion.start_flip(row, slot)
            script = 0x5A
    elif at != 0x53:
        if at == 0x5A and not motion.goes_on(row, slot):
            return
        if not motion.flip_step(row, slot):
            script = 0x5F
    row[ram.ENEMY_SCRIPT + slot] = script


@kernel
def run_evader(row: Row, slot: int, at: int) -> None:
    """Flips away from the player, then climbs four times."""
    slot &= 7
    script = at
    if at == 0x8B:
        if not motion.goes_on(row, slot):
            return
        if motion.flip_step(row, slot):
            row[ram.ENEMY_COUNTER + slot] = 4
            script = 0x93
    elif at == 0x87 or motion.goes_on(row, slot):
        if at == 0x87 or not motion.count_down(row, slot):
            motion.set_direction(row, slot, motion.toward_player(row, slot) ^ ram.INCREASING)
            motion.start_flip(row, slot)
            script = 0x8B
    else:
        return
    row[ram.ENEMY_SCRIPT + slot] = script


@kernel
def run_script(row: Row, slot: int) -> None:
    """One tick of one enemy, from where its script resumes."""
    slot &= 7
    at = get(row, ram.ENEMY_SCRIPT + slot)
    if at <= 0x05:
        run_spiker(row, slot)
    elif at <= 0x09:
        if motion.goes_on(row, slot):
            row[ram.ENEMY_SCRIPT + slot] = 0x09
    elif at <= 0x13:
        run_march(row, slot, at)
    elif at <= 0x1D:
        run_spiral(row, slot, at)
    elif at <= 0x3D:
        run_zigzag(row, slot, at)
    elif at <= 0x4A:
        run_rim(row, slot, at)
    elif at <= 0x5F:
        run_spike_rider(row, slot, at)
    elif at <= 0x6B:
        run_fuseball(row, slot, at)
    elif at <= 0x82:
        run_pulsar(row, slot, at)
    else:
        run_evader(row, slot, at)


@kernel
def move_enemies(row: Row) -> None:
    """All enemies move, unless the player was dying when the tick began; the pulse goes on, and back at its ends."""
    if row[ram.PLAYER_EDGE] & ram.DYING == 0:
        for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
            if row[ram.ENEMY_DEPTH + slot] != 0:
                run_script(row, slot)
    phase = (get(row, ram.PULSE_PHASE) + get(row, ram.PULSE_STEP)) & 0xFF
    row[ram.PULSE_PHASE] = phase
    if 15 <= phase < 0x100 - 63:
        row[ram.PULSE_STEP] = (256 - get(row, ram.PULSE_STEP)) & 0xFF


@kernel
def move_enemy_shots(row: Row) -> None:
    """Enemy shots come up; one that passes the player's depth in his lane kills him."""
    if row[ram.ENEMY_SHOTS] == 0:
        return
    speed = ram.get_pair(row, ram.SHOT_SPEED_HIGH, ram.SHOT_SPEED_LOW)
    for s in range(ram.ESHOT_COUNT - 1, -1, -1):
        if row[ram.ESHOT_DEPTH + s] == 0:
            continue
        word = ram.get_pair(row, ram.ESHOT_DEPTH + s, ram.ESHOT_FRACTION + s) + speed
        ram.put_pair(row, ram.ESHOT_DEPTH + s, ram.ESHOT_FRACTION + s, word)
        if get(row, ram.ESHOT_DEPTH + s) < get(row, ram.PLAYER_DEPTH):
            row[ram.ESHOT_DEPTH + s] = 0
            row[ram.ENEMY_SHOTS] -= 1
            if row[ram.ESHOT_LANE + s] == row[ram.PLAYER_LANE] and row[ram.PLAYER_EDGE] & ram.DYING == 0:
                motion.kill_player(row, ram.BY_SHOT)


@kernel
def shoot(row: Row, slot: int) -> None:
    """An enemy fires, if a shot is free."""
    for s in range(get(row, ram.SHOT_SLOT_MAX), -1, -1):
        if row[ram.ESHOT_DEPTH + s] == 0:
            row[ram.ESHOT_DEPTH + s] = row[ram.ENEMY_DEPTH + slot]
            row[ram.ESHOT_LANE + s] = row[ram.ENEMY_LANE + slot]
            row[ram.ESHOT_EDGE + s] = row[ram.ENEMY_EDGE + slot]
            row[ram.ENEMY_SHOT_DELAY + slot] = row[ram.SHOT_HOLDOFF]
            row[ram.ENEMY_SHOTS] += 1
            return


@kernel
def enemies_fire(row: Row) -> None:
    """Each enemy that may shoot, is deep enough and has waited long enough draws for a shot."""
    if row[ram.PLAYER_EDGE] & ram.DYING != 0:
        return
    # A byte per slot: deep enough (at least $30) and allowed to shoot; then those whose delay has run out.
    depths = ram.get_word(row, ram.ENEMY_DEPTH)
    deep = depths | ((depths & ~ram.TOP_BITS) + np.uint64(0x80 - 0x30) * ram.EVERY_BYTE)
    allowed = ram.get_word(row, ram.ENEMY_INFO) << np.uint64(1)
    eligible = deep & allowed & ram.TOP_BITS & np.uint64(0x00FFFFFFFFFFFFFF)
    if eligible == 0:
        return
    delays = ram.get_word(row, ram.ENEMY_SHOT_DELAY)
    waiting = eligible & ram.filled_bytes(delays)
    ram.put_word(row, ram.ENEMY_SHOT_DELAY, delays - (waiting >> np.uint64(7)))
    ready = eligible ^ waiting
    if ready == 0:
        return
    for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
        if (ready >> np.uint64(8 * slot + 7)) & np.uint64(1) == 0:
            continue
        if row[ram.ENEMY_TYPE + slot] & ram.BETWEEN_LANES != 0:
            continue
        if random_byte(row) >= SHOT_THRESHOLD[get(row, ram.ENEMY_SHOTS)]:
            shoot(row, slot)
