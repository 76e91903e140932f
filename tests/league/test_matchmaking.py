"""The rules of a league by figures: who is drawn how often, who enters, who leaves, who begins again."""

import numpy as np
import pytest

from protege.league.glicko import Rating
from protege.league.matchmaking import (
    LEAGUE_EXPLOITER,
    MAIN,
    MAIN_EXPLOITER,
    Rules,
    Standing,
    Tally,
    draw_probabilities,
    gate,
    reset_reason,
    to_retire,
)

ONLY_SKILL = Rules(skill=1.0, prioritised=0.0, floor=0.0)
ONLY_RESULTS = Rules(skill=0.0, prioritised=1.0, floor=0.0)


def standing(id: int, rating: float = 1500.0, deviation: float = 50.0, games: int = 100) -> Standing:
    return Standing(id, Rating(rating, deviation), games)


ME = standing(0)


def test_strength_is_weighed_by_a_bell_curve_of_the_difference():
    pool = [standing(1, 1500.0), standing(2, 1700.0), standing(3, 1100.0)]
    probabilities = draw_probabilities(ME, pool, {}, ONLY_SKILL)
    bell = np.exp([-0.0, -0.5, -2.0])  # differences of 0, 1 and 2 sigma
    assert probabilities == pytest.approx(bell / bell.sum())


def test_results_weigh_even_and_hard_opponents_alike():
    """Won 8 of 8: 9/10. Won 4 of 8: 1/2. Won none of 8: 1/10, each drawn to the middle by two more games."""
    tallies = {1: Tally(8, 8), 2: Tally(4, 8), 3: Tally(0, 8)}
    even, hard = np.array([0.09, 0.25, 0.09]), np.array([0.01, 0.25, 0.81])
    probabilities = draw_probabilities(ME, [standing(1), standing(2), standing(3)], tallies, ONLY_RESULTS)
    assert probabilities == pytest.approx(even / even.sum() / 2 + hard / hard.sum() / 2)
    assert probabilities[2] > probabilities[1] > probabilities[0]


def test_nobody_is_forgotten():
    pool = [standing(1), *(standing(i, 4000.0) for i in range(2, 12))]
    tallies = {i: Tally(1000, 1000) for i in range(2, 12)}
    drawn = draw_probabilities(ME, pool, tallies, Rules())
    assert drawn.min() >= 0.10 / 11 and drawn.sum() == pytest.approx(1)


def test_a_pool_in_which_all_are_far_away_can_still_be_drawn_from():
    drawn = draw_probabilities(ME, [standing(1, 90_000.0), standing(2, 90_100.0)], {}, ONLY_SKILL)
    assert np.isfinite(drawn).all() and drawn.sum() == pytest.approx(1) and drawn[0] > drawn[1]


def test_newcomers_meet_only_who_is_near_until_nobody_is():
    new = standing(0, games=19)
    pool = [standing(1, 1700.0), standing(2, 1701.0), standing(3, 1301.0), standing(4, 2400.0)]
    assert (draw_probabilities(new, pool, {}, Rules()) > 0).tolist() == [True, False, True, False]
    assert (draw_probabilities(new, pool[1:2] + pool[3:], {}, Rules()) > 0).tolist() == [True, False], "within 400"
    assert (draw_probabilities(new, pool[3:], {}, Rules()) > 0).tolist() == [True], "900 apart: then anybody"
    assert (draw_probabilities(standing(0, games=20), pool, {}, Rules()) > 0).all()


def gated(best: Tally, others: list[Tally], rules: Rules = Rules()):
    members = [standing(i, 1600.0 - i) for i in range(1 + len(others))]
    return gate(members, dict(enumerate([best, *others])), rules)


def test_a_candidate_needs_55_percent_against_the_best_and_45_against_each_of_the_top_five():
    top = [Tally(20, 40)] * 4
    assert gated(Tally(110, 200), top).passed
    assert not gated(Tally(109.5, 200), top).passed
    assert gated(Tally(110, 200), [*top[:3], Tally(18, 40)]).passed
    refused = gated(Tally(110, 200), [*top[:3], Tally(17.5, 40)])
    assert not refused.passed and "43.8%" in refused.reason
    assert gated(Tally(110, 200), [*top, Tally(0, 40)]).passed, "the sixth does not matter"


def test_a_gate_says_which_games_are_missing():
    verdict = gated(Tally(100, 150), [Tally(20, 40), Tally()])
    assert not verdict.passed and verdict.missing == ((0, 50), (2, 40)) and verdict.reason == "90 games are missing"


def test_the_lowest_leave_and_those_first_who_are_known():
    members = [standing(1, 1600.0), standing(2, 1300.0), standing(3, 1500.0), standing(4, 1200.0, 350.0, games=3)]
    assert to_retire(members, Rules(limit=4)) == []
    assert to_retire(members, Rules(limit=3)) == [2], "number 4 has not played enough to be judged"
    assert to_retire(members, Rules(limit=3), frozenset({2})) == [3]
    assert to_retire(members, Rules(limit=0)) == [2, 3, 1, 4]


def test_unknown_members_do_not_push_out_known_ones_for_ever():
    """Rated 1500 with deviation 350 an unknown one is worth 800; only the two newest of them are spared."""
    known = [standing(1, 1600.0), standing(2, 1300.0)]
    unknown = [standing(id, 1500.0, 350.0, games=3) for id in (3, 4, 5, 6)]
    assert to_retire([*known, *unknown], Rules(limit=5, newest=2)) == [3]
    assert to_retire([*known, *unknown], Rules(limit=1, newest=2)) == [3, 4, 2, 1, 5]


def test_exploiters_begin_again_when_they_win_70_percent_or_have_used_their_budget():
    for role in (MAIN_EXPLOITER, LEAGUE_EXPLOITER):
        assert reset_reason(role, 99, Tally(50, 50), Rules()) == "", "too few games to tell"
        assert reset_reason(role, 100, Tally(34, 50), Rules()) == ""
        assert reset_reason(role, 100, Tally(35, 50), Rules()) == "scored 70%, 70% were asked of it"
        assert reset_reason(role, 20_000, Tally(10, 50), Rules()) == "used its 20,000 games"
    assert reset_reason(MAIN, 10**6, Tally(50, 50), Rules()) == "", "the main agent never does"
