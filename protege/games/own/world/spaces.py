"""Gymnasium's spaces as arrays: what is seen as a row of named numbers or a picture, what is done as whole numbers or
bounded ones. A space that cannot be either is refused.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from protege import ProtegeError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Space = spaces.Space[Any]

LEAST_PICTURE: Final = 8  # pixels: what has two axes and fewer in one of them is a table of numbers
MOST_CHANNELS: Final = 32
MOST_CHOICES: Final = 1024  # of a number that is seen as one of several


class UnsupportedSpace(ProtegeError):
    """Something to be seen or done that no network here can read or choose."""


@dataclass(frozen=True)
class Sight:
    """What is seen in each frame of a game."""

    space: Space
    names: tuple[str, ...]  # of the numbers, in their order; none for a picture
    shape: tuple[int, ...]  # of one observation in the arrays of a game: (numbers,), or that of the picture
    dtype: np.dtype[Any]
    channels_last: bool = False  # of a picture with three axes
    low: float = 0.0  # of a picture's pixels
    high: float = 1.0

    @property
    def is_picture(self) -> bool:
        return not self.names

    @property
    def picture(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        if len(self.shape) == 2:
            return (1, *self.shape)
        first, second, third = self.shape
        return (third, first, second) if self.channels_last else (first, second, third)

    @property
    def features(self) -> int:
        return math.prod(self.shape)

    def pixels(self, observations: Array) -> Floats:
        """Pictures as rows of numbers from 0 to 1, one channel after the other."""
        moved = np.moveaxis(observations, -1, 1) if self.channels_last else observations
        found = moved.reshape(len(moved), -1).astype(np.float32)
        if (self.low, self.high) != (0.0, 1.0):
            found = (found - np.float32(self.low)) / np.float32(self.high - self.low)
        return found

    def encode(self, observation: Any) -> Array:
        """One observation as the environment gives it, as an array of this shape; raises ValueError if it is none."""
        if isinstance(self.space, spaces.Box):
            found = np.asarray(observation)
            if found.shape != self.space.shape:
                raise ValueError(f"an observation of shape {self.space.shape} was expected, and {found.shape} came")
            return found if self.is_picture else found.reshape(-1)
        parts: list[Array] = []
        _flatten(self.space, observation, parts, "observation")
        return np.concatenate(parts)


def sight_of(space: Space, where: str) -> Sight:
    """How observations of this space are seen; `where` names the game in errors."""
    if isinstance(space, spaces.Box) and _is_picture(space):
        low, high = float(space.low.min()), float(space.high.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise UnsupportedSpace(f"{where}: pixels need bounds, and those of {space} have none")
        last = len(space.shape) == 3 and space.shape[2] <= MOST_CHANNELS and space.shape[2] <= space.shape[0]
        if len(space.shape) == 3 and min(space.shape[0], space.shape[2]) > MOST_CHANNELS:
            raise UnsupportedSpace(f"{where}: a picture has up to {MOST_CHANNELS} channels, first or last; got {space}")
        dtype = np.dtype(np.uint8) if space.dtype in (np.uint8, np.bool_) else np.dtype(np.float32)
        return Sight(space, (), space.shape, dtype, last, low, high)
    names = tuple(_names(space, "", where))
    if not names:
        raise UnsupportedSpace(f"{where}: there is nothing to see in the observation space {space}")
    return Sight(space, names, (len(names),), np.dtype(np.float32))


def _is_picture(space: spaces.Box) -> bool:
    small = space.dtype in (np.uint8, np.bool_)
    return len(space.shape) == 3 or len(space.shape) == 2 and small and min(space.shape) >= LEAST_PICTURE


def _names(space: Space, name: str, where: str) -> Iterator[str]:
    """What each number of a flattened observation is called."""
    match space:
        case spaces.Dict():
            for key, inner in space.spaces.items():
                yield from _names(inner, f"{name}.{key}" if name else str(key), where)
        case spaces.Tuple():
            for number, inner in enumerate(space.spaces):
                yield from _names(inner, f"{name}.{number}" if name else str(number), where)
        case spaces.Discrete() if space.n <= MOST_CHOICES:
            yield from (f"{name}={choice}" for choice in range(int(space.start), int(space.start + space.n)))
        case spaces.MultiDiscrete() if int(space.nvec.max()) <= MOST_CHOICES:
            for number, most in enumerate(space.nvec.ravel()):
                yield from (f"{name}[{number}]={choice}" for choice in range(int(most)))
        case spaces.Box() if _is_picture(space):
            raise UnsupportedSpace(
                f"{where}: a picture beside other observations ({name} is {space}) is not supported; leave one of the "
                "two out with a wrapper"
            )
        case spaces.Box() | spaces.MultiBinary():
            shape = tuple(space.shape or ())
            yield from (f"{name}{list(index) if shape else ''}" for index in np.ndindex(*shape))
        case _:
            raise UnsupportedSpace(
                f"{where}: observations in {space}{f' ({name})' * bool(name)} are not supported; expected Box, "
                f"Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them, with up to {MOST_CHOICES:,} choices"
            )


def _flatten(space: Space, value: Any, parts: list[Array], name: str) -> None:
    match space:
        case spaces.Dict():
            if not isinstance(value, Mapping) or set(value) != set(space.spaces):
                came = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
                raise ValueError(f"{name} with the keys {sorted(space.spaces)} was expected, and {came} came")
            for key, inner in space.spaces.items():
                _flatten(inner, value[key], parts, f"{name}.{key}")
        case spaces.Tuple():
            if not isinstance(value, Sequence) or len(value) != len(space.spaces):
                raise ValueError(f"{name} of {len(space.spaces)} parts was expected, and {value!r:.60} came")
            for number, inner in enumerate(space.spaces):
                _flatten(inner, value[number], parts, f"{name}.{number}")
        case spaces.Discrete() | spaces.MultiDiscrete():
            sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec).ravel()
            choices = np.atleast_1d(np.asarray(value)).ravel() - np.ravel(space.start)
            if len(choices) != len(sizes) or not ((choices >= 0) & (choices < sizes)).all():
                raise ValueError(f"{name} in {space} was expected, and {value!r:.60} came")
            for choice, size in zip(choices, sizes):
                parts.append(np.arange(size) == choice)
        case _:
            found = np.asarray(value)
            if found.shape != space.shape:
                raise ValueError(f"{name} of shape {space.shape} was expected, and {found.shape} came")
            parts.append(found.ravel())


@dataclass(frozen=True, eq=False)
class Moves:
    """What can be done in each frame: one choice, several at once, or bounded numbers."""

    space: Space
    kind: Literal["choice", "choices", "numbers"]
    sizes: tuple[int, ...] = ()  # choices of each factor
    low: Floats = field(default_factory=lambda: np.zeros(0, np.float32))  # of the numbers
    high: Floats = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def count(self) -> int:
        """Choices in a frame, or numbers."""
        return len(self.sizes) or len(self.low)

    @property
    def is_discrete(self) -> bool:
        return self.kind == "choice"

    def random(self, uniform: npt.NDArray[np.float64]) -> Array:
        """Moves from uniform numbers (games, count): indices of choices, or numbers between the bounds."""
        if self.kind == "numbers":
            return (self.low + uniform * (self.high - self.low)).astype(np.float32)
        found: Array = (uniform * np.array(self.sizes)).astype(np.int64)
        return found[:, 0] if self.kind == "choice" else found

    def to_env(self, moves: Array) -> Array:
        """As the environment takes them, for all games: choices begin where its space does."""
        if self.kind == "choice":
            return moves + int(self.space.start) if isinstance(self.space, spaces.Discrete) else moves
        shaped = moves.reshape(len(moves), *(self.space.shape or ()))
        start = getattr(self.space, "start", 0) if isinstance(self.space, spaces.MultiDiscrete) else 0
        return (shaped + start).astype(self.space.dtype)

    def from_env(self, actions: Any, games: int) -> Array:
        """Actions of so many games, as an environment or a teacher gives them; ValueError if one is illegal."""
        found = np.asarray(actions)
        if self.kind == "numbers":
            if found.dtype.kind not in "fiu" or found.size != games * self.count:
                raise ValueError(f"{self.count} numbers were expected, and {_short(actions)} came")
            found = found.reshape(games, -1).astype(np.float32)
            slack = 1e-5 * (self.high - self.low)
            legal = (found >= self.low - slack) & (found <= self.high + slack)  # false for what is not a number, too
            if not legal.all():
                raise ValueError(f"numbers in {self.space} were expected, and {_short(found[~legal.all(1)][0])} came")
            bounded: Array = np.clip(found, self.low, self.high)
            return bounded
        if found.dtype.kind not in "iub" or found.size != games * self.count:
            raise ValueError(f"an action in {self.space} was expected, and {_short(actions)} came")
        start = np.ravel(getattr(self.space, "start", 0)).astype(np.int64)
        chosen: Array = found.reshape(games, -1).astype(np.int64) - start
        if not ((chosen >= 0) & (chosen < np.array(self.sizes))).all():
            raise ValueError(f"an action in {self.space} was expected, and {_short(np.asarray(actions))} came")
        return chosen[:, 0] if self.kind == "choice" else chosen


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def moves_of(space: Space, where: str) -> Moves:
    """How actions of this space are chosen."""
    match space:
        case spaces.Discrete():
            return Moves(space, "choice", (int(space.n),))
        case spaces.MultiDiscrete():
            return Moves(space, "choices", tuple(int(size) for size in space.nvec.ravel()))
        case spaces.MultiBinary():
            return Moves(space, "choices", (2,) * math.prod(space.shape or ()))
        case spaces.Box() if np.isfinite(space.low).all() and np.isfinite(space.high).all() and space.dtype.kind == "f":
            low, high = (bound.ravel().astype(np.float32) for bound in (space.low, space.high))
            return Moves(space, "numbers", (), low, high)
    raise UnsupportedSpace(
        f"{where}: actions in {space} are not supported; expected Discrete, MultiDiscrete, MultiBinary, or a Box of "
        "floats with bounds"
    )
