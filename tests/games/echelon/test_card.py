"""The game card lists the numbers that the game plays by."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from protege.games.echelon.rules.events import EVENT_NAMES
from protege.games.echelon.rules.sim import VERSION
from protege.games.echelon.world.mechs import BUILD, CHASSIS, MATERIALS, NOT_CARRIED, RULES, SUITES, WEAPONS

CARD = (Path(__file__).parents[3] / "docs" / "echelon.md").read_text()


def table(heading: str, first: str | None = None) -> list[list[str]]:
    """The rows of the first table after a heading, or of that whose first cell is given; without its own headings."""
    text = CARD[CARD.index(heading) :]
    lines = text[text.index(f"\n| {first}" if first else "\n|") :].strip().split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def number(text: str) -> float:
    return float(Fraction(text))


def test_every_rule_stands_there_in_all_three_presets():
    tables = {name: rules.record() for name, rules in RULES.items()}
    rows = {row[0]: [number(cell) for cell in row[1:4]] for row in table("### Rules")}
    build = tables["build"]
    used = [name for name in build.dtype.names or () if not name.endswith("_s") and not build[name].ndim]
    assert rows == {name: [float(tables[preset][name]) for preset in ("build", "base", "suite")] for name in used}


def test_classes_and_weapons_stand_there():
    for heading, found in (("### Classes", BUILD.record()["chassis"]), ("### Weapons", BUILD.record()["weapons"])):
        rows = {row[0]: row[1:] for row in table(heading)}
        assert [int(cell) for cell in rows["id"]] == list(range(len(found)))
        for name in set(rows) & set(found.dtype.names or ()):
            assert [number(cell) for cell in rows[name]] == [float(value) for value in found[name]], name
    assert {name for name in vars(CHASSIS[0]) if name not in ("name", "has_ams")} <= {
        r[0] for r in table("### Classes")
    }


def test_buttons_materials_suites_and_events_stand_there():
    trigger = BUILD.record()["trigger"]
    for row in table("### Weapons", "button")[:4]:
        button = int(row[0].split()[0])
        fired = [[w.name for w, b in zip(WEAPONS, carried) if b == button != NOT_CARRIED] for carried in trigger]
        assert row[1:] == ["".join(names) for names in fired]
    materials = [
        (row[1], int(row[2]), row[3] == "yes", row[4] == "yes", row[5] == "yes") for row in table("### Materials")
    ]
    assert materials == [(m.name, m.hp, m.stops_bodies, m.stops_sight, m.breakable) for m in MATERIALS]
    for suite in SUITES:
        assert f"{suite.name} {suite.sensor_range}" in " ".join(CARD.split()), suite.name
    assert [row[0] for row in table("## Arrays", "event")] == list(EVENT_NAMES)
    assert f"Rules version {VERSION}." in CARD


def test_shots_live_as_long_as_the_card_says():
    life = [int(np.ceil(w.reach / (w.speed * 0.05) - 1e-9)) for w in WEAPONS if w.speed]
    assert life == [84, 10, 10, 27]
    assert "missile 84, gauss 10,\nautocannon 10, smoke 27" in CARD
