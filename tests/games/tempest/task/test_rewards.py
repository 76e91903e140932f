"""Rewards: the documented amounts, on the product and on its plain twin, and both on thousands of images."""

import numpy as np
import pytest

from protege.games.tempest.rules.ram import SPIKER, TANKER
from protege.games.tempest.task.env import Games, starts
from tests.games.tempest.task import reference as reference
from tests.games.tempest.task import scenes as staged
from tests.games.tempest.task.scenes import AGENTS, Product, Twin, image, played_images, random_images, scene


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


def test_vector_a1_pays_nothing(agent):
    assert agent.rewards(staged.A1, None) == (0.0, 0.0, False)
    assert agent.score(staged.A1) == 0


def test_vector_a2_pays_points_and_safety(agent):
    assert agent.rewards(staged.A2, staged.A2_BEFORE) == (50.0, 1.5, False)
    assert agent.score(staged.A2) == 123450


def test_vector_a2_first_tick_stands_still(agent):
    # Own lane 14 holds a shot, 15 is no lane, 13 a flipper, 12 nothing; standing still: (-2 - 1 + 0.5) / 2.
    assert agent.rewards(staged.A2_BEFORE, None) == (0.0, -1.25, False)


def test_vector_a2_death_tick_drops_score_and_shaping(agent):
    assert agent.rewards(staged.A2_DYING, staged.A2) == (-1000.0, 0.0, True)
    # Already dead: no second death, and shaping goes on, standing still.
    assert agent.rewards(staged.A2_DYING, staged.A2_DYING) == (0.0, 0.75, False)


def test_vector_a3_pays_for_safe_lanes_in_the_zoom(agent):
    assert agent.rewards(staged.A3, staged.A3) == (0.0, 2.5, False)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("40=00 41=00", "40=50 41=01", 150.0),
        ("40=00 41=00", "40=99 41=09", 999.0),
        ("40=00 41=00", "40=00 41=10", 0.0),
        ("40=50 41=01", "40=00 41=00", 0.0),
        ("40=99 41=99 42=99", "40=50 41=00 42=00", 0.0),
        ("40=00", "40=AF", 99.0),
    ],
)
def test_objective_pays_points_below_a_thousand(agent, before, now, expected):
    assert agent.rewards(image(now), image(before)) == (expected, 0.0, False)


def test_the_twin_knows_the_charge_for_an_early_zap():
    now, before = image("40=50 3AA=01 3AB=05"), image("3AA=00 3AB=05")
    assert reference.rewards(now, before, newer_start_nymphs=20) == (-200.0, 0.0, False)
    assert reference.rewards(now, before, newer_start_nymphs=0) == (50.0, 0.0, False)
    assert reference.rewards(now, now, newer_start_nymphs=20) == (0.0, 0.0, False)


def test_subjective_weighs_five_lanes_and_doubles_for_movement(agent):
    before = scene(5)
    assert agent.rewards(scene(5), before)[1] == 2.5
    assert agent.rewards(scene(6), before)[1] == 5.0
    assert agent.rewards(scene(5, more="00=18"), before)[1] == 0.0
    assert agent.rewards(scene(5, (SPIKER, 5, 0x80)), before)[1] == (5 - 4) / 2
    assert agent.rewards(scene(5, (SPIKER, 5, 0x81), shots=((5, 0x81),)), before)[1] == 2.5
    assert agent.rewards(scene(5, (SPIKER, 3, 1), shots=((6, 0x80),)), before)[1] == (5 - 1 - 2) / 2
    every_lane = [(TANKER, lane, 0x20) for lane in range(3, 8)]
    assert agent.rewards(scene(5, *every_lane), before)[1] == -2.5
    assert agent.rewards(scene(0, (TANKER, 15, 0x20)), scene(0))[1] == (5 - 2) / 2


def test_subjective_skips_lanes_an_open_tube_does_not_have(agent):
    for lane, safe in ((0, 3.5), (1, 4.5), (12, 5.0), (13, 4.5), (14, 3.5), (15, 3.5)):
        assert agent.rewards(scene(lane, on_open=True), None)[1] == safe / 2


def test_the_twin_scales_and_clips():
    assert reference.total_reward(150.0, 2.5) == pytest.approx(1.525)
    assert reference.total_reward(999.0, 5.0) == 10.0
    assert reference.total_reward(-1000.0, 0.0) == -10.0


def test_product_and_twin_pay_alike_on_random_images():
    for now, before in random_images(seed=18, count=3000):
        assert Product.rewards(now, before) == Twin.rewards(now, before)
        assert Product.score(now) == Twin.score(now)


@pytest.mark.parametrize("level", [5, 8, 17, 27, 43, 62, 80, 99])
def test_product_and_twin_pay_alike_in_real_games(level):
    deaths = 0
    for now, before, _ in played_images(level, ticks=1500):
        paid = Twin.rewards(now, before)
        assert Product.rewards(now, before) == paid
        deaths += paid[2]
    assert deaths


def test_frames_carry_the_scaled_and_clipped_sum_of_both_rewards():
    games = Games(starts(32, level=[1 + 3 * g for g in range(32)]))
    seen = {"deaths": 0, "clipped": 0, "points": 0}
    for _ in range(600):
        frames = games.step(games.frames.advice)
        amounts = zip(frames.objective.tolist(), frames.subjective.tolist(), strict=True)
        expected = [reference.total_reward(objective, subjective) for objective, subjective in amounts]
        assert np.array_equal(frames.reward, np.array(expected, np.float32))
        assert np.array_equal(frames.objective == -1000, frames.terminated)
        assert not frames.subjective[frames.terminated].any()
        seen["deaths"] += int(frames.terminated.sum())
        seen["clipped"] += int((frames.reward == -10).sum())
        seen["points"] += int((frames.objective > 0).sum())
    assert all(seen.values()), seen
