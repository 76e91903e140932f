"""Players: measured, recorded, watched, played against, exported."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from tyro.conf import Positional, UseAppendAction

from protege import ProtegeError
from protege.cli.tables import size
from protege.machine import usable_cores

Game = Literal["tempest", "echelon"]  # the options of echelon are others: "protege eval echelon --help"
Tempest = Literal["tempest"]


@dataclass(frozen=True)
class Eval:
    """Measure players: every player plays the same games, each fixed by its seed."""

    game: Positional[Game]  # the game to play
    # Who plays: champion, teacher, teacher-full, random, the name of a run, the path of a checkpoint, or your own
    # package.module:Class. Without it, champion.
    player: UseAppendAction[tuple[str, ...]] = ()
    games: int = 200  # games for each player
    seed: int = 1  # the games follow from this number: the same seed gives the same games
    level: int = 1  # the level to start at, 1 to 99
    difficulty: Literal["easy", "medium", "hard"] = "medium"  # the cabinet's difficulty switch
    lives: int = 3  # lives at the start
    max_frames: int = 200_000  # a game still running after so many frames is cut and counted as truncated
    threads: int = 0  # threads that play; 0 uses every core
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object for each player, the last line among them


def _game_first(command: str, game: str) -> None:
    if game == "echelon":
        raise ProtegeError(f"the game comes first, because its options are its own: protege {command} echelon ...")


def run_eval(command: Eval) -> int:
    _game_first("eval", command.game)
    from protege.games.tempest.agents.players import find_player, measure
    from protege.games.tempest.rules.sim import Cabinet

    names = command.player or ("champion",)
    players = [find_player(name, command.runs) for name in names]  # before the first game: a typo costs no time
    cabinet = Cabinet(lives=command.lives, difficulty=command.difficulty)
    results = []
    for name, player in zip(names, players, strict=True):
        with _counting(name, player, command.games) as counted:
            results.append(
                measure(
                    name,
                    player=counted,
                    games=command.games,
                    seed=command.seed,
                    level=command.level,
                    cabinet=cabinet,
                    max_frames=command.max_frames,
                    threads=command.threads or usable_cores(),
                )
            )
    print_results(results)
    if command.json:
        for result in results:
            print(json.dumps(result))
    return 0


class _Counted:
    """A player that tells how many of its games are over: those that it is asked about no more."""

    def __init__(self, player: Any, tell: Callable[[int], None]):
        self.player, self.tell = player, tell
        self.before = self.begun = self.left = 0  # games of earlier batches, of this one, and what is left of it

    def act(self, frames: Any) -> Any:
        left = len(frames.score)
        if left != self.left:
            if left > self.left:  # a new batch
                self.before, self.begun = self.before + self.begun, left
            self.left = left
            self.tell(self.before + self.begun - left)
        return self.player.act(frames)


@contextmanager
def _counting(name: str, player: Any, games: int) -> Iterator[Any]:
    """The player, with a bar of its finished games if stderr is a terminal; stdout is for results."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from protege.games.tempest.agents.players import Scripted

    console = Console(stderr=True)
    name_and_bar = Progress.get_default_columns()[:2]
    with Progress(
        *name_and_bar, MofNCompleteColumn(), "games over", TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    ) as bar:  # fmt: skip
        scripted = isinstance(player, Scripted)  # then games run in compiled code, which tells nothing on the way
        task = bar.add_task(escape(name), total=None if scripted else games)
        yield player if scripted else _Counted(player, lambda over: bar.update(task, completed=over))


def print_results(results: Sequence[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from protege.games.tempest.agents.players import TABLE_HEAD, table_rows

    one = results[0]
    title = f"Tempest from level {one['level']}, {one['games']} games each, seed {one['seed']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in TABLE_HEAD:
        table.add_column(
            name, no_wrap=name != TABLE_HEAD[-1], justify="left" if name in ("player", TABLE_HEAD[-1]) else "right"
        )
    for line in table_rows(results):
        table.add_row(*line)
    Console().print(table)


@dataclass(frozen=True)
class Record:
    """Record a game as a GIF, MP4 or WebM file. A game still running after 200,000 frames is cut there."""

    game: Positional[Game]  # the game to play
    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    player: str = "champion"  # who plays, as in "protege eval"
    seed: int = 1  # the game follows from this number
    level: int = 1  # the level to start at
    best_of: int = 1  # play so many games and record the one with the highest score
    seconds: float = 45.0  # keep the last so many seconds of the game; 0 keeps all of it
    until_level: int = 0  # end when this level is done; 0 goes on until the game is over
    size: int = 360  # width and height of the picture
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_record(command: Record) -> int:
    _game_first("record", command.game)
    from rich.console import Console
    from rich.markup import escape

    from protege.games.tempest.agents.players import MOST_FRAMES, record

    with Console(stderr=True).status(f"{escape(command.player)} plays; a game is cut after {MOST_FRAMES:,} frames"):
        made = record(
            command.player,
            command.out,
            seed=command.seed,
            level=command.level,
            best_of=command.best_of,
            seconds=command.seconds,
            until_level=command.until_level,
            size=command.size,
            runs=command.runs,
        )
    whole = "the whole game" + (f" until level {command.until_level} was done" if command.until_level else "")
    part = whole if made["first_tick"] == 0 else f"{command.seconds:g} seconds"
    cut = f", cut after {MOST_FRAMES:,} frames" if made["truncated"] else ""
    print(
        f"{made['file']}: {part} of {made['player']}, seed {made['seed']} game {made['game']}, "
        f"{made['score']:,} points, level {made['level']}{cut} ({made['bytes'] / 1e6:.1f} MB)"
    )
    if command.json:
        print(json.dumps(made))
    return 0


@dataclass(frozen=True)
class Dashboard:
    """Serve the page: every run of a folder, past or present, with live play and controls."""

    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    run: str | None = None  # the run to show first; without it, the newest
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser
    until_stdin_closes: bool = False  # end when standard input does: how a training takes its page along


def run_dashboard(command: Dashboard) -> int:
    if command.until_stdin_closes and hasattr(os, "nice"):
        os.nice(5)  # beside a training, which is what the machine is busy for
    return serve_page(command, f"/run/{command.run}" if command.run else "")


@dataclass(frozen=True)
class Watch:
    """Watch a player in the browser: its games as glowing vectors, what it chooses and why."""

    game: Positional[Game]  # the game to watch
    player: str = "champion"  # who plays, as in "protege eval"
    level: int = 1  # the level to start at, 1 to 99
    games: Literal[1, 4, 9, 16] = 1  # games side by side
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser


def run_watch(command: Watch) -> int:
    from urllib.parse import urlencode

    _game_first("watch", command.game)
    if not 1 <= command.level <= 99:
        raise ProtegeError(f"level must be 1 to 99; got {command.level}")
    settings = {"player": command.player, "level": command.level, "games": command.games}
    return serve_page(command, f"/tempest/live?{urlencode(settings)}", players=(command.player,))


@dataclass(frozen=True)
class Play:
    """Play yourself, in the browser: keyboard, mouse or wheel, with the champion on the same seed beside you."""

    game: Positional[Tempest]  # the game to play
    runs: Path | None = None  # the folder that holds runs and high scores; without it PROTEGE_RUNS, or else ./runs
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser


def run_play(command: Play) -> int:
    return serve_page(command, "/tempest/play")


class PageCommand(Protocol):
    """What every command says that serves the page."""

    @property
    def runs(self) -> Path | None: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def no_browser(self) -> bool: ...


def serve_page(command: PageCommand, view: str, *, players: Sequence[str] = (), recordings: Sequence[Path] = ()) -> int:
    """Serve until Ctrl-C, with the page opened at a view; it could not name these players and recordings by itself."""
    import webbrowser

    from protege.dashboard.live import Views
    from protege.dashboard.server import Served, serve
    from protege.games.echelon.page.views import EchelonViews
    from protege.games.tempest.page.views import TempestViews

    def ready(page: Served) -> None:
        print(f"dashboard: {page.link(view)}", flush=True)
        if page.note:
            print(f"  {page.note}", flush=True)
        has_screen = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not command.no_browser and has_screen:  # without one, a text browser might take over the terminal
            webbrowser.open(page.link(view))

    games: dict[str, Views] = {
        "tempest": TempestViews(command.runs, players),
        "echelon": EchelonViews(command.runs, recordings),
    }
    serve(
        games, folder=command.runs, host=command.host, port=command.port, ready=ready,
        until_stdin_closes=isinstance(command, Dashboard) and command.until_stdin_closes,
    )  # fmt: skip
    return 0


@dataclass(frozen=True)
class Export:
    """Write a pupil as an ONNX model that other programs can run, with a description of its input and output."""

    run: Positional[str]  # the name of a run (its best pupil), the path of a checkpoint, champion or champion-visible
    out: Path  # the folder to write model.onnx, description.json and README.md into
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_export(command: Export) -> int:
    from protege.games.tempest.agents.export import export

    made = export(command.run, command.out, command.runs)
    print(
        f"{made['model']}: {made['player']}, {size(made['bytes'])}\n"
        f"Checked on {made['frames']:,} frames of real games, action values up to {made['largest_value']:.3g}:\n"
        f"  against torch     largest difference {made['difference_torch']:.1e}\n"
        f"  against the pupil as it plays, difference {made['difference_played']:.1e}, "
        f"same move in {made['same_moves']:,}\n"
        f"{command.out / 'README.md'} shows how to use it."
    )
    if command.json:
        print(json.dumps(made))
    return 0
