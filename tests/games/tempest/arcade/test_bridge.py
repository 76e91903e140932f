"""The bridge over real sockets: games arrive as they were played, and nobody who misbehaves harms anybody else."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig, step_back
from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import Cabinet, power_on
from protege.games.tempest.task.actions import ACTIONS, joint_actions
from protege.games.tempest.task.env import Frames, Games, starts
from tests.games.tempest.arcade.abuse import fuzz, soak
from tests.games.tempest.arcade.client import SOUND, Client, Listener, Machine, packet_of, wait_until

PLAYABLE = np.array(SOUND, np.float32)


@contextmanager
def bridged(agent: Agent, **settings) -> Iterator[Bridge]:
    """A bridge on a free port of this machine."""
    with Bridge(agent, BridgeConfig(**{"port": 0, **settings})) as bridge:
        yield bridge


def shaky(frames: Frames) -> np.ndarray:
    """The teacher with a hand that shakes in a third of all situations: depends on nothing but the frame."""
    mix = (frames.observation * 1000).astype(np.int64).sum(1)
    return np.where((mix % 3 == 0)[:, None], ACTIONS[mix % len(ACTIONS)], frames.advice)


def play_locally(row: ram.Row) -> list[tuple[Frames, int, Frames]]:
    """A game in the simulator: frames, what was done, and the frames it led to."""
    games, told = Games(row[None]), []
    while not games.frames.over[0]:
        before = Frames._make([array.copy() for array in games.frames])
        commands = shaky(before)
        after = games.step(commands)
        told.append((before, int(joint_actions(commands)[0]), Frames._make([array.copy() for array in after])))
    return told


def play_out(machine: Machine, client: Client) -> None:
    while not machine.is_over():
        assert client.play(machine)
    assert client.play(machine) == bytes(3)


# --- what arrives ---


def test_games_over_the_bridge_are_the_games_of_the_simulator():
    rows = starts(3, seed=5, level=[1, 9, 40])
    agent = Listener(shaky)
    with bridged(agent) as bridge:
        pairs = [(Machine(row.copy()), Client(bridge.port)) for row in rows]
        while pairs:
            for machine, client in pairs:
                assert client.play(machine)
            pairs = [pair for pair in pairs if not pair[0].is_over()]
    for place, row in enumerate(rows):
        local, steps = play_locally(row), agent.steps_of(place)
        assert len(local) > 300
        assert np.array_equal(steps.observations, [before.observation[0] for before, _, _ in local])
        assert np.array_equal(steps.actions, [action for _, action, _ in local])
        for name, found in (("reward", steps.rewards), ("objective", steps.objectives)):
            assert np.array_equal(found, [getattr(after, name)[0] for _, _, after in local])
        assert np.array_equal(steps.terminated, [after.terminated[0] for _, _, after in local])
        assert not steps.truncated.any() and set(steps.actors) == {7} and len(set(steps.streams)) == 1
        assert np.array_equal(steps.advice, [joint_actions(before.advice)[0] for before, _, _ in local])
        heard = [(frames, list(places).index(place)) for frames, places in agent.seen if place in places]
        for name in set(Frames._fields) - {"uniform", "over"}:
            simulated = np.array([getattr(before, name)[0] for before, _, _ in local])
            assert np.array_equal(np.array([getattr(frames, name)[i] for frames, i in heard]), simulated), name


def test_a_finished_game_is_reported_with_what_it_came_to():
    (row,) = starts(1, seed=3, level=9)
    agent = Listener(shaky)
    with bridged(agent) as bridge:
        machine = Machine(row.copy())
        play_out(machine, Client(bridge.port))
        wait_until(lambda: agent.games)
    last = play_locally(row)[-1][2]
    (game,) = agent.games
    assert (game.score, game.frames, game.deaths) == (last.score[0], last.frame[0], 3)
    assert (game.start_level, game.truncated) == (9, False)
    assert game.start_bonus == int(ram.get_word(machine.row, ram.START_BONUS))
    assert game.level == int(machine.row[ram.P1_LEVEL]) + 1


def test_a_cabinet_goes_from_attract_mode_through_games_and_only_control_is_learned_from():
    agent = Listener(lambda frames: np.full(len(frames.score), 23))
    machine = Machine(power_on(Cabinet(free_play=True), seed=4))
    controlled = 0
    with bridged(agent) as bridge, Client(bridge.port) as client:
        while len(agent.games) < 2:
            controlled += machine.in_control()
            reply = client.play(machine)
            assert reply == bytes(3) or machine.echo == (1, 0, 12)
    steps = agent.steps_of(0)
    values = steps.observations
    assert (np.isin((values[:, 0] * 36).round(), (ram.PLAYING, ram.ZOOM)) & (values[:, 6] == 1)).all()
    assert (values[:, 1] * 255 >= ram.REAL_GAME).all()
    assert len(steps.clients) == controlled and steps.terminated.sum() == 6
    assert [game.deaths for game in agent.games] == [3, 3]


@pytest.mark.parametrize("pieces", [2, 7, 821])
def test_frames_may_come_in_pieces(pieces):
    agent = Listener()
    with bridged(agent) as bridge, Client(bridge.port, greeting=b"\0") as client:
        time.sleep(0.02)
        client.socket.sendall(b"\0")
        machine = Machine(starts(1)[0])
        for _ in range(5):
            assert client.play(machine, pieces) == bytes(3)
        wait_until(lambda: len(agent.steps) == 4)


def test_the_greeting_and_the_first_frame_may_come_together():
    with bridged(Listener()) as bridge, Client(bridge.port, greeting=b"\0") as client:
        assert client.exchange(b"\0" + Machine(starts(1)[0]).packet()) == bytes(3)


def test_a_disconnect_ends_the_stream_as_truncated():
    agent = Listener()
    with bridged(agent) as bridge:
        machine = Machine(starts(1)[0])
        with Client(bridge.port) as client:
            for _ in range(3):
                client.play(machine)
        wait_until(lambda: agent.steps and agent.steps[-1].truncated.any())
        steps = agent.steps_of(0)
        assert steps.truncated.tolist() == [False, False, True] and steps.rewards[2] == 0.0
        with Client(bridge.port) as client:
            client.play(machine)
            client.play(machine)
            wait_until(lambda: len(agent.steps_of(0).streams) == 4)
    assert len(set(agent.steps_of(0).streams)) == 2


def test_a_bridge_that_closes_ends_its_streams_too():
    agent = Listener()
    with bridged(agent) as bridge, Client(bridge.port) as client:
        client.play(Machine(starts(1)[0]))
    assert agent.steps_of(0).truncated.tolist() == [True]


def test_all_who_wait_are_decided_in_one_call():
    busy, free = threading.Event(), threading.Event()

    class Slow(Listener):
        def decide(self, frames, clients):
            if not self.seen:
                busy.set()
                free.wait(10)
            return super().decide(frames, clients)

    agent = Slow()
    with bridged(agent) as bridge:
        clients = [Client(bridge.port) for _ in range(9)]
        packet = Machine(starts(1)[0]).packet()
        clients[0].socket.sendall(packet)
        assert busy.wait(10)
        for client in clients[1:]:
            client.socket.sendall(packet)
        time.sleep(0.1)
        free.set()
        assert all(client.receive(3) == bytes(3) for client in clients)
    assert [len(places) for _, places in agent.seen] == [1, 8]


def test_latency_counts_from_the_arrival_of_a_frame_however_long_it_lies_there():
    busy, free = threading.Event(), threading.Event()

    class Slow(Listener):
        def decide(self, frames, clients):
            if not self.seen:
                busy.set()
                free.wait(10)
            return super().decide(frames, clients)

    with bridged(Slow()) as bridge:
        first, second = Client(bridge.port), Client(bridge.port)
        packet = Machine(starts(1)[0]).packet()
        first.socket.sendall(packet)
        assert busy.wait(10)
        second.socket.sendall(packet)
        time.sleep(0.2)
        free.set()
        assert first.receive(3) == second.receive(3) == bytes(3)
        # Replies go out before figures are worked out.
        wait_until(lambda: all(client.latency_ms > 200 for client in bridge.clients()))


def test_replies_wait_for_an_agent_that_is_not_ready_and_one_who_leaves_meanwhile_is_missed():
    class Hesitant(Listener):
        def is_ready(self):
            return len(self.seen) != 1

    agent = Hesitant()
    with bridged(agent, hold_s=0.5) as bridge:
        stays, leaves = Client(bridge.port), Client(bridge.port)
        began = time.monotonic()
        assert stays.exchange(packet_of(PLAYABLE, counter=1)) == bytes(3)
        leaves.socket.sendall(packet_of(PLAYABLE, counter=1))
        time.sleep(0.05)
        leaves.close()
        assert stays.exchange(packet_of(PLAYABLE, counter=2)) == bytes(3)
        assert time.monotonic() - began > 0.5 and bridge.held_s > 0.4
        assert stays.exchange(packet_of(PLAYABLE, counter=3)) == bytes(3)
    assert [places.tolist() for _, places in agent.seen] == [[0], [0], [0]]
    with pytest.raises(ProtegeError, match="replies can wait 0 to 2 s, else clients give up; got 3"):
        BridgeConfig(hold_s=3.0)


# --- what is refused ---


@pytest.mark.parametrize(
    "tally, broken",
    [
        ("not finite", packet_of(np.where(np.arange(195) == 50, np.nan, PLAYABLE), counter=3)),
        ("out of range", packet_of(np.where(np.arange(195) == 50, 1.5, PLAYABLE), counter=3)),
        ("contradiction", packet_of(PLAYABLE, level=7, counter=3)),
        ("wrong length", packet_of(PLAYABLE, length=815, counter=3)[:-4]),
        ("wrong length", packet_of(PLAYABLE, length=823, counter=3) + bytes(4)),
        ("wrong length", b"\0\2\0\0"),
    ],
)
def test_a_frame_that_cannot_be_believed_is_answered_neutrally_and_never_learned_from(tally, broken):
    agent = Listener(lambda frames: np.full(len(frames.score), 13))
    command = bytes(ACTIONS[13].astype(np.uint8))
    echo = ACTIONS[13].tolist()
    with bridged(agent) as bridge, Client(bridge.port) as client:
        assert client.exchange(packet_of(PLAYABLE, counter=1)) == command
        assert client.exchange(packet_of(PLAYABLE, counter=2, echo=echo, objective=50)) == command
        fixed = bytearray(broken)
        if len(fixed) > 41:
            fixed[30:34] = packet_of(PLAYABLE, echo=echo)[30:34]
        assert client.exchange(bytes(fixed)) == bytes(3)
        assert client.exchange(packet_of(PLAYABLE, counter=4)) == command
        assert client.exchange(packet_of(PLAYABLE, counter=5, echo=echo, objective=100)) == command
        wait_until(lambda: len(agent.steps) == 3)
        steps = agent.steps_of(0)
        assert bridge.tallies[tally] == 1
    assert steps.truncated.tolist() == [False, True, False] and steps.objectives.tolist() == [50, 0, 100]


@pytest.mark.parametrize(
    "tally, broken",
    [
        ("wrong count", packet_of(PLAYABLE, count=194, counter=2)),
        ("wrong echo", packet_of(PLAYABLE, echo=(1, 0, 0), counter=2)),
        ("wrong echo", packet_of(PLAYABLE, echo=(0, 0, 256), counter=2)),
        ("broke the protocol", b"\xff\xff"),
        ("broke the protocol", b"\0\1"),
        ("broke the protocol", 2 * packet_of(PLAYABLE, counter=2)),
    ],
)
def test_a_client_that_does_not_keep_to_the_protocol_is_sent_away(tally, broken):
    agent = Listener()
    with bridged(agent) as bridge, Client(bridge.port) as client:
        assert client.exchange(packet_of(PLAYABLE, counter=1)) == bytes(3)
        assert client.exchange(broken) == b"" and client.is_closed()
        wait_until(lambda: agent.steps and not bridge.clients())
        assert bridge.tallies[tally] == 1
        assert agent.steps_of(0).truncated.tolist() == [True]


def test_the_echo_of_a_first_frame_is_not_checked():
    with bridged(Listener()) as bridge, Client(bridge.port) as client:
        assert client.exchange(packet_of(PLAYABLE, echo=(1, 1, 5))) == bytes(3)


def test_a_client_that_sends_and_never_reads_is_sent_away():
    with bridged(Listener()) as bridge, Client(bridge.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
        client.socket.settimeout(0.2)
        with pytest.raises((TimeoutError, ConnectionError)):
            for counter in range(1, 2_000_000):
                client.socket.sendall(packet_of(PLAYABLE, counter=counter))
        wait_until(lambda: not bridge.clients())


# --- who is let in, and for how long ---


def test_the_limit_of_clients_is_enforced_and_said():
    agent = Listener()
    with bridged(agent, most_clients=2) as bridge:
        first, second = Client(bridge.port, wire.greet(name="one")), Client(bridge.port)
        assert second.exchange(packet_of(PLAYABLE)) == bytes(3)
        refused = Client(bridge.port, wire.greet(name="three"))
        assert refused.answer == bytes([0x50, 1, wire.FULL, 0, 0]) and refused.is_closed()
        old = Client(bridge.port)
        assert old.is_closed()
        first.close()
        wait_until(lambda: len(bridge.clients()) == 1)
        assert Client(bridge.port, wire.greet(name="three")).answer[2] == wire.WELCOME
        assert bridge.tallies["all places taken"] == 2
    assert "a connection (three, 127.0.0.1) was sent away: all places taken" in agent.notes


def test_thirty_six_are_served_at_once_and_no_more():
    assert (BridgeConfig().host, BridgeConfig().port) == ("127.0.0.1", 9999)
    with bridged(Listener()) as bridge:
        clients = [Client(bridge.port, wire.greet(name=f"cabinet {n}")) for n in range(36)]
        assert all(client.answer[2] == wire.WELCOME for client in clients)
        assert all(client.exchange(packet_of(PLAYABLE)) == bytes(3) for client in clients)
        assert Client(bridge.port, wire.greet()).answer[2] == wire.FULL
        assert [status.place for status in bridge.clients()] == list(range(36))


def test_a_token_is_asked_for_and_never_told():
    agent = Listener()
    with bridged(agent, token="open sesame") as bridge:
        for greeting in (wire.greet("", "a"), wire.greet("open sesamE", "b")):
            refused = Client(bridge.port, greeting)
            assert refused.answer == bytes([0x50, 1, wire.WRONG_TOKEN, 0, 0]) and refused.is_closed()
        assert Client(bridge.port).is_closed(), "an old client cannot know it"
        with Client(bridge.port, wire.greet("open sesame", "c")) as client:
            assert client.answer[2] == wire.WELCOME
            assert client.exchange(packet_of(PLAYABLE)) == bytes(3)
        assert bridge.tallies["wrong token"] == 3
        assert "sesame" not in repr(agent.notes) + repr(bridge.clients()) + repr(bridge.tallies) + repr(bridge.config)


def test_only_allowed_addresses_are_let_in():
    with bridged(Listener(), allow=("10.1.2.3", "192.168.0.0/16")) as bridge:
        assert Client(bridge.port).is_closed()
        assert bridge.tallies["address not allowed"] == 1
    with bridged(Listener(), allow=("127.0.0.0/8",)) as bridge, Client(bridge.port) as client:
        assert client.exchange(packet_of(PLAYABLE)) == bytes(3)


def test_other_machines_are_let_in_only_with_a_token_or_a_list():
    for host in ("0.0.0.0", "::", "192.168.1.5", "", "arcade.example"):
        with pytest.raises(ProtegeError, match="give a token that the clients must know"):
            BridgeConfig(host=host)
        BridgeConfig(host=host, token="secret")
        BridgeConfig(host=host, allow=("192.168.1.0/24",))
    BridgeConfig(host="localhost"), BridgeConfig(host="::1"), BridgeConfig(host="127.0.0.2")
    with pytest.raises(ProtegeError, match="networks like 192.168.1.0/24"):
        BridgeConfig(allow=("my machine",))


def test_a_port_in_use_is_one_clear_line():
    with bridged(Listener()) as bridge:
        with pytest.raises(ProtegeError, match=f"cannot listen at 127.0.0.1 port {bridge.port}.*another server"):
            Bridge(Listener(), BridgeConfig(port=bridge.port))


def test_silent_half_open_and_dripping_clients_lose_their_place_and_cost_the_others_nothing():
    machine = Machine(starts(1)[0])
    with bridged(Listener(), silent_s=1.0, greeting_s=0.5) as bridge:
        silent, dripping, stranger = Client(bridge.port), Client(bridge.port), Client(bridge.port, greeting=b"")
        dripping.exchange(packet_of(PLAYABLE))
        honest = Client(bridge.port)
        began, drips = time.monotonic(), 0
        while time.monotonic() < began + 1.6:
            assert honest.play(machine) == bytes(3)
            if drips < 7 and time.monotonic() > began + drips / 10:  # a byte now and then is no frame
                dripping.socket.send(b"\3")
                drips += 1
        assert silent.is_closed() and dripping.is_closed() and stranger.is_closed()
        assert bridge.tallies["silent"] == 2 and bridge.tallies["did not greet"] == 1
        assert [status.frames for status in bridge.clients()] == [machine.counter]


# --- settings, wishes, figures ---


def test_start_settings_go_to_those_who_announce_their_version():
    with bridged(Listener(), start=wire.Start(33, advanced=True), long_replies=True) as bridge:
        with Client(bridge.port, wire.greet(name="new")) as client:
            assert client.answer == bytes([0x50, 1, wire.WELCOME, 1, 33])
            assert client.exchange(packet_of(PLAYABLE)) == bytes(3)
        with Client(bridge.port, reply_bytes=5) as client:
            assert client.exchange(packet_of(PLAYABLE)) == bytes([0, 0, 0, 1, 33])


def test_a_client_that_seems_to_want_longer_replies_is_spoken_of():
    agent = Listener()
    with bridged(agent) as bridge:
        for turn in range(3):
            with Client(bridge.port) as client:
                client.exchange(packet_of(PLAYABLE))
            while bridge.tallies["left"] <= turn:
                time.sleep(0.005)
    assert sum("never sends a second frame" in note for note in agent.notes) == 1


def test_wishes_to_save_are_passed_on_but_not_too_often():
    agent = Listener()
    with bridged(agent, save_every_s=2.0) as bridge, Client(bridge.port) as client:
        for counter in range(1, 6):
            client.exchange(packet_of(PLAYABLE, counter=counter, save=1))
        assert agent.saves == 1
        time.sleep(2.05)
        client.exchange(packet_of(PLAYABLE, counter=6))
        assert agent.saves == 1
        client.exchange(packet_of(PLAYABLE, counter=7, save=1))
        wait_until(lambda: agent.saves == 2)


def test_clients_are_told_apart_by_what_they_do():
    with bridged(Listener(lambda frames: frames.advice)) as bridge:
        assert bridge.clients() == []
        player, sleeper = Client(bridge.port, wire.greet(name="cabinet 7")), Client(bridge.port)
        machine, idle = Machine(starts(1, level=5)[0]), Machine(power_on(seed=1))
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            player.play(machine)
            time.sleep(0.005)
        sleeper.play(idle)
        first, second = bridge.clients()
        assert (first.name, first.address, first.version, first.place) == ("cabinet 7", "127.0.0.1", 1, 0)
        assert (first.activity, first.level) == ("playing", 5) and first.frames == machine.counter
        assert first.frames_per_s > 20 and 0 < first.latency_ms < 1000
        assert (second.name, second.version, second.activity, second.frames) == ("", 0, "attract mode", 1)


def test_a_peer_that_comes_and_goes_all_the_time_cannot_fill_a_terminal():
    agent = Listener()
    with bridged(agent) as bridge:
        for _ in range(80):
            Client(bridge.port).close()
        gone = ("left", "too many connections", "all places taken")
        wait_until(lambda: sum(bridge.tallies[why] for why in gone) == 80)
        assert len(agent.notes) <= 65 and bridge.tallies["notes left out"] >= 15


def test_what_the_agent_raises_ends_the_bridge_and_is_raised_again():
    class Broken(Listener):
        def decide(self, frames, clients):
            raise ZeroDivisionError("the agent's own mistake")

    with pytest.raises(ZeroDivisionError, match="own mistake"), bridged(Broken()) as bridge:
        client = Client(bridge.port)
        assert client.exchange(packet_of(PLAYABLE)) == b"" and client.is_closed()
        wait_until(lambda: not bridge.is_alive())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priorities of their own")
def test_whoever_learns_steps_back_behind_the_bridge_once_and_alone(monkeypatch):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setattr("protege.games.tempest.arcade.bridge._PRIORITY", before)
    found: list[int] = []

    def learner() -> None:
        step_back()
        step_back()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=learner)
    thread.start()
    thread.join()
    assert found == [min(19, before + 5)] and os.getpriority(os.PRIO_PROCESS, 0) == before


# --- abuse, in short; prove_bridge.py has the long forms ---


@pytest.mark.slow
def test_nonsense_neither_fells_the_bridge_nor_reaches_the_experience():
    outcome = fuzz(20_000)
    assert outcome.told > 2000 and outcome.truncated > 500 and outcome.honest_ticks > 100
    for tally in ("not finite", "out of range", "contradiction", "wrong length", "wrong count", "wrong echo"):
        assert outcome.tallies[tally] > 10, f"{tally} was not tried"
    assert outcome.grown_mb < 30


@pytest.mark.slow
def test_clients_that_come_and_go_never_get_into_each_others_streams():
    outcome, fates = soak(20)
    assert outcome.told > 1000 and outcome.truncated > 50 and min(fates.values()) > 0
    assert outcome.tallies["silent"] > 5 and outcome.grown_mb < 30
