"""Who plays whom, who may enter and who must leave: rules of a league on figures alone.

An opponent is drawn from a mixture of three weights: of about the same strength, hard or even by the results so far,
and the same for everybody. Newcomers meet only opponents near their own rating. Knows no file and no game.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.league.glicko import Rating

MAIN: Final = "main"  # wants to beat everybody
MAIN_EXPLOITER: Final = "main exploiter"  # wants to beat the main agent, whatever it takes
LEAGUE_EXPLOITER: Final = "league exploiter"  # wants a weakness that the whole league has
EXPLOITERS: Final = (MAIN_EXPLOITER, LEAGUE_EXPLOITER)
WIDENING: Final = (1, 2, 4)  # times `cold_range`, until somebody is in reach

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """How a league is run; kept with the league."""

    limit: int = 20  # most learned members; beyond it the lowest-rated retire
    newest: int = 5  # candidates, the newest ones, that are opponents although they are no members yet
    skill: float = 0.45  # fraction of opponents drawn by strength: a bell curve of the difference in rating
    prioritised: float = 0.45  # fraction drawn by results: hard ones and even ones
    floor: float = 0.10  # fraction drawn from everybody alike, so that nobody is forgotten
    sigma: float = 200.0  # width of the bell curve, rating points
    cold_games: int = 20  # below so many games an agent meets only opponents close to its rating
    cold_range: float = 200.0  # how close, rating points; doubled and doubled again if nobody is
    period_games: int = 100  # filed games after which a rating period ends
    gate_score: float = 0.55  # what a candidate must score against the best member
    gate_games: int = 200  # in so many games
    gate_top: int = 5  # so many of the best members must not beat it clearly
    gate_worst: float = 0.45  # each of them leaves it at least so much
    exploiter_score: float = 0.70  # an exploiter that scores so much has done its work and begins again
    exploiter_games: int = 100  # not before so many games
    exploiter_met: int = 40  # and so many against each one that it has to beat
    exploiter_budget: int = 20_000  # games after which it begins again in any case
    retire_games: int = 20  # below so many games the `newest` of the members leave only after all others
    recordings: int = 3  # kept of each entry, the newest


class Tally(NamedTuple):
    """What somebody scored against an opponent, draws as halves; for agents old games count less and less."""

    score: float = 0.0
    games: float = 0.0

    @property
    def rate(self) -> float:
        """The fraction of points, drawn towards one half as if one more game had been won and one lost."""
        return (self.score + 1) / (self.games + 2)


@dataclass(frozen=True)
class Standing:
    """An entry as these rules see it."""

    id: int
    rating: Rating
    games: int


def draw_probabilities(me: Standing, pool: Sequence[Standing], tallies: Mapping[int, Tally], rules: Rules) -> Floats:
    """The probability of each opponent of a pool to be drawn; they add up to one."""
    assert pool, "there is nobody to play"
    apart = np.array([abs(other.rating.rating - me.rating.rating) for other in pool])
    reach = np.ones(len(pool), bool)
    if me.games < rules.cold_games:
        near = [apart <= factor * rules.cold_range for factor in WIDENING]
        reach = next((within for within in near if within.any()), reach)
    rate = np.array([tallies.get(other.id, Tally()).rate for other in pool])
    # Seen from the nearest, so that a league where all are far away does not divide nothing by nothing.
    bell = np.exp(-(apart**2 - apart[reach].min() ** 2) / (2 * rules.sigma**2))
    even, hard = rate * (1 - rate), (1 - rate) ** 2
    kinds = (rules.skill, bell), (rules.prioritised / 2, even), (rules.prioritised / 2, hard), (rules.floor, 1.0)
    mixed = np.zeros(len(pool))
    for fraction, weights in kinds:
        found = np.where(reach, weights, 0.0)
        mixed += fraction * (found / found.sum())
    return np.asarray(mixed / mixed.sum())


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate becomes a member."""

    passed: bool
    reason: str
    missing: tuple[tuple[int, int], ...] = ()  # opponents it has not played enough, and how many games are missing


def gate(members: Sequence[Standing], tallies: Mapping[int, Tally], rules: Rules) -> Verdict:
    """Judge a candidate by its games against the best members."""
    ranked = sorted(members, key=lambda member: -member.rating.conservative)[: rules.gate_top]
    assert ranked, "there is nobody to beat"
    best = ranked[0].id
    needed = dict.fromkeys((member.id for member in ranked), max(1, rules.gate_games // rules.gate_top))
    needed[best] = rules.gate_games
    found = {member: tallies.get(member, Tally()) for member in needed}
    missing = tuple((m, needed[m] - int(found[m].games)) for m in needed if found[m].games < needed[m])
    if missing:
        return Verdict(False, f"{sum(games for _, games in missing)} games are missing", missing)
    scores = {member: tally.score / tally.games for member, tally in found.items()}
    if scores[best] < rules.gate_score:
        return Verdict(False, f"{scores[best]:.1%} against the best, {rules.gate_score:.0%} needed")
    worst = min(scores, key=lambda member: scores[member])
    if scores[worst] < rules.gate_worst:
        return Verdict(False, f"only {scores[worst]:.1%} against one of the top {len(ranked)}")
    return Verdict(True, f"{scores[best]:.1%} against the best, at least {scores[worst]:.1%} against the top")


def to_retire(members: Sequence[Standing], rules: Rules, protected: frozenset[int] = frozenset()) -> list[int]:
    """Members that must leave so that the limit holds: the lowest, but last the newest that are hardly known yet."""
    unknown = sorted(member.id for member in members if member.games < rules.retire_games)
    spared = unknown[max(0, len(unknown) - rules.newest) :]
    leaving = [member for member in members if member.id not in protected]
    leaving.sort(key=lambda member: (member.id in spared, member.rating.conservative, member.id))
    return [member.id for member in leaving[: max(0, len(members) - rules.limit)]]


def reset_reason(role: str, games: int, recent: Tally, rules: Rules) -> str:
    """Why an exploiter begins again, or nothing. `recent` are its latest games against whom it finds hardest."""
    if role not in EXPLOITERS or games < rules.exploiter_games:
        return ""
    if recent.games and recent.score / recent.games >= rules.exploiter_score:
        return f"scored {recent.score / recent.games:.0%}, {rules.exploiter_score:.0%} were asked of it"
    return f"used its {rules.exploiter_budget:,} games" if games >= rules.exploiter_budget else ""
