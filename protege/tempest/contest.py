"""Tempest in a league: two players are dealt the same games, and the higher score wins.

Each plays alone, so a game that was played for one match serves every other match on the same map. Also tells how a
player plays: how much it turns, fires and zaps, and what its lives are worth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.evaluate import EVALUATION
from protege.league import Opponent
from protege.ledger import Result
from protege.tempest import ram, sim
from protege.tempest.env import TASK_VERSION, Games, starts, to_commands
from protege.tempest.players import BUILT_IN, Player, find_player, words
from protege.tempest.ram import Rows

SCRIPTED: Final = tuple(BUILT_IN)
ANCHOR: Final = "teacher"

Figures = dict[str, float]


@dataclass(frozen=True)
class Setting:
    """What all matches of a league have in common."""

    level: int = 1  # to start at
    max_frames: int = 20_000  # a game is cut there, 12 minutes in the arcade: the best players hardly ever end
    seed: int = 10  # the games follow from this number


def signature(setting: Setting = Setting()) -> dict[str, Any]:
    """What must be the same for results to be comparable."""
    cabinet = sim.Cabinet()
    factory = {"lives": cabinet.lives, "difficulty": cabinet.difficulty}
    return {"game": "tempest", "task_version": TASK_VERSION, **asdict(setting), **factory}


class Contest:
    """Plays matches of one league."""

    def __init__(self, signature_of_league: Mapping[str, Any], threads: int = 1) -> None:
        self.setting = Setting(**{name: int(signature_of_league[name]) for name in asdict(Setting())})
        self.signature = signature(self.setting)
        self.threads = threads
        self.ahead = 1  # games that are played together at least: many side by side take hardly longer than one
        self._played: dict[tuple[str, int], Figures] = {}  # by player and map
        self._players: dict[str, Player] = {}

    def check(self, player: str) -> None:
        """Raise unless this is a player; its network is built once to see."""
        self._find(player)

    def play(self, first: Opponent, second: Opponent, maps: Sequence[int], record: int = 0) -> list[Result]:
        """One match on each map. Nothing is recorded, as any game can be played again from its map."""
        found = [self._figures(who.player, maps) for who in (first, second)]
        return [
            Result(
                first.id, second.id, _points(one["score"], other["score"]), number,
                detail={"scores": [one["score"], other["score"]]}, styles=(_style(one), _style(other)),
            )
            for number, one, other in zip(maps, *found, strict=True)
        ]  # fmt: skip

    def _find(self, player: str) -> Player:
        if player not in self._players:
            self._players[player] = find_player(player)
        return self._players[player]

    def _figures(self, player: str, maps: Sequence[int]) -> list[Figures]:
        new = [number for number in maps if (player, number) not in self._played]
        if new:
            rest = range(max(new) + 1, min(new) + self.ahead)
            new += [number for number in rest if (player, number) not in self._played]
            begin = [
                starts(1, seed=self.setting.seed, level=self.setting.level, domain=EVALUATION, first=number)
                for number in new
            ]
            ended, sums = watched(self._find(player), np.concatenate(begin), self.setting.max_frames, self.threads)
            deaths = words(ended, ram.DEATHS, ram.DEATH_KINDS).sum(axis=1)
            for i, number in enumerate(new):
                self._played[player, number] = dict(zip(SUMS, sums[i].tolist())) | {
                    "score": int(words(ended, ram.SCORE)[i]),
                    "level": int(ended[i, ram.P1_LEVEL]) + 1,
                    "lives": float(max(1, deaths[i])),
                }
        return [self._played[player, number] for number in maps]


SUMS: Final = ("frames", "fire", "zap", "turning", "still", "reversals")


def watched(player: Player, rows: Rows, max_frames: int, threads: int) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Play games to their ends; returns them as they ended, and (games, SUMS) of what the player did in each."""
    ended, sums = np.empty_like(rows), np.zeros((len(rows), len(SUMS)))
    where, before = np.arange(len(rows)), np.zeros(len(rows), np.int64)  # games that go on, and the last turn in each
    games = Games(rows, threads=threads)
    while len(where):
        commands = to_commands(player.act(games.frames), len(where))
        fire, zap, spin = commands.T.astype(np.int64)
        turned, last = spin != 0, before[where]
        doing = (np.ones(len(where)), fire != 0, zap != 0, np.abs(spin), ~turned, last * spin < 0)
        sums[where] += np.stack([np.asarray(part, np.float64) for part in doing], axis=1)
        before[where] = np.where(turned, spin, last)
        frames = games.step(commands)
        stopped = frames.over | (frames.frame >= max_frames)
        if stopped.any():
            ended[where[stopped]] = games.rows[stopped]
            where = where[~stopped]
            games.keep(np.flatnonzero(~stopped))
    return ended, sums


def _points(one: float, other: float) -> float:
    return 1.0 if one > other else 0.0 if one < other else 0.5


def _style(game: Figures) -> Figures:
    """How one game was played."""
    frames = game["frames"]
    minutes = frames / ram.TICKS_PER_SECOND / 60
    return {
        "turning": game["turning"] / frames,
        "still_share": game["still"] / frames,
        "reversals_per_minute": game["reversals"] / minutes,
        "fire_share": game["fire"] / frames,
        "zaps_per_minute": game["zap"] / minutes,
        "seconds_per_life": 60 * minutes / game["lives"],
        "points_per_life": game["score"] / game["lives"],
        "level": game["level"],
    }
