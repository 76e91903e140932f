"""Battlefields made by hand: mechs where a test wants them, on flat ground or among a few voxels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from protege.games.echelon.rules.battle import BY_ELIMINATION, BY_SCORE, BY_TIME
from protege.games.echelon.rules.events import EVENT_NAMES
from protege.games.echelon.rules.sim import Actions, Battles
from protege.games.echelon.world.mechs import (
    AIR,
    BLUE,
    BUILD,
    CHASSIS,
    DEBRIS,
    DIRT,
    FOLIAGE,
    GLASS,
    LAVA,
    NOBODY,
    RED,
    REINFORCED,
    SOLID,
    SUITE_OF_CLASS,
    WATER,
    Member,
    Members,
    Roster,
    Rules,
    Side,
)
from protege.games.echelon.world.voxels import World, derive, empty_world

BUTTON = {"primary": 0, "secondary": 1, "tertiary": 2, "special": 3, "vent": 4}
AXIS = {"forward": 0, "strafe": 1, "vertical": 2, "turn": 3}
STEADY = replace(BUILD, aim_spread=0.0)  # shots go to the middle of the body


def blank(battles: int, x: int, y: int, mechs: int) -> World:
    """Flat dirt with a zone of radius 5 in the middle; nobody is placed and no distance measured."""
    world = empty_world(battles, (x, y), mechs)
    world.material[:, 0] = DIRT
    world.zone[:] = x / 2, y / 2, 5.0
    return world


def ended(battles: Battles) -> tuple[Any, Any]:
    """(battles, mechs) terminated: dead, or in a battle that was decided; and truncated: alive when time ran out."""
    alive, ending = battles.mechs["alive"] != 0, battles.records["ending"][:, None]
    return ~alive | np.isin(ending, (BY_ELIMINATION, BY_SCORE)), alive & (ending == BY_TIME)


def block(z: Any, y: Any, x: Any, material: int = SOLID) -> Callable[[Any], None]:
    """A map maker that fills some voxels."""

    def build(materials: Any) -> None:
        materials[z, y, x] = material

    return build


def mechs(battles: Battles) -> Any:
    """Those of the first battle."""
    return battles.mechs[0]


def placed(
    team: int, kind: int, x: float, y: float, yaw: float = 0.0, feet: float = 0.0, pack: int = 0
) -> dict[str, Any]:
    """One mech to put on a field; pack is a number within the team."""
    return {"team": team, "kind": kind, "x": x, "y": y, "yaw": yaw, "feet": feet, "pack": pack}


def field(
    *mechs: dict[str, Any],
    size: tuple[int, int] = (40, 40),
    length: int = 100,
    rules: Rules = BUILD,
    battles: int = 1,
    threads: int = 1,
    seed: int = 1,
    zone: tuple[float, float, float] | None = None,
    build: Callable[[Any], None] | None = None,
) -> Battles:
    """Battles with these mechs, blue's before red's. `build` may change a map's materials, (z, y, x)."""
    sides = []
    for team in (BLUE, RED):
        own = [mech for mech in mechs if mech["team"] == team]
        packs = sorted({mech["pack"] for mech in own})
        assert own == sorted(own, key=lambda mech: mech["pack"]), "list a team's mechs pack by pack"
        members = [tuple(Member(m["kind"], SUITE_OF_CLASS[m["kind"]]) for m in own if m["pack"] == p) for p in packs]
        sides.append(Side(tuple(members)))
    ordered = sorted(mechs, key=lambda mech: mech["team"])
    world = blank(battles, *size, len(mechs))
    for b in range(battles):
        if build:
            build(world.material[b])
        derive(world, b)
        world.seed[b] = seed + b
        if zone:
            world.zone[b] = zone
        for i, m in enumerate(ordered):
            world.spawn[b, i] = m["x"], m["y"], m["feet"] + CHASSIS[m["kind"]].height / 2, m["yaw"]
    return Battles(world, Roster("made by hand", *sides), rules, length, threads)


def wishes(battles: Battles, wanted: dict[int, dict[str, Any]]) -> Actions:
    """Actions in which mech i does what its dictionary says (forward=1.0, primary=True, target=3 ...)."""
    shape = (battles.count, battles.mech_count)
    move, buttons = np.zeros((*shape, 4), np.float32), np.zeros((*shape, 5), np.uint8)
    ewar, target = np.zeros(shape, np.int64), np.full(shape, NOBODY)
    message, order = np.zeros((*shape, 8), np.float32), np.zeros((*shape, 3), np.int64)
    for i, wish in wanted.items():
        for name, value in wish.items():
            if name in AXIS:
                move[:, i, AXIS[name]] = value
            elif name in BUTTON:
                buttons[:, i, BUTTON[name]] = value
            else:
                {"ewar": ewar, "target": target, "message": message, "order": order}[name][:, i] = value
    return battles.actions(move, buttons, ewar, target, message, order)


def act(battles: Battles, wanted: dict[int, dict[str, Any]] | None = None, decisions: int = 1) -> list[dict[str, Any]]:
    """Some decisions with the same wishes; everything that happened in battle 0."""
    happened: list[dict[str, Any]] = []
    for _ in range(decisions):
        battles.step(wishes(battles, wanted or {}))
        happened += events(battles)
    return happened


def events(battles: Battles, b: int = 0) -> list[dict[str, Any]]:
    """What happened in the last decision of a battle."""
    rows = battles.records["events"][b][: battles.records["event_count"][b]]
    names = rows.dtype.names or ()
    return [{n: row[n].item() for n in names} | {"name": EVENT_NAMES[row["kind"]]} for row in rows]


def named(happened: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Only the events of this name."""
    assert name in EVENT_NAMES
    return [event for event in happened if event["name"] == name]


def random_actions(battles: Battles, *streams: np.random.Generator) -> Actions:
    """Anything at all, by everybody, from one stream of chance for all battles or one for each."""
    drawn = []
    for b in range(battles.count):
        rng, mechs = streams[b % len(streams)], battles.mech_count
        drawn.append(
            (
                rng.uniform(-1, 1, (mechs, 4)),
                rng.random((mechs, 5)) < 0.5,
                rng.integers(0, 3, mechs),
                rng.integers(-1, mechs, mechs),
                rng.uniform(-1, 1, (mechs, 8)),
                rng.integers(0, mechs, (mechs, 3)),
            )
        )
    return battles.actions(*map(np.stack, zip(*drawn)))


def rough_field(
    roster: Roster, battles: int = 1, size: tuple[int, int] = (48, 48), seed: int = 1, length: int = 60, **options: Any
) -> Battles:
    """Battles among pillars, pools and bushes, both teams near enough to meet at once."""
    members = roster.members()
    world = blank(battles, *size, len(members.team))
    for b in range(battles):
        rng = np.random.default_rng([seed, b])
        for _ in range(size[0] * size[1] // 30):
            material = rng.choice([SOLID, SOLID, GLASS, FOLIAGE, REINFORCED, LAVA, WATER, DEBRIS])
            x, y = rng.integers(0, size[0]), rng.integers(0, size[1])
            height = 1 if material in (LAVA, WATER) else rng.integers(1, 8)
            world.material[b, :height, y : y + rng.integers(1, 4), x : x + rng.integers(1, 4)] = material
        _place_at_random(world, b, members, rng)
        derive(world, b)
        world.seed[b] = seed * 1000 + b
    return Battles(world, roster, length=length, **options)


def restart_ended(battles: Battles, pristine: dict[str, Any]) -> None:
    """Begin battles that are over anew, on their maps as they were."""
    ended = np.flatnonzero(battles.over)
    for name, array in battles.world._asdict().items():
        array[ended] = pristine[name][ended]
    battles.reset(ended)


def copy_of(world: World) -> dict[str, Any]:
    """The maps as they are now, to start again from."""
    return {name: array.copy() for name, array in world._asdict().items()}


def _place_at_random(world: World, b: int, members: Members, rng: np.random.Generator) -> None:
    """Blue on the left, red on the right, nobody in anybody; what stands in the way is cleared."""
    _, _, rows, width = world.material.shape
    taken: list[tuple[float, float, float]] = []
    for i, kind in enumerate(members.kind):
        half = CHASSIS[kind].width / 2
        while True:
            x, y = rng.uniform(half, width / 2 - half), rng.uniform(half, rows - half)
            x = width - x if members.team[i] == RED else x
            if all(max(abs(x - tx), abs(y - ty)) >= half + th for tx, ty, th in taken):
                break
        taken.append((x, y, half))
        low_x, low_y = int(x - half), int(y - half)
        world.material[b, :5, low_y : int(y + half) + 1, low_x : int(x + half) + 1] = AIR
        world.spawn[b, i] = x, y, CHASSIS[kind].height / 2, rng.uniform(-3, 3)
