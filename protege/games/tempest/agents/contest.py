"""Tempest in a league: two players are dealt the same games, and the higher score wins.

Each plays alone, so a game that was played for one match serves every other match on the same map. Also tells how a
player plays: how much it turns, fires and zaps, and what its lives are worth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games import Contests
from protege.games.tempest.agents.players import BUILT_IN, Player, find_player, words
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Rows
from protege.games.tempest.task.actions import to_commands
from protege.games.tempest.task.env import TASK_VERSION, Games, starts
from protege.league.league import Opponent
from protege.league.ledger import Filing, Result
from protege.runs.metrics import Metric
from protege.seeds import EVALUATION

SCRIPTED: Final = tuple(BUILT_IN)
ANCHOR: Final = "teacher"

# How a player plays. The families are the parts of a report on a player's style.
STYLE: Final = (
    Metric("turning", "", "spinner steps in a frame", "Moves", label="turning"),
    Metric("still_share", "fraction", "of the frames: standing still", "Moves", label="stands still"),
    Metric("reversals_per_minute", "1/min", "changes of direction", "Moves", label="reversals"),
    Metric("fire_share", "fraction", "of the frames: fire held", "Shoots", label="fire held"),
    Metric("zaps_per_minute", "1/min", "uses of the superzapper", "Shoots", label="superzapper"),
    Metric("seconds_per_life", "s", "in control, for each life", "Lives", label="seconds a life"),
    Metric("points_per_life", "points", "for each life", "Lives", label="points a life"),
    Metric("level", "level", "mean level reached", "Lives", label="level reached"),
)

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

    sides = 1

    def __init__(self, signature_of_league: Mapping[str, Any], threads: int = 1, games: int = 1) -> None:
        self.setting = Setting(**{name: int(signature_of_league[name]) for name in asdict(Setting())})
        self.signature, self.threads = signature(self.setting), threads
        self.ahead = games  # that are played together at least: many side by side take hardly longer than one
        self._played: dict[tuple[str, int], Figures] = {}  # by player and map
        self.check = cache(find_player)  # raises unless this is a player; its network is built once to see

    def play(
        self, first: Opponent, second: Opponent, maps: Sequence[int], record: int = 0, file: Filing | None = None
    ) -> list[Result]:
        """One match on each map. Nothing is recorded, as any game can be played again from its map.

        `file` is given each result as soon as there is one: when the second player's game is over.
        """
        self._play(first.player, maps)
        found: dict[int, Result] = {}

        def ended(number: int) -> None:
            one, other = (self._played[who.player, number] for who in (first, second))
            scores = [one["score"], other["score"]]
            points = 0.5 if scores[0] == scores[1] else float(scores[0] > scores[1])
            styles = (_style(one), _style(other))
            found[number] = Result(first.id, second.id, points, number, detail={"scores": scores}, styles=styles)
            if file is not None:
                file(found[number])

        self._play(second.player, maps, ended)
        return [found[number] for number in maps]

    def _play(self, player: str, maps: Sequence[int], ended: Callable[[int], None] = lambda number: None) -> None:
        """Play the games on these maps that have not been played yet; `ended` is told of each that is over."""
        new = [number for number in maps if (player, number) not in self._played]
        for number in maps:
            if number not in new:
                ended(number)
        if new:
            rest = range(max(new) + 1, min(new) + self.ahead)
            new += [number for number in rest if (player, number) not in self._played]
            level, seed = self.setting.level, self.setting.seed
            rows = [starts(1, seed=seed, level=level, domain=EVALUATION, first=number) for number in new]
            games = watched(self.check(player), np.concatenate(rows), self.setting.max_frames, self.threads)
            for i, row, sums in games:
                deaths = words(row, ram.DEATHS, ram.DEATH_KINDS).sum()
                self._played[player, new[i]] = dict(zip(SUMS, sums.tolist())) | {
                    "score": int(words(row, ram.SCORE)[0]), "level": int(row[0, ram.P1_LEVEL]) + 1,
                    "lives": float(max(1, deaths)),
                }  # fmt: skip
                if new[i] in maps:
                    ended(new[i])


CONTESTS: Final = Contests(SCRIPTED, ANCHOR, lambda settings: signature(), Contest)
SUMS: Final = ("frames", "fire", "zap", "turning", "still", "reversals")


def watched(
    player: Player, rows: Rows, max_frames: int, threads: int
) -> Iterator[tuple[int, Rows, npt.NDArray[np.float64]]]:
    """Play games to their ends; of each, as it ends, its number, its row and the SUMS of what the player did in it."""
    sums = np.zeros((len(rows), len(SUMS)))
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
            over = zip(where[stopped].tolist(), games.rows[stopped])
            where = where[~stopped]
            games.keep(np.flatnonzero(~stopped))
            yield from ((i, row[None], sums[i]) for i, row in over)


def _style(game: Figures) -> Figures:
    frames = game["frames"]
    minutes = frames / ram.TICKS_PER_SECOND / 60
    return {
        "turning": game["turning"] / frames, "still_share": game["still"] / frames, "fire_share": game["fire"] / frames,
        "reversals_per_minute": game["reversals"] / minutes, "zaps_per_minute": game["zap"] / minutes,
        "seconds_per_life": 60 * minutes / game["lives"], "points_per_life": game["score"] / game["lives"],
        "level": game["level"],
    }  # fmt: skip
