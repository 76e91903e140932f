"""The rules of Tempest: many games at once, each one a row of memory (see ram.py).

`tick` is one pass of the machine's main loop over one row; the modules it calls hold its parts, in the machine's order.
Rows in, rows out: a game's future depends on its row and its controls alone. A frame is a tick in which the player has
control.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.rules import levels, ram
from protege.games.tempest.rules.enemies import enemies_fire, move_enemies, move_enemy_shots
from protege.games.tempest.rules.motion import kill_player
from protege.games.tempest.rules.nymphs import move_nymphs
from protege.games.tempest.rules.player import check_shots, clear_shots, fire, move_player, move_player_shots, superzap
from protege.games.tempest.rules.ram import Row, Rows, get
from protege.games.tempest.rules.states import accept_start, enter_tube, run_other_state, wait_for
from protege.kernels import kernel

Commands = npt.NDArray[np.int8]  # (games, 3): fire, zap, spinner

_BLAST_LIMIT: Final = np.array([16, 21, 32, 32, 32, 16], np.int64)


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
        ram.put_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW, ram.get_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW) - 0x20)
        fallen = row[ram.CAMERA_HIGH] == 0xFA
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
    ram.put_pair(row, ram.DROP_SPEED_HIGH, ram.DROP_SPEED_LOW, 0x0200)
    row[ram.PLAYER_DEPTH_FRACTION] = row[ram.CAMERA_FRACTION] = 0
    row[ram.ZAP_TIMER] = 0xFF
    spikes = 0
    for lane in range(ram.LANE_COUNT):
        if row[ram.SPIKE + lane] != 0:
            spikes += 1
    row[ram.SPIKE_WARNING] = spikes
    row[ram.GAME_STATE] = ram.ZOOM
    if spikes != 0 and row[ram.LEVEL_INDEX] < 7:
        row[ram.SPIKE_WARNING] = 0x80
        wait_for(row, 30, ram.ZOOM)


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
    speed = ram.get_pair(row, ram.DROP_SPEED_HIGH, ram.DROP_SPEED_LOW)
    depth = ram.get_pair(row, ram.PLAYER_DEPTH, ram.PLAYER_DEPTH_FRACTION) + speed
    row[ram.PLAYER_DEPTH_FRACTION] = depth & 0xFF
    depth >>= 8
    camera = (ram.get_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW) << 8 | get(row, ram.CAMERA_FRACTION)) + speed
    ram.put_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW, camera >> 8)
    row[ram.CAMERA_FRACTION] = camera & 0xFF
    speed += 0x20 + min(4 * get(row, ram.LEVEL_INDEX) & 0xFF, 0x30)
    ram.put_pair(row, ram.DROP_SPEED_HIGH, ram.DROP_SPEED_LOW, speed)
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
    row[ram.SPINNER] = spinner & 0xFF  # as a byte: two's complement
    row[ram.BUTTONS_PREVIOUS] = old
    row[ram.BUTTONS_RAW] = row[ram.BUTTONS] = bits
    row[ram.BUTTONS_NEW] |= bits & ~old


@kernel
def remember(row: Row) -> None:
    """Keep what observations and rewards compare with: the machine as it stands before a tick."""
    # Eight bytes at once: each copy carries one byte too many, which the next one sets right.
    ram.put_word(row, ram.PREVIOUS_TYPE, ram.get_word(row, ram.ENEMY_TYPE))
    ram.put_word(row, ram.PREVIOUS_LANE, ram.get_word(row, ram.ENEMY_LANE))
    ram.put_word(row, ram.PREVIOUS_DEPTH, ram.get_word(row, ram.ENEMY_DEPTH))
    row[ram.PREVIOUS_PLAYER_LANE], row[ram.PREVIOUS_PLAYER_EDGE] = row[ram.PLAYER_LANE], row[ram.PLAYER_EDGE]
    for i in range(3):
        row[ram.PREVIOUS_SCORE + i] = row[ram.SCORE_LOW + i]
    row[ram.PREVIOUS_KNOWN] = 1


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
def play_games(rows: Rows, commands: Commands, fast_forward: bool) -> None:
    """Commands (ticks, games, 3) that are known beforehand, game by game: each stays in the nearest cache meanwhile.

    With `fast_forward` a command is for a frame, and the ticks up to the next one pass. Finished games stand still.
    """
    for g in range(len(rows)):
        row = rows[g]
        for t in range(0 if is_over(row) else len(commands)):
            fire_down, zap_down = commands[t, g, 0] != 0, commands[t, g, 1] != 0
            spinner: int = np.int64(commands[t, g, 2])  # type: ignore[assignment]
            while True:  # one call for both kinds of tick: the compiler keeps one copy of the rules
                step_game(row, fire_down, zap_down, False, spinner)
                if not fast_forward or ram.in_control(row) or is_over(row):
                    break
                fire_down, zap_down, spinner = False, False, 0
            if is_over(row):
                break


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
        if not isinstance(self.lives, int) or not 2 <= self.lives <= 5:
            raise ProtegeError(f"lives must be 2 to 5, the cabinet's switch positions; got {self.lives}")
        if not isinstance(self.bonus, int) or not 0 <= self.bonus <= 7:
            raise ProtegeError(f"bonus must be 0 (never) to 7 (every 70,000 points); got {self.bonus}")
        if self.difficulty not in levels.DIFFICULTIES:
            raise ProtegeError(f"difficulty must be one of {', '.join(levels.DIFFICULTIES)}; got {self.difficulty!r}")


def reseed(row: Row, seed: int) -> None:
    ram.put_word(row, ram.GAME_STREAM, np.uint64(seed))
    ram.put_word(row, ram.PLAYER_STREAM, np.uint64(seed ^ 0x5DEECE66D))


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


@kernel
def enter_level(row: Row, index: int, choice: int) -> None:
    """Drop a machine that was just switched on into the first playing tick of a level."""
    row[ram.GAME_MODE] = ram.REAL_GAME | ram.IN_PROGRESS
    row[ram.LIVES] = row[ram.INITIAL_LIVES]
    row[ram.START_CHOICE] = choice
    row[ram.P1_LEVEL] = row[ram.LEVEL_INDEX] = index
    enter_tube(row, True)
    move_player(row)
    row[ram.GAME_STATE] = ram.PLAYING


def start_choice_of(level: int) -> int:
    """The menu entry whose level this is, or 0 (no bonus) if the menu does not offer it."""
    return int((levels.START_LEVELS == level).argmax())


def start_game(level: int = 1, cabinet: Cabinet = Cabinet(), seed: int = 0) -> Row:
    """A game in its first playing tick, as if the level had been chosen at the start screen."""
    if not 1 <= level <= levels.LAST_LEVEL:
        raise ProtegeError(f"level must be 1 to {levels.LAST_LEVEL}; got {level}")
    row = power_on(cabinet, seed)
    enter_level(row, level - 1, start_choice_of(level))
    return row
