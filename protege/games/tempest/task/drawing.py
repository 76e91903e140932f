"""RAM -> picture: coloured vectors, pixels.

`vectors` turns a game's bytes into a `Picture`, a plain list of coloured lines that a canvas can draw as well,
`rasterise` that into pixels with a vector tube's soft glow (`render` does both).
Points are complex numbers (x + iy) throughout, so that turning and scaling a shape is one multiplication. The tube's
points are the machine's (0..255, y up) with a depth; on the picture both axes run from -1 to 1, y up.
"""

import cmath
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from protege import ProtegeError
from protege.games.tempest.rules import levels, ram
from protege.kernels import kernel

Points = NDArray[np.complex128]  # (2 * lines,): start and end of each line, in turn
Place = tuple[complex, complex]  # middle of a lane and the way along it
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Picture:
    """Lines to draw, in any order: light adds up."""

    segments: NDArray[np.float32]  # (lines, 4): x, y of the start, x, y of the end, all within [-1, 1], y up
    colours: NDArray[np.uint8]  # (lines, 3)
    brightness: NDArray[np.float32]  # (lines,): 1 is an ordinary line


# Pure blue and red are nearly black on today's screens; these are as bright as they look on the tube.
WHITE, CYAN, YELLOW = (235, 235, 255), (40, 225, 255), (255, 230, 30)
GREEN, PURPLE, BLUE, RED = (40, 255, 70), (205, 60, 255), (50, 85, 255), (255, 45, 40)
_RAINBOW: Final = (RED, YELLOW, GREEN, CYAN, PURPLE, WHITE)


@dataclass(frozen=True)
class _Colours:
    player: Colour
    tanker: Colour
    flipper: Colour
    pulsar: Colour
    spiker: Colour
    tube: Colour
    tube_brightness: float = 0.9


# By groups of 16 levels. The machine draws no tube at all on levels 65 to 80; here it is very faint, so that a viewer
# who has not played the levels before is not lost.
_GROUPS: Final = (
    _Colours(YELLOW, PURPLE, RED, CYAN, GREEN, BLUE),
    _Colours(GREEN, BLUE, PURPLE, YELLOW, CYAN, RED),
    _Colours(BLUE, CYAN, GREEN, PURPLE, RED, YELLOW, 0.7),
    _Colours(BLUE, PURPLE, GREEN, YELLOW, RED, CYAN, 0.7),
    _Colours(YELLOW, PURPLE, RED, CYAN, GREEN, BLUE, 0.22),
    _Colours(RED, PURPLE, YELLOW, CYAN, BLUE, GREEN, 0.7),
)

# Strokes on a grid 4 wide and 6 high: two digits a point, a blank lifts the pen.
_FONT: Final = {
    "0": "103041453616050110", "1": "152620 1030", "2": "05163645440040", "3": "05163645443313 334241301001",
    "4": "30360242", "5": "460603334241301001", "6": "4536160501103041423303", "7": "064620",
    "8": "13334445361605041302011030414233", "9": "0110304145361605041343", "A": "0004264440 0242",
    "B": "00063645443303 3342413000", "C": "4536160501103041", "D": "00062644422000", "E": "46060040 0333",
    "F": "460600 0333", "G": "45361605011030414323", "H": "0006 4046 0343", "I": "1030 1636 2026", "J": "4641301001",
    "K": "0006 460340", "L": "060040", "M": "0006244640", "N": "00064046", "O": "103041453616050110",
    "P": "00063645443303", "Q": "103041453616050110 2240", "R": "00063645443303 2340", "S": "453616050413334241301001",
    "T": "0646 2026", "U": "060110304146", "V": "062046", "W": "0600224046", "X": "0046 0640", "Y": "062346 2320",
    "Z": "06460040", "-": "1333", ".": "2021", "!": "2021 2326",
}  # fmt: skip
_WIDTH: Final = 0.93  # of a character and the gap behind it; they are 1 high


def _lines(*strokes: Sequence[complex]) -> Points:
    """Pen strokes -> start and end of every line."""
    return np.array([p for stroke in strokes for pair in zip(stroke, stroke[1:]) for p in pair], np.complex128)


@lru_cache(maxsize=512)
def _text(text: str) -> Points:
    """A line of text, one unit high, its middle at 0."""
    strokes = [
        [complex(int(x) + 0.8 + i * _WIDTH * 6, int(y)) for x, y in zip(stroke[::2], stroke[1::2])]
        for i, character in enumerate(text)
        for stroke in _FONT.get(character, "").split()
    ]
    return (_lines(*strokes) - complex(_WIDTH * len(text) * 3, 3)) / 6


def _rays(count: int, inner: float, outer: Sequence[float]) -> Points:
    turns = [cmath.rect(1.0, 2 * math.pi * i / count) for i in range(count)]
    return _lines(*([turn * inner, turn * outer[i % len(outer)]] for i, turn in enumerate(turns)))


def _claw(fine: int) -> Points:
    """The player's claw astride a lane: its back leans to where in the lane (0..15) the player is."""
    lean = 0.66 * (fine / 15 - 0.5)
    belly = [0.34 + 0.02j, lean * 0.72 - 0.17j, -0.34 + 0.02j]
    return _lines([-0.5, lean - 0.36j, 0.5, 0.3 + 0.22j, *belly, -0.3 + 0.22j, -0.5])


# Shapes lie in a lane: the lane runs from -0.5 to 0.5, the inside of the tube is up.
_CLAWS: Final = tuple(_claw(fine) for fine in range(16))
_FLIPPER: Final = _lines([-0.5 + 0.2j, -0.34, -0.5 - 0.2j, 0.5 + 0.2j, 0.34, 0.5 - 0.2j, -0.5 + 0.2j])
_DIAMOND: Final = _lines([1, 1j, -1, -1j, 1])
_TANKER: Final = np.concatenate([0.44 * _DIAMOND, 0.2 * _DIAMOND, _rays(4, 0.2, [0.44])])
_ZIGZAG: Final = _lines([(i - 3) / 6 + (0, 1j, -1j, 1j, -1j, 1j, 0)[i] for i in range(7)])
_CARGO: Final = (_lines([]), 0.26 * _FLIPPER, 0.28 * _ZIGZAG.real + 0.1j * _ZIGZAG.imag, _rays(5, 0.0, [0.14]))
_SPIKER: Final = _lines([cmath.rect(0.02 * i, 2 * math.pi * i / 9) for i in range(20)])
_PLAYER_SHOT: Final = _lines(*([cmath.rect(0.16, 0.785 * i), cmath.rect(0.16, 0.785 * i + 0.24)] for i in range(8)))
_ENEMY_SHOT: Final = _lines(*([0.05 * d, 0.2 * d, 0.2 * d * cmath.rect(1.0, 0.9)] for d in (1, 1j, -1, -1j)))
_SPECK: Final = _lines([-0.5, 0.5])
_BURST: Final = _rays(12, 0.35, [1.0, 0.6])
_FRAME: Final = _lines([-0.18 + 0.31j, 0.18 + 0.31j, 0.18 - 0.31j, -0.18 - 0.31j, -0.18 + 0.31j])
_SPLASH: Final = _lines([cmath.rect(0.55 if i % 2 else 1.0, math.pi * i / 8) for i in range(17)])

# Room left for the tube between the figures above and the picture's edge; the claw sticks out a little further.
_LEFT, _RIGHT, _BOTTOM, _TOP = -0.88, 0.88, -0.82, 0.72
_FAINTEST: Final = 0.12  # weight that is drawn: no eye would see less
_NEAR: Final = 5.0  # nothing nearer to the eye than this is drawn
_OUTLINES: Final = levels.TUBE_POINTS[:, :16] + 1j * levels.TUBE_POINTS[:, 16:32]  # (shapes, corners)


def _lens(shape: int) -> tuple[complex, complex, float]:
    """A tube's vanishing point, its place on the picture, and a scale: the machine's perspective, fitted into ours."""
    eye = complex(0x80, levels.SHAPES[shape].camera_height)
    distance = levels.SHAPES[shape].eye_distance
    corners = _OUTLINES[shape] - eye
    seen = np.concatenate([corners / (ram.RIM + distance), corners / (ram.FAR_END + distance)])
    low, high = seen.imag.min(), seen.imag.max()
    scale = min((_RIGHT - _LEFT) / np.ptp(seen.real), (_TOP - _BOTTOM) / (high - low))
    return eye, complex(0.0, (_TOP + _BOTTOM) / 2 - scale * (low + high) / 2), float(scale)


_LENSES: Final = {shape.tube: _lens(i) for i, shape in enumerate(levels.SHAPES)}


class _Scene:
    """The lines of one picture while they are gathered, and what the bytes say about tube and camera."""

    def __init__(self, memory: bytes) -> None:
        self.memory = memory
        self.colours = _GROUPS[min(memory[ram.LEVEL_INDEX] // 16, 5)]
        self.tick = memory[ram.TICK]
        self.corners = [complex(memory[ram.TUBE_X + i], memory[ram.TUBE_Y + i]) for i in range(ram.LANE_COUNT)]
        self.lanes = range(ram.LANE_COUNT - (memory[ram.OPEN] != 0))
        whole = int.from_bytes([memory[ram.CAMERA_HIGH], memory[ram.CAMERA_LOW]], "big", signed=True)
        self.camera = whole + memory[ram.CAMERA_FRACTION] / 256
        self._eye, self._centre, self._scale = _LENSES[memory[ram.TUBE] & 15]
        self._points: list[Points] = []
        self._depths: list[NDArray[np.float64]] = []
        self._ink: list[tuple[int, Colour, float]] = []

    def lane(self, lane: int) -> Place:
        lane = min(lane & 15, self.lanes[-1])
        start, end = self.corners[lane], self.corners[(lane + 1) & 15]
        return (start + end) / 2, end - start

    def deep(self, points: Points, depth: float | Sequence[float], colour: Colour, brightness: float = 1.0) -> None:
        """Lines in the tube, at one depth or at a depth for each point."""
        self._points.append(points)
        self._depths.append(np.zeros(len(points)) + depth)
        self._ink.append((len(points) // 2, colour, brightness))

    def shape(self, place: Place, points: Points, depth: float, colour: Colour, brightness: float = 1.0) -> None:
        """A shape in a lane, dimmer where it is small, for there its lines lie close and would turn white."""
        middle, along = place
        size = abs(along) * self._scale / max(_NEAR, depth - self.camera)
        self.deep(middle + along * points, depth, colour, brightness * min(1.0, 0.18 + 4.5 * size))

    def down(self, at: complex, near: float, colour: Colour, brightness: float) -> None:
        """A line from some depth to the far end of the tube."""
        self.deep(np.full(2, at), (near, ram.FAR_END), colour, brightness)

    def flat(self, points: Points, colour: Colour, brightness: float = 1.0) -> None:
        """Lines on the picture itself: put where the lens shows them just so."""
        far = 100.0
        points = self._eye + (points - self._centre) * (far / self._scale)
        self.deep(points, self.camera + far, colour, brightness)

    def text(self, text: str, at: complex, height: float, colour: Colour, align: float = 0.5) -> None:
        """One line of text; `align` 0 starts at the point, 0.5 centres on it, 1 ends there."""
        self.flat(_text(text) * height + at + (0.5 - align) * _WIDTH * len(text) * height, colour)

    def picture(self) -> Picture:
        """Project, cut off what is behind the eye or outside the picture, and pack."""
        points = np.concatenate(self._points).reshape(-1, 2)
        distance = np.concatenate(self._depths).reshape(-1, 2) - self.camera
        visible = distance.max(axis=1) >= _NEAR
        points, distance = points[visible], distance[visible]
        nearer, further = distance.min(axis=1, keepdims=True), distance.max(axis=1, keepdims=True)
        fraction = np.where(nearer < _NEAR, (_NEAR - nearer) / np.maximum(further - nearer, 1e-9), 0.0)
        points = np.where(distance < _NEAR, points + fraction * (points[:, ::-1] - points), points)
        ends = self._centre + (points - self._eye) * (self._scale / np.maximum(distance, _NEAR))
        counts, colours, lights = zip(*self._ink)
        # A tube far away is many lines on few pixels: dimmed, or it would be a white blot.
        brightness = np.repeat(np.array(lights, np.float32), counts)[visible] * np.minimum(1.0, 260 / further[:, 0])
        tints = np.repeat(np.array(colours, np.uint8), counts, axis=0)[visible]
        segments, inside = _clip(ends)
        return Picture(segments[inside], tints[inside], brightness[inside].astype(np.float32))


def _clip(ends: Points) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Lines (lines, 2) cut to the square, and which of them touch it at all."""
    start = np.stack([ends[:, 0].real, ends[:, 0].imag], axis=1)
    way = np.stack([ends[:, 1].real, ends[:, 1].imag], axis=1) - start
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = (-1.0 - start) / way, (1.0 - start) / way
    still = way == 0
    enter = np.where(still, 0.0, np.minimum(low, high)).max(axis=1).clip(0.0)
    leave = np.where(still, 1.0, np.maximum(low, high)).min(axis=1).clip(None, 1.0)
    inside = (enter <= leave) & ~(still & (np.abs(start) > 1)).any(axis=1)
    cut = np.concatenate([start + enter[:, None] * way, start + leave[:, None] * way], axis=1)
    return cut.clip(-1.0, 1.0).astype(np.float32), inside


def _draw_tube(scene: _Scene) -> None:
    """The tube, the spikes that grow in it, and the nymphs that wait beyond its far end."""
    memory, colours = scene.memory, scene.colours
    colour, light = colours.tube, colours.tube_brightness
    zap = memory[ram.ZAP_TIMER]
    if 0 < zap < 0x80:  # above: locked out between levels
        colour, light = (WHITE, YELLOW, CYAN, PURPLE)[zap & 3], 1.7 if zap & 1 else 1.1
    own = memory[ram.PLAYER_LANE] & 15
    mine = (own, (own + 1) & 15) if not memory[ram.PLAYER_EDGE] & ram.DYING else ()
    for i, corner in enumerate(scene.corners):
        scene.down(corner, ram.RIM, colours.player if i in mine else colour, 1.0 if i in mine else light)
    ring = _lines([scene.corners[i & 15] for i in range(len(scene.lanes) + 1)])
    scene.deep(ring, ram.RIM, colour, light * 1.15)
    scene.deep(ring, ram.FAR_END, colour, light * 0.8)
    for lane in scene.lanes:
        if tip := memory[ram.SPIKE + lane]:
            scene.down(scene.lane(lane)[0], tip, colours.spiker, 0.9)
            scene.shape(scene.lane(lane), 0.08 * _DIAMOND, tip, WHITE)
    for slot in range(ram.NYMPH_COUNT):
        if timer := memory[ram.NYMPH_TIMER + slot]:
            speck = scene.lane(memory[ram.NYMPH_LANE + slot])[0] + 4 * _SPECK
            scene.deep(speck, ram.FAR_END + 1.5 * timer, colours.flipper, 1.4)


def _draw_player(scene: _Scene) -> None:
    memory, spin = scene.memory, cmath.rect(1.0, -0.5 * scene.tick)
    blown_up = memory[ram.PLAYER_EDGE] & ram.DYING and memory[ram.PLAYER_EDGE] != ram.GRABBED
    if memory[ram.PLAYER_DEPTH] < ram.FAR_END and not blown_up:
        depth = memory[ram.PLAYER_DEPTH] + memory[ram.PLAYER_DEPTH_FRACTION] / 256
        place, claw = scene.lane(memory[ram.PLAYER_LANE]), _CLAWS[memory[ram.PLAYER_POSITION] & 15]
        scene.shape(place, claw, depth, scene.colours.player, 1.4)
    for i in range(ram.PSHOT_COUNT + ram.ESHOT_COUNT):  # both kinds lie side by side in memory
        depth = float(memory[ram.PSHOT_DEPTH + i])
        if not depth:
            continue
        place = scene.lane(memory[ram.PSHOT_LANE + i])
        if i < ram.PSHOT_COUNT:
            scene.shape(place, _PLAYER_SHOT, depth, scene.colours.player, 1.2)
        else:
            depth += memory[ram.ESHOT_FRACTION + i - ram.PSHOT_COUNT] / 256
            scene.shape(place, spin * _ENEMY_SHOT, depth, WHITE, 1.2)
        scene.shape(place, 0.06 * _SPECK, depth, WHITE if i < ram.PSHOT_COUNT else RED, 1.6)


def _flipping(scene: _Scene, slot: int) -> Place:
    """Where to draw an enemy that turns about a corner of the tube, by how many of its steps are to go."""
    memory = scene.memory
    pivot = memory[ram.ENEMY_LANE + slot] & 15
    corner = scene.corners[pivot]
    ahead, back = scene.corners[(pivot + 1) & 15] - corner, scene.corners[pivot - 1] - corner
    angle = memory[ram.TUBE_ANGLE + pivot]
    steps = (memory[ram.TUBE_ANGLE + ((pivot - 1) & 15)] + 8 - angle) & 15 or 16
    to_go = (memory[ram.ENEMY_EDGE + slot] - angle) & 15
    if to_go == 0 and memory[ram.ENEMY_TYPE + slot] & ram.INCREASING:
        to_go = steps  # a whole turn that has just begun; a finished flip is no longer one
    fraction = min(1.0, to_go / steps)
    turn = (cmath.phase(back) - cmath.phase(ahead)) % (2 * math.pi)
    along = cmath.rect(abs(ahead) * (1 - fraction) + abs(back) * fraction, cmath.phase(ahead) + fraction * turn)
    return corner + along / 2, along


def _place(scene: _Scene, slot: int) -> Place:
    """Where an enemy is: in its lane, turning into another, or, a fuseball, on a line between two."""
    lane, kind = scene.memory[ram.ENEMY_LANE + slot] & 15, scene.memory[ram.ENEMY_TYPE + slot]
    if kind & ram.TYPE_BITS == ram.FUSEBALL:
        along, edge = scene.lane(lane)[1], scene.memory[ram.ENEMY_EDGE + slot]
        return scene.corners[lane] + (along * (edge & 7) / 8 if edge & 0x80 else 0), along
    return _flipping(scene, slot) if kind & ram.BETWEEN_LANES else scene.lane(lane)


def _depth(scene: _Scene, slot: int) -> float:
    return scene.memory[ram.ENEMY_DEPTH + slot] + scene.memory[ram.ENEMY_FRACTION + slot] / 256


def _draw_fuseball(scene: _Scene, slot: int, depth: float) -> None:
    place = _place(scene, slot)
    for i, colour in enumerate(_RAINBOW[:5]):
        sway = cmath.rect(1, 0.5 * math.sin(1.9 * scene.tick + 2.1 * i + slot))
        arm = cmath.rect(0.42, 2 * math.pi * i / 5 + 0.11 * scene.tick)
        scene.shape(place, arm * _lines([0, 0.35 * sway, 0.6 / sway, sway]), depth, colour, 1.3)
    scene.shape(place, 0.08 * _SPECK, depth, WHITE, 1.6)


def _draw_pulsar(scene: _Scene, place: Place, depth: float, lit: Sequence[complex]) -> None:
    """Its zigzag grows with the pulse; while that kills, it is bright and so are the `lit` corners of its lane."""
    phase = (scene.memory[ram.PULSE_PHASE] ^ 0x80) - 0x80  # signed
    reach = 0.05 + 0.25 * min(1.0, max(0.0, (phase + 64) / 79))
    colour = WHITE if phase >= 0 and scene.tick & 1 else scene.colours.pulsar
    scene.shape(place, _ZIGZAG.real + 1j * reach * _ZIGZAG.imag, depth, colour, 2.2 if phase >= 0 else 1.2)
    for corner in lit if phase >= 0 and depth < scene.memory[ram.PULSE_DEPTH] else ():
        scene.down(corner, ram.RIM, scene.colours.pulsar, 1.2)


def _draw_enemies(scene: _Scene) -> None:
    memory, colours = scene.memory, scene.colours
    for slot in range(ram.ENEMY_COUNT):
        if not memory[ram.ENEMY_DEPTH + slot]:
            continue
        depth = _depth(scene, slot)
        kind, lane = memory[ram.ENEMY_TYPE + slot] & ram.TYPE_BITS, memory[ram.ENEMY_LANE + slot]
        if kind == ram.FUSEBALL:
            _draw_fuseball(scene, slot, depth)
            continue
        flips = memory[ram.ENEMY_TYPE + slot] & ram.BETWEEN_LANES != 0
        place = _place(scene, slot)
        if kind == ram.PULSAR:
            lit = () if flips else (scene.corners[lane & 15], scene.corners[(lane + 1) & 15])
            _draw_pulsar(scene, place, depth, lit)
        elif kind == ram.TANKER:
            cargo = memory[ram.ENEMY_INFO + slot] & ram.CARGO_BITS
            scene.shape(place, _TANKER, depth, colours.tanker)
            scene.shape(place, _CARGO[cargo], depth, (WHITE, colours.flipper, colours.pulsar, YELLOW)[cargo], 1.3)
        elif kind == ram.SPIKER:
            scene.shape(place, cmath.rect(1.0, 0.7 * scene.tick) * _SPIKER, depth, colours.spiker, 1.2)
        else:
            scene.shape(place, _FLIPPER, depth, colours.flipper, 1.2)


def _draw_blasts(scene: _Scene) -> None:
    memory = scene.memory
    for slot in range(ram.BLAST_COUNT):
        depth, kind, phase = (memory[base + slot] for base in (ram.BLAST_DEPTH, ram.BLAST_TYPE, ram.BLAST_PHASE))
        if not depth:
            continue
        place = scene.lane(memory[ram.BLAST_LANE + slot])
        if kind == 1:
            fraction = min(phase, 21) / 21
            for i, colour in enumerate((WHITE, YELLOW, RED)):
                splash = cmath.rect(1.5 * max(0.0, fraction - 0.12 * i), 0.25 * i) * _SPLASH
                scene.shape(place, splash, depth, colour, 1.7 - fraction)
            scene.shape(place, 0.9 * _BURST, depth, WHITE if scene.tick & 1 else YELLOW, 1.2)
        elif 2 <= kind <= 4:
            points, colour = (("250", GREEN), ("500", YELLOW), ("750", RED))[kind - 2]
            upright = place[0], complex(abs(place[1]), 0.0)
            scene.shape(upright, (0.3 + min(phase, 32) / 80) * _text(points), depth, colour, 1.4)
        else:
            fraction = min(phase, 16) / 16
            burst = cmath.rect(0.25 + 0.4 * fraction, float(slot)) * _BURST
            scene.shape(place, burst, depth, scene.colours.flipper if kind == 5 else WHITE, 1.7 - fraction)


def _best(memory: bytes, place: int) -> tuple[str, str]:
    """Initials and score of a place of the high-score table, 1 to 8."""
    at = 3 * (ram.BEST_SCORE_COUNT - place)
    letters = "".join(chr(65 + c) if c < 26 else " " for c in memory[ram.INITIALS + at : ram.INITIALS + at + 3])
    return letters, str(int(ram.bcd_score(np.frombuffer(memory, np.uint8), ram.BEST_SCORES + at)))


def _draw_figures(scene: _Scene, playing: bool) -> None:
    """Score on the left, the best score in the middle; in a game also lives and level."""
    memory, colours = scene.memory, scene.colours
    shown = ram.bcd_score(np.frombuffer(memory, np.uint8), ram.SCORE_LOW)
    total = sum(int.from_bytes(memory[at : at + 8], "little") for at in (ram.SCORE, ram.START_BONUS))
    # The machine has six digits; the margin, where there is one, knows what came before they wrapped.
    score = total if total % 1_000_000 == shown and total < 10**9 else shown
    scene.text(str(score), -0.95 + 0.92j, 0.085, colours.spiker, 0.0)
    scene.text(f"BEST {_best(memory, 1)[1]}", 0.93j, 0.045, colours.spiker)
    if playing:
        for i in range(min(6, memory[ram.LIVES] - 1)):
            scene.flat(-0.91 + 0.11 * i + 0.8j + 0.08 * _CLAWS[8], colours.player)
        scene.text(f"LEVEL {memory[ram.LEVEL_INDEX] + 1}", 0.95 + 0.93j, 0.06, colours.tube, 1.0)


def _draw_field(scene: _Scene) -> None:
    """Tube, player and enemies, with what is to be said about them."""
    memory, state = scene.memory, scene.memory[ram.GAME_STATE]
    for draw in (_draw_tube, _draw_enemies, _draw_player, _draw_blasts):
        draw(scene)
    for i in range(60 if state in (ram.ZOOM, ram.ZOOM_IN) else 0):  # stars rush past between two levels
        at = complex(0x80, 0x80) + cmath.rect(60 + 9 * (i * 7 % 31), 2.4 * i)
        depth = scene.camera + (61.0 * i - scene.camera) % 480.0
        scene.deep(np.full(2, at), (depth, depth + 6.0), WHITE, 0.6)
    attract = not memory[ram.GAME_MODE] & ram.REAL_GAME
    lost = memory[ram.PLAYER_EDGE] & ram.DYING and memory[ram.LIVES] <= 1 and not memory[ram.EXPLOSIONS]
    if attract or lost or state in (ram.GAME_OVER, ram.HIGH_SCORE_CHECK):
        scene.text("GAME OVER", 0.08j, 0.14, WHITE)
    if attract and scene.tick & 16:
        scene.text("PRESS START", -0.16j, 0.1, YELLOW)
    if memory[ram.SPIKE_WARNING] & 0x80 and state in (ram.DELAY, ram.ZOOM):
        scene.text("AVOID SPIKES", 0.1j, 0.13, WHITE)


def _draw_choices(scene: _Scene) -> None:
    """Level select: five entries of the list around the cursor, each with its tube and its bonus."""
    memory = scene.memory
    last = min(memory[ram.MAX_CHOICE], len(levels.START_LEVELS) - 1)
    cursor = min(memory[ram.PLAYER_LANE], last)
    first = max(0, min(cursor - 2, last - 4))
    scene.text("CHOOSE YOUR LEVEL", 0.55j, 0.1, GREEN)
    scene.text(f"TIME {memory[ram.COUNTDOWN] & 0x7F:X}", 0.36j, 0.07, WHITE)
    for i in range(first, min(first + 5, last + 1)):
        level = int(levels.START_LEVELS[i])
        shape, colour = (level - 1) % 16, _GROUPS[min((level - 1) // 16, 5)].tube
        x = 0.38 * (i - first - 2)
        ring = (_OUTLINES[shape] - complex(0x80, 0x80)) * (0.13 / 0x70)
        scene.text(str(level), x + 0.14j, 0.08, colour)
        scene.flat(x - 0.08j + _lines([*ring, *ring[: not levels.TUBE_OPEN[shape]]]), colour)
        scene.text(str(levels.START_BONUSES[i]), x - 0.3j, 0.045, RED)
        if i == cursor:
            scene.flat(x - 0.07j + _FRAME, YELLOW, 1.5)
    for side in [-1] * (first > 0) + [1] * (first + 5 <= last):
        scene.flat(side * (0.96 + 0.05 * _lines([-0.5 + 0.8j, 0.2, -0.5 - 0.8j])) - 0.08j, YELLOW, 1.3)
    scene.text("BONUS FOR THE FIRST LEVEL", -0.52j, 0.05, RED)
    scene.text("TURN TO MOVE - FIRE TO START", -0.68j, 0.055, CYAN)


def _draw_table(scene: _Scene) -> None:
    """The eight best games; while initials are entered, the letter in question blinks."""
    memory = scene.memory
    entering = memory[ram.GAME_STATE] == ram.ENTER_INITIALS
    scene.text("ENTER YOUR INITIALS" if entering else "HIGH SCORES", 0.68j, 0.1, RED)
    for place in range(1, ram.BEST_SCORE_COUNT + 1):
        letters, points = _best(memory, place)
        mine = entering and memory[ram.ENTRY_RANK] == place
        if mine and scene.tick & 4:
            at = 3 - max(1, min(3, memory[ram.LETTERS_LEFT]))
            letters = f"{letters[:at]}-{letters[at + 1 :]}"
        colour = YELLOW if mine else GREEN if place > 1 else CYAN
        for text, x, align in ((str(place), -0.5, 0.5), (letters, -0.15, 0.5), (points, 0.6, 1.0)):
            scene.text(text, complex(x, 0.58 - 0.135 * place), 0.08, colour, align)
    scene.text("TURN TO CHOOSE - FIRE TO ENTER" if entering else "PRESS START", -0.72j, 0.055, WHITE)


def _draw_sparks(scene: _Scene) -> None:
    """The fireworks after a high score: three axes a spark, of which two are seen and the third is its distance."""
    for i in range(ram.PARTICLE_COUNT):
        x, y, z = (scene.memory[ram.PARTICLES + i + 2 * axis * ram.PARTICLE_STRIDE] for axis in range(3))
        if x:
            shape = cmath.rect(0.15 - 0.12 * z / 0xFF, i + 0.3 * scene.tick) * _BURST
            scene.flat(complex(x - 0x80, y - 0x80) / 0x70 + shape, _RAINBOW[i % 6])
    scene.text("HIGH SCORE", 0.0j, 0.13, WHITE)


def _draw_title(scene: _Scene) -> None:
    """The name, coming nearer in six colours."""
    for i in range(6):
        size = 0.065 * 1.27 ** (i + (scene.tick & 7) / 8)
        scene.text("TEMPEST", complex(0.0, 0.93 - 4.2 * size), size, _RAINBOW[(i - (scene.tick >> 3)) % 6])
    scene.text("PRESS START", -0.55j, 0.09, WHITE)


_SCREENS: Final = {
    ram.LEVEL_SELECT: _draw_choices, ram.HIGH_SCORE_TABLE: _draw_table, ram.ENTER_INITIALS: _draw_table,
    ram.HIGH_SCORE_BOOM: _draw_sparks, ram.LOGO: _draw_title, ram.NEW_GAME: _draw_title,
}  # fmt: skip
# A delay keeps up the screen that was there, and where it leads says which.
_BEFORE: Final = {ram.LOGO: ram.HIGH_SCORE_TABLE, ram.NEW_GAME: ram.LOGO, ram.HIGH_SCORE_TABLE: ram.LOGO}


def vectors(row: NDArray[np.uint8]) -> Picture:
    """What the machine shows with these bytes; the margin behind the RAM is used where there is one."""
    if row.ndim != 1 or len(row) < ram.RAM_BYTES:
        raise ProtegeError(f"a picture needs one game's bytes, at least {ram.RAM_BYTES}; got an array {row.shape}")
    scene = _Scene(row.astype(np.uint8, copy=False).tobytes())
    state = scene.memory[ram.GAME_STATE]
    if state == ram.DELAY:
        state = _BEFORE.get(scene.memory[ram.NEXT_STATE], ram.PLAYING)
    draw = _SCREENS.get(state, _draw_field)
    draw(scene)
    if draw is not _draw_title:
        _draw_figures(scene, playing=draw is _draw_field)
    return scene.picture()


def gaze(row: NDArray[np.uint8], weights: NDArray[np.float32]) -> Picture:
    """What a player attends to: lines from lanes at the rim to enemies, as bright as the weights (lanes, slots) are."""
    scene = _Scene(row.astype(np.uint8, copy=False).tobytes())
    scene.flat(_lines([0, 0]), WHITE, 0.0)  # a picture has at least one line
    for slot in range(ram.ENEMY_COUNT):
        if scene.memory[ram.ENEMY_DEPTH + slot]:
            enemy, depth = _place(scene, slot)[0], _depth(scene, slot)
            for lane in scene.lanes:
                colour = YELLOW if lane == scene.memory[ram.PLAYER_LANE] else WHITE
                if weights[lane, slot] >= _FAINTEST:
                    ends = np.array([scene.lane(lane)[0], enemy])
                    scene.deep(ends, (ram.RIM, depth), colour, float(weights[lane, slot]))
    return scene.picture()


@kernel
def _ends(along, length, slope):  # type: ignore[no-untyped-def]
    """How much of a line's light there is at a point along it: lines that continue each other add up to 1."""
    a = max(0.0, min(1.0, 0.5 + along * slope))
    b = max(0.0, min(1.0, 0.5 + (length - along) * slope))
    return max(0.0, a * a * (3 - 2 * a) + b * b * (3 - 2 * b) - 1)


@kernel
def _expose(pixels, light, segments, colours, brightness, core, glow):  # type: ignore[no-untyped-def]
    """Draw lines with a sharp core (radius in pixels) within a wide, weak glow; `light`, all 0, adds it up."""
    height, width = pixels.shape[0], pixels.shape[1]
    per_glow, per_core = 1 / (glow * glow), 1 / (core * core)
    half, middle_x, middle_y = min(width, height) / 2, (width - 1) / 2, (height - 1) / 2
    for s in range(len(segments)):
        x0, y0 = middle_x + half * segments[s, 0], middle_y - half * segments[s, 1]
        way_x, way_y = middle_x + half * segments[s, 2] - x0, middle_y - half * segments[s, 3] - y0
        length = math.sqrt(way_x * way_x + way_y * way_y)
        if length < 1.5:  # a point: a line too short to show would vanish
            x0, way_x, way_y, length = x0 - 0.75, 1.5, 0.0, 1.5
        tx, ty = way_x / length, way_y / length
        reach = glow * (abs(tx) + abs(ty))  # how far up and down the glow goes around the ends of a slanting line
        top, bottom = math.ceil(y0 + min(0.0, way_y) - reach), math.floor(y0 + max(0.0, way_y) + reach)
        red, green, blue = brightness[s] * colours[s, 0], brightness[s] * colours[s, 1], brightness[s] * colours[s, 2]
        for y in range(max(0, top), min(height - 1, bottom) + 1):
            # Along a row both the distance beside the line and the way along it are linear in x: hence its two ends.
            dy = y - y0
            low, high = -x0, width - 1 - x0
            if abs(ty) > 1e-4:
                a, b = (tx * dy - glow) / ty, (tx * dy + glow) / ty
                low, high = max(low, min(a, b)), min(high, max(a, b))
            if abs(tx) > 1e-4:
                a, b = (-glow - ty * dy) / tx, (length + glow - ty * dy) / tx
                low, high = max(low, min(a, b)), min(high, max(a, b))
            for x in range(math.ceil(low + x0), math.floor(high + x0) + 1):
                beside, along = (x - x0) * ty - dy * tx, (x - x0) * tx + dy * ty
                aside = beside * beside
                value = 0.22 * (1.0 - aside * per_glow) ** 2
                if min(along, length - along) < glow:
                    value *= _ends(along, length, 0.5 / glow)
                if aside < core * core:
                    value += (1.0 - aside * per_core) ** 2 * _ends(along, length, 0.5 / core)
                light[y, x, 0] += value * red
                light[y, x, 1] += value * green
                light[y, x, 2] += value * blue
    for y in range(height):
        for x in range(width):
            most = max(light[y, x, 0], light[y, x, 1], light[y, x, 2])
            # Where there is too much of a colour it turns white, as phosphor does.
            spill = max(np.float32(0), most - np.float32(255)) * np.float32(0.35)
            for c in range(3):
                pixels[y, x, c] = np.uint8(min(np.float32(255), light[y, x, c] + spill))


def rasterise(picture: Picture, pixels: NDArray[np.uint8]) -> None:
    """Draw into `pixels` (height, width, 3), over whatever they held; the square lies in the middle of other shapes."""
    unit = min(pixels.shape[:2]) / 480
    core, glow = max(1.3, 1.7 * unit), max(3.5, 8.0 * unit)
    light = np.zeros(pixels.shape, np.float32)
    _expose(pixels, light, picture.segments, picture.colours, picture.brightness, core, glow)


def render(row: NDArray[np.uint8], width: int = 480, height: int = 480) -> NDArray[np.uint8]:
    """The game as pixels (height, width, 3)."""
    if not (16 <= width <= 8192 and 16 <= height <= 8192):
        raise ProtegeError(f"width and height must be 16 to 8192 pixels; got {width} x {height}")
    pixels = np.empty((height, width, 3), np.uint8)
    rasterise(vectors(row), pixels)
    return pixels
