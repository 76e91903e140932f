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
GAME_STATE, NEXT_STATE, TICK, COUNTDOWN, GAME_MODE, CREDITS = 0x00, 0x02, 0x03, 0x04, 0x05, 0x06
SCORE_LOW, SCORE_MID, SCORE_HIGH = 0x40, 0x41, 0x42  # BCD
P1_LEVEL, LIVES = 0x46, 0x48
BUTTONS_RAW, BUTTONS, BUTTONS_NEW, BUTTONS_PREVIOUS, SPINNER = 0x4C, 0x4D, 0x4E, 0x4F, 0x50
PLAYER_POSITION: Final = 0x51  # 16 units per lane
CAMERA_HIGH, CAMERA_FRACTION, CAMERA_REST, CAMERA_LOW = 0x5B, 0x5C, 0x5D, 0x5F
LEVEL_INDEX: Final = 0x9F
ENEMY_SHOTS, SHOT_TOLERANCE = 0xA6, 0xA7
PULSAR_WAIT, RIM_FLIP_STEPS = 0xB2, 0xB3

# Page one: control and level parameters.
START_CHOICE: Final = 0x0102
DROP_SPEED_LOW, DROP_SPEED_HIGH, DROPPING, PLAYER_DEPTH_FRACTION = 0x0104, 0x0105, 0x0106, 0x0107
ENEMIES_IN_TUBE, ENEMIES_ON_RIM, BOOM_TIMER = 0x0108, 0x0109, 0x010E
OPEN, TUBE, EXPLOSIONS = 0x0111, 0x0112, 0x0116
SHOT_SPEED_HIGH, SHOT_HOLDOFF, SHOT_SLOT_MAX, ENEMY_SLOT_MAX, SHOT_SPEED_LOW = 0x0118, 0x0119, 0x011A, 0x011C, 0x0120
SPIKE_WARNING, BONUS_FLASH, ZAP_TIMER, BEST_LEVEL, MAX_CHOICE = 0x0123, 0x0124, 0x0125, 0x0126, 0x0127
TYPE_MIN, TYPE_MAX = 0x0129, 0x012E
PLAYER_SHOTS: Final = 0x0135
TYPE_ROOM, TYPE_COUNT = 0x013D, 0x0142
PULSE_STEP, PULSE_PHASE, TANKER_CARGO, TYPE_TOLERANCE = 0x0147, 0x0148, 0x0149, 0x0151
BONUS_INTERVAL, PULSE_DEPTH, INITIAL_LIVES, FUSE_FLAGS = 0x0156, 0x0157, 0x0158, 0x0159
START_SPIKE, START_NYMPHS, FLIPPER_SCRIPT, FUSE_THRESHOLD = 0x015A, 0x015B, 0x015D, 0x015F
SPEED_LOW, SPEED_HIGH = 0x0160, 0x0165
DIFFICULTY, DELAY_MASK, PULSAR_FIRE = 0x016A, 0x016B, 0x016D

# Pages two and three: objects.
PLAYER_LANE, PLAYER_EDGE, PLAYER_DEPTH = 0x0200, 0x0201, 0x0202
NYMPH_LANE, NYMPH_TIMER = 0x0203, 0x0243
ENEMY_TYPE, ENEMY_INFO, ENEMY_SCRIPT, ENEMY_COUNTER = 0x0283, 0x028A, 0x0291, 0x0298
ENEMY_FRACTION, ENEMY_SHOT_DELAY = 0x029F, 0x02A6
PSHOT_LANE, ESHOT_LANE, ENEMY_LANE = 0x02AD, 0x02B5, 0x02B9
PSHOT_EDGE, ESHOT_EDGE, ENEMY_EDGE = 0x02C0, 0x02C8, 0x02CC
PSHOT_DEPTH, ESHOT_DEPTH, ENEMY_DEPTH = 0x02D3, 0x02DB, 0x02DF
ESHOT_UNUSED: Final = 0x02E6  # the agent reads these as shot fractions; the game keeps those at ESHOT_FRACTION
ESHOT_FRACTION, PSHOT_HITS = 0x02EE, 0x02F2
BLAST_LANE, BLAST_TYPE, BLAST_DEPTH, BLAST_PHASE = 0x02FA, 0x0302, 0x030A, 0x0312
STRAY_NYMPH_TIMER: Final = 0x0342  # where a nymph of index 255 lands
STRAY_DIRECTION: Final = 0x0382  # a display byte the machine reads when the first rim rider cannot be found
ZAP_USES, NYMPHS_LEFT, SPIKE = 0x03AA, 0x03AB, 0x03AC
TUBE_X, TUBE_Y, TUBE_ANGLE = 0x03CE, 0x03DE, 0x03EE
ENTRY_RANK, ENTRY_LETTER, ENTRY_FRACTION, LETTERS_LEFT = 0x0600, 0x0602, 0x0603, 0x0604
ENTRY_TIMER: Final = 0x0605  # also ticks the level-select seconds
INITIALS, BEST_SCORES = 0x0606, 0x0706  # 8 x 3 letters; 8 x (low, mid, high); 8th place first
PARTICLES: Final = 0x0203  # overlay in state HIGH_SCORE_BOOM: 12 arrays, 32 bytes apart

ENEMY_COUNT, PSHOT_COUNT, ESHOT_COUNT, NYMPH_COUNT, BLAST_COUNT = 7, 8, 4, 64, 8
LANE_COUNT, TYPE_KINDS, BEST_SCORE_COUNT = 16, 5, 8
PARTICLE_COUNT, PARTICLE_STRIDE = 16, 32

# The margin: 64-bit little-endian words, then single bytes.
GAME_STREAM: Final = 0x800  # state of the game's random bytes
PLAYER_STREAM: Final = 0x808  # state of the random numbers of whoever plays
SCORE: Final = 0x810  # points since the game began, never wrapping, without the start bonus
START_BONUS: Final = 0x818
FRAMES: Final = 0x820  # ticks in which the player had control
DEATHS: Final = 0x828  # DEATH_KINDS words, by cause
PREVIOUS_TYPE, PREVIOUS_LANE, PREVIOUS_DEPTH = 0x850, 0x857, 0x85E  # 7 bytes each: the tick before the last one
PREVIOUS_PLAYER_LANE, PREVIOUS_PLAYER_EDGE = 0x865, 0x866
PREVIOUS_SCORE: Final = 0x867  # 3 bytes, BCD, as at SCORE_LOW
PREVIOUS_KNOWN: Final = 0x86A  # 0 until one tick has passed
TEACHER_COOLDOWN, FREE_PLAY, DEMO = 0x86B, 0x86C, 0x86D
ROW_BYTES: Final = 0x880

# What the player's stream is for: so many numbers a frame.
PLAYER_UNIFORMS: Final = 2
FOR_FIRE, FOR_PLAYER = 1, 2  # the teacher's, and the one handed to whoever plays

# GAME_STATE values.
NEW_GAME, NEW_LIFE, PLAYING, LIFE_LOST, GAME_OVER, DELAY = 0x00, 0x02, 0x04, 0x06, 0x08, 0x0A
LEVEL_DONE, HIGH_SCORE_CHECK, ENTER_INITIALS, HIGH_SCORE_TABLE = 0x0E, 0x10, 0x12, 0x14
LEVEL_SELECT, ZOOM_IN, LOGO, NEW_LIFE_PAUSE, ZOOM, HIGH_SCORE_BOOM = 0x16, 0x18, 0x1A, 0x1E, 0x20, 0x24

REAL_GAME, IN_PROGRESS = 0x80, 0x40  # bits of GAME_MODE
ZAP_BUTTON, FIRE_BUTTON, START_BUTTON = 0x08, 0x10, 0x20  # bits of BUTTONS_RAW, BUTTONS, BUTTONS_NEW
UNCONSUMED: Final = 0x80  # in BUTTONS_NEW: no handler has looked at the edges yet
RIM, FAR_END = 0x10, 0xF0  # depths

# Enemy types, and the bits around them.
FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)
TYPE_BITS: Final = 0x07
INCREASING, BETWEEN_LANES = 0x40, 0x80  # in ENEMY_TYPE; for fuseballs the first means decreasing
CARGO_BITS: Final = 0x03  # in ENEMY_INFO: 0 none, 1 flippers, 2 pulsars, 3 fuseballs
MAY_SHOOT, MOVING_AWAY = 0x40, 0x80  # in ENEMY_INFO
DYING, GRABBED, BLOWN_UP = 0x80, 0x80, 0x81  # the bit in PLAYER_EDGE, and that byte by how the player dies

# Causes of death, the index into DEATHS.
BY_SHOT, BY_GRAB, BY_PULSE, BY_FUSE, BY_SPIKE = range(5)
DEATH_NAMES: Final = ("shot", "grab", "pulse", "fuse", "spike")
DEATH_KINDS: Final = 5


@kernel
def get(row: Row, address: int) -> int:
    """A byte as a signed 64-bit number, so that arithmetic neither wraps nor turns into floats."""
    return np.int64(row[address])  # type: ignore[return-value]


@kernel
def get_word(row: Row, address: int) -> np.uint64:
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(row[address + i]) << np.uint64(8 * i)
    return word


@kernel
def put_word(row: Row, address: int, word: np.uint64) -> None:
    for i in range(8):
        row[address + i] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(0xFF))


@kernel
def add_to_word(row: Row, address: int, amount: int) -> None:
    put_word(row, address, get_word(row, address) + np.uint64(amount))


@kernel
def get_pair(row: Row, high: int, low: int) -> int:
    """A 16-bit number whose bytes lie apart."""
    return get(row, high) << 8 | get(row, low)


@kernel
def put_pair(row: Row, high: int, low: int, number: int) -> None:
    """Store a number modulo 65536, its bytes apart."""
    row[high], row[low] = number >> 8 & 0xFF, number & 0xFF


@kernel
def clear(row: Row, first: int, count: int) -> None:
    for i in range(first, first + count):
        row[i] = 0


@kernel
def random_byte(row: Row) -> int:
    """The next byte of the game's random stream, whichever noise register the machine would read."""
    state = get_word(row, GAME_STREAM) + STREAM_STEP
    put_word(row, GAME_STREAM, state)
    return np.int64(random_bits(state) >> np.uint64(56))  # type: ignore[return-value]


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
    for at in range(low + 2, low - 1, -1):
        byte = get(row, at)
        total = total * 100 + min(byte >> 4, 9) * 10 + min(byte & 15, 9)
    return total


@kernel
def in_control(row: Row) -> bool:
    """Whether the coming tick is a frame: a real game, in play or in the zoom, with the player alive."""
    state = row[GAME_STATE]
    return (state == PLAYING or state == ZOOM) and row[GAME_MODE] & REAL_GAME != 0 and row[PLAYER_EDGE] & DYING == 0
