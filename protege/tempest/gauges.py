"""The figures of a training: what each is called and means, and the sums they come from."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from protege.metrics import Metric
from protege.tempest.collect import Episode

METRICS: Final = (
    Metric("exam_score", "points", "mean score on held-out games, without exploration or teacher", "score", "higher"),
    Metric("exam_score_low", "points", "lower end of the score's 95 % interval", "score"),
    Metric("exam_score_high", "points", "upper end of the score's 95 % interval", "score"),
    Metric("teacher_score", "points", "the stronger teacher on the same held-out games", "score"),
    Metric("exam_points_per_life", "points", "points for each life lost in the exam", "points per life", "higher"),
    Metric("exam_level", "level", "mean level reached in the exam", "level reached", "higher"),
    Metric("training_level", "level", "mean level at which training lives end", "level reached"),
    Metric("reward_100k", "points", "reward of a life, over the last 100,000 frames", "pupil reward", "higher"),
    Metric("reward_1m", "points", "reward of a life, over the last million frames", "pupil reward", "higher"),
    Metric("reward_5m", "points", "reward of a life, over the last 5 million frames", "pupil reward", "higher"),
    Metric("episode_length", "frames", "frames of a life, over the last 100,000 frames", "episode length", "higher"),
    Metric("loss", "", "squared error of the action values, halved", "loss", "lower"),
    Metric("distillation_loss", "nats", "how surprising the teacher's moves are to the pupil", "loss", "lower"),
    Metric("agreement", "share", "frames in which pupil and teacher choose the same move", "agreement"),
    Metric("gradient_norm", "", "length of the gradient before it is limited", "gradient norm"),
    Metric("q_min", "reward", "lowest value of a state in the rollout", "value range"),
    Metric("q_mean", "reward", "mean value of the moves that were made", "value range"),
    Metric("q_max", "reward", "highest value of a state in the rollout", "value range"),
    Metric("return_mean", "reward", "mean of what the values are trained towards", "value range"),
    Metric("epsilon", "share", "share of random moves", "exploration"),
    Metric("distillation", "weight", "weight of the teacher's advice in the loss", "exploration"),
    Metric("top_level", "level", "highest level at which training games start", "exploration"),
    Metric("learning_rate", "", "step size of the optimiser", "learning rate"),
    Metric("frames_per_s", "1/s", "frames played in all training games together", "speed", "higher"),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher"),
    Metric("inference_ms", "ms", "CPU time to choose one move for all games", "inference", "lower"),
    Metric("share_acting", "share", "of the cores' time: choosing moves", "time"),
    Metric("share_simulating", "share", "of the cores' time: playing the rules", "time"),
    Metric("share_learning", "share", "of the cores' time: learning", "time"),
    Metric("share_evaluating", "share", "of the cores' time: measuring the pupil", "time"),
    Metric("share_waiting", "share", "of the cores' time: nothing of ours", "time"),
)


class Windows:
    """Means over the lives that ended within the last 100,000, 1 million and 5 million frames."""

    SPANS: Final = {"reward_100k": 100_000, "reward_1m": 1_000_000, "reward_5m": 5_000_000}

    def __init__(self) -> None:
        self.lives: deque[tuple[int, float, int, int]] = deque()  # frame it ended at, reward, frames, level

    def add(self, episodes: Iterable[Episode], frames: int) -> None:
        """Note lives that ended at this frame."""
        self.lives.extend((frames, life.reward, life.frames, life.level) for life in episodes)
        while self.lives and self.lives[0][0] <= frames - max(self.SPANS.values()):
            self.lives.popleft()

    def figures(self) -> dict[str, float]:
        """The means, as far as there are lives."""
        found: dict[str, float] = {}
        if not self.lives:
            return found
        newest = self.lives[-1][0]
        for name, span in self.SPANS.items():
            rewards = [reward for frame, reward, _, _ in self.lives if frame > newest - span]
            found[name] = sum(rewards) / len(rewards)
        recent = [life for life in self.lives if life[0] > newest - self.SPANS["reward_100k"]]
        found["episode_length"] = sum(life[2] for life in recent) / len(recent)
        found["training_level"] = sum(life[3] for life in recent) / len(recent)
        return found

    def state(self) -> list[list[float]]:
        """For a checkpoint."""
        return [list(life) for life in self.lives]

    def restore(self, state: list[list[float]]) -> None:
        """From a checkpoint."""
        self.lives = deque((int(frame), reward, int(frames), int(level)) for frame, reward, frames, level in state)


class Accounts:
    """Where the cores' time goes, in CPU seconds."""

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.acting = self.simulating = self.learning = self.evaluating = 0.0
        self.began = self.last = time.perf_counter()
        self.first_frame = self.frames = self.updates = 0

    def start(self, frames: int, updates: int) -> None:
        """Count from here."""
        self.began = self.last = time.perf_counter()
        self.first_frame = self.frames = frames
        self.updates = updates

    def shares(self) -> dict[str, float]:
        """Of the time of all lanes since the start; they add up to 1."""
        available = self.lanes * max(1e-9, time.perf_counter() - self.began)
        found = {
            f"share_{what}": getattr(self, what) / available
            for what in ("acting", "simulating", "learning", "evaluating")
        }
        return found | {"share_waiting": max(0.0, 1.0 - sum(found.values()))}

    def figures(self, frames: int, updates: int) -> dict[str, float]:
        """Rates since the last call, and the shares."""
        now = time.perf_counter()
        passed, self.last = max(1e-9, now - self.last), now
        rates = {
            "frames_per_s": (frames - self.frames) / passed,
            "updates_per_s": (updates - self.updates) / passed,
        }
        self.frames, self.updates = frames, updates
        return rates | self.shares()
