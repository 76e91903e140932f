"""Serves the page: run folders to read, live views, and one way back, a command appended to a run's inbox.

Reads files and knows no game: whoever starts it hands in what can be watched and played.
"""

import asyncio
import hmac
import io
import json
import math
import mimetypes
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from protege import ProtegeError, __version__
from protege.dashboard.feeds import Feeds, Place, Wanted, columns
from protege.dashboard.guard import Guard, is_loopback
from protege.dashboard.live import LiveViews, Views, heard, until_one_ends
from protege.league.league import find_league, league_names, open_league
from protege.league.ledger import LeagueError
from protege.league.standings import report
from protege.runs.metrics import MetricError
from protege.runs.run import RunError, checked_name, list_runs, open_run, runs_folder
from protege.train.controls import CONTROLS

PORT: Final = 8765
PORTS_TRIED: Final = 40
STATIC: Final = Path(__file__).parent / "static"
LOOK_SECONDS: Final = 1.0  # between two looks at a run
HEARTBEAT_SECONDS: Final = 4.0  # a page that hears nothing for longer than three of these connects anew
MOST_POINTS: Final = 2000
MESSAGE_BYTES: Final = 16_384  # the longest message a viewer may send
FILMS: Final = (".gif", ".mp4", ".webm")

mimetypes.add_type("text/javascript", ".js")  # Windows may have been told otherwise by some other program


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """What a page sends to steer a run."""

    command: str
    arguments: dict[str, Any] = {}


class Pages:
    """The answers, one method for each address."""

    def __init__(self, folder: Path, games: Mapping[str, Views], token: str) -> None:
        self.folder, self.games, self._token = folder, games, token
        self.feeds, self.live = Feeds(folder), LiveViews(games)
        self.viewers = 0
        self._leagues_turn = threading.Lock()
        self._reports: dict[str, tuple[object, dict[str, Any]]] = {}  # by league: as of when, and all about it

    def routes(self) -> list[Route | WebSocketRoute | Mount]:
        answers = {
            "about": self.about, "token": self.token, "leagues": self.leagues, "leagues/{name}": self.league,
            "games/{game}": self.game, "games/{game}/scores": self.scores, "games/{game}/file": self.file,
            "runs": self.runs, "runs/{name}": self.run, "runs/{name}/series": self.series,
            "runs/{name}/metrics.csv": self.csv, "runs/{name}/recordings/{file}": self.recording,
        }  # fmt: skip
        drawn = {name: views.page.static for name, views in self.games.items()}  # by each game itself, from its folder
        return [
            *(Route(f"/api/{path}", answer) for path, answer in answers.items()),
            Route("/api/runs/{name}/commands", self.command, methods=["POST"]),
            WebSocketRoute("/api/feed", self.feed),
            WebSocketRoute("/api/games/{game}/{kind}", self.live.watch),
            *(Mount(f"/games/{name}", StaticFiles(directory=folder)) for name, folder in drawn.items() if folder),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ]

    def about(self, request: Request) -> Response:
        games = [_about(name, views) for name, views in self.games.items()]
        controls = [asdict(control) for control in CONTROLS.values()]
        return JSONResponse({"version": __version__, "games": games, "controls": controls})

    def token(self, request: Request) -> Response:
        return JSONResponse({"ok": self._is_trusted(request)})

    def runs(self, request: Request) -> Response:
        return JSONResponse([asdict(summary) for summary in reversed(list_runs(self.folder))])

    def run(self, request: Request) -> Response:
        with open_run(request.path_params["name"], self.folder) as run:
            info, log = run.info(), run.metrics
            found = {
                "info": msgspec.to_builtins(info), "status": run.status(), "controls": run.controls(),
                "metrics": [asdict(metric) for metric in log.declared()], "not_finite": log.not_finite(),
                "latest": {name: point._asdict() for name, point in log.latest().items()},
                "recordings": [film.name for film in sorted(run.recordings.glob("[!.]*"))],
                "playable": info.game in self.games and bool(run.all_checkpoints()),
            }  # fmt: skip
        return JSONResponse(found)

    def series(self, request: Request) -> Response:
        """Metrics as columns: all or those named, thinned to `points`, along steps or time, from `start` to `stop`."""
        asked = request.query_params
        along = asked.get("along", "step")
        if along not in ("step", "time"):
            raise ProtegeError(f"along must be step or time; got {along!r}")
        span: dict[str, Any] = {
            "since_row": int(_number(asked, "since_row", 0)), "start": _number(asked, "start", None),
            "stop": _number(asked, "stop", None), "along": along,
            "most_points": int(min(MOST_POINTS, max(2, _number(asked, "points", 500)))),
        }  # fmt: skip
        with open_run(request.path_params["name"], self.folder) as run:
            names = asked.getlist("metric") or [metric.name for metric in run.metrics.declared()]
            found = {name: run.metrics.series(name, **span) for name in names}
        row = max((series.row for series in found.values()), default=0)
        return JSONResponse({"row": row, "points": {name: columns(series) for name, series in found.items()}})

    def csv(self, request: Request) -> Response:
        name = request.path_params["name"]
        text = io.StringIO()
        with open_run(name, self.folder) as run:
            run.metrics.export_csv(text, request.query_params.getlist("metric"))
        headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)

    def recording(self, request: Request) -> Response:
        with open_run(request.path_params["name"], self.folder) as run:
            path = run.recordings / Path(request.path_params["file"]).name
        if path.suffix not in FILMS or not path.is_file():
            raise RunError(f"run {run.name} has no recording {path.name}")
        return FileResponse(path)

    async def command(self, request: Request) -> Response:
        """The one way to change anything."""
        if not self._is_trusted(request):
            reason = "this needs the token that the server printed when it started: open the page by that link"
            return JSONResponse({"error": reason}, 401)
        try:
            order = msgspec.json.decode(await request.body(), type=Order)
        except msgspec.MsgspecError as error:
            raise ProtegeError(f'expected {{"command": NAME, "arguments": {{...}}}}: {error}') from error
        control = CONTROLS.get(order.command)
        if control is None:
            raise ProtegeError(f"there is no command {order.command!r}: the commands are {', '.join(CONTROLS)}")
        control.check(order.arguments)

        def send() -> None:
            with open_run(request.path_params["name"], self.folder) as run:
                run.send(order.command, **order.arguments)

        await run_in_threadpool(send)
        return JSONResponse({"sent": order.command})

    def game(self, request: Request) -> Response:
        return JSONResponse(self._game(request).about())

    def scores(self, request: Request) -> Response:
        return JSONResponse(self._game(request).high_scores())

    def file(self, request: Request) -> Response:
        return Response(self._game(request).file(request.query_params), media_type="application/octet-stream")

    def leagues(self, request: Request) -> Response:
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
        with self._leagues_turn:
            state = folder, [(path.name, path.stat().st_mtime_ns) for path in sorted(folder.glob("league.sqlite*"))]
            if name not in self._reports or self._reports[name][0] != state:
                with open_league(name, self.folder) as league:
                    style = self.games[league.game].style if league.game in self.games else ()
                    self._reports[name] = state, report(league, style)
            return self._reports[name][1]

    async def feed(self, viewer: WebSocket) -> None:
        """News of the runs a page follows, as long as it is open."""
        await viewer.accept()
        self.viewers += 1
        wanted: dict[str, Place] = {}
        changed = asyncio.Event()

        async def listen() -> None:
            async for words in heard(viewer):
                with suppress(msgspec.ValidationError):
                    told = msgspec.convert(words, Wanted)
                    wanted.clear()
                    wanted.update(told.watch)
                    changed.set()

        def leave() -> None:
            self.viewers -= 1

        await until_one_ends(leave, listen(), self._tell(viewer, wanted, changed))

    async def _tell(self, viewer: WebSocket, wanted: dict[str, Place], changed: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        last_sent = -math.inf
        while True:
            for name, place in list(wanted.items()):
                try:
                    news = await run_in_threadpool(self.feeds.news, name, place)
                except (RunError, MetricError) as error:
                    news = {"run": name, "error": str(error)}
                    wanted.pop(name, None)
                if news is None:
                    continue
                if "error" not in news and wanted.get(name) == place:  # what it wants may have changed meanwhile
                    wanted[name] = Place(news["row"], news["event"], news["status"])
                await viewer.send_text(json.dumps(news | {"viewers": self.viewers}, separators=(",", ":")))
                last_sent = loop.time()
            if loop.time() - last_sent >= HEARTBEAT_SECONDS:
                await viewer.send_text(json.dumps({"viewers": self.viewers}))
                last_sent = loop.time()
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), LOOK_SECONDS)
            changed.clear()

    def _game(self, request: Request) -> Views:
        game = request.path_params["game"]
        if game not in self.games:
            raise RunError(f"there is no game {game!r} here: the games are {', '.join(self.games) or 'none'}")
        return self.games[game]

    def _is_trusted(self, request: Request) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())


def _about(name: str, views: Views) -> dict[str, Any]:
    """What the page needs to know of a game to show what is its own."""
    page, place = views.page, f"/games/{name}/"
    tabs = [asdict(tab) | {"module": place + tab.module} for tab in page.tabs]
    styles, links = [place + style for style in page.styles], place + page.links if page.links else None
    return {"name": name, "tabs": tabs, "styles": styles, "links": links}


def _number(asked: Mapping[str, str], name: str, default: Any) -> Any:
    """A number from an address, or the default where there is none."""
    if name not in asked:
        return default
    try:
        number = float(asked[name])
    except ValueError:
        number = math.nan
    if not abs(number) < 1e16:
        raise ProtegeError(f"{name} must be a number; got {asked[name][:40]!r}")
    return number


@dataclass(frozen=True)
class Served:
    """Where the page is."""

    url: str  # ends in /
    token: str
    note: str  # what is unusual about it, if anything
    stop: Callable[[], None]  # ends the server; any thread may call it

    def link(self, view: str = "") -> str:
        """An address that also brings the token: behind the #, where no server and no log sees it."""
        return f"{self.url}#{view}{'&' if '?' in view else '?' if view else ''}token={self.token}"


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket on the port, or on the next one that is free, and a note if it is another one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + PORTS_TRIED, 65536)) if port else [0]:
        try:
            found = socket.create_server((host, number), family=family)
        except OSError as error:
            problem = error
            continue
        note = f"port {port} is taken, so the page is at port {number}" if number != port else ""
        return found, note if port else ""
    raise ProtegeError(f"no page can be served at {host}, ports {port} to {number}: {problem.strerror or problem}")


def serve(
    games: Mapping[str, Views], *, folder: Path | None = None, host: str = "127.0.0.1", port: int = PORT,
    ready: Callable[[Served], None], until_stdin_closes: bool = False,
) -> None:  # fmt: skip
    """Serve until Ctrl-C, or until standard input ends."""
    place = runs_folder(folder)
    place.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(16)

    def answer(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 404 if isinstance(error, RunError) else 400)

    app = Starlette(routes=Pages(place, games, token).routes(), exception_handlers={ProtegeError: answer})
    listening, note = listen(host, port)
    with listening:
        shown = host if host not in ("0.0.0.0", "::", "") else socket.gethostname()
        name = f"[{shown}]" if ":" in shown else shown
        config = uvicorn.Config(
            Guard(app, host), log_level="warning", access_log=False, server_header=False,
            ws_max_size=MESSAGE_BYTES, timeout_graceful_shutdown=1,
            ws_per_message_deflate=False,  # pictures do not shrink enough to be worth the time
        )  # fmt: skip
        server = uvicorn.Server(config)

        def stop() -> None:
            server.should_exit = True

        def stop_after_stdin() -> None:
            while sys.stdin.buffer.read(4096):
                pass
            stop()

        if until_stdin_closes:
            threading.Thread(target=stop_after_stdin, daemon=True).start()
        if not is_loopback(host):
            note = f"{note}; " * bool(note) + "other machines can see the page; only the token lets them steer"
        ready(Served(f"http://{name}:{listening.getsockname()[1]}/", token, note, stop))
        server.run(sockets=[listening])
