"""The commands: reads the command line, wires the parts together, and turns errors into one line.

Everything heavy is imported inside the command that needs it, so `protege --help` answers at once.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction, subcommand

from protege import ProtegeError, __version__

Game = Literal["tempest"]
Benchmark = Literal["tempest-sim"]

USAGE_ERROR = 2
INTERRUPTED = 130  # what a shell reports for a program ended by Ctrl-C
BROKEN_PIPE = 141  # and for one whose reader went away


@dataclass(frozen=True)
class Eval:
    """Measure players: every player plays the same games, each fixed by its seed."""

    game: Positional[Game]  # the game to play
    # Who plays: teacher, teacher-full, random, or your own package.module:Class. Without it, teacher.
    player: UseAppendAction[tuple[str, ...]] = ()
    games: int = 200  # games for each player
    seed: int = 1  # the games follow from this number: the same seed gives the same games
    level: int = 1  # the level to start at, 1 to 99
    difficulty: Literal["easy", "medium", "hard"] = "medium"  # the cabinet's difficulty switch
    lives: int = 3  # lives at the start
    max_frames: int = 200_000  # a game still running after so many frames is cut and counted as truncated
    threads: int = 0  # threads that play; 0 uses every core
    json: bool = False  # also print one flat JSON object for each player, the last line among them


@dataclass(frozen=True)
class Record:
    """Record a game as a GIF, MP4 or WebM file."""

    game: Positional[Game]  # the game to play
    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    player: str = "teacher"  # who plays: teacher, teacher-full, random, or your own package.module:Class
    seed: int = 1  # the game follows from this number
    level: int = 1  # the level to start at
    best_of: int = 1  # play so many games and record the one with the highest score
    seconds: float = 45.0  # keep the last so many seconds of the game; 0 keeps all of it
    size: int = 360  # width and height of the picture


@dataclass(frozen=True)
class Bench:
    """Measure how fast something is on this machine, beside a baseline in the same run."""

    name: Positional[Benchmark]  # what to measure
    seconds: float = 10.0  # about how long each part is measured
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class Doctor:
    """Say what works on this machine and what to do about what does not."""

    full: bool = False  # also start torch and try its devices: a few seconds more
    json: bool = False  # also print one flat JSON object on the last line


def run_eval(command: Eval) -> int:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from protege.tempest.players import TABLE_HEAD, find_player, measure, table_rows
    from protege.tempest.sim import Cabinet

    names = command.player or ("teacher",)
    players = [find_player(name) for name in names]  # all of them before the first game: a typo costs no time
    cabinet = Cabinet(lives=command.lives, difficulty=command.difficulty)
    results = [
        measure(
            name,
            player=player,
            games=command.games,
            seed=command.seed,
            level=command.level,
            cabinet=cabinet,
            max_frames=command.max_frames,
            threads=command.threads or os.cpu_count() or 1,
        )
        for name, player in zip(names, players, strict=True)
    ]
    title = f"Tempest from level {command.level}, {command.games} games each, seed {command.seed}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in TABLE_HEAD:
        table.add_column(
            name, no_wrap=name != TABLE_HEAD[-1], justify="left" if name in ("player", TABLE_HEAD[-1]) else "right"
        )
    for line in table_rows(results):
        table.add_row(*line)
    Console().print(table)
    if command.json:
        for result in results:
            print(json.dumps(result))
    return 0


def run_record(command: Record) -> int:
    from protege.tempest.players import record

    made = record(
        command.player,
        command.out,
        seed=command.seed,
        level=command.level,
        best_of=command.best_of,
        seconds=command.seconds,
        size=command.size,
    )
    part = "the whole game" if made["first_tick"] == 0 else f"the last {command.seconds:g} seconds"
    print(
        f"{made['file']}: {part} of {made['player']}, seed {made['seed']} game {made['game']}, "
        f"{made['score']:,} points, level {made['level']} ({made['bytes'] / 1e6:.1f} MB)"
    )
    return 0


def run_bench(command: Bench) -> int:
    from rich.console import Console
    from rich.table import Table

    from protege.bench import run_benchmark

    figures = run_benchmark(command.name, seconds=command.seconds)
    table = Table("figure", "value", title=command.name, title_justify="left")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if command.json:
        print(json.dumps(figures))
    return 0


def run_doctor(command: Doctor) -> int:
    from protege.doctor import report

    return report(full=command.full, as_json=command.json)


Command = (
    Annotated[Eval, subcommand("eval")]
    | Annotated[Record, subcommand("record")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Doctor, subcommand("doctor")]
)
RUN: dict[type[Any], Callable[[Any], int]] = {
    Eval: run_eval,
    Record: run_record,
    Bench: run_bench,
    Doctor: run_doctor,
}
DESCRIPTION = f"""Protege {__version__} trains game agents that outplay their teachers.

  protege doctor                                                        what works on this machine
  protege eval tempest --player teacher --player random --games 200     who scores how much
  protege record tempest --player teacher --seed 7 --out game.gif       a game to look at
  protege bench tempest-sim                                             how fast the simulator is here

"protege COMMAND --help" explains each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for a mistake the user can mend, or what the command says."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        print(f"protege {__version__}")
        return 0
    try:
        command = tyro.cli(
            Command,
            prog="protege",
            description=DESCRIPTION,
            args=arguments or ["--help"],
            config=(FlagCreatePairsOff,),
        )
        code = RUN[type(command)](command)
        sys.stdout.flush()  # a reader that went away shows here, where it is caught, not at exit
        return code
    except ProtegeError as error:
        print(f"protege: {' '.join(str(error).split())}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the exit has nothing left to flush
        return BROKEN_PIPE


if __name__ == "__main__":
    sys.exit(main())
