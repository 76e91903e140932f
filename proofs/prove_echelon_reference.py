"""A proof that the simulator and the slow reference agree on a hundred battles."""

from collections import Counter

import pytest

from proofs.row import Stopwatch, write_row
from protege.games.echelon.rules.events import EVENT_NAMES
from tests.games.echelon.rules.duel import ENDINGS, Plan, compare

BATTLES, DECISIONS = 100, 60

pytestmark = pytest.mark.prove


def test_echelon_reference():
    clock = Stopwatch()
    seen: Counter[str] = Counter()
    for number in range(BATTLES):
        compare(number, DECISIONS, seen)
        if number % 10 == 9:
            print(f"{number + 1} battles agree, {clock.seconds:.0f} s", flush=True)
    wanted = [*EVENT_NAMES, *(f"ended_by_{ending}" for ending in ENDINGS.values()), "crowded_decisions"]
    assert all(seen[name] for name in wanted), seen
    kinds = Counter(f"{Plan(number).roster.name} by {Plan(number).rules.name} rules" for number in range(BATTLES))
    row = {
        "command": "make prove echelon_reference",
        "seeds": f"battles 0 to {BATTLES - 1}: {dict(kinds)}",
        "budget": f"{DECISIONS} decisions a battle, or until it ends",
        **clock.spent(),
        "figures": {"battles": BATTLES, "differences": 0, **dict(sorted(seen.items()))},
    }
    print(write_row("echelon-reference", row).read_text())
