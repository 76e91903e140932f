"""The fifty checks of the game specification, each on the simulator and on the reference.

The number in a test's name is the check's. Sections of the specification are cited where a number needs its reason.
The module is long because the list is.
"""

import pytest

from tests.games.tempest.rules import reference as t
from tests.games.tempest.rules.simulated import (
    MACHINES,
    active,
    clear,
    clear_enemies,
    clear_shots,
    earn_point,
    fine_depth,
    finish_level,
    is_alive,
    is_flipping,
    kills,
    kind_of,
    listed,
    place,
    place_fuseball,
    place_nymph,
    put_player,
    quiet,
    run_until,
    score,
    set_score,
    shoot_at,
    shoot_player,
    speed_word,
    started,
    ticks_in,
)

pytestmark = pytest.mark.parametrize("machine", MACHINES)


# --- Level parameters -------------------------------------------------------------------------------------------------


def test_check_01_a_flipper_of_the_first_level_reaches_the_rim_on_its_163rd_climb(machine):
    game = quiet(machine)
    place(game, 6, t.FLIPPER, 4, 0xF0)
    assert speed_word(game, t.FLIPPER) == 0xFEA0
    for tick in range(1, 164):
        before = fine_depth(game)
        game.tick()
        assert (game.ram[t.ENEMY_DEPTH + 6] == 0x10) == (tick == 163)
        assert tick == 163 or before - fine_depth(game) == 1.375 * 256
    assert (game.ram[t.IN_TUBE], game.ram[t.ON_RIM]) == (0, 1)


@pytest.mark.parametrize(("level", "speed"), [(1, 3.375), (65, 7.0), (66, 7.96875)])
def test_check_02_enemy_shots_have_the_speed_of_their_level(machine, level, speed):
    game = quiet(machine, level)
    ram = game.ram
    ram[t.ESHOT_DEPTH], ram[t.ESHOT_COUNT] = 0xE0, 1
    game.tick()
    game.tick()
    assert ram[t.ESHOT_DEPTH] * 256 + ram[t.ESHOT_FRAC] == 0xE000 - int(2 * speed * 256)


def test_check_03_the_speeds_of_the_first_level_are_the_documented_bytes(machine):
    game = quiet(machine)
    assert listed(game, 0x0160, 5) == [0xA0, 0xA0, 0xA0, 0xA0, 0x40]
    assert listed(game, 0x0165, 5) == [0xFE, 0xFE, 0xFE, 0xFE, 0xFD]


def test_check_04_fuseballs_of_level_5_move_four_units_and_pulsars_are_alike_everywhere(machine):
    assert speed_word(quiet(machine, 5), t.FUSEBALL) == 0xFC00
    assert all(speed_word(quiet(machine, level), t.PULSAR) == 0xFEA0 for level in range(1, 100))


def test_check_05_the_first_level_starts_with_ten_nymphs_and_no_spikes(machine):
    game = started(machine, 1)
    assert game.ram[t.NYMPHS_LEFT] == 10
    assert not any(game.ram[t.SPIKE : t.SPIKE + 16])
    assert game.ram[t.SHOT_HOLDOFF] == 80
    assert game.ram[t.SHOT_SLOT_MAX] + 1 == 2


def test_check_06_the_fourth_level_starts_with_spikes_and_allows_spikers(machine):
    game = started(machine, 4)
    ram = game.ram
    assert ram[t.NYMPHS_LEFT] == 17
    assert listed(game, t.SPIKE, 16) == [0xE0] * 16
    assert (ram[t.TYPE_MAX + t.SPIKER], ram[t.TYPE_MAX + t.TANKER]) == (2, 0)
    assert ram[t.SHOT_SLOT_MAX] + 1 == 3


def test_check_07_level_17_brings_pulsars_and_no_spikers(machine):
    game = started(machine, 17)
    assert game.ram[t.NYMPHS_LEFT] == 20
    assert not any(game.ram[t.SPIKE : t.SPIKE + 16])
    assert listed(game, t.TYPE_MIN, 5) == [0, 2, 1, 0, 0]
    assert listed(game, t.TYPE_MAX, 5) == [3, 5, 1, 0, 0]
    assert game.ram[t.PULSAR_WAIT] == 40


def test_check_08_no_spiker_ever_appears_on_level_35(machine):
    game = started(machine, 35, seed=35)
    assert game.ram[t.TYPE_MIN + t.SPIKER] == 1
    assert game.ram[t.TYPE_MAX + t.SPIKER] == 0
    for _ in range(800):
        game.tick(fire=True, spinner=5)
        assert game.ram[t.TYPE_COUNT + t.SPIKER] == 0


def test_check_09_beat_and_cargo_change_at_level_49(machine):
    before, after = quiet(machine, 48), quiet(machine, 49)
    assert (before.ram[t.PULSE_STEP], listed(before, t.TANKER_CARGO, 4)) == (4, [1, 1, 2, 1])
    assert (after.ram[t.PULSE_STEP], listed(after, t.TANKER_CARGO, 4)) == (6, [1, 1, 2, 3])


def test_check_10_tolerances_grow_with_speed(machine):
    slow, fast = quiet(machine, 1), quiet(machine, 66)
    assert (listed(slow, t.TYPE_TOL, 5), slow.ram[0xA7]) == ([7, 7, 7, 7, 6], 8)
    assert (listed(fast, t.TYPE_TOL, 5), fast.ram[0xA7]) == ([9, 9, 9, 10, 6], 10)


# --- Nymphs and type choice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 16, 64])
def test_check_11_nymph_timers_follow_slot_and_lane(machine, level):
    game = started(machine, level, seed=3)
    left = game.ram[t.NYMPHS_LEFT]
    for slot in range(t.NYMPHS):
        expected = ((slot % 16) * 16 + game.ram[t.NYMPH_LANE + slot]) or 15
        assert game.ram[t.NYMPH_TIMER + slot] == (expected if slot < left else 0)


def test_check_12_far_nymphs_rotate_on_even_ticks_only(machine):
    game = quiet(machine)
    place_nymph(game, 20, 0xF0, 14)
    for _ in range(20):
        even = game.ram[t.TICK_COUNTER] % 2 == 0
        before = game.ram[t.NYMPH_LANE + 20]
        game.tick()
        assert game.ram[t.NYMPH_LANE + 20] == (before + even) % 16


def test_check_13_four_flippers_block_the_nymphs_of_the_first_level(machine):
    game = quiet(machine)
    for slot in (6, 5, 4, 3):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    ram = game.ram
    ram[t.NYMPHS_LEFT] = 3
    for slot, timer in ((9, 0x10), (5, 1), (3, 0x10)):
        place_nymph(game, slot, timer, 2)
    game.tick()
    assert (ram[t.NYMPH_TIMER + 9], ram[t.NYMPH_TIMER + 5], ram[t.NYMPH_TIMER + 3]) == (0x0F, 1, 0x10)
    assert ram[t.NYMPHS_LEFT] == 3


@pytest.mark.parametrize("seed", range(5))
def test_check_14_the_first_enemy_of_level_3_is_a_tanker(machine, seed):
    game = started(machine, 3, seed)
    while not active(game):
        game.tick()
    assert kind_of(game, 6) == t.TANKER


@pytest.mark.parametrize("level", range(5, 17))
def test_check_15_no_flipper_comes_straight_from_a_nymph_on_levels_5_to_16(machine, level):
    game = started(machine, level, seed=level)
    clear(game, t.NYMPH_TIMER, t.NYMPHS)
    game.ram[t.NYMPHS_LEFT] = 60
    born = 0
    for tick in range(60):
        place_nymph(game, 0, 1, tick % 15)
        before = active(game)
        game.tick()
        fresh = [slot for slot in active(game) if slot not in before]
        assert all(kind_of(game, slot) != t.FLIPPER for slot in fresh)
        assert all(game.ram[t.ENEMY_DEPTH + slot] < 0xF0 for slot in fresh)  # it has moved already
        born += len(fresh)
        clear_shots(game)
        if not fresh:
            clear_enemies(game)
    assert born > 30
    clear_enemies(game)
    shoot_player(game)
    clear_enemies(game)
    place_nymph(game, 0, 1, 3)
    game.tick()
    assert [game.ram[t.ENEMY_DEPTH + slot] for slot in active(game)] == [0xF0]  # nobody moves while the player dies


def test_check_16_the_higher_nymph_gets_the_higher_enemy_slot(machine):
    game = quiet(machine)
    game.ram[t.NYMPHS_LEFT] = 3
    place_nymph(game, 9, 1, 2)
    place_nymph(game, 3, 1, 7)
    game.tick()
    assert (game.ram[t.ENEMY_LANE + 6], game.ram[t.ENEMY_LANE + 5]) == (2, 7)
    assert (game.ram[t.ENEMY_DEPTH + 6], game.ram[t.NYMPHS_LEFT]) == (0xEE, 1)


def test_check_17_new_enemies_and_first_pieces_turn_down_and_second_pieces_up(machine):
    kinds = set()
    for level in (1, 4, 11, 20, 60):
        game = quiet(machine, level)
        shoot_player(game)  # nobody moves while he dies, so the new ones are seen as they were born
        for slot in range(7):
            place_nymph(game, slot, 1, slot)
        game.tick()
        bytes_of_types = [game.ram[t.ENEMY_TYPE + slot] for slot in active(game)]
        assert not any(byte & (t.INCREASING | t.FLIPPING) for byte in bytes_of_types)
        kinds |= set(bytes_of_types)
    assert kinds == {t.FLIPPER, t.PULSAR, t.TANKER, t.SPIKER, t.FUSEBALL}
    game = quiet(machine, 2)
    place(game, 0, t.TANKER, 7, 0x80, info=0x41)
    shoot_at(game, 7, 0x7E)
    game.tick()
    assert (game.ram[t.ENEMY_TYPE + 6], game.ram[t.ENEMY_TYPE + 5]) == (0, t.INCREASING)


@pytest.mark.parametrize(
    ("level", "lane", "lanes"), [(11, 0, (0, 2)), (11, 14, (13, 14)), (1, 0, (15, 1)), (1, 7, (6, 8))]
)
def test_check_18_tankers_split_into_the_neighbouring_lanes(machine, level, lane, lanes):
    game = quiet(machine, level)
    put_player(game, 3)
    place(game, 0, t.TANKER, lane, 0x80, info=0x41)  # its pieces take slots 6 and 5, which the shot has passed
    shoot_at(game, lane, 0x7E)
    game.tick()
    assert active(game) == [5, 6]
    assert (game.ram[t.ENEMY_LANE + 6], game.ram[t.ENEMY_LANE + 5]) == lanes


def test_check_19_a_late_split_releases_straight_flippers(machine):
    game = quiet(machine, 2)
    place(game, 6, t.TANKER, 5, 0x20, info=0x41)
    game.tick()
    ram = game.ram
    assert active(game) == [5, 6]
    assert ram[t.ENEMY_SCRIPT + 6] == 0x07  # its own slot does not move again
    assert ram[t.ENEMY_DEPTH + 6] == 0x1E
    assert ram[t.ENEMY_SCRIPT + 5] == 0x09  # $07, and one tick: a lower slot runs in the same tick
    assert score(game) == 0
    assert (listed(game, t.TYPE_COUNT, 3), ram[t.IN_TUBE]) == ([2, 0, 0], 2)


def test_check_19_a_tanker_shot_far_out_releases_flippers_of_the_level(machine):
    game = quiet(machine, 2)
    place(game, 6, t.TANKER, 5, 0x80, info=0x41)
    shoot_at(game, 5, 0x81)
    game.tick()
    assert game.ram[t.FLIPPER_SCRIPT] == 0x0B
    assert [game.ram[t.ENEMY_SCRIPT + slot] for slot in active(game)] == [0x0B, 0x0B]


# --- Flips and the rim ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize(("level", "vertex", "steps"), [(1, 4, 7), (11, 4, 8), (13, 2, 2), (13, 3, 12), (12, 3, 16)])
def test_check_20_flips_take_the_documented_number_of_steps(machine, level, vertex, steps, increasing):
    game = quiet(machine, level)
    lane = vertex - 1 if increasing else vertex
    place(game, 6, t.FLIPPER, lane, 0x80, script=0x0F, counter=1, bits=t.INCREASING if increasing else 0)
    game.tick()
    assert (is_flipping(game), game.ram[t.ENEMY_LANE + 6]) == (True, vertex)
    for step in range(1, steps + 1):
        game.tick()
        assert is_flipping(game) == (step < steps)
    assert game.ram[t.ENEMY_LANE + 6] == (vertex if increasing else vertex - 1)
    assert game.ram[t.ENEMY_EDGE + 6] == game.ram[t.ENEMY_LANE + 6] + 1


@pytest.mark.parametrize(("lane", "flip_ticks"), [(3, 8), (2, 4)])
def test_check_21_a_marching_flipper_climbs_eight_ticks_and_flips_without_climbing(machine, lane, flip_ticks):
    game = quiet(machine, 2)
    assert game.ram[t.FLIPPER_SCRIPT] == 0x0B
    place(game, 6, t.FLIPPER, lane, 0xE0, script=0x0B)
    climbs = []
    for _ in range(8 + 1 + flip_ticks):
        before = fine_depth(game)
        game.tick()
        climbs.append(fine_depth(game) != before)
    # The tick in which the flip ends is the first of the next eight climbs.
    assert climbs == [True] * 8 + [False] + [False] * (flip_ticks - 1) + [True]
    assert game.ram[t.ENEMY_LANE + 6] == lane - 1


def test_check_22_a_rim_flipper_moves_one_lane_every_eight_ticks_on_the_circle(machine):
    game = quiet(machine)
    assert game.ram[t.RIM_FLIP_STEPS] == 2
    place(game, 6, t.FLIPPER, 5, 0x11)
    landings = []
    for tick in range(30):
        game.tick()
        if game.ram[t.ENEMY_SCRIPT + 6] == 0x46 and game.ram[t.ENEMY_COUNTER + 6] == 4:
            landings.append((tick, game.ram[t.ENEMY_LANE + 6]))
    assert landings == [(0, 5), (8, 4), (16, 3), (24, 2)]


def test_check_23_the_second_rim_rider_turns_the_other_way_and_loses_its_type(machine):
    game = quiet(machine, 17)
    game.ram[t.NYMPHS_LEFT] = 0
    put_player(game, 6)
    place(game, 6, t.FLIPPER, 3, 0x11)
    place(game, 5, t.PULSAR, 4, 0x11, script=0x72)
    place(game, 4, t.TANKER, 9, 0xE0)
    game.tick()
    assert game.ram[t.ENEMY_TYPE + 6] == t.INCREASING
    assert game.ram[t.ENEMY_TYPE + 5] == 0
    assert game.ram[t.TYPE_COUNT + t.PULSAR] == 1
    assert (game.ram[t.IN_TUBE], game.ram[t.ON_RIM]) == (1, 2)


# --- Player -----------------------------------------------------------------------------------------------------------


def test_check_24_a_shot_moves_nine_units_a_tick_and_vanishes_on_the_25th(machine):
    game = quiet(machine)
    game.tick(fire=True)
    slot = t.PSHOT_DEPTH + 7
    assert game.ram[slot] == 0x19
    for moved in range(2, 25):
        game.tick()
        assert game.ram[slot] == 0x10 + 9 * moved
    game.tick()
    assert (game.ram[slot], game.ram[t.PSHOT_COUNT]) == (0, 0)


def test_check_24_holding_fire_puts_eight_shots_in_flight_after_eight_ticks(machine):
    game = quiet(machine)
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 8):
        game.tick(fire=True)
        assert game.ram[t.PSHOT_COUNT] == count


def test_check_25_one_shot_shortens_a_spike_twice_and_scores_two_points(machine):
    game = quiet(machine)
    game.ram[t.SPIKE + 15] = 0x20
    game.tick(fire=True)
    game.tick()
    assert game.ram[t.SPIKE + 15] == 0x22
    for _ in range(4):
        game.tick()
    assert (game.ram[t.SPIKE + 15], game.ram[t.PSHOT_COUNT], score(game)) == (0x27, 0, 2)


def test_check_26_the_first_superzap_kills_seven_enemies_from_the_highest_slot_down(machine):
    game = quiet(machine)
    for slot in range(7):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    game.tick(zap=True)
    assert list(kills(game, 16)) == [(3, 6), (5, 5), (7, 4), (9, 3), (11, 2), (13, 1), (15, 0)]
    assert game.ram[t.ZAP_TIMER] != 0
    game.tick()
    assert (game.ram[t.ZAP_TIMER], score(game)) == (0, 7 * 150)


def test_check_26_a_superzap_with_a_steady_supply_stops_on_the_18th_tick(machine):
    game = quiet(machine)
    game.tick(zap=True)
    for tick in range(1, 19):
        clear_enemies(game)
        for slot in range(7):
            place(game, slot, t.FLIPPER, slot, 0xE0)
        game.tick()
        assert (game.ram[t.ZAP_TIMER] == 0) == (tick == 18)
    assert score(game) == 8 * 150


def test_check_27_the_second_superzap_kills_exactly_one_enemy(machine):
    game = quiet(machine)
    game.ram[t.ZAP_USES] = 1
    for slot in range(7):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    game.tick(zap=True)
    assert list(kills(game, 3)) == [(3, 6)]
    assert game.ram[t.ZAP_TIMER] == 4
    game.tick()
    assert game.ram[t.ZAP_TIMER] == 0
    game.tick(zap=True)
    assert list(kills(game, 20)) == []  # a third press does nothing
    assert game.ram[t.ZAP_USES] == 2


def test_check_28_superzaps_are_counted_over_lives_but_not_over_levels(machine):
    game = quiet(machine)
    game.ram[t.ZAP_USES] = 1
    shoot_player(game)
    run_until(game, 0x04)
    assert game.ram[t.ZAP_USES] == 1
    finish_level(game)
    run_until(game, 0x18)
    assert game.ram[t.ZAP_USES] == 0


def test_check_29_the_spinner_is_limited_to_31_and_counts_backwards(machine):
    game = quiet(machine)
    game.ram[t.PLAYER_POS] = 0x80
    game.tick(spinner=40)
    assert game.ram[t.PLAYER_POS] == 0x80 - 31
    game.tick(spinner=-5)
    assert game.ram[t.PLAYER_POS] == 0x80 - 31 + 5
    assert game.ram[t.SPINNER] == 0


@pytest.mark.parametrize(("position", "spinner", "expected"), [(5, 20, 0), (5, 31, 0), (0xE8, -31, 0xEF), (0, 1, 0)])
def test_check_29_the_player_stops_at_the_ends_of_an_open_tube(machine, position, spinner, expected):
    game = quiet(machine, 11)
    game.ram[t.PLAYER_POS] = position
    game.tick(spinner=spinner)
    assert game.ram[t.PLAYER_POS] == expected


@pytest.mark.parametrize(("level", "lane", "edge", "position"), [(1, 15, 0, 0xF0), (8, 14, 15, 0xEF)])
def test_check_30_a_new_life_begins_in_the_last_lane(machine, level, lane, edge, position):
    game = quiet(machine, level)
    game.ram[t.GAMESTATE] = 0x02
    game.tick()
    assert game.ram[t.PLAYER_LANE] == 0x0E
    game.tick()
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x0A
    assert (game.ram[t.PLAYER_LANE], game.ram[t.PLAYER_EDGE], game.ram[t.PLAYER_POS]) == (lane, edge, position)


# --- Pulsars and fuseballs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "period", "live"), [(17, 40, 7), (49, 28, 5), (65, 20, 3)])
def test_check_31_the_pulse_has_its_documented_period(machine, level, period, live):
    game = quiet(machine, level)
    phases = []
    for _ in range(2 * period):
        game.tick()
        phases.append(t.signed8(game.ram[t.PULSE_PHASE]))
    assert phases[:period] == phases[period:]
    assert sum(phase >= 0 for phase in phases[:period]) == live
    if level == 17:
        assert phases[:8] == [3, 7, 11, 15, 11, 7, 3, -1]


@pytest.mark.parametrize(("depth_after", "dies"), [(0x9F, True), (0xA0, False)])
def test_check_32_a_pulse_kills_only_nearer_than_the_lethal_depth(machine, depth_after, dies):
    game = quiet(machine, 17)
    game.ram[t.PULSE_PHASE] = 3
    place(game, 6, t.PULSAR, 15, depth_after + 1, script=0x76, counter=20)
    game.ram[t.ENEMY_FRAC + 6] = 0xFF
    game.ram[t.SPEED_HI], game.ram[t.SPEED_LO] = 0xFE, 0xA0
    game.tick()
    assert game.ram[t.ENEMY_DEPTH + 6] == depth_after
    assert (game.ram[t.PLAYER_EDGE] == t.BLOWN_UP) == dies


def test_check_33_a_pulsar_bounces_off_the_rim_while_nymphs_are_left(machine):
    game = quiet(machine, 17)
    put_player(game, 12)
    place(game, 6, t.PULSAR, 4, 0x11, script=0x76, counter=200)
    ram = game.ram
    game.tick()
    assert (ram[t.ENEMY_DEPTH + 6], ram[t.ENEMY_INFO + 6]) == (0x10, t.MOVING_AWAY)
    ticks = 0
    while ram[t.ENEMY_INFO + 6] & t.MOVING_AWAY:
        before = fine_depth(game)
        game.tick()
        assert fine_depth(game) == before + 1.375 * 256
        ticks += 1
    assert before >> 8 < ram[t.PULSE_DEPTH] <= ram[t.ENEMY_DEPTH + 6]
    assert ticks == 105


def test_check_34_a_fuseball_leap_lasts_27_ticks_and_crosses_one_lane(machine):
    game = quiet(machine, 11)
    place(game, 6, t.FUSEBALL, 5, 0x68, script=0x61)
    game.will_draw(0xFF, 0x00)  # leap, with increasing line number
    game.tick()
    ram = game.ram
    assert ram[t.ENEMY_EDGE + 6] == 0x81
    start_depth = ram[t.ENEMY_DEPTH + 6]
    ticks = 0
    while ram[t.ENEMY_EDGE + 6] & 0x80:
        assert (ram[t.ENEMY_DEPTH + 6], ram[t.ENEMY_LANE + 6]) == (start_depth, 5)
        game.will_draw(0x00)  # no further leap when this one ends
        game.tick()
        ticks += 1
    assert ticks == 27
    assert (ram[t.ENEMY_LANE + 6], ram[t.ENEMY_EDGE + 6]) == (6, 0x20)
    assert ram[t.ENEMY_INFO + 6] == t.MOVING_AWAY


@pytest.mark.parametrize(
    ("edge", "depth", "shot", "hit"),
    [(0x20, 0x60, 0x62, False), (0x83, 0x60, 0x62, True), (0x83, 0x60, 0x66, False), (0x83, 0x10, 0x10, False)],
)
def test_check_34_a_fuseball_can_be_shot_only_while_it_leaps_below_the_rim(machine, edge, depth, shot, hit):
    game = quiet(machine, 11)
    put_player(game, 10)
    place_fuseball(game, edge, depth)
    shoot_at(game, 5, shot)
    game.tick()
    assert active(game) == ([] if hit else [6])


# --- Enemy fire -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_flight", "chances"), [(0, 256), (1, 32)])
def test_check_35_enemies_fire_with_the_documented_chance(machine, in_flight, chances):
    fired = 0
    game = quiet(machine, 5)
    for byte in range(256):
        clear_enemies(game)
        clear_shots(game)
        place(game, 6, t.TANKER, 4, 0x80, info=t.MAY_SHOOT)
        game.ram[t.ENEMY_SHOT_DELAY + 6] = 0
        for slot in range(in_flight):
            game.ram[t.ESHOT_DEPTH + slot] = 0xE0
        game.ram[t.ESHOT_COUNT] = in_flight
        game.will_draw(byte)
        game.tick()
        fired += game.ram[t.ESHOT_COUNT] - in_flight
        assert game.drawn() == 1
    assert fired == chances


@pytest.mark.parametrize(("depth_after", "fires"), [(0x30, True), (0x2F, False)])
def test_check_35_an_enemy_nearer_than_30_neither_fires_nor_draws(machine, depth_after, fires):
    game = quiet(machine)
    place(game, 6, t.TANKER, 4, depth_after + 1, info=t.MAY_SHOOT)
    game.ram[t.ENEMY_FRAC + 6] = 0xFF
    game.will_draw(0xFF)
    game.tick()
    assert game.ram[t.ENEMY_DEPTH + 6] == depth_after
    assert (game.ram[t.ESHOT_COUNT], game.drawn()) == ((1, 1) if fires else (0, 0))


def test_check_36_an_enemy_fires_again_on_the_81st_tick_on_the_first_level(machine):
    game = quiet(machine)
    place(game, 6, t.TANKER, 4, 0xF0, info=t.MAY_SHOOT)
    shots = []
    for tick in range(82):
        game.tick()
        if game.ram[t.ESHOT_COUNT]:
            shots.append(tick)
        clear_shots(game)
    assert shots == [0, 81]


# --- Death ------------------------------------------------------------------------------------------------------------


def test_check_37_a_death_by_a_shot_takes_59_ticks(machine):
    game = quiet(machine)
    shoot_player(game)
    depths = []
    for _ in range(34):
        game.tick()
        depths.append(game.ram[t.PLAYER_DEPTH])
    assert depths[18:20] == [0x10, 0x1F]
    assert game.ram[t.GAMESTATE] == 0x06
    assert run_until(game, 0x04) == 24  # D+58 ends the delay, D+59 plays
    assert game.ram[t.P1_LIVES] == 2


def test_check_37_a_grab_takes_44_ticks(machine):
    game = quiet(machine)
    place(game, 6, t.FLIPPER, 15, 0x11)
    game.tick()
    assert game.ram[t.PLAYER_EDGE] == t.GRABBED
    for tick in range(1, 20):
        assert game.ram[t.GAMESTATE] == 0x04
        game.tick()
        assert (game.ram[t.PLAYER_DEPTH] > 0x10) == (tick >= 5)
    assert game.ram[t.GAMESTATE] == 0x06
    assert run_until(game, 0x04) == 24  # D+43 ends the delay, D+44 plays


@pytest.mark.parametrize(("waiting", "expected"), [(10, 13), (62, 63)])
def test_check_38_enemies_alive_at_a_death_become_nymphs_again(machine, waiting, expected):
    game = quiet(machine)
    game.ram[t.NYMPHS_LEFT] = waiting
    for slot in range(3):
        place(game, slot, t.FLIPPER, slot, 0x80)
    shoot_player(game)
    run_until(game, 0x06)
    assert game.ram[t.NYMPHS_LEFT] == expected


def test_check_39_the_last_fall_lasts_40_ticks(machine):
    game = quiet(machine)
    game.ram[t.P1_LIVES] = 1
    place(game, 6, t.FLIPPER, 3, 0x10, script=0x46)
    shoot_player(game)
    for _ in range(19):
        game.tick()
    for step in range(1, 41):
        assert game.ram[t.GAMESTATE] == 0x04
        game.tick()
        assert (active(game) == []) == (step >= 15)
    assert (game.ram[t.GAMESTATE], game.ram[t.PLAYER_DEPTH]) == (0x06, 0x10)
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x10


# --- Level end and zoom -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "delay"), [(t.FLIPPER, 5), (t.FUSEBALL, 10)])
def test_check_40_the_level_ends_when_the_last_explosion_has_burnt_out(machine, kind, delay):
    game = quiet(machine)
    game.ram[t.NYMPHS_LEFT] = 0
    if kind == t.FUSEBALL:
        place_fuseball(game, edge=0x83, depth=0x80)
    else:
        place(game, 6, kind, 5, 0x80)
    shoot_at(game, 5, 0x81)
    game.tick()
    assert active(game) == []
    assert run_until(game, 0x20) == delay


@pytest.mark.parametrize(("level", "ticks"), [(1, 47), (9, 36), (13, 33), (40, 33), (64, 33), (65, 47), (77, 33)])
def test_check_41_the_zoom_takes_the_documented_number_of_ticks(machine, level, ticks):
    game = quiet(machine, level)
    finish_level(game)
    assert ticks_in(game, 0x20) == ticks
    assert (game.ram[t.GAMESTATE], game.ram[t.PLAYER_DEPTH]) == (0x0E, 0xFF)


def test_check_42_a_spike_kills_only_when_the_player_is_beyond_its_tip(machine):
    game = quiet(machine, 13)
    game.ram[t.SPIKE + 15] = 0x80
    finish_level(game)
    while is_alive(game):
        before = game.ram[t.PLAYER_DEPTH]
        game.tick()
    assert before <= 0x80 < game.ram[t.PLAYER_DEPTH]
    survivor = quiet(machine, 13)
    finish_level(survivor)
    survivor.ram[t.SPIKE + 15] = 0x12  # the first step is exactly 2 units
    survivor.tick()
    assert (survivor.ram[t.PLAYER_DEPTH], is_alive(survivor)) == (0x12, True)
    survivor.tick()
    assert not is_alive(survivor)


@pytest.mark.parametrize("level", range(1, 17))
def test_check_43_the_spike_warning_is_shown_on_levels_4_to_7_only(machine, level):
    game = started(machine, level)
    finish_level(game)
    ram = game.ram
    if 4 <= level <= 7:
        assert (ram[t.GAMESTATE], ram[t.COUNTDOWN], ram[t.NEXT_STATE], ram[0x0123]) == (0x0A, 30, 0x20, 0x80)
    else:
        assert (ram[t.GAMESTATE], ram[0x0123]) == (0x20, 16 if level > 3 else 0)


@pytest.mark.parametrize(("level", "tube", "ticks"), [(16, 0, 63), (10, 8, 64)])
def test_check_44_the_zoom_in_takes_63_or_64_ticks(machine, level, tube, ticks):
    game = quiet(machine, level)
    finish_level(game)
    run_until(game, 0x18)
    assert game.ram[t.TUBE_INDEX] == tube
    assert ticks_in(game, 0x18) == ticks
    assert game.ram[t.GAMESTATE] == 0x04
    assert game.ram[t.EYE_LO] == game.ram[t.EYE_DEST_LO]


# --- Score and progress -----------------------------------------------------------------------------------------------


def test_check_45_the_start_bonus_is_paid_once_with_one_life(machine):
    game = started(machine, 9, start_choice=4)
    for level in (9, 10):
        clear(game, t.SPIKE, t.LANES)
        finish_level(game)
        run_until(game, 0x0E)
        assert score(game) == (0 if level == 9 else 54000)
        game.tick()
        assert (score(game), game.ram[t.P1_LIVES], game.ram[t.P1_LEVEL]) == (54000, 4, level)
        run_until(game, 0x04)
        assert game.ram[t.START_CHOICE] == 0


@pytest.mark.parametrize(
    ("before", "lives", "after", "lives_after"),
    [(9999, 3, 10000, 3), (19999, 3, 20000, 4), (19999, 6, 20000, 6), (999999, 6, 0, 6)],
)
def test_check_46_extra_lives_come_at_the_interval_and_never_exceed_six(machine, before, lives, after, lives_after):
    game = quiet(machine, bonus=2)
    set_score(game, before)
    game.ram[t.P1_LIVES] = lives
    earn_point(game)
    assert (score(game), game.ram[t.P1_LIVES]) == (after, lives_after)


def test_check_47_the_level_selection_ends_by_itself_after_231_ticks(machine):
    game = machine(5, free_play=True)
    game.tick()
    game.tick(start=True)
    assert (game.ram[t.GAMESTATE], game.ram[t.GAME_MODE]) == (0x00, 0xC0)
    for _ in range(4):
        game.tick(spinner=16)
    assert game.ram[t.PLAYER_LANE] == 2
    assert run_until(game, 0x02) == 231 - 4
    assert (game.ram[t.P1_LEVEL] + 1, game.ram[t.START_CHOICE], game.ram[t.P1_LIVES]) == (5, 2, 3)
    assert run_until(game, 0x04) == 22  # 2.4: S+23 is the first playing tick


@pytest.mark.parametrize(
    ("byte", "points", "explosion"), [(1, 500, 3), (2, 750, 4), *[(byte, 250, 2) for byte in (0, 3, 4, 5, 6, 7)]]
)
def test_check_48_a_shot_fuseball_is_worth_a_random_amount(machine, byte, points, explosion):
    game = quiet(machine, 11)
    place_fuseball(game, edge=0x83)
    shoot_at(game, 5, 0x62)
    game.will_draw(byte)
    game.tick()
    assert (score(game), game.drawn(), game.ram[t.EXPL_TYPE + 7]) == (points, 1, explosion)


def test_check_48_a_superzapped_fuseball_is_worth_150(machine):
    game = quiet(machine, 11)
    place_fuseball(game, edge=0x83)
    game.will_draw(2)
    game.tick(zap=True)
    assert list(kills(game, 3)) == [(3, 6)]
    assert (score(game), game.drawn()) == (150, 0)


def test_check_49_level_99_draws_its_parameters_from_65_to_96_and_stays_at_99(machine):
    game = quiet(machine, 98)
    finish_level(game)
    run_until(game, 0x0E)
    for byte, nymphs in ((0xFF, 58), (0x00, 35), (0x1F, 58), (0x20, 35)):  # levels 96, 65, 96, 65
        game.will_draw(byte)
        game.tick()
        assert game.ram[t.P1_LEVEL] == game.ram[t.LEVEL_INDEX] == 98
        assert game.ram[t.START_NYMPHS] == nymphs
        assert game.drawn() == 1 + nymphs + 1  # the level, each nymph, the tube
        game.ram[t.GAMESTATE] = 0x0E


def test_check_50_a_shot_tanker_is_paid_as_its_piece_and_a_zapped_one_as_a_tanker(machine):
    shot, zapped = quiet(machine, 5), quiet(machine, 5)
    for game in (shot, zapped):
        place(game, 6, t.TANKER, 5, 0x80, info=0x41)
    shoot_at(shot, 5, 0x81)
    shot.tick()
    assert (score(shot), active(shot)) == (150, [5, 6])
    zapped.tick(zap=True)
    assert list(kills(zapped, 3)) == [(3, 6)]
    assert (score(zapped), active(zapped)) == (100, [])
