"""The command line: chooses the command, then the game, reads the options once, and turns errors into one line."""

import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import tyro
from tyro.conf import FlagCreatePairsOff

from protege import ProtegeError, __version__
from protege.cli.bench import bench_options, run_bench
from protege.cli.doctor import Doctor, run_doctor
from protege.cli.evaluate import Eval, run_eval
from protege.cli.page import Dashboard, run_dashboard
from protege.cli.train import run_train
from protege.games import Command, Game, find_game, games, is_place, later
from protege.runs.metrics import near

USAGE_ERROR: Final = 2
INTERRUPTED: Final = 130  # what a shell reports for a program ended by Ctrl-C
BROKEN_PIPE: Final = 141  # and for one whose reader went away
HELP: Final = ("--help", "-h")

# Commands that concern no single game.
COMMANDS: Final[dict[str, Command]] = {
    "dashboard": Command(Dashboard, run_dashboard),
    "doctor": Command(Doctor, run_doctor),
    "bench": Command(bench_options, run_bench),
}
GROUPS: Final = {
    "runs": "Manage run folders.",
    "league": "Rate players by matches between them; each built-in game comes with a league of its own name.",
}
# The commands of a group, imported when one of them is typed: leagues need NumPy.
GROUP_COMMANDS: Final = {"runs": later("protege.cli.runs:RUNS"), "league": later("protege.cli.league:LEAGUE")}
EVERY_GAME: Final = {"train": "Train a pupil.", "eval": "Evaluate players."}  # what can be done with any game


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for a mistake the user can mend, or what the command says."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = run(arguments)
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


def run(words: Sequence[str]) -> int:
    """The first word is the command; what it does with the others depends on whether it concerns a game."""
    first, *rest = words or HELP[:1]
    if first in HELP:
        return say(overview())
    if first in ("--version", "-V"):
        return say(f"protege {__version__}")
    if first in GROUPS:
        return run_group(first, rest)
    of_game = bool(rest) and is_place(rest[0])
    if first in COMMANDS and not of_game:
        return run_command(COMMANDS[first], first, rest)
    offered = offers(first)
    if offered or of_game:
        return run_for_game(first, offered, rest)
    if is_place(first):
        raise ProtegeError(f"{first} is a game, and the command comes first: protege train {first}, or protege --help")
    own = (name for game in games().values() for name in game.commands)
    known = dict.fromkeys([*EVERY_GAME, *general_commands(), *GROUPS, *games(), *own])
    raise ProtegeError(f"there is no command {first!r}: protege --help lists them{near(first, known)}")


def run_command(command: Command, name: str, words: Sequence[str], place: str = "") -> int:
    prog = " ".join(["protege", name, *[place] * bool(place)])
    kind = command.options if isinstance(command.options, type) else command.options(words)
    flags = () if command.pairs else (FlagCreatePairsOff,)
    return command.run(tyro.cli(kind, prog=prog, args=words, config=flags))


def general_commands() -> dict[str, Command]:
    """Those that concern no single game, also in groups, where they have two words."""
    groups = {group: commands() for group, commands in GROUP_COMMANDS.items()}
    return COMMANDS | {f"{group} {name}": command for group in groups for name, command in groups[group].items()}


def run_group(group: str, words: Sequence[str]) -> int:
    """`protege runs list` and the like."""
    inside = GROUP_COMMANDS[group]()
    second, *rest = words or HELP[:1]
    if second in HELP:
        lines = [(f"protege {group} {name}", summary(command.options)) for name, command in inside.items()]
        return say(f"{GROUPS[group]}\n\n{columns(lines)}\n\nAdd --help to any of them for its options.")
    if second not in inside:
        raise ProtegeError(f"protege {group} has {', '.join(inside)}, not {second!r}{near(second, inside)}")
    return run_command(inside[second], f"{group} {second}", rest)


def offers(command: str) -> list[Game]:
    """The built-in games that have a command."""
    return [game for game in games().values() if command in EVERY_GAME or command in game.commands]


def run_for_game(command: str, offered: Sequence[Game], words: Sequence[str]) -> int:
    """`protege COMMAND GAME ...`; the game may be left out where only one has the command."""
    first = words[0] if words else ""
    if is_place(first):
        game, words = find_game(first), words[1:]
    elif len(offered) == 1:
        game = offered[0]
    elif not first or first in HELP:
        return _help_for_games(command, offered, code=0 if first else USAGE_ERROR)
    elif first.startswith("-"):
        raise ProtegeError(f"the game comes first, because its options are its own: protege {command} GAME ...")
    else:
        game = find_game(first)  # says which there are
    if command == "train":
        return run_train(game, words)
    if command in game.commands:
        return run_command(game.commands[command], command, words, game.place)
    if command == "eval":
        return run_command(Command(Eval, partial(run_eval, game)), command, words, game.place)
    there = ", ".join(sorted({*EVERY_GAME, *game.commands}))
    raise ProtegeError(f"{game.title} has no command {command}: it has {there}")


def _help_for_games(command: str, offered: Sequence[Game], code: int) -> int:
    lines = [
        (f"protege {command} {game.name}", summary(game.commands[command].options) if command in game.commands
         else EVERY_GAME[command]) for game in offered
    ]  # fmt: skip
    own = f"\nA game of your own is a file, or package.module:GAME: protege {command} my_game.py"
    print(
        f"protege {command} needs a game:\n\n{columns(lines)}\n{own if command in EVERY_GAME else ''}\n"
        f'"protege {command} GAME --help" explains the options.',
        file=sys.stderr if code else sys.stdout,
    )
    return code


def overview() -> str:
    """What `protege --help` says."""
    known = games().values()
    general = [
        ("protege doctor", "what works on this machine"),
        ("protege dashboard", "charts of every run, live play, controls"),
        ("protege runs list", "what was trained, and how well"),
    ]
    examples = columns([*(line for game in known for line in game.examples), *general])
    commands = [
        *((f"{name} GAME", text) for name, text in EVERY_GAME.items()),
        *(_game_command(name) for name in dict.fromkeys(n for game in known for n in game.commands)
          if name not in EVERY_GAME),
        *((name, _brief(text)) for name, text in GROUPS.items()),
        *((name, _brief(summary(command.options))) for name, command in COMMANDS.items()),
    ]  # fmt: skip
    return (
        "usage: protege COMMAND [GAME] [OPTIONS]\n\n"
        f"Protege {__version__} trains game agents that outplay their teachers.\n\n{examples}\n\n"
        f"games:\n{columns([(game.name, game.about) for game in known])}\n\n"
        f"commands:\n{columns(commands)}\n\n"
        '"protege COMMAND --help" and "protege COMMAND GAME --help" explain each of them.'
    )


def _game_command(name: str) -> tuple[str, str]:
    """A command that not every game has; where only one does, the game need not be typed."""
    offered = offers(name)
    text = _brief(summary(offered[0].commands[name].options))
    return (name, f"{offered[0].title}: {text}") if len(offered) == 1 else (f"{name} GAME", text)


def _brief(text: str) -> str:
    return re.split("[:;.,] ", text.rstrip("."))[0] + "."


def summary(options: Any) -> str:
    """The first line of a command's help."""
    return str(options.__doc__ or "").strip().splitlines()[0]


def columns(lines: Sequence[tuple[str, str]]) -> str:
    """Words, and what they mean beside them."""
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"  {name:<{width}}   {text}" for name, text in lines)


def say(text: str) -> int:
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
