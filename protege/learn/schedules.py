"""How settings change over a training: pure functions of how far it has come."""

import math


def linear(now: float, first: float, last: float, length: float, start: float = 0.0) -> float:
    """From `first` at `start` to `last` at `start + length`, constant before and after."""
    fraction = (now - start) / length if length > 0 else float(now >= start)
    return first + (last - first) * min(1.0, max(0.0, fraction))


def warm_up_cosine(
    update: int, peak: float, floor: float, warm_up: int, period: int, progress: float | None = None
) -> float:
    """A linear warm-up, then cosine falls from the peak to the floor, which is never above the peak.

    Falls follow each other every `period` updates; where there is a budget there is a single one, and `progress` is the
    fraction of the budget that is used up.
    """
    if update < warm_up:
        return peak * (update + 1) / warm_up
    floor = min(floor, peak)
    turn = (update - warm_up) % period / period if progress is None else min(1.0, progress)
    return floor + (peak - floor) * (1 + math.cos(math.pi * turn)) / 2
