"""The metrics of a training: what each is called and means, how it is shown, and the sums it comes from."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from protege.games.tempest.training.simulator import Episode
from protege.runs.metrics import Card, Column, Metric

_LIFE: Final = "reward of a life"  # whoever chose the moves: what the pupil itself is worth, evaluations say
_Q_COLUMN, _Q_CARD = Column("Q-Range", 17, 17, 13, "range"), Card("Q range", 11, "range")

_COMMON: Final = (
    Metric("eval_score", "points", "mean score on held-out games, without exploration or teacher", "score", "higher",
           label="pupil", interval=("eval_score_low", "eval_score_high"), baseline="teacher_score"),
    Metric("eval_score_low", "points", "lower end of the score's 95 % interval", "score"),
    Metric("eval_score_high", "points", "upper end of the score's 95 % interval", "score"),
    Metric("teacher_score", "points", "the stronger teacher on the same held-out games", "score", label="teacher"),
    Metric("eval_ratio", "times", "the score as a multiple of the stronger teacher's", "ratio to teacher", "higher",
           label="ratio"),
    Metric("eval_points_per_life", "points", "points for each life lost in the evaluation", "points per life", "higher",
           label="evaluation", interval=("eval_points_per_life_low", "eval_points_per_life_high"),
           card=Card("points/life", 9, "plain")),
    Metric("eval_points_per_life_low", "points", "lower end of its 95 % interval", "points per life"),
    Metric("eval_points_per_life_high", "points", "upper end of its 95 % interval", "points per life"),
    Metric("eval_level", "level", "mean level reached in the evaluation", "level reached", "higher",
           label="evaluation", card=Card("level", 8)),
    Metric("training_level", "level", "mean level at which training lives end", "level reached",
           label="training", column=Column("Levl", 12, 6, 4)),
    Metric("reward_100k", "points", "of a life, whoever chose its moves: last 100,000 frames", _LIFE, "higher",
           label="100k", column=Column("100K", 4, 4), card=Card("reward", 2, "gauge")),
    Metric("reward_1m", "points", "of a life, whoever chose its moves: last million frames", _LIFE, "higher",
           label="1M", column=Column("1M", 5, 7)),
    Metric("reward_5m", "points", "of a life, whoever chose its moves: last 5 million frames", _LIFE, "higher",
           label="5M", column=Column("5M", 6, 15)),
    Metric("episode_length", "frames", "frames of a life, over the last 100,000 frames", "episode length", "higher",
           column=Column("EpLen", 9, 10)),
    Metric("agreement", "fraction", "of the frames: pupil and teacher choose the same move", "agreement",
           column=Column("Agree%", 8, 14, format="percent", mean=True), card=Card("agreement", 10)),
    Metric("gradient_norm", "", "norm of the gradient before clipping", "gradient norm",
           column=Column("GrNorm", 16, 16, mean=True)),
    Metric("skipped", "updates", "not made, because a number in them was not finite", "skipped", "lower"),
    Metric("q_mean", "reward", "mean action value in the last batch", "value range", card=_Q_CARD),
    Metric("q_min", "reward", "lowest action value in the last batch", "value range",
           column=_Q_COLUMN, card=_Q_CARD),
    Metric("q_max", "reward", "highest action value in the last batch", "value range",
           column=_Q_COLUMN, card=_Q_CARD),
    Metric("return_mean", "reward", "mean of the targets of the action values", "value range"),
    Metric("epsilon", "fraction", "probability of a random move", "exploration", control="epsilon",
           column=Column("Epsi%", 2, 2, format="percent"), card=Card("exploration", 3, "gauge", 1.0)),
    Metric("top_level", "level", "highest level at which training games start", "exploration"),
    Metric("learning_rate", "", "step size of the optimiser", "learning rate", control="learning_rate",
           column=Column("LR", 21, 9, 8, "exponent"), card=Card("learning rate", 7)),
    Metric("progress", "fraction", "of the budget: used up", "progress", role="progress"),
    Metric("cpu_minutes", "min", "processor time so far, of all threads, helpers and earlier starts", "processor time"),
    Metric("frames_per_s", "1/s", "frames played in all training games together", "speed", "higher", role="rate",
           column=Column("FPS", 1, 1, mean=True), card=Card("frames/s", 1, "plain")),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher",
           column=Column("Upd/s", 14, 8, mean=True), card=Card("updates/s", 2, "plain")),
    Metric("inference_ms", "ms", "CPU time of one decision, on all games that wait for a move", "inference", "lower",
           label="ms", column=Column("Inf-ms", 13, 19, mean=True), card=Card("inference", 3)),
    Metric("time_acting", "fraction", "of the cores' time: choosing moves", "time", label="acting"),
    Metric("time_simulating", "fraction", "of the cores' time: playing the rules", "time", label="simulating"),
    Metric("time_learning", "fraction", "of the cores' time: learning", "time", label="learning"),
    Metric("time_evaluating", "fraction", "of the cores' time: evaluating the pupil", "time", label="evaluating"),
    Metric("time_waiting", "fraction", "of the cores' time: waiting", "time", label="waiting"),
)  # fmt: skip

_LOSS_COLUMN, _LOSS_CARD = Column("Loss", 7, 5, mean=True), Card("loss", 1, "gauge")
_BC_COLUMN: Final = Column("BCLoss", 10, 18, mean=True)
_TEACHER_COLUMN, _TEACHER_CARD = Column("Tchr%", 3, 3, format="percent"), Card("teacher", 4, "gauge", 1.0)
_MIX_COLUMN, _MIX_CARD = Column("T/P/R%", 19, 12, 9, "mix"), Card("replay holds", 12, "mix")

_PQN: Final = (
    Metric("loss", "", "squared error of the action values, halved", "loss", "lower",
           column=_LOSS_COLUMN, card=_LOSS_CARD),
    Metric("distillation_loss", "nats", "negative log-likelihood of the teacher's moves under the pupil", "loss",
           "lower", label="distillation", column=_BC_COLUMN),
    Metric("distillation", "weight", "weight of the teacher's advice in the loss", "exploration", control="teacher",
           column=_TEACHER_COLUMN, card=_TEACHER_CARD),
)  # fmt: skip

CLIENTS: Final = (
    Metric("clients", "", "emulators that play now", "clients",
           column=Column("Clnt", 11, 21, 4), card=Card("clients", 4)),
    Metric("latency_ms", "ms", "from the arrival of a client's frame to the reply, the slowest client", "inference",
           "lower", label="latency"),
    Metric("held_ms", "ms", "that a reply to a client waited for updates, on average", "inference", label="held back"),
    Metric("refused", "frames", "invalid ones from clients, which were not learned from", "dropped", "lower"),
)  # fmt: skip

_RAINBOW: Final = (
    Metric("loss", "nats", "cross-entropy of the predicted return distributions, weighted", "loss", "lower",
           column=_LOSS_COLUMN, card=_LOSS_CARD),
    Metric("bc_loss", "reward", "margin by which other moves' values exceed the teacher's", "loss", "lower",
           label="cloning", column=_BC_COLUMN),
    Metric("divergence", "nats", "KL divergence of the distributions from their targets", "divergence", "lower"),
    Metric("agreement_buttons", "fraction", "of the frames: they press the same buttons", "agreement", label="buttons"),
    Metric("agreement_direction", "fraction", "of the frames: they turn the same way", "agreement", label="direction"),
    Metric("advised", "fraction", "of the samples: the teacher's advice is known", "agreement"),
    Metric("teacher_fraction", "fraction", "of the moves: chosen by the teacher", "exploration", control="teacher",
           column=_TEACHER_COLUMN, card=_TEACHER_CARD),
    Metric("bc_weight", "weight", "weight of behaviour cloning in the loss", "exploration"),
    Metric("replay_ratio", "1/frame", "how often each frame was learned from, on average", "speed",
           column=Column("Smp/F", 15, 22, 5, mean=True)),
    Metric("replay_size", "steps", "in the replay, ready to be sampled", "replay size",
           column=Column("Mem-k", 18, 11, 7, "thousands"), card=Card("replay", 5)),
    Metric("replay_filled", "fraction", "of the replay's capacity: filled", "replay filled"),
    Metric("replay_teacher", "fraction", "of the replay: chosen by the teacher", "composition",
           label="teacher", column=_MIX_COLUMN, card=_MIX_CARD),
    Metric("replay_pupil", "fraction", "of the replay: chosen by the pupil", "composition",
           label="pupil", column=_MIX_COLUMN, card=_MIX_CARD),
    Metric("replay_random", "fraction", "of the replay: chosen at random", "composition",
           label="random", column=_MIX_COLUMN, card=_MIX_CARD),
    Metric("replay_age_p10", "steps", "10th percentile of the age of samples", "sample age", label="p10"),
    Metric("replay_age_p50", "steps", "median age of samples", "sample age", label="p50"),
    Metric("replay_age_p90", "steps", "90th percentile of the age of samples", "sample age", label="p90"),
    Metric("replay_priority_p10", "", "10th percentile of the priorities", "priorities", label="p10"),
    Metric("replay_priority_p50", "", "median priority", "priorities", label="p50"),
    Metric("replay_priority_p90", "", "90th percentile of the priorities", "priorities", label="p90"),
    Metric("replay_stale", "steps", "whose new priority came after they were overwritten", "dropped", "lower"),
    Metric("dropped", "steps", "overwritten before they could be sampled", "dropped", "lower",
           column=Column("Drop", 20, 13, 5), card=Card("dropped", 6)),
)  # fmt: skip

# Whom else a pupil is compared with, where there is such a one.
COMPARED: Final = {
    role: (
        Metric(f"{role}_score", "points", f"{who} in the same kind of games", "score", label=label),
        Metric(f"{role}_points_per_life", "points", f"{who}: points for each life lost", "points per life",
               label=label),
    )
    for role, who, label in (
        ("own_teacher", "the teacher of --teacher", "own teacher"),
        ("start", "the pupil as it was at its start, with --start-from", "start"),
        ("client_teacher", "the teacher, on arcade clients", "teacher on clients"),
    )
}  # fmt: skip

METRICS: Final = {"pqn": _COMMON + _PQN, "rainbow": _COMMON + _RAINBOW + CLIENTS}  # by learner


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
            f"time_{what}": getattr(self, what) / available
            for what in ("acting", "simulating", "learning", "evaluating")
        }
        return found | {"time_waiting": max(0.0, 1.0 - sum(found.values()))}

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
