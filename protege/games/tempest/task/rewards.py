"""What a frame is worth: points and lane safety from the game's bytes, their scales, and where they are clipped."""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.ram import Row, get
from protege.kernels import kernel

Floats = npt.NDArray[np.float32]

OBJECTIVE_SCALE: Final = 0.01
SUBJECTIVE_SCALE: Final = 0.01
REWARD_LIMIT: Final = 10.0
DEATH_PENALTY: Final = -1000.0
LEVEL_BONUS: Final = 1000  # score changes from here on are level bonuses, and not paid
# What an arcade client may claim of one tick, either way.
MOST_POINTS: Final = 2000.0  # a death, and a superzapper charge
MOST_SHAPING: Final = 10.0


@kernel
def died(row: Row) -> bool:
    """The last tick took the player's life."""
    return row[ram.PREVIOUS_KNOWN] != 0 and row[ram.PLAYER_EDGE] & ~row[ram.PREVIOUS_PLAYER_EDGE] & ram.DYING != 0


@kernel
def objective_reward(row: Row) -> float:
    """Points of the last tick, without level bonuses; a death costs instead of paying."""
    if row[ram.PREVIOUS_KNOWN] == 0:
        return 0.0
    if died(row):
        return DEATH_PENALTY
    change = ram.bcd_score(row, ram.SCORE_LOW) - ram.bcd_score(row, ram.PREVIOUS_SCORE)
    return float(change) if 0 < change < LEVEL_BONUS else 0.0


@kernel
def subjective_reward(row: Row) -> float:
    """How safe the player's lane and its neighbours are; half as much for standing still."""
    if row[ram.GAME_STATE] != ram.PLAYING and row[ram.GAME_STATE] != ram.ZOOM:
        return 0.0
    threatened = 0
    for i in range(ram.ESHOT_COUNT + ram.ENEMY_COUNT):  # enemies lie behind their shots in memory
        if 0 < row[ram.ESHOT_DEPTH + i] <= 0x80:
            threatened |= 1 << (get(row, ram.ESHOT_LANE + i) & 15)
    own = get(row, ram.PLAYER_LANE) & 15
    total = 0.0
    for offset in range(-2, 3):
        lane = own + offset
        if offset != 0 and row[ram.OPEN] != 0 and not 0 <= lane <= 14:
            continue
        worth = 2.0 / (1 << abs(offset))
        total += -worth if threatened >> (lane & 15) & 1 else worth
    moved = row[ram.PREVIOUS_KNOWN] != 0 and own != get(row, ram.PREVIOUS_PLAYER_LANE) & 15
    return total if moved else 0.5 * total


@kernel
def scaled_reward(points: float, shaping: float) -> float:
    """Both parts scaled, added and clipped: the task's own reward."""
    return max(-REWARD_LIMIT, min(REWARD_LIMIT, OBJECTIVE_SCALE * points + SUBJECTIVE_SCALE * shaping))


def learned_reward(objective: Floats, reward: Floats, shaping: float) -> Floats:
    """Points, with this fraction of the lane-safety reward that the task's own reward adds to them."""
    points = np.clip(objective * np.float32(OBJECTIVE_SCALE), -REWARD_LIMIT, REWARD_LIMIT)
    return points + np.float32(shaping) * (reward - points) if shaping else points
