"""What every training shares: who is told how it goes, and how it is asked to stop."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Protocol

from protege.switches import Report

LOW_PRIORITY: Final = 10  # as `nice` counts


class Observer(Protocol):
    """Who is told how a training goes: the terminal, or a benchmark. A subclass says nothing where it is silent."""

    def started(self, report: dict[str, str], done: float) -> None:
        """Everything is set up; `report` says what runs."""
        return None

    def progressed(self, step: int, done: float, figures: dict[str, float]) -> None:
        """New figures, every two seconds."""
        return None

    def examined(self, exam: dict[str, Any], teacher: float, best: bool) -> None:
        """The pupil was measured, and is or is not the best so far."""
        return None

    def switched(self, switches: dict[str, dict[str, Any]]) -> None:
        """How the controls stand, at the start and after every change."""
        return None

    def noted(self, text: str) -> None:
        """Something else that a person should read."""
        return None

    def reported(self, report: Report) -> None:
        """The answer to a command that asked for a table."""
        return None


@contextmanager
def interrupts(observer: Observer) -> Iterator[threading.Event]:
    """An event that Ctrl-C or a request to terminate sets; a second Ctrl-C ends the program where it stands."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        observer.noted("saving and stopping; Ctrl-C again stops at once")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def step_back() -> None:
    """Let the calling thread run where others leave time. On Linux, where threads have priorities of their own.

    For what may take longer: otherwise threads that share a minibatch wait for the one that has to share its core.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)  # only the administrator may raise one again
        os.setpriority(os.PRIO_PROCESS, thread, max(now, LOW_PRIORITY))
