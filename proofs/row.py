"""What a proof leaves behind: one JSON file in results/, in the form results/README.md describes."""

import json
import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from protege.machine import processor, usable_cores

ROOT = Path(__file__).parents[1]


def commit() -> str:
    """The commit that is checked out, marked where the tree has changes."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"]
    described = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    return described.stdout.strip() or "unknown"


def machine() -> dict[str, Any]:
    """The machine and the libraries, with its load at this moment."""
    return {
        "cores": usable_cores(),
        "processor": processor(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        **{name: metadata.version(name).partition("+")[0] for name in ("numba", "numpy", "torch")},
        "load": round(psutil.getloadavg()[0], 2),
    }


class Stopwatch:
    """Started when a proof begins: the machine as it was then, and the time since."""

    def __init__(self) -> None:
        self.machine = machine()
        self._began, self._processor = time.perf_counter(), _processor_seconds()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def spent(self) -> dict[str, Any]:
        """What every row says: where, and how long it took."""
        processor = _processor_seconds() - self._processor
        return {"machine": self.machine, "seconds": round(self.seconds, 1), "cpu_seconds": round(processor, 1)}


def _processor_seconds() -> float:
    """Of this process and of those it has waited for."""
    used = psutil.Process().cpu_times()
    return float(used.user + used.system + used.children_user + used.children_system)


def write_row(name: str, row: dict[str, Any]) -> Path:
    """Add a row under a new name: a row that is there is never written again."""
    day = datetime.now(UTC).date().isoformat()
    number = 1
    while (path := ROOT / "results" / f"{name}-{day}{f'-{number}' if number > 1 else ''}.json").exists():
        number += 1
    path.write_text(json.dumps({"name": path.stem, "date": day, "commit": commit(), **row}, indent=2) + "\n")
    return path
