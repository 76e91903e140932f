"""How much the machinery around a game costs: a game that does nothing, played as in a training, without learning."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from protege.games.own.training.config import OwnConfig, PQNTraining
from protege.games.own.training.pqn import PQNSession
from protege.games.own.training.trainer import trainer_of
from protege.games.own.world.arena import Arena
from protege.games.own.world.arrays import array_world
from protege.runs.run import create_run
from protege.seeds import TRAINING
from protege.slices import alternate, timed
from protege.train.loop import Loop, Observer

GAMES = 1024
HORIZON = 32


class Nothing:
    """Zeros, for ever."""

    observation_space = spaces.Box(-1.0, 1.0, (8,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, games: int) -> None:
        self.seen, self.never = np.zeros((games, 8), np.float32), np.zeros(games, np.bool_)
        self.nothing = np.zeros(games, np.float32)

    def reset(self, which: Any, seeds: Any) -> None:
        """There is nothing to begin."""

    def observe(self) -> Any:
        return self.seen

    def step(self, actions: Any) -> Any:
        return self.nothing, self.never, self.never


def overhead(seconds: float) -> dict[str, Any]:
    """Frames a second of 1,024 empty games on one core: with a network's decisions, and with moves that are given."""
    torch.set_num_threads(1)
    world = array_world(Nothing, "nothing", "nothing", "Nothing")
    trainer = trainer_of("nothing", lambda teacher: world)
    config = OwnConfig(
        pqn=PQNTraining(games=GAMES, horizon=HORIZON), widths=(64, 64), threads=1, eval_games=1, longest=50
    )
    with (
        TemporaryDirectory() as place,
        create_run("nothing", "pqn", config, trainer.metrics(config), folder=Path(place)) as run,
    ):
        session = Loop(trainer, config, run, Observer(), time.monotonic()).session
        assert isinstance(session, PQNSession)
        session.begin(False)
        room = session.room()
        arena, moves = Arena(world, GAMES, TRAINING, 1), np.zeros(GAMES, np.int64)

        def step() -> None:
            for _ in range(HORIZON):
                arena.step(moves)

        cpu_s: list[float] = []
        found = alternate(
            {
                "frames_per_s": timed(lambda: session.collect(room), GAMES * HORIZON, cpu_s),
                "arena_frames_per_s": timed(step, GAMES * HORIZON),
            },
            seconds,
        )
        session.close()
    return found | {
        "games": GAMES, "threads": 1, "ratio": found["frames_per_s"] / found["arena_frames_per_s"],
        "frames_per_cpu_s": float(1.0 / np.median(cpu_s)),
    }  # fmt: skip
