"""Where random numbers come from: seeds of games in two domains that never meet, and a stream for each purpose.

Training and evaluation draw the seeds of their games from domains of their own, so a game seen in training cannot turn
up in an evaluation. Within a training each purpose has a stream of its own, so drawing more for one never shifts the
numbers of another. What happens in a game comes from streams of splitmix64, which its rules keep.
"""

import hashlib
from enum import IntEnum
from typing import Final

import numpy as np

from protege.kernels import kernel

TRAINING: Final = 0
EVALUATION: Final = 1


def seed_of(domain: int, seed: int, index: int) -> int:
    """The 64-bit seed of game `index`. Its top bit is the domain, so training and evaluation seeds never coincide."""
    digest = hashlib.blake2b(f"{domain}/{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & (2**63 - 1) | domain << 63


class Purpose(IntEnum):
    """What the numbers of a stream are for."""

    PRACTICE = 1  # where training games start, and exploration in them
    REPLAY = 2  # what is drawn from the replay
    ARCADE = 3  # exploration of arcade clients


def random_stream(seed: int, purpose: Purpose) -> np.random.Generator:
    """The random numbers that a training with this seed draws for one purpose."""
    return np.random.default_rng([seed, int(purpose)])


# --- the games' own random numbers, the same on every machine: a state advances by STREAM_STEP ---

STREAM_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


@kernel
def random_bits(state: np.uint64) -> np.uint64:
    """64 random bits from a state of a stream (splitmix64)."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
