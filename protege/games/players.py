"""Players by name: scripted ones, champions, runs, checkpoints, and a user's own class."""

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from protege import ProtegeError
from protege.runs.metrics import near
from protege.runs.run import list_runs, weights_of

Player = TypeVar("Player")


class UnknownPlayer(ProtegeError):
    """A player that cannot be found or made."""


@dataclass(frozen=True)
class Players(Generic[Player]):
    """The players of one game."""

    scripted: Mapping[str, Callable[[], Player]]
    champions: Mapping[str, Path]  # weights that come with the game
    load: Callable[[Path], Player]  # a pupil from its weights; imports torch, which scripted players do without
    needs: str  # the method that a user's own player must have, and where it is explained

    def find(self, name: str, runs: Path | None = None) -> Player:
        """The player of this name; runs are looked for in the folder `runs`, or the usual one."""
        if name in self.scripted:
            return self.scripted[name]()
        if ":" in name and not Path(name).exists():
            own: Player = self._import(name)
            return own
        path = self.checkpoint_of(name, runs)
        if path is not None:
            return self.load(path)
        known = [*self.scripted, *self.champions]
        raise UnknownPlayer(
            f"no player named {name!r}: use {', '.join(known)}, the name of a run, the path of a checkpoint, "
            f"or package.module:Class for your own{near(name, [*known, *(run.name for run in list_runs(runs))])}"
        )

    def checkpoint_of(self, name: str, runs: Path | None = None) -> Path | None:
        """The file with the weights of a champion, a run or a path; None if there is none."""
        return weights_of(name, self.champions, runs)

    def _import(self, name: str) -> Any:
        module_name, _, class_name = name.partition(":")
        if "" not in sys.path:
            sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
        try:
            made = getattr(importlib.import_module(module_name), class_name)()
        except (ImportError, AttributeError, TypeError, ValueError) as problem:
            raise UnknownPlayer(
                f"cannot make player {name!r}: {problem}; expected an importable module and a class that needs no "
                "arguments"
            ) from problem
        if not callable(getattr(made, "act", None)):
            raise UnknownPlayer(f"player {name!r} has no method {self.needs}")
        return made
