"""Live views: a thread advances each while anybody watches, and every viewer gets the newest picture he can take.

A live view comes from a game's own module (`LiveView`), opened by kind; what its messages hold is between it and the
page. Viewers who ask for the same shared view see the same one. A slow viewer misses pictures; nothing piles up.
"""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from protege import ProtegeError
from protege.runs.metrics import Metric

MOST_VIEWS: Final = 12  # open at once, in all
MOST_SAID: Final = 200  # messages of viewers kept until the next tick
MOST_WAITING: Final = 2  # messages kept for a viewer who is slower than the view
FULL: Final = 1013  # "try again later" among the websocket codes
HOPELESS: Final = 4000  # our own: the view cannot be opened, and the text before it said why


Messages = asyncio.Queue[bytes | str | None]  # to a viewer: pictures, texts about what is wrong, and None at the end


class LiveView(Protocol):
    """A game that goes on."""

    rate: float  # ticks a second

    def tick(self) -> bytes: ...  # goes on by one tick; what to send to the viewers
    def hear(self, words: Mapping[str, Any]) -> None: ...  # what a viewer says, always between two ticks


@dataclass(frozen=True)
class Tab:
    """A view of the page that belongs to one game."""

    name: str  # in its address, #/GAME/NAME
    title: str
    module: str  # ES module in the game's static folder; its default export draws the view


@dataclass(frozen=True)
class Page:
    """What a game adds to the page: files in its own folder, served under /games/GAME/."""

    static: Path | None = None
    tabs: tuple[Tab, ...] = ()
    styles: tuple[str, ...] = ()
    links: str = ""  # ES module: a run's preview, and where recordings and matches are watched


class Views(Protocol):
    """What of a game can be watched."""

    @property
    def style(self) -> Sequence[Metric]: ...  # what a league tells of how its players play
    @property
    def page(self) -> Page: ...

    # What a page needs to know to ask for live views: who can be watched, and what else there is to choose.
    def about(self) -> dict[str, Any]: ...
    def shared(self, kind: str) -> bool: ...  # whether viewers with the same settings see the same live view
    # The next two raise `ProtegeError` for settings that make no sense, or where a file is missing or damaged.
    def open(self, kind: str, settings: Mapping[str, str]) -> LiveView: ...
    def file(self, settings: Mapping[str, str]) -> bytes: ...  # a recording that pages unpack themselves
    def high_scores(self) -> list[dict[str, Any]]: ...  # the best games people played here


async def heard(viewer: WebSocket) -> AsyncIterator[Any]:
    """What a viewer says until he leaves; what is not JSON is passed over."""
    while True:
        try:
            words = json.loads(await viewer.receive_text())
        except (WebSocketDisconnect, KeyError):  # gone, or bytes where text belongs
            return
        except (ValueError, RecursionError):
            continue
        yield words


async def until_one_ends(leave: Callable[[], None], *work: Coroutine[Any, Any, None]) -> None:
    """Run several things at once; when the first one ends, `leave` is called at once, and the others end as well."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leave()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Broadcast:
    """One live view, its thread and its viewers. All but `_play` runs in the event loop."""

    def __init__(self, open_view: Callable[[], LiveView], name: str) -> None:
        self.viewers: set[Messages] = set()
        self.said: deque[Mapping[str, Any]] = deque(maxlen=MOST_SAID)  # by viewers since the last tick
        self._open = open_view
        self._loop = asyncio.get_running_loop()
        self._closed = threading.Event()
        threading.Thread(target=self._play, name=name, daemon=True).start()

    def enter(self) -> Messages:
        """A viewer's messages."""
        messages: Messages = asyncio.Queue(MOST_WAITING)
        self.viewers.add(messages)
        return messages

    def leave(self, messages: Messages) -> bool:
        """True when that was the last viewer: then the live view ends."""
        self.viewers.discard(messages)
        if not self.viewers:
            self._closed.set()
        return not self.viewers

    def _send(self, message: bytes | str | None) -> None:
        for messages in self.viewers:
            while messages.full():
                messages.get_nowait()
            messages.put_nowait(message)

    def _play(self) -> None:
        try:
            view = self._open()
            due = time.monotonic()
            while not self._closed.is_set():
                while self.said:
                    view.hear(self.said.popleft())
                self._tell(view.tick())
                # A machine that cannot keep up shows the game slower, not in jumps.
                due = max(due + 1 / view.rate, time.monotonic() - 0.1)
                self._closed.wait(max(0.0, due - time.monotonic()))
        except ProtegeError as problem:
            self._tell(json.dumps({"error": str(problem)}))
        finally:
            self._tell(None)

    def _tell(self, message: bytes | str | None) -> None:
        with suppress(RuntimeError):  # the server has stopped, and its loop is closed
            self._loop.call_soon_threadsafe(self._send, message)


class LiveViews:
    """Every live view that is open."""

    def __init__(self, games: Mapping[str, Views]) -> None:
        self.games = games
        self.broadcasts: dict[object, Broadcast] = {}

    async def watch(self, socket: WebSocket) -> None:
        """Let one viewer watch until he leaves or the live view ends."""
        await socket.accept()
        game, kind = socket.path_params["game"], socket.path_params["kind"]
        settings = dict(socket.query_params)
        if game not in self.games:
            known = ", ".join(self.games) or "none"
            await self._turn_away(socket, HOPELESS, f"there is no game {game!r} here: the games are {known}")
            return
        views = self.games[game]
        key: object = (game, kind, *sorted(settings.items())) if views.shared(kind) else object()
        if key not in self.broadcasts:
            if len(self.broadcasts) >= MOST_VIEWS:
                await self._turn_away(socket, FULL, f"{MOST_VIEWS} games are being watched, no more fit: close one")
                return
            self.broadcasts[key] = Broadcast(lambda: views.open(kind, settings), f"{kind} {game}")
        broadcast = self.broadcasts[key]
        messages = broadcast.enter()

        def leave() -> None:
            if broadcast.leave(messages):
                self.broadcasts.pop(key, None)

        await until_one_ends(leave, self._listen(socket, broadcast), self._send(socket, messages))

    async def _send(self, socket: WebSocket, messages: Messages) -> None:
        code = 1011
        while (message := await messages.get()) is not None:
            if isinstance(message, str):
                code = HOPELESS
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)
        await socket.close(code)

    async def _listen(self, socket: WebSocket, broadcast: Broadcast) -> None:
        async for words in heard(socket):
            if isinstance(words, dict):
                broadcast.said.append(words)

    async def _turn_away(self, socket: WebSocket, code: int, reason: str) -> None:
        await socket.send_text(json.dumps({"error": reason}))
        await socket.close(code)
