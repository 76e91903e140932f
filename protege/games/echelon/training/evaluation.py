"""Measures a pupil on battles that training never sees, against each opponent of a stage, from both sides."""

import threading
import time
from functools import partial
from math import ceil, inf
from pathlib import Path
from typing import Any, Final

import numpy as np

from protege.games.echelon.agents.contest import style
from protege.games.echelon.agents.match import Match, Result, Setting, both_sides, find_player, play
from protege.games.echelon.agents.pupil import Pupil
from protege.games.echelon.recordings.recording import Recording, write_recording
from protege.games.echelon.rules.battle import BY_ELIMINATION
from protege.games.echelon.rules.sim import Actions, Battles, Flags
from protege.games.echelon.training.config import Stage
from protege.games.echelon.world.maps import MapMaker, generate, over_and_over
from protege.games.echelon.world.mechs import BLUE, NOBODY, find_roster
from protege.games.echelon.world.voxels import World
from protege.seeds import EVALUATION, seed_of
from protege.statistics import wilson
from protege.train.session import Cancelled

KILL_WITHIN: Final = 80  # decisions
ARRIVE_WITHIN: Final = 1.5  # times as long as the shortest way takes
SEED_OF_EVALUATIONS: Final = 2_000_000  # so that these and what people evaluate with are different battles


class _Watched:
    """A pupil, watched: when its first mech was in the zone for the first time, and how soon it could have been."""

    def __init__(self, pupil: Pupil, cancelled: threading.Event):
        self.pupil, self.cancelled = pupil, cancelled
        self.arrived: dict[int, int] = {}  # decision, by the battle's seed
        self.soonest: dict[int, float] = {}

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        if self.cancelled.is_set():
            raise Cancelled
        self.pupil.act(battles, mechs, actions)
        chassis = battles.rules.chassis[battles.members.kind[0]]
        pace = chassis.speed * battles.rules.dt * battles.rules.ticks_per_decision
        for b in np.flatnonzero(battles.records["decision"] == 0):
            self.soonest.setdefault(int(battles.world.seed[b]), self.pupil.walk(battles, int(b)) / pace)
        for b in np.flatnonzero(battles.mechs["inside"][:, 0]):
            self.arrived.setdefault(int(battles.world.seed[b]), int(battles.records["decision"][b]))


def setting_of(stage: Stage, maps: World | None) -> Setting:
    """What the battles of a stage have in common, on maps that are played over and over or on new ones."""
    make: MapMaker = generate if maps is None else partial(over_and_over, maps)
    return Setting(stage.roster, (stage.size, stage.size), stage.length, maps=make)


def evaluate(
    pupil: Pupil, stage: Stage, opponent: str, *, maps: World | None = None, matches: int = 64, seed: int = 0,
    threads: int = 1, cancelled: threading.Event | None = None,
) -> dict[str, Any]:  # fmt: skip
    """How a pupil fares: `success` with its 95 % interval, and how the battles went.

    `maps` are those the stage plays over and over; without them every battle has a map that training never sees.
    """
    began = time.perf_counter()
    roster = find_roster(stage.roster)
    if roster.blue == roster.red:
        listed = both_sides(matches // 2, seed)
    else:  # teams that differ cannot change places
        listed = [Match(seed_of(EVALUATION, seed, index)) for index in range(matches)]
    watched = _Watched(pupil, cancelled or threading.Event())
    results = play(watched, find_player(opponent), listed, setting_of(stage, maps), threads=threads)
    if stage.goal == "arrive":
        limits = {seed: ceil(ARRIVE_WITHIN * soonest) for seed, soonest in watched.soonest.items()}
        points = [float(watched.arrived.get(match.seed, inf) <= limits[match.seed]) for match in listed]
    else:
        points = [points_of(stage, result) for result in results]
    low, high = wilson(sum(points), len(points))
    team = max(1, sum(roster.members().team == BLUE))
    return {
        "opponent": opponent,
        "matches": len(results),
        "seed": seed,
        "success": float(np.mean(points)),
        "success_low": low,
        "success_high": high,
        "draws": sum(result.winner == NOBODY for result in results),
        "margin": float(np.mean([result.living[0] - result.living[1] for result in results])) / team,
        "length_mean": float(np.mean([result.seconds for result in results])),
        "seconds": time.perf_counter() - began,
    }


def record_battle(
    pupil: Pupil, stage: Stage, opponent: str, path: Path, *, maps: World | None, names: tuple[str, str], seed: int
) -> dict[str, float]:
    """Record one held-out battle of a pupil, and how it played there; `names` are what both are called."""
    matches, kept = [Match(seed_of(EVALUATION, seed, 0))], dict[int, bytes]()
    play(pupil, find_player(opponent), matches, setting_of(stage, maps), names=names, recorded=kept.__setitem__)
    write_recording(path, kept[0])
    return style(Recording(kept[0]), BLUE)


def points_of(stage: Stage, result: Result) -> float:
    """What the end of a battle counts where the goal is not a place."""
    if stage.goal == "kill":
        won = result.winner == BLUE and result.ending == BY_ELIMINATION
        return float(won and result.decisions <= KILL_WITHIN)
    return 0.5 if result.winner == NOBODY else float(result.winner == BLUE)


def summary(results: list[dict[str, Any]]) -> str:
    """Results in words."""
    told = [
        f"{one['success']:.0%} ({one['success_low']:.0%}–{one['success_high']:.0%}) against {one['opponent']}"
        for one in results
    ]
    return f"{', '.join(told)}; {results[0]['length_mean']:.0f} s a battle, {sum(e['seconds'] for e in results):.0f} s"
