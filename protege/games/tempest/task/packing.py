"""On which grid each of the 195 values lies, so that a memory keeps them in 16 bits and gives them back exactly.

Almost every value is a byte or a small number over a fixed denominator. Two kinds are not: enemy shots have 8.8 bits of
depth, and the lane of an enemy that is turning over has come p/q of its way, q at most 15. Values on these grids come
back bit for bit; anything else in [-1, 1] within 1/30,000.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.task import observation as layout
from protege.learn.packing import packing

_LISTED: Final = (layout.ENEMY_LANES, layout.RIM_LANES, layout.PULSAR_LANES, layout.TOP_RAIL_LANES)


def _lanes() -> npt.NDArray[np.float32]:
    """Every place relative to the player that an enemy can have, turning over or not, worked out as `observe` does."""
    relative, travelled, total = np.ogrid[-15:16, 0:16, 1:16]
    progress = np.minimum(travelled / total, 1.0)
    places = np.concatenate([(relative + progress - 1.0).ravel(), (relative - progress).ravel()])
    around = np.where(places > 8, places - 16, np.where(places < -8, places + 16, places))
    return (np.clip(np.concatenate([places, around]), -15, 15) / 15).astype(np.float32)


PACKING: Final = packing(
    layout.SCALES.tolist(), fine=tuple(range(layout.VALUES)[layout.ENEMY_SHOT_DEPTHS]),
    listed=tuple(i for part in _LISTED for i in range(layout.VALUES)[part]), known=_lanes(),
)  # fmt: skip
