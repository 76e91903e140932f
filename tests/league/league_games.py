"""Leagues for tests: small ones of a made-up game, filled with results of players whose strength is known."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import torch

from protege.league.glicko import Played, Rating, period
from protege.league.league import League, create_league
from protege.league.ledger import MEMBER, Entry, Result
from protege.league.matchmaking import Rules
from protege.runs import checkpoints

SIGNATURE = {"game": "tempest", "task_version": 1, "level": 1, "seed": 10}
SCRIPTED = ("random", "teacher", "teacher-full")


def make_league(folder: Path, rules: Rules = Rules()) -> League:
    """Three scripted players, `teacher` the anchor."""
    return create_league(folder, SIGNATURE, SCRIPTED, "teacher", rules)


def make_checkpoint(path: Path, number: float, *, kind: str = "tempest-pqn", task_version: int = 1) -> Path:
    """A whole checkpoint that no player can be made of."""
    checkpoints.save(path, {"network.weight": torch.full((8,), number)}, {}, kind=kind, task_version=task_version)
    return path


def add_member(league: League, number: int, name: str = "") -> Entry:
    """A learned member with contents of its own."""
    checkpoint = make_checkpoint(league.folder / "some.safetensors", float(number))
    return league.add(checkpoint, name=name or f"member-{number}", kind=MEMBER)


def meet(league: League, first: Entry, second: Entry, games: int, chance: float, seed: int = 0) -> None:
    """Rated matches of which the first wins about that share."""
    luck, maps = random.Random(seed), league.reserve_maps(first.id, second.id, games)
    league.file([Result(first.id, second.id, float(luck.random() < chance), number) for number in maps])


def recount(league: League) -> None:
    """Count everything anew from the matches alone: payoffs, games, and the ratings of every period."""
    with closing(sqlite3.connect(league.path)) as database:
        matches = database.execute(
            "SELECT first, second, score, rated, period, recording FROM matches ORDER BY id"
        ).fetchall()
        history = database.execute("SELECT entry, period, rating, deviation, volatility FROM history").fetchall()
    entries = {entry.id: entry for entry in league.entries()}
    games = dict.fromkeys(entries, 0)
    for first, second, _, rated, _, recording in matches:
        games[first] += 1
        games[second] += rated
        assert recording is None or (league.recordings / recording).is_file(), "a row names a file that is not there"
    assert {id: entry.games for id, entry in entries.items()} == games
    rated = sum(match[3] for match in matches)
    for which, expected in ((True, 2 * rated), (False, len(matches) - rated)):
        payoffs = (payoff for id in entries for payoff in league.payoffs(id, rated=which).values())
        assert sum(payoff.games for payoff in payoffs) == expected
    for entry in entries.values():
        if entry.hash:
            league.opponent(entry)  # raises unless its copy is whole
    numbers = sorted({match[4] for match in matches if match[4] is not None})
    assert numbers == list(range(1, league.counts()["periods"] + 1))
    ratings = {id: Rating(deviation=0.0) if id == league.anchor.id else Rating() for id in entries}
    for number in numbers:
        there = {entry for entry, period, *_ in history if period == number} - {league.anchor.id}
        played = [Played(a, b, score, bool(rated)) for a, b, score, rated, when, _ in matches if when == number]
        changed = {game[0] for game in played} | {game[1] for game in played if game[3]}
        assert changed <= there | {league.anchor.id}, "in training only the agent is rated"
        after = period(ratings, played, league.anchor.id)
        for entry, when, *rating in history:
            if when == number:
                assert Rating(*rating) == after[entry], "a period was rated from something else than what was before"
        ratings |= {entry: after[entry] for entry in there}
    assert {id: entry.rating for id, entry in entries.items()} == ratings
