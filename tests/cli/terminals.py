"""A real pseudo-terminal for tests: a program runs in it, keys are pressed, and what appears is read along."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
ERASED = re.compile(r"[^\n]*\r\x1b\[2K")  # a line that was drawn anew, as progress bars are
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])")
# A program's terminal belongs to it once it leads a session and says so.
LEAD = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Terminal:
    """A terminal of some size and the program that runs in it."""

    def __init__(self, *command: str, columns: int = 120, rows: int = 40) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = self.modes()
        hidden = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "TTY_COMPATIBLE")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {"TERM": "xterm-256color", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PS1": "ready> "}
        self.process = subprocess.Popen(
            [sys.executable, "-c", LEAD, *command],
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=environment, start_new_session=True,
        )  # fmt: skip
        self.raw = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.theirs)  # the reader's next read fails
        self._reader.join(timeout=10)
        os.close(self.ours)

    def modes(self) -> list[object]:
        """How the terminal is set."""
        return list(termios.tcgetattr(self.theirs))

    def hands_keys_over_at_once(self) -> bool:
        local = self.modes()[3]
        assert isinstance(local, int)
        return not local & termios.ICANON and not local & termios.ECHO and bool(local & termios.ISIG)

    def text(self, start: int = 0) -> str:
        """Every line that stayed on the screen so far, without colours and movements."""
        return ESCAPES.sub("", ERASED.sub("", self.raw[start:])).replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def press(self, keys: str, answer: str, seconds: float = 30.0) -> re.Match[str]:
        """Press keys and wait for what should appear after them."""
        start = len(self.raw)
        self.type(keys)
        return self.wait_for(answer, seconds, start)

    def wait_for(self, pattern: str, seconds: float = 30.0, start: int = 0) -> re.Match[str]:
        """The first place that matches, in what appeared after so many characters."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text(start))):
            assert time.monotonic() < end, f"{pattern!r} did not appear in:\n{self.text(start)[-2000:]}"
            time.sleep(0.05)
        return found

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # nobody has the other end any more
                return
            if not piece:
                return
            self.raw += piece.decode(errors="replace")
