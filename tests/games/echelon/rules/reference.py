"""A second, slow implementation of Echelon's battles, written from the specification and the game card alone.

It exists to check the simulator against: both are given the same map, places, seed and actions, and their states must
agree to the last bit after every decision. Nothing here tries to be fast. This file holds decisions, perception, zone
and end; the parts of a tick are in echelon_reference_fight.py, _hits.py and _motion.py, what a battle consists of and
the arithmetic in echelon_reference_state.py.
"""

import struct
from dataclasses import dataclass, field
from math import isfinite, sqrt

from protege.games.echelon.world.mechs import HOMING, NOBODY, SUITES, Roster, Rules
from tests.games.echelon.rules.reference_fight import COUNTER, JAM, fire, fly_shots, pass_time
from tests.games.echelon.rules.reference_hits import apply_hits, watch_reactors
from tests.games.echelon.rules.reference_motion import move_everybody
from tests.games.echelon.rules.reference_state import (
    STEP,
    Battle,
    Cloud,
    Mech,
    Terrain,
    bits,
    dot,
    overlap,
    ray,
    sine_and_cosine,
    squared_distance,
    team_streams,
    way,
)

MESSAGE = 8
FOCUS_FIRE, COVER = 1, 5
ORDER_TICKS = 200
HEAD = 0.8
RUNNING, BY_ELIMINATION, BY_SCORE, BY_TIME = range(4)


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
    rules: Rules,
    roster: Roster,
    terrain: Terrain,
    zone: tuple[float, float, float],
    places: list[tuple[float, float, float, float]],
    seed: int,
    decisions: int,
) -> Battle:
    """A battle at its start; places are x, y, z, yaw."""
    mechs = []
    for index, (team, kind, suite, pack, leader, rank) in enumerate(zip(*(map(int, row) for row in roster.members()))):
        x, y, z, yaw = places[index]
        chassis = rules.chassis[kind]
        sin, cos = sine_and_cosine(yaw)
        mech = Mech(
            index, team, kind, pack, rank, suite, leader, chassis.width / 2, chassis.height / 2, x, y, z, yaw, sin, cos
        )
        mech.hp, mech.leg_hp, mech.stability = chassis.hp, chassis.leg_hp, chassis.stability
        mechs.append(mech)
    battle = Battle(rules, terrain, zone, mechs, team_streams(seed), decisions)
    battle.messages = [[0.0] * MESSAGE for _ in mechs]
    battle.ledger = [[0.0] * len(mechs) for _ in mechs]
    take_picture(battle)
    return battle


# --- a decision ------------------------------------------------------------------------------------------------------


def step(battle: Battle, wishes: list[Wish]) -> None:
    assert battle.ending == RUNNING
    battle.decision += 1
    battle.events, battle.changes = [], []
    for mech in battle.mechs:
        mech.hit, mech.hurt = False, (0.0, 0.0, 0.0)
    for mech in battle.living():
        take_controls(battle, mech, wishes[mech.index])
        give_order(battle, mech, wishes[mech.index])
    living = battle.living()
    battle.crowded = any(overlap(a, b) for a in living for b in living if a.index < b.index)
    for _ in range(battle.rules.ticks_per_decision):
        tick(battle)
    for mech in battle.mechs:
        take_message(battle, mech, wishes[mech.index])
    score_zone(battle)
    take_picture(battle)
    decide_end(battle)


def clean(mech: Mech, value: float) -> float:
    if not isfinite(value):
        mech.bad_actions += 1
        return 0.0
    return min(max(value, -1.0), 1.0)


def take_controls(battle: Battle, mech: Mech, wish: Wish) -> None:
    mech.forward, mech.strafe, mech.vertical, mech.turn = (clean(mech, value) for value in wish.move)
    asked = sqrt(mech.forward * mech.forward + mech.strafe * mech.strafe)
    if asked > 1:
        mech.forward, mech.strafe = mech.forward / asked, mech.strafe / asked
    mech.pressed = list(wish.buttons)
    mech.ewar = wish.ewar
    if not 0 <= mech.ewar <= COUNTER:
        mech.ewar = 0
        mech.bad_actions += 1
    if mech.kind not in battle.rules.ewar:
        mech.ewar = 0
    mech.focus = wish.target if any(enemy.index == wish.target for enemy in battle.enemies(mech)) else NOBODY


def give_order(battle: Battle, mech: Mech, wish: Wish) -> None:
    kind, to, about = wish.order
    if not (FOCUS_FIRE <= kind <= COVER and 0 <= to < len(battle.mechs)):
        return
    addressee = battle.mechs[to]
    if not addressee.alive or addressee.leader != mech.index:
        return
    addressee.order, addressee.order_from, addressee.order_left = kind, mech.index, ORDER_TICKS
    named = kind == FOCUS_FIRE and 0 <= about < len(battle.mechs)
    addressee.order_target = about if named else NOBODY
    battle.emit("order", mech.index, addressee.place, to, amount=kind)


def take_message(battle: Battle, mech: Mech, wish: Wish) -> None:
    if not mech.alive:
        battle.messages[mech.index] = [0.0] * MESSAGE
        return
    cleaned = [clean(mech, value) for value in wish.message]
    battle.messages[mech.index] = [struct.unpack("f", struct.pack("f", value))[0] for value in cleaned]


def tick(battle: Battle) -> None:
    battle.tick += 1
    battle.keys = [bits(stream + STEP * battle.tick) for stream in battle.streams]
    for cloud in battle.clouds:
        cloud.left -= 1
    battle.clouds = [cloud for cloud in battle.clouds if cloud.left > 0]
    pass_time(battle)
    fly_shots(battle)
    fire(battle)
    apply_hits(battle)
    watch_reactors(battle)
    move_everybody(battle)


# --- perception ------------------------------------------------------------------------------------------------------

Point = tuple[float, float, float]


def take_picture(battle: Battle) -> None:
    missiles = [shot for shot in battle.shots if battle.rules.weapons[shot.weapon].guidance == HOMING]
    for mech in battle.mechs:
        mech.warned = mech.alive and any(shot.target == mech.index for shot in missiles)
        mech.sees, mech.knows, mech.sound = set(), set(), [0.0] * 4
    living = battle.living()
    hidden = {(a.index, b.index): cloud_between(battle.clouds, a, b) for a in living for b in living if a is not b}
    for a in living:
        for b in living:
            if a.index < b.index and not hidden[a.index, b.index] and in_view(battle.terrain, a, b):
                note_sight(battle, a, b)
                note_sight(battle, b, a)
    for mech in battle.mechs:
        tune_sensors(battle, mech)
    for mech in living:
        if not mech.shut:
            mech.knows = {e.index for e in battle.enemies(mech) if on_sensors(battle, mech, e, hidden)}
        listen(battle, mech)


def cloud_between(clouds: list[Cloud], a: Mech, b: Mech) -> bool:
    start, end = sorted((a, b), key=lambda mech: mech.place)
    d = way(start, end)
    for cloud in clouds:
        p = way(start, cloud)
        share = min(max(dot(p, d) * (1 / dot(d, d)), 0.0), 1.0)
        rest = p[0] - share * d[0], p[1] - share * d[1], p[2] - share * d[2]
        if dot(rest, rest) < cloud.radius * cloud.radius:
            return True
    return False


def in_view(terrain: Terrain, a: Mech, b: Mech) -> bool:
    """Head to head, or centre to centre."""
    return sees_point(terrain, head(a), head(b)) or sees_point(terrain, a.place, b.place)


def head(mech: Mech) -> Point:
    return mech.x, mech.y, mech.z + HEAD * mech.half_height


def sees_point(terrain: Terrain, a: Point, b: Point) -> bool:
    return ray(terrain, min(a, b), max(a, b), of_sight=True, ends_count=False) is None


def note_sight(battle: Battle, mech: Mech, other: Mech) -> None:
    reach = battle.rules.sight_range * SUITES[mech.suite].sensor_range
    if squared_distance(mech, other) <= reach * reach:
        mech.sees.add(other.index)


def tune_sensors(battle: Battle, mech: Mech) -> None:
    rules = battle.rules
    mech.jam = counter = 0.0
    for other in battle.living():
        strength = 1 - sqrt(squared_distance(mech, other)) / rules.jam_range
        if mech.alive and other.emits and other.team != mech.team and other.ewar == JAM:
            mech.jam = max(mech.jam, strength)
        if other.emits and other.team == mech.team and other is not mech and other.ewar == COUNTER:
            counter = max(counter, strength)
    quality = 1 - rules.jam_weight * mech.jam + rules.counter_weight * counter
    mech.quality = min(max(quality, rules.quality_min), rules.quality_max)
    if mech.shut or not mech.alive:
        mech.quality = rules.quality_min


def on_sensors(battle: Battle, mech: Mech, enemy: Mech, hidden: dict[tuple[int, int], bool]) -> bool:
    rules = battle.rules
    if enemy.index in mech.sees:
        return True
    radar = rules.radar_range * SUITES[mech.suite].sensor_range * mech.quality
    if squared_distance(mech, enemy) <= radar * radar:
        return True
    if battle.painted_by_pack_of(mech, enemy) and mech.quality >= rules.paint_quality:
        return True
    shows = enemy.heat > rules.hot_share * battle.chassis(enemy).heat_capacity or enemy.emits
    return shows and not hidden[mech.index, enemy.index]


def listen(battle: Battle, mech: Mech) -> None:
    for other in battle.others(mech):
        dx, dy, _ = way(mech, other)
        loudness = other.noise / (1 + squared_distance(mech, other))
        if other.index not in mech.sees:
            loudness *= battle.rules.deaf_factor
        rear = dx * mech.cos + dy * mech.sin < 0
        right = not dy * mech.cos - dx * mech.sin > 0
        mech.sound[2 * rear + right] += loudness


# --- zone, score, end ------------------------------------------------------------------------------------------------


def score_zone(battle: Battle) -> None:
    rules, (zone_x, zone_y, radius) = battle.rules, battle.zone
    battle.tonnage = [0.0, 0.0]
    for mech in battle.mechs:
        dx, dy = mech.x - zone_x, mech.y - zone_y
        inside = mech.alive and mech.feet <= rules.zone_height and sqrt(dx * dx + dy * dy) < radius
        if inside != mech.inside:
            battle.emit("zone_enter" if inside else "zone_leave", mech.index, mech.place)
        mech.inside = inside
        if inside:
            battle.tonnage[mech.team] += battle.chassis(mech).tonnage
    for team in (0, 1):
        own, other = battle.tonnage[team], battle.tonnage[1 - team]
        if own and other:
            floor_share = rules.contested_floor
            battle.share[team] = floor_share + (1 - floor_share) * max((own - other) / (own + other), 0.0)
        else:
            battle.share[team] = 1.0 if own else 0.0
        battle.score[team] += battle.share[team] * 0.25


def decide_end(battle: Battle) -> None:
    rules, score = battle.rules, battle.score
    members = [[mech for mech in battle.mechs if mech.team == team] for team in (0, 1)]
    alive = [any(mech.alive for mech in team) for team in members]
    if any(members[team] and not alive[team] for team in (0, 1)):
        battle.ending, battle.winner = BY_ELIMINATION, higher(float(alive[0]), float(alive[1]))
    elif rules.score_ends and max(score) >= rules.score_share * (battle.length * 0.25):
        battle.ending, battle.winner = BY_SCORE, higher(*score)
    elif battle.decision == battle.length:
        battle.ending = BY_TIME
        battle.winner = suite_winner(battle, members) if rules.suite_tiebreak else winner_on_time(battle, members)


def higher(blue: float, red: float, tolerance: float = 0.0) -> int:
    """The team with more."""
    return NOBODY if abs(blue - red) <= tolerance else 0 if blue > red else 1


def winner_on_time(battle: Battle, members: list[list[Mech]]) -> int:
    by_score = higher(*battle.score)
    blue, red = (sum(mech.hp for mech in team) for team in members)
    return by_score if by_score != NOBODY else higher(blue, red, battle.rules.hp_tolerance)


def suite_winner(battle: Battle, members: list[list[Mech]]) -> int:
    present = [any(mech.inside for mech in team) for team in members]
    fallen = [sum(not mech.alive for mech in team) for team in members]
    dealt = [sum(mech.dealt for mech in team) for team in members]
    by_presence, by_losses = higher(*map(float, present)), higher(-fallen[0], -fallen[1])
    return by_presence if by_presence != NOBODY else by_losses if by_losses != NOBODY else higher(*dealt)
