"""On which grid each of the 195 values lies, so that a memory keeps them in 16 bits and gives them back exactly.

Almost every value is a byte or a small number over a fixed denominator. Two kinds are not: enemy shots have 8.8 bits of
depth, and the lane of an enemy that is turning over has come p/q of its way, q at most 15. Values on these grids come
back bit for bit; anything else in [-1, 1] within 1/30,000.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram
from protege.games.tempest.task.observation import (
    ENEMY_LANES,
    ENEMY_SHOT_DEPTHS,
    PULSAR_LANES,
    RIM_LANES,
    TOP_RAIL_LANES,
    VALUES,
)
from protege.learn.packing import packing

LANES: Final = 15
BYTE: Final = 255

# Denominators, in the order of the values; those of `_FINE` and `_LISTED` values do not matter.
_GRIDS: Final = (
    *(36, BYTE, BYTE, 6, 98),  # game
    *(15, 1, 15, BYTE, 2, 19, 8),  # player
    *[256] * ram.PSHOT_COUNT,
    *[LANES] * ram.PSHOT_COUNT,
    *(98, 1, 15),  # level
    *[BYTE] * ram.LANE_COUNT,
    *[15] * ram.LANE_COUNT,
    *[7] * (2 * ram.TYPE_KINDS + 2),  # enemies, counted
    *(63, 40, 12, BYTE, 135, BYTE),
    *[2560] * ram.TYPE_KINDS,
    *(7, 1, 1, 1, 1, 3) * ram.ENEMY_COUNT,
    *[LANES] * ram.ENEMY_COUNT,  # and where they are
    *[BYTE] * ram.ENEMY_COUNT,
    *[LANES] * ram.ENEMY_COUNT,
    *[1] * ram.ESHOT_COUNT,
    *[LANES] * ram.ESHOT_COUNT,
    *[BYTE] * ram.ENEMY_COUNT,
    *[LANES] * (2 * ram.ENEMY_COUNT),
    *[BYTE] * 3,  # danger
    *[8] * ram.ENEMY_COUNT,  # motion
    *[128] * ram.ENEMY_COUNT,
)
_FINE: Final = tuple(range(VALUES)[ENEMY_SHOT_DEPTHS])
_LISTED: Final = tuple(
    i for part in (ENEMY_LANES, RIM_LANES, PULSAR_LANES, TOP_RAIL_LANES) for i in range(VALUES)[part]
)


def _lanes() -> npt.NDArray[np.float32]:
    """Every place relative to the player that an enemy can have, turning over or not, worked out as `observe` does."""
    relative, travelled, total = np.ogrid[-15:16, 0:16, 1:16]
    progress = np.minimum(travelled / total, 1.0)
    places = np.concatenate([(relative + progress - 1.0).ravel(), (relative - progress).ravel()])
    around = np.where(places > 8, places - 16, np.where(places < -8, places + 16, places))
    return (np.clip(np.concatenate([places, around]), -15, 15) / 15).astype(np.float32)


PACKING: Final = packing(_GRIDS, fine=_FINE, listed=_LISTED, known=_lanes())
