"""Battles to watch in the page: recordings that were named at the start, and those of runs, also while they train.

The page unpacks a recording by itself; what it is given has been read from end to end here first. Knows no socket:
whoever serves the page asks by settings as they come from an address, so nothing in them is trusted.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from protege import ProtegeError
from protege.dashboard.live import Page, Tab
from protege.games.echelon.agents.contest import STYLE
from protege.games.echelon.recordings.recording import SUFFIX, BadRecording, Recording
from protege.league.league import find_recording
from protege.runs.run import Run, list_runs, open_run, runs_folder

MOST_LISTED: Final = 60  # battles a page can choose from, the newest


class Arrivals:
    """The battles of one run as they finish; every message tells all of them, so that a late viewer misses none."""

    rate = 1.0  # looks a second at the run's folder

    def __init__(self, run: Run):
        self.run = run

    def tick(self) -> bytes:
        """The battles there are, the newest first."""
        return msgspec.json.encode({"battles": battles_of(self.run)})

    def hear(self, words: Mapping[str, Any]) -> None:
        """There is nothing to say."""


def battles_of(run: Run) -> list[dict[str, str]]:
    """A run's recordings, the newest first."""
    found = []
    for path in run.recordings.glob(f"[!.]*{SUFFIX}"):
        with suppress(FileNotFoundError):  # a training keeps the newest few, and has just deleted this one
            found.append((path.stat().st_mtime_ns, path.name))
    return [{"run": run.name, "file": name} for _, name in sorted(found, reverse=True)[:MOST_LISTED]]


class EchelonViews:
    """What there is to see of the mechs' game."""

    game = "echelon"
    style = STYLE
    page = Page(
        static=Path(__file__).parent / "static",
        tabs=(Tab("battle", "Battles", "view.js"),),
        styles=("battle.css",),
        links="links.js",
    )

    def __init__(self, runs: Path | None = None, given: Sequence[Path] = ()) -> None:
        self.runs = runs
        self.given = tuple(given)  # named by whoever started the server: a page names no paths

    def about(self) -> dict[str, Any]:
        """The battles there are: those given, then those of runs, the newest run first."""
        trained = [Run(runs_folder(self.runs) / run.name) for run in list_runs(self.runs) if run.game == self.game]
        given = [{"given": str(number), "file": path.name} for number, path in enumerate(self.given)]
        return {"battles": given + [battle for run in reversed(trained) for battle in battles_of(run)][:MOST_LISTED]}

    def shared(self, kind: str) -> bool:
        """Whether viewers with the same settings see the same live view."""
        return True

    def open(self, kind: str, settings: Mapping[str, str]) -> Arrivals:
        """The battles of a `run` as they finish."""
        if kind != "battles":
            raise ProtegeError(f"there is no live view {kind!r}: expected battles")
        with open_run(settings.get("run", ""), self.runs) as run:
            return Arrivals(run)

    def high_scores(self) -> list[dict[str, Any]]:
        """People do not play this game."""
        return []

    def file(self, settings: Mapping[str, str]) -> bytes:
        """A recording, `given` by its number or a `file` of a `run` or `league`, if it is whole."""
        path = self._path(settings)
        try:
            return Recording.open(path).checked()
        except BadRecording as problem:  # where files are on this machine is no page's business
            raise BadRecording(str(problem).replace(str(path), path.name)) from problem

    def _path(self, settings: Mapping[str, str]) -> Path:
        if "league" in settings:
            return find_recording(settings["league"], settings.get("file", ""), self.runs)
        number = settings.get("given", "")
        if number.isdecimal() and len(number) < 4 and int(number) < len(self.given):
            return self.given[int(number)]
        with open_run(settings.get("run", ""), self.runs) as run:
            path = run.recordings / Path(settings.get("file", "")).name  # never outside the folder
        if path.suffix != SUFFIX or not path.is_file():
            raise ProtegeError(f"run {run.name} has no recording {path.name!r}")
        return path
