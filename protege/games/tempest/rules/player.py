"""The player: turning, firing, the superzapper, and what his shots destroy; points and extra lives."""

from typing import Final

import numpy as np

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.motion import BLAST_ENEMY, BLAST_FUSEBALL, start_blast
from protege.games.tempest.rules.nymphs import release_cargo
from protege.games.tempest.rules.ram import Row, get, random_byte
from protege.kernels import kernel

_POINTS: Final = np.array([150, 200, 100, 50, 150, 0, 0, 0], np.int64)  # by type; a shot fuseball is drawn apart


@kernel
def add_points(row: Row, points: int) -> None:
    """Add to the score of a real game; at most one extra life per addition, and no more than six in all."""
    if row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        return
    old = ram.bcd_score(row, ram.SCORE_LOW)
    new = (old + points) % 1_000_000
    digits = new
    for i in range(3):
        row[ram.SCORE_LOW + i] = digits // 10 % 10 << 4 | digits % 10
        digits //= 100
    interval = get(row, ram.BONUS_INTERVAL)
    if interval == 0 or row[ram.LIVES] >= 6 or old % 10_000 + points < 10_000:
        return
    if interval <= points // 10_000 or new // 10_000 % interval == 0:
        row[ram.LIVES] += 1
        row[ram.BONUS_FLASH] = 0x20


@kernel
def score(row: Row, points: int) -> None:
    """Points earned by play: also counted in the margin, where they never wrap."""
    if row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        ram.add_to_word(row, ram.SCORE, points)
        add_points(row, points)


@kernel
def attract_delta(row: Row) -> int:
    """Where the demonstration player turns: towards the nearest enemy."""
    nearest, best = -1, 0x100
    for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        if 0 < depth < best:
            nearest, best = slot, depth
    if nearest < 0:
        return 0
    d = get(row, ram.ENEMY_LANE + nearest) - get(row, ram.PLAYER_LANE)
    if row[ram.OPEN] == 0:
        d = ((d + 8) & 15) - 8
    return 0 if d == 0 else (-9 if d > 0 else 9)


@kernel
def move_player(row: Row) -> None:
    """Turn the player by the spinner; a positive delta lowers the position."""
    if row[ram.PLAYER_EDGE] & ram.DYING != 0:
        return
    if row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        delta = get(row, ram.SPINNER)
        if delta >= 0x80:
            delta -= 0x100
        delta = max(-31, min(31, delta))
        row[ram.SPINNER] = 0
    else:
        delta = attract_delta(row)
    old = get(row, ram.PLAYER_POSITION)
    new = (old - delta) & 0xFF
    if row[ram.OPEN] != 0:
        if new >= 0xF0:
            new = 0xEF
        if (new ^ delta) & 0x80 != 0 and (new ^ old) & 0x80 != 0:
            new = 0x00 if old < 0x80 else 0xEF
    row[ram.PLAYER_LANE] = new >> 4
    row[ram.PLAYER_EDGE] = ((new >> 4) + 1) & 15
    row[ram.PLAYER_POSITION] = new


@kernel
def wants_fire(row: Row) -> bool:
    """The fire button, or the demonstration player's eye for what is within one lane."""
    if row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        return row[ram.BUTTONS] & ram.FIRE_BUTTON != 0
    if row[ram.DROPPING] != 0:
        return True
    lane = get(row, ram.PLAYER_LANE)
    for i in range(ram.ESHOT_COUNT + ram.ENEMY_COUNT):  # enemies lie behind their shots in memory
        if row[ram.ESHOT_DEPTH + i] != 0 and abs(get(row, ram.ESHOT_LANE + i) - lane) <= 1:
            return True
    return False


@kernel
def destroy_enemy(row: Row, slot: int, by_zap: bool) -> None:
    """An enemy dies by shot or superzapper. The points are those of its slot after the cargo came out: a quirk."""
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    kind = type_byte & ram.TYPE_BITS
    lane, depth = get(row, ram.ENEMY_LANE + slot), get(row, ram.ENEMY_DEPTH + slot)
    points = 0  # of a fuseball that was shot; those of others are known in the end
    if kind == ram.FUSEBALL and not by_zap:
        drawn = random_byte(row) & 7
        worth = 1 if drawn == 1 else (2 if drawn == 2 else 0)
        points = 250 * (worth + 1)
        start_blast(row, BLAST_FUSEBALL + worth, lane, depth)
    else:
        both = ram.BETWEEN_LANES | ram.INCREASING
        start_blast(row, BLAST_ENEMY, (lane - 1) & 15 if type_byte & both == both else lane, depth)
    if depth == get(row, ram.PLAYER_DEPTH) and kind != ram.FUSEBALL:
        row[ram.ENEMIES_ON_RIM] -= 1
    else:
        row[ram.ENEMIES_IN_TUBE] -= 1
    row[ram.TYPE_COUNT + kind] -= 1
    row[ram.ENEMY_DEPTH + slot] = 0
    cargo = get(row, ram.ENEMY_INFO + slot) & ram.CARGO_BITS
    if by_zap:
        row[ram.ENEMY_INFO + slot] -= cargo
    elif cargo != 0:
        release_cargo(row, lane, depth, cargo)
    if points == 0:
        points = _POINTS[row[ram.ENEMY_TYPE + slot] & ram.TYPE_BITS]
    score(row, points)


@kernel
def check_shot(row: Row, s: int) -> None:
    """One player shot against enemies 6..0, then enemy shots 3..0; it may destroy several, and is then gone."""
    depth, lane, edge = get(row, ram.PSHOT_DEPTH + s), get(row, ram.PSHOT_LANE + s), get(row, ram.PSHOT_EDGE + s)
    player_depth = get(row, ram.PLAYER_DEPTH)
    spent = False
    for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
        target = get(row, ram.ENEMY_DEPTH + slot)
        if target == 0:
            continue
        kind = get(row, ram.ENEMY_TYPE + slot) & ram.TYPE_BITS
        if abs(target - depth) >= get(row, ram.TYPE_TOLERANCE + kind):
            continue
        at = get(row, ram.ENEMY_LANE + slot)
        if row[ram.ENEMY_EDGE + slot] & 0x80 != 0:
            hit = at == lane and target != player_depth if kind == ram.FUSEBALL else at == lane or at == edge
        else:
            hit = kind != ram.FUSEBALL and at == lane and target != player_depth
        if hit:
            spent = True
            destroy_enemy(row, slot, False)
    if row[ram.ENEMY_SHOTS] != 0:
        for e in range(ram.ESHOT_COUNT - 1, -1, -1):
            target = get(row, ram.ESHOT_DEPTH + e)
            near = target != 0 and abs(target - depth) < get(row, ram.SHOT_TOLERANCE)
            if near and get(row, ram.ESHOT_LANE + e) == lane:
                spent = True
                row[ram.ESHOT_DEPTH + e] = 0
                row[ram.ENEMY_SHOTS] -= 1
                start_blast(row, BLAST_ENEMY, lane, target)
    if spent:
        row[ram.PSHOT_DEPTH + s] = 0
        row[ram.PSHOT_HITS + s] = 0
        row[ram.PLAYER_SHOTS] -= 1


@kernel
def fire(row: Row) -> None:
    """At most one new shot a tick; it is checked for hits where it is born, and gone if it struck."""
    if row[ram.PLAYER_EDGE] & ram.DYING != 0 or row[ram.PLAYER_SHOTS] == ram.PSHOT_COUNT or not wants_fire(row):
        return
    for s in range(ram.PSHOT_COUNT - 1, -1, -1):
        if row[ram.PSHOT_DEPTH + s] == 0:
            row[ram.PSHOT_DEPTH + s] = row[ram.PLAYER_DEPTH]
            row[ram.PSHOT_LANE + s] = row[ram.PLAYER_LANE]
            row[ram.PSHOT_EDGE + s] = row[ram.PLAYER_EDGE]
            row[ram.PSHOT_HITS + s] = 0
            row[ram.PLAYER_SHOTS] += 1
            check_shot(row, s)
            return


@kernel
def near_shots(lanes: np.uint64, edges: np.uint64, depths: np.uint64, lane: int, depth: int) -> np.uint64:
    """The top bit of byte s is set if player shot s could reach a target here: same lane or edge, depth within 16.

    All eight shots are tested at once, a byte each; depths are compared in steps of 8, so the test is never too strict.
    """
    beside = ram.equal_bytes(lanes, np.uint64(lane)) | ram.equal_bytes(edges, np.uint64(lane))
    steps = (depths >> np.uint64(3)) & np.uint64(0x1F1F1F1F1F1F1F1F)
    shifted = steps + np.uint64(34 - (depth >> 3)) * ram.EVERY_BYTE  # 34 where the steps are equal
    at_least_32 = shifted + np.uint64(128 - 32) * ram.EVERY_BYTE
    at_least_37 = shifted + np.uint64(128 - 37) * ram.EVERY_BYTE
    return beside & at_least_32 & ~at_least_37


@kernel
def check_shots(row: Row) -> None:
    """All player shots against their targets; those that are near none are passed over."""
    if row[ram.PLAYER_SHOTS] == 0:
        return
    lanes, edges = ram.get_word(row, ram.PSHOT_LANE), ram.get_word(row, ram.PSHOT_EDGE)
    depths = ram.get_word(row, ram.PSHOT_DEPTH)
    suspects = np.uint64(0)
    for i in range(0 if row[ram.ENEMY_SHOTS] != 0 else ram.ESHOT_COUNT, ram.ESHOT_COUNT + ram.ENEMY_COUNT):
        depth = get(row, ram.ESHOT_DEPTH + i)  # enemies lie behind their shots in memory
        if depth != 0:
            suspects |= near_shots(lanes, edges, depths, get(row, ram.ESHOT_LANE + i), depth)
    if suspects == 0:
        return
    for s in range(ram.PSHOT_COUNT - 1, -1, -1):
        if (suspects >> np.uint64(8 * s + 7)) & np.uint64(1) != 0 and row[ram.PSHOT_DEPTH + s] != 0:
            check_shot(row, s)
            if row[ram.PSHOT_DEPTH + s] == 0:
                suspects = ~np.uint64(0)  # a tanker's pieces may have come out beside other shots


@kernel
def move_player_shots(row: Row) -> None:
    """Player shots go down their lanes and cut spikes short."""
    if row[ram.PLAYER_SHOTS] == 0:
        return
    for s in range(ram.PSHOT_COUNT - 1, -1, -1):
        depth = get(row, ram.PSHOT_DEPTH + s)
        if depth == 0:
            continue
        depth = (depth + (9 if row[ram.PSHOT_HITS + s] == 0 else 5)) & 0xFF
        row[ram.PSHOT_DEPTH + s] = depth
        spike = ram.SPIKE + get(row, ram.PSHOT_LANE + s)
        if row[spike] != 0 and depth >= get(row, spike):
            row[spike] = depth if depth < ram.FAR_END else 0
            row[ram.PSHOT_HITS + s] += 1
            score(row, 1)
            if row[ram.PSHOT_HITS + s] >= 2:
                depth = 0xFF
        if depth >= ram.FAR_END:
            row[ram.PSHOT_DEPTH + s] = 0
            row[ram.PLAYER_SHOTS] -= 1


@kernel
def clear_shots(row: Row) -> None:
    ram.clear(row, ram.PSHOT_DEPTH, ram.PSHOT_COUNT)
    ram.clear(row, ram.ESHOT_DEPTH, ram.ESHOT_COUNT)
    row[ram.PLAYER_SHOTS] = row[ram.ENEMY_SHOTS] = 0


@kernel
def superzap(row: Row) -> None:
    """Start the superzapper on a fresh press, or let a running one strike every second tick."""
    timer = get(row, ram.ZAP_TIMER)
    if timer == 0:
        if row[ram.PLAYER_EDGE] & ram.DYING == 0 and row[ram.BUTTONS_NEW] & ram.ZAP_BUTTON != 0:
            row[ram.BUTTONS_NEW] &= 0xFF ^ ram.ZAP_BUTTON
            if row[ram.ZAP_USES] < 2:
                row[ram.ZAP_USES] += 1
                row[ram.ZAP_TIMER] = 1
        return
    timer = (timer + 1) & 0xFF
    if timer == (19 if row[ram.ZAP_USES] < 2 else 5):
        timer = 0
    row[ram.ZAP_TIMER] = timer
    if timer >= 3 and timer & 1 == 0:
        for slot in range(ram.ENEMY_COUNT - 1, -1, -1):
            if row[ram.ENEMY_DEPTH + slot] != 0:
                destroy_enemy(row, slot, True)
                return
        row[ram.ZAP_TIMER] = 0
