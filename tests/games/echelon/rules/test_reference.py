"""The simulator and the slow reference fight the same battles, and agree to the last bit after every decision.

The short form fights a dozen battles; `make prove echelon_reference` a hundred, and leaves a row in results/.
"""

import ast
import random
from collections import Counter
from pathlib import Path

import pytest

from protege.games.echelon.rules.events import EVENT_NAMES
from protege.games.echelon.world.mechs import MATERIALS, RULES, SUITES
from tests.games.echelon.rules import reference_tables as card
from tests.games.echelon.rules.duel import Plan, assert_equal, begin_both, compare

SHORT_BATTLES, SHORT_DECISIONS = 14, 24


@pytest.mark.parametrize("number", range(SHORT_BATTLES))
def test_the_simulator_agrees_with_the_reference(number):
    compare(number, SHORT_DECISIONS, Counter())


def test_a_difference_is_told_by_name():
    plan = Plan(4)
    battles, battle = begin_both(plan, random.Random(1))
    battles.mechs["heat"][0, 1] = battle.mechs[1].heat + 2**-40
    with pytest.raises(pytest.fail.Exception, match=r"Plan\(number=4\), decision 0\n  mech heat 1: simulator"):
        assert_equal(plan, battles, battle)


def test_the_reference_imports_nothing_from_the_product():
    files = sorted(Path(__file__).parent.glob("reference*.py"))
    assert len(files) == 6
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith("protege") or ".duel" in name], file.name


@pytest.mark.parametrize("name", RULES)
def test_the_reference_plays_by_the_products_numbers(name):
    preset, tables = card.preset(name), RULES[name].record()
    rules = {key: float(value) for key, value in vars(preset.rules).items() if key != "name"}
    used = [key for key in tables.dtype.names or () if not key.endswith("_s") and not tables[key].ndim]
    assert rules == {key: float(tables[key]) for key in used}
    for columns, table in ((card.CLASSES, tables["chassis"]), (preset.weapons, tables["weapons"])):
        for column, row in zip(columns.values(), table, strict=True):
            shared = set(vars(column)) & set(table.dtype.names or ())
            assert len(shared) > 10
            assert {key: getattr(column, key) for key in shared} == {key: row[key].item() for key in shared}
    guidance = ("at_once", "straight", "ballistic", "homing")
    assert [weapon.flight for weapon in preset.weapons.values()] == [guidance[g] for g in tables["weapons"]["guidance"]]
    for kind, (column, row) in enumerate(zip(card.CLASSES.values(), tables["chassis"])):
        assert (bool(column.anti_missile), column.name == preset.ewar) == (row["has_ams"], row["has_ewar"])
        fired = [preset.weapons[weapon].id for weapons in preset.buttons[column.name] for weapon in weapons]
        button_of = {preset.weapons[w].id: b for b, weapons in enumerate(preset.buttons[column.name]) for w in weapons}
        assert sorted(fired) == sorted(button_of)
        assert [button_of.get(weapon, -1) for weapon in range(7)] == tables["trigger"][kind].tolist()


def test_the_reference_has_the_products_materials_suites_and_events():
    for number, (column, material) in enumerate(zip(card.MATERIALS.values(), MATERIALS, strict=True)):
        assert (column.id, column.name, column.hp) == (number, material.name.replace(" ", "_"), material.hp)
        stops = bool(column.bodies), bool(column.sight), bool(column.breaks)
        assert stops == (material.stops_bodies, material.stops_sight, material.breakable)
        hazards = column.heats - column.cools, column.damage, column.speed
        assert hazards == (material.heat, material.damage, material.speed)
    assert card.SUITE_RANGES == tuple(suite.sensor_range for suite in SUITES)
    assert sorted(card.EVENTS) == sorted(EVENT_NAMES)
