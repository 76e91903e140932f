"""What a training would need, from a few real rounds of its own play and updates."""

import math
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import torch

from protege.runs import checkpoints
from protege.runs.run import create_run
from protege.train.loop import LOG_SECONDS, Loop, Observer
from protege.train.session import Trainer

MEMORY_OF_LIBRARIES: Final = 500e6  # bytes that Python, torch and compiled code take
MOST_TO_FILL: Final = 100  # rounds until there is enough to learn from
ROUNDS: Final = 4  # that are timed


def estimate(trainer: Trainer, config: Any, folder: Path | None = None) -> dict[str, str]:
    """Memory, disk, time and speed, in words."""
    trainer.check(config)
    trainer.admit(config, None, False, folder)
    torch.set_num_threads(1)
    settings = trainer.typical(config)
    with (
        TemporaryDirectory() as place,
        create_run(trainer.game, "estimate", settings, trainer.metrics(settings), folder=Path(place)) as run,
        closing(Loop(trainer, settings, run, Observer(), time.monotonic()).session) as session,
    ):
        session.begin(False)
        room, collecting, updating = session.room(), [], []
        for _ in range(MOST_TO_FILL):
            if session.update(session.collect(room)):
                break
        for _ in range(ROUNDS):
            began = time.perf_counter()
            experience = session.collect(room)
            then = time.perf_counter()
            session.update(experience)
            collecting.append(then - began)
            updating.append(time.perf_counter() - then)
        play, learn = min(collecting), sum(updating) / ROUNDS  # not every round allows as many updates
        rate = experience.steps / (max(play, learn) if session.ahead else play + learn)
        file = Path(place) / "checkpoint"
        state = session.about() | {"session": session.state()}
        checkpoints.save(file, session.tensors(), state, kind="estimate", task_version=0)
        checkpoint, (memory, disk) = file.stat().st_size, session.sizes()
    budget = trainer.budget(config)
    seconds = 60 * config.minutes if config.minutes and not config.deterministic else math.inf
    seconds = min(seconds, budget / rate) if budget else seconds
    logged = 60 * len(trainer.metrics(config)) * seconds / LOG_SECONDS if math.isfinite(seconds) else 0.0
    return {
        "memory": f"{(MEMORY_OF_LIBRARIES + memory + 20 * checkpoint) / 1e6:,.0f} MB",
        "disk": f"{(2 * checkpoint + disk + logged) / 1e6:,.1f} MB"
        + ("" if logged else ", and 60 MB a day of figures"),
        "time": f"{seconds / 60:,.1f} minutes" if math.isfinite(seconds) else "until it is stopped",
        f"{trainer.unit}s": f"{rate:,.0f} a second" + (f", {rate * seconds / 1e6:,.1f} million" if logged else ""),
    }
