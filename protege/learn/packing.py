"""Observations at half their size: 16 bits a value, and exactly the same numbers back where the game's grids are known.

A game says once on which grid each of its values lies (`packing`); `pack` and `unpack` do the rest, compiled.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.kernels import kernel

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int16]

MOST: Final = (1 << 15) - 1  # codes of values lie between -MOST and MOST
FINE: Final = 1 << 14  # codes per unit of a value with two codes; the second counts parts of 1 / (2 FINE) of the first


class Packing(NamedTuple):
    """How the values of an observation, all in [-1, 1], are kept.

    The code of a value is the whole number nearest to value * scale. If the scale is a multiple of m, multiples of
    1 / m come back exactly: dividing two whole numbers in 32 bits gives the same float as any other way to work out
    their ratio. Any other value comes back within half a code. `fine` values have a second code for what the first
    leaves over. `listed` values come back as the table says, which holds exact values for the codes they have.
    """

    scale: Floats  # (values,)
    fine: Ints
    listed: Ints
    table: Floats  # by code + MOST

    @property
    def columns(self) -> int:
        """Codes that an observation takes."""
        return len(self.scale) + len(self.fine)

    def fingerprint(self) -> str:
        """The same for two packings whose codes mean the same."""
        return hashlib.sha256(b"".join(part.tobytes() for part in self)).hexdigest()[:16]


def packing(
    grids: Sequence[int], *, fine: Sequence[int] = (), listed: Sequence[int] = (), known: npt.ArrayLike = ()
) -> Packing:
    """For values that are multiples of 1 / grid; except `fine` ones (parts of 2^29) and `listed` ones (those known)."""
    scale = np.array([MOST // grid * grid for grid in grids], np.float32)
    scale[list(fine)], scale[list(listed)] = FINE, MOST
    table = (np.arange(-MOST, MOST + 1) / MOST).astype(np.float32)
    values = np.unique(np.asarray(known, np.float32))
    codes = np.rint(values * np.float32(MOST)).astype(np.int64)
    assert len(np.unique(codes)) == len(codes), "known values too close together for 16 bits"
    table[codes + MOST] = values
    return Packing(scale, np.array(fine, np.int64), np.array(listed, np.int64), table)


@kernel
def first_foreign(observations: Floats) -> int:
    """The first of (n, values) that is not a number in [-1, 1], counted row by row; -1 if there is none."""
    values: int = observations.shape[1]
    for i in range(len(observations)):
        foreign = False
        for j in range(values):
            foreign |= not abs(observations[i, j]) <= 1
        if foreign:
            for j in range(values):
                if not abs(observations[i, j]) <= 1:
                    return i * values + j
    return -1


@kernel
def pack(observations: Floats, how: Packing, rows: Codes) -> None:
    """Observations (n, values) as codes (n, columns)."""
    count, values = observations.shape
    for i in range(count):
        for j in range(values):
            rows[i, j] = np.int16(np.rint(observations[i, j] * how.scale[j]))
        for k in range(len(how.fine)):
            rest = observations[i, how.fine[k]] - np.float32(rows[i, how.fine[k]]) / np.float32(FINE)
            rows[i, values + k] = np.int16(np.rint(rest * np.float32(2 * FINE * FINE)))


@kernel
def unpack(rows: Codes, how: Packing, observations: Floats) -> None:
    """The opposite of `pack`."""
    count, values = observations.shape
    for i in range(count):
        for j in range(values):
            observations[i, j] = np.float32(rows[i, j]) / how.scale[j]
        for k in range(len(how.fine)):
            observations[i, how.fine[k]] += np.float32(rows[i, values + k]) / np.float32(2 * FINE * FINE)
        for k in range(len(how.listed)):
            observations[i, how.listed[k]] = how.table[np.int64(rows[i, how.listed[k]]) + MOST]
