"""Episodes are watched over the page's socket, filmed, rated in a league; pupils become models for others."""

import asyncio
import io
import json
import struct

import numpy as np
import pytest
import websockets

from protege.cli.__main__ import main
from protege.games import find_game
from protege.games.own.page.views import png
from tests.dashboard.serving import served

HERE = "tests.games.own.worlds"
WALK = f"gym:{HERE}:tests/Walk-v0"
NAME = "gym-tests.games.own.worlds-tests-Walk-v0"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    words = ["--preset", "smoke", "--frames", "3000", "--no-dashboard", "--compare", "0", "--deterministic"]
    words += ["--teacher", f"{HERE}:teach_env", "--learner", "pqn"]
    assert main(["train", WALK, *words, "--run", "mine", "--runs", str(folder)]) == 0
    return folder


def test_a_picture_comes_back_as_it_was():
    from PIL import Image

    picture = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(picture)))), picture)


def messages(page, settings, count, say=None):
    async def watch():
        address = page.url.replace("http", "ws") + f"api/games/{NAME}/watch?{settings}"
        async with websockets.connect(address) as socket:
            if say is not None:
                await socket.send(json.dumps(say))
            return [await asyncio.wait_for(socket.recv(), 30) for _ in range(count)]

    return asyncio.run(watch())


def test_a_run_is_watched_live(runs):
    views = find_game(WALK).views
    assert views is not None
    with served(runs, {NAME: views(runs, ())}) as page:
        heard = messages(page, "player=mine", 6)
        said = []
        for message in heard:
            (length,) = struct.unpack("<I", message[:4])
            said.append(json.loads(message[4 : 4 + length]))
            assert message[4 + length :].startswith(b"\x89PNG")
        assert said[-1]["episode"] >= 1 and {"frame", "return", "last"} <= set(said[0])
        assert said[0] != said[-1], "it goes on"
        (error,) = messages(page, "player=nobody", 1)
        assert "there is no player 'nobody' here" in json.loads(error)["error"]


def test_an_episode_is_filmed(runs, tmp_path, capsys):
    film = tmp_path / "walk.gif"
    words = ["--player", "mine", "--best-of", "3", "--runs", str(runs), "--json"]
    assert main(["record", WALK, "--out", str(film), *words]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert film.read_bytes().startswith(b"GIF") and found["frames"] > 2 and found["bytes"] == film.stat().st_size


def test_players_are_rated_by_the_same_episodes(runs, capsys, monkeypatch):
    monkeypatch.setenv("PROTEGE_RUNS", str(runs))
    assert main(["league", "init", "ours", "--game", WALK]) == 0
    assert main(["league", "add", "ours", "mine", "--name", "pupil", "--member", "--game", WALK]) == 0
    capsys.readouterr()
    assert main(["league", "tournament", "ours", "--rounds", "4", "--game", WALK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["rating.pupil"] > found["rating.random"] == 1500


@pytest.mark.needs("onnxruntime", "onnxscript")
@pytest.mark.parametrize("kind, learner", [("Walk", "rainbow"), ("PushedWalk", "ppo"), ("DrawnWalk", "pqn")])
def test_a_pupil_becomes_a_model_for_other_programs(kind, learner, tmp_path, capsys):
    import onnxruntime

    place = f"gym:{HERE}:tests/{kind}-v0"
    words = ["--preset", "smoke", "--frames", "1200", "--no-dashboard", "--compare", "0", "--deterministic"]
    assert main(["train", place, *words, "--learner", learner, "--run", "mine", "--runs", str(tmp_path)]) == 0
    assert main(["export", place, "mine", "--out", str(tmp_path / "out"), "--runs", str(tmp_path), "--json"]) == 0
    made = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert made["difference"] < 1e-4 and made["observations"] == 256
    about = json.loads((tmp_path / "out" / "description.json").read_text())
    assert about["game"] == place
    session = onnxruntime.InferenceSession(made["model"])
    seen = np.zeros((3, 128 if kind == "DrawnWalk" else 2), np.float32)
    (found,) = session.run(None, {"observation": seen})
    assert found.shape == (3, 2)
    if kind == "PushedWalk":
        assert (np.abs(found) <= [1, 2]).all()
