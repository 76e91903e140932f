"""The arcade bridge under load: many clients in another process, training on and off."""

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from protege.games.tempest.benchmarks.replay import filled_replay
from protege.slices import Figures

if TYPE_CHECKING:
    from protege.learn.replay import Replay


LOOP_S = 0.0002


def bridge(seconds: float, counts: tuple[int, ...] = (1, 8, 16, 36), stored: int = 100_000) -> Figures:
    """Frames per second that arcade clients get answered, and how long they wait for a reply, as they see it.

    At 16 clients: a server that only answers zeros, beside the bridge with a policy that costs nothing and with a
    network of 62,000 weights. Then `fps_N`, `p50_ms_N` and `p99_ms_N` with the Rainbow network while it learns
    from what comes, and the same with `_no_training` while it does not. All clients live in one other process, and cost
    about as much as the server that answers zeros.
    """
    import torch

    from protege.games.tempest.agents.network import Pupil, ValueNetwork

    torch.set_num_threads(1)
    small = Pupil(ValueNetwork((128, 128)).eval())
    memory = filled_replay(stored)
    figures: Figures = {}
    with _ArcadeClients() as clients:
        first: dict[str, Callable[[float], Figures]] = {
            "do_nothing_{}_16": lambda s: clients.against_zeros(16, s),
            "trivial_{}_16": lambda s: clients.against(lambda frames: np.zeros(len(frames.score), np.int64), 16, s),
            "small_network_{}_16": lambda s: clients.against(small.act, 16, s),
        }
        figures |= _take_turns(first, seconds)
        for count in counts:
            sides: dict[str, Callable[[float], Figures]] = {
                f"{{}}_{count}": lambda s, n=count: clients.against_rainbow(n, s, memory, True),  # type: ignore[misc]
                f"{{}}_{count}_no_training": lambda s, n=count: clients.against_rainbow(n, s, memory, False),  # type: ignore[misc]
            }
            figures |= _take_turns(sides, seconds)
    figures["trivial_ratio"] = figures["trivial_fps_16"] / figures["do_nothing_fps_16"]
    return figures | {"updates_per_s": figures["updates_per_s_16"], "client_processes": 1, "torch_threads": 1}


def _take_turns(sides: dict[str, Callable[[float], Figures]], seconds: float) -> Figures:
    """Medians of the figures of each side, under its name with theirs in it, from five slices of each in turn."""
    found: dict[str, list[float]] = {}
    for _ in range(5):
        for name, side in sides.items():
            for figure, value in side(seconds / 5).items():
                found.setdefault(name.format(figure), []).append(value)
    return {name: float(np.median(values)) for name, values in found.items()}


class _ArcadeClients:
    """The process with the clients, and the servers they are let loose on."""

    def __enter__(self) -> "_ArcadeClients":
        command = [
            sys.executable,
            "-c",
            "from protege.games.tempest.benchmarks.bridge import _arcade_clients; _arcade_clients()",
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = TemporaryDirectory()  # of the clients' screens, which a server keeps for its page
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        self.folder.cleanup()

    def play(self, port: int, count: int, seconds: float) -> Figures:
        """Let so many clients play at a port; `fps`, `p50_ms` and `p99_ms`."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{port} {count} {seconds}\n")
        self.process.stdin.flush()
        found: Figures = json.loads(self.process.stdout.readline())
        return found

    def against_zeros(self, count: int, seconds: float) -> Figures:
        """A server in a thread that answers every frame with zeros."""
        import socket
        import threading

        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_answer_zeros, args=(listener, count), daemon=True)
            thread.start()
            found = self.play(listener.getsockname()[1], count, seconds)
            thread.join()
        return found

    def against(self, act: Callable[[Any], Any], count: int, seconds: float) -> Figures:
        """The bridge with a player."""
        from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig
        from protege.games.tempest.arcade.streams import Decisions

        class Playing(Agent):
            def decide(self, frames: Any, clients: Any) -> Decisions:
                return Decisions(act(frames), 0)

        with Bridge(Playing(), BridgeConfig(port=0, screens=Path(self.folder.name))) as server:
            return self.play(server.port, count, seconds)

    def against_rainbow(self, count: int, seconds: float, memory: "Replay", training: bool) -> Figures:
        """The bridge with the Rainbow network, which learns meanwhile or not."""
        import threading

        from protege.games.tempest.agents.attention import (
            AttentionConfig,
            RainbowPupil,
            build_network,
            shape_of,
        )
        from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
        from protege.games.tempest.arcade.streams import Decisions
        from protege.games.tempest.task.actions import FACTORS
        from protege.learn.rainbow import Rainbow, RainbowConfig
        from protege.learn.replay import Actor

        config = RainbowConfig()
        learner = Rainbow(build_network(shape_of(AttentionConfig(), config)), config, factors=FACTORS)
        dice, over = np.random.default_rng(1), threading.Event()
        arrived: deque[Any] = deque()  # as in a training: the bridge's thread leaves the memory to whoever learns

        class Learning(Agent):
            def decide(self, frames: Any, clients: Any) -> Decisions:
                return Decisions(RainbowPupil(learner.acting).act(frames), Actor.PUPIL)

            def learn(self, steps: Any) -> None:
                if training:
                    arrived.append(steps)

        def update() -> None:
            step_back()
            while not over.is_set():
                while arrived:
                    steps = arrived.popleft()
                    memory.add(
                        steps.clients, steps.observations, steps.actions, steps.rewards, steps.terminated,
                        steps.truncated, steps.actors, steps.advice,
                    )  # fmt: skip
                batch = memory.sample(config.batch, config.beta, dice)
                _, divergences = learner.update(batch, config.cloning)
                memory.update(batch.handle, divergences)

        with Bridge(Learning(), BridgeConfig(port=0, screens=Path(self.folder.name))) as server:
            thread = threading.Thread(target=update, daemon=True)
            began = time.perf_counter()
            if training:
                thread.start()
            found = self.play(server.port, count, seconds)
            over.set()
            if training:
                thread.join()
                found["updates_per_s"] = learner.updates / (time.perf_counter() - began)
        return found


def _answer_zeros(listener: Any, count: int) -> None:
    """Three zeros for every frame of so many clients, until they have all left."""
    import selectors

    from protege.games.tempest.arcade.wire import FRAME, PLAIN_GREETING

    watch, received = selectors.DefaultSelector(), dict[Any, int]()
    for _ in range(count):
        client: Any = listener.accept()[0]
        watch.register(client, selectors.EVENT_READ)
        received[client] = -len(PLAIN_GREETING)  # bytes since the last frame that was answered
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
            elif received[client] >= FRAME.itemsize:
                received[client] -= FRAME.itemsize
                client.send(bytes(3))


def _arcade_clients() -> None:
    """Clients that send frames of real games, over and over; lines `PORT COUNT SECONDS` say where, how many, how long.

    Packets are made beforehand: only the counter and the echo of the last reply are written into them.
    """
    import gc
    import selectors
    import socket

    from protege.games.tempest.arcade.wire import MOST_CLIENTS, PLAIN_GREETING

    packets = _recorded_packets(MOST_CLIENTS, 64)
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
            client.sendall(PLAIN_GREETING + packets[number][0])
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
    from protege.games.tempest.arcade import wire
    from protege.games.tempest.task import observation as layout
    from protege.games.tempest.task.env import Games, starts
    from protege.games.tempest.task.observation import decode

    table = Games(starts(games, level=[1 + game % 12 for game in range(games)]))
    for _ in range(200):  # past the quiet beginning
        table.step(table.frames.advice)
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
