"""Games to watch and to play: what a page is told, who plays, and what a person's hands do."""

import json
import time
from typing import Any

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.tempest.agents.network import CHECKPOINT_KIND, ValueNetwork, load_pupil
from protege.games.tempest.agents.players import find_player, play, words
from protege.games.tempest.page.human import Best, HighScores, HumanGame
from protege.games.tempest.page.live import DRAWN, RELOAD_SECONDS, Film, LiveGames, WatchedPlayer, pack
from protege.games.tempest.page.views import TempestViews
from protege.games.tempest.rules import ram
from protege.games.tempest.task import drawing
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import TASK_VERSION, Frames, starts
from protege.games.tempest.task.recordings import save_recording
from protege.learn.state import named_weights
from protege.runs import checkpoints
from protege.runs.metrics import Metric
from protege.runs.run import create_run, open_run
from protege.seeds import EVALUATION
from tests.games.tempest.task.scenes import save_rainbow


def told(message: bytes) -> Any:
    """The text of a message, after checking that exactly its lines follow."""
    length = int.from_bytes(message[:4], "little")
    found = json.loads(message[4 : 4 + length])
    assert length % 4 == 0 and len(message) == 4 + length + 12 * sum(
        game["lines"] + game.get("gaze", 0) for game in found["games"]
    )
    return found


def teacher() -> WatchedPlayer:
    return WatchedPlayer("teacher", None)


def values_of(player: WatchedPlayer, frames: Frames) -> Any:
    return player.decide(frames).values


def save_weights(path, seed: int) -> None:
    import torch

    torch.manual_seed(seed)
    network = ValueNetwork((8,))
    state = {"widths": [8], "visible_only": False}
    tensors = named_weights(network, "network")
    checkpoints.save(path, tensors, state, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)


def test_a_message_holds_the_lines_of_the_picture():
    picture = drawing.Picture(
        np.array([[-1.0, 0.5, 1.0, 0.0]], np.float32), np.array([[40, 225, 255]], np.uint8), np.array([1.4], np.float32)
    )
    message = pack({"games": [{"lines": 1}]}, [picture])
    assert told(message) == {"games": [{"lines": 1}]}
    lines = message[-12:]
    assert np.frombuffer(lines[:8], "<i2").tolist() == [-32767, 16384, 32767, 0]
    assert list(lines[8:11]) == [40, 225, 255] and lines[11] == 140


def test_a_watched_game_is_the_one_an_evaluation_plays():
    show = LiveGames(teacher(), seed=1, level=5)
    rows = starts(1, seed=1, level=5, domain=EVALUATION)
    ended = play(find_player("teacher"), rows)
    points, bonus = int(words(ended, ram.SCORE)[0]), int(words(ended, ram.START_BONUS)[0])
    while not (game := told(show.tick())["games"][0])["over"]:
        assert game["control"] in ("teacher", "")
    assert game["score"] == points + bonus, "as the machine shows it"
    assert points > 0 and bonus > 0


def test_a_finished_game_stays_a_while_and_is_followed_by_the_next_of_the_seed():
    show = LiveGames(WatchedPlayer("random", None), seed=3)
    while not told(show.tick())["games"][0]["over"]:
        pass
    shown = 0
    while (game := told(show.tick())["games"][0])["over"]:
        shown += 1
    assert shown == 69 and game["frame"] == 0 and game["lives"] == 3
    assert np.array_equal(show.table.games.rows[0], starts(1, seed=3, first=1, domain=EVALUATION)[0])


def test_a_grid_draws_some_of_its_games_each_tick_and_all_of_them_in_turn():
    show = LiveGames(teacher(), games=16, seed=1)
    drawn = [{g for g, game in enumerate(told(show.tick())["games"]) if game["lines"]} for _ in range(2)]
    assert [len(games) for games in drawn] == [DRAWN, DRAWN]
    assert drawn[0] | drawn[1] == set(range(16))


def test_a_pupil_tells_the_values_of_its_best_actions_highest_first(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(path, 1)
    player = WatchedPlayer(str(path), None)
    game = told(LiveGames(player, seed=1).tick())["games"][0]
    values = [value for *_, value in game["values"]]
    assert len(values) == 5 and values == sorted(values, reverse=True)
    assert game["values"][0][:3] == game["action"] and game["control"] == "pupil"
    assert game["range"][0] < values[-1] and game["range"][1] == values[0]


def test_a_rainbow_pupil_also_tells_how_likely_each_return_is_and_what_its_lanes_attend_to(tmp_path):
    show = LiveGames(WatchedPlayer(str(save_rainbow(tmp_path)), None), seed=1)
    for _ in range(200):  # until enemies have come up
        game = told(show.tick())["games"][0]
    low, high = game["support"]
    for (*_, value), probabilities in zip(game["values"], game["probabilities"], strict=True):
        assert sum(probabilities) == pytest.approx(1000, abs=26)  # 51 roundings
        assert np.dot(probabilities, np.linspace(low, high, 51)) / 1000 == pytest.approx(value, abs=2.6)
    assert (low, high) == (-100, 100)
    assert game["gaze"] > 1


def test_attention_is_not_told_in_small_pictures(tmp_path):
    show = LiveGames(WatchedPlayer(str(save_rainbow(tmp_path)), None), seed=1, games=9)
    assert not any("gaze" in game for _ in range(100) for game in told(show.tick())["games"])


def test_a_run_in_training_is_watched_with_its_newest_weights_as_soon_as_they_are_saved(tmp_path):
    metrics = [Metric("loss", "", "error", "loss")]
    with create_run("tempest", "pqn", {}, metrics, name="new", folder=tmp_path) as run:
        with pytest.raises(ProtegeError, match="no checkpoint yet"):
            WatchedPlayer("new", tmp_path)
        save_weights(run.best, 1)
        save_weights(run.last, 2)
        player = WatchedPlayer("new", tmp_path)
        frames = LiveGames(player, seed=1).table.games.frames
        before = values_of(player, frames)
        assert np.array_equal(before, load_pupil(run.last).values(frames.observation))
        save_weights(run.last, 3)
        time.sleep(RELOAD_SECONDS)
        player.refresh()
        assert not np.array_equal(before, values_of(player, frames))
        run.last.write_bytes(b"half a file")
        time.sleep(RELOAD_SECONDS)
        player.refresh()
        assert "newer ones cannot be used" in player.note and values_of(player, frames) is not None
    assert np.array_equal(
        values_of(WatchedPlayer("new", tmp_path), frames),
        load_pupil(open_run("new", tmp_path).best).values(frames.observation),
    ), "afterwards its best"


def test_without_the_champions_weights_the_teacher_plays_and_it_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "protege.games.tempest.page.live.checkpoint_of", lambda name, runs: tmp_path / "nothing.safetensors"
    )
    player = WatchedPlayer("champion", None)
    assert player.name == "teacher" and player.control == "teacher" and "no weights" in player.note


# --- films ---


def filmed(film: Film) -> Film:
    film.paused = True
    while not film.complete():
        film.tick()
    return film


def test_a_film_shows_any_moment_as_it_was():
    start = starts(1, seed=1, domain=EVALUATION)[0]
    film = filmed(Film(teacher(), start))
    row, moments = film.shown.games.rows[0], {}
    for tick in range(0, len(film.commands), 250):
        film.go_to(tick)
        moments[tick] = row.copy()
    for tick in sorted(moments, key=lambda tick: tick * 7919 % 1009):  # to and fro
        film.go_to(tick)
        # The margin remembers what was looked at; the machine's own bytes are the game.
        assert np.array_equal(row[: ram.RAM_BYTES], moments[tick][: ram.RAM_BYTES]), tick
    film.go_to(10**9)
    assert film.at == len(film.commands) and ram.get_word(row, ram.SCORE) == ram.get_word(
        play(find_player("teacher"), start[None])[0], ram.SCORE
    )


def test_a_film_is_paused_stepped_sought_and_played_at_other_speeds():
    film = Film(teacher(), starts(1, seed=1, domain=EVALUATION)[0])
    for _ in range(10):
        film.tick()
    assert film.at == 10
    film.hear({"pause": True})
    assert told(film.tick())["film"] == {
        "tick": 10, "ticks": len(film.commands), "complete": film.complete(), "paused": True, "speed": 1.0,
    }  # fmt: skip
    film.hear({"step": 1})
    film.hear({"step": -3})
    assert film.at == 8
    film.hear({"seek": 100})
    assert told(film.tick())["film"]["tick"] == 100
    film.hear({"speed": 4})
    film.hear({"pause": False})
    film.tick()
    assert film.at == 104
    film.hear({"speed": 0.5})
    film.tick()
    assert film.at == 104
    film.tick()
    assert film.at == 105
    film.hear({"seek": "somewhere"})
    film.hear({})
    assert film.at == 105


def test_a_recording_ends_where_its_moves_end(tmp_path):
    start = starts(1, seed=1, domain=EVALUATION)[0]
    moves = np.array([0, 11, 22] * 40, np.uint8)
    metrics = [Metric("loss", "", "error", "loss")]
    with create_run("tempest", "pqn", {}, metrics, name="new", folder=tmp_path) as run:
        save_weights(run.last, 1)
        save_recording(run.recordings / "best-evaluation.tempest", start, moves, {"player": "new"})
    show = TempestViews(tmp_path).open("film", {"player": "new", "recording": "best-evaluation.tempest"})
    assert isinstance(show, Film)
    filmed(show)
    assert len(show.commands) == 120 and show.commands[:3] == [tuple(ACTIONS[move]) for move in (0, 11, 22)]
    for name in ("none.tempest", "../run.json"):
        with pytest.raises(ProtegeError, match="has no recording"):
            TempestViews(tmp_path).open("film", {"player": "new", "recording": name})


# --- playing ---


@pytest.fixture
def game(tmp_path) -> HumanGame:
    game = HumanGame(teacher(), HighScores(tmp_path / "scores.json"))
    game.hear({"start": {"level": 1, "seed": 5}})
    return game


def position(game: HumanGame) -> int:
    """Of 256 around the tube."""
    return int(game.table.games.rows[0][ram.PLAYER_POSITION])


def test_both_games_start_alike_and_only_one_is_yours(game):
    mine, theirs = game.table.games.rows
    assert np.array_equal(mine, theirs)
    said = told(game.tick())["games"]
    assert [one["control"] for one in said] == ["you", "teacher"]
    assert said[0]["action"] == [0, 0, 0] and said[1]["action"] == said[1]["advice"]


def test_nothing_moves_before_the_start_and_while_paused(tmp_path, game):
    waiting = HumanGame(teacher(), HighScores(tmp_path / "scores.json"))
    before = waiting.table.games.rows.copy()
    assert told(waiting.tick())["human"]["running"] is False and np.array_equal(waiting.table.games.rows, before)
    game.tick()
    game.hear({"pause": True})
    before = game.table.games.rows.copy()
    assert told(game.tick())["human"]["paused"] is True and np.array_equal(game.table.games.rows, before)


def test_a_held_key_turns_to_higher_lanes_on_the_right_and_faster_after_a_while(game):
    game.tick()
    start = position(game)
    game.hear({"turn": 1})
    moved = []
    for _ in range(7):
        before = position(game)
        game.tick()
        moved.append((position(game) - before) % 256)
    assert moved == [8, 8, 8, 10, 12, 14, 14]
    game.hear({"turn": -1})
    game.tick()
    assert position(game) == (start + sum(moved) - 8) % 256
    game.hear({"turn": 0})
    game.tick()
    assert position(game) == (start + sum(moved) - 8) % 256


def test_a_tap_between_two_ticks_is_not_lost(game):
    game.tick()
    start = position(game)
    for words_ in ({"turn": 1}, {"turn": 0}, {"fire": True}, {"fire": False}, {"zap": True}, {"zap": False}):
        game.hear(words_)
    assert told(game.tick())["games"][0]["action"] == [1, 1, -8]
    assert position(game) == (start + 8) % 256
    assert told(game.tick())["games"][0]["action"] == [0, 0, 0]


def test_what_the_wheel_turned_too_far_for_one_tick_turns_in_the_next(game):
    game.tick()
    start = position(game)
    game.hear({"spin": 25.5})
    game.hear({"spin": 15})
    actions = [told(game.tick())["games"][0]["action"][2] for _ in range(3)]
    assert actions == [-31, -9, 0] and position(game) == (start + 40) % 256  # half a unit waits for more


def test_senseless_words_change_nothing(game):
    game.tick()
    start = position(game)
    nonsense: Any
    for nonsense in ({"turn": "x"}, {"turn": [1]}, {"spin": 1e300}, {"spin": None}, {"start": {}}, {"fire": 1}, {}):
        game.hear(nonsense)
    assert told(game.tick())["games"][0]["action"] == [0, 0, 0] and position(game) == start


def test_a_good_game_enters_the_table_once(game, tmp_path):
    game.hear({"fire": True})
    game.hear({"turn": 1})
    for _ in range(60_000):
        said = told(game.tick())
        if said["games"][0]["over"]:
            break
    score = said["games"][0]["score"]
    assert score > 0 and said["human"]["place"] == 1
    game.hear({"initials": "ab<c>"})
    game.hear({"initials": "xyz"})
    (line,) = HighScores(tmp_path / "scores.json").best()
    assert (line.initials, line.score, line.start) == ("ABC", score, 1) and line.level >= 1
    assert told(game.tick())["human"]["place"] is None


def test_the_table_keeps_the_ten_best_and_equals_come_later(tmp_path):
    scores = HighScores(tmp_path / "runs" / "scores.json")
    assert scores.best() == [] and scores.place(1) == 1 and scores.place(0) is None
    for points in range(100, 1200, 100):
        scores.add(Best("AAA", points, 1, 1, ""))
    assert [line.score for line in scores.best()] == list(range(1100, 100, -100))
    assert scores.place(1100) == 2 and scores.place(200) is None and scores.place(250) == 10
    scores.path.write_text("not a table")
    with pytest.raises(ProtegeError, match="cannot be read"):
        scores.best()


# --- what a page may ask for ---


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("watch", {"player": "os:getcwd"}, "no name for a run"),  # a page must not import code
        ("watch", {"player": "/etc/passwd"}, "no name for a run"),
        ("watch", {"player": "nobody"}, "there is no player 'nobody'"),
        ("watch", {"player": "teacher", "games": "17"}, "games must be a whole number from 1 to 16"),
        ("watch", {"player": "teacher", "level": "0"}, "level must be"),
        ("film", {"player": "teacher", "seed": "1e9"}, "seed must be"),
        ("film", {"player": "teacher", "game": "9" * 400}, "game must be"),
        ("dance", {}, "there is no live view 'dance'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, kind, settings, reason):
    with pytest.raises(ProtegeError, match=reason):
        TempestViews(tmp_path).open(kind, settings)


def test_a_player_of_ones_own_is_shown_only_if_the_command_line_named_it(tmp_path):
    name = "tests.games.tempest.page.test_live:Idle"
    with pytest.raises(ProtegeError, match="no name for a run"):
        TempestViews(tmp_path).open("watch", {"player": name})
    show = TempestViews(tmp_path, [name]).open("watch", {"player": name})
    assert told(show.tick())["games"][0]["action"] == [0, 0, 0]
    assert TempestViews(tmp_path, [name]).players()[0] == name


class Idle:
    """A player that does nothing."""

    def act(self, frames):
        return np.zeros(len(frames.score), np.int64)
