"""Packed observations: bit for bit what they were on the game's grids, close anywhere else, and the plain twins."""

from fractions import Fraction

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Games, starts
from protege.games.tempest.task.packing import PACKING
from protege.learn.packing import FINE, MOST, Packing, first_foreign, pack, packing, unpack
from tests.games.tempest.task.scenes import observed, random_images, row_of


def there_and_back(observations, how: Packing = PACKING):
    rows = np.empty((len(observations), how.columns), np.int16)
    found = np.empty_like(observations)
    pack(observations, how, rows)
    unpack(rows, how, found)
    return found


def bits(values):
    return np.ascontiguousarray(values).view(np.uint32)


def assert_exact(observations):
    found = there_and_back(observations)
    wrong = np.argwhere(bits(observations + 0.0) != bits(found))  # + 0.0: there is only one zero
    assert not len(wrong), (
        f"{observation.NAMES[wrong[0, 1]]}: {observations[tuple(wrong[0])]!r}, {found[tuple(wrong[0])]!r}"
    )


# --- the game's own values --------------------------------------------------------------------------------------------


def test_every_observation_of_the_simulator_comes_back_bit_for_bit():
    games = Games(starts(1024, level=[1 + i % 99 for i in range(1024)]))
    dice = np.random.default_rng(1)
    for _ in range(300):  # 307,200 observations
        strays = dice.random(1024) < 0.3
        commands = np.where(strays[:, None], ACTIONS[dice.integers(0, 44, 1024)], games.frames.advice)
        assert_exact(games.step(commands).observation)


def test_every_random_memory_image_comes_back_bit_for_bit():
    dice = np.random.default_rng(2)
    rows = dice.integers(0, 256, (20_000, ram.ROW_BYTES)).astype(np.uint8)
    rows[:, ram.GAME_STATE] = dice.choice([ram.PLAYING, ram.ZOOM], len(rows))
    assert_exact(np.stack([observed(row) for row in rows]))
    assert_exact(np.stack([observed(row_of(now, before)) for now, before in random_images(seed=3, count=3000)]))


def test_every_part_of_the_way_from_lane_to_lane_comes_back_bit_for_bit():
    # Up to 15 lanes away, p/q of the way to the next with q at most 15, in fifteenths.
    parts = {Fraction(p, q) for q in range(1, 16) for p in range(q + 1)}
    places = {lane + sign * part for lane in range(-15, 16) for part in parts for sign in (-1, 1)}
    values = [np.float32(float(place / 15)) for place in places if abs(place) <= 15]
    assert len(set(values)) == 30 * (len(parts) - 1) + 1 == 2161
    observations = np.zeros((len(values), 195), np.float32)
    for part in (observation.ENEMY_LANES, observation.RIM_LANES, observation.PULSAR_LANES, observation.TOP_RAIL_LANES):
        observations[:, part] = np.array(values)[:, None]
    assert_exact(observations)


def test_every_depth_of_an_enemy_shot_comes_back_bit_for_bit():
    observations = np.zeros((65536, 195), np.float32)
    observations[:, observation.ENEMY_SHOT_DEPTHS] = (np.arange(65536) / 65536).astype(np.float32)[:, None]
    assert_exact(observations)


# --- any values -------------------------------------------------------------------------------------------------------


def test_foreign_values_come_back_within_a_thirty_thousandth_and_the_ends_exactly():
    values = np.random.default_rng(4).uniform(-1, 1, (3000, 195)).astype(np.float32)
    values[0], values[1], values[2] = -1, 0, 1
    found = there_and_back(values)
    assert np.abs(found - values).max() < 1 / 30_000
    assert (found[:3] == values[:3]).all()
    fine = observation.ENEMY_SHOT_DEPTHS
    assert np.abs(found[:, fine] - values[:, fine]).max() < 2.0**-29
    assert np.abs(found).max() <= 1


def test_an_observation_takes_two_bytes_a_value_and_two_more_for_each_of_four():
    assert PACKING.columns == 195 + 4


def test_values_that_are_no_numbers_in_range_are_found_in_their_row():
    values = np.zeros((4, 3), np.float32)
    assert first_foreign(values) == -1
    values[3, 1] = -1.0001
    assert first_foreign(values) == 3 * 3 + 1
    for foreign in (np.nan, np.inf, 1.5):
        values[2, 2] = foreign
        assert first_foreign(values) == 2 * 3 + 2


def test_a_packing_is_known_by_what_its_codes_mean():
    assert packing([4, 7]).fingerprint() == packing([4, 7]).fingerprint()
    others = [packing([4, 8]), packing([4, 7], fine=[1]), packing([4, 7], listed=[1], known=[0.5])]
    assert len({how.fingerprint() for how in others}) == 3
    with pytest.raises(AssertionError, match="too close"):
        packing([1], listed=[0], known=[0.5, 0.500001])


# --- twins ------------------------------------------------------------------------------------------------------------


def plain_codes(observation, how: Packing):
    codes = [round(float(np.float32(v) * scale)) for v, scale in zip(observation, how.scale)]
    rests = [float(observation[i]) - codes[i] / FINE for i in how.fine]
    return codes + [round(rest * 2 * FINE * FINE) for rest in rests]


def plain_values(codes, how: Packing):
    values = [np.float32(code) / scale for code, scale in zip(codes, how.scale)]
    for k, i in enumerate(how.fine):
        values[i] += np.float32(codes[len(values) + k] / (2 * FINE * FINE))
    for i in how.listed:
        values[i] = how.table[codes[i] + MOST]
    return values


def test_packing_and_its_plain_twin_agree():
    dice = np.random.default_rng(5)
    how = packing([255, 12, 1, 1, 15], fine=[2], listed=[3], known=np.arange(-7, 8) / 7)
    values = np.concatenate([dice.uniform(-1, 1, (500, 5)), dice.integers(-7, 8, (500, 5)) / 7]).astype(np.float32)
    rows = np.empty((len(values), 6), np.int16)
    pack(values, how, rows)
    assert rows.tolist() == [plain_codes(observation, how) for observation in values]
    found = np.empty_like(values)
    unpack(rows, how, found)
    assert found.tolist() == [[float(value) for value in plain_values(codes, how)] for codes in rows.tolist()]
