"""The scripted player: RAM -> advice (target lane, fire, zap), and advice -> action.

Three rule sets by name. `meet` is the one the product teaches with; `era` and `newer` are what the published client ran
on two dates, kept for comparison. On open tubes lanes are 0 to 14 and no advice ever names lane 15. Where the sources
leave a rule open, the function that decides says what was chosen.
"""

from typing import Final

import numpy as np

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.ram import Row, get
from protege.games.tempest.task.actions import turn_by
from protege.games.tempest.task.observation import flipping_lane, is_flipping, relative_lane
from protege.kernels import kernel

MEET, ERA, NEWER = range(3)
RULE_SETS: Final = {"meet": MEET, "era": ERA, "newer": NEWER}

NEAR: Final = 0x60  # threats count up to this depth
FIRE_PROBABILITY: Final = 0.95
ZAP_COOLDOWN: Final = 60
HUNT_ORDER: Final = np.array([ram.FUSEBALL, ram.FLIPPER, ram.TANKER, ram.SPIKER], np.int64)  # pulsars are never hunted


@kernel
def _exists(row: Row, lane: int) -> bool:
    return row[ram.OPEN] == 0 or 0 <= lane <= 14


@kernel
def _on_board(row: Row, lane: int) -> int:
    """A lane as a target: wrapped on closed tubes, at most 14 on open ones."""
    return lane & 15 if row[ram.OPEN] == 0 else min(lane, 14)


@kernel
def _steer_zoom(row: Row) -> int:
    """The lane with the shortest spike, then the nearest, then the lowest; the present lane if nothing beats it."""
    best, best_rank = _on_board(row, get(row, ram.PLAYER_LANE) & 15), 1 << 20
    for i in range(-1, ram.LANE_COUNT if row[ram.OPEN] == 0 else ram.LANE_COUNT - 1):
        lane = best if i < 0 else i
        tip = get(row, ram.SPIKE + lane)
        rank = (0 if tip == 0 else 255 - tip) << 8 | abs(relative_lane(row, lane))
        if rank < best_rank:
            best, best_rank = lane, rank
    return best


@kernel
def _nearest_threat(row: Row, rules: int) -> float:
    """The signed distance of the nearest close flipper, pulsar or shot; 99 if none is within reach.

    Riders on the rim are measured with the part of their flip they have done, which is the whole of their special
    treatment: one that is turning over into the player's lane is nearer than one that lies beside it.
    """
    reach = 1.0 if rules == NEWER else 2.0
    nearest = 99.0
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        kind = get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS
        if depth == 0 or depth > NEAR or kind > ram.PULSAR:
            continue
        if rules == NEWER and kind == ram.PULSAR and row[ram.NYMPHS_LEFT] != 0:
            continue  # until none wait it bounces back before the rim
        relative = relative_lane(row, get(row, ram.ENEMY_LANE + slot))
        distance = float(relative)
        if depth <= ram.RIM and is_flipping(row, slot):
            distance = flipping_lane(row, slot, relative)
        if abs(distance) <= reach and abs(distance) < abs(nearest):
            nearest = distance
    for s in range(ram.ESHOT_COUNT):
        depth = get(row, ram.ESHOT_DEPTH + s)
        if 0 < depth <= NEAR:
            distance = float(relative_lane(row, get(row, ram.ESHOT_LANE + s)))
            if abs(distance) <= reach and abs(distance) < abs(nearest):
                nearest = distance
    return nearest


@kernel
def _step_to(row: Row, side: int) -> int:
    """One lane to a side; at an open end one lane the other way."""
    lane = get(row, ram.PLAYER_LANE) & 15
    return _on_board(row, lane + side if _exists(row, lane + side) else lane - side)


@kernel
def _flee_fuseball(row: Row, rules: int) -> int:
    """The lane to run to from the nearest shallow fuseball, or -1.

    `meet`: three lanes to the other side of it; at an open end as far as there are lanes, and if there is none, three
    the other way. The others step one lane aside from one that is coming.
    """
    most_depth, reach = (0x40, 2) if rules == MEET else (0x50, 1)
    nearest = 99
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        if depth == 0 or depth > most_depth or get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS != ram.FUSEBALL:
            continue
        if rules != MEET and row[ram.ENEMY_INFO + slot] & ram.MOVING_AWAY != 0:
            continue
        distance = relative_lane(row, get(row, ram.ENEMY_LANE + slot))
        if abs(distance) <= reach and abs(distance) < abs(nearest):
            nearest = distance
    if nearest == 99:
        return -1
    side = 1 if nearest <= 0 else -1
    if rules != MEET:
        return _step_to(row, side)
    lane = get(row, ram.PLAYER_LANE) & 15
    for direction in (side, -side):
        for far in range(3, 0, -1):
            if _exists(row, lane + direction * far):
                return _on_board(row, lane + direction * far)
    return _on_board(row, lane)


@kernel
def _holds_pulsar(row: Row, lane: int) -> bool:
    for slot in range(ram.ENEMY_COUNT):
        here = row[ram.ENEMY_DEPTH + slot] != 0 and get(row, ram.ENEMY_LANE + slot) & 15 == lane
        if here and get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS == ram.PULSAR:
            return True
    return False


@kernel
def _leave_pulsar(row: Row) -> int:
    """During a pulse: the nearest lane without a pulsar if the own one holds any, lower side first; else -1."""
    phase = get(row, ram.PULSE_PHASE)
    lane = get(row, ram.PLAYER_LANE) & 15
    if not 1 <= phase <= 127 or not _holds_pulsar(row, lane):
        return -1
    for far in range(1, ram.LANE_COUNT):
        for side in (-1, 1):
            other = lane + side * far
            if _exists(row, other) and not _holds_pulsar(row, other & 15):
                return _on_board(row, other)
    return _on_board(row, lane)


@kernel
def _hunt(row: Row) -> int:
    """The lane of the nearest enemy of the most urgent type present, then the shallower; the present lane if none."""
    for i in range(len(HUNT_ORDER)):
        best, best_rank = -1, 1 << 20
        for slot in range(ram.ENEMY_COUNT):
            depth = get(row, ram.ENEMY_DEPTH + slot)
            if depth == 0 or get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS != HUNT_ORDER[i]:
                continue
            lane = get(row, ram.ENEMY_LANE + slot) & 15
            rank = abs(relative_lane(row, lane)) << 8 | depth
            if rank < best_rank:
                best, best_rank = lane, rank
        if best >= 0:
            return _on_board(row, best)
    return _on_board(row, get(row, ram.PLAYER_LANE) & 15)


@kernel
def _wants_zap(row: Row, rules: int) -> bool:
    """Zap when three enemies have come near; `newer` waits for the rim, or for the last of the level."""
    if rules == NEWER and row[ram.TEACHER_COOLDOWN] > 0:
        row[ram.TEACHER_COOLDOWN] -= 1
        return False
    uses = get(row, ram.ZAP_USES)
    near = active = 0
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        active += depth != 0
        near += 0 < depth <= (ram.RIM if rules == NEWER else NEAR)
    if uses >= 2:
        return False
    if rules != NEWER:
        return near >= 3
    zap = active > 0 and (near >= (3 if uses == 0 else 1) or row[ram.NYMPHS_LEFT] == 0)
    if zap:
        row[ram.TEACHER_COOLDOWN] = ZAP_COOLDOWN
    return zap


@kernel
def advise(row: Row, rules: int) -> tuple[int, bool, bool]:
    """Target lane, fire, zap. Fire is drawn for this frame, whatever else; `newer` counts its cooldown here."""
    fire = ram.player_uniform(row, ram.FOR_FIRE) < FIRE_PROBABILITY
    state = get(row, ram.GAME_STATE)
    if state == ram.ZOOM:
        return _steer_zoom(row), fire, False
    threat = _nearest_threat(row, rules)
    if threat < 99.0:
        return _step_to(row, 1 if threat < 0.0 else -1), fire, False
    if state != ram.PLAYING:
        return _on_board(row, get(row, ram.PLAYER_LANE) & 15), fire, False
    target = _flee_fuseball(row, rules)
    if target < 0 and rules == MEET:
        target = _leave_pulsar(row)
    if target >= 0:
        return target, fire, False
    return _hunt(row), fire, _wants_zap(row, rules)


@kernel
def spinner_to(row: Row, target: int) -> int:
    """The spinner command (up to 29) that turns towards a target lane; 0 without one."""
    return 0 if target < 0 else turn_by(relative_lane(row, target))
