"""Playing arcade clients: what is told on the way, when it ends, and what the games came to."""

import json
import socket
import threading
from dataclasses import replace
from typing import Any

import pytest
import tyro

from protege.cli import __main__ as cli
from protege.games.tempest.agents.players import find_player, play, words
from protege.games.tempest.arcade.bridge import BridgeConfig
from protege.games.tempest.arcade.serve import play_clients, summary
from protege.games.tempest.arcade.streams import Game
from protege.games.tempest.commands import mame_options, serve_options
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import starts
from protege.games.tempest.training.config import PRESETS, TempestConfig
from protege.games.tempest.training.metrics import METRICS
from protege.games.tempest.training.trainer import for_clients
from protege.runs.run import create_run
from tests.games.tempest.arcade.client import Client, Machine, wait_until


def game(score: int, deaths: int = 3, **more) -> Game:
    about = {"client": 0, "start_bonus": 0, "level": 4, "start_level": 1, "frames": 900, "truncated": False}
    return Game(score=score, deaths=deaths, **{**about, **more})


def test_the_summary_of_games_by_hand():
    found = summary("teacher", [game(100), game(200, level=6, frames=1100), game(600, deaths=0, truncated=True)])
    assert (found["player"], found["games"], found["level"]) == ("teacher", 3, 1)
    assert (found["score_mean"], found["score_median"]) == (300.0, 200.0)
    assert found["points_per_life"] == 150.0  # 900 points, six lives
    assert (found["level_mean"], found["level_max"], found["truncated"]) == (pytest.approx(14 / 3), 6, 1)
    assert found["score_mean_low"] <= 300 <= found["score_mean_high"]
    assert summary("teacher", []) == {"player": "teacher", "games": 0}


class Arcade(threading.Thread):
    """Plays each machine's game to its end, one after the other, once the server has said where it is."""

    def __init__(self, rows: ram.Rows):
        super().__init__(daemon=True)
        self.machines = [Machine(row.copy()) for row in rows]
        self.port = 0
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("bridge: "):
            self.port = int(line.split("port ")[1].split(",")[0])
            self.start()

    def run(self) -> None:
        for machine in self.machines:
            with Client(self.port) as client:
                while not machine.is_over():
                    client.play(machine)
                client.play(machine)


def test_clients_are_played_by_the_teacher_as_the_simulator_is():
    rows = starts(2, seed=8, level=3)
    arcade = Arcade(rows)
    found = play_clients("teacher", find_player("teacher"), BridgeConfig(port=0), games=2, tell=arcade.tell)
    arcade.join()
    ended = play(find_player("teacher"), rows)
    assert found["score_mean"] == words(ended, ram.SCORE).mean() and found["games"] == 2
    assert found["frames_mean"] == words(ended, ram.FRAMES).mean() and found["level"] == 3
    assert sum(line.startswith("game ") for line in arcade.lines) == 2
    assert json.loads(json.dumps(found))["truncated"] == 0
    assert found["seconds"] > 0 and found["frames_per_s"] > 0


def test_it_stops_when_its_minutes_are_over(tmp_path, capsys):
    words_typed = ["--no-train", "--player", "random", "--port", "0", "--minutes", "0.005", "--json", "--no-dashboard"]
    assert cli.main(["serve", *words_typed, "--runs", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "random plays up to 36 clients" in lines[0]
    assert lines[-2] == "No game was played from its beginning to its end."
    assert json.loads(lines[-1])["games"] == 0


def test_the_champions_scores_on_clients_are_reported(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    rows = starts(1, seed=8, level=3)
    arcade = Arcade(rows)
    arcade.port = port

    def is_served() -> bool:
        with socket.socket() as knock:
            return knock.connect_ex(("127.0.0.1", port)) == 0

    def begin() -> None:
        wait_until(is_served, 60.0)
        arcade.run()

    playing = threading.Thread(target=begin, daemon=True)
    playing.start()
    limits = ["--games", "1", "--max-frames", "300", "--port", str(port)]
    assert cli.main(["serve", "--no-train", *limits, "--runs", str(tmp_path), "--no-dashboard", "--json"]) == 0
    playing.join()
    *_, told, figures = capsys.readouterr().out.splitlines()
    found = json.loads(figures)
    assert (found["player"], found["games"], found["truncated"], found["frames_mean"]) == ("champion", 1, 1, 300)
    ended = play(find_player("champion"), rows, max_frames=300)
    assert found["score_mean"] == words(ended, ram.SCORE).mean() > 0
    assert told.startswith(f"champion: {found['score_mean']:,.0f} points on average")


def settings(*typed: str) -> Any:
    """What a server would train with."""
    return tyro.cli(serve_options(typed), args=typed).config


def test_a_server_takes_every_setting_of_a_training(tmp_path):
    found = settings()
    assert (found.learner, found.minutes, found.rainbow.save_replay) == ("rainbow", 0.0, True)
    assert found == for_clients(replace(PRESETS["laptop"], minutes=0.0), fresh=True)
    typed = ["--learner", "pqn", "--pqn.epsilon", "0.1", "--minutes", "7", "--device", "cpu", "--no-save-replay"]
    found = settings(*typed, "--teacher", "champion")
    assert (found.learner, found.pqn.epsilon, found.minutes, found.device) == ("pqn", 0.1, 7.0, "cpu")
    assert not found.rainbow.save_replay and found.teacher == "champion"
    assert settings("--preset", "smoke", "--save-replay").rainbow.batch == PRESETS["smoke"].rainbow.batch


def test_a_resumed_run_has_its_own_settings_and_what_is_typed_wins(tmp_path):
    stored = TempestConfig(learner="pqn", seed=8, minutes=20.0, deterministic=True)
    create_run("tempest", "pqn", stored, METRICS["pqn"], name="fast", score="eval_score", folder=tmp_path).close()
    resume = ["--resume", "--runs", str(tmp_path)]
    found = settings(*resume)
    assert (found.learner, found.seed, found.minutes, found.deterministic) == ("pqn", 8, 0.0, False)
    assert settings(*resume, "--minutes", "30", "--seed", "9") == replace(found, minutes=30.0, seed=9)


def test_mame_with_a_server_takes_them_too():
    typed = ["--serve", "--clients", "2", "--rainbow.batch", "64", "--minutes", "5", "--overlay", "--visible"]
    command = tyro.cli(mame_options(typed), args=typed)
    assert (command.clients, command.config.rainbow.batch, command.config.minutes) == (2, 64, 5.0)
    assert command.overlay and command.config.rainbow.save_replay
    assert not hasattr(tyro.cli(mame_options([]), args=[]), "config"), "without a server there is nothing to train"


@pytest.mark.parametrize(
    "words_typed, complaint",
    [
        (["--starts.top-level", "5"], "clients start their games themselves"),
        (["--rainbow.games", "5"], "use --start-level"),
        (["--deterministic"], "clients keep their own time"),
        (["--pqn.epsilon", "0"], "it is a setting of learner pqn, and rainbow learns"),
        (["--teacher", "nobody"], "no player named 'nobody'"),
        (["--start-from", "nobody"], "there is no 'nobody' to start from"),
    ],
)
def test_settings_that_mean_nothing_to_clients_are_refused(words_typed, complaint, tmp_path, capsys):
    assert cli.main(["serve", *words_typed, "--port", "0", "--runs", str(tmp_path), "--no-dashboard"]) == 2
    assert complaint in " ".join(capsys.readouterr().err.split()) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words_typed, complaint",
    [
        (["--host", "0.0.0.0"], "give a token that the clients must know"),
        (["--start-level", "90"], "levels 1 to 81; got 90"),
        (["--allow", "nowhere"], "networks like 192.168.1.0/24"),
        (["--player", "nobody"], "no player named 'nobody'"),
    ],
)
def test_what_cannot_work_is_one_clear_line(words_typed, complaint, capsys):
    assert cli.main(["serve", "--no-train", *words_typed]) == cli.USAGE_ERROR
    told = capsys.readouterr().err
    assert complaint in told and told.count("\n") == 1
