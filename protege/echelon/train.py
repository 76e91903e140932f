"""Trains mech pilots: wiring and the loop. Read it from `train` downwards.

Crews of battles fill a rollout, the learner makes its updates from it, and so on; threads share each of the two. Beside
them a copy of the pupil is measured on held-out battles (`_Exam`), whose results decide when the next stage begins.
With `deterministic` exams take their turn, and a run continues after a resume as if it had never stopped. Numbers go
into the run folder; the only way back is its inbox.
"""

import copy
import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch

from protege import ProtegeError, checkpoints
from protege.echelon.collect import Practice
from protege.echelon.config import EchelonConfig, Stage, check, stages_of
from protege.echelon.env import TASK_VERSION
from protege.echelon.exams import Cancelled, examine, record_battle
from protege.echelon.features import layout_of
from protege.echelon.gauges import METRICS, SATURATED, Clock, Windows, shares_of
from protege.echelon.match import checkpoint_of
from protege.echelon.mechs import find_roster
from protege.echelon.network import PilotNetwork
from protege.echelon.pupil import KIND, Pupil, about, check_schema
from protege.learn.ppo import PPO
from protege.learn.rainbow import LearningFailed, linear
from protege.runs import Command, Run, Training, create_run, resume_run
from protege.switches import Report, Scheduled, Switches
from protege.training import Observer, interrupts

SEED_OF_EXAMS: Final = 2_000_000  # so that exams and what people evaluate with are different battles
LOG_SECONDS: Final = 2.0
RECORDINGS_KEPT: Final = 20
MEMORY_OF_LIBRARIES: Final = 500e6  # bytes that Python, torch and compiled code take
NOT_OFFERED: Final = ("epsilon", "greedy", "pulse")  # switches of learners that explore by random moves


def train(
    config: EchelonConfig, observer: Observer, *, name: str | None = None, resume: bool = False,
    folder: Path | None = None, began: float | None = None, prepare: Callable[[Training], None] | None = None,
) -> Run:  # fmt: skip
    """Train a new run, or go on with one, until its budget is used up or it is told to stop; returns the run.

    `began` is when the budget's clock started, by `time.monotonic`; `prepare` sees the run before its first step.
    """
    check(config)
    torch.set_num_threads(1)  # the threads of a training share the cores; more would fight over them
    if resume:
        assert name is not None, "a run to resume has a name"
        opened = resume_run(name, METRICS, config=config, folder=folder)
    else:
        opened = create_run("echelon", "ppo", config, METRICS, score="exam_success", name=name, folder=folder)
    with opened as run, interrupts(observer) as interrupted:
        if prepare is not None:
            prepare(run)
        loop = _Loop(config, run, observer, time.monotonic() if began is None else began)
        try:
            loop.start(resume)
            loop.run_until_done(interrupted)
        finally:
            loop.close()
    return run


class _Loop:
    """The state of a training between two rollouts, and what happens with each."""

    def __init__(self, config: EchelonConfig, run: Training, observer: Observer, began: float):
        self.config, self.run, self.observer, self.began = config, run, observer, began
        self.earlier_s = 0.0  # time used up by processes before this one
        self.threads = config.threads or min(2, os.cpu_count() or 1)
        self.stages = stages_of(config)
        self.stage_number, self.stage_began = 0, 0.0  # the latter as a share of the budget
        torch.manual_seed(config.seed)
        self.network = PilotNetwork(config.network)
        self.learner = PPO(self.network, config.ppo, self.threads, config.seed)
        self.practice: Practice | None = None
        self.switches = Switches(config.ppo.learning_rate, lacks=NOT_OFFERED)
        self.windows, self.clock = Windows(), Clock()
        self.steps = 0  # agent-steps
        self.best = (-math.inf, -math.inf)  # success and margin in an exam of this stage
        self.next_exam_step = config.exam_every
        self.next_exam_s = self.next_save_s = self.next_log_s = 0.0

    @property
    def stage(self) -> Stage:
        """What is practised now."""
        return self.stages[self.stage_number]

    def elapsed_s(self) -> float:
        """Budget time used up so far."""
        return self.earlier_s + time.monotonic() - self.began

    def done(self) -> float:
        """Share of the budget that is used up."""
        shares = [0.0]
        if self.config.agent_steps:
            shares.append(self.steps / self.config.agent_steps)
        if self.config.minutes and not self.config.deterministic:
            shares.append(self.elapsed_s() / (60 * self.config.minutes))
        return max(shares)

    def imitation(self) -> float:
        """Weight of the advisor, as the settings have it."""
        c = self.config
        return linear(self.done(), c.imitation, 0.0, c.imitation_share)

    def scheduled(self) -> Scheduled:
        """What the settings alone would give now."""
        return Scheduled(self.steps, 0.0, self.imitation())

    # --- the loop ---

    def start(self, resume: bool) -> None:
        """Warm up or restore, and say what runs."""
        resumed = resume and self._restore()
        if not resumed:
            if self.config.start_from:
                self._take_weights(self.config.start_from)
            self._begin_stage()
            self._look_around()
        now = self.elapsed_s()
        self.next_exam_s = now + self.config.exam_seconds / 2
        self.next_save_s = now + self.config.autosave_seconds
        self.next_log_s = now + LOG_SECONDS
        self.clock.start(self.steps, self.learner.updates)
        self._show_switches()
        self.observer.started(self._report(resumed), self.done())

    def run_until_done(self, interrupted: threading.Event) -> None:
        """Play, learn, obey, measure, save."""
        exam: _Exam | None = None
        wanted = True
        try:
            while wanted and self.done() < 1.0 and not interrupted.is_set():
                self._turn()
                wanted = self._obey()
                if exam is None and self._exam_is_due():
                    exam = _Exam(self)
                if exam is not None and (self.config.deterministic or not exam.is_alive()):
                    self._examined(exam)
                    exam = None
                self._leave_stage_if_time()
                if self.elapsed_s() >= self.next_save_s:
                    self.save()
            if self.done() < 1.0:
                self.run.stop()
            self.save()
        finally:
            if exam is not None:
                exam.cancel()
        if wanted and not interrupted.is_set():
            self.observer.noted("the budget is used up: a last exam, and it ends")
            self._examined(_Exam(self), last=True)
            self.save()

    def _turn(self) -> None:
        """Play a rollout and learn from it."""
        assert self.practice is not None, "a stage has begun"
        practice, clock, done = self.practice, self.clock, self.done()
        began = time.perf_counter()
        steps = practice.play(done)
        then = time.perf_counter()
        rate = self.learner.set_progress(done, self.switches.rate_factor)
        imitation = self.switches.teacher(self.scheduled()) if self.config.imitation > 0 else 0.0
        figures: dict[str, float] = {}
        spent = self.learner.cpu_s
        if self.switches.learning:
            try:
                figures = self.learner.learn(practice.rollout, imitation)
            except LearningFailed as failure:
                raise type(failure)(f"{failure}; see {self.run.diagnose(failure.report)}", failure.report) from failure
            practice.note_inputs()
        self.steps += steps
        clock.playing += then - began
        clock.learning += time.perf_counter() - then
        clock.cpu["learning"] += self.learner.cpu_s - spent
        for crew in practice.crews:
            self.windows.add(crew.episodes)
            clock.cpu["simulating"] += crew.simulating_s
            clock.cpu["acting"] += crew.acting_s
        if self.elapsed_s() >= self.next_log_s:
            self.next_log_s = self.elapsed_s() + LOG_SECONDS
            self._log(figures | {"learning_rate": rate, "imitation": imitation})

    def _log(self, figures: dict[str, float]) -> None:
        assert self.practice is not None, "a stage has begun"
        rollout, crews = self.practice.rollout, self.practice.crews
        acted = rollout.acted
        weights = crews[0].arena.weights
        figures |= self.windows.figures() | self.clock.figures(self.steps, self.learner.updates)
        figures |= shares_of(np.sum([crew.parts for crew in crews], 0))
        figures |= {
            "entropy_weight": self.learner.entropy_weight,
            "own_share": float(weights["own_share"][0]),
            "outcome_weight": float(weights["outcome"][0]),
            "saturation": float((rollout.taken["move"][acted].abs() > SATURATED).float().mean()),
            "living": float(acted.float().mean()),
            "stage": self.stage_number,
            "progress": min(1.0, self.done()),
        }
        self.run.log(self.steps, **figures)
        self.observer.progressed(self.steps, self.done(), figures)

    # --- stages ---

    def _begin_stage(self) -> None:
        if self.practice is not None:
            self.practice.close()
        self.practice = Practice(self.stage, self.stage_number, self.config, self.network, self.threads)
        self.windows.clear()
        self.best = (-math.inf, -math.inf)

    def _look_around(self) -> None:
        """Play once without learning, so that the first updates find inputs on their scale."""
        assert self.practice is not None, "a stage has begun"
        self.practice.play(0.0)
        self.practice.note_inputs()

    def _leave_stage_if_time(self) -> None:
        if self.stage_number + 1 < len(self.stages) and self.done() - self.stage_began >= self.stage.share:
            self._next_stage("its share of the budget is used up")

    def _next_stage(self, why: str) -> None:
        name = self.config.stages[self.stage_number]
        self.stage_number += 1
        self.stage_began = self.done()
        text = f"{name} ends ({why}); {self.config.stages[self.stage_number]} begins at agent-step {self.steps:,}"
        self.run.event("stage", text)
        self.observer.noted(text)
        self._begin_stage()
        self.next_exam_s = self.elapsed_s() + self.config.exam_seconds

    # --- commands ---

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
                return f"saved at agent-step {self.steps:,}"
            case "evaluate":
                self.next_exam_s, self.next_exam_step = 0.0, 0
                return "the pupil is measured now, or right after the exam that is going on"
            case _:
                answer = self.switches.obey(command.name, command.arguments, self.scheduled())
                self._show_switches()
                return answer

    def _show_switches(self) -> None:
        self.run.show_switches(self.switches.view())
        self.observer.switched(self.switches.view())

    # --- exams ---

    def _exam_is_due(self) -> bool:
        if self.config.deterministic:
            return self.steps >= self.next_exam_step
        return self.elapsed_s() >= self.next_exam_s

    def _examined(self, finished: "_Exam", last: bool = False) -> None:
        """Note a result: it says which checkpoint is the best, and whether the stage is passed."""
        exams = finished.result()
        self.next_exam_s = self.elapsed_s() + self.config.exam_seconds
        self.next_exam_step = self.steps + self.config.exam_every
        if finished.stage_number != self.stage_number:
            return  # the stage ended meanwhile
        first = exams[0]
        figures = {f"exam_{name}": first[name] for name in ("success", "success_low", "success_high", "margin")}
        declared = {metric.name for metric in METRICS}
        by_opponent = {f"exam_{exam['opponent']}": exam["success"] for exam in exams}
        figures |= {name: value for name, value in by_opponent.items() if name in declared}
        self.run.log(self.steps, **figures, exam_length=first["length_mean"])
        result = first["success"], first["margin"]
        better = result >= self.best
        if better:
            self.best = result
            kept = {"seed": self.config.seed, "elapsed_s": self.elapsed_s(), "agent_steps": finished.steps}
            self._save_to(self.run.best, finished.pupil.network, kept | {"exam": first})
        self.observer.examined(first | {"summary": summary(exams)}, 0.0, better)
        if not last and first["success_low"] >= self.stage.gate and self.stage_number + 1 < len(self.stages):
            self._next_stage(f"success {first['success']:.0%}, at least {first['success_low']:.0%}")

    # --- checkpoints ---

    def save(self) -> None:
        """Write everything a resumed run needs, battles in progress too."""
        assert self.practice is not None, "a stage has begun"
        self.next_save_s = self.elapsed_s() + self.config.autosave_seconds
        state = {
            "steps": self.steps,
            "elapsed_s": self.elapsed_s(),
            "stage": self.stage_number,
            "stage_began": self.stage_began,
            "best": list(self.best),
            "next_exam_step": self.next_exam_step,
            "windows": self.windows.state(),
            "switches": self.switches.state(),
            "updates": self.learner.updates,
            "optimiser": self.learner.optimiser.state_dict(),
            "order": self.learner.order.get_state(),
            "crews": [crew.save() for crew in self.practice.crews],
        }
        self._save_to(self.run.last, self.network, state)
        self.run.event("autosave", f"agent-step {self.steps:,}")

    def _save_to(self, path: Path, network: PilotNetwork, state: dict[str, Any]) -> None:
        assert self.practice is not None, "a stage has begun"
        known = about(self.config.network, self.practice.crews[0].arena.layout) | {"stages": list(self.config.stages)}
        checkpoints.save(
            path, checkpoints.weights(network, "network"), known | state, kind=KIND, task_version=TASK_VERSION
        )

    def _restore(self) -> bool:
        if not self.run.last.is_file():
            self.observer.noted(f"run {self.run.name} was stopped before its first checkpoint: it starts afresh")
            self.run.rewind(-1)
            return False
        saved = checkpoints.load(self.run.last, kind=KIND, task_version=TASK_VERSION)
        state = saved.state
        self.stage_number = min(state["stage"], len(self.stages) - 1)
        self._check_fits(saved)
        checkpoints.restore_weights(self.network, saved, "network")
        checkpoints.restore_optimiser(self.learner.optimiser, state["optimiser"])
        checkpoints.restore_torch_generator(self.learner.order, state["order"])
        self.learner.updates, self.steps = state["updates"], state["steps"]
        self.earlier_s, self.stage_began = state["elapsed_s"], state["stage_began"]
        self._begin_stage()
        assert self.practice is not None, "a stage has begun"
        try:
            for crew, kept in zip(self.practice.crews, state["crews"], strict=True):
                crew.load(kept)
        except (ProtegeError, ValueError, KeyError):
            self.observer.noted("other settings than before: battles begin anew")
        self.best = (state["best"][0], state["best"][1])
        self.next_exam_step = state["next_exam_step"]
        self.windows.restore(state["windows"])
        self.switches.restore(state["switches"])
        self.run.rewind(self.steps)
        return True

    def _check_fits(self, saved: checkpoints.Checkpoint) -> None:
        check_schema(saved, layout_of(find_roster(self.stage.roster)))

    def _take_weights(self, name: str) -> None:
        """Begin with what a run or a checkpoint has learned."""
        path = checkpoint_of(name, self.run.path.parent) or Path(name)
        saved = checkpoints.load(path, kind=KIND, task_version=TASK_VERSION)
        self._check_fits(saved)
        checkpoints.restore_weights(self.network, saved, "network")

    def close(self) -> None:
        """The training is over."""
        if self.practice is not None:
            self.practice.close()

    def _report(self, resumed: bool) -> dict[str, str]:
        assert self.practice is not None, "a stage has begun"
        c, practice = self.config, self.practice
        sizes = {own: sum(p.numel() for n, p in self.network.named_parameters() if n.startswith("critic.") == own)
                 for own in (False, True)}  # fmt: skip
        budget = [f"{c.minutes:g} minutes"] * bool(c.minutes and not c.deterministic)
        budget += [f"{c.agent_steps:,} agent-steps"] * bool(c.agent_steps)
        opponents = ", ".join(f"{name} {share:g}" for name, share in self.stage.opponents)
        shape = practice.rollout.shape
        switched = self.switches.changed()
        return {
            "run": f"{self.run.path}, " + (f"resumed at agent-step {self.steps:,}" if resumed else "fresh"),
            "game": f"Echelon, task version {TASK_VERSION}, seed {c.seed}",
            "stage": f"{c.stages[self.stage_number]}: {self.stage.roster} on {self.stage.size} x {self.stage.size}, "
            f"against {opponents}" + (f"; then {', '.join(c.stages[self.stage_number + 1 :])}"
                                      if self.stage_number + 1 < len(c.stages) else ""),
            "network": f"{sizes[False]:,} weights to play, {sizes[True]:,} more in the critic",
            "learner": f"recurrent PPO: {practice.battles} battles, {shape.groups * shape.members} learning mechs, "
            f"{shape.horizon} decisions a rollout, chunks of {shape.chunk}, {c.ppo.epochs} epochs of "
            f"{c.ppo.minibatches} updates, discount {c.ppo.discount:g}",
            "device": f"CPU, {os.cpu_count()} cores; {self.threads} threads play and learn in turn"
            + ("" if c.deterministic else ", one measures"),
            "budget": " or ".join(budget) or "none: stop it with Ctrl-C",
        } | ({"switched": f"{switched}, as before"} if switched else {})  # fmt: skip


def summary(exams: list[dict[str, Any]]) -> str:
    """Exams in words."""
    told = [
        f"{exam['success']:.0%} ({exam['success_low']:.0%}–{exam['success_high']:.0%}) against {exam['opponent']}"
        for exam in exams
    ]
    return f"{', '.join(told)}; {exams[0]['length_mean']:.0f} s a battle, {sum(e['seconds'] for e in exams):.0f} s"


class _Exam(threading.Thread):
    """Measures a copy of the pupil beside the training."""

    def __init__(self, loop: _Loop):
        super().__init__(name="exam", daemon=True)
        assert loop.practice is not None, "a stage has begun"
        self.config, self.run_folder = loop.config, loop.run
        self.stage, self.stage_number, self.maps = loop.stage, loop.stage_number, loop.practice.maps
        self.steps = loop.steps
        self.pupil = Pupil(copy.deepcopy(loop.network), sampled=loop.config.sampled_exams)
        self.cancelled = threading.Event()
        self.found: list[dict[str, Any]] | Exception = []
        self.start()

    def run(self) -> None:
        c = self.config
        try:
            self.found = [
                examine(
                    self.pupil, self.stage, opponent, maps=self.maps, matches=c.exam_matches,
                    seed=SEED_OF_EXAMS + c.seed, cancelled=self.cancelled,
                )
                for opponent in self.stage.exam
            ]  # fmt: skip
            self._record()
        except Exception as problem:  # whatever it is, the training raises it
            self.found = problem

    def _record(self) -> None:
        """Keep one battle to be watched, and the newest of those before."""
        name = f"step-{self.steps:012d}.rec"
        record_battle(
            self.pupil, self.stage, self.stage.exam[0], self.run_folder.recordings / name,
            maps=self.maps, name=self.run_folder.name, seed=SEED_OF_EXAMS + self.steps,
        )  # fmt: skip
        for path in sorted(self.run_folder.recordings.glob("step-*.rec"))[:-RECORDINGS_KEPT]:
            path.unlink()

    def result(self) -> list[dict[str, Any]]:
        """Wait for the end."""
        self.join()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def cancel(self) -> None:
        """Give up."""
        self.cancelled.set()
        self.join()
        assert not isinstance(self.found, Exception) or isinstance(self.found, Cancelled), self.found


def estimate(config: EchelonConfig) -> dict[str, str]:
    """What a training would need, from a few real rollouts of its last stage."""
    check(config)
    torch.set_num_threads(1)
    stage = stages_of(config)[-1]
    threads = config.threads or min(2, os.cpu_count() or 1)
    network = PilotNetwork(config.network)
    learner = PPO(network, config.ppo, threads)
    practice = Practice(stage, len(config.stages) - 1, config, network, threads)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        steps = practice.play(0.0)
        learner.learn(practice.rollout, config.imitation)
        took.append(time.perf_counter() - began)
    rate = steps / min(took)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint"
        state = {"crews": [crew.save() for crew in practice.crews], "optimiser": learner.optimiser.state_dict()}
        checkpoints.save(file, checkpoints.weights(network, "network"), state, kind=KIND, task_version=TASK_VERSION)
        checkpoint = file.stat().st_size
    practice.close()
    seconds = 60 * config.minutes if config.minutes else math.inf
    if config.agent_steps:
        seconds = config.agent_steps / rate if config.deterministic else min(seconds, config.agent_steps / rate)
    logged = 60 * len(METRICS) * seconds / LOG_SECONDS if math.isfinite(seconds) else 0.0
    worlds = 2 * checkpoint  # those that are played, and a copy while one is saved
    return {
        "memory": f"{(MEMORY_OF_LIBRARIES + practice.rollout.nbytes() + worlds) / 1e6:,.0f} MB",
        "disk": f"{(checkpoint + logged) / 1e6:,.1f} MB" + ("" if logged else ", and 60 MB a day of figures"),
        "time": f"{seconds / 60:,.1f} minutes" if math.isfinite(seconds) else "until it is stopped",
        "agent-steps": f"{rate:,.0f} a second" + (f", {rate * seconds / 1e6:,.1f} million" if logged else ""),
    }
