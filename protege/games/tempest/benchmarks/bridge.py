"""The arcade bridge under load: many clients in another process, training on and off."""

import gc
import json
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from protege.games.tempest.agents.compiled import quick
from protege.games.tempest.agents.network import Pupil, ValueNetwork
from protege.games.tempest.agents.rainbow import RainbowPupil
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
from protege.games.tempest.arcade.streams import Decisions
from protege.games.tempest.benchmarks.replay import filled_replay, new_learner, update
from protege.games.tempest.benchmarks.simulator import taught_games
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.observation import decode
from protege.games.tempest.training.bridge_process import PUPIL, BridgeProcess, Setup
from protege.learn.rainbow import RainbowConfig
from protege.learn.replay import Actor, Replay
from protege.slices import Child, Figures, medians

Playing = Callable[[int, float], Figures]  # so many clients for so many seconds: `fps`, `p50_ms`, `p99_ms` and more


def bridge(seconds: float, counts: tuple[int, ...] = (1, 8, 16, 36), stored: int = 100_000) -> Figures:
    """Frames per second that arcade clients get answered, and how long they wait for a reply, as they see it.

    At 16 clients: a server that only answers zeros, beside the bridge in this process with a policy that costs nothing
    and with a network of 62,000 weights. Then `fps_N`, `p50_ms_N` and `p99_ms_N` as in a training, where the bridge has
    a process of its own and its Rainbow network learns from what comes, and the same with `_no_training` while it does
    not; `cpu_us_N` is the bridge's processor time for one decision, which other programs disturb less. All clients live
    in one more process.
    """
    torch.set_num_threads(1)
    small = Pupil(ValueNetwork((128, 128)).eval())
    with (
        TemporaryDirectory() as folder,
        closing(Child(arcade_clients)) as clients,
        closing(_Servers(clients, Path(folder), filled_replay(stored))) as servers,
    ):
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
    """Lets one policy play, and learns nothing."""

    def __init__(self, act: Callable[[Any], Any]) -> None:
        self.act = act

    def decide(self, frames: Any, clients: Any) -> Decisions:
        return Decisions(self.act(frames), Actor.PUPIL)


class _Servers:
    """What the clients are let loose on."""

    def __init__(self, clients: Child, folder: Path, memory: Replay) -> None:
        self.clients, self.folder, self.memory = clients, folder, memory  # `folder` is for the clients' screens
        self.learner, self.dice = new_learner(RainbowConfig(acting_every=25)), np.random.default_rng(1)
        setup, player = Setup(BridgeConfig(port=0, screens=folder), "benchmark"), RainbowPupil(self.learner.acting)
        self.server = BridgeProcess(setup, quick(player), tell=lambda note: None, save=lambda: None)

    def close(self) -> None:
        self.server.close()

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
        """A bridge in a thread of this process, with a policy that learns nothing."""
        with Bridge(_Player(act), BridgeConfig(port=0, screens=self.folder)) as server:
            return self._play(server.port, count, seconds)

    def rainbow(self, training: bool, count: int, seconds: float) -> Figures:
        """The bridge as a training has it, in a process of its own with the Rainbow network, which learns or not."""
        learner, server, over = self.learner, self.server, threading.Event()

        def learn() -> None:
            if training:
                step_back()
            playing = learner.acting
            while not over.is_set():
                for transitions in server.fetch(0 if training else 256, 0.1).transitions:
                    self.memory.add(*transitions)
                if training:
                    update(learner, self.memory, self.dice)
                if learner.acting is not playing:
                    playing = learner.acting
                    server.install(PUPIL, learner.updates, quick(RainbowPupil(playing)))

        before, updates, began = server.status(), learner.updates, time.perf_counter()
        thread = threading.Thread(target=learn, daemon=True)
        thread.start()
        found = self._play(server.port, count, seconds)
        over.set()
        thread.join()
        after, took = server.status(), time.perf_counter() - began
        found["cpu_us"] = 1e6 * (after.cpu_s - before.cpu_s) / max(1, after.frames - before.frames)
        return found | ({"updates_per_s": (learner.updates - updates) / took} if training else {})


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
        turns, waits, idle = [0] * int(count), list[float](), time.process_time()
        began = time.perf_counter() + 0.2  # the first frames find everything cold
        now = began
        while now < began + seconds:
            for key, _ in watch.select():
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
                    idle = time.process_time()
        spent = time.process_time() - idle
        for key in list(watch.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        took = np.array(waits)
        found = {"fps": len(took) / (now - began), "client_cpu_us": 1e6 * spent / len(took)}
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
