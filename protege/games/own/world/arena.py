"""Many games in step: what a game of arrays must have, and the arena that every learner and player meets it in.

The arena begins episodes from seeds, begins a new one where one has ended, and hands out the last observation of the
old one. Whatever a game gives is checked here, so that a mistake in it shows as one line, not as a NaN in a network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.own.world.spaces import Array, Moves, Sight, Space, moves_of, sight_of
from protege.seeds import seed_of

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MANY: Final = 1024  # games that arrays hold with ease
SEED_BITS: Final = 30  # and one for the domain: some environments take no more than 31


class GameFault(ProtegeError):
    """A game or its teacher that does not keep its own promises."""


class Games(Protocol):
    """So many games side by side, as arrays (games, ...). A class of a user's own needs no more than this.

    It is made with the number of games. `teacher(self)`, the actions of a scripted player in the frames as they are,
    `render(self, game)`, a picture (height, width, 3) of one of them, and `close(self)` may be left out.
    """

    observation_space: Space  # of one game
    action_space: Space

    def reset(self, which: Ints, seeds: Ints) -> None: ...  # begin these games anew, each from its seed
    def observe(self) -> Array: ...  # what is seen in each game now
    def step(self, actions: Array) -> tuple[Array, Array, Array]: ...  # rewards, terminated, truncated


@dataclass(frozen=True)
class World:
    """A game that can be played many times at once."""

    name: str  # of its runs and leagues
    place: str  # what a user types to name it
    title: str
    make: Callable[[int], Games]  # so many of them
    teaches: bool = False  # it has a teacher
    at_once: int = MANY  # games of an evaluation side by side
    members: int = 1  # of a squad: players of a game, who begin and end together, each with a row of its own
    version: int = 1  # of its rules, rewards and observations: checkpoints of another are refused

    @cached_property
    def spaces(self) -> tuple[Sight, Moves]:
        games = self.make(1)
        try:
            seen, done = games.observation_space, games.action_space
            return sight_of(seen, self.place), moves_of(done, self.place)
        finally:
            close(games)

    @property
    def kind(self) -> str:
        """Of checkpoints."""
        return f"{self.name}-pupil"

    @property
    def is_fast(self) -> bool:
        """Whether its games are arrays."""
        return self.at_once >= MANY

    @property
    def sight(self) -> Sight:
        return self.spaces[0]

    @property
    def moves(self) -> Moves:
        return self.spaces[1]


def close(games: Games) -> None:
    """Let go of what a game holds, if it holds anything."""
    getattr(games, "close", lambda: None)()


def uniform(seeds: Ints, numbers: Ints, count: int = 1) -> npt.NDArray[np.float64]:
    """Random numbers (games, count) from 0 to 1 that follow from each game's seed and a number, such as its frame.

    By splitmix64, for all games at once: a generator for each of them would take longer than many a game.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        place = numbers.astype(np.uint64) * np.uint64(count)
        state = seeds.astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + place * step
        z = state[:, None] + np.arange(1, count + 1, dtype=np.uint64) * step
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: npt.NDArray[np.float64] = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


class Episode(NamedTuple):
    """A game that has ended."""

    number: int  # of the episodes begun in this arena
    reward: float  # all of it, undiscounted; of a squad, the mean over its members
    frames: int
    truncated: bool


class Step(NamedTuple):
    """What the last actions led to; `arena.observation` holds what is seen now."""

    reward: npt.NDArray[np.float32]
    terminated: Flags
    truncated: Flags
    ended: Ints  # games that go on with a new episode
    last: Array  # (ended, ...) what was seen at the end of the old one


@dataclass
class Arena:
    """Games of one world, which begin again as they end. Its arrays have a row for each game, or for each member."""

    world: World
    count: int  # games; then, where games have members, rows
    domain: int  # of the seeds
    seed: int
    longest: int = 0  # frames after which an episode is truncated; 0 to leave that to the game
    begun: int = 0  # episodes so far, which the next seed follows from
    episodes: list[Episode] = field(default_factory=list)  # that have ended since somebody took them

    def __post_init__(self) -> None:
        self.games = self.world.make(self.count)
        self.count *= self.world.members
        self.sight, self.moves = self.world.spaces
        self.frame = np.zeros(self.count, np.int64)  # of the episode
        self.number, self.seeds = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self.total = np.zeros(self.count)
        self._begin(np.arange(self.count))
        self.observation = self._seen()

    def _begin(self, which: Ints) -> None:
        members = self.world.members
        games = len(which) // members  # members follow each other, and begin together
        self.number[which] = np.repeat(np.arange(self.begun, self.begun + games), members)
        self.begun += games
        self.seeds[which] = [
            seed_of(self.domain, self.seed, int(n)) & (1 << SEED_BITS) - 1 | self.domain << SEED_BITS
            for n in self.number[which]
        ]
        self.frame[which], self.total[which] = 0, 0.0
        self.games.reset(which, self.seeds[which])

    def _seen(self) -> Array:
        found = np.asarray(self.games.observe())
        wanted = (self.count, *self.sight.shape)
        if found.shape != wanted:
            raise self.fault(f"observations of shape {wanted} were expected, and {found.shape} came")
        found = found.astype(self.sight.dtype)  # always a copy: games may reuse their arrays
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            game, *place = (int(i) for i in np.argwhere(~np.isfinite(found))[0])
            value = self.sight.names[place[0]] if self.sight.names else f"pixel {place}"
            raise self.fault(f"a number was expected, and {found[(game, *place)]} came in observation {value}", game)
        return found

    def fault(self, what: str, game: int | None = None) -> GameFault:
        """What is wrong with this world, and where."""
        where = "" if game is None else f" (frame {self.frame[game]:,} of the episode with seed {self.seeds[game]})"
        return GameFault(f"{self.world.place}: {what}{where}")

    def step(self, moves: Array) -> Step:
        """Advance all games by one frame."""
        reward, terminated, truncated = self.games.step(self.moves.to_env(moves))
        reward = np.asarray(reward, np.float32)
        self.frame += 1
        for name, array in (("rewards", reward), ("terminated", terminated), ("truncated", truncated)):
            if np.shape(array) != (self.count,):
                raise self.fault(f"{name} of {self.count} games were expected, and shape {np.shape(array)} came")
        if not np.isfinite(reward).all():
            game = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise self.fault(f"a number was expected, and the reward {reward[game]} came", game)
        for name, array in (("terminated", terminated), ("truncated", truncated)):
            if np.asarray(array).dtype != np.bool_:
                raise self.fault(f"{name} must be True or False, and {np.asarray(array).dtype} came")
        self.total += reward
        if self.longest:
            truncated = truncated | (self.frame >= self.longest)
        truncated = truncated & ~terminated
        self.observation = self._seen()
        ended = np.flatnonzero(terminated | truncated)
        last = self.observation[ended]
        if len(ended):
            members = self.world.members
            earned = self.total[ended].reshape(-1, members).mean(1)
            self.episodes += [
                Episode(int(self.number[i]), float(reward), int(self.frame[i]), bool(truncated[i]))
                for i, reward in zip(ended[::members], earned)
            ]
            self._begin(ended)
            self.observation = self._seen()
        return Step(reward, terminated, truncated, ended, last)

    def advice(self) -> Array:
        """What the teacher would do in each game now."""
        ask = getattr(self.games, "teacher", None)
        if ask is None:
            raise GameFault(f"{self.world.place} has no teacher: name one with --teacher package.module:function")
        try:
            return self.moves.from_env(ask(), self.count)
        except ValueError as problem:
            raise self.fault(f"the teacher is wrong: {problem}") from problem

    def uniform(self) -> npt.NDArray[np.float64]:
        """Random numbers (games, count of a move) that follow from each game's seed and frame alone."""
        member = np.arange(self.count) % self.world.members
        return uniform(self.seeds, self.frame * self.world.members + member, self.moves.count)

    def taken_episodes(self) -> list[Episode]:
        """Those that have ended since the last call."""
        taken, self.episodes = self.episodes, []
        return taken

    def render(self, game: int = 0) -> npt.NDArray[np.uint8]:
        """A picture (height, width, 3) of one of the games."""
        draw: Any = getattr(self.games, "render", None)
        picture = None if draw is None else draw(game)
        if picture is None:
            raise GameFault(f"{self.world.place} has no pictures: it cannot be rendered as rgb_array")
        return np.asarray(picture, np.uint8)

    def close(self) -> None:
        close(self.games)
