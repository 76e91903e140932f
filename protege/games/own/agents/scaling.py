"""Observations and rewards on a common scale, whatever a game's own is: running statistics, saved with the weights."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.own.world.spaces import Array, Floats, Sight

LIMIT: Final = 10.0  # standard deviations; beyond, an observation is cut
LEAST: Final = 1e-6  # standard deviation: what never changes is not blown up
MOST_REWARDS: Final = 1e6  # frames: older ones fade, since rewards grow as a pupil learns


class Scaling:
    """What a network sees of observations: numbers with mean 0 and standard deviation 1, pixels from 0 to 1."""

    def __init__(self, sight: Sight):
        self.sight, self.count = sight, 0.0
        self.mean, self.variance = np.zeros(sight.features), np.ones(sight.features)

    def note(self, observations: Array) -> None:
        """Count in more of them; a picture's pixels have a known scale."""
        if self.sight.is_picture:
            return
        mean, variance = observations.mean(0, np.float64), observations.var(0, np.float64)
        fraction = len(observations) / (self.count + len(observations))
        shift = mean - self.mean
        merged = self.variance + fraction * (variance - self.variance + (1.0 - fraction) * shift * shift)
        self.variance = merged if self.count else variance
        self.mean = self.mean + fraction * shift
        self.count += len(observations)

    def see(self, observations: Array) -> Floats:
        """Observations (games, ...) as features (games, features)."""
        if self.sight.is_picture:
            return self.sight.pixels(observations)
        factor = 1.0 / np.sqrt(self.variance + LEAST**2)
        found = (observations - self.mean.astype(np.float32)) * factor.astype(np.float32)
        return np.clip(found, -LIMIT, LIMIT, out=found)

    def state(self) -> dict[str, Any]:
        return {"mean": self.mean, "variance": self.variance, "count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.mean, self.variance, self.count = state["mean"], state["variance"], state["count"]


class RewardScale:
    """Rewards divided by the root mean square of discounted returns, so that values are about 1 in any game."""

    def __init__(self, games: int, gamma: float):
        self.gamma, self.square, self.count = gamma, 0.0, 0.0
        self.returns = np.zeros(games)  # discounted, of each episode so far

    @property
    def factor(self) -> float:
        return 1.0 / max(1e-8, self.square) ** 0.5 if self.count else 1.0

    def note(self, rewards: Floats, ended: npt.NDArray[Any]) -> None:
        """Count in one frame of all games; `ended` are those whose episode is over."""
        self.returns = self.gamma * self.returns + rewards
        self.count = min(self.count + len(rewards), MOST_REWARDS)
        self.square += (float(np.square(self.returns).mean()) - self.square) * len(rewards) / self.count
        self.returns[ended] = 0.0

    def state(self) -> dict[str, Any]:
        return {"square": self.square, "count": self.count}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.square, self.count = state["square"], state["count"]
