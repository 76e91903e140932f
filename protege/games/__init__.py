"""What is played: the contract of a game, the built-in ones, and how a user's own is found.

A game is a table, not a framework: commands, console, page, league, doctor and benchmarks read it and nothing else.
What needs torch or compiled code stands behind functions, so that reading the table costs nothing.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from protege import ProtegeError

if TYPE_CHECKING:
    from protege.dashboard.live import Views
    from protege.games.players import Players
    from protege.league.league import Opponent
    from protege.league.ledger import Filing, Result
    from protege.train.session import Trainer

Figures = dict[str, Any]

BUILT_IN: Final = {"tempest": "protege.games.tempest.game:GAME", "echelon": "protege.games.echelon.game:GAME"}
# Games of other libraries, by what their names begin with: a function that makes the table.
BROUGHT: Final = {
    "gym:": "protege.games.own.game:gym_game",
    "pettingzoo:": "protege.games.own.game:squad_game",
}
BENCHMARKS: Final = {"overhead": "protege.games.own.benchmarks:overhead"}  # that belong to no game


class UnknownGame(ProtegeError):
    """No game goes by this name."""


@dataclass(frozen=True)
class Command:
    """Something that is typed as `protege NAME GAME ...`, or without the game where only one has it."""

    # A frozen dataclass, whose docstring and comments are the help text; or, where they depend on what was typed, a
    # function that makes it from the words.
    options: type[Any] | Callable[[Sequence[str]], type[Any]]
    run: Callable[[Any], int]
    pairs: bool = False  # flags have opposites, such as --no-save-replay, unless their type says otherwise


class Contest(Protocol):
    """Plays the matches of one league."""

    @property
    def signature(self) -> Mapping[str, Any]: ...  # what must be the same for results to be comparable
    @property
    def sides(self) -> int: ...  # matches on each map
    def check(self, player: str) -> object:
        """Raise unless this is a player."""

    def play(
        self, first: "Opponent", second: "Opponent", maps: Sequence[int], record: int = 0, file: "Filing | None" = None
    ) -> list["Result"]:
        """The matches on these maps; `file` is given each result as soon as there is one."""


@dataclass(frozen=True)
class NoSettings:
    """There is nothing to choose."""


@dataclass(frozen=True)
class Contests:
    """How two players of a game meet in a league."""

    scripted: Sequence[str]  # members of a new league
    anchor: str  # the one whose rating is pinned at 1500
    signature: Callable[[Any], Mapping[str, Any]]  # of a new league, from its settings; "game" is the game's name
    open: Callable[..., Contest]  # (signature, *, threads, games): so many matches each pair will play, as far as known
    settings: type[Any] = NoSettings  # what a new league can be told, a frozen dataclass


@dataclass(frozen=True)
class Check:
    """One row of `protege doctor`; `advice` is empty when there is nothing to do."""

    name: str
    state: Literal["ok", "missing", "in use"]
    found: str
    advice: str = ""
    required: bool = False  # nothing runs without it


class Table(Protocol):
    """Figures of several players as text: the names of the columns, and a row for each player."""

    def __call__(self, results: Sequence[Figures]) -> tuple[Sequence[str], Sequence[Sequence[str]]]: ...


@dataclass(frozen=True)
class Game:
    """Everything the product needs to train, measure, watch and rate players of a game."""

    name: str
    title: str
    about: str  # what it is, in half a line
    unit: str  # what a budget counts: "frame", "agent-step"
    trainer: Callable[[], "Trainer"]  # settings, presets, metrics, session
    players: Callable[[], "Players[Any]"]  # by name
    measure: Callable[..., Figures]  # (player, *, games, seed, threads, runs) -> flat figures, "player" among them
    score: str = ""  # the figure of these that says who is better; X_low and X_high are the 95 % interval of a figure X
    table: Table | None = None  # figures as people read them; without it, all of them
    # Scripted players that a finished training is compared with; a function of its settings, if it depends on them.
    teachers: Sequence[str] | Callable[[Any], Sequence[str]] = ()
    contests: Callable[[], Contests] | None = None  # without it there is no league
    views: Callable[[Path | None, Sequence[Any]], "Views"] | None = None  # (runs, what a command names) for the page
    commands: Mapping[str, Command] = field(default_factory=dict)  # eval, watch, play ...
    benchmarks: Mapping[str, str] = field(default_factory=dict)  # by name, "module:function" of seconds to figures
    checks: Callable[[], Sequence[Check]] = lambda: ()  # what this machine has for it
    next_steps: Callable[[str, Any, Path | None], Sequence[tuple[str, str]]] = lambda run, config, runs: ()
    examples: Sequence[tuple[str, str]] = ()  # commands worth knowing and what they do, for the help text
    place: str = ""  # what a user typed to name it; filled in where it is found


def later(place: str) -> Callable[..., Any]:
    """What stands at `module:name`, imported when it is asked for; a function or class is called with the arguments."""

    def give(*arguments: Any) -> Any:
        module, _, name = place.partition(":")
        found = getattr(importlib.import_module(module), name)
        return found(*arguments) if callable(found) else found

    return give


def games() -> dict[str, Game]:
    """The built-in games, by name."""
    return {name: find_game(name) for name in BUILT_IN}


def is_place(word: str) -> bool:
    """Whether a word names a game, whether or not there is one: a name, `package.module:GAME` or a Python file."""
    return word in BUILT_IN or word.endswith((".py", ":GAME")) or word.startswith(tuple(BROUGHT))


def find_game(name: str) -> Game:
    """The game of this name: built in, of another library (`gym:ID`), `package.module:GAME`, or a file with a GAME."""
    place = BUILT_IN.get(name, name)
    for prefix, maker in BROUGHT.items():
        if place.startswith(prefix):
            found: Game = later(maker)(place)
            return found
    if place.endswith(".py"):
        return _game_in(_load_file(Path(place)), "GAME", name)
    module, colon, attribute = place.partition(":")
    if not colon:
        from protege.runs.metrics import near  # an environment for other libraries needs nothing that this needs

        raise UnknownGame(
            f"there is no game {name!r}: use {', '.join(BUILT_IN)}, gym:ID, pettingzoo:MODULE, a file my_game.py, or "
            f"package.module:GAME{near(name, list(BUILT_IN))}"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
    try:
        return _game_in(importlib.import_module(module), attribute, name)
    except ImportError as problem:
        raise UnknownGame(f"game {name!r} cannot be imported: {problem}") from problem


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise UnknownGame(f"there is no file {path}: a game of your own is a Python file that defines GAME")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, f"{path} has an ending that Python imports"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _game_in(module: Any, attribute: str, name: str) -> Game:
    found = getattr(module, attribute, None)
    if not isinstance(found, Game):
        what = "nothing" if found is None else f"a {type(found).__name__}"
        raise UnknownGame(f"{name!r} holds {what} under the name {attribute}; expected a protege.games.Game")
    return replace(found, place=name)
