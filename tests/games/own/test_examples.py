"""The tutorial in short: the orchard and LunarLander, by the commands that docs/your-own-game.md shows."""

import json
from pathlib import Path

import numpy as np
import pytest

from protege.cli.__main__ import main
from protege.cli.bench import run_benchmark
from protege.games import find_game

ROOT = Path(__file__).parents[3]
ORCHARD = str(ROOT / "examples" / "own_game.py")
SMOKE = ["--preset", "smoke", "--no-dashboard", "--compare", "0", "--deterministic"]


def last_lines(capsys, count):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()[-count:]]


def test_the_example_is_short():
    assert len(Path(ORCHARD).read_text().splitlines()) <= 150


def test_the_orchard_is_learned_from_its_teacher(tmp_path, capsys):
    words = ["--frames", "80000", "--runs", str(tmp_path), "--run", "mine", "--pqn.games", "64"]
    assert main(["train", ORCHARD, *SMOKE, *words]) == 0
    capsys.readouterr()
    players = ["--player", "mine", "--player", "teacher", "--player", "random"]
    assert main(["eval", ORCHARD, *players, "--games", "50", "--runs", str(tmp_path), "--json"]) == 0
    mine, teacher, random = last_lines(capsys, 3)
    assert teacher["return_mean_low"] > random["return_mean_high"]
    assert mine["return_mean_low"] > 2 * random["return_mean_high"], "it has begun to imitate"


def test_orchards_of_any_size_play_the_same_games():
    game = find_game(ORCHARD)
    (few,) = [game.measure("teacher", games=3, seed=5)]
    many = game.measure("teacher", games=40, seed=5)
    assert few["games"] == 3 and many["return_mean"] != few["return_mean"]
    assert find_game(ORCHARD).measure("teacher", games=3, seed=5)["return_mean"] == few["return_mean"]


def test_another_teacher_may_take_the_place_of_a_games_own(tmp_path, capsys):
    def mean(*words):
        given = ["--player", "teacher", "--games", "20", "--runs", str(tmp_path), "--json"]
        assert main(["eval", ORCHARD, *words, *given]) == 0
        return last_lines(capsys, 1)[0]["return_mean"]

    lazy = mean("--teacher", f"{__name__}:lazy")
    assert lazy < mean() and lazy == mean("--teacher", f"{__name__}:lazy_one")


def lazy(games, observations):
    """Never moves."""
    return np.ones(len(observations), np.int64)


def lazy_one(observation):
    return 1


def test_a_class_that_lacks_something_is_told(tmp_path, capsys):
    (tmp_path / "half_game.py").write_text(
        "from protege.games.own.game import array_game\n"
        "class Half:\n    def __init__(self, games): pass\n    def reset(self, which, seeds): pass\n"
        "class Broken:\n    def __init__(self, games): raise RuntimeError('no level')\n"
        "GAME = array_game(Half, name='half')\nOTHER = array_game(Broken, name='broken')\n"
    )
    assert main(["eval", str(tmp_path / "half_game.py")]) == 2
    assert "Half has no observe, step, observation_space, action_space" in capsys.readouterr().err


def test_the_machinery_around_a_game_is_measured():
    found = run_benchmark("overhead", seconds=0.2)
    assert found["games"] == 1024 and found["frames_per_s"] > 0 and found["frames_per_cpu_s"] > 0


@pytest.mark.needs("Box2D", "pygame")
def test_lunar_lander_is_learned_from_its_heuristic(tmp_path, capsys):
    place = "gym:LunarLander-v3"
    words = ["--teacher", "gymnasium.envs.box2d.lunar_lander:heuristic", "--frames", "12000", "--ppo.games", "16"]
    assert main(["train", place, *SMOKE, *words, "--run", "mine", "--runs", str(tmp_path)]) == 0
    capsys.readouterr()
    players = ["--player", "mine", "--player", "teacher", "--player", "random"]
    assert main(["eval", place, *players, "--games", "20", "--runs", str(tmp_path), "--json"]) == 0
    mine, teacher, random = last_lines(capsys, 3)
    assert teacher["return_mean"] > 150 > random["return_mean_high"]
    assert mine["return_mean"] > random["return_mean_high"], "it has begun to imitate"
