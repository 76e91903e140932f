"""Streams that come piece by piece, made into rollouts: columns of one length, each of one stream.

A learner without a memory wants many games that advance together. Arcade clients do not: each sends its frames when it
has some. So a column is cut from a stream as soon as it is long enough, and a rollout is as many of them as are wanted.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.learn.pqn import Rollout

Floats = npt.NDArray[np.float32]


class Moves(NamedTuple):
    """Moves of one stream, in their order, and what came of each."""

    observations: Floats
    actions: npt.NDArray[np.int64]
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]  # nothing is known of what came of it, and the stream ends
    advice: npt.NDArray[np.int64]

    def part(self, which: Any) -> "Moves":
        return Moves._make([array[which] for array in self])


class Columns:
    """What has come of each stream and is not part of a rollout yet."""

    def __init__(self, horizon: int, width: int, see: Callable[[Floats, Floats], None]):
        """`see` writes what the learner sees of observations, `width` numbers each, into an array."""
        self.horizon, self.width, self.see = horizon, width, see
        self.pending: dict[int, Moves] = {}  # by stream: fewer than a column
        self.ready: list[Moves] = []  # columns, one move longer than the horizon

    def add(self, streams: npt.NDArray[np.int64], moves: Moves) -> None:
        """Moves of several streams, each in its order."""
        for stream in np.unique(streams).tolist():
            self._add(stream, moves.part(streams == stream))

    def _add(self, stream: int, moves: Moves) -> None:
        before = self.pending.pop(stream, None)
        if before is not None:
            moves = Moves._make([np.concatenate(pair) for pair in zip(before, moves, strict=True)])
        end = self.horizon + 1
        while len(moves.actions):
            cut = np.flatnonzero(moves.truncated[:end])
            if len(cut) and cut[0] < self.horizon:  # too short for a column
                moves = moves.part(slice(cut[0] + 1, None))
            elif len(moves.actions) >= end:
                self.ready.append(moves.part(slice(end)))
                moves = moves.part(slice(end if len(cut) else self.horizon, None))
            else:
                self.pending[stream] = moves
                return

    def rollout(self, least: int) -> Rollout | None:
        """All columns there are, if they are at least so many; what the moves were worth when made is not known."""
        if len(self.ready) < least:
            return None
        ready, self.ready = self.ready, []
        found = Rollout.empty(self.horizon, len(ready), self.width)
        found.values[:] = np.nan
        for game, moves in enumerate(ready):
            self.see(moves.observations, seen := np.empty((self.horizon + 1, self.width), np.float32))
            found.features[:, game] = seen
            for name in ("actions", "rewards", "terminated", "advice"):
                getattr(found, name)[:, game] = getattr(moves, name)[:-1]
        return found

    def forget(self, streams: Iterable[int]) -> None:
        """These streams do not go on."""
        for stream in streams:
            self.pending.pop(stream, None)
