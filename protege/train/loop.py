"""One loop for every game: collect, update, obey, evaluate, save. Read it from `train` downwards.

The loop owns budget, clocks, controls, evaluation beside training, autosave and resume; what is played and learned is
the session's. With `deterministic` everything takes turns, and a run continues after a resume as if it had never
stopped. Numbers go into the run folder; the only way back is its inbox.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

from protege.learn.optimise import LearningFailed
from protege.runs import checkpoints
from protege.runs.run import Command, Run, Training, create_run, resume_run
from protege.train.collectors import Ahead, InTurn
from protege.train.controls import Report
from protege.train.evaluation import Evaluation
from protege.train.session import Config, Experience, Result, Session, Trainer

LOG_SECONDS: Final = 2.0
RISING: Final = 0.9  # where less than this part of what was used up of the budget is so now, rates rise again
EVALUATION_PAUSE: Final = 3.0  # times as long as an evaluation took, none follows: strong players play long games
MOST_FOR_LAST_EVALUATION: Final = 0.05  # of the budget, kept back for the evaluation at the end
NO_RANK: Final[tuple[float, ...]] = (-math.inf,)


class Observer:
    """Who is told how a training goes: the terminal, or a benchmark. This one is silent."""

    def started(self, report: dict[str, str], progress: float) -> None:
        """Everything is set up; `report` says what runs."""

    def progressed(self, step: int, progress: float, figures: dict[str, float]) -> None:
        """New figures, every two seconds."""

    def evaluated(self, result: Result, best: bool) -> None:
        """The pupil was measured, and is or is not the best so far."""

    def controlled(self, controls: dict[str, dict[str, Any]]) -> None:
        """How the controls stand, at the start and after every change."""

    def noted(self, text: str) -> None:
        """Something else that a person should read."""

    def reported(self, report: Report) -> None:
        """The answer to a command that asked for a table."""


def train(
    trainer: Trainer, config: Any, observer: Observer = Observer(), *, name: str | None = None, resume: bool = False,
    folder: Path | None = None, began: float | None = None, prepare: Callable[[Training], None] | None = None,
) -> Run:  # fmt: skip
    """Train a new run, or go on with one, until its budget is used up or it is told to stop; returns the run.

    `began` is when the budget's clock started, by `time.monotonic`; `prepare` sees the run before its first step.
    """
    trainer.check(config)
    trainer.admit(config, name, resume, folder)
    torch.set_num_threads(1)  # the threads of a training share the cores; more would fight over them
    metrics, kept = trainer.metrics(config), {"score": trainer.score, "unit": trainer.unit}
    if resume:
        assert name is not None, "a run to resume has a name"
        opened = resume_run(name, metrics, config=config, folder=folder, **kept)
    else:
        opened = create_run(trainer.game, trainer.learner(config), config, metrics, name=name, folder=folder, **kept)
    with opened as run, interrupts(observer) as interrupted:
        if prepare is not None:
            prepare(run)
        loop = Loop(trainer, config, run, observer, time.monotonic() if began is None else began)
        with closing(loop.session):
            loop.start(resume)
            loop.run_until_done(interrupted)
    return run


class Loop:
    """A training between two experiences, and what happens with each. To its session it is the `Context`."""

    def __init__(self, trainer: Trainer, config: Config, run: Training, observer: Observer, began: float):
        self.trainer, self.config, self.run, self.observer, self.began = trainer, config, run, observer, began
        self.unit, self.budget = trainer.unit, trainer.budget(config)
        self.minutes = 0.0 if config.deterministic else config.minutes  # clocks differ, so it counts steps alone
        self.cpu_began = time.process_time()
        self.earlier_s = self.earlier_cpu_s = 0.0  # used up by processes before this one
        self.reserve_s = 0.0  # kept back for the last evaluation
        self.next_evaluation_step = config.eval_every
        self.next_evaluation_s = self.next_save_s = self.next_log_s = 0.0
        self.best, self.best_of = NO_RANK, ""  # rank of the best result, and the yardstick it was measured by
        self.session: Session = trainer.session(config, self)
        self.phase: Hashable = None

    def progress(self) -> float:
        fractions = [0.0]
        if self.budget:
            fractions.append(self.session.step / self.budget)
        if self.minutes:
            fractions.append(self.elapsed_s() / max(1.0, 60 * self.minutes - self.reserve_s))
        return max(fractions)

    def note(self, text: str, event: str = "") -> None:
        """Tell whoever watches; with `event`, the run remembers it under that word."""
        if event:
            self.run.event(event, text)
        self.observer.noted(text)

    def save(self, last: bool = False) -> None:
        """Write everything a resumed run needs; `last`: no other will follow."""
        self.next_save_s = self.elapsed_s() + self.config.autosave_seconds
        session = self.session
        state = {
            "step": session.step,
            "elapsed_s": self.elapsed_s(),
            "cpu_s": self.cpu_s(),
            "progress": self.progress(),
            "best": list(self.best),
            "best_of": self.best_of,
            "next_evaluation_step": self.next_evaluation_step,
            "controls": session.controls.state(),
            "session": session.state(),
        }
        self._save_to(self.run.last, session.tensors(), state)
        self.run.event("autosave", f"{self.unit} {session.step:,}")
        if problem := session.save_memory(wait=last or self.config.deterministic):
            self.note(problem, event="not saved")

    def start(self, resume: bool) -> None:
        """Begin from nothing or from the last checkpoint, and say what runs."""
        resumed = resume and self._restore()
        self.session.begin(resumed)
        self.phase = self.session.phase
        now = self.elapsed_s()
        self.next_evaluation_s = now + self.config.eval_seconds / 2
        self.next_save_s = now + self.config.autosave_seconds
        self.next_log_s = now + LOG_SECONDS
        self._show_controls()
        self.observer.started(self._report(resumed), self.progress())

    def run_until_done(self, interrupted: threading.Event) -> None:
        """Collect, update, obey, evaluate, save."""
        session = self.session
        collector = Ahead(session) if session.ahead else InTurn(session)
        evaluation: Evaluation | None = None
        problem: Exception | None = None
        wanted = True
        try:
            while wanted and not session.finished and self.progress() < 1.0 and not interrupted.is_set():
                experience = collector.next()
                self._update(experience)
                collector.give_back(experience)
                wanted = self._obey()
                if evaluation is None and self._evaluation_is_due():
                    evaluation = self._evaluation()
                if evaluation is not None and (self.config.deterministic or not evaluation.is_alive()):
                    self._evaluated(evaluation)
                    evaluation = None
                session.advance()
                if session.phase != self.phase:
                    self.phase = session.phase
                    self._plan_evaluation()
                if self.elapsed_s() >= self.next_save_s:
                    self.save()
            if self.progress() < 1.0 and not session.finished:
                self.run.stop()
            for experience in session.drain(collector.stop()):
                self._update(experience)
            self.save(last=True)
        finally:
            collector.stop()
            if evaluation is not None:
                problem = evaluation.cancel()
        if problem is not None:
            raise problem
        ended_by_itself = wanted and not interrupted.is_set()
        if session.finished:
            self.note(session.finished)
        elif ended_by_itself:
            self.note("the budget is used up: a last evaluation, and it ends")
            self._evaluated(self._evaluation())
        if session.finish() or ended_by_itself:
            self.save(last=True)

    def _update(self, experience: Experience) -> None:
        try:
            figures = self.session.update(experience)
        except LearningFailed as failure:
            raise type(failure)(f"{failure}; see {self.run.diagnose(failure.report)}", failure.report) from failure
        if problem := self.session.explain():
            self.note(problem, event="skipped")
        if self.elapsed_s() < self.next_log_s:
            return
        self.next_log_s = self.elapsed_s() + LOG_SECONDS
        progress = self.progress()
        figures |= self.session.figures() | {"progress": min(1.0, progress), "cpu_minutes": self.cpu_s() / 60}
        self.run.log(self.session.step, **figures)
        self.observer.progressed(self.session.step, progress, figures)

    def _evaluation(self) -> Evaluation:
        return Evaluation(self.session.snapshot(), self.session.phase, self.session.step)

    def _evaluation_is_due(self) -> bool:
        """By the clock, or where that would change the numbers, by steps."""
        if self.config.deterministic:
            return self.session.step >= self.next_evaluation_step
        return self.elapsed_s() >= self.next_evaluation_s

    def _plan_evaluation(self, pause_s: float = 0.0) -> None:
        """The next one is as far away as the settings say, and not before the pause is over."""
        self.next_evaluation_s = self.elapsed_s() + max(self.config.eval_seconds, pause_s)
        self.next_evaluation_step = self.session.step + self.config.eval_every

    def _evaluated(self, evaluation: Evaluation) -> None:
        """Log a result, keep the checkpoint if it is the best, and let the session draw its conclusions."""
        result = evaluation.result()
        self._plan_evaluation(pause_s=EVALUATION_PAUSE * result.seconds)
        self.reserve_s = min(result.seconds, MOST_FOR_LAST_EVALUATION * 60 * self.minutes)
        if evaluation.phase != self.session.phase:
            return  # what was measured has ended meanwhile
        yardstick = f"{evaluation.phase} {result.yardstick}"
        if self.best_of != yardstick:
            self.best, self.best_of = NO_RANK, yardstick
        self.run.log(self.session.step, **result.figures)
        best = result.rank >= self.best
        if best:
            self.best = result.rank
            known = {"seed": self.config.seed, "elapsed_s": self.elapsed_s()}
            self._save_to(self.run.best, evaluation.snapshot.tensors(), known | dict(result.about))
        self.session.evaluated(evaluation.snapshot, result, best)
        self.observer.evaluated(result, best)

    def _obey(self) -> bool:
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
                return f"saved at {self.unit} {self.session.step:,}"
            case "evaluate":
                self.next_evaluation_s, self.next_evaluation_step = 0.0, 0
                return "the pupil is measured now, or right after the evaluation that is going on"
            case _:
                answer = self.session.controls.obey(command.name, command.arguments, self.session.scheduled())
                self._show_controls()
                return answer

    def _show_controls(self) -> None:
        view = self.session.controls.view()
        self.run.show_controls(view)
        self.observer.controlled(view)

    def elapsed_s(self) -> float:
        """Budget time used up so far."""
        return self.earlier_s + time.monotonic() - self.began

    def cpu_s(self) -> float:
        """Processor time of all threads and of helpers so far, also of processes before this one."""
        return self.earlier_cpu_s + time.process_time() - self.cpu_began + self.session.helpers_cpu_s

    def _save_to(self, path: Path, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        trainer = self.trainer
        about = self.session.about() | dict(state)
        checkpoints.save(path, tensors, about, kind=trainer.kind(self.config), task_version=trainer.task_version)

    def _restore(self) -> bool:
        if not self.run.last.is_file():
            self.note(f"run {self.run.name} was stopped before its first checkpoint: it starts afresh")
            self.run.rewind(-1)
            return False
        trainer = self.trainer
        saved = checkpoints.load(self.run.last, kind=trainer.kind(self.config), task_version=trainer.task_version)
        state = saved.state if "session" in saved.state else trainer.upgrade(saved.state)
        self.earlier_s, self.earlier_cpu_s = state["elapsed_s"], state["cpu_s"]
        for line in self.session.restore(saved, state["session"]):
            self.note(line)
        self.session.controls.restore(state["controls"])
        self.best, self.best_of = tuple(state["best"]), state["best_of"]
        self.next_evaluation_step = state["next_evaluation_step"]
        self.run.rewind(self.session.step)
        self._note_budget(state["progress"])
        return True

    def _note_budget(self, before: float) -> None:
        """Tell who resumes a run that nothing of its budget is left, or what a longer one does to it."""
        if self.progress() >= 1.0:
            used = f"{self.session.step:,} of {self.budget:,} {self.unit}s are used: give more with --{self.unit}s"
            if self.minutes and self.elapsed_s() >= 60 * self.minutes:
                used = f"{self.elapsed_s() / 60:,.0f} of {self.minutes:g} minutes are used: give more with --minutes"
            self.observer.noted(used)
        elif self.progress() < RISING * before:
            self.observer.noted("with a longer budget the learning rate rises again: expect lower scores at first")

    def _report(self, resumed: bool) -> dict[str, str]:
        budget = [f"{self.minutes:g} minutes"] * bool(self.minutes)
        budget += [f"{self.budget:,} {self.unit}s"] * bool(self.budget)
        changed = self.session.controls.changed()
        start = f"resumed at {self.unit} {self.session.step:,}" if resumed else "fresh"
        return {
            "run": f"{self.run.path}, {start}",
            **self.session.describe(),
            "budget": " or ".join(budget) or "none: stop it with Ctrl-C",
        } | ({"controls": f"{changed}, as before"} if changed else {})


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
