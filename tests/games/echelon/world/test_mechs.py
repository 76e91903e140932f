"""The game's numbers: tables that agree with each other, rosters as agreed."""

import dataclasses

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.echelon.world import mechs
from protege.games.echelon.world.mechs import (
    AUTOCANNON,
    BASE,
    BLUE,
    BUILD,
    FLAMER,
    GAUSS,
    HEAVY,
    LASER,
    LIGHT,
    MATERIALS,
    MEDIUM,
    MISSILE,
    NARROW,
    NOBODY,
    NOT_CARRIED,
    PAINTER,
    PRIMARY,
    RED,
    ROSTERS,
    RULES,
    SCOUT,
    SECONDARY,
    SMOKE,
    SPECIAL,
    SUITE,
    TERTIARY,
    WIDE,
    Chassis,
    find_roster,
    gait_of,
)


def kinds(roster, team):
    members = find_roster(roster).members()
    return [int(kind) for kind in members.kind[members.team == team]]


# --- rosters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roster", "scouts", "lights", "mediums", "heavies"),
    [
        ("1v1", 0, 0, 1, 0),
        ("2v2", 1, 0, 0, 1),
        ("5v5", 1, 1, 2, 1),
        ("10v10", 1, 3, 5, 1),
        ("20v20", 2, 6, 10, 2),
        ("base-5v5", 1, 1, 2, 1),
        ("base-10v10", 2, 2, 4, 2),
        ("suite-6v6", 1, 2, 2, 1),
        ("suite-13v13", 2, 4, 5, 2),
    ],
)
def test_both_teams_of_a_roster_have_the_same_mechs(roster, scouts, lights, mediums, heavies):
    counts = [scouts, lights, mediums, heavies]
    assert kinds(roster, BLUE) == kinds(roster, RED)
    assert np.bincount(kinds(roster, BLUE), minlength=4).tolist() == counts


def test_one_mech_can_be_alone():
    members = find_roster("1v0").members()
    assert members.team.tolist() == [BLUE] and members.kind.tolist() == [MEDIUM]


def test_blue_comes_first_and_packs_are_numbered_through():
    members = find_roster("20v20").members()
    assert members.team.tolist() == [BLUE] * 20 + [RED] * 20
    assert members.pack.tolist() == [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    assert members.rank.tolist() == [*range(20), *range(20)]


def test_the_base_pack_is_in_its_order():
    assert kinds("base-5v5", BLUE) == [HEAVY, MEDIUM, MEDIUM, LIGHT, SCOUT]


def test_a_light_leads_each_standard_pack():
    members = find_roster("10v10").members()
    leaders = [i for i in range(20) if members.suite[i] == mechs.PACK_COMMAND]
    assert leaders == [8, 18] and members.kind[leaders].tolist() == [LIGHT, LIGHT]
    assert members.leader[leaders].tolist() == [NOBODY, NOBODY]
    assert set(members.leader[:8]) == {8} and members.leader[19] == 18


def test_the_squad_leader_commands_the_pack_leaders_and_talks_with_the_first_pack():
    members = find_roster("suite-13v13").members()
    assert members.suite[12] == mechs.SQUAD_COMMAND and members.kind[12] == MEDIUM
    assert members.leader[:13].tolist() == [5, 5, 5, 5, 5, 12, 11, 11, 11, 11, 11, 12, NOBODY]
    assert members.pack[12] == members.pack[0] and members.pack[25] == members.pack[13] == 2


def test_everybody_has_the_suite_of_its_class_or_a_command_suite():
    for name in ROSTERS:
        members = find_roster(name).members()
        for kind, suite in zip(members.kind, members.suite):
            assert suite == mechs.SUITE_OF_CLASS[kind] or suite in (mechs.PACK_COMMAND, mechs.SQUAD_COMMAND)


def test_an_unknown_roster_is_refused_in_one_line_that_lists_the_known_ones():
    with pytest.raises(ProtegeError) as error:
        find_roster("11v11")
    line = str(error.value)
    assert "\n" not in line and "'11v11'" in line and all(name in line for name in ROSTERS)


# --- tables --------------------------------------------------------------------------------------------------------


def test_what_stops_bodies_and_sight_follows_from_the_material():
    def named(flags):
        return {material.name for material, flag in zip(MATERIALS, flags) if flag}

    walls = {"solid", "debris field", "solid debris", "glass", "reinforced"}
    assert named(mechs.STOPS_BODIES) == walls
    assert named(mechs.STOPS_SIGHT) == walls - {"glass"} | {"foliage"}
    assert named(mechs.BREAKABLE) == walls - {"reinforced"} | {"foliage"}
    assert mechs.MATERIAL_HP.tolist() == [0, 100, 0, 0, 50, 200, 0, 10, 1000, 1]
    assert all(material.hp > 0 for material in MATERIALS if material.breakable or material.stops_bodies)


def test_only_lava_debris_and_water_do_something_to_feet():
    effects = {m.name: (m.heat, m.damage, m.speed) for m in MATERIALS if (m.heat, m.damage, m.speed) != (0.0, 0.0, 1.0)}
    assert effects == {"lava": (40.0, 5.0, 1.0), "debris field": (20.0, 1.25, 1.0), "water": (-30.0, 0.0, 0.6)}


def test_weapons_do_what_they_should_per_second():
    weapons = BUILD.record()["weapons"]
    damage = weapons["damage"] / weapons["cooldown_s"]
    heat = weapons["heat"] / weapons["cooldown_s"]
    # 14 / 0.6, 4 / 0.15, 40 / 3, 50 / 4, 8 / 0.2; and 22 / 0.6, 10 / 0.15, 45 / 3, 15 / 4, 6 / 0.2
    order = [LASER, FLAMER, MISSILE, GAUSS, AUTOCANNON]
    assert damage[order].round(1).tolist() == [23.3, 26.7, 13.3, 12.5, 40.0]
    assert heat[order].round(1).tolist() == [36.7, 66.7, 15.0, 3.8, 30.0]
    assert 2 * weapons["stability_damage"][GAUSS] > BUILD.chassis[HEAVY].stability  # two gauss hits knock anyone down


def test_times_are_there_in_whole_ticks_too():
    tables = BUILD.record()
    assert tables["weapons"]["cooldown_ticks"].tolist() == [12, 3, 60, 80, 4, 20, 100]
    assert [int(tables[name]) for name in ("paint_ticks", "suppress_ticks", "knockdown_ticks")] == [100, 24, 60]


def test_arcs_are_halved_and_their_cosines_exact():
    weapons = BUILD.record()["weapons"]
    assert np.degrees(weapons["half_arc"]).round(9).tolist() == [60.0, 45.0, 90.0, 30.0, 45.0, 30.0, 90.0]
    assert weapons["cos_half_arc"][[LASER, MISSILE]].tolist() == [0.5, 0.0]


def test_a_medium_paints_and_shoots_by_separate_buttons():
    trigger = BUILD.record()["trigger"]
    assert trigger[MEDIUM, [LASER, PAINTER, AUTOCANNON, SMOKE]].tolist() == [PRIMARY, SECONDARY, TERTIARY, SPECIAL]
    assert BASE.record()["trigger"][MEDIUM, [PAINTER, AUTOCANNON]].tolist() == [TERTIARY, TERTIARY]


def test_each_class_carries_its_weapons():
    trigger = BUILD.record()["trigger"]
    carried = [[weapon for weapon in range(7) if trigger[kind, weapon] != NOT_CARRIED] for kind in range(4)]
    assert carried == [
        [PAINTER, SMOKE],
        [LASER, FLAMER, PAINTER, SMOKE],
        [LASER, AUTOCANNON, PAINTER, SMOKE],
        [LASER, MISSILE, GAUSS, SMOKE],
    ]


def test_electronic_warfare_is_the_scouts_and_in_suite_the_lights_instead_of_its_smoke():
    assert BUILD.record()["chassis"]["has_ewar"].tolist() == [1, 0, 0, 0]
    assert SUITE.record()["chassis"]["has_ewar"].tolist() == [0, 1, 0, 0]
    assert SUITE.record()["trigger"][LIGHT, SMOKE] == NOT_CARRIED


def test_presets_differ_from_the_game_only_where_they_mean_to():
    def differences(rules):
        return {f.name for f in dataclasses.fields(rules) if getattr(rules, f.name) != getattr(BUILD, f.name)}

    assert set(RULES) == {"build", "base", "suite"}
    assert "contested_floor" in differences(SUITE) and "contested_floor" not in differences(BASE)
    assert {"chassis", "gravity"}.isdisjoint(differences(BASE) | differences(SUITE))
    for rules in (BASE, SUITE):
        changed = [(old, new) for old, new in zip(rules.weapons, BUILD.weapons) if old != new]
        assert [(old.name, old.stability_damage, new.stability_damage) for old, new in changed] == [
            ("autocannon", 5, 8)
        ]


def test_tables_hold_every_number_of_the_rules_as_doubles_or_whole_numbers():
    tables = BUILD.record()
    parts = [tables.dtype, tables["chassis"].dtype, tables["weapons"].dtype]
    kinds = [part[name].base for part in parts for name in part.names or ()]
    assert {kind.str for kind in kinds if kind.names is None} == {"<f8", "<i8"}
    numbers = {field.name for field in dataclasses.fields(BUILD)} - {"name", "chassis", "weapons", "loadout", "ewar"}
    assert numbers <= set(tables.dtype.names or ())
    assert tables["chassis"]["hp"].tolist() == [60.0, 80.0, 150.0, 200.0]
    assert tables["chassis"]["half_width"].tolist() == [0.6, 0.75, 1.25, 1.75]


def test_only_the_heavy_needs_the_wide_footprint():
    assert [gait_of(chassis) for chassis in mechs.CHASSIS] == [NARROW, NARROW, NARROW, WIDE]


def test_a_chassis_too_large_for_every_footprint_is_refused():
    colossus = dataclasses.replace(mechs.CHASSIS[HEAVY], name="colossus", width=5.5)
    with pytest.raises(ProtegeError, match=r"colossus of 5\.5 x 4\.0"):
        gait_of(colossus)
    assert gait_of(Chassis(**{**vars(colossus), "width": 5.0})) == WIDE  # 2.5 on each side: exactly five columns
