"""Trains a pupil on the simulator: config, wiring and the loop. Read it from `train` downwards.

One thread plays (`Collector`), some learn (`PQN`), one measures the pupil on held-out games (`_Exam`); rollouts and
copies of the weights pass between them. With `deterministic` all take turns in one thread and a run continues after a
resume as if it had never stopped. Numbers go into the run folder; the only way back is its command inbox.
"""

import copy
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch

from protege import ProtegeError, checkpoints
from protege.evaluate import EVALUATION
from protege.learn.pqn import PQN, PQNConfig, Rollout
from protege.runs import Run, Training, create_run, resume_run
from protege.tempest import ram
from protege.tempest.collect import RECENT, Collector, Experience, StartConfig
from protege.tempest.env import TASK_VERSION, Frames, starts
from protege.tempest.gauges import METRICS, Accounts, Windows
from protege.tempest.network import CHECKPOINT_KIND, FEATURES, Pupil, ValueNetwork
from protege.tempest.players import measure
from protege.tempest.recording import NO_MOVE, SUFFIX, save_recording

SEED_OF_EXAMS: Final = 2_000_000  # so that exams and what people evaluate with are different games
LOG_SECONDS: Final = 2.0
MEMORY_OF_LIBRARIES: Final = 500e6  # bytes that Python, torch and compiled code take
MOST_FOR_LAST_EXAM: Final = 0.05  # share of the budget kept back for the exam at the end


@dataclass(frozen=True)
class TempestConfig:
    """Settings of a training on the Tempest simulator."""

    minutes: float = 10.0  # wall-clock budget, start-up and compilation included; 0 for none
    frames: int = 0  # budget in frames instead of minutes; 0 for none
    seed: int = 1  # of the games, the network and the exploration
    widths: tuple[int, ...] = (512, 256)  # sizes of the network's layers
    visible_only: bool = False  # hide the 16 counters that a person at the machine cannot see
    shaping: float = 0.0  # share of the lane-safety reward that is learned from, beside the points
    pqn: PQNConfig = PQNConfig()
    starts: StartConfig = StartConfig()
    epsilon: float = 0.02  # share of random moves after the beginning
    epsilon_frames: int = 400_000  # frames over which random moves fall from all to that share
    distillation: float = 1.0  # weight of the teacher's advice; falls to 0 as the pupil's score reaches the teacher's
    exam_games: int = 60  # held-out games the pupil is measured on
    exam_frames: int = 25_000  # exam games are cut after so many frames
    exam_seconds: float = 60.0  # time between exams; a deterministic run measures every exam_every frames instead
    exam_every: int = 2_000_000  # frames between exams of a deterministic run
    autosave_seconds: float = 60.0  # time between checkpoints
    threads: int = 0  # threads that learn, beside one that plays and one that measures; 0 for one per core, at most 4
    deterministic: bool = False  # one thread, budget in frames: the same numbers every time, also across a resume


PRESETS: Final = {
    "smoke": TempestConfig(
        minutes=0.5,
        widths=(64, 64),
        pqn=PQNConfig(games=64, minibatch=512),
        epsilon_frames=50_000,
        exam_games=8,
        exam_frames=4_000,
        exam_seconds=8.0,
        exam_every=60_000,
        autosave_seconds=5.0,
    ),
    "laptop": TempestConfig(),
    "full": TempestConfig(
        minutes=0.0,
        widths=(512, 512),
        pqn=PQNConfig(games=1024, minibatch=4096),
        epsilon_frames=2_000_000,
        exam_games=200,
        exam_frames=100_000,
        exam_seconds=600.0,
    ),
}


class Observer(Protocol):
    """Who is told how a training goes: the terminal, or a benchmark. A subclass says nothing where it is silent."""

    def started(self, report: dict[str, str], done: float) -> None:
        """Everything is set up; `report` says what runs."""
        return None

    def progressed(self, frames: int, done: float, figures: dict[str, float]) -> None:
        """New figures, every two seconds."""
        return None

    def examined(self, exam: dict[str, Any], teacher: float, best: bool) -> None:
        """The pupil was measured, and is or is not the best so far."""
        return None

    def noted(self, text: str) -> None:
        """Something else that a person should read."""
        return None


def train(
    config: TempestConfig, observer: Observer, *, name: str | None = None, resume: bool = False,
    folder: Path | None = None, began: float | None = None, prepare: Callable[[Training], None] | None = None,
) -> Run:  # fmt: skip
    """Train a new run, or go on with one, until its budget is used up or it is told to stop; returns the run.

    `began` is when the budget's clock started, by `time.monotonic`; `prepare` sees the run before its first frame.
    """
    _check(config)
    torch.set_num_threads(1)  # the threads of a training share the cores; more would fight over them
    if resume:
        assert name is not None, "a run to resume has a name"
        opened = resume_run(name, METRICS, config=config, folder=folder)
    else:
        opened = create_run("tempest", "pqn", config, METRICS, score="exam_score", name=name, folder=folder)
    with opened as run, _interrupts(observer) as interrupted:
        if prepare is not None:
            prepare(run)
        loop = _Loop(config, run, observer, time.monotonic() if began is None else began)
        loop.start(resume)
        loop.run_until_done(interrupted)
    return run


def _check(config: TempestConfig) -> None:
    if config.deterministic and not config.frames:
        raise ProtegeError("a deterministic run needs a budget in frames, because clocks differ: add --frames 5000000")
    if config.pqn.games * config.pqn.horizon < config.pqn.minibatch:
        raise ProtegeError(
            f"a rollout of {config.pqn.games} games x {config.pqn.horizon} frames is smaller than one minibatch of "
            f"{config.pqn.minibatch}: use more games or a smaller minibatch"
        )


class _Loop:
    """The state of a training between two rollouts, and what happens with each."""

    def __init__(self, config: TempestConfig, run: Training, observer: Observer, began: float):
        self.config, self.run, self.observer = config, run, observer
        self.began = began
        self.earlier_s = 0.0  # time used up by processes before this one
        self.reserve_s = 0.0  # kept back for the last exam
        self.frames = 0
        self.distillation = config.distillation
        self.best = -math.inf  # points per life
        torch.manual_seed(config.seed)
        self.network = ValueNetwork(config.widths)
        self.learner = PQN(self.network, config.pqn)
        self.averaged = self.learner.averaged
        self.order = torch.Generator().manual_seed(config.seed)  # in which samples are learned from
        self.collector = Collector(
            config.pqn, config.starts, seed=config.seed, visible_only=config.visible_only, shaping=config.shaping
        )
        self.games: dict[str, Any] | None = None  # the collector's state before the rollout that is learned from next
        self.windows = Windows()
        cores = os.cpu_count() or 1
        self.threads = 1 if config.deterministic else config.threads or min(4, cores)
        self.accounts = Accounts(1 if config.deterministic else min(cores, self.threads + 2))
        self.teacher = 0.0
        self.next_exam_frame = config.exam_every
        self.next_exam_s = self.next_save_s = self.next_log_s = 0.0

    def elapsed_s(self) -> float:
        """Budget time used up so far."""
        return self.earlier_s + time.monotonic() - self.began

    def done(self) -> float:
        """Share of the budget that is used up."""
        shares = [0.0]
        if self.config.frames:
            shares.append(self.frames / self.config.frames)
        if self.config.minutes and not self.config.deterministic:
            shares.append(self.elapsed_s() / max(1.0, 60 * self.config.minutes - self.reserve_s))
        return max(shares)

    def epsilon(self) -> float:
        """Share of random moves now."""
        return max(self.config.epsilon, 1.0 - self.frames / max(1, self.config.epsilon_frames))

    def start(self, resume: bool) -> None:
        """Warm up or restore, measure the teachers, and say what runs."""
        resumed = resume and self._restore()
        if not resumed:
            self.collector.warm_up()
        teachers = [measure(name, **self.exam_games()) for name in ("teacher", "teacher-full")]
        self.teacher = max(found["score_mean"] for found in teachers)
        now = self.elapsed_s()
        self.next_exam_s = now + self.config.exam_seconds / 2
        self.next_save_s = now + self.config.autosave_seconds
        self.next_log_s = now + LOG_SECONDS
        self.accounts.start(self.frames, self.learner.updates)
        self.observer.started(self._report(resumed), self.done())

    def run_until_done(self, interrupted: threading.Event) -> None:
        """The loop: play, learn, obey, measure, save."""
        play = _InTurn(self) if self.config.deterministic else _Ahead(self)
        exam: _Exam | None = None
        wanted = True
        try:
            while wanted and self.done() < 1.0 and not interrupted.is_set():
                experience = play.next()
                self._learn(experience)
                play.give_back(experience.rollout)
                wanted = self._obey()
                if exam is None and self._exam_is_due():
                    exam = _Exam(self)
                if exam is not None and (self.config.deterministic or not exam.is_alive()):
                    self._examined(exam)
                    exam = None
                if self.elapsed_s() >= self.next_save_s:
                    self.save()
            if self.done() < 1.0:
                self.run.stop()
            self.save()
        finally:
            play.stop()
            if exam is not None:
                exam.cancel()
        if wanted and not interrupted.is_set():
            self._examined(_Exam(self))
            self.save()

    def _learn(self, experience: Experience) -> None:
        c = self.config
        began = time.thread_time() + self.learner.others_cpu_s
        rate = self.learner.set_progress(self.done())
        figures = self.learner.learn(experience.rollout, self.distillation, self.order, self.threads)
        self.frames += c.pqn.games * c.pqn.horizon
        self.games = experience.after
        self.windows.add(experience.episodes, self.frames)
        self.accounts.learning += time.thread_time() + self.learner.others_cpu_s - began
        self.accounts.acting += experience.acting_s
        self.accounts.simulating += experience.simulating_s
        if self.elapsed_s() < self.next_log_s:
            return
        self.next_log_s = self.elapsed_s() + LOG_SECONDS
        figures |= self.windows.figures() | self.accounts.figures(self.frames, self.learner.updates)
        figures |= {
            "epsilon": self.epsilon(),
            "distillation": self.distillation,
            "top_level": self.collector.top_level,
            "learning_rate": rate,
            "inference_ms": 1000 * experience.acting_s / c.pqn.horizon,
        }
        self.run.log(self.frames, **figures)
        self.observer.progressed(self.frames, self.done(), figures)

    def _obey(self) -> bool:
        """Do what the inbox asks for; False ends the training."""
        for command in self.run.commands():
            self.run.event("command", command.name)
            match command.name:
                case "stop":
                    return False
                case "save":
                    self.save()
                    self.observer.noted(f"saved at frame {self.frames:,}")
                case "evaluate":
                    self.next_exam_s, self.next_exam_frame = 0.0, 0
                case _:
                    self.observer.noted(f"the command {command.name!r} means nothing to this learner")
        return True

    # --- exams ---

    def exam_games(self) -> dict[str, Any]:
        """The games of every exam, as `measure` wants them."""
        c = self.config
        return {"games": c.exam_games, "seed": SEED_OF_EXAMS + c.seed, "max_frames": c.exam_frames}

    def _exam_is_due(self) -> bool:
        if self.config.deterministic:
            return self.frames >= self.next_exam_frame
        return self.elapsed_s() >= self.next_exam_s

    def _examined(self, finished: "_Exam") -> None:
        """Note a result: it sets the teacher's weight, the levels to start at, and which checkpoint is the best."""
        c, exam = self.config, finished.result()
        self.next_exam_s = self.elapsed_s() + c.exam_seconds
        self.next_exam_frame = self.frames + c.exam_every
        self.reserve_s = min(exam["seconds"], MOST_FOR_LAST_EXAM * 60 * c.minutes)
        # Never upwards again: advice that comes back distorts values which have been learned without it.
        trailing = max(0.0, 1.0 - exam["score_mean"] / self.teacher)
        self.distillation = min(self.distillation, c.distillation * trailing)
        frontier = math.ceil(1.5 * exam["level_mean"])
        self.collector.top_level = min(99, max(self.collector.top_level, frontier))
        self.run.log(
            self.frames, exam_score=exam["score_mean"], exam_score_low=exam["score_mean_low"],
            exam_score_high=exam["score_mean_high"], teacher_score=self.teacher,
            exam_points_per_life=exam["points_per_life"], exam_level=exam["level_mean"],
        )  # fmt: skip
        # Points per life, not the score: exam games are cut, which hides how long the best would have lasted.
        better = exam["points_per_life"] >= self.best
        if better:
            self.best = exam["points_per_life"]
            kept = ("frames", "score_mean", "score_mean_low", "score_mean_high", "points_per_life", "level_mean")
            about = {"seed": c.seed, "elapsed_s": self.elapsed_s()} | {key: exam[key] for key in kept}
            self._save_to(self.run.best, exam["network"], about)
            finished.record_best_game(self.run.recordings / f"best-exam{SUFFIX}")
        self.observer.examined(exam, self.teacher, better)

    # --- checkpoints ---

    def save(self) -> None:
        """Write everything a resumed run needs."""
        self.next_save_s = self.elapsed_s() + self.config.autosave_seconds
        state = {
            "frames": self.frames,
            "elapsed_s": self.elapsed_s(),
            "distillation": self.distillation,
            "best": self.best,
            "next_exam_frame": self.next_exam_frame,
            "top_level": self.collector.top_level,
            "updates": self.learner.updates,
            "optimiser": self.learner.optimiser.state_dict(),
            "order": self.order.get_state(),
            "games": self.collector.state() if self.games is None else self.games,
            "windows": self.windows.state(),
        }
        self._save_to(self.run.last, self.averaged, state, self.network)
        self.run.event("autosave", f"frame {self.frames:,}")

    def _save_to(
        self, path: Path, player: torch.nn.Module, state: dict[str, Any], learned: torch.nn.Module | None = None
    ) -> None:
        """The player's weights under "network", where `load_pupil` looks, and those that are learned beside them."""
        shape = {"widths": list(self.config.widths), "visible_only": self.config.visible_only}
        tensors = checkpoints.weights(player, "network")
        if learned is not None:
            tensors |= checkpoints.weights(learned, "learned")
        checkpoints.save(path, tensors, shape | state, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)

    def _restore(self) -> bool:
        if not self.run.last.is_file():
            self.observer.noted(f"run {self.run.name} was stopped before its first checkpoint: it starts afresh")
            self.run.rewind(-1)
            return False
        saved = checkpoints.load(self.run.last, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)
        checkpoints.restore_weights(self.network, saved, "learned")
        checkpoints.restore_weights(self.averaged, saved, "network")
        state = saved.state
        checkpoints.restore_optimiser(self.learner.optimiser, state["optimiser"])
        checkpoints.restore_torch_generator(self.order, state["order"])
        self.collector.restore(state["games"])
        self.collector.top_level = state["top_level"]
        self.frames, self.learner.updates = state["frames"], state["updates"]
        self.earlier_s, self.best = state["elapsed_s"], state["best"]
        self.distillation, self.next_exam_frame = state["distillation"], state["next_exam_frame"]
        self.windows.restore(state["windows"])
        self.run.rewind(self.frames)
        return True

    def _report(self, resumed: bool) -> dict[str, str]:
        c = self.config
        size = sum(parameter.numel() for parameter in self.network.parameters())
        sees = "179 values a person can see" if c.visible_only else "195 values"
        learning = "one learns" if self.threads == 1 else f"{self.threads} learn"
        threads = "all in one thread" if c.deterministic else f"one thread plays, {learning}, one measures"
        budget = [f"{c.minutes:g} minutes"] * bool(c.minutes and not c.deterministic)
        budget += [f"{c.frames:,} frames"] * bool(c.frames)
        return {
            "run": f"{self.run.path}, " + (f"resumed at frame {self.frames:,}" if resumed else "fresh"),
            "game": f"Tempest simulator, task version {TASK_VERSION}, {c.pqn.games} games at once, seed {c.seed}",
            "network": f"{sees} -> {FEATURES} features -> {' -> '.join(map(str, c.widths))} -> 44 moves, "
            f"{size:,} parameters",
            "learner": f"PQN: {c.pqn.horizon} frames a rollout, minibatch {c.pqn.minibatch}, {c.pqn.epochs} epochs, "
            f"discount {c.pqn.discount:g}, lambda {c.pqn.trace:g}",
            "device": f"CPU, {os.cpu_count()} cores; {threads}",
            "budget": " or ".join(budget) or "none: stop it with Ctrl-C",
            "teacher": f"{self.teacher:,.0f} points on the {c.exam_games} exam games",
        }


def estimate(config: TempestConfig) -> dict[str, str]:
    """What a training would need, from a few real rollouts."""
    _check(config)
    torch.set_num_threads(1)
    network = ValueNetwork(config.widths)
    learner = PQN(network, config.pqn)
    collector = Collector(
        config.pqn, config.starts, seed=config.seed, visible_only=config.visible_only, shaping=config.shaping
    )
    rollout, order = Rollout.empty(config.pqn, FEATURES), torch.Generator()
    playing, learning = [], []
    for _ in range(4):
        began = time.perf_counter()
        collector.collect(network, config.epsilon, rollout)
        then = time.perf_counter()
        learner.learn(rollout, 0.0, order)
        playing.append(then - began)
        learning.append(time.perf_counter() - then)
    a_rollout = min(playing) + min(learning) if config.deterministic else max(min(playing), min(learning))
    rate = config.pqn.games * config.pqn.horizon / a_rollout
    seconds = 60 * config.minutes if config.minutes else math.inf
    if config.frames:
        seconds = min(config.frames / rate, seconds) if not config.deterministic else config.frames / rate
    rollouts = 2 * sum(array.nbytes for array in vars(rollout).values())
    weights = sum(parameter.nbytes for parameter in network.parameters())
    checkpoint = 4 * weights + (RECENT + 1) * collector.games.rows.nbytes + config.starts.situations * ram.ROW_BYTES
    logged = 60 * len(METRICS) * seconds / LOG_SECONDS if math.isfinite(seconds) else 0.0
    return {
        "memory": f"{(MEMORY_OF_LIBRARIES + rollouts + 20 * checkpoint) / 1e6:,.0f} MB",
        "disk": f"{(checkpoint + weights + logged) / 1e6:,.1f} MB" + ("" if logged else ", and 60 MB a day of figures"),
        "time": f"{seconds / 60:,.1f} minutes" if math.isfinite(seconds) else "until it is stopped",
        "frames": f"{rate:,.0f} a second" + (f", {rate * seconds / 1e6:,.1f} million" if logged else ""),
    }


class _Exam(threading.Thread):
    """Measures a copy of the weights beside the training."""

    def __init__(self, loop: _Loop):
        super().__init__(name="exam", daemon=True)
        self.loop, self.frames = loop, loop.frames
        self.network = copy.deepcopy(loop.averaged)
        self.pupil = Pupil(self.network, visible_only=loop.config.visible_only)
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
        return self.found | {"frames": self.frames, "network": self.network}

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
    """Playing and learning take turns, each rollout with the newest weights."""

    def __init__(self, loop: _Loop):
        self.loop = loop
        self.rollout = Rollout.empty(loop.config.pqn, FEATURES)

    def next(self) -> Experience:
        return self.loop.collector.collect(self.loop.network, self.loop.epsilon(), self.rollout)

    def give_back(self, rollout: Rollout) -> None:
        pass

    def stop(self) -> None:
        pass


class _Ahead:
    """A thread plays the next rollout while the last one is learned from, with weights one rollout old."""

    def __init__(self, loop: _Loop):
        self.loop = loop
        self.network = copy.deepcopy(loop.network)
        self.free: SimpleQueue[Rollout | None] = SimpleQueue()
        self.ready: SimpleQueue[Experience | Exception] = SimpleQueue()
        self.thread = threading.Thread(target=self._play, name="player", daemon=True)
        self.thread.start()
        for _ in range(2):
            self.free.put(Rollout.empty(loop.config.pqn, FEATURES))

    def _play(self) -> None:
        while (rollout := self.free.get()) is not None:
            try:
                # What the learner is changing meanwhile is copied in between two of its updates or within one: the
                # values of a rollout need not come from one set of weights.
                self.network.load_state_dict(self.loop.network.state_dict())
                self.ready.put(self.loop.collector.collect(self.network, self.loop.epsilon(), rollout))
            except Exception as problem:  # whatever it is, the learner raises it
                self.ready.put(problem)
                return

    def next(self) -> Experience:
        experience = self.ready.get()
        if isinstance(experience, Exception):
            raise experience
        return experience

    def give_back(self, rollout: Rollout) -> None:
        self.free.put(rollout)

    def stop(self) -> None:
        self.free.put(None)
        self.thread.join()


@contextmanager
def _interrupts(observer: Observer) -> Iterator[threading.Event]:
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
