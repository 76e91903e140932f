"""A proof that the simulator and the slow reference agree on a thousand games."""

from collections import Counter

import pytest

from proofs.row import Stopwatch, write_row
from tests.games.tempest.rules.duel import HANDS, compare, plan
from tests.games.tempest.rules.reference import COMPARED
from tests.games.tempest.rules.simulated import DIFFICULTIES, Reference

GAMES, TICKS = 1000, 8000

pytestmark = pytest.mark.prove


def test_tempest_reference():
    clock = Stopwatch()
    seen: Counter[str] = Counter()
    plans = [plan(number) for number in range(GAMES)]
    for number, game in enumerate(plans):
        compare(game, TICKS, seen)
        if number % 100 == 99:
            print(f"{number + 1} games agree, {clock.seconds:.0f} s", flush=True)
    levels = [key for key in seen if key.startswith("level")]
    states = sorted(key.removeprefix("state ") for key in seen if key.startswith("state"))
    assert len(levels) == 99
    assert states == [f"${state:02X}" for state in sorted(Reference().states)]
    counts = Counter(game.options["difficulty"] for game in plans)
    figures = {
        "games": len(plans),
        "ticks_compared": len(plans) * TICKS,
        "bytes_compared_per_tick": len(COMPARED),
        "differences": 0,
        "levels_covered": len(levels),
        "states_covered": states,
        **{f"games_{hand}": sum(game.hand == hand for game in plans) for hand in HANDS},
        **{f"games_{name}": counts[number] for number, name in enumerate(DIFFICULTIES)},
    }
    row = {
        "command": "make prove tempest_reference",
        "seeds": {"first": plans[0].seed, "last": plans[-1].seed, "games_each": 1},
        "budget": f"{TICKS} ticks a game",
        **clock.spent(),
        "figures": figures,
    }
    print(write_row("tempest-sim-against-reference", row).read_text())
