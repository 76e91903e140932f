"""The real commands on environments of somebody's own: each learner trained, resumed, measured beside a teacher."""

import json

import numpy as np
import pytest
import torch

from protege.cli.__main__ import main
from protege.games import UnknownGame, find_game
from protege.runs import checkpoints
from protege.runs.run import open_run

HERE = "tests.games.own.worlds"
WALK = f"gym:{HERE}:tests/Walk-v0"
TEACHER = f"{HERE}:teach"


def ran(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def train(runs, place, *words, frames=6000, compare=0):
    given = [
        "--frames",
        str(frames),
        "--no-dashboard",
        "--runs",
        str(runs),
        "--compare",
        str(compare),
        "--deterministic",
    ]
    assert main(["train", place, "--preset", "smoke", *given, *words]) == 0


def measured(capsys, runs, place, *players, games=60, words=()):
    named = [word for player in players for word in ("--player", player)]
    told = ran(capsys, "eval", place, *named, "--games", str(games), "--runs", str(runs), "--json", *words)
    return [json.loads(line) for line in told[-len(players) :]]


@pytest.mark.parametrize("learner", ["pqn", "rainbow", "ppo"])
def test_a_pupil_outplays_a_teacher_that_is_wrong_at_times(learner, tmp_path, capsys):
    more = ("--eval-every", "2000", *(("--rainbow.replay-ratio", "4") if learner == "rainbow" else ()))
    train(tmp_path, WALK, "--learner", learner, "--teacher", TEACHER, "--run", "mine", *more, frames=12_000, compare=40)
    told = capsys.readouterr().out
    assert "\n teacher " in told and "\n random " in told and "Measure it again" in told
    mine, teacher, random = measured(capsys, tmp_path, WALK, "mine", "teacher", "random")
    assert (
        mine["return_mean_low"] > teacher["return_mean_high"] > teacher["return_mean_low"] > random["return_mean_high"]
    )
    assert mine["games"] == 60 and mine["seed"] == 1 and mine["frames_mean"] < 20
    with open_run("mine", tmp_path) as run:
        info, latest = run.info(), run.metrics.latest()
    assert (info.learner, info.unit, info.config["teacher"]) == (learner, "frame", TEACHER)
    mine, teacher, random = (latest[f"{name}_return"].value or 0.0 for name in ("eval", "teacher", "random"))
    assert mine > teacher > random
    card = "\n".join(ran(capsys, "runs", "show", "mine", "--runs", str(tmp_path)))
    assert "without exploration or teacher; teacher " in " ".join(card.split())


@pytest.mark.parametrize("kind, learner, words", [
    ("NamedWalk", "pqn", ()),
    ("DrawnWalk", "pqn", ()),
    ("DrawnWalk", "rainbow", ("--rainbow.replay-ratio", "4")),
    ("PushedWalk", "ppo", ()),
    ("LeverWalk", "ppo", ("--frames", "20000")),
    ("Walk", "ppo", ("--ppo.recurrent",)),
])  # fmt: skip
def test_every_kind_of_observation_and_action_is_learned_without_a_teacher(kind, learner, words, tmp_path, capsys):
    place = f"gym:{HERE}:tests/{kind}-v0"
    train(tmp_path, place, "--learner", learner, *words, "--run", "mine", frames=8_000)
    capsys.readouterr()
    mine, random = measured(capsys, tmp_path, place, "mine", "random")
    assert mine["return_mean_low"] > max(0.5, random["return_mean_high"])
    with open_run("mine", tmp_path) as run:
        assert "teacher_return" not in run.metrics.latest() and "teacher" not in run.controls()


@pytest.mark.parametrize("learner", ["pqn", "rainbow", "ppo"])
def test_a_run_is_resumed_with_its_own_settings(learner, tmp_path, capsys):
    train(tmp_path, WALK, "--learner", learner, "--teacher", TEACHER, "--run", "mine", frames=2000)
    train(tmp_path, WALK, "--learner", learner, "--teacher", TEACHER, "--run", "same", frames=2000)
    ones, others = (checkpoints.load(tmp_path / name / "checkpoints" / "last.safetensors") for name in ("mine", "same"))
    for name, tensor in ones.tensors.items():
        assert torch.equal(tensor, others.tensors[name]), f"a deterministic run gives the same {name} every time"
    assert main(["train", WALK, "--resume", "--run", "mine", "--frames", "4000", "--no-dashboard", "--runs",
                 str(tmp_path), "--compare", "0"]) == 0  # fmt: skip
    told = capsys.readouterr().out
    assert "resumed at frame 2,0" in told and "the games begin anew" in told
    with open_run("mine", tmp_path) as run:
        assert run.summary().step >= 4000 and run.info().config["teacher"] == TEACHER
        assert [start.kind for start in run.info().starts] == ["fresh", "resumed"]


def test_what_it_would_need_is_told_without_training(tmp_path, capsys):
    told = "\n".join(ran(capsys, "train", WALK, "--preset", "smoke", "--dry-run", "--runs", str(tmp_path)))
    assert "Nothing was trained" in told and "a second" in told and not list(tmp_path.iterdir())


def test_the_teacher_may_be_named_where_players_are_measured(tmp_path, capsys):
    words = ["--teacher", f"{HERE}:teach_env"]
    (perfect,) = measured(capsys, tmp_path, WALK, "teacher", words=words)
    (hesitant,) = measured(capsys, tmp_path, WALK, "teacher", words=["--teacher", TEACHER])
    assert perfect["return_mean"] > hesitant["return_mean"]
    (own,) = measured(capsys, tmp_path, WALK, f"{__name__}:Rightwards")
    assert own["return_mean"] == perfect["return_mean"], "the same episodes, the same moves"


class Rightwards:
    """A player of a user's own."""

    def act(self, arena):
        assert arena.observation.shape == (arena.count, 2)
        return np.ones(arena.count, np.int64)


def test_doctor_looks_at_one_game(capsys):
    told = ran(capsys, "doctor", WALK, "--teacher", TEACHER, "--json")
    found = json.loads(told[-1])
    assert found["ok"] and set(found) >= {"spaces", "checker", "seeding", "determinism", "speed", "teacher", "training"}
    assert "20 episodes" in found["teacher"] and "a second" in found["training"]
    assert main(["doctor", f"gym:{HERE}:tests/Endless-v0?wind=0.5", "--json"]) == 1
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not found["determinism_ok"] and "lead to different episodes" in found["determinism"]
    assert main(["doctor", f"gym:{HERE}:tests/Broken-v0?fault=nan", "--json"]) == 1
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "nan came in observation" in found["episodes"] and "training" not in found


def test_games_of_other_libraries_are_found_by_their_prefix():
    game = find_game("gym:CartPole-v1")
    assert (game.name, game.title, game.unit, game.place) == (
        "gym-CartPole-v1",
        "CartPole-v1",
        "frame",
        "gym:CartPole-v1",
    )
    with pytest.raises(UnknownGame, match="gym:ID"):
        find_game("nonsense")
