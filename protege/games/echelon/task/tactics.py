"""How scripted players think, one mech at a time: whom to shoot, where to go, where to look, what to press.

Everything here reads only what the mech may know: its own record, those of its team, the map, and of the enemies those
on its sensors. A `Level` holds the numbers by which players differ; teacher.py has the levels.
"""

from dataclasses import dataclass
from math import inf, radians, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules.battle import COUNTERING, JAMMING, VENT, Battle, Record, enemies_of, squared_distance
from protege.games.echelon.rules.weapons import has_bit, painted_for, within_arc
from protege.games.echelon.world import mechs
from protege.games.echelon.world.mechs import AUTOCANNON, GAUSS, MISSILE, NOBODY, NOT_CARRIED, PAINTER, SMOKE, Records
from protege.games.echelon.world.paths import LAVA_TOLL, waypoint
from protege.games.echelon.world.routes import SHIFT
from protege.games.echelon.world.sight import CLEAR, trace
from protege.games.echelon.world.voxels import World
from protege.kernels import kernel

Zone = npt.NDArray[np.float64]  # x, y, radius
Way = tuple[float, float]  # in the map's directions
Buttons = npt.NDArray[np.uint8]
DECISION_S: Final = 5 * mechs.TICK_S

# What a player keeps in mind about one mech between decisions.
MIND: Final = np.dtype(
    [
        ("target", "i8"), ("known_for", "i8"),  # whom it fights, for how many decisions
        ("stuck", "i8"), ("loose", "i8"),  # decisions in which it did not get on; left of the way out of that
        ("x", "f8"), ("y", "f8"),  # where it was
    ],
    align=True,
)  # fmt: skip

TOO_CLOSE: Final = 5.5  # voxels: simple players step back from a target as near as this
FIGHT: Final = 20.0  # voxels: skilled players fight a target they see from here on, and walk to the zone otherwise
LOOK: Final = 30.0  # voxels: they look at targets up to here, and where they go otherwise
ELBOW_ROOM: Final = 1.0  # voxels between friends
TOO_HOT: Final = 0.92  # fraction of capacity that a skilled player does not fire beyond
LEAD_FROM: Final = 7.0  # voxels: nearer, a shell that is drawn to its target hits it
STUCK: Final = 5  # decisions without getting on until a mech backs off, for BACK decisions, then goes aside
BACK, ASIDE = 3, 4
REACH: Final = np.array([10.0, 8.0, 12.0, 20.0])  # by class: how far what it aims with its body goes


@dataclass(frozen=True)
class Level:
    """How well a scripted player plays. Simple players use only the first numbers."""

    name: str
    aim_error_deg: float = 0.0  # by how much it may look past its target
    reaction_s: float = 0.0  # until it turns to a new target and fires
    fire_probability: float = 1.0  # of firing when it could, each decision
    skilled: bool = False

    # Whom a skilled player shoots: how many voxels farther away a target may be to be as good as a plain one.
    worth_hurt: float = 8.0  # at no HP, less with more
    worth_painted: float = 3.0
    worth_back: float = 3.0  # it turns its back
    worth_kept: float = 2.0  # it is the target already
    worth_joined: float = 0.0  # for each comrade, up to four, who says that it fights it; who cares, says so too
    unseen: float = 10.0  # voxels nearer that one out of sight must be

    # How it moves in a fight.
    distances: tuple[tuple[float, ...], ...] = ((9.0,) * 4, (6.5,) * 4, (9.0,) * 4, (13.0,) * 4)  # own, target's class
    sway: float = 0.7  # of full speed, from side to side: shells are slow
    hot: float = 0.95  # fraction of heat capacity from which it falls back
    hurt: float = 0.12  # fraction of HP below which it does
    fall_back: float = 8.0  # voxels more between itself and its target, when it does
    courage: float = 0.5  # it fights for the zone with this fraction of the enemy's tonnage there; with less, around it
    flanks: bool = False  # lights take the flank lane
    by_radar: bool = False  # guns fire at targets that only smoke hides
    blinds: bool = False  # mediums smoke their targets, and so they are not shot at
    leads: bool = False  # shells go where a target that crosses will be
    counters: bool = False  # scouts help a team that is jammed

    def record(self) -> Records:
        """(1,): the same as kernels take it: angles in radians, times in decisions."""
        numbers = {name: value for name, value in vars(self).items() if name != "name"}
        numbers |= {"aim_error": radians(self.aim_error_deg), "reaction": round(self.reaction_s / DECISION_S)}
        types = [np.float64 if isinstance(value, float | tuple) else np.int64 for value in numbers.values()]
        fields = list(zip(numbers, types, map(np.shape, numbers.values())))
        return np.array([tuple(numbers.values())], np.dtype(fields, align=True))


@kernel
def hypot(x: float, y: float) -> float:
    """Length of (x, y), the same on every machine."""
    return sqrt(x * x + y * y)


@kernel
def near(mech: Record, other: Record, reach: float) -> bool:
    return squared_distance(mech, other) <= reach * reach


# --- whom to shoot ---------------------------------------------------------------------------------------------------
WORD: Final = 64.0  # experts tell their pack whom they fight, as (index + 1) / WORD in the first number of a message


@kernel
def appeal(battle: Battle, mech: Record, whom: int, mind: Record, skill: Record) -> float:
    """How many voxels farther away a target may be to be as good as one without any of this."""
    enemy, rules = battle.mechs[whom], battle.rules
    worth: float = skill.worth_kept if mind.target == whom else 0.0
    if not has_bit(mech.sees, whom):
        return worth - float(skill.unseen)
    if not near(mech, enemy, REACH[mech.kind]):
        return worth
    worth += skill.worth_hurt * (1.0 - enemy.hp / rules.chassis[enemy.kind].hp)
    if painted_for(battle, mech, enemy):
        worth += skill.worth_painted
    dx, dy = enemy.x - mech.x, enemy.y - mech.y
    if dx * enemy.cos + dy * enemy.sin >= rules.cos_rear * hypot(dx, dy):
        worth += skill.worth_back
    if skill.worth_joined > 0.0:
        comrades = 0  # who said that they fight this enemy
        for k in range(battle.count):
            comrades += battle.mechs[k].pack == mech.pack and battle.messages[k, 0] * WORD - 1.0 == whom
        worth += skill.worth_joined * min(comrades, 4)
    return worth


@kernel
def choose_target(battle: Battle, mech: Record, mind: Record, skill: Record) -> int:
    """The nearest enemy on its sensors; for skilled players one that is worth more may be farther away."""
    if mech.knows == 0:
        return NOBODY
    least, found = inf, NOBODY
    first, last = enemies_of(battle, mech)
    for j in range(first, last):
        if has_bit(mech.knows, j):
            cost = sqrt(squared_distance(mech, battle.mechs[j]))
            if skill.skilled:
                cost -= appeal(battle, mech, j, mind, skill)
            if cost < least:
                least, found = cost, j
    return found


# --- where to go -----------------------------------------------------------------------------------------------------
@kernel
def limited(x: float, y: float) -> Way:
    """A vector, cut to length 1."""
    length = hypot(x, y)
    return (x / length, y / length) if length > 1.0 else (x, y)


@kernel
def to_zone(battle: Battle, world: World, b: int, mech: Record) -> Way:
    """The direction of the way to the zone; inside, to its middle."""
    if mech.inside:
        return limited((world.zone[b, 0] - mech.x) * 0.5, (world.zone[b, 1] - mech.y) * 0.5)
    gait = battle.rules.chassis[mech.kind].gait
    x, y = waypoint(world, b, gait, mech.x, mech.y, mech.z - mech.half_height)
    dx, dy = x - mech.x, y - mech.y
    length = hypot(dx, dy)
    return (dx / length, dy / length) if length > 0.0 else (0.0, 0.0)


@kernel
def along_flank(world: World, b: int, mech: Record) -> Way:
    """The direction of the team's flank lane, which runs beside the straight one; (0, 0) where it is left."""
    square = world.square[b, mech.team]
    shift_x, shift_y = world.facts[b, SHIFT + 2 * mech.team], world.facts[b, SHIFT + 2 * mech.team + 1]
    from_x, from_y = (square[0] + square[2]) * 0.5 + shift_x, (square[1] + square[3]) * 0.5 + shift_y
    to_x, to_y = world.zone[b, 0] + shift_x, world.zone[b, 1] + shift_y
    dx, dy = to_x - from_x, to_y - from_y
    length = hypot(dx, dy)
    if length == 0.0 or (shift_x == 0 and shift_y == 0):
        return 0.0, 0.0
    dx, dy = dx / length, dy / length
    done = (mech.x - from_x) * dx + (mech.y - from_y) * dy
    off_x, off_y = from_x + done * dx - mech.x, from_y + done * dy - mech.y
    if done > length - 2.0 or hypot(off_x, off_y) > 2.0 * hypot(shift_x, shift_y):
        return 0.0, 0.0
    return limited(dx + 0.5 * off_x, dy + 0.5 * off_y)


@kernel
def from_friends(battle: Battle, i: int) -> Way:
    """A push away from friends that stand too close to pass."""
    mech = battle.mechs[i]
    first, last = (0, battle.members[0]) if mech.team == 0 else (battle.members[0], battle.count)
    x = y = 0.0
    for j in range(first, last):
        friend = battle.mechs[j]
        reach = mech.half_width + friend.half_width + ELBOW_ROOM
        dx, dy = mech.x - friend.x, mech.y - friend.y
        if j != i and friend.alive and abs(dx) < reach and abs(dy) < reach:
            length = hypot(dx, dy)
            if length > 0.0:
                x, y = x + dx / length, y + dy / length
    return 0.5 * x, 0.5 * y


@kernel
def falls_back(battle: Battle, mech: Record, skill: Record) -> bool:
    """Whether a skilled player would rather have distance: too hot to shoot, or hurt."""
    chassis = battle.rules.chassis[mech.kind]
    return bool(mech.heat > skill.hot * chassis.heat_capacity or mech.hp < skill.hurt * chassis.hp)


@kernel
def step_back(mech: Record, enemy: Record, x: float, y: float) -> Way:
    """The way (x, y), but slowly backwards from an enemy that is too close."""
    dx, dy = enemy.x - mech.x, enemy.y - mech.y
    distance = hypot(dx, dy)
    if distance == 0.0 or distance >= TOO_CLOSE:
        return x, y
    dx, dy = dx / distance, dy / distance
    ahead = x * dx + y * dy + 0.3
    return x - ahead * dx, y - ahead * dy


@kernel
def yields(battle: Battle, mech: Record, skill: Record) -> bool:
    """Whether a skilled player leaves the zone to the enemy for now: hurt, or its side is too light there."""
    hurt = mech.hp < skill.hurt * battle.rules.chassis[mech.kind].hp
    return bool(hurt or battle.tonnage[mech.team] < skill.courage * battle.tonnage[1 - mech.team])


@kernel
def keep_distance(
    battle: Battle, zone: Zone, mech: Record, enemy: Record, skill: Record, side: float, goal_x: float, goal_y: float
) -> Way:
    """In a fight: at the distance that suits, swinging from side to side, and if its side is up to it, in the zone."""
    dx, dy = enemy.x - mech.x, enemy.y - mech.y
    distance = max(hypot(dx, dy), 0.1)
    dx, dy = dx / distance, dy / distance
    wanted = skill.distances[mech.kind, enemy.kind]
    if falls_back(battle, mech, skill):
        wanted += skill.fall_back
    closer = min(max((distance - wanted) * 0.4, -1.0), 1.0)
    x, y = closer * dx - skill.sway * side * dy, closer * dy + skill.sway * side * dx
    if yields(battle, mech, skill):
        return (x - goal_x, y - goal_y) if mech.inside else (x, y)
    if not mech.inside:
        return x + goal_x, y + goal_y
    if hypot(mech.x + 1.5 * x - zone[0], mech.y + 1.5 * y - zone[1]) > zone[2] - 0.5:
        return 0.5 * x + goal_x, 0.5 * y + goal_y
    return x, y


@kernel
def lava_ahead(world: World, b: int, gait: int, mech: Record, x: float, y: float) -> bool:
    column, row = int(mech.x + 1.5 * x), int(mech.y + 1.5 * y)
    rows, width = world.blocked.shape[1:]
    on_map = 0 <= column < width and 0 <= row < rows
    return bool(on_map and mech.material != mechs.LAVA and world.toll[b, gait, row, column] >= LAVA_TOLL)


@kernel
def can_fight(battle: Battle, world: World, b: int, mech: Record, target: int, skill: Record) -> bool:
    """Whether a target is near and in sight; for who shoots by radar, smoke between the two does not count."""
    if target == NOBODY or not near(mech, battle.mechs[target], FIGHT):
        return False
    if has_bit(mech.sees, target) or not skill.by_radar:
        return has_bit(mech.sees, target)
    enemy = battle.mechs[target]
    return trace(world.blocked[b], mech.x, mech.y, mech.z, enemy.x, enemy.y, enemy.z, False)[0] == CLEAR


@kernel
def go(battle: Battle, world: World, b: int, i: int, target: int, fights: bool, skill: Record, side: float) -> Way:
    """Where to, in the map's directions, and how fast: length 1 is full speed."""
    mech = battle.mechs[i]
    goal_x, goal_y = to_zone(battle, world, b, mech)
    x, y = goal_x, goal_y
    if not skill.skilled:
        if target != NOBODY and not (mech.kind == mechs.HEAVY and mech.inside):
            x, y = step_back(mech, battle.mechs[target], x, y)
        if mech.inside:
            x, y = 0.5 * x, 0.5 * y
    elif fights:
        x, y = keep_distance(battle, world.zone[b], mech, battle.mechs[target], skill, side, goal_x, goal_y)
    elif target != NOBODY and near(mech, battle.mechs[target], FIGHT) and yields(battle, mech, skill):
        x, y = (-goal_x, -goal_y) if mech.inside else (-side * goal_y, side * goal_x)
    elif skill.flanks and mech.kind == mechs.LIGHT and not mech.inside:
        x, y = along_flank(world, b, mech)
        if x == 0.0 and y == 0.0:
            x, y = goal_x, goal_y
    away_x, away_y = from_friends(battle, i)
    x, y = limited(x + away_x, y + away_y)
    if skill.skilled and lava_ahead(world, b, battle.rules.chassis[mech.kind].gait, mech, x, y):
        return goal_x, goal_y
    return x, y


@kernel
def gets_on(battle: Battle, mech: Record, mind: Record) -> None:
    """Notice whether the last decision's steps led anywhere; after a while without, plan a way out."""
    chassis, rules = battle.rules.chassis[mech.kind], battle.rules
    wanted = hypot(mech.forward, mech.strafe) * chassis.speed * (rules.dt * rules.ticks_per_decision)
    moved = hypot(mech.x - mind.x, mech.y - mind.y)
    mind.x, mind.y = mech.x, mech.y
    if mind.loose > 0:
        mind.loose -= 1
    elif wanted > 0.15 and moved < 0.15 * wanted and mech.fallen == 0 and not mech.shut:
        mind.stuck += 1
        if mind.stuck > STUCK:
            mind.stuck, mind.loose = 0, BACK + ASIDE
    else:
        mind.stuck = max(mind.stuck - 1, 0)


@kernel
def lead(battle: Battle, mech: Record, target: int, skill: Record) -> tuple[float, float, bool]:
    """Where to look: at the target, or so that a shell meets it; and whether to aim at nobody."""
    # Guns are drawn to where a target is. Whoever wants to hit one that crosses aims where it will be, at nobody.
    enemy, rules = battle.mechs[target], battle.rules
    dx, dy = enemy.x - mech.x, enemy.y - mech.y
    for weapon in (GAUSS, AUTOCANNON):
        if skill.leads and rules.trigger[mech.kind, weapon] != NOT_CARRIED:
            flight = hypot(dx, dy) / rules.weapons[weapon].speed
            to_x, to_y = dx + enemy.vx * flight, dy + enemy.vy * flight
            apart = dx * to_x + dy * to_y < rules.cos_aim_assist * hypot(dx, dy) * hypot(to_x, to_y)
            level = abs(enemy.z - mech.z) < enemy.half_height
            near_enough = LEAD_FROM < hypot(to_x, to_y) < rules.weapons[weapon].reach
            if apart and level and near_enough and has_bit(mech.sees, target):
                return to_x, to_y, True
    return dx, dy, False


# --- what to press ---------------------------------------------------------------------------------------------------
@kernel
def would_fire(battle: Battle, mech: Record, weapon: int, target: int) -> bool:
    """The simple rule: in reach, ahead, and seen where the weapon needs that."""
    enemy, gun = battle.mechs[target], battle.rules.weapons[weapon]
    reach, seen = gun.reach, has_bit(mech.sees, target)
    if weapon == MISSILE and not painted_for(battle, mech, enemy):
        reach = gun.sight_lock
    blind = weapon == GAUSS or weapon == AUTOCANNON or (weapon == MISSILE and reach == gun.reach)
    return (seen or blind) and near(mech, enemy, reach) and within_arc(mech, enemy, gun.cos_half_arc)


@kernel
def press_simply(battle: Battle, mech: Record, target: int, fires: bool, pressed: Buttons) -> None:
    """Fire whatever could hit; above three quarters of the heat capacity vent instead."""
    if mech.heat > 0.75 * battle.rules.chassis[mech.kind].heat_capacity:
        pressed[VENT] = 1
        return
    if target == NOBODY or not fires:
        return
    triggers = battle.rules.trigger
    for weapon in range(triggers.shape[1]):
        button = triggers[mech.kind, weapon]
        if button != NOT_CARRIED and weapon != SMOKE and would_fire(battle, mech, weapon, target):
            pressed[button] = 1


@kernel
def press_with_care(battle: Battle, mech: Record, target: int, on_line: bool, skill: Record, pressed: Buttons) -> None:
    """Vent all the time, fire what hits for the least heat first, never into a shutdown; and smoke."""
    chassis, rules = battle.rules.chassis[mech.kind], battle.rules
    pressed[VENT] = 1
    if target == NOBODY:
        return
    cooling = chassis.dissipation * (1.0 + rules.vent_factor) * (rules.dt * rules.ticks_per_decision)
    room = TOO_HOT * chassis.heat_capacity - mech.heat + 0.5 * cooling
    enemy = battle.mechs[target]
    for weapon in (GAUSS, AUTOCANNON, MISSILE, PAINTER, mechs.FLAMER, mechs.LASER):
        button, gun = rules.trigger[mech.kind, weapon], rules.weapons[weapon]
        if button == NOT_CARRIED:
            continue
        if weapon == GAUSS or weapon == AUTOCANNON:
            wanted = on_line and near(mech, enemy, gun.reach)
        else:
            wanted = would_fire(battle, mech, weapon, target)
            wanted = wanted and not (weapon == PAINTER and painted_for(battle, mech, enemy))
        left = rules.ticks_per_decision - max(mech.wait[gun.timer] - 1, 0)
        shots = (left + gun.cooldown_ticks - 1) // gun.cooldown_ticks if left > 0 else 0
        heat = shots * gun.heat  # what it will cost in the coming decision if its button is held
        if wanted and heat <= room:
            pressed[button] = 1
            room -= heat
    smoke = rules.trigger[mech.kind, SMOKE]
    if smoke != NOT_CARRIED and has_bit(mech.sees, target) and near(mech, enemy, rules.weapons[SMOKE].reach):
        shells = rules.trigger[mech.kind, AUTOCANNON] != NOT_CARRIED
        blinds = skill.blinds and shells and not near(mech, enemy, TOO_CLOSE)
        pressed[smoke] = blinds or falls_back(battle, mech, skill)


@kernel
def ewar_mode(battle: Battle, mech: Record, target: int, skill: Record) -> int:
    """Jam, or when that gets too hot, counter; skilled players only in a fight, because emitters show everywhere."""
    if not battle.rules.chassis[mech.kind].has_ewar:
        return 0
    if not skill.skilled:
        return JAMMING if mech.heat < 0.7 * battle.rules.chassis[mech.kind].heat_capacity else COUNTERING
    if target == NOBODY or not near(mech, battle.mechs[target], LOOK):
        return 0
    return COUNTERING if skill.counters and mech.jam > 0.3 else JAMMING
