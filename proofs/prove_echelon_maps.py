"""Proofs about battlefields: a thousand of them are sound and fair, and what making one costs."""

import time
from collections import Counter

import numpy as np
import pytest

from proofs.row import Stopwatch, write_row
from protege.games.echelon.world import routes
from protege.games.echelon.world.maps import generate
from tests.games.echelon.world.soundness import assert_sound, walks

MAPS, BATCH = 1000, 50

pytestmark = pytest.mark.prove


def test_echelon_maps():
    clock = Stopwatch()
    facts, unfair = [], []
    for first in range(0, MAPS, BATCH):
        world = generate(range(1_000_000 + first, 1_000_000 + first + BATCH))
        assert_sound(world)
        facts.append(world.facts)
        unfair.append(abs(np.diff(walks(world), axis=0)[0]) / walks(world).min(0))
    found, gap = np.concatenate(facts), np.concatenate(unfair)
    noted = Counter(
        row[routes.DIG_NOTES + 3 * i] for row in found for i in range(min(row[routes.DIGS], routes.MOST_NOTED))
    )
    figures = {
        "maps": MAPS,
        "share_mended": round(float((found[:, routes.DIGS] > 0).mean()), 4),
        **{f"mended_{name.replace(' ', '_')}": noted[reason] for reason, name in routes.DIG_NAMES.items()},
        "share_mirrored": round(float(found[:, routes.MIRRORED].mean()), 4),
        "walks_differ_median": round(float(np.median(gap)), 4),
        "walks_differ_most": round(float(gap.max()), 4),
        **{f"map_{side}_cpu_ms": cost(side) for side in (40, 60, 100, 200)},
    }
    row = {
        "command": "make prove echelon_maps",
        "seeds": f"{MAPS} maps from seed 1000000 on, 100 x 100, 10v10; the costs from seed 0 on, 5v5 on 40 x 40",
        **clock.spent(),
        "figures": figures,
    }
    print(write_row("echelon-maps", row).read_text())


def cost(side: int) -> float:
    """Processor time of one map, in milliseconds: the better of two looks, because others use the machine too."""
    roster, maps, found = "5v5" if side == 40 else "10v10", 20, []
    for _ in range(2):
        before = time.process_time()
        generate(range(maps), (side, side), roster)
        found.append(1000 * (time.process_time() - before) / maps)
    return round(min(found), 2)
