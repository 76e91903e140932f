"""The checks of section 13 of the game specification, staged on the reference implementation alone.

A number such as "13.22" in a test's docstring names the check; other numbers are sections of the specification.
"""

from __future__ import annotations

import pytest

from tests import tempest_reference as t
from tests.tempest_reference import ReferenceGame, random_bytes


class Bytes:
    """A random stream that is known in advance: these bytes, then the default for ever."""

    def __init__(self, *values: int, default: int = 0) -> None:
        self.values = list(values)
        self.default = default
        self.drawn = 0

    def __call__(self) -> int:
        self.drawn += 1
        return self.values.pop(0) if self.values else self.default


def quiet_game(level: int = 1, stream: Bytes | None = None, **options: int) -> ReferenceGame:
    """A level in which nothing hatches but one nymph is kept in reserve, so that the level does not end."""
    source = stream or Bytes()
    values, source.values = source.values, []
    game = ReferenceGame(source, **options)  # type: ignore[arg-type]
    game.start_at(level)
    source.values, source.drawn = values, 0
    game.clear(t.NYMPH_TIMER, t.NYMPHS)
    game.clear(t.SPIKE, t.LANES)
    game.ram[t.NYMPHS_LEFT] = 1
    return game


def place(
    game: ReferenceGame, slot: int, kind: int, lane: int, depth: int, script: int = 0x07, info: int = 0, extra: int = 0
) -> None:
    ram = game.ram
    ram[t.ENEMY_TYPE + slot] = kind | extra
    ram[t.ENEMY_INFO + slot] = info
    ram[t.ENEMY_LANE + slot] = lane
    ram[t.ENEMY_EDGE + slot] = (lane + 1) & 15
    ram[t.ENEMY_DEPTH + slot] = depth
    ram[t.ENEMY_FRAC + slot] = 0
    ram[t.ENEMY_SCRIPT + slot] = script
    game.add(t.TYPE_COUNT + kind, 1)
    game.add(t.IN_TUBE, 1)


def place_player_shot(game: ReferenceGame, lane: int, depth: int) -> None:
    ram = game.ram
    ram[t.PSHOT_DEPTH + 7], ram[t.PSHOT_LANE + 7], ram[t.PSHOT_EDGE + 7] = depth, lane, (lane + 1) & 15
    ram[t.PSHOT_HITS + 7] = 0
    ram[t.PSHOT_COUNT] = 1


def put_player(game: ReferenceGame, lane: int) -> None:
    game.ram[t.PLAYER_LANE] = lane
    game.ram[t.PLAYER_EDGE] = (lane + 1) & 15
    game.ram[t.PLAYER_POS] = lane * 16 + 8


def shoot_player(game: ReferenceGame) -> None:
    """Kill the player with an enemy shot in the next tick, which is run here."""
    ram = game.ram
    ram[t.ESHOT_DEPTH], ram[t.ESHOT_LANE], ram[t.ESHOT_COUNT] = 0x11, ram[t.PLAYER_LANE], 1
    game.tick()
    assert ram[t.PLAYER_EDGE] == t.BLOWN_UP


def active(game: ReferenceGame) -> list[int]:
    return [slot for slot in range(t.ENEMIES) if game.ram[t.ENEMY_DEPTH + slot]]


def score(game: ReferenceGame) -> int:
    return game.score_at(t.SCORE)


def run_until(game: ReferenceGame, state: int, limit: int = 2000, **controls: bool) -> int:
    """Tick until the game is in this state; the number of ticks it took."""
    for ticks in range(1, limit + 1):
        game.tick(**controls)
        if game.ram[t.GAMESTATE] == state:
            return ticks
    raise AssertionError(f"state {state:02X} was not reached")


def ticks_in(game: ReferenceGame, state: int) -> int:
    """How many ticks the game stays in the state it is in now."""
    assert game.ram[t.GAMESTATE] == state
    ticks = 0
    while game.ram[t.GAMESTATE] == state:
        game.tick()
        ticks += 1
    return ticks


def word(game: ReferenceGame, kind: int) -> int:
    return game.type_speed(kind)


# --- Level parameters -------------------------------------------------------------------------------------------------


def test_the_speeds_of_the_first_level_are_the_documented_bytes():
    """13.3, 13.4."""
    game = quiet_game(1)
    assert [word(game, kind) for kind in range(5)] == [0xFEA0, 0xFEA0, 0xFEA0, 0xFEA0, 0xFD40]
    assert word(quiet_game(5), t.FUSEBALL) == 0xFC00
    assert all(word(quiet_game(level), t.PULSAR) == 0xFEA0 for level in range(1, 99))


def test_the_first_level_starts_with_ten_nymphs_and_no_spikes():
    """13.5."""
    game = ReferenceGame(random_bytes(1))
    game.start_at(1)
    assert game.ram[t.NYMPHS_LEFT] == 10
    assert not any(game.ram[t.SPIKE : t.SPIKE + 16])
    assert game.ram[t.SHOT_HOLDOFF] == 80
    assert game.ram[t.SHOT_SLOT_MAX] == 1


def test_the_fourth_level_starts_with_spikes_and_allows_spikers():
    """13.6."""
    game = ReferenceGame(random_bytes(1))
    game.start_at(4)
    ram = game.ram
    assert ram[t.NYMPHS_LEFT] == 17
    assert set(ram[t.SPIKE : t.SPIKE + 16]) == {0xE0}
    assert (ram[t.TYPE_MAX + t.SPIKER], ram[t.TYPE_MAX + t.TANKER], ram[t.SHOT_SLOT_MAX]) == (2, 0, 2)


def test_level_17_brings_pulsars_and_no_spikers():
    """13.7."""
    game = ReferenceGame(random_bytes(1))
    game.start_at(17)
    ram = game.ram
    assert ram[t.NYMPHS_LEFT] == 20
    assert not any(ram[t.SPIKE : t.SPIKE + 16])
    assert list(ram[t.TYPE_MIN : t.TYPE_MIN + 5]) == [0, 2, 1, 0, 0]
    assert list(ram[t.TYPE_MAX : t.TYPE_MAX + 5]) == [3, 5, 1, 0, 0]
    assert ram[t.PULSAR_WAIT] == 40


def test_no_spiker_ever_appears_on_level_35():
    """13.8."""
    game = ReferenceGame(random_bytes(35))
    game.start_at(35)
    assert game.ram[t.TYPE_MIN + t.SPIKER] == 1
    assert game.ram[t.TYPE_MAX + t.SPIKER] == 0
    for _ in range(800):
        game.tick(fire=True, spinner=5)
        assert game.ram[t.TYPE_COUNT + t.SPIKER] == 0


def test_beat_and_cargo_change_at_level_49():
    """13.9."""
    before, after = quiet_game(48), quiet_game(49)
    assert before.ram[t.PULSE_STEP] == 4
    assert list(before.ram[t.TANKER_CARGO : t.TANKER_CARGO + 4]) == [1, 1, 2, 1]
    assert after.ram[t.PULSE_STEP] == 6
    assert list(after.ram[t.TANKER_CARGO : t.TANKER_CARGO + 4]) == [1, 1, 2, 3]


def test_tolerances_grow_with_speed():
    """13.10."""
    slow, fast = quiet_game(1), quiet_game(66)
    assert list(slow.ram[t.TYPE_TOL : t.TYPE_TOL + 5]) == [7, 7, 7, 7, 6]
    assert slow.ram[t.SHOT_SHOT_TOL] == 8
    assert list(fast.ram[t.TYPE_TOL : t.TYPE_TOL + 5]) == [9, 9, 9, 10, 6]
    assert fast.ram[t.SHOT_SHOT_TOL] == 10


@pytest.mark.parametrize(("difficulty", "expected"), [(0, 1.375), (1, 1.21875), (2, 1.53125), (3, 1.375)])
def test_difficulty_changes_the_flipper_speed(difficulty: int, expected: float):
    """5.3."""
    game = quiet_game(1, difficulty=difficulty)
    assert (0x10000 - word(game, t.FLIPPER)) / 256 == expected


def test_easy_and_hard_change_shots_nymphs_and_rim_speed():
    """5.3."""
    easy, hard = ReferenceGame(Bytes(), difficulty=1), ReferenceGame(Bytes(), difficulty=2)
    easy.start_at(1)
    hard.start_at(1)
    assert (easy.ram[t.SHOT_SLOT_MAX], easy.ram[t.RIM_FLIP_STEPS], easy.ram[t.NYMPHS_LEFT]) == (0, 1, 10)
    assert (hard.ram[t.SHOT_SLOT_MAX], hard.ram[t.RIM_FLIP_STEPS], hard.ram[t.NYMPHS_LEFT]) == (2, 2, 11)
    assert hard.ram[t.PULSAR_FIRE] == 0x40
    hard.start_at(98)
    assert hard.ram[t.NYMPHS_LEFT] == 68


def test_level_99_draws_its_parameters_from_65_to_96_and_stays_at_99():
    """13.49, 5.1, 10.1."""
    stream = Bytes(0xFF, default=0x23)
    game = ReferenceGame(stream)
    game.start_at(99)
    ram = game.ram
    assert ram[t.START_NYMPHS] == 58  # R2 = $FF: effective level 96
    assert stream.drawn == 1 + 58 + 1
    assert ram[t.TUBE_INDEX] == t.TUBE_OF_POSITION[3]
    game.clear(t.NYMPH_TIMER, t.NYMPHS)
    game.clear(t.SPIKE, t.LANES)
    ram[t.NYMPHS_LEFT] = 0
    stream.values = [0x00]
    run_until(game, 0x0E)
    game.tick()
    assert ram[t.P1_LEVEL] == ram[t.LEVEL_INDEX] == 98
    assert ram[t.START_NYMPHS] == 35  # R2 = 0: effective level 65


# --- Player -----------------------------------------------------------------------------------------------------------


def test_the_spinner_is_limited_to_31_and_counts_backwards():
    """13.29."""
    game = quiet_game(1)
    game.ram[t.PLAYER_POS] = 0x80
    game.tick(spinner=40)
    assert game.ram[t.PLAYER_POS] == 0x80 - 31
    game.tick(spinner=-5)
    assert game.ram[t.PLAYER_POS] == 0x80 - 31 + 5
    assert game.ram[t.SPINNER] == 0


@pytest.mark.parametrize(("position", "spinner", "expected"), [(5, 20, 0), (5, 31, 0), (0xE8, -31, 0xEF), (0, 1, 0)])
def test_the_player_stops_at_the_ends_of_an_open_tube(position: int, spinner: int, expected: int):
    """13.29."""
    game = quiet_game(11)
    game.ram[t.PLAYER_POS] = position
    game.tick(spinner=spinner)
    assert game.ram[t.PLAYER_POS] == expected


@pytest.mark.parametrize(("level", "lane", "edge", "position"), [(1, 15, 0, 0xF0), (8, 14, 15, 0xEF)])
def test_a_new_life_begins_in_the_last_lane(level: int, lane: int, edge: int, position: int):
    """13.30."""
    game = quiet_game(level)
    game.ram[t.GAMESTATE] = 0x02
    game.tick()
    assert game.ram[t.PLAYER_LANE] == 0x0E
    game.tick()
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x0A
    assert (game.ram[t.PLAYER_LANE], game.ram[t.PLAYER_EDGE], game.ram[t.PLAYER_POS]) == (lane, edge, position)


def test_a_shot_moves_nine_units_a_tick_and_vanishes_on_the_25th():
    """13.24."""
    game = quiet_game(1)
    game.tick(fire=True)
    slot = t.PSHOT_DEPTH + 7
    assert game.ram[slot] == 0x19
    for moved in range(2, 25):
        game.tick()
        assert game.ram[slot] == 0x10 + 9 * moved
    game.tick()
    assert game.ram[slot] == 0
    assert game.ram[t.PSHOT_COUNT] == 0


def test_holding_fire_puts_eight_shots_in_flight_after_eight_ticks():
    """13.24."""
    game = quiet_game(1)
    for count in (1, 2, 3, 4, 5, 6, 7, 8, 8):
        game.tick(fire=True)
        assert game.ram[t.PSHOT_COUNT] == count


def test_one_shot_shortens_a_spike_twice_and_scores_two_points():
    """13.25."""
    game = quiet_game(1)
    game.ram[t.SPIKE + 15] = 0x20
    game.tick(fire=True)
    for _ in range(5):
        game.tick()
    assert game.ram[t.SPIKE + 15] == 0x27
    assert game.ram[t.PSHOT_COUNT] == 0
    assert score(game) == 2


# --- Nymphs and type choice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 16, 64])
def test_nymph_timers_follow_slot_and_lane(level: int):
    """13.11."""
    game = ReferenceGame(random_bytes(3))
    game.start_at(level)
    left = game.ram[t.NYMPHS_LEFT]
    for slot in range(t.NYMPHS):
        expected = ((slot % 16) * 16 + game.ram[t.NYMPH_LANE + slot]) or 15
        assert game.ram[t.NYMPH_TIMER + slot] == (expected if slot < left else 0)


def test_nymphs_rotate_on_even_ticks_only():
    """13.12."""
    game = quiet_game(1)
    game.ram[t.NYMPH_TIMER + 20] = 0xF0
    game.ram[t.NYMPH_LANE + 20] = 14
    for _ in range(20):
        even = game.ram[t.TICK_COUNTER] % 2 == 0
        before = game.ram[t.NYMPH_LANE + 20]
        game.tick()
        assert game.ram[t.NYMPH_LANE + 20] == (before + even) % 16


def test_four_flippers_block_the_nymphs_of_the_first_level():
    """13.13."""
    game = quiet_game(1)
    for slot in (6, 5, 4, 3):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    ram = game.ram
    ram[t.NYMPHS_LEFT] = 3
    ram[t.NYMPH_TIMER + 9], ram[t.NYMPH_TIMER + 5], ram[t.NYMPH_TIMER + 3] = 0x10, 1, 0x10
    game.tick()
    assert (ram[t.NYMPH_TIMER + 9], ram[t.NYMPH_TIMER + 5], ram[t.NYMPH_TIMER + 3]) == (0x0F, 1, 0x10)
    assert ram[t.NYMPHS_LEFT] == 3


def test_a_nymph_waits_at_40_while_a_higher_slot_holds_its_lane():
    """4.1."""
    game = quiet_game(1)
    ram = game.ram
    ram[t.TICK_COUNTER] = 1
    ram[t.NYMPH_TIMER + 8], ram[t.NYMPH_LANE + 8] = 0x30, 4
    ram[t.NYMPH_TIMER + 7], ram[t.NYMPH_LANE + 7] = 0x40, 11  # shares the bit of lane 4
    ram[t.NYMPH_TIMER + 6], ram[t.NYMPH_LANE + 6] = 0x40, 5
    game.tick()
    assert (ram[t.NYMPH_TIMER + 8], ram[t.NYMPH_TIMER + 7], ram[t.NYMPH_TIMER + 6]) == (0x2F, 0x40, 0x3F)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_enemy_of_level_3_is_a_tanker(seed: int):
    """13.14."""
    game = ReferenceGame(random_bytes(seed))
    game.start_at(3)
    while not active(game):
        game.tick()
    assert game.kind_of(6) == t.TANKER


@pytest.mark.parametrize("level", range(5, 17))
def test_no_flipper_comes_straight_from_a_nymph_on_levels_5_to_16(level: int):
    """13.15."""
    game = ReferenceGame(random_bytes(level))
    game.start_at(level)
    for _ in range(300):
        before = set(active(game))
        converted = game.convert_nymph(0)
        fresh = set(active(game)) - before
        assert len(fresh) == converted
        assert all(game.kind_of(slot) != t.FLIPPER for slot in fresh)
        if not converted:
            game.clear_objects()


def test_the_higher_nymph_gets_the_higher_enemy_slot():
    """13.16, 13.17."""
    game = quiet_game(1)
    ram = game.ram
    ram[t.NYMPHS_LEFT] = 3
    ram[t.NYMPH_TIMER + 9], ram[t.NYMPH_LANE + 9] = 1, 2
    ram[t.NYMPH_TIMER + 3], ram[t.NYMPH_LANE + 3] = 1, 7
    game.tick()
    assert (ram[t.ENEMY_LANE + 6], ram[t.ENEMY_LANE + 5]) == (2, 7)
    assert not ram[t.ENEMY_TYPE + 6] & t.INCREASING
    assert ram[t.ENEMY_DEPTH + 6] == 0xEE
    assert ram[t.NYMPHS_LEFT] == 1


def test_a_negative_room_becomes_the_total():
    """4.2 step 3."""
    game = quiet_game(5)
    place(game, 6, t.TANKER, 3, 0xE0, info=0x41)
    game.ram[t.TYPE_COUNT + t.FLIPPER] = 4  # maximum 5
    game.compute_rooms()
    assert game.ram[t.TYPE_ROOM + t.FLIPPER] == 2  # 1 - 2 wraps to 255, then total = 7 - 5


def test_lane_15_of_an_open_tube_is_replaced_by_an_even_lane():
    """4.2, 10.1."""
    stream = Bytes(0x5F)
    game = quiet_game(17 + 10, stream)
    game.ram[t.NYMPH_LANE] = 15
    assert game.convert_nymph(0)  # a fuseball, below its minimum
    assert game.kind_of(6) == t.FUSEBALL
    assert game.ram[t.ENEMY_LANE + 6] == 0x0E
    assert stream.drawn == 1


def test_a_failed_cargo_choice_takes_one_byte():
    """4.2, 10.1."""
    stream = Bytes()
    game = quiet_game(3, stream)
    game.ram[t.TYPE_ROOM : t.TYPE_ROOM + 5] = bytes((0, 0, 1, 0, 0))
    assert not game.try_type(0, t.TANKER)
    assert stream.drawn == 1


# --- Movement ---------------------------------------------------------------------------------------------------------


def test_a_flipper_of_the_first_level_reaches_the_rim_on_its_163rd_climb():
    """13.1."""
    game = quiet_game(1)
    place(game, 6, t.FLIPPER, 4, 0xF0)
    for tick in range(1, 164):
        game.tick()
        assert (game.ram[t.ENEMY_DEPTH + 6] == 0x10) == (tick == 163)
    assert (game.ram[t.IN_TUBE], game.ram[t.ON_RIM]) == (0, 1)


@pytest.mark.parametrize(("level", "speed"), [(1, 3.375), (65, 7.0), (66, 7.96875)])
def test_enemy_shots_have_the_speed_of_their_level(level: int, speed: float):
    """13.2."""
    game = quiet_game(level)
    ram = game.ram
    ram[t.ESHOT_DEPTH], ram[t.ESHOT_COUNT] = 0xE0, 1
    game.tick()
    game.tick()
    assert ram[t.ESHOT_DEPTH] * 256 + ram[t.ESHOT_FRAC] == 0xE000 - int(2 * speed * 256)


@pytest.mark.parametrize(("level", "vertex", "steps"), [(1, 4, 7), (11, 4, 8), (13, 2, 2), (13, 3, 12), (12, 3, 16)])
def test_flips_take_the_documented_number_of_steps(level: int, vertex: int, steps: int):
    """13.20."""
    for increasing in (False, True):
        game = quiet_game(level)
        lane = vertex - 1 if increasing else vertex
        place(game, 6, t.FLIPPER, lane, 0x80, extra=t.INCREASING if increasing else 0)
        game.start_flip(6)
        assert game.ram[t.ENEMY_LANE + 6] == vertex
        assert [game.flip_step(6) for _ in range(steps)] == [False] * (steps - 1) + [True]
        assert game.ram[t.ENEMY_LANE + 6] == (vertex if increasing else vertex - 1)
        assert game.ram[t.ENEMY_EDGE + 6] == game.ram[t.ENEMY_LANE + 6] + 1


def test_a_marching_flipper_climbs_eight_ticks_and_flips_without_climbing():
    """13.21."""
    game = quiet_game(2)
    place(game, 6, t.FLIPPER, 3, 0xE0, script=0x0B)
    climbs = []
    for _ in range(8 + 1 + 7 + 1):
        before = game.ram[t.ENEMY_DEPTH + 6] * 256 + game.ram[t.ENEMY_FRAC + 6]
        game.tick()
        climbs.append(game.ram[t.ENEMY_DEPTH + 6] * 256 + game.ram[t.ENEMY_FRAC + 6] != before)
    # The flip across vertex 3 of the square takes 8 steps; on the 8th it climbs again.
    assert climbs == [True] * 8 + [False] + [False] * 7 + [True]
    assert game.ram[t.ENEMY_LANE + 6] == 2


def test_a_rim_flipper_moves_one_lane_every_eight_ticks_on_the_circle():
    """13.22."""
    game = quiet_game(1)
    place(game, 6, t.FLIPPER, 5, 0x11)
    landings = []
    for tick in range(30):
        game.tick()
        if game.ram[t.ENEMY_SCRIPT + 6] == 0x46 and game.ram[t.ENEMY_COUNTER + 6] == 4:
            landings.append((tick, game.ram[t.ENEMY_LANE + 6]))
    assert landings == [(0, 5), (8, 4), (16, 3), (24, 2)]


def test_the_second_rim_rider_turns_the_other_way_and_loses_its_type():
    """13.23."""
    game = quiet_game(17)
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


def test_an_enemy_that_arrives_in_mid_flip_waits_at_11():
    """4.4."""
    game = quiet_game(3)
    place(game, 6, t.FLIPPER, 4, 0x12, script=0x1B)
    game.tick()
    game.tick()
    assert game.ram[t.ENEMY_DEPTH + 6] == 0x11
    assert game.ram[t.ON_RIM] == 0


def test_tankers_split_into_the_neighbouring_lanes():
    """13.17, 13.18."""
    for level, lane, lanes in ((11, 0, (0, 2)), (11, 14, (13, 14)), (1, 0, (15, 1)), (1, 7, (6, 8))):
        game = quiet_game(level)
        game.release_cargo(1, lane, 0x80)
        assert (game.ram[t.ENEMY_LANE + 6], game.ram[t.ENEMY_LANE + 5]) == lanes
        assert (game.ram[t.ENEMY_TYPE + 6], game.ram[t.ENEMY_TYPE + 5]) == (0, t.INCREASING)


def test_a_tanker_that_splits_by_itself_releases_straight_flippers():
    """13.19."""
    game = quiet_game(2)
    place(game, 6, t.TANKER, 5, 0x20, info=0x41)
    game.tick()
    ram = game.ram
    assert active(game) == [5, 6]
    assert ram[t.ENEMY_SCRIPT + 6] == 0x07  # its own slot does not move again
    assert ram[t.ENEMY_DEPTH + 6] == 0x1E
    assert ram[t.ENEMY_SCRIPT + 5] == 0x09  # a lower slot has run in the same tick
    assert score(game) == 0
    assert list(ram[t.TYPE_COUNT : t.TYPE_COUNT + 3]) == [2, 0, 0]
    assert ram[t.IN_TUBE] == 2


def test_a_tanker_shot_far_out_releases_flippers_of_the_level():
    """13.19."""
    game = quiet_game(2)
    place(game, 6, t.TANKER, 5, 0x80, info=0x41)
    place_player_shot(game, 5, 0x78)
    game.tick()
    assert [game.ram[t.ENEMY_SCRIPT + slot] for slot in active(game)] == [0x0B, 0x0B]


def test_a_spiker_grows_its_spike_turns_and_moves_to_the_shortest_spike():
    """4.9."""
    stream = Bytes(9)
    game = quiet_game(4, stream)
    ram = game.ram
    for lane in range(16):
        ram[t.SPIKE + lane] = 0x90
    ram[t.SPIKE + 3] = 0
    ram[t.SPIKE + 12] = 0
    ram[t.SPIKE + 7] = 0x21
    place(game, 6, t.SPIKER, 7, 0x20, script=0x00)
    game.tick()
    assert ram[t.SPIKE + 7] == 0x1E
    assert ram[t.ENEMY_DEPTH + 6] == 0x20
    assert ram[t.ENEMY_INFO + 6] == t.MOVING_AWAY
    ram[t.ENEMY_DEPTH + 6] = 0xEF
    game.tick()
    assert stream.drawn == 1
    assert ram[t.ENEMY_LANE + 6] == 12  # starting at 9 and going down, 12 is visited after 3
    assert (ram[t.ENEMY_EDGE + 6], ram[t.ENEMY_DEPTH + 6], ram[t.ENEMY_INFO + 6]) == (13, 0xF0, 0)
    assert ram[t.TYPE_ROOM + t.SPIKER] == 0xFF


def test_the_last_spikers_turn_into_tankers():
    """4.9."""
    game = quiet_game(4)
    game.ram[t.NYMPHS_LEFT] = 0
    place(game, 6, t.SPIKER, 7, 0xEF, script=0x05, info=t.MOVING_AWAY | t.MAY_SHOOT)
    game.tick()
    assert game.ram[t.ENEMY_TYPE + 6] == t.TANKER
    assert game.ram[t.ENEMY_INFO + 6] == t.MAY_SHOOT | 1
    assert game.ram[t.ENEMY_SCRIPT + 6] == 0x09
    assert game.ram[t.ENEMY_DEPTH + 6] == 0xEF  # one climb from $F0, with the fraction of the way down
    assert game.ram[t.TYPE_COUNT + t.SPIKER] == 1


def trace(game: ReferenceGame, ticks: int) -> list[tuple[int, bool]]:
    """(resume point, moved along the tube) of the enemy in slot 6 after each tick."""
    rows = []
    for _ in range(ticks):
        before = game.ram[t.ENEMY_DEPTH + 6] * 256 + game.ram[t.ENEMY_FRAC + 6]
        game.tick()
        after = game.ram[t.ENEMY_DEPTH + 6] * 256 + game.ram[t.ENEMY_FRAC + 6]
        rows.append((game.ram[t.ENEMY_SCRIPT + 6], after != before))
    return rows


def test_a_spiralling_flipper_climbs_twice_when_a_flip_ends():
    """4.6, entry $19."""
    game = quiet_game(1)
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x19)
    rows = trace(game, 9)
    assert rows == [(0x1B, True), (0x1D, False), *[(0x1D, True)] * 6, (0x1B, True)]
    assert (0xE000 - game.ram[t.ENEMY_DEPTH + 6] * 256 - game.ram[t.ENEMY_FRAC + 6]) == 9 * 0x160


def test_a_zigzagging_flipper_goes_two_lanes_out_and_three_back():
    """4.6, entry $24."""
    game = quiet_game(1)
    place(game, 6, t.FLIPPER, 8, 0xF0, script=0x24)
    lanes: list[int] = []
    for _ in range(1 + 5 * 8 + 1):
        game.tick()
        lane = game.ram[t.ENEMY_LANE + 6]
        if not game.is_flipping(6) and (not lanes or lanes[-1] != lane):
            lanes.append(lane)
    assert lanes == [8, 7, 6, 7, 8, 9]
    assert game.ram[t.ENEMY_SCRIPT + 6] == 0x26
    assert not game.is_increasing(6)


def test_a_spike_rider_leaves_its_lane_at_the_tip():
    """4.6, entry $53."""
    game = quiet_game(1)
    game.ram[t.SPIKE + 5] = 0xDE
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x53)
    rows = trace(game, 11)
    # $E0, $DE.A0, $DD.40: the second climb is past the tip ($DE is not below $DE).
    assert rows[:4] == [(0x54, False), (0x5A, True), (0x5F, True), (0x5F, False)]
    assert rows[4:8] == [(0x5F, False)] * 4
    assert rows[8] == (0x54, False)


def test_an_evader_flips_away_and_climbs_four_ticks():
    """4.6, entry $87."""
    game = quiet_game(1)
    put_player(game, 8)
    place(game, 6, t.FLIPPER, 5, 0xE0, script=0x87)
    rows = trace(game, 12)
    assert rows == [(0x8B, False), *[(0x8B, True)] * 6, (0x93, True), *[(0x93, True)] * 3, (0x8B, True)]
    assert game.ram[t.ENEMY_LANE + 6] == 4


# --- Pulsars ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "period", "live"), [(17, 40, 7), (49, 28, 5), (65, 20, 3)])
def test_the_pulse_has_its_documented_period(level: int, period: int, live: int):
    """13.31."""
    game = quiet_game(level)
    phases = []
    for _ in range(2 * period):
        game.tick()
        phases.append(t.signed8(game.ram[t.PULSE_PHASE]))
    assert phases[:period] == phases[period:]
    assert sum(phase >= 0 for phase in phases[:period]) == live
    if level == 17:
        assert phases[:8] == [3, 7, 11, 15, 11, 7, 3, -1]


@pytest.mark.parametrize(("depth", "fraction", "dies"), [(0xA0, 0xFF, True), (0xA1, 0xFF, False)])
def test_a_pulse_kills_only_nearer_than_the_lethal_depth(depth: int, fraction: int, dies: bool):
    """13.32."""
    game = quiet_game(17)
    game.ram[t.PULSE_PHASE] = 3
    place(game, 6, t.PULSAR, 15, depth, script=0x76)
    game.ram[t.ENEMY_COUNTER + 6] = 20
    game.ram[t.ENEMY_FRAC + 6] = fraction
    game.ram[t.SPEED_HI], game.ram[t.SPEED_LO] = 0xFE, 0xA0
    game.tick()
    assert game.ram[t.ENEMY_DEPTH + 6] == depth - 1
    assert (game.ram[t.PLAYER_EDGE] == t.BLOWN_UP) == dies


def test_a_pulsar_bounces_off_the_rim_while_nymphs_are_left():
    """13.33."""
    game = quiet_game(17)
    put_player(game, 12)
    place(game, 6, t.PULSAR, 4, 0x11, script=0x76)
    ram = game.ram
    ram[t.ENEMY_COUNTER + 6] = 200
    game.tick()
    assert ram[t.ENEMY_DEPTH + 6] == 0x10
    assert ram[t.ENEMY_INFO + 6] == t.MOVING_AWAY
    ticks = 0
    while ram[t.ENEMY_INFO + 6] & t.MOVING_AWAY:
        before = ram[t.ENEMY_DEPTH + 6] * 256 + ram[t.ENEMY_FRAC + 6]
        game.tick()
        assert ram[t.ENEMY_DEPTH + 6] * 256 + ram[t.ENEMY_FRAC + 6] == before + 0x160
        ticks += 1
    assert before >> 8 < 0xA0 <= ram[t.ENEMY_DEPTH + 6]
    assert ticks == 105


# --- Fuseballs --------------------------------------------------------------------------------------------------------


def test_a_fuseball_leap_lasts_27_ticks_and_crosses_one_lane():
    """13.34."""
    stream = Bytes(0xFF, 0x00)  # leap, with increasing line number
    game = quiet_game(11, stream)
    place(game, 6, t.FUSEBALL, 5, 0x68, script=0x61)
    game.tick()
    ram = game.ram
    assert ram[t.ENEMY_EDGE + 6] == 0x81
    start_depth = ram[t.ENEMY_DEPTH + 6]
    ticks = 0
    while ram[t.ENEMY_EDGE + 6] & 0x80:
        assert ram[t.ENEMY_DEPTH + 6] == start_depth
        assert ram[t.ENEMY_LANE + 6] == 5
        game.tick()
        ticks += 1
    assert ticks == 27
    assert (ram[t.ENEMY_LANE + 6], ram[t.ENEMY_EDGE + 6]) == (6, 0x20)
    assert ram[t.ENEMY_INFO + 6] == t.MOVING_AWAY


def test_a_fuseball_can_be_shot_only_while_it_leaps():
    """13.34, 7.1."""
    game = quiet_game(11)
    place(game, 6, t.FUSEBALL, 5, 0x60)
    place_player_shot(game, 5, 0x62)
    assert not game.shot_hits_enemy(7, 6)
    game.ram[t.ENEMY_EDGE + 6] = 0x83
    assert game.shot_hits_enemy(7, 6)
    game.ram[t.PSHOT_DEPTH + 7] = 0x66
    assert not game.shot_hits_enemy(7, 6)
    game.ram[t.ENEMY_DEPTH + 6] = game.ram[t.PSHOT_DEPTH + 7] = 0x10
    assert not game.shot_hits_enemy(7, 6)


@pytest.mark.parametrize(("byte", "points", "explosion"), [(0, 250, 2), (1, 500, 3), (2, 750, 4), (3, 250, 2)])
def test_a_shot_fuseball_is_worth_a_random_amount(byte: int, points: int, explosion: int):
    """13.48."""
    game = quiet_game(11, Bytes(byte))
    place(game, 6, t.FUSEBALL, 5, 0x60)
    game.ram[t.ENEMY_EDGE + 6] = 0x83
    place_player_shot(game, 5, 0x62)
    game.check_player_shots()
    assert score(game) == points
    assert game.ram[t.EXPL_TYPE + 7] == explosion


def test_a_fuseball_at_the_rim_kills_the_player_of_its_lane():
    """4.6."""
    game = quiet_game(33)
    put_player(game, 5)
    place(game, 6, t.FUSEBALL, 5, 0x10, script=0x6B)
    game.ram[t.ENEMY_COUNTER + 6] = 3
    game.tick()
    assert game.ram[t.PLAYER_EDGE] == t.BLOWN_UP


# --- Enemy fire -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_flight", "byte", "fires"), [(0, 0, True), (1, 0xDF, False), (1, 0xE0, True), (2, 0xEF, False), (2, 0xF0, True)]
)
def test_enemies_fire_with_the_documented_chance(in_flight: int, byte: int, fires: bool):
    """13.35."""
    game = quiet_game(5, Bytes(byte))
    place(game, 6, t.TANKER, 4, 0x80, info=t.MAY_SHOOT)
    for slot in range(in_flight):
        game.ram[t.ESHOT_DEPTH + slot] = 0xE0
    game.ram[t.ESHOT_COUNT] = in_flight
    game.enemies_fire()
    assert game.ram[t.ESHOT_COUNT] == in_flight + fires


def test_an_enemy_nearer_than_30_neither_fires_nor_draws():
    """13.35, 10.1."""
    stream = Bytes()
    game = quiet_game(5, stream)
    place(game, 6, t.TANKER, 4, 0x2F, info=t.MAY_SHOOT)
    game.enemies_fire()
    assert (game.ram[t.ESHOT_COUNT], stream.drawn) == (0, 0)


def test_an_enemy_fires_again_on_the_81st_tick_on_the_first_level():
    """13.36."""
    game = quiet_game(1)
    place(game, 6, t.TANKER, 4, 0xF0, info=t.MAY_SHOOT)
    game.enemies_fire()
    assert game.ram[t.ESHOT_COUNT] == 1
    game.clear_shots()
    for _ in range(80):
        game.enemies_fire()
    assert game.ram[t.ESHOT_COUNT] == 0
    game.enemies_fire()
    assert game.ram[t.ESHOT_COUNT] == 1


# --- Superzapper ------------------------------------------------------------------------------------------------------


def kill_ticks(game: ReferenceGame, ticks: int) -> list[tuple[int, int]]:
    """Press zap once, then run; (tick after the press, slot) of each kill."""
    game.tick(zap=True)
    kills = []
    for tick in range(1, ticks + 1):
        before = active(game)
        game.tick()
        kills += [(tick, slot) for slot in before if slot not in active(game)]
    return kills


def test_the_first_superzap_kills_seven_enemies_from_the_highest_slot_down():
    """13.26."""
    game = quiet_game(1)
    for slot in range(7):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    assert kill_ticks(game, 16) == [(3, 6), (5, 5), (7, 4), (9, 3), (11, 2), (13, 1), (15, 0)]
    assert game.ram[t.ZAP_TIMER] != 0
    game.tick()
    assert game.ram[t.ZAP_TIMER] == 0
    assert score(game) == 7 * 150


def test_a_superzap_with_a_steady_supply_stops_on_the_18th_tick():
    """13.26."""
    game = quiet_game(1)
    game.tick(zap=True)
    for tick in range(1, 19):
        for slot in range(7):
            game.ram[t.ENEMY_DEPTH + slot] = 0xE0
            game.ram[t.ENEMY_SCRIPT + slot] = 0x07
        game.tick()
        assert (game.ram[t.ZAP_TIMER] == 0) == (tick == 18)
    assert score(game) == 8 * 150


def test_the_second_superzap_kills_exactly_one_enemy():
    """13.27."""
    game = quiet_game(1)
    game.ram[t.ZAP_USES] = 1
    for slot in range(7):
        place(game, slot, t.FLIPPER, slot, 0xE0)
    assert kill_ticks(game, 3) == [(3, 6)]
    assert game.ram[t.ZAP_TIMER] == 4
    game.tick()
    assert game.ram[t.ZAP_TIMER] == 0
    assert kill_ticks(game, 20) == []  # a third press does nothing
    assert game.ram[t.ZAP_USES] == 2


def test_superzaps_are_counted_over_lives_but_not_over_levels():
    """13.28."""
    game = quiet_game(1)
    game.ram[t.ZAP_USES] = 1
    shoot_player(game)
    run_until(game, 0x04)
    assert game.ram[t.ZAP_USES] == 1
    game.clear(t.NYMPH_TIMER, t.NYMPHS)
    game.ram[t.NYMPHS_LEFT] = 0
    run_until(game, 0x18)
    assert game.ram[t.ZAP_USES] == 0


def test_a_superzapped_fuseball_is_worth_150():
    """13.48."""
    game = quiet_game(11)
    place(game, 6, t.FUSEBALL, 5, 0x60)
    game.zap_one_enemy()
    assert score(game) == 150


def test_a_shot_tanker_is_paid_as_its_piece_and_a_zapped_one_as_a_tanker():
    """13.50."""
    shot = quiet_game(5)
    place(shot, 6, t.TANKER, 5, 0x80, info=0x41)
    place_player_shot(shot, 5, 0x78)
    shot.tick()
    assert score(shot) == 150
    zapped = quiet_game(5)
    place(zapped, 6, t.TANKER, 5, 0x80, info=0x41)
    zapped.zap_one_enemy()
    assert score(zapped) == 100
    assert active(zapped) == []


# --- Death ------------------------------------------------------------------------------------------------------------


def test_a_death_by_a_shot_takes_59_ticks():
    """13.37."""
    game = quiet_game(1)
    shoot_player(game)
    depths = []
    for _ in range(34):
        game.tick()
        depths.append(game.ram[t.PLAYER_DEPTH])
    assert depths[18:20] == [0x10, 0x1F]
    assert game.ram[t.GAMESTATE] == 0x06
    assert run_until(game, 0x04) == 24  # D+58 ends the delay, D+59 plays
    assert game.ram[t.P1_LIVES] == 2


def test_a_grab_takes_44_ticks():
    """13.37."""
    game = quiet_game(1)
    place(game, 6, t.FLIPPER, 15, 0x11)
    game.tick()
    assert game.ram[t.PLAYER_EDGE] == t.GRABBED
    depths = []
    for _ in range(19):
        game.tick()
        depths.append(game.ram[t.PLAYER_DEPTH])
    assert depths[3:5] == [0x10, 0x1F]
    assert game.ram[t.GAMESTATE] == 0x06
    assert run_until(game, 0x04) == 24


@pytest.mark.parametrize(("waiting", "expected"), [(10, 13), (62, 63)])
def test_enemies_alive_at_a_death_become_nymphs_again(waiting: int, expected: int):
    """13.38."""
    game = quiet_game(1)
    game.ram[t.NYMPHS_LEFT] = waiting
    for slot in range(3):
        place(game, slot, t.FLIPPER, slot, 0x80)
    shoot_player(game)
    run_until(game, 0x06)
    assert game.ram[t.NYMPHS_LEFT] == expected


def test_the_last_fall_lasts_40_ticks():
    """13.39."""
    game = quiet_game(1, lives=1)
    place(game, 6, t.FLIPPER, 3, 0x10, script=0x46)
    shoot_player(game)
    for _ in range(19):
        game.tick()
    for step in range(1, 41):
        assert game.ram[t.GAMESTATE] == 0x04
        game.tick()
        assert (active(game) == []) == (step >= 15)
    assert game.ram[t.GAMESTATE] == 0x06
    assert game.ram[t.PLAYER_DEPTH] == 0x10
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x10


# --- Level end and zoom -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "delay"), [(t.FLIPPER, 5), (t.FUSEBALL, 10)])
def test_the_level_ends_when_the_last_explosion_has_burnt_out(kind: int, delay: int):
    """13.40."""
    game = quiet_game(1)
    game.ram[t.NYMPHS_LEFT] = 0
    place(game, 6, kind, 5, 0x80, script=0x6B if kind == t.FUSEBALL else 0x07)
    if kind == t.FUSEBALL:
        game.ram[t.ENEMY_EDGE + 6] = 0x83
        game.ram[t.ENEMY_COUNTER + 6] = 3
    place_player_shot(game, 5, 0x78)
    game.tick()
    assert active(game) == []
    assert run_until(game, 0x20) == delay


def finish_level(game: ReferenceGame) -> None:
    """End the level in the next tick."""
    game.clear(t.NYMPH_TIMER, t.NYMPHS)
    game.ram[t.NYMPHS_LEFT] = 0
    game.tick()


@pytest.mark.parametrize(
    ("level", "ticks"), [(1, 47), (2, 45), (4, 42), (9, 36), (12, 34), (13, 33), (64, 33), (65, 47), (77, 33)]
)
def test_the_zoom_takes_the_documented_number_of_ticks(level: int, ticks: int):
    """13.41."""
    game = quiet_game(level)
    finish_level(game)
    assert ticks_in(game, 0x20) == ticks
    assert game.ram[t.GAMESTATE] == 0x0E
    assert game.ram[t.PLAYER_DEPTH] == 0xFF


def test_a_spike_kills_only_when_the_player_is_beyond_its_tip():
    """13.42."""
    game = quiet_game(13)
    game.ram[t.SPIKE + 15] = 0x80
    finish_level(game)
    while not game.ram[t.PLAYER_EDGE] & 0x80:
        before = game.ram[t.PLAYER_DEPTH]
        game.tick()
    assert before <= 0x80 < game.ram[t.PLAYER_DEPTH]
    survivor = quiet_game(13)
    finish_level(survivor)
    survivor.ram[t.SPIKE + 15] = 0x12  # the first step is exactly 2 units
    survivor.tick()
    assert survivor.ram[t.PLAYER_DEPTH] == 0x12
    assert survivor.player_alive()
    survivor.tick()
    assert not survivor.player_alive()


@pytest.mark.parametrize("level", range(1, 17))
def test_the_spike_warning_is_shown_on_levels_4_to_7_only(level: int):
    """13.43."""
    game = ReferenceGame(random_bytes(1))
    game.start_at(level)
    finish_level(game)
    ram = game.ram
    if 4 <= level <= 7:
        assert (ram[t.GAMESTATE], ram[t.COUNTDOWN], ram[t.NEXT_STATE], ram[t.SPIKE_WARNING]) == (0x0A, 30, 0x20, 0x80)
    else:
        assert (ram[t.GAMESTATE], ram[t.SPIKE_WARNING]) == (0x20, 16 if level > 3 else 0)


@pytest.mark.parametrize(("level", "ticks"), [(16, 63), (10, 64), (1, 63), (13, 64)])
def test_the_zoom_in_takes_63_or_64_ticks(level: int, ticks: int):
    """13.44."""
    game = quiet_game(level)
    finish_level(game)
    run_until(game, 0x18)
    assert ticks_in(game, 0x18) == ticks
    assert game.ram[t.GAMESTATE] == 0x04
    assert game.ram[t.EYE_LO] == game.ram[t.EYE_DEST_LO]


def test_the_start_bonus_is_paid_once_with_one_life():
    """13.45."""
    game = ReferenceGame(random_bytes(1))
    game.start_at(9, 4)
    for level in (9, 10):
        game.clear(t.SPIKE, t.LANES)
        finish_level(game)
        run_until(game, 0x18)
        assert score(game) == 54000
        assert game.ram[t.P1_LIVES] == 4
        assert game.ram[t.P1_LEVEL] == level
        run_until(game, 0x04)
        assert game.ram[t.START_CHOICE] == 0


def test_extra_lives_come_at_the_interval_and_never_exceed_six():
    """13.46."""
    game = quiet_game(1)
    ram = game.ram
    ram[t.SCORE : t.SCORE + 3] = bytes((0x99, 0x99, 0x00))
    game.add_score(0x01, 0, 0)
    assert (score(game), ram[t.P1_LIVES]) == (10000, 3)
    ram[t.SCORE : t.SCORE + 3] = bytes((0x99, 0x99, 0x01))
    game.add_score(0x01, 0, 0)
    assert (score(game), ram[t.P1_LIVES]) == (20000, 4)
    ram[t.P1_LIVES] = 6
    ram[t.SCORE : t.SCORE + 3] = bytes((0x99, 0x99, 0x99))
    game.add_score(0x01, 0, 0)
    assert (score(game), ram[t.P1_LIVES]) == (0, 6)


@pytest.mark.parametrize(
    ("interval", "before", "amount", "lives"),
    [(0, 9999, 1, 3), (1, 9999, 1, 4), (3, 29999, 1, 4), (3, 19999, 1, 3), (7, 10000, 54000, 3), (7, 16000, 54000, 4)],
)
def test_the_extra_life_rule_follows_the_interval(interval: int, before: int, amount: int, lives: int):
    """8.3."""
    game = quiet_game(1, bonus=interval)
    game.ram[t.SCORE : t.SCORE + 3] = bytes(t.bcd_bytes(before))
    game.add_score(*t.bcd_bytes(amount))
    assert game.ram[t.P1_LIVES] == lives


# --- Menus, attract and high scores -----------------------------------------------------------------------------------


def selecting_game(**options: bool) -> ReferenceGame:
    """Power on, wait a tick for the free credits, press start."""
    game = ReferenceGame(random_bytes(5), free_play=True, **options)
    game.tick()
    game.tick(start=True)
    assert (game.ram[t.GAMESTATE], game.ram[t.GAME_MODE]) == (0x00, 0xC0)
    return game


def test_the_level_selection_ends_by_itself_after_231_ticks():
    """13.47."""
    game = selecting_game()
    assert run_until(game, 0x02) == 231
    assert (game.ram[t.P1_LEVEL], game.ram[t.START_CHOICE], game.ram[t.P1_LIVES]) == (0, 0, 3)
    assert run_until(game, 0x04) == 22  # 2.4: S+23 is the first playing tick


def test_32_spinner_counts_move_the_cursor_by_one():
    """2.6, section 11."""
    game = selecting_game()
    cursors = []
    for spinner in (0, 31, 1, 32, 32, 32, 32, -1, -32, 64):
        game.tick(spinner=spinner)
        cursors.append(game.ram[t.PLAYER_LANE])
    # 64 counts are 512, which is 0 modulo 256: no movement at all.
    assert cursors == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]


def test_the_chosen_level_is_the_one_under_the_cursor():
    """2.6, section 11."""
    game = selecting_game(demo=True)
    game.tick()
    assert game.ram[t.MAX_CHOICE] == 27
    for _ in range(4 * 27 - 1):
        game.tick(spinner=8)
    game.tick(spinner=8, fire=True)
    assert (game.ram[t.GAMESTATE], game.ram[t.START_CHOICE], game.ram[t.P1_LEVEL]) == (0x02, 27, 80)
    assert game.ram[t.NYMPHS_LEFT] == 43


def test_the_highest_choice_follows_the_best_level_and_the_rating():
    """Section 11."""
    game = ReferenceGame(Bytes(), rating=True)
    assert game.highest_choice() == 4
    game.ram[t.HIGH_SCORES + 23] = 0x50
    assert game.highest_choice() == 6
    game.ram[t.BEST_LEVEL] = 97
    assert game.highest_choice() == 27
    game.ram[t.BEST_LEVEL] = 20
    assert game.highest_choice() == 9


def test_start_ends_the_level_in_the_demo_combination_and_keeps_the_shots():
    """Section 9."""
    game = ReferenceGame(random_bytes(1), free_play=True, demo=True)
    game.start_at(1)
    game.tick(fire=True)
    game.tick(start=True)
    assert game.ram[t.GAMESTATE] == 0x20
    assert game.ram[t.PSHOT_COUNT] == 1


def test_attract_plays_without_scoring_and_comes_round_again():
    """2.3, 3.9."""
    game = ReferenceGame(random_bytes(8))
    seen: list[int] = []
    for _ in range(12000):
        game.tick()
        assert score(game) == 0
        assert game.ram[t.ZAP_USES] == 0
        if not seen or seen[-1] != game.ram[t.GAMESTATE]:
            seen.append(game.ram[t.GAMESTATE])
    first_table = seen.index(0x14)
    assert seen[:4] == [0x02, 0x1E, 0x0A, 0x04]
    assert seen[first_table : first_table + 6] == [0x14, 0x0A, 0x1A, 0x0A, 0x00, 0x02]


def test_turning_the_spinner_in_attract_shows_the_press_start_screen():
    """2.5."""
    game = ReferenceGame(random_bytes(8), free_play=True)
    for _ in range(50):
        game.tick()
    game.tick(spinner=3)
    ram = game.ram
    assert (ram[t.GAMESTATE], ram[t.COUNTDOWN], ram[t.NEXT_STATE], ram[t.SPINNER]) == (0x0A, 32, 0x14, 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_high_score_is_entered_after_the_explosion(seed: int):
    """2.3, states $10, $24, $12, $14."""
    game = ReferenceGame(random_bytes(seed))
    game.start_at(20)
    ram = game.ram
    ram[t.SCORE : t.SCORE + 3] = bytes((0x50, 0x34, 0x12))
    ram[t.P1_LIVES] = 1
    ram[t.GAMESTATE] = 0x06
    game.tick()
    assert (ram[t.GAMESTATE], ram[t.BEST_LEVEL]) == (0x10, 18)
    game.tick()
    assert (ram[t.GAMESTATE], ram[t.GAME_MODE], ram[t.HIGH_SCORE_RANK]) == (0x24, 0x80, 1)
    assert game.score_at(t.HIGH_SCORES + 21) == 123450
    assert game.score_at(t.HIGH_SCORES + 18) == 10101
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


def test_equal_scores_stay_above_a_new_one():
    """State $10."""
    game = ReferenceGame(Bytes())
    game.start_at(1)
    for i, entry in enumerate((100, 200, 300, 400, 500, 600, 700, 800)):
        game.ram[t.HIGH_SCORES + 3 * i : t.HIGH_SCORES + 3 * i + 3] = bytes(t.bcd_bytes(entry))
    game.ram[t.SCORE : t.SCORE + 3] = bytes(t.bcd_bytes(400))
    game.ram[t.GAMESTATE] = 0x10
    game.tick()
    assert [game.score_at(t.HIGH_SCORES + 3 * i) for i in range(8)] == [200, 300, 400, 400, 500, 600, 700, 800]
    assert game.ram[t.HIGH_SCORE_RANK] == 6


def test_a_score_equal_to_the_last_entry_does_not_qualify():
    """State $10, section 11."""
    game = ReferenceGame(Bytes())
    game.start_at(1)
    game.ram[t.SCORE : t.SCORE + 3] = bytes((1, 1, 1))
    game.ram[t.GAMESTATE] = 0x10
    game.tick()
    assert game.ram[t.GAMESTATE] == 0x14


@pytest.mark.parametrize("level", [1, 9, 20, 35, 50, 66, 99])
def test_the_counters_agree_with_the_slots_in_long_play(level: int):
    """4.2 step 1: the sums stay right in spite of drifting counters."""
    game = ReferenceGame(random_bytes(level), difficulty=level % 3)
    game.start_at(level)
    ram = game.ram
    for tick in range(1500):
        game.tick(fire=tick % 3 != 0, zap=tick % 400 == 0, spinner=(tick * 7) % 41 - 20)
        if ram[t.GAMESTATE] != 0x04:
            continue
        assert sum(1 for slot in range(t.PSHOTS) if ram[t.PSHOT_DEPTH + slot]) == ram[t.PSHOT_COUNT]
        assert sum(1 for slot in range(t.ESHOTS) if ram[t.ESHOT_DEPTH + slot]) == ram[t.ESHOT_COUNT]
        if game.player_alive():
            assert len(active(game)) == game.enemies_alive() == sum(ram[t.TYPE_COUNT : t.TYPE_COUNT + 5]) & 0xFF


def test_the_compared_bytes_are_distinct_addresses_of_the_image():
    assert len(set(t.COMPARED)) == len(t.COMPARED)
    assert max(t.COMPARED) < 2048
