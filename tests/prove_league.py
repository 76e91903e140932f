"""Proofs about the league: exploiters hurt and are answered, tournaments are honest, hundreds of kills lose nothing.

`exploiter` trains squads with `protege train echelon`, about two hours in all; the others need no learner.
"""

import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protege.echelon.contest import ANCHOR, SCRIPTED, Contest, signature
from protege.echelon.match import Setting
from protege.evaluate import wilson
from protege.league import League, create_league
from protege.ledger import Entry, Result
from protege.matchmaking import MAIN, MAIN_EXPLOITER
from protege.runs import open_run
from protege.standings import strengths
from tests.killing import kill_filers
from tests.results_row import machine, write_row

pytestmark = pytest.mark.prove

DUEL = Setting("1v1", (40, 40), 240)  # what the stage O3 practises
MINUTES = 25
MATCHES = 400


# --- exploiters ---


def train(folder: Path, name: str, *flags: str, minutes: float = MINUTES) -> Path:
    """A training as a person starts it; the checkpoint it ends with."""
    words = ["train", "echelon", "--stages", "O3", "--minutes", f"{minutes:g}", "--run", name, "--runs", str(folder)]
    command = [sys.executable, "-m", "protege.cli", *words, "--no-dashboard", *flags]
    subprocess.run(command, check=True, timeout=120 * 60)
    with open_run(name, folder) as run:
        return run.last


def measured(league: League, first: Entry, second: Entry, matches: int = MATCHES) -> dict[str, Any]:
    """What the first scores against the second on maps that are new to both."""
    maps = league.reserve_maps(first.id, second.id, matches // 2)
    results = Contest(league.signature, 2).play(league.opponent(first), league.opponent(second), maps)
    league.file(results, ends_period=True)
    score = sum(result.score for result in results)
    low, high = wilson(score, matches)
    return {"first": first.name, "second": second.name, "matches": matches, "score": round(score / matches, 4),
            "low": round(low, 4), "high": round(high, 4)}  # fmt: skip


def test_exploiter(tmp_path):
    """An exploiter trained against a frozen main agent scores 60 %; the main agent, trained on, 55 % against it."""
    before, started = machine(), time.perf_counter()
    with create_league(tmp_path / "league", signature(DUEL), SCRIPTED, ANCHOR) as league:
        main = league.agent("main", MAIN)
        frozen = league.submit(main.id, train(tmp_path, "main"), 1)
        spoiler = league.agent("spoiler", MAIN_EXPLOITER)
        target = league.next_opponent(spoiler.id, np.random.default_rng(1))
        assert target.id == frozen.id
        hunted = ("--opponents", target.player, "--start-from", target.player)
        exploiter = league.submit(spoiler.id, train(tmp_path, "spoiler", *hunted), 1)
        hurt = measured(league, exploiter, frozen)
        # The main agent goes on with the exploiter among its opponents, and does not forget the others.
        path = league.opponent(exploiter).player
        answer = ("--opponents", f"{path}=0.6", "medium=0.2", f"{target.player}=0.2", "--start-from", target.player)
        recovered = league.submit(main.id, train(tmp_path, "answer", *answer), 2)
        healed = measured(league, recovered, exploiter)
        kept = measured(league, recovered, league.anchor)
    row = {
        "command": "make prove exploiter",
        "seeds": f"training seed 1; {MATCHES} evaluation matches each, every map from both sides",
        "budget": f"{MINUTES} minutes of wall clock for the main agent, the exploiter and the answer each",
        "machine": before,
        "seconds": round(time.perf_counter() - started, 1),
        "figures": [hurt, healed, kept],
    }
    print(write_row("league-exploiter", row).read_text())
    assert hurt["score"] >= 0.60 and healed["score"] >= 0.55


# --- ratings ---


def expected(gap: float) -> float:
    """The score that a difference on the rating scale means."""
    return 1 / (1 + 10 ** (-gap / 400))


def test_tournament(tmp_path):
    """Real matches of the six scripted players: what they are said to be worth predicts a second tournament.

    By all matches within 5 points of a hundred on average. The ratings themselves put everybody in the right order, but
    lag behind where one wins nearly always; how far is in the row.
    """
    before, started = machine(), time.perf_counter()
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
        "machine": before,
        "seconds": round(time.perf_counter() - started, 1),
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
    before, started, kills = machine(), time.perf_counter(), 500
    result = kill_filers(tmp_path, kills, seed=1)
    row = {
        "command": "make prove kill_league",
        "seeds": "moments of the kills from seed 1",
        "machine": before,
        "seconds": round(time.perf_counter() - started, 1),
        "figures": {"kills": result.kills, "filings": result.written, "lost": 0, "kept_unreported": result.kept_extra,
                    "kills_during_a_file_write": result.in_the_middle},
    }  # fmt: skip
    print(write_row("kill-league", row).read_text())
    assert result.kills == kills
