"""A second, slow implementation of the rules of Tempest, written from the specification alone.

It exists to check the simulator against: both are fed the same random bytes and the same controls, and the bytes
named in COMPARED must agree after every tick. Nothing here tries to be fast. Numbers in comments such as "4.6" are
sections of the game specification; "conv." marks a convention used where the specification is silent.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

# --- Addresses: zero page (1.1) ---------------------------------------------------------------------------------------

GAMESTATE = 0x00
NEXT_STATE = 0x02
TICK_COUNTER = 0x03
COUNTDOWN = 0x04
GAME_MODE = 0x05
CREDITS = 0x06
SCORE = 0x40  # three BCD bytes: low, middle, high
P1_LEVEL = 0x46
P1_LIVES = 0x48
BUTTONS_RAW = 0x4C
BUTTONS = 0x4D
BUTTONS_NEW = 0x4E
BUTTONS_PREV = 0x4F
SPINNER = 0x50
PLAYER_POS = 0x51
EYE_HI = 0x5B
EYE_FRAC = 0x5C
EYE_DEST_LO = 0x5D
EYE_LO = 0x5F
LEVEL_INDEX = 0x9F
ESHOT_COUNT = 0xA6
SHOT_SHOT_TOL = 0xA7
PULSAR_WAIT = 0xB2
RIM_FLIP_STEPS = 0xB3

# --- Addresses: page one (1.2) ----------------------------------------------------------------------------------------

START_CHOICE = 0x0102
DROP_SPEED_LO = 0x0104
DROP_SPEED_HI = 0x0105
DROP_FLAG = 0x0106
PLAYER_DEPTH_FRAC = 0x0107
IN_TUBE = 0x0108
ON_RIM = 0x0109
BOOM_TIMER = 0x010E
OPEN_FLAG = 0x0111
TUBE_INDEX = 0x0112
EXPLOSION_COUNT = 0x0116
ESHOT_SPEED_HI = 0x0118
SHOT_HOLDOFF = 0x0119
SHOT_SLOT_MAX = 0x011A
ENEMY_SLOT_MAX = 0x011C
ESHOT_SPEED_LO = 0x0120
SPIKE_WARNING = 0x0123
BONUS_FLASH = 0x0124
ZAP_TIMER = 0x0125
BEST_LEVEL = 0x0126
MAX_CHOICE = 0x0127
TYPE_MIN = 0x0129
TYPE_MAX = 0x012E
PSHOT_COUNT = 0x0135
TYPE_ROOM = 0x013D
TYPE_COUNT = 0x0142
PULSE_STEP = 0x0147
PULSE_PHASE = 0x0148
TANKER_CARGO = 0x0149
LANE_BUSY = 0x014F
LANE_BUSY_BEFORE = 0x0150
TYPE_TOL = 0x0151
BONUS_INTERVAL = 0x0156
PULSE_DEPTH = 0x0157
INITIAL_LIVES = 0x0158
FUSE_FLAGS = 0x0159
START_SPIKE = 0x015A
START_NYMPHS = 0x015B
FLIPPER_SCRIPT = 0x015D
FUSE_THRESHOLD = 0x015F
SPEED_LO = 0x0160
SPEED_HI = 0x0165
DIFFICULTY = 0x016A
DELAY_MASK = 0x016B
PULSAR_FIRE = 0x016D

# --- Addresses: objects (1.3) -----------------------------------------------------------------------------------------

PLAYER_LANE = 0x0200
PLAYER_EDGE = 0x0201
PLAYER_DEPTH = 0x0202
NYMPH_LANE = 0x0203
NYMPH_TIMER = 0x0243
ENEMY_TYPE = 0x0283
ENEMY_INFO = 0x028A
ENEMY_SCRIPT = 0x0291
ENEMY_COUNTER = 0x0298
ENEMY_FRAC = 0x029F
ENEMY_SHOT_DELAY = 0x02A6
PSHOT_LANE = 0x02AD
ESHOT_LANE = 0x02B5
ENEMY_LANE = 0x02B9
PSHOT_EDGE = 0x02C0
ESHOT_EDGE = 0x02C8
ENEMY_EDGE = 0x02CC
PSHOT_DEPTH = 0x02D3
ESHOT_DEPTH = 0x02DB
ENEMY_DEPTH = 0x02DF
ESHOT_FRAC = 0x02EE
PSHOT_HITS = 0x02F2
EXPL_LANE = 0x02FA
EXPL_TYPE = 0x0302
EXPL_DEPTH = 0x030A
EXPL_PHASE = 0x0312
STRAY_DIRECTION = 0x0382  # 4.4: supplies a direction when the other rim rider cannot be found
ZAP_USES = 0x03AA
NYMPHS_LEFT = 0x03AB
SPIKE = 0x03AC
TUBE_X = 0x03CE
TUBE_Y = 0x03DE
TUBE_ANGLE = 0x03EE
HIGH_SCORE_RANK = 0x0600
LETTERS_LEFT = 0x0604
SUB_TIMER = 0x0605
HIGH_SCORES = 0x0706  # eight entries of three bytes, 8th place first
PARTICLES = 0x0203  # overlay of state $24: twelve arrays of 16 bytes, 32 apart

# --- Sizes and bit meanings -------------------------------------------------------------------------------------------

ENEMIES = 7
PSHOTS = 8
ESHOTS = 4
NYMPHS = 64
EXPLOSIONS = 8
LANES = 16

FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)
TYPE_BITS = 0x07
INCREASING = 0x40  # enemy_type bit 6 (inverted for fuseballs)
FLIPPING = 0x80  # enemy_type bit 7
CARGO_BITS = 0x03  # enemy_info bits 0-1
MAY_SHOOT = 0x40  # enemy_info bit 6
MOVING_AWAY = 0x80  # enemy_info bit 7
CARGO_TYPE = {1: FLIPPER, 2: PULSAR, 3: FUSEBALL}

BUTTON_ZAP = 0x08
BUTTON_FIRE = 0x10
BUTTON_START = 0x20
UNCONSUMED = 0x80  # buttons_new bit 7

REAL_GAME = 0x80  # game_mode bit 7
IN_PROGRESS = 0x40  # game_mode bit 6

NEAR_RIM = 0x10
FAR_END = 0xF0
GRABBED = 0x80
BLOWN_UP = 0x81

# Explosion types (1.3, 4.11).
EXPLODE_ENEMY = 0
EXPLODE_PLAYER = 1
EXPLODE_GRABBED = 5
EXPLOSION_LIMIT = (16, 21, 32, 32, 32, 16)
EXPLOSION_STEP = (3, 1, 3, 3, 3, 3)

# Points as BCD (low, middle, high) by type; a fuseball that is shot has its own rule (8.1).
POINTS = ((0x50, 0x01, 0), (0x00, 0x02, 0), (0x00, 0x01, 0), (0x50, 0x00, 0), (0x50, 0x01, 0))
FUSEBALL_POINTS = {2: (0x50, 0x02, 0), 3: (0x00, 0x05, 0), 4: (0x50, 0x07, 0)}  # by explosion type

ENEMY_FIRE_THRESHOLD = (0x00, 0xE0, 0xF0, 0xFA, 0xFF)  # 4.10, by shots in flight

# Section 11: level and start bonus of each level-select index.
SELECT_LEVEL = (
    1, 3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 31, 33, 36, 40, 44, 47, 49, 52, 56, 60, 63, 65, 73, 81,
)  # fmt: skip
SELECT_BONUS = (
    0, 6000, 16000, 32000, 54000, 74000, 94000, 114000, 134000, 152000, 170000, 188000, 208000, 226000,
    248000, 266000, 300000, 340000, 382000, 415000, 439000, 472000, 531000, 581000, 624000, 656000, 766000, 898000,
)  # fmt: skip


# --- Tubes (section 6) ------------------------------------------------------------------------------------------------


class Tube:
    """One tube shape: vertex coordinates, lane angles, whether it is open and its eye distance (6.2, 6.3)."""

    def __init__(self, eye_distance: int, is_open: bool, x: str, y: str, angle: str) -> None:
        self.eye_distance = eye_distance
        self.is_open = is_open
        self.x = [int(word, 16) for word in x.split()]
        self.y = [int(word, 16) for word in y.split()]
        self.angle = [int(word, 16) for word in angle.split()]


TUBE_OF_POSITION = (0, 1, 2, 3, 4, 5, 6, 7, 13, 9, 8, 12, 14, 15, 10, 11)  # 6.1

TUBES: dict[int, Tube] = {
    0: Tube(
        0x18, False,
        "F0 E7 CF AA 80 56 31 19 10 19 31 56 80 AA CF E7",
        "80 AA CF E7 F0 E7 CF AA 80 56 31 19 10 19 31 56",
        "5 6 7 8 9 A B C D E F 0 1 2 3 4",
    ),
    1: Tube(
        0x1C, False,
        "F0 F0 F0 B8 80 48 10 10 10 10 10 48 80 B8 F0 F0",
        "80 B8 F0 F0 F0 F0 F0 B8 80 48 10 10 10 10 10 48",
        "4 4 8 8 8 8 C C C C 0 0 0 0 4 4",
    ),
    2: Tube(
        0x18, False,
        "F0 F0 B8 B8 80 48 48 10 10 10 48 48 80 B8 B8 F0",
        "80 B8 B8 F0 F0 F0 B8 B8 80 48 48 10 10 10 48 48",
        "4 8 4 8 8 C 8 C C 0 C 0 0 4 0 4",
    ),
    3: Tube(
        0x0F, False,
        "EC D5 B1 90 70 4F 2B 14 14 2B 4F 70 90 B1 D5 EC",
        "94 B0 B8 A7 A7 B8 B0 94 6C 50 48 59 59 48 50 6C",
        "6 7 9 8 7 9 A C E F 1 0 F 1 2 4",
    ),
    4: Tube(
        0x18, False,
        "F0 C0 A0 94 6C 60 40 10 10 40 60 6C 94 A0 C0 F0",
        "96 A3 C5 F0 F0 C5 A3 96 6A 5D 3B 10 10 3B 5D 6A",
        "7 6 5 8 B A 9 C F E D 0 3 2 1 4",
    ),
    5: Tube(
        0x18, False,
        "D9 C2 AC 97 80 69 52 3C 27 10 35 5A 80 A6 CA F0",
        "3D 6A 97 C4 F0 C4 97 6A 3D 10 10 10 10 10 10 10",
        "5 5 5 5 B B B B B 0 0 0 0 0 0 5",
    ),
    6: Tube(
        0x18, False,
        "EA E0 9C 80 64 20 16 50 16 20 64 80 9C E0 EA B0",
        "A0 E0 EA B0 EA E0 A0 80 60 20 16 50 16 20 60 80",
        "4 8 B 5 8 C E 9 C 0 3 D 0 4 7 2",
    ),
    7: Tube(
        0x18, True,
        "10 1E 2C 3A 48 56 64 70 90 9E AC BA C8 D6 E4 F0",
        "F0 D0 B0 90 70 50 30 10 10 30 50 70 90 B0 D0 F0",
        "D D D D D D D 0 3 3 3 3 3 3 3 0",
    ),
    8: Tube(
        0x0A, True,
        "10 1E 2D 3C 4B 5A 69 78 87 96 A5 B4 C3 D2 E1 F0",
        "40 40 40 40 40 40 40 40 40 40 40 40 40 40 40 40",
        "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
    ),
    9: Tube(
        0x18, True,
        "10 10 10 10 16 29 46 69 97 BA D7 EA F0 F0 F0 F0",
        "F0 CB A6 80 5C 39 20 12 12 20 39 5C 80 A6 CB F0",
        "C C C D E F F 0 1 1 2 3 4 4 4 0",
    ),
    10: Tube(
        0x10, True,
        "10 24 30 36 3E 49 5A 75 94 A4 AC BA DA E2 EA F0",
        "C0 A6 8A 6A 4A 2F 14 24 20 39 59 75 72 90 B0 D0",
        "E D C D D D 1 F 2 3 3 0 3 3 3 0",
    ),
    11: Tube(
        0x0F, False,
        "80 70 48 20 10 20 48 70 80 90 B8 E0 F0 E0 B8 90",
        "80 57 48 57 80 A9 BA A9 80 57 48 57 80 A9 BA A9",
        "B 9 7 5 3 1 F D D F 1 3 5 7 9 B",
    ),
    12: Tube(
        0x18, False,
        "DA A4 87 80 79 5C 26 10 10 20 48 80 B8 E0 F0 F0",
        "E4 E8 B7 80 B7 E8 E4 B2 7A 47 20 10 20 47 7A B2",
        "8 B C 4 5 8 B C D E F 1 2 3 4 5",
    ),
    13: Tube(
        0x0C, True,
        "10 10 30 30 50 50 70 70 90 90 B0 B0 D0 D0 F0 F0",
        "90 70 70 50 50 30 30 10 10 30 30 50 50 70 70 90",
        "C 0 C 0 C 0 C 0 4 0 4 0 4 0 4 0",
    ),
    14: Tube(
        0x14, False,
        "B0 80 50 47 18 30 18 47 50 80 B0 B9 E8 D4 E8 B9",
        "E6 D0 E6 B9 AE 80 52 47 14 30 14 47 52 80 AE B9",
        "A 6 C 8 E A 0 C 2 E 4 0 6 2 8 4",
    ),
    15: Tube(
        0x0A, True,
        "10 1E 21 28 3C 55 66 73 8D 9A AB C4 D8 DF E2 F0",
        "7E 6A 51 3A 2C 2C 38 4E 4E 38 2C 2C 3A 51 6A 7E",
        "E C D E 0 2 2 0 E E 0 2 3 4 2 0",
    ),
}  # fmt: skip


# --- Level parameters (section 5.2) -----------------------------------------------------------------------------------

Rule = Callable[[int, int], int]  # (level, first level of the range) -> value
Ranges = tuple[tuple[int, int, Rule], ...]


def const(value: int) -> Rule:
    return lambda level, first: value


def listed(*values: int) -> Rule:
    return lambda level, first: values[level - first]


def by_position(*values: int) -> Rule:
    return lambda level, first: values[(level - 1) % 16]


def ramp(start: int, step: int) -> Rule:
    return lambda level, first: (start + (level - first) * step) & 0xFF


def alternate(even: int, odd: int) -> Rule:
    return lambda level, first: even if (level - first) % 2 == 0 else odd


def value_at(ranges: Ranges, level: int) -> int:
    """The first range containing the level decides; without one the value is 0 (5.2)."""
    for first, last, rule in ranges:
        if first <= level <= last:
            return rule(level, first)
    return 0


FLIPPER_SPEED_RANGES: Ranges = (
    (1, 8, ramp(212, -5)),
    (9, 16, listed(175, 172, 172, 172, 168, 164, 160, 160)),
    (17, 25, ramp(175, -3)),
    (26, 32, ramp(157, -3)),
    (33, 39, ramp(148, -3)),
    (40, 48, ramp(146, -1)),
    (49, 64, ramp(136, -1)),
    (65, 99, alternate(96, 65)),
)
ESHOT_SPEED_OFFSET: Ranges = ((1, 99, const(-64)),)
SPIKER_SPEED_OFFSET: Ranges = ((1, 20, const(0)), (21, 32, const(-48)), (33, 48, const(-40)), (49, 99, const(-48)))
SHOT_HOLDOFF_RANGES: Ranges = ((1, 20, ramp(80, -3)), (21, 64, const(20)), (65, 99, const(10)))
SHOT_SLOT_MAX_RANGES: Ranges = ((1, 9, listed(1, 1, 1, 2, 3, 2, 2, 3, 3)), (10, 64, const(2)), (65, 99, const(3)))
START_NYMPHS_RANGES: Ranges = (
    (1, 16, listed(10, 12, 15, 17, 20, 22, 20, 24, 27, 29, 27, 24, 26, 28, 30, 27)),
    (17, 26, ramp(20, 1)),
    (27, 39, const(27)),
    (40, 48, ramp(29, 1)),
    (49, 64, ramp(31, 1)),
    (65, 80, ramp(35, 1)),
    (81, 99, ramp(43, 1)),
)
START_SPIKE_RANGES: Ranges = (
    (
        1,
        99,
        by_position(0, 0, 0, 0xE0, 0xD8, 0xD4, 0xD0, 0xC8, 0xC0, 0xB8, 0xB0, 0xA8, 0xA0, 0xA0, 0xA0, 0xA8),
    ),
)
FLIPPER_SCRIPT_RANGES: Ranges = (
    (
        1,
        99,
        by_position(
            0x07, 0x0B, 0x19, 0x24, 0x53, 0x0B, 0x24, 0x19, 0x53, 0x87, 0x24, 0x19, 0x53, 0x07, 0x87, 0x24
        ),
    ),
)  # fmt: skip
TYPE_MIN_RANGES: tuple[Ranges, ...] = (
    ((1, 4, const(1)),),
    ((17, 32, const(2)), (33, 99, const(1))),
    ((1, 4, listed(0, 0, 1, 0)), (5, 99, const(1))),
    ((1, 4, listed(0, 0, 0, 1)), (5, 16, const(2)), (20, 32, const(1)), (35, 39, const(1)), (44, 99, const(1))),
    ((11, 16, const(1)), (22, 25, const(1)), (27, 99, const(1))),
)
TYPE_MAX_RANGES: tuple[Ranges, ...] = (
    ((1, 4, const(4)), (5, 16, const(5)), (17, 19, const(3)), (20, 25, const(4)), (26, 99, const(5))),
    ((17, 32, listed(5, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 2)), (33, 99, const(3))),
    ((1, 5, listed(0, 0, 1, 0, 1)), (6, 16, const(2)), (17, 32, const(1)), (33, 44, const(2)), (45, 99, const(3))),
    (
        (1, 6, listed(0, 0, 0, 2, 3, 4)),
        (7, 10, const(4)),
        (11, 16, const(3)),
        (20, 25, const(2)),
        (26, 32, listed(1, 2, 2, 2, 1, 1, 2)),
        (43, 99, const(1)),
    ),
    (
        (11, 16, const(1)),
        (22, 25, const(1)),
        (27, 32, const(1)),
        (33, 39, const(4)),
        (40, 99, const(3)),
    ),
)
CARGO_RANGES: tuple[Ranges, ...] = (
    ((1, 99, const(1)),),
    ((1, 99, const(1)),),
    ((1, 32, const(1)), (33, 40, const(3)), (41, 99, const(2))),
    ((1, 48, const(1)), (49, 99, const(3))),
)
PULSE_DEPTH_RANGES: Ranges = ((1, 64, const(0xA0)), (65, 99, const(0xC0)))
PULSE_BEAT_RANGES: Ranges = ((1, 48, const(4)), (49, 64, const(6)), (65, 99, const(8)))
PULSAR_WAIT_RANGES: Ranges = (
    (17, 18, listed(40, 20)),
    (19, 32, alternate(20, 40)),
    (33, 39, ramp(20, -1)),
    (40, 99, alternate(20, 10)),
)
PULSAR_FIRE_RANGES: Ranges = ((60, 99, const(0x40)),)
FUSE_FLAGS_RANGES: Ranges = ((17, 32, alternate(0x00, 0x40)), (33, 48, alternate(0x40, 0xC0)), (49, 99, const(0xC0)))
FUSE_THRESHOLD_RANGES: Ranges = (
    (1, 16, const(220)),
    (17, 39, const(192)),
    (40, 64, ramp(192, 1)),
    (65, 99, const(230)),
)
RIM_FLIP_STEPS_RANGES: Ranges = ((1, 32, const(2)), (33, 99, const(3)))
PULSAR_SPEED_WORD = 0xFEA0
FUSEBALL_TOLERANCE = 6


# --- Small arithmetic -------------------------------------------------------------------------------------------------


def signed8(byte: int) -> int:
    return byte - 256 if byte >= 128 else byte


def signed16(word: int) -> int:
    return word - 65536 if word >= 32768 else word


def speed_word(value: int) -> int:
    """The 16-bit speed of a speed value (5.2)."""
    return ((0xFF00 + value) * 8) & 0xFFFF


def tolerance(word: int) -> int:
    """The hit tolerance that goes with a speed word (5.2)."""
    return (13 + (255 - (word >> 8))) >> 1


def bit2(value: int) -> int:
    return (value >> 2) & 1


def bcd_to_int(byte: int) -> int:
    return (byte >> 4) * 10 + (byte & 15)


def int_to_bcd(value: int) -> int:
    return (value // 10) * 16 + value % 10


def bcd_add(a: int, b: int, carry: int) -> tuple[int, int]:
    """Two-digit decimal addition: the sum's byte and its carry."""
    total = bcd_to_int(a) + bcd_to_int(b) + carry
    return int_to_bcd(total % 100), total // 100


def bcd_bytes(amount: int) -> tuple[int, int, int]:
    return int_to_bcd(amount % 100), int_to_bcd(amount // 100 % 100), int_to_bcd(amount // 10000 % 100)


def lane_bit(lane: int) -> int:
    """Lanes 0..7 use bits 7..0, lanes 8..15 use bits 0..7 (4.1)."""
    return 1 << (7 - lane) if lane < 8 else 1 << (lane - 8)


def random_bytes(seed: int) -> Callable[[], int]:
    """The random stream of a game with this 64-bit seed (conv.)."""
    mask = (1 << 64) - 1
    state = seed & mask

    def next_byte() -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return z >> 56

    return next_byte


def address_list(*ranges: tuple[int, int]) -> tuple[int, ...]:
    return tuple(address for first, last in ranges for address in range(first, last + 1))


# The bytes compared between two simulators after every tick (conv.).
COMPARED: tuple[int, ...] = address_list(
    (0x00, 0x00), (0x02, 0x06), (0x40, 0x42), (0x46, 0x46), (0x48, 0x48), (0x4C, 0x51), (0x5B, 0x5D), (0x5F, 0x5F),
    (0x9F, 0x9F), (0xA6, 0xA7), (0xB2, 0xB3), (0x0102, 0x0102), (0x0104, 0x0109), (0x010E, 0x010E), (0x0111, 0x0112),
    (0x0116, 0x0116), (0x0118, 0x011A), (0x011C, 0x011C), (0x0120, 0x0120), (0x0123, 0x0123), (0x0125, 0x0127),
    (0x0129, 0x0132), (0x0135, 0x0135), (0x013D, 0x014C), (0x0151, 0x015B), (0x015D, 0x015D), (0x015F, 0x016B),
    (0x016D, 0x016D), (0x0200, 0x02F9), (0x0302, 0x0319), (0x03AA, 0x03BB), (0x03CE, 0x03FD), (0x0604, 0x0605),
    (0x0706, 0x071D),
)  # fmt: skip


class Climb(enum.Enum):
    """What a climb led to (4.3)."""

    MOVED = enum.auto()
    RIDER = enum.auto()  # the enemy has become a rim rider
    SPLIT = enum.auto()  # the tanker has split


class ReferenceGame:
    """The whole one-player game on a 2 KiB memory image."""

    def __init__(
        self,
        next_byte: Callable[[], int],
        *,
        lives: int = 3,
        bonus: int = 2,
        difficulty: int = 0,
        rating: bool = False,
        free_play: bool = False,
        demo: bool = False,
    ) -> None:
        self.next_byte = next_byte
        self.lives = lives
        self.bonus = bonus
        self.difficulty = difficulty
        self.rating = rating
        self.free_play = free_play
        self.demo = demo
        self.ram = bytearray(2048)
        self.scripts: dict[int, Callable[[int], None]] = {
            0x00: self.script_spiker,
            0x05: self.script_spiker,
            0x07: self.script_straight,
            0x09: self.script_straight,
            0x0B: self.script_march_begin,
            0x0F: self.script_march_climb,
            0x13: self.script_march_flip,
            0x19: self.script_spiral_begin,
            0x1B: self.script_spiral_start_flip,
            0x1D: self.script_spiral_flip,
            0x24: self.script_zigzag_begin,
            0x26: self.script_zigzag_first_flip,
            0x2A: self.script_zigzag_flip_out,
            0x30: self.script_zigzag_count_out,
            0x37: self.script_zigzag_flip_back,
            0x3D: self.script_zigzag_count_back,
            0x46: self.script_rim_wait,
            0x4A: self.script_rim_flip,
            0x53: self.script_rider_begin,
            0x54: self.script_rider_climb,
            0x5A: self.script_rider_first_flip,
            0x5F: self.script_rider_flip,
            0x61: self.script_fuseball_move,
            0x64: self.script_fuseball_move,
            0x67: self.script_fuseball_rearm,
            0x6B: self.script_fuseball_leap,
            0x72: self.script_pulsar_begin,
            0x76: self.script_pulsar_wait,
            0x7D: self.script_pulsar_decide,
            0x82: self.script_pulsar_flip,
            0x87: self.script_evader_begin,
            0x8B: self.script_evader_flip,
            0x93: self.script_evader_climb,
        }
        self.states: dict[int, Callable[[], None]] = {
            0x00: self.state_new_game,
            0x02: self.state_new_life,
            0x04: self.state_playing,
            0x06: self.state_life_lost,
            0x08: self.state_game_over,
            0x0A: self.state_delay,
            0x0E: self.state_level_finished,
            0x10: self.state_high_score_check,
            0x12: self.state_enter_initials,
            0x14: self.state_high_score_table,
            0x16: self.state_level_select,
            0x18: self.state_zoom_in,
            0x1A: self.state_logo,
            0x1E: self.state_new_life_part_two,
            0x20: self.state_zoom,
            0x24: self.state_high_score_explosion,
        }
        self.power_on()

    # --- Memory helpers -----------------------------------------------------------------------------------------------

    def add(self, address: int, amount: int) -> None:
        """8-bit addition in place, wrapping (section 0)."""
        self.ram[address] = (self.ram[address] + amount) & 0xFF

    def clear(self, first: int, count: int) -> None:
        for i in range(count):
            self.ram[first + i] = 0

    def r1(self) -> int:
        return self.next_byte() & 0xFF

    def r2(self) -> int:
        return self.next_byte() & 0xFF

    def is_real_game(self) -> bool:
        return self.ram[GAME_MODE] & REAL_GAME != 0

    def is_open(self) -> bool:
        return self.ram[OPEN_FLAG] != 0

    def player_alive(self) -> bool:
        return self.ram[PLAYER_EDGE] & 0x80 == 0

    def demo_combination(self) -> bool:
        return self.free_play and self.demo

    # --- Power-on and direct start (conv.) ----------------------------------------------------------------------------

    def power_on(self) -> None:
        ram = self.ram
        self.clear(0, len(ram))
        ram[BONUS_INTERVAL] = self.bonus
        ram[INITIAL_LIVES] = self.lives
        ram[DIFFICULTY] = (self.difficulty & 3) | (4 if self.rating else 0)
        for address in range(HIGH_SCORES, HIGH_SCORES + 24):
            ram[address] = 0x01
        ram[GAMESTATE] = 0x00

    def start_at(self, level: int, start_choice: int = 0) -> None:
        """Drop into the first playing tick of a level (3.8)."""
        self.power_on()
        ram = self.ram
        ram[GAME_MODE] = REAL_GAME | IN_PROGRESS
        ram[P1_LIVES] = ram[INITIAL_LIVES]
        ram[START_CHOICE] = start_choice
        ram[P1_LEVEL] = level - 1
        ram[LEVEL_INDEX] = level - 1
        self.load_level_parameters()
        self.set_up_level_contents()
        self.clear_objects()
        self.randomise_nymphs()
        self.load_tube()
        self.rest_camera()
        self.reset_player()
        self.move_player()
        ram[GAMESTATE] = 0x04

    # --- One tick (2.2) -----------------------------------------------------------------------------------------------

    def tick(self, fire: bool = False, zap: bool = False, start: bool = False, spinner: int = 0) -> None:
        self.apply_controls(fire, zap, start, spinner)
        ram = self.ram
        ram[BUTTONS_NEW] |= UNCONSUMED
        self.states[ram[GAMESTATE]]()
        if ram[GAME_MODE] & IN_PROGRESS == 0:
            self.process_start()
        if self.free_play:
            ram[CREDITS] = 2
        self.add(TICK_COUNTER, 1)
        if ram[BUTTONS_NEW] & UNCONSUMED:
            ram[BUTTONS_NEW] = 0

    def apply_controls(self, fire: bool, zap: bool, start: bool, spinner: int) -> None:
        """Nine interrupts pass between ticks, so the debounce of 2.7 is always satisfied (conv.)."""
        ram = self.ram
        ram[SPINNER] = spinner & 0xFF
        bits = (BUTTON_FIRE if fire else 0) | (BUTTON_ZAP if zap else 0) | (BUTTON_START if start else 0)
        old = ram[BUTTONS]
        ram[BUTTONS_PREV] = old
        ram[BUTTONS_RAW] = bits
        ram[BUTTONS] = bits
        ram[BUTTONS_NEW] |= bits & ~old & 0xFF

    def process_start(self) -> None:
        """2.5, for player 1 only."""
        ram = self.ram
        if ram[CREDITS] == 0:
            return
        if ram[BUTTONS_NEW] & BUTTON_START:
            self.add(CREDITS, -1)
            ram[BUTTONS_NEW] = 0
            ram[GAME_MODE] |= REAL_GAME | IN_PROGRESS
            ram[GAMESTATE] = 0x00
        elif ram[SPINNER] != 0 and not self.is_real_game():
            self.start_delay(32, 0x14)
            ram[SPINNER] = 0

    def start_delay(self, ticks: int, next_state: int) -> None:
        self.ram[COUNTDOWN] = ticks
        self.ram[NEXT_STATE] = next_state
        self.ram[GAMESTATE] = 0x0A

    # --- States outside play (2.3) ------------------------------------------------------------------------------------

    def state_new_game(self) -> None:
        """State $00."""
        ram = self.ram
        if ram[P1_LEVEL] >= 98:
            self.r1()  # the tube shown behind the menu (10.1)
        ram[P1_LIVES] = ram[INITIAL_LIVES]
        ram[P1_LEVEL] = 0xFF
        ram[START_CHOICE] = 0
        if self.is_real_game():
            self.clear(SCORE, 3)
        ram[MAX_CHOICE] = self.highest_choice()
        if self.is_real_game():
            ram[BEST_LEVEL] = 0
        ram[PLAYER_LANE] = 0
        ram[PLAYER_POS] = 0
        ram[COUNTDOWN] = 0x10
        ram[SUB_TIMER] = 20
        ram[OPEN_FLAG] = 0xFF
        ram[LEVEL_INDEX] = 0
        ram[GAMESTATE] = 0x16
        self.state_level_select()

    def highest_choice(self) -> int:
        """max_choice (section 11)."""
        ram = self.ram
        least = 4
        if ram[DIFFICULTY] & 4:
            best_score_high = ram[HIGH_SCORES + 23]
            least += sum(1 for bound in (0x30, 0x50, 0x70) if best_score_high >= bound)
        if self.demo_combination():
            least = 27
        reached = [i for i, level in enumerate(SELECT_LEVEL) if level - 1 <= ram[BEST_LEVEL]]
        return max(least, reached[-1])

    def state_level_select(self) -> None:
        """State $16 (2.6)."""
        ram = self.ram
        if not self.is_real_game():
            ram[P1_LIVES] = 1
            self.select_level(0, self.r1() & 7)
            return
        ram[BUTTONS_NEW] &= ~UNCONSUMED & 0xFF
        time_is_up = self.count_down_selection()
        self.move_cursor()
        selecting = BUTTON_FIRE | BUTTON_ZAP
        if ram[COUNTDOWN] < 0x08:
            selecting |= BUTTON_START
        if time_is_up or ram[BUTTONS_NEW] & selecting:
            cursor = ram[PLAYER_LANE]
            self.select_level(cursor, SELECT_LEVEL[cursor] - 1)

    def count_down_selection(self) -> bool:
        """One count per 21 ticks; True when it went below 00."""
        ram = self.ram
        self.add(SUB_TIMER, -1)
        if ram[SUB_TIMER] < 0x80:
            return False
        ram[SUB_TIMER] = 20
        seconds = bcd_to_int(ram[COUNTDOWN])
        ram[COUNTDOWN] = int_to_bcd((seconds - 1) % 100)
        return seconds == 0

    def move_cursor(self) -> None:
        ram = self.ram
        delta = ram[SPINNER]
        total = ram[PLAYER_POS] + ((8 * delta) & 0xFF)
        carry = total >> 8
        ram[PLAYER_POS] = total & 0xFF
        cursor = ram[PLAYER_LANE]
        if signed8(delta) >= 0:
            cursor += carry
        elif not carry:
            cursor -= 1
        ram[PLAYER_LANE] = max(0, min(cursor, ram[MAX_CHOICE]))
        ram[SPINNER] = 0

    def select_level(self, choice: int, index: int) -> None:
        ram = self.ram
        ram[START_CHOICE] = choice
        ram[P1_LEVEL] = index
        ram[LEVEL_INDEX] = index
        self.load_level_parameters()
        self.set_up_level_contents()
        ram[BUTTONS_NEW] = 0
        ram[GAMESTATE] = 0x02

    def state_new_life(self) -> None:
        """State $02 (3.6 item 4). Draws in the order of 10.1: effective level, nymphs, tube."""
        ram = self.ram
        ram[LEVEL_INDEX] = ram[P1_LEVEL]
        self.load_level_parameters()
        self.clear_objects()
        self.randomise_nymphs()
        self.load_tube()
        self.rest_camera()
        self.reset_player()
        ram[GAMESTATE] = 0x1E

    def state_new_life_part_two(self) -> None:
        """State $1E."""
        self.start_delay(20, 0x04)

    def state_delay(self) -> None:
        """State $0A."""
        ram = self.ram
        self.move_player()
        if ram[TICK_COUNTER] & ram[DELAY_MASK]:
            return
        if ram[COUNTDOWN] != 0:
            self.add(COUNTDOWN, -1)
        if ram[COUNTDOWN] == 0:
            ram[GAMESTATE] = ram[NEXT_STATE]
            ram[DELAY_MASK] = 0

    def state_life_lost(self) -> None:
        """State $06."""
        self.add(P1_LIVES, -1)
        if self.ram[P1_LIVES] == 0:
            self.state_game_over()
        else:
            self.start_delay(0, 0x02)

    def state_game_over(self) -> None:
        """State $08."""
        ram = self.ram
        if not self.is_real_game():
            ram[GAMESTATE] = 0x14
            return
        ram[BEST_LEVEL] = ram[P1_LEVEL]
        if ram[BEST_LEVEL] != 0:
            self.add(BEST_LEVEL, -1)
        ram[GAMESTATE] = 0x10

    def state_high_score_check(self) -> None:
        """State $10."""
        ram = self.ram
        ram[GAME_MODE] &= ~IN_PROGRESS & 0xFF
        score = self.score_at(SCORE)
        if score <= self.score_at(HIGH_SCORES):
            ram[GAMESTATE] = 0x14
            return
        entries = [self.score_at(HIGH_SCORES + 3 * i) for i in range(8)]  # worst first
        beaten = sum(1 for entry in entries if entry < score)
        entries = [*entries[1:beaten], score, *entries[beaten:]]
        for i, entry in enumerate(entries):
            ram[HIGH_SCORES + 3 * i : HIGH_SCORES + 3 * i + 3] = bytes(bcd_bytes(entry))
        ram[HIGH_SCORE_RANK] = 9 - beaten
        ram[BOOM_TIMER] = 32
        self.clear(PARTICLES, 16)
        ram[GAMESTATE] = 0x24

    def score_at(self, address: int) -> int:
        low, middle, high = self.ram[address : address + 3]
        return bcd_to_int(high) * 10000 + bcd_to_int(middle) * 100 + bcd_to_int(low)

    def state_high_score_explosion(self) -> None:
        """State $24 (conv.)."""
        ram = self.ram
        if ram[BOOM_TIMER] != 0:
            for particle in range(15, -1, -1):
                if ram[PARTICLES + particle] == 0:
                    self.launch_particle(particle)
        if ram[TICK_COUNTER] % 2 == 0 and ram[BOOM_TIMER] != 0:
            self.add(BOOM_TIMER, -1)
        for particle in range(15, -1, -1):
            if ram[PARTICLES + particle] != 0:
                self.move_particle(particle)
        if ram[BOOM_TIMER] == 0 and not any(ram[PARTICLES : PARTICLES + 16]):
            ram[LETTERS_LEFT] = 3
            ram[SUB_TIMER] = 96
            ram[PLAYER_POS] = 0
            ram[GAMESTATE] = 0x12

    def launch_particle(self, particle: int) -> None:
        ram = self.ram
        for axis in range(3):
            position = PARTICLES + 64 * axis + particle
            velocity = PARTICLES + 192 + 64 * axis + particle
            ram[position] = 0x80
            ram[position + 32] = 0x00
            ram[velocity + 32] = self.next_byte() & 0xFF
            ram[velocity] = ((self.next_byte() & 15) - 8) & 0xFF

    def move_particle(self, particle: int) -> None:
        ram = self.ram
        outside = False
        standing = True
        for axis in range(3):
            position = PARTICLES + 64 * axis + particle
            velocity = PARTICLES + 192 + 64 * axis + particle
            speed = signed16(ram[velocity] * 256 + ram[velocity + 32])
            place = (ram[position] * 256 + ram[position + 32] + speed) & 0xFFFF
            speed = max(0, speed - 32) if speed > 0 else min(0, speed + 32)
            ram[position], ram[position + 32] = place >> 8, place & 0xFF
            ram[velocity], ram[velocity + 32] = (speed & 0xFFFF) >> 8, speed & 0xFF
            outside = outside or not 0x10 <= ram[position] <= 0xEF
            standing = standing and speed == 0
        if outside or standing:
            ram[PARTICLES + particle] = 0

    def state_enter_initials(self) -> None:
        """State $12 (conv.)."""
        ram = self.ram
        if ram[BUTTONS_NEW] & (BUTTON_FIRE | BUTTON_ZAP):
            self.add(LETTERS_LEFT, -1)
            if ram[LETTERS_LEFT] == 0:
                ram[GAMESTATE] = 0x14
        if ram[TICK_COUNTER] % 32 == 0:
            self.add(SUB_TIMER, -1)
            if ram[SUB_TIMER] == 0:
                ram[GAMESTATE] = 0x14
        ram[SPINNER] = 0

    def state_high_score_table(self) -> None:
        """State $14."""
        self.ram[GAME_MODE] &= ~(REAL_GAME | IN_PROGRESS) & 0xFF
        self.ram[DELAY_MASK] = 1
        self.start_delay(160, 0x1A)

    def state_logo(self) -> None:
        """State $1A."""
        self.start_delay(223, 0x00)

    # --- Playing states (4.0) -----------------------------------------------------------------------------------------

    def state_playing(self) -> None:
        """State $04."""
        self.ram[BUTTONS_NEW] &= ~UNCONSUMED & 0xFF
        self.move_player()
        self.fire_player_shot()
        self.run_superzapper()
        self.run_nymphs()
        if self.player_alive():
            self.run_enemies()
        self.update_pulse()
        self.move_shots()
        if self.player_alive():
            self.enemies_fire()
        self.check_player_shots()
        self.run_explosions()
        if self.player_alive():
            self.check_level_end()
        else:
            self.run_death()

    def state_zoom(self) -> None:
        """State $20."""
        self.ram[SPIKE_WARNING] &= 0x7F
        self.move_player()
        if self.player_alive():
            self.drop_player()
        self.run_explosions()
        self.fire_player_shot()
        self.move_shots()
        if not self.player_alive():
            self.run_death()

    def state_level_finished(self) -> None:
        """State $0E (section 9)."""
        ram = self.ram
        if ram[P1_LEVEL] < 98:
            self.add(P1_LEVEL, 1)
        ram[LEVEL_INDEX] = ram[P1_LEVEL]
        if ram[START_CHOICE] != 0:
            self.add_score(*bcd_bytes(SELECT_BONUS[ram[START_CHOICE]]))
        self.load_level_parameters()
        self.set_up_level_contents()
        self.clear_objects()
        self.randomise_nymphs()
        self.load_tube()
        ram[EYE_HI] = 0xFA
        ram[EYE_LO] = 0x00
        ram[GAMESTATE] = 0x18

    def state_zoom_in(self) -> None:
        """State $18."""
        ram = self.ram
        ram[PLAYER_DEPTH] = NEAR_RIM
        self.move_player()
        eye = signed16(ram[EYE_HI] * 256 + ram[EYE_LO]) + 0x18
        resting = signed16(0xFF00 + ram[EYE_DEST_LO])
        if eye >= resting:
            eye = resting
            ram[START_CHOICE] = 0
            ram[GAMESTATE] = 0x04 if self.is_real_game() else 0x08
        self.set_eye(eye)

    def set_eye(self, eye: int) -> None:
        self.ram[EYE_HI] = (eye & 0xFFFF) >> 8
        self.ram[EYE_LO] = eye & 0xFF

    # --- Level and life set-up ----------------------------------------------------------------------------------------

    def load_level_parameters(self) -> None:
        """Section 5, for the level index in $9F."""
        ram = self.ram
        index = ram[LEVEL_INDEX]
        level = ((self.r2() & 0x1F) | 0x40) + 1 if index >= 98 else index + 1  # 5.1
        option = ram[DIFFICULTY] & 3
        easy, hard = option == 1, option == 2

        flipper_value = value_at(FLIPPER_SPEED_RANGES, level)
        shot_value = (flipper_value + value_at(ESHOT_SPEED_OFFSET, level)) & 0xFF
        spiker_value = (flipper_value + value_at(SPIKER_SPEED_OFFSET, level)) & 0xFF
        shot_slot_max = value_at(SHOT_SLOT_MAX_RANGES, level)
        nymphs = value_at(START_NYMPHS_RANGES, level)
        rim_flip_steps = value_at(RIM_FLIP_STEPS_RANGES, level)
        pulsar_fire = value_at(PULSAR_FIRE_RANGES, level)

        if easy:  # 5.3
            shot_slot_max -= 1
            slack = 255 - flipper_value
            flipper_value = (flipper_value + (slack >> 3) + bit2(slack)) & 0xFF
            if index < 17:
                rim_flip_steps -= 1
        elif hard:
            shot_slot_max = min(3, shot_slot_max + 1)
            flipper_value = (flipper_value + ((flipper_value >> 3) | 0xE0) + bit2(flipper_value)) & 0xFF
            nymphs = nymphs + (nymphs >> 3) + bit2(nymphs)
            pulsar_fire |= 0x40

        flipper_word = speed_word(flipper_value)
        shot_word = speed_word(shot_value)
        spiker_word = speed_word(spiker_value)
        fuseball_word = (2 * flipper_word) & 0xFFFF
        words = (flipper_word, PULSAR_SPEED_WORD, flipper_word, spiker_word, fuseball_word)
        shared = tolerance(flipper_word)
        tolerances = (shared, shared, shared, tolerance(spiker_word), FUSEBALL_TOLERANCE)
        for kind in range(5):
            ram[SPEED_LO + kind] = words[kind] & 0xFF
            ram[SPEED_HI + kind] = words[kind] >> 8
            ram[TYPE_TOL + kind] = tolerances[kind]
            ram[TYPE_MIN + kind] = value_at(TYPE_MIN_RANGES[kind], level)
            ram[TYPE_MAX + kind] = value_at(TYPE_MAX_RANGES[kind], level)
        ram[ESHOT_SPEED_LO] = shot_word & 0xFF
        ram[ESHOT_SPEED_HI] = shot_word >> 8
        ram[SHOT_SHOT_TOL] = tolerance(shot_word)
        ram[SHOT_HOLDOFF] = value_at(SHOT_HOLDOFF_RANGES, level)
        ram[SHOT_SLOT_MAX] = shot_slot_max
        ram[ENEMY_SLOT_MAX] = 6
        ram[START_NYMPHS] = nymphs
        ram[START_SPIKE] = value_at(START_SPIKE_RANGES, level)
        ram[FLIPPER_SCRIPT] = value_at(FLIPPER_SCRIPT_RANGES, level)
        for kind in range(4):
            ram[TANKER_CARGO + kind] = value_at(CARGO_RANGES[kind], level)
        ram[PULSE_DEPTH] = value_at(PULSE_DEPTH_RANGES, level)
        ram[PULSE_STEP] = value_at(PULSE_BEAT_RANGES, level)
        ram[PULSAR_WAIT] = value_at(PULSAR_WAIT_RANGES, level)
        ram[PULSAR_FIRE] = pulsar_fire
        ram[FUSE_FLAGS] = value_at(FUSE_FLAGS_RANGES, level)
        ram[FUSE_THRESHOLD] = value_at(FUSE_THRESHOLD_RANGES, level)
        ram[RIM_FLIP_STEPS] = rim_flip_steps

    def set_up_level_contents(self) -> None:
        """What a new level sets but a new life keeps."""
        ram = self.ram
        ram[NYMPHS_LEFT] = ram[START_NYMPHS]
        for lane in range(LANES):
            ram[SPIKE + lane] = ram[START_SPIKE]
        ram[ZAP_USES] = 0
        ram[ZAP_TIMER] = 0

    def clear_objects(self) -> None:
        """What both a new life and a new level clear (3.6 item 4)."""
        ram = self.ram
        self.clear_shots()
        self.clear(ENEMY_DEPTH, ENEMIES)
        self.clear(EXPL_DEPTH, EXPLOSIONS)
        ram[EXPLOSION_COUNT] = 0
        ram[IN_TUBE] = 0
        ram[ON_RIM] = 0
        self.clear(TYPE_COUNT, 5)
        self.clear(NYMPH_TIMER, NYMPHS)
        ram[PULSE_PHASE] = 0xFF
        ram[SPIKE_WARNING] = 0
        ram[BONUS_FLASH] = 0xFF
        ram[SPINNER] = 0
        ram[DROP_FLAG] = 0

    def clear_shots(self) -> None:
        self.clear(PSHOT_DEPTH, PSHOTS)
        self.clear(ESHOT_DEPTH, ESHOTS)
        self.ram[PSHOT_COUNT] = 0
        self.ram[ESHOT_COUNT] = 0

    def randomise_nymphs(self) -> None:
        """4.1. With no nymphs one stray pass with index 255 is made; beyond 64 the writes run into other arrays."""
        ram = self.ram
        slots = range(ram[NYMPHS_LEFT] - 1, -1, -1) if ram[NYMPHS_LEFT] else range(255, 254, -1)
        for slot in slots:
            lane = self.r1() & 15
            ram[NYMPH_LANE + slot] = lane
            ram[NYMPH_TIMER + slot] = ((slot & 15) * 16) | lane or 15

    def load_tube(self) -> None:
        """6.1 to 6.3."""
        ram = self.ram
        position = self.r1() & 15 if ram[LEVEL_INDEX] >= 98 else ram[LEVEL_INDEX] % 16
        number = TUBE_OF_POSITION[position]
        tube = TUBES[number]
        for i in range(16):
            ram[TUBE_X + i] = tube.x[i]
            ram[TUBE_Y + i] = tube.y[i]
            ram[TUBE_ANGLE + i] = tube.angle[i]
        ram[OPEN_FLAG] = 0xFF if tube.is_open else 0x00
        ram[TUBE_INDEX] = number
        ram[EYE_DEST_LO] = 256 - tube.eye_distance

    def rest_camera(self) -> None:
        self.ram[EYE_HI] = 0xFF
        self.ram[EYE_LO] = self.ram[EYE_DEST_LO]

    def reset_player(self) -> None:
        """New life (3.1)."""
        ram = self.ram
        ram[PLAYER_LANE] = 0x0E
        ram[PLAYER_POS] = 0xF0
        ram[PLAYER_EDGE] = 0x0F
        ram[PLAYER_DEPTH] = NEAR_RIM

    # --- Player movement and firing (section 3) -----------------------------------------------------------------------

    def move_player(self) -> None:
        """3.1."""
        ram = self.ram
        if not self.player_alive():
            return
        if self.is_real_game():
            delta = max(-31, min(31, signed8(ram[SPINNER])))
            ram[SPINNER] = 0
        else:
            delta = self.attract_delta()
        old = ram[PLAYER_POS]
        new = (old - delta) & 0xFF
        if self.is_open():
            new = min(new, 0xEF)
            delta_bit = delta & 0x80
            if new & 0x80 != delta_bit and new & 0x80 != old & 0x80:
                new = 0x00 if old < 0x80 else 0xEF
        ram[PLAYER_LANE] = new >> 4
        ram[PLAYER_EDGE] = (ram[PLAYER_LANE] + 1) & 15
        ram[PLAYER_POS] = new

    def attract_delta(self) -> int:
        """3.9: steer towards the nearest enemy."""
        ram = self.ram
        nearest = -1
        for slot in range(6, -1, -1):
            depth = ram[ENEMY_DEPTH + slot]
            if depth != 0 and (nearest < 0 or depth < ram[ENEMY_DEPTH + nearest]):
                nearest = slot
        if nearest < 0:
            return 0
        difference = self.lane_difference(ram[ENEMY_LANE + nearest], ram[PLAYER_LANE])
        if difference > 0:
            return -9
        return 9 if difference < 0 else 0

    def lane_difference(self, lane: int, origin: int) -> int:
        """Signed lane difference; on a closed tube reduced to 4 bits, 8..15 counting as negative (4.5)."""
        if self.is_open():
            return lane - origin
        difference = (lane - origin) & 15
        return difference - 16 if difference >= 8 else difference

    def wants_to_fire(self) -> bool:
        """3.2 for a real game, 3.9 in attract."""
        ram = self.ram
        if self.is_real_game():
            return ram[BUTTONS] & BUTTON_FIRE != 0
        if ram[DROP_FLAG] & 0x80:
            return True
        lane = ram[PLAYER_LANE]
        for slot in range(ENEMIES):
            if ram[ENEMY_DEPTH + slot] and abs(ram[ENEMY_LANE + slot] - lane) <= 1:
                return True
        return any(ram[ESHOT_DEPTH + slot] and abs(ram[ESHOT_LANE + slot] - lane) <= 1 for slot in range(ESHOTS))

    def fire_player_shot(self) -> None:
        """3.2."""
        ram = self.ram
        if not self.player_alive() or not self.wants_to_fire():
            return
        for slot in range(7, -1, -1):
            if ram[PSHOT_DEPTH + slot] == 0:
                ram[PSHOT_DEPTH + slot] = ram[PLAYER_DEPTH]
                ram[PSHOT_LANE + slot] = ram[PLAYER_LANE]
                ram[PSHOT_EDGE + slot] = ram[PLAYER_EDGE]
                ram[PSHOT_HITS + slot] = 0
                self.add(PSHOT_COUNT, 1)
                self.check_player_shot(slot)
                return

    # --- Superzapper (3.4) --------------------------------------------------------------------------------------------

    def run_superzapper(self) -> None:
        ram = self.ram
        if not self.is_real_game():
            return
        if ram[ZAP_TIMER] == 0:
            if self.player_alive() and ram[BUTTONS_NEW] & BUTTON_ZAP:
                if ram[ZAP_USES] < 2:
                    self.add(ZAP_USES, 1)
                    ram[ZAP_TIMER] = 1
                ram[BUTTONS_NEW] &= ~BUTTON_ZAP & 0xFF
            return
        self.add(ZAP_TIMER, 1)
        limit = 5 if ram[ZAP_USES] >= 2 else 19
        if ram[ZAP_TIMER] >= limit:
            ram[ZAP_TIMER] = 0
        if ram[ZAP_TIMER] >= 3 and ram[ZAP_TIMER] % 2 == 0:
            self.zap_one_enemy()

    def zap_one_enemy(self) -> None:
        ram = self.ram
        for slot in range(6, -1, -1):
            if ram[ENEMY_DEPTH + slot] != 0:
                ram[ENEMY_INFO + slot] &= ~CARGO_BITS & 0xFF
                kind_byte = ram[ENEMY_TYPE + slot]
                lane = ram[ENEMY_LANE + slot]
                if kind_byte & 0xC0 == 0xC0:
                    lane = (lane - 1) & 15
                self.explode(EXPLODE_ENEMY, lane, ram[ENEMY_DEPTH + slot])
                self.remove_enemy(slot)
                self.add_score(*POINTS[ram[ENEMY_TYPE + slot] & TYPE_BITS])
                return
        ram[ZAP_TIMER] = 0

    # --- Nymphs (4.1, 4.2) --------------------------------------------------------------------------------------------

    def run_nymphs(self) -> None:
        ram = self.ram
        blocked = self.enemies_alive() > 6 or ram[ZAP_TIMER] != 0
        busy = 0
        for slot in range(63, -1, -1):
            timer = NYMPH_TIMER + slot
            lane = NYMPH_LANE + slot
            if ram[timer] == 0:
                continue
            if not blocked:
                self.add(timer, -1)
                if ram[timer] == 0:
                    if self.convert_nymph(slot):
                        self.add(NYMPHS_LEFT, -1)
                    else:
                        ram[timer] = 1
                        blocked = True
                elif ram[timer] == 0x3F and busy & lane_bit(ram[lane]):
                    ram[timer] = 0x40
            if ram[timer] >= 0x40 and ram[TICK_COUNTER] % 2 == 0:
                ram[lane] = (ram[lane] + 1) & 15
            if 0x20 <= ram[timer] <= 0x3F:
                busy |= lane_bit(ram[lane])
        ram[LANE_BUSY] = busy
        ram[LANE_BUSY_BEFORE] = busy

    def enemies_alive(self) -> int:
        """The two counters may drift apart, their sum is right modulo 256 (section 12)."""
        return (self.ram[IN_TUBE] + self.ram[ON_RIM]) & 0xFF

    def convert_nymph(self, nymph: int) -> bool:
        """Choose a type for the nymph and launch it (4.2). False when nothing could be launched."""
        self.compute_rooms()
        ram = self.ram
        room = ram[TYPE_ROOM : TYPE_ROOM + 5]
        minimum = ram[TYPE_MIN : TYPE_MIN + 5]
        count = ram[TYPE_COUNT : TYPE_COUNT + 5]
        with_room = [kind for kind in range(5) if room[kind] != 0]
        if not with_room:
            return False
        if len(with_room) == 1:
            kind = with_room[0]
            return minimum[kind] != 0 and self.try_type(nymph, kind)
        for kind in (4, 3, 2, 1, 0):  # (a) types below their minimum
            if room[kind] != 0 and count[kind] < minimum[kind] and self.try_type(nymph, kind):
                return True
        if room[SPIKER] != 0 and room[TANKER] != 0:  # (b) spiker or tanker, by the spike of the lane
            spike = ram[SPIKE + ram[NYMPH_LANE + nymph]] or 0xFF
            if self.try_type(nymph, SPIKER if spike >= 0xCC else TANKER):
                return True
        kind = (self.r2() & 3) + 1  # (c) a walk over all types
        for _ in range(5):
            if minimum[kind] != 0 and room[kind] != 0 and self.try_type(nymph, kind):
                return True
            kind = kind - 1 if kind > 0 else 4
        return False

    def compute_rooms(self) -> None:
        """4.2 steps 1 to 3. A room may wrap below zero and then becomes `total`: a genuine quirk."""
        ram = self.ram
        for kind in range(5):
            most, count = ram[TYPE_MAX + kind], ram[TYPE_COUNT + kind]
            ram[TYPE_ROOM + kind] = most - count if most >= count else 0
        for slot in range(6, -1, -1):
            cargo = ram[ENEMY_INFO + slot] & CARGO_BITS
            if ram[ENEMY_DEPTH + slot] != 0 and cargo != 0:
                self.add(TYPE_ROOM + CARGO_TYPE[cargo], -2)
        total = (7 - sum(ram[TYPE_COUNT : TYPE_COUNT + 5])) & 0xFF
        for kind in range(5):
            ram[TYPE_ROOM + kind] = min(ram[TYPE_ROOM + kind], total)

    def try_type(self, nymph: int, kind: int) -> bool:
        ram = self.ram
        if kind == TANKER:
            cargo = self.choose_cargo()
            if cargo == 0:
                return False
            info, script = MAY_SHOOT | cargo, 0x07
        else:
            info, script = self.nymph_birth(kind)
        if self.free_enemy_slot() is None:
            return False
        lane = ram[NYMPH_LANE + nymph]
        if lane == 15 and self.is_open():
            lane = self.r1() & 0x0E
        return self.activate_enemy(kind, info, script, lane, FAR_END)

    def nymph_birth(self, kind: int) -> tuple[int, int]:
        """enemy_info and script entry of a type born from a nymph, or from a tanker split far out (4.2, 4.8)."""
        ram = self.ram
        return {
            FLIPPER: (MAY_SHOOT, ram[FLIPPER_SCRIPT]),
            PULSAR: (ram[PULSAR_FIRE], 0x72),
            SPIKER: (MAY_SHOOT, 0x00),
            FUSEBALL: (0x00, 0x61),
        }[kind]

    def choose_cargo(self) -> int:
        """One random byte, then a cyclic search downward for a kind with room; 0 = none."""
        ram = self.ram
        y = self.r1() & 3
        for _ in range(4):
            y = y - 1 if y > 0 else 3
            cargo = ram[TANKER_CARGO + y]
            if ram[TYPE_ROOM + CARGO_TYPE[cargo]] != 0:
                return cargo
        return 0

    def free_enemy_slot(self) -> int | None:
        for slot in range(6, -1, -1):
            if self.ram[ENEMY_DEPTH + slot] == 0:
                return slot
        return None

    def activate_enemy(self, kind_byte: int, info: int, script: int, lane: int, depth: int) -> bool:
        """4.2, "Activation". The depth fraction and the script counter keep what the slot held."""
        ram = self.ram
        slot = self.free_enemy_slot()
        if slot is None:
            return False
        ram[ENEMY_DEPTH + slot] = depth
        ram[ENEMY_LANE + slot] = lane
        ram[ENEMY_EDGE + slot] = (lane + 1) & 15
        ram[ENEMY_TYPE + slot] = kind_byte
        ram[ENEMY_INFO + slot] = info
        ram[ENEMY_SCRIPT + slot] = script
        ram[ENEMY_SHOT_DELAY + slot] = 0
        self.add(IN_TUBE, 1)
        self.add(TYPE_COUNT + (kind_byte & TYPE_BITS), 1)
        return True

    # --- Enemies: accessors and vertical motion (4.3, 4.4) ------------------------------------------------------------

    def kind_of(self, slot: int) -> int:
        return self.ram[ENEMY_TYPE + slot] & TYPE_BITS

    def is_flipping(self, slot: int) -> bool:
        return self.ram[ENEMY_TYPE + slot] & FLIPPING != 0

    def is_increasing(self, slot: int) -> bool:
        return self.ram[ENEMY_TYPE + slot] & INCREASING != 0

    def reverse(self, slot: int) -> None:
        self.ram[ENEMY_TYPE + slot] ^= INCREASING

    def set_increasing(self, slot: int, increasing: bool) -> None:
        self.ram[ENEMY_TYPE + slot] &= ~INCREASING & 0xFF
        if increasing:
            self.ram[ENEMY_TYPE + slot] |= INCREASING

    def set_resume(self, slot: int, point: int) -> None:
        self.ram[ENEMY_SCRIPT + slot] = point

    def set_counter(self, slot: int, value: int) -> None:
        self.ram[ENEMY_COUNTER + slot] = value

    def count_down(self, slot: int) -> bool:
        """Counter minus one; True when it is then 0."""
        self.add(ENEMY_COUNTER + slot, -1)
        return self.ram[ENEMY_COUNTER + slot] == 0

    def shift_depth(self, slot: int, word: int) -> None:
        ram = self.ram
        depth = (ram[ENEMY_DEPTH + slot] * 256 + ram[ENEMY_FRAC + slot] + word) & 0xFFFF
        ram[ENEMY_DEPTH + slot] = depth >> 8
        ram[ENEMY_FRAC + slot] = depth & 0xFF

    def type_speed(self, kind: int) -> int:
        return self.ram[SPEED_HI + kind] * 256 + self.ram[SPEED_LO + kind]

    def climb(self, slot: int, speed_kind: int) -> Climb:
        ram = self.ram
        self.shift_depth(slot, self.type_speed(speed_kind))
        if ram[ENEMY_DEPTH + slot] <= ram[PLAYER_DEPTH]:
            return self.arrive_at_rim(slot)
        if ram[ENEMY_DEPTH + slot] < 0x20 and ram[ENEMY_INFO + slot] & CARGO_BITS:
            self.split_by_itself(slot)
            return Climb.SPLIT
        return Climb.MOVED

    def descend(self, slot: int, speed_kind: int) -> None:
        self.shift_depth(slot, -self.type_speed(speed_kind))
        if self.ram[ENEMY_DEPTH + slot] >= FAR_END:
            self.ram[ENEMY_DEPTH + slot] = 0xF2

    def climb_ends_tick(self, slot: int) -> bool:
        """The ordinary climb of the scripts. True when the rest of this enemy's tick is dropped (4.6)."""
        if self.ram[ENEMY_INFO + slot] & MOVING_AWAY:
            self.descend(slot, self.kind_of(slot))
            return False
        return self.leaves_script(slot, self.climb(slot, self.kind_of(slot)))

    def leaves_script(self, slot: int, result: Climb) -> bool:
        if result is Climb.RIDER:
            self.rim_entry(slot)
        return result is not Climb.MOVED

    def arrive_at_rim(self, slot: int) -> Climb:
        """4.4."""
        ram = self.ram
        ram[ENEMY_DEPTH + slot] = ram[PLAYER_DEPTH]
        if self.kind_of(slot) == PULSAR and ram[NYMPHS_LEFT] != 0:
            ram[ENEMY_INFO + slot] ^= MOVING_AWAY
            return Climb.MOVED
        if self.is_flipping(slot):
            self.add(ENEMY_DEPTH + slot, 1)
            return Climb.MOVED
        self.add(IN_TUBE, -1)
        if ram[ON_RIM] == 1:
            ram[ENEMY_TYPE + slot] = (self.direction_of_other_rider(slot) ^ INCREASING) & INCREASING
        else:
            self.aim_at_player(slot)
        self.add(ON_RIM, 1)
        return Climb.RIDER

    def direction_of_other_rider(self, slot: int) -> int:
        ram = self.ram
        for other in range(6, -1, -1):
            if other != slot and ram[ENEMY_DEPTH + other] == ram[PLAYER_DEPTH]:
                return ram[ENEMY_TYPE + other] & INCREASING
        return ram[STRAY_DIRECTION] & INCREASING

    # --- Flipping (4.5) -----------------------------------------------------------------------------------------------

    def aim_at_player(self, slot: int) -> None:
        difference = self.lane_difference(self.ram[PLAYER_LANE], self.ram[ENEMY_LANE + slot])
        self.set_increasing(slot, difference >= 0)

    def angle(self, lane: int) -> int:
        return self.ram[TUBE_ANGLE + (lane & 15)]

    def start_flip(self, slot: int) -> None:
        ram = self.ram
        lane = ram[ENEMY_LANE + slot]
        if self.is_open():
            if self.is_increasing(slot) and lane >= 14:
                self.set_increasing(slot, False)
            elif not self.is_increasing(slot) and lane == 0:
                self.set_increasing(slot, True)
        ram[ENEMY_TYPE + slot] |= FLIPPING
        if self.is_increasing(slot):
            lane = (lane + 1) & 15
            ram[ENEMY_LANE + slot] = lane
            start = (self.angle(lane - 1) + 8) & 15
        else:
            start = self.angle(lane)
        ram[ENEMY_EDGE + slot] = 0x80 + start

    def flip_step(self, slot: int) -> bool:
        """One step of a flip; True when it is finished."""
        ram = self.ram
        lane = ram[ENEMY_LANE + slot]
        increasing = self.is_increasing(slot)
        angle = (ram[ENEMY_EDGE + slot] + (-1 if increasing else 1)) & 15
        ram[ENEMY_EDGE + slot] = 0x80 + angle
        target = self.angle(lane) if increasing else (self.angle(lane - 1) + 8) & 15
        if angle != target:
            return False
        ram[ENEMY_TYPE + slot] &= ~FLIPPING & 0xFF
        if increasing:
            ram[ENEMY_EDGE + slot] = (lane + 1) & 15
        else:
            ram[ENEMY_EDGE + slot] = lane
            ram[ENEMY_LANE + slot] = (lane - 1) & 15
        return True

    # --- Scripts (4.6) ------------------------------------------------------------------------------------------------

    def run_enemies(self) -> None:
        for slot in range(6, -1, -1):
            if self.ram[ENEMY_DEPTH + slot] != 0:
                self.scripts[self.ram[ENEMY_SCRIPT + slot]](slot)

    def script_straight(self, slot: int) -> None:
        """$07, $09."""
        if not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x09)

    def script_march_begin(self, slot: int) -> None:
        """$0B."""
        self.set_counter(slot, 8)
        if not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x0F)

    def script_march_climb(self, slot: int) -> None:
        """$0F."""
        if self.count_down(slot):
            self.start_flip(slot)
            self.set_resume(slot, 0x13)
        elif not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x0F)

    def script_march_flip(self, slot: int) -> None:
        """$13."""
        if self.flip_step(slot):
            self.script_march_begin(slot)

    def script_spiral_begin(self, slot: int) -> None:
        """$19."""
        if not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x1B)

    def script_spiral_start_flip(self, slot: int) -> None:
        """$1B."""
        self.start_flip(slot)
        self.set_resume(slot, 0x1D)

    def script_spiral_flip(self, slot: int) -> None:
        """$1D: two climbs in the tick in which the flip finishes."""
        finished = self.flip_step(slot)
        if self.climb_ends_tick(slot):
            return
        if finished and not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x1B)

    def script_zigzag_begin(self, slot: int) -> None:
        """$24."""
        if not self.climb_ends_tick(slot):
            self.set_resume(slot, 0x26)

    def script_zigzag_first_flip(self, slot: int) -> None:
        """$26."""
        self.set_counter(slot, 2)
        self.start_flip(slot)
        self.set_resume(slot, 0x2A)

    def script_zigzag_flip_out(self, slot: int) -> None:
        """$2A."""
        finished = self.flip_step(slot)
        if not self.climb_ends_tick(slot) and finished:
            self.set_resume(slot, 0x30)

    def script_zigzag_count_out(self, slot: int) -> None:
        """$30."""
        if self.count_down(slot):
            self.reverse(slot)
            self.set_counter(slot, 3)
            self.start_flip(slot)
            self.set_resume(slot, 0x37)
        else:
            self.start_flip(slot)
            self.set_resume(slot, 0x2A)

    def script_zigzag_flip_back(self, slot: int) -> None:
        """$37."""
        finished = self.flip_step(slot)
        if not self.climb_ends_tick(slot) and finished:
            self.set_resume(slot, 0x3D)

    def script_zigzag_count_back(self, slot: int) -> None:
        """$3D."""
        if self.count_down(slot):
            self.reverse(slot)
            if not self.climb_ends_tick(slot):
                self.set_resume(slot, 0x26)
        else:
            self.start_flip(slot)
            self.set_resume(slot, 0x37)

    def rim_entry(self, slot: int) -> None:
        """Begin, or begin again, to sit in a lane of the rim."""
        self.set_counter(slot, 4)
        self.grab_test(slot)
        self.set_resume(slot, 0x46)

    def script_rim_wait(self, slot: int) -> None:
        """$46."""
        if self.count_down(slot):
            self.start_flip(slot)
            self.set_resume(slot, 0x4A)
        else:
            self.grab_test(slot)

    def script_rim_flip(self, slot: int) -> None:
        """$4A."""
        for _ in range(self.ram[RIM_FLIP_STEPS]):
            if self.flip_step(slot):
                self.rim_entry(slot)
                return

    def grab_test(self, slot: int) -> None:
        """4.4."""
        if not self.is_flipping(slot) and self.shares_lane_with_player(slot):
            self.kill_player(GRABBED, EXPLODE_GRABBED)

    def shares_lane_with_player(self, slot: int) -> bool:
        ram = self.ram
        same_lane = ram[ENEMY_LANE + slot] == ram[PLAYER_LANE]
        return same_lane and ram[ENEMY_EDGE + slot] == ram[PLAYER_EDGE]

    def script_rider_begin(self, slot: int) -> None:
        """$53: nothing."""
        self.set_resume(slot, 0x54)

    def script_rider_climb(self, slot: int) -> None:
        """$54."""
        if self.climb_ends_tick(slot):
            return
        tip = self.ram[SPIKE + self.ram[ENEMY_LANE + slot]] or 0xFF
        if tip >= self.ram[ENEMY_DEPTH + slot]:
            self.start_flip(slot)
            self.set_resume(slot, 0x5A)

    def script_rider_first_flip(self, slot: int) -> None:
        """$5A."""
        if self.climb_ends_tick(slot):
            return
        self.set_resume(slot, 0x54 if self.flip_step(slot) else 0x5F)

    def script_rider_flip(self, slot: int) -> None:
        """$5F."""
        if self.flip_step(slot):
            self.set_resume(slot, 0x54)

    def script_evader_begin(self, slot: int) -> None:
        """$87."""
        self.aim_at_player(slot)
        self.reverse(slot)
        self.start_flip(slot)
        self.set_resume(slot, 0x8B)

    def script_evader_flip(self, slot: int) -> None:
        """$8B."""
        if self.climb_ends_tick(slot):
            return
        if self.flip_step(slot):
            self.set_counter(slot, 4)
            self.set_resume(slot, 0x93)

    def script_evader_climb(self, slot: int) -> None:
        """$93."""
        if self.climb_ends_tick(slot):
            return
        if self.count_down(slot):
            self.script_evader_begin(slot)

    # --- Fuseballs (4.6) ----------------------------------------------------------------------------------------------

    def script_fuseball_move(self, slot: int) -> None:
        """$61, $64."""
        if self.fuseball_move(slot):
            self.script_fuseball_rearm(slot)
        else:
            self.touch_test(slot)
            self.set_resume(slot, 0x64)

    def script_fuseball_rearm(self, slot: int) -> None:
        """$67, and the rest of the tick in which a leap starts."""
        self.set_counter(slot, 3)
        self.touch_test(slot)
        self.set_resume(slot, 0x6B)

    def script_fuseball_leap(self, slot: int) -> None:
        """$6B."""
        ram = self.ram
        if not self.count_down(slot):
            self.touch_test(slot)
            return
        if not self.leap_step(slot):
            self.set_resume(slot, 0x67)
            return
        ram[ENEMY_TYPE + slot] &= ~FLIPPING & 0xFF
        ram[ENEMY_EDGE + slot] = 0x20
        ram[ENEMY_INFO + slot] ^= MOVING_AWAY
        if ram[NYMPHS_LEFT] == 0:
            if ram[ENEMY_DEPTH + slot] == ram[PLAYER_DEPTH]:
                self.chase_leap(slot)
                self.script_fuseball_rearm(slot)
                return
            ram[ENEMY_INFO + slot] &= MOVING_AWAY
        self.script_fuseball_move(slot)

    def leap_step(self, slot: int) -> bool:
        """An eighth of the way across; True when the leap is finished."""
        ram = self.ram
        if ram[ENEMY_TYPE + slot] & INCREASING:  # inverted: decreasing line number
            self.add(ENEMY_EDGE + slot, -1)
            return ram[ENEMY_EDGE + slot] == 0x80
        self.add(ENEMY_EDGE + slot, 1)
        if ram[ENEMY_EDGE + slot] != 0x88:
            return False
        ram[ENEMY_LANE + slot] = (ram[ENEMY_LANE + slot] + 1) & 15
        return True

    def touch_test(self, slot: int) -> None:
        """No check whether the player is already dead (3.6)."""
        ram = self.ram
        same_depth = ram[ENEMY_DEPTH + slot] == ram[PLAYER_DEPTH]
        if same_depth and ram[ENEMY_LANE + slot] == ram[PLAYER_LANE]:
            self.kill_player(BLOWN_UP, EXPLODE_PLAYER)

    def fuseball_move(self, slot: int) -> bool:
        """True when a leap was started."""
        ram = self.ram
        if ram[ENEMY_INFO + slot] & MOVING_AWAY:
            self.descend(slot, FUSEBALL)
            if ram[ENEMY_DEPTH + slot] >= 0x80:
                self.leap_by_flag(slot, 0x40)
                return True
            return self.maybe_leap(slot)
        self.shift_depth(slot, self.type_speed(FUSEBALL))
        if ram[ENEMY_DEPTH + slot] < ram[PLAYER_DEPTH]:
            ram[ENEMY_DEPTH + slot] = ram[PLAYER_DEPTH]
            self.leap_by_flag(slot, 0x80)
            return True
        if ram[NYMPHS_LEFT] == 0:
            return False
        if ram[LEVEL_INDEX] < 17 and ram[ENEMY_DEPTH + slot] < 0x20:
            self.leap_by_flag(slot, 0x80)
            return True
        return self.maybe_leap(slot)

    def leap_by_flag(self, slot: int, flag: int) -> None:
        if self.ram[FUSE_FLAGS] & flag:
            self.chase_leap(slot)
        else:
            self.random_leap(slot)

    def maybe_leap(self, slot: int) -> bool:
        ram = self.ram
        if ram[ENEMY_DEPTH + slot] & 0x20 == 0:
            return False
        if self.r2() < ram[FUSE_THRESHOLD]:
            return False
        if ram[FUSE_FLAGS] & 0x40 and slot % 2 == 1:
            self.chase_leap(slot)
        else:
            self.random_leap(slot)
        return True

    def chase_leap(self, slot: int) -> None:
        self.aim_at_player(slot)
        self.reverse(slot)
        self.start_leap(slot)

    def random_leap(self, slot: int) -> None:
        self.set_increasing(slot, self.r1() & INCREASING != 0)
        self.start_leap(slot)

    def start_leap(self, slot: int) -> None:
        ram = self.ram
        line = ram[ENEMY_LANE + slot]
        if self.is_open():
            beyond = line == 0 if ram[ENEMY_TYPE + slot] & INCREASING else line == 15
            if beyond:
                self.reverse(slot)
        ram[ENEMY_TYPE + slot] |= FLIPPING
        if ram[ENEMY_TYPE + slot] & INCREASING:
            ram[ENEMY_LANE + slot] = (line - 1) & 15
            ram[ENEMY_EDGE + slot] = 0x87
        else:
            ram[ENEMY_EDGE + slot] = 0x81

    # --- Pulsars (4.6, 4.7) -------------------------------------------------------------------------------------------

    def script_pulsar_begin(self, slot: int) -> None:
        """$72."""
        self.set_counter(slot, self.ram[PULSAR_WAIT])
        self.pulsar_move(slot, 0x76)

    def script_pulsar_wait(self, slot: int) -> None:
        """$76."""
        if self.count_down(slot):
            self.script_pulsar_decide(slot)
        else:
            self.pulsar_move(slot, 0x76)

    def script_pulsar_decide(self, slot: int) -> None:
        """$7D."""
        if self.pulse_live_or_soon():
            self.pulsar_move(slot, 0x7D)
        else:
            self.aim_at_player(slot)
            self.start_flip(slot)
            self.set_resume(slot, 0x82)

    def script_pulsar_flip(self, slot: int) -> None:
        """$82."""
        if self.flip_step(slot):
            self.script_pulsar_begin(slot)

    def pulse_live_or_soon(self) -> bool:
        phase = self.ram[PULSE_PHASE]
        ahead = (phase + 4 * self.ram[PULSE_STEP]) & 0xFF
        return not (phase & 0x80 and ahead & 0x80)

    def pulsar_move(self, slot: int, resume: int) -> None:
        """Move and pulse; then the resume point, unless the pulsar has become a rim rider."""
        ram = self.ram
        result = Climb.MOVED
        if ram[ENEMY_INFO + slot] & MOVING_AWAY:
            self.descend(slot, PULSAR)
            if ram[ENEMY_DEPTH + slot] >= ram[PULSE_DEPTH] or ram[NYMPHS_LEFT] == 0:
                ram[ENEMY_INFO + slot] ^= MOVING_AWAY
        else:
            lethal = ram[ENEMY_DEPTH + slot] < ram[PULSE_DEPTH]
            result = self.climb(slot, PULSAR if lethal else FLIPPER)
        self.pulse_kill_test(slot)
        if not self.leaves_script(slot, result):
            self.set_resume(slot, resume)

    def pulse_kill_test(self, slot: int) -> None:
        ram = self.ram
        live = ram[PULSE_PHASE] & 0x80 == 0
        if live and ram[ENEMY_DEPTH + slot] < ram[PULSE_DEPTH] and self.shares_lane_with_player(slot):
            self.kill_player(BLOWN_UP, EXPLODE_PLAYER)

    def update_pulse(self) -> None:
        ram = self.ram
        self.add(PULSE_PHASE, signed8(ram[PULSE_STEP]))
        phase = signed8(ram[PULSE_PHASE])
        if phase >= 15 or phase < -63:
            ram[PULSE_STEP] = -ram[PULSE_STEP] & 0xFF

    # --- Spikers (4.9) ------------------------------------------------------------------------------------------------

    def script_spiker(self, slot: int) -> None:
        """$00, $05."""
        if self.climb_ends_tick(slot):
            return
        if self.spiker_upkeep(slot):
            if not self.climb_ends_tick(slot):
                self.set_resume(slot, 0x09)
        else:
            self.set_resume(slot, 0x05)

    def spiker_upkeep(self, slot: int) -> bool:
        """True when the spiker has turned into a tanker."""
        ram = self.ram
        spike = SPIKE + ram[ENEMY_LANE + slot]
        depth = ram[ENEMY_DEPTH + slot]
        if ram[spike] == 0:
            ram[spike] = 0xF1
        if depth < ram[spike]:
            ram[spike] = depth
        if depth < 0x20:
            ram[ENEMY_INFO + slot] |= MOVING_AWAY
            ram[ENEMY_DEPTH + slot] = 0x20
        elif depth >= 0xF2:
            self.relocate_spiker(slot)
            ram[ENEMY_DEPTH + slot] = FAR_END
            if ram[NYMPHS_LEFT] == 0:
                ram[ENEMY_INFO + slot] = (ram[ENEMY_INFO + slot] & ~CARGO_BITS & 0xFF) | 1
                ram[ENEMY_TYPE + slot] = (ram[ENEMY_TYPE + slot] & ~TYPE_BITS & 0xFF) | TANKER
                return True
        return False

    def relocate_spiker(self, slot: int) -> None:
        """To the lane with the shortest spike; of equals, the one visited last."""
        ram = self.ram
        lane = self.r2() & 15
        best_lane, best_value = lane, -1
        for _ in range(LANES):
            if not (lane == 15 and self.is_open()):
                value = ram[SPIKE + lane] or 0xFF
                if value >= best_value:
                    best_lane, best_value = lane, value
            lane = (lane - 1) & 15
        ram[TYPE_ROOM + SPIKER] = 0xFF  # left behind by the search
        ram[ENEMY_LANE + slot] = best_lane
        ram[ENEMY_EDGE + slot] = (best_lane + 1) & 15
        ram[ENEMY_INFO + slot] &= ~MOVING_AWAY & 0xFF

    # --- Tankers (4.8) ------------------------------------------------------------------------------------------------

    def split_by_itself(self, slot: int) -> None:
        """Closer than $20. The resume point becomes the cargo's entry even if no piece took the slot (conv.)."""
        ram = self.ram
        cargo = ram[ENEMY_INFO + slot] & CARGO_BITS
        depth, lane = ram[ENEMY_DEPTH + slot], ram[ENEMY_LANE + slot]
        self.set_resume(slot, self.near_birth(CARGO_TYPE[cargo])[1])
        self.remove_enemy(slot)
        self.release_cargo(cargo, lane, depth)

    def near_birth(self, kind: int) -> tuple[int, int]:
        """enemy_info and script entry of a piece born closer than $20."""
        return {FLIPPER: (MAY_SHOOT, 0x07), PULSAR: (0x00, 0x72), FUSEBALL: (0x00, 0x61)}[kind]

    def release_cargo(self, cargo: int, tanker_lane: int, depth: int) -> None:
        kind = CARGO_TYPE[cargo]
        info, script = self.near_birth(kind) if depth < 0x20 else self.nymph_birth(kind)
        first = (tanker_lane - 1) & 15
        if first == 15 and self.is_open():
            first = 0
        if not self.activate_enemy(kind, info, script, first, depth):
            return
        second = (first + 2) & 15
        if second == 15 and self.is_open():
            second = 14
        self.activate_enemy(kind | INCREASING, info, script, second, depth)

    # --- Shots (3.3, 4.10, 7.3) ---------------------------------------------------------------------------------------

    def move_shots(self) -> None:
        for slot in range(3, -1, -1):
            if self.ram[ESHOT_DEPTH + slot] != 0:
                self.move_enemy_shot(slot)
        for slot in range(7, -1, -1):
            if self.ram[PSHOT_DEPTH + slot] != 0:
                self.move_player_shot(slot)

    def move_enemy_shot(self, slot: int) -> None:
        ram = self.ram
        speed = ram[ESHOT_SPEED_HI] * 256 + ram[ESHOT_SPEED_LO]
        depth = (ram[ESHOT_DEPTH + slot] * 256 + ram[ESHOT_FRAC + slot] + speed) & 0xFFFF
        ram[ESHOT_DEPTH + slot] = depth >> 8
        ram[ESHOT_FRAC + slot] = depth & 0xFF
        if ram[ESHOT_DEPTH + slot] < ram[PLAYER_DEPTH]:
            ram[ESHOT_DEPTH + slot] = 0
            self.add(ESHOT_COUNT, -1)
            if ram[ESHOT_LANE + slot] == ram[PLAYER_LANE] and self.player_alive():
                self.kill_player(BLOWN_UP, EXPLODE_PLAYER)

    def move_player_shot(self, slot: int) -> None:
        ram = self.ram
        self.add(PSHOT_DEPTH + slot, 5 if ram[PSHOT_HITS + slot] else 9)
        depth = ram[PSHOT_DEPTH + slot]
        spike = SPIKE + ram[PSHOT_LANE + slot]
        if ram[spike] != 0 and depth >= ram[spike]:
            ram[spike] = depth if depth < FAR_END else 0
            self.add(PSHOT_HITS + slot, 1)
            self.add_score(0x01, 0x00, 0x00)
        if ram[PSHOT_HITS + slot] >= 2 or depth >= FAR_END:
            ram[PSHOT_DEPTH + slot] = 0
            self.add(PSHOT_COUNT, -1)

    def enemies_fire(self) -> None:
        """4.10."""
        ram = self.ram
        for slot in range(6, -1, -1):
            if ram[ENEMY_DEPTH + slot] < 0x30 or not ram[ENEMY_INFO + slot] & MAY_SHOOT:
                continue
            self.add(ENEMY_SHOT_DELAY + slot, -1)
            if signed8(ram[ENEMY_SHOT_DELAY + slot]) >= 0:
                continue
            ram[ENEMY_SHOT_DELAY + slot] = 0
            if self.is_flipping(slot):
                continue
            if self.r1() >= ENEMY_FIRE_THRESHOLD[ram[ESHOT_COUNT]]:
                self.fire_enemy_shot(slot)

    def fire_enemy_shot(self, shooter: int) -> None:
        ram = self.ram
        for slot in range(ram[SHOT_SLOT_MAX], -1, -1):
            if ram[ESHOT_DEPTH + slot] == 0:
                ram[ESHOT_DEPTH + slot] = ram[ENEMY_DEPTH + shooter]
                ram[ESHOT_LANE + slot] = ram[ENEMY_LANE + shooter]
                ram[ESHOT_EDGE + slot] = ram[ENEMY_EDGE + shooter]
                ram[ENEMY_SHOT_DELAY + shooter] = ram[SHOT_HOLDOFF]
                self.add(ESHOT_COUNT, 1)
                return

    # --- Collisions of player shots (7.1) -----------------------------------------------------------------------------

    def check_player_shots(self) -> None:
        for slot in range(7, -1, -1):
            if self.ram[PSHOT_DEPTH + slot] != 0:
                self.check_player_shot(slot)

    def check_player_shot(self, shot: int) -> None:
        """One shot can destroy several objects in a pass; it is removed at the end of the pass."""
        ram = self.ram
        spent = False
        for slot in range(6, -1, -1):
            if ram[ENEMY_DEPTH + slot] != 0 and self.shot_hits_enemy(shot, slot):
                spent = True
                self.shoot_enemy(slot)
        for slot in range(3, -1, -1):
            if ram[ESHOT_DEPTH + slot] != 0 and self.shot_hits_shot(shot, slot):
                spent = True
                self.explode(EXPLODE_ENEMY, ram[ESHOT_LANE + slot], ram[ESHOT_DEPTH + slot])
                ram[ESHOT_DEPTH + slot] = 0
                self.add(ESHOT_COUNT, -1)
        if spent:
            ram[PSHOT_DEPTH + shot] = 0
            ram[PSHOT_HITS + shot] = 0
            self.add(PSHOT_COUNT, -1)

    def shot_hits_enemy(self, shot: int, slot: int) -> bool:
        ram = self.ram
        depth = ram[ENEMY_DEPTH + slot]
        lane = ram[ENEMY_LANE + slot]
        kind = self.kind_of(slot)
        if abs(depth - ram[PSHOT_DEPTH + shot]) >= ram[TYPE_TOL + kind]:
            return False
        between_lanes = ram[ENEMY_EDGE + slot] & 0x80 != 0
        same_lane = lane == ram[PSHOT_LANE + shot]
        if kind == FUSEBALL:
            return same_lane and between_lanes and depth != ram[PLAYER_DEPTH]
        if between_lanes:
            return same_lane or lane == ram[PSHOT_EDGE + shot]
        return same_lane and depth != ram[PLAYER_DEPTH]

    def shot_hits_shot(self, shot: int, slot: int) -> bool:
        ram = self.ram
        near = abs(ram[ESHOT_DEPTH + slot] - ram[PSHOT_DEPTH + shot]) < ram[SHOT_SHOT_TOL]
        return near and ram[ESHOT_LANE + slot] == ram[PSHOT_LANE + shot]

    def shoot_enemy(self, slot: int) -> None:
        """Explosion, counters, cargo, points, in this order (7.1, 8.1)."""
        ram = self.ram
        lane, depth = ram[ENEMY_LANE + slot], ram[ENEMY_DEPTH + slot]
        if self.kind_of(slot) == FUSEBALL:
            explosion = {1: 3, 2: 4}.get(self.r2() & 7, 2)
            self.explode(explosion, lane, depth)
            self.remove_enemy(slot)
            self.add_score(*FUSEBALL_POINTS[explosion])
            return
        cargo = ram[ENEMY_INFO + slot] & CARGO_BITS
        shown_lane = (lane - 1) & 15 if ram[ENEMY_TYPE + slot] & 0xC0 == 0xC0 else lane
        self.explode(EXPLODE_ENEMY, shown_lane, depth)
        self.remove_enemy(slot)
        if cargo:
            self.release_cargo(cargo, lane, depth)
        self.add_score(*POINTS[self.kind_of(slot)])  # the slot may hold a piece of the tanker by now

    def remove_enemy(self, slot: int) -> None:
        """Counters and slot of a destroyed or split enemy (7.1, 4.8)."""
        ram = self.ram
        kind = self.kind_of(slot)
        on_rim = ram[ENEMY_DEPTH + slot] == ram[PLAYER_DEPTH] and kind != FUSEBALL
        self.add(ON_RIM if on_rim else IN_TUBE, -1)
        self.add(TYPE_COUNT + kind, -1)
        ram[ENEMY_DEPTH + slot] = 0

    # --- Explosions (4.11) --------------------------------------------------------------------------------------------

    def explode(self, kind: int, lane: int, depth: int) -> None:
        ram = self.ram
        slot = -1
        for candidate in range(7, -1, -1):
            if ram[EXPL_DEPTH + candidate] == 0:
                slot = candidate
                self.add(EXPLOSION_COUNT, 1)
                break
        if slot < 0:
            phases = list(ram[EXPL_PHASE : EXPL_PHASE + EXPLOSIONS])
            slot = phases.index(max(phases))
        ram[EXPL_LANE + slot] = lane
        ram[EXPL_TYPE + slot] = kind
        ram[EXPL_DEPTH + slot] = depth
        ram[EXPL_PHASE + slot] = 0

    def run_explosions(self) -> None:
        ram = self.ram
        running = 0
        for slot in range(7, -1, -1):
            if ram[EXPL_DEPTH + slot] == 0:
                continue
            kind = ram[EXPL_TYPE + slot]
            self.add(EXPL_PHASE + slot, EXPLOSION_STEP[kind])
            if ram[EXPL_PHASE + slot] >= EXPLOSION_LIMIT[kind]:
                ram[EXPL_DEPTH + slot] = 0
            else:
                running += 1
        ram[EXPLOSION_COUNT] = running

    # --- Death (3.5, 3.6) ---------------------------------------------------------------------------------------------

    def kill_player(self, edge: int, explosion: int) -> None:
        self.ram[PLAYER_EDGE] = edge
        self.explode(explosion, self.ram[PLAYER_LANE], self.ram[PLAYER_DEPTH])

    def run_death(self) -> None:
        ram = self.ram
        if ram[PSHOT_COUNT] or ram[ESHOT_COUNT] or ram[EXPLOSION_COUNT]:
            return
        for slot in range(6, -1, -1):
            if ram[ENEMY_DEPTH + slot] != 0:
                fallen = ram[ENEMY_DEPTH + slot] + 15
                ram[ENEMY_DEPTH + slot] = 0 if fallen >= FAR_END else fallen
        if ram[P1_LIVES] != 1:
            fallen = ram[PLAYER_DEPTH] + 15
            ram[PLAYER_DEPTH] = fallen & 0xFF
            finished = fallen >= FAR_END
        else:
            self.set_eye(ram[EYE_HI] * 256 + ram[EYE_LO] - 0x20)
            finished = ram[EYE_HI] == 0xFA
        if finished:
            self.clear_shots()
            ram[NYMPHS_LEFT] = min(63, (self.enemies_alive() + ram[NYMPHS_LEFT]) & 0xFF)
            ram[GAMESTATE] = 0x06

    # --- Score (section 8) --------------------------------------------------------------------------------------------

    def add_score(self, low: int, middle: int, high: int) -> None:
        """Add BCD points; real game only."""
        ram = self.ram
        if not self.is_real_game():
            return
        ram[SCORE], carry = bcd_add(ram[SCORE], low, 0)
        ram[SCORE + 1], middle_carry = bcd_add(ram[SCORE + 1], middle, carry)
        ram[SCORE + 2], _ = bcd_add(ram[SCORE + 2], high, middle_carry)
        if self.earns_life(high, middle_carry != 0) and ram[P1_LIVES] < 6:
            self.add(P1_LIVES, 1)
            ram[BONUS_FLASH] = 0x20

    def earns_life(self, added_high: int, crossed: bool) -> bool:
        """8.3."""
        interval = self.ram[BONUS_INTERVAL]
        if interval == 0:
            return False
        if added_high != 0:
            if interval <= added_high:
                return True
        elif not crossed:
            return False
        return bcd_to_int(self.ram[SCORE + 2]) % interval == 0

    # --- Level end and zoom (section 9) -------------------------------------------------------------------------------

    def check_level_end(self) -> None:
        ram = self.ram
        if ram[DROP_FLAG] != 0:
            return
        if self.level_is_done():
            self.end_level()
            self.clear_shots()
        elif self.demo_combination() and self.is_real_game() and ram[BUTTONS] & BUTTON_START:
            self.end_level()

    def level_is_done(self) -> bool:
        ram = self.ram
        if ram[NYMPHS_LEFT] != 0 or ram[EXPLOSION_COUNT] != 0:
            return False
        return all(ram[ENEMY_DEPTH + slot] < 0x11 for slot in range(ENEMIES))

    def end_level(self) -> None:
        ram = self.ram
        ram[GAMESTATE] = 0x20
        ram[DROP_FLAG] |= 0x80
        ram[DROP_SPEED_LO] = 0x00
        ram[DROP_SPEED_HI] = 0x02
        ram[PLAYER_DEPTH_FRAC] = 0
        ram[EYE_FRAC] = 0
        ram[SPIKE_WARNING] = sum(1 for lane in range(LANES) if ram[SPIKE + lane] != 0)
        ram[ZAP_TIMER] = 0xFF
        if ram[SPIKE_WARNING] != 0 and ram[LEVEL_INDEX] < 7:
            self.start_delay(30, 0x20)
            ram[SPIKE_WARNING] = 0x80

    def drop_player(self) -> None:
        """The drop step."""
        ram = self.ram
        speed = ram[DROP_SPEED_HI] * 256 + ram[DROP_SPEED_LO]
        depth = ram[PLAYER_DEPTH] * 256 + ram[PLAYER_DEPTH_FRAC] + speed
        ram[PLAYER_DEPTH_FRAC] = depth & 0xFF
        if depth >> 8 >= FAR_END:
            ram[PLAYER_DEPTH] = 0xFF
            ram[GAMESTATE] = 0x0E
        else:
            ram[PLAYER_DEPTH] = depth >> 8
        eye = (ram[EYE_HI] * 65536 + ram[EYE_LO] * 256 + ram[EYE_FRAC] + speed) & 0xFFFFFF
        ram[EYE_HI], ram[EYE_LO], ram[EYE_FRAC] = eye >> 16, (eye >> 8) & 0xFF, eye & 0xFF
        speed = (speed + 0x20 + min((4 * ram[LEVEL_INDEX]) & 0xFF, 0x30)) & 0xFFFF
        ram[DROP_SPEED_HI], ram[DROP_SPEED_LO] = speed >> 8, speed & 0xFF
        if ram[PLAYER_DEPTH] < FAR_END:
            spike = ram[SPIKE + ram[PLAYER_LANE]]
            if spike != 0 and spike < ram[PLAYER_DEPTH]:
                self.kill_player(BLOWN_UP, EXPLODE_PLAYER)
                self.clear_shots()
