"""The metrics of a training: what each is called and means, how it is shown, and the sums it comes from."""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.agents.contest import STYLE
from protege.games.echelon.agents.match import SIMPLE
from protege.games.echelon.task.rewards import PARTS
from protege.games.echelon.task.teacher import LEVELS
from protege.games.echelon.training.collect import Episode
from protege.games.echelon.world.mechs import CLASS_NAMES
from protege.runs.metrics import Card, Column, Metric

WINDOW: Final = 200  # battles
SATURATED: Final = 1.8318  # tanh of this is 0.95

_STYLE_CHART: Final = {"fraction": "fractions", "voxels": "distances"}  # by unit

METRICS: Final = (
    Metric("eval_success", "fraction", "of held-out battles: won (draws: half), or the goal reached", "evaluation",
           "higher", label="success", interval=("eval_success_low", "eval_success_high"),
           column=Column("Eval%", 3, 3, format="percent")),
    Metric("eval_success_low", "fraction", "lower end of its 95 % interval", "evaluation"),
    Metric("eval_success_high", "fraction", "upper end of its 95 % interval", "evaluation"),
    *(Metric(f"eval_{name}", "fraction", f"of evaluation battles against {name}: success", "evaluation by opponent",
             "higher", label=name) for name in ("idle", *LEVELS)),
    Metric("eval_margin", "fraction", "mechs alive after an evaluation battle, minus the opponent's", "survivors",
           "higher", label="margin"),
    Metric("eval_length", "s", "mean length of an evaluation battle", "battle length", label="evaluation"),
    *(replace(figure, name=f"style_{figure.name}", meaning=f"{figure.meaning}, in one evaluation battle",
              family=f"style: {_STYLE_CHART.get(figure.unit, 'pace and fire')}") for figure in STYLE),
    Metric("win_rate", "fraction", "of the last 200 training battles (draws: half)", "training battles", "higher",
           label="all", column=Column("Win%", 2, 2, format="percent"), card=Card("training battles won", 4)),
    *(Metric(f"win_{name}", "fraction", f"the same against {name}", "training battles", "higher", label=name)
      for name in LEVELS),
    Metric("win_learned", "fraction", "the same against learned players", "training battles", "higher",
           label="learned"),
    Metric("league_rating", "", "in the league, by Glicko-2", "league rating", "higher", label="rating"),
    Metric("league_deviation", "", "its uncertainty: half the width of a 95 % interval is twice this", "league rating",
           label="deviation"),
    Metric("league_games", "", "battles reported to the league", "league games"),
    Metric("league_opponents", "", "players of the league that may be met", "league opponents"),
    Metric("battle_reward", "reward", "of a mech in a whole training battle", "reward", "higher", label="battle",
           column=Column("Earned", 4, 4), card=Card("reward", 2, "gauge")),
    *(Metric(f"reward_{name}", "reward", f"of a {name} in a whole training battle", "reward by class", "higher",
             label=name) for name in CLASS_NAMES),
    Metric("battle_length", "s", "mean length of a training battle", "battle length", label="training",
           column=Column("Sec", 5, 9, 4)),
    *(Metric(f"reward_fraction_{part}", "fraction", f"of all absolute rewards: {part}", "rewards by part", label=part)
      for part in PARTS),
    Metric("own_fraction", "fraction", "of what a mech earns by itself: the part it keeps", "schedules"),
    Metric("outcome_weight", "reward", "for a victory", "schedules"),
    Metric("policy_loss", "", "clipped surrogate objective, negated", "loss", label="policy",
           column=Column("PLoss", 6, 11, 7, mean=True)),
    Metric("value_loss", "", "error of the critic on its scale", "loss", "lower", label="value",
           column=Column("VLoss", 7, 6, mean=True), card=Card("loss", 1, "gauge")),
    Metric("imitation_loss", "nats", "negative log-likelihood of the scripted advisor's actions under the pupil",
           "loss", "lower", label="imitation", column=Column("Imit", 8, 10, mean=True)),
    Metric("prediction_loss", "", "squared error of the predicted next observation", "loss", "lower",
           label="prediction"),
    Metric("entropy", "nats", "of the policy, mean over the legal choices of an action", "entropy",
           column=Column("Entr", 9, 5, mean=True)),
    Metric("entropy_weight", "", "in the loss", "schedules"),
    Metric("imitation", "", "weight of the advisor in the loss", "schedules"),
    Metric("kl", "nats", "KL divergence of the policy from the one that played", "policy change",
           column=Column("KL", 10, 7, 7, mean=True)),
    Metric("clip_fraction", "fraction", "of the steps: probability ratio beyond the clip range", "policy change",
           column=Column("Clip%", 11, 12, format="percent", mean=True)),
    Metric("rounds", "fraction", "of the planned updates: made before the KL divergence was too high", "policy change"),
    Metric("gradient_norm", "", "norm of the gradient before clipping", "gradient norm",
           column=Column("GrNorm", 15, 16, mean=True)),
    Metric("gradient_clipped", "fraction", "of the updates: gradient clipped", "gradient norm", label="clipped"),
    Metric("skipped", "updates", "not made, because a number in them was not finite", "skipped", "lower"),
    Metric("explained_variance", "fraction", "of the returns' variance: predicted by the critic", "critic", "higher",
           column=Column("ExVar", 12, 8, mean=True)),
    Metric("return_mean", "reward", "mean of the critic's targets", "returns"),
    Metric("return_std", "reward", "their standard deviation", "returns"),
    Metric("return_p999", "reward", "99.9th percentile of their absolute values", "returns"),
    Metric("return_max", "reward", "largest absolute value among them", "returns"),
    Metric("value_mean", "reward", "mean of the critic's predictions", "returns"),
    Metric("value_std", "reward", "their standard deviation", "returns"),
    Metric("advantage_std", "reward", "standard deviation of the advantages before they are normalised", "returns"),
    Metric("saturation", "fraction", "of movement controls: beyond 95 % of their range", "saturation", "lower"),
    Metric("living", "fraction", "of the pupil's mechs: alive", "living"),
    Metric("learning_rate", "", "step size of the policy's optimiser", "learning rate", control="learning_rate",
           column=Column("LR", 16, 15, 8, "exponent"), card=Card("learning rate", 3)),
    Metric("stage", "", "number of the stage that is practised, from 0", "stage", column=Column("Stg", 13, 13, 3)),
    Metric("progress", "fraction", "of the budget: used up", "progress", role="progress"),
    Metric("cpu_minutes", "min", "processor time so far, of all threads and earlier starts", "processor time"),
    Metric("agent_steps_per_s", "1/s", "decisions of living, learning mechs", "speed", "higher", role="rate",
           column=Column("Steps/s", 1, 1, 7, mean=True), card=Card("agent-steps/s", 1, "plain")),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher",
           column=Column("Upd/s", 14, 14, mean=True), card=Card("updates/s", 2, "plain")),
    *(Metric(f"time_{what}", "fraction", f"of the wall clock: {meaning}", "time", label=what) for what, meaning in (
        ("playing", "battles and choosing actions"), ("learning", "updates"),
        ("else", "saving, logging, waiting for evaluations"))),
    *(Metric(f"cpu_{what}", "fraction", f"of the processor time: {meaning}", "processor", label=what)
      for what, meaning in (("simulating", "rules, observations, scripted players"), ("acting", "choosing actions"),
                            ("learning", "updates"))),
)  # fmt: skip


class Windows:
    """Means over the last battles that ended, in all and by opponent."""

    def __init__(self) -> None:
        self.all: deque[tuple[float, int, float]] = deque(maxlen=WINDOW)  # result, decisions, reward
        self.by_opponent: dict[str, deque[float]] = {}
        self.by_class: dict[str, deque[float]] = {}  # rewards

    def add(self, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            self.all.append((episode.result, episode.decisions, episode.earned))
            kind = episode.opponent if episode.opponent in (*LEVELS, *SIMPLE) else "learned"
            self.by_opponent.setdefault(kind, deque(maxlen=WINDOW)).append(episode.result)
            for name, earned in episode.by_class.items():
                self.by_class.setdefault(name, deque(maxlen=WINDOW)).append(earned)

    def figures(self) -> dict[str, float]:
        """The means, as far as there are battles."""
        if not self.all:
            return {}
        result, decisions, earned = np.mean(self.all, 0)
        found = {"win_rate": result, "battle_length": decisions / 4, "battle_reward": earned}
        found |= {f"win_{name}": float(np.mean(w)) for name, w in self.by_opponent.items() if name not in SIMPLE}
        found |= {f"reward_{name}": float(np.mean(earned)) for name, earned in self.by_class.items()}
        return {name: float(value) for name, value in found.items()}

    def state(self) -> dict[str, Any]:
        return {
            "all": [list(row) for row in self.all],
            "by_opponent": {name: list(results) for name, results in self.by_opponent.items()},
            "by_class": {name: list(earned) for name, earned in self.by_class.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.all.extend((row[0], int(row[1]), row[2]) for row in state["all"])
        for name, results in state["by_opponent"].items():
            self.by_opponent[name] = deque(results, maxlen=WINDOW)
        for name, earned in state.get("by_class", {}).items():  # runs of before do not know it
            self.by_class[name] = deque(earned, maxlen=WINDOW)


class Clock:
    """Where the wall clock of a training goes; fractions add up to 1."""

    def __init__(self) -> None:
        self.playing = self.learning = 0.0
        self.cpu = {"simulating": 0.0, "acting": 0.0, "learning": 0.0}
        self.start(0, 0)

    def start(self, steps: int, updates: int) -> None:
        self.began = self.last = time.perf_counter()
        self.steps, self.updates = steps, updates

    def figures(self, steps: int, updates: int) -> dict[str, float]:
        """Rates since the last call, and fractions since the start."""
        now = time.perf_counter()
        passed, self.last = max(1e-9, now - self.last), now
        found = {"agent_steps_per_s": (steps - self.steps) / passed, "updates_per_s": (updates - self.updates) / passed}
        self.steps, self.updates = steps, updates
        whole = max(1e-9, now - self.began)
        found |= {"time_playing": self.playing / whole, "time_learning": self.learning / whole}
        found["time_else"] = 1.0 - found["time_playing"] - found["time_learning"]
        used = max(1e-9, sum(self.cpu.values()))
        return found | {f"cpu_{what}": spent / used for what, spent in self.cpu.items()}


def fractions_of(parts: npt.NDArray[np.float64]) -> dict[str, float]:
    """Absolute rewards by part as fractions."""
    return {f"reward_fraction_{name}": float(value) for name, value in zip(PARTS, parts / max(1e-9, parts.sum()))}
