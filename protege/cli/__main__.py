"""The command line: reads it, runs the command, and turns errors into one line."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, OmitSubcommandPrefixes, Positional, subcommand

from protege import ProtegeError, __version__
from protege.cli.arcade import Mame, Serve, run_mame, run_serve
from protege.cli.echelon import Match, is_echelon, run_echelon, run_match
from protege.cli.league import LeagueCommands, run_league
from protege.cli.playing import (
    Dashboard,
    Eval,
    Export,
    Play,
    Record,
    Watch,
    run_dashboard,
    run_eval,
    run_export,
    run_play,
    run_record,
    run_watch,
)
from protege.cli.runs import Runs, run_runs
from protege.cli.train import Train, run_train

Benchmark = Literal[
    "tempest-sim", "tempest-profile", "train", "dashboard", "replay", "rainbow-update", "bridge", "echelon-sim", "ppo"
]

USAGE_ERROR = 2
INTERRUPTED = 130  # what a shell reports for a program ended by Ctrl-C
BROKEN_PIPE = 141  # and for one whose reader went away


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


def run_bench(command: Bench) -> int:
    from rich.console import Console
    from rich.table import Table

    from protege.cli.bench import run_benchmark

    figures = run_benchmark(command.name, seconds=command.seconds)
    table = Table("figure", "value", title=command.name, title_justify="left")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if command.json:
        print(json.dumps(figures))
    return 0


def run_doctor(command: Doctor) -> int:
    from protege.cli.doctor import report

    return report(full=command.full, as_json=command.json)


Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Eval, subcommand("eval")]
    | Annotated[Record, subcommand("record")]
    | Annotated[Match, subcommand("match")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Runs, subcommand("runs"), OmitSubcommandPrefixes]
    | Annotated[LeagueCommands, subcommand("league"), OmitSubcommandPrefixes]
    | Annotated[Export, subcommand("export")]
    | Annotated[Dashboard, subcommand("dashboard")]
    | Annotated[Watch, subcommand("watch")]
    | Annotated[Play, subcommand("play")]
    | Annotated[Serve, subcommand("serve")]
    | Annotated[Mame, subcommand("mame")]
    | Annotated[Doctor, subcommand("doctor")]
)

RUN: dict[type[Any], Callable[[Any], int]] = {
    Eval: run_eval,
    Record: run_record,
    Match: run_match,
    Bench: run_bench,
    Runs: run_runs,
    LeagueCommands: run_league,
    Dashboard: run_dashboard,
    Watch: run_watch,
    Play: run_play,
    Serve: run_serve,
    Mame: run_mame,
    Export: run_export,
    Doctor: run_doctor,
}

DESCRIPTION = f"""Protege {__version__} trains game agents that outplay their teachers.

  protege train tempest --minutes 10                                    a pupil that outplays its teacher
  protege doctor                                                        what works on this machine
  protege eval tempest --player champion --player teacher --games 200   who scores how much
  protege watch tempest --player champion                               its games, live in the browser
  protege play tempest                                                  your turn
  protege record tempest --player champion --out game.gif               a game to look at
  protege dashboard                                                     charts of every run, live play, controls
  protege serve --no-train --player champion                            play whoever connects from an arcade machine
  protege mame --clients 4                                              real games in MAME, for a server
  protege train echelon --minutes 60                                    squads of mechs that outfight scripted ones
  protege match echelon --blue hard --red medium --out fight.rec        a battle of mechs, recorded
  protege eval echelon --blue hard --red medium                         who wins how often
  protege watch echelon fight.rec                                       that battle in 3D; --text tells it
  protege record echelon fight.rec --out fight.gif                      and as a film
  protege bench tempest-sim                                             how fast the simulator is here
  protege runs list                                                     what was trained, and how well
  protege league list tempest                                           who is how strong
  protege export champion --out champion                                an ONNX model for other programs

"protege COMMAND --help" explains each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for a mistake the user can mend, or what the command says."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        print(f"protege {__version__}")
        return 0
    try:
        code = run_train(arguments[1:]) if arguments[:1] == ["train"] else _run_command(arguments)
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


def _run_command(arguments: Sequence[str]) -> int:
    if is_echelon(arguments):
        return run_echelon(arguments)
    command = tyro.cli(
        Command, prog="protege", description=DESCRIPTION, args=arguments or ["--help"], config=(FlagCreatePairsOff,)
    )
    return RUN[type(command)](command)


if __name__ == "__main__":
    sys.exit(main())
