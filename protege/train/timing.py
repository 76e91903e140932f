"""How fast a training is, for benchmarks."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from protege.train.loop import Observer, train
from protege.train.session import Trainer


class _Clock(Observer):
    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.steps = 0
        self.figures: dict[str, float] = {}

    def started(self, report: dict[str, str], progress: float) -> None:
        self.began = time.perf_counter()

    def progressed(self, step: int, progress: float, figures: dict[str, float]) -> None:
        self.ended, self.steps, self.figures = time.perf_counter(), step, figures


def training_rate(trainer: Trainer, config: Any) -> tuple[float, dict[str, float]]:
    """Steps a second of a whole training, from its first rollout to its last report, and the figures in that."""
    clock = _Clock()
    with TemporaryDirectory() as folder:
        train(trainer, config, clock, folder=Path(folder))
    return clock.steps / (clock.ended - clock.began), clock.figures
