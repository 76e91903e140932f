"""Schedules: numbers worked by hand."""

import pytest

from protege.learn.rainbow import RainbowConfig
from protege.learn.schedules import linear, warm_up_cosine


def test_a_linear_schedule_is_constant_before_and_after_its_fall():
    assert [linear(t, 1.0, 0.2, 100, start=50) for t in (0, 50, 75, 150, 999)] == pytest.approx([1, 1, 0.8, 0.2, 0.2])


def test_beta_and_the_weight_of_behaviour_cloning_follow_the_frames():
    config = RainbowConfig()
    assert [config.beta_at(f) for f in (0, 5_000_000, 20_000_000)] == pytest.approx([0.4, 0.7, 1.0])
    frames = (0, 500_000, 1_500_000, 2_500_000, 9_000_000)
    assert [config.bc_weight_at(f) for f in frames] == pytest.approx([1.0, 1.0, 0.5005, 0.001, 0.001])


def test_the_learning_rate_warms_up_then_falls_like_a_cosine_and_starts_again():
    def rate(update, progress=None):
        return warm_up_cosine(update, peak=5e-5, floor=2e-5, warm_up=5_000, period=3_000_000, progress=progress)

    rates = [rate(update) for update in (0, 2_499, 5_000, 1_505_000, 3_004_999, 3_005_000)]
    assert rates == pytest.approx([1e-8, 2.5e-5, 5e-5, 3.5e-5, 2e-5, 5e-5], rel=1e-5)
    within_a_budget = [rate(2_499, 0.0), rate(9_000, 0.5), rate(9_001, 1.0)]
    assert within_a_budget == pytest.approx([2.5e-5, 3.5e-5, 2e-5], rel=1e-5)


def test_a_floor_above_the_peak_does_not_turn_the_schedule_round():
    assert {warm_up_cosine(update, peak=1e-5, floor=2e-5, warm_up=0, period=10) for update in range(10)} == {1e-5}
