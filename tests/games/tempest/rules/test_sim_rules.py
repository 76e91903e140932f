"""Rules beyond the fifty checks, each on the simulator and on the reference.

Numbers in the docstrings are sections of the game specification.
"""

import pytest

from tests.games.tempest.rules import reference as t
from tests.games.tempest.rules.simulated import (
    MACHINES,
    Game,
    Machine,
    active,
    fine_depth,
    finish_level,
    is_flipping,
    kind_of,
    listed,
    place,
    place_nymph,
    put_player,
    quiet,
    score,
    set_score,
    shoot_at,
    started,
    ticks_in,
)

pytestmark = pytest.mark.parametrize("machine", MACHINES)


# --- Level parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("difficulty", "expected"), [(0, 1.375), (1, 1.21875), (2, 1.53125), (3, 1.375)])
def test_difficulty_changes_the_flipper_speed(machine, difficulty, expected):
    """5.3."""
    game = quiet(machine)
    game.ram[t.DIFFICULTY], game.ram[t.GAMESTATE] = difficulty, 0x02  # a new life reads the parameters afresh
    game.tick()
    assert (0x10000 - game.ram[t.SPEED_HI] * 256 - game.ram[t.SPEED_LO]) / 256 == expected


def test_easy_and_hard_change_shots_nymphs_and_rim_speed(machine):
    """5.3."""
    easy, hard = started(machine, 1, difficulty=1), started(machine, 1, difficulty=2)
    assert (easy.ram[t.SHOT_SLOT_MAX], easy.ram[t.RIM_FLIP_STEPS], easy.ram[t.NYMPHS_LEFT]) == (0, 1, 10)
    assert (hard.ram[t.SHOT_SLOT_MAX], hard.ram[t.RIM_FLIP_STEPS], hard.ram[t.NYMPHS_LEFT]) == (2, 2, 11)
    assert hard.ram[t.PULSAR_FIRE] == 0x40
    assert started(machine, 98, difficulty=2).ram[t.NYMPHS_LEFT] == 68


# --- Nymphs and type choice -------------------------------------------------------------------------------------------


def test_a_nymph_waits_at_40_while_a_higher_slot_holds_its_lane(machine):
    """4.1."""
    game = quiet(machine)
    game.ram[t.TICK_COUNTER] = 1
    place_nymph(game, 8, 0x30, 4)
    place_nymph(game, 7, 0x40, 11)  # shares the bit of lane 4
    place_nymph(game, 6, 0x40, 5)
    game.tick()
    assert listed(game, t.NYMPH_TIMER + 6, 3) == [0x3F, 0x40, 0x2F]


def test_empty_nymph_slots_keep_what_lies_in_them(machine):
    """4.1: only waiting nymphs circle. The high-score explosion leaves bytes here that are no lanes."""
    game = started(machine, 1)
    stale = bytes(range(0x60, 0x60 + 54))
    game.ram[t.NYMPH_LANE + 10 : t.NYMPH_LANE + 64] = stale
    for _ in range(4):
        game.tick()
    assert bytes(game.ram[t.NYMPH_LANE + 10 : t.NYMPH_LANE + 64]) == stale


def test_a_negative_room_becomes_the_total(machine):
    """4.2 step 3."""
    game = quiet(machine, 5)
    place(game, 6, t.TANKER, 3, 0xE0, info=0x41)
    game.ram[t.TYPE_COUNT + t.FLIPPER] = 4  # maximum 5
    place_nymph(game, 0, 1, 3)
    game.tick()
    assert game.ram[t.TYPE_ROOM + t.FLIPPER] == 2  # 1 - 2 wraps to 255, then total = 7 - 5


def test_lane_15_of_an_open_tube_is_replaced_by_an_even_lane(machine):
    """4.2, 10.1."""
    game = quiet(machine, 17 + 10)
    place_nymph(game, 0, 1, 15)
    game.will_draw(0x5F)
    game.tick()
    assert kind_of(game, 6) == t.FUSEBALL  # below its minimum; the last of a level heads for the rim and draws nothing
    assert (game.ram[t.ENEMY_LANE + 6], game.drawn()) == (0x0E, 1)


def test_a_failed_cargo_choice_takes_one_byte(machine):
    """4.2, 10.1."""
    game = quiet(machine, 3)
    game.ram[t.TYPE_COUNT + t.FLIPPER] = game.ram[t.TYPE_MAX + t.FLIPPER]  # room for a tanker, none for its flippers
    place_nymph(game, 0, 1, 3)
    game.will_draw(0)
    game.tick()
    assert (active(game), game.ram[t.NYMPH_TIMER], game.drawn()) == ([], 1, 1)


# --- Movement ---------------------------------------------------------------------------------------------------------


def test_an_enemy_that_arrives_in_mid_flip_waits_at_11(machine):
    """4.4."""
    game = quiet(machine, 3)
    place(game, 6, t.FLIPPER, 4, 0x12, script=0x1B)
    game.tick()
    game.tick()
    assert (game.ram[t.ENEMY_DEPTH + 6], game.ram[t.ON_RIM]) == (0x11, 0)


def test_a_shot_in_lane_14_of_an_open_tube_also_kills_the_second_piece(machine):
    """7.1: the piece lands in the same lane, in a slot the shot has still to test."""
    game = quiet(machine, 11)
    put_player(game, 3)
    place(game, 6, t.TANKER, 14, 0x80, info=0x41)
    shoot_at(game, 14, 0x81)
    game.tick()
    assert (active(game), game.ram[t.ENEMY_LANE + 6], score(game)) == ([6], 13, 300)


def test_a_spiker_grows_its_spike_turns_and_moves_to_the_shortest_spike(machine):
    """4.9."""
    game = quiet(machine, 4)
    ram = game.ram
    ram[t.SPIKE : t.SPIKE + 16] = bytes([0x90] * 16)
    ram[t.SPIKE + 3] = ram[t.SPIKE + 12] = 0
    ram[t.SPIKE + 7] = 0x21
    place(game, 6, t.SPIKER, 7, 0x20, script=0x00)
    game.tick()
    assert (ram[t.SPIKE + 7], ram[t.ENEMY_DEPTH + 6], ram[t.ENEMY_INFO + 6]) == (0x1E, 0x20, t.MOVING_AWAY)
    ram[t.ENEMY_DEPTH + 6] = 0xEF
    game.will_draw(9)
    game.tick()
    assert game.drawn() == 1
    assert ram[t.ENEMY_LANE + 6] == 12  # starting at 9 and going down, 12 is visited after 3
    assert (ram[t.ENEMY_EDGE + 6], ram[t.ENEMY_DEPTH + 6], ram[t.ENEMY_INFO + 6]) == (13, 0xF0, 0)
    assert ram[t.TYPE_ROOM + t.SPIKER] == 0xFF


def test_the_last_spikers_turn_into_tankers(machine):
    """4.9."""
    game = quiet(machine, 4)
    game.ram[t.NYMPHS_LEFT] = 0
    place(game, 6, t.SPIKER, 7, 0xEF, script=0x05, info=t.MOVING_AWAY | t.MAY_SHOOT)
    game.tick()
    assert (game.ram[t.ENEMY_TYPE + 6], game.ram[t.ENEMY_INFO + 6]) == (t.TANKER, t.MAY_SHOOT | 1)
    assert game.ram[t.ENEMY_SCRIPT + 6] == 0x09
    assert game.ram[t.ENEMY_DEPTH + 6] == 0xEF  # one climb from $F0, with the fraction of the way down
    assert game.ram[t.TYPE_COUNT + t.SPIKER] == 1


def trace(game: Game, ticks: int) -> list[tuple[int, bool]]:
    """(resume point, moved along the tube) of the enemy in slot 6 after each tick."""
    rows = []
    for _ in range(ticks):
        before = fine_depth(game)
        game.tick()
        rows.append((game.ram[t.ENEMY_SCRIPT + 6], fine_depth(game) != before))
    return rows


def test_a_spiralling_flipper_climbs_twice_when_a_flip_ends(machine):
    """4.6, entry $19."""
    game = quiet(machine)
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x19)
    assert trace(game, 9) == [(0x1B, True), (0x1D, False), *[(0x1D, True)] * 6, (0x1B, True)]
    assert 0xE000 - fine_depth(game) == 9 * 0x160


def test_a_zigzagging_flipper_goes_two_lanes_out_and_three_back(machine):
    """4.6, entry $24."""
    game = quiet(machine)
    place(game, 6, t.FLIPPER, 8, 0xF0, script=0x24)
    lanes: list[int] = []
    for _ in range(1 + 5 * 8 + 1):
        game.tick()
        lane = game.ram[t.ENEMY_LANE + 6]
        if not is_flipping(game) and (not lanes or lanes[-1] != lane):
            lanes.append(lane)
    assert lanes == [8, 7, 6, 7, 8, 9]
    assert game.ram[t.ENEMY_SCRIPT + 6] == 0x26
    assert not game.ram[t.ENEMY_TYPE + 6] & t.INCREASING


def test_a_spike_rider_leaves_its_lane_at_the_tip(machine):
    """4.6, entry $53."""
    game = quiet(machine)
    game.ram[t.SPIKE + 5] = 0xDE
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x53)
    # $E0, $DE.A0, $DD.40: the second climb is past the tip ($DE is not below $DE).
    climbs = [(0x54, False), (0x5A, True), (0x5F, True), (0x5F, False)]
    assert trace(game, 9) == [*climbs, *[(0x5F, False)] * 4, (0x54, False)]


def test_an_evader_flips_away_and_climbs_four_ticks(machine):
    """4.6, entry $87."""
    game = quiet(machine)
    put_player(game, 8)
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x87)
    climbs = [(0x8B, False), *[(0x8B, True)] * 6, (0x93, True), *[(0x93, True)] * 3, (0x8B, True)]
    assert trace(game, 12) == climbs
    assert game.ram[t.ENEMY_LANE + 6] == 4


def test_a_fuseball_at_the_rim_kills_the_player_of_its_lane(machine):
    """4.6."""
    game = quiet(machine, 33)
    put_player(game, 5)
    place(game, 6, t.FUSEBALL, 5, 0x10, script=0x6B, counter=3)
    game.tick()
    assert game.ram[t.PLAYER_EDGE] == t.BLOWN_UP


@pytest.mark.parametrize(("in_flight", "byte", "fires"), [(2, 0xEF, False), (2, 0xF0, True), (3, 0xF9, False)])
def test_more_shots_in_flight_make_the_next_one_less_likely(machine, in_flight, byte, fires):
    """4.10."""
    game = quiet(machine, 5)
    place(game, 6, t.TANKER, 4, 0x80, info=t.MAY_SHOOT)
    game.ram[t.ESHOT_DEPTH : t.ESHOT_DEPTH + in_flight] = bytes([0xE0] * in_flight)
    game.ram[t.ESHOT_COUNT] = in_flight
    game.will_draw(byte)
    game.tick()
    assert game.ram[t.ESHOT_COUNT] == in_flight + fires


@pytest.mark.parametrize(("level", "ticks"), [(2, 45), (3, 43), (4, 42), (8, 37), (12, 34), (66, 45), (98, 33)])
def test_the_zoom_quickens_with_the_level(machine, level, ticks):
    """9."""
    game = quiet(machine, level)
    finish_level(game)
    assert ticks_in(game, 0x20) == ticks


# --- Score and menus --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "before", "choice", "lives"),
    [(0, 9999, 4, 3), (2, 0, 4, 4), (7, 10000, 4, 3), (7, 16000, 4, 4), (1, 4000, 1, 4), (1, 3999, 1, 3)],
)
def test_a_start_bonus_earns_a_life_by_the_interval(machine, interval, before, choice, lives):
    """8.3: choice 4 is worth 54,000 points, choice 1 is worth 6,000."""
    game = quiet(machine, bonus=interval)
    set_score(game, before)
    game.ram[t.START_CHOICE], game.ram[t.GAMESTATE] = choice, 0x0E
    game.tick()
    assert (score(game), game.ram[t.P1_LIVES]) == (before + (54000 if choice == 4 else 6000), lives)


def selecting(machine: Machine, **options: bool) -> Game:
    """Power on, wait a tick for the free credits, press start."""
    game = machine(5, free_play=True, **options)
    game.tick()
    game.tick(start=True)
    return game


def test_32_spinner_counts_move_the_cursor_by_one(machine):
    """2.6, section 11."""
    game = selecting(machine)
    cursors = []
    for spinner in (0, 31, 1, 32, 32, 32, 32, -1, -32, 64):
        game.tick(spinner=spinner)
        cursors.append(game.ram[t.PLAYER_LANE])
    # 64 counts are 512, which is 0 modulo 256: no movement at all.
    assert cursors == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]


def test_the_chosen_level_is_the_one_under_the_cursor(machine):
    """2.6, section 11."""
    game = selecting(machine, demo=True)
    game.tick()
    assert game.ram[t.MAX_CHOICE] == 27
    for _ in range(4 * 27 - 1):
        game.tick(spinner=8)
    game.tick(spinner=8, fire=True)
    assert (game.ram[t.GAMESTATE], game.ram[t.START_CHOICE], game.ram[t.P1_LEVEL]) == (0x02, 27, 80)
    assert game.ram[t.NYMPHS_LEFT] == 43


@pytest.mark.parametrize(
    ("best_score_high", "best_level", "expected"),
    [(0, 0, 4), (0x29, 0, 4), (0x30, 0, 5), (0x50, 0, 6), (0x70, 0, 7), (0x50, 97, 27), (0x50, 20, 9)],
)
def test_the_highest_choice_follows_the_best_level_and_the_rating(machine, best_score_high, best_level, expected):
    """Section 11."""
    game = machine(1, rating=True)
    game.ram[t.HIGH_SCORES + 23], game.ram[t.BEST_LEVEL] = best_score_high, best_level
    game.tick()
    assert game.ram[t.MAX_CHOICE] == expected


def test_start_ends_the_level_in_the_demo_combination_and_keeps_the_shots(machine):
    """Section 9."""
    game = started(machine, 1, free_play=True, demo=True)
    game.tick(fire=True)
    game.tick(start=True)
    assert (game.ram[t.GAMESTATE], game.ram[t.PSHOT_COUNT]) == (0x20, 1)


def test_attract_plays_without_scoring_and_comes_round_again(machine):
    """2.3, 3.9."""
    game = machine(8)
    seen: list[int] = []
    for _ in range(4000):
        game.tick()
        assert (score(game), game.ram[t.ZAP_USES]) == (0, 0)
        if not seen or seen[-1] != game.ram[t.GAMESTATE]:
            seen.append(game.ram[t.GAMESTATE])
    first_table = seen.index(0x14)
    assert seen[:4] == [0x02, 0x1E, 0x0A, 0x04]
    assert seen[first_table : first_table + 6] == [0x14, 0x0A, 0x1A, 0x0A, 0x00, 0x02]


def test_turning_the_spinner_in_attract_shows_the_press_start_screen(machine):
    """2.5."""
    game = machine(8, free_play=True)
    for _ in range(50):
        game.tick()
    game.tick(spinner=3)
    ram = game.ram
    assert (ram[t.GAMESTATE], ram[t.COUNTDOWN], ram[t.NEXT_STATE], ram[t.SPINNER]) == (0x0A, 32, 0x14, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_high_score_is_entered_after_the_explosion(machine, seed):
    """2.3, states $10, $24, $12, $14."""
    game = started(machine, 20, seed)
    ram = game.ram
    set_score(game, 123450)
    ram[t.P1_LIVES], ram[t.GAMESTATE] = 1, 0x06
    game.tick()
    assert (ram[t.GAMESTATE], ram[t.BEST_LEVEL]) == (0x10, 18)
    game.tick()
    assert (ram[t.GAMESTATE], ram[t.GAME_MODE], ram[t.HIGH_SCORE_RANK]) == (0x24, 0x80, 1)
    assert score(game, at=t.HIGH_SCORES + 21) == 123450
    assert score(game, at=t.HIGH_SCORES + 18) == 10101
    assert 65 <= ticks_in(game, 0x24) <= 108
    for letters in (2, 1):
        game.tick(fire=True)
        game.tick()
        assert (ram[t.GAMESTATE], ram[t.LETTERS_LEFT]) == (0x12, letters)
    game.tick(zap=True)
    assert ram[t.GAMESTATE] == 0x14
    game.tick()
    assert ram[t.GAME_MODE] == 0
    assert 319 <= ticks_in(game, 0x0A) <= 320
    assert ram[t.GAMESTATE] == 0x1A


def test_equal_scores_stay_above_a_new_one(machine):
    """State $10."""
    game = started(machine, 1)
    for i, entry in enumerate((100, 200, 300, 400, 500, 600, 700, 800)):
        set_score(game, entry, at=t.HIGH_SCORES + 3 * i)
    set_score(game, 400)
    game.ram[t.GAMESTATE] = 0x10
    game.tick()
    table = [score(game, at=t.HIGH_SCORES + 3 * i) for i in range(8)]
    assert table == [200, 300, 400, 400, 500, 600, 700, 800]
    assert game.ram[t.HIGH_SCORE_RANK] == 6


def test_a_score_equal_to_the_last_entry_does_not_qualify(machine):
    """State $10, section 11."""
    game = started(machine, 1)
    set_score(game, 10101)
    game.ram[t.GAMESTATE] = 0x10
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x14
