"""How enemies come to be: nymphs wait at the far end, tankers carry others.

A nymph counts down while it circles the far end; when its time is up it becomes an enemy of a type that still has room,
or tries again. Slots are searched from the highest index down and random bytes drawn in the machine's order: both are
part of the rules.
"""

from typing import Final

import numpy as np

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.ram import Row, get, random_byte
from protege.kernels import kernel

# Where movement scripts begin (enemies.py runs them).
SPIKER_ENTRY, STRAIGHT_ENTRY, FUSEBALL_ENTRY, PULSAR_ENTRY = 0x00, 0x07, 0x61, 0x72
# By a tanker's cargo bits: the type of the pieces, and where their scripts begin if it came closer than $20.
CARGO_TYPE: Final = np.array([ram.FUSEBALL, ram.FLIPPER, ram.PULSAR, ram.FUSEBALL])
CARGO_ENTRY: Final = np.array([FUSEBALL_ENTRY, STRAIGHT_ENTRY, PULSAR_ENTRY, FUSEBALL_ENTRY])


@kernel
def activate(row: Row, type_byte: int, info: int, script: int, lane: int, depth: int) -> bool:
    """Put a new enemy into the highest free slot. Its depth fraction and counter keep what the slot held."""
    for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
        if row[ram.ENEMY_DEPTH + slot] == 0:
            row[ram.ENEMY_DEPTH + slot] = depth
            row[ram.ENEMY_LANE + slot], row[ram.ENEMY_EDGE + slot] = lane, (lane + 1) & 15
            row[ram.ENEMY_SHOT_DELAY + slot] = 0
            row[ram.ENEMY_TYPE + slot] = type_byte
            row[ram.ENEMY_INFO + slot] = info
            row[ram.ENEMY_SCRIPT + slot] = script
            row[ram.ENEMIES_IN_TUBE] += 1
            row[ram.TYPE_COUNT + (type_byte & ram.TYPE_BITS)] += 1
            return True
    return False


@kernel
def release_cargo(row: Row, lane: int, depth: int, cargo: int) -> None:
    """The two pieces of a tanker that was freed at this lane and depth."""
    kind, script = CARGO_TYPE[cargo], CARGO_ENTRY[cargo]
    info = ram.MAY_SHOOT if kind == ram.FLIPPER else 0
    if depth >= 0x20:
        if kind == ram.FLIPPER:
            script = get(row, ram.FLIPPER_SCRIPT)
        elif kind == ram.PULSAR:
            info = get(row, ram.PULSAR_FIRE)
    is_open = row[ram.OPEN] != 0
    first = (lane - 1) & 15 if lane != 0 or not is_open else 0
    if activate(row, kind, info, script, first, depth):
        second = (first + 2) & 15 if first != 13 or not is_open else 14
        activate(row, kind | ram.INCREASING, info, script, second, depth)


@kernel
def launch(row: Row, kind: int, info: int, script: int, lane: int) -> bool:
    """Activate at the far end. Lane 15 does not exist on open tubes: an even lane is drawn instead."""
    if lane == 15 and row[ram.OPEN] != 0:
        lane = random_byte(row) & 0x0E
    return activate(row, kind, info, script, lane, ram.FAR_END)


@kernel
def try_type(row: Row, kind: int, lane: int) -> bool:
    """Try to bring up an enemy of a type; for a tanker some cargo must have room: one draw, whatever it rejects."""
    if kind == ram.FLIPPER:
        return launch(row, kind, ram.MAY_SHOOT, get(row, ram.FLIPPER_SCRIPT), lane)
    if kind == ram.PULSAR:
        return launch(row, kind, get(row, ram.PULSAR_FIRE), PULSAR_ENTRY, lane)
    if kind == ram.SPIKER:
        return launch(row, kind, ram.MAY_SHOOT, SPIKER_ENTRY, lane)
    if kind == ram.FUSEBALL:
        return launch(row, kind, 0, FUSEBALL_ENTRY, lane)
    y = random_byte(row) & 3
    for _ in range(4):
        y = (y - 1) & 3
        cargo = get(row, ram.TANKER_CARGO + y)
        if row[ram.TYPE_ROOM + CARGO_TYPE[cargo]] != 0:
            return launch(row, kind, ram.MAY_SHOOT | cargo, STRAIGHT_ENTRY, lane)
    return False


@kernel
def measure_room(row: Row) -> int:
    """Fill TYPE_ROOM and return how many types have room."""
    total = 7
    for kind in range(ram.TYPE_KINDS):
        total -= get(row, ram.TYPE_COUNT + kind)
        row[ram.TYPE_ROOM + kind] = max(0, get(row, ram.TYPE_MAX + kind) - get(row, ram.TYPE_COUNT + kind))
    total &= 0xFF
    for slot in range(ram.ENEMY_COUNT):
        cargo = get(row, ram.ENEMY_INFO + slot) & ram.CARGO_BITS
        if row[ram.ENEMY_DEPTH + slot] != 0 and cargo != 0:
            row[ram.TYPE_ROOM + CARGO_TYPE[cargo]] -= 2  # wraps below zero: the maximum then stops counting
    kinds = 0
    for kind in range(ram.TYPE_KINDS):
        if get(row, ram.TYPE_ROOM + kind) > total:
            row[ram.TYPE_ROOM + kind] = total
        if row[ram.TYPE_ROOM + kind] != 0:
            kinds += 1
    return kinds


@kernel
def convert_nymph(row: Row, lane: int) -> bool:
    """A nymph's time is up: choose a type with room and launch it, or fail."""
    kinds = measure_room(row)
    if kinds == 0:
        return False
    if kinds == 1:
        for kind in range(ram.TYPE_KINDS):
            if row[ram.TYPE_ROOM + kind] != 0:
                return row[ram.TYPE_MIN + kind] != 0 and try_type(row, kind, lane)
    for kind in range(ram.TYPE_KINDS - 1, -1, -1):
        wanted = row[ram.TYPE_ROOM + kind] != 0 and row[ram.TYPE_COUNT + kind] < row[ram.TYPE_MIN + kind]
        if wanted and try_type(row, kind, lane):
            return True
    if row[ram.TYPE_ROOM + ram.SPIKER] != 0 and row[ram.TYPE_ROOM + ram.TANKER] != 0:
        tip = get(row, ram.SPIKE + lane)
        if try_type(row, ram.SPIKER if tip == 0 or tip >= 0xCC else ram.TANKER, lane):
            return True
    kind = (random_byte(row) & 3) + 1
    for _ in range(ram.TYPE_KINDS):
        if row[ram.TYPE_MIN + kind] != 0 and row[ram.TYPE_ROOM + kind] != 0 and try_type(row, kind, lane):
            return True
        kind = kind - 1 if kind > 0 else 4
    return False


@kernel
def scatter_nymphs(row: Row) -> None:
    """Give the waiting enemies random lanes and staggered times, at a new level or life."""
    ram.clear(row, ram.NYMPH_TIMER, ram.NYMPH_COUNT)
    count = get(row, ram.NYMPHS_LEFT)
    if count == 0:  # the machine's loop still runs once, with index 255
        lane = random_byte(row) & 15
        row[ram.BLAST_TYPE] = lane
        row[ram.STRAY_NYMPH_TIMER] = 0xF0 | lane
        return
    for x in range(count - 1, -1, -1):  # above 63 it writes over timers that it then sets, and over empty enemy slots
        lane = random_byte(row) & 15
        timer = (x & 15) << 4 | lane
        row[ram.NYMPH_LANE + x] = lane
        row[ram.NYMPH_TIMER + x] = timer if timer != 0 else 15


@kernel
def lane_bit(lane: int) -> int:
    """Lane i and lane 15 - i share a bit of the busy mask."""
    return 1 << (lane ^ 7 if lane < 8 else lane & 7)


@kernel
def move_nymphs_singly(row: Row) -> None:
    """The same in the machine's order, when something may happen. `busy` holds the lanes of those near the end."""
    blocked = False
    turn = 1 - (row[ram.TICK] & 1)
    busy = 0
    for group in range(ram.NYMPH_COUNT - 8, -1, -8):
        if ram.get_word(row, ram.NYMPH_TIMER + group) == 0:
            continue
        for x in range(group + 7, group - 1, -1):
            timer = get(row, ram.NYMPH_TIMER + x)
            if timer == 0:
                continue
            lane = get(row, ram.NYMPH_LANE + x)
            if not blocked:
                timer -= 1
                if timer == 0:
                    blocked = not convert_nymph(row, lane)
                    if blocked:
                        timer = 1
                    else:
                        row[ram.NYMPHS_LEFT] -= 1
                elif timer == 0x3F and busy & lane_bit(lane) != 0:
                    timer = 0x40
                row[ram.NYMPH_TIMER + x] = timer
            if timer >= 0x40:
                row[ram.NYMPH_LANE + x] = (lane + turn) & 15
            elif timer >= 0x20:
                busy |= lane_bit(lane)


@kernel
def move_nymphs(row: Row) -> None:
    """Count the waiting enemies down, turn them around the far end, and convert those whose time is up."""
    if row[ram.NYMPHS_LEFT] == 0:
        return  # every timer is 0
    in_play = (get(row, ram.ENEMIES_IN_TUBE) + get(row, ram.ENEMIES_ON_RIM)) & 0xFF
    blocked = in_play > 6 or row[ram.ZAP_TIMER] != 0
    if not blocked:
        for group in range(0, ram.NYMPH_COUNT, 8):
            timers = ram.get_word(row, ram.NYMPH_TIMER + group)
            # Eight at a time, unless one of them gets to the end of its wait or of its turning.
            if ram.equal_bytes(timers, np.uint64(1)) | ram.equal_bytes(timers, np.uint64(0x40)) != 0:
                move_nymphs_singly(row)
                return
    count = np.uint64(0 if blocked else 1)
    turn = np.uint64(1 - (row[ram.TICK] & 1))
    for group in range(0, ram.NYMPH_COUNT, 8):
        timers = ram.get_word(row, ram.NYMPH_TIMER + group)
        if timers == 0:
            continue
        timers -= (ram.filled_bytes(timers) >> np.uint64(7)) * count
        ram.put_word(row, ram.NYMPH_TIMER + group, timers)
        turning = ((timers >> np.uint64(7)) | (timers >> np.uint64(6))) & ram.EVERY_BYTE  # $40 and above
        lanes = ram.get_word(row, ram.NYMPH_LANE + group) + turning * turn
        ram.put_word(row, ram.NYMPH_LANE + group, lanes & ~(turning * np.uint64(0xF0)))
