"""The simulator and the slow reference play the same games, byte for byte, tick by tick.

The short form plays a few dozen games; `make prove tempest_reference` plays a thousand and leaves a row in results/.
"""

from collections import Counter

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from tests.games.tempest.rules import reference as t
from tests.games.tempest.rules.duel import compare, difference, plan
from tests.games.tempest.rules.reference import COMPARED

SHORT_GAMES, SHORT_TICKS = 60, 3000


@pytest.mark.parametrize("number", range(SHORT_GAMES))
def test_the_simulator_agrees_with_the_reference(number):
    compare(plan(number), SHORT_TICKS, Counter())


def test_a_difference_is_told_by_name_seed_and_tick():
    simulated, expected = np.zeros(ram.RAM_BYTES, np.uint8), np.zeros(ram.RAM_BYTES, np.uint8)
    simulated[t.ENEMY_DEPTH + 3], expected[t.ENEMY_DEPTH + 3] = 0x1E, 0x1F
    simulated[t.SCORE] = 0x50
    text = difference(plan(7), 12, (True, False, False, -9), simulated, expected)
    assert "tick 12 of Plan(seed=1007, hand='random'" in text
    assert "$02E2 ENEMY_DEPTH + 3: simulator $1E, reference $1F" in text
    assert "$0040 SCORE: simulator $50, reference $00" in text


def test_the_compared_bytes_are_distinct_addresses_of_the_image():
    assert len(set(COMPARED)) == len(COMPARED)
    assert max(COMPARED) < ram.RAM_BYTES
