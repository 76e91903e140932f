"""Simulated cabinets: the frames they send, their games at a real server, and how they find it again."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.games.tempest.agents.players import find_player, play, words
from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import Bridge, BridgeConfig
from protege.games.tempest.arcade.cabinets import Cabinets, advance, run_cabinets
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import starts
from tests.games.tempest.arcade.client import Listener, Machine, wait_until


def teacher() -> Listener:
    return Listener(lambda frames: frames.advice)


@contextmanager
def cabinets_at(port: int, clients: int, **settings) -> Iterator[Cabinets]:
    """Cabinets at play, in a thread, until the block ends."""
    made, over = Cabinets(clients, port=port, tell=lambda line: None, **settings), threading.Event()

    def turn() -> None:
        while not over.is_set():
            made.turn(0.02)

    playing = threading.Thread(target=turn)
    playing.start()
    try:
        yield made
    finally:
        over.set()
        playing.join()
        made.close()


def test_the_compiled_frames_are_those_of_the_script():
    random = np.random.default_rng(3)
    rows = starts(3, seed=7, level=[1, 20, 60])
    machines = [Machine(row.copy()) for row in rows]
    replies, counters = np.zeros((3, 3), np.int8), np.zeros(3, np.int64)
    values, packets = np.zeros((3, 195), np.float32), wire.new_packets(3).astype(wire.NATIVE)
    for tick in range(600):
        which = np.flatnonzero(random.random(3) < 0.8)
        for c in which.tolist() if tick else ():
            replies[c] = (random.integers(2), int(random.random() < 0.01), random.integers(-12, 13))
            machines[c].tick(replies[c].tobytes())
        advance(rows, which, replies, counters, values, packets, tick > 0)
        sent = packets[: len(which)].astype(wire.FRAME)
        assert [packet.tobytes() for packet in sent] == [machines[c].packet() for c in which.tolist()], tick


def test_whole_games_are_played_for_a_server_as_they_are_without_one():
    agent, ended = teacher(), play(find_player("teacher"), starts(3, seed=5, level=9))
    expected = set(words(ended, ram.SCORE).tolist())
    with Bridge(agent, BridgeConfig(port=0)) as bridge, cabinets_at(bridge.port, 3, seed=5, level=9) as cabinets:
        wait_until(lambda: expected <= set(cabinets.scores), 60.0)
    assert [game.score for game in agent.games][: len(cabinets.scores)] == cabinets.scores
    assert bridge.tallies["wrong echo"] == bridge.tallies["contradiction"] == bridge.tallies["reset in mid-game"] == 0


def test_cabinets_find_a_server_that_comes_late_and_one_that_comes_back():
    with Bridge(teacher(), BridgeConfig(port=0)) as first:
        port = first.port
    with cabinets_at(port, 2) as cabinets:
        time.sleep(0.1)
        assert cabinets.connected == 0
        for expected in (2, 4):
            with Bridge(teacher(), BridgeConfig(port=port)) as bridge:
                wait_until(lambda: bridge.frames > 100 and len(bridge.clients()) == 2, 60.0)
                assert sorted(client.name for client in bridge.clients()) == ["cabinet 1", "cabinet 2"]
                assert cabinets.connected == expected


def test_a_token_that_is_wrong_is_one_clear_line():
    with Bridge(teacher(), BridgeConfig(port=0, token="open sesame")) as bridge:
        with pytest.raises(ProtegeError, match="asks for a token"):
            run_cabinets(Cabinets(1, port=bridge.port, token="please"), minutes=1.0)
        found = run_cabinets(Cabinets(2, port=bridge.port, token="open sesame"), frames=50)
        assert found["frames"] >= 50 and found["connections"] == 2


def test_what_the_command_prints(capsys):
    with Bridge(teacher(), BridgeConfig(port=0, start=wire.Start(level=33))) as bridge:
        words_typed = ["--clients", "4", "--port", str(bridge.port), "--frames", "3000", "--level", "5", "--json"]
        assert cli.main(["cabinets", *words_typed]) == 0
    *_, told, figures = capsys.readouterr().out.splitlines()
    found = json.loads(figures)
    assert found["clients"] == 4 and found["frames"] >= 3000 and found["frames_per_s"] > 0
    assert told.startswith("4 cabinets: 3,0") and "% of a core" in told
    assert cli.main(["cabinets", "--clients", "99"]) == cli.USAGE_ERROR
    assert "takes 1 to 36 clients; got 99" in capsys.readouterr().err
