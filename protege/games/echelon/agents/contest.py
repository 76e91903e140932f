"""Echelon in a league: two players meet on evaluation maps, each map from both sides.

Also tells from a recorded battle how each side plays: how it moves, how it shoots, and how it keeps together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protege.games import Contests
from protege.games.echelon.agents.match import Match, Setting, find_player, play
from protege.games.echelon.agents.match import Result as Played
from protege.games.echelon.recordings.battle_report import flag
from protege.games.echelon.recordings.recording import Recording
from protege.games.echelon.rules.events import LASER_HIT, MISSILE_LAUNCH, PROJECTILE_HIT
from protege.games.echelon.rules.sim import VERSION as RULES_VERSION
from protege.games.echelon.task.env import TASK_VERSION
from protege.games.echelon.task.teacher import LEVELS
from protege.games.echelon.world.maps import VERSION as MAP_VERSION
from protege.games.echelon.world.mechs import BLUE, NOBODY, RED, RULES, TICK_S, find_roster
from protege.league.league import Opponent
from protege.league.ledger import Filing, Result
from protege.runs.metrics import Metric
from protege.seeds import EVALUATION, seed_of

SCRIPTED: Final = ("random", *LEVELS)
ANCHOR: Final = "medium"
SEED: Final = 10  # the maps of leagues follow from this number
WEAPON_BUTTONS: Final = 0b1111  # the fifth vents heat

# How a side plays. The families are the parts of a report on a player's style.
STYLE: Final = (
    Metric("speed", "voxels/s", "mean speed of living mechs", "Moves", label="speed"),
    Metric("still_fraction", "fraction", "of the time: standing still", "Moves", label="stands still"),
    Metric("airborne_fraction", "fraction", "of the time: in the air", "Moves", label="in the air"),
    Metric("zone_fraction", "fraction", "of the time: in the zone", "Moves", label="in the zone"),
    Metric("trigger_fraction", "fraction", "of the time: a trigger pulled", "Shoots", label="trigger held"),
    Metric("hits_per_minute", "1/min", "hits of a mech that lives", "Shoots", label="hits"),
    Metric("missiles_per_minute", "1/min", "missiles of a mech that lives", "Shoots", label="missiles"),
    Metric("hit_distance", "voxels", "median distance from which enemies are hit", "Shoots", label="hit distance"),
    Metric("heat", "fraction", "of a mech's heat capacity, on average", "Shoots", label="heat"),
    Metric("jamming_fraction", "fraction", "of the time: electronic warfare on", "Keeps together", label="jamming"),
    Metric("spread", "voxels", "mean distance from the team's centre", "Keeps together", label="spread"),
    Metric("nearest_friend", "voxels", "mean distance to the nearest friend", "Keeps together", label="nearest friend"),
    Metric("focus_fraction", "fraction", "of all hits: on whoever is hit most in that second", "Keeps together",
           label="focus"),
)  # fmt: skip


def signature(setting: Setting = Setting()) -> dict[str, Any]:
    """What must be the same for results to be comparable."""
    return {
        "game": "echelon", "task_version": TASK_VERSION, "rules_version": RULES_VERSION, "map_version": MAP_VERSION,
        "rules": setting.rules.name, "roster": setting.roster, "size": list(setting.size), "length": setting.length,
        "seed": SEED,
    }  # fmt: skip


class Contest:
    """Plays matches of one league."""

    sides = 2

    def __init__(self, signature_of_league: Mapping[str, Any], threads: int = 1, games: int = 1) -> None:
        of = signature_of_league
        x, y = of["size"]
        self.setting = Setting(find_roster(of["roster"]).name, (int(x), int(y)), int(of["length"]), RULES[of["rules"]])
        self.signature = signature(self.setting)
        self.threads = threads
        self.check = cache(find_player)  # raises unless this is a player; its network is built once to see

    def play(
        self, first: Opponent, second: Opponent, maps: Sequence[int], record: int = 0, file: Filing | None = None
    ) -> list[Result]:
        """Two matches on each map, with sides swapped; those on the first `record` maps are recorded and looked at."""
        numbers = [(number, swapped) for number in maps for swapped in (False, True)]
        matches = [Match(seed_of(EVALUATION, SEED, number), swapped) for number, swapped in numbers]
        players, names = (self.check(first.player), self.check(second.player)), (first.name, second.name)
        kept: dict[int, bytes] = {}
        found: dict[int, Result] = {}

        def ended(i: int, result: Played) -> None:
            recording = Recording(kept[i]) if i in kept else None
            found[i] = Result(
                first.id, second.id, 0.5 if result.winner == NOBODY else float(result.winner == BLUE), *numbers[i],
                detail={"seconds": result.seconds, "scores": result.score, "kills": result.kills},
                recording=kept.get(i),
                styles=(style(recording, BLUE), style(recording, RED)) if recording else None,
            )  # fmt: skip
            if file is not None:
                file(found[i])

        split = 2 * min(record, len(maps))
        fight = partial(play, *players, setting=self.setting, threads=self.threads)
        fight(matches[:split], names=names, recorded=kept.__setitem__, ended=ended)
        fight(matches[split:], ended=lambda i, result: ended(split + i, result))
        return [found[i] for i in range(len(matches))]


@dataclass(frozen=True)
class LeagueSettings:
    """What the matches of a new league are like."""

    roster: str = "10v10"  # teams and their sizes
    size: int = 100  # columns on each side of the map
    length: int = 500  # decisions in a battle, four a second

    def signature(self) -> dict[str, Any]:
        return signature(Setting(find_roster(self.roster).name, (self.size, self.size), self.length))


CONTESTS: Final = Contests(SCRIPTED, ANCHOR, LeagueSettings.signature, Contest, LeagueSettings)


def style(recording: Recording, team: int) -> dict[str, float]:
    """How one side played a battle. Distances in voxels, fractions of the time that its mechs were alive."""
    frames, counts = recording.everything()
    header = recording.header
    own = np.flatnonzero([mech["team"] == team for mech in header["mechs"]])
    mechs = frames["mechs"][1:, own]
    alive = flag(mechs, "alive")
    lived = max(1, int(alive.sum()))
    minutes = lived * header["seconds_per_frame"] / 60

    def fraction(true: npt.NDArray[np.bool_]) -> float:
        return float((true & alive).sum() / lived)

    speed = np.hypot(mechs["vx"], mechs["vy"])
    capacity = np.array([header["classes"][header["mechs"][i]["kind"]]["heat_capacity"] for i in own])
    events, at = frames["events"], np.repeat(np.arange(recording.frames), counts["events"])
    hit = np.isin(events["kind"], (LASER_HIT, PROJECTILE_HIT)) & np.isin(events["who"], own)
    hit &= (events["whom"] >= 0) & ~np.isin(events["whom"], own)
    hits = events[hit]
    shooters, victims = (frames["mechs"][at[hit], hits[end]] for end in ("who", "whom"))
    apart = [shooters[axis] - victims[axis] for axis in "xy"]
    launches = (events["kind"] == MISSILE_LAUNCH) & np.isin(events["who"], own)
    seconds = hits["tick"] // round(1 / TICK_S)
    focused = sum(int(np.bincount(hits["whom"][seconds == second]).max()) for second in np.unique(seconds))
    spread, nearest = _together(mechs, alive)
    return {
        "speed": float(speed[alive].mean()) if alive.any() else 0.0,
        "still_fraction": fraction(speed < 0.2),
        "airborne_fraction": fraction(~flag(mechs, "grounded")),
        "zone_fraction": fraction(flag(mechs, "inside")),
        "trigger_fraction": fraction((mechs["buttons"] & WEAPON_BUTTONS) != 0),
        "hits_per_minute": len(hits) / minutes,
        "missiles_per_minute": float(launches.sum()) / minutes,
        "hit_distance": float(np.median(np.hypot(*apart))) if len(hits) else 0.0,
        "heat": float((mechs["heat"] / capacity)[alive].mean()) if alive.any() else 0.0,
        "jamming_fraction": fraction(mechs["ewar"] != 0),
        "spread": spread,
        "nearest_friend": nearest,
        "focus_fraction": focused / max(1, len(hits)),  # 1 if the side always shoots at one enemy
    }


def _together(mechs: npt.NDArray[Any], alive: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Mean distance of the living from their centre, and from the nearest friend, while there are at least two."""
    places = np.stack([mechs["x"], mechs["y"]], axis=-1).astype(np.float64)  # (frames, mechs, 2)
    several = alive.sum(1) >= 2
    places, alive = places[several], alive[several]
    if not len(places):
        return 0.0, 0.0
    centre = (places * alive[..., None]).sum(1) / alive.sum(1)[:, None]
    apart: npt.NDArray[np.float64] = np.linalg.norm(places[:, :, None] - places[:, None], axis=-1)
    apart[~(alive[:, :, None] & alive[:, None])] = np.inf
    apart[:, np.arange(apart.shape[1]), np.arange(apart.shape[1])] = np.inf
    from_centre = np.linalg.norm(places - centre[:, None], axis=-1)
    return float(from_centre[alive].mean()), float(apart.min(axis=2)[alive].mean())
