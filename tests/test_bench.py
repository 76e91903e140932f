"""Benchmarks run and report what was promised; no figure is asserted, machines are noisy."""

import json

import pytest

from protege import ProtegeError
from protege.bench import alternate, run_benchmark
from protege.cli import main
from tests.results_row import machine, write_row


def test_sides_take_turns_and_the_median_is_reported() -> None:
    order = []
    rates = iter(rate for i in range(31) for rate in (i if i < 30 else 1000, 9))

    def side(name: str) -> tuple[int, float]:
        order.append(name)
        return next(rates), 1.0

    found = alternate({"a": lambda: side("a"), "b": lambda: side("b")}, seconds=1.0)
    assert "".join(order) == "ab" * 31
    assert found["a"] == 15.0  # of 0 to 29 and 1000: one slow or fast slice does not matter
    assert found["a_quiet"] == 27.0
    assert found["b"] == found["b_quiet"] == 9.0


@pytest.mark.slow
def test_the_simulator_benchmark_reports_every_promised_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "tempest-sim", "--seconds", "0.5", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    for key in ("sim_frames_per_s", "all_frames_per_s", "all_frames_per_s_2_threads", "ale_frames_per_s"):
        assert figures[key] > 0
    assert figures["bytes_per_game"] >= 2048
    assert figures["games"] >= 1024
    assert figures["ale_ratio"] == pytest.approx(figures["all_frames_per_s"] / figures["ale_frames_per_s"])


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(ProtegeError, match="tempest-sim"):
        run_benchmark("nothing")


@pytest.mark.prove
def test_simulator_speed() -> None:
    """`make prove speed`: the simulator against the Arcade Learning Environment, on an otherwise idle machine."""
    load = machine()
    figures = run_benchmark("tempest-sim", seconds=60.0)
    row = {
        "command": "make prove speed",
        "machine": load,
        "seconds": figures["wall_seconds"],
        "cpu_seconds": figures["cpu_seconds"],
        "figures": figures,
    }
    print(write_row("tempest-sim-speed", row))
    assert figures["sim_frames_per_s_quiet"] >= 2_000_000
    assert figures["all_frames_per_s_quiet"] >= 800_000
    assert figures["ale_ratio"] >= 70
    assert figures["two_threads_ratio_quiet"] >= 1.7
