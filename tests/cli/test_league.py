"""`protege league` as a person types it."""

import json
import sqlite3
import subprocess
import sys
import time
from typing import Any

import pytest

from protege.cli.__main__ import main
from protege.games.tempest.agents import contest
from protege.league.league import create_league, open_league
from protege.league.ledger import CANDIDATE, MEMBER, RETIRED
from protege.league.matchmaking import Rules
from tests.league.league_games import add_member, make_checkpoint, make_league, meet, recount


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEGE_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: Any, *words: str) -> Any:
    assert main(["league", *words]) == 0
    return capsys.readouterr().out.splitlines()


def last(lines: list[str]) -> Any:
    found = json.loads(lines[-1])
    assert all(not isinstance(value, dict | list) for value in found.values()), "flat"
    return found


def refused(capsys: Any, *words: str) -> Any:
    assert main(["league", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_league_is_made_listed_and_copied(folder, capsys):
    made = last(run(capsys, "init", "mine", "--game", "tempest", "--limit", "7", "--json"))
    assert made == {"league": str(folder / "runs" / "mine"), "game": "tempest", "entries": 3}
    with open_league("mine") as league:
        assert league.rules.limit == 7 and league.anchor.name == "teacher"
    assert last(run(capsys, "init", "elsewhere/other", "--copy", "mine", "--json"))["entries"] == 3
    assert (folder / "elsewhere" / "other" / "league.sqlite").is_file()
    listed = run(capsys, "list", "mine", "--json")
    assert [json.loads(line)["name"] for line in listed[-4:-1]] == ["teacher", "teacher-full", "random"]
    assert last(listed) == {"league": "mine", "game": "tempest", "entries": 3, "matches": 0, "rated": 0, "pending": 0,
                            "periods": 0}  # fmt: skip
    assert any(line.split()[:2] == ["mine", "tempest"] for line in run(capsys, "list"))
    assert "holds a league already" in refused(capsys, "init", "mine", "--game", "tempest")


def test_an_echelon_league_has_five_levels_and_chance(folder, capsys):
    run(capsys, "init", "squads", "--game", "echelon", "--roster", "5v5")
    with open_league("squads") as league:
        assert [entry.name for entry in league.entries()] == ["random", "trivial", "easy", "medium", "hard", "expert"]
        assert league.signature["roster"] == "5v5" and league.anchor.name == "medium"
    assert "10v11" in refused(capsys, "init", "more", "--game", "echelon", "--roster", "10v11")
    assert "say what is played with --game (tempest, echelon)" in refused(capsys, "init", "more")


@pytest.mark.parametrize(
    ("made", "players"),
    [
        ("--game tempest", ("random", "teacher")),
        ("--game echelon --roster 1v1 --size 40 --length 240", ("medium", "hard")),
    ],
)
def test_a_killed_match_keeps_the_games_that_were_over(folder, capsys, made, players):
    run(capsys, "init", "mine", *made.split())
    command = [sys.executable, "-m", "protege.cli", "league", "match", "mine", *players, "--games", "2000"]
    with open_league("mine") as league:
        process, deadline = subprocess.Popen(command), time.monotonic() + 240
        try:
            while league.counts()["matches"] < 20 and time.monotonic() < deadline:
                assert process.poll() is None
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()
        kept = league.counts()
        assert 20 <= kept["matches"] < 2000 and kept["pending"] == kept["matches"]
        recount(league)
        run(capsys, "match", "mine", *players, "--games", "2")
        assert league.counts()["matches"] == kept["matches"] + 2 and league.counts()["pending"] == 0
        recount(league)


def test_mistakes_are_answered_in_one_line(folder, capsys):
    run(capsys, "init", "mine", "--game", "tempest")
    assert "there is no league 'min'" in refused(capsys, "list", "min")
    assert "no entry 'teachr'; did you mean teacher" in refused(capsys, "show", "mine", "teachr")
    assert "there is no run nobody" in refused(capsys, "add", "mine", "nobody")
    assert "two different players" in refused(capsys, "match", "mine", "teacher", "teacher")
    assert "scripted and stays" in refused(capsys, "retire", "mine", "random")
    wrong = make_checkpoint(folder / "wrong.safetensors", 1.0, kind="echelon-ppo")
    assert "is a checkpoint of echelon-ppo" in refused(capsys, "add", "mine", str(wrong))
    (folder / "runs" / "mine" / "league.sqlite").write_bytes(b"not a league at all" * 100)
    assert "is damaged (file is not a database)" in refused(capsys, "list", "mine")


@pytest.mark.parametrize(
    ("game", "change", "message"),
    [
        ("echelon", {"size": None}, "does not say what its matches are like"),
        ("echelon", {"size": ["a", "b"]}, "does not say what its matches are like"),
        ("echelon", {"rules": "chess"}, "does not say what its matches are like ('chess')"),
        ("echelon", {"roster": "10v11"}, "no roster is called '10v11'"),
        ("tempest", {"level": None}, "does not say what its matches are like"),
        (
            "tempest",
            {"game": "chess"},
            "plays 'chess', which is not among tempest, echelon: say where it is with --game",
        ),
    ],
)
def test_a_league_of_matches_that_nobody_knows_is_refused(folder, capsys, game, change, message):
    run(capsys, "init", "mine", "--game", game)
    with open_league("mine") as league:
        signature, players = {**league.signature, **change}, [entry.name for entry in league.entries()]
    with sqlite3.connect(folder / "runs" / "mine" / "league.sqlite") as database:
        database.execute("UPDATE about SET value = ? WHERE key = 'signature'", (json.dumps(signature),))
    database.close()
    assert message in refused(capsys, "match", "mine", *players[:2])


def test_players_meet_and_are_rated(folder, capsys):
    run(capsys, "init", "mine", "--game", "tempest")
    found = last(run(capsys, "match", "mine", "teacher", "random", "--games", "6", "--threads", "1", "--json"))
    assert found["first"] == "teacher" and found["games"] == 6 and found["score"] >= 4
    assert found["rate_low"] < found["rate"] <= found["rate_high"]
    assert found["rating_first"] == 1500.0 > found["rating_second"], "the anchor stays"
    more = last(run(capsys, "match", "mine", "random", "teacher", "--games", "2", "--threads", "1", "--json"))
    assert more["games"] == 2
    with open_league("mine") as league:
        one, other = league.find("teacher"), league.find("random")
        assert sorted(match["map"] for match in league.matches(one.id)) == list(range(8)), "always new games"
        assert league.payoffs(other.id)[one.id].games == 8
    shown = "\n".join(run(capsys, "show", "mine", "random"))
    assert "how it plays" in shown and "fire share" in shown and "lost against teacher" in shown
    assert any("random" in line and "·" in line for line in run(capsys, "payoff", "mine"))
    flat = last(run(capsys, "payoff", "mine", "--json"))
    assert flat["teacher.random.games"] == 8 and flat["random.teacher.score"] == 1 - flat["teacher.random.score"]


def test_a_tournament_is_played_in_rounds(folder, capsys):
    run(capsys, "init", "mine", "--game", "tempest")
    words = ("tournament", "mine", "--rounds", "2", "--games", "2", "--threads", "1", "--json")
    found = last(run(capsys, *words))
    assert found["matches"] == 12 and found["rating.teacher"] == 1500.0 and found["rating.random"] < 1400
    with open_league("mine") as league:
        assert league.counts() == {"matches": 12, "rated": 12, "pending": 0, "periods": 2}
    two = last(run(capsys, *words, "--player", "random", "--player", "teacher"))
    assert two["matches"] == 4
    assert "at least two players" in refused(capsys, "tournament", "mine", "--player", "random")


def test_a_round_is_one_period_however_many_games_and_old_candidates_stay_out(folder, capsys):
    short = contest.signature(contest.Setting(max_frames=100))
    with create_league(
        folder / "runs" / "mine", short, contest.SCRIPTED, contest.ANCHOR, Rules(period_games=2, newest=0)
    ) as league:
        league.add(make_checkpoint(folder / "old.safetensors", 1.0), name="old")  # no player can be made of it
    found = last(run(capsys, "tournament", "mine", "--rounds", "2", "--games", "2", "--threads", "1", "--json"))
    assert found["matches"] == 12 and "rating.old" not in found
    with open_league("mine") as league:
        assert league.counts() == {"matches": 12, "rated": 12, "pending": 0, "periods": 2}


def test_candidates_are_judged_promoted_and_retired(folder, capsys):
    """By games that are there already, so that nothing has to be played."""
    with make_league(folder / "runs" / "mine") as league:
        best = add_member(league, 1, "best")
        good, bad = (
            league.add(make_checkpoint(folder / f"{name}.safetensors", number), name=name)
            for name, number in (("good", 2.0), ("bad", 3.0))
        )
        meet(league, good, best, 200, 0.8)
        meet(league, bad, best, 200, 0.3)
        league.close_period()
    assert "bad: not promoted" in run(capsys, "promote", "mine", "bad", "--no-play")[0]
    found = run(capsys, "promote", "mine", "--no-play", "--json")
    assert last(found) == {"judged": 2, "promoted": 1, "names": "good"}
    gone = last(run(capsys, "retire", "mine", "best", "--reason", "enough", "--json"))
    assert (gone["league"], gone["name"], gone["kind"]) == ("mine", "best", RETIRED)
    assert "random is scripted: only a candidate can be promoted" in refused(capsys, "promote", "mine", "random")
    with open_league("mine") as league:
        kinds = {entry.name: entry.kind for entry in league.entries()}
        assert kinds["good"] == MEMBER and kinds["bad"] == CANDIDATE and kinds["best"] == RETIRED
        assert league.events()[0]["text"] == "enough"
    assert "best" not in "\n".join(run(capsys, "list", "mine"))
    assert "best" in "\n".join(run(capsys, "list", "mine", "--retired"))


@pytest.mark.slow
def test_the_champion_enters_and_wins(folder, capsys):
    run(capsys, "init", "mine", "--game", "tempest")
    added = last(run(capsys, "add", "mine", "champion", "--name", "champion", "--member", "--json"))
    assert added["name"] == "champion" and added["kind"] == MEMBER and len(added["hash"]) == 64
    found = last(run(capsys, "match", "mine", "champion", "teacher", "--games", "2", "--threads", "1", "--json"))
    assert found["score"] == 2 and found["rating_first"] > 1600


@pytest.mark.parametrize("name", ["tempest", "echelon"])
def test_the_leagues_that_come_along_can_be_opened_but_not_changed(folder, capsys, name):
    listed = run(capsys, "list", name, "--json")
    about = last(listed)
    assert about["game"] == name and about["rated"] > 100 and about["pending"] == 0
    rows = [json.loads(line) for line in listed if line.startswith("{")][:-1]
    assert sum(row["is_anchor"] for row in rows) == 1 and all(row["games"] > 10 for row in rows)
    assert all(row["deviation"] < 120 for row in rows), "rated by enough games to mean something"
    anchor = next(row["name"] for row in rows if row["is_anchor"])
    assert "can only be read: go on with a copy" in refused(capsys, "match", name, anchor, rows[-1]["name"])
    run(capsys, "init", "own", "--copy", name)
    with open_league("own") as league:
        for entry in league.entries():
            league.opponent(entry)  # every copy is whole
