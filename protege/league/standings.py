"""What a league looks like, in plain numbers and text: the table, who beats whom, ratings over time, how they play."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.league.glicko import SCALE, START
from protege.league.league import League
from protege.league.ledger import AGENT, RETIRED, Entry, Payoff
from protege.runs.metrics import Metric
from protege.statistics import wilson

Style = dict[str, float]
Floats = npt.NDArray[np.float64]
UNPLAYED: Final = 0.1  # of a win and of a loss, added to what two scored against each other: nobody is infinitely good


def table(league: League, *, retired: bool = False) -> list[dict[str, Any]]:
    """Everybody, the best first: by the rating that is almost surely exceeded."""
    shown = [entry for entry in league.entries() if retired or entry.kind != RETIRED]
    ordered = sorted(shown, key=lambda entry: (entry.kind == RETIRED, -entry.rating.conservative, entry.id))
    fitted = strengths(league)

    def row(entry: Entry) -> dict[str, Any]:
        about, rating = asdict(entry), entry.rating
        del about["player"]
        return about | {
            "is_anchor": entry.id == league.anchor.id,
            "rating": round(rating.rating, 1), "deviation": round(rating.deviation, 1),
            "volatility": round(rating.volatility, 5), "conservative": round(rating.conservative, 1),
            "strength": fitted[entry.id][0], "strength_deviation": fitted[entry.id][1],
        }  # fmt: skip

    return [row(entry) for entry in ordered]


def strengths(league: League) -> dict[int, tuple[float | None, float | None]]:
    """What all rated matches together say of each entry, on the scale of the ratings: strength and deviation.

    Entries do not change, so no match is too old to count, and the order of matches does not matter. Ratings go match
    by match and lag behind where one wins nearly always; this does not. None without matches that lead to the anchor.
    """
    ids = [entry.id for entry in league.entries()]
    place = {id: i for i, id in enumerate(ids)}
    wins = np.zeros((len(ids), len(ids)))
    for id in ids:
        for other, scored in league.payoffs(id).items():
            wins[place[id], place[other]] = scored.score
    anchor = place[league.anchor.id]
    known = _connected(wins + wins.T > 0, anchor)
    value, deviation = fit_strengths(wins[np.ix_(known, known)], known.index(anchor))
    found: dict[int, tuple[float | None, float | None]] = dict.fromkeys(ids, (None, None))
    return found | {ids[i]: (round(float(v), 1), round(float(d), 1)) for i, v, d in zip(known, value, deviation)}


def fit_strengths(wins: Floats, anchor: int) -> tuple[Floats, Floats]:
    """Strengths under which these scores (row against column) are likeliest, and deviations; the anchor has 1500.

    The Bradley-Terry model, which expects of a game what Glicko-2 expects between two whose ratings are certain.
    """
    scored = wins + UNPLAYED * (wins + wins.T > 0)
    games = scored + scored.T
    free = np.array([i for i in range(len(wins)) if i != anchor], np.int64)
    strength, spread = np.zeros(len(wins)), np.zeros(len(wins))
    for _ in range(100 if len(free) else 0):  # Newton's method; a step is never far enough to overshoot
        expected = 1 / (1 + np.exp(strength - strength[:, None]))
        slope = (scored - games * expected).sum(1)
        doubt = games * expected * (1 - expected)
        bend = (np.diag(doubt.sum(1)) - doubt)[np.ix_(free, free)]
        step = np.clip(np.linalg.solve(bend, slope[free]), -1, 1)
        strength[free] += step
        spread[free] = np.sqrt(np.diag(np.linalg.inv(bend)))
        if np.abs(step).max() < 1e-9:
            break
    return START + SCALE * strength, SCALE * spread


def _connected(met: npt.NDArray[np.bool_], start: int) -> list[int]:
    """Everybody whom a chain of matches leads to."""
    found = np.arange(len(met)) == start
    while (reached := found | met[found].any(0)).sum() > found.sum():
        found = reached
    return np.flatnonzero(found).tolist()


def payoff(league: League, entries: Sequence[int]) -> list[list[dict[str, float] | None]]:
    """What each of these scored against each, in their order, with a 95 % interval; None where they never met."""
    # Of an agent its training games count, of the others the rated ones.
    kinds = {entry.id: entry.kind for entry in league.entries()}
    scored = {entry: league.payoffs(entry, rated=kinds[entry] != AGENT) for entry in entries}
    return [[_cell(scored[first].get(second)) for second in entries] for first in entries]


def _cell(found: Payoff | None) -> dict[str, float] | None:
    if found is None:
        return None
    low, high = wilson(found.score, found.games)
    return {"score": found.score / found.games, "low": low, "high": high, "games": found.games, "draws": found.draws}


def ratings_over_time(league: League, entries: Sequence[int]) -> dict[int, list[list[float]]]:
    """For each entry [period, time, rating, deviation, games in all] after each period that changed it."""
    return {
        entry: [[n, t, round(r.rating, 1), round(r.deviation, 1), games] for n, t, r, games in league.history(entry)]
        for entry in entries
    }


def styles(league: League, entries: Sequence[int]) -> dict[int, Style]:
    """How each entry plays: the mean over its newest matches that were looked at; those without any are left out."""
    return {
        entry: {name: float(np.mean([style[name] for style in seen if name in style])) for name in seen[0]}
        for entry in entries
        if (seen := league.styles(entry))
    }


def distances(styles: Mapping[int, Style]) -> dict[int, dict[int, float]]:
    """How differently two entries play: the distance of their styles, each figure in units of its spread."""
    if len(styles) < 2:
        return {entry: {} for entry in styles}
    names = sorted(set.intersection(*(set(style) for style in styles.values())))
    values = np.array([[style[name] for name in names] for style in styles.values()])  # (entries, figures)
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    apart = np.linalg.norm(scaled[:, None] - scaled[None], axis=-1) / np.sqrt(max(1, len(names)))
    ids = list(styles)
    return {a: {b: round(float(apart[i, j]), 3) for j, b in enumerate(ids) if a != b} for i, a in enumerate(ids)}


def recent_matches(league: League, entry: int, most: int = 5) -> list[dict[str, Any]]:
    """An entry's newest rated matches as seen from it: recorded ones, then one against each opponent, then others."""

    def seen(match: dict[str, Any]) -> dict[str, Any]:
        is_first = match["first"] == entry
        return {name: match[name] for name in ("id", "time", "map", "detail", "recording")} | {
            "opponent": match["second" if is_first else "first"], "is_first": is_first,
            "score": match["score"] if is_first else 1 - match["score"], "swapped": bool(match["swapped"]),
        }  # fmt: skip

    recorded = {match["id"]: seen(match) for match in league.matches(entry, most, recorded=True)}
    others = [seen(match) for match in league.matches(entry, 20 * most) if match["id"] not in recorded]
    newest = {match["opponent"]: match["id"] for match in reversed(others)}
    others.sort(key=lambda match: match["id"] != newest[match["opponent"]])
    return [*recorded.values(), *others][:most]


def report(league: League, style: Sequence[Metric] = ()) -> dict[str, Any]:
    """All of it, for a page. `style` declares what is told of how entries play."""
    rows = table(league, retired=True)
    ids = [row["id"] for row in rows]
    in_play = [row["id"] for row in rows if row["kind"] != RETIRED]
    found = styles(league, ids)
    return {
        "name": league.name, "game": league.game, "signature": league.signature, "counts": league.counts(),
        "entries": rows, "history": ratings_over_time(league, ids),
        "payoff": {"entries": in_play, "cells": payoff(league, in_play)},
        "style_metrics": [asdict(metric) for metric in style], "styles": found, "distances": distances(found),
        "matches": {id: recent_matches(league, id) for id in ids}, "events": league.events(),
    }  # fmt: skip
