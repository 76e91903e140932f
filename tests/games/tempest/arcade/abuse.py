"""Clients that behave badly, and a ledger that finds anything false in what the bridge passes on.

Every frame that is sent carries who sent it and which one it is among its values, and is judged here, independently of
wire.py, before it is sent. Whatever reaches the agent as experience is looked up: it must have been sent, by one
connection, in that order, sound, with the player in control, and its reward must be that of the very next frame.
"""

import random
import socket
import struct
import threading
import time
from collections import Counter, deque
from typing import NamedTuple

import numpy as np
import psutil

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig
from protege.games.tempest.arcade.streams import Decisions, Steps
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import starts
from tests.games.tempest.arcade.client import FRAME_BYTES, HEADER, PLAIN, Machine, wait_until

VALUES_AT = struct.calcsize(HEADER)
TAG = 151  # the first of two values that carry the index of the frame and the number of the connection
TAGS_AT = VALUES_AT + 4 * TAG
COUNTER_AT, ECHO_AT = 23, 30
UNIT = 2.0**-23  # tags are multiples of it: exact as 32-bit numbers
REMEMBERED = 300  # frames of a connection, and streams
ENDED = 100  # connections that have ended, with a quarter of a megabyte each


class Sent(NamedTuple):
    """A record as it went out."""

    sound: bool
    control: bool
    counter: int
    echo: tuple[int, int, int]
    reward: float
    done: bool
    values: bytes


NOISE = Sent(False, False, 0, (0, 0, 0), 0.0, False, b"")


def judge(record: bytes) -> Sent:
    """What a record is, by the letter of the protocol."""
    if len(record) != FRAME_BYTES:
        return NOISE
    (length, count, subjective, objective, state, mode, done, counter, score, save, *rest) = struct.unpack(
        HEADER, record[:VALUES_AT]
    )
    fire, zap, spinner, target, lane, is_open, advised_fire, advised_zap, level = rest
    with np.errstate(invalid="ignore"):
        values = np.frombuffer(record[VALUES_AT:], ">f4").astype(np.float64)
    sound = length == 819 and count == 195 and bool(np.isfinite([*values, subjective, objective]).all())
    sound = sound and bool((abs(values) <= 1.0001).all()) and abs(objective) <= 2000 and abs(subjective) <= 10
    sound = sound and max(done, save, fire, zap, is_open, advised_fire, advised_zap) <= 1
    sound = sound and score < 1_000_000 and lane <= 15 and (-1 <= target <= 15 or target == -32768)
    told = ((0, min(state, 36), 36), (1, mode, 255), (28, min(level, 98), 98), (29, is_open, 1))
    sound = sound and all(abs(values[index] * scale - byte) < 0.01 for index, byte, scale in told)
    control = sound and state in (ram.PLAYING, ram.ZOOM) and mode >= 0x80 and values[6] > 0.5 and not done
    reward = max(-10.0, min(10.0, 0.01 * objective + 0.01 * subjective)) if sound else 0.0
    return Sent(sound, control, counter, (fire, zap, spinner), reward, done == 1, record[VALUES_AT:])


class Ledger(Agent):
    """Decides at random and checks everything it is told. What it finds wrong ends the bridge, which raises it."""

    def __init__(self, seed: int = 0):
        self.dice = np.random.default_rng(seed)
        self.sent: dict[int, dict[int, Sent]] = {}  # by connection and index
        self.connections = 0
        self.ended: deque[int] = deque()
        self.owner: dict[int, tuple[int, int]] = {}  # of a stream: its connection, and the last index told
        self.steps: Counter[int] = Counter()  # by connection, of those that last
        self.told = self.truncated = 0
        self.lock = threading.Lock()

    def decide(self, frames, clients):
        return Decisions(self.dice.integers(0, len(ACTIONS), len(clients)), 0)

    def learn(self, steps: Steps) -> None:
        for i in range(len(steps.clients)):
            self.check(Steps._make([part[i] for part in steps]))

    def check(self, step: Steps) -> None:
        index, connection = np.round(step.observations[TAG : TAG + 2] / UNIT).astype(int).tolist()
        log = self.sent[connection]
        frame = log[index]
        assert frame.sound and frame.control, f"a frame that nobody could act on was told: {frame}"
        seen = np.clip(np.frombuffer(frame.values, ">f4").astype(np.float32), -1, 1)
        assert np.array_equal(step.observations, seen), "not what was sent"
        stream = int(step.streams)
        before = self.owner.get(stream, (connection, -1))
        assert before[0] == connection and before[1] < index, f"{before} and then {connection, index} in one stream"
        self.owner[stream] = connection, index
        if len(self.owner) > REMEMBERED:
            del self.owner[next(iter(self.owner))]
        self.told += 1
        self.steps[connection] += 1
        if step.truncated:
            self.truncated += 1
            return
        after = log[index + 1]
        assert after.sound and after.counter == (frame.counter + 1) & 0xFFFF, "a step over a gap"
        assert after.echo == tuple(ACTIONS[step.actions].tolist()), "an action that was not confirmed"
        assert np.float32(after.reward) == step.rewards and after.done == step.terminated, "not that frame's outcome"

    def open(self) -> int:
        """The number of a new connection."""
        with self.lock:
            self.connections += 1
            self.sent[self.connections] = {}
            return self.connections

    def close(self, connection: int) -> None:
        """It is over; what it sent is remembered a little longer."""
        with self.lock:
            self.ended.append(connection)
            if len(self.ended) > ENDED:
                forgotten = self.ended.popleft()
                del self.sent[forgotten]
                self.steps.pop(forgotten, None)


class Tagged:
    """A connection whose frames are written into the ledger before they are sent."""

    def __init__(self, port: int, ledger: Ledger, greeting: bytes = PLAIN, patience: float = 10.0):
        self.ledger, self.number = ledger, ledger.open()
        self.index = 0
        self.echo = bytes(4)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.socket.sendall(greeting)
            if greeting[:2] == b"P\1":
                self.receive(5)
        except OSError:
            self.close()
            raise

    def receive(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            if not piece:
                raise ConnectionResetError("closed by the server")
            found += piece
        return found

    def enter(self, record: bytearray) -> bytearray:
        """Tag a record, if it has room for that, and write it down."""
        if len(record) >= TAGS_AT + 8:
            record[TAGS_AT : TAGS_AT + 8] = struct.pack(">ff", self.index * UNIT, self.number * UNIT)
        log = self.ledger.sent[self.number]
        log[self.index] = judge(bytes(record))
        log.pop(self.index - REMEMBERED, None)
        self.index += 1
        return record

    def reply(self) -> bytes:
        reply = self.receive(3)
        fire, zap, spinner = struct.unpack("bbb", reply)
        self.echo = struct.pack(">BBh", fire, zap, spinner)
        return reply

    def exchange(self, record: bytes) -> bytes:
        self.socket.sendall(self.enter(bytearray(record)))
        return self.reply()

    def close(self, *, abruptly: bool = False) -> None:
        if abruptly:  # a reset instead of a farewell
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.ledger.close(self.number)


class Honest(threading.Thread):
    """A client that plays on, whatever the others do."""

    def __init__(self, port: int, ledger: Ledger, row: ram.Row):
        super().__init__(daemon=True)
        self.client, self.machine = Tagged(port, ledger), Machine(row)
        self.decisions = self.ticks = 0
        self.stop = threading.Event()
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.decisions += self.machine.in_control()
                self.machine.tick(self.client.exchange(self.machine.packet()))
                self.ticks += 1
                time.sleep(0.01)  # the others are to be heard, too
        except Exception as problem:  # whatever it is, whoever waits for the end raises it
            self.problem = problem

    def finish(self, tallies: Counter[str]) -> None:
        """Stop, and make sure that every decision was told and none was cut."""
        self.stop.set()
        self.join()
        if self.problem:
            raise AssertionError(f"an honest client was lost after {self.ticks} ticks: {tallies}") from self.problem
        wait_until(lambda: self.client.ledger.steps[self.client.number] >= self.decisions - 1)
        told = self.client.ledger.steps[self.client.number]
        assert self.decisions - 1 <= told <= self.decisions, f"{told} of {self.decisions} decisions were told"


class Outcome(NamedTuple):
    """What came of the abuse."""

    inputs: int
    connections: int
    told: int  # steps
    truncated: int
    honest_ticks: int
    tallies: Counter[str]
    grown_mb: float


class Memory:
    """The resident memory after half of the work, when everything has been touched, and how it grew since."""

    def __init__(self) -> None:
        self.start: float | None = None

    def look(self, share: float) -> None:
        if self.start is None and share >= 0.5:
            self.start = self.now()

    def grown(self) -> float:
        return self.now() - (self.start or 0.0)

    def now(self) -> float:
        return psutil.Process().memory_info().rss / 1e6


# --- nonsense --------------------------------------------------------------------------------------------------------

KINDS = {
    "true": 40, "pieces": 6, "flip": 12, "poison": 8, "header": 8, "length": 4, "noise": 3, "jump": 6, "echo": 2,
    "ahead": 2, "half": 2, "menu": 4, "death": 3,
}  # fmt: skip
POISON = (float("nan"), float("inf"), float("-inf"), 1.01, -2.0, 1e30, -3.4e38)


class Fuzzer:
    """Sends one input after the other, each true, twisted or nonsense."""

    def __init__(self, port: int, ledger: Ledger, seed: int):
        self.port, self.ledger, self.dice = port, ledger, random.Random(seed)
        self.true = []
        for row in starts(40, seed=seed, level=[1 + i for i in range(40)]):
            machine = Machine(row)
            for _ in range(10):
                self.true.append(machine.packet())
                machine.tick(bytes([1, 0, self.dice.randrange(12)]))
        self.client: Tagged | None = None
        self.counter = 0
        self.inputs: Counter[str] = Counter()

    def send(self) -> None:
        """One input; a connection that is gone is replaced."""
        kind = self.dice.choices(list(KINDS), list(KINDS.values()))[0]
        self.inputs[kind] += 1
        try:
            if self.client is None:
                self.client = Tagged(self.port, self.ledger, self.greeting(), patience=0.5)
            if not getattr(self, f"send_{kind}", self.send_twisted)(self.client, kind):
                self.hang_up()
        except (ConnectionError, TimeoutError):
            self.hang_up()

    def hang_up(self) -> None:
        if self.client is not None:
            self.client.close(abruptly=self.dice.random() < 0.5)
            self.client = None

    def greeting(self) -> bytes:
        chance = self.dice.random()
        if chance < 0.8:
            return PLAIN
        if chance < 0.95:
            return wire.greet(name=f"fuzzer {self.dice.random()}")
        return b"P" + self.dice.randbytes(self.dice.randrange(1, 300))

    def frame(self) -> bytearray:
        """A frame that is as it should be."""
        assert self.client is not None
        self.counter += 1
        record = bytearray(self.dice.choice(self.true))
        record[COUNTER_AT : COUNTER_AT + 2] = (self.counter & 0xFFFF).to_bytes(2, "big")
        record[ECHO_AT : ECHO_AT + 4] = self.client.echo
        return record

    def send_twisted(self, client: Tagged, kind: str) -> bool:
        """A frame of the right size, changed as its kind says."""
        record, dice = self.frame(), self.dice
        if kind == "flip":
            for _ in range(dice.randrange(1, 9)):
                place = dice.randrange(2, FRAME_BYTES)
                record[place] ^= 1 << dice.randrange(8)
        elif kind == "poison":
            index = dice.choice([i for i in range(195) if i not in (TAG, TAG + 1)])
            struct.pack_into(">f", record, VALUES_AT + 4 * index, dice.choice(POISON))
        elif kind == "header":
            record[dice.randrange(2, VALUES_AT)] = dice.randrange(256)
        elif kind == "jump":
            self.counter = dice.choice((self.counter - 1, self.counter + 1, dice.randrange(65_536)))
            record[COUNTER_AT : COUNTER_AT + 2] = (self.counter & 0xFFFF).to_bytes(2, "big")
        elif kind == "echo":
            record[ECHO_AT + 3] ^= 1 + dice.randrange(255)
        elif kind == "menu":
            record[18 + 2] = ram.LEVEL_SELECT
            struct.pack_into(">f", record, VALUES_AT, ram.LEVEL_SELECT / 36)
        elif kind == "death":
            record[20 + 2] = 1
            struct.pack_into(">f", record, VALUES_AT + 4 * 6, 0.0)
        client.socket.sendall(client.enter(record))
        client.reply()
        return True

    def send_pieces(self, client: Tagged, kind: str) -> bool:
        record = client.enter(self.frame())
        while record:
            count = self.dice.randrange(1, 600)
            client.socket.sendall(record[:count])
            record = record[count:]
        client.reply()
        return True

    def send_length(self, client: Tagged, kind: str) -> bool:
        length = self.dice.choice((0, 1, 2, 3, 41, 818, 820, 4095, 4096, 4097, 65_535, self.dice.randrange(65_536)))
        record = bytearray(length.to_bytes(2, "big") + self.dice.randbytes(length))
        client.socket.sendall(client.enter(record))
        client.reply()
        return True

    def send_noise(self, client: Tagged, kind: str) -> bool:
        client.socket.sendall(self.dice.randbytes(self.dice.randrange(1, 5000)))
        return False

    def send_ahead(self, client: Tagged, kind: str) -> bool:
        client.socket.sendall(client.enter(self.frame()) + client.enter(self.frame()))
        client.receive(6)  # if it comes at all, the second frame does not confirm the reply to the first
        return False

    def send_half(self, client: Tagged, kind: str) -> bool:
        client.socket.sendall(self.frame()[: self.dice.randrange(1, FRAME_BYTES)])
        return False


def fuzz(inputs: int, seed: int = 1) -> Outcome:
    """So many inputs from four fuzzers at once, while two honest clients play."""
    ledger, memory = Ledger(seed), Memory()
    with Bridge(ledger, BridgeConfig(port=0, greeting_s=2.0)) as bridge:
        honest = [Honest(bridge.port, ledger, row) for row in starts(2, seed=seed)]
        fuzzers = [Fuzzer(bridge.port, ledger, seed + number) for number in range(4)]
        for client in honest:
            client.start()
        for number in range(inputs):
            fuzzers[number % len(fuzzers)].send()
            if number % 1000 == 0:
                memory.look(number / inputs)
                assert bridge.is_alive(), "the bridge has stopped"
        for fuzzer in fuzzers:
            fuzzer.hang_up()
        tallies = bridge.tallies.copy()
        for client in honest:
            client.finish(tallies)
        assert len(bridge.clients()) >= len(honest)
    ticks = sum(client.ticks for client in honest)
    for client in honest:
        client.client.close()
    return Outcome(inputs, ledger.connections, ledger.told, ledger.truncated, ticks, tallies, memory.grown())


# --- comings and goings ----------------------------------------------------------------------------------------------


class Wanderer(threading.Thread):
    """A cabinet whose client connects, stalls, dies and returns."""

    def __init__(self, port: int, ledger: Ledger, row: ram.Row, seed: int, until: float, silent_s: float):
        super().__init__(daemon=True)
        self.port, self.ledger, self.machine = port, ledger, Machine(row)
        self.dice, self.until, self.silent_s = random.Random(seed), until, silent_s
        self.fates: Counter[str] = Counter()
        self.ticks = 0
        self.left_open: list[Tagged] = []
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            while time.monotonic() < self.until:
                self.visit()
        except Exception as problem:  # whatever it is, whoever waits for the end raises it
            self.problem = problem
        for client in self.left_open:
            client.close()

    def visit(self) -> None:
        """One connection, from greeting to whatever end it takes."""
        dice, greeting = self.dice, PLAIN if self.dice.random() < 0.5 else wire.greet(name="wanderer")
        fate = dice.choice(("leave", "die", "die in a frame", "vanish", "stall", "stall too long", "be away"))
        try:
            client = Tagged(self.port, self.ledger, greeting)
            self.play(client, dice.randrange(1, 400))
            if fate == "stall":
                time.sleep(dice.random() * self.silent_s / 2)
                self.play(client, dice.randrange(1, 200))
        except (ConnectionError, TimeoutError):  # a stall that took longer than it should, on a busy machine
            fate = "was dropped"
        self.fates[fate] += 1
        if fate == "stall too long":
            time.sleep(self.silent_s * 1.5)
            assert client.socket.recv(1) == b"", "a silent client keeps its place"
        elif fate == "vanish":  # and never say so: the connection stays half open
            self.left_open.append(client)
            if len(self.left_open) > 1:
                self.left_open.pop(0).close()
            return
        elif fate == "die in a frame":
            client.socket.sendall(self.machine.packet()[: dice.randrange(1, FRAME_BYTES)])
        client.close(abruptly=fate.startswith("die"))
        if fate == "be away":
            for _ in range(dice.randrange(200)):
                self.machine.tick()
            time.sleep(dice.random() * self.silent_s / 2)

    def play(self, client: Tagged, ticks: int) -> None:
        for _ in range(ticks):
            if self.machine.is_over():
                self.machine = Machine(starts(1, seed=self.dice.randrange(1000))[0])
            self.machine.tick(client.exchange(self.machine.packet()))
            self.ticks += 1


def soak(seconds: float, seed: int = 1, clients: int = 16) -> tuple[Outcome, Counter[str]]:
    """So many seconds of clients that come and go, and what became of each visit."""
    ledger, memory, silent_s = Ledger(seed), Memory(), 1.0
    began = time.monotonic()
    with Bridge(ledger, BridgeConfig(port=0, silent_s=silent_s)) as bridge:
        rows = starts(clients, seed=seed, level=[1 + 3 * i for i in range(clients)])
        crowd = [Wanderer(bridge.port, ledger, row, i, began + seconds, silent_s) for i, row in enumerate(rows)]
        for wanderer in crowd:
            wanderer.start()
        while any(wanderer.is_alive() for wanderer in crowd):
            time.sleep(0.2)
            memory.look((time.monotonic() - began) / seconds)
            assert bridge.is_alive(), "the bridge has stopped"
        for wanderer in crowd:
            if wanderer.problem:
                raise wanderer.problem
        tallies = bridge.tallies.copy()
    ticks = sum(wanderer.ticks for wanderer in crowd)
    fates = sum((wanderer.fates for wanderer in crowd), Counter())
    outcome = Outcome(ticks, ledger.connections, ledger.told, ledger.truncated, ticks, tallies, memory.grown())
    return outcome, fates
