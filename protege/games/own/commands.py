"""Commands of any game that somebody brings: players measured, the game itself checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import UseAppendAction

from protege.cli.tables import print_json, print_table
from protege.games import Command, Figures

if TYPE_CHECKING:
    from protege.games.own.world.arena import World

Worlds = Callable[[str], "World"]


@dataclass(frozen=True)
class Eval:
    """Evaluate players: every player plays the same episodes, each fixed by its seed."""

    # Who plays: teacher, random, the name of a run, the path of a checkpoint, or your own package.module:Class. May be
    # given several times.
    player: UseAppendAction[tuple[str, ...]] = ("random",)
    teacher: str = ""  # package.module:name of the teacher; without it, that of the runs named, or of the newest
    games: int = 200  # episodes for each player
    seed: int = 1  # seed of the episodes: the same seed gives the same episodes
    longest: int = 20_000  # frames after which an episode is truncated, and counted as such
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object for each player, the last line among them


def run_eval(name: str, worlds: Worlds, command: Eval) -> int:
    from protege.games.own.agents.players import TABLE_HEAD, evaluate, players_of, table_rows, teacher_of

    teacher = command.teacher or ("teacher" in command.player and teacher_of(name, command.player, command.runs)) or ""
    world = worlds(teacher)
    players = players_of(world)
    found = [players.find(player, command.runs) for player in command.player]  # a typo costs no time
    given: dict[str, Any] = {"games": command.games, "seed": command.seed, "longest": command.longest}
    results = [evaluate(world, who, player, **given) for who, player in zip(command.player, found)]
    title = f"{world.title}, {command.games} episodes each, seed {command.seed}"
    print_table(title, TABLE_HEAD, table_rows(results), tuple(range(2, len(TABLE_HEAD))), wrap=False)
    return print_json(command, *results)


@dataclass(frozen=True)
class Doctor:
    """Check a game: spaces, Gymnasium's own checker, seeding, determinism, speed, its teacher, what training costs."""

    teacher: str = ""  # package.module:name of a teacher to try
    json: bool = False  # also print one flat JSON object on the last line


def run_doctor(name: str, worlds: Worlds, command: Doctor) -> int:
    from protege.games.own.checks import checks

    rows = checks(name, worlds, command.teacher)
    print_table(name, ("", "", "found", "remark"), [[row.state, row.name, row.found, row.advice] for row in rows])
    found: dict[str, Any] = {"ok": all(row.state == "ok" for row in rows)}
    for row in rows:
        found |= {row.name: row.found, f"{row.name}_ok": row.state == "ok"}
    print_json(command, found)
    return 0 if found["ok"] else 1


def measured(name: str, worlds: Worlds, player: str, *, games: int, seed: int, runs: Path | None) -> Figures:
    """Figures of one player by name."""
    from protege.games.own.agents.players import evaluate, players_of, teacher_of

    world = worlds(teacher_of(name, (), runs) if player == "teacher" else "")
    return evaluate(world, player, players_of(world).find(player, runs), games=games, seed=seed)


def commands(name: str, worlds: Worlds) -> Mapping[str, Command]:
    bound = (name, worlds)
    return {"eval": Command(Eval, partial(run_eval, *bound)), "doctor": Command(Doctor, partial(run_doctor, *bound))}
