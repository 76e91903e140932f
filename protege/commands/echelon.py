"""`protege match echelon`, `protege eval echelon` and `protege watch echelon`: battles played, measured, told."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional

from protege import ProtegeError
from protege.commands.tables import print_table

Mechs = Literal["echelon"]


@dataclass(frozen=True)
class Match:
    """Let two sides fight one battle and record it."""

    game: Positional[Mechs]  # the game to play
    blue: str = "hard"  # who leads blue: trivial, easy, medium, hard, expert, random, or your own package.module:Class
    red: str = "medium"  # who leads red
    seed: int = 1  # the map and the battle follow from this number
    roster: str = "10v10"  # how many against how many; a wrong name is answered with the list
    out: Path = Path("match.rec")  # the file to write
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class EvalEchelon:
    """Measure one side against another: every map is played twice, with the sides swapped."""

    blue: str = "hard"  # who leads blue: trivial, easy, medium, hard, expert, random, or your own package.module:Class
    red: str = "medium"  # who leads red
    matches: int = 200  # battles, an even number
    seed: int = 1  # the maps follow from this number
    roster: str = "10v10"  # how many against how many; a wrong name is answered with the list
    threads: int = 0  # threads that play; 0 uses every core
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class WatchEchelon:
    """Read what happened in a recorded battle."""

    recording: Positional[Path]  # the file that "protege match echelon" wrote
    text: bool = False  # as text, for the terminal


def run_match(command: Match) -> int:
    from protege.echelon.match import Setting, fight

    made = fight(command.blue, command.red, command.out, seed=command.seed, setting=Setting(command.roster))
    sides = ((side, made[side]) for side in ("blue", "red"))
    rows = [
        [f"{side} ({name})", *(f"{made[f'{side}_{key}']:,.0f}" for key in ("score", "living", "kills", "damage"))]
        for side, name in sides
    ]
    title = f"{made['winner']} wins by {made['ending']}" if made["winner"] != "nobody" else "a draw"
    head = ("side", "score", "alive", "kills", "damage")
    print_table(
        f"{title} after {made['length']:.0f} s, {made['roster']}, seed {made['seed']}", head, rows, (1, 2, 3, 4)
    )
    print(f"{made['file']}: {made['bytes'] / 1e6:.1f} MB; read it with: protege watch echelon {made['file']} --text")
    if command.json:
        print(json.dumps(made))
    return 0


def run_eval_echelon(command: EvalEchelon) -> int:
    from protege.echelon.match import Setting, measure

    found = measure(
        command.blue, command.red, matches=command.matches, seed=command.seed, setting=Setting(command.roster),
        threads=command.threads or os.cpu_count() or 1,
    )  # fmt: skip
    print(
        f"{found['blue']} against {found['red']}, {found['matches']} battles of {found['roster']}, "
        f"seed {found['seed']}: wins {100 * found['blue_win_rate']:.1f} % "
        f"({100 * found['blue_win_rate_low']:.1f}–{100 * found['blue_win_rate_high']:.1f}, draws as halves), "
        f"{found['draws']} draws, {found['length_mean']:.0f} s each on average"
    )
    if command.json:
        print(json.dumps(found))
    return 0


def run_watch_echelon(command: WatchEchelon) -> int:
    from protege.echelon.match import tell

    if not command.text:
        raise ProtegeError(
            f"there is no picture of battles yet; read it: protege watch echelon {command.recording} --text"
        )
    for line in tell(command.recording):
        print(line)
    return 0


_COMMANDS: dict[str, tuple[type[Any], Callable[[Any], int]]] = {
    "eval": (EvalEchelon, run_eval_echelon),
    "watch": (WatchEchelon, run_watch_echelon),
}


def is_echelon(arguments: Sequence[str]) -> bool:
    """Whether this is a command that has other options for this game."""
    return len(arguments) > 1 and arguments[1] == "echelon" and arguments[0] in _COMMANDS


def run_echelon(arguments: Sequence[str]) -> int:
    """`protege eval echelon ...` or `protege watch echelon ...`."""
    kind, run = _COMMANDS[arguments[0]]
    prog = f"protege {arguments[0]} echelon"
    return run(tyro.cli(kind, prog=prog, args=arguments[2:], config=(FlagCreatePairsOff,)))
