"""PQN at work: each rollout of hundreds of games, or of arcade clients, is learned from while the next is played."""

import copy
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from protege.games.tempest.agents.lanes import FEATURES, see
from protege.games.tempest.agents.network import CHECKPOINT_KIND, Pupil, ValueNetwork
from protege.games.tempest.task.env import Floats
from protege.games.tempest.training.behaviour import Exploration
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.session import TempestSession
from protege.games.tempest.training.sources import Played, Source
from protege.games.tempest.training.starting import divergence
from protege.learn.pqn import PQN, Rollout
from protege.train.controls import Controls, Scheduled
from protege.train.session import Context, Experience, Figures


class PQNSession(TempestSession):
    """Parallel Q-learning without a memory."""

    learner: PQN[ValueNetwork]
    kind = CHECKPOINT_KIND

    def __init__(self, config: TempestConfig, context: Context, source: Source):
        super().__init__(config, context, source)
        c = self.own = config.pqn
        self.controls = Controls(c.learning_rate, source.reports)
        self.network = ValueNetwork(c.widths)
        self.learner = PQN(self.network, c, self.threads, config.seed)
        self.player = self.network if config.deterministic else copy.deepcopy(self.network)
        self.followed = -1  # updates that this player has seen
        self.rate = 0.0

    def scheduled(self) -> Scheduled:
        c = self.own
        epsilon = max(c.epsilon, 1.0 - self.frames / c.epsilon_frames) if c.epsilon_frames else c.epsilon
        return Scheduled(self.frames, epsilon, c.distillation * self.trailing)

    def collect(self, room: Any) -> Played:
        self.follow()
        return self.source.collect(room)

    def follow(self) -> None:
        if self.player is not self.network and self.learner.updates != self.followed:
            # What the learner is changing meanwhile is copied in between two of its updates or within one: the values
            # of a rollout need not come from one set of weights.
            self.player, self.followed = copy.deepcopy(self.network), self.learner.updates
        epsilon = self.controls.epsilon(self.scheduled())
        self.source.follow(Pupil(self.player, visible_only=self.config.visible_only), Exploration(epsilon))

    def update(self, experience: Experience) -> Figures:
        assert isinstance(experience, Played)
        began = time.thread_time() + self.learner.others_cpu_s
        weight = self.controls.teacher(self.scheduled())
        self.rate = self.learner.set_progress(self.context.progress(), self.care * self.controls.rate_factor)
        figures: Figures = {}
        rollout = self.source.rollout(experience)
        if self.controls.learning and rollout is not None:
            figures = self.learner.update(rollout, weight)
        self.source.learned(experience.steps)
        self.accounts.learning += time.thread_time() + self.learner.others_cpu_s - began
        self.note(experience)
        return figures

    def figures(self) -> Figures:
        scheduled = self.scheduled()
        return super().figures() | {
            "epsilon": self.controls.epsilon(scheduled),
            "distillation": self.controls.teacher(scheduled),
            "learning_rate": self.rate,
        }

    def pupil(self) -> Pupil:
        return Pupil(copy.deepcopy(self.learner.averaged), visible_only=self.config.visible_only)

    def distillation_loss(self, observation: Floats, wanted: Tensor) -> tuple[Tensor, Tensor]:
        seen = np.empty((len(observation), FEATURES), np.float32)
        see(observation, seen, self.config.visible_only)
        values = self.network(torch.from_numpy(seen))
        return functional.mse_loss(values, wanted) + divergence(values, wanted), values

    def about(self) -> dict[str, Any]:
        return {"widths": list(self.own.widths), "visible_only": self.config.visible_only}

    def sizes(self) -> tuple[int, int]:
        room = Rollout.empty(self.own.horizon, self.own.games, FEATURES)
        return 2 * sum(array.nbytes for array in vars(room).values()), 0

    def describe_learner(self) -> dict[str, str]:
        c, size = self.own, sum(parameter.numel() for parameter in self.network.parameters())
        sees = "179 values a person can see" if self.config.visible_only else "195 values"
        return {
            "network": f"{sees} -> {FEATURES} features -> {' -> '.join(map(str, c.widths))} -> 44 moves, "
            f"{size:,} parameters",
            "learner": f"PQN: {self.source.title}{c.horizon} frames a rollout, minibatch {c.minibatch}, "
            f"{c.epochs} epochs, gamma {c.gamma:g}, lambda {c.lambda_:g}",
        }
