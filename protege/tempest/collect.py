"""Plays the training games: where they start, how the pupil explores, what comes back as experience.

Games start at level 1, at higher levels, or shortly before a life was lost earlier, and go on under the pupil; the
teacher plays the first moves of the first games, so that they do not run in step. In goes a network, out comes a
`Rollout` with the state of the games after it, so that a training can be resumed from there exactly.
"""

import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from protege.checkpoints import restore_generator
from protege.learn.pqn import PQNConfig, Rollout
from protege.tempest import ram, sim
from protege.tempest.env import OBJECTIVE_SCALE, REWARD_LIMIT, Games, starts
from protege.tempest.network import FEATURES, ValueNetwork, see
from protege.tempest.ram import Row, Rows
from protege.tempest.teacher import ACTIONS, SPINNER_LEVELS

RECENT: Final = 4  # rollouts back that a saved situation may lie
WARM_UP_FRAMES: Final = 400  # at most so many frames of a first game are the teacher's


@dataclass(frozen=True)
class StartConfig:
    """Where training games start, and how often one is replaced by a new start."""

    top_level: int = 20  # starts are spread over levels 1 to this one; grows with the level the pupil reaches
    first_level_share: float = 0.33  # of new games start at level 1
    restart_share: float = 0.1  # of lost lives are followed by a new game, not by the next life
    situation_share: float = 0.25  # of lost lives are followed by a situation shortly before some life was lost
    situations: int = 512  # situations kept


@dataclass
class Episode:
    """A life of the pupil's, for the statistics."""

    frames: int
    reward: float  # in points, as the learner sees them
    level: int


@dataclass
class Experience:
    """A rollout and what goes with it."""

    rollout: Rollout
    after: dict[str, Any]  # the collector's state when it ended, for a checkpoint
    episodes: list[Episode]
    simulating_s: float  # CPU time
    acting_s: float


class Collector:
    """The training games of one run."""

    def __init__(self, pqn: PQNConfig, starting: StartConfig, *, seed: int, visible_only: bool, shaping: float):
        self.pqn, self.starting = pqn, starting
        self.seed, self.visible_only, self.shaping = seed, visible_only, shaping
        self.random = np.random.default_rng([seed, 1])
        self.started = 0  # games so far: each has a seed of its own
        self.top_level = starting.top_level
        self.pool: deque[Row] = deque(maxlen=starting.situations)
        self.recent: deque[Rows] = deque(maxlen=RECENT)
        self.life_frames = np.zeros(pqn.games, np.int64)
        self.life_reward = np.zeros(pqn.games)
        self.games = Games(self._new_games(pqn.games))
        self._features = np.zeros((pqn.games, FEATURES), np.float32)

    def warm_up(self) -> None:
        """Let the teacher play the start of every game, each a different number of frames."""
        until = self.random.integers(0, WARM_UP_FRAMES, len(self.games))
        for frame in range(WARM_UP_FRAMES):
            rows = self.games.rows.copy()
            frames = self.games.step(self.games.frames.advice)
            stays = (until <= frame) | frames.over
            self.games.put(np.flatnonzero(stays), rows[stays])

    def collect(self, network: ValueNetwork, epsilon: float, rollout: Rollout) -> Experience:
        """One horizon of all games into `rollout`."""
        self.recent.append(self.games.rows.copy())
        episodes: list[Episode] = []
        simulating, began = 0.0, time.thread_time()
        with torch.inference_mode():
            for t in range(self.pqn.horizon + 1):
                frames = self.games.frames
                see(frames.observation, rollout.features[t], self.visible_only)
                best, actions = network(torch.from_numpy(rollout.features[t])).max(1)
                rollout.values[t] = best.numpy()
                if t == self.pqn.horizon:
                    break
                rollout.actions[t] = self._explore(actions.numpy(), epsilon)
                rollout.advice[t] = joint_actions(frames.advice)
                then = time.thread_time()
                frames = self.games.step(rollout.actions[t])
                simulating += time.thread_time() - then
                rollout.rewards[t] = self._reward(frames.objective, frames.reward)
                rollout.terminated[t] = frames.terminated
                self.life_frames += 1
                self.life_reward += frames.objective
                if frames.terminated.any() or frames.over.any():
                    self._after_deaths(episodes)
        acting = time.thread_time() - began - simulating
        return Experience(rollout, self.state(), episodes, simulating, acting)

    def _reward(self, objective: npt.NDArray[np.float32], reward: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        points = np.clip(objective * np.float32(OBJECTIVE_SCALE), -REWARD_LIMIT, REWARD_LIMIT)
        return points + np.float32(self.shaping) * (reward - points) if self.shaping else points

    def _explore(self, actions: npt.NDArray[np.int64], epsilon: float) -> npt.NDArray[np.int64]:
        """Random moves for a share of the games. Few of them zap: there are two zaps in a level."""
        strays = np.flatnonzero(self.random.random(len(actions)) < epsilon)
        fire = self.random.random(len(strays)) < 0.5
        zap = self.random.random(len(strays)) < 0.05
        spinner = self.random.integers(0, len(SPINNER_LEVELS), len(strays))
        chosen = actions.copy()
        chosen[strays] = (2 * fire + zap) * len(SPINNER_LEVELS) + spinner
        return chosen

    def _after_deaths(self, episodes: list[Episode]) -> None:
        """Note finished lives, keep situations that led to a death, and replace some games."""
        frames = self.games.frames
        lost = np.flatnonzero(frames.terminated | frames.over)
        for g in lost:
            episodes.append(Episode(int(self.life_frames[g]), float(self.life_reward[g]), int(frames.level[g])))
            earlier = self.recent[self.random.integers(0, max(1, len(self.recent) - 1))][g]
            if ram.in_control(earlier):
                self.pool.append(earlier.copy())
        self.life_frames[lost] = 0
        self.life_reward[lost] = 0.0
        chance = self.random.random(len(lost))
        again = chance < self.starting.situation_share
        fresh = ~again & ((chance < self.starting.situation_share + self.starting.restart_share) | frames.over[lost])
        if fresh.any():
            self.games.put(lost[fresh], self._new_games(int(fresh.sum())))
        if again.any():
            self.games.put(lost[again], self._situations(int(again.sum())))

    def _new_games(self, count: int) -> Rows:
        spread = self.random.integers(1, self.top_level + 1, count)
        levels = np.where(self.random.random(count) < self.starting.first_level_share, 1, spread)
        rows = starts(count, seed=self.seed, level=levels.tolist(), first=self.started)
        self.started += count
        return rows

    def _situations(self, count: int) -> Rows:
        """Saved situations with another future: each gets new random numbers."""
        if not self.pool:
            return self._new_games(count)
        rows = np.stack([self.pool[i] for i in self.random.integers(0, len(self.pool), count)])
        for row in rows:
            sim.reseed(row, int(self.random.integers(2**62)))
        return rows

    def state(self) -> dict[str, Any]:
        """Everything needed to go on from here; rows of games are copies."""
        return {
            "rows": self.games.rows.copy(),
            "recent": list(self.recent),
            "pool": np.stack(self.pool) if self.pool else np.zeros((0, ram.ROW_BYTES), np.uint8),
            "random": self.random.bit_generator.state,
            "started": self.started,
            "top_level": self.top_level,
            "life_frames": self.life_frames.copy(),
            "life_reward": self.life_reward.copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; with another number of games those that fit go on and the others start anew."""
        rows: Rows = state["rows"]
        fit = min(len(rows), len(self.games))
        restore_generator(self.random, state["random"])
        self.started, self.top_level = state["started"], state["top_level"]
        self.pool.extend(np.array(row) for row in state["pool"])
        self.recent.extend(old for old in state["recent"] if len(old) == len(self.games))
        self.life_frames[:fit], self.life_reward[:fit] = state["life_frames"][:fit], state["life_reward"][:fit]
        self.games.put(np.arange(fit), rows[:fit])


_ACTION_OF = {tuple(command): index for index, command in enumerate(ACTIONS.tolist())}
_TABLE = np.zeros((2, 2, 256), np.int64)
for (_fire, _zap, _spinner), _index in _ACTION_OF.items():
    _TABLE[_fire, _zap, _spinner & 255] = _index


def joint_actions(commands: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Commands (games, 3) whose spinner is one of the 11 levels as joint actions (games,)."""
    return _TABLE[commands[:, 0], commands[:, 1], commands[:, 2].astype(np.int64) & 255]
