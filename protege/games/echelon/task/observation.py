"""Battles -> what every mech's player sees, what it may do, and what a critic may know besides.

All arrays are written in place by compiled code, for all mechs of many battles at once; features.py names every value.
A player sees its own condition, the friends and enemies on its displays, the ground around it and its pack's messages.
Its suite decides how many of them and how well. Nothing here reads an enemy that neither the mech nor, by report, its
pack has on its sensors. The dead see nothing.
"""

from math import floor, log1p, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.echelon.rules.battle import MESSAGE, ORDER_TICKS, VENT, Battle, Record, enemies_of, squared_distance
from protege.games.echelon.rules.outcome import score_to_win
from protege.games.echelon.rules.weapons import has_bit
from protege.games.echelon.task import displays
from protege.games.echelon.task import features as at
from protege.games.echelon.task.displays import Indices, Keys, Values, bounded, show_way
from protege.games.echelon.task.features import Layout
from protege.games.echelon.task.local_map import Ground, Picture, draw_circles, ground_of, survey
from protege.games.echelon.world.mechs import HAZARD_HEAT, NOBODY, Records, Rules
from protege.games.echelon.world.paths import distance_at, waypoint
from protege.games.echelon.world.sight import TOUCH, Columns, footprint, highest_layer, layers
from protege.games.echelon.world.voxels import World
from protege.kernels import kernel

HOT: Final = 0.85  # of the heat capacity
WATCHED: Final = 8.0  # voxels
TONNAGE: Final = 500.0
COOLEST: Final = float(-HAZARD_HEAT.min())  # what ground can take off a mech's heat, per second

Flags = npt.NDArray[np.bool_]


class Observation(NamedTuple):
    """Everybody's observations; the first two axes are battles and mechs, or teams where the whole battle is shown."""

    own: Values  # (battles, mechs, values)
    friends: Values  # (battles, mechs, friends, values)
    friend_mask: Flags  # (battles, mechs, friends): slots in use
    friend_index: Indices  # (battles, mechs, friends): who that is, or NOBODY; for decoding, not for networks
    enemies: Values  # (battles, mechs, enemies, values)
    enemy_mask: Flags
    enemy_index: Indices
    map: npt.NDArray[np.int8]  # (battles, mechs, channels, cells, cells), in quarters
    messages: Values  # (battles, mechs, pack, numbers), in roster order, one's own among them
    legal: Flags  # (battles, mechs, choices)
    alive: Flags  # (battles, mechs)
    state: Values  # (battles, teams, values): for critics alone
    mechs: Values  # (battles, teams, mechs, values): the own team first; for critics alone


class Scratch(NamedTuple):
    """What observing needs besides the battles."""

    walk: Keys  # (battles, mechs): how far it is to walk to the zone
    keys: Keys  # (battles, slots): by which slots are sorted
    waits: Keys  # (classes, timers): the longest wait a class knows, in ticks
    ground: Ground


def empty_observation(battles: int, layout: Layout) -> Observation:
    found: dict[str, npt.NDArray[Any]] = {}
    for name, (shape, dtype) in at.arrays_of(layout).items():
        rows = 2 if name in ("state", "mechs") else layout.mechs
        found[name] = np.full((battles, rows, *shape), NOBODY if name.endswith("_index") else 0, dtype)
    return Observation(**found)


def make_scratch(world: World, layout: Layout, rules: Rules) -> Scratch:
    tables = rules.record()
    waits = np.ones((len(tables["chassis"]), 4))
    for kind, weapon in zip(*np.nonzero(tables["trigger"] >= 0)):
        timer, ticks = tables["weapons"]["timer"][weapon], tables["weapons"]["cooldown_ticks"][weapon]
        waits[kind, timer] = max(waits[kind, timer], ticks)
    keys = np.zeros((len(world.seed), max(layout.friends, layout.enemies)))
    return Scratch(np.zeros((len(world.seed), layout.mechs)), keys, waits, ground_of(world))


# --- the observer itself ---------------------------------------------------------------------------------------------
@kernel
def show_condition(battle: Battle, mech: Record, waits: Keys, blocked: Columns, own: Values) -> None:
    rules, chassis = battle.rules, battle.rules.chassis[mech.kind]
    foot = mech.z - mech.half_height
    heat = mech.heat / chassis.heat_capacity
    own[at.OWN_FACING], own[at.OWN_FACING + 1] = mech.sin, mech.cos
    if not mech.shut:
        show_way(own, at.OWN_VELOCITY, mech, mech.vx, mech.vy, at.SPEED, at.FASTEST)
        own[at.OWN_VELOCITY + 2] = bounded(mech.vz / at.SPEED, at.FASTEST)
    own[at.OWN_FEET] = max(foot, 0.0) / at.HEIGHTS
    if not mech.grounded:
        below = footprint(blocked, mech.x, mech.y, mech.half_width) & layers(0, int(floor(foot + TOUCH)) - 1)
        own[at.OWN_ALTITUDE] = max(foot - highest_layer(below) - 1.0, 0.0) / at.HEIGHTS
    own[at.OWN_HP], own[at.OWN_LEGS] = mech.hp / chassis.hp, mech.leg_hp / chassis.leg_hp
    own[at.OWN_HEAT], own[at.OWN_HEADROOM] = min(heat, 2.0), max(1.0 - heat, 0.0)
    own[at.OWN_STABILITY] = mech.stability / chassis.stability
    own[at.OWN_SHUT], own[at.OWN_HOT], own[at.OWN_LEGGED] = mech.shut, heat > HOT, mech.legged
    own[at.OWN_GROUNDED], own[at.OWN_PAINTED], own[at.OWN_WARNED] = mech.grounded, mech.painted > 0, mech.warned
    own[at.OWN_HIT], own[at.OWN_JET] = mech.hit, mech.jet
    own[at.OWN_FALLEN] = mech.fallen / rules.knockdown_ticks
    own[at.OWN_SUPPRESSED] = mech.suppressed / rules.suppress_ticks
    show_way(own, at.OWN_HURT, mech, mech.hurt_x, mech.hurt_y, 1.0, 1.0)
    own[at.OWN_HURT + 2] = bounded(mech.hurt_z, 1.0)
    for timer in range(4):
        own[at.OWN_WAITS + timer] = mech.wait[timer] / waits[mech.kind, timer]
    own[at.OWN_AMS_WAIT] = mech.ams_wait / rules.ams_ticks


@kernel
def show_role(battle: Battle, mech: Record, own: Values) -> None:
    """Class, suite, and what the class can do at all."""
    chassis = battle.rules.chassis[mech.kind]
    own[at.OWN_CLASS + mech.kind] = 1.0
    for n in range(at.DESCRIPTORS.shape[1]):
        own[at.OWN_SUITE + n] = at.DESCRIPTORS[mech.suite, n]
    for weapon in range(battle.rules.trigger.shape[1]):
        button = battle.rules.trigger[mech.kind, weapon]
        if button >= 0:
            own[at.OWN_CAN + button] = 1.0
    own[at.OWN_CAN + 4], own[at.OWN_CAN + 5] = chassis.jet > 0.0, chassis.has_ewar
    own[at.OWN_CAN + 6] = chassis.has_ams


@kernel
def show_battle(battle: Battle, world: World, b: int, walk: float, mech: Record, own: Values) -> None:
    """Where the zone is, which way to walk there, and how the battle stands."""
    zone, feet = world.zone[b], mech.z - mech.half_height
    x, y = waypoint(world, b, battle.rules.chassis[mech.kind].gait, mech.x, mech.y, feet)
    dx, dy = x - mech.x, y - mech.y
    length = sqrt(dx * dx + dy * dy)
    if length > 0.0 and not mech.inside:
        show_way(own, at.OWN_WAY, mech, dx, dy, length, 2.0)
    show_way(own, at.OWN_ZONE, mech, zone[0] - mech.x, zone[1] - mech.y, at.LENGTH, at.FARTHEST)
    own[at.OWN_ZONE + 2] = -feet / at.LENGTH
    own[at.OWN_ZONE_RADIUS], own[at.OWN_INSIDE] = zone[2] / at.LENGTH, mech.inside
    own[at.OWN_WALK] = min(walk / at.LENGTH, at.FARTHEST)
    goal, team = score_to_win(battle), mech.team
    for n in range(2):
        side = team if n == 0 else 1 - team
        own[at.OWN_SHARE + n] = battle.share[side]
        own[at.OWN_SCORE + n] = min(battle.score[side] / goal, 2.0)
        own[at.OWN_LIVING + n] = battle.living[side] / max(battle.members[side], 1)
    both = battle.tonnage[0] + battle.tonnage[1]
    if both > 0.0:
        own[at.OWN_MARGIN] = (battle.tonnage[team] - battle.tonnage[1 - team]) / both
    own[at.OWN_TIME] = battle.decision / battle.length


@kernel
def show_senses(battle: Battle, i: int, own: Values) -> None:
    """Sensors, noise, and whether an enemy near by looks on."""
    mech, rules = battle.mechs[i], battle.rules
    own[at.OWN_QUALITY], own[at.OWN_JAM] = mech.quality / rules.quality_max, mech.jam
    if mech.ewar != 0:
        own[at.OWN_EWAR + mech.ewar - 1] = 1.0
    for quadrant in range(4):
        if mech.sound[quadrant] > 0.0:
            own[at.OWN_SOUND + quadrant] = min(log1p(mech.sound[quadrant]) / 5.0, 1.0)
    if mech.knows != 0:
        first, last = enemies_of(battle, mech)
        for j in range(first, last):
            if has_bit(mech.knows, j) and has_bit(mech.sees, j):
                if squared_distance(mech, battle.mechs[j]) <= WATCHED * WATCHED:
                    own[at.OWN_WATCHED] = 1.0
        own[at.OWN_FOCUS] = mech.focus != NOBODY and has_bit(mech.knows, mech.focus)


@kernel
def show_wishes(battle: Battle, i: int, own: Values) -> None:
    """What its player wanted last, and what its commander wants."""
    mech = battle.mechs[i]
    own[at.OWN_MOVE], own[at.OWN_MOVE + 1] = mech.forward, mech.strafe
    own[at.OWN_MOVE + 2], own[at.OWN_MOVE + 3] = mech.vertical, mech.turn
    for button in range(5):
        own[at.OWN_BUTTONS + button] = mech.buttons >> button & 1
    if mech.order == 0:
        return
    own[at.OWN_ORDER + mech.order - 1] = 1.0
    own[at.OWN_ORDER_LEFT] = mech.order_left / ORDER_TICKS
    whom = mech.order_target
    if whom != NOBODY and (has_bit(mech.knows, whom) or has_bit(battle.mechs[mech.order_from].knows, whom)):
        dx, dy = battle.mechs[whom].x - mech.x, battle.mechs[whom].y - mech.y
        show_way(own, at.OWN_ORDER_PLACE, mech, dx, dy, at.LENGTH, at.FARTHEST)


@kernel
def show_mech(battle: Battle, zone: Keys, waits: Keys, team: int, j: int, row: Values) -> None:
    """One mech as it is, in a frame around the zone with the map's axes."""
    mech, rules, chassis = battle.mechs[j], battle.rules, battle.rules.chassis[battle.mechs[j].kind]
    row[:] = 0.0
    row[at.MECH_OWN], row[at.MECH_ALIVE], row[at.MECH_CLASS + mech.kind] = mech.team == team, mech.alive, 1.0
    if not mech.alive:
        return
    row[at.MECH_PLACE] = bounded((mech.x - zone[0]) / at.LENGTH, at.FARTHEST)
    row[at.MECH_PLACE + 1] = bounded((mech.y - zone[1]) / at.LENGTH, at.FARTHEST)
    row[at.MECH_PLACE + 2] = (mech.z - mech.half_height) / at.LENGTH
    row[at.MECH_VELOCITY] = bounded(mech.vx / at.SPEED, at.FASTEST)
    row[at.MECH_VELOCITY + 1] = bounded(mech.vy / at.SPEED, at.FASTEST)
    row[at.MECH_VELOCITY + 2] = bounded(mech.vz / at.SPEED, at.FASTEST)
    row[at.MECH_FACING], row[at.MECH_FACING + 1] = mech.sin, mech.cos
    row[at.MECH_HP], row[at.MECH_LEGS] = mech.hp / chassis.hp, mech.leg_hp / chassis.leg_hp
    row[at.MECH_HEAT] = min(mech.heat / chassis.heat_capacity, 2.0)
    row[at.MECH_STABILITY] = mech.stability / chassis.stability
    row[at.MECH_SHUT], row[at.MECH_FALLEN] = mech.shut, mech.fallen / rules.knockdown_ticks
    row[at.MECH_LEGGED], row[at.MECH_PAINTED] = mech.legged, mech.painted > 0
    row[at.MECH_INSIDE], row[at.MECH_JET] = mech.inside, mech.jet
    for timer in range(4):
        row[at.MECH_WAITS + timer] = mech.wait[timer] / waits[mech.kind, timer]
    first, last = enemies_of(battle, mech)
    for k in range(first, last):
        if has_bit(battle.mechs[k].knows, j):
            row[at.MECH_KNOWN] = 1.0


@kernel
def show_state(battle: Battle, zone: Keys, waits: Keys, team: int, state: Values, mechs: Values) -> None:
    """The whole battle from one team's side: scores, then its own mechs in roster order, then the others."""
    goal = score_to_win(battle)
    state[:] = 0.0
    state[at.STATE_TIME], state[at.STATE_ZONE_RADIUS] = battle.decision / battle.length, zone[2] / at.LENGTH
    place = 0
    for n in range(2):
        side = team if n == 0 else 1 - team
        state[at.STATE_SCORE + n] = min(battle.score[side] / goal, 2.0)
        state[at.STATE_SHARE + n] = battle.share[side]
        state[at.STATE_TONNAGE + n] = min(battle.tonnage[side] / TONNAGE, 1.0)
        state[at.STATE_LIVING + n] = battle.living[side] / max(battle.members[side], 1)
        left, whole = 0.0, 0.0
        for j in range(battle.count):
            mech = battle.mechs[j]
            if mech.team == side:
                left, whole = left + mech.hp, whole + battle.rules.chassis[mech.kind].hp
                show_mech(battle, zone, waits, team, j, mechs[place])
                place += 1
        state[at.STATE_HP + n] = left / max(whole, 1.0)


# --- legal actions ---------------------------------------------------------------------------------------------------
# What is marked illegal changes nothing if it is asked for; what is legal may still find no target.


@kernel
def mark_controls(battle: Battle, mech: Record, legal: Flags) -> None:
    """Movement, buttons and electronic warfare: what can have an effect within the next decision."""
    rules, chassis = battle.rules, battle.rules.chassis[mech.kind]
    cooling = (chassis.dissipation + COOLEST) * rules.dt * rules.ticks_per_decision
    if mech.shut and mech.heat - cooling > chassis.heat_capacity:  # shut down during all of the decision
        return
    legal[at.LEGAL_BUTTONS + VENT] = True
    if chassis.has_ewar:
        legal[at.LEGAL_EWAR : at.LEGAL_TARGET] = True
    if mech.fallen > rules.ticks_per_decision:
        return
    legal[at.LEGAL_MOVE] = legal[at.LEGAL_MOVE + 1] = legal[at.LEGAL_MOVE + 3] = True
    legal[at.LEGAL_MOVE + 2] = chassis.jet > 0.0
    for weapon in range(rules.trigger.shape[1]):
        button = rules.trigger[mech.kind, weapon]
        if button >= 0 and mech.wait[battle.rules.weapons[weapon].timer] <= rules.ticks_per_decision:
            legal[at.LEGAL_BUTTONS + button] = True


@kernel
def mark_choices(battle: Battle, i: int, friends: Indices, enemies: Indices, legal: Flags) -> None:
    """Targets by slot, and orders from commanders to those they see."""
    for n in range(len(enemies)):
        legal[at.LEGAL_TARGET + n] = enemies[n] != NOBODY
    if not at.GIVES_ORDERS[battle.mechs[i].suite]:
        return
    orders = at.LEGAL_TARGET + len(enemies) + 1
    for n in range(len(friends)):
        if friends[n] != NOBODY and battle.mechs[friends[n]].leader == i:
            legal[orders : orders + at.ORDER_KINDS] = True
            legal[orders + at.ORDER_KINDS + n] = True


# --- all of it -------------------------------------------------------------------------------------------------------
# A kernel for each part, called one after the other: as one, the compiler makes them half as fast.


@kernel
def measure_walks(records: Records, world: World, walk: Keys, first: int, last: int) -> None:
    """How far everybody alive in battles first..last-1 has to walk to the zone's edge."""
    for b in range(first, last):
        battle = records[b]
        for i in range(battle.count):
            mech = battle.mechs[i]
            if mech.alive:
                gait = battle.rules.chassis[mech.kind].gait
                walk[b, i] = distance_at(world, b, gait, mech.x, mech.y, mech.z - mech.half_height)


@kernel
def show_selves(battle: Battle, world: World, b: int, walk: Keys, waits: Keys, own: Values, alive: Flags) -> None:
    for i in range(battle.count):
        mech, row = battle.mechs[i], own[i]
        row[:] = 0.0
        alive[i] = mech.alive
        if mech.alive:
            show_role(battle, mech, row)
            show_condition(battle, mech, waits, world.blocked[b], row)
            show_battle(battle, world, b, walk[i], mech, row)
            show_senses(battle, i, row)
            show_wishes(battle, i, row)


@kernel
def show_friends(battle: Battle, keys: Keys, rows: Values, mask: Flags, index: Indices) -> None:
    for i in range(battle.count):
        rows[i], mask[i], index[i] = 0.0, False, NOBODY
        if battle.mechs[i].alive:
            for n in range(displays.list_friends(battle, i, index[i], keys)):
                mask[i, n] = True
                displays.show_friend(battle, i, index[i, n], rows[i, n])


@kernel
def show_enemies(battle: Battle, keys: Keys, own: Values, rows: Values, mask: Flags, index: Indices) -> None:
    """The contacts and reports on everybody's display, and in `own` how many they are."""
    for i in range(battle.count):
        rows[i], mask[i], index[i] = 0.0, False, NOBODY
        mech = battle.mechs[i]
        if mech.alive:
            contacts = displays.list_contacts(battle, i, index[i], keys)
            known = displays.list_reports(battle, i, index[i], keys, contacts)
            for n in range(known):
                mask[i, n] = True
                displays.show_enemy(battle, i, index[i, n], n >= contacts, rows[i, n])
            own[i, at.OWN_CONTACTS] = contacts / at.CONTACT_SLOTS[mech.suite]
            own[i, at.OWN_CONTACTS + 1] = (known - contacts) / at.INTEL_SLOTS[mech.suite]


@kernel
def show_messages(battle: Battle, messages: Values) -> None:
    for i in range(battle.count):
        messages[i] = 0.0
        heard = 0
        for j in range(battle.count if battle.mechs[i].alive else 0):
            if battle.mechs[j].pack == battle.mechs[i].pack:
                for n in range(MESSAGE):
                    messages[i, heard, n] = battle.messages[j, n]
                heard += 1


@kernel
def show_ground(battle: Battle, zone: Keys, ground: Ground, b: int, pictures: Picture) -> None:
    scars = ground.scars[b]
    for n in range(battle.change_count):
        scars[battle.changes[n].cell % len(scars)] = 1
    for i in range(battle.count):
        mech = battle.mechs[i]
        pictures[i] = 0
        if mech.alive:
            survey(mech, battle.rules.chassis[mech.kind].gait, ground, b, pictures[i])
            draw_circles(battle, zone, mech, pictures[i])


@kernel
def mark_legal(battle: Battle, friends: Indices, enemies: Indices, legal: Flags) -> None:
    """What everybody may do; the dead only what does nothing: no warfare, no target, no order."""
    orders = at.LEGAL_TARGET + enemies.shape[1] + 1
    for i in range(battle.count):
        legal[i] = False
        legal[i, at.LEGAL_EWAR] = legal[i, orders - 1] = legal[i, orders] = True
        if battle.mechs[i].alive:
            mark_controls(battle, battle.mechs[i], legal[i])
            mark_choices(battle, i, friends[i], enemies[i], legal[i])


@kernel
def observe(records: Records, world: World, scratch: Scratch, out: Observation, first: int, last: int) -> None:
    """Battles first..last-1 as they are now, and in `scratch.walk` how far it is to walk."""
    # One kernel for all of it, because threads wait for each other between kernels.
    measure_walks(records, world, scratch.walk, first, last)
    for b in range(first, last):
        battle, zone, waits, keys = records[b], world.zone[b], scratch.waits, scratch.keys[b]
        show_selves(battle, world, b, scratch.walk[b], waits, out.own[b], out.alive[b])
        show_friends(battle, keys, out.friends[b], out.friend_mask[b], out.friend_index[b])
        show_enemies(battle, keys, out.own[b], out.enemies[b], out.enemy_mask[b], out.enemy_index[b])
        show_messages(battle, out.messages[b])
        show_ground(battle, zone, scratch.ground, b, out.map[b])
        mark_legal(battle, out.friend_index[b], out.enemy_index[b], out.legal[b])
        for team in range(2):
            show_state(battle, zone, waits, team, out.state[b, team], out.mechs[b, team])
