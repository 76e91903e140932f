"""`protege bench`: the games' benchmarks, each with a baseline in the same run, and their ratio."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from tyro.conf import Positional

from protege import ProtegeError
from protege.cli.options import extended
from protege.cli.tables import print_json, print_table
from protege.games import BENCHMARKS, Figures, games
from protege.machine import usable_cores
from protege.runs.metrics import near


@dataclass(frozen=True)
class Bench:
    """Measure how fast something is on this machine, beside a baseline in the same run."""

    name: Positional[str]  # what to measure; an unknown name lists all
    seconds: float = 10.0  # about how long each part is measured
    json: bool = False  # also print one flat JSON object on the last line


def bench_options(words: Sequence[str]) -> type[Bench]:
    """Measure how fast something is on this machine, beside a baseline in the same run."""
    listed = "\n\n".join(f"{game.title}: {', '.join(game.benchmarks)}." for game in games().values() if game.benchmarks)
    return extended(Bench, f"{Bench.__doc__}\n\n{listed}\n\nAny game: {', '.join(BENCHMARKS)}.")


def run_bench(command: Bench) -> int:
    figures = run_benchmark(command.name, seconds=command.seconds)
    shown = {name: value for name, value in figures.items() if name != "benchmark"}
    rows = [[name, f"{value:,.2f}" if isinstance(value, float) else str(value)] for name, value in shown.items()]
    print_table(command.name, ("figure", "value"), rows, (1,))
    return print_json(command, figures)


def run_benchmark(name: str, *, seconds: float = 10.0) -> Figures:
    """Run one benchmark for about so many seconds."""
    known = {name: place for game in games().values() for name, place in game.benchmarks.items()} | BENCHMARKS
    if name not in known:
        raise ProtegeError(f"no benchmark named {name!r}: there are {', '.join(known)}{near(name, known)}")
    module, _, function = known[name].partition(":")
    benchmark = getattr(import_module(module), function)
    if not seconds > 0:
        raise ProtegeError(f"a benchmark takes time: seconds must be above 0, got {seconds}")
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    wall, cpu = time.perf_counter(), time.process_time()
    figures = benchmark(seconds)
    return {
        "benchmark": name,
        **figures,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "load_before": load_before,
        "cores": usable_cores(),
    }
