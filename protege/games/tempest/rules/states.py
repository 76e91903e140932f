"""The states around play: setting up lives, levels and games, menus, delays, game over and high scores."""

from protege.games.tempest.rules import levels, ram
from protege.games.tempest.rules.nymphs import scatter_nymphs
from protege.games.tempest.rules.player import add_points, clear_shots, move_player
from protege.games.tempest.rules.ram import Row, get, random_byte
from protege.kernels import kernel

# Tables of levels.py under names that compiled code takes as constants.
_LEVELS, _BONUSES = levels.START_LEVELS, levels.START_BONUSES
_ADDRESSES, _BYTES = levels.LEVEL_ADDRESSES, levels.LEVEL_BYTES
_TUBE_NUMBER, _TUBE_OPEN = levels.TUBE_NUMBER, levels.TUBE_OPEN
_TUBE_REST, _TUBE_POINTS = levels.TUBE_REST, levels.TUBE_POINTS


@kernel
def wait_for(row: Row, ticks: int, then: int) -> None:
    row[ram.COUNTDOWN], row[ram.NEXT_STATE], row[ram.GAME_STATE] = ticks, then, ram.DELAY


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
    ram.clear(row, ram.ENEMY_DEPTH, ram.ENEMY_COUNT)
    ram.clear(row, ram.BLAST_DEPTH, ram.BLAST_COUNT)
    ram.clear(row, ram.TYPE_COUNT, ram.TYPE_KINDS)
    row[ram.EXPLOSIONS] = row[ram.ENEMIES_IN_TUBE] = row[ram.ENEMIES_ON_RIM] = 0
    row[ram.SPIKE_WARNING] = row[ram.SPINNER] = row[ram.DROPPING] = 0
    row[ram.PULSE_PHASE] = row[ram.BONUS_FLASH] = 0xFF


@kernel
def fill_level(row: Row) -> None:
    """A level's nymphs, spikes and superzapper, from its parameters."""
    row[ram.NYMPHS_LEFT] = row[ram.START_NYMPHS]
    for lane in range(ram.LANE_COUNT):
        row[ram.SPIKE + lane] = row[ram.START_SPIKE]
    row[ram.ZAP_USES] = row[ram.ZAP_TIMER] = 0


@kernel
def set_up(row: Row, new_level: bool) -> None:
    """Everything in the tube for a life or, with fresh nymphs and spikes, for a level; in the order of the draws."""
    set_parameters(row)
    clear_objects(row)
    if new_level:
        fill_level(row)
    scatter_nymphs(row)
    load_tube(row)


@kernel
def enter_tube(row: Row, new_level: bool) -> None:
    """The player on the rim, the camera at rest."""
    row[ram.PLAYER_LANE], row[ram.PLAYER_EDGE], row[ram.PLAYER_POSITION] = 0x0E, 0x0F, 0xF0
    row[ram.PLAYER_DEPTH] = ram.RIM
    set_up(row, new_level)
    ram.put_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW, 0xFF00 | get(row, ram.CAMERA_REST))


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
    set_up(row, True)
    ram.put_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW, 0xFA00)
    row[ram.GAME_STATE] = ram.ZOOM_IN


@kernel
def zoom_in(row: Row) -> None:
    """State ZOOM_IN: the new tube comes near; the player may turn."""
    row[ram.PLAYER_DEPTH] = ram.RIM
    move_player(row)
    camera = ram.get_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW) + 0x18
    rest = 0xFF00 | get(row, ram.CAMERA_REST)
    if camera >= rest:
        camera = rest
        row[ram.START_CHOICE] = 0
        row[ram.GAME_STATE] = ram.PLAYING if row[ram.GAME_MODE] & ram.REAL_GAME != 0 else ram.GAME_OVER
    ram.put_pair(row, ram.CAMERA_HIGH, ram.CAMERA_LOW, camera)


@kernel
def choose_level(row: Row, index: int, choice: int) -> None:
    row[ram.START_CHOICE] = choice
    row[ram.P1_LEVEL] = row[ram.LEVEL_INDEX] = index
    set_parameters(row)
    fill_level(row)
    row[ram.BUTTONS_NEW] = 0
    row[ram.GAME_STATE] = ram.NEW_LIFE


@kernel
def turned(row: Row, fraction: int) -> int:
    """By how many entries of a menu the spinner has moved, the rest being kept at `fraction`: -1, 0 or 1."""
    delta = get(row, ram.SPINNER)
    row[ram.SPINNER] = 0
    position = get(row, fraction) + (8 * delta & 0xFF)
    row[fraction] = position & 0xFF
    return (1 if position > 0xFF else 0) - (1 if delta >= 0x80 else 0)


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
    cursor = get(row, ram.PLAYER_LANE) + turned(row, ram.PLAYER_POSITION)
    cursor = max(0, min(get(row, ram.MAX_CHOICE), cursor))
    row[ram.PLAYER_LANE] = cursor
    pressed = get(row, ram.BUTTONS_NEW)
    chosen = pressed & (ram.FIRE_BUTTON | ram.ZAP_BUTTON) != 0
    if expired or chosen or pressed & ram.START_BUTTON != 0 and row[ram.COUNTDOWN] < 0x08:
        choose_level(row, _LEVELS[cursor] - 1, cursor)


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
        ram.clear(row, ram.SCORE_LOW, 3)
        ram.clear(row, ram.SCORE, ram.DEATHS + 8 * ram.DEATH_KINDS - ram.SCORE)  # with start bonus, frames and deaths
    row[ram.PLAYER_LANE] = row[ram.PLAYER_POSITION] = row[ram.LEVEL_INDEX] = 0
    row[ram.COUNTDOWN], row[ram.ENTRY_TIMER], row[ram.OPEN] = 0x10, 20, 0xFF
    row[ram.GAME_STATE] = ram.LEVEL_SELECT
    select_level(row)


@kernel
def end_game(row: Row) -> None:
    """State GAME_OVER: note how far the player came."""
    if row[ram.GAME_MODE] & ram.REAL_GAME == 0:
        row[ram.GAME_STATE] = ram.HIGH_SCORE_TABLE
        return
    row[ram.BEST_LEVEL] = max(0, get(row, ram.P1_LEVEL) - 1)
    row[ram.GAME_STATE] = ram.HIGH_SCORE_CHECK


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
    ram.clear(row, ram.PARTICLES, ram.PARTICLE_COUNT)
    row[ram.GAME_STATE] = ram.HIGH_SCORE_BOOM


@kernel
def move_particle(row: Row, i: int) -> None:
    """A spark of the high-score explosion: three axes, each slowing down; it dies at rest or at the border."""
    moving = outside = False
    for axis in range(3):
        at = ram.PARTICLES + 2 * axis * ram.PARTICLE_STRIDE + i
        fast = at + 6 * ram.PARTICLE_STRIDE
        velocity = ram.get_pair(row, fast, fast + ram.PARTICLE_STRIDE)
        ram.put_pair(row, at, at + ram.PARTICLE_STRIDE, ram.get_pair(row, at, at + ram.PARTICLE_STRIDE) + velocity)
        outside = outside or not 0x10 <= get(row, at) <= 0xEF
        if velocity >= 0x8000:
            velocity -= 0x10000
        velocity = max(0, velocity - 32) if velocity > 0 else min(0, velocity + 32)
        ram.put_pair(row, fast, fast + ram.PARTICLE_STRIDE, velocity)
        moving = moving or velocity != 0
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
        row[ram.LETTERS_LEFT], row[ram.ENTRY_TIMER] = 3, 96
        row[ram.ENTRY_LETTER] = row[ram.ENTRY_FRACTION] = row[ram.PLAYER_POSITION] = 0
        row[ram.GAME_STATE] = ram.ENTER_INITIALS


@kernel
def enter_initials(row: Row) -> None:
    """State ENTER_INITIALS: the spinner turns the letter, a button takes it; three letters or the clock end it."""
    row[ram.ENTRY_LETTER] = (get(row, ram.ENTRY_LETTER) + turned(row, ram.ENTRY_FRACTION)) % 27
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
def run_other_state(row: Row, state: int) -> None:
    """Every state but the two in which the player has control."""
    if state == ram.DELAY:
        delay(row)
    elif state == ram.ZOOM_IN:
        zoom_in(row)
    elif state == ram.LEVEL_DONE:
        finish_level(row)
    elif state == ram.LIFE_LOST:
        row[ram.LIVES] -= 1
        if row[ram.LIVES] == 0:
            end_game(row)
        else:
            wait_for(row, 0, ram.NEW_LIFE)
    elif state == ram.NEW_LIFE:
        row[ram.LEVEL_INDEX] = row[ram.P1_LEVEL]
        enter_tube(row, False)
        row[ram.GAME_STATE] = ram.NEW_LIFE_PAUSE
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
