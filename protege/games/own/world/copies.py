"""Copies of a Gymnasium environment as a game of arrays, with somebody's teacher beside each of them."""

import ast
import copy
import importlib
import re
import sys
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl

import gymnasium
import numpy as np

from protege.games.own.world.arena import Flags, GameFault, Ints, World
from protege.games.own.world.spaces import Array, sight_of
from protege.games.own.world.teacher import asks

PREFIX: Final = "gym:"
FIVE: Final = "step must give observation, reward, terminated, truncated and a dict"
AT_ONCE: Final = 16  # environments of an evaluation


class Copies:
    """So many environments, stepped one after the other. What one of them raises is told in one line."""

    def __init__(self, place: str, make: Callable[..., Any], games: int, teacher: str = ""):
        self.place = place
        self.envs = [make() for _ in range(games)]
        self.observation_space, self.action_space = self.envs[0].observation_space, self.envs[0].action_space
        self.sight = sight_of(self.observation_space, place)
        self.raw: list[Any] = [None] * games  # what each environment showed last, for the teacher
        self.seen = np.zeros((games, *self.sight.shape), self.sight.dtype)
        self.ask: Callable[..., Any] | None = None
        self.takes = ""
        if teacher:
            self.ask, self.takes = asks(teacher)
            self.teacher = self._teacher  # so that who has none does not look as if he had

    def _fault(self, what: str, game: int) -> GameFault:
        return GameFault(f"{self.place}: {what} (copy {game})")

    def _see(self, game: int, observation: Any) -> None:
        self.raw[game] = observation
        try:
            self.seen[game] = self.sight.encode(observation)
        except (ValueError, TypeError) as problem:
            raise self._fault(str(problem), game) from problem

    def reset(self, which: Ints, seeds: Ints) -> None:
        for game, seed in zip(which.tolist(), seeds.tolist()):
            try:
                answer = self.envs[game].reset(seed=seed)
            except TypeError as problem:
                if "seed" not in str(problem):
                    raise self._fault(f"reset raised {said(problem)}", game) from problem
                raise self._fault(f"reset must take a seed, reset(seed=..., options=...): {problem}", game) from problem
            except Exception as problem:  # of a user's own code: it could be any
                raise self._fault(f"reset raised {said(problem)}", game) from problem
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise self._fault(f"reset must give an observation and a dict, and gave {_kind(answer)}", game)
            self._see(game, answer[0])

    def observe(self) -> Array:
        return self.seen

    def step(self, actions: Array) -> tuple[Array, Flags, Flags]:
        rewards = np.zeros(len(self.envs), np.float32)
        terminated, truncated = np.zeros((2, len(self.envs)), np.bool_)
        for game, action in enumerate(actions.tolist() if actions.ndim == 1 else actions):
            try:
                answer = self.envs[game].step(action)
            except Exception as problem:  # of a user's own code: it could be any
                unpacked = "unpack" in str(problem)  # Gymnasium's wrappers take the answer apart
                raise self._fault(
                    f"{FIVE}: {problem}" if unpacked else f"step({action}) raised {said(problem)}", game
                ) from problem
            if not isinstance(answer, tuple) or len(answer) != 5:
                raise self._fault(f"{FIVE}, and gave {_kind(answer)}", game)
            observation, reward, over, cut, _ = answer
            if not isinstance(over, bool | np.bool_) or not isinstance(cut, bool | np.bool_):
                raise self._fault(
                    f"an episode ends with terminated or truncated True, else both are False; got {over!r} and {cut!r}",
                    game,
                )
            try:
                rewards[game] = float(reward)
            except (TypeError, ValueError) as problem:
                raise self._fault(f"a reward that is a number was expected, and {reward!r} came", game) from problem
            terminated[game], truncated[game] = over, cut
            self._see(game, observation)
        return rewards, terminated, truncated

    def _teacher(self) -> Any:
        assert self.ask is not None
        try:
            match self.takes:
                case "observations":
                    return self.ask(self.seen)
                case "both":
                    answers = [self.ask(env.unwrapped, seen) for env, seen in zip(self.envs, self.raw)]
                case "env":
                    answers = [self.ask(env.unwrapped) for env in self.envs]
                case _:
                    answers = [self.ask(seen) for seen in self.raw]
        except Exception as problem:  # of a user's own code: it could be any
            raise GameFault(f"{self.place}: the teacher raised {said(problem)}") from problem
        try:
            return np.stack([np.asarray(answer) for answer in answers])
        except (TypeError, ValueError) as problem:
            raise GameFault(f"{self.place}: the teacher's actions have different shapes: {problem}") from problem

    def render(self, game: int) -> Any:
        return self.envs[game].render()

    def close(self) -> None:
        for env in self.envs:
            env.close()


def said(problem: BaseException) -> str:
    """What was raised, in one line."""
    text = " ".join(str(problem).split())
    return f"{type(problem).__name__}: {text[:200]}" if text else type(problem).__name__


def _kind(answer: Any) -> str:
    return f"{len(answer)} things" if isinstance(answer, tuple) else f"a {type(answer).__name__}"


def registered(place: str) -> Any:
    """What Gymnasium knows of `gym:ID` or, with the module that registers it, `gym:MODULE:ID`.

    Arguments of the environment may follow, as in an address: `gym:LunarLander-v3?gravity=-5.0&enable_wind=True`.
    """
    named, _, given = place.removeprefix(PREFIX).partition("?")
    module, _, name = named.rpartition(":")
    if module:
        if "" not in sys.path:
            sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
        try:
            importlib.import_module(module)
        except ImportError as problem:
            raise GameFault(f"{place}: module {module} cannot be imported: {problem}") from problem
    try:
        spec = copy.deepcopy(gymnasium.spec(name))
        spec.kwargs |= {key: literal(text) for key, text in parse_qsl(given)}
        return spec
    except gymnasium.error.Error as problem:
        raise GameFault(f"{place}: there is no such environment: {_plain(problem)}") from problem


def literal(text: str) -> Any:
    """A Python literal, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def _plain(problem: BaseException) -> str:
    return " ".join(str(problem).split()).rstrip(".")


def name_of(place: str) -> str:
    """What runs of the environment at a place are called."""
    return re.sub(r"[^\w.-]+", "-", place)


def gym_world(place: str, teacher: str = "", pictures: bool = False) -> World:
    """The environment of this name, with a teacher if one is named; only who watches needs pictures."""
    spec = registered(place)

    def make() -> Any:
        try:
            return gymnasium.make(spec, disable_env_checker=True, render_mode="rgb_array" if pictures else None)
        except (gymnasium.error.Error, ImportError) as problem:
            raise GameFault(f"{place} cannot be made: {_plain(problem)}") from problem
        except Exception as problem:  # of a user's own code: it could be any
            raise GameFault(f"{place} cannot be made: {said(problem)}") from problem

    def copies(games: int) -> Copies:
        return Copies(place, make, games, teacher)

    return World(name_of(place), place, spec.id, copies, bool(teacher), AT_ONCE)
