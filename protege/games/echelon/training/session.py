"""Recurrent PPO at work on Echelon: batches of battles fill a rollout, the learner makes its updates from it.

Threads share each of the two. What is practised is the curriculum's business, whom it meets in a league the league
agent's; either may have nothing to say.
"""

import copy
import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from protege import ProtegeError
from protege.games.echelon.agents.match import checkpoint_of
from protege.games.echelon.agents.network import PilotNetwork
from protege.games.echelon.agents.pupil import KIND, Pupil, about, check_schema
from protege.games.echelon.task.env import TASK_VERSION
from protege.games.echelon.task.features import layout_of
from protege.games.echelon.training.collect import BattleSource
from protege.games.echelon.training.config import SELF, Curriculum, EchelonConfig, self_fraction, stages_of
from protege.games.echelon.training.evaluation import SEED_OF_EVALUATIONS, evaluate, record_battle, summary
from protege.games.echelon.training.league_agent import LeagueAgent
from protege.games.echelon.training.metrics import METRICS, SATURATED, Clock, Windows, fractions_of
from protege.games.echelon.world.mechs import find_roster
from protege.games.echelon.world.voxels import World
from protege.learn.optimise import find_device
from protege.learn.ppo import PPO
from protege.learn.schedules import linear
from protege.learn.state import StateMismatch, named_weights, restore_weights
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.train.controls import Controls, Scheduled
from protege.train.session import Context, Experience, Figures, Result, Session, Snapshot

EVALUATIONS_PER_COPY: Final = 10  # a copy enters the league at the latest after so many evaluations
RECORDINGS_KEPT: Final = 20
NOT_OFFERED: Final = ("epsilon", "greedy", "pulse")  # controls of learners that explore by random moves
OF_ADVICE: Final = ("teacher", "teacher_off", "teacher_only")  # of trainings with an advisor


class EchelonSnapshot:
    """A pupil as it was at some agent-step, and whom it is measured against."""

    def __init__(self, session: "EchelonSession", opponents: Mapping[str, str], maps: World | None):
        """`opponents`: by what they are called, what they are found by."""
        self.config, self.folder, self.name = session.config, session.context.run.recordings, session.context.run.name
        self.stage, self.opponents, self.maps, self.step = session.curriculum.stage, opponents, maps, session.step
        self.pupil = Pupil(copy.deepcopy(session.network), sampled=self.config.eval_sampled)
        self.success_low = 0.0

    def tensors(self) -> dict[str, Tensor]:
        return named_weights(self.pupil.network, "network")

    def evaluate(self, cancelled: threading.Event) -> Result:
        c = self.config
        results = [
            evaluate(
                self.pupil, self.stage, player, maps=self.maps, matches=c.eval_matches,
                seed=SEED_OF_EVALUATIONS + c.seed, cancelled=cancelled,
            ) | {"opponent": name}
            for name, player in self.opponents.items()
        ]  # fmt: skip
        first, style = results[0], self._record()
        self.success_low = first["success_low"]
        figures = {f"eval_{name}": first[name] for name in ("success", "success_low", "success_high", "margin")}
        declared = {metric.name for metric in METRICS}
        by_opponent = {f"eval_{one['opponent']}": one["success"] for one in results}
        figures |= {name: value for name, value in by_opponent.items() if name in declared}
        figures |= {f"style_{name}": value for name, value in style.items()} | {"eval_length": first["length_mean"]}
        return Result(
            figures=figures,
            rank=(first["success"], first["margin"]),
            summary=summary(results),
            headline=f"{first['success']:.0%} against {first['opponent']}",
            yardstick=first["opponent"],
            seconds=sum(one["seconds"] for one in results),
            about={"agent_steps": self.step, "exam": first},
        )

    def _record(self) -> dict[str, float]:
        """Keep one battle to be watched, and the newest of those before; how the pupil played in it."""
        name, player = next(iter(self.opponents.items()))
        style = record_battle(
            self.pupil, self.stage, player, self.folder / f"step-{self.step:012d}.rec", maps=self.maps,
            names=(self.name, name), seed=SEED_OF_EVALUATIONS + self.step,
        )  # fmt: skip
        for path in sorted(self.folder.glob("step-*.rec"))[:-RECORDINGS_KEPT]:
            path.unlink()
        return style


class EchelonSession(Session):
    """Squads that learn by recurrent PPO."""

    step = 0  # agent-steps learned from so far

    def __init__(self, config: EchelonConfig, context: Context):
        self.config, self.context = config, context
        self.curriculum = Curriculum(config.stages, stages_of(config))
        stages, folder = self.curriculum.stages, context.run.path.parent
        self.league = LeagueAgent(config.league, config.role, stages, folder, config.seed)
        self.league.join(context.run.name)
        self.threads = config.threads or min(2, usable_cores())
        torch.manual_seed(config.seed)
        self.network = self.trained = PilotNetwork(config.network)
        if (device := find_device(config.device)) != torch.device("cpu"):
            self.trained = copy.deepcopy(self.network).to(device)  # updates are made there, battles stay here
            self.trained.scale.cpu()  # of a few numbers: returns, which it is made from, are worked out on the CPU
        self.learner = PPO(self.trained, config.ppo, self.threads, config.seed)
        lacks = NOT_OFFERED if config.imitation > 0 else NOT_OFFERED + OF_ADVICE
        self.controls = Controls(config.ppo.learning_rate, lacks=lacks)
        self.windows, self.clock = Windows(), Clock()
        self.source: BattleSource  # once begun or restored
        self.finished = ""
        self.success_low = 0.0  # lower end of the newest evaluation
        self.life_began = 0.0  # of an exploiter, as a fraction of the budget
        self.evaluations_since_copy = self.copied_step = 0
        self.rate = self.imitation = 0.0

    @property
    def phase(self) -> Hashable:
        """The stage, and the life of an exploiter."""
        return self.curriculum.number, self.life_began

    def lived(self) -> float:
        """What schedules go by: the fraction of the budget that is used up of what was left when this life began."""
        return max(0.0, self.context.progress() - self.life_began) / max(1e-9, 1.0 - self.life_began)

    def scheduled(self) -> Scheduled:
        """Of the advisor, the fraction of its weight at the start."""
        return Scheduled(self.step, 0.0, linear(self.lived(), 1.0, 0.0, self.config.imitation_fraction))

    def advice(self) -> float:
        """How much the advisor is imitated now."""
        return self.config.imitation * self.controls.teacher(self.scheduled())

    # --- playing and learning ---

    def begin(self, resumed: bool) -> None:
        if not resumed:
            if self.config.start_from:
                self._take_weights(checkpoint_of(self.config.start_from, self.context.run.path.parent))
            else:
                self._take_main_weights()
            self.source = self._source()
            self._look_around()
        elif self.league.began_another_life():
            self._begin_life()  # it was killed between the end of a life and the first checkpoint of the next
        self.clock.start(self.step, self.learner.updates)

    def collect(self, room: Any) -> Experience:
        if opponents := self.league.probabilities():
            self.source.meet(opponents)
        self.imitation = self.advice()
        began = time.perf_counter()
        steps = self.source.play(self.lived(), advised=self.imitation > 0)
        self.clock.playing += time.perf_counter() - began
        return Experience(None, steps)

    def update(self, experience: Experience) -> Figures:
        clock, began, spent = self.clock, time.perf_counter(), time.thread_time() + self.learner.others_cpu_s
        self.rate = self.learner.set_progress(self.lived(), self.controls.rate_factor)
        figures = self._learn() if self.controls.learning else {}
        self.step += experience.steps
        clock.learning += time.perf_counter() - began
        clock.cpu["learning"] += time.thread_time() + self.learner.others_cpu_s - spent
        for batch in self.source.batches:
            self.windows.add(batch.episodes)
            clock.cpu["simulating"] += batch.simulating_s
            clock.cpu["acting"] += batch.acting_s
        self.league.report(episode for batch in self.source.batches for episode in batch.episodes)
        return figures

    def _learn(self) -> Figures:
        """Make the updates of a rollout, wherever they are made."""
        elsewhere = self.trained is not self.network
        if elsewhere:
            self.trained.load_state_dict(self.network.state_dict())
        figures = self.learner.update(self.source.rollout, self.imitation)
        if elsewhere:
            self.network.load_state_dict(self.trained.state_dict())
        self.source.note_inputs()
        return figures

    def explain(self) -> str:
        return self.learner.explain()

    def figures(self) -> Figures:
        rollout, batches = self.source.rollout, self.source.batches
        acted, weights = rollout.acted, batches[0].arena.weights
        figures = self.windows.figures() | self.clock.figures(self.step, self.learner.updates)
        figures |= fractions_of(np.sum([batch.parts for batch in batches], 0)) | self.league.figures()
        return figures | {
            "learning_rate": self.rate,
            "imitation": self.imitation,
            "entropy_weight": self.learner.entropy_weight,
            "own_fraction": float(weights["own_fraction"][0]),
            "outcome_weight": float(weights["outcome"][0]),
            "saturation": float((rollout.actions["move"][acted].abs() > SATURATED).float().mean()),
            "living": float(acted.float().mean()),
            "stage": self.curriculum.number,
        }

    def _source(self) -> BattleSource:
        """The battles of the stage; in a league, against whom it gives."""
        stage, c = self.curriculum.stage, self.config
        self.league.enter(stage)
        if opponents := self.league.probabilities():
            alone = self_fraction(c, stage)
            others = [(name, (1.0 - alone) * probability) for name, probability in opponents.items()]
            stage = replace(stage, opponents=(*([(SELF, alone)] if alone else []), *others))
        return BattleSource(stage, self.curriculum.number, c, self.network, self.threads, self.league.find)

    def _look_around(self) -> None:
        """Play once without learning, so that the first updates find inputs on their scale."""
        self.source.play(0.0)
        self.source.note_inputs()

    # --- stages, and lives in a league ---

    def advance(self) -> None:
        progress = self.context.progress()
        if progress < 1.0 and (reason := self.league.reset_due()):
            self._leave_copy()
            self._tell_league(f"{reason}: goes on as {self.league.reset(reason)}")
            self._begin_life()
        elif reason := self.curriculum.over(progress, self.success_low):
            moved = self.curriculum.move_on(progress, reason)
            self.context.note(f"{moved} at agent-step {self.step:,}", event="stage")
            self._renew_source()
            self.windows = Windows()
        elif self.curriculum.is_last and self.success_low >= self.config.until > 0.0 and not self.advice():
            self.finished = f"success at least {self.success_low:.0%}: good enough, it ends"
        self.success_low = 0.0  # each result counts once

    def _begin_life(self) -> None:
        """An exploiter begins with what it is to beat, and with nothing that it has learned before."""
        self.life_began = self.context.progress()
        torch.manual_seed(self.config.seed + self.league.agent.id)
        self.network.load_state_dict(PilotNetwork(self.config.network).state_dict())
        self._take_main_weights()
        self.learner.optimiser.forget()
        self.source.meet(self.league.probabilities())  # unrated: others are within its reach
        self.source.begin_anew()
        self.windows = Windows()
        self._look_around()
        self.context.save()  # at once: these weights and the new life belong together

    def _take_main_weights(self) -> None:
        """An exploiter begins with what it is to beat, if it can."""
        if not self.league.exploits:
            return
        main = self.league.main()
        if main is None:
            self._tell_league("begins with fresh weights: there is no main agent yet")
            return
        try:
            self._take_weights(Path(main.player))
            self._tell_league(f"begins with the weights of {main.name}")
        except (checkpoints.CheckpointMismatch, StateMismatch):
            self._tell_league(f"begins with fresh weights: the network of {main.name} has other sizes")

    def _take_weights(self, path: Path | None) -> None:
        """Begin with what a run or a checkpoint has learned."""
        saved = checkpoints.load(path or Path(self.config.start_from), kind=KIND, task_version=TASK_VERSION)
        check_schema(saved, layout_of(find_roster(self.curriculum.stage.roster)))
        restore_weights(self.network, saved.tensors, "network", saved.path)
        self.league.note_origin(saved.path)

    def _leave_copy(self) -> None:
        """What the pupil is now becomes a candidate."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "copy.safetensors"
            state = self.about() | {"seed": self.config.seed, "agent_steps": self.step}
            checkpoints.save(path, self.tensors(), state, kind=KIND, task_version=TASK_VERSION)
            self._submit(path, self.step)

    def _submit(self, checkpoint: Path, step: int) -> None:
        self.evaluations_since_copy, self.copied_step = 0, step
        self._tell_league(self.league.submit(checkpoint, step))

    def _tell_league(self, text: str) -> None:
        self.context.note(text, event="league")

    # --- evaluations ---

    def snapshot(self) -> EchelonSnapshot:
        stage = self.curriculum.stage
        target = self.league.target()
        opponents = {target.name: target.player} if target else {name: name for name in stage.evaluated_by}
        return EchelonSnapshot(self, opponents, self.source.maps)

    def evaluated(self, snapshot: Snapshot, result: Result, best: bool) -> None:
        assert isinstance(snapshot, EchelonSnapshot)
        self.success_low = snapshot.success_low
        if not self.league.active:
            return
        self.evaluations_since_copy += 1
        if best:
            self._submit(self.context.run.best, snapshot.step)
        elif self.evaluations_since_copy >= EVALUATIONS_PER_COPY:
            self._leave_copy()

    def finish(self) -> bool:
        due = self.league.active and self.copied_step != self.step
        if due:
            self._leave_copy()
        return due

    # --- checkpoints ---

    def about(self) -> dict[str, Any]:
        return about(self.config.network, self.source.batches[0].arena.layout) | {"stages": list(self.config.stages)}

    def tensors(self) -> dict[str, Tensor]:
        return named_weights(self.network, "network")

    def state(self) -> dict[str, Any]:
        return {
            "steps": self.step,
            "stage": [self.curriculum.number, self.curriculum.began],
            "life": [self.life_began, self.evaluations_since_copy, self.copied_step],
            "league": self.league.state(),
            "windows": self.windows.state(),
            "learner": {name: value for name, value in self.learner.state().items() if name != "weights"},
            "batches": [batch.save() for batch in self.source.batches],
        }

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        number, self.curriculum.began = state["stage"]
        self.curriculum.number = min(number, len(self.curriculum.stages) - 1)
        check_schema(saved, layout_of(find_roster(self.curriculum.stage.roster)))
        restore_weights(self.network, saved.tensors, "network", saved.path)
        self.learner.restore({"weights": saved.tensors, **state["learner"]})
        self.step = state["steps"]
        self.life_began, self.evaluations_since_copy, self.copied_step = state["life"]
        notes = []
        self.source = self._source()
        try:
            for batch, kept in zip(self.source.batches, state["batches"], strict=True):
                batch.load(kept)
        except (ProtegeError, ValueError, KeyError):
            notes.append("other settings than before: battles begin anew")
            self._renew_source()  # what was loaded before the refusal does not stay
        self.league.restore(state["league"])
        self.windows.restore(state["windows"])
        return notes

    def _renew_source(self) -> None:
        self.source.close()
        self.source = self._source()

    def sizes(self) -> tuple[int, int]:
        return self.source.rollout.nbytes(), 0

    def close(self) -> None:
        if hasattr(self, "source"):
            self.source.close()
        self.league.close()

    def describe(self) -> dict[str, str]:
        c, source, opponents = self.config, self.source, self.curriculum.stage.opponents
        sizes = {own: sum(p.numel() for n, p in self.network.named_parameters() if n.startswith("critic.") == own)
                 for own in (False, True)}  # fmt: skip
        shape, battles = source.rollout.shape, sum(len(batch.arena) for batch in source.batches)
        league, met = self.league.summary(), ", ".join(f"{name} {weight:g}" for name, weight in opponents)
        if league:
            alone = self_fraction(c, self.curriculum.stage)
            met = f"league {self.league.name}" + (f", and itself {alone:.0%}" if alone else "")
        return {
            "game": f"Echelon, task version {TASK_VERSION}, seed {c.seed}",
            "stage": self.curriculum.describe(met),
            "network": f"{sizes[False]:,} weights to play, {sizes[True]:,} more in the critic",
            "learner": f"recurrent PPO: {battles} battles, {shape.groups * shape.members} learning mechs, "
            f"{shape.horizon} decisions a rollout, chunks of {shape.chunk}, {c.ppo.epochs} epochs of "
            f"{c.ppo.minibatches} updates, gamma {c.ppo.gamma:g}",
            "device": f"CPU, cores: {usable_cores()}; threads that play and learn in turn: {self.threads}"
            + ("" if c.deterministic else ", and one measures")
            + ("" if c.device == "cpu" else f"; {c.device} makes the updates"),
        } | ({"league": league} if league else {})
