"""Pupils that learn on arcade clients, advised by anybody, and measured in some of the clients' own games."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from protege.games.tempest.agents.players import find_player
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.task.actions import ACTIONS, joint_actions
from protege.games.tempest.task.env import starts
from protege.games.tempest.training.behaviour import Exploration
from protege.games.tempest.training.bridge_process import BridgeProcess
from protege.games.tempest.training.config import PQNTraining
from protege.games.tempest.training.evaluation import Outcome
from protege.games.tempest.training.sources import ArcadeSource
from protege.games.tempest.training.trainer import TRAINER, arcade_trainer
from protege.games.tempest.training.trainer import session as session_of
from protege.runs.checkpoints import load
from protege.runs.run import open_run
from protege.train.loop import train
from protege.train.session import Cancelled
from tests.games.tempest.arcade.client import Client, Machine, wait_until
from tests.games.tempest.training.test_bridge_process import Always, Talker, bridge, gathered
from tests.games.tempest.training.test_sources import CONFIG
from tests.train.trainings import Alone, Notes

COMMANDS = [tuple(action) for action in ACTIONS.tolist()]


@pytest.fixture(autouse=True)
def keep_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner steps back behind other programs, and so would all later tests of this process."""
    monkeypatch.setattr("protege.games.tempest.training.sources.step_back", lambda: None)


@contextmanager
def playing(play: Callable[[threading.Event], None], count: int = 1) -> Iterator[None]:
    """Clients at work as long as the block lasts."""
    stop = threading.Event()
    clients = [threading.Thread(target=play, args=(stop,)) for _ in range(count)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


# --- slots with a limited number of games -----------------------------------------------------------------------------


def told(made: BridgeProcess) -> None:
    made.status()  # an answer: what was sent before it has arrived


def test_a_slot_begins_no_more_games_than_are_left_to_it_and_lost_ones_are_played_again():
    with bridge() as made:
        made.install(1, 40, Always(7))
        made.plan((1,), {1: 2})
        told(made)
        one = Talker(made.port)
        assert one.tick(score=0) == COMMANDS[7]
        one.client.close()  # in the middle of its game
        wait_until(lambda: not made.status().clients, 60.0)
        two = Talker(made.port)
        assert [two.game()[0] for _ in range(3)] == [COMMANDS[7], COMMANDS[7], COMMANDS[5]]
        games = gathered(made, 3).games
        assert [(found.slot, found.first) for found in games] == [(1, 40), (1, 40), (0, 0)]


def test_a_long_game_counts_as_it_stands_and_the_pupil_plays_on():
    with bridge() as made:
        made.install(1, 40, Always(7))
        made.plan((1, 0), {1: 1}, longest=2)
        told(made)
        talker = Talker(made.port)
        assert talker.game(frames=4) == [COMMANDS[7]] * 2 + [COMMANDS[5]] * 2
        first, second = gathered(made, 2).games
        assert (first.slot, first.game.truncated, first.game.frames, first.game.score) == (1, True, 2, 200)
        assert (second.slot, second.game.truncated, second.game.score) == (0, False, 300)


def test_in_a_game_that_never_ends_others_get_their_turn_with_a_new_life():
    with bridge() as made:
        talker = Talker(made.port)
        assert [talker.tick(score=100 * frame) for frame in range(3)] == [COMMANDS[5]] * 3
        made.install(1, 40, Always(7))
        made.plan((1,), {1: 1}, longest=3)
        told(made)
        assert talker.tick(score=300) == COMMANDS[5], "not in the middle of a life"
        assert talker.tick(score=300, done=1) == (0, 0, 0), "nobody decides while a life is lost"
        assert [talker.tick(score=400 + 50 * frame) for frame in range(3)] == [COMMANDS[7]] * 3
        assert talker.tick(score=900) == COMMANDS[5], "after three frames it is the pupil's again"
        (found,) = gathered(made, 1).games
        game = found.game
        assert (found.slot, game.truncated, game.frames, game.deaths, game.score) == (1, True, 3, 0, 500)


# --- an evaluation ---------------------------------------------------------------------------------------------------


class Shown(Always):
    """A player with a network, as a source knows its players by."""

    network = property(lambda self: self.move)


def source(tmp_path: Any, **settings: Any) -> ArcadeSource:
    config = replace(CONFIG, client_games=3, client_every=2, **settings)
    made = ArcadeSource(config, Alone(tmp_path), BridgeConfig(port=0))
    made.follow(Shown(5), Exploration())
    made.begin(resumed=False)
    return made


def scoring(port: int, points: dict[tuple[int, ...], int]) -> Callable[[threading.Event], None]:
    """A client whose games are worth what the move that it is told is worth."""

    def play(stop: threading.Event) -> None:
        talker = Talker(port)
        while not stop.is_set():
            worth = points[talker.tick(score=0)]
            talker.tick(score=worth)
            talker.game_over(worth)
        talker.client.close()

    return play


def test_the_pupil_and_what_it_started_from_get_the_same_number_of_games_and_training_the_rest(tmp_path):
    made, measured = source(tmp_path), dict[str, Outcome]()
    worth = {COMMANDS[5]: 100, COMMANDS[7]: 700, COMMANDS[9]: 900}
    found: list[Outcome] = []

    def measure() -> None:
        for _ in range(2):
            found.append(made.measure(Shown(7), {"start": Shown(9)}, measured, threading.Event()))

    evaluation = threading.Thread(target=measure)
    try:
        with playing(scoring(made.bridge.port, worth), count=2):
            evaluation.start()
            while evaluation.is_alive():
                made.collect(None)
        assert [outcome.score.tolist() for outcome in found] == [[700.0] * 3] * 2, "each evaluation by itself"
        assert measured["start"].score.tolist() == [900.0] * 6, "what does not change is known better and better"
        assert found[0].is_below(measured["start"]) and not measured["start"].is_below(found[0])
    finally:
        made.close()


def test_without_a_start_the_teacher_is_the_measure_and_its_games_are_its_own(tmp_path):
    made, measured = source(tmp_path), dict[str, Outcome]()
    neutral = COMMANDS[int(joint_actions(np.zeros((1, 3), np.int8))[0])]  # nobody advises anything in these frames
    worth = {COMMANDS[5]: 100, COMMANDS[7]: 700, neutral: 400}
    evaluation = threading.Thread(
        target=lambda: measured.update(pupil=made.measure(Shown(7), {}, measured, threading.Event()))
    )
    try:
        with playing(scoring(made.bridge.port, worth)):
            evaluation.start()
            while evaluation.is_alive():
                made.collect(None)
        assert measured["pupil"].score.tolist() == [700.0] * 3
        assert measured["client_teacher"].score.tolist() == [400.0] * 3
    finally:
        made.close()


def test_an_evaluation_waits_for_games_until_nobody_wants_it_any_more(tmp_path):
    made, cancelled = source(tmp_path), threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    try:
        with pytest.raises(Cancelled):
            made.measure(Shown(7), {}, {}, cancelled)
    finally:
        made.close()


# --- whole trainings, with simulated cabinets ------------------------------------------------------------------------


def cabinet(port: int, seed: int) -> Callable[[threading.Event], None]:
    """A simulated cabinet that plays one game after the other."""

    def play(stop: threading.Event) -> None:
        machine = Machine(starts(1, seed=seed, level=1)[0].copy())
        with Client(port, patience=60.0) as client:
            while not stop.is_set() and client.play(machine):
                pass

    return play


def short_games(port: int) -> Callable[[threading.Event], None]:
    """A cabinet whose games last a dozen frames."""

    def play(stop: threading.Event) -> None:
        talker = Talker(port)
        while not stop.is_set():
            talker.game(frames=12)
        talker.client.close()

    return play


@pytest.mark.parametrize("learner", ["pqn", "rainbow"])
def test_a_run_that_starts_from_another_is_measured_on_the_clients(learner, tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    tiny = PQNTraining(games=8, horizon=8, minibatch=64, widths=(16,))
    config = replace(
        CONFIG, learner=learner, pqn=tiny, eval_seconds=0.1, eval_frames=40, client_games=2, client_every=2
    )
    train(TRAINER, replace(config, frames=600), Notes(), name="origin", folder=tmp_path)
    notes = Notes()
    settings = replace(config, frames=0, start_from="origin")
    trainer = arcade_trainer(BridgeConfig(port=0))
    run = threading.Thread(target=train, args=(trainer, settings, notes), kwargs={"name": "r", "folder": tmp_path})
    run.start()
    try:
        wait_until(lambda: notes.reports or not run.is_alive(), 120.0)
        port = int(next(note for note in notes.notes if note.startswith("bridge: ")).split("port ")[1].split(",")[0])
        with playing(short_games(port)):
            wait_until(lambda: len(notes.results) >= 3 or not run.is_alive(), 180.0)
    finally:
        if run.is_alive():
            with open_run("r", tmp_path) as found:
                found.send("stop")
        run.join(timeout=120)
    assert len(notes.results) >= 3 and notes.notes[-1].startswith("the clients are sent away")
    with open_run("r", tmp_path) as found:
        latest = found.metrics.latest()
        assert {"start_score", "start_points_per_life", "eval_points_per_life_low", "clients"} <= set(latest)
        state = load(found.last).state["session"]
        assert state["learner"]["updates"] > 0, "it has learned from what the clients played"
        best = max(result.rank[0] for result in notes.results)
        assert load(found.best).state["points_per_life"] == best
    assert "games of arcade clients" in notes.results[0].detail


def test_clients_are_advised_by_whoever_teaches(tmp_path):
    config = replace(CONFIG, teacher="champion")
    made: Any = session_of(config, Alone(tmp_path), bridge=BridgeConfig(port=0))
    made.controls.teacher_mode = "only"
    made.follow()
    made.source.begin(resumed=False)
    try:
        with playing(cabinet(made.source.bridge.port, 3)):
            until = time.monotonic() + 120
            while len(made.replay) < 80 and time.monotonic() < until:
                made.update(made.collect(None))
        batch = made.replay.sample(64, 0.0, np.random.default_rng(1))
        champion: Any = find_player("champion")
        wanted = champion.values(batch.observation)
        taken = np.take_along_axis(wanted, batch.action[:, None], 1)[:, 0]
        assert (taken >= wanted.max(1) - 1e-3).all(), "compiled code adds in another order"
        assert np.array_equal(batch.action, batch.teacher_action)
        assert made.replay.figures()["teacher"] == 1.0
    finally:
        made.close()
