"""Battles made by hand, and what everybody sees of them, by name."""

from typing import Any

import numpy as np

from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.task import features
from protege.games.echelon.task.features import (
    CHANNELS,
    ENEMY,
    FRIEND,
    OWN,
    layout_of,
    legal_fields,
    starts,
)
from protege.games.echelon.task.observation import (
    Observation,
    Scratch,
    empty_observation,
    make_scratch,
    observe,
)
from protege.games.echelon.world.paths import measure_paths, path_queue
from tests.games.echelon.rules.fields import field

QUARTER_TURN = np.pi / 2


class Watch:
    """Battles and what everybody sees of them."""

    def __init__(self, battles: Battles):
        self.battles, self.layout = battles, layout_of(battles.roster)
        self.observation = empty_observation(battles.count, self.layout)
        self.scratch: Scratch = make_scratch(battles.world, self.layout, battles.rules)
        queue = path_queue(battles.world.blocked.shape[2], battles.world.blocked.shape[1])
        for b in range(battles.count):
            measure_paths(battles.world, b, queue)
        self.look()

    def look(self) -> Observation:
        records, world, scratch = self.battles.records, self.battles.world, self.scratch
        observe(records, world, scratch, self.observation, 0, self.battles.count)
        return self.observation

    def own(self, i: int, name: str) -> Any:
        return named(self.observation.own[0, i], OWN, name)

    def friend(self, i: int, slot: int, name: str) -> Any:
        return named(self.observation.friends[0, i, slot], FRIEND, name)

    def enemy(self, i: int, slot: int, name: str) -> Any:
        return named(self.observation.enemies[0, i, slot], ENEMY, name)

    def legal(self, i: int, name: str) -> Any:
        return named(self.observation.legal[0, i], legal_fields(self.layout), name).tolist()

    def channel(self, i: int, name: str) -> Any:
        return self.observation.map[0, i, [c.name for c in CHANNELS].index(name)]


def named(row: np.ndarray, fields: features.Fields, name: str) -> Any:
    """The values of one field; a single one as a number."""
    index = [f.name for f in fields].index(name)
    values = row[starts(fields)[index] :][: fields[index].size]
    return values if len(values) > 1 else values[0].item()


def watch(*mechs: dict[str, Any], **options: Any) -> Watch:
    return Watch(field(*mechs, **options))
