"""What arcade clients show: kept by the bridge in a small file, and drawn again from the 195 values by a page.

The file holds one `SCREEN` for each place and is written where it lies; a page, in a process of its own, maps it too.
Nobody waits for anybody: a screen that changes while it is read is read again. `memory_of` makes values into bytes that
`draw` understands. What values do not tell is missing in the picture: nymphs beyond the far end, explosions, where in
its lane the player is, a turn about the notch of the heart, the approach to a new level, and tables of high scores.
"""

import math
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.streams import CLIENT
from protege.games.tempest.rules import levels, ram
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.observation import decode
from protege.runs.files import replacing

DEAD_S: Final = 5.0  # a file that nobody has touched for so long is a leftover
PREFIX, SUFFIX = "tempest-arcade-", ".screens"
MARK: Final = b"protege screens 1"

HEADER: Final = np.dtype([("mark", "S24"), ("player", "S128"), ("touched", "f8")])
SCREEN: Final = np.dtype(
    [
        ("turn", "u8"),  # odd while the rest is being written
        ("place", "u1"),
        ("taken", "u1"),
        ("name", "S64"),  # of the client
        ("rate", "f4"),  # frames a second
        ("command", "i1", 3),  # the last reply
        ("control", "S16"),  # who chose it: pupil, teacher, random, or nobody
        ("client", CLIENT),
        ("packet", wire.NATIVE),
    ]
)
Screen = np.void  # of SCREEN
_REPLIED: Final = struct.Struct("3b16s")  # command and control
_REPLY, _CLIENT, _PACKET = (SCREEN.fields[name][1] for name in ("command", "client", "packet"))  # type: ignore[index]


def activity(state: int, mode: int) -> str:
    """What a client is doing, in a word."""
    words = {ram.PLAYING: "playing", ram.ZOOM: "zooming", ram.LEVEL_SELECT: "choosing a level"}
    words |= {ram.ENTER_INITIALS: "initials", ram.HIGH_SCORE_BOOM: "initials"}
    return words.get(state, "between") if mode & ram.REAL_GAME else "attract mode"


class Screens:
    """The file, as long as the bridge listens at the port."""

    def __init__(self, folder: Path, port: int, places: int, player: str):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{PREFIX}{port}{SUFFIX}"
        with replacing(self.path) as draft:  # a page may still have the last one mapped
            draft.write_bytes(bytes(HEADER.itemsize + places * SCREEN.itemsize))
        self._header, self._screens = _mapped(self.path, "r+")
        self._header["mark"], self._header["player"], self._header["touched"] = MARK, player.encode(), time.time()
        self._screens["place"] = np.arange(places)
        self._records = [row.data for row in self._screens.view(np.uint8).reshape(places, -1)]

    def show(self, place: int, packet: np.void, client: np.void, command: Sequence[int], control: str) -> None:
        """A client's last frame, and the reply to it."""
        record = self._records[place]  # bytes, because assigning a record goes field by field
        turn = int.from_bytes(record[:8], sys.byteorder)
        record[:8] = (turn + 1).to_bytes(8, sys.byteorder)
        record[_REPLY : _REPLY + _REPLIED.size] = _REPLIED.pack(*command, control.encode())
        record[_CLIENT : _CLIENT + CLIENT.itemsize] = client.tobytes()
        record[_PACKET : _PACKET + wire.NATIVE.itemsize] = packet.tobytes()
        record[:8] = (turn + 2).to_bytes(8, sys.byteorder)

    def touch(self, clients: Iterable[tuple[int, str, float]]) -> None:
        """Who is there, by place, name and frames a second; once a second, and the file counts as alive."""
        here = {place: (name, rate) for place, name, rate in clients}
        for place, screen in enumerate(self._screens):
            screen["taken"] = place in here
            if place in here:
                screen["name"], screen["rate"] = here[place][0].encode(), here[place][1]
        self._header["touched"] = time.time()

    def close(self) -> None:
        self._header["touched"] = 0.0
        with suppress(OSError):  # where a file in use cannot be removed it is a leftover, and known as one
            self.path.unlink()


def _mapped(path: Path, mode: Any) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    header = np.memmap(path, HEADER, mode, shape=(1,))
    screens = np.memmap(path, SCREEN, mode, offset=HEADER.itemsize)
    return np.asarray(header), np.asarray(screens)  # plain arrays, which are quicker


class Arcade:
    """The clients of a bridge, as its file tells."""

    def __init__(self, path: Path):
        """Raises OSError or ValueError where there is no such file, or it is none of ours."""
        self._header, self._screens = _mapped(path, "r")
        if self._header["mark"][0] != MARK:
            raise ValueError(f"{path.name} holds no screens")
        self.server = path.name[len(PREFIX) : -len(SUFFIX)]
        self.player = self._header["player"][0].decode(errors="replace")

    def is_alive(self) -> bool:
        return abs(time.time() - float(self._header["touched"][0])) < DEAD_S

    def screens(self) -> list[Screen]:
        """A copy of every client's screen."""
        return [self._copy(place) for place in np.flatnonzero(self._screens["taken"]).tolist()]

    def _copy(self, place: int) -> Screen:
        screen = self._screens[place]
        for _ in range(100):
            turn = int(screen["turn"])
            copy: np.void = screen.copy()
            if turn % 2 == 0 and turn == int(screen["turn"]):
                break
        return copy  # a picture of two halves is better than none


def arcades(folder: Path) -> list[Arcade]:
    """Every bridge that is at work for the runs of this folder."""
    found = []
    for path in sorted(folder.glob(f"{PREFIX}*{SUFFIX}")):
        with suppress(OSError, ValueError):
            found.append(Arcade(path))
    return [arcade for arcade in found if arcade.is_alive()]


# Screens that show the tube; of all others but the choice of a level, values tell nothing that could be drawn.
_TUBE: Final = (
    ram.NEW_LIFE, ram.PLAYING, ram.LIFE_LOST, ram.GAME_OVER, ram.DELAY, ram.LEVEL_DONE, ram.HIGH_SCORE_CHECK,
    ram.ZOOM_IN, ram.NEW_LIFE_PAUSE, ram.ZOOM,
)  # fmt: skip
_ALMOST: Final = 1e-4  # 32-bit numbers are whole only almost


def memory_of(screen: Screen, best: int = 0) -> ram.Row:
    """A game's bytes, as far as a picture needs them and the values tell; `best` is the high score to show."""
    packet, client = screen["packet"], screen["client"]
    values = packet["values"].astype(np.float64)
    row = np.zeros(ram.ROW_BYTES, np.uint8)
    state = int(packet["state"])
    row[ram.GAME_STATE] = state if state in (*_TUBE, ram.LEVEL_SELECT) else ram.LOGO
    row[ram.NEXT_STATE], row[ram.MAX_CHOICE] = ram.PLAYING, len(levels.START_LEVELS) - 1
    row[ram.GAME_MODE], row[ram.LEVEL_INDEX], row[ram.TICK] = packet["mode"], packet["level"], packet["counter"] & 255
    row[ram.COUNTDOWN], row[ram.LIVES] = decode(values, layout.COUNTDOWN), decode(values, layout.LIVES)
    _put_points(row, ram.SCORE_LOW, int(packet["score"]))
    _put_points(row, ram.BEST_SCORES + 3 * (ram.BEST_SCORE_COUNT - 1), best)
    for address, name in ((ram.SCORE, "score"), (ram.START_BONUS, "bonus"), (ram.FRAMES, "frames")):
        row[address : address + 8] = np.frombuffer(int(client[name]).to_bytes(8, "little"), np.uint8)
    _put_tube(row, values, int(packet["level"]), state)
    _put_player(row, values)
    _put_enemies(row, values)
    return row


def _put_points(row: ram.Row, low: int, points: int) -> None:
    digits = f"{points % wire.SCORE_WRAP:06d}"
    row[low : low + 3] = [int(digits[i : i + 2], 16) for i in (4, 2, 0)]


def _put_tube(row: ram.Row, values: npt.NDArray[np.float64], level: int, state: int) -> None:
    """The shape that has these angles, which is not always that of the level; spikes; and where the eye is."""
    angles = decode(values, layout.ANGLES)
    is_open = values[layout.LEVEL_OPEN] > 0.5
    alike = (levels.TUBE_POINTS[:, 32:] == angles).all(1) & ((levels.TUBE_OPEN != 0) == is_open)
    shape = int(alike.argmax()) if alike.any() else level % len(levels.SHAPES)
    row[ram.TUBE], row[ram.OPEN] = levels.TUBE_NUMBER[shape], levels.TUBE_OPEN[shape]
    row[ram.TUBE_X : ram.TUBE_X + 48] = levels.TUBE_POINTS[shape]
    heights = decode(values, layout.SPIKES)
    row[ram.SPIKE : ram.SPIKE + ram.LANE_COUNT] = np.where(heights == 0, 0, 255 - heights)
    row[ram.ZAP_TIMER] = timer if (timer := decode(values, layout.ZAP_TIMER)) < layout.ZAP_SCALE else 0xFF
    row[ram.PULSE_PHASE] = decode(values, layout.PULSE_PHASE)
    parameters = levels.LEVEL_BYTES[levels.MEDIUM, min(level + 1, levels.LAST_LEVEL)]
    row[ram.PULSE_DEPTH] = parameters[levels.LEVEL_ADDRESSES == ram.PULSE_DEPTH][0]
    row[ram.PLAYER_DEPTH] = decode(values, layout.PLAYER_DEPTH)
    fallen = int(row[ram.PLAYER_DEPTH]) - ram.RIM if state in (ram.ZOOM, ram.LEVEL_DONE) else 0
    eye = fallen - levels.SHAPES[shape].eye_distance & 0xFFFF
    row[ram.CAMERA_HIGH], row[ram.CAMERA_LOW] = eye >> 8, eye & 255


def _put_player(row: ram.Row, values: npt.NDArray[np.float64]) -> None:
    lane = int(decode(values, layout.PLAYER_LANE))
    row[ram.PLAYER_LANE], row[ram.PLAYER_POSITION] = lane, 16 * lane + 8
    row[ram.PLAYER_EDGE] = decode(values, layout.PLAYER_EDGE) | (0 if values[layout.PLAYER_ALIVE] > 0.5 else ram.DYING)
    for depths, lanes, places, at, count in (
        (ram.PSHOT_DEPTH, ram.PSHOT_LANE, layout.SHOT_LANES, layout.SHOT_DEPTHS, ram.PSHOT_COUNT),
        (ram.ESHOT_DEPTH, ram.ESHOT_LANE, layout.ENEMY_SHOT_LANES, layout.ENEMY_SHOT_DEPTHS, ram.ESHOT_COUNT),
    ):
        row[depths : depths + count] = np.floor(values[at] * layout.SHOT_SCALE + _ALMOST)
        row[lanes : lanes + count] = lane + decode(values, places) & 15


def _put_enemies(row: ram.Row, values: npt.NDArray[np.float64]) -> None:
    depths = decode(values, layout.ENEMY_DEPTHS)
    fields = decode(values, layout.ENEMY_SLOTS).reshape(ram.ENEMY_COUNT, layout.SLOT_VALUES)
    for slot in np.flatnonzero(depths).tolist():
        kind, rising, between, away, shoots, cargo = fields[slot].tolist()
        place = layout.LANE_SCALE * float(values[layout.ENEMY_LANE + slot])
        turning = between and kind != ram.FUSEBALL
        if turning:  # the values hold how far it has come: whole lanes, and a part of the turn that ends in one
            whole = math.floor(place + _ALMOST) + 1 if rising else math.ceil(place - _ALMOST)
            done = place + 1 - whole if rising else whole - place
        else:
            whole, done = round(place), 0.5
        lane = int(row[ram.PLAYER_LANE]) + whole & 15
        row[ram.ENEMY_TYPE + slot] = kind | ram.INCREASING * rising | ram.BETWEEN_LANES * between
        row[ram.ENEMY_INFO + slot] = cargo | ram.MAY_SHOOT * shoots | ram.MOVING_AWAY * away
        row[ram.ENEMY_LANE + slot], row[ram.ENEMY_DEPTH + slot] = lane, depths[slot]
        low, high = int(row[ram.TUBE_ANGLE + (lane - 1 & 15)]) + 8, int(row[ram.TUBE_ANGLE + lane])
        steps = round(done * (low - high & 15)) if turning else 4  # a fuseball half way between two lines
        angle = (low - steps if rising else high + steps) & 15 if turning else steps
        row[ram.ENEMY_EDGE + slot] = angle | 0x80 * between
