"""The server in a process of its own, started and ended by the one that trains.

In the same process it would take its turns at the interpreter, and a page with many viewers would slow the learner
down. Apart, it costs the training a thread that waits.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

READY: Final = "dashboard: "  # how the line begins in which the server says where it is


class ServerProcess:
    """Runs the page for as long as this process lives: it stops when its standard input, a pipe from here, closes."""

    def __init__(self, words: Sequence[str], tell: Callable[[str], None]) -> None:
        """Start `protege` with these words; `tell` gets a line when the page is there, or when it cannot be."""
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        command = [sys.executable, "-m", "protege.cli", *words, "--until-stdin-closes"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        try:
            # In a session of its own, so that Ctrl-C reaches the training alone, which then ends this.
            self._process = subprocess.Popen(command, text=True, start_new_session=os.name != "nt", **pipes)
        except OSError as error:
            tell(f"the page could not be started, training goes on without it: {error}")
            return
        self._listener = threading.Thread(target=self._listen, args=(self._process,), name="dashboard", daemon=True)
        self._listener.start()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._listener.join()
        process.stdout.close()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        ready, last = False, "it gave no reason"
        for line in process.stdout:
            last = line.strip() or last
            if line.startswith(READY) or (ready and line.startswith("  ")):  # what is indented belongs to it
                ready = True
                self._tell(line.rstrip())
        if not ready and self._process is not None:
            self._tell(f"the page could not be started, training goes on without it: {last}")
