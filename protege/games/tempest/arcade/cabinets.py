"""Simulated cabinets that speak the bridge's protocol, many in one process: for trying a server without MAME.

Each is the simulator's memory with a connection. Like the script inside MAME a cabinet sends a frame, stands still
until the reply comes, gives up after 3.5 s and connects again by itself; a game that is over is followed by a new one.
All that have a reply advance together, in compiled code.
"""

import errno
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.arcade import wire
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Rows, get
from protege.games.tempest.task import rewards, teacher
from protege.games.tempest.task.env import starts
from protege.games.tempest.task.observation import VALUES, observe, observe_level
from protege.kernels import announce_compilation, kernel
from protege.statistics import bootstrap, mean

REPLY_S: Final = 3.5  # without a reply, after which a connection is given up
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0  # between two attempts to connect
ROW_S: Final = 10.0  # between lines that say how it goes
GREETING_S: Final = 5.0

Ints = npt.NDArray[np.int64]
Replies = npt.NDArray[np.int8]  # (cabinets, 3)


@kernel
def _show(row: ram.Row, values: wire.Values, packet: Any) -> None:
    """What the script sends about a machine as it stands; the counter and the echo are the connection's."""
    observe_level(row, values)
    observe(row, values)
    for i in range(VALUES):
        packet["values"][i] = values[i]
    lost = rewards.died(row)
    target, fire, zap = teacher.advise(row, teacher.MEET)
    packet["subjective"] = 0.0 if lost else rewards.subjective_reward(row)
    packet["objective"] = rewards.objective_reward(row)
    packet["state"], packet["mode"], packet["done"] = row[ram.GAME_STATE], row[ram.GAME_MODE], 1 if lost else 0
    packet["score"] = ram.bcd_score(row, ram.SCORE_LOW)
    packet["target"], packet["lane"] = target, get(row, ram.PLAYER_LANE) & 15
    packet["open"], packet["level"] = 1 if row[ram.OPEN] != 0 else 0, row[ram.LEVEL_INDEX]
    packet["advised_fire"], packet["advised_zap"] = 1 if fire else 0, 1 if zap else 0


@kernel
def advance(
    rows: Rows, which: Ints, replies: Replies, counters: Ints, values: wire.Values, packets: wire.Packets, plays: bool
) -> int:
    """Play a tick of these cabinets, if so asked, and write what each then shows; how many ticks were frames."""
    frames = 0
    for i in range(len(which)):
        c = which[i]
        row, packet = rows[c], packets[i]
        if plays:
            control = (row[ram.GAME_STATE] == ram.PLAYING or row[ram.GAME_STATE] == ram.ZOOM) and not sim.is_over(row)
            frames += ram.in_control(row)
            fire, zap = control and replies[c, 0] != 0, control and replies[c, 1] != 0
            spinner: int = np.int64(replies[c, 2]) if control else np.int64(0)  # type: ignore[assignment]
            sim.step_game(row, fire, zap, False, spinner)
        counters[c] = counters[c] + 1 & 0xFFFF
        _show(row, values[c], packet)
        packet["counter"] = counters[c]
        packet["fire"], packet["zap"], packet["spinner"] = replies[c, 0], replies[c, 1], replies[c, 2]
    return frames


@dataclass
class _Line:
    """A cabinet's connection."""

    connection: socket.socket | None = None
    greeted: bool = False  # and welcome: replies come
    received: bytes = b""
    since: float = 0.0  # when it last said something
    retry_at: float = 0.0
    pause_s: float = FIRST_PAUSE_S


class Cabinets:
    """So many simulated machines at one server."""

    def __init__(
        self, clients: int, host: str = "127.0.0.1", port: int = wire.PORT, *, token: str = "", level: int = 1,
        seed: int = 1, tell: Callable[[str], None] = print,
    ):  # fmt: skip
        if not 1 <= clients <= wire.MOST_CLIENTS:
            raise ProtegeError(f"a server takes 1 to {wire.MOST_CLIENTS} clients; got {clients}")
        announce_compilation("the cabinets", __name__)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except socket.gaierror as problem:
            raise ProtegeError(f"there is no machine called {host}: give another name or number (--host)") from problem
        self.family, self.address, self.server = found[0], found[4], f"{host} port {port}"
        self.token, self.level, self.seed, self.tell = token, level, seed, tell
        self.started = 0
        self.rows = np.concatenate([self._new_game() for _ in range(clients)])
        self.replies, self.counters = np.zeros((clients, 3), np.int8), np.zeros(clients, np.int64)
        self._values = np.zeros((clients, VALUES), np.float32)
        self._packets, self._frames = np.zeros(clients, wire.NATIVE), wire.new_packets(clients)
        for field in ("length", "count"):
            self._packets[field] = self._frames[field]
        self._lines = [_Line() for _ in range(clients)]
        self._selector = selectors.DefaultSelector()
        self._said = ""
        self.frames = self.connected = self.lost = 0
        self.scores: list[int] = []
        self.reached: list[int] = []
        self._send([], np.arange(clients), plays=False)  # loads compiled code, for which the server would wait
        self.counters[:] = 0

    def _new_game(self) -> Rows:
        self.started += 1
        return starts(1, seed=self.seed, level=self.level, first=self.started - 1)

    def close(self) -> None:
        for line in self._lines:
            if line.connection is not None:
                line.connection.close()
        self._selector.close()

    def turn(self, most_s: float = 0.1) -> None:
        """Take in the replies that have come, or come within so many seconds, and answer them."""
        now, ready, fresh = time.monotonic(), [], []
        for c, line in enumerate(self._lines):
            if line.connection is None and now >= line.retry_at:
                self._connect(c, line, now)
        for key, events in self._selector.select(most_s):
            c, line = key.data, self._lines[key.data]
            if line.connection is None:
                continue
            if events & selectors.EVENT_WRITE:
                self._greet(c, line)
                continue
            try:
                line.received += line.connection.recv(64)
            except BlockingIOError:
                continue
            except OSError:
                line.received = b""
            if not line.received:
                self._hang_up(line, "the server closed the connection")
            elif not line.greeted:
                if self._is_welcome(line):
                    fresh.append(c)
            elif len(line.received) >= wire.REPLY.size:
                self.replies[c] = wire.REPLY.unpack(line.received[: wire.REPLY.size])
                line.received = line.received[wire.REPLY.size :]
                ready.append(c)
        self._play(ready)
        if fresh:
            self.replies[fresh] = 0
            self._send(fresh, np.array(fresh), plays=False)
        now = time.monotonic()
        for line in self._lines:
            if line.connection is not None and now - line.since > (REPLY_S if line.greeted else GREETING_S):
                self._hang_up(line, "no reply came")

    def _play(self, ready: list[int]) -> None:
        """One tick for each reply; a game whose end was shown gives way to a new one."""
        over = [c for c in ready if sim.is_over(self.rows[c])]
        for c in over:
            self.scores.append(int(ram.get_word(self.rows[c], ram.SCORE)))
            self.reached.append(int(self.rows[c, ram.P1_LEVEL]) + 1)
            self.rows[c] = self._new_game()[0]
        going = [c for c in ready if c not in over]
        if over:
            self._send(over, np.array(over), plays=False)
        if going:
            self.frames += self._send(going, np.array(going), plays=True)

    def _send(self, clients: list[int], which: Ints, *, plays: bool) -> int:
        packets = self._packets[: len(which)]
        frames = advance(self.rows, which, self.replies, self.counters, self._values, packets, plays)
        self._frames[: len(which)] = packets  # in the byte order of the wire
        sent = self._frames[: len(which)].tobytes()
        now, size = time.monotonic(), wire.FRAME.itemsize
        for i, c in enumerate(clients):
            line = self._lines[c]
            line.since = now
            assert line.connection is not None, "only a connection has replies"
            try:
                whole = line.connection.send(sent[i * size : (i + 1) * size]) == size
            except OSError:
                whole = False
            if not whole:
                self._hang_up(line, "the server does not read")
        return frames

    def _connect(self, c: int, line: _Line, now: float) -> None:
        line.connection = socket.socket(self.family, socket.SOCK_STREAM)
        line.connection.setblocking(False)
        line.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.greeted, line.received, line.since = False, b"", now
        problem = line.connection.connect_ex(self.address)
        self._selector.register(line.connection, selectors.EVENT_WRITE, c)
        if problem not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
            self._hang_up(line, "nobody listens there")

    def _greet(self, c: int, line: _Line) -> None:
        assert line.connection is not None
        if line.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._hang_up(line, "nobody listens there")
            return
        self._selector.modify(line.connection, selectors.EVENT_READ, c)
        try:
            line.connection.send(wire.greet(self.token, f"cabinet {c + 1}"))
        except OSError:
            self._hang_up(line, "the server closed the connection")

    def _is_welcome(self, line: _Line) -> bool:
        if len(line.received) < wire.ANSWER.size:
            return False
        mark, _, status, _, level = wire.ANSWER.unpack(line.received[: wire.ANSWER.size])
        line.received = b""
        if mark != wire.MARK:
            raise ProtegeError(f"what answers at {self.server} is no server of Protege")
        if status == wire.WRONG_TOKEN:
            raise ProtegeError(f"the server at {self.server} asks for a token: give its own with --token")
        if status == wire.FULL:
            self._hang_up(line, "the server has all the clients it takes")
            return False
        line.greeted, line.pause_s = True, FIRST_PAUSE_S
        self.level = level or self.level  # of games to come: what the server wishes comes first
        self.connected += 1
        self._said = ""
        return True

    def _hang_up(self, line: _Line, why: str) -> None:
        assert line.connection is not None
        self.lost += line.greeted
        with suppress(KeyError):
            self._selector.unregister(line.connection)
        line.connection.close()
        line.connection, line.greeted = None, False
        line.retry_at, line.pause_s = time.monotonic() + line.pause_s, min(LONGEST_PAUSE_S, 2 * line.pause_s)
        if why != self._said:
            self._said = why
            self.tell(f"{self.server}: {why}; trying again")


def run_cabinets(
    cabinets: Cabinets, *, minutes: float = 0.0, frames: int = 0, tell: Callable[[str], None] = print
) -> dict[str, Any]:
    """Play until the minutes are over, so many frames are played, or Ctrl-C; returns what came of it."""
    began, cpu = time.monotonic(), time.process_time()
    row_at, before = began + ROW_S, 0
    try:
        while not (frames and cabinets.frames >= frames):
            cabinets.turn()
            now = time.monotonic()
            if minutes and now - began >= 60 * minutes:
                break
            if now >= row_at:
                rate, before = (cabinets.frames - before) / (now - row_at + ROW_S), cabinets.frames
                row_at = now + ROW_S
                tell(f"{rate:,.0f} frames/s, {cabinets.frames:,} so far; {_sum_up(cabinets.scores)}")
    except KeyboardInterrupt:
        tell("stopped")
    finally:
        cabinets.close()
    seconds, scores = time.monotonic() - began, np.array(cabinets.scores, np.float64)
    found: dict[str, Any] = {
        "clients": len(cabinets.rows), "frames": cabinets.frames, "frames_per_s": cabinets.frames / seconds,
        "games": len(scores), "connections": cabinets.connected, "connections_lost": cabinets.lost,
        "seconds": seconds, "cpu_seconds": time.process_time() - cpu,
    }  # fmt: skip
    if len(scores):
        low, high = bootstrap(scores, mean)
        found |= {"score_mean": float(scores.mean()), "score_mean_low": low, "score_mean_high": high}
        found |= {"score_median": float(np.median(scores)), "level_mean": float(np.mean(cabinets.reached))}
    return found


def _sum_up(scores: list[int]) -> str:
    if not scores:
        return "no game is over yet"
    latest = scores[-100:]
    return f"{len(scores):,} games, {np.mean(latest):,.0f} points in the last {len(latest)}"
