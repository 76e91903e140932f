"""A game of a user's own: ten levers that pay differently often, and a table of values that learns which pays most.

Nothing in Protege names it. The rules, the players and the learner come first; GAME at the end is all that is told.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from protege.games import Contests, Game
from protege.games.players import Players
from protege.league.ledger import Result as Match
from protege.learn.state import restore_generator
from protege.runs import checkpoints
from protege.runs.metrics import Column, Metric
from protege.seeds import EVALUATION, seed_of
from protege.statistics import wilson
from protege.train.controls import Controls
from protege.train.session import Experience, Result, Session, Trainer

PAYS = np.linspace(0.05, 0.95, 10)  # how often each lever does
PULLS = 20  # in a game


def points(player, seed: int) -> int:
    """Play one game."""
    chance = np.random.default_rng(seed)
    return sum(int(chance.random() < PAYS[player.act(chance)]) for _ in range(PULLS))


class Random:
    """Pulls any lever."""

    def act(self, chance) -> int:
        return int(chance.integers(len(PAYS)))


class Greedy:
    """Pulls the lever that a table of values prefers."""

    def __init__(self, values):
        self.values = values.clone()

    def act(self, chance) -> int:
        return int(self.values.argmax())

    def tensors(self):
        return {"values": self.values}

    def evaluate(self, cancelled):
        found = measure("pupil", games=20, seed=2_000_000, player=self)
        figures = {f"eval_{name}": found[name] for name in ("rate", "rate_low", "rate_high")}
        return Result(figures, (found["rate"],), f"{found['rate']:.0%} of all pulls pay")


def load(path) -> Greedy:
    return Greedy(checkpoints.load(path, kind="levers-table", task_version=1).tensors["values"])


def measure(name, *, games, seed=1, threads=1, runs=None, player=None):
    player = player or PLAYERS.find(name, runs)
    paid = sum(points(player, seed_of(EVALUATION, seed, index)) for index in range(games))
    low, high = wilson(paid, games * PULLS)
    return {
        "player": name,
        "games": games,
        "seed": seed,
        "rate": paid / (games * PULLS),
        "rate_low": low,
        "rate_high": high,
    }


class TableSession(Session):
    """Pulls levers at random and averages what they pay."""

    def __init__(self, config, context):
        self.controls = Controls(peak_rate=config.learning_rate)
        self.config, self.pulls = config, 0
        self.values, self.chance = torch.zeros(len(PAYS)), np.random.default_rng(config.seed)

    @property
    def step(self):
        return self.pulls

    def collect(self, room):
        levers = self.chance.integers(len(PAYS), size=64)
        return Experience((levers, self.chance.random(64) < PAYS[levers]), 64)

    def update(self, experience):
        for lever, paid in zip(*experience.content):
            self.values[lever] += self.config.learning_rate * (float(paid) - self.values[lever])
        self.pulls += experience.steps
        return {"best_value": float(self.values.max())}

    def snapshot(self):
        return Greedy(self.values)

    def tensors(self):
        return {"values": self.values}

    def state(self):
        return {"pulls": self.pulls, "chance": self.chance.bit_generator.state}

    def restore(self, saved, state):
        self.values, self.pulls = saved.tensors["values"].clone(), state["pulls"]
        restore_generator(self.chance, state["chance"])
        return []


@dataclass(frozen=True)
class Config:
    """Settings of a training at the levers."""

    minutes: float = 0.0  # wall-clock budget; 0 for none
    pulls: int = 6_400  # budget in pulls instead of minutes; 0 for none
    seed: int = 1  # of what the levers pay
    learning_rate: float = 0.02  # step of the averages
    eval_seconds: float = 60.0  # least time between evaluations
    eval_every: int = 3_200  # pulls between evaluations of a deterministic run
    autosave_seconds: float = 60.0  # time between checkpoints
    deterministic: bool = True  # evaluations between updates


class Contest:
    """Both play the same games, and whoever is paid more often wins."""

    sides = 1

    def __init__(self, signature, threads, games):
        self.signature, self.check = signature, PLAYERS.find

    def play(self, first, second, maps, record=0, file=None):
        found = []
        for number in maps:
            one, other = (points(PLAYERS.find(who.player), seed_of(EVALUATION, 10, number)) for who in (first, second))
            found.append(Match(first.id, second.id, 0.5 + 0.5 * float(np.sign(one - other)), number))
            if file is not None:
                file(found[-1])
        return found


PLAYERS: Players[Any] = Players(
    {"random": Random, "worst": partial(Greedy, torch.arange(10, 0, -1))}, {}, load, "act(chance)"
)
METRICS = (
    Metric("best_value", "fraction", "highest value in the table", "values", column=Column("Best", 1, 1)),
    Metric("eval_rate", "fraction", "pulls that pay", "score", "higher", interval=("eval_rate_low", "eval_rate_high")),
    Metric("eval_rate_low", "fraction", "lower end of its 95 % interval", "score"),
    Metric("eval_rate_high", "fraction", "upper end of its 95 % interval", "score"),
    Metric("progress", "fraction", "of the budget", "budget", role="progress"),
    Metric("cpu_minutes", "min", "processor time", "budget"),
)
TRAINER = Trainer(
    game="levers", unit="pull", config=Config, presets={}, learner=lambda config: "table",
    metrics=lambda config: METRICS, score="eval_rate", session=TableSession, kind=lambda config: "levers-table",
    task_version=1,
)  # fmt: skip

GAME = Game(
    name="levers",
    title="Ten levers",
    about="pull the one that pays most",
    unit="pull",
    trainer=lambda: TRAINER,
    players=lambda: PLAYERS,
    measure=measure,
    score="rate",
    teachers=("random",),
    contests=lambda: Contests(
        ["random", "worst"], "random", lambda settings: {"game": "levers", "task_version": 1}, Contest
    ),
)
