"""What sessions of all learners have alike: games, scales, the teacher's weight, evaluation on held-out episodes."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

from protege.games.own.agents.networks import parameters_of, plan
from protege.games.own.agents.players import (
    Pupil,
    Random,
    Teacher,
    build,
    evaluate,
    restore_scaling,
    scaling_tensors,
)  # fmt: skip
from protege.games.own.agents.scaling import RewardScale, Scaling
from protege.games.own.training.config import OwnConfig
from protege.games.own.training.metrics import METRICS, Tally
from protege.games.own.world.arena import Arena, Episode, World
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.seeds import TRAINING, Purpose, random_stream
from protege.train.controls import Controls, Scheduled
from protege.train.session import Context, Experience, Figures, Result, Session, Snapshot

SEED_OF_EVALUATIONS: Final = 2_000_000  # so that these and what people evaluate with are different games
ADVISED_EPSILON: Final = 0.25  # random moves at first, where a teacher advises
FALLEN: Final = 0.5  # of the teacher's lead over random play: who lacks more of it is advised again
OF_ADVICE: Final = ("teacher", "teacher_off", "teacher_only")  # controls of trainings with a teacher
OF_EPSILON: Final = ("epsilon", "greedy", "pulse")  # of learners that explore by random moves


@dataclass
class Played(Experience):
    """Frames of training games, and the episodes that ended in them."""

    episodes: list[Episode] = field(default_factory=list)
    playing_s: float = 0.0  # processor time


class OwnSnapshot:
    """A pupil as it was at some frame."""

    def __init__(self, session: "OwnSession"):
        self.session, self.frame = session, session.step
        self.pupil = Pupil(session.measured(), session.scaling)
        self.found: dict[str, Any] = {}

    def tensors(self) -> dict[str, Tensor]:
        return self.pupil.tensors()

    def evaluate(self, cancelled: threading.Event) -> Result:
        session = self.session
        found = self.found = evaluate(
            session.world, "pupil", self.pupil, cancelled=cancelled, **session.evaluation_games()
        )
        teacher = session.baselines.get("teacher")
        beside = f", teacher {teacher:,.4g}" if teacher is not None else ""
        figures = {
            "eval_return": found["return_mean"], "eval_return_low": found["return_mean_low"],
            "eval_return_high": found["return_mean_high"], "eval_frames": found["frames_mean"],
        }  # fmt: skip
        figures |= {f"{name}_return": value for name, value in session.baselines.items()}
        return Result(
            figures=figures,
            rank=(found["return_mean"],),
            summary=f"return {found['return_mean']:,.4g} ({found['return_mean_low']:,.4g}–"
            f"{found['return_mean_high']:,.4g}){beside}, random {session.baselines['random']:,.4g}, "
            f"{found['frames_mean']:,.0f} frames, {found['seconds']:.0f} s",
            headline=f"return {found['return_mean']:,.4g}{beside}",
            detail=f"median {found['return_median']:,.4g}, lowest {found['return_min']:,.4g}, best "
            f"{found['return_max']:,.4g}, {found['truncated']} of {found['games']} cut short",
            seconds=found["seconds"],
            about={"frames": self.frame} | {name: found[name] for name in found if name.startswith("return_mean")},
        )


class OwnSession(Session):
    """The part of a session that does not depend on the learner."""

    learner: Any
    lacks: tuple[str, ...] = ()  # controls that mean nothing to the learner

    def __init__(self, config: OwnConfig, context: Context, world: World):
        self.config, self.context, self.world, self.own = config, context, world, config.own
        self.shape: dict[str, Any] = {"learner": config.learner, "widths": list(config.widths)}
        self.advised = world.teaches
        self.threads = 1 if config.deterministic else config.threads or min(4, usable_cores())
        self.frames, self.rate = 0, 0.0
        self.trailing = 1.0  # what the pupil lacks of the teacher's lead over random play, as a fraction
        self.baselines: dict[str, float] = {}  # returns of scripted players on the episodes of every evaluation
        torch.manual_seed(config.seed)
        self.random = random_stream(config.seed, Purpose.PRACTICE)
        self.arena = Arena(world, self.own.games, TRAINING, config.seed, config.longest)
        self.scaling = Scaling(world.sight)
        self.rewards = RewardScale(self.arena.count, self.gamma)
        self.tally = Tally()
        self.logged = {metric.name for metric in METRICS[config.learner]}
        self.controls = Controls(self.own.learning_rate, lacks=self.lacks + (() if self.advised else OF_ADVICE))

    @property
    def gamma(self) -> float:
        return float(self.own.gamma)

    @property
    def step(self) -> int:
        return self.frames

    def network(self) -> nn.Module:
        """A fresh one."""
        return build(self.shape, *self.world.spaces)

    def measured(self) -> nn.Module:
        """The one that is evaluated and kept."""
        found: nn.Module = self.learner.averaged
        return found

    def explain(self) -> str:
        return str(self.learner.explain())

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.learner.state()["weights"]
        return found | scaling_tensors(self.scaling)

    def evaluation_games(self) -> dict[str, Any]:
        """The episodes of every evaluation, as `evaluate` wants them."""
        c = self.config
        return {"games": c.eval_games, "seed": SEED_OF_EVALUATIONS + c.seed, "longest": c.longest}

    def begin(self, resumed: bool) -> None:
        if not self.baselines:
            scripted: dict[str, Any] = {"random": Random()} | ({"teacher": Teacher()} if self.advised else {})
            for name, player in scripted.items():
                found = evaluate(self.world, name, player, **self.evaluation_games())
                self.baselines[name] = found["return_mean"]
            if self.advised and self.baselines["teacher"] <= self.baselines["random"]:
                self.advised, self.trailing = False, 0.0
                self.context.note("the teacher earns no more than random play: its advice is not imitated")
        if not resumed:
            self._look_around()
        self.tally.start(self.frames, self.learner.updates)

    def _look_around(self) -> None:
        """Play at random once, so that the first updates find inputs and rewards on their scale."""
        seen = []
        for _ in range(max(32, 2048 // self.arena.count)):
            seen.append(self.arena.observation)
            step = self.arena.step(
                self.arena.moves.random(self.random.random((self.arena.count, self.arena.moves.count)))
            )
            self.rewards.note(step.reward, step.ended)
        for observations in seen:
            self.scaling.note(observations)
        self.arena.taken_episodes()

    # --- the teacher ---

    def scheduled(self) -> Scheduled:
        """Random moves fade over the first part of the budget, and so does advice, unless the pupil still trails.

        Both go together: what other actions are worth must be known by the time nobody advises against them.
        """
        c, progress = self.config, self.context.progress()
        begun = progress / c.epsilon_fraction if c.epsilon_fraction > 0 else 1.0
        first = ADVISED_EPSILON if self.advised else 1.0
        epsilon = max(getattr(self.own, "epsilon", 0.0), first * (1.0 - begun))
        needed = self.trailing if progress < c.teacher_fraction else 0.0
        teacher = max(needed, 1.0 - begun) if self.advised and c.teacher_fraction > 0 else 0.0
        return Scheduled(self.frames, epsilon, min(1.0, max(0.0, teacher)))

    def advice_weight(self, full: float) -> float:
        """How much advice counts now, of its full weight."""
        return full * self.controls.teacher(self.scheduled()) if self.advised else 0.0

    # --- evaluations ---

    def snapshot(self) -> OwnSnapshot:
        return OwnSnapshot(self)

    def evaluated(self, snapshot: Snapshot, result: Result, best: bool) -> None:
        assert isinstance(snapshot, OwnSnapshot)
        if self.advised:
            lead = self.baselines["teacher"] - self.baselines["random"]
            # Level is who may be as good, by the interval: even a little advice holds a pupil at its teacher's side.
            level = snapshot.found["return_mean_high"] >= self.baselines["teacher"]
            behind = 0.0 if level else (self.baselines["teacher"] - snapshot.found["return_mean"]) / max(1e-9, lead)
            # Advice that comes back distorts values which have been learned without it: only who has fallen is caught.
            self.trailing = min(1.0, behind) if behind > FALLEN else min(self.trailing, max(0.0, behind))

    def note(self, played: Experience) -> None:
        """Count what was learned from."""
        assert isinstance(played, Played)
        self.frames += played.steps
        self.tally.add(played.episodes)
        self.tally.playing += played.playing_s

    def learned(self, began: float, figures: Figures) -> Figures:
        """Count the learner's time from `began` on; the figures that are declared."""
        self.tally.learning += time.thread_time() + self.learner.others_cpu_s - began
        unknown = () if self.advised else ("agreement", "advised", "distillation_loss", "bc_loss")
        return {name: value for name, value in figures.items() if name in self.logged and name not in unknown}

    def figures(self) -> Figures:
        scheduled = self.scheduled()
        found = {"learning_rate": self.rate, "reward_scale": self.rewards.factor}
        found |= {"epsilon": self.controls.epsilon(scheduled), "advice": self.controls.teacher(scheduled)}
        found = {name: value for name, value in found.items() if name in self.logged}
        return self.tally.figures(self.frames, self.learner.updates) | found

    # --- checkpoints ---

    def about(self) -> dict[str, Any]:
        return {"shape": self.shape, "plan": plan(*self.world.spaces), "place": self.world.place}

    def state(self) -> dict[str, Any]:
        return {
            "frames": self.frames, "trailing": self.trailing, "baselines": self.baselines,
            "tally": self.tally.state(), "rewards": self.rewards.state(), "begun": self.arena.begun,
            "random": self.random.bit_generator.state,
            "learner": {name: value for name, value in self.learner.state().items() if name != "weights"},
        }  # fmt: skip

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.learner.restore({"weights": saved.tensors, **state["learner"]})
        restore_scaling(self.scaling, saved.tensors)
        self.rewards.restore(state["rewards"])
        self.frames, self.trailing, self.baselines = state["frames"], state["trailing"], dict(state["baselines"])
        self.tally.restore(state["tally"])
        self.random.bit_generator.state = state["random"]
        self.arena.close()
        self.arena = Arena(
            self.world, self.own.games, TRAINING, self.config.seed, self.config.longest, begun=state["begun"]
        )
        return ["the games begin anew: an environment's own state is not saved"]

    def close(self) -> None:
        self.arena.close()

    def describe(self) -> dict[str, str]:
        c, (sight, moves) = self.config, self.world.spaces
        sees = f"a picture {' x '.join(map(str, sight.shape))}" if sight.is_picture else f"{sight.features} numbers"
        does = " x ".join(map(str, moves.sizes)) + " actions" if moves.sizes else f"{moves.count} bounded numbers"
        layers = " -> ".join(map(str, c.widths))
        found = {
            "game": f"{self.world.place}, seed {c.seed}",
            "network": f"{sees} -> {layers} -> {does}, {parameters_of(self.measured()):,} parameters",
            "learner": self.describe_learner(),
            "threads": "all in one" if c.deterministic else f"{self.threads} learn; cores: {usable_cores()}",
            "random play": f"{self.baselines['random']:,.4g} on the {c.eval_games} held-out episodes",
        }
        if self.advised:
            found["teacher"] = f"{c.teacher or 'its own'}: {self.baselines['teacher']:,.4g} on the same episodes"
        return found

    def describe_learner(self) -> str:
        raise NotImplementedError
