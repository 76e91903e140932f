"""TCP server for emulators: bytes in, Frames out, actions back.

One thread waits for all clients at once. As soon as any has sent a whole frame, all complete frames and those that are
just arriving are decided on in one call, and the replies go out before anything else is done. `Agent` is who decides
and learns; `wire` knows the bytes and `streams` what they mean. A client that is slow, silent or wrong loses its place
and costs the others nothing.
"""

import hmac
import ipaddress
import os
import selectors
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from protege import ProtegeError
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.screens import Screens, activity
from protege.games.tempest.arcade.streams import Decisions, Flags, Game, Places, Steps, Streams
from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Commands
from protege.games.tempest.task.actions import joint_actions, to_commands
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import PLAYER_ALIVE
from protege.kernels import announce_compilation

LOOK_AROUND_S: Final = 0.1  # between looks at clocks: silent clients, rates, the wish to stop
_PRIORITY: Final = os.getpriority(os.PRIO_PROCESS, 0) if sys.platform == "linux" else 0
BEHIND: Final = 5  # steps of priority from the bridge down to whoever learns; clients of the launcher have the same
MOST_STRANGERS: Final = 64  # connections that have not greeted yet
QUIET: Final = 0.05  # nobody more comes for so long, as a fraction of what a decision takes: then it is made
MOST_GATHERING: Final = 0.25  # and after so long in any case
SHOW_S: Final = 1 / 30  # between two pictures of a client, for a page
HELD_LOOK_S: Final = 0.001  # between looks at whether replies may go out
LONGEST_HOLD_S: Final = 2.0  # clients give a reply up after 3.5 s
SUSPICIOUS: Final = 3  # connections in a row that sent a single frame
NOTES_A_MINUTE: Final = 60  # a peer that comes and goes all the time cannot fill a terminal


@dataclass(frozen=True)
class BridgeConfig:
    """Where the bridge listens, and whom it lets in."""

    host: str = "127.0.0.1"  # the address to listen at; others than this machine's own need a token or an allow-list
    port: int = wire.PORT  # the port; 0 for any that is free
    token: str = field(default="", repr=False)  # what clients must know to be let in
    allow: tuple[str, ...] = ()  # addresses or networks that clients may come from; without any, all
    most_clients: int = wire.MOST_CLIENTS  # clients at once
    long_replies: bool = False  # five bytes to clients that do not greet: newer public clients want them
    start: wire.Start = wire.Start()  # where clients start their games, for those that can be told
    silent_s: float = 30.0  # a client that sends no frame for so long loses its place
    greeting_s: float = 5.0  # and one that does not greet for so long
    save_every_s: float = 60.0  # clients' wishes to save are passed on at most so often
    longest_game: int = 200_000  # frames after which a game counts as it stands
    hold_s: float = 0.0  # replies wait at most so long for an agent that is not ready for more
    screens: Path | None = None  # the folder in which the clients' screens are kept, for a page to show

    def __post_init__(self) -> None:
        if len(self.token.encode()) > wire.LONGEST_TOKEN:
            raise ProtegeError(f"a token is at most {wire.LONGEST_TOKEN} bytes")
        if not self.is_local() and not self.token and not self.allow:
            raise ProtegeError(
                f"listening at {self.host} lets other machines in: give a token that the clients must know, or the "
                "addresses that are allowed; 127.0.0.1 is for this machine alone and needs neither"
            )
        if not 0 <= self.hold_s <= LONGEST_HOLD_S:
            raise ProtegeError(f"replies can wait 0 to {LONGEST_HOLD_S:g} s, else clients give up; got {self.hold_s:g}")
        self.networks()

    def is_local(self) -> bool:
        """Whether only this machine can reach the bridge."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def networks(self) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        try:
            return [ipaddress.ip_network(entry, strict=False) for entry in self.allow]
        except ValueError as problem:
            known = "addresses like 192.168.1.20 or networks like 192.168.1.0/24"
            raise ProtegeError(f"{problem}: allowed clients are {known}") from problem


def step_back() -> None:
    """Let the bridge go first wherever it competes with the calling thread, and those it will start, for a core.

    Only Linux gives threads priorities of their own; elsewhere this does nothing.
    """
    if sys.platform == "linux":
        me = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, me)
        os.setpriority(os.PRIO_PROCESS, me, max(now, min(19, _PRIORITY + BEHIND)))  # once, however often it is called


def rehearse() -> Frames:
    """Play a tick that nobody sent and return its frames: loads compiled code for which the first client would wait."""
    announce_compilation("the bridge", __name__)
    packets, values = wire.decode(wire.new_packets(1).tobytes())
    packets["state"], packets["mode"], values[0, PLAYER_ALIVE] = ram.PLAYING, ram.REAL_GAME, 1.0
    wire.find_faults(packets, values, np.zeros((1, 3), np.int16))
    nobody = Streams(1)
    _, _, frames = nobody.take(np.zeros(1, np.int64), packets, values)
    nobody.cut(0)
    return frames


class Agent:
    """Who plays the clients. Everything is called from the bridge's thread, while clients wait: be quick."""

    name = ""  # as a page knows the player

    def control(self, actor: int) -> str:
        """Who that is, for a page: pupil, teacher or random."""
        return "pupil"

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        """What these clients shall do. The frames' arrays are used again for the next batch: copy what must last."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether more may be played; until then replies wait, as long as the settings let them."""
        return True

    def learn(self, steps: Steps) -> None: ...  # decisions whose outcome is known
    def finish(self, game: Game) -> None: ...  # a game has ended
    def save(self) -> None: ...  # a client asks for a checkpoint
    def note(self, text: str) -> None: ...  # something that a person should read
    def leave(self, place: int) -> None: ...  # a client has gone
    def look_around(self) -> None: ...  # ten times a second, whether anybody plays or not


@dataclass(frozen=True)
class ClientStatus:
    """One client, for console and page."""

    place: int
    name: str
    address: str
    version: int  # 0 for a client that says nothing about itself
    seconds: float  # since it came
    frames: int  # packets so far
    refused: int  # packets that could not be used
    frames_per_s: float
    latency_ms: float  # from a frame's arrival to our reply, lately
    activity: str
    score: int
    level: int


class _Client:
    """A connection. Its place is -1 until it has greeted."""

    def __init__(self, connection: socket.socket, address: str):
        self.socket, self.address = connection, address
        self.inbox, self.greeting = wire.Inbox(), wire.Greeting()
        self.waits = False  # for a reply
        self.place = -1
        self.suffix = b""  # of every reply
        self.since = self.heard = self.arrived = time.perf_counter()  # arrived: its last frame
        self.next_show = 0.0  # when its screen is to be renewed
        self.frames = self.refused = self.counted = 0
        self.rate = self.latency_ms = 0.0  # frames a second, and from a frame to its reply, lately

    def describe(self) -> str:
        called = f"client {self.place}" if self.place >= 0 else "a connection"
        return f"{called} ({self.greeting.name or 'no name'}, {self.address})"


class Bridge:
    """The server, at work from the moment it is made; `with Bridge(agent) as bridge:` closes it when the block ends."""

    def __init__(self, agent: Agent, config: BridgeConfig = BridgeConfig()):
        self.agent, self.config = agent, config
        self.tallies: Counter[str] = Counter()  # what happened how often
        self.batches = self.frames = 0
        self.held_s = 0.0  # that replies waited for the agent, all together
        self._batch_s = 0.0  # what a decision with its replies takes, lately
        self._streams = Streams(config.most_clients, longest_game=config.longest_game)
        self._networks = config.networks()
        self._clients: dict[int, _Client] = {}  # by place
        self._strangers: list[_Client] = []
        self._waiting: list[_Client] = []  # those whose frame is complete
        self._steps: list[Steps] = []  # to be handed over when nobody waits
        self._single_frames: Counter[str] = Counter()  # by address: connections in a row that sent a single frame
        self._sent = np.zeros((config.most_clients, 3), np.int16)  # last commands
        self._rates_at = self._looked_at = time.perf_counter()
        self._held_from = 0.0  # since when replies wait for the agent, if they do
        self._next_save = 0.0
        self._notes_left = float(NOTES_A_MINUTE)
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._selector = selectors.DefaultSelector()
        try:
            family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
            self._listener = socket.create_server((config.host, config.port), family=family, backlog=MOST_STRANGERS)
        except OSError as problem:
            self._selector.close()
            raise ProtegeError(
                f"cannot listen at {config.host} port {config.port}: {problem.strerror or problem}; "
                "another server may be running there: stop it, or choose another port"
            ) from problem
        rehearse()
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._screens = self._open_screens()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="bridge", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Bridge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Send everybody away; raises what the agent raised, if it did."""
        self._stop.set()
        self._thread.join()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def is_alive(self) -> bool:
        """Whether it still serves: it stops by itself only if the agent raises."""
        return self._thread.is_alive()

    def clients(self) -> list[ClientStatus]:
        """Everybody who has a place. May be called from any thread."""
        now, known = time.perf_counter(), self._streams.clients
        return [
            ClientStatus(
                place, client.greeting.name, client.address, client.greeting.version, now - client.since, client.frames,
                client.refused, client.rate, client.latency_ms,
                activity(int(known["state"][place]), int(known["mode"][place])),
                int(known["score"][place]), int(known["level"][place]),
            )
            for place, client in sorted(self._clients.copy().items())
        ]  # fmt: skip

    def _run(self) -> None:
        try:
            next_look = 0.0
            while not self._stop.is_set():
                self._take_in(HELD_LOOK_S if self._waiting else LOOK_AROUND_S)
                if self._waiting and not self._holds():
                    self._gather()
                    self._answer()
                if self._steps:
                    self._hand_over()
                if time.perf_counter() >= next_look:
                    next_look = time.perf_counter() + LOOK_AROUND_S
                    self._look_around()
            for place in self._clients:
                self._cut(place)
            self._hand_over()
        except BaseException as problem:  # whatever it is, `close` raises it
            self._failure = problem
        finally:
            for client in [*self._clients.values(), *self._strangers]:
                client.socket.close()
            self._listener.close()
            self._selector.close()
            if self._screens is not None:
                self._screens.close()

    def _take_in(self, most_s: float) -> None:
        """Read what has come, or what comes within so many seconds.

        A frame that was there already came at some time after the last look: what is not known counts as waiting.
        """
        arrived, events = self._looked_at, self._selector.select(0)
        if not events and most_s:
            events = self._selector.select(most_s)
            arrived = time.perf_counter()
        self._looked_at = time.perf_counter()
        for key, _ in events:
            if key.data is None:
                self._accept()
            else:
                self._receive(key.data, arrived)

    def _holds(self) -> bool:
        """Whether those who wait must wait on, because the agent is not ready for more."""
        now = time.perf_counter()
        if now - self._waiting[0].arrived >= self.config.hold_s or self.agent.is_ready():
            return False
        self._held_from = self._held_from or now
        return True

    def _accept(self) -> None:
        for _ in range(MOST_STRANGERS):
            try:
                connection, peer = self._listener.accept()
            except OSError:  # nobody more, or one that has gone already
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = _Client(connection, peer[0])
            self._selector.register(connection, selectors.EVENT_READ, client)
            self._strangers.append(client)
            if self._networks and not any(ipaddress.ip_address(peer[0]) in network for network in self._networks):
                self._dismiss(client, "address not allowed")
            elif len(self._strangers) > MOST_STRANGERS:
                self._dismiss(client, "too many connections")

    def _gather(self) -> None:
        """Take in frames that are just arriving, as long as they do: a decision on all costs little more than on one.

        So clients that were answered together stay together; else half of them would always come while the other half
        is being decided on.
        """
        began = last = now = time.perf_counter()
        quiet, most = QUIET * self._batch_s, MOST_GATHERING * self._batch_s
        while len(self._waiting) < len(self._clients) and now - last < quiet and now - began < most:
            before = len(self._waiting)
            self._take_in(0)
            now = time.perf_counter()
            if len(self._waiting) > before:
                last = now

    def _receive(self, client: _Client, arrived: float) -> None:
        inbox = client.inbox
        try:
            count = client.socket.recv_into(inbox.room())
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        inbox.filled += count
        try:
            if not count:
                self._dismiss(client, "left")
            elif client.place >= 0 or self._welcome(client):
                size = inbox.record()
                if inbox.filled > size > 0:
                    raise wire.WireError("a second frame before the reply to the first")
                if size == wire.FRAME.itemsize:
                    client.waits, client.arrived = True, arrived
                    self._waiting.append(client)
                elif size:
                    self._shrug(client, "wrong length")
        except wire.WireError as problem:
            self._dismiss(client, "broke the protocol", f": {problem}")

    def _shrug(self, client: _Client, fault: str) -> None:
        """A frame that cannot be used, from a client that may go on."""
        self.tallies[fault] += 1
        client.refused += 1
        self._cut(client.place)
        self._sent[client.place] = 0
        client.inbox.filled = 0
        self._send(client, bytes(3) + client.suffix)

    def _welcome(self, client: _Client) -> bool:
        """Give a stranger who has greeted a place; False while the greeting is not complete, or if there is none."""
        found = wire.read_greeting(client.inbox.view[: client.inbox.filled])
        if found is None:
            return False
        client.greeting, size = found
        client.inbox.drop(size)
        token = self.config.token.encode()
        free = [place for place in range(self.config.most_clients) if place not in self._clients]
        status = wire.WELCOME if free else wire.FULL
        if token and not hmac.compare_digest(client.greeting.token, token):
            status = wire.WRONG_TOKEN
        if client.greeting.version and not self._send(client, wire.answer(status, self.config.start)):
            return False
        if status != wire.WELCOME:
            self._dismiss(client, "all places taken" if status == wire.FULL else "wrong token")
            return False
        self._strangers.remove(client)
        client.place, client.heard = free[0], time.perf_counter()
        self._clients[client.place] = client
        self._streams.open(client.place)
        self._sent[client.place] = wire.NOTHING_SENT
        if self.config.long_replies and not client.greeting.version:
            client.suffix = self.config.start.to_bytes()
        self.tallies["came"] += 1
        self._note(f"{client.describe()} came")
        return True

    def _answer(self) -> None:
        began = time.perf_counter()
        clients, self._waiting = self._waiting, []
        if not clients:  # they left while others were waited for
            return
        if self._held_from:
            self.held_s += sum(began - max(client.arrived, self._held_from) for client in clients)
            self._held_from = 0.0
        packets, values = wire.decode(b"".join([client.inbox.view[: wire.FRAME.itemsize] for client in clients]))
        places = np.array([client.place for client in clients])
        for client in clients:
            client.heard, client.inbox.filled, client.waits = began, 0, False
            client.frames += 1
        faults = wire.find_faults(packets, values, self._sent[places]).tolist()
        if any(faults):
            for client, fault in zip(clients, faults):
                if wire.FAULTS[fault] in ("wrong echo", "wrong count"):
                    self._dismiss(client, wire.FAULTS[fault])
                elif fault:
                    self._shrug(client, wire.FAULTS[fault])
            good = np.array(faults) == 0
            clients = [client for client, fault in zip(clients, faults) if not fault]
            packets, values, places = packets[good], values[good], places[good]
        commands, asked = self._decide(places, packets, values)
        self._sent[places] = commands
        for client, command in zip(clients, commands.tolist(), strict=True):
            self._send(client, wire.REPLY.pack(*command) + client.suffix)
        now = time.perf_counter()
        for client in clients:
            client.latency_ms += max(0.1, 1 / client.frames) * (1000 * (now - client.arrived) - client.latency_ms)
        self._show(began, clients, packets, asked)
        self._batch_s += 0.05 * (time.perf_counter() - began - self._batch_s)
        self.batches += 1
        self.frames += len(clients)

    def _decide(self, places: Places, packets: wire.Packets, values: wire.Values) -> tuple[Commands, Flags]:
        """What clients shall do (clients, 3), nothing where nobody is asked; and where somebody was."""
        steps, asked, frames = self._streams.take(places, packets, values)
        self._steps.append(steps)
        commands = np.zeros((len(places), 3), np.int8)
        if len(frames.score):
            deciding = places[asked]
            decided = self.agent.decide(frames, deciding)
            chosen = to_commands(decided.actions, len(deciding))
            if np.ndim(decided.actions) == 2:
                chosen = wire.limited(chosen)
                decided = decided._replace(actions=joint_actions(chosen))
            self._streams.decided(deciding, decided)
            commands[asked] = chosen
        return commands, asked

    def _send(self, client: _Client, message: bytes) -> bool:
        try:
            if client.socket.send(message) == len(message):
                return True
        except OSError:
            pass
        self._dismiss(client, "does not read replies")
        return False

    def _open_screens(self) -> Screens | None:
        if self.config.screens is None:
            return None
        try:
            return Screens(self.config.screens, self.port, self.config.most_clients, self.agent.name)
        except OSError as problem:
            self.agent.note(f"no page can show the clients' games: {problem}")
            return None

    def _show(self, now: float, clients: list[_Client], packets: wire.Packets, asked: Flags) -> None:
        if self._screens is None:
            return
        for i, client in enumerate(clients):
            if now >= client.next_show:
                client.next_show = now + SHOW_S
                known = self._streams.clients[client.place]
                control = self.agent.control(int(known["actor"])) if asked[i] else ""
                self._screens.show(client.place, packets[i], known, self._sent[client.place].tolist(), control)

    def _hand_over(self) -> None:
        found, self._steps = self._steps, []
        for steps in found:
            if len(steps.clients):
                self.agent.learn(steps)
        if self._streams.broken_off:
            self.tallies["reset in mid-game"] += self._streams.broken_off
            self._streams.broken_off = 0
        games, self._streams.finished = self._streams.finished, []
        for game in games:
            self.agent.finish(game)
        if self._streams.save_asked and time.perf_counter() >= self._next_save:
            self._next_save = time.perf_counter() + self.config.save_every_s
            self.tallies["saves passed on"] += 1
            self.agent.save()
        self._streams.save_asked = False

    def _look_around(self) -> None:
        now = time.perf_counter()
        for client in [client for client in self._clients.values() if now - client.heard > self.config.silent_s]:
            self._dismiss(client, "silent")
        for client in [client for client in self._strangers if now - client.since > self.config.greeting_s]:
            self._dismiss(client, "did not greet")
        passed = now - self._rates_at
        if passed >= 1.0:
            self._rates_at = now
            for client in self._clients.values():
                client.rate, client.counted = (client.frames - client.counted) / passed, client.frames
            if self._screens is not None:
                here = self._clients.values()
                self._screens.touch((client.place, client.greeting.name, client.rate) for client in here)
        self.agent.look_around()
        self._notes_left = min(NOTES_A_MINUTE, self._notes_left + NOTES_A_MINUTE * LOOK_AROUND_S / 60)

    def _cut(self, place: int) -> None:
        self._steps.append(self._streams.cut(place))

    def _dismiss(self, client: _Client, why: str, more: str = "") -> None:
        self.tallies[why] += 1
        self._note(f"{client.describe()} {_FAREWELLS.get(why, f'was sent away: {why}')}{more}")
        self._selector.unregister(client.socket)
        client.socket.close()
        if client.waits:
            self._waiting.remove(client)
        if client.place < 0:
            self._strangers.remove(client)
            return
        del self._clients[client.place]
        self.agent.leave(client.place)
        self._cut(client.place)
        self._suspect_reply_length(client)

    def _suspect_reply_length(self, client: _Client) -> None:
        """A client that waits for longer replies never sends a second frame, and comes again and again."""
        if client.greeting.version or client.frames != 1 or self.config.long_replies:
            self._single_frames.pop(client.address, None)
            return
        self._single_frames[client.address] += 1
        if self._single_frames[client.address] == SUSPICIOUS:
            advice = "it may want replies of five bytes (--long-replies)"
            self._note(f"{client.address} connects again and again and never sends a second frame: {advice}")
        if len(self._single_frames) > MOST_STRANGERS:
            self._single_frames.clear()

    def _note(self, text: str) -> None:
        if self._notes_left < 1:
            self.tallies["notes left out"] += 1
            return
        self._notes_left -= 1
        self.agent.note(text)


_FAREWELLS: Final = {"left": "left", "silent": "was silent for too long and lost its place"}
