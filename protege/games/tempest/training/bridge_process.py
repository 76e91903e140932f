"""The bridge in a process of its own, where moves are decided without waiting for whoever learns.

Players are installed in slots and numbered, so that whoever sends new weights knows which of them played a game; a plan
says which slot plays which game of a client. Transitions, games and notes come back in batches. Both ends talk through
the pipes of a child process: it ends itself when the training has gone, and the training notices when it has.
"""

import os
import pickle
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import IO, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, ClientStatus, rehearse
from protege.games.tempest.arcade.streams import Decisions, Game, Places, Steps
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import LEVEL_NUMBER, decode
from protege.games.tempest.task.rewards import learned_reward
from protege.games.tempest.training.behaviour import SCRIPTED_TEACHER, Behaviour, Exploration, Teacher
from protege.games.tempest.training.simulator import Episode
from protege.learn.replay import Actor
from protege.seeds import Purpose, random_stream

BATCH_FRAMES: Final = 128  # are passed on at a time
LEAD: Final = 1024  # frames that may be played and not learned from yet, before replies wait
ANSWER_S: Final = 2.0  # for which the process is waited for when it is asked how it stands
CLOSE_S: Final = 20.0  # and when it shall end
PUPIL: Final = 0  # the slot of the player that learns

Ints = npt.NDArray[np.int64]
_LENGTH: Final = struct.Struct(">Q")


class Transitions(NamedTuple):
    """Moves of many streams and what came of each, as the replay takes them."""

    streams: Ints
    observations: npt.NDArray[np.float32]
    actions: Ints
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    actors: npt.NDArray[Any]
    advice: Ints


class Finished(NamedTuple):
    """A game that ended, and who played it."""

    game: Game
    slot: int
    first: int  # number of the slot's player when the game began
    last: int  # and when it ended


@dataclass
class Batch:
    """What happened lately."""

    transitions: list[Transitions] = field(default_factory=list)
    frames: int = 0  # in them
    episodes: list[Episode] = field(default_factory=list)
    games: list[Finished] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    save: bool = False  # a client asks for a checkpoint
    decisions: int = 0  # calls, each on all clients that waited
    acting_s: float = 0.0  # processor time of these


class Status(NamedTuple):
    """How the bridge stands."""

    clients: list[ClientStatus] = []
    tallies: Counter[str] = Counter()
    frames: int = 0  # answered
    held_s: float = 0.0  # that replies waited for whoever learns, all together
    cpu_s: float = 0.0  # of the process


@dataclass(frozen=True)
class Setup:
    """What the process needs to know at its start."""

    listening: BridgeConfig
    name: str  # of the player, as a page knows it
    seed: int = 1
    shaping: float = 0.0
    teacher: Teacher = SCRIPTED_TEACHER  # who advises


def _send(pipe: IO[bytes], message: object) -> None:
    packed = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(packed)))
    pipe.write(packed)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """The next message from the other end, which is this program as well; None when there is no more."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    packed = pipe.read(size)
    return pickle.loads(packed) if len(packed) == size else None


# --- the process ----------------------------------------------------------------------------------------------------


class _Players(Agent):
    """Plays the clients with what the slots hold, in the bridge's thread, and passes on what came of it."""

    def __init__(self, setup: Setup, send: Callable[[object], None]):
        self.name, self.shaping, self.send = setup.name, setup.shaping, send
        self.behaviour = Behaviour(random_stream(setup.seed, Purpose.ARCADE))
        self.players: dict[int, tuple[int, Any]] = {}  # by slot: number and player
        self.explorations: dict[int, Exploration] = {}  # by slot
        self.plan: tuple[int, ...] = (PUPIL,)  # slots of successive games
        self.left: dict[int, int] = {}  # by slot: games that it may still begin, where these are limited
        self.longest = 0  # frames after which games of limited slots count as they stand; 0 for never
        self.teacher = setup.teacher
        places = setup.listening.most_clients
        self.slots, self.firsts, self.begun, self.lost = (np.zeros(places, np.int64) for _ in range(4))
        # Where the slot's turn began: level, points, frames and lives lost of the game at that time.
        self.since = {name: np.zeros(places, np.int64) for name in ("start_level", "score", "frames", "deaths")}
        self.open = np.zeros(places, np.bool_)  # a game of a limited slot has begun and not ended
        self.life_frames, self.life_reward = [0] * places, [0.0] * places
        self.played = 0  # frames whose outcome is known
        self.learned = 0  # of them, as far as whoever learns has said
        self.steps: list[Steps] = []
        self.batch = Batch()

    def control(self, actor: int) -> str:
        return Actor(actor).name.lower()

    def is_ready(self) -> bool:
        return self.played - self.learned <= LEAD

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        began = time.thread_time()
        begins = frames.frame == 0
        self.lost[clients] = np.where(begins, 0, self.lost[clients] + frames.terminated)
        if self.longest:
            self._cut(frames, clients)
            # The best players hardly ever end a game: others get their turn with a new life in it.
            long = frames.frame - self.since["frames"][clients] >= self.longest
            begins = begins | (frames.terminated & long & ~self.open[clients])
        if begins.any():
            self._choose_slots(frames, clients, np.flatnonzero(begins).tolist())
        slots, scripted = self.slots[clients], self.teacher.player is None
        advice = None if scripted else self.teacher.advise(frames)
        if (slots == slots[0]).all():
            decided = self._decide(frames, int(slots[0]), advice)
        else:
            decided = Decisions(*(np.empty(len(clients), kind) for kind in (np.int64, np.int8, np.float32)))
            for slot in np.unique(slots).tolist():
                which = slots == slot
                part = None if advice is None else advice[which]
                found = self._decide(Frames._make([part[which] for part in frames]), slot, part)
                for whole, some in zip(decided[:3], found[:3], strict=True):
                    whole[which] = some
        self.batch.acting_s += time.thread_time() - began
        self.batch.decisions += 1
        return decided._replace(advice=advice)

    def _decide(self, frames: Frames, slot: int, advice: Ints | None) -> Decisions:
        explore = self.explorations.get(slot, Exploration())
        return self.behaviour.decide(frames, self.players[slot][1].act, explore, advice)

    def _choose_slots(self, frames: Frames, clients: Places, which: Sequence[int]) -> None:
        """Whose turn it is in games that begin. Clients start at different places of the plan."""
        for i in which:
            client = int(clients[i])
            self.leave(client)
            slot = self.plan[(client + self.begun[client]) % len(self.plan)]
            if slot not in self.players or self.left.get(slot, 1) <= 0:
                slot = PUPIL
            elif slot in self.left:
                self.left[slot] -= 1
                self.open[client] = True
            self.slots[client], self.firsts[client] = slot, self.players[slot][0]
            now = frames.level[i], frames.score[i], frames.frame[i], self.lost[client]
            for array, value in zip(self.since.values(), now, strict=True):
                array[client] = value
            self.begun[client] += 1

    def leave(self, place: int) -> None:
        """A game that has not ended never will: another takes its place."""
        slot = int(self.slots[place])
        if self.open[place] and slot in self.left and self.firsts[place] == self.players[slot][0]:
            self.left[slot] += 1
        self.open[place] = False

    def _cut(self, frames: Frames, clients: Places) -> None:
        """Games that have been watched for long enough count as they stand, and go on as the pupil's."""
        for i in np.flatnonzero(
            self.open[clients] & (frames.frame - self.since["frames"][clients] >= self.longest)
        ).tolist():
            client, score, reached = int(clients[i]), int(frames.score[i]), int(frames.level[i])
            played, lost = int(frames.frame[i]), int(self.lost[client])
            self.finish(Game(client, score, 0, reached, 0, played, lost, truncated=True))
            self.slots[client], self.since["frames"][client] = PUPIL, played

    def learn(self, steps: Steps) -> None:
        self.steps.append(steps)
        played = len(steps.clients) - int(np.count_nonzero(steps.truncated))
        self.played += played
        self.batch.frames += played
        if self.batch.frames >= BATCH_FRAMES:
            self.pass_on()

    def finish(self, game: Game) -> None:
        slot, client = int(self.slots[game.client]), game.client
        if self.open[client]:  # what came before its turn does not count
            before = {name: int(array[client]) for name, array in self.since.items()}
            own = {name: getattr(game, name) - before[name] for name in ("score", "frames", "deaths")}
            game = replace(game, **own, start_level=before["start_level"])
        self.open[client] = False
        self.batch.games.append(Finished(game, slot, int(self.firsts[game.client]), self.players[slot][0]))

    def save(self) -> None:
        self.batch.save = True

    def note(self, text: str) -> None:
        self.batch.notes.append(text)

    def look_around(self) -> None:
        self.pass_on()

    def pass_on(self) -> None:
        """Send what has come together, if anything has."""
        batch = self.batch
        if not (self.steps or batch.games or batch.notes or batch.save):
            return
        self.batch = Batch()
        if self.steps:
            steps, self.steps = Steps._make(map(np.concatenate, zip(*self.steps, strict=True))), []
            self._follow_lives(steps, batch.episodes)
            rewards = learned_reward(steps.objectives, steps.rewards, self.shaping) + steps.penalties
            actors = np.maximum(steps.actors, Actor.PUPIL)
            batch.transitions.append(Transitions(
                steps.clients, steps.observations, steps.actions, rewards, steps.terminated, steps.truncated, actors,
                steps.advice,
            ))  # fmt: skip
        self.send(batch)

    def _follow_lives(self, steps: Steps, ended: list[Episode]) -> None:
        rows = zip(steps.clients.tolist(), steps.objectives.tolist(), steps.terminated, steps.truncated, strict=True)
        for i, (client, reward, terminated, truncated) in enumerate(rows):
            if not truncated:
                self.life_frames[client] += 1
                self.life_reward[client] += reward
            if terminated:
                level = int(decode(steps.observations[i], LEVEL_NUMBER)) + 1
                ended.append(Episode(self.life_frames[client], self.life_reward[client], level))
            if terminated or truncated:
                self.life_frames[client], self.life_reward[client] = 0, 0.0


def serve_parent() -> None:
    """The process: a bridge, and what the training says about it until it says no more."""
    sys.setswitchinterval(0.0005)  # the bridge's thread waits for the two that talk to the training
    inbox, outbox = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed here goes elsewhere
    setup, first, explore = _receive(inbox), _receive(inbox), _receive(inbox)
    messages: SimpleQueue[object] = SimpleQueue()
    writer = threading.Thread(target=_write, args=(messages, outbox), name="writer", daemon=True)
    writer.start()
    players = _Players(setup, messages.put)
    closing, problem = threading.Event(), ""
    try:
        players.players[PUPIL] = first
        players.decide(rehearse(), np.zeros(1, np.int64))  # so that the first client does not wait for compiled code
        players.begun[:], players.batch = 0, Batch()
        players.explorations[PUPIL] = explore
        with Bridge(players, setup.listening) as bridge:
            messages.put(bridge.port)
            threading.Thread(target=_read, args=(inbox, players, bridge, messages, closing), daemon=True).start()
            while bridge.is_alive() and not closing.wait(0.1):
                pass
        players.pass_on()
    except ProtegeError as error:
        problem = str(error)
    except Exception:
        problem = traceback.format_exc()
    messages.put(_End(problem))
    writer.join(CLOSE_S)
    os._exit(0)  # the thread that reads is still at it


class _End(NamedTuple):
    """The last message."""

    problem: str


def _write(messages: "SimpleQueue[object]", outbox: IO[bytes]) -> None:
    with suppress(OSError):  # nobody listens any more
        while not isinstance(message := messages.get(), _End):
            _send(outbox, message)
        _send(outbox, message)


def _read(
    inbox: IO[bytes], players: _Players, bridge: Bridge, messages: "SimpleQueue[object]", closing: threading.Event
) -> None:
    while (message := _receive(inbox)) is not None:
        match message:
            case ("player", slot, number, player):
                players.players[slot] = number, player
            case ("explore", slot, exploration):
                players.explorations[slot] = exploration
            case ("plan", plan, left, longest):
                players.plan, players.left, players.longest = plan, left, longest
            case ("learned", frames):
                players.learned = frames
            case ("status",):
                cpu = time.process_time()
                messages.put(Status(bridge.clients(), bridge.tallies.copy(), bridge.frames, bridge.held_s, cpu))
            case ("close",):
                break
    closing.set()


# --- the training's end ---------------------------------------------------------------------------------------------


class BridgeProcess:
    """A bridge in another process, at work from the moment it is made until `close`."""

    def __init__(self, setup: Setup, player: Any, *, tell: Callable[[str], None], save: Callable[[], None],
                 explore: Exploration = Exploration()):  # fmt: skip
        """`player` plays every game, until others are installed; `tell` gets the bridge's notes, in another thread."""
        self._tell, self._save = tell, save
        self._arrived = threading.Condition()
        self._batch, self._status, self._answers = Batch(), Status(), 0
        self._pending: dict[Hashable, object] = {}  # messages to be sent; a newer one of a kind replaces the older
        self._writes = threading.Condition()
        self._end: _End | None = None
        self.port = 0
        code = f"from {__name__} import serve_parent; serve_parent()"
        # In a session of its own, so that Ctrl-C reaches the training alone, which then ends this.
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=os.name != "nt", env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.pid = self._process.pid
        with suppress(OSError):  # it has died already, which the reader notices
            _send(self._inbox, setup)
            _send(self._inbox, (0, player))
            _send(self._inbox, explore)  # before anybody can connect
        self._reader = threading.Thread(target=self._read, name="bridge reader", daemon=True)
        self._writer = threading.Thread(target=self._write, name="bridge writer", daemon=True)
        self._reader.start()
        self._writer.start()
        with self._arrived:
            self._arrived.wait_for(lambda: self.port or not self.is_alive())
        if not self.port:
            self.close()
            raise ProtegeError(f"the bridge's process ended at its start, with code {self._process.returncode}")

    @property
    def _inbox(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def install(self, slot: int, number: int, player: Any) -> None:
        """From now on this player, or these weights of one, decides for the slot."""
        self._post(("player", slot), ("player", slot, number, player))

    def explore(self, slot: int, exploration: Exploration) -> None:
        """How the slot's player explores."""
        self._post(("explore", slot), ("explore", slot, exploration))

    def plan(self, slots: Sequence[int], left: Mapping[int, int] | None = None, longest: int = 0) -> None:
        """Which slots play successive games of a client, over and over; games that are under way go on as they are.

        A slot begins no more games than are `left` to it, if it is among them; after `longest` frames they count as
        they stand, and the pupil plays on.
        """
        self._post("plan", ("plan", tuple(slots), dict(left or {}), longest))

    def learned(self, frames: int) -> None:
        """So many of the frames that came from here were learned from: replies wait if it is far behind."""
        self._post("learned", ("learned", frames))

    def fetch(self, least: int = 0, seconds: float = 0.0) -> Batch:
        """What has come since the last time, once there are so many frames or so many seconds are over."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._batch.frames >= least or not self.is_alive(), seconds)
            found, self._batch = self._batch, Batch()
        return found

    def status(self) -> Status:
        """How the bridge stands now; if it does not answer in time, how it stood."""
        with self._arrived:
            before = self._answers
            self._post("status", ("status",))
            self._arrived.wait_for(lambda: self._answers > before or not self.is_alive(), ANSWER_S)
            return self._status

    def is_alive(self) -> bool:
        """Whether it still serves; if not, `close` raises what ended it or gives the code it ended with."""
        return self._end is None

    def close(self) -> int | None:
        """End it; what it has not passed on yet can be fetched. Returns the code of one that died by itself."""
        self._post("close", ("close",))
        self._reader.join(CLOSE_S)
        if self._process.poll() is None:
            try:
                self._process.wait(0 if self._reader.is_alive() else CLOSE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join()
        with suppress(OSError):
            self._inbox.close()
        self._writer.join()
        assert self._process.stdout is not None and self._end is not None
        self._process.stdout.close()
        problem, self._end = self._end.problem, _End("")
        if problem == _DIED:
            return self._process.returncode
        if "\n" in problem:
            raise RuntimeError(f"the bridge's process failed:\n{problem}")
        if problem:
            raise ProtegeError(problem)
        return None

    def _post(self, kind: Hashable, message: object) -> None:
        with self._writes:
            self._pending.pop(kind, None)  # so that it comes after what was posted before it
            self._pending[kind] = message
            self._writes.notify()

    def _write(self) -> None:
        message: object = None
        with suppress(OSError, ValueError):  # the other end has gone, which the reader notices
            while message != ("close",):
                with self._writes:
                    self._writes.wait_for(lambda: self._pending)
                    message = self._pending.pop(next(iter(self._pending)))
                _send(self._inbox, message)

    def _read(self) -> None:
        assert self._process.stdout is not None
        message: object = None
        while not isinstance(message, _End):
            message = _receive(self._process.stdout)
            with self._arrived:
                match message:
                    case Batch():
                        self._add(message)
                    case Status():
                        self._status, self._answers = message, self._answers + 1
                    case int():
                        self.port = message
                    case _:
                        self._end = message = message if isinstance(message, _End) else _End(_DIED)
                self._arrived.notify_all()
            if isinstance(message, Batch):
                for note in message.notes:
                    self._tell(note)
                if message.save:
                    self._save()
        self._post("close", ("close",))  # nobody is there to be written to

    def _add(self, more: Batch) -> None:
        batch = self._batch
        for name in ("transitions", "episodes", "games"):
            getattr(batch, name).extend(getattr(more, name))
        for name in ("frames", "decisions", "acting_s"):
            setattr(batch, name, getattr(batch, name) + getattr(more, name))


_DIED: Final = "died"
