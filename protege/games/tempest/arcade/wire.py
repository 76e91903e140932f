"""The bytes of the arcade bridge: greetings, frames and replies, as docs/bridge.md lays them out.

A frame is a 39-byte header and the 195 values behind a two-byte length; `FRAME` describes it once, and a batch of
frames is an array of it. `Inbox` cuts a connection's bytes into records however they arrive. Nothing here knows a
socket or remembers a client.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.rules.levels import START_LEVELS
from protege.games.tempest.rules.sim import Commands
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import turn_by
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.task.rewards import MOST_POINTS, MOST_SHAPING
from protege.kernels import kernel

PORT: Final = 9999
MOST_CLIENTS: Final = 36

FRAME: Final = np.dtype(
    [
        ("length", ">u2"),  # bytes that follow
        ("count", ">u2"),  # of values
        *(("subjective", ">f8"), ("objective", ">f8")),  # rewards of the tick that just ended, unscaled
        *(("state", "u1"), ("mode", "u1")),  # the bytes at GAME_STATE and GAME_MODE
        ("done", "u1"),  # that tick cost a life
        ("counter", ">u2"),  # ticks the client has worked on, wrapping
        ("score", ">u4"),  # as the machine shows it, wrapping at a million
        ("save", "u1"),  # the client asks for a checkpoint
        *(("fire", "u1"), ("zap", "u1"), ("spinner", ">i2")),  # echo of the last reply on this connection
        ("target", ">i2"),  # the lane the teacher wants, -1 for none
        ("lane", "u1"),  # the player's
        *((name, "u1") for name in ("open", "advised_fire", "advised_zap")),
        ("level", "u1"),  # counted from 0
        ("values", ">f4", VALUES),
    ]
)
NATIVE: Final = FRAME.newbyteorder("=")
Packets = npt.NDArray[np.void]  # (packets,) of FRAME or NATIVE
Values = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Sent = npt.NDArray[np.int16]  # (frames, 3)

PREFIX: Final = 2
LENGTH: Final = FRAME.itemsize - PREFIX  # what the length of a whole frame says: 819
LONGEST: Final = 4096  # a record that claims to be longer is not waited for
NO_TARGET: Final = -32768  # read as -1
TOLERANCE: Final = 1e-4  # how far a value may lie outside [-1, 1]
SCORE_WRAP: Final = 1_000_000
NOTHING_SENT: Final = -1000  # in place of a command, before the first one


class WireError(ProtegeError):
    """A peer does not keep to the protocol, and its connection is of no more use."""


def new_packets(count: int) -> Packets:
    """Packets to be filled in; all zero but for lengths, counts and targets."""
    packets = np.zeros(count, FRAME)
    packets["length"], packets["count"], packets["target"] = LENGTH, VALUES, -1
    return packets


def decode(received: bytes) -> tuple[Packets, Values]:
    """Whole frames, one behind the other, as packets and their values (packets, 195) in this machine's byte order."""
    packets = np.frombuffer(received, FRAME).astype(NATIVE)
    return packets, np.ascontiguousarray(packets["values"])


FAULTS: Final = ("", "wrong count", "not finite", "out of range", "contradiction", "wrong echo")
_FINE, _WRONG_COUNT, _NOT_FINITE, _OUT_OF_RANGE, _CONTRADICTION, _WRONG_ECHO = range(len(FAULTS))


@kernel
def _is_alike(value: float, scale: int, byte: int) -> bool:
    """Whether a value and the byte it was made of tell the same."""
    return abs(value * scale - min(float(byte), float(scale))) < 0.01


@kernel
def _fault(packet: Any, values: Values, sent: Sent) -> int:
    if packet["count"] != VALUES:
        return _WRONG_COUNT
    finite, farthest = True, 0.0
    for i in range(VALUES):
        finite &= np.isfinite(values[i])
        farthest = max(farthest, abs(values[i]))
    if not (finite and np.isfinite(packet["objective"]) and np.isfinite(packet["subjective"])):
        return _NOT_FINITE
    flags = packet["done"] | packet["save"] | packet["fire"] | packet["zap"] | packet["open"]
    flags |= packet["advised_fire"] | packet["advised_zap"]
    target = packet["target"]
    if abs(packet["objective"]) > MOST_POINTS or abs(packet["subjective"]) > MOST_SHAPING or farthest > 1 + TOLERANCE:
        return _OUT_OF_RANGE
    if flags > 1 or packet["score"] >= SCORE_WRAP or max(packet["lane"], target) > 15:
        return _OUT_OF_RANGE
    if target < -1 and target != NO_TARGET:
        return _OUT_OF_RANGE
    alike = _is_alike(values[layout.GAME_STATE], layout.STATE_SCALE, packet["state"])
    alike &= _is_alike(values[layout.GAME_MODE], layout.BYTE_SCALE, packet["mode"])
    alike &= _is_alike(values[layout.LEVEL_NUMBER], layout.LEVEL_SCALE, packet["level"])
    if not (alike and _is_alike(values[layout.LEVEL_OPEN], 1, packet["open"])):
        return _CONTRADICTION
    echoed = packet["fire"] == sent[0] and packet["zap"] == sent[1] and packet["spinner"] == sent[2]
    return _FINE if echoed or sent[0] == NOTHING_SENT else _WRONG_ECHO


@kernel
def _find_faults(packets: Packets, values: Values, sent: Sent, found: Bytes) -> None:
    for i in range(len(packets)):
        found[i] = _fault(packets[i], values[i], sent[i])


def find_faults(packets: Packets, values: Values, sent: Sent) -> Bytes:
    """What is wrong with each frame, as an index of FAULTS; 0 for nothing, and only then a frame may be believed.

    `sent` are the last commands (frames, 3) on the connections they came by, to be echoed; NOTHING_SENT if there are
    none.
    """
    found = np.empty(len(packets), np.uint8)
    _find_faults(packets, values, sent, found)
    return found


@kernel
def spinner_to(packet: Any) -> int:
    """The spinner command, up to 29, that turns towards the lane the teacher wants; as `teacher.spinner_to`."""
    if packet["target"] < 0:
        return 0
    away: int = np.int64(packet["target"]) - np.int64(packet["lane"])  # type: ignore[assignment]
    if packet["open"] == 0:
        away = (away + 7 & 15) - 7
    return turn_by(away)


REPLY: Final = struct.Struct("bbb")  # fire, zap, spinner


@dataclass(frozen=True)
class Start:
    """Where clients should start their games, for those that can be told."""

    level: int = 0  # wanted level, 1 to 81; 0 leaves it to the client
    advanced: bool = False  # choose the highest level the machine offers

    def __post_init__(self) -> None:
        if not 0 <= self.level <= START_LEVELS[-1]:
            raise ProtegeError(f"clients can start at levels 1 to {START_LEVELS[-1]}; got {self.level}")

    def to_bytes(self) -> bytes:
        """What follows the command in a long reply."""
        return bytes([self.advanced, self.level])


def limited(commands: Commands) -> Commands:
    """Commands as replies may hold them, which are their bytes: fire and zap 0 or 1, spinner -32..31."""
    allowed = np.clip(commands, -32, 31)
    allowed[:, :2] = commands[:, :2] != 0
    return allowed


MARK: Final = 0x50  # the high byte of a greeting that says more than an old client's
VERSION: Final = 1
WELCOME, WRONG_TOKEN, FULL = 0, 1, 2  # what the server says to a greeting
ANSWER: Final = struct.Struct("BBBBB")  # mark, version, one of the above, start advanced, start level
LONGEST_GREETING, LONGEST_TOKEN, LONGEST_NAME = 256, 128, 64
PLAIN_GREETING: Final = b"\0\0"


@dataclass(frozen=True)
class Greeting:
    """Who connects."""

    version: int = 0  # 0: an old client, which says nothing about itself
    token: bytes = field(default=b"", repr=False)
    name: str = ""


def greet(token: str = "", name: str = "") -> bytes:
    secret, called = token.encode(), name.encode()
    if len(secret) > LONGEST_TOKEN or len(called) > LONGEST_NAME:
        limits = f"a token is at most {LONGEST_TOKEN} bytes and a client's name {LONGEST_NAME}"
        raise ProtegeError(f"{limits}; got {len(secret)} and {len(called)}")
    said = bytes([len(secret)]) + secret + bytes([len(called)]) + called
    return struct.pack(">BBH", MARK, VERSION, len(said)) + said


def read_greeting(given: memoryview) -> tuple[Greeting, int] | None:
    """The greeting that the bytes begin with, and its length; None while it is not all there."""
    if len(given) < 2:
        return None
    if given[0] != MARK or given[1] == 0:
        return Greeting(), 2
    if len(given) < 4:
        return None
    size = int.from_bytes(given[2:4], "big")
    if not 2 <= size <= LONGEST_GREETING:
        raise WireError(f"a greeting of {size} bytes; expected 2 to {LONGEST_GREETING}")
    if len(given) < 4 + size:
        return None
    said = bytes(given[4 : 4 + size])
    token, rest = said[1 : 1 + said[0]], said[1 + said[0] :]
    if len(token) != said[0] or not rest or len(rest) != 1 + rest[0] or rest[0] > LONGEST_NAME:
        raise WireError("a greeting whose lengths do not add up")
    name = "".join(letter for letter in rest[1:].decode(errors="replace") if letter.isprintable())
    return Greeting(given[1], token, name), 4 + size


def answer(status: int, start: Start) -> bytes:
    return ANSWER.pack(MARK, VERSION, status, start.advanced, start.level)


class Inbox:
    """What a connection has sent and nobody has read yet: never more than one record of the greatest length."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(PREFIX + LONGEST))
        self.filled = 0

    def room(self) -> memoryview:
        return self.view[self.filled :] if self.filled else self.view

    def record(self) -> int:
        """The size of the record at the front, with its length prefix; 0 while it is not all there."""
        if self.filled < PREFIX:
            return 0
        length = self.view[0] << 8 | self.view[1]
        if not 2 <= length <= LONGEST:
            raise WireError(f"a frame of {length} bytes; expected {LENGTH}")
        return PREFIX + length if self.filled >= PREFIX + length else 0

    def drop(self, count: int) -> None:
        self.filled -= count
        if self.filled:
            self.view[: self.filled] = bytes(self.view[count : count + self.filled])
