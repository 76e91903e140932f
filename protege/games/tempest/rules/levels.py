"""Tubes and per-level parameters as tables.

The machine keeps each parameter as a list of level ranges with a rule; here the lists are data and evaluated once, into
`LEVEL_BYTES`: for every difficulty and effective level the bytes that a new level or life writes at `LEVEL_ADDRESSES`.
Levels are 1-based here (what the player sees); RAM holds the index, level - 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from protege.games.tempest.rules import ram

LAST_LEVEL: Final = 99
EASY, MEDIUM, HARD = 1, 0, 2  # the difficulty switch as the machine stores it
DIFFICULTIES: Final = {"easy": EASY, "medium": MEDIUM, "hard": HARD}

# Level select: the 28 start levels and the bonus each pays when the first level is done.
START_LEVELS: Final = np.array(
    [1, 3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 31, 33, 36, 40, 44, 47, 49, 52, 56, 60, 63, 65, 73, 81],
    np.int64,
)
START_BONUSES: Final = 1000 * np.array(
    [0, 6, 16, 32, 54, 74, 94, 114, 134, 152, 170, 188, 208, 226, 248, 266, 300, 340, 382, 415, 439, 472, 531, 581]
    + [624, 656, 766, 898],
    np.int64,
)


@dataclass(frozen=True)
class _Shape:
    tube: int
    name: str
    is_open: bool
    x: str  # 16 hexadecimal bytes
    y: str
    angle: str  # 16 hexadecimal digits, 22.5 degrees each
    eye_distance: int  # the camera rests this far in front of the rim
    camera_height: int


# In the order in which the levels use them; the sixteen repeat.
SHAPES: Final = (
    _Shape(0, "circle", False, "f0e7cfaa805631191019315680aacfe7", "80aacfe7f0e7cfaa8056311910193156", "56789abcdef01234", 0x18, 0x50),
    _Shape(1, "square", False, "f0f0f0b8804810101010104880b8f0f0", "80b8f0f0f0f0f0b88048101010101048", "448888cccc000044", 0x1C, 0x50),
    _Shape(2, "plus", False, "f0f0b8b8804848101010484880b8b8f0", "80b8b8f0f0f0b8b88048481010104848", "48488c8cc0c00404", 0x18, 0x50),
    _Shape(3, "bow tie", False, "ecd5b190704f2b14142b4f7090b1d5ec", "94b0b8a7a7b8b0946c5048595948506c", "679879acef10f124", 0x0F, 0x68),
    _Shape(4, "pinched cross", False, "f0c0a0946c6040101040606c94a0c0f0", "96a3c5f0f0c5a3966a5d3b10103b5d6a", "7658ba9cfed03214", 0x18, 0x50),
    _Shape(5, "triangle", False, "d9c2ac978069523c2710355a80a6caf0", "3d6a97c4f0c4976a3d10101010101010", "5555bbbbb0000005", 0x18, 0x50),
    _Shape(6, "clover", False, "eae09c8064201650162064809ce0eab0", "a0e0eab0eae0a0806020165016206080", "48b58ce9c03d0472", 0x18, 0x68),
    _Shape(7, "V", True, "101e2c3a48566470909eacbac8d6e4f0", "f0d0b090705030101030507090b0d0f0", "ddddddd033333330", 0x18, 0xB0),
    _Shape(13, "stairs", True, "10103030505070709090b0b0d0d0f0f0", "90707050503030101030305050707090", "c0c0c0c040404040", 0x0C, 0xB0),
    _Shape(9, "U", True, "101010101629466997bad7eaf0f0f0f0", "f0cba6805c3920121220395c80a6cbf0", "cccdeff011234440", 0x18, 0x50),
    _Shape(8, "flat line", True, "101e2d3c4b5a69788796a5b4c3d2e1f0", "40404040404040404040404040404040", "0000000000000000", 0x0A, 0xA0),
    _Shape(12, "heart", False, "daa48780795c261010204880b8e0f0f0", "e4e8b780b7e8e4b27a47201020477ab2", "8bc458bcdef12345", 0x18, 0x20),
    _Shape(14, "star", False, "b0805047183018475080b0b9e8d4e8b9", "e6d0e6b9ae805247143014475280aeb9", "a6c8ea0c2e406284", 0x14, 0x60),
    _Shape(15, "wave", True, "101e21283c5566738d9aabc4d8dfe2f0", "7e6a513a2c2c384e4e382c2c3a516a7e", "ecde0220ee023420", 0x0A, 0xA0),
    _Shape(10, "crooked V", True, "102430363e495a7594a4acbadae2eaf0", "c0a68a6a4a2f1424203959757290b0d0", "edcddd1f23303330", 0x10, 0x90),
    _Shape(11, "figure eight", False, "80704820102048708090b8e0f0e0b890", "8057485780a9baa98057485780a9baa9", "b97531fddf13579b", 0x0F, 0x80),
)  # fmt: skip

# What the tube-loading routine copies, by position 0..15 in that order.
TUBE_NUMBER: Final = np.array([s.tube for s in SHAPES], np.uint8)
TUBE_OPEN: Final = np.array([0xFF if s.is_open else 0 for s in SHAPES], np.uint8)
TUBE_REST: Final = np.array([256 - s.eye_distance for s in SHAPES], np.uint8)  # low byte of the resting camera depth
TUBE_POINTS: Final = np.array(  # (positions, 48): x, y, angle, as they lie at ram.TUBE_X
    [list(bytes.fromhex(s.x + s.y)) + [int(digit, 16) for digit in s.angle] for s in SHAPES], np.uint8
)


_Range = tuple[int, int, Callable[[int], int]]  # first level, last level, level -> value


def _ramp(first: int, last: int, start: int, step: int) -> _Range:
    return first, last, lambda level: (start + (level - first) * step) % 256


def _over(first: int, last: int, *values: int) -> _Range:
    """These values in turn."""
    return first, last, lambda level: values[(level - first) % len(values)]


def _list(first: int, values: Sequence[int]) -> _Range:
    return _over(first, first + len(values) - 1, *values)


def _value(ranges: Sequence[_Range], level: int) -> int:
    return next((rule(level) for first, last, rule in ranges if first <= level <= last), 0)


_FLIPPER_SPEED = (
    _ramp(1, 8, 212, -5), _list(9, [175, 172, 172, 172, 168, 164, 160, 160]), _ramp(17, 25, 175, -3), _ramp(26, 32, 157, -3),
    _ramp(33, 39, 148, -3), _ramp(40, 48, 146, -1), _ramp(49, 64, 136, -1), _over(65, 99, 96, 65),
)  # fmt: skip
_SHOT_FASTER = -64  # relative to the flipper's speed value
_SPIKER_FASTER = (_over(1, 20, 0), _over(21, 32, -48), _over(33, 48, -40), _over(49, 99, -48))

_SIMPLE: Final = {
    ram.SHOT_HOLDOFF: (_ramp(1, 20, 80, -3), _over(21, 64, 20), _over(65, 99, 10)),
    ram.SHOT_SLOT_MAX: (_list(1, [1, 1, 1, 2, 3, 2, 2, 3, 3]), _over(10, 64, 2), _over(65, 99, 3)),
    ram.ENEMY_SLOT_MAX: (_over(1, 99, 6),),
    ram.START_NYMPHS: (
        _list(1, [10, 12, 15, 17, 20, 22, 20, 24, 27, 29, 27, 24, 26, 28, 30, 27]), _ramp(17, 26, 20, 1), _over(27, 39, 27),
        _ramp(40, 48, 29, 1), _ramp(49, 64, 31, 1), _ramp(65, 80, 35, 1), _ramp(81, 99, 43, 1),
    ),
    ram.START_SPIKE: (
        _over(1, 99, 0, 0, 0, 0xE0, 0xD8, 0xD4, 0xD0, 0xC8, 0xC0, 0xB8, 0xB0, 0xA8, 0xA0, 0xA0, 0xA0, 0xA8),
    ),
    ram.FLIPPER_SCRIPT: (
        _over(1, 99, 0x07, 0x0B, 0x19, 0x24, 0x53, 0x0B, 0x24, 0x19, 0x53, 0x87, 0x24, 0x19, 0x53, 0x07, 0x87, 0x24),
    ),
    ram.TYPE_MIN + ram.FLIPPER: (_over(1, 4, 1),),
    ram.TYPE_MAX + ram.FLIPPER: (_over(1, 4, 4), _over(5, 16, 5), _over(17, 19, 3), _over(20, 25, 4), _over(26, 99, 5)),
    ram.TYPE_MIN + ram.PULSAR: (_over(17, 32, 2), _over(33, 99, 1)),
    ram.TYPE_MAX + ram.PULSAR: (_list(17, [5, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 4, 2]), _over(33, 99, 3)),
    ram.TYPE_MIN + ram.TANKER: (_list(1, [0, 0, 1, 0]), _over(5, 99, 1)),
    ram.TYPE_MAX + ram.TANKER: (
        _list(1, [0, 0, 1, 0, 1]), _over(6, 16, 2), _over(17, 32, 1), _over(33, 44, 2), _over(45, 99, 3),
    ),
    ram.TYPE_MIN + ram.SPIKER: (
        _list(1, [0, 0, 0, 1]), _over(5, 16, 2), _over(20, 32, 1), _over(35, 39, 1), _over(44, 99, 1),
    ),
    # The machine's data meant spikers for 35-39 too, but that range's lower bound is mistyped: they have a minimum and no room.
    ram.TYPE_MAX + ram.SPIKER: (
        _list(1, [0, 0, 0, 2, 3, 4]), _over(7, 10, 4), _over(11, 16, 3), _over(20, 25, 2),
        _list(26, [1, 2, 2, 2, 1, 1, 2]), _over(43, 99, 1),
    ),
    ram.TYPE_MIN + ram.FUSEBALL: (_over(11, 16, 1), _over(22, 25, 1), _over(27, 99, 1)),
    ram.TYPE_MAX + ram.FUSEBALL: (
        _over(11, 16, 1), _over(22, 25, 1), _over(27, 32, 1), _over(33, 39, 4), _over(40, 99, 3),
    ),
    ram.TANKER_CARGO + 0: (_over(1, 99, 1),),
    ram.TANKER_CARGO + 1: (_over(1, 99, 1),),
    ram.TANKER_CARGO + 2: (_over(1, 32, 1), _over(33, 40, 3), _over(41, 99, 2)),
    ram.TANKER_CARGO + 3: (_over(1, 48, 1), _over(49, 99, 3)),
    ram.PULSE_DEPTH: (_over(1, 64, 0xA0), _over(65, 99, 0xC0)),
    ram.PULSE_STEP: (_over(1, 48, 4), _over(49, 64, 6), _over(65, 99, 8)),
    ram.PULSAR_WAIT: (_list(17, [40, 20]), _over(19, 32, 20, 40), _ramp(33, 39, 20, -1), _over(40, 99, 20, 10)),
    ram.PULSAR_FIRE: (_over(60, 99, ram.MAY_SHOOT),),
    ram.FUSE_FLAGS: (_over(17, 32, 0x00, 0x40), _over(33, 48, 0x40, 0xC0), _over(49, 99, 0xC0)),
    ram.FUSE_THRESHOLD: (_over(1, 16, 220), _over(17, 39, 192), _ramp(40, 64, 192, 1), _over(65, 99, 230)),
    ram.RIM_FLIP_STEPS: (_over(1, 32, 2), _over(33, 99, 3)),
}  # fmt: skip


def _speed_word(value: int) -> int:
    return (0xFF00 + value) * 8 % 0x10000


def _tolerance(word: int) -> int:
    return (13 + 255 - (word >> 8)) >> 1


def level_parameters(level: int, difficulty: int = MEDIUM) -> dict[int, int]:
    """Address -> byte for one effective level, as a new level or life writes them."""
    found = {address: _value(ranges, level) for address, ranges in _SIMPLE.items()}
    flipper = _value(_FLIPPER_SPEED, level)
    shot = _speed_word((flipper + _SHOT_FASTER) % 256)
    spiker = _speed_word((flipper + _value(_SPIKER_FASTER, level)) % 256)
    # The option is applied after shots and spikers took the unchanged flipper value.
    if difficulty == EASY:
        found[ram.SHOT_SLOT_MAX] -= 1
        flipper += ((255 - flipper) >> 3) + ((255 - flipper) >> 2 & 1)
        if level - 1 < 17:
            found[ram.RIM_FLIP_STEPS] -= 1
    elif difficulty == HARD:
        found[ram.SHOT_SLOT_MAX] = min(3, found[ram.SHOT_SLOT_MAX] + 1)
        flipper = (flipper + (flipper >> 3 | 0xE0) + (flipper >> 2 & 1)) % 256
        nymphs = found[ram.START_NYMPHS]
        found[ram.START_NYMPHS] = nymphs + (nymphs >> 3) + (nymphs >> 2 & 1)
        found[ram.PULSAR_FIRE] |= ram.MAY_SHOOT
    climb = _speed_word(flipper)
    for kind, word in enumerate((climb, 0xFEA0, climb, spiker, climb * 2 % 0x10000)):
        found[ram.SPEED_LOW + kind] = word & 0xFF
        found[ram.SPEED_HIGH + kind] = word >> 8
        found[ram.TYPE_TOLERANCE + kind] = _tolerance(climb)
    found[ram.TYPE_TOLERANCE + ram.SPIKER] = _tolerance(spiker)
    found[ram.TYPE_TOLERANCE + ram.FUSEBALL] = 6
    found[ram.SHOT_SPEED_LOW], found[ram.SHOT_SPEED_HIGH] = shot & 0xFF, shot >> 8
    found[ram.SHOT_TOLERANCE] = _tolerance(shot)
    return found


LEVEL_ADDRESSES: Final = np.array(sorted(level_parameters(1)), np.int64)
LEVEL_BYTES: Final = np.zeros((4, LAST_LEVEL + 1, len(LEVEL_ADDRESSES)), np.uint8)  # difficulty switch, level, address
for _difficulty in range(4):
    for _level in range(1, LAST_LEVEL + 1):
        _found = level_parameters(_level, MEDIUM if _difficulty == 3 else _difficulty)
        LEVEL_BYTES[_difficulty, _level] = [_found[int(address)] for address in LEVEL_ADDRESSES]
