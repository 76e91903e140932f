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
        self.members = world.members
        self.shape |= {"recurrent": c.recurrent, "seen_by": world.members if c.central else 1}
        policy = self.network()
        assert isinstance(policy, ActorCritic)
        self.policy = policy
        self.learner = PPO(policy, c, self.threads, config.seed)
        seen, shared = ({"seen": Field((many * world.sight.features,))} for many in (1, self.members))
        shape = Shape(c.games, self.members, c.horizon, c.chunk)
        self.rollout = Rollout(shape, seen, shared, policy.actions(), policy.state_size, self.advised)
        self.rollout.acted.fill_(True)
        self.rollout.remains.fill_(True)
        self.memory = torch.zeros(self.arena.count, policy.state_size)
        self.fresh = torch.ones(self.arena.count, dtype=torch.bool)
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
                rollout.states[chunk] = self._by_game(self.memory)
            seen = self._seen(arena.observation)
            observed.append(arena.observation)
            rollout.observations["seen"][chunk, :, :, at] = self._by_game(seen)
            rollout.shared["seen"][chunk, :, at] = self._by_game(seen).flatten(1)
            rollout.starts[chunk, :, at] = self.fresh[:: self.members]
            chosen, log_prob, self.memory = self.policy.act(seen, self.memory, self.fresh, self.noise)
            rollout.actions["move"][chunk, :, :, at] = self._by_game(chosen)
            rollout.numbers["log_prob"][chunk, :, :, at] = self._by_game(log_prob)
            if self.advised:
                rollout.advice["move"][chunk, :, :, at] = self._by_game(self.policy.from_moves(arena.advice()))
            step = arena.step(self.policy.to_moves(chosen))
            rewards = torch.from_numpy(step.reward * np.float32(factor))
            rollout.numbers["reward"][chunk, :, :, at] = self._by_game(rewards)
            rollout.terminated[chunk, :, at] = torch.from_numpy(step.terminated[:: self.members])
            rollout.truncated[chunk, :, at] = torch.from_numpy(step.truncated[:: self.members])
            cut = step.truncated[step.ended]
            if cut.any():
                last = self._by_game(self._seen(step.last[cut])).flatten(1)
                left = self.policy.scale.denormalise(self.policy.value({"seen": last}, self.members))
                rollout.numbers["cut_values"][chunk, step.ended[cut][:: self.members] // self.members, :, at] = left
            self.fresh = torch.from_numpy(arena.frame == 0)
            self.rewards.note(step.reward, step.ended)
        rollout.after["seen"][:] = self._by_game(self._seen(arena.observation)).flatten(1)
        self.scaling.note(np.concatenate(observed))
        return Played(None, c.games * c.horizon, None, arena.taken_episodes(), playing_s=time.thread_time() - began)

    def _by_game(self, rows: Tensor) -> Tensor:
        """(games x members, ...) as (games, members, ...)."""
        return rows.reshape(len(rows) // self.members, self.members, *rows.shape[1:])

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
