"""Glicko-2 by the paper's own example, by hand, and by players whose strength is known."""

import random

import pytest

from protege.league.glicko import SCALE, Played, Rating, period, update


def test_the_worked_example_of_the_paper():
    player = Rating(1500.0, 200.0, 0.06)
    games = [(Rating(1400.0, 30.0), 1.0), (Rating(1550.0, 100.0), 0.0), (Rating(1700.0, 300.0), 0.0)]
    after = update(player, games)
    assert after.rating == pytest.approx(1464.06, abs=0.01)
    assert after.deviation == pytest.approx(151.52, abs=0.01)
    assert after.volatility == pytest.approx(0.05999, abs=0.00001)
    assert after.conservative == pytest.approx(1464.06 - 2 * 151.52, abs=0.03)


def test_without_games_the_deviation_grows_by_the_volatility_and_never_beyond_the_start():
    after = update(Rating(1500.0, 200.0, 0.06), [])
    assert after.deviation == pytest.approx((200**2 + (0.06 * SCALE) ** 2) ** 0.5)  # 200.27
    assert after[0] == 1500.0 and after.volatility == 0.06
    assert update(Rating(1500.0, 350.0, 0.06), []).deviation == 350.0


def test_a_surprise_raises_the_volatility_and_what_was_expected_does_not():
    sure, weak = Rating(1500.0, 40.0), Rating(1000.0, 40.0)
    assert update(sure, [(weak, 0.0)] * 5).volatility > 0.0602
    assert update(sure, [(weak, 1.0)] * 5).volatility <= 0.06


@pytest.mark.parametrize("gap", [0, 500, 3000, 20_000])
@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_the_maths_holds_for_any_gap_and_any_result(gap, score):
    after = update(Rating(1500.0 + gap, 30.0), [(Rating(1500.0, 30.0), score)] * 40)
    assert -500 < after.rating <= 2600 + gap and 0 < after.deviation <= 350 and 0 < after.volatility <= 0.2


def test_a_period_is_computed_from_the_ratings_before_it_whatever_the_order():
    ratings = {1: Rating(1500.0, 0.0), 2: Rating(1600.0, 100.0), 3: Rating(1400.0, 200.0)}
    games = [Played(2, 3, 1.0), Played(1, 2, 0.5), Played(3, 1, 0.0)]
    after = period(ratings, games, pinned=1)
    assert after[1] == ratings[1], "the anchor stays"
    assert after[2] == update(ratings[2], [(ratings[3], 1.0), (ratings[1], 0.5)])
    assert after[3] == update(ratings[3], [(ratings[2], 0.0), (ratings[1], 0.0)])
    again = period(ratings, games[::-1], pinned=1)
    assert all(again[i] == pytest.approx(after[i]) for i in ratings)


def test_games_for_one_side_rate_that_side_alone_and_nobody_rests_meanwhile():
    ratings = {1: Rating(1500.0, 0.0), 2: Rating(1500.0, 90.0), 3: Rating(1500.0, 90.0), 4: Rating(1500.0, 90.0)}
    after = period(ratings, [Played(2, 3, 1.0, rates_both=False)], pinned=1)
    assert after[2] == update(ratings[2], [(ratings[3], 1.0)])
    assert after[3] == ratings[3] and after[4] == ratings[4]
    rested = period(ratings, [Played(2, 3, 1.0)], pinned=1)
    assert rested[4].deviation > 90.0, "a tournament in which it did not play makes it less certain"


def simulated(strengths: list[float], rounds: int, chance: random.Random) -> dict[int, Rating]:
    """Ratings after so many periods in which everybody plays everybody twice; number 0 is the anchor."""
    ratings = {i: Rating(deviation=0.0) if i == 0 else Rating() for i in range(len(strengths))}
    for _ in range(rounds):
        games = [
            Played(a, b, float(chance.random() < 1 / (1 + 10 ** ((strengths[b] - strengths[a]) / 400))))
            for a in ratings
            for b in ratings
            if a != b
        ]
        ratings = period(ratings, games, pinned=0)
    return ratings


def test_ratings_of_players_with_known_strengths_converge_with_the_stated_coverage():
    """95 % of the time within 1.96 deviations: a hundred leagues of nine players, 800 rated ones, after 15 periods."""
    strengths = [1500.0, 1100.0, 1250.0, 1350.0, 1450.0, 1550.0, 1650.0, 1750.0, 1900.0]
    inside, first, last = 0, list[float](), list[float]()
    for seed in range(100):
        for i, rating in simulated(strengths, 15, random.Random(seed)).items():
            inside += i > 0 and abs(rating.rating - strengths[i]) <= 1.96 * rating.deviation
            last.append(abs(rating.rating - strengths[i]))
        beginning = simulated(strengths, 1, random.Random(seed))
        first += [abs(rating.rating - strengths[i]) for i, rating in beginning.items()]
    assert 0.93 <= inside / 800 <= 0.98, inside
    assert sum(last) / len(last) < 30 < 50 < sum(first) / len(first)


def test_ratings_do_not_drift_away_from_the_anchor():
    """Five alike, 150 periods: who plays long is not rated higher for it."""
    ratings = simulated([1500.0] * 5, 150, random.Random(4))
    assert ratings[0] == Rating(1500.0, 0.0)
    assert all(abs(ratings[i].rating - 1500) < 3 * ratings[i].deviation for i in range(1, 5)), ratings
