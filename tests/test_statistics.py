"""Intervals: known answers."""

import numpy as np
import pytest

from protege.statistics import bootstrap, interquartile_mean, mean, wilson


def test_interquartile_mean_drops_the_outer_quarters() -> None:
    assert interquartile_mean(np.array([0.0, 1.0, 2.0, 1000.0])) == 1.5  # 0 and 1000 go
    assert interquartile_mean(np.array([[1.0, 3.0], [5.0, 9.0]])).tolist() == [2.0, 7.0]  # too few to drop any


def test_bootstrap_covers_the_true_mean_about_nineteen_times_in_twenty() -> None:
    generator = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        low, high = bootstrap(generator.exponential(1.0, 60), mean, resamples=1000)
        covered += low <= 1.0 <= high
    assert 175 <= covered <= 198  # skewed data and 60 values: a little under 190 is what theory gives


def test_bootstrap_repeats_itself() -> None:
    values = np.arange(30.0)
    assert bootstrap(values, mean) == bootstrap(values, mean)


def test_a_bootstrap_of_equal_values_is_that_value() -> None:
    assert bootstrap([7.0] * 5, mean) == (7.0, 7.0)


def test_wilson_interval_of_a_textbook_case() -> None:
    low, high = wilson(8, 10)  # the usual worked example: 0.490 to 0.943
    assert low == pytest.approx(0.4901625, abs=1e-6)
    assert high == pytest.approx(0.9433178, abs=1e-6)
    assert wilson(0, 0) == (0.0, 1.0)
