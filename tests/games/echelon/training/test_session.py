"""Training mech pilots: a short run does everything, and what is stopped goes on as if it had not been."""

import math
from dataclasses import replace

import pytest
import torch

from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.games.echelon.agents.match import Result, evaluate, find_player
from protege.games.echelon.agents.pupil import Pupil, load_network
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE
from protege.games.echelon.training.config import STAGES, Stage
from protege.games.echelon.training.evaluation import KILL_WITHIN, points_of
from protege.games.echelon.training.evaluation import evaluate as evaluate_pupil
from protege.games.echelon.training.metrics import METRICS, Clock, Windows, fractions_of
from protege.games.echelon.training.trainer import TRAINER
from protege.games.echelon.world.mechs import BLUE, RED
from protege.learn.optimise import LearningFailed
from protege.learn.ppo import PPOConfig
from protege.runs.checkpoints import CheckpointMismatch, load
from protege.runs.run import open_run
from protege.train.estimate import estimate
from protege.train.loop import train
from tests.games.echelon.training.tiny import TINY
from tests.train.trainings import Crash, Notes, assert_same


@pytest.fixture
def brief(monkeypatch):
    """Settings of a training with battles as long as its rollouts."""
    monkeypatch.setitem(STAGES, "brief", Stage("1v1", 40, 8, (("medium", 1.0),)))
    return replace(TINY, stages=("brief",))


@pytest.mark.parametrize(
    "goal, ending, decisions, counts",
    [
        ("win", BY_SCORE, 200, 1.0), ("kill", BY_SCORE, KILL_WITHIN, 0.0),
        ("kill", BY_ELIMINATION, KILL_WITHIN, 1.0), ("kill", BY_ELIMINATION, KILL_WITHIN + 1, 0.0),
    ],
)  # fmt: skip
def test_what_counts_as_success(goal, ending, decisions, counts):
    result = Result(BLUE, ending, decisions, decisions / 4, (1.0, 0.0), (2, 0), (2, 0), (100.0, 0.0))
    assert points_of(replace(STAGES["O3"], goal=goal), result) == counts
    assert points_of(replace(STAGES["O3"], goal=goal), replace(result, winner=RED)) == 0.0


def test_a_training_ends_when_an_evaluation_is_good_enough(tmp_path, monkeypatch):
    # One mech without enemies wins always: 2 of 2, and at least 0.34.
    monkeypatch.setitem(STAGES, "alone", Stage("1v0", 40, 8, (("idle", 1.0),), ("idle",)))
    for until, steps in ((0.3, TINY.eval_every), (0.4, TINY.agent_steps)):
        notes = Notes()
        config = replace(TINY, stages=("alone",), until=until, imitation=0.0)
        run = train(TRAINER, config, notes, name=f"until-{until}", folder=tmp_path)
        assert run.status() == "finished" and run.summary().step == steps
        assert any("good enough" in note for note in notes.notes) == (until == 0.3)
        assert run.best.is_file() and run.last.is_file()


def test_a_short_training_leaves_a_run_that_plays(tmp_path):
    notes = Notes()
    run = train(TRAINER, TINY, notes, name="pilots", folder=tmp_path)
    assert run.status() == "finished" and "1v1 on 40 x 40" in notes.reports[0]["stage"]
    assert len(notes.results) >= 2 and "against medium" in notes.results[0].summary
    saved = load(run.best)
    assert saved.state["exam"]["matches"] == 2 and saved.kind == "echelon-ppo"
    assert list(run.recordings.glob("step-*.rec"))
    found = evaluate("idle", "idle", matches=2, setting=_small())
    assert found["matches"] == 2
    result = evaluate_pupil(Pupil(load_network(run.last)), Stage("1v1", 40, 40, ()), "trivial", matches=2)
    assert 0.0 <= result["success_low"] <= result["success"] <= result["success_high"] <= 1.0
    player = find_player("pilots", tmp_path)
    assert isinstance(player, Pupil) and player.network.config == TINY.network


def _small():
    from protege.games.echelon.agents.match import Setting

    return Setting("1v1", (40, 40), 8)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, brief):
    """For more than a hundred updates, over ends of battles, new maps and newly drawn opponents."""
    met = ("easy=0.5", "hard=0.5")
    saving = replace(brief, opponents=met, agent_steps=16 * 8 * 30, eval_every=16 * 8 * 4, autosave_seconds=0.0)
    whole = train(TRAINER, saving, Notes(), name="whole", folder=tmp_path)
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, saving, Crash(), name="stopped", folder=tmp_path)
    resumed = Notes()
    run = train(TRAINER, saving, resumed, name="stopped", resume=True, folder=tmp_path)
    assert "resumed at agent-step" in resumed.reports[0]["run"]
    saved = load(whole.last)
    assert_same(saved, load(run.last))
    assert saved.state["session"]["learner"]["updates"] >= 4 * (30 - 4)


# Twice as many places as before; as many, but the pupil leads both sides in half of them.
@pytest.mark.parametrize("more", [(), ("self",)])
def test_a_run_may_go_on_with_other_battles_and_opponents(tmp_path, brief, more):
    train(TRAINER, replace(brief, agent_steps=1, agents=16), Notes(), name="r", folder=tmp_path)
    notes = Notes()
    other = replace(brief, agents=24 if more else 32, opponents=("easy=0.5", "hard=0.5", *more))
    run = train(TRAINER, other, notes, name="r", resume=True, folder=tmp_path)
    assert "other settings than before: battles begin anew" in notes.notes
    assert run.status() == "finished"
    for batch in load(run.last).state["session"]["batches"]:
        assert set(batch["names"]) == {"easy", "hard"}, "who was met before is met no more"


def test_the_teacher_switch_knows_fractions_of_the_weight_at_the_start(tmp_path, brief, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    notes = Notes()
    config = replace(brief, imitation=3.0, imitation_fraction=1e9)  # as good as constant
    train(TRAINER, config, notes, name="advised", folder=tmp_path, prepare=lambda run: run.send("teacher", step=-1))
    assert [figures["imitation"] for figures in notes.figures][:2] == pytest.approx([3.0, 0.95 * 3.0])
    assert "teacher 95 %, fixed" in notes.notes and {"teacher", "teacher_off", "teacher_only"} <= set(notes.controls)


def test_without_an_advisor_there_is_no_teacher_to_switch(tmp_path, brief):
    notes = Notes()
    config = replace(brief, imitation=0.0)
    train(TRAINER, config, notes, name="alone", folder=tmp_path, prepare=lambda run: run.send("teacher_only"))
    assert "teacher_only means nothing to this learner" in notes.notes
    assert "learning_rate" in notes.controls and "teacher" not in notes.controls


def test_threads_change_nothing(tmp_path):
    one, two = (
        train(TRAINER, replace(TINY, threads=threads), Notes(), name=f"{threads}", folder=tmp_path)
        for threads in (1, 2)
    )
    assert_same(load(one.last), load(two.last))


def test_updates_may_be_made_elsewhere_and_change_nothing_else(tmp_path, brief, monkeypatch):
    here = train(TRAINER, brief, Notes(), name="here", folder=tmp_path)
    # "cpu:0" is not "cpu": the weights go to and fro as they would with a GPU.
    monkeypatch.setattr("protege.games.echelon.training.session.find_device", lambda wanted: torch.device("cpu:0"))
    there = train(TRAINER, brief, Notes(), name="there", folder=tmp_path)
    assert_same(load(here.last), load(there.last))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ProtegeError, match="no device cuda here, only cpu"):
        train(TRAINER, replace(TINY, deterministic=False, device="cuda"), Notes(), name="r", folder=tmp_path)
    assert not list(tmp_path.iterdir()), "before anything is made"


def test_stages_follow_each_other_when_their_share_is_used_up(tmp_path, monkeypatch):
    from protege.games.echelon.training import config as settings

    duel = Stage("1v1", 40, 16, (("idle", 1.0),), ("idle",), fraction=0.4)
    monkeypatch.setitem(settings.STAGES, "duel", duel)
    monkeypatch.setitem(settings.STAGES, "pair", replace(duel, roster="2v2", size=48))
    notes = Notes()
    run = train(TRAINER, replace(TINY, stages=("duel", "pair"), imitation=0.0), notes, name="two", folder=tmp_path)
    assert any("duel ends (its fraction of the budget is used up); pair begins" in note for note in notes.notes)
    assert load(run.last).state["session"]["stage"][0] == 1
    assert any(event.kind == "stage" for event in run.metrics.events())


def test_weights_of_another_run_are_a_start(tmp_path):
    first = train(TRAINER, TINY, Notes(), name="first", folder=tmp_path)
    second = train(TRAINER,
        replace(TINY, agent_steps=1, start_from="first", ppo=PPOConfig(learning_rate=1e-12, final_learning_rate=1e-12)),
        Notes(), name="second", folder=tmp_path,
    )  # fmt: skip
    one, other = load_network(first.best), load_network(second.last)
    assert torch.allclose(one.own.layer.weight, other.own.layer.weight, atol=1e-6)


def test_a_network_of_other_observations_is_refused(tmp_path, monkeypatch):
    run = train(TRAINER, replace(TINY, agent_steps=1), Notes(), name="old", folder=tmp_path)
    monkeypatch.setattr("protege.games.echelon.agents.pupil.schema", lambda layout: {"version": "another"})
    with pytest.raises(CheckpointMismatch, match="observations of schema"):
        Pupil(load_network(run.last))


def test_numbers_that_are_not_finite_end_the_training_and_keep_the_last_checkpoint(tmp_path, monkeypatch):
    run = train(TRAINER, replace(TINY, agent_steps=1), Notes(), name="good", folder=tmp_path)
    before = run.last.read_bytes()
    from protege.learn.rollout import Rollout

    found = Rollout.find_advantages

    def spoiled(self, *arguments):
        self.numbers["reward"][0, 0, 0, 0] = math.nan
        found(self, *arguments)

    monkeypatch.setattr(Rollout, "find_advantages", spoiled)
    config, notes = replace(TINY, ppo=PPOConfig(minibatches=4), autosave_seconds=1e9), Notes()
    with pytest.raises(LearningFailed, match=r"20 updates in a row .* first in input reward.*see .*diagnosis.json"):
        train(TRAINER, config, notes, name="good", resume=True, folder=tmp_path)
    assert run.last.read_bytes() == before and run.diagnosis.is_file()
    assert any("was skipped: not finite in input reward: 1 of" in note for note in notes.notes)


def test_every_figure_is_declared_once_and_shares_add_up(tmp_path, monkeypatch):
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    run = train(TRAINER, TINY, Notes(), name="figures", folder=tmp_path)
    latest = {name: float(point.value or 0.0) for name, point in run.metrics.latest().items()}
    assert latest["time_playing"] + latest["time_learning"] + latest["time_else"] == pytest.approx(1.0)
    assert latest["cpu_simulating"] + latest["cpu_acting"] + latest["cpu_learning"] == pytest.approx(1.0)
    assert sum(value for name, value in latest.items() if name.startswith("reward_fraction_")) == pytest.approx(
        1.0, abs=1e-6
    )
    for name in ("kl", "entropy", "gradient_norm", "explained_variance", "imitation", "learning_rate", "saturation"):
        assert math.isfinite(latest[name]), name
    assert run.metrics.not_finite() == {}


def test_windows_come_back_from_a_checkpoint():
    from protege.games.echelon.training.collect import Episode

    windows, other = Windows(), Windows()
    windows.add([Episode("hard", 1.0, 100, 2.0, {"scout": 3.0, "heavy": 1.0}), Episode("easy", 0.0, 60, -1.0)])
    other.restore(windows.state())
    assert other.figures() == windows.figures() == {
        "win_rate": 0.5, "battle_length": 20.0, "battle_reward": 0.5, "win_hard": 1.0, "win_easy": 0.0,
        "reward_scout": 3.0, "reward_heavy": 1.0,
    }  # fmt: skip
    assert fractions_of(torch.tensor([1.0, 3.0] + [0.0] * 7).double().numpy())["reward_fraction_presence"] == 0.75
    assert Clock().figures(0, 0)["time_else"] == 1.0


def test_an_estimate_needs_no_run():
    found = estimate(TRAINER, replace(TINY, minutes=1.0, agent_steps=0, deterministic=False))
    assert found["time"] == "1.0 minutes" and "MB" in found["memory"] and "a second" in found["agent-steps"]


def test_the_command_trains_resumes_and_says_how_to_go_on(tmp_path, capsys):
    words = ["train", "echelon", "--preset", "smoke", "--runs", str(tmp_path), "--run", "r", "--no-dashboard"]
    words += ["--agents", "8", "--horizon", "16", "--eval-matches", "2", "--json"]
    assert cli.main([*words, "--agent-steps", "200", "--deterministic"]) == 0
    assert f"protege eval echelon --blue r --runs {tmp_path} --red expert" in " ".join(capsys.readouterr().out.split())
    assert cli.main([*words[:2], *words[4:], "--resume", "--agent-steps", "400"]) == 0
    with open_run("r", tmp_path) as run:
        assert [start.kind for start in run.info().starts] == ["fresh", "resumed"]


def test_a_dry_run_trains_nothing(tmp_path, capsys):
    words = ["train", "echelon", "--preset", "smoke", "--runs", str(tmp_path), "--dry-run", "--agents", "8"]
    assert cli.main(words) == 0
    assert "Nothing was trained" in capsys.readouterr().out and not list(tmp_path.iterdir())
