"""Leagues for the page: which there are, and all about one. Read from files, like everything here."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from protege.dashboard.live import Views
from protege.league.league import find_league, league_names, open_league
from protege.league.ledger import LeagueError
from protege.league.standings import report
from protege.runs.run import checked_name


class Leagues:
    """The answers about the leagues in a folder of runs, and about those that come with Protege."""

    def __init__(self, folder: Path, games: Mapping[str, Views]) -> None:
        self.folder, self.games = folder, games
        self._turn = threading.Lock()
        self._known: dict[str, tuple[object, dict[str, Any]]] = {}  # by name: as of when, and the report

    def routes(self) -> list[Route]:
        """Their addresses."""
        return [Route("/api/leagues", self.list), Route("/api/leagues/{name}", self.league)]

    def list(self, request: Request) -> Response:
        found = []
        for name in league_names(self.folder):
            try:
                about = self._report(name)
            except LeagueError as problem:
                found.append({"name": name, "game": "", "error": str(problem)})
                continue
            best = about["entries"][0]["name"] if about["entries"] else ""
            found.append({"name": name, "game": about["game"], "best": best, **about["counts"]})
        return JSONResponse(found)

    def league(self, request: Request) -> Response:
        return JSONResponse(self._report(checked_name(request.path_params["name"])))

    def _report(self, name: str) -> dict[str, Any]:
        """A league as it is now; made anew only when its file has changed, however many pages ask."""
        folder = find_league(name, self.folder)
        with self._turn:
            state = (
                folder,
                tuple((path.name, path.stat().st_mtime_ns) for path in sorted(folder.glob("league.sqlite*"))),
            )
            if name not in self._known or self._known[name][0] != state:
                with open_league(name, self.folder) as league:
                    style = self.games[league.game].style if league.game in self.games else ()
                    self._known[name] = state, report(league, style)
            return self._known[name][1]
