"""Random streams and angles: right, and the same bits everywhere."""

import math

import numpy as np
import pytest

from protege.games.echelon.world.portable_math import (
    angle_of,
    below,
    between,
    next_bits,
    sin_cos,
    start_stream,
    uniform,
    wrap_angle,
)
from protege.seeds import STREAM_STEP, random_bits

MASK = 2**64 - 1


def mixed(z: int) -> int:
    """Splitmix64's output function in plain Python."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def stream(seed=7, domain=0):
    rng = np.zeros(1, np.uint64)
    start_stream(rng, np.uint64(seed), domain)
    return rng


def test_the_generator_gives_the_published_first_outputs():
    # Splitmix64 from state 1234567, as its author's test program prints them.
    rng = np.array([1234567], np.uint64)
    assert [int(next_bits(rng)) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_a_stream_is_what_the_plain_rule_says():
    for seed, domain in ((0, 0), (7, 3), (MASK, 5)):
        rng = stream(seed, domain)
        state = mixed(mixed(seed) + int(STREAM_STEP) * (domain + 1) & MASK)
        for _ in range(5):
            state = state + int(STREAM_STEP) & MASK
            assert int(next_bits(rng)) == mixed(state)
    assert int(random_bits(np.uint64(99))) == mixed(99)


def test_streams_of_one_seed_and_of_neighbouring_seeds_have_nothing_in_common():
    rngs = [stream(seed, domain) for seed in range(20) for domain in range(6)]
    drawn = [int(next_bits(rng)) for rng in rngs for _ in range(50)]
    assert len(set(drawn)) == len(drawn)


def test_whole_numbers_take_every_value_about_equally_often():
    rng = stream()
    counts = np.bincount([below(rng, 6) for _ in range(6000)], minlength=6)
    assert len(counts) == 6 and counts.min() > 880 and counts.max() < 1120  # 1000 and four deviations of 29
    ends = {between(rng, -2, 2) for _ in range(200)}
    assert ends == {-2, -1, 0, 1, 2}
    assert {between(rng, 4, 4) for _ in range(5)} == {4}


def test_chances_fill_the_unit_interval_and_are_the_top_53_bits():
    rng, again = stream(), stream()
    drawn = [uniform(rng) for _ in range(2000)]
    assert drawn[:3] == [float(int(next_bits(again)) >> 11) * 2.0**-53 for _ in range(3)]
    assert 0.0 <= min(drawn) < 0.01 and 0.99 < max(drawn) < 1.0 and abs(np.mean(drawn) - 0.5) < 0.03


def test_sine_and_cosine_agree_with_the_library_to_the_last_digit_but_one():
    generator = np.random.default_rng(1)
    for angle in [*generator.uniform(-7.0, 7.0, 2000), *generator.uniform(-1e4, 1e4, 500), 0.0, math.pi / 2, -math.pi]:
        sine, cosine = sin_cos(angle)
        assert abs(sine - math.sin(angle)) < 1e-15 and abs(cosine - math.cos(angle)) < 1e-15


def test_directions_agree_with_the_library():
    generator = np.random.default_rng(2)
    for y, x in [
        *generator.normal(0.0, 5.0, (2000, 2)),
        (0.0, 1.0),
        (0.0, -1.0),
        (1.0, 0.0),
        (-1.0, 0.0),
        (-1e-9, -1.0),
    ]:
        assert abs(angle_of(y, x) - math.atan2(y, x)) < 1e-15
    assert angle_of(0.0, 0.0) == 0.0
    assert angle_of(0.0, -2.0) == math.pi  # never minus pi: angles lie in (-pi, pi]


def test_these_bits_are_the_same_on_every_machine():
    """Recorded once; another machine, or a compiler that fuses or reorders, would differ somewhere in here."""
    total = 0.0
    for k in range(1, 400):
        sine, cosine = sin_cos(0.731 * k)
        total += sine * angle_of(cosine, sine - 0.3)
    assert total.hex() == RECORDED


RECORDED = "0x1.be41b96d257e4p+0"


@pytest.mark.parametrize(
    ("angle", "wrapped"),
    [(0.0, 0.0), (math.pi, math.pi), (-math.pi, math.pi), (1.5 * math.pi, -0.5 * math.pi), (-7.0, -7.0 + 2 * math.pi)],
)
def test_an_angle_wraps_into_one_turn(angle, wrapped):
    assert wrap_angle(angle) == pytest.approx(wrapped, abs=1e-15)


def test_an_angle_beside_the_seam_stays_on_its_side():
    assert -math.pi < wrap_angle(math.pi + 1e-12) < -3.0
    assert 3.0 < wrap_angle(-math.pi - 1e-12) <= math.pi
