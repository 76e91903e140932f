"""Trains a pupil on the simulator: wiring and the loop. Read it from `train` downwards.

A `Practice` plays and learns: one thread plays, some learn, one more measures the pupil on held-out games (`_Exam`);
pieces of play and copies of the weights pass between them. With `deterministic` all take turns in one thread and a run
continues after a resume as if it had never stopped. Numbers go into the run folder; the only way back is its inbox.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from protege.evaluate import EVALUATION
from protege.games.tempest.agents.players import measure
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.env import TASK_VERSION, Frames, starts
from protege.games.tempest.task.recordings import NO_MOVE, SUFFIX, save_recording
from protege.games.tempest.training.cabinets import CabinetPractice
from protege.games.tempest.training.config import TempestConfig, check
from protege.games.tempest.training.metrics import METRICS, Accounts, Windows
from protege.games.tempest.training.practice import FastPractice, Piece, Practice
from protege.games.tempest.training.rainbow import RainbowPractice
from protege.learn.optimise import LearningFailed
from protege.learn.state import named_weights
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.runs.run import Run, Training, create_run, resume_run
from protege.train.controls import Scheduled
from protege.train.loop import LOG_SECONDS, Loop, Observer, interrupts

SEED_OF_EXAMS: Final = 2_000_000  # so that exams and what people evaluate with are different games
MEMORY_OF_LIBRARIES: Final = 500e6  # bytes that Python, torch and compiled code take
MOST_FOR_LAST_EXAM: Final = 0.05  # share of the budget kept back for the exam at the end
MOST_TO_FILL: Final = 100  # pieces played for an estimate until there is enough to learn from
EXAM_PAUSE: Final = 3.0  # times as long as an exam took, nothing is measured after it: strong pupils play long games


def train(
    config: TempestConfig, observer: Observer, *, name: str | None = None, resume: bool = False,
    folder: Path | None = None, began: float | None = None, prepare: Callable[[Training], None] | None = None,
    bridge: BridgeConfig | None = None,
) -> Run:  # fmt: skip
    """Train a new run, or go on with one, until its budget is used up or it is told to stop; returns the run.

    `began` is when the budget's clock started, by `time.monotonic`; `prepare` sees the run before its first frame.
    With `bridge`, arcade clients are played in place of the simulator.
    """
    check(config)
    torch.set_num_threads(1)  # the threads of a training share the cores; more would fight over them
    if resume:
        assert name is not None, "a run to resume has a name"
        opened = resume_run(name, METRICS[config.learner], config=config, folder=folder)
    else:
        opened = create_run(
            "tempest", config.learner, config, METRICS[config.learner], score="exam_score", name=name, folder=folder
        )
    with opened as run, interrupts(observer) as interrupted:
        if prepare is not None:
            prepare(run)
        loop = _Loop(config, run, observer, time.monotonic() if began is None else began, bridge)
        try:
            loop.start(resume)
            loop.run_until_done(interrupted)
        finally:
            loop.practice.close()
    return run


class _Loop(Loop):
    """The state of a training between two pieces of play, and what happens with each."""

    unit = "frame"

    def __init__(
        self, config: TempestConfig, run: Training, observer: Observer, began: float, bridge: BridgeConfig | None
    ):
        super().__init__(config, run, observer, began)
        self.config = config
        self.reserve_s = 0.0  # kept back for the last exam
        self.best = -math.inf  # points per life
        cores = usable_cores()
        self.threads = 1 if config.deterministic else config.threads or min(4, cores)
        self.practice: Practice
        if bridge is not None:
            self.practice = CabinetPractice(
                config, self.threads, run.replay, bridge, observer.noted, lambda: run.send("save"), run.name
            )
        else:
            self.practice = practice_of(config, self.threads, run.replay)
        self.switches = self.practice.switches
        self.windows = Windows()
        self.accounts = Accounts(1 if config.deterministic else min(cores, self.threads + 2))
        self.teacher = 0.0

    @property
    def step(self) -> int:
        return self.practice.frames

    def scheduled(self) -> Scheduled:
        return self.practice.scheduled()

    def done(self) -> float:
        """Share of the budget that is used up."""
        shares = [0.0]
        if self.config.frames:
            shares.append(self.step / self.config.frames)
        if self.config.minutes and not self.config.deterministic:
            shares.append(self.elapsed_s() / max(1.0, 60 * self.config.minutes - self.reserve_s))
        return max(shares)

    def start(self, resume: bool) -> None:
        """Warm up or restore, measure the teachers, and say what runs."""
        resumed = resume and self._restore()
        if not resumed:
            self.practice.start()
        teachers = [measure(name, **self.exam_games()) for name in ("teacher", "teacher-full")]
        self.teacher = max(found["score_mean"] for found in teachers)
        self.start_clocks()
        self.accounts.start(self.step, self.practice.updates)
        self.show_switches()
        self.observer.started(self._report(resumed), self.done())

    def run_until_done(self, interrupted: threading.Event) -> None:
        """The loop: play, learn, obey, measure, save."""
        play = _InTurn(self.practice) if self.config.deterministic else _Ahead(self.practice)
        exam: _Exam | None = None
        wanted = True
        try:
            while wanted and self.done() < 1.0 and not interrupted.is_set():
                piece = play.next()
                self._learn(piece)
                play.give_back(piece.content)
                wanted = self.obey()
                if exam is None and self.exam_is_due():
                    exam = _Exam(self)
                if exam is not None and (self.config.deterministic or not exam.is_alive()):
                    self._examined(exam)
                    exam = None
                if self.elapsed_s() >= self.next_save_s:
                    self.save()
            if self.done() < 1.0:
                self.run.stop()
            for piece in self.practice.remaining(play.stop()):
                self._learn(piece)
            self.save(last=True)
        finally:
            play.stop()
            if exam is not None:
                exam.cancel()
        if wanted and not interrupted.is_set():
            self.observer.noted("the budget is used up: a last exam, and it ends")
            self._examined(_Exam(self))
            self.save()

    def _learn(self, piece: Piece) -> None:
        try:
            figures = self.practice.learn(piece, self.done())
        except LearningFailed as failure:
            raise type(failure)(f"{failure}; see {self.run.diagnose(failure.report)}", failure.report) from failure
        if problem := self.practice.explain():
            self.run.event("skipped", problem)
            self.observer.noted(problem)
        self.windows.add(piece.episodes, self.step)
        self.accounts.learning = self.practice.learning_s
        self.accounts.acting += piece.acting_s
        self.accounts.simulating += piece.simulating_s
        if not self.log_is_due():
            return
        figures |= self.practice.figures()
        figures |= self.windows.figures() | self.accounts.figures(self.step, self.practice.updates)
        figures |= {"progress": min(1.0, self.done()), "cpu_minutes": self.cpu_s() / 60}
        self.run.log(self.step, **figures)
        self.observer.progressed(self.step, self.done(), figures)

    # --- exams ---

    def exam_games(self) -> dict[str, Any]:
        """The games of every exam, as `measure` wants them."""
        c = self.config
        return {"games": c.exam_games, "seed": SEED_OF_EXAMS + c.seed, "max_frames": c.exam_frames}

    def _examined(self, finished: "_Exam") -> None:
        """Note a result: it sets the teacher's weight, the levels to start at, and which checkpoint is the best."""
        c, exam = self.config, finished.result()
        self.plan_exam(pause_s=EXAM_PAUSE * exam["seconds"])
        self.reserve_s = min(exam["seconds"], MOST_FOR_LAST_EXAM * 60 * c.minutes)
        self.practice.examined(exam, self.teacher)
        self.run.log(
            self.step, exam_score=exam["score_mean"], exam_score_low=exam["score_mean_low"],
            exam_score_high=exam["score_mean_high"], teacher_score=self.teacher,
            exam_points_per_life=exam["points_per_life"], exam_level=exam["level_mean"],
            exam_ratio=exam["score_mean"] / self.teacher,
        )  # fmt: skip
        # Points per life, not the score: exam games are cut, which hides how long the best would have lasted.
        better = exam["points_per_life"] >= self.best
        if better:
            self.best = exam["points_per_life"]
            kept = ("frames", "score_mean", "score_mean_low", "score_mean_high", "points_per_life", "level_mean")
            about = {"seed": c.seed, "elapsed_s": self.elapsed_s()} | {key: exam[key] for key in kept}
            self._save_to(self.run.best, named_weights(finished.pupil.network, "network"), about)
            finished.record_best_game(self.run.recordings / f"best-exam{SUFFIX}")
        self.observer.examined(exam, self.teacher, better)

    # --- checkpoints ---

    def save(self, last: bool = False) -> None:
        """Write everything a resumed run needs."""
        self.next_save_s = self.elapsed_s() + self.config.autosave_seconds
        state = {
            "frames": self.step,
            **self.clocks(),
            "best": self.best,
            "next_exam_frame": self.next_exam_step,
            "windows": self.windows.state(),
            "switches": self.switches.state(),
            "practice": self.practice.state(),
        }
        self._save_to(self.run.last, self.practice.tensors(), state)
        self.run.event("autosave", f"frame {self.step:,}")
        if problem := self.practice.save_memory(wait=last or self.config.deterministic):
            self.run.event("not saved", problem)
            self.observer.noted(problem)

    def _save_to(self, path: Path, tensors: dict[str, torch.Tensor], state: dict[str, Any]) -> None:
        kind, about = self.practice.kind, self.practice.shape() | state
        checkpoints.save(path, tensors, about, kind=kind, task_version=TASK_VERSION)

    def _restore(self) -> bool:
        if not self.run.last.is_file():
            self.observer.noted(f"run {self.run.name} was stopped before its first checkpoint: it starts afresh")
            self.run.rewind(-1)
            return False
        saved = checkpoints.load(self.run.last, kind=self.practice.kind, task_version=TASK_VERSION)
        state = saved.state
        for line in self.practice.restore(saved, state["practice"]):
            self.observer.noted(line)
        self.switches.restore(state["switches"])
        self.restore_clocks(state)
        self.best = state["best"]
        self.next_exam_step = state["next_exam_frame"]
        self.windows.restore(state["windows"])
        self.run.rewind(self.step)
        c = self.config
        falls_with_budget = c.learner == "pqn" or c.rainbow.schedule_frames > 0
        minutes = 0.0 if c.deterministic else c.minutes
        self.note_budget(minutes, c.frames, state.get("done", 0.0) if falls_with_budget else 0.0)
        return True

    def _report(self, resumed: bool) -> dict[str, str]:
        c = self.config
        on_cpu = self.practice.device.type == "cpu"
        device = "CPU" if on_cpu else f"{self.practice.device.type.upper()} learns and chooses moves; CPU"
        learning = "one learns" if self.threads == 1 or not on_cpu else f"{self.threads} learn"
        threads = "all in one thread" if c.deterministic else f"one thread plays, {learning}, one measures"
        budget = [f"{c.minutes:g} minutes"] * bool(c.minutes and not c.deterministic)
        budget += [f"{c.frames:,} frames"] * bool(c.frames)
        switched = self.switches.changed()
        return {
            "run": f"{self.run.path}, " + (f"resumed at frame {self.step:,}" if resumed else "fresh"),
            "game": f"Tempest simulator, task version {TASK_VERSION}, seed {c.seed}",
            **self.practice.describe(),
            "device": f"{device}, cores: {usable_cores()}; {threads}",
            "budget": " or ".join(budget) or "none: stop it with Ctrl-C",
            "teacher": f"{self.teacher:,.0f} points on the {c.exam_games} exam games",
        } | ({"switched": f"{switched}, as before"} if switched else {})


def practice_of(config: TempestConfig, threads: int, replay: Path) -> Practice:
    """The learner that the settings name, on the simulator; `replay` is where it may keep a memory."""
    if config.learner == "rainbow":
        return RainbowPractice(config, threads, replay)
    return FastPractice(config, threads)


def estimate(config: TempestConfig) -> dict[str, str]:
    """What a training would need, from a few real pieces of play and the updates that they allow."""
    check(config)
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        practice = practice_of(_underway(config), 1, Path(folder) / "replay")
        practice.start()
        content = practice.empty()
        for _ in range(MOST_TO_FILL):
            practice.learn(practice.play(content), 0.0)
            if practice.updates:
                break
        playing, learning = [], []
        for _ in range(4):
            began = time.perf_counter()
            piece = practice.play(content)
            then = time.perf_counter()
            practice.learn(piece, 0.0)
            playing.append(then - began)
            learning.append(time.perf_counter() - then)
        play, learn = min(playing), sum(learning) / len(learning)  # not every piece allows as many updates
        a_piece = play + learn if config.deterministic else max(play, learn)
        rate = piece.frames / a_piece
        file = Path(folder) / "checkpoint"
        checkpoints.save(file, practice.tensors(), practice.state(), kind=practice.kind, task_version=TASK_VERSION)
        checkpoint = file.stat().st_size
    seconds = 60 * config.minutes if config.minutes else math.inf
    if config.frames:
        seconds = min(config.frames / rate, seconds) if not config.deterministic else config.frames / rate
    logged = 60 * len(METRICS[config.learner]) * seconds / LOG_SECONDS if math.isfinite(seconds) else 0.0
    return {
        "memory": f"{(MEMORY_OF_LIBRARIES + practice.memory_bytes() + 20 * checkpoint) / 1e6:,.0f} MB",
        "disk": f"{(2 * checkpoint + practice.disk_bytes() + logged) / 1e6:,.1f} MB"
        + ("" if logged else ", and 60 MB a day of figures"),
        "time": f"{seconds / 60:,.1f} minutes" if math.isfinite(seconds) else "until it is stopped",
        "frames": f"{rate:,.0f} a second" + (f", {rate * seconds / 1e6:,.1f} million" if logged else ""),
    }


def _underway(config: TempestConfig) -> TempestConfig:
    """Settings with which the first pieces of play are like those of most of a training."""
    c = config.rainbow
    learner = replace(c.learner, minimum_fill=c.learner.batch)
    rainbow = replace(
        c, learner=learner, warm_frames=0, warm_updates=0, epsilon=c.final_epsilon, teacher=c.final_teacher
    )
    return replace(config, rainbow=rainbow)


class _Exam(threading.Thread):
    """Measures a copy of the weights beside the training."""

    def __init__(self, loop: _Loop):
        super().__init__(name="exam", daemon=True)
        self.loop, self.frames = loop, loop.step
        self.pupil = loop.practice.pupil()
        self.cancelled = threading.Event()
        self.found: dict[str, Any] | Exception
        self.start()

    def run(self) -> None:
        began = time.thread_time()
        games = self.loop.exam_games()
        self.moves = np.full((games["games"], games["max_frames"]), NO_MOVE, np.uint8)
        try:
            self.found = measure("pupil", player=self, moves=self.moves, **games)
        except Exception as problem:  # whatever it is, the training raises it
            self.found = problem
        self.loop.accounts.evaluating += time.thread_time() - began

    def act(self, frames: Frames) -> npt.ArrayLike:
        """The pupil's moves, until nobody wants to know any more."""
        if self.cancelled.is_set():
            raise InterruptedError("the exam was cancelled")
        return self.pupil.act(frames)

    def result(self) -> dict[str, Any]:
        """Wait for the end."""
        self.join()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found | {"frames": self.frames}

    def record_best_game(self, path: Path) -> None:
        """Keep the exam's best game, to be watched."""
        assert isinstance(self.found, dict), "only a finished exam has a best game"
        best = self.found["best_game"]
        start = starts(1, seed=self.found["seed"], level=self.found["level"], domain=EVALUATION, first=best)[0]
        about = {"score": self.found["best_score"], "game": best, "seed": self.found["seed"], "frames": self.frames}
        save_recording(path, start, self.moves[best], {"player": self.loop.run.name} | about)

    def cancel(self) -> None:
        """Give up."""
        self.cancelled.set()
        self.join()


# --- who plays when ------------------------------------------------------------------------------------------------


class _InTurn:
    """Playing and learning take turns, each piece with the newest weights."""

    def __init__(self, practice: Practice):
        self.practice = practice
        self.content = practice.empty()

    def next(self) -> Piece:
        return self.practice.play(self.content)

    def give_back(self, content: Any) -> None:
        pass

    def stop(self) -> list[Piece]:
        return []


class _Ahead:
    """A thread plays the next piece while the last one is learned from, with weights one piece old."""

    def __init__(self, practice: Practice):
        self.practice = practice
        self.free: SimpleQueue[Any] = SimpleQueue()
        self.ready: SimpleQueue[Piece | Exception] = SimpleQueue()
        self.thread = threading.Thread(target=self._play, name="player", daemon=True)
        self.thread.start()
        for _ in range(2):
            self.free.put(practice.empty())

    def _play(self) -> None:
        while (content := self.free.get()) is not None:
            try:
                self.ready.put(self.practice.play(content))
            except Exception as problem:  # whatever it is, the learner raises it
                self.ready.put(problem)
                return

    def next(self) -> Piece:
        piece = self.ready.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    def give_back(self, content: Any) -> None:
        self.free.put(content)

    def stop(self) -> list[Piece]:
        """Wait for the player to end; the pieces that nobody has taken."""
        self.free.put(None)
        self.thread.join()
        left = [self.ready.get() for _ in range(self.ready.qsize())]
        return [piece for piece in left if isinstance(piece, Piece)]
