"""The metrics of a training on somebody's own game, and the sums behind them."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from protege.games.own.world.arena import Episode
from protege.runs.metrics import Card, Column, Metric

_LOSS, _LOSS_CARD = Column("Loss", 7, 5, mean=True), Card("loss", 1, "gauge")
_Q_COLUMN, _Q_CARD = Column("Q-Range", 17, 17, 13, "range"), Card("value range", 11, "range")
_IMITATION: Final = Column("BCLoss", 10, 18, mean=True)

_COMMON: Final = (
    Metric("eval_return", "reward", "mean return of held-out episodes, without exploration or teacher", "return",
           "higher", label="pupil", interval=("eval_return_low", "eval_return_high"), baseline="teacher_return"),
    Metric("eval_return_low", "reward", "lower end of the return's 95 % interval", "return"),
    Metric("eval_return_high", "reward", "upper end of the return's 95 % interval", "return"),
    Metric("teacher_return", "reward", "the teacher's on the same held-out episodes", "return", label="teacher"),
    Metric("random_return", "reward", "random play's on the same held-out episodes", "return", label="random"),
    Metric("eval_frames", "frames", "of a held-out episode", "episode length", label="evaluation"),
    Metric("training_return", "reward", "of the last 100 training episodes, exploration included", "training return",
           "higher", column=Column("Return", 4, 4), card=Card("return", 2, "gauge")),
    Metric("episode_length", "frames", "of the last 100 training episodes", "episode length", label="training",
           column=Column("EpLen", 9, 10)),
    Metric("reward_scale", "", "what rewards are multiplied by, so that returns are about 1", "reward scale"),
    Metric("gradient_norm", "", "norm of the gradient before clipping", "gradient norm",
           column=Column("GrNorm", 16, 16, mean=True)),
    Metric("skipped", "updates", "not made, because a number in them was not finite", "skipped", "lower"),
    Metric("advice", "weight", "weight of the teacher's advice in the loss", "exploration", control="teacher",
           column=Column("Tchr%", 3, 3, format="percent"), card=Card("teacher", 4, "gauge", 1.0)),
    Metric("learning_rate", "", "step size of the optimiser", "learning rate", control="learning_rate",
           column=Column("LR", 21, 9, 8, "exponent"), card=Card("learning rate", 7)),
    Metric("progress", "fraction", "of the budget: used up", "progress", role="progress"),
    Metric("cpu_minutes", "min", "processor time so far, of all threads and earlier starts", "processor time"),
    Metric("frames_per_s", "1/s", "frames played in all training games together", "speed", "higher", role="rate",
           column=Column("FPS", 1, 1, mean=True), card=Card("frames/s", 1, "plain")),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher",
           column=Column("Upd/s", 14, 8, mean=True), card=Card("updates/s", 2, "plain")),
    Metric("time_playing", "fraction", "of the time: a thread plays the game", "time", label="playing"),
    Metric("time_learning", "fraction", "of the time: a thread learns", "time", label="learning"),
)  # fmt: skip

_VALUES: Final = (
    Metric("agreement", "fraction", "of the samples: pupil and teacher choose the same action", "agreement",
           column=Column("Agree%", 8, 14, format="percent", mean=True), card=Card("agreement", 10)),
    Metric("epsilon", "fraction", "probability of a random move", "exploration", control="epsilon",
           column=Column("Epsi%", 2, 2, format="percent"), card=Card("exploration", 3, "gauge", 1.0)),
    Metric("q_mean", "", "mean action value in the last batch", "value range", card=_Q_CARD),
    Metric("q_min", "", "lowest action value in the last batch", "value range", column=_Q_COLUMN, card=_Q_CARD),
    Metric("q_max", "", "highest action value in the last batch", "value range", column=_Q_COLUMN, card=_Q_CARD),
    Metric("return_mean", "", "mean of the targets of the action values", "value range"),
)  # fmt: skip

_PQN: Final = (
    Metric("loss", "", "squared error of the action values, halved", "loss", "lower", column=_LOSS, card=_LOSS_CARD),
    Metric("distillation_loss", "nats", "negative log-likelihood of the teacher's moves under the pupil", "loss",
           "lower", label="distillation", column=_IMITATION),
)  # fmt: skip

_RAINBOW: Final = (
    Metric("loss", "nats", "cross-entropy of the predicted return distributions, weighted", "loss", "lower",
           column=_LOSS, card=_LOSS_CARD),
    Metric("bc_loss", "", "margin by which other moves' values exceed the teacher's", "loss", "lower", label="cloning",
           column=_IMITATION),
    Metric("divergence", "nats", "KL divergence of the distributions from their targets", "divergence", "lower"),
    Metric("advised", "fraction", "of the samples: the teacher's advice is known", "agreement"),
    Metric("replay_size", "steps", "in the replay, ready to be sampled", "replay size",
           column=Column("Mem-k", 18, 11, 7, "thousands"), card=Card("replay", 5)),
)  # fmt: skip

_PPO: Final = (
    Metric("policy_loss", "", "clipped surrogate loss of the policy", "loss", "lower", label="policy", column=_LOSS,
           card=_LOSS_CARD),
    Metric("value_loss", "", "error of the critic, on its scale", "loss", "lower", label="value"),
    Metric("imitation_loss", "nats", "negative log-likelihood of the teacher's choices", "loss", "lower",
           label="imitation", column=_IMITATION),
    Metric("entropy", "nats", "mean entropy of a choice", "entropy", column=Column("Entr", 8, 14)),
    Metric("kl", "nats", "KL divergence of the policy from the one that acted", "divergence"),
    Metric("clip_fraction", "fraction", "of the samples: probability ratio clipped", "clipping", label="ratio"),
    Metric("gradient_clipped", "fraction", "of the gradients: clipped", "clipping", label="gradient"),
    Metric("rounds", "fraction", "of the updates of a rollout: made before the policy had moved too far", "clipping",
           label="rounds"),
    Metric("explained_variance", "fraction", "of the variance of returns: explained by the critic", "critic", "higher",
           card=Card("explained", 10)),
    Metric("return_mean", "", "mean return of the rollout's steps", "value range", label="return"),
    Metric("return_std", "", "standard deviation of these returns", "value range", label="return std"),
    Metric("return_p999", "", "99.9th percentile of their sizes", "value range", label="return p99.9"),
    Metric("return_max", "", "largest of their sizes", "value range", label="return max"),
    Metric("value_mean", "", "mean of the critic's values", "value range", label="value"),
    Metric("value_std", "", "standard deviation of the critic's values", "value range", label="value std"),
    Metric("advantage_std", "", "standard deviation of the advantages", "value range", label="advantage std"),
)  # fmt: skip

METRICS: Final = {"pqn": _COMMON + _VALUES + _PQN, "rainbow": _COMMON + _VALUES + _RAINBOW, "ppo": _COMMON + _PPO}
EPISODES: Final = 100  # that a mean is taken over


class Tally:
    """Means of the last training episodes, and rates since they were last asked for."""

    def __init__(self) -> None:
        self.last: deque[tuple[float, int]] = deque(maxlen=EPISODES)
        self.playing = self.learning = 0.0  # CPU seconds since the start
        self.began = self.asked = time.perf_counter()
        self.frames = self.updates = 0

    def start(self, frames: int, updates: int) -> None:
        """Count from here."""
        self.began = self.asked = time.perf_counter()
        self.frames, self.updates = frames, updates

    def add(self, episodes: Iterable[Episode]) -> None:
        self.last.extend((episode.reward, episode.frames) for episode in episodes)

    def figures(self, frames: int, updates: int) -> dict[str, float]:
        now = time.perf_counter()
        passed, whole = max(1e-9, now - self.asked), max(1e-9, now - self.began)
        found = {
            "frames_per_s": (frames - self.frames) / passed, "updates_per_s": (updates - self.updates) / passed,
            "time_playing": self.playing / whole, "time_learning": self.learning / whole,
        }  # fmt: skip
        self.asked, self.frames, self.updates = now, frames, updates
        if self.last:
            returns, lengths = zip(*self.last)
            found |= {"training_return": sum(returns) / len(returns), "episode_length": sum(lengths) / len(lengths)}
        return found

    def state(self) -> list[list[float]]:
        return [list(episode) for episode in self.last]

    def restore(self, state: Iterable[Any]) -> None:
        self.last.extend((float(reward), int(frames)) for reward, frames in state)
