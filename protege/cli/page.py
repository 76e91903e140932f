"""`protege dashboard`, and the page as other commands open it: with what each game can show, beside what they do."""

import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tyro.conf import UseAppendAction

from protege.games import BUILT_IN, find_game

READY: Final = "dashboard: "  # how the line begins in which the server says where it is


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
    return serve_page(command, f"/run/{command.run}" if command.run else "", dict.fromkeys(command.game, ()))


def serve_page(command: Any, view: str, named: Mapping[str, Sequence[Any]] | None = None) -> int:
    """Serve until Ctrl-C, with the page opened at a view; the command has `runs`, `host`, `port` and `no_browser`.

    `named` holds, by game, the players or recordings that the command line names: a page could not do so by itself.
    """
    from protege.dashboard.server import Served, serve

    def ready(page: Served) -> None:
        print(f"{READY}{page.link(view)}", flush=True)
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


class ServerProcess:
    """Runs the page for as long as this process lives: it stops when its standard input, a pipe from here, closes.

    In the process that trains, it would take its turns at the interpreter; apart, it costs a thread that waits.
    """

    def __init__(self, words: Sequence[str], tell: Callable[[str], None]) -> None:
        """Start `protege` with these words; `tell` gets a line when the page is there, or when it cannot be."""
        self._tell = tell
        self._process: subprocess.Popen[str] | None = None
        command = [sys.executable, "-m", "protege.cli", *words, "--until-stdin-closes"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        try:
            # In a session of its own, so that Ctrl-C reaches the training alone, which then ends this.
            self._process = subprocess.Popen(command, text=True, start_new_session=os.name != "nt", **pipes)
        except OSError as error:
            tell(f"the page could not be started, training goes on without it: {error}")
            return
        self._listener = threading.Thread(target=self._listen, args=(self._process,), name="dashboard", daemon=True)
        self._listener.start()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._listener.join()
        process.stdout.close()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        ready, last = False, "it gave no reason"
        for line in process.stdout:
            last = line.strip() or last
            if line.startswith(READY) or (ready and line.startswith("  ")):  # what is indented belongs to it
                ready = True
                self._tell(line.rstrip())
        if not ready and self._process is not None:
            self._tell(f"the page could not be started, training goes on without it: {last}")


def page_beside(tell: Callable[[str], None], runs: Path, place: str = "") -> ServerProcess:
    """The page of a folder of runs; `tell` gets the line that says where it is. A user's own game is at `place`."""
    own = ["--game", place] if place and place not in BUILT_IN else []
    return ServerProcess(["dashboard", "--no-browser", "--runs", str(runs), *own], tell)
