"""The task as Gymnasium environments: one game (`TempestEnv`) or many (`TempestVectorEnv`).

Both are skins over `_Episodes`, which keeps track of `env.Games`: who needs a new game, what ended and why. Whatever
they hand out is a copy. Both play the same games for the same seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from protege import ProtegeError
from protege.games.tempest.rules import levels, ram, sim
from protege.games.tempest.task import drawing
from protege.games.tempest.task.actions import ACTIONS, joint_actions
from protege.games.tempest.task.env import Games, from_snapshot
from protege.games.tempest.task.observation import HIDDEN, VALUES
from protege.seeds import TRAINING, seed_of

Observations = npt.NDArray[np.float32]  # (195,), or (games, 195)
Flags = npt.NDArray[np.bool_]  # (games,)
Ints = npt.NDArray[np.int64]  # (games,)
Info = dict[str, Any]

EPISODES: Final = ("game", "life")
REWARDS: Final = ("shaped", "score")
METADATA: Final = {"render_modes": ["rgb_array"], "render_fps": ram.TICKS_PER_SECOND}


@dataclass(frozen=True)
class Options:
    """What can be chosen when an environment is made."""

    level: int = 1  # where games start, 1 to 99
    lives: int = 3  # lives per game, 2 to 5
    bonus: int = 2  # an extra life every so many ten thousand points, 0 = never, 7 at most
    difficulty: str = "medium"  # easy, medium or hard
    episode: str = "game"  # what an episode is: a "game" or a "life"; the next life goes on with the same game
    reward: str = "shaped"  # "shaped" for points and lane safety, scaled and clipped; "score" for the points gained
    max_frames: int | None = None  # a game is cut (truncated) after so many frames
    visible_only: bool = False  # hide the counters that a person at the machine cannot see: they read 0
    cabinet: sim.Cabinet = field(init=False)  # lives, bonus and difficulty as the simulator takes them

    def __post_init__(self) -> None:
        for name in ("level", "lives", "bonus"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer):
                raise ProtegeError(f"{name} must be a whole number; got {value!r}")
        if not 1 <= self.level <= levels.LAST_LEVEL:
            raise ProtegeError(f"level must be 1 to {levels.LAST_LEVEL}; got {self.level}")
        for name, choices in (("episode", EPISODES), ("reward", REWARDS)):
            if getattr(self, name) not in choices:
                raise ProtegeError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        limit = 1 if self.max_frames is None else self.max_frames
        if not isinstance(limit, int | np.integer) or limit < 1:
            raise ProtegeError(f"max_frames must be a whole number from 1 on, or None for no limit; got {limit!r}")
        object.__setattr__(self, "cabinet", sim.Cabinet(int(self.lives), int(self.bonus), self.difficulty))


class _Episodes:
    """Games and their episodes: begins, plays and ends them."""

    def __init__(self, count: int, options: Options, render_mode: str | None, threads: int = 1):
        if render_mode not in ("rgb_array", None):
            raise ProtegeError(f"render_mode must be rgb_array or None; got {render_mode!r}")
        self.options = options
        self.draws = render_mode is not None
        self.games = Games(np.zeros((count, ram.ROW_BYTES), np.uint8), threads=threads)
        self.seeded = False
        self.begun = False
        self.ended = np.ones(count, np.bool_)
        self._resumes = np.zeros(count, np.bool_)  # a life has ended, its game goes on
        self._seeds = [0] * count
        self._number = [0] * count  # of the next game of that seed
        self._score = np.zeros(count, np.int64)

    def seed(self, seeds: Sequence[int]) -> None:
        """Games from here on are number 0, 1, ... of these seeds."""
        count = len(self._seeds)
        if len(seeds) != count:
            raise ProtegeError(f"{count} seeds are needed, one for each game; got {len(seeds)}")
        self._seeds, self._number = [int(seed) for seed in seeds], [0] * count
        self._resumes[:] = False
        self.seeded = True

    def begin(self, which: Ints) -> None:
        """The next episode of these games: the next life where one was lost and the game goes on, else a new game."""
        for g in which[~self._resumes[which]].tolist():
            seed = seed_of(TRAINING, self._seeds[g], self._number[g])
            self._put(g, sim.start_game(self.options.level, self.options.cabinet, seed))
            self._number[g] += 1
        self.ended[which] = self._resumes[which] = False
        self.begun = True

    def restore(self, game: int, state: bytes) -> None:
        row = from_snapshot(state)
        if not ram.in_control(row) and not sim.is_over(row):
            raise ProtegeError(
                "a state must be that of a frame, a tick in which the player has control, or of a finished game; got "
                f"game state {row[ram.GAME_STATE]} in mode {row[ram.GAME_MODE]}: use what get_state() gave"
            )
        self._put(game, row)
        self.ended[game] = sim.is_over(row) or self._cut()[game]
        self._resumes[game] = False
        self.begun = True

    def check_begun(self) -> None:
        if not self.begun:
            raise ProtegeError("there is no game yet: call reset() first")

    def play(self, actions: Ints, waiting: Flags) -> tuple[npt.NDArray[np.float64], Flags, Flags]:
        """One frame of all games except those `waiting`: reward, terminated, truncated."""
        rows, frames, playing = self.games.rows, self.games.frames, ~waiting
        states = rows[waiting, ram.GAME_STATE]
        rows[waiting, ram.GAME_STATE] = ram.HIGH_SCORE_CHECK  # finished games stand still
        self.games.step(actions)
        rows[waiting, ram.GAME_STATE] = states
        over, cut = frames.over & playing, self._cut() & playing
        lost = frames.terminated & playing
        terminated = lost | over if self.options.episode == "life" else over
        truncated = cut & ~terminated
        self.ended = terminated | truncated
        self._resumes = terminated & ~over & ~cut
        gained, self._score = frames.score - self._score, frames.score.copy()
        reward = frames.reward if self.options.reward == "shaped" else gained
        return reward.astype(np.float64), terminated, truncated

    def observation(self) -> Observations:
        """The coming frame of every game: (games, 195)."""
        observation = self.games.frames.observation.copy()
        if self.options.visible_only:
            observation[:, list(HIDDEN)] = 0.0
        return observation

    def info(self) -> dict[str, Ints]:
        """What is known of every game beside the observation."""
        frames = self.games.frames
        known = {name: getattr(frames, name).copy() for name in ("score", "level", "lives", "frame")}
        bonus = self._words(ram.START_BONUS).copy()
        return known | {"start_bonus": bonus, "teacher_action": joint_actions(frames.advice)}

    def deaths(self) -> dict[str, Ints]:
        return {f"deaths_{name}": self._words(ram.DEATHS + 8 * i).copy() for i, name in enumerate(ram.DEATH_NAMES)}

    def pictures(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Every game as pixels."""
        if not self.draws:
            raise ProtegeError('this environment does not draw: make it with render_mode="rgb_array"')
        self.check_begun()
        return tuple(drawing.render(row) for row in self.games.rows)

    def _words(self, address: int) -> Ints:
        return self.games.rows.view(np.int64)[:, address // 8]

    def _put(self, game: int, row: ram.Row) -> None:
        self.games.put(np.array([game]), row[None])
        self._score[game] = self.games.frames.score[game]

    def _cut(self) -> Flags:
        return self.games.frames.frame >= (self.options.max_frames or math.inf)


def _checked(actions: Any, shape: tuple[int, ...], what: str) -> Ints:
    """Joint actions of this shape; anything else is refused."""
    given = np.asarray(actions)
    numbers = given.dtype.kind in "iu" and given.shape == shape
    if not numbers or given.size and not 0 <= given.min() <= given.max() < len(ACTIONS):
        raise ProtegeError(f"{what} 0 to {len(ACTIONS) - 1}; got {actions!r}")
    return given.astype(np.int64)


def _spaces() -> tuple[gymnasium.Space[Observations], gymnasium.Space[np.int64]]:
    observations: Any = gymnasium.spaces.Box(-1.0, 1.0, (VALUES,), np.float32)  # typed only as some kind of number
    return observations, gymnasium.spaces.Discrete(len(ACTIONS))


class TempestEnv(gymnasium.Env[Observations, np.int64]):
    """One game of Tempest."""

    metadata = METADATA

    def __init__(self, *, render_mode: str | None = None, **options: Any):
        """`options` are the fields of `Options`."""
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces()
        self._episodes = _Episodes(1, Options(**options), render_mode)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Info]:
        """Begin the next episode. The first game after a seed is always the same; further resets give further games."""
        super().reset(seed=seed)
        if seed is not None or not self._episodes.seeded:
            self._episodes.seed([int(self.np_random.integers(2**63)) if seed is None else seed])
        self._episodes.begin(np.array([0]))
        return self._episodes.observation()[0], self._info()

    def step(self, action: np.int64 | int) -> tuple[Observations, float, bool, bool, Info]:
        self._episodes.check_begun()
        chosen = _checked(action, (), "an action is a whole number")
        if self._episodes.ended[0]:
            raise ProtegeError("this episode has ended: call reset() to begin the next one")
        reward, terminated, truncated = self._episodes.play(chosen[None], np.zeros(1, np.bool_))
        observation = self._episodes.observation()[0]
        return observation, float(reward[0]), bool(terminated[0]), bool(truncated[0]), self._info()

    def render(self) -> npt.NDArray[np.uint8]:
        """The game as pixels (480, 480, 3)."""
        return self._episodes.pictures()[0]

    def get_state(self) -> bytes:
        """The whole game; `set_state` goes on from it, in this environment or another one."""
        self._episodes.check_begun()
        return self._episodes.games.snapshot(0)

    def set_state(self, state: bytes) -> tuple[Observations, Info]:
        """Go on from what `get_state` or `Games.snapshot` gave. Answers as `reset` does; later resets are as before."""
        self._episodes.restore(0, state)
        return self._episodes.observation()[0], self._info()

    def _info(self) -> Info:
        info = self._episodes.info()
        if self._episodes.ended[0]:
            info |= self._episodes.deaths()
        return {name: int(numbers[0]) for name, numbers in info.items()}


class TempestVectorEnv(gymnasium.vector.VectorEnv[Observations, Ints, npt.NDArray[Any]]):
    """Many games of Tempest, all advanced by one call of compiled code.

    After an episode's end the next step begins the game's next episode instead of playing: its action is ignored, its
    reward is 0. Game i of seed s is the game of a `TempestEnv` with seed s + i.
    """

    metadata = METADATA | {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs: int = 1, *, render_mode: str | None = None, threads: int = 1, **options: Any):
        """`options` are the fields of `Options`; `threads` share the games among them."""
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ProtegeError(f"{name} must be a whole number from 1 on; got {value!r}")
        self.num_envs = int(num_envs)
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._episodes = _Episodes(self.num_envs, Options(**options), render_mode, min(int(threads), self.num_envs))

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, Info]:
        """Begin the next episode of every game; a number seeds game i with seed + i, a list gives each its own."""
        if isinstance(seed, int | np.integer):
            super().reset(seed=int(seed))
            seed = [int(seed) + i for i in range(self.num_envs)]
        elif seed is None and not self._episodes.seeded:
            first = int(self.np_random.integers(2**63))
            seed = [first + i for i in range(self.num_envs)]
        if seed is not None:
            self._episodes.seed(seed)
        self._episodes.begin(np.arange(self.num_envs))
        return self._episodes.observation(), self._infos()

    def step(self, actions: Ints) -> tuple[Observations, npt.NDArray[Any], Flags, Flags, Info]:
        self._episodes.check_begun()
        chosen = _checked(actions, (self.num_envs,), f"actions are {self.num_envs} whole numbers")
        waiting = self._episodes.ended.copy()
        if waiting.any():
            self._episodes.begin(np.flatnonzero(waiting))
        reward, terminated, truncated = self._episodes.play(chosen, waiting)
        return self._episodes.observation(), reward, terminated, truncated, self._infos()

    def render(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Every game as pixels (480, 480, 3)."""
        return self._episodes.pictures()

    def _infos(self) -> Info:
        """Gymnasium's form: an array for each key, and under `_key` which games it speaks of."""
        infos: Info = {}
        for name, values in self._episodes.info().items():
            infos[name], infos[f"_{name}"] = values, np.ones(self.num_envs, np.bool_)
        ended = self._episodes.ended
        if ended.any():
            for name, values in self._episodes.deaths().items():
                infos[name], infos[f"_{name}"] = np.where(ended, values, 0), ended.copy()
        return infos
