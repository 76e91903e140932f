"""Traces of a machine: its memory around every tick, and the random bytes its program read in between.

`lua/trace.lua` writes them inside MAME and `verify.py` replays them. A file is a header and records, all numbers
little-endian; docs/tempest-rules.md has the format. Read as bytes with every length checked, a tick at a time.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from protege import ProtegeError
from protege.games.tempest.rules.ram import RAM_BYTES
from protege.runs.files import short_path

MAGIC: Final = b"PROTRACE"
VERSION: Final = 1
TICK_RECORD, END_RECORD = 1, 2
HEADER: Final = struct.Struct("<8sBB")  # magic, version, length of the machine's name that follows
RECORD: Final = struct.Struct("<BH")  # kind, bytes that follow
COUNT: Final = struct.Struct("<H")
RUN: Final = struct.Struct("<HB")  # where bytes changed, and how many follow
READ: Final = struct.Struct("<BB")  # which noise register, and the byte
END: Final = struct.Struct("<I")  # ticks in the file


class TraceError(ProtegeError):
    """What is wrong with a file, and where."""


@dataclass(frozen=True)
class Tick:
    """One pass of the main loop: memory as it began, with the controls in it; bytes of noise read; memory after it."""

    before: bytes
    reads: tuple[int, ...]
    after: bytes


class Trace:
    """A file of ticks, read from its beginning to its end once."""

    def __init__(self, path: Path):
        self.path, self.machine, self.whole = path, "", False  # whole: its last record has been met, and agrees

    def __iter__(self) -> Iterator[Tick]:
        try:
            with self.path.open("rb") as file:
                yield from self._ticks(file)
        except OSError as error:
            raise TraceError(f"{short_path(self.path)} cannot be read: {error.strerror}") from error

    def _ticks(self, file: BinaryIO) -> Iterator[Tick]:
        magic, version, length = self._unpack(HEADER, file.read(HEADER.size), 0, "the header")
        if magic != MAGIC:
            raise TraceError(f"{short_path(self.path)} is no trace: record one with protege verify-rom --out FILE")
        if version != VERSION:
            raise TraceError(f"{short_path(self.path)} is a trace of version {version}, this reads {VERSION}")
        self.machine = file.read(length).decode(errors="replace")
        memory, number = bytes(RAM_BYTES), 0
        while len(head := file.read(RECORD.size)) == RECORD.size:
            kind, length = RECORD.unpack(head)
            body = file.read(length)
            if len(body) < length:
                return  # the recording was cut off: what came before is good
            where = f"record {number + 1}"
            if kind == END_RECORD:
                self.whole = self._unpack(END, body, 0, where)[0] == number and not file.read(1)
                if not self.whole:
                    raise TraceError(f"{short_path(self.path)}: its last record does not fit the {number} ticks in it")
                return
            if kind != TICK_RECORD:
                raise TraceError(f"{short_path(self.path)}: {where} is of kind {kind}; expected 1 (tick) or 2 (end)")
            tick = self._tick(body, memory, where)
            memory, number = tick.after, number + 1
            yield tick

    def _tick(self, body: bytes, memory: bytes, where: str) -> Tick:
        before, at = self._changed(memory, body, 0, where)
        count, at = self._unpack(COUNT, body, at, where)[0], at + COUNT.size
        reads = tuple(self._unpack(READ, body, at + READ.size * i, where)[1] for i in range(count))
        after, at = self._changed(before, body, at + READ.size * count, where)
        if at != len(body):
            raise TraceError(f"{short_path(self.path)}: {where} has {len(body) - at} bytes too many")
        return Tick(before, reads, after)

    def _changed(self, memory: bytes, body: bytes, at: int, where: str) -> tuple[bytes, int]:
        """Memory with the changes that a record lists from `at` on, and where these end."""
        image, (runs,) = bytearray(memory), self._unpack(COUNT, body, at, where)
        at += COUNT.size
        for _ in range(runs):
            address, length = self._unpack(RUN, body, at, where)
            at += RUN.size
            if address + length > RAM_BYTES or at + length > len(body):
                raise TraceError(f"{short_path(self.path)}: {where} changes bytes that are not there")
            image[address : address + length] = body[at : at + length]
            at += length
        return bytes(image), at

    def _unpack(self, form: struct.Struct, body: bytes, at: int, where: str) -> tuple[Any, ...]:
        if at + form.size > len(body):
            raise TraceError(f"{short_path(self.path)}: {where} is too short")
        return form.unpack_from(body, at)
