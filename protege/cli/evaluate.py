"""`protege eval` of a game that brings none of its own, and figures of players as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tyro.conf import UseAppendAction

from protege.cli.options import RunsOptions
from protege.cli.tables import number, print_json, print_table
from protege.games import Figures, Game
from protege.machine import usable_cores

UNSEEN: Final = ("player", "games", "seed", "seconds")  # in the title, or of no interest


@dataclass(frozen=True, kw_only=True)
class Eval(RunsOptions):
    """Evaluate players: every player plays the same games, each fixed by its seed."""

    # Who plays: a scripted player, a champion, the name of a run, the path of a checkpoint, or your own
    # package.module:Class. May be given several times. Without it, the champion, or else the first scripted player.
    player: UseAppendAction[tuple[str, ...]] = ()
    games: int = 200  # games for each player
    seed: int = 1  # seed of the games: the same seed gives the same games
    threads: int = 0  # threads that play; 0 for one per core
    json: bool = False  # also print one flat JSON object for each player, the last line among them


def run_eval(game: Game, command: Eval) -> int:
    players = game.players()
    names = command.player or [*players.champions, *players.scripted][:1]
    for name in names:
        players.find(name, command.runs)  # before the first game: a typo costs no time
    given = {"games": command.games, "seed": command.seed, "threads": command.threads}
    return print_json(command, *measure_all(game, names, **given, runs=command.runs))


def measure_all(
    game: Game, names: Sequence[str], *, games: int, seed: int = 1, threads: int = 0, runs: Path | None = None
) -> list[Figures]:
    """Figures of players on the same games, also printed."""
    threads = threads or usable_cores()
    results = [game.measure(name, games=games, seed=seed, threads=threads, runs=runs) for name in names]
    print_results(game, results, f"{game.title}, {games} games each, seed {seed}")
    return results


def print_results(game: Game, results: Sequence[Figures], title: str) -> None:
    """A row for each player, as the game shows them, or else with every figure."""
    head, rows = (game.table or _every_figure)(results)
    numbers = tuple(i for i in range(1, len(head)) if all(row[i][:1] in "+-0123456789" for row in rows))
    print_table(title, head, rows, numbers, wrap=False)


def _every_figure(results: Sequence[Figures]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    first = results[0]
    ends = {f"{name}{end}" for name in first for end in ("_low", "_high")}
    names = [name for name in first if name not in ends and name not in UNSEEN]
    rows = [[str(result["player"]), *(_cell(result, name) for name in names)] for result in results]
    return ["player", *(name.replace("_", " ") for name in names)], rows


def _cell(result: Figures, name: str) -> str:
    def text(value: Any) -> str:
        return number(value) if isinstance(value, int | float) else str(value)

    if f"{name}_low" in result:
        return f"{text(result[name])} ({text(result[f'{name}_low'])}–{text(result[f'{name}_high'])})"
    return text(result[name])
