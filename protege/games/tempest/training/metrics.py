"""The figures of a training: what each is called and means, and the sums they come from."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from protege.games.tempest.training.simulator import Episode
from protege.runs.metrics import Metric

_REWARD: Final = "reward of a life"  # the teacher's and random moves included: what the pupil is worth, exams say
_COMMON: Final = (
    Metric("exam_score", "points", "mean score on held-out games, without exploration or teacher", "score", "higher"),
    Metric("exam_score_low", "points", "lower end of the score's 95 % interval", "score"),
    Metric("exam_score_high", "points", "upper end of the score's 95 % interval", "score"),
    Metric("teacher_score", "points", "the stronger teacher on the same held-out games", "score"),
    Metric(
        "exam_ratio",
        "times",
        "the exam's score as a multiple of the stronger teacher's",
        "beside the teacher",
        "higher",
    ),
    Metric("exam_points_per_life", "points", "points for each life lost in the exam", "points per life", "higher"),
    Metric("exam_level", "level", "mean level reached in the exam", "level reached", "higher"),
    Metric("training_level", "level", "mean level at which training lives end", "level reached"),
    Metric("reward_100k", "points", "of a life, whoever chose its moves: last 100,000 frames", _REWARD, "higher"),
    Metric("reward_1m", "points", "of a life, whoever chose its moves: last million frames", _REWARD, "higher"),
    Metric("reward_5m", "points", "of a life, whoever chose its moves: last 5 million frames", _REWARD, "higher"),
    Metric("episode_length", "frames", "frames of a life, over the last 100,000 frames", "episode length", "higher"),
    Metric("agreement", "share", "frames in which pupil and teacher choose the same move", "agreement"),
    Metric("gradient_norm", "", "length of the gradient before it is limited", "gradient norm"),
    Metric("q_min", "reward", "lowest value in what was learned from last", "value range"),
    Metric("q_mean", "reward", "mean value of the moves in it", "value range"),
    Metric("q_max", "reward", "highest value in what was learned from last", "value range"),
    Metric("return_mean", "reward", "mean of what the values are trained towards", "value range"),
    Metric("epsilon", "share", "share of random moves", "exploration"),
    Metric("top_level", "level", "highest level at which training games start", "exploration"),
    Metric("learning_rate", "", "step size of the optimiser", "learning rate"),
    Metric("progress", "share", "of the budget that is used up", "progress"),
    Metric("cpu_minutes", "min", "processor time so far, of all threads and earlier starts", "processor time"),
    Metric("frames_per_s", "1/s", "frames played in all training games together", "speed", "higher"),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher"),
    Metric("inference_ms", "ms", "CPU time to choose one move for all games", "inference", "lower"),
    Metric("share_acting", "share", "of the cores' time: choosing moves", "time"),
    Metric("share_simulating", "share", "of the cores' time: playing the rules", "time"),
    Metric("share_learning", "share", "of the cores' time: learning", "time"),
    Metric("share_evaluating", "share", "of the cores' time: measuring the pupil", "time"),
    Metric("share_waiting", "share", "of the cores' time: nothing of ours", "time"),
)

_PQN: Final = (
    Metric("loss", "", "squared error of the action values, halved", "loss", "lower"),
    Metric("distillation_loss", "nats", "how surprising the teacher's moves are to the pupil", "loss", "lower"),
    Metric("distillation", "weight", "weight of the teacher's advice in the loss", "exploration"),
)

_RAINBOW: Final = (
    Metric("loss", "nats", "how surprising the returns are to the distributions, weighted", "loss", "lower"),
    Metric("cloning_loss", "reward", "what the teacher's move lacks of leading all others", "loss", "lower"),
    Metric("divergence", "nats", "distance of the distributions from their targets", "divergence", "lower"),
    Metric("agreement_buttons", "share", "frames in which they press the same buttons", "agreement"),
    Metric("agreement_direction", "share", "frames in which they turn the same way", "agreement"),
    Metric("advised", "share", "samples for which the teacher's advice is known", "agreement"),
    Metric("skipped", "updates", "not made, because a number in them was not finite", "skipped", "lower"),
    Metric("teacher_share", "share", "share of the teacher's moves", "exploration"),
    Metric("cloning", "weight", "weight of the teacher's moves in the loss", "exploration"),
    Metric("samples_per_frame", "1/frame", "how often each frame was learned from, on average", "speed"),
    Metric("clients", "", "emulators that play now", "clients"),
    Metric("latency_ms", "ms", "from a client's frame to the reply, the slowest client", "inference", "lower"),
    Metric("refused", "frames", "from clients that made no sense, and were not learned from", "dropped", "lower"),
    Metric("replay_size", "steps", "in the memory, ready to be drawn", "memory"),
    Metric("replay_filled", "share", "of the memory's room that is taken", "memory filled"),
    Metric("replay_pupil", "share", "of the memory: chosen by the pupil", "composition"),
    Metric("replay_teacher", "share", "of the memory: chosen by the teacher", "composition"),
    Metric("replay_random", "share", "of the memory: chosen at random", "composition"),
    Metric("replay_age_p10", "steps", "a tenth of what is drawn is newer than this", "age of samples"),
    Metric("replay_age_p50", "steps", "half of what is drawn is newer than this", "age of samples"),
    Metric("replay_age_p90", "steps", "nine tenths of what is drawn are newer than this", "age of samples"),
    Metric("replay_priority_p10", "", "a tenth of the priorities are below this", "priorities"),
    Metric("replay_priority_p50", "", "half of the priorities are below this", "priorities"),
    Metric("replay_priority_p90", "", "nine tenths of the priorities are below this", "priorities"),
    Metric("replay_stale", "steps", "whose priority came after they were overwritten", "dropped", "lower"),
    Metric("dropped", "steps", "that were overwritten before they could be drawn", "dropped", "lower"),
)

METRICS: Final = {"pqn": _COMMON + _PQN, "rainbow": _COMMON + _RAINBOW}  # by learner


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
