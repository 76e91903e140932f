"""Arcade clients for tests: simulated cabinets that speak the seed's protocol over real sockets.

`Machine` is the cabinet with its script: it builds packets from memory, spelled here independently of wire.py, and
turns replies into controls as the Lua client does. `Client` is its connection.
"""

import socket
import struct
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from protege.games.tempest.arcade.bridge import Agent
from protege.games.tempest.arcade.streams import Decisions, Game, Places, Steps
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.task import rewards, teacher
from protege.games.tempest.task.env import Frames
from tests.games.tempest.task.scenes import ABSENT, observed

HEADER = ">HHddBBBHIBBBhhBBBBB"  # the length prefix first
FRAME_BYTES = 821
PLAIN = b"\0\0"


def packet_of(
    values: npt.ArrayLike, *, length: int = 819, count: int = 195, subjective: float = 0.0, objective: float = 0.0,
    state: int = ram.PLAYING, mode: int = 0xC0, done: int = 0, counter: int = 1, score: int = 0, save: int = 0,
    echo: Sequence[int] = (0, 0, 0), target: int = -1, lane: int = 0, is_open: int = 0, fire: int = 0, zap: int = 0,
    level: int = 0,
) -> bytes:  # fmt: skip
    """A frame, field by field."""
    about = (length, count, subjective, objective, state, mode, done, counter & 0xFFFF, score, save, *echo)
    header = struct.pack(HEADER, *about, target, lane, is_open, fire, zap, level)
    return header + np.asarray(values).astype(">f4").tobytes()


class Machine:
    """A cabinet in the simulator, and the script that plays it."""

    ready = False

    def __init__(self, row: ram.Row, rules: int = teacher.MEET):
        if not Machine.ready:  # else the first client of all would compile while its server waits, and be sent away
            Machine.ready = True
            first = Machine(sim.start_game())
            first.packet()
            first.tick()
        self.row, self.rules = row, rules
        self.counter = 0  # never reset, as long as the machine runs
        self.echo = (0, 0, 0)
        self.save = 0

    def packet(self) -> bytes:
        """What the script sends about the machine as it stands."""
        row = self.row
        self.counter += 1
        died = bool(rewards.died(row))
        target, fire, zap = teacher.advise(row, self.rules)
        return packet_of(
            observed(row),
            subjective=0.0 if died else float(rewards.subjective_reward(row)),
            objective=float(rewards.objective_reward(row)),
            state=int(row[ram.GAME_STATE]),
            mode=int(row[ram.GAME_MODE]),
            done=died,
            counter=self.counter,
            score=int(ram.bcd_score(row, ram.SCORE_LOW)),
            save=self.save,
            echo=self.echo,
            target=int(target),
            lane=int(row[ram.PLAYER_LANE]) & 15,
            is_open=int(row[ram.OPEN] != 0),
            fire=fire,
            zap=zap,
            level=int(row[ram.LEVEL_INDEX]),
        )

    def tick(self, reply: bytes = bytes(3)) -> None:
        """Play one tick: the reply rules in play; elsewhere the script presses what leads to the next game."""
        self.echo = struct.unpack("bbb", reply[:3])
        state, attract = self.row[ram.GAME_STATE], not self.row[ram.GAME_MODE] & ram.REAL_GAME
        fire, zap, start, spinner = False, False, False, 0
        if state in (ram.ENTER_INITIALS, ram.LEVEL_SELECT):
            fire = self.counter % 10 == 0
        elif attract:
            start = self.counter % 50 == 0
        elif state in (ram.PLAYING, ram.ZOOM):
            fire, zap, spinner = self.echo[0] != 0, self.echo[1] != 0, self.echo[2]
        sim.step_game(self.row, fire, zap, start, spinner)

    def in_control(self) -> bool:
        return bool(ram.in_control(self.row))

    def is_over(self) -> bool:
        return bool(sim.is_over(self.row))


class Client:
    """A connection to a bridge. It waits for every reply, at most `patience` seconds."""

    def __init__(self, port: int, greeting: bytes = PLAIN, *, reply_bytes: int = 3, patience: float = 10.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reply_bytes = reply_bytes
        self.socket.sendall(greeting)
        self.answer = self.receive(5) if greeting[:1] == b"P" else b""

    def receive(self, count: int) -> bytes:
        """Exactly so many bytes, or fewer if the server closes."""
        found = b""
        while len(found) < count:
            try:
                piece = self.socket.recv(count - len(found))
            except ConnectionResetError:
                break
            if not piece:
                break
            found += piece
        return found

    def exchange(self, packet: bytes, pieces: int = 1) -> bytes:
        """Send a frame, in so many pieces; the reply, empty if the server has closed the connection."""
        edges = [len(packet) * i // pieces for i in range(pieces + 1)]
        try:
            for first, last in zip(edges[:-1], edges[1:], strict=True):
                self.socket.sendall(packet[first:last])
        except (BrokenPipeError, ConnectionResetError):
            return b""
        return self.receive(self.reply_bytes)

    def play(self, machine: Machine, pieces: int = 1) -> bytes:
        """One tick of a machine."""
        reply = self.exchange(machine.packet(), pieces)
        machine.tick(reply or bytes(3))
        return reply

    def is_closed(self) -> bool:
        """Wait until the server closes."""
        return self.receive(1) == b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # a test may forget its clients


class Listener(Agent):
    """An agent that remembers everything; it decides by a function of the frames."""

    def __init__(self, choose: Callable[[Frames], np.ndarray] | None = None):
        self.choose = choose or (lambda frames: np.zeros(len(frames.score), np.int64))
        self.seen: list[tuple[Frames, Places]] = []
        self.steps: list[Steps] = []
        self.games: list[Game] = []
        self.notes: list[str] = []
        self.saves = 0

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        self.seen.append((Frames._make([array.copy() for array in frames]), clients.copy()))
        return Decisions(self.choose(frames), np.full(len(clients), 7))

    def learn(self, steps: Steps) -> None:
        self.steps.append(steps)

    def finish(self, game: Game) -> None:
        self.games.append(game)

    def save(self) -> None:
        self.saves += 1

    def note(self, text: str) -> None:
        self.notes.append(text)

    def steps_of(self, client: int) -> Steps:
        """All steps of one place, in order."""
        whole = Steps._make([np.concatenate(parts) for parts in zip(*self.steps, strict=True)])
        mine = whole.clients == client
        return Steps._make([part[mine] for part in whole])


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for another thread to get somewhere."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def a1_values() -> list[float]:
    values = [0.0] * 195
    for index in (6, 11, 178, 179, 180):
        values[index] = 1.0
    for index in ABSENT:
        values[index] = -1.0
    return values


# A frame that is believed: of a machine that plays, where nothing else is.
SOUND = a1_values()
SOUND[0], SOUND[1] = 4 / 36, 0xC0 / 255
