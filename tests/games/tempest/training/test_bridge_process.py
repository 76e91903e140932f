"""The bridge in its own process: who plays which game, what comes back, and what happens when either end dies."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil
import pytest

from protege import ProtegeError
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Frames, starts
from protege.games.tempest.training.behaviour import Exploration
from protege.games.tempest.training.bridge_process import LEAD, Batch, BridgeProcess, Setup
from protege.games.tempest.training.sources import ArcadeSource
from protege.learn.replay import Actor
from tests.games.tempest.arcade.client import SOUND, Client, Machine, packet_of, wait_until
from tests.games.tempest.training.test_sources import session
from tests.train.trainings import Alone

NOTES: list[str] = []


class Always:
    """Makes one move."""

    def __init__(self, move: int):
        self.move = move

    def act(self, frames: Frames) -> np.ndarray:
        return np.full(len(frames.score), self.move)


class Clumsy:
    """Raises in its second frame: the first is the rehearsal's."""

    seen = 0

    def act(self, frames: Frames) -> np.ndarray:
        self.seen += 1
        if self.seen > 1:
            raise ZeroDivisionError("a mistake of its own")
        return np.zeros(len(frames.score), np.int64)


@contextmanager
def bridge(player: Any = Always(5), **settings: Any) -> Iterator[BridgeProcess]:
    setup = Setup(BridgeConfig(**{"port": 0, **settings}), "a name")
    made = BridgeProcess(setup, player, tell=NOTES.append, save=lambda: NOTES.append("save"))
    try:
        yield made
    finally:
        made.close()


class Talker:
    """A client whose frames say what a test wants; it echoes what it was told."""

    def __init__(self, port: int):
        self.client, self.counter, self.echo = Client(port, patience=60.0), 0, (0, 0, 0)

    def tick(self, **about: Any) -> tuple[int, ...]:
        self.counter += 1
        reply = self.client.exchange(packet_of(SOUND, counter=self.counter, echo=self.echo, **about))
        self.echo = tuple(np.frombuffer(reply, np.int8).tolist())
        return self.echo

    def game(self, frames: int = 3) -> list[tuple[int, ...]]:
        """A game from its beginning to its end; what was told in its frames."""
        told = [self.tick(score=100 * frame) for frame in range(frames)]
        self.game_over(100 * (frames - 1))
        return told

    def game_over(self, score: int) -> None:
        values = np.array(SOUND)
        values[0] = 0x10 / 36
        self.counter += 1
        over = packet_of(values, counter=self.counter, echo=self.echo, score=score, state=0x10)
        assert self.client.exchange(over) == bytes(3)
        self.echo = (0, 0, 0)


def gathered(made: BridgeProcess, games: int) -> Batch:
    """Everything up to so many ended games."""
    found, until = made.fetch(), time.monotonic() + 60
    while len(found.games) < games and time.monotonic() < until:
        more = made.fetch(1, 0.1)
        for name in ("transitions", "games", "episodes"):
            getattr(found, name).extend(getattr(more, name))
        found.frames += more.frames
    return found


def test_slots_take_turns_and_every_game_says_who_played_it_with_which_weights():
    command = [tuple(action) for action in ACTIONS.tolist()]
    with bridge() as made:
        talker = Talker(made.port)
        assert talker.game() == [command[5]] * 3
        made.install(1, 40, Always(7))
        made.plan((0, 1))
        made.install(0, 1, Always(6))
        made.status()  # an answer: what was sent before it has arrived
        assert talker.game() == [command[7]] * 3
        assert talker.game() == [command[6]] * 3
        told = [talker.tick(score=0)]
        made.install(1, 41, Always(8))
        made.status()
        assert told + talker.game()[1:] == [command[7], command[8], command[8]], "a game goes on with newer weights"
        batch = gathered(made, 4)
    assert [(game.slot, game.first, game.last) for game in batch.games] == [
        (0, 0, 0),
        (1, 40, 40),
        (0, 1, 1),
        (1, 40, 41),
    ]
    assert [finished.game.score for finished in batch.games] == [200] * 4
    moves = np.concatenate([part.actions for part in batch.transitions])
    assert batch.frames == 9 and set(moves.tolist()) == {5, 6, 7, 8}
    assert any("came" in note for note in NOTES)


def test_exploration_is_that_of_the_slot():
    with bridge() as made:
        made.explore(0, Exploration(teacher=1.0))
        made.status()
        talker = Talker(made.port)
        for _ in range(5):
            assert talker.tick(fire=1, target=3, lane=0) == (1, 0, -12)
        while not (found := made.fetch(1, 0.1)).transitions:
            pass
    assert set(np.concatenate([part.actors for part in found.transitions]).tolist()) == {Actor.TEACHER}


def test_replies_wait_for_whoever_learns_but_never_long():
    with bridge(hold_s=0.3) as made:
        talker = Talker(made.port)
        for _ in range(LEAD + 2):
            talker.tick()
        assert made.status().held_s == 0
        began = time.monotonic()
        for _ in range(3):
            talker.tick()
        assert time.monotonic() - began > 2 * 0.3 and (held := made.status().held_s) > 2 * 0.25
        made.learned(LEAD)
        made.status()
        for _ in range(50):
            talker.tick()
        assert made.status().held_s - held < 0.3, "one that waited already may be let go late"
        frames, until = 0, time.monotonic() + 60
        while frames < LEAD + 2 + 3 + 50 - 1 and time.monotonic() < until:
            frames += made.fetch(1, 0.1).frames
        assert frames == LEAD + 2 + 3 + 50 - 1


def test_what_a_player_raises_is_raised_in_the_training():
    with pytest.raises(RuntimeError, match="a mistake of its own"), bridge(Clumsy()) as made:
        assert Client(made.port).exchange(packet_of(SOUND)) == b""
        wait_until(lambda: not made.is_alive(), 60.0)


def test_a_port_in_use_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(ProtegeError, match=f"cannot listen at 127.0.0.1 port {port}.*another server"),
            bridge(port=port),
        ):
            pass


def test_a_bridge_that_is_killed_is_started_again_at_the_same_port(tmp_path):
    made = session(tmp_path)
    context = made.context
    assert isinstance(context, Alone)
    made.start()
    try:
        source, machine = made.source, Machine(starts(1, seed=5)[0].copy())
        assert isinstance(source, ArcadeSource)
        port = source.bridge.port
        with Client(port) as client:
            for _ in range(30):
                client.play(machine)
            psutil.Process(source.bridge.pid).kill()
            assert client.is_closed()
        wait_until(lambda: not source.bridge.is_alive(), 60.0)
        made.update(made.collect(None))
        assert source.bridge.port == port
        assert "the bridge's process ended, with code -9: it is started again" in context.notes
        with Client(port) as client:
            for _ in range(30):
                assert client.play(machine)
        streams = {int(stream) for part in made.source.drain(())[0].content for stream in part.streams}
        assert streams == {36}, "nothing is added to the streams that broke off"
    finally:
        made.close()


PARENT = """
import time
from protege.games.tempest.training.bridge_process import BridgeProcess, Setup
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.agents.players import find_player
player = find_player("random")
made = BridgeProcess(Setup(BridgeConfig(port=0), "a name"), player, tell=print, save=print)
print(made.pid, flush=True)
time.sleep(600)
"""


def test_the_bridge_ends_with_the_training_even_if_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        child = psutil.Process(pid)
        assert child.is_running()
        parent.kill()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 60.0)
