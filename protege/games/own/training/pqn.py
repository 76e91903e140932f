"""PQN on somebody's own game: rollouts of many games, each learned from while the next is played."""

import copy
import time

import numpy as np
import torch

from protege.games.own.training.config import OwnConfig
from protege.games.own.training.session import OwnSession, Played
from protege.games.own.world.arena import World
from protege.learn.pqn import PQN, Rollout
from protege.train.session import Context, Experience, Figures


class PQNSession(OwnSession):
    """Parallel Q-learning without a memory."""

    def __init__(self, config: OwnConfig, context: Context, world: World):
        super().__init__(config, context, world)
        self.ahead = not config.deterministic
        self.trained = self.network()
        self.learner = PQN(self.trained, self.own, self.threads, config.seed)
        self.player = self.trained if config.deterministic else copy.deepcopy(self.trained)

    def room(self) -> Rollout:
        return Rollout.empty(self.own.horizon, self.own.games, self.world.sight.features)

    def collect(self, room: Rollout) -> Played:
        if self.player is not self.trained:
            self.player.load_state_dict(self.trained.state_dict())
        c, arena, began = self.own, self.arena, time.thread_time()
        epsilon, factor = self.controls.epsilon(self.scheduled()), self.rewards.factor
        seen = []
        with torch.inference_mode():
            for t in range(c.horizon + 1):
                room.features[t] = self.scaling.see(arena.observation)
                values = self.player(torch.from_numpy(room.features[t])).numpy()
                room.values[t] = values.max(1)
                if t == c.horizon:
                    break
                seen.append(arena.observation)
                moves = room.actions[t]
                moves[:] = values.argmax(1)
                strays = np.flatnonzero(self.random.random(c.games) < epsilon)
                moves[strays] = arena.moves.random(self.random.random((len(strays), 1)))
                if self.advised:
                    room.advice[t] = arena.advice()
                step = arena.step(moves)
                room.rewards[t] = step.reward * np.float32(factor)
                room.terminated[t] = step.terminated | step.truncated
                cut = step.truncated[step.ended]
                if cut.any():
                    # What would have come after a cut is part of the reward, since nothing follows in the row.
                    left = self.player(torch.from_numpy(self.scaling.see(step.last[cut]))).max(1).values.numpy()
                    room.rewards[t, step.ended[cut]] += np.float32(c.gamma) * left
                self.rewards.note(step.reward, step.ended)
        self.scaling.note(np.concatenate(seen))
        return Played(
            room, c.games * c.horizon, None, arena.taken_episodes(), playing_s=time.thread_time() - began
        )  # fmt: skip

    def update(self, experience: Experience) -> Figures:
        began = time.thread_time() + self.learner.others_cpu_s
        self.rate = self.learner.set_progress(self.context.progress(), self.controls.rate_factor)
        figures: Figures = {}
        if self.controls.learning:
            figures = self.learner.update(experience.content, self.advice_weight(self.own.distillation))
        self.note(experience)
        return self.learned(began, figures)

    def sizes(self) -> tuple[int, int]:
        return 2 * sum(array.nbytes for array in vars(self.room()).values()), 0

    def describe_learner(self) -> str:
        c = self.own
        return (
            f"PQN: {c.games} games, {c.horizon} frames a rollout, minibatch {c.minibatch}, {c.epochs} epochs, "
            f"gamma {c.gamma:g}, lambda {c.lambda_:g}"
        )
