"""Recorded games: how one began and every move in it, a few kilobytes for hours of play.

The simulator repeats a game exactly from these, so a recording can be watched, filmed and scrubbed like a live game.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules.ram import Row
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import TASK_VERSION, Frames

KIND: Final = "tempest-recording"
SUFFIX: Final = ".tempest"
NO_MOVE: Final = 255

Moves = npt.NDArray[np.uint8]  # joint actions, one for each frame


@dataclass(frozen=True)
class Recording:
    """A game that was played."""

    start: Row
    moves: Moves
    about: dict[str, Any]  # who played, the score, whatever else is known


def save_recording(path: Path, start: Row, moves: Moves, about: dict[str, Any]) -> None:
    """Write a recording in place of the one before; moves end at the first that was not made."""
    import torch  # takes a second, and those who only play need none

    from protege.runs import checkpoints

    unmade = np.flatnonzero(moves >= len(ACTIONS))
    played = moves[: unmade[0]] if len(unmade) else moves
    tensors = {"start": torch.from_numpy(start.copy()), "moves": torch.from_numpy(played.copy())}
    checkpoints.save(path, tensors, about, kind=KIND, task_version=TASK_VERSION)


def load_recording(path: Path) -> Recording:
    from protege.runs import checkpoints

    saved = checkpoints.load(path, kind=KIND, task_version=TASK_VERSION)
    return Recording(saved.tensors["start"].numpy(), saved.tensors["moves"].numpy(), saved.state)


class Replay:
    """The player that makes a recording's moves again; give it the recording's start."""

    def __init__(self, recording: Recording):
        self.moves, self.made = recording.moves, 0

    def is_finished(self) -> bool:
        """Whether every move has been made; the game may go on, if it was cut."""
        return self.made >= len(self.moves)

    def act(self, frames: Frames) -> npt.NDArray[np.int64]:
        """The next move, or standing still when the recording has ended."""
        move = 0 if self.is_finished() else int(self.moves[self.made])
        self.made += 1
        return np.array([move])
