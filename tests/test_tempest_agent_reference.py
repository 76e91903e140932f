"""The plain reference against the agent specification's conformance vectors and cases worked by hand."""

from collections.abc import Callable

import pytest

from tests import tempest_agent_reference as reference

A2 = (
    "00=04 04=12 05=C0 40=50 41=34 42=12 46=14 48=02 9F=14 B2=14 108=03 109=01 111=FF 125=FF 135=03 "
    "13D=01 142=02 143=01 144=01 147=F4 148=05 15D=3C 15F=40 161=80 165=FE 166=FF 169=F0 200=0F 202=10 283=C0 "
    "284=01 285=42 286=84 28A=40 28B=80 28C=42 2AD=0F 2AE=02 2B5=0E 2B9=0E 2BB=07 2BC=03 2CC=8D 2CF=81 2D3=40 "
    "2D4=80 2DB=30 2DF=10 2E0=58 2E1=90 2E2=30 2E6=40 3AA=01 3AB=06 3AC=80 3BA=20 3BB=FF "
) + " ".join(f"{0x3EE + i:X}={3 * i % 16:02X}" for i in range(16))
A2_PREVIOUS = A2 + " 40=00 200=0E 2B9=0D 2BB=06 2DF=18 2E1=98 2E2=00"
A3 = (
    "00=20 05=C0 46=03 48=05 9F=03 200=02 201=03 202=60 "
    + " ".join(f"{0x3AC + i:X}=90" for i in range(16))
    + " 3AE=40 3B2=00"
)

AS_RUN: tuple[reference.Rules, ...] = ("era", "newer")
CROWD_ZAPPERS: tuple[reference.Rules, ...] = ("meet", "era")
FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)
ABSENT = (*range(20, 28), *range(128, 135), *range(142, 149), *range(153, 157), *range(164, 178))


def image(listing: str = "") -> bytearray:
    """Memory that is zero except for the listed address=value pairs (hexadecimal); later pairs replace earlier ones."""
    ram = bytearray(0x800)
    for pair in listing.split():
        address, value = pair.split("=")
        ram[int(address, 16)] = int(value, 16)
    return ram


def scene(
    lane: int = 5,
    *enemies: tuple[int, int, int],
    shots: tuple[tuple[int, int], ...] = (),
    on_open: bool = False,
    more: str = "",
) -> bytearray:
    """Play with both zaps used: enemies are (type byte, lane, depth) from slot 0 up, shots (lane, depth)."""
    ram = image("00=04 3AA=02 3AB=05")
    ram[0x200], ram[0x111] = lane, 0xFF if on_open else 0
    for slot, (kind, enemy_lane, depth) in enumerate(enemies):
        ram[0x283 + slot], ram[0x2B9 + slot], ram[0x2DF + slot] = (kind, enemy_lane, depth)
    for slot, (shot_lane, depth) in enumerate(shots):
        ram[0x2B5 + slot], ram[0x2DB + slot] = shot_lane, depth
    for pair in more.split():
        address, value = pair.split("=")
        ram[int(address, 16)] = int(value, 16)
    return ram


def always(number: float) -> Callable[[], float]:
    return lambda: number


def target(ram: bytearray, rules: reference.Rules = "meet") -> int:
    """The target lane of advice that must not zap."""
    lane, fire, zap, _ = reference.advice(ram, rules, always(0.0), 0)
    assert (fire, zap) == (1, 0)
    return lane


def zap_and_cooldown(ram: bytearray, rules: reference.Rules, cooldown: int = 0) -> tuple[int, int]:
    return reference.advice(ram, rules, always(0.0), cooldown)[2:]


def test_vector_a1_all_memory_zero() -> None:
    expected = [0.0] * 195
    for index in (6, 11, 178, 179, 180):
        expected[index] = 1.0
    for index in ABSENT:
        expected[index] = -1.0
    assert reference.values(image(), None) == expected
    assert reference.rewards(image(), None) == (0.0, 0.0, False)
    assert reference.score(image()) == 0
    assert target(image(), "newer") == 0


def test_vector_a2_open_level() -> None:
    ram, previous = image(A2), image(A2_PREVIOUS)
    expected = [0.111111, 0.752941, 0.070588, 0.333333, 0.204082, 1, 1, 0, 0.062745, 0.5, 1, 0.625]
    expected += [0.25, 0.5] + 6 * [0.0] + [0, -0.866667] + 6 * [-1.0]
    expected += [0.204082, 1, 0.266667]
    expected += [0.498039] + 13 * [0.0] + [0.87451, 0]
    expected += [0, 0.2, 0.4, 0.6, 0.8, 1, 0.133333, 0.333333, 0.533333, 0.733333, 0.933333, 0.066667]
    expected += [0.266667, 0.466667, 0.666667, 0.866667]
    expected += [0.285714, 0.142857, 0.142857, 0, 0, 0.142857, 0, 0, 0, 0, 0.428571, 0.142857, 0.095238]
    expected += [0.5, -1, 0.019608, 0.444444, 0.25098, -0.2, -0.05, 0, 0, -1]
    expected += [0, 1, 1, 0, 1, 0, 0.142857, 0, 0, 1, 0, 0]
    expected += [0.285714, 1, 0, 0, 1, 0.666667, 0.571429, 0, 1, 0, 0, 0]
    expected += 18 * [0.0]
    expected += [-0.106667, -1, -0.533333, -0.8, -1, -1, -1]
    expected += [0.062745, 0.345098, 0.564706, 0.188235, 0, 0, 0]
    expected += [-0.106667] + 6 * [-1.0]
    expected += [0.188477, 0, 0, 0, -0.066667, -1, -1, -1]
    expected += [0, 0.345098] + 5 * [0.0] + 7 * [-1.0]
    expected += [-0.106667] + 6 * [-1.0]
    expected += [1, 0.062745, 1]
    expected += [0.125, 0, 0.125, 0, 0, 0, 0]
    expected += [-0.0625, 0, -0.0625, 0, 0, 0, 0]
    assert reference.values(ram, previous) == pytest.approx(expected, abs=5.1e-7)
    assert reference.rewards(ram, previous) == (50.0, 1.5, False)
    assert reference.score(ram) == 123450
    assert target(ram, "newer") == 14


def test_vector_a2_previous_tick_has_no_velocity_of_its_own() -> None:
    ram = image(A2_PREVIOUS)
    row = reference.values(ram, None)
    assert row[181:] == [0.0] * 14
    # The flipper of lane 13, seen from 14, is at (-1 + progress) - 1. It turns from angle[12] + 8 = 12 down to
    # angle[13] = 7, five steps; the angle byte says (12 - 13) mod 16 = 15 are done: limited to 1, it stands at -1.
    assert row[128] == reference.single(-1 / 15)
    assert row[179] == reference.single(24 / 255)  # the flipper at depth $18 in lane 13
    assert row[178] == reference.single(32 / 255)  # lane 14: spike tip $20 is nearer than the shot at $30
    assert row[180] == 1.0  # lane 15 exists here, its spike tip is at 255
    # Own lane 14 holds a shot, 15 is no lane, 13 a flipper, 12 nothing; standing still: (-2 - 1 + 0.5) / 2.
    assert reference.rewards(ram, None) == (0.0, -1.25, False)


def test_vector_a2_death_tick_drops_score_and_shaping() -> None:
    ram, previous = image(A2 + " 201=81"), image(A2)
    assert reference.rewards(ram, previous) == (-1000.0, 0.0, True)
    assert reference.values(ram, previous)[6:8] == [0.0, reference.single(1 / 15)]
    # Already dead: no second death, and shaping goes on, standing still.
    assert reference.rewards(ram, ram) == (0.0, 0.75, False)


def test_vector_a3_zoom_on_a_closed_level() -> None:
    ram = image(A3)
    expected = [0.0] * 195
    for index in ABSENT:
        expected[index] = -1.0
    listed = {0: 0.888889, 1: 0.752941, 3: 0.833333, 4: 0.030612, 28: 0.030612, 5: 0.133333, 6: 1, 7: 0.2}
    listed |= {8: 0.376471, 11: 1, 30: 0.2, 178: 0.25098, 179: 0.564706, 180: 0.564706}
    listed |= dict.fromkeys(range(31, 47), 0.435294) | {33: 0.74902, 37: 0}
    for index, value in listed.items():
        expected[index] = value
    assert reference.values(ram, image(A3)) == pytest.approx(expected, abs=5.1e-7)
    assert reference.rewards(ram, image(A3)) == (0.0, 2.5, False)
    assert target(ram, "newer") == 6


def test_the_opposite_lane_of_a_closed_tube_is_plus_eight_from_both_sides() -> None:
    assert reference.relative_segment(8, 0, False) == reference.relative_segment(0, 8, False) == 8
    assert reference.relative_segment(15, 0, False) == -1
    assert reference.relative_segment(15, 0, True) == 15


def test_a_flip_moves_the_segment_by_the_turned_part() -> None:
    # Flat tube: every angle 0, so a flip turns from 8 to 0 or from 0 to 8 and lasts 8 steps.
    falling = scene(5, (0x80, 7, 0x10), more="2CC=82")  # minus side: 2 of 8 done, from lane 7
    rising = scene(5, (0xC0, 7, 0x10), more="2CC=82")  # plus side: 6 of 8 done, from lane 6
    assert reference.fractional_segment(falling, 0) == 2 - 0.25
    assert reference.fractional_segment(rising, 0) == 1 + 0.75
    assert reference.fractional_segment(scene(5, (0x84, 7, 0x10), more="2CC=82"), 0) == 2  # fuseballs do not flip


def test_a_flip_of_no_turn_has_no_progress() -> None:
    # angle[6] + 8 equals angle[7]: nothing to turn.
    assert reference.fractional_segment(scene(5, (0x80, 7, 0x10), more="3F4=01 3F5=09 2CC=83"), 0) == 2
    assert reference.fractional_segment(scene(5, (0xC0, 7, 0x10), more="3F4=01 3F5=09 2CC=83"), 0) == 1


def test_a_flip_past_the_far_side_keeps_the_exact_minus_eight() -> None:
    # Lane 14 seen from 5 is -7; a flip to the plus side that has not begun stands one lane lower.
    ram = scene(5, (0xC0, 14, 0x10), more="2CC=88")
    assert reference.fractional_segment(ram, 0) == -8


def test_velocity_needs_play_the_same_type_and_both_ticks() -> None:
    now, before = scene(5, (0x40, 1, 0x40)), scene(5, (0x80, 15, 0x50))
    row = reference.values(now, before)
    assert (row[181], row[188]) == (2 / 8, -16 / 128)  # 15 -> 1 wraps to +2; direction bits do not matter
    for changed in ({0x00: 0x20}, {0x283: PULSAR}, {0x2DF: 0}):
        other = bytearray(now)
        for address, value in changed.items():
            other[address] = value
        assert reference.values(other, before)[181:] == [0.0] * 14
    assert reference.values(scene(5, (0, 0, 9)), scene(5, (0, 8, 9)))[181] == -1.0
    assert reference.values(scene(5, (0, 0, 9), on_open=True), scene(5, (0, 9, 9)))[181] == -1.0


def test_danger_takes_the_nearest_thing_of_each_lane() -> None:
    ram = scene(0, (TANKER, 15, 0x90), (SPIKER, 1, 0x80), shots=((15, 0x70), (1, 0x88)), more="3AC=30 3BB=60")
    assert reference.values(ram, None)[178:181] == [reference.single(x / 255) for x in (0x30, 0x60, 0x80)]
    ram[0x111] = 1
    assert reference.values(ram, None)[179] == 1.0  # no lane below 0 on an open tube


def test_fifteen_values_are_hidden_from_a_human() -> None:
    assert len(reference.VISIBLE_ONLY_HIDDEN) == len(set(reference.VISIBLE_ONLY_HIDDEN)) == 15
    assert (min(reference.VISIBLE_ONLY_HIDDEN), max(reference.VISIBLE_ONLY_HIDDEN)) == (68, 85)


def test_fire_is_one_draw_below_the_probability() -> None:
    for ram in (scene(5), image(A3), scene(5, (FLIPPER, 5, 0x20)), image()):
        draws = iter([0.9499, 0.5])
        assert reference.advice(ram, "meet", draws.__next__, 0)[1] == 1
        assert list(draws) == [0.5]
        assert reference.advice(ram, "newer", always(0.95), 0)[1] == 0


def test_rule_1_zoom_prefers_no_spike_then_short_then_near_then_low_lanes() -> None:
    all_spikes = "00=20 200=05 " + " ".join(f"{0x3AC + i:X}=80" for i in range(16))
    assert target(image(all_spikes)) == 5
    assert target(image(all_spikes + " 3AF=00 3B3=00")) == 3  # lanes 3 and 7 are as near: the scan meets 3 first
    assert target(image(all_spikes + " 3AE=00 3B3=00")) == 7
    assert target(image(all_spikes + " 3AC=F0 3B2=C0")) == 0  # the shorter spike, though farther
    assert target(image(all_spikes + " 3BB=FF 3B2=FE")) == 15  # a tip at 255 has no length
    assert target(image(all_spikes + " 3B9=F0")) == 13  # opposite, distance 8


def test_rule_1_zoom_never_aims_at_lane_15_of_an_open_tube() -> None:
    spikes = "00=20 111=FF 200=0E " + " ".join(f"{0x3AC + i:X}=80" for i in range(15))
    assert target(image(spikes)) == 14  # lane 15 is free of spikes and is no lane
    assert target(image(spikes + " 200=0F")) == 14
    assert target(image(spikes + " 200=00 3B9=00")) == 13


def test_rule_2_takes_the_nearest_and_on_ties_enemies_before_shots() -> None:
    assert target(scene(5, (FLIPPER, 6, 0x60))) == 4
    assert target(scene(5, (FLIPPER, 4, 0x60))) == 6
    assert target(scene(5, (FLIPPER, 5, 0x60))) == 4
    assert target(scene(5, (FLIPPER, 7, 0x60), (PULSAR, 4, 0x60))) == 6
    assert target(scene(5, (FLIPPER, 6, 0x60), shots=((4, 0x60),))) == 4
    assert target(scene(5, shots=((4, 0x60), (6, 0x20)))) == 6
    assert target(scene(5, (TANKER, 6, 0x20))) == 6  # tankers are no threat but prey
    assert target(scene(5, (FLIPPER, 6, 0x61), shots=((6, 0x61),))) == 6  # too deep to flee from, so hunted


def test_rule_2_measures_riders_between_lanes() -> None:
    # A rider three eighths of the way from lane 7 to lane 6 is 1.625 lanes off; deeper it would count as 2.
    for depth in (0x10, 0x11):
        ram = scene(5, (0x80, 7, depth), more="2CC=83")
        assert (target(ram, "meet"), target(ram, "newer")) == (4, 7)
    # The rider at -0.5 is nearer than the shot at -1 and than the flipper still in the tube at +1.
    ram = scene(5, (FLIPPER, 6, 0x20), (0x80, 5, 0x10), more="2CD=84")
    assert reference.fractional_segment(ram, 1) == -0.5
    assert target(ram) == 6
    # Turned away from lane 3 by half, a rider stands at 2.5 to the minus side and is no threat.
    assert target(scene(5, (0x80, 3, 0x10), (TANKER, 9, 0x80), more="2CC=84")) == 3


def test_rule_2_newer_ignores_pulsars_while_enemies_are_pending() -> None:
    ram = scene(5, (PULSAR, 6, 0x20))
    assert target(ram, "newer") == 5
    assert target(ram, "era") == 4
    ram[0x3AB] = 0
    assert target(ram, "newer") == 4
    ram[0x2B9] = 7
    assert (target(ram, "newer"), target(ram, "era")) == (5, 4)  # safe distance 1 against 2


def test_rule_3_wraps_on_closed_tubes_and_turns_at_open_ends() -> None:
    assert target(scene(0, (FLIPPER, 1, 0x20))) == 15
    assert target(scene(15, (FLIPPER, 14, 0x20))) == 0
    assert target(scene(0, (FLIPPER, 1, 0x20), on_open=True)) == 1
    assert target(scene(14, (FLIPPER, 13, 0x20), on_open=True)) == 13
    assert target(scene(15, (FLIPPER, 14, 0x20), on_open=True)) == 14
    assert target(scene(0, (FLIPPER, 15, 0x20), on_open=True)) == 14  # far away on an open tube: hunted, no lane 15


def test_rule_3_applies_in_every_state_but_zoom() -> None:
    assert target(scene(5, (FLIPPER, 6, 0x20), more="00=06")) == 4
    assert target(scene(5, (FLIPPER, 6, 0x20), more="00=20")) == 5


def test_rule_4_stays_when_not_playing() -> None:
    ram = scene(5, (TANKER, 9, 0x20), (TANKER, 9, 0x20), (TANKER, 9, 0x20), more="00=18 3AA=00")
    assert target(ram) == 5
    assert target(scene(15, on_open=True, more="00=18")) == 14


def test_rule_5_meet_runs_three_lanes() -> None:
    assert target(scene(5, (FUSEBALL, 5, 0x40))) == 8
    assert target(scene(5, (FUSEBALL, 3, 0x40))) == 8
    assert target(scene(5, (FUSEBALL, 7, 0x40))) == 2
    assert target(scene(1, (FUSEBALL, 3, 0x40))) == 14
    assert target(scene(5, (FUSEBALL, 8, 0x40))) == 8  # three lanes off: hunted
    assert target(scene(5, (FUSEBALL, 7, 0x41))) == 7  # too deep: hunted
    assert target(scene(5, (FUSEBALL, 7, 0x40), (FUSEBALL, 4, 0x40))) == 8  # the nearest counts
    assert target(scene(5, (FUSEBALL, 6, 0x40), (FUSEBALL, 4, 0x40))) == 2  # the first of equals
    assert target(scene(5, (FUSEBALL, 6, 0x40), more="28A=80")) == 2  # moving away or not


def test_rule_5_meet_at_open_ends() -> None:
    for lane, fuseball, expected in ((13, 12, 14), (14, 13, 11), (12, 12, 14), (1, 2, 0), (0, 1, 3), (15, 14, 12)):
        assert target(scene(lane, (FUSEBALL, fuseball, 0x20), on_open=True)) == expected


def test_rule_5_as_the_reference_runs_it() -> None:
    for rules in AS_RUN:
        for lane, fuseball, expected in ((5, 5, 6), (5, 4, 6), (5, 6, 4), (0, 1, 15), (5, 7, 7)):
            assert target(scene(lane, (FUSEBALL, fuseball, 0x50)), rules) == expected
        assert target(scene(14, (FUSEBALL, 14, 0x50), on_open=True), rules) == 13
        assert target(scene(0, (FUSEBALL, 1, 0x50), on_open=True), rules) == 1
        assert target(scene(5, (FUSEBALL, 6, 0x51)), rules) == 6
        assert target(scene(5, (FUSEBALL, 6, 0x50), more="28A=80"), rules) == 6


def test_rule_6_leaves_lanes_that_hold_a_pulsar_in_the_lethal_half() -> None:
    deep = (PULSAR, 5, 0xC0)
    for phase, expected in (("00", 5), ("01", 4), ("7F", 4), ("80", 5), ("FF", 5)):
        assert target(scene(5, deep, more=f"148={phase}")) == expected
    assert target(scene(5, deep, (PULSAR, 4, 0xC0), more="148=01")) == 6
    assert target(scene(5, deep, (PULSAR, 4, 0xC0), (PULSAR, 6, 0xC0), more="148=01")) == 3
    assert target(scene(5, (PULSAR, 4, 0xC0), more="148=01")) == 5  # not the own lane
    assert target(scene(0, (PULSAR, 0, 0xC0), more="148=01")) == 15
    assert target(scene(0, (PULSAR, 0, 0xC0), on_open=True, more="148=01")) == 1
    assert target(scene(14, (PULSAR, 14, 0xC0), (PULSAR, 13, 0xC0), on_open=True, more="148=01")) == 12
    assert target(scene(5, deep, more="148=01"), "era") == target(scene(5, deep, more="148=01"), "newer") == 5


def test_rule_6_comes_after_the_fuseball() -> None:
    assert target(scene(5, (PULSAR, 5, 0xC0), (FUSEBALL, 6, 0x40), more="148=01")) == 2


def test_rule_7_hunts_by_type_then_distance_then_depth_then_slot() -> None:
    flipper, tanker, spiker, fuseball = (
        (FLIPPER, 9, 0x90),
        (TANKER, 10, 0x90),
        (SPIKER, 11, 0x90),
        (FUSEBALL, 12, 0x90),
    )
    pulsar = (PULSAR, 4, 0x90)
    assert target(scene(5, pulsar, spiker, tanker, flipper, fuseball)) == 12
    assert target(scene(5, pulsar, spiker, tanker, flipper)) == 9
    assert target(scene(5, pulsar, spiker, tanker)) == 10
    assert target(scene(5, pulsar, spiker)) == 11
    assert target(scene(5, pulsar)) == 5
    assert target(scene(5, (TANKER, 8, 0x90), (TANKER, 3, 0xA0))) == 3
    assert target(scene(5, (TANKER, 8, 0x90), (TANKER, 2, 0x80))) == 2
    assert target(scene(5, (TANKER, 8, 0x90), (TANKER, 2, 0x90))) == 8
    assert target(scene(1, (TANKER, 14, 0x90), (TANKER, 5, 0x20))) == 14  # three lanes the shorter way round
    assert target(scene(1, (TANKER, 14, 0x90), (TANKER, 5, 0x20), on_open=True)) == 5
    assert target(scene(5, (SPIKER, 15, 0x90), on_open=True)) == 14
    assert target(scene(15, on_open=True)) == 14


def test_rule_8_era_zaps_three_near_enemies_of_any_type() -> None:
    near = [(TANKER, 10, 0x60), (SPIKER, 11, 0x60), (FUSEBALL, 12, 0x60)]
    for rules in CROWD_ZAPPERS:
        for uses, count, expected in ((0, 3, 1), (1, 3, 1), (2, 3, 0), (0, 2, 0)):
            ram = scene(5, *near[:count], (TANKER, 9, 0x61), more=f"3AA={uses:02X}")
            assert zap_and_cooldown(ram, rules, 7) == (expected, 7)
    assert zap_and_cooldown(scene(5, *near, (FLIPPER, 6, 0x20), more="3AA=00"), "meet") == (0, 0)  # fleeing


def test_rule_8_newer_zaps_riders_or_the_last_enemies() -> None:
    rider = (TANKER, 10, 0x10)
    for uses, riders, pending, expected in (
        (0, 3, 5, 1),
        (0, 2, 5, 0),
        (0, 0, 0, 1),
        (1, 1, 5, 1),
        (1, 0, 5, 0),
        (1, 0, 0, 1),
        (2, 3, 0, 0),
    ):
        ram = scene(5, (TANKER, 9, 0x11), *[rider] * riders, more=f"3AA={uses:02X} 3AB={pending:02X}")
        assert zap_and_cooldown(ram, "newer") == (expected, 60 * expected)
    assert zap_and_cooldown(scene(5, more="3AA=00 3AB=00"), "newer") == (0, 0)  # nobody there


def test_rule_8_newer_cooldown_blocks_sixty_evaluations_that_reach_it() -> None:
    ready = scene(5, (TANKER, 9, 0x90), more="3AA=01 3AB=00")
    fleeing = scene(5, (FLIPPER, 6, 0x20), more="3AA=01 3AB=00")
    zap, cooldown = zap_and_cooldown(ready, "newer")
    assert (zap, cooldown) == (1, 60)
    assert zap_and_cooldown(fleeing, "newer", cooldown) == (0, 60)
    for left in range(59, -1, -1):
        zap, cooldown = zap_and_cooldown(ready, "newer", cooldown)
        assert (zap, cooldown) == (0, left)
    assert zap_and_cooldown(ready, "newer", cooldown) == (1, 60)


def test_spinner_commands_follow_the_table_and_quantise_to_twelve() -> None:
    for distance, magnitude in enumerate((0, 11, 13, 14, 16, 18, 19, 21, 22, 24, 26, 27, 29, 29, 29, 29)):
        up, down = (reference.spinner_for(distance, 0, True), reference.spinner_for(0, distance, True))
        assert (up, down) == (-magnitude, magnitude)
        assert (reference.quantise(up), reference.quantise(down)) == ((-12, 12) if distance else (0, 0))


def test_spinner_takes_the_shorter_way_round_a_closed_tube() -> None:
    assert reference.spinner_for(15, 0, False) == 11
    assert reference.spinner_for(0, 15, False) == -11
    assert reference.spinner_for(8, 0, False) == reference.spinner_for(0, 8, False) == -22
    assert reference.spinner_for(-1, 3, False) == reference.spinner_for(-32768, 3, True) == 0


def test_quantise_goes_to_the_nearest_level() -> None:
    nearest = {0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 5: 6, 6: 6, 7: 6, 8: 9, 9: 9, 10: 9, 11: 12, 12: 12, 31: 12}
    for spinner, level in nearest.items():
        assert (reference.quantise(spinner), reference.quantise(-spinner)) == (level, -level)


def test_actions_are_buttons_times_spinner_levels() -> None:
    assert len(reference.ACTIONS) == len(set(reference.ACTIONS)) == 44
    assert reference.ACTIONS[0] == (0, 0, 0)
    assert reference.ACTIONS[1 * 11 + 1] == (0, 1, 12)
    assert reference.ACTIONS[2 * 11 + 6] == (1, 0, -1)
    assert reference.ACTIONS[43] == (1, 1, -12)


def test_objective_pays_points_below_a_thousand() -> None:
    for before, now, expected in (
        ("40=00 41=00", "40=50 41=01", 150.0),
        ("40=00 41=00", "40=99 41=09", 999.0),
        ("40=00 41=00", "40=00 41=10", 0.0),
        ("40=50 41=01", "40=00 41=00", 0.0),
        ("40=99 41=99 42=99", "40=50 41=00 42=00", 0.0),
        ("40=00", "40=AF", 99.0),
    ):
        assert reference.rewards(image(now), image(before)) == (expected, 0.0, False)


def test_newer_charges_an_early_zap() -> None:
    now, before = image("40=50 3AA=01 3AB=05"), image("3AA=00 3AB=05")
    assert reference.rewards(now, before) == (50.0, 0.0, False)
    assert reference.rewards(now, before, newer_start_nymphs=20) == (-200.0, 0.0, False)
    assert reference.rewards(now, before, newer_start_nymphs=0) == (50.0, 0.0, False)
    assert reference.rewards(now, now, newer_start_nymphs=20) == (0.0, 0.0, False)


def test_subjective_weighs_five_lanes_and_doubles_for_movement() -> None:
    before = scene(5)
    assert reference.rewards(scene(5), before)[1] == 2.5
    assert reference.rewards(scene(6), before)[1] == 5.0
    assert reference.rewards(scene(5, more="00=18"), before)[1] == 0.0
    assert reference.rewards(scene(5, (SPIKER, 5, 0x80)), before)[1] == (5 - 4) / 2
    assert reference.rewards(scene(5, (SPIKER, 5, 0x81), shots=((5, 0x81),)), before)[1] == 2.5
    assert reference.rewards(scene(5, (SPIKER, 3, 1), shots=((6, 0x80),)), before)[1] == (5 - 1 - 2) / 2
    every_lane = [(TANKER, lane, 0x20) for lane in range(3, 8)]
    assert reference.rewards(scene(5, *every_lane), before)[1] == -2.5
    assert reference.rewards(scene(0, (TANKER, 15, 0x20)), scene(0))[1] == (5 - 2) / 2


def test_subjective_skips_lanes_an_open_tube_does_not_have() -> None:
    for lane, safe in ((0, 3.5), (1, 4.5), (12, 5.0), (13, 4.5), (14, 3.5), (15, 3.5)):
        assert reference.rewards(scene(lane, on_open=True), None)[1] == safe / 2


def test_total_reward_is_scaled_and_clipped() -> None:
    assert reference.total_reward(150.0, 2.5) == pytest.approx(1.525)
    assert reference.total_reward(999.0, 5.0) == 10.0
    assert reference.total_reward(-1000.0, 0.0) == -10.0
