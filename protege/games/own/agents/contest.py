"""Any game in a league: two players are dealt the same episodes, and the higher return wins."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from protege.games import Contests
from protege.games.own.agents.players import play, players_of
from protege.games.own.world.arena import World
from protege.league.league import Opponent
from protege.league.ledger import Filing, Result


@dataclass(frozen=True)
class Setting:
    """What all matches of a league have in common."""

    teacher: str = ""  # package.module:name of the game's teacher, which is then a member
    longest: int = 20_000  # frames after which an episode is cut
    seed: int = 10  # the episodes follow from this number


def signature(world: World, setting: Setting) -> dict[str, Any]:
    """What must be the same for results to be comparable."""
    named = {"teacher": setting.teacher, "longest": setting.longest, "seed": setting.seed}
    return {"game": world.name, "task_version": world.version, **named}


class Contest:
    """Plays matches of one league. Each plays alone, so an episode serves every match on the same map."""

    sides = 1

    def __init__(
        self, worlds: Callable[..., World], signature_of_league: Mapping[str, Any], threads: int = 1, games: int = 1
    ) -> None:
        given = signature_of_league
        self.setting = Setting(str(given["teacher"]), int(given["longest"]), int(given["seed"]))
        self.world, self.ahead = worlds(self.setting.teacher), games
        self.signature = signature(self.world, self.setting)
        self.check = cache(players_of(self.world).find)
        self._returns: dict[tuple[str, int], float] = {}  # by player and map

    def play(
        self, first: Opponent, second: Opponent, maps: Sequence[int], record: int = 0, file: Filing | None = None
    ) -> list[Result]:
        found = []
        for number in maps:
            one, other = (self._earned(who.player, number) for who in (first, second))
            points = 0.5 if one == other else float(one > other)
            found.append(Result(first.id, second.id, points, number, detail={"returns": [one, other]}))
            if file is not None:
                file(found[-1])
        return found

    def _earned(self, player: str, number: int) -> float:
        if (player, number) not in self._returns:
            games, c = max(1, self.ahead), self.setting
            episodes = play(self.world, self.check(player), games, c.seed, c.longest, first=number)
            for i, episode in enumerate(episodes):
                self._returns.setdefault((player, number + i), episode.reward)
        return self._returns[player, number]


def contests_of(worlds: Callable[..., World]) -> Contests:
    """Scripted players are the first members; random play is pinned, since every game has it."""

    def signed(setting: Any) -> Mapping[str, Any]:
        chosen = setting if isinstance(setting, Setting) else Setting()
        return signature(worlds(chosen.teacher), chosen)

    scripted = ["random", *(["teacher"] if worlds("").teaches else [])]
    return Contests(scripted, "random", signed, partial(Contest, worlds), Setting)
