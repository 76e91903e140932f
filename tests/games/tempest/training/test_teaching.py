"""Any player as a teacher, and pupils that do not begin from nothing."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from protege.cli import __main__ as cli
from protege.games.tempest.agents.network import Pupil, ValueNetwork
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.agents.rainbow import load_pupil
from protege.games.tempest.task.actions import ACTIONS, joint_actions, nearest_actions
from protege.games.tempest.task.env import Games, starts
from protege.games.tempest.training.behaviour import Teacher
from protege.games.tempest.training.config import PQNTraining, RainbowTraining, TempestConfig
from protege.games.tempest.training.evaluation import Outcome, TempestSnapshot
from protege.games.tempest.training.trainer import TRAINER
from protege.games.tempest.training.trainer import session as session_of
from protege.learn.replay import ReplayConfig
from protege.runs.checkpoints import load
from protege.runs.run import open_run
from protege.train.loop import train
from protege.train.session import Cancelled, Result
from tests.train.trainings import Alone, Notes, assert_same

PQN = TempestConfig(
    minutes=0.0,
    frames=16 * 8 * 8,
    pqn=PQNTraining(games=16, horizon=8, minibatch=32, widths=(16,), epsilon_frames=500),
    rainbow=RainbowTraining(
        games=8, piece=4, batch=16, minimum_fill=40, replay_ratio=1.0, widths=(16,), warm_frames=0, warm_updates=0,
        learning_rate=3e-3, final_learning_rate=3e-3, warm_up=1, low=-10.0, high=40.0,
        replay=ReplayConfig(capacity=2_000, n_step=3),
    ),
    eval_games=2,
    eval_frames=100,
    eval_every=16 * 8 * 3,
    distil_frames=256 * 4,
    deterministic=True,
)  # fmt: skip
RAINBOW = replace(PQN, learner="rainbow")


class Stubborn:
    """A user's own player, which always turns by ten steps and fires."""

    def act(self, frames: Any) -> Any:
        return np.tile(np.array([1, 0, 10], np.int8), (len(frames.score), 1))


STUBBORN = f"{__name__}:Stubborn"
FIRE_AND_TURN = 2 * 11 + 2  # nine steps come nearest to ten


@pytest.fixture(scope="module")
def frames():
    return Games(starts(64, seed=1, level=5)).frames


# --- teachers -------------------------------------------------------------------------------------------------------


def test_commands_that_are_no_joint_actions_become_the_nearest():
    assert nearest_actions(ACTIONS).tolist() == list(range(44))
    turns = np.array([(0, 0, 29), (0, 0, -128), (1, 1, 2), (0, 1, -10)], np.int8)
    assert ACTIONS[nearest_actions(turns)].tolist() == [[0, 0, 12], [0, 0, -12], [1, 1, 3], [0, 1, -9]]


def test_advice_is_that_of_whoever_teaches(frames):
    champion = find_player("champion")
    assert np.array_equal(Teacher("champion").advise(frames), champion.act(frames))
    assert (Teacher(STUBBORN).advise(frames) == FIRE_AND_TURN).all()
    for scripted in ("teacher", "teacher-full"):
        assert np.array_equal(Teacher(scripted).advise(frames), joint_actions(frames.advice))


@pytest.mark.parametrize("config", [PQN, RAINBOW], ids=["pqn", "rainbow"])
def test_both_learners_learn_from_the_advice_of_another_player(config, tmp_path):
    made: Any = session_of(replace(config, teacher=STUBBORN), Alone(tmp_path))
    made.source.begin(resumed=False)
    made.controls.teacher_mode = "only"
    for _ in range(60):
        figures = made.update(made.collect(made.room()))
    assert figures["agreement"] > 0.6, "there is one answer, which is easy to learn"
    if config is RAINBOW:
        batch = made.replay.sample(64, 0.0, np.random.default_rng(1))
        assert (batch.action == FIRE_AND_TURN).all() and (batch.teacher_action == FIRE_AND_TURN).all()


def test_a_pupil_is_compared_with_its_own_teacher_and_with_the_scripted_one(tmp_path):
    notes = Notes()
    train(TRAINER, replace(PQN, teacher="champion"), notes, name="r", folder=tmp_path)
    (first, *_) = notes.results
    assert first.figures["own_teacher_score"] > 0 and first.figures["teacher_score"] > 0
    assert "x champion" in first.summary and notes.reports[0]["teacher"].startswith("champion advises")
    with open_run("r", tmp_path) as run:
        assert {"own_teacher_score", "own_teacher_points_per_life"} <= set(run.metrics.latest())


def evaluated(made: Any, low: float, mean: float) -> None:
    made.teacher, snapshot = 20_000.0, TempestSnapshot(made.pupil(), made)
    snapshot.found = {"score_mean": mean, "score_mean_low": low, "level_mean": 4.0}
    made.evaluated(snapshot, Result({}, (0.0,), ""), best=False)


@pytest.mark.parametrize("config", [PQN, RAINBOW], ids=["pqn", "rainbow"])
def test_one_lucky_evaluation_does_not_send_the_teacher_away(config, tmp_path):
    made: Any = session_of(config, Alone(tmp_path))
    before = made.scheduled().teacher
    evaluated(made, low=0.0, mean=21_000.0)  # a few games of 60 were very long
    assert made.scheduled().teacher == before
    evaluated(made, low=10_000.0, mean=12_000.0)
    assert made.trailing == 0.5, "what is sure counts"
    evaluated(made, low=5_000.0, mean=7_000.0)
    assert made.trailing == 0.5, "and advice that is gone does not come back"


def test_the_weight_of_advice_falls_as_the_pupil_nears_its_own_teacher(tmp_path):
    made: Any = session_of(replace(PQN, teacher="champion"), Alone(tmp_path))
    made.measured["own_teacher"] = outcome([100_000.0, 100_000.0])
    evaluated(made, low=25_000.0, mean=30_000.0)
    assert made.trailing == 0.75


# --- starting points --------------------------------------------------------------------------------------------------


def outcome(score: list[float], deaths: int = 3) -> Outcome:
    games = len(score)
    return Outcome(np.array(score), np.full(games, deaths), np.full(games, 5), 0, 1.0)


def test_the_same_network_takes_the_weights_over_and_goes_on_carefully(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    origin = train(TRAINER, PQN, Notes(), name="origin", folder=tmp_path)
    notes = Notes()
    run = train(TRAINER, replace(PQN, start_from="origin"), notes, name="r", folder=tmp_path)
    best = load(origin.best).tensors
    assert torch.equal(load(run.start).tensors["network.value.weight"], best["network.value.weight"])
    assert notes.reports[0]["start"] == "origin, with 0.1 times the learning rate"
    assert not any("distil" in note for note in notes.notes)
    assert notes.results[0].figures["start_score"] == notes.results[0].figures["eval_score"], "it was measured itself"
    with open_run("r", tmp_path) as found:
        latest = found.metrics.latest()
        assert latest["distillation"].value == 0.0 and latest["epsilon"].value == pytest.approx(0.02)
        rate = latest["learning_rate"].value
        assert rate is not None and 0 < rate <= 0.1 * 1e-3


def test_another_network_is_distilled(tmp_path):
    for config in (replace(PQN, start_from="champion"), replace(RAINBOW, start_from="champion")):
        notes, name = Notes(), config.learner
        run = train(TRAINER, config, notes, name=name, folder=tmp_path)
        told = [note for note in notes.notes if note.startswith(("distilling", "distilled"))]
        assert told[0] == "distilling champion into another network: 1,024 frames of the simulator"
        assert told[-1].startswith("distilled: the same move as champion in")
        assert load_pupil(run.start) is not None and load(run.start).kind == TRAINER.kind(config)


@pytest.mark.parametrize("config", [PQN, RAINBOW], ids=["pqn", "rainbow"])
def test_distillation_learns_the_values_of_the_original(config, tmp_path):
    torch.manual_seed(1)
    origin, wider = Pupil(ValueNetwork((8,))), (64,)
    distilled = replace(config, distil_frames=256 * 300, pqn=replace(config.pqn, widths=wider))
    made: Any = session_of(replace(distilled, rainbow=replace(config.rainbow, widths=wider)), Alone(tmp_path))
    made._distil(origin, "origin")
    seen = Games(starts(256, seed=9, level=[1 + g % 40 for g in range(256)])).frames.observation
    same = made.pupil().values(seen).argmax(1) == origin.values(seen).argmax(1)
    assert same.mean() > 0.7 and np.abs(made.pupil().values(seen) - origin.values(seen)).mean() < 0.5


@pytest.mark.parametrize("config", [PQN, RAINBOW], ids=["pqn", "rainbow"])
def test_a_run_that_started_from_another_resumes_as_if_it_had_never_stopped(config, tmp_path):
    train(TRAINER, config, Notes(), name="origin", folder=tmp_path)
    saving = replace(config, start_from="origin", rainbow=replace(config.rainbow, save_replay=True))
    whole = train(TRAINER, saving, Notes(), name="whole", folder=tmp_path)
    train(TRAINER, replace(saving, frames=saving.frames // 2), Notes(), name="parts", folder=tmp_path)
    (tmp_path / "origin" / "checkpoints" / "best.safetensors").unlink()  # it is not needed any more
    (tmp_path / "origin" / "checkpoints" / "last.safetensors").unlink()
    resumed = train(TRAINER, saving, Notes(), name="parts", resume=True, folder=tmp_path)
    one, other = load(whole.last), load(resumed.last)
    if config is PQN:  # its learning rate falls with the budget, which was another one in the first half
        assert one.state["step"] == other.state["step"]
    assert load(whole.start).tensors.keys() == load(resumed.start).tensors.keys()
    assert_same(load(whole.start), load(resumed.start))


@pytest.mark.parametrize("config", [PQN, RAINBOW], ids=["pqn", "rainbow"])
def test_a_fall_below_the_start_is_noticed_told_and_undone(config, tmp_path):
    train(TRAINER, config, Notes(), name="origin", folder=tmp_path)
    context = Started(tmp_path)
    made: Any = session_of(replace(config, start_from="origin"), context)
    made.begin(resumed=False)
    first = made.snapshot()
    assert first.is_start and not made.snapshot().is_start
    made.measured["start"] = outcome([900.0, 1_000.0, 1_100.0, 1_000.0])
    begun = {name: weights.clone() for name, weights in made.learner.network.state_dict().items()}
    for _ in range(8):
        made.update(made.collect(made.room()))

    def learn_and_measure(score: list[float], best: bool = False) -> None:
        snapshot = made.snapshot()
        snapshot.outcome = outcome(score)
        snapshot.found = snapshot.outcome.figures
        made.evaluated(snapshot, Result({}, (0.0,), ""), best=best)

    def moved() -> bool:
        return any(not torch.equal(old, begun[name]) for name, old in made.learner.network.state_dict().items())

    learn_and_measure([200.0, 1_900.0, 1_000.0, 700.0])
    assert moved() and made.care == 0.1, "that may be bad luck"
    learn_and_measure([500.0, 600.0, 550.0, 450.0])
    assert not moved() and made.care == 0.05
    (told,) = [note for note in context.notes if note.startswith("fell below its start")]
    assert "175 (" in told and "which had 333 (" in told and "0.05 times the learning rate" in told


class Started(Alone):
    """A context whose run has a folder for checkpoints."""

    @property
    def run(self) -> Any:
        found = super().run
        found.path, found.start, found.best = self.folder / "r", self.folder / "start", self.folder / "best"
        return found


# --- names and settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed, complaint",
    [
        (["--teacher", "champoin"], "no player named 'champoin'"),
        (["--teacher", "no.module:Class"], "cannot make player 'no.module:Class'"),
        (["--start-from", "champoin"], "there is no 'champoin' to start from: use champion"),
        (["--start-from", "teacher"], "teacher has no weights to start from"),
        (["--start-from", "gone.safetensors"], "gone.safetensors"),
        (["--start-rate", "1"], "--start-rate would have no effect: there is nobody to start from; use --start-from"),
        (["--start-from", "champion", "--pqn.epsilon-frames", "9"], "use --pqn.epsilon"),
        (["--start-from", "champion", "--pqn.distillation", "1"], "no advice from the scripted teacher; use --teacher"),
        (
            ["--start-from", "champion", "--learner", "rainbow", "--rainbow.epsilon", "1"],
            "begins where this would end; use --rainbow.final-epsilon",
        ),
    ],
)
def test_what_cannot_work_is_one_clear_line_before_anything_starts(typed, complaint, tmp_path, capsys):
    assert cli.main(["train", "tempest", *typed, "--runs", str(tmp_path / "runs"), "--no-dashboard"]) == cli.USAGE_ERROR
    told = " ".join(capsys.readouterr().err.split())
    assert complaint in told and not (tmp_path / "runs").exists()


def test_nothing_is_left_of_an_evaluation_that_nobody_waits_for(tmp_path):
    made: Any = session_of(replace(PQN, teacher="champion"), Alone(tmp_path))
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        made.measure(made.snapshot(), cancelled)
    assert made.measured == {}
