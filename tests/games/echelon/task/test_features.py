"""What an observation is made of, as programs read it."""

import json
import re
from pathlib import Path

import pytest

from protege.games.echelon.task import features
from protege.games.echelon.task.features import (
    CHANNELS,
    DESCRIPTORS,
    ENEMY,
    FRIEND,
    MECH_STATE,
    OWN,
    STATE,
    Layout,
    layout_of,
    schema,
    width,
)
from protege.games.echelon.task.observation import empty_observation
from protege.games.echelon.world.mechs import (
    ROSTERS,
    SUITES,
    find_roster,
)


def test_the_schema_says_where_every_value_is_and_what_it_can_be():
    layout = layout_of(find_roster("10v10"))
    assert layout == Layout(mechs=20, friends=9, enemies=10, pack=10)
    described = json.loads(json.dumps(schema(layout)))
    arrays = empty_observation(3, layout)
    for name, group in described["groups"].items():
        array = getattr(arrays, name)
        assert list(array.shape[2:]) == group["shape"] and array.dtype == group["dtype"], name
        ends = [field["offset"] + field["size"] for field in group["fields"]]
        assert [field["offset"] for field in group["fields"]] == [0, *ends[:-1]]
        assert ends[-1] == (len(CHANNELS) if name == "map" else group["shape"][-1])
        assert len({field["name"] for field in group["fields"]}) == len(ends)
    assert described["groups"]["enemies"]["fields"][0] == {
        "name": "place", "offset": 0, "size": 3, "low": -3.0, "high": 3.0,
    }  # fmt: skip


def test_the_version_is_the_same_for_all_rosters_and_another_for_another_meaning(monkeypatch):
    versions = {schema(layout_of(roster))["version"] for roster in ROSTERS.values()}
    assert len(versions) == 1
    monkeypatch.setattr(features, "MEANING", features.MEANING + 1)
    assert schema(layout_of(find_roster("1v1")))["version"] not in versions


def test_descriptors_of_suites_lie_between_0_and_1():
    assert DESCRIPTORS.shape == (len(SUITES), 14)
    assert (DESCRIPTORS >= 0).all() and (DESCRIPTORS <= 1).all()
    # Scout recon: 20 contacts, range 1.5, fidelity 0.8, icons; no fights, no orders, no reports, 5 intel slots.
    assert DESCRIPTORS[0].tolist() == pytest.approx([1, 0, 0, 0, 0, 0, 1, 1, 0.8, 0, 0, 0, 0, 0])
    # Squad command: 6 contacts, range 1.0 of 0.8 to 1.5, fidelity 0.5, full detail, all four, 12 intel.
    assert DESCRIPTORS[5].tolist() == pytest.approx([0, 0, 0, 0, 0, 1, 0.3, 0.2 / 0.7, 0.5, 1, 1, 1, 1, 1])


def test_the_card_names_every_value():
    card = (Path(__file__).parents[4] / "docs" / "echelon.md").read_text()
    text = card[card.index("## What a player sees") : card.index("## What a player may do")]
    words = set(re.findall(r"\w+", text.lower()))
    for fields in (OWN, FRIEND, ENEMY, CHANNELS):
        assert {field.name for field in fields} <= words
    for group, size in (("own", width(OWN)), ("friends, friend_mask", f"friends x {width(FRIEND)}")):
        assert f"| {group} | {size} |" in text
    assert f"enemies x {width(ENEMY)} |" in text and f"{width(STATE)}, mechs x {width(MECH_STATE)} |" in text
    for name in ("contact_slots", "fidelity", "squad_slots", "intel_slots"):
        values = [str(getattr(suite, name)) for suite in SUITES]
        assert f"| {name.replace('_', ' ')} | {' | '.join(values)} |" in text
