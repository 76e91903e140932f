"""Recorded battles: one file with the map, and for every decision all that a viewer shows.

A file is a prefix, a header in JSON, and blocks packed by zlib: the map's materials, then the frames, some at a time.
Frame 0 is the start, frame n the state after decision n. A block holds the lengths of its lists and then one array for
each field of `FIELDS`, so that any language reads it as plain arrays. Changed voxels come with what was there before
and after: a viewer may go either way in time. Channels are numbers that only some players tell, as the value expected.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.rules.battle import MOST_MECHS
from protege.games.echelon.rules.events import EVENT, EVENT_NAMES
from protege.games.echelon.rules.sim import VERSION as RULES_VERSION
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.mechs import MATERIALS, WEAPONS, Records
from protege.runs.files import replacing

VERSION: Final = 1
SUFFIX: Final = ".rec"
MAGIC: Final = b"ECHELON\0"
PREFIX: Final = struct.Struct("<8sIIII")  # magic, version, bytes of the header, its CRC-32, bytes of all blocks
FRAMES_PER_BLOCK: Final = 40  # 10 s
MOST_BYTES: Final = 1 << 26  # of a file, and of a block unpacked: more is no battle
ALIGN: Final = 8  # bytes at which every array of a block begins

FLAGS: Final = ("alive", "shut", "legged", "grounded", "inside", "hit", "warned")  # bits of `flags`, the lowest first

# Groups of fields: one row a frame, one a mech and frame, and four lists of any length in a frame.
FIELDS: Final[dict[str, list[Any]]] = {
    "now": [
        ("decision", "<i4"), ("tick", "<i4"), ("score", "<f8", (2,)), ("share", "<f8", (2,)),
        ("tonnage", "<f4", (2,)), ("living", "u1", (2,)),
    ],
    "mechs": [
        ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("yaw", "<f4"), ("vx", "<f4"), ("vy", "<f4"), ("vz", "<f4"),
        ("hp", "<f4"), ("leg_hp", "<f4"), ("heat", "<f4"), ("stability", "<f4"), ("jet", "<f4"), ("flags", "u1"),
        ("fallen", "u1"), ("suppressed", "u1"), ("painted", "u1"), ("painter", "i1"), ("wait", "u1", (4,)),
        ("ams_wait", "u1"), ("forward", "<f4"), ("strafe", "<f4"), ("vertical", "<f4"), ("turn", "<f4"),
        ("buttons", "u1"), ("ewar", "u1"), ("focus", "i1"), ("order", "u1"), ("order_target", "i1"),
        ("sees", "<u8"), ("knows", "<u8"), ("quality", "<f4"), ("jam", "<f4"), ("dealt", "<f4"),
    ],
    "shots": [
        ("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("vx", "<f4"), ("vy", "<f4"), ("vz", "<f4"),
        ("weapon", "u1"), ("who", "i1"), ("target", "i1"), ("age", "u1"),
    ],
    "clouds": [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("radius", "<f4"), ("left", "<u2"), ("who", "i1")],
    "events": [(name, EVENT[name].newbyteorder("<").str) for name in EVENT.names or ()],
    "changes": [("cell", "<i4"), ("before", "u1"), ("after", "u1")],  # cell: (z * Y + y) * X + x
}  # fmt: skip
TYPES: Final = {group: np.dtype(fields) for group, fields in FIELDS.items()}
LISTS: Final = ("shots", "clouds", "events", "changes")
SCHEMA: Final = hashlib.sha256(json.dumps([VERSION, FIELDS, FLAGS, EVENT_NAMES]).encode()).hexdigest()

Numbers = npt.NDArray[np.float32]
Channels = Mapping[str, Sequence[str]]  # what each is called, and each of its numbers


class BadRecording(ProtegeError):
    """A file that is no recording, not a whole one, or one of another version."""


class Frame(NamedTuple):
    """One moment of a battle, in the fields of FIELDS; events and changes since the frame before."""

    now: Records  # ()
    mechs: Records  # (mechs,)
    shots: Records  # (shots in the air,)
    clouds: Records
    events: Records
    changes: Records
    channels: dict[str, Numbers]  # each (mechs, numbers)


Frames = dict[str, Records]  # several frames: now (frames,), mechs (frames, mechs), lists one after the other, channels
Counts = dict[str, npt.NDArray[np.int64]]  # of every list: its length in each frame


class Recorder:
    """Follows one battle of a batch; ask for a frame after every step."""

    def __init__(self, battles: Battles, b: int, about: dict[str, Any], channels: Channels | None = None):
        """Begin before the first step; `about` goes into the header, `channels` name what notes may come with."""
        self._battles, self._b, self._about = battles, b, about
        self._channels = {name: list(numbers) for name, numbers in (channels or {}).items()}
        self._material = battles.world.material[b].copy()
        self._start = self._material.tobytes()
        self._frames: list[Frame] = []
        self.note()

    def note(self, **channels: npt.ArrayLike) -> None:
        """Add the battle as it is now; channels, (mechs, numbers), tell of the decision that led here, nan: nothing."""
        record = self._battles.records[self._b]
        mechs = _copied("mechs", self._battles.mechs[self._b])
        for bit, name in enumerate(FLAGS):
            mechs["flags"] |= (self._battles.mechs[self._b][name] != 0).astype(np.uint8) << bit
        shots, clouds, events = (
            _copied(group, record[group][: record[count]])
            for group, count in (("shots", "shot_count"), ("clouds", "cloud_count"), ("events", "event_count"))
        )
        if unknown := set(channels) - set(self._channels):
            raise ValueError(f"the recording has channels {list(self._channels)}, not {sorted(unknown)}")
        told = {name: np.full((len(mechs), len(names)), np.nan, np.float32) for name, names in self._channels.items()}
        for name, numbers in channels.items():
            told[name][:] = np.reshape(np.asarray(numbers, np.float32), told[name].shape)
        self._frames.append(Frame(_copied("now", record), mechs, shots, clouds, events, self._changes(), told))

    def _changes(self) -> Records:
        """Voxels that are not as they were in the frame before."""
        now = self._battles.world.material[self._b]
        cells = np.flatnonzero(now != self._material)
        changes = np.zeros(len(cells), TYPES["changes"])
        changes["cell"], changes["before"] = cells, self._material.flat[cells]
        changes["after"] = self._material.flat[cells] = now.flat[cells]
        return changes

    def to_bytes(self) -> bytes:
        """The recording as it is in a file."""
        blocks = [(0, 0, self._start)]
        for first in range(0, len(self._frames), FRAMES_PER_BLOCK):
            frames = self._frames[first : first + FRAMES_PER_BLOCK]
            blocks.append((first, len(frames), _block(frames, list(self._channels))))
        packed = [zlib.compress(raw, 6) for _, _, raw in blocks]
        index = [
            {"first": first, "frames": frames, "bytes": len(pack), "unpacked": len(raw), "crc": zlib.crc32(pack)}
            for (first, frames, raw), pack in zip(blocks, packed)
        ]
        header = json.dumps(self._header() | {"blocks": index}, separators=(",", ":")).encode()
        prefix = PREFIX.pack(MAGIC, VERSION, len(header), zlib.crc32(header), sum(map(len, packed)))
        return b"".join([prefix, header, *packed])

    def _header(self) -> dict[str, Any]:
        battles, b = self._battles, self._b
        record, members = battles.records[b], battles.members
        seconds = battles.rules.dt * battles.rules.ticks_per_decision
        whole = ("team", "kind", "pack", "rank", "suite", "leader")
        return {
            "schema": SCHEMA, "rules_version": RULES_VERSION, "rules": battles.rules.name,
            "roster": battles.roster.name, "size": list(self._material.shape[::-1]), "seconds_per_frame": seconds,
            "length": battles.length, "score_to_win": battles.rules.score_fraction * battles.length * seconds,
            "jam_range": battles.rules.jam_range, "frames": len(self._frames), "zone": battles.world.zone[b].tolist(),
            "mechs": [{name: int(getattr(members, name)[i]) for name in whole} for i in range(battles.mech_count)],
            "result": {name: record[name].tolist() for name in ("winner", "ending", "score")},
            "fields": FIELDS, "lists": LISTS, "flags": FLAGS, "events": EVENT_NAMES,
            "classes": [vars(chassis) for chassis in battles.rules.chassis],
            "weapons": [weapon.name for weapon in WEAPONS],
            "materials": [{"name": m.name, "colour": m.colour} for m in MATERIALS],
            "channels": [{"name": name, "numbers": numbers} for name, numbers in self._channels.items()],
            **self._about,
        }  # fmt: skip


def _copied(group: str, source: Records) -> Records:
    """The fields of a group that the source has, in the types of the recording."""
    found = np.zeros(source.shape, TYPES[group])
    for name in set(TYPES[group].names or ()) & set(source.dtype.names or ()):
        found[name] = source[name]
    return found


def _block(frames: list[Frame], channels: list[str]) -> bytes:
    """The lengths of the lists, then every field of every group as one array, then every channel."""
    parts = [np.array([len(getattr(frame, group)) for frame in frames], "<u4") for group in LISTS]
    for group in FIELDS:
        join = np.concatenate if group in LISTS else np.stack
        rows = join([getattr(frame, group) for frame in frames])
        parts += [np.ascontiguousarray(rows[name]) for name in TYPES[group].names or ()]
    parts += [np.stack([frame.channels[name] for frame in frames]).astype("<f4") for name in channels]
    return b"".join(part.tobytes() + bytes(-part.nbytes % ALIGN) for part in parts)


def write_recording(path: Path, contents: bytes) -> None:
    """Put a recording into a file, whole or not at all."""
    try:
        with replacing(path) as draft:
            draft.write_bytes(contents)
    except OSError as error:
        raise BadRecording(f"cannot write {path}: {error.strerror}") from error


class Recording:
    """A recorded battle, frame by frame."""

    def __init__(self, contents: bytes, name: str = "the recording"):
        """Take a file's bytes; what is not a whole recording of this version is refused."""
        self.name = name
        self._contents = contents
        self._body = memoryview(contents)[PREFIX.size :]
        self.header = self._read_header(contents)
        self.frames = int(self.header["frames"])
        self.size: tuple[int, int, int] = tuple(self.header["size"])  # x, y, z
        self._blocks = self.header["blocks"]
        self.channels: dict[str, list[str]] = {one["name"]: one["numbers"] for one in self.header.get("channels", ())}
        self._unpacked = lru_cache(maxsize=4)(self._unpack)

    @classmethod
    def open(cls, path: Path) -> "Recording":
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                raise BadRecording(f"{path} has {size:,} bytes, recordings have at most {MOST_BYTES:,}: not a battle")
            return cls(path.read_bytes(), str(path))
        except OSError as error:
            raise BadRecording(f"cannot read {path}: {error.strerror}") from error

    def frame(self, number: int) -> Frame:
        """One frame, 0 up to `frames` - 1."""
        if not 0 <= number < self.frames:
            raise IndexError(f"{self.name} has frames 0..{self.frames - 1}, not {number}")
        at = number // FRAMES_PER_BLOCK
        groups, counts = self._unpacked(1 + at)
        n = number - at * FRAMES_PER_BLOCK
        ends = {group: int(counts[group][: n + 1].sum()) for group in LISTS}
        lists = {group: groups[group][end - int(counts[group][n]) : end] for group, end in ends.items()}
        channels = {name: groups[name][n] for name in self.channels}
        return Frame(groups["now"][n], groups["mechs"][n], **lists, channels=channels)

    def checked(self) -> bytes:
        """The file's bytes, once all of them have been read; what cannot be is refused."""
        x, y, z = self.size
        try:
            self.everything()
            if len(self._bytes_of(0)) != x * y * z:
                raise self._damaged("block 0")
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecording(f"{self.name} is damaged (its header contradicts itself): record it again") from error
        return self._contents

    def __iter__(self) -> Iterator[Frame]:
        return (self.frame(number) for number in range(self.frames))

    def everything(self) -> tuple[Frames, Counts]:
        """All frames at once."""
        parts = [self._unpack(block) for block in range(1, len(self._blocks))]
        groups = {group: np.concatenate([part[0][group] for part in parts]) for group in (*FIELDS, *self.channels)}
        return groups, {group: np.concatenate([part[1][group] for part in parts]) for group in LISTS}

    def materials(self, number: int) -> npt.NDArray[np.uint8]:
        """(z, y, x): the map as it is in a frame."""
        x, y, z = self.size
        grid = np.frombuffer(self._bytes_of(0), np.uint8).reshape(z, y, x).copy()
        for earlier in range(1, number + 1):
            changes = self.frame(earlier).changes
            grid.flat[changes["cell"]] = changes["after"]
        return grid

    def _read_header(self, contents: bytes) -> dict[str, Any]:
        if contents[: len(MAGIC)] != MAGIC[: len(contents)] or not contents:
            raise BadRecording(f"{self.name} is no Echelon recording: make one with protege match echelon --out FILE")
        if len(contents) < PREFIX.size:
            raise BadRecording(f"{self.name} is cut off after {len(contents)} bytes: copy or record it again")
        _, version, size, crc, body = PREFIX.unpack_from(contents)
        if version != VERSION:
            told = f"a recording of version {version}, this is version {VERSION}"
            raise BadRecording(f"{self.name} is {told}: record it again")
        expected, found = PREFIX.size + size + body, len(contents)
        if found != expected:
            what = "cut off" if found < expected else "too long"
            raise BadRecording(f"{self.name} is {what}: {found:,} bytes, not {expected:,}; copy or record it again")
        text, self._body = self._body[:size], self._body[size:]
        if zlib.crc32(text) != crc:
            raise self._damaged("its header")
        header: dict[str, Any] = json.loads(bytes(text))
        if header.get("schema") != SCHEMA:
            raise BadRecording(f"{self.name} has other fields than this version's recordings: record it again")
        if len(header["mechs"]) > MOST_MECHS or max(block["unpacked"] for block in header["blocks"]) > MOST_BYTES:
            raise self._damaged("its header")
        return header

    def _damaged(self, what: str) -> BadRecording:
        return BadRecording(f"{self.name} is damaged ({what} does not match its checksum): copy or record it again")

    def _bytes_of(self, number: int) -> bytes:
        """A block, unpacked."""
        start, block = sum(block["bytes"] for block in self._blocks[:number]), self._blocks[number]
        packed = self._body[start : start + block["bytes"]]
        try:
            raw = zlib.decompressobj().decompress(packed, block["unpacked"] + 1)
        except zlib.error as error:
            raise self._damaged(f"block {number}") from error
        if zlib.crc32(packed) != block["crc"] or len(raw) != block["unpacked"]:
            raise self._damaged(f"block {number}")
        return raw

    def _unpack(self, number: int) -> tuple[Frames, Counts]:
        raw, frames, at = self._bytes_of(number), self._blocks[number]["frames"], 0

        def take(kind: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
            nonlocal at
            kind = np.dtype(kind)
            found = np.frombuffer(raw, kind, int(np.prod(shape)), at).reshape(shape)
            at += found.nbytes + -found.nbytes % ALIGN
            return found

        counts = {group: take("<u4", (frames,)).astype(np.int64) for group in LISTS}
        shapes = {"now": (frames,), "mechs": (frames, len(self.header["mechs"]))}
        shapes |= {group: (int(counts[group].sum()),) for group in LISTS}
        groups = {}
        for group, kinds in TYPES.items():
            groups[group] = np.zeros(shapes[group], kinds)
            for name in kinds.names or ():
                groups[group][name] = take(kinds[name].base, shapes[group] + kinds[name].shape)
        for name, numbers in self.channels.items():
            groups[name] = take("<f4", (*shapes["mechs"], len(numbers)))
        return groups, counts
