"""Games on show: a thread plays each while anybody watches, and every viewer gets the newest picture he can take.

A show comes from a game's own module (`Show`), opened by name; what its messages hold is between it and the page.
Viewers who ask for the same shared show see the same one. A slow viewer misses pictures; nothing piles up.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from protege import ProtegeError

MOST_STAGES: Final = 12  # shows going on at once, in all
MOST_SAID: Final = 200  # words of viewers kept until the next tick
MOST_WAITING: Final = 2  # messages kept for a viewer who is slower than the show
FULL: Final = 1013  # "try again later" among the websocket codes
HOPELESS: Final = 4000  # our own: the show cannot be opened, and the text before it said why


class Show(Protocol):
    """A game that goes on."""

    rate: float  # ticks a second

    def tick(self) -> bytes:
        """Go on by one tick; what to send to the viewers."""

    def hear(self, words: Mapping[str, Any]) -> None:
        """What a viewer says, always between two ticks."""


class Shows(Protocol):
    """What a game has on offer."""

    game: str

    def about(self) -> dict[str, Any]:
        """What a page needs to know to ask for shows: who can be watched, and what else there is to choose."""

    def shared(self, kind: str) -> bool:
        """Whether viewers with the same settings see the same show."""

    def open(self, kind: str, settings: Mapping[str, str]) -> Show:
        """A new show; raises `ProtegeError` for settings that make no sense."""

    def high_scores(self) -> list[dict[str, Any]]:
        """The best games people played here."""

    def file(self, settings: Mapping[str, str]) -> bytes:
        """A recording that pages unpack themselves; raises `ProtegeError` where there is none or it is damaged."""


class Stage:
    """One show, its thread and its viewers. All but `_play` runs in the event loop."""

    def __init__(self, open_show: Callable[[], Show], name: str) -> None:
        self.viewers: set[asyncio.Queue[bytes | str | None]] = set()
        self.said: deque[Mapping[str, Any]] = deque(maxlen=MOST_SAID)  # by viewers since the last tick
        self._open = open_show
        self._loop = asyncio.get_running_loop()
        self._closed = threading.Event()
        threading.Thread(target=self._play, name=name, daemon=True).start()

    def enter(self) -> asyncio.Queue[bytes | str | None]:
        """A viewer's messages: pictures, texts about what is wrong, and None at the end."""
        seat: asyncio.Queue[bytes | str | None] = asyncio.Queue(MOST_WAITING)
        self.viewers.add(seat)
        return seat

    def leave(self, seat: asyncio.Queue[bytes | str | None]) -> bool:
        """True when that was the last viewer: then the show ends."""
        self.viewers.discard(seat)
        if not self.viewers:
            self._closed.set()
        return not self.viewers

    def _send(self, message: bytes | str | None) -> None:
        for seat in self.viewers:
            while seat.full():
                seat.get_nowait()
            seat.put_nowait(message)

    def _play(self) -> None:
        try:
            show = self._open()
            due = time.monotonic()
            while not self._closed.is_set():
                while self.said:
                    show.hear(self.said.popleft())
                self._tell(show.tick())
                # A machine that cannot keep up shows the game slower, not in jumps.
                due = max(due + 1 / show.rate, time.monotonic() - 0.1)
                self._closed.wait(max(0.0, due - time.monotonic()))
        except ProtegeError as problem:
            self._tell(json.dumps({"error": str(problem)}))
        finally:
            self._tell(None)

    def _tell(self, message: bytes | str | None) -> None:
        with suppress(RuntimeError):  # the server has stopped, and its loop is closed
            self._loop.call_soon_threadsafe(self._send, message)


class Theatre:
    """Every show that is going on."""

    def __init__(self, games: Mapping[str, Shows]) -> None:
        self.games = games
        self.stages: dict[object, Stage] = {}

    async def visit(self, socket: WebSocket) -> None:
        """Let one viewer watch until he leaves or the show ends."""
        await socket.accept()
        game, kind = socket.path_params["game"], socket.path_params["kind"]
        settings = dict(socket.query_params)
        if game not in self.games:
            known = ", ".join(self.games) or "none"
            await self._turn_away(socket, HOPELESS, f"there is no game {game!r} here: the games are {known}")
            return
        shows = self.games[game]
        key: object = (game, kind, *sorted(settings.items())) if shows.shared(kind) else object()
        if key not in self.stages:
            if len(self.stages) >= MOST_STAGES:
                await self._turn_away(socket, FULL, f"{MOST_STAGES} games are being watched, no more fit: close one")
                return
            self.stages[key] = Stage(lambda: shows.open(kind, settings), f"{kind} {game}")
        stage = self.stages[key]
        seat = stage.enter()
        listening = asyncio.create_task(self._listen(socket, stage))
        showing = asyncio.create_task(self._show(socket, seat))
        try:
            await asyncio.wait({listening, showing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if stage.leave(seat):
                self.stages.pop(key, None)
            for task in (listening, showing):
                task.cancel()
            await asyncio.gather(listening, showing, return_exceptions=True)

    async def _show(self, socket: WebSocket, seat: asyncio.Queue[bytes | str | None]) -> None:
        failed = False
        while (message := await seat.get()) is not None:
            if isinstance(message, str):
                failed = True
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)
        await socket.close(HOPELESS if failed else 1011)

    async def _listen(self, socket: WebSocket, stage: Stage) -> None:
        while True:
            try:
                words = json.loads(await socket.receive_text())
            except (WebSocketDisconnect, KeyError):  # gone, or bytes where text belongs
                return
            except (ValueError, RecursionError):
                continue
            if isinstance(words, dict):
                stage.said.append(words)

    async def _turn_away(self, socket: WebSocket, code: int, reason: str) -> None:
        await socket.send_text(json.dumps({"error": reason}))
        await socket.close(code)
