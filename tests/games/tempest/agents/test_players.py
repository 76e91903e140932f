"""Players by name, what an evaluation reports, and films."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from protege import ProtegeError
from protege.cli.__main__ import main
from protege.games.tempest.agents.players import evaluate, film, find_player, play, record, words
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Frames, Games, starts
from protege.games.tempest.task.recordings import NO_MOVE, Replay, load_recording, save_recording
from protege.seeds import EVALUATION

KEYS = """player games seed level score_mean score_mean_low score_mean_high score_median score_iqm score_iqm_low
score_iqm_high points_per_life level_mean level_max frames_mean truncated deaths_shot deaths_grab deaths_pulse
deaths_fuse deaths_spike seconds""".split()


class Sitting:
    """A player of a user: never moves, always fires."""

    def act(self, frames: Frames) -> list[int]:
        return [22] * len(frames.score)


class Chaser:
    """Does what the teacher says, in joint actions."""

    def act(self, frames: Frames) -> list[int]:
        table = {tuple(command): index for index, command in enumerate(ACTIONS.tolist())}
        return [table[tuple(command)] for command in frames.advice.tolist()]


def test_an_evaluation_has_every_promised_key_and_only_flat_values() -> None:
    result = evaluate("random", games=6)
    assert set(KEYS) <= set(result)
    assert all(isinstance(value, str | int | float) for value in result.values())
    json.dumps(result)


def test_an_evaluation_counts_what_happened() -> None:
    result = evaluate("random", games=20, seed=3)
    deaths = sum(result[f"deaths_{cause}"] for cause in ram.DEATH_NAMES)
    assert deaths >= 60  # three lives each, more where 20,000 points were reached
    assert result["truncated"] == 0
    assert result["points_per_life"] == pytest.approx(20 * result["score_mean"] / deaths)
    assert result["score_mean_low"] <= result["score_mean"] <= result["score_mean_high"]


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads() -> None:
    first, second = evaluate("teacher", games=12, seed=5), evaluate("teacher", games=12, seed=5, threads=2)
    first.pop("seconds"), second.pop("seconds")
    assert first == second


def test_a_game_does_not_depend_on_the_games_beside_it() -> None:
    together = play(find_player("random"), starts(9, seed=2, domain=EVALUATION))
    alone = play(find_player("random"), starts(1, seed=2, domain=EVALUATION, first=4))
    assert np.array_equal(together[4], alone[0])


class Shown:
    """A built-in player made to look at frames, as other players do."""

    def __init__(self, name: str):
        self.act = find_player(name).act


@pytest.mark.parametrize("name", ["teacher", "teacher-full", "random"])
def test_built_in_players_play_the_same_game_compiled_and_frame_by_frame(name: str) -> None:
    rows = starts(6, seed=4, level=[1, 3, 9, 17, 33, 65], domain=EVALUATION)
    compiled, shown = play(find_player(name), rows), play(Shown(name), rows)
    assert words(compiled, ram.SCORE).tolist() == words(shown, ram.SCORE).tolist()
    assert np.array_equal(compiled[:, : ram.RAM_BYTES], shown[:, : ram.RAM_BYTES])


def test_games_are_cut_at_the_limit_and_counted() -> None:
    result = evaluate("teacher", games=4, max_frames=100)
    assert result["truncated"] == 4
    assert result["frames_mean"] == 100


def test_the_start_bonus_is_reported_apart_from_the_score() -> None:
    # Level 9 is on the menu: whoever finishes it gets 54,000, which is not play.
    result = evaluate("teacher", games=40, level=9)
    assert result["start_bonus_mean"] > 0
    assert result["start_bonus_mean"] % (54_000 / 40) == 0
    assert result["score_mean"] < 54_000
    assert evaluate("teacher", games=10, level=10)["start_bonus_mean"] == 0  # not on the menu


def test_both_teachers_beat_chance_and_differ() -> None:
    teacher, full, chance = (evaluate(name, games=60) for name in ("teacher", "teacher-full", "random"))
    assert teacher["score_mean_low"] > chance["score_mean_high"]
    assert full["score_mean"] != teacher["score_mean"]


def test_the_teacher_turns_at_full_level_or_not_at_all() -> None:
    games = Games(starts(32, level=5))
    seen = set()
    for _ in range(300):
        seen |= set(np.unique(games.frames.advice[:, 2]).tolist())
        games.step(find_player("teacher").act(games.frames))
    assert seen == {-12, 0, 12}


def test_a_users_own_player_is_found_and_measured() -> None:
    assert evaluate("tests.games.tempest.agents.test_players:Sitting", games=3)["score_mean"] < 10_000


@pytest.mark.parametrize(
    "name",
    [
        "nobody",
        "tests.games.tempest.agents.test_players:Nobody",
        "no.such:Thing",
        "tests.games.tempest.agents.test_players:KEYS",
        "os:name",
    ],
)
def test_an_unknown_player_gets_one_clear_line(name: str) -> None:
    with pytest.raises(ProtegeError, match=name.split(":")[-1]):
        find_player(name)


def test_an_object_that_cannot_act_is_no_player() -> None:
    with pytest.raises(ProtegeError, match="no method act"):
        find_player("collections:OrderedDict")


@pytest.mark.parametrize("bad", [{"games": 0}, {"level": 0}, {"level": 100}, {"max_frames": 0}])
def test_impossible_evaluations_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ProtegeError):
        evaluate("random", **{"games": 1} | bad)  # type: ignore[arg-type]


def test_a_film_is_the_evaluated_game_tick_by_tick() -> None:
    row = starts(1, seed=6, domain=EVALUATION)[0]
    *_, last = film(find_player("teacher"), row.copy())
    ended = play(find_player("teacher"), row[None])
    assert int(ram.get_word(last, ram.SCORE)) == words(ended, ram.SCORE)[0]
    assert int(ram.get_word(last, ram.FRAMES)) == words(ended, ram.FRAMES)[0]


def test_a_recording_holds_the_end_of_the_best_game(tmp_path: Path) -> None:
    made = record("random", tmp_path / "game.gif", seed=2, best_of=5, seconds=2.0, size=120)
    scores = words(play(find_player("random"), starts(5, seed=2, domain=EVALUATION)), ram.SCORE)
    assert made["score"] == scores.max()
    assert made["first_tick"] == made["ticks"] - 54
    assert (tmp_path / "game.gif").stat().st_size == made["bytes"] > 1000


def test_a_recording_ends_with_the_level_that_was_asked_for(tmp_path: Path) -> None:
    made = record("teacher", tmp_path / "game.gif", seed=2, seconds=1.0, until_level=1, size=120)
    whole = sum(1 for _ in film(find_player("teacher"), starts(1, seed=2, domain=EVALUATION)[0]))
    assert made["level"] == 1
    assert made["first_tick"] + 27 == made["ticks"] < whole


def test_a_game_that_would_go_on_is_filmed_to_the_limit_and_no_further(tmp_path: Path) -> None:
    *_, last = film(find_player("teacher"), starts(1, seed=6, domain=EVALUATION)[0], max_frames=50)
    assert int(ram.get_word(last, ram.FRAMES)) == 50
    made = record("teacher", tmp_path / "game.gif", seed=6, seconds=1.0, size=120, max_frames=50)
    assert made["truncated"] and made["ticks"] < 100
    made = record("teacher", tmp_path / "game.gif", seed=6, seconds=1.0, size=120, until_level=1)
    assert not made["truncated"]


def test_a_recording_is_told_in_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["record", "tempest", "--player", "random", "--out", str(tmp_path / "game.gif"), "--json"]
    assert main([*words, "--seconds", "1", "--size", "100"]) == 0
    told, figures = capsys.readouterr().out.splitlines()
    found = json.loads(figures)
    assert found["player"] == "random" and found["bytes"] == (tmp_path / "game.gif").stat().st_size
    assert f"{found['score']:,} points" in told and not found["truncated"]


def test_whoever_waits_for_an_evaluation_sees_how_many_games_are_over() -> None:
    pytest.importorskip("termios", reason="there are no pseudo-terminals here")
    from tests.cli.terminals import ESCAPES, Terminal

    words = "eval tempest --player tests.games.tempest.agents.test_players:Sitting --games 4 --max-frames 3000".split()
    with Terminal(sys.executable, "-m", "protege.cli", *words) as terminal:
        terminal.wait_for("mean score", 240)
        assert re.search("[1-3]/4 games over", ESCAPES.sub("", terminal.raw))


def test_the_command_prints_a_table_and_flat_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "tempest", "--player", "random", "--player", "teacher", "--games", "3", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1])["player"] == "teacher"
    assert json.loads(lines[-2])["player"] == "random"
    assert any("mean score" in line for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "tempest", "--player", "nobody"],
        ["eval", "tempest", "--level", "0"],
        ["record", "tempest", "--out", "a.avi"],
    ],
)
def test_bad_input_gets_one_line_and_exit_code_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("protege: ")


def test_a_recorded_game_can_be_played_again_and_filmed(tmp_path: Path) -> None:
    rows = starts(5, seed=4, domain=EVALUATION)
    moves = np.full((5, 3000), NO_MOVE, np.uint8)
    ended = play(Chaser(), rows, max_frames=3000, moves=moves)
    scores = words(ended, ram.SCORE)
    best = int(scores.argmax())
    save_recording(tmp_path / "game.tempest", rows[best], moves[best], {"player": "chaser"})
    found = load_recording(tmp_path / "game.tempest")
    assert found.about == {"player": "chaser"} and len(found.moves) == words(ended, ram.FRAMES)[best]
    assert words(play(Replay(found), found.start[None], max_frames=3000), ram.SCORE)[0] == scores[best] > 0
    last = [live.copy() for live in film(Replay(found), found.start.copy())][-1]
    assert words(last[None], ram.SCORE)[0] == scores[best]
