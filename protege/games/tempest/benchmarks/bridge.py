"""The arcade bridge under load: many clients in another process, training on and off."""

import gc
import json
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from protege.games.tempest.agents.network import Pupil, ValueNetwork
from protege.games.tempest.agents.rainbow import RainbowPupil
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
from protege.games.tempest.arcade.streams import Decisions, Steps
from protege.games.tempest.benchmarks.replay import filled_replay, new_learner, update
from protege.games.tempest.benchmarks.simulator import taught_games
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.observation import decode
from protege.learn.rainbow import RainbowConfig
from protege.learn.replay import Actor, Replay
from protege.slices import Child, Figures, medians

LOOP_S = 0.0002
Playing = Callable[[int, float], Figures]  # so many clients for so many seconds: `fps`, `p50_ms` and `p99_ms`


def bridge(seconds: float, counts: tuple[int, ...] = (1, 8, 16, 36), stored: int = 100_000) -> Figures:
    """Frames per second that arcade clients get answered, and how long they wait for a reply, as they see it.

    At 16 clients: a server that only answers zeros, beside the bridge with a policy that costs nothing and with a
    network of 62,000 weights. Then `fps_N`, `p50_ms_N` and `p99_ms_N` with the Rainbow network while it learns
    from what comes, and the same with `_no_training` while it does not. All clients live in one other process, and cost
    about as much as the server that answers zeros.
    """
    torch.set_num_threads(1)
    small = Pupil(ValueNetwork((128, 128)).eval())
    with TemporaryDirectory() as folder, closing(Child(arcade_clients)) as clients:
        servers = _Servers(clients, Path(folder), filled_replay(stored))
        first: dict[str, Playing] = {
            "do_nothing_{}_16": servers.zeros,
            "trivial_{}_16": partial(servers.player, lambda frames: np.zeros(len(frames.score), np.int64)),
            "small_network_{}_16": partial(servers.player, small.act),
        }
        figures = _take_turns(first, 16, seconds)
        for count in counts:
            sides: dict[str, Playing] = {
                f"{{}}_{count}": partial(servers.rainbow, True),
                f"{{}}_{count}_no_training": partial(servers.rainbow, False),
            }
            figures |= _take_turns(sides, count, seconds)
    figures["trivial_ratio"] = figures["trivial_fps_16"] / figures["do_nothing_fps_16"]
    return figures | {"updates_per_s": figures["updates_per_s_16"], "client_processes": 1, "torch_threads": 1}


def _take_turns(sides: dict[str, Playing], clients: int, seconds: float) -> Figures:
    """Medians of the figures of each side, under its name with theirs in it, from five slices of each in turn."""
    found: dict[str, list[float]] = {}
    for _ in range(5):
        for name, side in sides.items():
            for figure, value in side(clients, seconds / 5).items():
                found.setdefault(name.format(figure), []).append(value)
    return medians(found)


class _Player(Agent):
    """Lets one policy play, and leaves what comes of it to whoever learns."""

    def __init__(self, act: Callable[[Any], Any], arrived: deque[Steps] | None = None) -> None:
        self.act, self.arrived = act, arrived

    def decide(self, frames: Any, clients: Any) -> Decisions:
        return Decisions(self.act(frames), Actor.PUPIL)

    def learn(self, steps: Steps) -> None:
        if self.arrived is not None:
            self.arrived.append(steps)


class _Servers:
    """What the clients are let loose on."""

    def __init__(self, clients: Child, folder: Path, memory: Replay) -> None:
        self.clients, self.folder, self.memory = clients, folder, memory  # `folder` is for the clients' screens

    def _play(self, port: int, count: int, seconds: float) -> Figures:
        found: Figures = json.loads(self.clients.ask(f"{port} {count} {seconds}"))
        return found

    def zeros(self, count: int, seconds: float) -> Figures:
        """A server in a thread that answers every frame with zeros."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_answer_zeros, args=(listener, count), daemon=True)
            thread.start()
            found = self._play(listener.getsockname()[1], count, seconds)
            thread.join()
        return found

    def player(self, act: Callable[[Any], Any], count: int, seconds: float) -> Figures:
        with self._bridge(_Player(act)) as server:
            return self._play(server.port, count, seconds)

    def _bridge(self, player: _Player) -> Bridge:
        return Bridge(player, BridgeConfig(port=0, screens=self.folder))

    def rainbow(self, training: bool, count: int, seconds: float) -> Figures:
        """The bridge with the Rainbow network, which learns meanwhile or not."""
        learner = new_learner(RainbowConfig())
        dice, over = np.random.default_rng(1), threading.Event()
        arrived: deque[Steps] = deque()  # as in a training: the bridge's thread leaves the memory to whoever learns

        def act(frames: Any) -> Any:
            return RainbowPupil(learner.acting).act(frames)

        def learn() -> None:
            step_back()
            while not over.is_set():
                while arrived:
                    steps = arrived.popleft()
                    self.memory.add(
                        steps.clients, steps.observations, steps.actions, steps.rewards, steps.terminated,
                        steps.truncated, steps.actors, steps.advice,
                    )  # fmt: skip
                update(learner, self.memory, dice)

        if not training:
            return self.player(act, count, seconds)
        with self._bridge(_Player(act, arrived)) as server:
            thread = threading.Thread(target=learn, daemon=True)
            began = time.perf_counter()
            thread.start()
            found = self._play(server.port, count, seconds)
            over.set()
            thread.join()
            return found | {"updates_per_s": learner.updates / (time.perf_counter() - began)}


def _answer_zeros(listener: Any, count: int) -> None:
    """Three zeros for every frame of so many clients, until they have all left."""
    watch, received = selectors.DefaultSelector(), dict[Any, int]()
    for _ in range(count):
        client: Any = listener.accept()[0]
        watch.register(client, selectors.EVENT_READ)
        received[client] = -len(wire.PLAIN_GREETING)  # bytes since the last frame that was answered
    while received:
        for key, _ in watch.select():
            client = key.fileobj
            try:
                piece = len(client.recv(65536))
            except ConnectionResetError:
                piece = 0
            received[client] += piece
            if piece == 0:
                watch.unregister(client)
                client.close()
                del received[client]
            elif received[client] >= wire.FRAME.itemsize:
                received[client] -= wire.FRAME.itemsize
                client.send(bytes(3))


def arcade_clients() -> None:
    """Clients that send frames of real games over and over; each line `PORT COUNT SECONDS` sets that many on a port."""
    packets = _recorded_packets(wire.MOST_CLIENTS, 64)  # only counter and echo of the last reply are written later
    gc.disable()
    for line in sys.stdin:
        port, count, seconds = (float(word) for word in line.split())
        watch = selectors.DefaultSelector()
        sent_at: list[float] = []
        for number in range(int(count)):
            client = socket.create_connection(("127.0.0.1", int(port)))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watch.register(client, selectors.EVENT_READ, number)
            sent_at.append(time.perf_counter())
            client.sendall(wire.PLAIN_GREETING + packets[number][0])
        turns, waits = [0] * int(count), []
        began = time.perf_counter() + 0.2  # the first frames find everything cold
        now = began
        while now < began + seconds:
            # As the client in MAME waits: in a loop for a moment, and then asleep.
            events = watch.select(0)
            for key, _ in events or watch.select(None if time.perf_counter() - now > LOOP_S else 0):
                client, number = key.fileobj, key.data  # type: ignore[assignment]
                fire, zap, spinner = client.recv(3)
                now = time.perf_counter()
                waits.append(now - sent_at[number])
                turns[number] += 1
                turn = turns[number]
                packet = packets[number][turn % 64]
                packet[23], packet[24] = turn >> 8 & 255, turn & 255
                packet[30], packet[31], packet[32], packet[33] = fire, zap, 255 * (spinner > 127), spinner
                sent_at[number] = now
                client.send(packet)
                if now < began:
                    waits.clear()
        for key in list(watch.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        took = np.array(waits)
        found = {"fps": len(took) / (now - began)}
        found |= {f"p{percent}_ms": 1000 * float(np.percentile(took, percent)) for percent in (50, 99)}
        print(json.dumps(found), flush=True)


def _recorded_packets(games: int, frames: int) -> list[list[bytearray]]:
    """So many packets of each of some games that the teacher plays."""
    table = taught_games(games, levels=12)
    found: list[list[bytearray]] = [[] for _ in range(games)]
    for _ in range(frames):
        seen = table.step(table.frames.advice)
        packets, values = wire.new_packets(games), seen.observation
        packets["values"], packets["objective"], packets["subjective"] = values, seen.objective, seen.subjective
        packets["state"], packets["mode"] = decode(values, layout.GAME_STATE), decode(values, layout.GAME_MODE)
        packets["level"], packets["open"], packets["score"] = seen.level - 1, values[:, layout.LEVEL_OPEN], seen.score
        packets["lane"] = packets["target"] = decode(values, layout.PLAYER_LANE)
        for game in range(games):
            found[game].append(bytearray(packets[game].tobytes()))
    assert not table.frames.over.any(), "frames of a game that is over ask for no decision"
    return found
