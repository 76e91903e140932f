"""The simulator as a source of experience: where games start, and which lives were lost.

Games start at level 1, at higher levels, or shortly before a life was lost earlier, and go on under the pupil; the
teacher plays the first moves of the first games, so that they do not run in step.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Row, Rows
from protege.games.tempest.task.env import Frames, Games, starts
from protege.games.tempest.task.rewards import learned_reward
from protege.seeds import Purpose, random_stream

Floats = npt.NDArray[np.float32]

RECENT: Final = 4  # snapshots back that a saved situation may lie
WARM_UP_FRAMES: Final = 400  # at most so many frames of a first game are the teacher's


@dataclass(frozen=True)
class StartConfig:
    """Where training games start, and how often one is replaced by a new start."""

    top_level: int = 20  # starts are spread over levels 1 to this one; grows with the level the pupil reaches
    first_level_fraction: float = 0.33  # of new games start at level 1
    restart_fraction: float = 0.1  # of lost lives are followed by a new game, not by the next life
    situation_fraction: float = 0.25  # of lost lives are followed by a situation shortly before some life was lost
    situations: int = 512  # situations kept


@dataclass
class Episode:
    """A life of the pupil's, for the statistics."""

    frames: int
    reward: float  # in points
    level: int


class Simulator:
    """The training games of one run."""

    def __init__(self, count: int, starting: StartConfig, *, seed: int, shaping: float):
        self.starting, self.seed, self.shaping = starting, seed, shaping
        self.random = random_stream(seed, Purpose.PRACTICE)
        self.started = 0  # games so far: each has a seed of its own
        self.top_level = starting.top_level
        self.pool: deque[Row] = deque(maxlen=starting.situations)
        self.recent: deque[Rows] = deque(maxlen=RECENT)
        self.life_frames = np.zeros(count, np.int64)
        self.life_reward = np.zeros(count)
        self.episodes: list[Episode] = []  # lives that ended since somebody last took them
        self.games = Games(self._new_games(count))

    def __len__(self) -> int:
        return len(self.games)

    @property
    def frames(self) -> Frames:
        """What there is to see now."""
        return self.games.frames

    def warm_up(self) -> None:
        """Let the teacher play the start of every game, each a different number of frames."""
        until = self.random.integers(0, WARM_UP_FRAMES, len(self.games))
        for frame in range(WARM_UP_FRAMES):
            rows = self.games.rows.copy()
            frames = self.games.step(self.games.frames.advice)
            stays = (until <= frame) | frames.over
            self.games.put(np.flatnonzero(stays), rows[stays])

    def remember(self) -> None:
        """Keep a snapshot, from which a situation may be taken if a life is lost soon."""
        self.recent.append(self.games.rows.copy())

    def step(self, actions: npt.NDArray[np.int64]) -> Frames:
        """Play one frame of every game; `replace_lost` must follow once its results are noted."""
        frames = self.games.step(actions)
        self.life_frames += 1
        self.life_reward += frames.objective
        return frames

    def rewards(self) -> Floats:
        """What the last frame was worth to a learner."""
        return learned_reward(self.games.frames.objective, self.games.frames.reward, self.shaping)

    def replace_lost(self) -> None:
        """Note finished lives, keep situations that led to a death, and replace some games."""
        frames = self.games.frames
        lost = np.flatnonzero(frames.terminated | frames.over)
        if not len(lost):
            return
        for g in lost:
            self.episodes.append(Episode(int(self.life_frames[g]), float(self.life_reward[g]), int(frames.level[g])))
            earlier = self.recent[self.random.integers(0, max(1, len(self.recent) - 1))][g]
            if ram.in_control(earlier):
                self.pool.append(earlier.copy())
        self.life_frames[lost] = 0
        self.life_reward[lost] = 0.0
        chance = self.random.random(len(lost))
        again = chance < self.starting.situation_fraction
        fresh = ~again & (
            (chance < self.starting.situation_fraction + self.starting.restart_fraction) | frames.over[lost]
        )
        if fresh.any():
            self.games.put(lost[fresh], self._new_games(int(fresh.sum())))
        if again.any():
            self.games.put(lost[again], self._situations(int(again.sum())))

    def raise_top_level(self, reached: float) -> None:
        """Let games start half as high again as the level that a pupil reaches."""
        self.top_level = min(99, max(self.top_level, math.ceil(1.5 * reached)))

    def taken_episodes(self) -> list[Episode]:
        """Lives that ended since the last call."""
        taken, self.episodes = self.episodes, []
        return taken

    def _new_games(self, count: int) -> Rows:
        spread = self.random.integers(1, self.top_level + 1, count)
        levels = np.where(self.random.random(count) < self.starting.first_level_fraction, 1, spread)
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
        from protege.learn.state import restore_generator  # needs torch, which the bridge's process does without

        restore_generator(self.random, state["random"])
        self.started, self.top_level = state["started"], state["top_level"]
        self.pool.extend(np.array(row) for row in state["pool"])
        self.recent.extend(old for old in state["recent"] if len(old) == len(self.games))
        self.life_frames[:fit], self.life_reward[:fit] = state["life_frames"][:fit], state["life_reward"][:fit]
        self.games.put(np.arange(fit), rows[:fit])
