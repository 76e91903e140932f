"""`protege dashboard`, and the page as other commands open it: with what each game can show."""

import os
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import UseAppendAction

from protege.dashboard.process import ServerProcess
from protege.games import BUILT_IN, find_game


@dataclass(frozen=True)
class Dashboard:
    """Serve the page: every run of a folder, past or present, with live play and controls."""

    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    run: str | None = None  # the run to show first; without it, the newest
    game: UseAppendAction[tuple[str, ...]] = ()  # a game of your own to show as well, as package.module:GAME or a file
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines see the page
    port: int = 8765  # port, or the next free one
    no_browser: bool = False  # do not open a browser
    until_stdin_closes: bool = False  # end when standard input does: how a training takes its page along


def run_dashboard(command: Dashboard) -> int:
    if command.until_stdin_closes and hasattr(os, "nice"):
        os.nice(5)  # beside a training, which is what the machine is busy for
    view = f"/run/{command.run}" if command.run else ""
    return serve_page(command, view, dict.fromkeys(command.game, ()))


def serve_page(command: Any, view: str, named: Mapping[str, Sequence[Any]] | None = None) -> int:
    """Serve until Ctrl-C, with the page opened at a view; the command has `runs`, `host`, `port` and `no_browser`.

    `named` holds, by game, the players or recordings that the command line names: a page could not do so by itself.
    """
    from protege.dashboard.server import Served, serve

    def ready(page: Served) -> None:
        print(f"dashboard: {page.link(view)}", flush=True)
        if page.note:
            print(f"  {page.note}", flush=True)
        has_screen = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not command.no_browser and has_screen:  # without one, a text browser might take over the terminal
            webbrowser.open(page.link(view))

    named = named or {}
    games = [find_game(place) for place in dict.fromkeys([*BUILT_IN, *named])]
    views = {game.name: game.views(command.runs, named.get(game.place, ())) for game in games if game.views}
    until = getattr(command, "until_stdin_closes", False)
    serve(views, folder=command.runs, host=command.host, port=command.port, ready=ready, until_stdin_closes=until)
    return 0


def page_beside(tell: Callable[[str], None], runs: Path, place: str = "") -> ServerProcess:
    """The page of a folder of runs in a process of its own; `tell` gets the line that says where it is.

    A game of the user's own, at `place`, is shown there as well.
    """
    own = ["--game", place] if place and place not in BUILT_IN else []
    return ServerProcess(["dashboard", "--no-browser", "--runs", str(runs), *own], tell)
