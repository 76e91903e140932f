"""Maps for practice beside the generated ones: an open field, a field with a wall, and a few maps over and over.

Whatever is called like `world.generate` makes maps (`MapMaker`).
"""

from collections.abc import Sequence
from math import atan2
from typing import Any, Final, Protocol

import numpy as np

from protege.games.echelon.world.mechs import BLUE, CHASSIS, REINFORCED, Members, find_roster
from protege.games.echelon.world.paths import measure_paths, path_queue
from protege.games.echelon.world.voxels import World, blank, derive, empty_world

PITCH: Final = 5.0  # voxels between mechs that line up
EDGE: Final = 6.0  # voxels from a team's line to the edge of the map
WALL_HEIGHT: Final = 4  # as high as a heavy: nobody on the ground sees over it; missiles clear it from nearby


class MapMaker(Protocol):
    """Makes maps: new arrays, or battles number `at` of `out`."""

    def __call__(
        self, seeds: Sequence[int], size: tuple[int, int], roster: str, out: World | None = None, at: Any = None
    ) -> World:
        """One map per seed."""


class OpenField:
    """Flat ground with the zone in the middle; teams line up at opposite edges, where the seed puts them."""

    def __init__(self, wall: bool = False):
        """`wall`: one from edge to edge that nothing goes through stands between the teams and across the zone."""
        self.wall = wall

    def __call__(
        self, seeds: Sequence[int], size: tuple[int, int], roster: str, out: World | None = None, at: Any = None
    ) -> World:
        members = find_roster(roster).members()
        world = empty_world(len(seeds), size, len(members.team)) if out is None else out
        for b, seed in zip(range(len(seeds)) if at is None else at, seeds):
            made = self._make(seed, size, members)
            for name, array in world._asdict().items():
                array[b] = getattr(made, name)[0]
        return world

    def _make(self, seed: int, size: tuple[int, int], members: Members) -> World:
        made = blank(1, *size, len(members.team))
        made.seed[0] = seed
        if self.wall:
            middle = size[0] // 2
            made.material[0, :WALL_HEIGHT, :, middle - 1 : middle + 1] = REINFORCED
        dice = np.random.default_rng(seed)
        line = PITCH * (np.bincount(members.team).max() - 1)
        first = dice.uniform(EDGE, size[1] - EDGE - line, 2)
        for mech, (team, kind, rank) in enumerate(zip(members.team, members.kind, members.rank)):
            x, y = EDGE if team == BLUE else size[0] - EDGE, first[team] + PITCH * rank
            facing = atan2(size[1] / 2 - y, size[0] / 2 - x) + dice.uniform(-0.5, 0.5)
            made.spawn[0, mech] = x, y, CHASSIS[kind].height / 2, facing
        derive(made, 0)
        measure_paths(made, 0, path_queue(*size))
        return made


class OverAndOver:
    """A few maps, each battle on one of them; the seed says on which, and is the battle's own."""

    def __init__(self, maps: World):
        self.maps = maps

    def __call__(
        self, seeds: Sequence[int], size: tuple[int, int], roster: str, out: World | None = None, at: Any = None
    ) -> World:
        world = empty_world(len(seeds), size, self.maps.spawn.shape[1]) if out is None else out
        for b, seed in zip(range(len(seeds)) if at is None else at, seeds):
            for name, array in world._asdict().items():
                array[b] = getattr(self.maps, name)[seed % len(self.maps.seed)]
            world.seed[b] = seed
        return world
