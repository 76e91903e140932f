"""Worlds so small that every value in them is known: what a learner must find out in them, exactly."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Outcome = tuple[Ints, npt.NDArray[np.float32], npt.NDArray[np.bool_]]  # the next place, the reward, whether it is over

GRID = 4


def chain(place: Ints, action: Ints) -> Outcome:
    """Five places in a row; right leads on, left back to the start; a reward of 1 at the far end, then it is over."""
    arrived = (place == 4) & (action == 1)
    return np.where(action == 1, np.minimum(place + 1, 4), 0), arrived.astype(np.float32), arrived


def delay(place: Ints, action: Ints) -> Outcome:
    """The first move decides; ten steps later it pays 1 or nothing. Start, ten on the good path, ten on the bad."""
    following = np.where(place == 0, np.where(action == 1, 1, 11), place + 1)
    over = (place == 10) | (place == 20)
    return np.where(over, 0, following), (place == 10).astype(np.float32), over


def grid(place: Ints, action: Ints) -> Outcome:
    """4 x 4, the goal in the far corner pays 1, every other step costs 0.04, walls hold."""
    x, y = place % GRID, place // GRID
    x = np.clip(x + np.array([1, -1, 0, 0])[action], 0, GRID - 1)
    y = np.clip(y + np.array([0, 0, 1, -1])[action], 0, GRID - 1)
    arrived = (x == GRID - 1) & (y == GRID - 1)
    return y * GRID + x, np.where(arrived, 1.0, -0.04).astype(np.float32), arrived


def grid_values(discount: float) -> npt.NDArray[np.float64]:
    """The best value of every place but the goal, by the number of steps from it to the goal."""
    found = []
    for place in range(GRID * GRID - 1):
        steps = (GRID - 1 - place % GRID) + (GRID - 1 - place // GRID)
        found.append(sum(-0.04 * discount**k for k in range(steps - 1)) + discount ** (steps - 1))
    return np.array(found)
