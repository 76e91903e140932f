"""PPO on somebody's own game: a rollout of many games, then updates from it; any kind of action, with or without a
memory.
"""

import time

import numpy as np
import torch
from torch import Tensor, nn

from protege.games.own.agents.networks import ActorCritic
from protege.games.own.training.config import OwnConfig
from protege.games.own.training.session import OF_EPSILON, OwnSession, Played
from protege.games.own.world.arena import World
from protege.games.own.world.spaces import Array
from protege.learn.ppo import PPO
from protege.learn.rollout import Field, Rollout, Shape
from protege.train.session import Context, Experience, Figures


class PPOSession(OwnSession):
    """Clipped policy updates."""

    lacks = OF_EPSILON

    def __init__(self, config: OwnConfig, context: Context, world: World):
        super().__init__(config, context, world)
        c = self.own
        self.shape |= {"recurrent": c.recurrent}
        policy = self.network()
        assert isinstance(policy, ActorCritic)
        self.policy = policy
        self.learner = PPO(policy, c, self.threads, config.seed)
        seen = {"seen": Field((world.sight.features,))}
        shape = Shape(c.games, 1, c.horizon, c.chunk)
        self.rollout = Rollout(shape, seen, seen, policy.actions(), policy.state_size, self.advised)
        self.rollout.acted.fill_(True)
        self.rollout.remains.fill_(True)
        self.memory = torch.zeros(c.games, policy.state_size)
        self.fresh = torch.ones(c.games, dtype=torch.bool)
        self.noise = torch.Generator().manual_seed(config.seed)

    def measured(self) -> nn.Module:
        return self.policy

    @torch.no_grad()
    def collect(self, room: None) -> Played:
        c, arena, rollout, began = self.own, self.arena, self.rollout, time.thread_time()
        factor, observed = self.rewards.factor, []
        for t in range(c.horizon):
            chunk, at = divmod(t, c.chunk)
            if at == 0:
                rollout.states[chunk, :, 0] = self.memory
            seen = self._seen(arena.observation)
            observed.append(arena.observation)
            rollout.observations["seen"][chunk, :, 0, at] = seen
            rollout.shared["seen"][chunk, :, at] = seen
            rollout.starts[chunk, :, at] = self.fresh
            chosen, log_prob, self.memory = self.policy.act(seen, self.memory, self.fresh, self.noise)
            rollout.actions["move"][chunk, :, 0, at] = chosen
            rollout.numbers["log_prob"][chunk, :, 0, at] = log_prob
            if self.advised:
                rollout.advice["move"][chunk, :, 0, at] = self.policy.from_moves(arena.advice())
            step = arena.step(self.policy.to_moves(chosen))
            rollout.numbers["reward"][chunk, :, 0, at] = torch.from_numpy(step.reward * np.float32(factor))
            rollout.terminated[chunk, :, at] = torch.from_numpy(step.terminated)
            rollout.truncated[chunk, :, at] = torch.from_numpy(step.truncated)
            cut = step.truncated[step.ended]
            if cut.any():
                left = self.policy.value({"seen": self._seen(step.last[cut])}, 1)
                rollout.numbers["cut_values"][chunk, step.ended[cut], :, at] = self.policy.scale.denormalise(left)
            self.fresh = torch.from_numpy(arena.frame == 0)
            self.rewards.note(step.reward, step.ended)
        rollout.after["seen"][:] = self._seen(arena.observation)
        self.scaling.note(np.concatenate(observed))
        return Played(None, c.games * c.horizon, None, arena.taken_episodes(), playing_s=time.thread_time() - began)

    def _seen(self, observations: Array) -> Tensor:
        return torch.from_numpy(self.scaling.see(observations))

    def update(self, experience: Experience) -> Figures:
        began = time.thread_time() + self.learner.others_cpu_s
        self.rate = self.learner.set_progress(self.context.progress(), self.controls.rate_factor)
        figures: Figures = {}
        if self.controls.learning:
            figures = self.learner.update(self.rollout, self.advice_weight(self.own.imitation))
        self.note(experience)
        return self.learned(began, figures)

    def sizes(self) -> tuple[int, int]:
        return self.rollout.nbytes(), 0

    def describe_learner(self) -> str:
        c = self.own
        return (
            f"{'recurrent ' if c.recurrent else ''}PPO: {c.games} games, {c.horizon} frames a rollout, {c.epochs} "
            f"epochs of {c.minibatches} updates, gamma {c.gamma:g}"
        )
