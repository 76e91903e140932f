"""A second, slow implementation of Echelon's battles, written from the specification and the game card alone.

It exists to check the simulator against: both are given the same map, places, seed and actions, and their states must
agree to the last bit after every decision. It imports nothing from the product; what the two share are the card's own
recipes (see reference_state.py). Nothing here tries to be fast. This file holds decisions, perception, zone and end;
the parts of a tick are in reference_fight.py, _hits.py and _motion.py, the numbers in reference_tables.py.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isfinite, sqrt

from tests.games.echelon.rules.reference_fight import fire, fly_shots, pass_time
from tests.games.echelon.rules.reference_hits import apply_hits, watch_reactors
from tests.games.echelon.rules.reference_motion import move_everybody
from tests.games.echelon.rules.reference_state import (
    MESSAGE,
    NOBODY,
    STEP,
    ZERO,
    Battle,
    Controls,
    Mech,
    Picture,
    Terrain,
    Vector,
    bits,
    boxes_overlap,
    clamp,
    heading_of,
    left_of,
    ray,
    team_streams,
)
from tests.games.echelon.rules.reference_tables import CLASSES, preset

EWAR = ("off", "jam", "counter")
FOCUS_FIRE, COVER = 1, 5
ORDER_TICKS = 200
HEAD = 0.8
DECISION_S = 0.25
RUNNING, BY_ELIMINATION, BY_SCORE, BY_TIME = range(4)


@dataclass(frozen=True)
class Member:
    """One mech's place in a roster."""

    team: int
    kind: int  # id of its class
    suite: int
    pack: int
    leader: int
    rank: int


@dataclass
class Wish:
    """What one player wants in one decision."""

    move: list[float] = field(default_factory=lambda: [0.0] * 4)
    buttons: list[bool] = field(default_factory=lambda: [False] * 5)
    ewar: int = 0
    target: int = NOBODY
    message: list[float] = field(default_factory=lambda: [0.0] * MESSAGE)
    order: list[int] = field(default_factory=lambda: [0] * 3)


def begin(
    game: str,
    members: Sequence[Member],
    terrain: Terrain,
    zone: tuple[float, float, float],
    places: Sequence[tuple[float, float, float, float]],
    seed: int,
    decisions: int,
) -> Battle:
    """A battle at its start: by which preset's rules, between whom; places are x, y, z, yaw."""
    chassis = {column.id: column for column in CLASSES.values()}
    mechs = []
    for index, (who, (*place, yaw)) in enumerate(zip(members, places, strict=True)):
        kind = chassis[who.kind]
        mech = Mech(
            index, who.team, who.rank, who.pack, who.suite, who.leader, kind, Vector(*place), yaw, heading_of(yaw)
        )
        mech.hp, mech.leg_hp, mech.stability = kind.hp, kind.leg_hp, kind.stability
        mechs.append(mech)
    battle = Battle(preset(game), terrain, zone, mechs, team_streams(seed), decisions)
    take_picture(battle)
    return battle


# --- a decision ------------------------------------------------------------------------------------------------------


def step(battle: Battle, wishes: list[Wish]) -> None:
    assert battle.ending == RUNNING
    battle.decision += 1
    battle.events, battle.changes = [], []
    for mech in battle.mechs:
        mech.hit, mech.hurt = False, ZERO
    for mech in battle.living():
        take_controls(battle, mech, wishes[mech.index])
        give_order(battle, mech, wishes[mech.index])
    battle.crowded = any(boxes_overlap(a.place, a, b) for a, b in combinations(battle.living(), 2))
    for _ in range(battle.rules.ticks_per_decision):
        tick(battle)
    for mech in battle.mechs:
        said = [clean(mech, number) for number in wishes[mech.index].message] if mech.alive else [0.0] * MESSAGE
        mech.message = list(struct.unpack("8f", struct.pack("8f", *said)))
    score_zone(battle)
    take_picture(battle)
    decide_end(battle)


def clean(mech: Mech, value: float) -> float:
    if isfinite(value):
        return clamp(value, -1.0, 1.0)
    mech.bad_actions += 1
    return 0.0


def take_controls(battle: Battle, mech: Mech, wish: Wish) -> None:
    forward, strafe, vertical, turn = (clean(mech, value) for value in wish.move)
    throttle = max(sqrt(forward * forward + strafe * strafe), 1.0)
    ewar = "off"
    if wish.ewar not in range(len(EWAR)):
        mech.bad_actions += 1
    elif mech.chassis.name == battle.preset.ewar:
        ewar = EWAR[wish.ewar]
    focus = next((enemy for enemy in battle.enemies(mech) if enemy.index == wish.target), None)
    pressed = tuple(map(bool, wish.buttons))
    mech.controls = Controls(forward / throttle, strafe / throttle, vertical, turn, pressed, ewar, focus)


def give_order(battle: Battle, mech: Mech, wish: Wish) -> None:
    kind, to, about = wish.order
    everybody = range(len(battle.mechs))
    if kind not in range(FOCUS_FIRE, COVER + 1) or to not in everybody:
        return
    addressee = battle.mechs[to]
    if addressee.alive and addressee.leader == mech.index:
        addressee.order, addressee.order_from = kind, mech.index
        addressee.order_target = about if kind == FOCUS_FIRE and about in everybody else NOBODY
        addressee.timers["order"] = ORDER_TICKS
        battle.emit("order", mech, addressee.place, addressee, amount=kind)


def tick(battle: Battle) -> None:
    battle.tick += 1
    battle.keys = [bits(stream + STEP * battle.tick) for stream in battle.streams]
    for cloud in battle.clouds:
        cloud.left -= 1
    battle.clouds = [cloud for cloud in battle.clouds if cloud.left]
    pass_time(battle)
    fly_shots(battle)
    fire(battle)
    apply_hits(battle)
    watch_reactors(battle)
    move_everybody(battle)


# --- perception ------------------------------------------------------------------------------------------------------

Pairs = set[frozenset[int]]  # of indices


def take_picture(battle: Battle) -> None:
    """Everybody's new picture. What lies between two mechs is the same from both sides and looked up once."""
    pairs = {frozenset((a.index, b.index)): (a, b) for a, b in combinations(battle.living(), 2)}
    smoke = {pair for pair, (a, b) in pairs.items() if cloud_between(battle, a, b)}
    clear = {pair for pair, (a, b) in pairs.items() if pair not in smoke and in_view(battle.terrain, a, b)}
    hunted = [shot.target for shot in battle.shots if shot.weapon.flight == "homing"]
    for mech in battle.mechs:
        mech.picture = Picture(battle.rules.quality_min)
        if mech.alive:
            mech.picture.warned = mech in hunted
            mech.picture.jam, mech.picture.quality = sensor_quality(battle, mech)
            reach = battle.rules.sight_range * mech.suite_range
            near = [other for other in battle.others(mech) if mech.within(reach, other)]
            mech.picture.sees = {other.index for other in near if frozenset((mech.index, other.index)) in clear}
            listen(battle, mech)
            if not mech.shut:
                mech.picture.knows = {e.index for e in battle.enemies(mech) if on_sensors(battle, mech, e, smoke)}


def cloud_between(battle: Battle, a: Mech, b: Mech) -> bool:
    start, end = sorted((a.place, b.place))
    way = end - start
    for cloud in battle.clouds:
        to_cloud = cloud.place - start
        share = clamp((to_cloud @ way) * (1 / (way @ way)), 0.0, 1.0)
        past = to_cloud - way * share
        if past @ past < cloud.radius * cloud.radius:
            return True
    return False


def in_view(terrain: Terrain, a: Mech, b: Mech) -> bool:
    """Head to head, or centre to centre."""
    heads = [mech.place + Vector(0.0, 0.0, HEAD * mech.half.z) for mech in (a, b)]
    lines = [sorted(heads), sorted((a.place, b.place))]
    return any(ray(terrain, start, end, "sight", ends_count=False) is None for start, end in lines)


def sensor_quality(battle: Battle, mech: Mech) -> tuple[float, float]:
    """How strongly a mech is jammed, and how good that and its friends' help leave its sensors."""
    rules = battle.rules

    def strongest(mode: str, team: int) -> float:
        sources = [m for m in battle.living() if m.emits == mode and m.team == team and m is not mech]
        return max([0.0] + [1 - abs(m.place - mech.place) / float(rules.jam_range) for m in sources])

    jam, counter = strongest("jam", 1 - mech.team), strongest("counter", mech.team)
    quality = clamp(1 - rules.jam_weight * jam + rules.counter_weight * counter, rules.quality_min, rules.quality_max)
    return jam, rules.quality_min if mech.shut else quality


def on_sensors(battle: Battle, mech: Mech, enemy: Mech, smoke: Pairs) -> bool:
    rules, picture = battle.rules, mech.picture
    radiates = enemy.heat > rules.hot_fraction * enemy.chassis.heat_capacity or enemy.emits != "off"
    return (
        enemy.index in picture.sees
        or mech.within(rules.radar_range * mech.suite_range * picture.quality, enemy)
        or (enemy.painted_for(mech) and picture.quality >= rules.paint_quality)
        or (radiates and frozenset((mech.index, enemy.index)) not in smoke)
    )


def listen(battle: Battle, mech: Mech) -> None:
    for other in battle.others(mech):
        way = other.place - mech.place
        loudness = other.noise / (1 + way @ way)
        if other.index not in mech.picture.sees:
            loudness *= battle.rules.deaf_factor
        ahead, left = way @ mech.heading >= 0, way @ left_of(mech.heading) > 0
        quadrant = [(True, True), (True, False), (False, True), (False, False)].index((ahead, left))
        mech.picture.sound[quadrant] += loudness


# --- zone, score, end ------------------------------------------------------------------------------------------------


def score_zone(battle: Battle) -> None:
    x, y, radius = battle.zone
    battle.tonnage = [0.0, 0.0]
    for mech in battle.mechs:
        was_inside, way = mech.inside, mech.place - Vector(x, y, 0.0)
        mech.inside = mech.alive and mech.feet <= battle.rules.zone_height and abs(way.level) < radius
        if mech.inside != was_inside:
            battle.emit("zone_enter" if mech.inside else "zone_leave", mech, mech.place)
        battle.tonnage[mech.team] += mech.chassis.tonnage if mech.inside else 0.0
    blue, red = battle.tonnage
    battle.share = [
        share_of(blue, red, battle.rules.contested_floor),
        share_of(red, blue, battle.rules.contested_floor),
    ]
    battle.score = [score + share * DECISION_S for score, share in zip(battle.score, battle.share)]


def share_of(own: float, other: float, contested_floor: float) -> float:
    if not own or not other:
        return 1.0 if own else 0.0
    return contested_floor + (1 - contested_floor) * max((own - other) / (own + other), 0.0)


def decide_end(battle: Battle) -> None:
    rules, teams = battle.rules, (battle.team(0), battle.team(1))
    alive = [any(mech.alive for mech in team) for team in teams]
    if any(team and not living for team, living in zip(teams, alive)):
        battle.ending, battle.winner = BY_ELIMINATION, more(*alive)
    elif rules.score_ends and max(battle.score) >= rules.score_fraction * (battle.length * DECISION_S):
        battle.ending, battle.winner = BY_SCORE, more(*battle.score)
    elif battle.decision == battle.length:
        battle.ending = BY_TIME
        if rules.suite_tiebreak:
            present = (any(mech.inside for mech in team) for team in teams)
            survivors = (-sum(not mech.alive for mech in team) for team in teams)
            dealt = (sum(mech.dealt for mech in team) for team in teams)
            verdicts = [more(*present), more(*survivors), more(*dealt)]
        else:
            blue, red = (sum(mech.hp for mech in team) for team in teams)
            verdicts = [more(*battle.score), more(blue, red, rules.hp_tolerance)]
        battle.winner = next((team for team in verdicts if team != NOBODY), NOBODY)


def more(blue: float, red: float, tolerance: float = 0.0) -> int:
    """The team with more."""
    if abs(blue - red) <= tolerance:
        return NOBODY
    return int(red > blue)
