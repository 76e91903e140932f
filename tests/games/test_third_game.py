"""A third game is a table and nothing else: the real commands train, measure, rate and chart it."""

import json

import httpx
import pytest

from protege.cli.__main__ import main
from protege.runs.run import open_run
from tests.dashboard.serving import served

GAME = "tests.games.tiny:GAME"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with one run, trained, stopped at half of its budget and resumed."""
    folder = tmp_path_factory.mktemp("runs")
    words = ["train", GAME, "--runs", str(folder), "--no-dashboard", "--compare", "20"]
    assert main([*words, "--run", "mine", "--pulls", "3200"]) == 0
    assert main([*words, "--resume", "--pulls", "6400"]) == 0
    return folder


def ran(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out.splitlines()


def test_it_is_trained_compared_with_its_teachers_and_resumed(runs, capsys):
    with open_run("mine", runs) as run:
        info = run.info()
        assert (info.game, info.learner, info.unit, run.status()) == ("levers", "table", "pull", "finished")
        assert run.summary().step == 6400 and (run.summary().best_score or 0) > 0.8
        assert [start.kind for start in info.starts] == ["fresh", "resumed"]
    told = ran(
        capsys, "train", GAME, "--runs", str(runs), "--no-dashboard", "--pulls", "640", "--compare", "20", "--json"
    )
    assert any(line.startswith(" random") for line in told), "measured beside its teacher"
    assert any("times as much as the strongest of them, random" in line for line in told)
    assert f"Go on for longer:   protege train {GAME} --resume --run levers-table-" in "\n".join(told)
    assert json.loads(told[-1])["rate"] > 0.3
    assert "pulls" in "\n".join(ran(capsys, "train", GAME, "--dry-run"))


def test_it_is_measured(runs, capsys):
    told = ran(
        capsys, "eval", GAME, "--player", "mine", "--player", "random", "--games", "50", "--json", "--runs", str(runs)
    )
    mine, chance = (json.loads(line) for line in told[-2:])
    assert mine["rate_low"] > chance["rate_high"] and mine["games"] == 50
    assert told[0] == "Ten levers, 50 games each, seed 1" and any(line.split()[:1] == ["mine"] for line in told)
    assert main(["eval", GAME, "--player", "nobody"]) == 2
    assert "no player named 'nobody': use random, worst" in capsys.readouterr().err


def test_it_is_rated(runs, capsys, monkeypatch):
    monkeypatch.setenv("PROTEGE_RUNS", str(runs))
    ran(capsys, "league", "init", "ours", "--game", GAME)
    ran(capsys, "league", "add", "ours", "mine", "--name", "pupil", "--member", "--game", GAME)
    found = json.loads(ran(capsys, "league", "tournament", "ours", "--rounds", "2", "--game", GAME, "--json")[-1])
    assert found["matches"] == 12 and found["rating.pupil"] > found["rating.random"] == 1500 > found["rating.worst"]
    assert any(line.split()[:2] == ["pupil", "member"] for line in ran(capsys, "league", "list", "ours"))
    assert main(["league", "match", "ours", "pupil", "worst"]) == 2
    assert "plays 'levers', which is not among tempest, echelon" in capsys.readouterr().err
    assert main(["league", "match", "ours", "pupil", "worst", "--game", "tempest"]) == 2
    assert "league ours plays levers, not tempest" in capsys.readouterr().err


def test_it_is_charted(runs):
    with served(runs) as page, httpx.Client(base_url=page.url) as client:
        about = client.get("api/runs/mine").json()
        assert {metric["family"] for metric in about["metrics"]} == {"values", "score", "budget"}
        points = client.get("api/runs/mine/series", params={"metric": "eval_rate"}).json()["points"]["eval_rate"]
        assert points["mean"][-1] > 0.8
        assert [run["name"] for run in client.get("api/runs").json() if run["name"] == "mine"]


def test_it_may_be_a_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "my_game.py").write_text("from tests.games.tiny import GAME")
    monkeypatch.chdir(tmp_path)
    assert "random" in "\n".join(ran(capsys, "eval", "my_game.py", "--games", "5"))
