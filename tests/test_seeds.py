"""Seeds and streams of random numbers: known answers."""

import numpy as np

from protege.seeds import EVALUATION, TRAINING, Purpose, random_stream, seed_of


def test_training_and_evaluation_seeds_never_meet() -> None:
    training = {seed_of(TRAINING, seed, index) for seed in range(50) for index in range(50)}
    evaluation = {seed_of(EVALUATION, seed, index) for seed in range(50) for index in range(50)}
    assert len(training) == len(evaluation) == 2500
    assert max(training) < 2**63 <= min(evaluation)  # the top bit tells them apart, whatever the hash


def test_a_seed_is_the_same_on_every_machine() -> None:
    assert seed_of(EVALUATION, 1, 0) == 10757950191079014457


def test_every_purpose_has_its_own_numbers_and_they_repeat() -> None:
    drawn = {purpose: random_stream(7, purpose).integers(2**62) for purpose in Purpose}
    assert len(set(drawn.values())) == len(Purpose)
    assert random_stream(7, Purpose.REPLAY).integers(2**62) == np.random.default_rng([7, 2]).integers(2**62)
