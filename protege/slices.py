"""How every benchmark measures: the machine is noisy, so the sides of a comparison take turns in short slices."""

from collections.abc import Callable
from typing import Any

import numpy as np

Figures = dict[str, Any]
Side = Callable[[], tuple[int, float]]  # a little work: how much was done, in how many seconds
SLICES = 31  # of each side


def alternate(sides: dict[str, Side], seconds: float) -> dict[str, float]:
    """Run the sides in turn (ABAB...), each slice long enough to share `seconds`.

    The median rate of each side, and as `NAME_quiet` its best decile: on a shared host the median moves by half
    within an hour, the best decile hardly.
    """
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(SLICES):
        for name, side in sides.items():
            done, spent = 0, 0.0
            while spent < seconds / (SLICES * len(sides)):
                amount, took = side()
                done, spent = done + amount, spent + took
            rates[name].append(done / spent)
    medians = {name: float(np.median(found)) for name, found in rates.items()}
    return medians | {f"{name}_quiet": float(np.percentile(found, 90)) for name, found in rates.items()}
