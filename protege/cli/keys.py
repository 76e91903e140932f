"""Single keys of the terminal, told as they are pressed by a thread of their own.

The terminal hands keys over at once and shows none of them, but keeps its signals: Ctrl-C and Ctrl-Z do what they
always do. However the program ends, short of being killed outright, the terminal is as it was before; while the program
is stopped or in the background the terminal is left to whoever is in front. Windows by design, not run.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import IO, Any, Final

POLL_SECONDS: Final = 0.2

if sys.platform == "win32":
    import _thread
    import msvcrt

    class _Terminal:
        def is_ours(self) -> bool:
            return True

        def take(self) -> None:
            pass

        def give_back(self) -> None:
            pass

        def read(self, seconds: float) -> str:
            """Keys that come within a time, as far as they are characters."""
            end = time.monotonic() + seconds
            while not msvcrt.kbhit():
                if time.monotonic() > end:
                    return ""
                time.sleep(0.02)
            key = msvcrt.getwch()
            if key in "\x00\xe0":  # the first half of a key without a character
                msvcrt.getwch()
                return ""
            if key == "\x03":  # Ctrl-C, which is no signal to a program that reads keys
                _thread.interrupt_main()
                return ""
            return key

else:
    import select
    import termios
    import tty

    class _Terminal:
        def __init__(self) -> None:
            self.descriptor = sys.stdin.fileno()
            self.before = termios.tcgetattr(self.descriptor)

        def is_ours(self) -> bool:
            """Whether this program is in front; another one's terminal may be neither read nor changed."""
            return os.tcgetpgrp(self.descriptor) == os.getpgrp()

        def take(self) -> None:
            """Keys at once and unseen, from now on."""
            if termios.tcgetattr(self.descriptor)[tty.LFLAG] & (termios.ICANON | termios.ECHO):
                tty.setcbreak(self.descriptor, termios.TCSANOW)

        def give_back(self) -> None:
            """As it was."""
            if self.is_ours():
                termios.tcsetattr(self.descriptor, termios.TCSANOW, self.before)

        def read(self, seconds: float) -> str:
            """Keys that come within a time, as far as they are characters."""
            if not select.select([self.descriptor], [], [], seconds)[0]:
                return ""
            pressed = os.read(self.descriptor, 256)
            if not pressed:
                raise EOFError
            # Arrows and the like arrive as an escape and some letters, which nobody pressed.
            return "" if pressed.startswith(b"\x1b") else pressed.decode(errors="ignore")


class Keys:
    """Listens from `start` to the end of its `with`, if there is a terminal with somebody who sees the answers."""

    def __init__(self, screen: IO[str], pressed: Callable[[str], None], stopped: Callable[[bool], object]) -> None:
        """`pressed` gets every key, in another thread; `stopped` is told when Ctrl-Z stops the program, and after."""
        self.pressed, self.stopped = pressed, stopped
        self.there = sys.stdin is not None and sys.stdin.isatty() and screen.isatty()
        self._terminal: _Terminal | None = None
        self._turn = threading.Lock()
        self._away = False  # stopped, or about to be
        self._closing = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="keys", daemon=True)
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "Keys":
        # A request to end that nobody else takes care of becomes an exception, so that the terminal is put right.
        if self.there:
            self._on(signal.SIGTERM, _leave)
        return self

    def start(self) -> None:
        if not self.there:
            return
        self._terminal = _Terminal()
        if sys.platform != "win32":
            self._on(signal.SIGTSTP, self._stop)
        self._listener.start()

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._terminal is not None:
            with self._turn:
                self._away = True
                self._terminal.give_back()
            self._listener.join()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _on(self, number: int, handler: Callable[[int, FrameType | None], None]) -> None:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is signal.SIG_DFL:
            self._handlers[number] = signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: leave the terminal as it was, stop, and go on when told to."""
        assert self._terminal is not None
        with self._turn:
            self._away = True
            self._terminal.give_back()
        self.stopped(True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # the program stops inside this call
        signal.signal(number, self._stop)
        self.stopped(False)
        self._away = False

    def _listen(self) -> None:
        assert self._terminal is not None
        while not self._closing.is_set():
            try:
                with self._turn:
                    ours = not self._away and self._terminal.is_ours()
                    if ours:
                        self._terminal.take()  # each time: whoever had it meanwhile may have left it otherwise
                if not ours:
                    self._closing.wait(POLL_SECONDS)
                    continue
                for key in self._terminal.read(POLL_SECONDS):
                    self.pressed(key)
            except (OSError, EOFError):  # the terminal is gone; the program need not be
                return


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
