"""Proofs of speed: the benchmarks on an otherwise idle machine, with what each must reach."""

from typing import Any

import pytest

from examples.setup_sb3 import make
from proofs.row import machine, write_row
from protege.cli.bench import run_benchmark

pytestmark = pytest.mark.prove


def proved(name: str, seconds: float, proof: str, row: str) -> dict[str, Any]:
    """The figures of a benchmark, which also become a row."""
    load = machine()
    figures = run_benchmark(name, seconds=seconds)
    spent = {"seconds": figures["wall_seconds"], "cpu_seconds": figures["cpu_seconds"]}
    print(write_row(row, {"command": f"make prove {proof}", "machine": load, **spent, "figures": figures}).read_text())
    return figures


def test_simulator_speed() -> None:
    """The simulator against the Arcade Learning Environment."""
    figures = proved("tempest-sim", 60.0, "simulator_speed", "tempest-sim-speed")
    assert figures["sim_frames_per_s_quiet"] >= 2_000_000
    assert figures["all_frames_per_s_quiet"] >= 800_000
    assert figures["ale_ratio"] >= 70
    assert figures["two_threads_ratio_quiet"] >= 1.7


def test_training_speed() -> None:
    """A whole training: frames a second, and where the time goes."""
    figures = proved("train", 60.0, "training_speed", "tempest-training-speed")
    assert sum(value for name, value in figures.items() if name.startswith("time_")) == pytest.approx(1.0, abs=0.02)


def test_dashboard_cost() -> None:
    """Twenty people at the page of a training."""
    figures = proved("dashboard", 60.0, "dashboard_cost", "dashboard-cost")
    assert figures["cost"] <= 0.05


def test_replay_speed() -> None:
    """15 million steps; needs 9 GB of free memory."""
    figures = proved("replay", 30.0, "replay_speed", "replay-speed")
    assert figures["gigabytes"] <= 6.5
    assert figures["sample_ms"] <= 0.6
    assert figures["adds_per_s"] >= 400_000


def test_update_speed() -> None:
    """A Rainbow update beside a bare forward and backward pass."""
    assert proved("rainbow-update", 60.0, "update_speed", "rainbow-update-speed")["ratio"] <= 2.0


def test_bridge_speed() -> None:
    """Arcade clients: what they get, and how long they wait."""
    figures = proved("bridge", 10.0, "bridge_speed", "bridge-speed")
    assert figures["trivial_ratio"] >= 0.5
    assert figures["small_network_fps_16"] >= 15_000
    assert figures["fps_1"] >= 2_000
    assert figures["fps_16"] >= 8_000
    assert figures["p99_ms_16"] < 10


def test_battlefield_speed() -> None:
    """Ten mechs against ten, with all that a learner needs."""
    figures = proved("echelon-sim", 60.0, "battlefield_speed", "echelon-speed")
    assert figures["agent_steps_per_s"] >= 100_000
    assert figures["agent_steps_per_s_2_threads"] >= 150_000
    assert figures["map_ms"] <= 20


def test_ppo_speed() -> None:
    """The recurrent learner: chunks, whole trainings of 10v10, and sb3-contrib on a task for one."""
    make()
    figures = proved("ppo", 15.0, "ppo_speed", "ppo-speed")
    assert figures["chunked_vs_stepwise"] >= 4 and figures["chunked_difference"] <= 1e-5
    assert figures["train_agent_steps_per_s"] >= 12_000
    assert sum(value for name, value in figures.items() if name.startswith("time_")) == pytest.approx(1.0)
    assert figures["sb3_recurrent_ratio"] >= 5
