"""Training in a league: opponents come from it, results go to it, and what a training was is found there afterwards."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protege.cli import __main__ as cli
from protege.games.echelon.agents.contest import ANCHOR, SCRIPTED, signature
from protege.games.echelon.agents.match import Setting, find_player
from protege.games.echelon.agents.network import NetworkConfig, PilotNetwork
from protege.games.echelon.agents.pupil import KIND, Pupil, about, load_network
from protege.games.echelon.task.env import TASK_VERSION, Arena
from protege.games.echelon.task.features import layout_of
from protege.games.echelon.training import config as settings
from protege.games.echelon.training.collect import BattleBatch, BattleSource, NetworkOpponent
from protege.games.echelon.training.config import BadTraining, EchelonConfig, Stage, check, find_stage, self_fraction
from protege.games.echelon.training.league_agent import LeagueAgent
from protege.games.echelon.training.trainer import TRAINER
from protege.games.echelon.world.mechs import find_roster
from protege.league.league import copy_league, create_league, open_league
from protege.league.ledger import AGENT, CANDIDATE, MEMBER, RETIRED, Game, LeagueError
from protege.league.matchmaking import LEAGUE_EXPLOITER, MAIN, MAIN_EXPLOITER, Rules
from protege.learn.ppo import PPOConfig
from protege.learn.state import named_weights
from protege.runs import checkpoints
from protege.runs.run import Run, open_run
from protege.train.loop import train
from tests.league.league_games import meet, recount
from tests.train.trainings import Crash, Notes, assert_same

ROOT = Path(__file__).parents[4]
DUEL = Stage("1v1", 40, 12, (("medium", 1.0),))  # three seconds: nobody meets anybody, and nearly all is drawn
NETWORK = NetworkConfig(16, 8, 4)
TINY = EchelonConfig(
    minutes=0.0,
    agent_steps=16 * 8 * 6,  # six rollouts of 16 battles
    stages=("duel",),
    league="mine",
    agents=16,
    horizon=8,
    chunk=4,
    network=NETWORK,
    ppo=PPOConfig(minibatches=2),
    eval_matches=2,
    eval_every=16 * 8 * 3,
    deterministic=True,
)
FROZEN = replace(TINY, ppo=PPOConfig(minibatches=2, learning_rate=1e-12, final_learning_rate=1e-12))
RULES = Rules(period_games=20, gate_games=4, gate_top=1)
SOON = replace(RULES, exploiter_games=20, exploiter_met=20, exploiter_score=0.4)  # by draws alone


@pytest.fixture(autouse=True)
def short_duels(monkeypatch):
    monkeypatch.setitem(settings.STAGES, "duel", DUEL)


def make_pilot(path, seed):
    """A checkpoint of a pilot that has learned nothing."""
    torch.manual_seed(seed)
    known = about(NETWORK, layout_of(find_roster("1v1")))
    weights = named_weights(PilotNetwork(NETWORK), "network")
    checkpoints.save(path, weights, known, kind=KIND, task_version=TASK_VERSION)
    return path


def make_duels(folder, rules=RULES, length=DUEL.length):
    """A league of duels: the scripted players and one learned member."""
    league = create_league(folder / "mine", signature(Setting("1v1", (40, 40), length)), SCRIPTED, ANCHOR, rules)
    league.add(make_pilot(folder / "veteran.safetensors", 7), name="veteran", kind=MEMBER)
    return league


def filed(league):
    """Every match: first, second, score, rated, swapped."""
    with closing(sqlite3.connect(league.path)) as database:
        return database.execute("SELECT first, second, score, rated, swapped FROM matches").fetchall()


def test_opponents_come_from_the_league_and_only_the_training_is_rated(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    notes = Notes()
    with make_duels(tmp_path) as league:
        before = {entry.id: entry for entry in league.entries()}
        run = train(TRAINER, TINY, notes, name="pilots", folder=tmp_path)
        (agent,) = league.entries(AGENT)
        rows = filed(league)
        assert agent.run == "pilots" and agent.role == MAIN and agent.games == len(rows) >= 40
        assert {row[0] for row in rows} == {agent.id} and not any(row[3] for row in rows)
        met = {row[1] for row in rows}
        copies = league.entries(CANDIDATE)
        assert {league.by_name("veteran").id, league.anchor.id} <= met <= {*before, *(copy.id for copy in copies)}
        assert {entry.id: entry for entry in league.entries() if entry.id in before} == before, (
            "the others lent themselves"
        )
        assert league.counts()["periods"] >= 2 and agent.rating.deviation < 350
        assert {row[4] for row in rows} == {0, 1}, "it had either side"
        assert copies[-1].step == checkpoints.load(run.last).state["step"] and copies[0].role == MAIN
        assert copies[-1].parent == (copies[-2].id if len(copies) > 1 else None)
        load_network(Path(league.opponent(copies[-1]).player))
        assert Path(league.opponent(copies[-1]).player).stat().st_size < run.last.stat().st_size / 2, "no battles in it"
        recount(league)
        assert "league mine" in notes.reports[0]["stage"] and "as main pilots" in notes.reports[0]["league"]
        latest = {name: float(point.value or 0.0) for name, point in run.metrics.latest().items()}
        assert latest["league_games"] == agent.games and latest["league_opponents"] >= 7
        assert latest["league_rating"] == pytest.approx(agent.rating.rating)
        assert [event.text for event in run.metrics.events() if event.kind == "league"][-1].startswith(copies[-1].name)
        words = ["league", "promote", str(league.folder), copies[-1].name, "--threads", "1", "--json"]
        assert cli.main(words) == 0
        judged = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert judged["judged"] == 1 and league.by_id(copies[-1].id).games == 4, "as many as the gate asks for"
        recount(league)


def test_scores_are_those_of_the_side_that_learns(tmp_path, monkeypatch):
    long = replace(DUEL, length=240)
    monkeypatch.setitem(settings.STAGES, "duel", long)
    with make_duels(tmp_path, length=240) as league:
        stage = replace(long, opponents=(("expert", 1.0),))
        with closing(LeagueAgent("mine", "main", [long], tmp_path)) as league_agent:
            league_agent.join("pilots")
            league_agent.enter(long)
            config = replace(TINY, agents=8, horizon=320)
            with closing(BattleSource(stage, 0, config, PilotNetwork(NETWORK), 2, league_agent.find)) as source:
                source.play(0.0)
                league_agent.report(episode for batch in source.batches for episode in batch.episodes)
        (agent,) = league.entries(AGENT)
        found = league.payoffs(agent.id, rated=False)[league.by_name("expert").id]
        assert found.games >= 8 and found.losses >= 0.7 * found.games, "who has learned nothing loses to the expert"
        assert {swapped for *_, score, _, swapped in filed(league) if score == 0} == {0, 1}, "on either side"


def test_the_same_league_twice_gives_the_same_training_whatever_the_threads(tmp_path):
    runs = []
    with make_duels(tmp_path) as source:
        for threads in (1, 2):
            folder = tmp_path / f"with {threads}"
            copy_league(source, folder / "mine").close()
            runs.append(train(TRAINER, replace(TINY, threads=threads), Notes(), name="pilots", folder=folder))
    assert_same(*(checkpoints.load(run.last) for run in runs))


def test_a_resumed_training_is_the_same_agent(tmp_path):
    make_duels(tmp_path).close()
    saving = replace(TINY, autosave_seconds=0.0)
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, saving, Crash(), name="pilots", folder=tmp_path)
    with open_league("mine", tmp_path) as league:
        (before,) = league.entries(AGENT)
        with pytest.raises(LeagueError, match="a training pilots is in league mine already: go on with it by --resume"):
            train(TRAINER, TINY, Notes(), name="pilots", folder=tmp_path)
        with pytest.raises(LeagueError, match="pilots is in league mine as main, not as main exploiter"):
            train(TRAINER, replace(saving, role="main-exploiter"), Notes(), name="pilots", resume=True, folder=tmp_path)
        assert open_run("pilots", tmp_path).info().config["role"] == "main", "nothing was changed"
        notes = Notes()
        run = train(TRAINER, saving, notes, name="pilots", resume=True, folder=tmp_path)
        (after,) = league.entries(AGENT)
        assert after.id == before.id and after.games > before.games > 0
        assert "resumed at agent-step" in notes.reports[0]["run"] and not any("anew" in note for note in notes.notes)
        assert run.status() == "finished"
        recount(league)


def test_a_resumed_training_goes_on_with_its_line_up_and_its_draws(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.games.echelon.training.league_agent.LINE_UP_ROLLOUTS", 3)
    with make_duels(tmp_path) as league:
        for seed in (8, 9, 10, 11, 12):
            league.add(make_pilot(tmp_path / f"{seed}.safetensors", seed), name=f"member-{seed}", kind=MEMBER)
        one, other = (LeagueAgent("mine", "main", [DUEL], tmp_path, seed) for seed in (1, 2))
        for league_agent in (one, other):
            league_agent.join("pilots")
            league_agent.enter(DUEL)
        for _ in range(4):
            one.probabilities()
        other.probabilities()
        other.restore(json.loads(json.dumps(one.state())))
        expected = [one.probabilities() for _ in range(12)]
        assert len({str(probabilities) for probabilities in expected}) > 2, "line-ups change"
        assert [other.probabilities() for _ in range(12)] == expected
        one.close()
        other.close()


def test_a_league_that_does_not_fit_is_refused_before_anything_is_made(tmp_path, capsys):
    make_duels(tmp_path, length=240).close()
    expected = (
        r"league mine was made for other matches \(length 240 here and 12 there\).*"
        "init NAME --game echelon --roster 1v1 --size 40"
    )
    with pytest.raises(LeagueError, match=expected):
        train(TRAINER, TINY, Notes(), name="pilots", folder=tmp_path)
    with pytest.raises(LeagueError, match="there is no league 'mind'"):
        train(TRAINER, replace(TINY, league="mind"), Notes(), name="pilots", folder=tmp_path)
    with pytest.raises(LeagueError, match="league echelon can only be read: go on with a copy"):
        train(TRAINER, replace(TINY, league="echelon", stages=("squad",)), Notes(), name="pilots", folder=tmp_path)
    with pytest.raises(LeagueError, match="plays on generated maps, the stage on ground 'open'"):
        train(TRAINER, replace(TINY, stages=("O2",)), Notes(), name="pilots", folder=tmp_path)
    with pytest.raises(LeagueError, match="plays every battle on a new map, the stage on the same 100"):
        train(TRAINER, replace(TINY, stages=("O7",)), Notes(), name="pilots", folder=tmp_path)
    words = ["train", "echelon", "--preset", "smoke", "--league", "mine", "--runs", str(tmp_path), "--dry-run"]
    assert cli.main(words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "veteran.safetensors"]


def test_stages_that_the_league_does_not_play_keep_their_own_opponents(tmp_path, monkeypatch):
    monkeypatch.setitem(settings.STAGES, "pair", replace(DUEL, roster="2v2", size=48, fraction=0.5))
    notes = Notes()
    with make_duels(tmp_path) as league:
        train(TRAINER, replace(TINY, stages=("pair", "duel")), notes, name="pilots", folder=tmp_path)
        assert "2v2 on 48 x 48, against medium 1; then duel" in notes.reports[0]["stage"]
        (agent,) = league.entries(AGENT)
        assert 0 < agent.games == len(filed(league)) <= 16 * 8 * 3 // 12 + 16, "only those of the second half"


def test_an_exploiter_begins_with_the_main_agent_and_meets_nobody_else(tmp_path):
    with make_duels(tmp_path) as league:
        train(TRAINER, FROZEN, Notes(), name="main", folder=tmp_path)
        main = league.newest_main()
        notes = Notes()
        exploiter = replace(FROZEN, role="main-exploiter", seed=2)
        run = train(TRAINER, exploiter, notes, name="spoiler", folder=tmp_path)
        spoiler = league.agent("spoiler", MAIN_EXPLOITER)
        assert {row[1] for row in filed(league) if row[0] == spoiler.id} == {main.id}
        assert f"begins with the weights of {main.name}" in notes.notes and spoiler.parent == main.id
        taken, given = load_network(run.best), load_network(Path(league.opponent(main).player))
        assert torch.allclose(taken.own.layer.weight, given.own.layer.weight, atol=1e-6)
        assert f"against {main.name}" in notes.results[0].summary
        other = Notes()
        train(TRAINER, replace(exploiter, network=NetworkConfig(8, 8, 4)), other, name="smaller", folder=tmp_path)
        assert any("begins with fresh weights: the network of" in note for note in other.notes)
        assert league.agent("smaller", MAIN_EXPLOITER).parent is None
        later = replace(FROZEN, start_from=str(run.best), agent_steps=1)
        train(TRAINER, later, Notes(), name="later", folder=tmp_path)
        assert league.by_id(league.agent("later").parent or 0).run == "spoiler", "its best is there as a copy"


def test_an_exploiter_that_did_its_work_leaves_a_member_and_begins_again(tmp_path):
    with make_duels(tmp_path, SOON) as league:
        train(TRAINER, FROZEN, Notes(), name="main", folder=tmp_path)
        main = league.newest_main()
        notes = Notes()
        exploiter = replace(FROZEN, role="main-exploiter")
        run = train(TRAINER, exploiter, notes, name="spoiler", folder=tmp_path)  # draws count half: it has 40 % soon
        first, second = league.select("run = 'spoiler' AND hash IS NULL")[:2]
        assert first.kind == RETIRED and second.name == "spoiler-2" and second.parent == main.id
        members = [entry for entry in league.entries(MEMBER) if entry.role == MAIN_EXPLOITER]
        assert members[0].run == "spoiler" and members[0].name.startswith("spoiler@")
        assert any("40% were asked of it: goes on as spoiler-2" in note for note in notes.notes)
        assert notes.notes.count(f"begins with the weights of {main.name}") >= 2
        assert 0 < checkpoints.load(run.last).state["session"]["life"][0] < 1, "schedules begin again too"
        now = league.agent("spoiler", MAIN_EXPLOITER)
        longer = replace(exploiter, agent_steps=16 * 8 * 7)
        train(TRAINER, longer, Notes(), name="spoiler", resume=True, folder=tmp_path)
        assert league.agent("spoiler", MAIN_EXPLOITER).id >= now.id, "it goes on with its last life"
        recount(league)


def test_a_league_exploiter_meets_everybody_and_begins_again_among_those_within_its_reach(tmp_path, monkeypatch):
    begun: list[tuple[str, set[str], set[str]]] = []  # the life, whom it may meet, whom its first battles were against
    begin = BattleSource.begin_anew

    def begin_anew(self):
        begin(self)
        (agent,) = league.select("run = 'raider' AND hash IS NULL AND kind = ?", AGENT)
        pool, chances = league.opponents(agent.id)
        reach = {entry.name for entry, chance in zip(pool, chances) if chance > 0}
        begun.append((agent.name, reach, {batch.names[n] for batch in self.batches for n in batch.opponent}))

    monkeypatch.setattr(BattleSource, "begin_anew", begin_anew)
    with make_duels(tmp_path, replace(SOON, exploiter_budget=40)) as league:
        for strong, weak in (("expert", "random"), ("hard", "trivial")):
            meet(league, league.by_name(strong), league.by_name(weak), 60, chance=1.0)
        train(TRAINER, FROZEN, Notes(), name="main", folder=tmp_path)
        notes = Notes()
        train(TRAINER, replace(FROZEN, role="league-exploiter"), notes, name="raider", folder=tmp_path)
        first, second = league.select("run = 'raider' AND hash IS NULL")[:2]
        assert first.kind == RETIRED and first.role == LEAGUE_EXPLOITER and second.name == "raider-2"
        assert len({row[1] for row in filed(league) if row[0] == first.id}) > 2, "everybody"
        assert "used its 40 games: goes on as raider-2" in notes.notes
        assert begun[0][0] == "raider-2" and begun[0][2] <= begun[0][1] and "expert" not in begun[0][1]
        recount(league)


def test_an_exploiter_killed_between_two_lives_begins_the_second_one(tmp_path, monkeypatch):
    with make_duels(tmp_path, SOON) as league:
        train(TRAINER, FROZEN, Notes(), name="main", folder=tmp_path)
        main = league.newest_main()
        saving = replace(TINY, role="main-exploiter", autosave_seconds=0.0)
        reset = LeagueAgent.reset

        def cut(self, reason):
            reset(self, reason)
            raise RuntimeError("power cut")

        with monkeypatch.context() as patch:
            patch.setattr(LeagueAgent, "reset", cut)
            with pytest.raises(RuntimeError, match="power cut"):
                train(TRAINER, saving, Notes(), name="spoiler", folder=tmp_path)
        assert league.agent("spoiler", MAIN_EXPLOITER).name == "spoiler-2"
        assert checkpoints.load(Run(tmp_path / "spoiler").last).state["session"]["league"]["life"] == "spoiler", (
            "the weights are older"
        )
        notes = Notes()
        train(TRAINER, replace(saving, agent_steps=1), notes, name="spoiler", resume=True, folder=tmp_path)
        assert f"begins with the weights of {main.name}" in notes.notes
        assert league.agent("spoiler", MAIN_EXPLOITER).parent == main.id
        notes = Notes()
        train(TRAINER, replace(saving, agent_steps=1), notes, name="spoiler", resume=True, folder=tmp_path)
        assert not any("begins with" in note for note in notes.notes), "only once"


def test_a_judgement_is_played_to_its_end_and_can_be_watched(tmp_path, capsys):
    """Two members of nearly the same rating: what one loses by drawing makes the other the best, to be met as well."""
    with make_duels(tmp_path) as league:
        members = [league.by_name("veteran")]
        members.append(league.add(make_pilot(tmp_path / "other.safetensors", 8), name="other", kind=MEMBER))
        new = league.add(make_pilot(tmp_path / "new.safetensors", 9), name="new")
    with closing(sqlite3.connect(league.path)) as database, database:
        for member, rating in zip(members, (1700.0, 1699.9)):
            database.execute("UPDATE entries SET rating = ?, deviation = 50 WHERE id = ?", (rating, member.id))
    assert cli.main(["league", "promote", str(league.folder), "new", "--threads", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "new: not promoted, 50.0% against the best, 55% needed"
    words = ["tournament", str(league.folder), "--rounds", "2", "--player", "easy", "--player", "hard"]
    assert cli.main(["league", *words, "--threads", "1"]) == 0
    assert cli.main(["league", "add", str(league.folder), str(tmp_path / "new.safetensors"), "--name", "twin"]) == 0
    assert "has these contents already, as new, candidate: nothing was added" in capsys.readouterr().out
    with open_league(str(league.folder)) as league:
        assert {other: scored.games for other, scored in league.payoffs(new.id).items()} == {
            member.id: 4 for member in members
        }
        for name, kept in (("new", 3), ("easy", 2)):
            player = league.find(name)
            assert len(league.matches(player.id, recorded=True)) >= kept and league.styles(player.id)


def train_until_killed(folder):
    """A training in a process of its own."""
    settings.STAGES["duel"] = DUEL
    endless = replace(TINY, deterministic=False, agent_steps=10**9, autosave_seconds=0.5, eval_seconds=0.5)
    train(TRAINER, endless, Notes(), name="victim", folder=Path(folder))


def test_a_kill_leaves_a_league_that_another_training_uses_meanwhile(tmp_path):
    with make_duels(tmp_path) as league:
        words = (
            "from tests.games.echelon.training.test_league_agent import train_until_killed; train_until_killed({!r})"
        )
        command = [sys.executable, "-c", words.format(str(tmp_path))]
        victim = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            patience = time.monotonic() + 120
            while not (league.entries(AGENT) and Run(tmp_path / "victim").last.exists()):
                assert victim.poll() is None and time.monotonic() < patience
                time.sleep(0.05)
            train(TRAINER, TINY, Notes(), name="other", folder=tmp_path)
            killed = league.agent("victim")
            assert victim.poll() is None and killed.games > 0
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
        recount(league)
        finite = replace(TINY, agent_steps=1, deterministic=False)
        train(TRAINER, finite, Notes(), name="victim", resume=True, folder=tmp_path)
        assert league.agent("victim").id == killed.id and league.agent("other").games > 0


# --- whom a batch meets -----------------------------------------------------------------------------------------------


def test_few_learned_players_are_met_at_a_time_and_over_time_all_by_their_probabilities(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.games.echelon.training.league_agent.LINE_UP_ROLLOUTS", 1)
    with make_duels(tmp_path) as league, closing(LeagueAgent("mine", "main", [DUEL], tmp_path, 1)) as league_agent:
        for number in range(8):
            league.add(make_pilot(tmp_path / "one.safetensors", number), name=f"pilot-{number}", kind=MEMBER)
        league_agent.join("pilots")
        league_agent.enter(DUEL)
        pilots = [entry for entry in league.entries(MEMBER) if entry.name != "veteran"]
        league.report(
            league_agent.agent.id, [Game(pilot.id, float(n < 2)) for n, pilot in enumerate(pilots) for _ in range(5)]
        )
        pool, expected = league.opponents(league_agent.agent.id)
        assert max(expected) > 1.5 * min(expected), "they differ"
        met: dict[str, list[float]] = {entry.name: [] for entry in pool}
        for _ in range(600):
            chances = league_agent.probabilities()
            assert sum(chances.values()) == pytest.approx(1.0) and len(chances) <= len(SCRIPTED) + 4
            for name, found in met.items():
                found.append(chances.get(name, 0.0))
        # Four draws of a share below 1 spread by less than 0.25 in one line-up, by 0.01 on average over 600.
        assert [float(np.mean(found)) for found in met.values()] == pytest.approx(expected, abs=0.03)


def test_who_is_in_a_battle_stays_until_it_ends_and_then_others_come():
    batch = BattleBatch(replace(DUEL, opponents=(("medium", 1.0),)), TINY, 4, 0, None)
    batch.meet({"easy": 0.5, "hard": 0.5})
    assert {batch.names[n] for n in batch.opponent} == {"medium"} and batch.probabilities.tolist() == [0.5, 0.5, 0.0]
    batch.begin_anew()
    assert {batch.names[n] for n in batch.opponent} <= {"easy", "hard"} and batch.fresh.all()
    batch.meet({"easy": 0.5, "hard": 0.5})
    assert set(batch.names) == {"easy", "hard"}, "nobody plays against medium any more"


def test_a_guest_does_what_the_pupil_does_and_forgets_at_the_same_moment(tmp_path):
    pupil = find_player(str(make_pilot(tmp_path / "one.safetensors", 3)))
    assert isinstance(pupil, Pupil)
    arena = Arena(3, "1v1", size=(40, 40), length=4, seed=5)
    opponent = NetworkOpponent(pupil.network, arena)
    red = np.broadcast_to(arena.battles.members.team == 1, (3, 2))
    for _ in range(6):  # beyond the end of the first battles
        one, other = arena.battles.no_actions(), arena.battles.no_actions()
        opponent.act(arena.battles, red, one)
        pupil.act(arena.battles, red, other)
        for name in ("move", "buttons", "ewar", "target"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
        arena.step(one)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"league": "", "role": "main-exploiter"}, "add --league NAME"),
        ({"opponents": ("hard",)}, "the league chooses the opponents.*--opponents self=0.2; got hard"),
        ({"opponents": ("self",)}, "--opponents self=0.2; got self"),
        ({"opponents": ("self=0.2",), "role": "league-exploiter"}, "leave out --opponents"),
    ],
)
def test_settings_that_contradict_the_league_are_refused(change, message):
    with pytest.raises(BadTraining, match=message):
        check(replace(TINY, **change))


def test_battles_of_the_pupil_against_itself_may_be_a_part():
    assert self_fraction(TINY, find_stage("pack")) == 0.25, "as the stage has it"
    assert self_fraction(TINY, DUEL) == 0.0
    assert self_fraction(replace(TINY, opponents=("self=0.1",)), DUEL) == 0.1
    assert self_fraction(replace(TINY, role="main-exploiter"), find_stage("pack")) == 0.0
