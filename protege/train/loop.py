"""What every training shares: who is told how it goes, its clocks, what it does on command, how it is asked to stop."""

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, Protocol

from protege.runs.run import Command, Training
from protege.train.controls import Report, Scheduled, Switches

LOG_SECONDS: Final = 2.0
RISING: Final = 0.9  # where less than this part of what was used up of the budget is so now, rates rise again


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


class Timing(Protocol):
    """What a loop needs of a training's settings."""

    @property
    def exam_seconds(self) -> float: ...
    @property
    def exam_every(self) -> int: ...
    @property
    def autosave_seconds(self) -> float: ...
    @property
    def deterministic(self) -> bool: ...


class Loop:
    """What the loop of every training has alike: clocks, when an exam is due, and obeying commands."""

    unit: str  # what its steps are called
    switches: Switches

    def __init__(self, timing: Timing, run: Training, observer: Observer, began: float):
        """`began` is when the budget's clock started, by `time.monotonic`."""
        self.timing, self.run, self.observer, self.began = timing, run, observer, began
        self.cpu_began = time.process_time()
        self.earlier_s = self.earlier_cpu_s = 0.0  # time used up by processes before this one
        self.next_exam_step = timing.exam_every
        self.next_exam_s = self.next_save_s = self.next_log_s = 0.0

    @property
    def step(self) -> int:
        """Learned from so far."""
        raise NotImplementedError

    def scheduled(self) -> Scheduled:
        """What the settings alone would give now."""
        raise NotImplementedError

    def done(self) -> float:
        """Share of the budget that is used up."""
        raise NotImplementedError

    def save(self) -> None:
        """Write everything a resumed run needs."""
        raise NotImplementedError

    def elapsed_s(self) -> float:
        """Budget time used up so far."""
        return self.earlier_s + time.monotonic() - self.began

    def cpu_s(self) -> float:
        """Processor time of all threads so far, also of processes before this one."""
        return self.earlier_cpu_s + time.process_time() - self.cpu_began

    def clocks(self) -> dict[str, float]:
        """How they stand, for a checkpoint."""
        return {"elapsed_s": self.elapsed_s(), "cpu_s": self.cpu_s(), "done": self.done()}

    def restore_clocks(self, state: Mapping[str, Any]) -> None:
        """From a checkpoint."""
        self.earlier_s, self.earlier_cpu_s = state["elapsed_s"], state.get("cpu_s", 0.0)

    def note_budget(self, minutes: float, steps: int, done_before: float) -> None:
        """Tell who resumes a run that nothing of its budget is left, or what a longer one does to it.

        `done_before` is the share that was used up when it was saved, 0 if the learning rate does not follow it.
        """
        if self.done() >= 1.0:
            used = f"{self.step:,} of {steps:,} {self.unit}s are used: give more with --{self.unit}s"
            if minutes and self.elapsed_s() >= 60 * minutes:
                used = f"{self.elapsed_s() / 60:,.0f} of {minutes:g} minutes are used: give more with --minutes"
            self.observer.noted(used)
        elif self.done() < RISING * done_before:
            self.observer.noted("with a longer budget the learning rate rises again: expect lower scores at first")

    def start_clocks(self) -> None:
        """From now on time counts towards the next exam, checkpoint and line of figures."""
        now = self.elapsed_s()
        self.next_exam_s = now + self.timing.exam_seconds / 2
        self.next_save_s = now + self.timing.autosave_seconds
        self.next_log_s = now + LOG_SECONDS

    def log_is_due(self) -> bool:
        """Whether figures are to be logged; if so, the next ones are due two seconds from now."""
        due = self.elapsed_s() >= self.next_log_s
        if due:
            self.next_log_s = self.elapsed_s() + LOG_SECONDS
        return due

    def exam_is_due(self) -> bool:
        """Whether the pupil is to be measured: by the clock, or where that would change the numbers, by steps."""
        if self.timing.deterministic:
            return self.step >= self.next_exam_step
        return self.elapsed_s() >= self.next_exam_s

    def plan_exam(self, pause_s: float = 0.0) -> None:
        """The next one is as far away as the settings say, and not before the pause is over."""
        self.next_exam_s = self.elapsed_s() + max(self.timing.exam_seconds, pause_s)
        self.next_exam_step = self.step + self.timing.exam_every

    def obey(self) -> bool:
        """Do what the inbox asks for; False ends the training."""
        for command in self.run.commands():
            answer = self._answer(command)
            if isinstance(answer, Report):
                self.run.event("report", answer.text())
                self.observer.reported(answer)
            else:
                self.run.event("command", f"{command.name}: {answer}")
                self.observer.noted(answer)
            if command.name == "stop":
                return False
        return True

    def _answer(self, command: Command) -> Report | str:
        match command.name:
            case "stop":
                return "saving and stopping"
            case "save":
                self.save()
                return f"saved at {self.unit} {self.step:,}"
            case "evaluate":
                self.next_exam_s, self.next_exam_step = 0.0, 0
                return "the pupil is measured now, or right after the exam that is going on"
            case _:
                answer = self.switches.obey(command.name, command.arguments, self.scheduled())
                self.show_switches()
                return answer

    def show_switches(self) -> None:
        """Tell everybody how the controls stand."""
        self.run.show_switches(self.switches.view())
        self.observer.switched(self.switches.view())


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
