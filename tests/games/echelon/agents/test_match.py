"""Two sides play: the same match everywhere, from both sides, and figures that mean what they say."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from protege import ProtegeError
from protege.games.echelon.agents import match as matches
from protege.games.echelon.agents.match import (
    BadMatch,
    Match,
    Setting,
    both_sides,
    checkpoint_of,
    evaluate,
    fight,
    find_player,
    play,
)
from protege.games.echelon.recordings.battle_report import report_lines
from protege.games.echelon.recordings.recording import Recording
from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME
from protege.games.echelon.rules.events import KILL
from protege.games.echelon.rules.sim import Actions, Battles, Flags
from protege.games.echelon.task.rewards import DAMAGE, DYING, KILLS, PARTS
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.world.mechs import BLUE, NOBODY, RED
from protege.games.players import UnknownPlayer

SMALL = Setting("5v5", (40, 40), 240)


def test_the_same_seed_is_the_same_match_whatever_the_batch_and_the_threads(monkeypatch):
    wanted = both_sides(4, seed=3)
    alone = [play(Teacher("hard"), Teacher("medium"), [match], SMALL)[0] for match in wanted]
    assert play(Teacher("hard"), Teacher("medium"), wanted, SMALL) == alone
    assert play(Teacher("hard"), Teacher("medium"), wanted, SMALL, threads=2) == alone
    monkeypatch.setattr(matches, "BATCH", 3)  # places are taken again while others still play
    assert play(Teacher("hard"), Teacher("medium"), wanted, SMALL) == alone
    assert len({result.seconds for result in alone}) > 4


def test_recordings_of_a_match_are_the_same_in_any_batch():
    one: dict[int, bytes] = {}
    many: dict[int, bytes] = {}
    play(Teacher("hard"), Teacher("easy"), [Match(9)], SMALL, recorded=one.__setitem__)
    play(Teacher("hard"), Teacher("easy"), [Match(8), Match(9), Match(9, True)], SMALL, recorded=many.__setitem__)
    assert many[1] == one[0] != many[2]
    assert sorted(many) == [0, 1, 2]


def test_a_match_ends_when_the_battle_does_and_not_before():
    """Play defects 1 and 2: matches stopped at the first death, and ran on for ever after a win by the zone."""
    results = play(Teacher("medium"), Teacher("medium"), both_sides(8, seed=1), SMALL)
    for result in results:
        assert result.decisions <= 240 and result.seconds == result.decisions / 4
        if result.ending == BY_ELIMINATION:
            assert min(result.living) == 0
        elif result.ending == BY_SCORE:
            assert max(result.score) >= 30 and min(result.living) > 0
        else:
            assert result.ending == BY_TIME and result.decisions == 240
    assert any(min(result.living) < 5 and result.decisions > 60 for result in results), "play went on after a death"
    assert {result.ending for result in results} >= {BY_SCORE} or {BY_ELIMINATION}


def test_the_winner_is_who_the_rules_say():
    results = play(Teacher("hard"), Teacher("trivial"), both_sides(4, seed=2), SMALL)
    assert sum(result.winner == BLUE for result in results) >= 7
    for result in results:
        if result.ending != BY_ELIMINATION and result.winner != NOBODY:
            assert result.score[result.winner] >= result.score[1 - result.winner]
        assert result.kills[BLUE] <= 5 - result.living[RED]


def test_changing_places_changes_places():
    found: dict[int, bytes] = {}
    play(Teacher("easy"), Teacher("easy"), [Match(4), Match(4, True)], SMALL, recorded=found.__setitem__)
    here, there = (Recording(found[number]) for number in (0, 1))
    for name in ("x", "y", "yaw"):
        assert (here.frame(0).mechs[name][:5] == there.frame(0).mechs[name][5:]).all()
        assert (here.frame(0).mechs[name][5:] == there.frame(0).mechs[name][:5]).all()
    assert (here.materials(0) == there.materials(0)).all()
    assert here.header["recipe"]["variant"]["corners"]["blue"] == there.header["recipe"]["variant"]["corners"]["red"]
    with pytest.raises(BadMatch, match="the sides of roster 1v0 differ"):
        play(Teacher("easy"), Teacher("easy"), [Match(4, True)], replace(SMALL, roster="1v0"))


def test_a_measurement_has_the_keys_of_the_contract_and_adds_up():
    row = evaluate("medium", "trivial", matches=12, seed=5, setting=SMALL)
    keys = "blue red matches seed blue_win_rate blue_win_rate_low blue_win_rate_high draws length_mean seconds"
    assert set(keys.split()) <= set(row)
    assert json.loads(json.dumps(row)) == row
    assert row["blue_win_rate_low"] < row["blue_win_rate"] <= row["blue_win_rate_high"]
    assert row["endings_elimination"] + row["endings_score"] + row["endings_time"] == 12
    mirrored = evaluate("trivial", "medium", matches=12, seed=5, setting=SMALL)
    assert mirrored["blue_win_rate"] < 0.5 < row["blue_win_rate"]
    again = evaluate("medium", "trivial", matches=12, seed=5, setting=SMALL, threads=2)
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in row.items() if k != "seconds"}
    for bad in (0, 1, 7):
        with pytest.raises(BadMatch, match=f"matches must be 2, 4, 6 ...; got {bad}"):
            evaluate("medium", "easy", matches=bad, setting=SMALL)


def test_a_fight_is_recorded_and_told(tmp_path):
    out = tmp_path / "fight.rec"
    row = fight("hard", "medium", out, seed=3, setting=SMALL)
    assert row["file"] == str(out) and row["bytes"] == out.stat().st_size
    assert row["winner"] in ("blue", "red", "nobody")
    lines = list(report_lines(Recording.open(out)))
    assert lines[0].startswith("hard (blue) against medium (red): 5v5, map seed ")
    ending = [line for line in lines if " wins " in line]
    assert len(ending) == 1 and (row["winner"] in ending[0])
    recording = Recording.open(out)
    assert recording.header["result"]["score"] == [row["blue_score"], row["red_score"]]
    assert recording.frames - 1 == row["length"] * 4


def test_players_are_found_by_name():
    with pytest.raises(UnknownPlayer, match="no player named 'mediun': use trivial, .*did you mean"):
        find_player("mediun")
    with pytest.raises(ProtegeError, match="cannot make player 'nowhere:Nobody'"):
        find_player("nowhere:Nobody")
    with pytest.raises(ProtegeError, match=r"has no method act\(battles, mechs, actions\)"):
        find_player("builtins:dict")


def test_anybody_can_bring_a_player_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "my_player.py").write_text(
        "class Still:\n    def act(self, battles, mechs, actions):\n        actions.move[mechs] = 0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    row = evaluate("medium", "my_player:Still", matches=4, setting=SMALL)
    assert row["blue_win_rate"] == 1.0


def test_random_play_loses_to_the_lowest_level():
    assert evaluate("trivial", "random", matches=12, setting=SMALL)["blue_win_rate"] > 0.6


def test_players_see_only_battles_that_go_on():
    class Watcher:
        def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
            assert not battles.over.any()
            assert mechs.shape == (battles.count, battles.mech_count)
            assert (battles.members.team[np.nonzero(mechs)[1]] == RED).all()

    play(Teacher("medium"), Watcher(), both_sides(2, 1), replace(SMALL, length=40))


class Thoughtful(Teacher):
    """A teacher that tells how many decisions it has made, and each mech's number."""

    channels = {"value": ("decisions", "mech")}

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        super().act(battles, mechs, actions)
        self.decisions = getattr(self, "decisions", 0) + 1
        self.shape = mechs.shape

    def thoughts(self) -> dict[str, np.ndarray]:
        told = np.zeros((*self.shape, 2), np.float32)
        told[:, :, 0] = self.decisions
        told[:, :, 1] = np.arange(self.shape[1])
        return {"value": told}


def test_what_a_player_thinks_is_recorded_for_its_own_side():
    found: dict[int, bytes] = {}
    play(Thoughtful("easy"), Teacher("easy"), [Match(5)], Setting("2v2", (40, 40), 12), recorded=found.__setitem__)
    recording = Recording(found[0])
    value = recording.frame(7).channels["value"]
    assert value[:2].tolist() == [[7.0, 0.0], [7.0, 1.0]]
    assert np.isnan(value[2:]).all() and np.isnan(recording.frame(0).channels["value"]).all()


def test_what_its_decisions_were_worth_is_recorded_beside_it():
    found: dict[int, bytes] = {}
    matches_ = [Match(5), Match(6), Match(5, swapped=True)]
    play(Thoughtful("hard"), Teacher("easy"), matches_, Setting("5v5", (40, 40), 160), recorded=found.__setitem__)
    for contents in found.values():
        recording = Recording(contents)
        frames, _ = recording.everything()
        rewards, last = frames["reward"][1:], recording.frame(recording.frames - 1)
        assert recording.channels["reward"] == list(PARTS) and np.isnan(rewards[:, 5:]).all()
        # A tenth of a point for 100 HP, a fifth for a kill, and as much taken off for a death.
        assert rewards[:, :5, DAMAGE].sum(0) == pytest.approx(0.001 * last.mechs["dealt"][:5], abs=1e-4)
        kills = frames["events"][frames["events"]["kind"] == KILL]["who"]
        assert rewards[:, :5, KILLS].sum(0) == pytest.approx([0.2 * (kills == i).sum() for i in range(5)])
        assert rewards[:, :5, DYING].sum(0) == pytest.approx(-0.2 * (last.mechs["hp"][:5] <= 0))


# --- the champion ---------------------------------------------------------------------------------------------------


def test_the_champion_is_small_has_a_card_and_beats_a_scripted_squad():
    file = checkpoint_of("champion")
    assert file is not None and file.stat().st_size < 10e6
    assert "# Model card" in file.with_suffix(".md").read_text()
    found = evaluate("champion", "hard", matches=8, seed=3)
    assert found["blue_win_rate"] >= 0.75
