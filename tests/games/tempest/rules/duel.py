"""The same game played by the simulator and by the slow reference, and every byte compared after every tick.

Both take their random bytes from one seed and their controls from one hand: random ones, the teacher's, or somebody at
the cabinet who starts games from power-on and passes through menus, attract mode and the high-score states.
"""

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from protege.games.tempest.rules import ram, sim
from protege.games.tempest.task.teacher import FIRE_PROBABILITY, RULE_SETS, advise, spinner_to
from tests.games.tempest.rules import reference as t
from tests.games.tempest.rules.reference import COMPARED
from tests.games.tempest.rules.simulated import Reference, Simulated

COMPARED_BYTES = np.array(COMPARED)
HANDS = ("teacher", "random", "cabinet")

Controls = tuple[bool, bool, bool, int]  # fire, zap, start, spinner
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Plan:
    """One game: who plays it, where it starts, how the cabinet is set."""

    seed: int
    hand: str
    level: int  # 0 = from power-on
    options: dict[str, Any]


def plan(number: int) -> Plan:
    """Game number so-and-so. Every hand meets every level, difficulty, number of lives and bonus in turn."""
    turn, hand = number // len(HANDS), HANDS[number % len(HANDS)]
    options: dict[str, Any] = {"difficulty": turn % 3, "lives": 2 + turn % 4, "bonus": turn % 8}
    options["rating"] = turn % 5 == 0
    if hand == "cabinet":
        options |= {"free_play": turn % 6 != 5, "demo": turn % 2 == 0}
        return Plan(1000 + number, hand, 0, options)
    return Plan(1000 + number, hand, 1 + (37 * turn + 50 * (hand == "random")) % 99, options)


def teacher_controls(row: ram.Row, dice: random.Random, rules: int) -> Controls:
    target, _, zap = advise(row, rules)
    return dice.random() < FIRE_PROBABILITY, bool(zap), False, int(spinner_to(row, target))


def random_controls(row: ram.Row, dice: random.Random, rules: int) -> Controls:
    return dice.random() < 0.6, dice.random() < 0.05, False, dice.randrange(-40, 41)


def cabinet_controls(row: ram.Row, dice: random.Random, rules: int) -> Controls:
    """Somebody who presses start now and then, turns the knob wildly, and in two games of three plays well."""
    start = dice.random() < 0.02
    if ram.in_control(row) and rules != RULE_SETS["newer"]:
        fire, zap, _, spinner = teacher_controls(row, dice, rules)
        return fire, zap, start, spinner
    return dice.random() < 0.3, dice.random() < 0.02, start, dice.choice([0, 0, 0, dice.randrange(-128, 128)])


CONTROLS = {"teacher": teacher_controls, "random": random_controls, "cabinet": cabinet_controls}


def address_names() -> dict[int, str]:
    """Names of the machine's addresses as the reference spells them, without the overlay of one state."""
    listing = itertools.dropwhile(lambda item: item[0] != "GAMESTATE", vars(t).items())
    addresses = itertools.takewhile(lambda item: item[0] != "PARTICLES", listing)
    return {address: name for name, address in addresses}


def difference(plan: Plan, tick: int, last: Controls | None, simulated: Bytes, expected: Bytes) -> str:
    """Which bytes differ, by name, and how to get there again."""
    names = address_names()
    lines = [f"tick {tick} of {plan}, controls (fire, zap, start, spinner) {last}, state ${expected[t.GAMESTATE]:02X}"]
    for address in COMPARED_BYTES[simulated[COMPARED_BYTES] != expected[COMPARED_BYTES]]:
        first = max(known for known in names if known <= address)
        name = names[first] + (f" + {address - first}" if address > first else "")
        lines.append(f"${address:04X} {name}: simulator ${simulated[address]:02X}, reference ${expected[address]:02X}")
    return "\n  ".join(lines)


def compare(plan: Plan, ticks: int, seen: Counter[str]) -> None:
    """Play one game on both, and fail on the first byte that differs; `seen` counts what came up."""
    simulated, reference = Simulated(plan.seed, **plan.options), Reference(plan.seed, **plan.options)
    if plan.level:
        simulated.start_at(plan.level, sim.start_choice_of(plan.level))
        reference.start_at(plan.level, sim.start_choice_of(plan.level))
    dice = random.Random(plan.seed)
    rules = plan.seed % len(RULE_SETS)
    bytes_of_both = simulated.row[: ram.RAM_BYTES], np.frombuffer(reference.ram, np.uint8)
    last = None
    for tick in range(ticks + 1):
        if not np.array_equal(bytes_of_both[0][COMPARED_BYTES], bytes_of_both[1][COMPARED_BYTES]):
            pytest.fail(difference(plan, tick, last, *bytes_of_both), pytrace=False)
        state = reference.ram[t.GAMESTATE]
        seen[f"state ${state:02X}"] += 1
        if state == 0x04 and reference.is_real_game():
            seen[f"level {reference.ram[t.LEVEL_INDEX] + 1}"] += 1
        last = CONTROLS[plan.hand](simulated.row, dice, rules)
        simulated.tick(*last)
        reference.tick(*last)
