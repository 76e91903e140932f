"""The zone, its score and the end of a battle, with numbers worked by hand."""

import pytest

from protege.games.echelon.rules.battle import BY_SCORE, BY_TIME
from protege.games.echelon.world.mechs import (
    BLUE,
    HEAVY,
    MEDIUM,
    NOBODY,
    RED,
    SCOUT,
    SUITE,
)
from tests.games.echelon.rules.fields import act, ended, field, mechs, placed


def test_a_lone_team_in_the_zone_scores_its_seconds():
    battles = field(placed(BLUE, SCOUT, 20, 20), placed(RED, MEDIUM, 5, 5))
    happened = act(battles, {})
    assert [(e["name"], e["who"]) for e in happened] == [("zone_enter", 0)]
    act(battles, {}, 3)
    assert list(battles.records["score"][0]) == [1.0, 0.0]


def test_a_contested_zone_pays_by_tonnage():
    battles = field(placed(BLUE, HEAVY, 18, 20), placed(RED, MEDIUM, 23, 20))
    act(battles, {})
    # 85 against 55: margin 30 / 140
    assert battles.records["share"][0] == pytest.approx([0.25 + 0.75 * 30 / 140, 0.25])
    battles = field(placed(BLUE, HEAVY, 18, 20), placed(RED, MEDIUM, 23, 20), rules=SUITE)
    act(battles, {})
    assert battles.records["share"][0] == pytest.approx([0.5 + 0.5 * 30 / 140, 0.5])


def test_whoever_hovers_above_the_zone_does_not_hold_it():
    battles = field(placed(BLUE, SCOUT, 20, 20, feet=8), placed(RED, MEDIUM, 5, 5))
    act(battles, {0: {"vertical": 1.0}}, 2)
    assert mechs(battles)["z"][0] > 8
    assert list(battles.records["score"][0]) == [0, 0]


def test_half_of_the_seconds_as_score_ends_the_battle_and_it_cannot_go_on():
    battles = field(placed(BLUE, SCOUT, 20, 20), placed(RED, MEDIUM, 5, 5), length=40)
    act(battles, {}, 19)
    assert not battles.over[0]
    act(battles, {})  # 5 of 10 seconds
    assert battles.over[0]
    record = battles.records[0]
    assert (record["ending"], record["winner"]) == (BY_SCORE, BLUE)
    terminated, truncated = ended(battles)
    assert terminated.all() and not truncated.any()
    with pytest.raises(Exception, match="battle 0 is over: reset it"):
        act(battles, {})
    battles.reset()
    act(battles, {})
    assert not battles.over[0]


def test_time_up_goes_by_score_then_by_hp_then_to_nobody():
    def winner(prepare):
        battles = field(placed(BLUE, MEDIUM, 5, 5), placed(RED, MEDIUM, 35, 35), length=2)
        act(battles, {})
        prepare(battles)
        act(battles, {})
        assert battles.records["ending"][0] == BY_TIME
        terminated, truncated = ended(battles)
        assert truncated.all() and not terminated.any()
        return battles.records["winner"][0]

    def set_score(battles):
        battles.records["score"][0] = 0.1, 0.2
        battles.mechs["hp"][0, 1] = 1

    def set_hp(battles):
        battles.mechs["hp"][0] = 150, 149

    assert winner(set_score) == RED
    assert winner(set_hp) == BLUE
    assert winner(lambda battles: None) == NOBODY


def test_the_suite_rules_decide_by_presence_losses_and_damage():
    battles = field(placed(BLUE, MEDIUM, 20, 20), placed(RED, MEDIUM, 5, 5), length=3, rules=SUITE)
    battles.records["score"][0] = 0, 100
    act(battles, {}, 3)
    assert (battles.records["ending"][0], battles.records["winner"][0]) == (BY_TIME, BLUE)
    battles = field(placed(BLUE, MEDIUM, 35, 20), placed(RED, MEDIUM, 5, 5), length=3, rules=SUITE)
    mechs(battles)["dealt"][1] = 1
    act(battles, {}, 3)
    assert battles.records["winner"][0] == RED


def test_without_opponents_a_battle_ends_by_score():
    battles = field(placed(BLUE, MEDIUM, 20, 20), length=8)
    act(battles, {}, 3)
    assert not battles.over[0]
    act(battles, {})
    assert (battles.records["ending"][0], battles.records["winner"][0]) == (BY_SCORE, BLUE)
