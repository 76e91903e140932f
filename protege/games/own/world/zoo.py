"""Parallel PettingZoo environments as games of arrays: a row for each agent, the agents of a game in turn."""

import importlib
import sys
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl

import numpy as np

from protege.games.own.world.arena import Flags, GameFault, Ints, World
from protege.games.own.world.copies import AT_ONCE, literal, name_of, said
from protege.games.own.world.spaces import Array, sight_of
from protege.games.own.world.teacher import asks

PREFIX: Final = "pettingzoo:"


class Squads:
    """So many environments, stepped one after the other. All agents of one must see and do the same kinds of things."""

    def __init__(self, place: str, make: Callable[[], Any], games: int, teacher: str = ""):
        self.place, self.envs = place, [make() for _ in range(games)]
        first = self.envs[0]
        self.agents: list[Any] = list(first.possible_agents)
        self.observation_space: Any = first.observation_space(self.agents[0])
        self.action_space: Any = first.action_space(self.agents[0])
        for agent in self.agents[1:]:
            for kind, own in (("observation", self.observation_space), ("action", self.action_space)):
                other = getattr(first, f"{kind}_space")(agent)
                if other != own:
                    raise GameFault(
                        f"{place}: agents share one network, so their {kind} spaces must be alike; "
                        f"{self.agents[0]} has {own}, {agent} has {other}"
                    )
        self.sight = sight_of(self.observation_space, place)
        self.seen = np.zeros((games * len(self.agents), *self.sight.shape), self.sight.dtype)
        self.raw: list[Any] = [None] * len(self.seen)
        if teacher:
            self.ask, takes = asks(teacher)
            if takes not in ("observation", "observations"):
                raise GameFault(f"{place}: a teacher of a squad is a function over an agent's observation")
            self.batched = takes == "observations"
            self.teacher = self._teacher

    def _fault(self, what: str, game: int) -> GameFault:
        return GameFault(f"{self.place}: {what} (copy {game})")

    def _see(self, game: int, observations: Any) -> None:
        for number, agent in enumerate(self.agents, game * len(self.agents)):
            try:
                self.raw[number] = observations[agent]
                self.seen[number] = self.sight.encode(observations[agent])
            except KeyError as problem:
                raise self._fault(f"an observation of {agent} was expected, and none came", game) from problem
            except (ValueError, TypeError) as problem:
                raise self._fault(f"{agent}: {problem}", game) from problem

    def reset(self, which: Ints, seeds: Ints) -> None:
        for row, seed in zip(which.tolist(), seeds.tolist()):
            game, member = divmod(row, len(self.agents))
            if member == 0:
                try:
                    observations, _ = self.envs[game].reset(seed=seed)
                except Exception as problem:  # of a user's own code: it could be any
                    raise self._fault(f"reset raised {said(problem)}", game) from problem
                self._see(game, observations)

    def observe(self) -> Array:
        return self.seen

    def step(self, actions: Array) -> tuple[Array, Flags, Flags]:
        rewards = np.zeros(len(self.seen), np.float32)
        terminated, truncated = np.zeros((2, len(self.seen)), np.bool_)
        members = len(self.agents)
        chosen = actions.tolist() if actions.ndim == 1 else actions
        for game, env in enumerate(self.envs):
            rows = slice(game * members, (game + 1) * members)
            try:
                answer = env.step(dict(zip(self.agents, chosen[rows])))
                observations, earned, over, cut, _ = answer
                rewards[rows] = [float(earned[agent]) for agent in self.agents]
                over, cut = [bool(over[agent]) for agent in self.agents], [bool(cut[agent]) for agent in self.agents]
            except Exception as problem:  # of a user's own code: it could be any
                raise self._fault(f"step raised {said(problem)}", game) from problem
            gone = [one or other for one, other in zip(over, cut)]
            if any(gone) and not all(gone):
                raise self._fault("agents that leave before the others are not supported", game)
            terminated[rows], truncated[rows] = all(over), all(gone) and not all(over)
            self._see(game, observations)
        return rewards, terminated, truncated

    def _teacher(self) -> Any:
        try:
            if self.batched:
                return self.ask(self.seen)
            return np.stack([np.asarray(self.ask(seen)) for seen in self.raw])
        except Exception as problem:  # of a user's own code: it could be any
            raise GameFault(f"{self.place}: the teacher raised {said(problem)}") from problem

    def render(self, game: int) -> Any:
        return self.envs[game].render()

    def close(self) -> None:
        for env in self.envs:
            env.close()


def squad_world(place: str, teacher: str = "", pictures: bool = False) -> World:
    """The parallel environment of the module `pettingzoo:MODULE`; its arguments may follow as in an address."""
    module_name, _, given = place.removeprefix(PREFIX).partition("?")
    arguments = {key: literal(text) for key, text in parse_qsl(given)}
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
    try:
        module = importlib.import_module(module_name)
    except ImportError as problem:
        raise GameFault(f"{place}: module {module_name} cannot be imported: {problem}") from problem
    if not callable(getattr(module, "parallel_env", None)):
        raise GameFault(f"{place}: module {module_name} has no function parallel_env, as parallel environments have")

    def make() -> Any:
        try:
            return module.parallel_env(**arguments, **({"render_mode": "rgb_array"} if pictures else {}))
        except Exception as problem:  # of a user's own code: it could be any
            raise GameFault(f"{place} cannot be made: {said(problem)}") from problem

    def squads(games: int) -> Squads:
        return Squads(place, make, games, teacher)

    first = make()
    members = len(first.possible_agents)
    first.close()
    return World(name_of(place), place, module_name.rpartition(".")[2], squads, bool(teacher), AT_ONCE, members)
