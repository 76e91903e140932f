"""The teacher: its rules case by case, on the product and on its plain twin, and both on thousands of images."""

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from protege.games.tempest.task import teacher
from protege.games.tempest.task.actions import ACTIONS, SPINNER_LEVELS
from tests.games.tempest.task import reference as reference
from tests.games.tempest.task.scenes import (
    A1,
    A2,
    A3,
    AGENTS,
    FLIPPER,
    FUSEBALL,
    PULSAR,
    RULES,
    SPIKER,
    TANKER,
    Product,
    Twin,
    image,
    played_images,
    random_images,
    scene,
)

AS_RUN = ("era", "newer")
CROWD_ZAPPERS = ("meet", "era")


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


@pytest.fixture
def target(agent):
    """The target lane of advice that must not zap."""

    def ask(memory, rules="meet"):
        advice = agent.advice(memory, rules)
        assert (advice.fire, advice.zap) == (True, False)
        return advice.lane

    return ask


@pytest.fixture
def zap_and_cooldown(agent):
    def ask(memory, rules, cooldown=0):
        advice = agent.advice(memory, rules, cooldown=cooldown)
        return advice.zap, advice.cooldown

    return ask


@pytest.mark.parametrize(("vector", "lane"), [(A1, 0), (A2, 14), (A3, 6)], ids=["A.1", "A.2", "A.3"])
def test_the_conformance_vectors_have_their_targets(target, vector, lane):
    assert target(vector, "newer") == lane


def test_fire_is_one_number_below_the_probability(agent):
    for memory in (scene(5), A3, scene(5, (FLIPPER, 5, 0x20)), image()):
        assert agent.advice(memory, "meet", number=0.9499).fire
        assert not agent.advice(memory, "newer", number=0.95).fire


def test_rule_1_zoom_prefers_no_spike_then_short_then_near_then_low_lanes(target):
    all_spikes = "00=20 200=05 " + " ".join(f"{0x3AC + i:X}=80" for i in range(16))
    assert target(image(all_spikes)) == 5
    assert target(image(all_spikes + " 3AF=00 3B3=00")) == 3  # lanes 3 and 7 are as near: the scan meets 3 first
    assert target(image(all_spikes + " 3AE=00 3B3=00")) == 7
    assert target(image(all_spikes + " 3AC=F0 3B2=C0")) == 0  # the shorter spike, though farther
    assert target(image(all_spikes + " 3BB=FF 3B2=FE")) == 15  # a tip at 255 has no length
    assert target(image(all_spikes + " 3B9=F0")) == 13  # opposite, distance 8


def test_rule_1_zoom_never_aims_at_lane_15_of_an_open_tube(target):
    spikes = "00=20 111=FF 200=0E " + " ".join(f"{0x3AC + i:X}=80" for i in range(15))
    assert target(image(spikes)) == 14  # lane 15 is free of spikes and is no lane
    assert target(image(spikes + " 200=0F")) == 14
    assert target(image(spikes + " 200=00 3B9=00")) == 13


def test_rule_2_takes_the_nearest_and_on_ties_enemies_before_shots(target):
    assert target(scene(5, (FLIPPER, 6, 0x60))) == 4
    assert target(scene(5, (FLIPPER, 4, 0x60))) == 6
    assert target(scene(5, (FLIPPER, 5, 0x60))) == 4
    assert target(scene(5, (FLIPPER, 7, 0x60), (PULSAR, 4, 0x60))) == 6
    assert target(scene(5, (FLIPPER, 6, 0x60), shots=((4, 0x60),))) == 4
    assert target(scene(5, shots=((4, 0x60), (6, 0x20)))) == 6
    assert target(scene(5, (TANKER, 6, 0x20))) == 6  # tankers are no threat but prey
    assert target(scene(5, (FLIPPER, 6, 0x61), shots=((6, 0x61),))) == 6  # too deep to flee from, so hunted


def test_rule_2_measures_riders_between_lanes(agent, target):
    # A rider three eighths of the way from lane 7 to lane 6 is 1.625 lanes off; deeper it would count as 2.
    for depth in (0x10, 0x11):
        ram = scene(5, (0x80, 7, depth), more="2CC=83")
        assert (target(ram, "meet"), target(ram, "newer")) == (4, 7)
    # The rider at -0.5 is nearer than the shot at -1 and than the flipper still in the tube at +1.
    ram = scene(5, (FLIPPER, 6, 0x20), (0x80, 5, 0x10), more="2CD=84")
    assert agent.fractional_lane(ram, 1) == -0.5
    assert target(ram) == 6
    # Turned away from lane 3 by half, a rider stands at 2.5 to the minus side and is no threat.
    assert target(scene(5, (0x80, 3, 0x10), (TANKER, 9, 0x80), more="2CC=84")) == 3


def test_rule_2_newer_ignores_pulsars_while_enemies_are_pending(target):
    ram = scene(5, (PULSAR, 6, 0x20))
    assert target(ram, "newer") == 5
    assert target(ram, "era") == 4
    ram[0x3AB] = 0
    assert target(ram, "newer") == 4
    ram[0x2B9] = 7
    assert (target(ram, "newer"), target(ram, "era")) == (5, 4)  # safe distance 1 against 2


def test_rule_3_wraps_on_closed_tubes_and_turns_at_open_ends(target):
    assert target(scene(0, (FLIPPER, 1, 0x20))) == 15
    assert target(scene(15, (FLIPPER, 14, 0x20))) == 0
    assert target(scene(0, (FLIPPER, 1, 0x20), on_open=True)) == 1
    assert target(scene(14, (FLIPPER, 13, 0x20), on_open=True)) == 13
    assert target(scene(15, (FLIPPER, 14, 0x20), on_open=True)) == 14
    assert target(scene(0, (FLIPPER, 15, 0x20), on_open=True)) == 14  # far away on an open tube: hunted, no lane 15


def test_rule_3_applies_in_every_state_but_zoom(target):
    assert target(scene(5, (FLIPPER, 6, 0x20), more="00=06")) == 4
    assert target(scene(5, (FLIPPER, 6, 0x20), more="00=20")) == 5


def test_rule_4_stays_when_not_playing(target):
    ram = scene(5, (TANKER, 9, 0x20), (TANKER, 9, 0x20), (TANKER, 9, 0x20), more="00=18 3AA=00")
    assert target(ram) == 5
    assert target(scene(15, on_open=True, more="00=18")) == 14


def test_rule_5_meet_runs_three_lanes(target):
    assert target(scene(5, (FUSEBALL, 5, 0x40))) == 8
    assert target(scene(5, (FUSEBALL, 3, 0x40))) == 8
    assert target(scene(5, (FUSEBALL, 7, 0x40))) == 2
    assert target(scene(1, (FUSEBALL, 3, 0x40))) == 14
    assert target(scene(5, (FUSEBALL, 8, 0x40))) == 8  # three lanes off: hunted
    assert target(scene(5, (FUSEBALL, 7, 0x41))) == 7  # too deep: hunted
    assert target(scene(5, (FUSEBALL, 7, 0x40), (FUSEBALL, 4, 0x40))) == 8  # the nearest counts
    assert target(scene(5, (FUSEBALL, 6, 0x40), (FUSEBALL, 4, 0x40))) == 2  # the first of equals
    assert target(scene(5, (FUSEBALL, 6, 0x40), more="28A=80")) == 2  # moving away or not


def test_rule_5_meet_at_open_ends(target):
    for lane, fuseball, expected in ((13, 12, 14), (14, 13, 11), (12, 12, 14), (1, 2, 0), (0, 1, 3), (15, 14, 12)):
        assert target(scene(lane, (FUSEBALL, fuseball, 0x20), on_open=True)) == expected


def test_rule_5_as_the_reference_runs_it(target):
    for rules in AS_RUN:
        for lane, fuseball, expected in ((5, 5, 6), (5, 4, 6), (5, 6, 4), (0, 1, 15), (5, 7, 7)):
            assert target(scene(lane, (FUSEBALL, fuseball, 0x50)), rules) == expected
        assert target(scene(14, (FUSEBALL, 14, 0x50), on_open=True), rules) == 13
        assert target(scene(0, (FUSEBALL, 1, 0x50), on_open=True), rules) == 1
        assert target(scene(5, (FUSEBALL, 6, 0x51)), rules) == 6
        assert target(scene(5, (FUSEBALL, 6, 0x50), more="28A=80"), rules) == 6


def test_rule_6_leaves_lanes_that_hold_a_pulsar_in_the_lethal_half(target):
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


def test_rule_6_comes_after_the_fuseball(target):
    assert target(scene(5, (PULSAR, 5, 0xC0), (FUSEBALL, 6, 0x40), more="148=01")) == 2


def test_rule_7_hunts_by_type_then_distance_then_depth_then_slot(target):
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


def test_rule_8_era_zaps_three_near_enemies_of_any_type(zap_and_cooldown):
    near = [(TANKER, 10, 0x60), (SPIKER, 11, 0x60), (FUSEBALL, 12, 0x60)]
    for rules in CROWD_ZAPPERS:
        for uses, count, expected in ((0, 3, 1), (1, 3, 1), (2, 3, 0), (0, 2, 0)):
            ram = scene(5, *near[:count], (TANKER, 9, 0x61), more=f"3AA={uses:02X}")
            assert zap_and_cooldown(ram, rules, 7) == (expected, 7)
    assert zap_and_cooldown(scene(5, *near, (FLIPPER, 6, 0x20), more="3AA=00"), "meet") == (0, 0)  # fleeing


def test_rule_8_newer_zaps_riders_or_the_last_enemies(zap_and_cooldown):
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


def test_rule_8_newer_cooldown_blocks_sixty_evaluations_that_reach_it(zap_and_cooldown):
    ready = scene(5, (TANKER, 9, 0x90), more="3AA=01 3AB=00")
    fleeing = scene(5, (FLIPPER, 6, 0x20), more="3AA=01 3AB=00")
    zap, cooldown = zap_and_cooldown(ready, "newer")
    assert (zap, cooldown) == (1, 60)
    assert zap_and_cooldown(fleeing, "newer", cooldown) == (0, 60)
    for left in range(59, -1, -1):
        zap, cooldown = zap_and_cooldown(ready, "newer", cooldown)
        assert (zap, cooldown) == (0, left)
    assert zap_and_cooldown(ready, "newer", cooldown) == (1, 60)


def test_spinner_commands_follow_the_table_and_quantise_to_twelve(agent):
    for distance, magnitude in enumerate((0, 11, 13, 14, 16, 18, 19, 21, 22, 24, 26, 27, 29, 29, 29, 29)):
        up = agent.spinner(scene(0, on_open=True), distance)
        down = agent.spinner(scene(distance, on_open=True), 0)
        assert (up, down) == (-magnitude, magnitude)
        assert (agent.quantised(up), agent.quantised(down)) == ((-12, 12) if distance else (0, 0))


def test_spinner_takes_the_shorter_way_round_a_closed_tube(agent):
    assert agent.spinner(scene(0), 15) == 11
    assert agent.spinner(scene(15), 0) == -11
    assert agent.spinner(scene(0), 8) == agent.spinner(scene(8), 0) == -22
    assert agent.spinner(scene(3), -1) == agent.spinner(scene(3, on_open=True), -32768) == 0


def test_the_twin_quantises_to_the_nearest_level():
    nearest = {0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 5: 6, 6: 6, 7: 6, 8: 9, 9: 9, 10: 9, 11: 12, 12: 12, 31: 12}
    for spinner, level in nearest.items():
        assert (Twin.quantised(spinner), Twin.quantised(-spinner)) == (level, -level)


def test_actions_are_buttons_times_spinner_levels():
    actions = [tuple(action) for action in ACTIONS.tolist()]
    assert len(actions) == len(set(actions)) == 44
    assert actions[0] == (0, 0, 0)
    assert actions[1 * 11 + 1] == (0, 1, 12)
    assert actions[2 * 11 + 6] == (1, 0, -1)
    assert actions[43] == (1, 1, -12)
    assert actions == list(reference.ACTIONS)
    assert SPINNER_LEVELS.tolist() == list(reference.SPINNER_LEVELS)


def compare_advice(memory: bytes, rules: reference.Rules, number: float, cooldown: int) -> None:
    expected = Twin.advice(memory, rules, number, cooldown)
    found = Product.advice(memory, rules, number, cooldown)
    assert found == expected
    assert Product.spinner(memory, found.lane) == Twin.spinner(memory, expected.lane)
    assert 0 <= found.lane <= (14 if memory[ram.OPEN] else 15)


@pytest.mark.parametrize("rules", RULES)
def test_product_and_twin_advise_alike_on_random_images_and_never_name_lane_15_of_an_open_tube(rules):
    dice = np.random.default_rng(4)
    for now, _ in random_images(seed=17, count=1500):
        compare_advice(now, rules, float(dice.random()), int(dice.integers(0, 3)))


@pytest.mark.parametrize("level", [1, 8, 17, 27, 43, 62, 80, 99])
def test_product_and_twin_advise_alike_in_real_games(level):
    for now, _, row in played_images(level, ticks=1500, every_nth=5):
        for rules in RULES:
            compare_advice(now, rules, 0.5, int(row[ram.TEACHER_COOLDOWN]))


def test_lane_15_of_an_open_tube_is_never_named_even_where_everything_else_is_noise():
    dice = np.random.default_rng(9)
    for _ in range(2000):
        row = dice.integers(0, 256, ram.ROW_BYTES).astype(np.uint8)
        row[ram.OPEN] = 0xFF
        row[ram.GAME_STATE] = dice.choice([ram.PLAYING, ram.ZOOM, ram.DELAY])
        for rules in teacher.RULE_SETS.values():
            assert 0 <= teacher.advise(row, rules)[0] <= 14
