"""Matches of leagues in both games: who wins, and how the players are described."""

from dataclasses import replace

import numpy as np
import pytest

from protege.games.echelon.agents import contest as echelon
from protege.games.echelon.agents.match import Setting
from protege.games.echelon.recordings.recording import Recording
from protege.games.echelon.world.maps import VERSION as MAP_VERSION
from protege.games.echelon.world.mechs import BLUE, RED
from protege.games.tempest.agents import contest as tempest
from protege.games.tempest.page.views import TempestViews
from protege.league.league import Opponent, create_league
from protege.league.ledger import LeagueError
from protege.runs.run import RunError

SMALL = Setting("5v5", (40, 40), 120)


class Sitting:
    """A Tempest player that never turns and fires in every second frame."""

    def __init__(self) -> None:
        self.made = 0

    def act(self, frames):
        self.made += 1
        commands = np.zeros((len(frames.frame), 3), np.int8)
        commands[:, 0] = self.made % 2
        return commands


class Swinging:
    """One that turns one step to the left, one to the right, and never fires."""

    def __init__(self) -> None:
        self.turn = 1

    def act(self, frames):
        self.turn = -self.turn
        commands = np.zeros((len(frames.frame), 3), np.int8)
        commands[:, 2] = self.turn
        return commands


class Still:
    """An Echelon player that does nothing."""

    def act(self, battles, mechs, actions):
        actions.move[mechs] = 0
        actions.buttons[mechs] = 0
        actions.ewar[mechs] = 0


def player(number: int, name: str) -> Opponent:
    return Opponent(number, name, name)


# --- Tempest ---


@pytest.fixture
def tempest_contest():
    return tempest.Contest(tempest.signature(tempest.Setting(max_frames=3000)))


def test_the_same_games_are_dealt_to_both_and_the_higher_score_wins(tempest_contest):
    results = tempest_contest.play(player(1, "teacher"), player(2, "random"), range(4))
    for result in results:
        one, other = result.detail["scores"]
        assert result.score == (1.0 if one > other else 0.0 if one < other else 0.5)
    assert [result.map for result in results] == [0, 1, 2, 3] and sum(result.score for result in results) >= 3
    again = tempest.Contest(tempest_contest.signature).play(player(2, "random"), player(1, "teacher"), range(2, 4))
    assert [result.detail["scores"][::-1] for result in again] == [result.detail["scores"] for result in results[2:]]
    assert [1 - result.score for result in again] == [result.score for result in results[2:]]


def test_equal_scores_are_a_draw(tempest_contest):
    results = tempest_contest.play(player(1, "teacher"), player(2, "teacher"), range(2))
    assert [result.score for result in results] == [0.5, 0.5]


def test_a_tempest_style_says_how_much_it_turns_and_fires(tempest_contest):
    names = (f"{__name__}:Sitting", f"{__name__}:Swinging")
    (result,) = tempest_contest.play(player(1, names[0]), player(2, names[1]), range(1))
    sitting, swinging = result.styles
    assert sitting["turning"] == 0 and sitting["still_share"] == 1 and sitting["zaps_per_minute"] == 0
    assert sitting["fire_share"] == pytest.approx(0.5, abs=0.01)
    assert swinging["turning"] == 1 and swinging["fire_share"] == 0 and swinging["still_share"] == 0
    # Every frame but the first turns the other way: 27.34 times a second.
    assert swinging["reversals_per_minute"] == pytest.approx(60 * 27.34, rel=0.02)


def test_players_of_a_league_are_cut_where_the_league_says():
    cut = tempest.Contest(tempest.signature(tempest.Setting(max_frames=200)))
    (result,) = cut.play(player(1, "teacher"), player(2, "random"), range(1))
    assert all(style["seconds_per_life"] <= 201 / 27.3 for style in result.styles or ())


def test_players_of_a_league_are_watched_under_their_names_there(tmp_path):
    views = TempestViews(tmp_path)
    film = views.open("film", {"player": "random", "league": "tempest", "seed": "10", "game": "3"})
    assert b'"player":"random"' in film.tick()
    with pytest.raises(LeagueError, match="league tempest has no entry 'rondom'; did you mean random"):
        views.open("film", {"player": "rondom", "league": "tempest"})
    with pytest.raises(RunError, match="is no name for a run"):
        views.open("film", {"player": "random", "league": "../../tempest"})


def test_the_signature_holds_what_results_depend_on(tmp_path):
    signature = tempest.signature()
    assert signature["game"] == "tempest" and signature["lives"] == 3 and signature["difficulty"] == "medium"
    with create_league(tmp_path, signature, tempest.SCRIPTED, tempest.ANCHOR) as league:
        league.require(tempest.Contest(league.signature).signature)
        with pytest.raises(LeagueError, match="max_frames 20000 here and 3000 there"):
            league.require(tempest.signature(tempest.Setting(max_frames=3000)))


# --- Echelon ---


def test_every_map_is_played_from_both_sides_and_the_first_are_recorded():
    arena = echelon.Contest(echelon.signature(SMALL))
    results = arena.play(player(1, "hard"), player(2, "trivial"), range(5, 7), record=1)
    assert [(result.map, result.swapped) for result in results] == [(5, False), (5, True), (6, False), (6, True)]
    assert [result.recording is not None for result in results] == [True, True, False, False]
    assert [result.styles is not None for result in results] == [True, True, False, False]
    assert sum(result.score for result in results) >= 2
    plain = arena.play(player(1, "hard"), player(2, "trivial"), range(5, 7))
    assert [result.detail for result in plain] == [result.detail for result in results], "recording changes nothing"
    header = Recording(results[0].recording or b"").header
    assert list(header["players"]) == ["hard", "trivial"]


def test_an_echelon_style_tells_the_still_from_the_busy():
    arena = echelon.Contest(echelon.signature(replace(SMALL, length=240)))
    (one, _) = arena.play(player(1, "hard"), player(2, f"{__name__}:Still"), range(1), record=1)
    assert one.styles is not None
    walking, still = one.styles
    assert still["trigger_fraction"] == 0 and still["hits_per_minute"] == 0 and still["jamming_fraction"] == 0
    assert still["hit_distance"] == 0 and still["focus_fraction"] == 0 and still["speed"] < 0.3 * walking["speed"]
    assert still["still_fraction"] > 0.8 > walking["still_fraction"]
    (two, _) = arena.play(player(1, "hard"), player(2, "medium"), range(1), record=1)
    for busy in two.styles or ():
        assert busy["trigger_fraction"] > 0 and busy["hits_per_minute"] > 0 and 0 < busy["focus_fraction"] <= 1
        assert 0 < busy["hit_distance"] < 40 and busy["nearest_friend"] < 2 * busy["spread"] < 80
        assert 0 < busy["zone_fraction"] < 1 and 0 < busy["heat"] < 1


def test_each_side_of_a_recording_has_its_own_style():
    arena = echelon.Contest(echelon.signature(SMALL))
    (one, other) = arena.play(player(1, "hard"), player(2, f"{__name__}:Still"), range(1), record=1)
    for result in (one, other):
        recording = Recording(result.recording or b"")
        assert (
            result.styles is not None
            and (echelon.style(recording, BLUE), echelon.style(recording, RED)) == result.styles
        )
        assert result.styles[1]["trigger_fraction"] == 0, "red is the second player, wherever it stands"


def test_another_roster_is_another_league(tmp_path):
    with create_league(tmp_path, echelon.signature(SMALL), echelon.SCRIPTED, echelon.ANCHOR) as league:
        league.require(echelon.Contest(league.signature).signature)
        with pytest.raises(LeagueError, match="roster '5v5' here and '10v10' there"):
            league.require(echelon.signature(Setting("10v10", (40, 40), 120)))
        assert league.signature["map_version"] == MAP_VERSION, "other maps would be other matches"
