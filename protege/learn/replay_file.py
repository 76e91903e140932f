"""A replay on disk: compressed block by block while the learner goes on, sized up front, replaced whole or not at all.

After a first line come Zstandard frames, each behind its length and checksum: one of JSON, then one for every few
thousand steps, and an empty one as the end. Nothing in a file can run code.
"""

import json
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import zstandard

from protege.learn.replay import STEP, Actor, Block, Replay, ReplayError
from protege.runs.files import replacing

FIRST_LINE: Final = b"Protege replay 1\n"
LEVEL: Final = 1  # of compression: higher ones take longer and gain little
PROBES: Final = 8  # blocks compressed to tell the size of all
MARGIN: Final = 1.1
LONGEST: Final = 1 << 28  # bytes of a frame
FRAME: Final = struct.Struct("<II")  # before each: its length and checksum
PLACE: Final = struct.Struct("<QI")  # of a block: the first position, and how many steps


def saved_bytes(replay: Replay) -> int:
    """About how large a file would be now, from evenly spaced blocks."""
    compressor, state = zstandard.ZstdCompressor(level=LEVEL), replay.state()
    first, end = state["first"], state["end"]
    blocks = [replay.block(first + (end - first) * k // PROBES, end) for k in range(PROBES)]
    steps = sum(len(block.steps) for block in blocks)
    compressed = sum(len(compressor.compress(_bytes(block))) for block in blocks)
    return int(MARGIN * compressed / max(steps, 1) * (end - first))


def save(replay: Replay, path: Path) -> int:
    """Write the replay in place of the file before it; returns the bytes. Others may use the replay meanwhile."""
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    needed = saved_bytes(replay)
    try:
        free = shutil.disk_usage(path.parent).free
        if needed > free:
            raise ReplayError(
                f"saving the replay takes about {needed / 1e9:.2f} GB, and {path.parent} has {free / 1e9:.2f} GB "
                "free: make room there, or train without saving the replay"
            )
        with replacing(path) as draft, draft.open("wb") as file:
            file.write(FIRST_LINE)
            for content in _contents(replay):
                frame = compressor.compress(content)
                file.write(FRAME.pack(len(frame), zlib.crc32(frame)) + frame)
            file.write(FRAME.pack(0, 0))
            return file.tell()
    except OSError as error:
        raise ReplayError(f"{path} could not be saved, what was there before is untouched: {error}") from error


def load(replay: Replay, path: Path) -> None:
    """Put a saved replay in place of what is there. A file that turns out to be damaged leaves an empty one."""
    try:
        with path.open("rb") as file:
            if file.readline(len(FIRST_LINE)) != FIRST_LINE:
                raise ReplayError(f"{path} is no replay that this version of Protege has saved: delete it to go on")
            frames = _frames(file)
            header = json.loads(next(frames, b""))
            if header["packing"] != replay.packing.fingerprint():
                raise ReplayError(f"{path} holds observations packed in another way: delete it to go on without it")
            replay.restore(header["state"], _blocks(frames, header["state"]["end"], replay.packing.columns))
    except FileNotFoundError as error:
        raise ReplayError(f"there is no replay {path}") from error
    except (OSError, zstandard.ZstdError, ValueError, LookupError, TypeError, struct.error) as error:
        replay.flush()
        raise ReplayError(f"{path} is damaged or cut short ({error}): delete it to go on without it") from error


def _contents(replay: Replay) -> Iterator[bytes]:
    state = replay.state()
    yield json.dumps({"packing": replay.packing.fingerprint(), "state": state}).encode()
    position, end = state["first"], state["end"]
    begun = False
    while position < end:
        block = replay.block(position, end)
        if begun and block.first != position:
            raise ReplayError("the replay was flushed, or written faster than it can be saved: nothing was saved")
        if len(block.steps):
            yield _bytes(block)
        begun, position = True, block.first + len(block.steps)


def _bytes(block: Block) -> bytes:
    # Codes column by column: beside its likes in other steps, a code takes little more than half the room.
    parts = block.rows.T.tobytes(), block.steps.tobytes(), block.leaves.tobytes()
    return b"".join((PLACE.pack(block.first, len(block.steps)), *parts))


def _frames(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor()
    while True:
        size, checksum = FRAME.unpack(file.read(FRAME.size))
        frame = file.read(min(size, LONGEST))
        if zlib.crc32(frame) != checksum:
            raise ValueError("its contents do not match their checksum")
        if size == 0:
            return
        yield decompressor.decompress(frame)


def _blocks(frames: Iterator[bytes], end: int, columns: int) -> Iterator[Block]:
    position = None
    for frame in frames:
        first, count = PLACE.unpack_from(frame)
        if position not in (None, first):
            raise ValueError(f"steps {position} to {first} are missing")
        rows = np.frombuffer(frame, np.int16, count * columns, PLACE.size)
        steps = np.frombuffer(frame, STEP, count, PLACE.size + rows.nbytes)
        leaves = np.frombuffer(frame, np.float32, count, PLACE.size + rows.nbytes + steps.nbytes)
        beyond = first + np.arange(count) + steps["ahead"] >= end
        if beyond.any() or (steps["actor"] > len(Actor)).any() or not ((leaves >= 0) & np.isfinite(leaves)).all():
            raise ValueError(f"steps from {first} on make no sense")
        yield Block(first, rows.reshape(columns, count).T, steps, leaves)
        position = first + count
    if position not in (None, end):
        raise ValueError(f"steps from {position} on are missing")
