"""The one map of Tempest's memory: names, addresses and encodings; nothing else spells an address.

A game is one row of ROW_BYTES bytes: the machine's 2 KiB of RAM, byte for byte, and behind it a margin the machine does
not have (random streams, unwrapped score, tallies, the previous tick). Copying a row therefore copies the whole game.
Arrays are named by their first byte; `_COUNT` constants give their lengths.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.kernels import kernel
from protege.seeds import STREAM_STEP, random_bits

Row = npt.NDArray[np.uint8]  # (ROW_BYTES,)
Rows = npt.NDArray[np.uint8]  # (games, ROW_BYTES)

RAM_BYTES: Final = 0x800
TICKS_PER_SECOND: Final = 12_096_000 / 4096 / 12 / 9  # 27.34: nine interrupts a tick

# Zero page.
GAME_STATE: Final = 0x00
NEXT_STATE: Final = 0x02
TICK: Final = 0x03
COUNTDOWN: Final = 0x04
GAME_MODE: Final = 0x05
CREDITS: Final = 0x06
SCORE_LOW: Final = 0x40
SCORE_MID: Final = 0x41
SCORE_HIGH: Final = 0x42
P1_LEVEL: Final = 0x46
LIVES: Final = 0x48
BUTTONS_RAW: Final = 0x4C
BUTTONS: Final = 0x4D
BUTTONS_NEW: Final = 0x4E
BUTTONS_PREVIOUS: Final = 0x4F
SPINNER: Final = 0x50
PLAYER_POSITION: Final = 0x51  # 16 units per lane
CAMERA_HIGH: Final = 0x5B
CAMERA_FRACTION: Final = 0x5C
CAMERA_REST: Final = 0x5D
CAMERA_LOW: Final = 0x5F
LEVEL_INDEX: Final = 0x9F
ENEMY_SHOTS: Final = 0xA6
SHOT_TOLERANCE: Final = 0xA7
PULSAR_WAIT: Final = 0xB2
RIM_FLIP_STEPS: Final = 0xB3

# Page one: control and level parameters.
START_CHOICE: Final = 0x0102
DROP_SPEED_LOW: Final = 0x0104
DROP_SPEED_HIGH: Final = 0x0105
DROPPING: Final = 0x0106
PLAYER_DEPTH_FRACTION: Final = 0x0107
ENEMIES_IN_TUBE: Final = 0x0108
ENEMIES_ON_RIM: Final = 0x0109
BOOM_TIMER: Final = 0x010E
OPEN: Final = 0x0111
TUBE: Final = 0x0112
EXPLOSIONS: Final = 0x0116
SHOT_SPEED_HIGH: Final = 0x0118
SHOT_HOLDOFF: Final = 0x0119
SHOT_SLOT_MAX: Final = 0x011A
ENEMY_SLOT_MAX: Final = 0x011C
SHOT_SPEED_LOW: Final = 0x0120
SPIKE_WARNING: Final = 0x0123
BONUS_FLASH: Final = 0x0124
ZAP_TIMER: Final = 0x0125
BEST_LEVEL: Final = 0x0126
MAX_CHOICE: Final = 0x0127
TYPE_MIN: Final = 0x0129
TYPE_MAX: Final = 0x012E
PLAYER_SHOTS: Final = 0x0135
TYPE_ROOM: Final = 0x013D
TYPE_COUNT: Final = 0x0142
PULSE_STEP: Final = 0x0147
PULSE_PHASE: Final = 0x0148
TANKER_CARGO: Final = 0x0149
TYPE_TOLERANCE: Final = 0x0151
BONUS_INTERVAL: Final = 0x0156
PULSE_DEPTH: Final = 0x0157
INITIAL_LIVES: Final = 0x0158
FUSE_FLAGS: Final = 0x0159
START_SPIKE: Final = 0x015A
START_NYMPHS: Final = 0x015B
FLIPPER_SCRIPT: Final = 0x015D
FUSE_THRESHOLD: Final = 0x015F
SPEED_LOW: Final = 0x0160
SPEED_HIGH: Final = 0x0165
DIFFICULTY: Final = 0x016A
DELAY_MASK: Final = 0x016B
PULSAR_FIRE: Final = 0x016D

# Pages two and three: objects.
PLAYER_LANE: Final = 0x0200
PLAYER_EDGE: Final = 0x0201
PLAYER_DEPTH: Final = 0x0202
NYMPH_LANE: Final = 0x0203
NYMPH_TIMER: Final = 0x0243
ENEMY_TYPE: Final = 0x0283
ENEMY_INFO: Final = 0x028A
ENEMY_SCRIPT: Final = 0x0291
ENEMY_COUNTER: Final = 0x0298
ENEMY_FRACTION: Final = 0x029F
ENEMY_SHOT_DELAY: Final = 0x02A6
PSHOT_LANE: Final = 0x02AD
ESHOT_LANE: Final = 0x02B5
ENEMY_LANE: Final = 0x02B9
PSHOT_EDGE: Final = 0x02C0
ESHOT_EDGE: Final = 0x02C8
ENEMY_EDGE: Final = 0x02CC
PSHOT_DEPTH: Final = 0x02D3
ESHOT_DEPTH: Final = 0x02DB
ENEMY_DEPTH: Final = 0x02DF
ESHOT_UNUSED: Final = 0x02E6  # the agent reads these as shot fractions; the game keeps those at ESHOT_FRACTION
ESHOT_FRACTION: Final = 0x02EE
PSHOT_HITS: Final = 0x02F2
BLAST_LANE: Final = 0x02FA
BLAST_TYPE: Final = 0x0302
BLAST_DEPTH: Final = 0x030A
BLAST_PHASE: Final = 0x0312
STRAY_NYMPH_TIMER: Final = 0x0342  # where a nymph of index 255 lands
ZAP_USES: Final = 0x03AA
NYMPHS_LEFT: Final = 0x03AB
SPIKE: Final = 0x03AC
TUBE_X: Final = 0x03CE
TUBE_Y: Final = 0x03DE
TUBE_ANGLE: Final = 0x03EE
ENTRY_RANK: Final = 0x0600
ENTRY_LETTER: Final = 0x0602
ENTRY_FRACTION: Final = 0x0603
LETTERS_LEFT: Final = 0x0604
ENTRY_TIMER: Final = 0x0605  # also ticks the level-select seconds
INITIALS: Final = 0x0606
BEST_SCORES: Final = 0x0706  # 8 x (low, mid, high), 8th place first
PARTICLES: Final = 0x0203  # overlay in state HIGH_SCORE_BOOM: 12 arrays, 32 bytes apart

ENEMY_COUNT: Final = 7
PSHOT_COUNT: Final = 8
ESHOT_COUNT: Final = 4
NYMPH_COUNT: Final = 64
BLAST_COUNT: Final = 8
LANE_COUNT: Final = 16
TYPE_KINDS: Final = 5
PARTICLE_COUNT: Final = 16
PARTICLE_STRIDE: Final = 32
BEST_SCORE_COUNT: Final = 8

# The margin: 64-bit little-endian words, then single bytes.
GAME_STREAM: Final = 0x800  # state of the game's random bytes
PLAYER_STREAM: Final = 0x808  # state of the random numbers of whoever plays
SCORE: Final = 0x810  # points since the game began, never wrapping, without the start bonus
START_BONUS: Final = 0x818
FRAMES: Final = 0x820  # ticks in which the player had control
DEATHS: Final = 0x828  # DEATH_KINDS words, by cause
PREVIOUS_TYPE: Final = 0x850  # 7 bytes each: the tick before the last one
PREVIOUS_LANE: Final = 0x857
PREVIOUS_DEPTH: Final = 0x85E
PREVIOUS_PLAYER_LANE: Final = 0x865
PREVIOUS_PLAYER_EDGE: Final = 0x866
PREVIOUS_SCORE: Final = 0x867  # 3 bytes, BCD, as at SCORE_LOW
PREVIOUS_KNOWN: Final = 0x86A  # 0 until one tick has passed
TEACHER_COOLDOWN: Final = 0x86B
FREE_PLAY: Final = 0x86C
DEMO: Final = 0x86D
ROW_BYTES: Final = 0x880

# What the player's stream is for: so many numbers a frame.
FOR_FIRE: Final = 1  # the teacher's
FOR_PLAYER: Final = 2  # handed to whoever plays
PLAYER_UNIFORMS: Final = 2

# GAME_STATE values.
NEW_GAME: Final = 0x00
NEW_LIFE: Final = 0x02
PLAYING: Final = 0x04
LIFE_LOST: Final = 0x06
GAME_OVER: Final = 0x08
DELAY: Final = 0x0A
LEVEL_DONE: Final = 0x0E
HIGH_SCORE_CHECK: Final = 0x10
ENTER_INITIALS: Final = 0x12
HIGH_SCORE_TABLE: Final = 0x14
LEVEL_SELECT: Final = 0x16
ZOOM_IN: Final = 0x18
LOGO: Final = 0x1A
NEW_LIFE_PAUSE: Final = 0x1E
ZOOM: Final = 0x20
HIGH_SCORE_BOOM: Final = 0x24

# GAME_MODE bits.
REAL_GAME: Final = 0x80
IN_PROGRESS: Final = 0x40

# Button bits at BUTTONS_RAW, BUTTONS, BUTTONS_NEW.
ZAP_BUTTON: Final = 0x08
FIRE_BUTTON: Final = 0x10
START_BUTTON: Final = 0x20
UNCONSUMED: Final = 0x80  # in BUTTONS_NEW: no handler has looked at the edges yet

# Depths.
RIM: Final = 0x10
FAR_END: Final = 0xF0

# Enemy types, and the bits around them.
FLIPPER: Final = 0
PULSAR: Final = 1
TANKER: Final = 2
SPIKER: Final = 3
FUSEBALL: Final = 4
TYPE_BITS: Final = 0x07
INCREASING: Final = 0x40  # in ENEMY_TYPE; for fuseballs it means decreasing
BETWEEN_LANES: Final = 0x80  # in ENEMY_TYPE
CARGO_BITS: Final = 0x03  # in ENEMY_INFO: 0 none, 1 flippers, 2 pulsars, 3 fuseballs
MAY_SHOOT: Final = 0x40
MOVING_AWAY: Final = 0x80

# PLAYER_EDGE of a dying player.
DYING: Final = 0x80
GRABBED: Final = 0x80
BLOWN_UP: Final = 0x81

# Causes of death, the index into DEATHS.
BY_SHOT: Final = 0
BY_GRAB: Final = 1
BY_PULSE: Final = 2
BY_FUSE: Final = 3
BY_SPIKE: Final = 4
DEATH_KINDS: Final = 5
DEATH_NAMES: Final = ("shot", "grab", "pulse", "fuse", "spike")


@kernel
def get(row: Row, address: int) -> int:
    """A byte as a signed 64-bit number, so that arithmetic neither wraps nor turns into floats."""
    return np.int64(row[address])  # type: ignore[return-value]


@kernel
def get_word(row: Row, address: int) -> np.uint64:
    """A 64-bit word of the margin."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(row[address + i]) << np.uint64(8 * i)
    return word


@kernel
def put_word(row: Row, address: int, word: np.uint64) -> None:
    """Store a 64-bit word in the margin."""
    for i in range(8):
        row[address + i] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(0xFF))


@kernel
def add_to_word(row: Row, address: int, amount: int) -> None:
    """Add to a 64-bit word of the margin."""
    put_word(row, address, get_word(row, address) + np.uint64(amount))


@kernel
def next_random(row: Row, stream: int) -> np.uint64:
    """The next 64 random bits of a stream, advancing it."""
    state = get_word(row, stream) + STREAM_STEP
    put_word(row, stream, state)
    return random_bits(state)


@kernel
def player_uniform(row: Row, number: int) -> float:
    """The player's random numbers of this frame, in [0, 1): the same as often as it is looked at."""
    place = np.uint64(PLAYER_UNIFORMS) * get_word(row, FRAMES) + np.uint64(number)
    state = get_word(row, PLAYER_STREAM) + place * STREAM_STEP
    return np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53


EVERY_BYTE: Final = np.uint64(0x0101010101010101)
TOP_BITS: Final = np.uint64(0x8080808080808080)


@kernel
def filled_bytes(word: np.uint64) -> np.uint64:
    """The top bit of each byte that is not zero."""
    return ((word & ~TOP_BITS) + ~TOP_BITS | word) & TOP_BITS


@kernel
def equal_bytes(word: np.uint64, byte: np.uint64) -> np.uint64:
    """The top bit of each byte that has this value."""
    return filled_bytes(word ^ byte * EVERY_BYTE) ^ TOP_BITS


@kernel
def bcd_score(row: Row, low: int) -> int:
    """The decimal number in three BCD bytes (low, mid, high); a digit above 9 counts as 9."""
    total = 0
    for i in range(2, -1, -1):
        byte = get(row, low + i)
        total = total * 100 + min(byte >> 4, 9) * 10 + min(byte & 15, 9)
    return total


@kernel
def in_control(row: Row) -> bool:
    """Whether the coming tick is a frame: a real game, in play or in the zoom, with the player alive."""
    state = row[GAME_STATE]
    return (state == PLAYING or state == ZOOM) and row[GAME_MODE] & REAL_GAME != 0 and row[PLAYER_EDGE] & DYING == 0
