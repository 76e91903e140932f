"""A table for any game that somebody brings: a Gymnasium environment, or a class of games as arrays."""

import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protege.games import Figures, Game
from protege.games.own.commands import commands

if TYPE_CHECKING:
    from protege.games.own.world.arena import World
    from protege.train.session import Trainer

Worlds = Callable[..., "World"]  # (teacher, pictures=): by the place of a teacher, or without one


def trainer(name: str, worlds: Worlds) -> "Trainer":
    """How such a game is learned."""
    from protege.games.own.training.trainer import trainer_of

    return trainer_of(name, worlds)


def measure(
    name: str, worlds: Worlds, player: str, *, games: int, seed: int = 1, threads: int = 1, runs: Path | None = None
) -> Figures:
    """Returns of whole episodes."""
    from protege.games.own.commands import measured

    return measured(name, worlds, player, games=games, seed=seed, runs=runs)


def table(results: Sequence[Figures]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Figures as people read them."""
    from protege.games.own.agents.players import TABLE_HEAD, table_rows

    return TABLE_HEAD, table_rows(results)


def players(worlds: Worlds) -> Any:
    from protege.games.own.agents.players import players_of

    return players_of(worlds(""))


def next_steps(place: str, run: str, config: Any, runs: Path | None) -> Sequence[tuple[str, str]]:
    """What to do with a pupil that was trained."""
    beside = " --player teacher" if config.teacher else ""
    return [
        ("Watch it play", f"protege watch {place} --player {run}"),
        ("Measure it again", f"protege eval {place} --player {run}{beside} --player random --games 500"),
    ]


def contests(worlds: Worlds) -> Any:
    from protege.games.own.agents.contest import contests_of

    return contests_of(worlds)


def views(name: str, worlds: Worlds, runs: Path | None, more_players: Sequence[Any]) -> Any:
    from protege.games.own.page.views import OwnViews

    return OwnViews(name, worlds, runs, more_players)


def game_of(name: str, place: str, title: str, worlds: Worlds, about: str) -> Game:
    """The table of the game at a place."""

    def teachers(config: Any) -> Sequence[str]:
        named = f"teacher={config.teacher}" if config.teacher else "teacher"
        return (named, "random") if worlds(config.teacher).teaches else ("random",)

    return Game(
        name=name,
        title=title,
        about=about,
        unit="frame",
        trainer=partial(trainer, name, worlds),
        players=partial(players, worlds),
        measure=partial(measure, name, worlds),
        score="return_mean",
        table=table,
        teachers=teachers,
        contests=partial(contests, worlds),
        views=partial(views, name, worlds),
        commands=commands(name, place, worlds),
        next_steps=partial(next_steps, place),
        place=place,
    )


def gym_game(place: str) -> Game:
    """A Gymnasium environment: `gym:ID`, or `gym:MODULE:ID` to import its registration first."""
    from protege.games.own.world.copies import gym_world, name_of, registered

    return game_of(name_of(place), place, registered(place).id, partial(gym_world, place), "a Gymnasium environment")


def squad_game(place: str) -> Game:
    """A parallel PettingZoo environment: `pettingzoo:MODULE`, the module that has `parallel_env`."""
    from protege.games.own.world.zoo import squad_world

    world = squad_world(place)
    return game_of(world.name, place, world.title, partial(squad_world, place), "a PettingZoo environment")


def array_game(games: type[Any], *, name: str, title: str = "", about: str = "a game of your own") -> Game:
    """A class of games as arrays (`protege.games.own.world.arena.Games`); a file of your own sets GAME to this.

    A method `teacher(self)`, which gives the actions of a scripted player in all games, makes it somebody to outplay.
    """
    module = games.__module__
    place = f"{module}:GAME" if "." in module else os.path.relpath(inspect.getfile(games))

    def world(teacher: str, pictures: bool = False) -> "World":
        from protege.games.own.world.arrays import array_world

        return array_world(games, name, place, title or name, teacher)

    return game_of(name, place, title or name, world, about)
