"""PQN on the simulator: rollouts of hundreds of games, each learned from while the next is played."""

import copy
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from protege.games.tempest.agents.lanes import FEATURES, see
from protege.games.tempest.agents.network import Pupil, ValueNetwork
from protege.games.tempest.task.actions import joint_actions, random_actions
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.session import Played, TempestSession
from protege.games.tempest.training.simulator import Simulator
from protege.learn.pqn import PQN, Rollout
from protege.runs import checkpoints
from protege.train.controls import Controls, Scheduled
from protege.train.session import Context, Experience, Figures


class PQNSession(TempestSession):
    """Parallel Q-learning without a memory."""

    learner: PQN[ValueNetwork]
    source: Simulator

    def __init__(self, config: TempestConfig, context: Context):
        super().__init__(config, context)
        c = self.own = config.pqn
        self.controls = Controls(c.learning_rate)
        self.network = ValueNetwork(c.widths)
        self.learner = PQN(self.network, c, self.threads, config.seed)
        self.source = Simulator(c.games, config.starts, seed=config.seed, shaping=config.shaping)
        self.after: dict[str, Any] | None = None  # the games' state before what is learned from next
        self.player = self.network if config.deterministic else copy.deepcopy(self.network)
        self.rate = 0.0

    def begin(self, resumed: bool) -> None:
        if not resumed:
            self.source.warm_up()
        super().begin(resumed)

    def room(self) -> Rollout:
        return Rollout.empty(self.own, FEATURES)

    def scheduled(self) -> Scheduled:
        c = self.own
        epsilon = max(c.epsilon, 1.0 - self.frames / max(1, c.epsilon_frames))
        return Scheduled(self.frames, epsilon, c.distillation * self.trailing)

    def collect(self, room: Rollout) -> Played:
        if self.player is not self.network:
            # What the learner is changing meanwhile is copied in between two of its updates or within one: the values
            # of a rollout need not come from one set of weights.
            self.player.load_state_dict(self.network.state_dict())
        c, source, epsilon = self.own, self.source, self.controls.epsilon(self.scheduled())
        source.remember()
        simulating, began = 0.0, time.thread_time()
        with torch.inference_mode():
            for t in range(c.horizon + 1):
                see(source.frames.observation, room.features[t], self.config.visible_only)
                best, actions = self.player(torch.from_numpy(room.features[t])).max(1)
                room.values[t] = best.numpy()
                if t == c.horizon:
                    break
                strays = np.flatnonzero(source.random.random(c.games) < epsilon)
                room.actions[t] = actions.numpy()
                room.actions[t, strays] = random_actions(source.random, len(strays))
                room.advice[t] = joint_actions(source.frames.advice)
                then = time.thread_time()
                frames = source.step(room.actions[t])
                simulating += time.thread_time() - then
                room.rewards[t] = source.rewards()
                room.terminated[t] = frames.terminated
                source.replace_lost()
        acting = time.thread_time() - began - simulating
        return Played(room, c.games * c.horizon, source.state(), source.taken_episodes(), simulating, acting, c.horizon)

    def update(self, experience: Experience) -> Figures:
        assert isinstance(experience, Played)
        began = time.thread_time() + self.learner.others_cpu_s
        weight = self.controls.teacher(self.scheduled())
        self.rate = self.learner.set_progress(self.context.progress(), self.controls.rate_factor)
        figures: Figures = {}
        if self.controls.learning:
            figures = self.learner.update(experience.content, weight)
        self.after = experience.after
        self.accounts.learning += time.thread_time() + self.learner.others_cpu_s - began
        self.note(experience)
        return figures

    def figures(self) -> Figures:
        scheduled = self.scheduled()
        return super().figures() | {
            "epsilon": self.controls.epsilon(scheduled),
            "distillation": self.controls.teacher(scheduled),
            "top_level": self.source.top_level,
            "learning_rate": self.rate,
        }

    def pupil(self) -> Pupil:
        return Pupil(copy.deepcopy(self.learner.averaged), visible_only=self.config.visible_only)

    def about(self) -> dict[str, Any]:
        return {"widths": list(self.own.widths), "visible_only": self.config.visible_only}

    def state(self) -> dict[str, Any]:
        return super().state() | {"games": self.source.state() if self.after is None else self.after}

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.source.restore(state["games"])
        self.source.top_level = state["top_level"]
        return super().restore(saved, state)

    def sizes(self) -> tuple[int, int]:
        return 2 * sum(array.nbytes for array in vars(self.room()).values()), 0

    def describe_learner(self) -> dict[str, str]:
        c, size = self.own, sum(parameter.numel() for parameter in self.network.parameters())
        sees = "179 values a person can see" if self.config.visible_only else "195 values"
        return {
            "network": f"{sees} -> {FEATURES} features -> {' -> '.join(map(str, c.widths))} -> 44 moves, "
            f"{size:,} parameters",
            "learner": f"PQN: {c.games} games, {c.horizon} frames a rollout, minibatch {c.minibatch}, "
            f"{c.epochs} epochs, gamma {c.gamma:g}, lambda {c.lambda_:g}",
        }
