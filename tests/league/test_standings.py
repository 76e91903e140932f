"""What a league says about itself, in numbers worked by hand."""

import json
import random

import numpy as np
import pytest

from protege.league.glicko import SCALE
from protege.league.ledger import Game, Result
from protege.league.standings import (
    distances,
    fit_strengths,
    payoff,
    ratings_over_time,
    recent_matches,
    report,
    strengths,
    styles,
    table,
)
from protege.statistics import wilson
from tests.league.league_games import add_member, make_league


@pytest.fixture
def league(tmp_path):
    with make_league(tmp_path / "league") as made:
        yield made


def test_the_table_ranks_by_what_is_almost_surely_exceeded_and_the_retired_come_last(league):
    """Unseen players are worth 1500 - 700, so whoever lost to nobody but played stands above them."""
    good, gone = add_member(league, 1, "good"), add_member(league, 2, "gone")
    league.file([Result(good.id, league.anchor.id, 1.0, number) for number in range(20)], ends_period=True)
    league.retire(gone, "by hand")
    rows = table(league, retired=True)
    assert [row["name"] for row in rows] == ["good", "teacher", "random", "teacher-full", "gone"]
    assert rows[1]["is_anchor"] and rows[1]["conservative"] == 1500.0 and rows[2]["conservative"] == 800.0
    assert "gone" not in [row["name"] for row in table(league)]


def test_two_players_are_as_far_apart_as_their_score_says():
    """Three won of four, and a tenth of a game each way: 400 log10(3.1 / 1.1) = 180 points."""
    strength, deviation = fit_strengths(np.array([[0.0, 1.0], [3.0, 0.0]]), anchor=0)
    assert strength == pytest.approx([1500.0, 1500 + 400 * np.log10(3.1 / 1.1)], abs=0.01)
    # The deviation of log odds is 1 / sqrt(n p (1 - p)), with 4.2 games at 31/42 and 11/42.
    assert deviation == pytest.approx([0.0, SCALE / (4.2 * 31 / 42 * 11 / 42) ** 0.5], abs=0.01)


@pytest.mark.parametrize(
    "strengths_of", [[1500, 1400, 1600, 1700, 1850], [1500, 900, 2100, 2700, 3300], [1500, 1500, 1500, 1500, 1500]]
)
def test_strengths_by_all_matches_have_the_stated_coverage_however_far_apart(strengths_of):
    """Where ratings lag behind (600 points between neighbours) the fit does not: 95 % within 1.96 deviations."""
    luck, inside, leagues = random.Random(5), 0, 60
    for _ in range(leagues):
        wins = np.zeros((5, 5))
        for a in range(5):
            for b in range(a):
                chance = 1 / (1 + 10 ** ((strengths_of[b] - strengths_of[a]) / 400))
                won = sum(luck.random() < chance for _ in range(40))
                wins[a, b], wins[b, a] = won, 40 - won
        found, deviation = fit_strengths(wins, anchor=0)
        inside += int((np.abs(found - strengths_of) <= 1.96 * deviation)[1:].sum())
    assert 0.91 <= inside / (4 * leagues) <= 0.995, inside


def test_strengths_are_told_of_those_whom_matches_lead_to(league):
    a, b = add_member(league, 1), add_member(league, 2)
    unknown, other = add_member(league, 3), add_member(league, 4)
    league.file(
        [Result(a.id, league.anchor.id, 1.0, 0), Result(b.id, a.id, 0.5, 0), Result(unknown.id, other.id, 1.0, 0)]
    )
    found = strengths(league)
    assert found[league.anchor.id] == (1500.0, 0.0) and found[unknown.id] == found[other.id] == (None, None)
    # One won and a tenth of a game each way: 400 log10(1.1 / 0.1); the draw leaves the other one there as well.
    assert found[a.id][0] == found[b.id][0] == pytest.approx(1500 + 400 * np.log10(11), abs=0.1)
    assert league.by_id(a.id).rating.rating == 1500.0, "no period has ended"


def test_the_payoff_matrix_has_scores_with_wilson_intervals_and_gaps_where_nobody_met(league):
    a, b = add_member(league, 1), add_member(league, 2)
    scores = [1.0] * 6 + [0.5] * 2 + [0.0] * 2
    league.file([Result(a.id, b.id, score, number) for number, score in enumerate(scores)])
    cells = payoff(league, [a.id, b.id, league.anchor.id])
    low, high = wilson(7, 10)
    assert cells[0][1] == {"score": 0.7, "low": low, "high": high, "games": 10, "draws": 2}
    assert cells[1][0] is not None and cells[1][0]["score"] == pytest.approx(0.3)
    assert cells[0][0] is None and cells[0][2] is None


def test_of_an_agent_the_training_games_are_shown(league):
    agent = league.agent("mine")
    league.report(agent.id, [Game(league.anchor.id, 1.0)] * 3)
    cells = payoff(league, [agent.id, league.anchor.id])
    assert cells[0][1] is not None and cells[0][1]["games"] == 3 and cells[1][0] is None


def test_ratings_over_time_name_their_period(league):
    a = add_member(league, 1)
    for number in range(3):
        league.file([Result(a.id, league.anchor.id, 1.0, number)], ends_period=True)
    found = ratings_over_time(league, [a.id])[a.id]
    assert [row[0] for row in found] == [1, 2, 3] and [row[4] for row in found] == [1, 2, 3]
    assert found[0][2] < found[1][2] < found[2][2] and found[0][3] > found[2][3]


def test_a_style_is_the_mean_of_its_matches(league):
    a, b = add_member(league, 1), add_member(league, 2)
    for number, speed in enumerate((1.0, 2.0, 6.0)):
        league.file([Result(a.id, b.id, 1.0, number, styles=({"speed": speed}, {"speed": 0.0}))])
    assert styles(league, [a.id, b.id, league.anchor.id]) == {a.id: {"speed": 3.0}, b.id: {"speed": 0.0}}


def test_styles_are_compared_in_units_of_their_spread():
    """Speeds 0, 3, 6 have a spread of √6, heats 1, 1, 1 none: the first and last are √(36 / 6 / 2) = √3 apart."""
    found = distances({i: {"speed": 3.0 * i, "heat": 1.0} for i in range(3)})
    assert found[0][2] == pytest.approx(3**0.5, abs=1e-3) and found[0][1] == found[1][2] == pytest.approx(
        0.866, abs=1e-3
    )
    assert distances({1: {"speed": 1.0}}) == {1: {}}


def test_matches_are_told_from_the_side_of_the_entry_and_recorded_ones_come_first(league):
    a, b = add_member(league, 1), add_member(league, 2)
    league.file([Result(a.id, b.id, 1.0, 0, recording=b"x"), Result(b.id, a.id, 1.0, 1)])
    mine, theirs = recent_matches(league, a.id), recent_matches(league, b.id)
    assert [(m["opponent"], m["score"], m["recording"]) for m in mine] == [(b.id, 1.0, "1.rec"), (b.id, 0.0, None)]
    assert [m["score"] for m in theirs] == [0.0, 1.0] and [m["is_first"] for m in theirs] == [False, True]


def test_a_report_is_plain_json(league):
    a = add_member(league, 1)
    league.file([Result(a.id, league.anchor.id, 1.0, 0, styles=({"speed": 1.0}, {"speed": 2.0}))], ends_period=True)
    found = report(league)
    assert json.loads(json.dumps(found))["counts"]["rated"] == 1
    assert found["payoff"]["entries"] == [row["id"] for row in found["entries"]]
