"""Benchmarks run and report what was promised; no figure is asserted, machines are noisy."""

import json

import pytest

from protege import ProtegeError
from protege.cli.__main__ import main
from protege.cli.bench import run_benchmark
from protege.games.echelon.benchmarks.ppo import training
from protege.games.tempest.benchmarks.bridge import bridge
from protege.games.tempest.benchmarks.replay import rainbow_update, replay
from protege.slices import alternate


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


def test_the_replay_benchmark_reports_every_promised_figure_for_a_small_one_too() -> None:
    figures = replay(0.1, capacity=20_000)
    for key in ("sample_ms", "adds_per_s", "plain_sample_ms", "sample_ratio", "adds_ratio"):
        assert figures[key] > 0
    assert 0.0085 < figures["gigabytes"] < 0.0090  # 20,000 steps of 426 bytes, and the packing's table
    assert 20_000 - 512 * 12 <= figures["steps"] <= 20_000  # all but the ends of the streams, which may still wait


def test_a_replay_benchmark_that_does_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(ProtegeError, match=r"needs 426\d\d\d.\d GB of free memory; there are"):
        replay(0.1, capacity=10**12)


@pytest.mark.slow
def test_the_bridge_benchmark_reports_every_promised_figure_for_fewer_clients_too() -> None:
    figures = bridge(0.5, counts=(1, 16), stored=20_000)
    for key in ("fps", "p50_ms", "p99_ms"):
        for count in ("1", "16", "1_no_training", "16_no_training"):
            assert figures[f"{key}_{count}"] > 0
    assert figures["do_nothing_fps_16"] > 0 and figures["small_network_fps_16"] > 0 and figures["updates_per_s"] > 0
    assert figures["trivial_ratio"] == pytest.approx(figures["trivial_fps_16"] / figures["do_nothing_fps_16"])


@pytest.mark.slow
def test_the_update_benchmark_reports_every_promised_figure_for_a_small_replay_too() -> None:
    figures = rainbow_update(0.1, stored=20_000)
    for key in ("update_ms", "bare_ms", "update_2_threads_ms", "decisions_per_s_1", "decisions_per_cpu_s_256"):
        assert figures[key] > 0
    assert figures["ratio"] == pytest.approx(figures["update_ms"] / figures["bare_ms"])
    assert figures["batch"] == 256 and figures["replay"] >= 20_000


@pytest.mark.slow
def test_the_training_benchmark_of_squads_tells_where_its_time_goes() -> None:
    figures = training(15.0, slices=1)
    assert figures["train_agent_steps_per_s"] > 0 and figures["train_agent_steps_per_s_one_thread"] > 0
    for kind in ("time_", "cpu_"):
        shares = [value for name, value in figures.items() if name.startswith(kind)]
        assert len(shares) == 3 and sum(shares) == pytest.approx(1.0)


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(ProtegeError, match="tempest-sim"):
        run_benchmark("nothing")
