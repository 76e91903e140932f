"""Leagues with real files and real processes: entries, matches, periods, agents, copies, damage, company."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from protege.league.glicko import Played, Rating, period, update
from protege.league.league import (
    League,
    callsign,
    copy_league,
    create_league,
    find_league,
    find_recording,
    league_names,
    open_league,
)
from protege.league.ledger import AGENT, CANDIDATE, FILE, MEMBER, RETIRED, SCRIPTED, Game, LeagueError, Result
from protege.league.matchmaking import LEAGUE_EXPLOITER, MAIN, MAIN_EXPLOITER, Rules, draw_probabilities
from protege.runs.checkpoints import CheckpointError, CheckpointMismatch
from protege.runs.run import RunError, create_run, plan_prune
from tests.killing import kill_filers
from tests.league.league_games import SIGNATURE, add_member, make_checkpoint, make_league, meet

ROOT = Path(__file__).parents[2]


@pytest.fixture
def league(tmp_path):
    with make_league(tmp_path / "league") as made:
        yield made


def tamper(league, change, *values):
    """Change a closed league behind its back, as somebody could who passes it on."""
    with sqlite3.connect(league.path) as database:
        database.execute(change, values)
    database.close()


# --- entries ---


def test_a_league_begins_with_its_scripted_players_and_the_anchor_is_1500(league):
    assert [(entry.name, entry.kind) for entry in league.entries()] == [
        ("random", SCRIPTED), ("teacher", SCRIPTED), ("teacher-full", SCRIPTED),
    ]  # fmt: skip
    assert league.anchor.name == "teacher" and league.anchor.rating == Rating(1500.0, 0.0)
    assert league.by_name("random").rating == Rating(1500.0, 350.0, 0.06)
    assert league.game == "tempest" and league.rules == Rules()


def test_a_league_is_not_made_over_another(league):
    with pytest.raises(LeagueError, match="holds a league already: choose another folder"):
        make_league(league.folder)


def test_a_run_and_a_league_never_share_a_folder(league, tmp_path):
    with pytest.raises(RunError, match="holds a league: choose another name for the run"):
        create_run("echelon", "ppo", {}, [], name="league", folder=tmp_path)
    assert not (league.folder / "lock").exists(), "nothing was left there"
    create_run("echelon", "ppo", {}, [], name="run", folder=tmp_path).close()
    with pytest.raises(LeagueError, match="holds a run: choose another name or folder for the league"):
        make_league(tmp_path / "run")
    with pytest.raises(LeagueError, match="holds a run"):
        copy_league(league, tmp_path / "run")
    shutil.copyfile(league.path, tmp_path / "run" / FILE)  # somebody did it by hand
    assert plan_prune(["run"], whole=True, folder=tmp_path) == []


def test_a_checkpoint_is_copied_under_the_hash_of_its_contents_and_outlives_the_original(league, tmp_path):
    original = make_checkpoint(tmp_path / "best.safetensors", 1.0)
    entry = league.add(original, name="pupil", run="one", step=500)
    copy = Path(league.opponent(entry).player)
    assert copy.name == f"{entry.hash}.safetensors" and copy.read_bytes() == original.read_bytes()
    assert not os.access(copy, os.W_OK) or os.geteuid() == 0
    make_checkpoint(original, 2.0)  # as a training that goes on would
    other = league.add(original)
    assert copy.read_bytes() != original.read_bytes() and other.name == callsign(other.hash or "")
    assert league.find("pupil") == league.find((entry.hash or "")[:8]) == entry
    assert sorted(path.suffix for path in (league.folder / "entries").iterdir()) == [".safetensors"] * 2


def test_the_same_contents_are_one_entry_and_a_name_is_used_once(league, tmp_path):
    one = league.add(make_checkpoint(tmp_path / "a.safetensors", 1.0), name="pupil")
    copy = shutil.copyfile(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert league.add(copy, name="again") == one
    with pytest.raises(LeagueError, match="has an entry 'pupil' already: choose another name"):
        league.add(make_checkpoint(tmp_path / "c.safetensors", 2.0), name="pupil")


def test_unknown_names_are_answered_with_similar_ones(league, tmp_path):
    with pytest.raises(LeagueError, match="has no entry 'teachr'; did you mean teacher"):
        league.find("teachr")
    with pytest.raises(LeagueError, match="there is no league 'nowhere': make one with protege league init nowhere"):
        find_league("nowhere", tmp_path)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda path: path.write_bytes(b""), CheckpointError, "is cut short"),
        (lambda path: path.write_bytes(path.read_bytes()[:-3]), CheckpointError, "cut short"),
        (
            lambda path: path.write_bytes(b"PK\x03\x04 any zip"),
            CheckpointError,
            "is a pickle, which Protege never opens",
        ),
        (
            lambda path: path.write_bytes(b"\x80\x04 a pickle"),
            CheckpointError,
            "is a pickle, which Protege never opens",
        ),
        (lambda path: flip(path, -1), CheckpointError, "is damaged, its contents do not match"),
        (lambda path: path.unlink(), CheckpointError, "there is no checkpoint"),
        (lambda path: make_checkpoint(path, 1.0, kind="echelon-ppo"), CheckpointMismatch, "is a echelon-ppo, expected"),
        (lambda path: make_checkpoint(path, 1.0, task_version=9), CheckpointMismatch, "trained on task version 9"),
        (
            lambda path: make_checkpoint(path, 1.0, kind="tempest-recording"),
            CheckpointMismatch,
            "expected a checkpoint",
        ),
    ],
)
def test_a_foreign_or_damaged_checkpoint_is_refused_in_one_line_and_leaves_nothing(
    league, tmp_path, change, error, message
):
    path = make_checkpoint(tmp_path / "given.safetensors", 1.0)
    change(path)
    with pytest.raises(error, match=message) as caught:
        league.add(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert list(league.folder.glob("entries/*")) == [] and len(league.entries()) == 3


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    if not os.access(path, os.W_OK):
        path.chmod(0o644)
    path.write_bytes(content)


def test_a_copy_that_was_changed_or_lost_is_refused(league):
    member = add_member(league, 1)
    path = Path(league.opponent(member).player)
    flip(path, -1)
    with pytest.raises(LeagueError, match="the checkpoint of member-1 is damaged, .* is not what was added: retire it"):
        league.opponent(member)
    path.unlink()
    with pytest.raises(LeagueError, match="the checkpoint of member-1 cannot be read"):
        league.opponent(member)


def test_only_plain_names_are_scripted_players(league):
    """A game imports what looks like package.module:Class, and a league may come from anywhere."""
    league.close()
    for player in ("os:system", "../other/best.safetensors", "/tmp/x", "A B"):
        tamper(league, "UPDATE entries SET player = ? WHERE name = 'random'", player)
        with open_league(str(league.folder)) as opened:
            with pytest.raises(LeagueError, match="is damaged .* is no scripted player") as caught:
                opened.opponent(opened.find("random"))
            assert "\n" not in str(caught.value)


# --- matches and periods ---


def test_a_period_is_rated_from_the_ratings_before_it_and_written_together(league):
    a, b, c = (add_member(league, number) for number in (1, 2, 3))
    results = [Result(a.id, b.id, 1.0, 0), Result(b.id, c.id, 0.5, 0), Result(c.id, league.anchor.id, 0.0, 0)]
    before = {entry.id: entry.rating for entry in league.entries()}
    league.file(results[:1])
    assert league.by_id(a.id).rating == a.rating, "not before the period ends"
    league.file(results[1:], ends_period=True)
    after = period(before, [Played(result.first, result.second, result.score) for result in results], league.anchor.id)
    assert {entry.id: entry.rating for entry in league.entries()} == after
    assert [league.by_id(entry.id).games for entry in (a, b, c)] == [1, 2, 2]
    assert league.history(a.id)[-1][2:] == (after[a.id], 1)
    assert league.counts() == {"matches": 3, "rated": 3, "pending": 0, "periods": 1}


def test_a_period_ends_by_itself_when_enough_was_played(tmp_path):
    with make_league(tmp_path / "league", Rules(period_games=10)) as league:
        for _ in range(25):
            meet(league, league.by_name("random"), league.by_name("teacher"), 1, 0.2)
        assert league.counts() == {"matches": 25, "rated": 25, "pending": 5, "periods": 2}
        one, other = league.by_name("random"), league.by_name("teacher-full")
        league.file([Result(one.id, other.id, 1.0, number) for number in range(20)], ends_period=False)
        assert league.counts() == {"matches": 45, "rated": 45, "pending": 25, "periods": 2}, "unless it is to stay open"


def test_payoffs_count_wins_draws_and_losses_from_both_sides(league):
    a, b = add_member(league, 1), add_member(league, 2)
    scores = [1.0, 1.0, 0.5, 0.0]
    league.file([Result(a.id, b.id, score, number) for number, score in enumerate(scores)])
    mine, theirs = league.payoffs(a.id)[b.id], league.payoffs(b.id)[a.id]
    assert mine[:3] == (2, 1, 1) and theirs[:3] == (1, 1, 2) and mine.score == 2.5 and mine.games == 4


def test_the_same_match_cannot_count_twice(league):
    a, b = add_member(league, 1), add_member(league, 2)
    assert league.reserve_maps(a.id, b.id, 3) == range(3)
    assert league.reserve_maps(b.id, a.id, 2) == range(3, 5), "whoever is named first"
    assert league.reserve_maps(a.id, league.anchor.id, 1) == range(1)
    league.file([Result(a.id, b.id, 1.0, 0), Result(a.id, b.id, 1.0, 0, swapped=True)])
    with pytest.raises(LeagueError, match="UNIQUE"):
        league.file([Result(a.id, b.id, 1.0, 1), Result(b.id, a.id, 0.0, 0)])
    assert league.counts()["matches"] == 2, "all of a filing, or none of it"


def test_recordings_are_kept_of_the_newest_matches_of_everybody(tmp_path):
    with make_league(tmp_path / "league", Rules(recordings=2)) as league:
        a, b, c = (add_member(league, number) for number in (1, 2, 3))
        league.file([Result(a.id, c.id, 1.0, 0, recording=b"the only one of c")])
        for number in range(5):
            league.file([Result(a.id, b.id, 1.0, number, recording=b"%d" % number)])
        kept = {path.name: path.read_bytes() for path in league.recordings.iterdir()}
        assert kept == {"1.rec": b"the only one of c", "5.rec": b"3", "6.rec": b"4"}
        assert [match["recording"] for match in league.matches(a.id, recorded=True)] == ["6.rec", "5.rec", "1.rec"]
        assert find_recording("league", "6.rec", tmp_path).read_bytes() == b"4"
        for name, file, error in (("league", "../league.sqlite", LeagueError), ("../x", "6.rec", RunError)):
            with pytest.raises(error):
                find_recording(name, file, tmp_path)


def test_no_other_file_is_deleted_whatever_the_rows_say(tmp_path):
    victims = [tmp_path / "diary.txt", tmp_path / "letter.txt"]
    for victim in victims:
        victim.write_text("mine")
    with make_league(tmp_path / "league", Rules(recordings=1)) as league:
        a, b = add_member(league, 1), add_member(league, 2)
        for number in range(2):
            league.file([Result(a.id, b.id, 1.0, number, recording=b"seen")])
    for id, name in ((1, str(victims[0])), (2, "../../letter.txt")):
        tamper(league, "UPDATE matches SET recording = ? WHERE id = ?", name, id)
    with open_league(str(league.folder)) as opened:
        opened.file([Result(a.id, b.id, 1.0, 9, recording=b"new")])
        assert [match["recording"] for match in opened.matches(a.id, recorded=True)] == ["3.rec"]
    assert all(victim.exists() for victim in victims)


def test_a_recording_that_cannot_be_written_is_explained_and_nothing_is_filed(league):
    (league.folder / "recordings").write_text("in the way")
    with pytest.raises(LeagueError, match="no recording can be kept in .*recordings: File exists"):
        league.file([Result(1, 2, 1.0, 0, recording=b"seen")])
    assert league.counts()["matches"] == 0


def test_styles_are_kept_with_their_matches(league):
    a, b = add_member(league, 1), add_member(league, 2)
    league.file([Result(a.id, b.id, 1.0, 0, styles=({"speed": 1.0}, {"speed": 3.0}))])
    league.file([Result(b.id, a.id, 1.0, 1, styles=({"speed": 5.0}, {"speed": 2.0}))])
    assert league.styles(a.id) == [{"speed": 2.0}, {"speed": 1.0}] and league.styles(b.id)[0] == {"speed": 5.0}


# --- who enters and who leaves ---


def test_the_league_stays_at_its_limit_over_50_promotions_and_keeps_the_anchor(tmp_path):
    """Newcomers get stronger and stronger: who is left are the newest, and every scripted player."""
    luck = random.Random(1)
    with make_league(tmp_path / "league", Rules(limit=20)) as league:
        for number in range(50):
            checkpoint = make_checkpoint(tmp_path / "new.safetensors", float(number))
            new, results = league.add(checkpoint, name=f"member-{number}"), []
            for other in [entry for entry in league.entries(MEMBER, SCRIPTED) if entry.id != new.id]:
                strength = int(other.name.split("-")[1]) if other.hash else -30
                chance = 1 / (1 + 10 ** (20 * (strength - number) / 400))
                results += [Result(new.id, other.id, float(luck.random() < chance), game) for game in range(2)]
            league.file(results, ends_period=True)
            league.promote(new, "in a test")
            assert len(league.entries(MEMBER)) == min(number + 1, 20)
            assert len(league.entries(SCRIPTED)) == 3 and league.by_name("teacher").rating == Rating(1500.0, 0.0)
        left = {int(entry.name.split("-")[1]) for entry in league.entries(MEMBER)}
        assert sum(left) / 20 > 35 and len(league.entries(RETIRED)) == 30
        retired = league.entries(RETIRED)[0]
        assert league.payoffs(retired.id) and league.history(retired.id), "its history stays"


def test_the_limit_holds_however_a_member_came_in(tmp_path):
    with make_league(tmp_path / "league", Rules(limit=2, newest=1, exploiter_games=40)) as league:
        for number in range(4):
            add_member(league, number)
            assert len(league.entries(MEMBER)) <= 2, "by hand"
        main, spoiler = league.agent("mine"), league.agent("spoiler", MAIN_EXPLOITER)
        target = league.submit(main.id, make_checkpoint(tmp_path / "a.safetensors", 11.0), 1)
        copy = league.submit(spoiler.id, make_checkpoint(tmp_path / "b.safetensors", 12.0), 1)
        league.report(spoiler.id, [Game(target.id, 1.0)] * 40)
        league.reset(spoiler.id, league.reset_due(spoiler.id))
        assert league.by_id(copy.id).kind == MEMBER and len(league.entries(MEMBER)) == 2, "by its work"


def test_a_candidate_passes_the_gate_by_its_games(tmp_path):
    with make_league(tmp_path / "league", Rules(gate_games=40, gate_top=2)) as league:
        first = league.add(make_checkpoint(tmp_path / "a.safetensors", 1.0), name="first")
        assert league.verdict(first).missing == ((league.anchor.id, 40),), "while there is no member, the anchor"
        meet(league, first, league.anchor, 40, 0.3)
        assert not league.verdict(first).passed
        meet(league, first, league.anchor, 100, 0.9)
        assert league.verdict(first).passed
        league.promote(first, "the first")
        second = league.add(make_checkpoint(tmp_path / "b.safetensors", 2.0), name="second")
        assert league.verdict(second).missing == ((first.id, 40),)
        meet(league, second, first, 40, 0.9)
        assert league.verdict(second).passed
        league.promote(second, "better")
        with pytest.raises(LeagueError, match="second is member: only a candidate can be promoted"):
            league.promote(league.find("second"), "again")
        with pytest.raises(LeagueError, match="random is scripted: only a candidate can be promoted"):
            league.verdict(league.find("random"))
        assert [event["kind"] for event in league.events()] == ["promoted", "added", "promoted", "added"]


def test_scripted_players_never_leave(league):
    with pytest.raises(LeagueError, match="teacher is scripted and stays"):
        league.retire(league.anchor, "no")
    member = add_member(league, 1)
    league.retire(member, "by hand")
    assert league.find("member-1").kind == RETIRED


# --- agents ---


def test_an_agent_is_found_again_by_its_run(league):
    agent = league.agent("mine")
    assert agent.kind == AGENT and agent.role == MAIN and league.agent("mine") == agent
    with pytest.raises(LeagueError, match="mine is in league league as main, not as main exploiter"):
        league.agent("mine", MAIN_EXPLOITER)
    with pytest.raises(LeagueError, match="is an agent and changes as it learns"):
        league.opponent(agent)


def test_training_games_rate_the_agent_alone(league):
    agent, member = league.agent("mine"), add_member(league, 1)
    league.report(agent.id, [Game(member.id, 1.0, 11), Game(member.id, 0.0, 12), Game(league.anchor.id, 0.5, 13)])
    league.close_period()
    anchor = league.anchor.rating
    assert league.by_id(agent.id).rating == update(Rating(), [(Rating(), 1.0), (Rating(), 0.0), (anchor, 0.5)])
    assert league.find("member-1").rating == Rating() and league.find("member-1").games == 0
    assert league.payoffs(member.id) == {} == league.payoffs(member.id, rated=False)
    assert league.payoffs(agent.id, rated=False)[member.id][:3] == (1, 0, 1)


def test_old_training_games_count_less_and_less(league):
    """A hundred losses and then fifty wins: nearly even by all games, good by the recent ones."""
    agent = league.agent("mine")
    league.report(agent.id, [Game(league.anchor.id, 0.0)] * 100 + [Game(league.anchor.id, 1.0)] * 50)
    payoff = league.payoffs(agent.id, rated=False)[league.anchor.id]
    won = sum(0.98**i for i in range(50))
    lost = sum(0.98**i for i in range(50, 150))
    assert payoff[:3] == (50, 0, 100) and payoff.recent == pytest.approx((won, won + lost))


def test_opponents_are_drawn_as_often_as_the_stated_weights_say(tmp_path):
    """Chi-square of 20,000 draws against the probabilities, twelve kinds, 99.9 % quantile of 11 degrees: 31.3."""
    with make_league(tmp_path / "league") as league:
        agent = league.agent("mine")
        for number in range(9):
            member = add_member(league, number)
            meet(league, member, league.anchor, 12, 0.1 + 0.1 * number, seed=number)
            league.report(agent.id, [Game(member.id, float(i < number)) for i in range(9)])
        league.close_period()
        me, pool = league.by_id(agent.id), league.entries(SCRIPTED, MEMBER)
        recent = {other: payoff.recent for other, payoff in league.payoffs(agent.id, rated=False).items()}
        stated = draw_probabilities(me, pool, recent, league.rules)
        assert league.opponents(agent.id) == (pool, stated.tolist()) and len(pool) == 12
        assert stated.max() > 2 * stated.min()


def test_the_newest_candidates_are_opponents_too_and_the_retired_are_not(tmp_path):
    with make_league(tmp_path / "league", Rules(newest=2)) as league:
        agent = league.agent("mine")
        for number in range(4):
            league.submit(agent.id, make_checkpoint(tmp_path / "now.safetensors", float(number)), 100 * number)
        league.retire(add_member(league, 77), "by hand")
        pool, _ = league.opponents(agent.id)
        assert [entry.name for entry in pool] == ["random", "teacher", "teacher-full", "mine@200", "mine@300"]


def test_copies_of_an_agent_remember_where_they_come_from(league, tmp_path):
    agent = league.agent("mine")
    first = league.submit(agent.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 100)
    second = league.submit(agent.id, make_checkpoint(tmp_path / "b.safetensors", 2.0), 200)
    again = league.submit(agent.id, tmp_path / "b.safetensors", 200)
    assert first.parent is None and second.parent == first.id and again == second
    assert (first.kind, first.role, first.run, first.step) == (CANDIDATE, MAIN, "mine", 100)
    main = league.current_main()
    assert main is not None and main.name == "mine@200"


def test_an_agent_that_begins_with_an_entrys_weights_is_its_child(league, tmp_path):
    main, spoiler = league.agent("mine"), league.agent("spoiler", MAIN_EXPLOITER)
    target = league.submit(main.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 100)
    league.note_origin(spoiler.id, make_checkpoint(tmp_path / "b.safetensors", 2.0))
    assert league.by_id(spoiler.id).parent is None, "nobody's"
    league.note_origin(spoiler.id, tmp_path / "a.safetensors")
    copy = league.submit(spoiler.id, tmp_path / "b.safetensors", 10)
    assert league.by_id(spoiler.id).parent == copy.parent == target.id


def test_a_main_exploiter_meets_the_current_main_and_nobody_else(league, tmp_path):
    main, exploiter = league.agent("mine"), league.agent("spoiler", MAIN_EXPLOITER)
    assert [entry.name for entry in league.opponents(exploiter.id)[0]] == ["teacher"], "there is no main yet"
    league.submit(main.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 100)
    add_member(league, 5)
    assert [entry.name for entry in league.opponents(exploiter.id)[0]] == ["mine@100"]
    league.submit(main.id, make_checkpoint(tmp_path / "b.safetensors", 2.0), 200)
    assert [entry.name for entry in league.opponents(exploiter.id)[0]] == ["mine@200"]


def test_an_exploiter_that_wins_begins_again_and_its_copy_becomes_a_member(league, tmp_path):
    main, spoiler = league.agent("mine"), league.agent("spoiler", MAIN_EXPLOITER)
    target = league.submit(main.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 100)
    league.report(spoiler.id, [Game(target.id, float(i % 2)) for i in range(100)])
    assert league.reset_due(spoiler.id) == ""
    league.report(spoiler.id, [Game(target.id, 1.0)] * 60)
    reason = league.reset_due(spoiler.id)
    assert reason.startswith("scored 8") and league.reset_due(main.id) == ""
    copy = league.submit(spoiler.id, make_checkpoint(tmp_path / "c.safetensors", 3.0), 50)
    again = league.reset(spoiler.id, reason)
    assert league.by_id(copy.id).kind == MEMBER and league.by_id(spoiler.id).kind == RETIRED
    assert (again.name, again.role, again.games, again.rating) == ("spoiler-2", MAIN_EXPLOITER, 0, Rating())
    assert league.agent("spoiler", MAIN_EXPLOITER) == again and league.reset_due(again.id) == ""
    later = league.submit(again.id, make_checkpoint(tmp_path / "d.safetensors", 4.0), 90)
    assert league.copies("spoiler") == [league.by_id(copy.id), later], "of both lives"


def test_a_lucky_game_against_a_new_copy_is_no_work_done(league, tmp_path):
    main, spoiler = league.agent("mine"), league.agent("spoiler", MAIN_EXPLOITER)
    old = league.submit(main.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 100)
    league.report(spoiler.id, [Game(old.id, 0.0)] * 200)
    new = league.submit(main.id, make_checkpoint(tmp_path / "b.safetensors", 2.0), 200)
    league.report(spoiler.id, [Game(new.id, 1.0)] * 39)
    copy = league.submit(spoiler.id, make_checkpoint(tmp_path / "c.safetensors", 3.0), 50)
    assert league.reset_due(spoiler.id) == "", "39 games, 40 are needed against whom it has to beat"
    league.report(spoiler.id, [Game(new.id, 1.0)])
    assert league.reset_due(spoiler.id).startswith("scored 100%")
    league.reset(spoiler.id, "in a test")
    assert league.by_id(copy.id).kind == MEMBER


def test_a_league_exploiter_has_to_beat_every_member(league, tmp_path):
    hunter, weak = league.agent("hunter", LEAGUE_EXPLOITER), league.by_name("random")
    league.report(hunter.id, [Game(weak.id, 1.0)] * 500)
    assert league.reset_due(hunter.id) == "", "the weakest says nothing: while nobody has learned, the anchor does"
    first, second = add_member(league, 1), add_member(league, 2)
    league.submit(hunter.id, make_checkpoint(tmp_path / "own.safetensors", 3.0), 1)  # its own copy is no target
    league.report(hunter.id, [Game(first.id, 1.0)] * 40)
    assert league.reset_due(hunter.id) == "", "it has not met the second"
    league.report(hunter.id, [Game(second.id, float(number % 2)) for number in range(60)])
    assert league.reset_due(hunter.id) == "", "half against the second"
    league.report(hunter.id, [Game(second.id, 1.0)] * 30)
    assert league.reset_due(hunter.id).startswith("scored 7"), "its recent score there, the lower one"


def test_a_league_exploiter_meets_everybody_and_ends_with_its_budget(tmp_path):
    with make_league(tmp_path / "league", Rules(exploiter_budget=200)) as league:
        agent = league.agent("hunter", LEAGUE_EXPLOITER)
        assert len(league.opponents(agent.id)[0]) == 3
        league.report(agent.id, [Game(league.anchor.id, 0.0)] * 199)
        assert league.reset_due(agent.id) == ""
        league.report(agent.id, [Game(league.anchor.id, 0.0)])
        copy = league.submit(agent.id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 9)
        league.reset(agent.id, league.reset_due(agent.id))
        assert league.by_id(copy.id).kind == CANDIDATE, "it did not do its work"


def test_the_current_main_is_not_retired_however_weak(tmp_path):
    with make_league(tmp_path / "league", Rules(limit=1)) as league:
        main = league.submit(league.agent("mine").id, make_checkpoint(tmp_path / "a.safetensors", 1.0), 1)
        league.promote(main, "first")
        other = add_member(league, 5)
        meet(league, other, main, 30, 1.0)
        league.close_period()
        assert league.by_id(main.id).kind == MEMBER and league.by_id(other.id).kind == RETIRED


# --- files ---


def test_a_league_that_can_only_be_read_takes_no_copy(league, tmp_path):
    league.close()
    with League(league.folder, read_only=True) as there, pytest.raises(LeagueError, match="can only be read"):
        there.add(make_checkpoint(tmp_path / "a.safetensors", 1.0))
    assert [path.name for path in league.folder.iterdir()] == [FILE]


@pytest.mark.parametrize("signature", ["{}", '{"game": "tempest"}', '{"game": "tempest", "task_version": []}', "7"])
def test_a_league_that_does_not_say_what_is_played_is_refused(league, signature):
    league.close()
    tamper(league, "UPDATE about SET value = ? WHERE key = 'signature'", signature)
    assert_does_not_open(league)


@pytest.mark.parametrize("rules", ['{"limit": "many"}', '["limit"]', '{"sigma": null}'])
def test_a_league_whose_rules_are_none_is_refused(league, rules):
    league.close()
    tamper(league, "UPDATE about SET value = ? WHERE key = 'rules'", rules)
    assert_does_not_open(league)


def assert_does_not_open(league):
    with pytest.raises(LeagueError, match="is damaged, it does not say what it is") as caught:
        open_league(str(league.folder))
    assert "\n" not in str(caught.value)


def test_a_league_of_another_setting_or_version_is_refused(league):
    league.require(SIGNATURE)
    with pytest.raises(LeagueError, match="made for other matches .level 1 here and 9 there.: begin another league"):
        league.require({**SIGNATURE, "level": 9})
    with pytest.raises(LeagueError, match="rules None here and 'base' there"):
        league.require({**SIGNATURE, "rules": "base"})


def test_a_copy_is_a_league_of_its_own(league, tmp_path):
    member = add_member(league, 1)
    meet(league, member, league.anchor, 3, 0.5)
    league.file([Result(member.id, league.anchor.id, 1.0, 9, recording=b"seen")])
    (league.folder / "entries" / ".draft.tmp").write_text("half of")
    with copy_league(league, tmp_path / "runs" / "other") as other:
        assert other.entries() == league.entries() and other.counts() == league.counts()
        assert other.opponent(other.find("member-1")).player != league.opponent(member).player
        meet(other, member, league.anchor, 1, 0.5)
        assert other.counts()["matches"] == 5 and league.counts()["matches"] == 4
        assert (other.recordings / "4.rec").read_bytes() == b"seen"
    assert "other" in league_names(tmp_path / "runs")
    assert not list((tmp_path / "runs" / "other").rglob(".*")), "nothing that others are just writing"
    with pytest.raises(LeagueError, match="holds a league already"):
        copy_league(league, tmp_path / "runs" / "other")


def test_a_copy_is_whole_although_others_add_to_the_source(tmp_path):
    class Busy(League):
        """One that somebody adds to at the very moment."""

        def write_to(self, path):
            add_member(self, 1)
            super().write_to(path)
            add_member(self, 2)

    make_league(tmp_path / "league").close()
    with Busy(tmp_path / "league") as source, copy_league(source, tmp_path / "copy") as copy:
        assert [entry.name for entry in copy.entries(MEMBER)] == ["member-1"]
        copy.opponent(copy.find("member-1"))  # its checkpoint is there


def test_whoever_may_only_read_sees_what_others_have_just_written(league, monkeypatch):
    add_member(league, 1)  # and the league stays open, so the file itself does not hold it yet
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with open_league(str(league.folder)) as there:
        assert [entry.name for entry in there.entries(MEMBER)] == ["member-1"]
        league.add(make_checkpoint(league.folder / "more.safetensors", 2.0), name="later")
        assert there.find("later").kind == CANDIDATE


def test_a_league_in_a_folder_that_cannot_be_written_is_only_read(league, monkeypatch):
    league.close()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for somebody who may only read
    with open_league(str(league.folder)) as there:
        assert len(there.entries()) == 3
        with pytest.raises(LeagueError, match="can only be read: go on with a copy, protege league init mine --copy"):
            there.agent("mine")
    assert [path.name for path in league.folder.iterdir()] == [FILE]


def test_files_that_are_no_league_are_refused_in_one_line(tmp_path):
    folder = tmp_path / "league"
    folder.mkdir()
    file = folder / FILE

    def refused() -> str:
        with pytest.raises(LeagueError) as caught:
            open_league(str(folder))
        assert str(file) in str(caught.value) and "\n" not in str(caught.value)
        return str(caught.value)

    file.write_bytes(b"")
    assert "no league" in refused()
    file.write_bytes(b"hello" * 1000)
    assert "is damaged (file is not a database)" in refused()
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE metrics (name TEXT)")
    other.close()
    assert "is an SQLite file but no league" in refused()
    file.unlink()
    create_league(folder, SIGNATURE, ["teacher"], "teacher").close()
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    assert "has format 7, expected 1: use the Protege that made it" in refused()


def test_a_damaged_league_is_refused_or_read_but_never_breaks(tmp_path):
    """Bytes changed and ends cut off at random: one clear error, or figures; nothing else."""
    with make_league(tmp_path / "league") as league:
        for number in range(4):
            meet(league, add_member(league, number), league.anchor, 12, 0.5)
        league.close_period()
        league.write_to(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    luck, refused = random.Random(3), 0
    folder = tmp_path / "damaged"
    folder.mkdir()
    for turn in range(120):
        broken = bytearray(content)
        for _ in range(luck.choice((1, 20, 500))):
            broken[luck.randrange(len(broken))] = luck.randrange(256)
        (folder / FILE).write_bytes(broken if turn % 3 else broken[: luck.randrange(len(broken))])
        try:
            with open_league(str(folder)) as opened:
                for entry in opened.entries():
                    opened.history(entry.id), opened.matches(entry.id), opened.styles(entry.id)
        except LeagueError as error:
            refused += 1
            assert "\n" not in str(error)
        for rest in folder.iterdir():
            rest.unlink()
    assert refused > 60, refused


# --- company ---

WRITER = """
import sys
from pathlib import Path
from protege.league.league import open_league
from protege.league.ledger import Game, Result

name, agent, games = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_league(name) as league:
    me, a, b = league.agent(agent), league.by_name("random"), league.by_name("teacher-full")
    for number in range(games):
        league.report(me.id, [Game(a.id, 1.0, number)])
        (new,) = league.reserve_maps(a.id, b.id, 1)
        league.file([Result(a.id, b.id, 0.0, new)])
"""


def test_two_processes_use_a_league_at_once_and_nothing_is_lost(tmp_path):
    with make_league(tmp_path / "league", Rules(period_games=20)) as league:
        words = [sys.executable, "-c", WRITER, str(league.folder)]
        writers = [subprocess.Popen([*words, name, "60"], cwd=ROOT) for name in ("one", "two")]
        assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
        a, b = league.by_name("random"), league.by_name("teacher-full")
        assert league.payoffs(a.id)[b.id][:3] == (0, 0, 120)
        for name in ("one", "two"):
            assert league.payoffs(league.agent(name).id, rated=False)[a.id][:3] == (60, 0, 0)
        counts = league.counts()
        assert counts["matches"] == 240 and counts["periods"] == 12 and counts["pending"] == 0


@pytest.mark.slow
def test_kills_during_filing_lose_at_most_the_match_in_progress(tmp_path):
    result = kill_filers(tmp_path, kills=25, seed=3)
    assert result.kills == 25 and result.written > 20
