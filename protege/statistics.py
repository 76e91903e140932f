"""Intervals for what was measured: bootstrap over games, Wilson for rates."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bootstrap(
    values: npt.ArrayLike, statistic: Callable[[Floats], Floats], resamples: int = 10_000
) -> tuple[float, float]:
    """95 % interval of a statistic (a function of the last axis) by resampling the values, with a fixed seed."""
    given = np.asarray(values, np.float64)
    generator = np.random.default_rng(20_260_101)
    found = []
    for _ in range(0, resamples, 500):
        found.append(statistic(given[generator.integers(0, len(given), (min(500, resamples), len(given)))]))
    low, high = np.percentile(np.concatenate(found), (2.5, 97.5))
    return float(low), float(high)


def bootstrap_ratio(
    parts: npt.ArrayLike, of: npt.ArrayLike, over: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
) -> tuple[float, float]:
    """95 % interval of sum(parts) / sum(of) by resampling both together; with `over`, as a multiple of its ratio."""

    def ratios(parts: npt.ArrayLike, of: npt.ArrayLike) -> Floats:
        above, below = np.asarray(parts, np.float64), np.asarray(of, np.float64)
        picked = generator.integers(0, len(above), (10_000, len(above)))
        return above[picked].sum(1) / np.maximum(1.0, below[picked].sum(1))  # type: ignore[no-any-return]

    generator = np.random.default_rng(20_260_101)
    found = ratios(parts, of)
    if over is not None:
        found = found / np.maximum(1e-9, ratios(*over))
    low, high = np.percentile(found, (2.5, 97.5))
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
