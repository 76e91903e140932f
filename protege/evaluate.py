"""Honest measurement: seeds that training can never meet, and intervals for what was measured on them.

Knows no game. A game's own module plays; the numbers come here to be summed up.
"""

import hashlib
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError

EVALUATION: Final = 1
TRAINING: Final = 0

Floats = npt.NDArray[np.float64]


def seed_of(domain: int, seed: int, index: int) -> int:
    """The 64-bit seed of game `index`. Its top bit is the domain, so training and evaluation seeds never coincide."""
    digest = hashlib.blake2b(f"{domain}/{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") & (2**63 - 1) | domain << 63


def import_player(name: str, needs: str) -> Any:
    """A user's own player, `package.module:Class`; `needs` is the method it must have, and where that is explained."""
    module_name, _, class_name = name.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
    try:
        made = getattr(importlib.import_module(module_name), class_name)()
    except (ImportError, AttributeError, TypeError, ValueError) as problem:
        raise ProtegeError(
            f"cannot make player {name!r}: {problem}; expected an importable module and a class that needs no arguments"
        ) from problem
    if not callable(getattr(made, "act", None)):
        raise ProtegeError(f"player {name!r} has no method {needs}")
    return made


def bootstrap(
    values: npt.ArrayLike, statistic: Callable[[Floats], Floats], resamples: int = 10_000
) -> tuple[float, float]:
    """95 % interval of a statistic (a function of the last axis) by resampling the values, with a fixed seed."""
    given = np.asarray(values, np.float64)
    generator = np.random.default_rng(20_260_101)
    found = []
    for _ in range(0, resamples, 500):
        picked = generator.integers(0, len(given), (min(500, resamples), len(given)))
        found.append(statistic(given[picked]))
    low, high = np.percentile(np.concatenate(found), (2.5, 97.5))
    return float(low), float(high)


def mean(values: Floats) -> Floats:
    """Mean over the last axis."""
    return values.mean(axis=-1)  # type: ignore[no-any-return]


def interquartile_mean(values: Floats) -> Floats:
    """Mean of the middle half over the last axis."""
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)  # type: ignore[no-any-return]


def wilson(wins: float, games: int) -> tuple[float, float]:
    """95 % Wilson interval of a rate."""
    if games == 0:
        return 0.0, 1.0
    z = 1.959963984540054
    rate = wins / games
    centre = (rate + z * z / (2 * games)) / (1 + z * z / games)
    half = z * np.sqrt(rate * (1 - rate) / games + z * z / (4 * games * games)) / (1 + z * z / games)
    return float(centre - half), float(centre + half)
