"""The 195 values: their names, the conformance vectors, and the product against its plain twin."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation
from protege.games.tempest.task.env import Games, starts
from tests.games.tempest.task import reference as reference
from tests.games.tempest.task.scenes import (
    A1,
    A2,
    A2_BEFORE,
    A2_DYING,
    A3,
    ABSENT,
    AGENTS,
    PULSAR,
    SPIKER,
    TANKER,
    Product,
    Twin,
    changed,
    observed,
    played_images,
    random_images,
    row_of,
    scene,
)

# First index -> names, as in the table of the agent specification; "#8" stands for the numbers 0 to 7.
TABLE = {
    0: "game_state game_mode countdown_timer p1_lives p1_level player_position player_alive player_state_low_nibble",
    8: "player_depth superzapper_uses superzapper_active player_shots_remaining",
    12: "player_shot_#8_depth",
    20: "player_shot_#8_rel_segment",
    28: "level_number level_is_open level_shape",
    31: "spike_height_#16",
    47: "tube_angle_#16",
    63: "active_flippers active_pulsars active_tankers active_spikers active_fuseballs",
    68: "spawn_slots_flippers spawn_slots_pulsars spawn_slots_tankers spawn_slots_spikers spawn_slots_fuseballs",
    73: "enemies_in_tube enemies_on_top enemies_pending pulsar_flip_rate pulse_beat pulsing_phase",
    79: "flipper_move_program fuseball_move_probability",
    81: "speed_flipper speed_pulsar speed_tanker speed_spiker speed_fuseball",
    **{
        86 + 6 * slot: " ".join(
            f"enemy_{slot}_{field}"
            for field in "type segment_increasing between_segments moving_away can_shoot split_kind".split()
        )
        for slot in range(7)
    },
    128: "enemy_#7_rel_segment",
    135: "enemy_#7_depth",
    142: "enemy_#7_rim_rel_segment",
    149: "enemy_shot_#4_depth",
    153: "enemy_shot_#4_rel_segment",
    157: "pulsar_#7_depth",
    164: "pulsar_#7_rel_segment",
    171: "top_rail_#7_rel_segment",
    178: "danger_own_lane danger_lane_minus_1 danger_lane_plus_1",
    181: "enemy_#7_delta_segment",
    188: "enemy_#7_delta_depth",
}


@pytest.fixture(params=AGENTS)
def agent(request):
    return request.param


def table_names(line: str) -> list[str]:
    counted = re.search(r"#(\d+)", line)
    return [line.replace(counted[0], str(i)) for i in range(int(counted[1]))] if counted else line.split()


# --- Names ------------------------------------------------------------------------------------------------------------


def test_there_are_195_names_and_they_are_those_of_the_table():
    assert len(observation.NAMES) == len(set(observation.NAMES)) == observation.VALUES == 195
    for first, line in TABLE.items():
        names = table_names(line)
        assert list(observation.NAMES[first : first + len(names)]) == names, first
    assert sum(len(table_names(line)) for line in TABLE.values()) == 195


@pytest.mark.parametrize(
    ("part", "pattern"),
    [
        ("SHOT_DEPTHS", r"player_shot_\d_depth"),
        ("SHOT_LANES", r"player_shot_\d_rel_segment"),
        ("SPIKES", r"spike_height_\d+"),
        ("ANGLES", r"tube_angle_\d+"),
        ("ENEMY_LANES", r"enemy_\d_rel_segment"),
        ("ENEMY_DEPTHS", r"enemy_\d_depth"),
        ("RIM_LANES", r"enemy_\d_rim_rel_segment"),
        ("ENEMY_SHOT_DEPTHS", r"enemy_shot_\d_depth"),
        ("ENEMY_SHOT_LANES", r"enemy_shot_\d_rel_segment"),
        ("PULSAR_LANES", r"pulsar_\d_rel_segment"),
        ("TOP_RAIL_LANES", r"top_rail_\d_rel_segment"),
        ("LANE_MOTION", r"enemy_\d_delta_segment"),
        ("DEPTH_MOTION", r"enemy_\d_delta_depth"),
        ("DANGER", r"danger_\w+"),
        ("ENEMY_SLOTS", r"enemy_\d_(type|segment_increasing|between_segments|moving_away|can_shoot|split_kind)"),
    ],
)
def test_a_named_slice_holds_exactly_its_values(part, pattern):
    inside = observation.NAMES[getattr(observation, part)]
    assert list(inside) == [name for name in observation.NAMES if re.fullmatch(pattern, name)]


@pytest.mark.parametrize(
    ("index", "name"),
    [
        ("GAME_STATE", "game_state"),
        ("LIVES", "p1_lives"),
        ("PLAYER_LANE", "player_position"),
        ("PLAYER_ALIVE", "player_alive"),
        ("SHOTS_LEFT", "player_shots_remaining"),
        ("LEVEL_OPEN", "level_is_open"),
        ("ACTIVE", "active_flippers"),
        ("ROOM", "spawn_slots_flippers"),
        ("PULSE_BEAT", "pulse_beat"),
        ("PULSE_PHASE", "pulsing_phase"),
        ("FUSE_PROBABILITY", "fuseball_move_probability"),
        ("SPEED", "speed_flipper"),
        ("PULSAR_DEPTH", "pulsar_0_depth"),
        ("DANGER_OWN", "danger_own_lane"),
    ],
)
def test_a_named_index_is_where_its_value_is(index, name):
    assert observation.NAMES[getattr(observation, index)] == name


def test_values_of_a_row_decode_to_the_bytes_they_come_from():
    row = row_of(A2)
    values = np.stack([observed(row)] * 2)
    assert observation.decode(values, observation.GAME_STATE).tolist() == [row[ram.GAME_STATE]] * 2
    assert observation.decode(values, observation.LIVES).tolist() == [row[ram.LIVES]] * 2
    depths = row[ram.ENEMY_DEPTH : ram.ENEMY_DEPTH + ram.ENEMY_COUNT]
    assert observation.decode(values, observation.ENEMY_DEPTHS)[1].tolist() == depths.tolist()


VECTORS = ("values", "observation", "observations", "seen")  # what arrays of the 195 values are called


def test_no_other_module_spells_an_index_or_a_scale_of_the_195_values():
    """Only numbers that cannot mean a place among the values may stand in their indices, and no scale beside them."""
    package = Path(observation.__file__).parents[1]
    for path in package.rglob("*.py"):
        if path != Path(observation.__file__) and path.parent.name != "rules":  # which know no observation
            found = list(strays(ast.parse(path.read_text())))
            assert not found, f"{path.name} line {found[0]}: name it in task/observation.py"


def strays(tree: ast.AST) -> Iterator[int]:
    """Lines in which a vector of values is indexed by a bare number, or what comes out is multiplied by one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and is_vector(node.value):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            last = parts[-1] if len(parts) > 1 or not has_batch(node.value) else None  # rows are counted, not named
            if last is not None and any(is_number(part) for part in ast.walk(last)):
                yield node.lineno
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            sides = node.left, node.right
            if any(map(is_number, sides)) and any(
                isinstance(side, ast.Subscript) and is_vector(side.value) for side in sides
            ):
                yield node.lineno


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def is_vector(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in VECTORS


def has_batch(node: ast.AST) -> bool:
    return not (isinstance(node, ast.Name) and node.id == "values")


def test_strays_are_found():
    assert list(strays(ast.parse("depth = values[135 + slot]"))) == [1]
    assert list(strays(ast.parse("zoom = frames.observation[:, 3] > 0.8"))) == [1]
    assert list(strays(ast.parse("lane = values[layout.PLAYER_LANE] * 15.0"))) == [1]
    assert not list(strays(ast.parse("first = observation[:8]\nlane = values[layout.ENEMY_LANE + slot] * SCALE")))


def test_sixteen_values_are_hidden_from_a_human():
    assert len(observation.HIDDEN) == len(set(observation.HIDDEN)) == 16
    assert tuple(observation.HIDDEN) == tuple(reference.VISIBLE_ONLY_HIDDEN)
    hidden = [observation.NAMES[index] for index in observation.HIDDEN]
    counters = [*table_names(TABLE[68]), "enemies_in_tube", "enemies_on_top", "enemies_pending"]
    assert hidden[:9] == [*counters, "pulsar_flip_rate"]
    assert hidden[9:] == [*table_names(TABLE[79]), *table_names(TABLE[81])]


# --- Conformance vectors ----------------------------------------------------------------------------------------------


def test_vector_a1_all_memory_zero(agent):
    expected = [0.0] * 195
    for index in (6, 11, 178, 179, 180):
        expected[index] = 1.0
    for index in ABSENT:
        expected[index] = -1.0
    assert agent.values(A1, None) == expected


def test_vector_a2_open_level(agent):
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
    assert agent.values(A2, A2_BEFORE) == pytest.approx(expected, abs=5.1e-7)


def test_vector_a2_previous_tick_has_no_velocity_of_its_own(agent):
    row = agent.values(A2_BEFORE, None)
    assert row[181:] == [0.0] * 14
    # The flipper of lane 13, seen from 14, is at (-1 + progress) - 1. It turns from angle[12] + 8 = 12 down to
    # angle[13] = 7, five steps; the angle byte says (12 - 13) mod 16 = 15 are done: limited to 1, it stands at -1.
    assert row[128] == reference.single(-1 / 15)
    assert row[179] == reference.single(24 / 255)  # the flipper at depth $18 in lane 13
    assert row[178] == reference.single(32 / 255)  # lane 14: spike tip $20 is nearer than the shot at $30
    assert row[180] == 1.0  # lane 15 exists here, its spike tip is at 255


def test_vector_a2_shows_the_death(agent):
    assert agent.values(A2_DYING, A2)[6:8] == [0.0, reference.single(1 / 15)]


def test_vector_a3_zoom_on_a_closed_level(agent):
    expected = [0.0] * 195
    for index in ABSENT:
        expected[index] = -1.0
    given = {0: 0.888889, 1: 0.752941, 3: 0.833333, 4: 0.030612, 28: 0.030612, 5: 0.133333, 6: 1, 7: 0.2}
    given |= {8: 0.376471, 11: 1, 30: 0.2, 178: 0.25098, 179: 0.564706, 180: 0.564706}
    given |= dict.fromkeys(range(31, 47), 0.435294) | {33: 0.74902, 37: 0}
    for index, value in given.items():
        expected[index] = value
    assert agent.values(A3, A3) == pytest.approx(expected, abs=5.1e-7)


# --- Cases ------------------------------------------------------------------------------------------------------------


def test_the_opposite_lane_of_a_closed_tube_is_plus_eight_from_both_sides(agent):
    assert agent.relative_lane(scene(0), 8) == agent.relative_lane(scene(8), 0) == 8
    assert agent.relative_lane(scene(0), 15) == -1
    assert agent.relative_lane(scene(0, on_open=True), 15) == 15


def test_a_flip_moves_the_lane_by_the_turned_part(agent):
    # Flat tube: every angle 0, so a flip turns from 8 to 0 or from 0 to 8 and lasts 8 steps.
    falling = scene(5, (0x80, 7, 0x10), more="2CC=82")  # minus side: 2 of 8 done, from lane 7
    rising = scene(5, (0xC0, 7, 0x10), more="2CC=82")  # plus side: 6 of 8 done, from lane 6
    assert agent.fractional_lane(falling, 0) == 2 - 0.25
    assert agent.fractional_lane(rising, 0) == 1 + 0.75
    assert agent.fractional_lane(scene(5, (0x84, 7, 0x10), more="2CC=82"), 0) == 2  # fuseballs do not flip


def test_a_flip_of_no_turn_has_no_progress(agent):
    # angle[6] + 8 equals angle[7]: nothing to turn.
    assert agent.fractional_lane(scene(5, (0x80, 7, 0x10), more="3F4=01 3F5=09 2CC=83"), 0) == 2
    assert agent.fractional_lane(scene(5, (0xC0, 7, 0x10), more="3F4=01 3F5=09 2CC=83"), 0) == 1


def test_a_flip_past_the_far_side_keeps_the_exact_minus_eight(agent):
    # Lane 14 seen from 5 is -7; a flip to the plus side that has not begun stands one lane lower.
    assert agent.fractional_lane(scene(5, (0xC0, 14, 0x10), more="2CC=88"), 0) == -8


def test_velocity_needs_play_the_same_type_and_both_ticks(agent):
    now, before = scene(5, (0x40, 1, 0x40)), scene(5, (0x80, 15, 0x50))
    row = agent.values(now, before)
    assert (row[181], row[188]) == (2 / 8, -16 / 128)  # 15 -> 1 wraps to +2; direction bits do not matter
    for change in ("00=20", f"283={PULSAR:02X}", "2DF=00"):
        assert agent.values(changed(bytearray(now), change), before)[181:] == [0.0] * 14
    assert agent.values(scene(5, (0, 0, 9)), scene(5, (0, 8, 9)))[181] == -1.0
    assert agent.values(scene(5, (0, 0, 9), on_open=True), scene(5, (0, 9, 9)))[181] == -1.0


def test_danger_takes_the_nearest_thing_of_each_lane(agent):
    memory = scene(0, (TANKER, 15, 0x90), (SPIKER, 1, 0x80), shots=((15, 0x70), (1, 0x88)), more="3AC=30 3BB=60")
    assert agent.values(memory, None)[178:181] == [reference.single(x / 255) for x in (0x30, 0x60, 0x80)]
    assert agent.values(changed(memory, "111=01"), None)[179] == 1.0  # no lane below 0 on an open tube


# --- Product against twin ---------------------------------------------------------------------------------------------


def test_product_and_twin_see_the_same_on_random_images():
    for now, before in random_images(seed=16, count=2000):
        assert Product.values(now, before) == Twin.values(now, before)


@pytest.mark.parametrize("level", [1, 8, 17, 27, 43, 62, 80, 99])
def test_product_and_twin_see_the_same_in_real_games(level):
    for now, before, row in played_images(level, ticks=1500, every_nth=5):
        assert observed(row).tolist() == Twin.values(now, before)  # with what the row itself remembers


def test_every_value_lies_between_minus_one_and_one_whatever_the_bytes():
    dice = np.random.default_rng(8)
    for _ in range(3000):
        now, before = (dice.integers(0, 256, ram.RAM_BYTES).astype(np.uint8).tobytes() for _ in range(2))
        values = observed(row_of(now, before))
        assert np.all(np.abs(values) <= 1)  # which also fails for what is not a number


def test_frames_hold_what_a_fresh_look_at_the_row_shows():
    games = Games(starts(16, level=[1 + 6 * g for g in range(16)]))
    for _ in range(400):
        frames = games.step(games.frames.advice_full)
        for g in np.flatnonzero(~frames.over):
            assert np.array_equal(frames.observation[g], observed(games.rows[g]))
