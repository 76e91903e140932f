"""Trains mech pilots: wiring and the loop. Read it from `train` downwards.

Crews of battles fill a rollout, the learner makes its updates from it, and so on; threads share each of the two. Beside
them a copy of the pupil is measured on held-out battles (`Exam`), whose results decide when the next stage begins.
With `deterministic` exams take their turn, and a run continues after a resume as if it had never stopped. In a league
(`Rivals`) the training meets whom it gives, reports every battle and leaves copies of itself. Numbers go into the run
folder; the only way back is its inbox.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch

from protege import ProtegeError
from protege.games.echelon.agents.match import checkpoint_of, find_player
from protege.games.echelon.agents.network import PilotNetwork
from protege.games.echelon.agents.pupil import KIND, about, check_schema
from protege.games.echelon.task.env import TASK_VERSION
from protege.games.echelon.task.features import layout_of
from protege.games.echelon.training.collect import Finder, Practice
from protege.games.echelon.training.config import SELF, EchelonConfig, Stage, check, self_share, stages_of
from protege.games.echelon.training.evaluation import Exam, summary
from protege.games.echelon.training.league_agent import Rivals
from protege.games.echelon.training.metrics import METRICS, SATURATED, Clock, Windows, metrics_of, shares_of
from protege.games.echelon.world.mechs import find_roster
from protege.learn.optimise import LearningFailed, find_device
from protege.learn.ppo import PPO
from protege.learn.schedules import linear
from protege.learn.state import StateMismatch, named_weights, restore_weights
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.runs.run import Run, Training, create_run, resume_run
from protege.train.controls import Scheduled, Switches
from protege.train.loop import LOG_SECONDS, Loop, Observer, interrupts

EXAMS_PER_COPY: Final = 10  # a copy enters the league at the latest after so many exams
MEMORY_OF_LIBRARIES: Final = 500e6  # bytes that Python, torch and compiled code take
NOT_OFFERED: Final = ("epsilon", "greedy", "pulse")  # switches of learners that explore by random moves
OF_ADVICE: Final = ("teacher", "teacher_off", "teacher_only")  # of trainings with an advisor


def train(
    config: EchelonConfig, observer: Observer, *, name: str | None = None, resume: bool = False,
    folder: Path | None = None, began: float | None = None, prepare: Callable[[Training], None] | None = None,
) -> Run:  # fmt: skip
    """Train a new run, or go on with one, until its budget is used up or it is told to stop; returns the run.

    `began` is when the budget's clock started, by `time.monotonic`; `prepare` sees the run before its first step.
    """
    check(config)
    torch.set_num_threads(1)  # the threads of a training share the cores; more would fight over them
    with _league_of(config, folder) as league:
        if league is not None and name is not None:
            league.check_name(name, resume)
        if resume:
            assert name is not None, "a run to resume has a name"
            opened = resume_run(name, metrics_of(config), config=config, folder=folder)
        else:
            opened = create_run(
                "echelon", "ppo", config, metrics_of(config), score="exam_success", name=name, folder=folder
            )
        with opened as run, interrupts(observer) as interrupted:
            if prepare is not None:
                prepare(run)
            loop = _Loop(config, run, observer, time.monotonic() if began is None else began, league)
            try:
                loop.start(resume)
                loop.run_until_done(interrupted)
            finally:
                loop.close()
    return run


@contextmanager
def _league_of(config: EchelonConfig, folder: Path | None) -> Iterator[Rivals | None]:
    """The league of a training, if it has one."""
    if not config.league:
        yield None
        return
    with closing(Rivals(config.league, config.role, stages_of(config), folder, config.seed)) as league:
        yield league


class _Loop(Loop):
    """The state of a training between two rollouts, and what happens with each."""

    unit = "agent-step"

    def __init__(
        self, config: EchelonConfig, run: Training, observer: Observer, began: float, league: Rivals | None = None
    ):
        super().__init__(config, run, observer, began)
        self.config = config
        self.league = league
        self.rivals: Rivals | None = None  # the league, in stages that it gives the opponents of
        self.life_began = 0.0  # of an exploiter, as a share of the budget
        self.saved_life = ""  # what it was called in the league when the checkpoint that it goes on from was written
        self.exams_since_copy = self.copied_step = 0
        self.threads = config.threads or min(2, usable_cores())
        self.stages = stages_of(config)
        self.stage_number, self.stage_began = 0, 0.0  # the latter as a share of the budget
        torch.manual_seed(config.seed)
        self.network = PilotNetwork(config.network)
        self.trained = _trained(self.network, config)
        self.learner = PPO(self.trained, config.ppo, self.threads, config.seed)
        self.practice: Practice | None = None
        lacks = NOT_OFFERED if config.imitation > 0 else NOT_OFFERED + OF_ADVICE
        self.switches = Switches(config.ppo.learning_rate, lacks=lacks)
        self.windows, self.clock = Windows(), Clock()
        self.agent_steps = 0
        self.best = (-math.inf, -math.inf)  # success and margin in an exam of this stage
        self.measured_by = ""  # the opponent of that exam
        self.good_enough = False

    @property
    def step(self) -> int:
        return self.agent_steps

    @property
    def stage(self) -> Stage:
        """What is practised now."""
        return self.stages[self.stage_number]

    def done(self) -> float:
        """Share of the budget that is used up."""
        shares = [0.0]
        if self.config.agent_steps:
            shares.append(self.agent_steps / self.config.agent_steps)
        if self.config.minutes and not self.config.deterministic:
            shares.append(self.elapsed_s() / (60 * self.config.minutes))
        return max(shares)

    def lived(self) -> float:
        """What schedules go by: the share of the budget that is used up of what was left when this life began."""
        return max(0.0, self.done() - self.life_began) / max(1e-9, 1.0 - self.life_began)

    def scheduled(self) -> Scheduled:
        """What the settings alone would give now; of the advisor, the share of its weight at the start."""
        return Scheduled(self.agent_steps, 0.0, linear(self.lived(), 1.0, 0.0, self.config.imitation_share))

    def advice(self) -> float:
        """How much the advisor is imitated now."""
        return self.config.imitation * self.switches.teacher(self.scheduled())

    # --- the loop ---

    def start(self, resume: bool) -> None:
        """Warm up or restore, and say what runs."""
        if self.league is not None:
            self.league.join(self.run.name)
        resumed = resume and self._restore()
        if not resumed:
            if self.config.start_from:
                self._take_weights(self.config.start_from)
            elif self.league is not None and self.league.exploits:
                self._take_main_weights()
            self._begin_stage()
            self._look_around()
        elif self.league is not None and self.league.exploits and self.saved_life != self.league.agent.name:
            self._begin_life()  # it was killed between the end of a life and the first checkpoint of the next
        self.start_clocks()
        self.clock.start(self.agent_steps, self.learner.updates)
        self.show_switches()
        self.observer.started(self._report(resumed), self.done())

    def run_until_done(self, interrupted: threading.Event) -> None:
        """Play, learn, obey, measure, save."""
        exam: Exam | None = None
        wanted = True
        try:
            while wanted and not self.good_enough and self.done() < 1.0 and not interrupted.is_set():
                self._turn()
                self._begin_again_if_due()
                wanted = self.obey()
                if exam is None and self.exam_is_due():
                    exam = self._examine()
                if exam is not None and (self.config.deterministic or not exam.is_alive()):
                    self._examined(exam)
                    exam = None
                self._leave_stage_if_time()
                if self.elapsed_s() >= self.next_save_s:
                    self.save()
            if self.done() < 1.0 and not self.good_enough:
                self.run.stop()
            self.save()
        finally:
            if exam is not None:
                exam.cancel()
        is_done = wanted and not interrupted.is_set()
        if is_done and not self.good_enough:
            self.observer.noted("the budget is used up: a last exam, and it ends")
            self._examined(self._examine(), last=True)
        if self._leave_last_copy() or is_done:
            self.save()

    def _turn(self) -> None:
        """Play a rollout and learn from it."""
        assert self.practice is not None, "a stage has begun"
        practice, clock, lived = self.practice, self.clock, self.lived()
        if self.rivals is not None:
            practice.meet(self.rivals.chances())
        imitation = self.advice()
        began = time.perf_counter()
        steps = practice.play(lived, advised=imitation > 0)
        then = time.perf_counter()
        rate = self.learner.set_progress(lived, self.switches.rate_factor)
        figures: dict[str, float] = {}
        spent = time.thread_time() + self.learner.others_cpu_s
        if self.switches.learning:
            figures = self._learn(imitation)
        self.agent_steps += steps
        clock.playing += then - began
        clock.learning += time.perf_counter() - then
        clock.cpu["learning"] += time.thread_time() + self.learner.others_cpu_s - spent
        for crew in practice.crews:
            self.windows.add(crew.episodes)
            clock.cpu["simulating"] += crew.simulating_s
            clock.cpu["acting"] += crew.acting_s
        if self.rivals is not None:
            self.rivals.report(episode for crew in practice.crews for episode in crew.episodes)
        if self.log_is_due():
            self._log(figures | {"learning_rate": rate, "imitation": imitation})

    def _learn(self, imitation: float) -> dict[str, float]:
        """Make the updates of a rollout, wherever they are made."""
        assert self.practice is not None, "a stage has begun"
        elsewhere = self.trained is not self.network
        if elsewhere:
            self.trained.load_state_dict(self.network.state_dict())
        try:
            figures = self.learner.update(self.practice.rollout, imitation)
        except LearningFailed as failure:
            raise type(failure)(f"{failure}; see {self.run.diagnose(failure.report)}", failure.report) from failure
        if problem := self.learner.explain():
            self.run.event("skipped", problem)
            self.observer.noted(problem)
        if elsewhere:
            self.network.load_state_dict(self.trained.state_dict())
        self.practice.note_inputs()
        return figures

    def _log(self, figures: dict[str, float]) -> None:
        assert self.practice is not None, "a stage has begun"
        rollout, crews = self.practice.rollout, self.practice.crews
        acted = rollout.acted
        weights = crews[0].arena.weights
        figures |= self.windows.figures() | self.clock.figures(self.agent_steps, self.learner.updates)
        figures |= shares_of(np.sum([crew.parts for crew in crews], 0))
        figures |= {
            "entropy_weight": self.learner.entropy_weight,
            "own_share": float(weights["own_share"][0]),
            "outcome_weight": float(weights["outcome"][0]),
            "saturation": float((rollout.actions["move"][acted].abs() > SATURATED).float().mean()),
            "living": float(acted.float().mean()),
            "stage": self.stage_number,
            "progress": min(1.0, self.done()),
            "cpu_minutes": self.cpu_s() / 60,
        } | (self.rivals.figures() if self.rivals is not None else {})
        self.run.log(self.agent_steps, **figures)
        self.observer.progressed(self.agent_steps, self.done(), figures)

    # --- stages ---

    def _begin_stage(self) -> None:
        if self.practice is not None:
            self.practice.close()
        stage = self.stage
        find: Finder = find_player
        self.rivals = self.league if self.league is not None and self.league.fits(stage) else None
        if self.rivals is not None:
            alone = self_share(self.config, stage)
            shares = {name: (1.0 - alone) * chance for name, chance in self.rivals.chances().items()}
            stage = replace(stage, opponents=(*([(SELF, alone)] if alone else []), *shares.items()))
            find = self.rivals.find
        self.practice = Practice(stage, self.stage_number, self.config, self.network, self.threads, find)
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
        text = f"{name} ends ({why}); {self.config.stages[self.stage_number]} begins at agent-step {self.agent_steps:,}"
        self.run.event("stage", text)
        self.observer.noted(text)
        self._begin_stage()
        self.next_exam_s = self.elapsed_s() + self.config.exam_seconds

    # --- the league ---

    def _tell_league(self, text: str) -> None:
        self.run.event("league", text)
        self.observer.noted(text)

    def _take_main_weights(self) -> None:
        """An exploiter begins with what it is to beat, if it can."""
        assert self.league is not None, "exploiters are in a league"
        main = self.league.main()
        if main is None:
            self._tell_league("begins with fresh weights: there is no main agent yet")
            return
        try:
            self._take_weights(main.player)
            self._tell_league(f"begins with the weights of {main.name}")
        except (checkpoints.CheckpointMismatch, StateMismatch):
            self._tell_league(f"begins with fresh weights: the network of {main.name} has other sizes")

    def _begin_again_if_due(self) -> None:
        """An exploiter that has done its work, or had its games, leaves a copy and begins again."""
        reason = self.rivals.reset_due() if self.rivals is not None and self.done() < 1.0 else ""
        if not reason:
            return
        assert self.rivals is not None, "the league has this stage"
        self._leave_copy()
        self.rivals.reset(reason)
        self._tell_league(f"{reason}: goes on as {self.rivals.agent.name}")
        self._begin_life()

    def _begin_life(self) -> None:
        """An exploiter begins with what it is to beat, and with nothing that it has learned before."""
        assert self.league is not None and self.practice is not None, "a stage has begun"
        self.life_began, self.best = self.done(), (-math.inf, -math.inf)
        torch.manual_seed(self.config.seed + self.league.agent.id)
        self.network.load_state_dict(PilotNetwork(self.config.network).state_dict())
        self._take_main_weights()
        self.learner.optimiser.forget()
        if self.rivals is not None:
            self.practice.meet(self.rivals.chances())  # a new life is unrated: others are within its reach
        self.practice.begin_anew()
        self.windows.clear()
        self._look_around()
        self.save()  # at once: these weights and the new life belong together

    def _leave_copy(self) -> None:
        """What the pupil is now becomes a candidate."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "copy.safetensors"
            self._save_to(path, self.network, {"seed": self.config.seed, "agent_steps": self.agent_steps})
            self._submit(path, self.agent_steps)

    def _leave_last_copy(self) -> bool:
        """The same at the end, unless it has learned nothing since; whether it did."""
        due = self.rivals is not None and self.copied_step != self.agent_steps
        if due:
            self._leave_copy()
        return due

    def _submit(self, checkpoint: Path, step: int) -> None:
        assert self.rivals is not None, "the league has this stage"
        copied = self.rivals.submit(checkpoint, step)
        self.exams_since_copy, self.copied_step = 0, step
        self._tell_league(f"{copied.name} is a {copied.kind} of league {self.rivals.league.name}")

    # --- exams ---

    def _examine(self) -> Exam:
        assert self.practice is not None, "a stage has begun"
        target = self.rivals.target() if self.rivals is not None else None
        opponents = {target.name: target.player} if target else {name: name for name in self.stage.exam}
        return Exam(
            self.config, self.run, self.network, self.stage, opponents, self.practice.maps, self.agent_steps,
            of=(self.stage_number, self.life_began),
        )  # fmt: skip

    def _examined(self, finished: Exam, last: bool = False) -> None:
        """Note a result: it says which checkpoint is the best, and whether the stage is passed."""
        exams = finished.result()
        self.plan_exam()
        if finished.of != (self.stage_number, self.life_began):
            return  # what was measured has ended meanwhile
        first = exams[0]
        if self.measured_by != first["opponent"]:
            self.measured_by, self.best = first["opponent"], (-math.inf, -math.inf)
        figures = {f"exam_{name}": first[name] for name in ("success", "success_low", "success_high", "margin")}
        declared = {metric.name for metric in METRICS}
        by_opponent = {f"exam_{exam['opponent']}": exam["success"] for exam in exams}
        figures |= {name: value for name, value in by_opponent.items() if name in declared}
        figures |= {f"style_{name}": value for name, value in finished.style.items()}
        self.run.log(self.agent_steps, **figures, exam_length=first["length_mean"])
        result = first["success"], first["margin"]
        better = result >= self.best
        if better:
            self.best = result
            kept = {"seed": self.config.seed, "elapsed_s": self.elapsed_s(), "agent_steps": finished.steps}
            self._save_to(self.run.best, finished.pupil.network, kept | {"exam": first})
        if self.rivals is not None:
            self.exams_since_copy += 1
            if better:
                self._submit(self.run.best, finished.steps)
            elif self.exams_since_copy >= EXAMS_PER_COPY:
                self._leave_copy()
        self.observer.examined(first | {"summary": summary(exams)}, 0.0, better)
        if last:
            return
        reached = f"success {first['success']:.0%}, at least {first['success_low']:.0%}"
        if self.stage_number + 1 < len(self.stages):
            if first["success_low"] >= self.stage.gate:
                self._next_stage(reached)
        elif first["success_low"] >= self.config.until > 0.0 and not self.advice():
            self.good_enough = True
            self.observer.noted(f"{reached}: good enough, it ends")

    # --- checkpoints ---

    def save(self) -> None:
        """Write everything a resumed run needs, battles in progress too."""
        assert self.practice is not None, "a stage has begun"
        self.next_save_s = self.elapsed_s() + self.config.autosave_seconds
        state = {
            "steps": self.agent_steps,
            **self.clocks(),
            "stage": self.stage_number,
            "stage_began": self.stage_began,
            "best": list(self.best),
            "measured_by": self.measured_by,
            "league": [self.life_began, self.exams_since_copy, self.copied_step],
            "life": self.league.agent.name if self.league is not None else "",
            "rivals": self.league.save() if self.league is not None else {},
            "next_exam_step": self.next_exam_step,
            "windows": self.windows.state(),
            "switches": self.switches.state(),
            "learner": {name: value for name, value in self.learner.state().items() if name != "weights"},
            "crews": [crew.save() for crew in self.practice.crews],
        }
        self._save_to(self.run.last, self.network, state)
        self.run.event("autosave", f"agent-step {self.agent_steps:,}")

    def _save_to(self, path: Path, network: PilotNetwork, state: dict[str, Any]) -> None:
        assert self.practice is not None, "a stage has begun"
        known = about(self.config.network, self.practice.crews[0].arena.layout) | {"stages": list(self.config.stages)}
        checkpoints.save(path, named_weights(network, "network"), known | state, kind=KIND, task_version=TASK_VERSION)

    def _restore(self) -> bool:
        if not self.run.last.is_file():
            self.observer.noted(f"run {self.run.name} was stopped before its first checkpoint: it starts afresh")
            self.run.rewind(-1)
            return False
        saved = checkpoints.load(self.run.last, kind=KIND, task_version=TASK_VERSION)
        state = saved.state
        self.stage_number = min(state["stage"], len(self.stages) - 1)
        self._check_fits(saved)
        restore_weights(self.network, saved.tensors, "network", saved.path)
        self.learner.restore({"weights": saved.tensors, **state.get("learner", state)})  # runs of before have it flat
        self.agent_steps = state["steps"]
        self.restore_clocks(state)
        self.stage_began = state["stage_began"]
        self._begin_stage()
        assert self.practice is not None, "a stage has begun"
        try:
            for crew, kept in zip(self.practice.crews, state["crews"], strict=True):
                crew.load(kept)
        except (ProtegeError, ValueError, KeyError):
            self.observer.noted("other settings than before: battles begin anew")
            self._begin_stage()  # what was loaded before the refusal does not stay
        self.best = (state["best"][0], state["best"][1])
        self.measured_by = state.get("measured_by", self.stage.exam[0])  # runs of before do not know it
        self.life_began, self.exams_since_copy, self.copied_step = state.get("league", (0.0, 0, 0))
        self.saved_life = state.get("life", "") or (self.league.agent.name if self.league is not None else "")
        if self.league is not None and state.get("rivals"):
            self.league.load(state["rivals"])
        self.next_exam_step = state["next_exam_step"]
        self.windows.restore(state["windows"])
        self.switches.restore(state["switches"])
        self.run.rewind(self.agent_steps)
        c = self.config
        self.note_budget(0.0 if c.deterministic else c.minutes, c.agent_steps, state.get("done", 0.0))
        return True

    def _check_fits(self, saved: checkpoints.Checkpoint) -> None:
        check_schema(saved, layout_of(find_roster(self.stage.roster)))

    def _take_weights(self, name: str) -> None:
        """Begin with what a run or a checkpoint has learned."""
        path = checkpoint_of(name, self.run.path.parent) or Path(name)
        saved = checkpoints.load(path, kind=KIND, task_version=TASK_VERSION)
        self._check_fits(saved)
        restore_weights(self.network, saved.tensors, "network", saved.path)
        if self.league is not None:
            self.league.note_origin(path)

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
        if self.rivals is not None:
            alone = self_share(c, self.stage)
            opponents = f"league {self.rivals.league.name}" + (f", and itself {alone:.0%}" if alone else "")
        shape = practice.rollout.shape
        more = {"league": self.rivals.summary()} if self.rivals is not None else {}
        if switched := self.switches.changed():
            more["switched"] = f"{switched}, as before"
        return {
            "run": f"{self.run.path}, " + (f"resumed at agent-step {self.agent_steps:,}" if resumed else "fresh"),
            "game": f"Echelon, task version {TASK_VERSION}, seed {c.seed}",
            "stage": f"{c.stages[self.stage_number]}: {self.stage.roster} on {self.stage.size} x {self.stage.size}, "
            f"against {opponents}" + (f"; then {', '.join(c.stages[self.stage_number + 1 :])}"
                                      if self.stage_number + 1 < len(c.stages) else ""),
            "network": f"{sizes[False]:,} weights to play, {sizes[True]:,} more in the critic",
            "learner": f"recurrent PPO: {practice.battles} battles, {shape.groups * shape.members} learning mechs, "
            f"{shape.horizon} decisions a rollout, chunks of {shape.chunk}, {c.ppo.epochs} epochs of "
            f"{c.ppo.minibatches} updates, gamma {c.ppo.gamma:g}",
            "device": f"CPU, cores: {usable_cores()}; threads that play and learn in turn: {self.threads}"
            + ("" if c.deterministic else ", and one measures")
            + ("" if c.device == "cpu" else f"; {c.device} makes the updates"),
            "budget": " or ".join(budget) or "none: rates stay as they begin; stop it with Ctrl-C",
        } | more  # fmt: skip


def _trained(network: PilotNetwork, config: EchelonConfig) -> PilotNetwork:
    """What updates change: the network that acts, or where another device makes them a copy of it there."""
    device = find_device(config.device)
    if device == torch.device("cpu"):
        return network
    copied = deepcopy(network).to(device)
    copied.scale.cpu()  # of a few numbers: returns, which it is made from, are worked out on the CPU
    return copied


def estimate(config: EchelonConfig, folder: Path | None = None) -> dict[str, str]:
    """What a training would need, from a few real rollouts of its last stage against scripted players."""
    check(config)
    with _league_of(config, folder):
        pass  # a league that does not fit is refused here already
    torch.set_num_threads(1)
    stage = stages_of(config)[-1]
    threads = config.threads or min(2, usable_cores())
    network = PilotNetwork(config.network)
    learner = PPO(_trained(network, config), config.ppo, threads)
    practice = Practice(stage, len(config.stages) - 1, config, network, threads)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        steps = practice.play(0.0)
        learner.update(practice.rollout, config.imitation)
        took.append(time.perf_counter() - began)
    rate = steps / min(took)
    with TemporaryDirectory() as room:
        file = Path(room) / "checkpoint"
        kept = learner.state()
        tensors, state = kept.pop("weights"), {"crews": [crew.save() for crew in practice.crews], "learner": kept}
        checkpoints.save(file, tensors, state, kind=KIND, task_version=TASK_VERSION)
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
