"""Runs that were made before the code moved into rooms still open, play, and go on where they stopped."""

import tarfile
from pathlib import Path

import pytest

from protege.cli.__main__ import main
from protege.games import find_game
from protege.runs.checkpoints import load
from protege.runs.run import open_run

ARCHIVE = Path(__file__).parents[1] / "golden" / "runs" / "before-rooms.tar.xz"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize(
    "game, run, learner, unit, more",
    [
        ("tempest", "pqn", "pqn", "frame", 4_600),
        ("tempest", "rainbow", "rainbow", "frame", 4_200),
        ("echelon", "squad", "ppo", "agent-step", 700),
    ],
)
def test_an_old_run_opens_plays_and_goes_on(runs, game, run, learner, unit, more, capsys):
    with open_run(run, runs) as opened:
        before = opened.metrics.latest()
        assert opened.status() == "finished" and opened.info().learner == learner and before
        assert opened.summary().best_score is not None
        old = load(opened.last).state["elapsed_s"]
    assert find_game(game).players().find(run, runs)
    words = ["train", game, "--resume", "--run", run, "--runs", str(runs), f"--{unit}s", str(more), "--no-dashboard"]
    assert main([*words, *(["--compare", "0"] if game == "tempest" else [])]) == 0
    assert f"resumed at {unit}" in " ".join(capsys.readouterr().out.split())
    with open_run(run, runs) as opened:
        state = load(opened.last).state
        assert state["step"] >= more and state["elapsed_s"] > old
        score = find_game(game).trainer().score
        assert opened.metrics.latest()[score].step == state["step"], "measured again, under the metric's present name"


def test_an_old_memory_comes_back(runs, capsys):
    words = "train tempest --resume --run rainbow --frames 4200 --no-dashboard --compare 0".split()
    assert main([*words, "--runs", str(runs)]) == 0
    assert "memory restored" in capsys.readouterr().out
