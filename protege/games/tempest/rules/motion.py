"""How enemies move, on one game's row: up and down, over into the next lane, along the rim; and the player's death.

What the scripts in `enemies` are made of. `slot &= 7` at the top of a function tells the compiler that a slot is never
negative; without it every access to memory also tests for an index from the end, about 5 % of a tick.
"""

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.nymphs import CARGO_ENTRY, release_cargo
from protege.games.tempest.rules.ram import Row, get
from protege.kernels import kernel

CLIMBED, BECAME_RIDER, SPLIT_UP = range(3)  # what a climb ended in
BLAST_ENEMY, BLAST_PLAYER, BLAST_FUSEBALL, BLAST_GRAB = 0, 1, 2, 5  # explosions; those of fuseballs also 3, 4 by value


@kernel
def start_blast(row: Row, kind: int, lane: int, depth: int) -> None:
    """Begin an explosion in the highest free slot, or in the oldest one if all are busy."""
    slot = 0
    for s in range(1, ram.BLAST_COUNT):
        if row[ram.BLAST_PHASE + s] > row[ram.BLAST_PHASE + slot]:
            slot = s
    for s in range(ram.BLAST_COUNT):
        if row[ram.BLAST_DEPTH + s] == 0:
            slot = s
    if row[ram.BLAST_DEPTH + slot] == 0:
        row[ram.EXPLOSIONS] += 1
    row[ram.BLAST_LANE + slot] = lane
    row[ram.BLAST_TYPE + slot] = kind
    row[ram.BLAST_DEPTH + slot] = depth
    row[ram.BLAST_PHASE + slot] = 0


@kernel
def kill_player(row: Row, cause: int) -> None:
    """The player dies; a second cause in the same tick adds its explosion but is not tallied."""
    if row[ram.PLAYER_EDGE] & ram.DYING == 0:
        ram.add_to_word(row, ram.DEATHS + 8 * cause, 1)
    edge, kind = (ram.GRABBED, BLAST_GRAB) if cause == ram.BY_GRAB else (ram.BLOWN_UP, BLAST_PLAYER)
    row[ram.PLAYER_EDGE] = edge
    start_blast(row, kind, get(row, ram.PLAYER_LANE), get(row, ram.PLAYER_DEPTH))


@kernel
def advance(row: Row, slot: int, kind: int, sign: int = 1) -> int:
    """Move by the speed of a type (16-bit two's complement, as depth an 8.8 number); returns the new depth."""
    slot &= 7
    speed = ram.get_pair(row, ram.SPEED_HIGH + kind, ram.SPEED_LOW + kind)
    word = ram.get_pair(row, ram.ENEMY_DEPTH + slot, ram.ENEMY_FRACTION + slot) + sign * speed
    ram.put_pair(row, ram.ENEMY_DEPTH + slot, ram.ENEMY_FRACTION + slot, word)
    return word >> 8 & 0xFF


@kernel
def toward_player(row: Row, slot: int) -> int:
    """The direction bit that leads to the player's lane; exactly opposite counts as decreasing."""
    d = get(row, ram.PLAYER_LANE) - get(row, ram.ENEMY_LANE + slot)
    if row[ram.OPEN] == 0:
        return 0 if d & 15 >= 8 else ram.INCREASING
    return ram.INCREASING if d >= 0 else 0


@kernel
def set_direction(row: Row, slot: int, bit: int) -> None:
    row[ram.ENEMY_TYPE + slot] = get(row, ram.ENEMY_TYPE + slot) & ~ram.INCREASING | bit


@kernel
def reach_rim(row: Row, slot: int) -> int:
    """An enemy came to the player's depth: it bounces, waits for its flip to end, or becomes a rim rider."""
    slot &= 7
    player_depth = get(row, ram.PLAYER_DEPTH)
    row[ram.ENEMY_DEPTH + slot] = player_depth
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    if type_byte & ram.TYPE_BITS == ram.PULSAR and row[ram.NYMPHS_LEFT] != 0:
        row[ram.ENEMY_INFO + slot] ^= ram.MOVING_AWAY
        return CLIMBED
    if type_byte & ram.BETWEEN_LANES != 0:
        row[ram.ENEMY_DEPTH + slot] = player_depth + 1
        return CLIMBED
    row[ram.ENEMIES_IN_TUBE] -= 1
    if row[ram.ENEMIES_ON_RIM] == 1:
        other = get(row, ram.STRAY_DIRECTION)
        for s in range(ram.ENEMY_COUNT - 1, -1, -1):
            if s != slot and get(row, ram.ENEMY_DEPTH + s) == player_depth:
                other = get(row, ram.ENEMY_TYPE + s)
                break
        # The second rider loses its type bits: a pulsar becomes a flipper, and the counts do not follow.
        row[ram.ENEMY_TYPE + slot] = (other & ram.INCREASING) ^ ram.INCREASING
    else:
        set_direction(row, slot, toward_player(row, slot))
    row[ram.ENEMIES_ON_RIM] += 1
    return BECAME_RIDER


@kernel
def climb(row: Row, slot: int, kind: int) -> int:
    """Move towards the rim at the speed of a type; says what came of it."""
    slot &= 7
    depth = advance(row, slot, kind)
    if depth <= get(row, ram.PLAYER_DEPTH):
        return reach_rim(row, slot)
    cargo = get(row, ram.ENEMY_INFO + slot) & ram.CARGO_BITS
    if depth < 0x20 and cargo != 0:
        row[ram.ENEMIES_IN_TUBE] -= 1
        row[ram.TYPE_COUNT + (row[ram.ENEMY_TYPE + slot] & ram.TYPE_BITS)] -= 1
        row[ram.ENEMY_DEPTH + slot] = 0
        release_cargo(row, get(row, ram.ENEMY_LANE + slot), depth, cargo)
        row[ram.ENEMY_SCRIPT + slot] = CARGO_ENTRY[cargo]
        return SPLIT_UP
    return CLIMBED


@kernel
def descend(row: Row, slot: int, kind: int) -> int:
    """Move away from the rim; returns the new depth."""
    slot &= 7
    if advance(row, slot, kind, -1) >= ram.FAR_END:
        row[ram.ENEMY_DEPTH + slot] = 0xF2
    return get(row, ram.ENEMY_DEPTH + slot)


@kernel
def start_flip(row: Row, slot: int) -> None:
    """Begin to turn over into the next lane; while flipping the lane byte is the pivot line."""
    slot &= 7
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    lane = get(row, ram.ENEMY_LANE + slot)
    if row[ram.OPEN] != 0:
        if type_byte & ram.INCREASING != 0:
            if lane >= 14:
                type_byte &= ~ram.INCREASING
        elif lane == 0:
            type_byte |= ram.INCREASING
    row[ram.ENEMY_TYPE + slot] = type_byte | ram.BETWEEN_LANES
    if type_byte & ram.INCREASING != 0:
        angle = get(row, ram.TUBE_ANGLE + lane) + 8
        row[ram.ENEMY_LANE + slot] = (lane + 1) & 15
    else:
        angle = get(row, ram.TUBE_ANGLE + lane)
    row[ram.ENEMY_EDGE + slot] = 0x80 + (angle & 15)


@kernel
def flip_step(row: Row, slot: int) -> bool:
    """One step of the turn; True when the enemy lies in its new lane."""
    slot &= 7
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    lane = get(row, ram.ENEMY_LANE + slot)
    angle = get(row, ram.ENEMY_EDGE + slot)
    if type_byte & ram.INCREASING != 0:
        angle = (angle - 1) & 15
        last = get(row, ram.TUBE_ANGLE + lane)
    else:
        lane = (lane - 1) & 15
        angle = (angle + 1) & 15
        last = (get(row, ram.TUBE_ANGLE + lane) + 8) & 15
    if angle != last:
        row[ram.ENEMY_EDGE + slot] = 0x80 + angle
        return False
    row[ram.ENEMY_TYPE + slot] = type_byte & ~ram.BETWEEN_LANES
    row[ram.ENEMY_LANE + slot] = lane
    row[ram.ENEMY_EDGE + slot] = (lane + 1) & 15
    return True


@kernel
def meets_player(row: Row, slot: int) -> bool:
    """The enemy lies flat in the player's lane."""
    return row[ram.ENEMY_LANE + slot] == row[ram.PLAYER_LANE] and row[ram.ENEMY_EDGE + slot] == row[ram.PLAYER_EDGE]


@kernel
def grab(row: Row, slot: int) -> None:
    """A rider takes the player who sits in its lane."""
    if row[ram.ENEMY_TYPE + slot] & ram.BETWEEN_LANES == 0 and meets_player(row, slot):
        kill_player(row, ram.BY_GRAB)


@kernel
def sit_on_rim(row: Row, slot: int) -> None:
    """A rider has arrived in a lane: it stays four ticks, grabbing whoever is there."""
    row[ram.ENEMY_COUNTER + slot] = 4
    grab(row, slot)
    row[ram.ENEMY_SCRIPT + slot] = 0x46


@kernel
def goes_on(row: Row, slot: int) -> bool:
    """Climb (or descend) at the enemy's own speed; False when that ended its script for this tick."""
    slot &= 7
    kind = get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS
    if row[ram.ENEMY_INFO + slot] & ram.MOVING_AWAY != 0:
        descend(row, slot, kind)
        return True
    outcome = climb(row, slot, kind)
    if outcome == BECAME_RIDER:
        sit_on_rim(row, slot)
    return outcome == CLIMBED


@kernel
def count_down(row: Row, slot: int) -> bool:
    """Decrement the script counter; True while it is not zero."""
    row[ram.ENEMY_COUNTER + slot] -= 1
    return row[ram.ENEMY_COUNTER + slot] != 0


@kernel
def begin(row: Row, slot: int, counter: int) -> None:
    row[ram.ENEMY_COUNTER + slot] = counter
    start_flip(row, slot)
