"""The figures of a training: what each is called and means, and the sums they come from."""

import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.agents.contest import STYLE
from protege.games.echelon.agents.match import SIMPLE
from protege.games.echelon.task.rewards import PARTS
from protege.games.echelon.task.teacher import LEVELS
from protege.games.echelon.training.collect import Episode
from protege.games.echelon.training.config import EchelonConfig
from protege.games.echelon.world.mechs import CLASS_NAMES
from protege.runs.metrics import Metric

WINDOW: Final = 200  # battles
SATURATED: Final = 1.8318  # tanh of this is 0.95

METRICS: Final = (
    Metric("exam_success", "share", "of held-out battles: won (draws: half), or the goal reached", "exams", "higher"),
    Metric("exam_success_low", "share", "lower end of its 95 % interval", "exams"),
    Metric("exam_success_high", "share", "upper end of its 95 % interval", "exams"),
    *(Metric(f"exam_{name}", "share", f"of exam battles against {name}: success", "exams by opponent", "higher")
      for name in ("idle", *LEVELS)),
    Metric("exam_margin", "share", "mechs alive after an exam battle, less the opponent's", "exam margin", "higher"),
    Metric("exam_length", "s", "mean length of an exam battle", "battle length"),
    *(Metric(f"style_{name}", unit, f"{what}, in one exam battle", f"style: {chart}")
      for name, (unit, what, chart) in STYLE.items()),
    Metric("win_rate", "share", "of the last 200 training battles (draws: half)", "training battles", "higher"),
    *(Metric(f"win_{name}", "share", f"the same against {name}", "training battles", "higher") for name in LEVELS),
    Metric("win_learned", "share", "the same against learned players", "training battles", "higher"),
    Metric("league_rating", "", "in the league, after Glicko-2", "league rating", "higher"),
    Metric("league_deviation", "", "its uncertainty: half the width of a 95 % interval is twice this", "league rating"),
    Metric("league_games", "", "battles reported to the league", "league games"),
    Metric("league_opponents", "", "players of the league that may be met", "league opponents"),
    Metric("battle_reward", "reward", "of a mech in a whole training battle", "reward", "higher"),
    *(Metric(f"reward_{name}", "reward", f"of a {name} in a whole training battle", "reward by class", "higher")
      for name in CLASS_NAMES),
    Metric("battle_length", "s", "mean length of a training battle", "battle length"),
    *(Metric(f"share_{part}", "share", f"of all absolute rewards: {part}", "rewards by part") for part in PARTS),
    Metric("own_share", "share", "of what a mech earns by itself, the part it keeps", "schedules"),
    Metric("outcome_weight", "reward", "for a victory", "schedules"),
    Metric("policy_loss", "", "what clipped updates minimise", "loss"),
    Metric("value_loss", "", "error of the critic on its scale", "loss", "lower"),
    Metric("imitation_loss", "nats", "how surprising the scripted advisor's actions are to the pupil", "loss", "lower"),
    Metric("prediction_loss", "", "squared error of the predicted next observation", "loss", "lower"),
    Metric("entropy", "nats", "mean over the legal choices of an action", "entropy"),
    Metric("entropy_weight", "", "in the loss", "schedules"),
    Metric("imitation", "", "weight of the advisor in the loss", "schedules"),
    Metric("kl", "nats", "how far a minibatch finds the policy from the one that played", "policy change"),
    Metric("clip_fraction", "share", "steps whose probability changed more than is paid for", "policy change"),
    Metric("rounds", "share", "of the planned updates made before the policy had moved too far", "policy change"),
    Metric("gradient_norm", "", "length of the gradient before it is limited", "gradient norm"),
    Metric("gradient_clipped", "share", "updates whose gradient was limited", "gradient norm"),
    Metric("skipped", "updates", "not made, because a number in them was not finite", "skipped", "lower"),
    Metric("explained_variance", "share", "of the returns' variance that the critic foresaw", "critic", "higher"),
    Metric("return_mean", "reward", "mean of what the critic is trained towards", "returns"),
    Metric("return_spread", "reward", "their spread", "returns"),
    Metric("return_p999", "reward", "of a thousand returns all but one are below this, without their signs", "returns"),
    Metric("return_most", "reward", "the largest of them, without its sign", "returns"),
    Metric("value_mean", "reward", "mean of what the critic expects", "returns"),
    Metric("value_spread", "reward", "its spread", "returns"),
    Metric("advantage_spread", "reward", "spread of the advantages before they are scaled", "returns"),
    Metric("saturation", "share", "of movement controls beyond 95 % of their range", "saturation", "lower"),
    Metric("living", "share", "of the pupil's mechs that were alive", "living"),
    Metric("learning_rate", "", "step size of the policy's optimiser", "learning rate"),
    Metric("stage", "", "number of the stage that is practised, from 0", "stage"),
    Metric("progress", "share", "of the budget that is used up", "progress"),
    Metric("cpu_minutes", "min", "processor time so far, of all threads and earlier starts", "processor time"),
    Metric("agent_steps_per_s", "1/s", "decisions of living, learning mechs", "speed", "higher"),
    Metric("updates_per_s", "1/s", "optimiser steps", "speed", "higher"),
    Metric("time_playing", "share", "of the wall clock: battles and choosing actions", "time"),
    Metric("time_learning", "share", "of the wall clock: updates", "time"),
    Metric("time_else", "share", "of the wall clock: saving, logging, waiting for exams", "time"),
    Metric("cpu_simulating", "share", "of the processor time: rules, observations, scripted players", "processor"),
    Metric("cpu_acting", "share", "of the processor time: choosing actions", "processor"),
    Metric("cpu_learning", "share", "of the processor time: updates", "processor"),
)  # fmt: skip


def metrics_of(config: EchelonConfig) -> list[Metric]:
    """What a training logs: those of a league only in a league."""
    return [metric for metric in METRICS if config.league or not metric.name.startswith("league_")]


class Windows:
    """Means over the last battles that ended, in all and by opponent."""

    def __init__(self) -> None:
        self.all: deque[tuple[float, int, float]] = deque(maxlen=WINDOW)  # result, decisions, reward
        self.by_opponent: dict[str, deque[float]] = {}
        self.by_class: dict[str, deque[float]] = {}  # rewards

    def add(self, episodes: Iterable[Episode]) -> None:
        """Note battles that ended."""
        for episode in episodes:
            self.all.append((episode.result, episode.decisions, episode.earned))
            kind = episode.opponent if episode.opponent in (*LEVELS, *SIMPLE) else "learned"
            self.by_opponent.setdefault(kind, deque(maxlen=WINDOW)).append(episode.result)
            for name, earned in episode.by_class.items():
                self.by_class.setdefault(name, deque(maxlen=WINDOW)).append(earned)

    def clear(self) -> None:
        """Another stage begins."""
        self.all.clear()
        self.by_opponent.clear()
        self.by_class.clear()

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
        """For a checkpoint."""
        return {
            "all": [list(row) for row in self.all],
            "by_opponent": {name: list(results) for name, results in self.by_opponent.items()},
            "by_class": {name: list(earned) for name, earned in self.by_class.items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""
        self.clear()
        self.all.extend((row[0], int(row[1]), row[2]) for row in state["all"])
        for name, results in state["by_opponent"].items():
            self.by_opponent[name] = deque(results, maxlen=WINDOW)
        for name, earned in state.get("by_class", {}).items():  # runs of before do not know it
            self.by_class[name] = deque(earned, maxlen=WINDOW)


class Clock:
    """Where the wall clock of a training goes; shares add up to 1."""

    def __init__(self) -> None:
        self.playing = self.learning = 0.0
        self.cpu = {"simulating": 0.0, "acting": 0.0, "learning": 0.0}
        self.began = self.last = time.perf_counter()
        self.steps = self.updates = 0

    def start(self, steps: int, updates: int) -> None:
        """Count from here."""
        self.began = self.last = time.perf_counter()
        self.steps, self.updates = steps, updates

    def figures(self, steps: int, updates: int) -> dict[str, float]:
        """Rates since the last call, and shares since the start."""
        now = time.perf_counter()
        passed, self.last = max(1e-9, now - self.last), now
        found = {
            "agent_steps_per_s": (steps - self.steps) / passed,
            "updates_per_s": (updates - self.updates) / passed,
        }
        self.steps, self.updates = steps, updates
        whole = max(1e-9, now - self.began)
        found |= {"time_playing": self.playing / whole, "time_learning": self.learning / whole}
        found["time_else"] = 1.0 - found["time_playing"] - found["time_learning"]
        used = max(1e-9, sum(self.cpu.values()))
        return found | {f"cpu_{what}": spent / used for what, spent in self.cpu.items()}


def shares_of(parts: npt.NDArray[np.float64]) -> dict[str, float]:
    """Absolute rewards by part as shares."""
    return {f"share_{name}": float(value) for name, value in zip(PARTS, parts / max(1e-9, parts.sum()))}
