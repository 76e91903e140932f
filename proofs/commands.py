"""Commands that a user would type, at work beside each other: a server and its clients."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofs.row import ROOT
from protege.runs.run import open_run

PATIENCE_S = 120.0  # for a training to save and leave


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as there:
        return int(there.getsockname()[1])


@contextmanager
def command(folder: Path, *words: str, **pipes: Any) -> Iterator["subprocess.Popen[str]"]:
    """A command a user would type; it gets Ctrl-C at the end of the block."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROTEGE_RUNS": str(folder)}
    process = subprocess.Popen([sys.executable, "-m", "protege.cli", *words], env=environment, text=True, **pipes)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        if process.stdout:
            process.stdout.close()


def learning_curves(name: str, folder: Path, metrics: tuple[str, ...]) -> dict[str, list[list[float]]]:
    """By metric: minutes, frames and value, a hundred points at most."""
    found = {}
    with open_run(name, folder) as run:
        for metric in metrics:
            series = run.metrics.series(metric, most_points=100)
            first = min(series.times, default=0.0)
            points = zip(series.times, series.steps, series.mean, strict=True)
            found[metric] = [
                [round((when - first) / 60, 2), step, round(value or 0.0, 3)] for when, step, value in points
            ]
    return found
