"""What the demo cabinet draws with: the vector generator's state PROM, its letters, and the tubes seen in perspective.

The board's vector generator is a state machine: a PROM says which of eight circuits works next, by operation and state.
Ours is written down below as the order in which each operation needs them. Letters and tubes are our own as well: not a
byte comes from the original game.
"""

import math
from collections.abc import Mapping
from typing import Final

# The circuits, each a state of the generator: latches take the next byte, strobes work with what was taken.
_Y_LOW, _Y_HIGH, _X_LOW, _X_HIGH, _STROBE_0, _STROBE_1, _STROBE_2, _STROBE_3 = range(8, 16)
_ORDER: Final = (  # by operation; every one begins with _Y_HIGH, which also takes the operation itself
    (_Y_LOW, _X_HIGH, _X_LOW, _STROBE_0, _STROBE_1, _STROBE_3),  # VCTR: a line
    (_Y_LOW, _STROBE_3),  # HALT
    (_X_HIGH, _STROBE_0, _STROBE_1, _STROBE_3),  # SVEC: a short line
    (_Y_LOW, _STROBE_2),  # STAT: colour or scale
    (_Y_LOW, _STROBE_3),  # CNTR: the beam to the centre; without the first strobe it takes its time
    (_Y_LOW, _STROBE_0, _STROBE_1, _STROBE_2),  # JSRL
    (_Y_LOW, _STROBE_1, _STROBE_2),  # RTSL
    (_Y_LOW, _STROBE_2),  # JMPL
)
PROM_BYTES: Final = 256
_RUNNING: Final = 0x80  # of a PROM address; behind it three bits of operation and four of state

VECTOR_BASE, VECTOR_ROM, VECTOR_ROM_BYTES = 0x2000, 0x3000, 0x1000
CENTRE, RETURN = 0x8000, 0xC000
_SHORT, _CALL, _JUMP = 0x4000, 0xA000, 0xE000
_BRIGHT: Final = 6
_IDLE_TURNS: Final = 8  # of 2.7 ms each between two passes over the picture

# A letter is strokes between points a to o of a grid, three wide and five high: a b c on top, m n o at the bottom.
_LETTERS: Final = {
    "0": "acoma", "1": "bn", "2": "acigmo", "3": "acom gi", "4": "agi co", "5": "cagiom", "6": "camoig", "7": "aco",
    "8": "acoma gi", "9": "igacom", "A": "mebfo gi", "B": "mabfhgm hno", "C": "camo", "D": "mabfln m", "E": "camo gh",
    "F": "cam gh", "G": "camoih", "H": "am co gi", "I": "bn", "J": "cojm", "K": "am cgo", "L": "amo", "M": "mahco",
    "N": "maoc", "O": "acoma", "P": "macig", "Q": "acoma ho", "R": "macig ho", "S": "cagiom", "T": "ac bn",
    "U": "amoc", "V": "anc", "W": "amhoc", "X": "ao cm", "Y": "ahc hn", "Z": "acmo", " ": "",
}  # fmt: skip
_TEXTS: Final = ("PROTEGE", "PRESS START", "START AT LEVEL ", "GAME OVER", "AVOID SPIKES", "LEVEL ", "LIVES ")

_Outline = list[tuple[float, float]]
# Whether it is open, and its corners: counter-clockwise, or from lane 0 on. Every second one is open.
_SHAPES: Final[tuple[tuple[bool, _Outline], ...]] = (
    (False, [(math.cos(i * math.pi / 8), math.sin(i * math.pi / 8)) for i in range(16)]),
    (True, [(-1, -0.55), (1, -0.55)]),
    (False, [(1, 0), (1, 1), (-1, 1), (-1, -1), (1, -1)]),
    (True, [(-1, 0.9), (0, -0.9), (1, 0.9)]),
    (False, [(1, 0), (0, 1), (-1, 0), (0, -1)]),
    (True, [(-1, 0.8), (-0.8, -0.5), (-0.3, -0.9), (0.3, -0.9), (0.8, -0.5), (1, 0.8)]),
    (False, [(0.9, -0.7), (0, 1), (-0.9, -0.7)]),
    (True, [(-1, -0.2), (-0.6, -0.7), (-0.2, -0.2), (0.2, -0.2), (0.6, -0.7), (1, -0.2)]),
)
SHAPES: Final = len(_SHAPES)
_ROWS: Final = 32  # of eight steps of depth each
_RIM_ROW: Final = 2
_RIM_RADIUS: Final = 106
_EYE: Final = 2.6  # rows in front of the first


def state_prom() -> bytes:
    """The next state by address; a generator that was halted rests in state 0, which does nothing."""
    prom = bytearray(PROM_BYTES)
    for operation, order in enumerate(_ORDER):
        following = dict(zip((_Y_HIGH, *order), (*order, _Y_HIGH), strict=True))
        for state in range(16):
            prom[_RUNNING | operation << 4 | state] = following.get(state, _Y_HIGH)
    return bytes(prom)


def vector_rom() -> tuple[bytes, dict[str, int]]:
    """Letters, texts and the pause between pictures, and the words that call them: DIGIT_0, TEXT_LEVEL, PAUSE."""
    words: list[int] = []
    symbols: dict[str, int] = {}

    def here(operation: int) -> int:
        return operation | (VECTOR_ROM - VECTOR_BASE) // 2 + len(words)

    symbols["PAUSE"] = here(_JUMP)
    words += [CENTRE] * _IDLE_TURNS + [_JUMP]  # back to the very first word: there MAME shows what was drawn
    called = {}
    for letter, strokes in _LETTERS.items():
        called[letter] = here(_CALL)
        at = (0, 0)
        for stroke in strokes.split():
            for step, point in enumerate(stroke):
                place = ("abcdefghijklmno".index(point) % 3, 4 - "abcdefghijklmno".index(point) // 3)
                words.append(_short(3 * (place[0] - at[0]), 3 * (place[1] - at[1]), step > 0))
                at = place
        words += [_short(3 * (3 - at[0]), -3 * at[1], False), RETURN]
    for text in _TEXTS:
        symbols["TEXT_" + text.strip().replace(" ", "_")] = here(_CALL)
        words += [called[letter] for letter in text] + [RETURN]
    symbols |= {f"DIGIT_{digit}": called[digit] for digit in "0123456789"}
    rom = b"".join(word.to_bytes(2, "little") for word in words)
    assert len(rom) <= VECTOR_ROM_BYTES
    return rom.ljust(VECTOR_ROM_BYTES, b"\0"), symbols


def _short(x: int, y: int, visible: bool) -> int:
    return _SHORT | (y & 31) << 8 | (_BRIGHT if visible else 0) << 5 | x & 31


def tables() -> Mapping[str, bytes]:
    """Tables for the program: corners of the tubes by row of depth, directions of their lanes, which are open."""
    places, angles = bytearray(), bytearray()
    for is_open, corners in _SHAPES:
        outline = _along(corners, is_open)
        for row in range(_ROWS):
            near = (_RIM_ROW + _EYE) / (row + _EYE) if row >= _RIM_ROW else 1 + 0.09 * (_RIM_ROW - row)
            for x, y in outline:
                at = (near * x, near * 0.8 * y - 0.15 * (1 - near))  # a tall screen, seen from a little above
                places += bytes(max(0, min(255, round(128 + _RIM_RADIUS * where))) for where in at)
        for (x, y), (next_x, next_y) in zip(outline, outline[1:] + outline[:1], strict=True):
            angles.append(round(math.atan2(next_y - y, next_x - x) / (math.pi / 8)) % 16)
    opens = bytes(0xFF if is_open else 0 for is_open, _ in _SHAPES)
    return {"places": bytes(places), "angles": bytes(angles), "opens": opens}


def _along(corners: _Outline, is_open: bool) -> _Outline:
    """Sixteen points at equal distances along an outline; a closed one comes back to its first."""
    path = corners if is_open else [*corners, corners[0]]
    lengths = [math.dist(a, b) for a, b in zip(path, path[1:])]
    found = []
    for i in range(16):
        way, part = sum(lengths) * i / (15 if is_open else 16), 0
        while part < len(lengths) - 1 and way > lengths[part] + 1e-9:
            way, part = way - lengths[part], part + 1
        (x, y), (next_x, next_y), far = path[part], path[part + 1], way / lengths[part]
        found.append((x + far * (next_x - x), y + far * (next_y - y)))
    return found
