"""Every benchmark: what was measured, a baseline in the same run, and their ratio.

The machine is noisy, so the sides of a comparison take turns in short slices and the median slice is reported.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from protege import ProtegeError

Figures = dict[str, Any]
SLICES = 9  # of each side


def alternate(sides: dict[str, Callable[[], tuple[int, float]]]) -> dict[str, float]:
    """Run the sides in turn (ABAB...); each returns how much it did in how many seconds. Median rates."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(SLICES):
        for name, side in sides.items():
            amount, seconds = side()
            rates[name].append(amount / seconds)
    return {name: float(np.median(found)) for name, found in rates.items()}


def tempest_sim(seconds: float) -> Figures:
    """Frames per second of the simulator: rules alone, and with observation, teacher and rewards."""
    from protege.tempest import ram, sim
    from protege.tempest.env import Games, starts
    from protege.tempest.players import words

    count, frames_per_slice = 1024, 64
    spread = [1 + i % 40 for i in range(count)]

    def games_of(threads: int) -> Games:
        games = Games(starts(count, level=spread), threads=threads)
        for step in range(200):  # past the quiet beginning of a game
            renew(games, step)
            games.step(games.frames.advice)
        return games

    def renew(games: Games, turn: int) -> None:
        over = np.flatnonzero(games.frames.over)
        if len(over):
            games.put(over, starts(len(over), level=[spread[i] for i in over], seed=1 + turn))

    one, two = games_of(1), games_of(2)
    start = one.rows.copy()
    commands = []
    for _ in range(frames_per_slice):  # the teacher's moves from here, so that the rules can be timed alone
        commands.append(one.frames.advice.copy())
        one.step(commands[-1])
    rows = start.copy()
    turns = iter(range(1_000_000))

    def rules_alone() -> tuple[int, float]:
        rows[:] = start
        began = time.perf_counter()
        for command in commands:
            sim.step_games(rows, 0, count, command, True)
        return int((words(rows, ram.FRAMES) - words(start, ram.FRAMES)).sum()), time.perf_counter() - began

    def everything(games: Games) -> tuple[int, float]:
        began = time.perf_counter()
        for _ in range(frames_per_slice):
            games.step(games.frames.advice)
            renew(games, next(turns))
        return frames_per_slice * count, time.perf_counter() - began

    def repeat(side: Callable[[], tuple[int, float]]) -> Callable[[], tuple[int, float]]:
        def longer() -> tuple[int, float]:
            total, spent = 0, 0.0
            while spent < seconds / (4 * SLICES):
                amount, took = side()
                total, spent = total + amount, spent + took
            return total, spent

        return longer

    sides = {
        "sim_frames_per_s": repeat(rules_alone),
        "all_frames_per_s": repeat(lambda: everything(one)),
        "all_frames_per_s_2_threads": repeat(lambda: everything(two)),
    }
    pong = _ale_pong()
    if pong is not None:
        sides["ale_frames_per_s"] = repeat(pong)
    rules_alone()
    figures: Figures = dict(alternate(sides))
    figures["two_threads_ratio"] = figures["all_frames_per_s_2_threads"] / figures["all_frames_per_s"]
    figures["ale_ratio"] = figures["all_frames_per_s"] / figures["ale_frames_per_s"] if pong else None
    if pong is None:
        figures["ale_frames_per_s"] = None
    return figures | {"bytes_per_game": ram.ROW_BYTES, "games": count, "threads": 1}


def _ale_pong() -> Callable[[], tuple[int, float]] | None:
    """A slice of Pong in the Arcade Learning Environment, one act a frame; None where it is not installed."""
    try:
        import ale_py
        from ale_py import roms
    except ImportError:
        return None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path("pong"))  # type: ignore[arg-type]
    actions = ale.getMinimalActionSet()

    def slice_of_pong() -> tuple[int, float]:
        began = time.perf_counter()
        for i in range(2000):
            ale.act(actions[i // 8 % len(actions)])
            if ale.game_over():
                ale.reset_game()
        return 2000, time.perf_counter() - began

    return slice_of_pong


BENCHMARKS: dict[str, Callable[[float], Figures]] = {"tempest-sim": tempest_sim}


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
        "cores": os.cpu_count(),
    }
