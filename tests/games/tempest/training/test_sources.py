"""Arcade clients as a source: real sockets, real games, and a run that moves between simulator and clients."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.env import starts
from protege.games.tempest.training.config import RainbowTraining, TempestConfig
from protege.games.tempest.training.rainbow import RainbowSession
from protege.games.tempest.training.sources import MOST_UPDATES, ArcadeSource, Played
from protege.games.tempest.training.trainer import TRAINER, arcade_trainer
from protege.learn.replay import ReplayConfig
from protege.runs.checkpoints import load
from protege.runs.run import open_run
from protege.train.loop import train
from tests.games.tempest.arcade.client import Client, Machine
from tests.train.trainings import Alone, Notes

CONFIG = TempestConfig(
    minutes=0.0,
    learner="rainbow",
    eval_games=2,
    eval_frames=200,
    eval_seconds=3600.0,
    rainbow=RainbowTraining(
        games=8,
        batch=16,
        minimum_fill=40,
        replay_ratio=1.0,
        acting_every=2,
        widths=(16,),
        replay=ReplayConfig(capacity=5_000, n_step=3),
        epsilon=0.1,
        warm_frames=0,
        warm_updates=0,
    ),
)


@pytest.fixture(autouse=True)
def keep_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner steps back behind other programs, and so would all later tests of this process."""
    monkeypatch.setattr("protege.games.tempest.training.sources.step_back", lambda: None)


class Session(RainbowSession):
    """With a source that is known to be the arcade's."""

    source: ArcadeSource

    def start(self) -> None:
        self.follow()
        self.source.begin(resumed=True)


def session(folder: Path, **changes: Any) -> Session:
    config, context = replace(CONFIG, rainbow=replace(CONFIG.rainbow, **changes)), Alone(folder)
    return Session(config, context, ArcadeSource(config, context, BridgeConfig(port=0)))


def port_of(made: Session) -> int:
    return made.source.bridge.port


def play_frames(port: int, count: int, seed: int, level: int = 1) -> None:
    machine = Machine(starts(1, seed=seed, level=level)[0].copy())
    with Client(port) as client:
        for _ in range(count):
            client.play(machine)


def gather(made: Session, frames: int) -> int:
    """Learn until so many frames have come."""
    deadline = time.monotonic() + 60
    while made.frames < frames and time.monotonic() < deadline:
        made.update(made.collect(None))
    return made.frames


def test_what_clients_play_is_stored_and_learned_from(tmp_path):
    made = session(tmp_path)
    made.start()
    try:
        clients = [threading.Thread(target=play_frames, args=(port_of(made), 120, seed)) for seed in (1, 2)]
        for client in clients:
            client.start()
        assert gather(made, 200) >= 200
        for client in clients:
            client.join()
        assert made.figures()["replay_size"] > 150 and made.learner.updates > 5
        assert made.figures()["refused"] == 0
    finally:
        made.close()


def test_the_teachers_moves_alone_are_what_a_client_gets_when_it_is_wanted(tmp_path):
    made = session(tmp_path)
    made.controls.teacher_mode = "only"
    made.start()
    try:
        client = threading.Thread(target=play_frames, args=(port_of(made), 80, 3))
        client.start()
        gather(made, 60)
        client.join()
        assert made.replay.figures()["teacher"] == 1.0
        batch = made.replay.sample(64, 0.0, np.random.default_rng(1))
        assert np.array_equal(batch.action, batch.teacher_action)
    finally:
        made.close()


def test_where_clients_do_not_wait_a_learner_that_cannot_keep_up_makes_fewer_updates(tmp_path):
    made = session(tmp_path, reply_delay=0.0)
    made.start()
    try:
        play_frames(port_of(made), 80, seed=3)
        gather(made, 70)
        before = made.learner.updates
        made.update(Played([], 16 * 100))  # one sample a frame, sixteen in a batch: 100 are due
        assert made.learner.updates == before + MOST_UPDATES == before + 16
        made.update(Played([], 16))
        assert made.learner.updates == before + 17, "what was not made is not made up for"
    finally:
        made.close()


def test_inference_time_is_that_of_a_decision_however_many_there_were(tmp_path):
    made = session(tmp_path)
    made.note(Played([], 500, acting_s=0.08, decisions=40))
    assert made.inference_s == pytest.approx(0.002)
    made.note(Played([], 0))
    assert made.inference_s == pytest.approx(0.002), "nobody decided anything meanwhile"


def test_clients_get_their_moves_while_an_update_goes_on(tmp_path, monkeypatch):
    made = session(tmp_path)
    made.start()
    begun, finish, update = threading.Event(), threading.Event(), made.learner.update

    def slow_update(*given: Any) -> Any:
        begun.set()
        finish.wait(60)
        return update(*given)

    monkeypatch.setattr(made.learner, "update", slow_update)
    learning = threading.Thread(target=gather, args=(made, 100))
    learning.start()
    try:
        machine = Machine(starts(1, seed=5)[0].copy())
        with Client(port_of(made)) as client:
            while not begun.is_set():
                client.play(machine)
            for _ in range(100):  # each of them waits for its reply, ten seconds at most
                assert len(client.play(machine)) == 3
        assert not finish.is_set() and made.learner.updates == 0
    finally:
        finish.set()
        learning.join()
        made.close()


def test_every_client_and_every_reason_for_a_refusal_can_be_asked_for(tmp_path):
    made = session(tmp_path)
    made.start()

    def clients() -> Any:
        return made.controls.obey("clients", {}, made.scheduled())

    try:
        assert clients().text().startswith("0 clients; so far: nobody came\n")
        machine = Machine(starts(1, seed=8, level=3)[0].copy())
        with Client(port_of(made), wire.greet(name="ann")) as ann, Client(port_of(made)) as other:
            for _ in range(3):
                ann.play(machine)
            other.exchange(b"\x00\x04" + bytes(4))  # four bytes are no frame
            table = clients()
        told = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        assert table.title == "2 clients; so far: came 2, wrong length 1"
        assert [(row["name"], row["address"], row["frames"], row["refused"]) for row in told] == [
            ("ann", "127.0.0.1", "3", "0"), ("-", "127.0.0.1", "0", "1"),
        ]  # fmt: skip
        assert (told[0]["now"], told[0]["level"]) == ("playing", "3")
    finally:
        made.close()


def test_nothing_that_was_played_is_lost_when_it_stops(tmp_path):
    made = session(tmp_path)
    made.start()
    machine, controlled = Machine(starts(1, seed=6)[0].copy()), 0
    with Client(port_of(made)) as client:
        for _ in range(100):
            controlled += machine.in_control()
            client.play(machine)
        first = made.collect(None)
        (fetched, rest) = made.drain([first])
    made.close()
    assert fetched is first and first.steps + rest.steps == controlled - 1  # of the last move nobody saw the outcome
    assert sum(int(transitions.truncated.sum()) for piece in (first, rest) for transitions in piece.content) == 1


@pytest.fixture
def bridge_port():
    """A port that is free now."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def test_a_run_moves_from_the_simulator_to_cabinets_and_back(tmp_path, bridge_port):
    notes = Notes()
    train(TRAINER, replace(CONFIG, frames=600), notes, name="r", folder=tmp_path)
    with open_run("r", tmp_path) as run:
        before = load(run.last).state
    assert before["step"] >= 600

    def on_cabinets() -> None:
        settings = replace(CONFIG, frames=0)
        train(arcade_trainer(BridgeConfig(port=bridge_port)), settings, notes, name="r", resume=True, folder=tmp_path)

    trainer = threading.Thread(target=on_cabinets)
    trainer.start()
    try:
        deadline = time.monotonic() + 30
        while not any(line.startswith("bridge: ") for line in notes.notes) and time.monotonic() < deadline:
            time.sleep(0.05)
        play_frames(bridge_port, 300, seed=4)
    finally:
        with open_run("r", tmp_path) as run:
            run.send("stop")
        trainer.join(timeout=60)
    assert not trainer.is_alive()
    with open_run("r", tmp_path) as run:
        between = load(run.last).state
    assert between["step"] > before["step"] + 100
    assert between["session"]["learner"]["updates"] > before["session"]["learner"]["updates"]
    run = train(TRAINER, replace(CONFIG, frames=between["step"] + 600), notes, name="r", resume=True, folder=tmp_path)
    assert load(run.last).state["step"] >= between["step"] + 600
