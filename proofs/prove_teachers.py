"""A proof of how well the teachers play."""

import pytest

from proofs.row import Stopwatch, write_row
from protege.games.tempest.agents.players import evaluate

pytestmark = pytest.mark.prove


def test_teachers() -> None:
    """The yardstick of every learning claim, from five start levels."""
    clock = Stopwatch()
    found = [
        evaluate(name, games=1000, seed=1, level=level, threads=2)
        for level in (1, 9, 17, 33, 65)
        for name in ("teacher", "teacher-full", "random")
    ]
    row = {
        "command": "make prove teachers",
        "seeds": "evaluation seed 1, 1000 games each, from levels 1, 9, 17, 33, 65",
        **clock.spent(),
        "figures": found,
    }
    print(write_row("tempest-teachers", row).read_text())
    assert all(result["seconds"] < 30 for result in found)
    assert all(result["truncated"] <= 2 for result in found)  # one of teacher-full's games goes round for ever
