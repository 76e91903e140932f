"""Proofs about runs: hundreds of kills lose nothing that had been written, and what logging and saving cost."""

import statistics
import time

import pytest
import torch

from proofs.row import Stopwatch, write_row
from protege.runs.checkpoints import load, save
from protege.runs.metrics import Metric
from protege.runs.run import create_run
from tests.killing import Killed, kill_loggers, kill_savers

KILLS = 500

pytestmark = pytest.mark.prove


@pytest.mark.parametrize("what, kill", [("checkpoints", kill_savers), ("metrics", kill_loggers)])
def test_kill(what, kill, tmp_path):
    clock = Stopwatch()
    result: Killed = kill(tmp_path, KILLS, seed=1)
    assert result.kills == KILLS
    figures = {"kills": result.kills, "written": result.written, "lost": 0}
    if what == "checkpoints":
        assert result.in_the_middle > KILLS // 10, "few kills met a half-written file, so little was proved"
        figures["kills_during_a_write"] = result.in_the_middle
    row = {
        "command": "make prove kill",
        "seeds": "moments of the kills from seed 1",
        **clock.spent(),
        "figures": figures,
    }
    print(write_row(f"kill-{what}", row).read_text())


def test_logging_cost(tmp_path):
    """What one value costs when 20 are logged together, and what a checkpoint costs; a timing never fails."""
    clock = Stopwatch()
    metrics = [Metric(f"m{number}", "", "a number", "numbers") for number in range(20)]
    values = {metric.name: 1.5 for metric in metrics}
    tensors = {"weights": torch.zeros(1_000_000)}
    with create_run("game", "learner", {}, metrics, folder=tmp_path) as run:
        logs = timed(lambda step: run.log(step, **values), 5000)
        looks = timed(lambda _: run.commands(), 5000)
        saves = timed(lambda step: save(run.last, tensors, {"step": step}, kind="test", task_version=1), 30)
        loads = timed(lambda _: load(run.last), 30)
        assert run.metrics.latest()["m19"].step == 4999 and load(run.last).state == {"step": 29}, "all was written"
    figures = {
        "log_us_per_value_mean": round(statistics.mean(logs) / 20 * 1e6, 1),
        "log_us_per_value_median": round(statistics.median(logs) / 20 * 1e6, 1),
        "log_call_ms_worst": round(max(logs) * 1e3, 1),
        "commands_us_median": round(statistics.median(looks) * 1e6, 1),
        "save_4_mb_ms_median": round(statistics.median(saves) * 1e3, 1),
        "load_4_mb_ms_median": round(statistics.median(loads) * 1e3, 1),
    }
    row = {
        "command": "make prove logging_cost",
        **clock.spent(),
        "figures": figures,
    }
    print(write_row("logging-cost", row).read_text())


def timed(work, times):
    found = []
    for number in range(times):
        started = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - started)
    return found
