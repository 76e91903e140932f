"""How every benchmark measures: the machine is noisy, so the sides of a comparison take turns in short slices."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from protege.train.loop import Observer, train
from protege.train.session import Trainer

Figures = dict[str, Any]
Side = Callable[[], tuple[int, float]]  # a little work: how much was done, in how many seconds
SLICES = 31  # of each side


def timed(work: Callable[[], object], amount: int = 1, cpu_s: list[float] | None = None) -> Side:
    """Work as a side; `cpu_s` gets the time of this thread for one of the `amount`, which others disturb less."""

    def side() -> tuple[int, float]:
        began, before = time.perf_counter(), time.thread_time()
        work()
        if cpu_s is not None:
            cpu_s.append((time.thread_time() - before) / amount)
        return amount, time.perf_counter() - began

    return side


def alternate(sides: dict[str, Side], seconds: float) -> Figures:
    """Run the sides in turn (ABAB...), each slice long enough to share `seconds`.

    The median rate of each side, and as `NAME_quiet` its best decile: on a shared host the median moves by half
    within an hour, the best decile hardly.
    """
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(SLICES):
        for name, side in sides.items():
            done, spent = 0, 0.0
            while spent < seconds / (SLICES * len(sides)):
                amount, took = side()
                done, spent = done + amount, spent + took
            rates[name].append(done / spent)
    quiet = {f"{name}_quiet": float(np.percentile(found, 90)) for name, found in rates.items()}
    return medians(rates) | quiet


def medians(found: dict[str, list[float]]) -> Figures:
    """Each figure's median."""
    return {name: float(np.median(values)) for name, values in found.items()}


class Child:
    """A function of this package in another process, which answers every line on standard input with one."""

    def __init__(self, function: Callable[[], None], *words: str) -> None:
        code = f"from {function.__module__} import {function.__name__} as work; work()"
        command = [sys.executable, "-c", code, *words]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> str:
        """Its answer to a line."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End its input, and wait for it to end as well."""
        self._process.communicate()


class _Clock(Observer):
    def started(self, report: dict[str, str], progress: float) -> None:
        self.began = self.ended = time.perf_counter()
        self.steps, self.figures = 0, dict[str, float]()  # of a training that ends before its first report

    def progressed(self, step: int, progress: float, figures: dict[str, float]) -> None:
        self.ended, self.steps, self.figures = time.perf_counter(), step, figures


def training_rate(trainer: Trainer, config: Any) -> tuple[float, dict[str, float]]:
    """Steps a second of a whole training, from its first rollout to its last report, and the figures in that."""
    clock = _Clock()
    with TemporaryDirectory() as folder:
        train(trainer, config, clock, folder=Path(folder))
    return clock.steps / max(clock.ended - clock.began, 1e-9), clock.figures
