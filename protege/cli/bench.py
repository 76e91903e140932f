"""Every benchmark: what was measured, a baseline in the same run, and their ratio."""

import os
import time
from collections.abc import Callable

from protege import ProtegeError
from protege.games.echelon.benchmarks.battles import echelon_sim
from protege.games.echelon.benchmarks.ppo import ppo
from protege.games.tempest.benchmarks.bridge import bridge
from protege.games.tempest.benchmarks.replay import rainbow_update, replay
from protege.games.tempest.benchmarks.simulator import tempest_profile, tempest_sim
from protege.games.tempest.benchmarks.training import dashboard, training
from protege.machine import usable_cores
from protege.slices import Figures

BENCHMARKS: dict[str, Callable[[float], Figures]] = {
    "tempest-sim": tempest_sim,
    "tempest-profile": tempest_profile,
    "train": training,
    "dashboard": dashboard,
    "rainbow-update": rainbow_update,
    "replay": replay,
    "bridge": bridge,
    "echelon-sim": echelon_sim,
    "ppo": ppo,
}


def run_benchmark(name: str, *, seconds: float = 10.0) -> Figures:
    """Run one benchmark for about so many seconds."""
    if name not in BENCHMARKS:
        raise ProtegeError(f"no benchmark named {name!r}: there are {', '.join(BENCHMARKS)}")
    if not seconds > 0:
        raise ProtegeError(f"a benchmark takes time: seconds must be above 0, got {seconds}")
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    wall, cpu = time.perf_counter(), time.process_time()
    figures = BENCHMARKS[name](seconds)
    return {
        "benchmark": name,
        **figures,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "load_before": load_before,
        "cores": usable_cores(),
    }
