"""Files that survive a kill at any moment: replaced whole or not at all, and locks that the system frees.

What differs between operating systems about files is here and nowhere else.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final

LOCK_BYTE: Final = 1 << 30  # Windows hides locked bytes from readers, so the lock sits far behind the text
LOCK_PATIENCE_S: Final = 1.0  # `is_locked` holds the lock itself for an instant
DRAFT: Final = ".tmp"

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int, *, shared: bool) -> bool:
        os.lseek(descriptor, LOCK_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class InUse(Exception):
    """Somebody else has the lock; the text says who."""


class Lock:
    """Held by one process and freed by the system when that process ends, in whatever way. The file stays."""

    held: ClassVar[set[int]] = set()  # descriptors of this process

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        patience = time.monotonic() + LOCK_PATIENCE_S
        while not _try_lock(self._descriptor, shared=False):
            if time.monotonic() > patience:
                os.close(self._descriptor)
                raise InUse(path.read_text(errors="replace") or "another process")
            time.sleep(0.02)
        self.held.add(self._descriptor)
        about = f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, about.encode())

    def is_held(self) -> bool:
        return self._descriptor in self.held

    def release(self) -> None:
        """Let others have it; a second time does nothing."""
        if self.is_held():
            self.held.discard(self._descriptor)
            os.close(self._descriptor)

    @classmethod
    def leave_to_parent(cls) -> None:
        """In a forked child: a worker that outlives its killed parent must not keep the lock."""
        while cls.held:
            os.close(cls.held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Lock.leave_to_parent)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock, this one included."""
    try:
        descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A draft to write, which takes the place of `path` once it is on disk. After an error the old file stays."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}{DRAFT}")
    try:
        yield draft
        _to_disk(draft, os.O_RDWR)
        _replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    if os.name != "nt":  # the new name is on disk only once its folder is; Windows cannot open folders
        _to_disk(path.parent, os.O_RDONLY)


def remove_drafts(folder: Path) -> None:
    """Delete what killed processes left half written; only for whoever is sure that nobody else writes here."""
    for draft in folder.glob(f".*{DRAFT}"):
        draft.unlink(missing_ok=True)


def short_path(path: Path) -> str:
    """A path to show, with the home folder written as ~."""
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def _replace(draft: Path, path: Path) -> None:
    for _ in range(20 if os.name == "nt" else 0):
        try:
            draft.replace(path)
            return
        except PermissionError:  # Windows, as long as somebody reads the old file
            time.sleep(0.05)
    draft.replace(path)


def _to_disk(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
