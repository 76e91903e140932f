"""Proofs about the league: exploiters hurt and are answered, tournaments are honest, hundreds of kills lose nothing.

`exploiter` and `league_training` train with `protege train echelon --league`, about an hour each; the others need no
learner.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from proofs.row import Stopwatch, write_row
from protege.games.echelon.agents.contest import ANCHOR, SCRIPTED, Contest, signature
from protege.games.echelon.agents.match import Setting, checkpoint_of, evaluate
from protege.league.league import League, create_league
from protege.league.ledger import MEMBER, Entry, Result
from protege.league.matchmaking import MAIN_EXPLOITER
from protege.league.standings import strengths
from protege.runs.checkpoints import load
from protege.runs.run import open_run
from protege.statistics import wilson
from tests.killing import kill_filers

pytestmark = pytest.mark.prove

DUEL = Setting("1v1", (40, 40), 240)  # what the stage O3 practises
MINUTES = {"main": 6.0, "exploiter": 12.0, "answer": 12.0}
MATCHES = 400
# Few battles, so that there are many updates; the main agent imitates the scripted expert at first.
DUELLING = (
    "--stages O3 --agents 128 --horizon 32 --ppo.minibatches 4 --ppo.epochs 4 --ppo.final-learning-rate 1e-4 "
    "--ppo.entropy 0.02 --ppo.final-entropy 0 --ppo.kl-limit 0.05"
).split()
IMITATING = "--imitation 3 --imitation-fraction 0.3".split()
EXPLOITING = "--role main-exploiter --imitation 0 --ppo.learning-rate 5e-4".split()

# What `league_training` begins with, and who is in the pool beside it and the scripted players: runs or checkpoints.
START = os.environ.get("PROVE_START", "champion")
PAST = os.environ.get("PROVE_PAST", "").split()
GOING_ON_MINUTES = float(os.environ.get("PROVE_MINUTES", "30"))
GOING_ON = (
    "--stages squad --imitation 0 --ppo.learning-rate 1e-4 --ppo.final-learning-rate 2e-5 --ppo.entropy 0.002 "
    "--ppo.final-entropy 0.002"
).split()
POOL_MATCHES = 100  # against each of the pool
POOL_SEED = 17  # of the battles that are measured on: no evaluation and no league uses it


def train(folder: Path, name: str, *flags: str, minutes: float) -> tuple[int, float]:
    """A training as a person starts it; the agent-steps it made, and its processor time in seconds, so far."""
    words = ["train", "echelon", "--run", name, "--runs", str(folder), "--minutes", f"{minutes:g}", "--no-dashboard"]
    command = [sys.executable, "-m", "protege.cli", *words, *flags]
    subprocess.run(command, check=True, timeout=60 * (2 * minutes + 30))
    with open_run(name, folder) as run:
        state = load(run.last).state
        return int(state["steps"]), round(float(state["cpu_s"]), 1)


# --- exploiters ---


def measured(league: League, first: Entry, second: Entry, matches: int = MATCHES) -> dict[str, Any]:
    """What the first scores against the second on maps that are new to both."""
    maps = league.reserve_maps(first.id, second.id, matches // 2)
    results = Contest(league.signature, 2).play(league.opponent(first), league.opponent(second), maps)
    league.file(results, ends_period=True)
    score = sum(result.score for result in results)
    low, high = wilson(score, matches)
    return {"first": first.name, "second": second.name, "matches": matches, "score": round(score / matches, 4),
            "low": round(low, 4), "high": round(high, 4)}  # fmt: skip


def newest_main(league: League) -> Entry:
    found = league.newest_main()
    assert found is not None
    return found


def newest_exploiter(league: League) -> Entry:
    """The newest copy of an exploiter that had done its work; if none has, the newest at all."""
    copies = league.select("role = ? AND hash IS NOT NULL", MAIN_EXPLOITER)
    return max(copies, key=lambda copy: (copy.kind == MEMBER, copy.id))


def test_exploiter(tmp_path):
    """An exploiter trained against a frozen main agent scores 60 %; the main agent, trained on, 55 % against it."""
    clock = Stopwatch()
    with create_league(tmp_path / "duels", signature(DUEL), SCRIPTED, ANCHOR) as league:
        joining = [*DUELLING, "--league", "duels"]
        spent = [train(tmp_path, "main", *joining, *IMITATING, minutes=MINUTES["main"])]
        frozen = newest_main(league)
        spent.append(train(tmp_path, "spoiler", *joining, *EXPLOITING, minutes=MINUTES["exploiter"]))
        exploiter = newest_exploiter(league)
        hurt = measured(league, exploiter, frozen)
        if exploiter.kind != MEMBER:  # below 70 % it is a candidate, and newer ones would take its place
            league.promote(exploiter, "the main agent is to answer it")
        # The main agent goes on; the league lets it meet the exploiter among the others.
        whole = train(tmp_path, "main", "--resume", minutes=MINUTES["main"] + MINUTES["answer"])
        spent.append((whole[0] - spent[0][0], round(whole[1] - spent[0][1], 1)))
        recovered = newest_main(league)
        assert recovered.id != frozen.id
        healed = measured(league, recovered, exploiter)
        kept = measured(league, recovered, league.anchor)
        met = league.payoffs(league.agent("main").id, rated=False).get(exploiter.id)
        lives = len(league.select("run = 'spoiler' AND hash IS NULL"))
    row = {
        "command": "make prove exploiter",
        "seeds": f"training seed 1; {MATCHES} evaluation matches each, every map from both sides",
        "budget": "minutes of wall clock: " + ", ".join(f"{name} {minutes:g}" for name, minutes in MINUTES.items()),
        **clock.spent(),
        "figures": {"hurt": hurt, "healed": healed, "kept": kept, "agent_steps": [steps for steps, _ in spent],
                    "training_cpu_seconds": [seconds for _, seconds in spent], "lives_of_the_exploiter": lives,
                    "training_battles_of_the_answer_against_it": met.games if met else 0},
    }  # fmt: skip
    print(write_row("league-exploiter", row).read_text())
    assert hurt["score"] >= 0.60 and healed["score"] >= 0.55


# --- training in the league ---


def against_pool(player: Path, pool: Mapping[str, str]) -> dict[str, Any]:
    """What a checkpoint scores against each of a pool, and against all of them together."""
    found: dict[str, Any] = {}
    score = 0.0
    for name, opponent in pool.items():
        result = evaluate(str(player), opponent, matches=POOL_MATCHES, seed=POOL_SEED, threads=2)
        score += result["blue_win_rate"] * POOL_MATCHES
        found[name] = [round(result[f"blue_win_rate{end}"], 4) for end in ("", "_low", "_high")]
    low, high = wilson(score, len(pool) * POOL_MATCHES)
    return {"score": round(score / len(pool) / POOL_MATCHES, 4), "low": round(low, 4), "high": round(high, 4),
            "by_opponent": found}  # fmt: skip


def test_league_training(tmp_path):
    """The same beginning and the same time, once against scripted players and once in a league: who beats the pool?

    Nothing is asked of the result but that it is measured. PROVE_START, PROVE_PAST and PROVE_MINUTES say what it begins
    with, who else is in the pool, and for how long each trains.
    """
    clock = Stopwatch()
    start = checkpoint_of(START)
    assert start is not None, f"there is no {START}"
    with create_league(tmp_path / "pool", signature(), SCRIPTED, ANCHOR) as league:
        league.add(start, name="start", kind=MEMBER)
        for number, name in enumerate(PAST, 1):
            path = checkpoint_of(name)
            assert path is not None, f"there is no {name}"
            league.add(path, name=f"past-{number}", kind=MEMBER)
        pool = {entry.name: league.opponent(entry).player for entry in league.entries()}
        going_on = [*GOING_ON, "--start-from", str(start)]
        spent = {
            "scripted": train(tmp_path, "scripted", *going_on, minutes=GOING_ON_MINUTES),
            "league": train(tmp_path, "league", *going_on, "--league", "pool", minutes=GOING_ON_MINUTES),
        }
        games = league.agent("league").games
    ends = {name: open_run(name, tmp_path).last for name in spent}
    figures = {name: against_pool(path, pool) for name, path in ({"start": start} | ends).items()}
    met = evaluate(str(ends["league"]), str(ends["scripted"]), matches=MATCHES, seed=POOL_SEED, threads=2)
    row = {
        "command": f"PROVE_START={START} PROVE_PAST='{' '.join(PAST)}' PROVE_MINUTES={GOING_ON_MINUTES:g} "
        "make prove league_training",
        "seeds": f"training seed 1; {POOL_MATCHES} evaluation battles of seed {POOL_SEED} against each of the pool, "
        f"{MATCHES} between the two, every map from both sides; each as it was at the end of its training",
        "budget": f"{GOING_ON_MINUTES:g} minutes of wall clock each, {' '.join(GOING_ON)}",
        **clock.spent(),
        "figures": figures
        | {"agent_steps": {name: steps for name, (steps, _) in spent.items()}, "battles_in_the_league": games}
        | {"training_cpu_seconds": {name: seconds for name, (_, seconds) in spent.items()}}
        | {"league_against_scripted": [round(met[f"blue_win_rate{end}"], 4) for end in ("", "_low", "_high")]},
    }
    print(write_row("league-training", row).read_text())
    assert games > 0 and all(steps > 0 for steps, _ in spent.values())


# --- ratings ---


def expected(gap: float) -> float:
    """The score that a difference on the rating scale means."""
    return 1 / (1 + 10 ** (-gap / 400))


def test_tournament(tmp_path):
    """Real matches of the six scripted players: what they are said to be worth predicts a second tournament.

    By all matches within 5 points of a hundred on average. The ratings themselves put everybody in the right order, but
    lag behind where one wins nearly always; how far is in the row.
    """
    clock = Stopwatch()
    setting = Setting("5v5", (60, 60), 320)
    with create_league(tmp_path / "league", signature(setting), SCRIPTED, ANCHOR) as league:
        contest = Contest(league.signature, 2)
        everybody = league.entries()
        for _ in range(8):
            for first, second in combinations(everybody, 2):
                maps = league.reserve_maps(first.id, second.id, 3)
                league.file(contest.play(league.opponent(first), league.opponent(second), maps))
            league.close_period()
        rating = {entry.id: entry.rating for entry in league.entries()}
        fitted = {id: value or 0.0 for id, (value, _) in strengths(league).items()}
        pairs: list[dict[str, Any]] = []
        for first, second in combinations(everybody, 2):
            maps = league.reserve_maps(first.id, second.id, 30)
            results: list[Result] = contest.play(league.opponent(first), league.opponent(second), maps)
            score = sum(result.score for result in results)
            low, high = wilson(score, len(results))
            pairs.append({
                "first": first.name, "second": second.name, "score": round(score / len(results), 4),
                "low": round(low, 4), "high": round(high, 4),
                "by_rating": round(expected(rating[first.id].rating - rating[second.id].rating), 4),
                "by_all_matches": round(expected(fitted[first.id] - fitted[second.id]), 4),
            })  # fmt: skip
    errors = {
        how: round(sum(abs(pair["score"] - pair[how]) for pair in pairs) / len(pairs), 4)
        for how in ("by_rating", "by_all_matches")
    }
    ranking = sorted(everybody, key=lambda entry: rating[entry.id].rating)
    row = {
        "command": "make prove tournament",
        "seeds": "evaluation maps of the league; 48 matches of each pair rated, 60 more predicted",
        **clock.spent(),
        "figures": {
            "ratings": {entry.name: [round(value, 1) for value in rating[entry.id][:2]] for entry in ranking},
            "by_all_matches": {entry.name: fitted[entry.id] for entry in ranking},
            "mean_error_of_prediction": errors, "pairs": pairs,
        },
    }  # fmt: skip
    print(write_row("league-tournament", row).read_text())
    assert [entry.name for entry in ranking] == ["random", "trivial", "easy", "medium", "hard", "expert"]
    assert errors["by_all_matches"] < 0.05


# --- crashes ---


def test_kill_league(tmp_path):
    """Five hundred kills of a process that files matches, adds players and ends periods."""
    clock, kills = Stopwatch(), 500
    result = kill_filers(tmp_path, kills, seed=1)
    row = {
        "command": "make prove kill_league",
        "seeds": "moments of the kills from seed 1",
        **clock.spent(),
        "figures": {"kills": result.kills, "filings": result.written, "lost": 0, "kept_unreported": result.kept_extra,
                    "kills_during_a_file_write": result.in_the_middle},
    }  # fmt: skip
    print(write_row("kill-league", row).read_text())
    assert result.kills == kills
