"""The rules of Tempest: many games at once, each one a row of memory (see ram.py).

`tick` is one pass of the machine's main loop over one row; everything else here is a part of it, in the machine's order.
`step_games` advances a batch: one frame each (a tick in which the player has control) and, if asked, the ticks up to the
next one. Rows in, rows out: a game's future depends on its row and its controls alone.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from protege import ProtegeError
from protege.kernels import kernel
from protege.tempest import levels, ram
from protege.tempest.enemies import (
    BLAST_ENEMY,
    BLAST_FUSEBALL,
    enemies_fire,
    kill_player,
    move_enemies,
    move_enemy_shots,
    move_nymphs,
    random_byte,
    release_cargo,
    scatter_nymphs,
    start_blast,
)
from protege.tempest.ram import Row, Rows, get

_POINTS: Final = np.array([150, 200, 100, 50, 150, 0, 0, 0], np.int64)  # by type; a shot fuseball is drawn apart
_BLAST_LIMIT: Final = np.array([16, 21, 32, 32, 32, 16], np.int64)
_LEVELS, _BONUSES = levels.START_LEVELS, levels.START_BONUSES
_ADDRESSES, _BYTES = levels.LEVEL_ADDRESSES, levels.LEVEL_BYTES
_TUBE_NUMBER, _TUBE_OPEN = levels.TUBE_NUMBER, levels.TUBE_OPEN
_TUBE_REST, _TUBE_POINTS = levels.TUBE_REST, levels.TUBE_POINTS


# --- score and objects ---------------------------------------------------------------------------------------------


@kernel
def to_bcd(number: int) -> int:
    """Two decimal digits as a BCD byte."""
    return (number // 10 << 4) + number % 10


@kernel
def add_points(row: Row, points: int) -> None:
    """Add to the score of a real game; at most one extra life per addition."""
    if row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        return
    old = ram.bcd_score(row, ram.SCORE_LOW)
    new = (old + points) % 1_000_000
    row[ram.SCORE_LOW] = to_bcd(new % 100)
    row[ram.SCORE_MID] = to_bcd(new // 100 % 100)
    row[ram.SCORE_HIGH] = to_bcd(new // 10_000)
    interval = get(row, ram.BONUS_INTERVAL)
    if interval == 0:
        return
    if points < 10_000:
        if old % 10_000 + points < 10_000:
            return
    elif interval <= points // 10_000:
        extra_life(row)
        return
    if new // 10_000 % interval == 0:
        extra_life(row)


@kernel
def extra_life(row: Row) -> None:
    """One more life, up to six."""
    if row[ram.LIVES] < 6:
        row[ram.LIVES] += 1
        row[ram.BONUS_FLASH] = 0x20


@kernel
def score(row: Row, points: int) -> None:
    """Points earned by play: also counted in the margin, where they never wrap."""
    if row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        ram.add_to_word(row, ram.SCORE, points)
        add_points(row, points)


@kernel
def clear_shots(row: Row) -> None:
    """Remove every shot of both sides."""
    for s in range(ram.PSHOT_COUNT):
        row[ram.PSHOT_DEPTH + s] = 0
    for s in range(ram.ESHOT_COUNT):
        row[ram.ESHOT_DEPTH + s] = 0
    row[ram.PLAYER_SHOTS] = 0
    row[ram.ENEMY_SHOTS] = 0


@kernel
def destroy_enemy(row: Row, slot: int, by_zap: bool) -> None:
    """An enemy dies by shot or superzapper. Points follow the slot's type after its cargo came out, as on the machine."""
    type_byte = get(row, ram.ENEMY_TYPE + slot)
    kind = type_byte & ram.TYPE_BITS
    lane, depth = get(row, ram.ENEMY_LANE + slot), get(row, ram.ENEMY_DEPTH + slot)
    shot_fuseball = kind == ram.FUSEBALL and not by_zap
    points = 0
    if shot_fuseball:
        chance = random_byte(row) & 7
        worth = 1 if chance == 1 else (2 if chance == 2 else 0)
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
    if not shot_fuseball:
        points = _POINTS[row[ram.ENEMY_TYPE + slot] & ram.TYPE_BITS]
    score(row, points)


@kernel
def run_blasts(row: Row) -> None:
    """Advance the explosions and count those still running: they hold up level end and death."""
    running = 0
    if ram.get_word(row, ram.BLAST_DEPTH) != 0:
        for s in range(ram.BLAST_COUNT):
            if row[ram.BLAST_DEPTH + s] == 0:
                continue
            kind = get(row, ram.BLAST_TYPE + s)
            phase = get(row, ram.BLAST_PHASE + s) + (1 if kind == 1 else 3)
            row[ram.BLAST_PHASE + s] = phase
            if phase >= _BLAST_LIMIT[kind]:
                row[ram.BLAST_DEPTH + s] = 0
            else:
                running += 1
    row[ram.EXPLOSIONS] = running


# --- the player ----------------------------------------------------------------------------------------------------


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
    for slot in range(ram.ENEMY_COUNT):
        if row[ram.ENEMY_DEPTH + slot] != 0 and abs(get(row, ram.ENEMY_LANE + slot) - lane) <= 1:
            return True
    for s in range(ram.ESHOT_COUNT):
        if row[ram.ESHOT_DEPTH + s] != 0 and abs(get(row, ram.ESHOT_LANE + s) - lane) <= 1:
            return True
    return False


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
            if (
                target != 0
                and abs(target - depth) < get(row, ram.SHOT_TOLERANCE)
                and get(row, ram.ESHOT_LANE + e) == lane
            ):
                spent = True
                row[ram.ESHOT_DEPTH + e] = 0
                row[ram.ENEMY_SHOTS] -= 1
                start_blast(row, BLAST_ENEMY, lane, target)
    if spent:
        row[ram.PSHOT_DEPTH + s] = 0
        row[ram.PSHOT_HITS + s] = 0
        row[ram.PLAYER_SHOTS] -= 1


@kernel
def near_shots(lanes: np.uint64, edges: np.uint64, depths: np.uint64, lane: int, depth: int) -> np.uint64:
    """The top bit of byte s is set if player shot s could reach a target here: same lane or edge, depth within 16.

    All eight shots are tested at once, a byte each; the depths are compared in steps of 8, so the test is never too strict.
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
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        if depth != 0:
            suspects |= near_shots(lanes, edges, depths, get(row, ram.ENEMY_LANE + slot), depth)
    if row[ram.ENEMY_SHOTS] != 0:
        for s in range(ram.ESHOT_COUNT):
            depth = get(row, ram.ESHOT_DEPTH + s)
            if depth != 0:
                suspects |= near_shots(lanes, edges, depths, get(row, ram.ESHOT_LANE + s), depth)
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


# --- how lives and levels end --------------------------------------------------------------------------------------


@kernel
def fall(row: Row) -> None:
    """A dying player waits until nothing flies or explodes, then falls with all enemies; then the life is over."""
    if row[ram.PLAYER_SHOTS] != 0 or row[ram.ENEMY_SHOTS] != 0 or row[ram.EXPLOSIONS] != 0:
        return
    for slot in range(ram.ENEMY_COUNT):
        depth = get(row, ram.ENEMY_DEPTH + slot)
        if depth != 0:
            row[ram.ENEMY_DEPTH + slot] = depth + 15 if depth + 15 < ram.FAR_END else 0
    if row[ram.LIVES] == 1:
        camera = ((get(row, ram.CAMERA_HIGH) << 8 | get(row, ram.CAMERA_LOW)) - 0x20) & 0xFFFF
        row[ram.CAMERA_HIGH] = camera >> 8
        row[ram.CAMERA_LOW] = camera & 0xFF
        fallen = camera >> 8 == 0xFA
    else:
        depth = get(row, ram.PLAYER_DEPTH) + 15
        row[ram.PLAYER_DEPTH] = depth & 0xFF
        fallen = depth >= ram.FAR_END
    if fallen:
        clear_shots(row)
        left = get(row, ram.ENEMIES_IN_TUBE) + get(row, ram.ENEMIES_ON_RIM) + get(row, ram.NYMPHS_LEFT)
        row[ram.NYMPHS_LEFT] = min(63, left & 0xFF)
        row[ram.GAME_STATE] = ram.LIFE_LOST


@kernel
def end_level(row: Row) -> None:
    """Set off down the tube, with a warning first where spikes are still news."""
    row[ram.DROPPING] |= 0x80
    row[ram.DROP_SPEED_LOW] = 0x00
    row[ram.DROP_SPEED_HIGH] = 0x02
    row[ram.PLAYER_DEPTH_FRACTION] = 0
    row[ram.CAMERA_FRACTION] = 0
    row[ram.ZAP_TIMER] = 0xFF
    spikes = 0
    for lane in range(ram.LANE_COUNT):
        if row[ram.SPIKE + lane] != 0:
            spikes += 1
    row[ram.SPIKE_WARNING] = spikes
    row[ram.GAME_STATE] = ram.ZOOM
    if spikes != 0 and row[ram.LEVEL_INDEX] < 7:
        row[ram.SPIKE_WARNING] = 0x80
        row[ram.COUNTDOWN] = 30
        row[ram.NEXT_STATE] = ram.ZOOM
        row[ram.GAME_STATE] = ram.DELAY


@kernel
def level_is_over(row: Row) -> bool:
    """Nobody waits, nothing explodes, and whoever is left sits on the rim."""
    if row[ram.NYMPHS_LEFT] != 0 or row[ram.EXPLOSIONS] != 0 or row[ram.DROPPING] != 0:
        return False
    for slot in range(ram.ENEMY_COUNT):
        if row[ram.ENEMY_DEPTH + slot] > ram.RIM:
            return False
    return True


@kernel
def play(row: Row) -> None:
    """One tick of state PLAYING."""
    row[ram.BUTTONS_NEW] &= 0xFF ^ ram.UNCONSUMED
    real = row[ram.GAME_MODE] & ram.REAL_GAME != 0
    move_player(row)
    fire(row)
    if real:
        superzap(row)
    move_nymphs(row)
    move_enemies(row)
    move_enemy_shots(row)
    move_player_shots(row)
    enemies_fire(row)
    check_shots(row)
    run_blasts(row)
    if row[ram.PLAYER_EDGE] & ram.DYING != 0:
        fall(row)
    elif level_is_over(row):
        end_level(row)
        clear_shots(row)
    elif real and row[ram.FREE_PLAY] != 0 and row[ram.DEMO] != 0 and row[ram.BUTTONS] & ram.START_BUTTON != 0:
        end_level(row)


@kernel
def drop(row: Row) -> None:
    """One step down the tube, and onto a spike if one stands in the lane."""
    speed = get(row, ram.DROP_SPEED_HIGH) << 8 | get(row, ram.DROP_SPEED_LOW)
    depth = (get(row, ram.PLAYER_DEPTH) << 8 | get(row, ram.PLAYER_DEPTH_FRACTION)) + speed
    row[ram.PLAYER_DEPTH_FRACTION] = depth & 0xFF
    depth >>= 8
    camera = get(row, ram.CAMERA_HIGH) << 16 | get(row, ram.CAMERA_LOW) << 8 | get(row, ram.CAMERA_FRACTION)
    camera += speed
    row[ram.CAMERA_HIGH] = camera >> 16 & 0xFF
    row[ram.CAMERA_LOW] = camera >> 8 & 0xFF
    row[ram.CAMERA_FRACTION] = camera & 0xFF
    speed += 0x20 + min(4 * get(row, ram.LEVEL_INDEX) & 0xFF, 0x30)
    row[ram.DROP_SPEED_HIGH] = speed >> 8 & 0xFF
    row[ram.DROP_SPEED_LOW] = speed & 0xFF
    if depth >= ram.FAR_END:
        row[ram.PLAYER_DEPTH] = 0xFF
        row[ram.GAME_STATE] = ram.LEVEL_DONE
        return
    row[ram.PLAYER_DEPTH] = depth
    tip = get(row, ram.SPIKE + get(row, ram.PLAYER_LANE))
    if tip != 0 and tip < depth:
        kill_player(row, ram.BY_SPIKE)
        clear_shots(row)


@kernel
def zoom(row: Row) -> None:
    """One tick of state ZOOM."""
    row[ram.SPIKE_WARNING] &= 0x7F
    move_player(row)
    if row[ram.PLAYER_EDGE] & ram.DYING == 0:
        drop(row)
    run_blasts(row)
    fire(row)
    move_enemy_shots(row)
    move_player_shots(row)
    if row[ram.PLAYER_EDGE] & ram.DYING != 0:
        fall(row)


# --- setting up lives, levels and games ----------------------------------------------------------------------------


@kernel
def set_parameters(row: Row) -> None:
    """Write the level's constants; level 99 draws which level's they are."""
    effective = get(row, ram.LEVEL_INDEX) + 1
    if effective >= levels.LAST_LEVEL:
        effective = (random_byte(row) & 0x1F | 0x40) + 1
    chosen = _BYTES[row[ram.DIFFICULTY] & 3, effective]
    for i in range(len(_ADDRESSES)):
        row[_ADDRESSES[i]] = chosen[i]


@kernel
def load_tube(row: Row) -> None:
    """Copy the shape of the level's tube; level 99 draws it."""
    index = get(row, ram.LEVEL_INDEX)
    position = random_byte(row) & 15 if index >= levels.LAST_LEVEL - 1 else index & 15
    row[ram.TUBE] = _TUBE_NUMBER[position]
    row[ram.OPEN] = _TUBE_OPEN[position]
    row[ram.CAMERA_REST] = _TUBE_REST[position]
    for i in range(3 * ram.LANE_COUNT):
        row[ram.TUBE_X + i] = _TUBE_POINTS[position, i]


@kernel
def clear_objects(row: Row) -> None:
    """What every new life and new level empties."""
    clear_shots(row)
    for slot in range(ram.ENEMY_COUNT):
        row[ram.ENEMY_DEPTH + slot] = 0
    for s in range(ram.BLAST_COUNT):
        row[ram.BLAST_DEPTH + s] = 0
    for kind in range(ram.TYPE_KINDS):
        row[ram.TYPE_COUNT + kind] = 0
    row[ram.EXPLOSIONS] = 0
    row[ram.ENEMIES_IN_TUBE] = 0
    row[ram.ENEMIES_ON_RIM] = 0
    row[ram.PULSE_PHASE] = 0xFF
    row[ram.SPIKE_WARNING] = 0
    row[ram.BONUS_FLASH] = 0xFF
    row[ram.SPINNER] = 0
    row[ram.DROPPING] = 0


@kernel
def fill_level(row: Row) -> None:
    """A level's nymphs, spikes and superzapper, from its parameters."""
    row[ram.NYMPHS_LEFT] = row[ram.START_NYMPHS]
    for lane in range(ram.LANE_COUNT):
        row[ram.SPIKE + lane] = row[ram.START_SPIKE]
    row[ram.ZAP_USES] = 0
    row[ram.ZAP_TIMER] = 0


@kernel
def new_life(row: Row) -> None:
    """State NEW_LIFE: the player on the rim, the tube empty, those who are left waiting again."""
    row[ram.LEVEL_INDEX] = row[ram.P1_LEVEL]
    row[ram.PLAYER_LANE] = 0x0E
    row[ram.PLAYER_POSITION] = 0xF0
    row[ram.PLAYER_EDGE] = 0x0F
    row[ram.PLAYER_DEPTH] = ram.RIM
    set_parameters(row)
    clear_objects(row)
    scatter_nymphs(row)
    load_tube(row)
    row[ram.CAMERA_HIGH] = 0xFF
    row[ram.CAMERA_LOW] = row[ram.CAMERA_REST]
    row[ram.GAME_STATE] = ram.NEW_LIFE_PAUSE


@kernel
def finish_level(row: Row) -> None:
    """State LEVEL_DONE: pay the start bonus, set up the next level behind the horizon."""
    if row[ram.P1_LEVEL] < levels.LAST_LEVEL - 1:
        row[ram.P1_LEVEL] += 1
    row[ram.LEVEL_INDEX] = row[ram.P1_LEVEL]
    bonus = _BONUSES[row[ram.START_CHOICE]]
    if bonus != 0 and row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        ram.add_to_word(row, ram.START_BONUS, bonus)
        add_points(row, bonus)
    set_parameters(row)
    clear_objects(row)
    fill_level(row)
    scatter_nymphs(row)
    load_tube(row)
    row[ram.CAMERA_HIGH] = 0xFA
    row[ram.CAMERA_LOW] = 0x00
    row[ram.GAME_STATE] = ram.ZOOM_IN


@kernel
def zoom_in(row: Row) -> None:
    """State ZOOM_IN: the new tube comes near; the player may turn."""
    row[ram.PLAYER_DEPTH] = ram.RIM
    move_player(row)
    camera = (get(row, ram.CAMERA_HIGH) << 8 | get(row, ram.CAMERA_LOW)) + 0x18
    rest = 0xFF00 | get(row, ram.CAMERA_REST)
    if camera >= rest:
        camera = rest
        row[ram.START_CHOICE] = 0
        row[ram.GAME_STATE] = ram.PLAYING if row[ram.GAME_MODE] & ram.REAL_GAME != 0 else ram.GAME_OVER
    row[ram.CAMERA_HIGH] = camera >> 8
    row[ram.CAMERA_LOW] = camera & 0xFF


@kernel
def new_game(row: Row) -> None:
    """State NEW_GAME: open the level menu (attract mode passes through it at once)."""
    if row[ram.P1_LEVEL] >= levels.LAST_LEVEL - 1:
        random_byte(row)  # the tube drawn behind the menu
    row[ram.LIVES] = row[ram.INITIAL_LIVES]
    row[ram.P1_LEVEL] = 0xFF
    row[ram.START_CHOICE] = 0
    least = 4
    if row[ram.DIFFICULTY] & 4 != 0:
        best = ram.bcd_score(row, ram.BEST_SCORES + 3 * (ram.BEST_SCORE_COUNT - 1))
        for limit in range(300_000, 700_001, 200_000):
            if best >= limit:
                least += 1
    if row[ram.FREE_PLAY] != 0 and row[ram.DEMO] != 0:
        least = len(_LEVELS) - 1
    choice = len(_LEVELS) - 1
    while choice > least and _LEVELS[choice] - 1 > get(row, ram.BEST_LEVEL):
        choice -= 1
    row[ram.MAX_CHOICE] = choice
    if row[ram.GAME_MODE] & ram.REAL_GAME != 0:
        row[ram.BEST_LEVEL] = 0
        for i in range(3):
            row[ram.SCORE_LOW + i] = 0
        ram.put_word(row, ram.SCORE, np.uint64(0))
        ram.put_word(row, ram.START_BONUS, np.uint64(0))
        ram.put_word(row, ram.FRAMES, np.uint64(0))
        for cause in range(ram.DEATH_KINDS):
            ram.put_word(row, ram.DEATHS + 8 * cause, np.uint64(0))
    row[ram.PLAYER_LANE] = 0
    row[ram.PLAYER_POSITION] = 0
    row[ram.COUNTDOWN] = 0x10
    row[ram.ENTRY_TIMER] = 20
    row[ram.OPEN] = 0xFF
    row[ram.LEVEL_INDEX] = 0
    row[ram.GAME_STATE] = ram.LEVEL_SELECT
    select_level(row)


@kernel
def choose_level(row: Row, index: int, choice: int) -> None:
    """The start level is decided."""
    row[ram.START_CHOICE] = choice
    row[ram.P1_LEVEL] = index
    row[ram.LEVEL_INDEX] = index
    set_parameters(row)
    fill_level(row)
    row[ram.BUTTONS_NEW] = 0
    row[ram.GAME_STATE] = ram.NEW_LIFE


@kernel
def select_level(row: Row) -> None:
    """State LEVEL_SELECT: the spinner moves the cursor, a button or the clock decides."""
    if row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        row[ram.LIVES] = 1
        choose_level(row, random_byte(row) & 7, 0)
        return
    row[ram.BUTTONS_NEW] &= 0xFF ^ ram.UNCONSUMED
    expired = False
    if row[ram.ENTRY_TIMER] == 0:
        row[ram.ENTRY_TIMER] = 20
        count = get(row, ram.COUNTDOWN)
        expired = count == 0
        row[ram.COUNTDOWN] = 0x99 if expired else (count - 1 if count & 15 != 0 else count - 7)  # BCD
    else:
        row[ram.ENTRY_TIMER] -= 1
    delta = get(row, ram.SPINNER)
    row[ram.SPINNER] = 0
    position = get(row, ram.PLAYER_POSITION) + (8 * delta & 0xFF)
    row[ram.PLAYER_POSITION] = position & 0xFF
    cursor = get(row, ram.PLAYER_LANE)
    if position > 0xFF:
        cursor += 1
    if delta >= 0x80:
        cursor -= 1
    cursor = max(0, min(get(row, ram.MAX_CHOICE), cursor))
    row[ram.PLAYER_LANE] = cursor
    pressed = get(row, ram.BUTTONS_NEW)
    chosen = pressed & (ram.FIRE_BUTTON | ram.ZAP_BUTTON) != 0
    if expired or chosen or pressed & ram.START_BUTTON != 0 and row[ram.COUNTDOWN] < 0x08:
        choose_level(row, _LEVELS[cursor] - 1, cursor)


# --- game over and high scores -------------------------------------------------------------------------------------


@kernel
def end_game(row: Row) -> None:
    """State GAME_OVER: note how far the player came."""
    if row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        row[ram.GAME_STATE] = ram.HIGH_SCORE_TABLE
        return
    row[ram.BEST_LEVEL] = max(0, get(row, ram.P1_LEVEL) - 1)
    row[ram.GAME_STATE] = ram.HIGH_SCORE_CHECK


@kernel
def lose_life(row: Row) -> None:
    """State LIFE_LOST: the next life, or the end."""
    row[ram.LIVES] -= 1
    if row[ram.LIVES] == 0:
        end_game(row)
        return
    row[ram.COUNTDOWN] = 0
    row[ram.NEXT_STATE] = ram.NEW_LIFE
    row[ram.GAME_STATE] = ram.DELAY


@kernel
def check_high_score(row: Row) -> None:
    """State HIGH_SCORE_CHECK: insert the score below its equals, if it is above the eighth."""
    row[ram.GAME_MODE] &= 0xFF ^ ram.IN_PROGRESS
    mine = ram.bcd_score(row, ram.SCORE_LOW)
    place = -1
    for i in range(ram.BEST_SCORE_COUNT):
        if mine > ram.bcd_score(row, ram.BEST_SCORES + 3 * i):
            place = i
    if place < 0:
        row[ram.GAME_STATE] = ram.HIGH_SCORE_TABLE
        return
    for i in range(place):
        for k in range(3):
            row[ram.BEST_SCORES + 3 * i + k] = row[ram.BEST_SCORES + 3 * (i + 1) + k]
            row[ram.INITIALS + 3 * i + k] = row[ram.INITIALS + 3 * (i + 1) + k]
    for k in range(3):
        row[ram.BEST_SCORES + 3 * place + k] = row[ram.SCORE_LOW + k]
        row[ram.INITIALS + 3 * place + k] = 0
    row[ram.ENTRY_RANK] = ram.BEST_SCORE_COUNT - place
    row[ram.BOOM_TIMER] = 32
    for i in range(ram.PARTICLE_COUNT):
        row[ram.PARTICLES + i] = 0
    row[ram.GAME_STATE] = ram.HIGH_SCORE_BOOM


@kernel
def move_particle(row: Row, i: int) -> None:
    """A spark of the high-score explosion: three axes, each slowing down; it dies at rest or at the border."""
    moving = False
    outside = False
    for axis in range(3):
        at = ram.PARTICLES + 2 * axis * ram.PARTICLE_STRIDE + i
        fast = at + 6 * ram.PARTICLE_STRIDE
        velocity = get(row, fast) << 8 | get(row, fast + ram.PARTICLE_STRIDE)
        place = (get(row, at) << 8 | get(row, at + ram.PARTICLE_STRIDE)) + velocity & 0xFFFF
        row[at] = place >> 8
        row[at + ram.PARTICLE_STRIDE] = place & 0xFF
        if place >> 8 < 0x10 or place >> 8 > 0xEF:
            outside = True
        if velocity >= 0x8000:
            velocity -= 0x10000
        velocity = max(0, velocity - 32) if velocity > 0 else min(0, velocity + 32)
        row[fast] = velocity >> 8 & 0xFF
        row[fast + ram.PARTICLE_STRIDE] = velocity & 0xFF
        if velocity != 0:
            moving = True
    if outside or not moving:
        row[ram.PARTICLES + i] = 0


@kernel
def explode_high_score(row: Row) -> None:
    """State HIGH_SCORE_BOOM: fireworks of fixed rules and random length."""
    if row[ram.BOOM_TIMER] != 0:
        for i in range(ram.PARTICLE_COUNT - 1, -1, -1):
            if row[ram.PARTICLES + i] != 0:
                continue
            for axis in range(3):
                at = ram.PARTICLES + 2 * axis * ram.PARTICLE_STRIDE + i
                row[at] = 0x80
                row[at + ram.PARTICLE_STRIDE] = 0
                row[at + 7 * ram.PARTICLE_STRIDE] = random_byte(row)
                row[at + 6 * ram.PARTICLE_STRIDE] = ((random_byte(row) & 15) - 8) & 0xFF
        if row[ram.TICK] & 1 == 0:
            row[ram.BOOM_TIMER] -= 1
    alive = False
    for i in range(ram.PARTICLE_COUNT):
        if row[ram.PARTICLES + i] != 0:
            move_particle(row, i)
            alive = alive or row[ram.PARTICLES + i] != 0
    if row[ram.BOOM_TIMER] == 0 and not alive:
        row[ram.LETTERS_LEFT] = 3
        row[ram.ENTRY_TIMER] = 96
        row[ram.ENTRY_LETTER] = 0
        row[ram.ENTRY_FRACTION] = 0
        row[ram.PLAYER_POSITION] = 0
        row[ram.GAME_STATE] = ram.ENTER_INITIALS


@kernel
def enter_initials(row: Row) -> None:
    """State ENTER_INITIALS: the spinner turns the letter, a button takes it; three letters or the clock end it."""
    delta = get(row, ram.SPINNER)
    row[ram.SPINNER] = 0
    position = get(row, ram.ENTRY_FRACTION) + (8 * delta & 0xFF)
    row[ram.ENTRY_FRACTION] = position & 0xFF
    letter = get(row, ram.ENTRY_LETTER) + (1 if position > 0xFF else 0) - (1 if delta >= 0x80 else 0)
    row[ram.ENTRY_LETTER] = letter % 27
    place = ram.BEST_SCORE_COUNT - get(row, ram.ENTRY_RANK)
    row[ram.INITIALS + 3 * place + 3 - get(row, ram.LETTERS_LEFT)] = row[ram.ENTRY_LETTER]
    if row[ram.BUTTONS_NEW] & (ram.FIRE_BUTTON | ram.ZAP_BUTTON) != 0:
        row[ram.LETTERS_LEFT] -= 1
        row[ram.ENTRY_LETTER] = 0
    if row[ram.TICK] & 31 == 0:
        row[ram.ENTRY_TIMER] -= 1
    if row[ram.LETTERS_LEFT] == 0 or row[ram.ENTRY_TIMER] == 0:
        row[ram.GAME_STATE] = ram.HIGH_SCORE_TABLE


@kernel
def delay(row: Row) -> None:
    """State DELAY: count down to the next state; the player may turn."""
    if row[ram.TICK] & row[ram.DELAY_MASK] == 0:
        if row[ram.COUNTDOWN] != 0:
            row[ram.COUNTDOWN] -= 1
        if row[ram.COUNTDOWN] == 0:
            row[ram.GAME_STATE] = row[ram.NEXT_STATE]
            row[ram.DELAY_MASK] = 0
    move_player(row)


@kernel
def wait_for(row: Row, ticks: int, then: int) -> None:
    """Enter the delay state."""
    row[ram.COUNTDOWN] = ticks
    row[ram.NEXT_STATE] = then
    row[ram.GAME_STATE] = ram.DELAY


@kernel
def run_other_state(row: Row, state: int) -> None:
    """Every state but the two in which the player has control."""
    if state == ram.DELAY:
        delay(row)
    elif state == ram.ZOOM_IN:
        zoom_in(row)
    elif state == ram.LEVEL_DONE:
        finish_level(row)
    elif state == ram.LIFE_LOST:
        lose_life(row)
    elif state == ram.NEW_LIFE:
        new_life(row)
    elif state == ram.NEW_LIFE_PAUSE:
        wait_for(row, 20, ram.PLAYING)
    elif state == ram.LEVEL_SELECT:
        select_level(row)
    elif state == ram.NEW_GAME:
        new_game(row)
    elif state == ram.GAME_OVER:
        end_game(row)
    elif state == ram.HIGH_SCORE_CHECK:
        check_high_score(row)
    elif state == ram.HIGH_SCORE_BOOM:
        explode_high_score(row)
    elif state == ram.ENTER_INITIALS:
        enter_initials(row)
    elif state == ram.HIGH_SCORE_TABLE:
        row[ram.GAME_MODE] &= 0xFF ^ (ram.REAL_GAME | ram.IN_PROGRESS)
        row[ram.DELAY_MASK] = 1
        wait_for(row, 160, ram.LOGO)
    elif state == ram.LOGO:
        wait_for(row, 223, ram.NEW_GAME)


@kernel
def accept_start(row: Row) -> None:
    """Between games: a start button takes a credit and begins one; a turned spinner asks for it."""
    if row[ram.CREDITS] == 0:
        return
    if row[ram.BUTTONS_NEW] & ram.START_BUTTON != 0:
        row[ram.CREDITS] -= 1
        row[ram.BUTTONS_NEW] = 0
        row[ram.GAME_MODE] |= ram.REAL_GAME | ram.IN_PROGRESS
        row[ram.GAME_STATE] = ram.NEW_GAME
    elif row[ram.SPINNER] != 0 and row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        row[ram.SPINNER] = 0
        wait_for(row, 32, ram.HIGH_SCORE_TABLE)


@kernel
def tick(row: Row) -> None:
    """One pass of the main loop, with the controls that `press` has put into the row."""
    row[ram.BUTTONS_NEW] |= ram.UNCONSUMED
    state = get(row, ram.GAME_STATE)
    if state == ram.PLAYING:
        play(row)
    elif state == ram.ZOOM:
        zoom(row)
    else:
        run_other_state(row, state)
    if row[ram.GAME_MODE] & ram.IN_PROGRESS == 0:
        accept_start(row)
    if row[ram.FREE_PLAY] != 0:
        row[ram.CREDITS] = 2
    row[ram.TICK] += 1
    if row[ram.BUTTONS_NEW] & ram.UNCONSUMED != 0:
        row[ram.BUTTONS_NEW] = 0


@kernel
def press(row: Row, fire_down: bool, zap_down: bool, start_down: bool, spinner: int) -> None:
    """Apply the controls of the coming tick. Nine samples lie between ticks, so the debounce always follows."""
    bits = ram.FIRE_BUTTON * fire_down | ram.ZAP_BUTTON * zap_down | ram.START_BUTTON * start_down
    old = get(row, ram.BUTTONS)
    row[ram.SPINNER] = spinner & 0xFF
    row[ram.BUTTONS_PREVIOUS] = old
    row[ram.BUTTONS_RAW] = bits
    row[ram.BUTTONS] = bits
    row[ram.BUTTONS_NEW] |= bits & ~old


@kernel
def remember(row: Row) -> None:
    """Keep what observations and rewards compare with: the machine as it stands before a tick."""
    for slot in range(ram.ENEMY_COUNT):
        row[ram.PREVIOUS_TYPE + slot] = row[ram.ENEMY_TYPE + slot]
        row[ram.PREVIOUS_LANE + slot] = row[ram.ENEMY_LANE + slot]
        row[ram.PREVIOUS_DEPTH + slot] = row[ram.ENEMY_DEPTH + slot]
    row[ram.PREVIOUS_PLAYER_LANE] = row[ram.PLAYER_LANE]
    row[ram.PREVIOUS_PLAYER_EDGE] = row[ram.PLAYER_EDGE]
    for i in range(3):
        row[ram.PREVIOUS_SCORE + i] = row[ram.SCORE_LOW + i]
    row[ram.PREVIOUS_KNOWN] = 1


# --- many games ----------------------------------------------------------------------------------------------------


@kernel
def step_game(row: Row, fire_down: bool, zap_down: bool, start_down: bool, spinner: int) -> None:
    """One tick with these controls, counted as a frame if the player has control in it."""
    remember(row)
    if ram.in_control(row):
        ram.add_to_word(row, ram.FRAMES, 1)
    press(row, fire_down, zap_down, start_down, spinner)
    tick(row)


@kernel
def is_over(row: Row) -> bool:
    """The real game has ended and its score stands."""
    return row[ram.GAME_STATE] == ram.HIGH_SCORE_CHECK


@kernel
def skip_to_control(row: Row) -> None:
    """Ticks with neutral controls until the player has control again, or the game is over."""
    while not ram.in_control(row) and not is_over(row):
        step_game(row, False, False, False, 0)


@kernel
def step_games(rows: Rows, first: int, last: int, commands: np.ndarray, fast_forward: bool) -> None:
    """Games first..last-1: one tick each with commands (games, 3: fire, zap, spinner); games that are over stand still."""
    for g in range(first, last):
        row = rows[g]
        if is_over(row):
            continue
        step_game(row, commands[g, 0] != 0, commands[g, 1] != 0, False, np.int64(commands[g, 2]))
        if fast_forward:
            skip_to_control(row)


@dataclass(frozen=True)
class Cabinet:
    """The option switches of the machine; the defaults are the factory's."""

    lives: int = 3  # lives per game, 2 to 5
    bonus: int = 2  # an extra life every so many ten thousand points, 0 = never, 7 at most
    difficulty: str = "medium"  # easy, medium or hard
    rated: bool = False  # higher start levels are offered after high scores
    free_play: bool = False  # credits are never spent
    demo: bool = False  # with free play: all start levels offered, and start skips a level

    def __post_init__(self) -> None:
        if not 2 <= self.lives <= 5:
            raise ProtegeError(f"lives must be 2 to 5, the cabinet's switch positions; got {self.lives}")
        if not 0 <= self.bonus <= 7:
            raise ProtegeError(f"bonus must be 0 (never) to 7 (every 70,000 points); got {self.bonus}")
        if self.difficulty not in levels.DIFFICULTIES:
            raise ProtegeError(f"difficulty must be one of {', '.join(levels.DIFFICULTIES)}; got {self.difficulty!r}")


def power_on(cabinet: Cabinet = Cabinet(), seed: int = 0) -> Row:
    """A machine just switched on, in attract mode."""
    row = np.zeros(ram.ROW_BYTES, np.uint8)
    row[ram.BONUS_INTERVAL] = cabinet.bonus
    row[ram.INITIAL_LIVES] = cabinet.lives
    row[ram.DIFFICULTY] = levels.DIFFICULTIES[cabinet.difficulty] | 4 * cabinet.rated
    row[ram.FREE_PLAY] = cabinet.free_play
    row[ram.DEMO] = cabinet.demo
    row[ram.BEST_SCORES : ram.BEST_SCORES + 3 * ram.BEST_SCORE_COUNT] = 0x01
    row[ram.GAME_STATE] = ram.NEW_GAME
    reseed(row, seed)
    return row


def reseed(row: Row, seed: int, player_seed: int | None = None) -> None:
    """Set the random streams of a game and of its player."""
    row[ram.GAME_STREAM : ram.GAME_STREAM + 8] = np.frombuffer(int(seed).to_bytes(8, "little"), np.uint8)
    own = seed ^ 0x5DEECE66D if player_seed is None else player_seed
    row[ram.PLAYER_STREAM : ram.PLAYER_STREAM + 8] = np.frombuffer(int(own).to_bytes(8, "little"), np.uint8)


@kernel
def enter_level(row: Row, index: int, choice: int) -> None:
    """Drop a machine that was just switched on into the first playing tick of a level."""
    row[ram.GAME_MODE] = ram.REAL_GAME | ram.IN_PROGRESS
    row[ram.LIVES] = row[ram.INITIAL_LIVES]
    row[ram.START_CHOICE] = choice
    row[ram.P1_LEVEL] = index
    row[ram.LEVEL_INDEX] = index
    row[ram.PLAYER_LANE] = 0x0E
    row[ram.PLAYER_POSITION] = 0xF0
    row[ram.PLAYER_EDGE] = 0x0F
    row[ram.PLAYER_DEPTH] = ram.RIM
    set_parameters(row)
    clear_objects(row)
    fill_level(row)
    scatter_nymphs(row)
    load_tube(row)
    row[ram.CAMERA_HIGH] = 0xFF
    row[ram.CAMERA_LOW] = row[ram.CAMERA_REST]
    move_player(row)
    row[ram.GAME_STATE] = ram.PLAYING


def start_choice_of(level: int) -> int:
    """The menu entry whose level this is, or 0 (no bonus) if the menu does not offer it."""
    found = np.flatnonzero(levels.START_LEVELS == level)
    return int(found[0]) if len(found) else 0


def start_game(level: int = 1, cabinet: Cabinet = Cabinet(), seed: int = 0) -> Row:
    """A game in its first playing tick, as if the level had been chosen at the start screen."""
    if not 1 <= level <= levels.LAST_LEVEL:
        raise ProtegeError(f"level must be 1 to {levels.LAST_LEVEL}; got {level}")
    row = power_on(cabinet, seed)
    enter_level(row, level - 1, start_choice_of(level))
    return row
