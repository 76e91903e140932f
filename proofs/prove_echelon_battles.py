"""A proof that what must hold in every battle holds in thousands of them."""

import random
from collections import Counter

import numpy as np
import pytest

from proofs.row import Stopwatch, write_row
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME
from protege.games.echelon.rules.events import DEATH
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import find_roster
from tests.games.echelon.rules.duel import Plan, gathered
from tests.games.echelon.rules.fields import copy_of, random_actions, restart_ended, rough_field
from tests.games.echelon.rules.invariants import check_books, check_condition, check_map, check_places, fight_mirrored

BATCH, LENGTH = 50, 60  # battles, decisions
# Batches by roster, and how wide the field is. Every place of a batch sees two battles or more.
ROUGH = {"10v10": (6, 32), "5v5": (6, 24), "2v2": (3, 20), "1v1": (1, 20), "20v20": (1, 44), "suite-13v13": (1, 36)}
GENERATED = {"10v10": 2, "5v5": 1}
MIRRORED = 300  # pairs of battles
ENDINGS = {BY_ELIMINATION: "elimination", BY_SCORE: "score", BY_TIME: "time"}

pytestmark = pytest.mark.prove


def fight(battles: Battles, seed: int, seen: Counter[str]) -> None:
    """Random play by everybody, looked at after every decision; battles that are over begin anew."""
    pristine, rng = copy_of(battles.world), np.random.default_rng(seed)
    ended = np.zeros(battles.count, np.int64)
    for _ in range(2 * LENGTH):
        score = battles.records["score"].copy()
        battles.step(random_actions(battles, rng))
        assert np.allclose(battles.records["score"] - score, battles.records["share"] * 0.25)
        for b in range(battles.count):
            check_places(battles, b)
            check_condition(battles, b)
            check_books(battles, b)
        seen["decisions"] += battles.count
        ended += battles.over
        for b in np.flatnonzero(battles.over).tolist():
            check_map(battles, b)
            seen["battles"] += 1
            seen[f"ended_by_{ENDINGS[battles.records['ending'][b]]}"] += 1
            seen["deaths"] += int(battles.mechs["tally"][b, :, DEATH].sum())
        restart_ended(battles, pristine)
    assert (ended >= 2).all()


def test_echelon_battles():
    clock = Stopwatch()
    seen: Counter[str] = Counter()
    for name, (batches, side) in ROUGH.items():
        for seed in range(100, 100 + batches):
            fight(rough_field(find_roster(name), BATCH, (side, side), seed, LENGTH), seed, seen)
        print(f"{seen['battles']} battles, {clock.seconds:.0f} s", flush=True)
    for name, batches in GENERATED.items():
        for first in range(2_000_000, 2_000_000 + batches * BATCH, BATCH):
            world = generate(range(first, first + BATCH), (60, 60), name)
            fight(Battles(world, find_roster(name), length=LENGTH), first, seen)
        print(f"{seen['battles']} battles, {clock.seconds:.0f} s", flush=True)
    for number in range(MIRRORED):
        plan = Plan(number)
        battles, mirror = (
            Battles(gathered(plan, random.Random(number)), plan.roster, plan.rules, LENGTH) for _ in range(2)
        )
        seen["deaths_in_mirrored_battles"] += fight_mirrored(battles, mirror, number)
        seen["mirrored_battles"] += 1
    row = {
        "command": "make prove echelon_battles",
        "seeds": f"batches of {BATCH} from seed 100 on, by roster (batches, side of the field): {ROUGH}; on generated "
        f"maps from seed 2000000 on: {GENERATED}; mirrored: the starts of battles 0 to {MIRRORED - 1} of "
        "tests/games/echelon/rules/duel.py",
        "budget": f"{LENGTH} decisions a battle",
        **clock.spent(),
        "figures": dict(seen),
    }
    print(write_row("echelon-battles", row).read_text())
