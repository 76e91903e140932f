"""How a pupil practises: what the training loop needs of any learner, and the one without a memory.

A practice plays a piece, learns from it, hands out a pupil to be measured, and can be saved and restored.
`FastPractice` plays rollouts of hundreds of games and learns from each while the next is played.
"""

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege.games.tempest.agents.network import CHECKPOINT_KIND, FEATURES, Pupil, ValueNetwork, see
from protege.games.tempest.task.env import Frames
from protege.games.tempest.training.collect import Episode, TrainingGames, joint_actions, random_moves
from protege.games.tempest.training.config import TempestConfig, device_of
from protege.learn.pqn import PQN, Rollout
from protege.runs import checkpoints
from protege.train.controls import Scheduled, Switches


@dataclass
class Piece:
    """A piece of play and what goes with it."""

    content: Any  # what is learned from; goes back to the player to be filled again
    frames: int
    after: dict[str, Any]  # the games' state when it ended, for a checkpoint
    episodes: list[Episode]
    simulating_s: float  # CPU time
    acting_s: float


class Examinee(Protocol):
    """A pupil whose weights do not change any more."""

    @property
    def network(self) -> nn.Module:
        """Its weights."""
        ...

    def act(self, frames: Frames) -> npt.ArrayLike:
        """Its moves."""
        ...


class Practice(Protocol):
    """A learner at work. `play` may run in a thread of its own; everything else is called by one thread."""

    frames: int  # learned from so far
    switches: Switches  # what a person has changed
    device: torch.device  # where it learns
    learning_s: float  # processor time spent on learning

    @property
    def kind(self) -> str:
        """Of its checkpoints."""

    @property
    def updates(self) -> int:
        """Made so far."""

    @property
    def top_level(self) -> int:
        """Highest level at which games start."""

    def scheduled(self) -> Scheduled:
        """What settings and exams give now, before anybody's switches."""

    def start(self) -> None:
        """Get ready to play, unless restored."""

    def empty(self) -> Any:
        """Room for a piece of play."""

    def play(self, content: Any) -> Piece:
        """Play a piece into it."""

    def remaining(self, ahead: list[Piece]) -> list[Piece]:
        """Stop playing; what is still to be learned from of pieces played ahead and of what came since."""

    def learn(self, piece: Piece, done: float) -> dict[str, float]:
        """Learn from a piece when this share of the budget is used up; returns figures of the learning, if any."""

    def explain(self) -> str:
        """Why an update was skipped since this was last asked; empty if none was."""

    def figures(self) -> dict[str, float]:
        """What else there is to log now."""

    def examined(self, exam: Mapping[str, Any], teacher: float) -> None:
        """Draw conclusions from an exam."""

    def pupil(self) -> Examinee:
        """The player to be measured and kept."""

    def shape(self) -> dict[str, Any]:
        """What a checkpoint must say for its weights to be read."""

    def tensors(self) -> dict[str, Tensor]:
        """All weights of a checkpoint."""

    def state(self) -> dict[str, Any]:
        """All else of a checkpoint."""

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        """Go on from a checkpoint; returns what a person should know about it."""

    def save_memory(self, wait: bool) -> str:
        """Keep what is too large for every checkpoint, if it is wanted; in the background unless told to wait.

        Returns what has gone wrong since the last call, empty if nothing has.
        """

    def close(self) -> None:
        """The training is over."""

    def memory_bytes(self) -> int:
        """Of all arrays, when full."""

    def disk_bytes(self) -> int:
        """Beside the checkpoints, when full."""

    def describe(self) -> dict[str, str]:
        """What runs, in words."""


class FastPractice:
    """Parallel Q-learning without a memory."""

    kind: Final = CHECKPOINT_KIND

    def __init__(self, config: TempestConfig, threads: int):
        c = self.config = config
        self.threads, self.device = threads, device_of(config)
        self.switches = Switches(c.pqn.learning_rate)
        self.frames = 0
        self.learning_s = self.acting_s = self.rate = 0.0
        self.distillation = c.distillation  # as exams have it
        torch.manual_seed(c.seed)
        self.network = ValueNetwork(c.widths)
        self.learner = PQN(self.network, c.pqn, threads, c.seed)
        self.games = TrainingGames(c.pqn.games, c.starts, seed=c.seed, shaping=c.shaping)
        self.after: dict[str, Any] | None = None  # the games' state before the piece that is learned from next
        self.player = self.network if c.deterministic else copy.deepcopy(self.network)

    @property
    def updates(self) -> int:
        """Made so far."""
        return self.learner.updates

    @property
    def top_level(self) -> int:
        return self.games.top_level

    def start(self) -> None:
        self.games.warm_up()

    def empty(self) -> Rollout:
        return Rollout.empty(self.config.pqn, FEATURES)

    def scheduled(self) -> Scheduled:
        epsilon = max(self.config.epsilon, 1.0 - self.frames / max(1, self.config.epsilon_frames))
        return Scheduled(self.frames, epsilon, self.distillation)

    def play(self, content: Rollout) -> Piece:
        if self.player is not self.network:
            # What the learner is changing meanwhile is copied in between two of its updates or within one: the values
            # of a rollout need not come from one set of weights.
            self.player.load_state_dict(self.network.state_dict())
        c, games, epsilon = self.config.pqn, self.games, self.switches.epsilon(self.scheduled())
        games.remember()
        simulating, began = 0.0, time.thread_time()
        with torch.inference_mode():
            for t in range(c.horizon + 1):
                see(games.frames.observation, content.features[t], self.config.visible_only)
                best, actions = self.player(torch.from_numpy(content.features[t])).max(1)
                content.values[t] = best.numpy()
                if t == c.horizon:
                    break
                strays = np.flatnonzero(games.random.random(c.games) < epsilon)
                content.actions[t] = actions.numpy()
                content.actions[t, strays] = random_moves(games.random, len(strays))
                content.advice[t] = joint_actions(games.frames.advice)
                then = time.thread_time()
                frames = games.step(content.actions[t])
                simulating += time.thread_time() - then
                content.rewards[t] = games.rewards()
                content.terminated[t] = frames.terminated
                games.replace_lost()
        acting = time.thread_time() - began - simulating
        return Piece(content, c.games * c.horizon, games.state(), games.taken_episodes(), simulating, acting)

    def remaining(self, ahead: list[Piece]) -> list[Piece]:
        return []  # a resumed run plays them again

    def learn(self, piece: Piece, done: float) -> dict[str, float]:
        began = time.thread_time() + self.learner.others_cpu_s
        weight = self.switches.teacher(self.scheduled())
        self.rate = self.learner.set_progress(done, self.switches.rate_factor)
        figures: dict[str, float] = {}
        if self.switches.learning:
            figures = self.learner.update(piece.content, weight)
        self.frames += piece.frames
        self.after = piece.after
        self.learning_s += time.thread_time() + self.learner.others_cpu_s - began
        self.acting_s = piece.acting_s
        return figures

    def explain(self) -> str:
        return self.learner.explain()

    def figures(self) -> dict[str, float]:
        scheduled = self.scheduled()
        return {
            "epsilon": self.switches.epsilon(scheduled),
            "distillation": self.switches.teacher(scheduled),
            "top_level": self.top_level,
            "learning_rate": self.rate,
            "inference_ms": 1000 * self.acting_s / self.config.pqn.horizon,
        }

    def examined(self, exam: Mapping[str, Any], teacher: float) -> None:
        # Never upwards again: advice that comes back distorts values which have been learned without it.
        trailing = max(0.0, 1.0 - exam["score_mean"] / teacher)
        self.distillation = min(self.distillation, self.config.distillation * trailing)
        self.games.raise_top_level(exam["level_mean"])

    def pupil(self) -> Pupil:
        return Pupil(copy.deepcopy(self.learner.averaged), visible_only=self.config.visible_only)

    def shape(self) -> dict[str, Any]:
        return {"widths": list(self.config.widths), "visible_only": self.config.visible_only}

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.learner.state()["weights"]
        return found

    def state(self) -> dict[str, Any]:
        return {
            "frames": self.frames,
            "distillation": self.distillation,
            "top_level": self.games.top_level,
            "learner": {name: value for name, value in self.learner.state().items() if name != "weights"},
            "games": self.games.state() if self.after is None else self.after,
        }

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.learner.restore({"weights": saved.tensors, **state.get("learner", state)})  # runs of before have it flat
        self.games.restore(state["games"])
        self.games.top_level = state["top_level"]
        self.frames, self.distillation = state["frames"], state["distillation"]
        return []

    def save_memory(self, wait: bool) -> str:
        return ""

    def close(self) -> None:
        pass

    def memory_bytes(self) -> int:
        return 2 * sum(array.nbytes for array in vars(self.empty()).values())

    def disk_bytes(self) -> int:
        return 0

    def describe(self) -> dict[str, str]:
        c = self.config
        size = sum(parameter.numel() for parameter in self.network.parameters())
        sees = "179 values a person can see" if c.visible_only else "195 values"
        return {
            "network": f"{sees} -> {FEATURES} features -> {' -> '.join(map(str, c.widths))} -> 44 moves, "
            f"{size:,} parameters",
            "learner": f"PQN: {c.pqn.games} games, {c.pqn.horizon} frames a rollout, minibatch {c.pqn.minibatch}, "
            f"{c.pqn.epochs} epochs, gamma {c.pqn.gamma:g}, lambda {c.pqn.lambda_:g}",
        }
