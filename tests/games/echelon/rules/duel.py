"""The same battle fought by the simulator and by the slow reference, and their states compared after every decision.

Battles are fought on generated maps by teams that begin close together: some mechs damaged, hot or on roofs, some
inside each other. Players do what soon leads to a fight, and some nonsense.
"""

import random
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import cos, hypot, sin
from typing import Any

import numpy as np
import pytest

from protege.games.echelon.rules.battle import HOLD, MECH
from protege.games.echelon.rules.events import EVENT_NAMES
from protege.games.echelon.rules.sim import Actions, Battles
from protege.games.echelon.world.maps import generate
from protege.games.echelon.world.mechs import (
    BUILD,
    CHASSIS,
    HEAVY,
    LIGHT,
    MEDIUM,
    NOBODY,
    ROSTERS,
    RULES,
    SCOUT,
    SOLID,
    STOPS_BODIES,
    SUITE_OF_CLASS,
    Member,
    Roster,
    Rules,
    Side,
    find_roster,
)
from protege.games.echelon.world.voxels import World, derive
from tests.games.echelon.rules import reference
from tests.games.echelon.rules.reference_state import Battle, Cloud, Mech, Paint, Terrain, Vector, number_of


def five_a_side(name: str, *kinds: int) -> Roster:
    """A roster that has more of what is rare in the others."""
    side = Side((tuple(Member(kind, SUITE_OF_CLASS[kind]) for kind in kinds),))
    return Roster(name, side, side)


SIEGE = five_a_side("siege", HEAVY, HEAVY, SCOUT, HEAVY, MEDIUM)  # missiles, and systems against them
SKIRMISH = five_a_side("skirmish", LIGHT, SCOUT, LIGHT, SCOUT, LIGHT)  # jets, flamers, jammers
FIGHTS = (
    (find_roster("10v10"), BUILD),
    (SIEGE, BUILD),
    (find_roster("5v5"), BUILD),
    (find_roster("20v20"), BUILD),
    (find_roster("1v1"), BUILD),
    (SKIRMISH, BUILD),
    (find_roster("10v10"), BUILD),
    (find_roster("suite-13v13"), RULES["suite"]),
    (find_roster("2v2"), BUILD),
    (find_roster("base-5v5"), RULES["base"]),
)


@dataclass(frozen=True)
class Plan:
    """One battle."""

    number: int

    @property
    def roster(self) -> Roster:
        return FIGHTS[self.number % len(FIGHTS)][0]

    @property
    def rules(self) -> Rules:
        return FIGHTS[self.number % len(FIGHTS)][1]

    @property
    def size(self) -> int:
        """Of the map, in columns."""
        return 64 if len(self.roster.members().team) > 10 else 40

    @property
    def length(self) -> int:
        """Decisions; every third battle is so short that score or time end it."""
        return 20 if self.number % 3 == 0 else 500

    @property
    def crowded(self) -> bool:
        """Whether bodies may begin inside each other."""
        return self.number % 5 == 2


# --- the start -------------------------------------------------------------------------------------------------------


def gathered(plan: Plan, dice: random.Random) -> World:
    """A generated map on which the teams begin close together: on the ground, on roofs or in the air."""
    kinds = plan.roster.members().kind
    maps_roster = next(name for name, roster in ROSTERS.items() if len(roster.members().kind) == len(kinds))
    world = generate([7000 + plan.number], (plan.size, plan.size), maps_roster)
    middle = world.zone[0, :2].tolist()
    if plan.number % 2:  # the zone is clear; among walls other things happen
        middle = [dice.uniform(0.2, 0.8) * plan.size for _ in range(2)]
    if plan.number % 3 == 1:  # steps everywhere, and roofs just above the heads
        for _ in range(120):
            x, y = (int(min(max(at + dice.uniform(-12, 12), 0), plan.size - 1)) for at in middle)
            world.material[0, dice.choice((0, 0, 2, 3, 4)), y, x] = SOLID
        derive(world, 0)
    taken: list[tuple[float, float, float, float, float]] = []
    for i, kind in enumerate(kinds):
        half, high = CHASSIS[kind].width / 2, CHASSIS[kind].height
        while True:
            reach = 2 + dice.expovariate(0.5 if plan.crowded else 0.2)
            x, y = (min(max(at + dice.uniform(-reach, reach), half), plan.size - half) for at in middle)
            feet = dice.choice((0.0, 0.0, 0.0, 0.0, float(dice.randrange(16)), dice.uniform(0, 15)))
            body = world.material[0, int(feet) : int(feet + high) + 1, int(y - half) : int(y + half) + 1]
            free = not STOPS_BODIES[body[:, :, int(x - half) : int(x + half) + 1]].any()
            apart = all(
                max(abs(x - tx), abs(y - ty)) >= half + th or feet >= tf + thigh or tf >= feet + high
                for tx, ty, th, tf, thigh in taken
            )
            if free and (apart or plan.crowded):
                break
        taken.append((x, y, half, feet, high))
        world.spawn[0, i] = x, y, feet + high / 2, dice.uniform(-3.1, 3.1)
    return world


def begin_both(plan: Plan, dice: random.Random) -> tuple[Battles, Battle]:
    """The same battle twice."""
    world = gathered(plan, dice)
    battles = Battles(world, plan.roster, plan.rules, plan.length)
    _, _, rows, columns = world.material.shape
    battle = reference.begin(
        plan.rules.name,
        [reference.Member(*row) for row in np.stack(plan.roster.members(), 1).tolist()],
        Terrain(columns, rows, bytearray(world.material[0].tobytes()), world.hp[0].ravel().tolist()),
        tuple(world.zone[0].tolist()),
        [tuple(place) for place in world.spawn[0].tolist()],
        int(world.seed[0]),
        plan.length,
    )
    for i, mech in enumerate(battle.mechs):
        worn = {
            "hp": mech.hp * dice.choice((1, 1, 0.5, 0.125, 0.03125)),
            "leg_hp": mech.leg_hp * dice.choice((1, 1, 0.25, 0.0625)),
            "stability": mech.stability * dice.choice((1, 0.5, 0.125)),
            "heat": mech.chassis.heat_capacity * dice.choice((0, 0, 0, 0.75)),
            "jet": dice.choice((1.0, 0.25)),
        }
        for name, value in worn.items():
            setattr(mech, name, value)
            battles.mechs[name][0, i] = value
        begin_in_the_middle(battles, battle, mech, dice)
    return battles, battle


def begin_in_the_middle(battles: Battles, battle: Battle, mech: Mech, dice: random.Random) -> None:
    """Perhaps give a mech an order, paint and smoke that end soon: a short battle must see them end."""
    record = battles.mechs[0][mech.index]
    if mech.leader != NOBODY:
        mech.order, mech.order_from, mech.timers["order"] = HOLD, mech.leader, dice.randrange(1, 60)
        record["order"], record["order_from"], record["order_left"] = HOLD, mech.leader, mech.timers["order"]
    if dice.random() < 0.25:
        mech.paint = Paint(dice.choice(battle.enemies(mech)), dice.randrange(1, 60))
        record["painter"], record["painted"] = mech.paint.by.index, mech.paint.left
    if dice.random() < 0.25:
        shift = Vector(dice.uniform(-6, 6), dice.uniform(-6, 6), 0.0)
        cloud = Cloud(mech.place + shift, 4.0, dice.randrange(1, 60), mech.index)
        battles.records["clouds"][0, len(battle.clouds)] = (*cloud.place, cloud.radius, cloud.left, cloud.who)
        battle.clouds.append(cloud)
        battles.records["cloud_count"][0] = len(battle.clouds)


# --- the players -----------------------------------------------------------------------------------------------------


def wish_of(mech: Mech, battle: Battle, dice: random.Random) -> reference.Wish:
    """Three in four go for the nearest enemy; the others do anything."""
    count = len(battle.mechs)
    enemies = battle.enemies(mech)
    prey = min(enemies, key=lambda e: hypot(e.place.x - mech.place.x, e.place.y - mech.place.y), default=mech)
    way = prey.place - mech.place
    move = [dice.uniform(-1.5, 1.5) for _ in range(4)]
    if dice.random() < 0.75:
        left = way.y * cos(mech.yaw) - way.x * sin(mech.yaw)
        move = [dice.uniform(-0.2, 1), dice.uniform(-0.5, 0.5), dice.choice((0, 0, 0.5, 1)), left]
    if dice.random() < 0.02:
        move[dice.randrange(4)] = dice.choice((float("nan"), float("inf"), -float("inf"), 1e300, -0.0))
    message = [dice.uniform(-1.2, 1.2) for _ in range(8)]
    if dice.random() < 0.02:
        message[dice.randrange(8)] = float("nan")
    led = [other.index for other in battle.mechs if other.leader == mech.index]
    return reference.Wish(
        move,
        [dice.random() < chance for chance in (0.6, 0.85, 0.85, 0.12, 0.4)],
        dice.choice((0, 1, 1, 2, 2, 2)) if dice.random() < 0.98 else dice.choice((-1, 3, 258)),
        prey.index if dice.random() < 0.6 else dice.randrange(-3, count + 3),
        message,
        [dice.randrange(-1, 8), dice.choice(led or [dice.randrange(-2, count + 2)]), dice.randrange(-2, count + 2)],
    )


def actions_of(battles: Battles, wishes: list[reference.Wish]) -> Actions:
    """The same for the simulator. It takes movement and messages as float32, so the wishes become such numbers."""
    columns = [[wish.move for wish in wishes], [wish.buttons for wish in wishes], [wish.ewar for wish in wishes]]
    columns += [[wish.target for wish in wishes], [wish.message for wish in wishes], [wish.order for wish in wishes]]
    actions = battles.actions(*(np.array([column]) for column in columns))
    for wish, move, message in zip(wishes, actions.move[0].tolist(), actions.message[0].tolist()):
        wish.move, wish.message = move, message
    return actions


# --- comparing -------------------------------------------------------------------------------------------------------

# What the simulator's record of a mech holds, from the objects of the reference.
FIELDS: dict[str, Callable[[Mech], Any]] = {
    "kind": lambda mech: mech.chassis.id,
    "half_width": lambda mech: mech.half.x,
    "half_height": lambda mech: mech.half.z,
    "x": lambda mech: mech.place.x,
    "y": lambda mech: mech.place.y,
    "z": lambda mech: mech.place.z,
    "vx": lambda mech: mech.velocity.x,
    "vy": lambda mech: mech.velocity.y,
    "vz": lambda mech: mech.velocity.z,
    "sin": lambda mech: mech.heading.y,
    "cos": lambda mech: mech.heading.x,
    "material": lambda mech: mech.ground.id,
    "wait": lambda mech: [mech.timers[f"weapon {timer}"] for timer in range(4)],
    "ams_wait": lambda mech: mech.timers["ams"],
    "suppressed": lambda mech: mech.timers["suppressed"],
    "order_left": lambda mech: mech.timers["order"],
    "painted": lambda mech: mech.paint.left if mech.paint else 0,
    "painter": lambda mech: number_of(mech.paint.by if mech.paint else None),
    "paint_damage": lambda mech: mech.paint.damage if mech.paint else 0.0,
    "buttons": lambda mech: sum(1 << i for i, pressed in enumerate(mech.controls.pressed) if pressed),
    "ewar": lambda mech: reference.EWAR.index(mech.controls.ewar),
    "focus": lambda mech: number_of(mech.controls.focus),
    "sees": lambda mech: sum(1 << i for i in mech.picture.sees),
    "knows": lambda mech: sum(1 << i for i in mech.picture.knows),
    "hurt_x": lambda mech: mech.hurt.x,
    "hurt_y": lambda mech: mech.hurt.y,
    "hurt_z": lambda mech: mech.hurt.z,
    "tally": lambda mech: [mech.tally[name] for name in EVENT_NAMES],
}
CONTROLS, PICTURE = ("forward", "strafe", "vertical", "turn"), ("quality", "jam", "sound", "warned")
SHOT_FIELDS = ("x", "y", "z", "vx", "vy", "vz", "weapon", "who", "target", "age", "life")
CLOUD_FIELDS = ("x", "y", "z", "radius", "left", "who")
ENDINGS = {reference.BY_ELIMINATION: "elimination", reference.BY_SCORE: "score", reference.BY_TIME: "time"}


def field_of(mech: Mech, name: str) -> Any:
    if name in FIELDS:
        return FIELDS[name](mech)
    return getattr(mech.controls if name in CONTROLS else mech.picture if name in PICTURE else mech, name)


def single(value: float) -> float:
    """Rounded to float32."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def simulated(battles: Battles) -> dict[str, Any]:
    """The state of the first battle in plain values."""
    record, count = battles.records[0], battles.mech_count
    state: dict[str, Any] = {f"mech {name}": battles.mechs[0][name].tolist() for name in MECH.names or ()}
    for name in ("tick", "decision", "score", "share", "tonnage", "living", "over", "ending", "winner"):
        state[name] = record[name].tolist()
    shots, clouds = record["shots"][: record["shot_count"]], record["clouds"][: record["cloud_count"]]
    state["shots"] = [shot[list(SHOT_FIELDS)].tolist() for shot in shots]
    state["clouds"] = [cloud[list(CLOUD_FIELDS)].tolist() for cloud in clouds]
    state["messages"] = record["messages"][:count].tolist()
    state["ledger"] = record["ledger"][:count, :count].tolist()
    state["changes"] = sorted(record["changes"][: record["change_count"]].tolist())
    state["material"], state["hp"] = battles.world.material[0].tobytes(), battles.world.hp[0].ravel().tolist()
    events = record["events"][: record["event_count"]]
    assert (np.diff(events["tick"]) >= 0).all()
    assert record["events_lost"] == record["changes_lost"] == 0
    rows = ((e["tick"], EVENT_NAMES[e["kind"]], e["who"], e["whom"], e["weapon"], e["amount"], e["x"], e["y"], e["z"])
            for e in events)  # fmt: skip
    state["events"] = sorted(tuple(v if isinstance(v, str) else v.item() for v in row) for row in rows)
    return state


def expected(battle: Battle) -> dict[str, Any]:
    """The same of the reference."""
    state: dict[str, Any] = {}
    for name in MECH.names or ():
        state[f"mech {name}"] = [field_of(mech, name) for mech in battle.mechs]
    for name in ("tick", "decision", "score", "share", "tonnage", "ending", "winner"):
        state[name] = getattr(battle, name)
    state["living"] = [sum(mech.alive for mech in battle.team(number)) for number in (0, 1)]
    state["over"] = battle.ending != reference.RUNNING
    state["shots"] = [
        (*s.place, *s.velocity, s.weapon.id, s.who.index, number_of(s.target), s.age, s.weapon.life_ticks)
        for s in battle.shots
    ]
    state["clouds"] = [(*cloud.place, cloud.radius, cloud.left, cloud.who) for cloud in battle.clouds]
    state["messages"] = [mech.message for mech in battle.mechs]
    state["ledger"] = [[whom.taken_from.get(who.index, 0.0) for whom in battle.mechs] for who in battle.mechs]
    state["changes"] = sorted(battle.changes)
    state["material"], state["hp"] = bytes(battle.terrain.material), battle.terrain.hp
    state["events"] = sorted(
        (e.tick, e.name, e.who, e.whom, e.weapon, single(e.amount), *map(single, e.place)) for e in battle.events
    )
    return state


def assert_equal(plan: Plan, battles: Battles, battle: Battle) -> None:
    found, right = simulated(battles), expected(battle)
    if found == right:
        return
    lines = [f"{plan}, decision {battle.decision}"]
    for name, value in right.items():
        if found[name] == value:
            continue
        if not isinstance(value, list):
            lines.append(f"{name}: simulator {found[name]!r:.200}, reference {value!r:.200}")
        elif len(found[name]) != len(value):
            extra = [v for v in found[name] if v not in value], [v for v in value if v not in found[name]]
            lines.append(f"{name}: only the simulator has {extra[0]}, only the reference {extra[1]}")
        else:
            pairs = [(i, a, b) for i, (a, b) in enumerate(zip(found[name], value)) if a != b]
            lines += [f"{name} {i}: simulator {a}, reference {b}" for i, a, b in pairs[:4]]
    pytest.fail("\n  ".join(lines), pytrace=False)


def compare(number: int, decisions: int, seen: Counter[str]) -> None:
    """Fight one battle on both and fail where they first differ; `seen` counts what happened."""
    plan, dice = Plan(number), random.Random(number)
    battles, battle = begin_both(plan, dice)
    assert_equal(plan, battles, battle)
    for _ in range(decisions):
        wishes = [wish_of(mech, battle, dice) for mech in battle.mechs]
        battles.step(actions_of(battles, wishes))
        reference.step(battle, wishes)
        assert_equal(plan, battles, battle)
        seen["decisions"] += 1
        seen["shots_in_flight"] += len(battle.shots)
        seen["crowded_decisions"] += battle.crowded
        seen.update(event.name for event in battle.events)
        if battle.ending != reference.RUNNING:
            seen[f"ended_by_{ENDINGS[battle.ending]}"] += 1
            break
