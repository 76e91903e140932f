"""The lane map compiled, in torch and in plain Python; scenes worked by hand; pupils in files."""

import numpy as np
import pytest
import torch

from protege.games.tempest.agents.lanes import CHANNELS, FEATURES, LANES, PLAIN, lane_map
from protege.games.tempest.agents.network import CHECKPOINT_KIND, LaneMap, Pupil, ValueNetwork, load_pupil
from protege.games.tempest.task import observation
from protege.games.tempest.task.env import TASK_VERSION, Games, starts
from protege.learn.state import StateMismatch, named_weights
from protege.runs import checkpoints
from protege.runs.checkpoints import CheckpointError, CheckpointMismatch
from tests.games.tempest.task.scenes import ABSENT, observed, random_images, row_of

INDEX = {name: index for index, name in enumerate(observation.NAMES)}
FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL = range(5)
RIM, FAR_END = 16, 255  # depths in the machine's units
SAME = 1e-6

# What goes to the network as it is, by name.
UNCHANGED = (
    "game_state player_alive player_depth superzapper_uses superzapper_active player_shots_remaining "
    "level_number level_is_open level_shape"
).split() + [*observation.NAMES[observation.ENEMIES_OVERALL], *observation.NAMES[observation.DANGER]]


# --- The plain twin ---------------------------------------------------------------------------------------------------


def twin(values: np.ndarray) -> list[float]:
    """The features of one observation, from what the channels mean."""
    seen = dict(zip(observation.NAMES, values.tolist(), strict=True))
    closed = seen["level_is_open"] == 0
    things = [*enemies_of(seen), *shots_of(seen)]  # (channel, relative lane, worth)
    own = round(15 * seen["player_position"])
    features: list[float] = []
    for offset in range(-8, 9):
        lane = dict.fromkeys(CHANNELS, 0.0)
        for channel, place, worth in things:
            lane[channel] = max(lane[channel], worth * nearness(place, offset, closed))
        board = (own + offset) % 16 if closed else own + offset
        if closed or 0 <= board <= 14:
            lane["exists"] = 1.0
            lane["spike"] = seen[f"spike_height_{board}"]
        features += lane.values()
    flags = [seen["game_state"] > 28.8 / 36, seen["pulsing_phase"] < 127.5 / 255]
    return [*features, *(seen[name] for name in UNCHANGED), *map(float, flags)]


def nearness(place: float, offset: int, closed: bool) -> float:
    """1 in the thing's own lane, 0 a lane away; on a closed tube 16 lanes away is the same lane.

    On an open tube everything beyond the map's end stands at its end.
    """
    ways = (0, -16, 16) if closed else (0,)
    place = place if closed else min(8.0, max(-8.0, place))
    return max(0.0, 1.0 - min(abs(place - offset + way) for way in ways))


def closeness(depth: float) -> float:
    return (FAR_END - 255 * depth) / (FAR_END - RIM)


def enemies_of(seen: dict[str, float]) -> list[tuple[str, float, float]]:
    found = []
    for slot in range(7):
        depth = seen[f"enemy_{slot}_depth"]
        if depth == 0:
            continue
        place, kind = 15 * seen[f"enemy_{slot}_rel_segment"], round(7 * seen[f"enemy_{slot}_type"])
        increasing = seen[f"enemy_{slot}_segment_increasing"] > 0
        way = "up" if increasing != (kind == FUSEBALL) else "down"
        close = max(0.02, closeness(depth))
        found.append((CHANNELS[min(kind, FUSEBALL)], place, close))
        if 255 * depth < RIM + 0.02 and kind in (FLIPPER, PULSAR):
            found.append((f"rider_{way}", place, 1.0))
        if seen[f"enemy_{slot}_moving_away"] > 0:
            found.append(("retreating", place, close))
        if seen[f"enemy_{slot}_between_segments"] > 0:
            found.append((f"flipping_{way}", place, close))
        if kind == TANKER and seen[f"enemy_{slot}_split_kind"] > 0.5:
            found.append(("cargo", place, close))
        if seen[f"enemy_{slot}_can_shoot"] > 0:
            found.append(("armed", place, close))
    return found


def shots_of(seen: dict[str, float]) -> list[tuple[str, float, float]]:
    shots = [("enemy_shot", f"enemy_shot_{s}") for s in range(4)] + [("own_shot", f"player_shot_{s}") for s in range(8)]
    return [
        (channel, 15 * seen[f"{shot}_rel_segment"], closeness(seen[f"{shot}_depth"]))
        for channel, shot in shots
        if seen[f"{shot}_depth"] > 0
    ]


# --- Observations by the thousand -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def played():
    """Observations of games that the teacher plays, from every third level: some of the play, all of the zooms."""
    levels = [*range(1, 100, 3)] * 2
    games = Games(starts(len(levels), seed=11, level=levels))
    seen = []
    for frame in range(700):
        observation = games.frames.observation
        zooming = observation[:, INDEX["game_state"]] == np.float32(0x20 / 36)
        seen.append(observation[~games.frames.over & (zooming | (frame % 16 == 0))])
        games.step(games.frames.advice)
    return np.concatenate(seen)


@pytest.fixture(scope="module")
def imagined():
    """Observations of memory that never occurs: any byte anywhere, so enemies of no type and on no tube as well."""
    return np.stack([observed(row_of(now, before)) for now, before in random_images(5, 1500)])


@pytest.fixture(scope="module")
def drawn():
    """Noise between the lowest and the highest value that each place of an observation can have."""
    dice = np.random.default_rng(8)
    low = np.zeros(observation.VALUES)
    low[[*ABSENT, INDEX["pulse_beat"], *range(81, 86), *range(181, 195)]] = -1
    values = dice.uniform(low, 1.0, (1500, observation.VALUES)).astype(np.float32)
    values[:, INDEX["level_is_open"]] = dice.integers(0, 2, len(values))
    closed = values[:, INDEX["level_is_open"]] == 0
    values[np.ix_(closed, ABSENT)] *= np.float32(8 / 15)  # the short way round is never longer
    values[:, observation.ENEMY_DEPTHS] *= dice.integers(0, 2, (len(values), 7))
    values[::4, observation.ENEMY_DEPTHS] *= np.float32(RIM / 255)
    return values


@pytest.fixture(scope="module", params=["played", "imagined", "drawn"])
def observations(request):
    return request.getfixturevalue(request.param)


def compiled(values: np.ndarray) -> np.ndarray:
    features = np.full((len(values), FEATURES), np.nan, np.float32)  # so that one nobody writes is noticed
    lane_map(values, features)
    return features


def in_torch(values: np.ndarray) -> np.ndarray:
    features: np.ndarray = LaneMap()(torch.from_numpy(values)).numpy()
    return features


def test_the_games_played_show_everything_the_map_can_hold(played):
    zooming = played[:, INDEX["game_state"]] > 0.8
    is_open = played[:, INDEX["level_is_open"]] == 1
    assert zooming.sum() > 200 and is_open.sum() > 300 and (~is_open).sum() > 300
    lanes = compiled(played)[:, : LANES * len(CHANNELS)].reshape(-1, LANES, len(CHANNELS))
    for tube in (is_open, ~is_open):
        shown = lanes[tube].max((0, 1))
        assert dict(zip(CHANNELS, shown > 0)) == dict.fromkeys(CHANNELS, True)


def test_the_compiled_map_is_the_plain_one(observations):
    expected = np.array([twin(values) for values in observations])
    assert np.abs(compiled(observations) - expected).max() <= SAME


def test_the_map_in_torch_is_the_compiled_one(observations):
    assert np.abs(in_torch(observations) - compiled(observations)).max() <= SAME


# --- Scenes worked by hand --------------------------------------------------------------------------------------------


def scene(*things: dict[str, float], on_open: bool = False, lane: int = 0) -> np.ndarray:
    """The player and some things, their values named as in the observation."""
    found = np.zeros((1, observation.VALUES), np.float32)
    found[0, list(ABSENT)] = -1
    found[0, INDEX["level_is_open"]] = on_open
    found[0, INDEX["player_position"]] = lane / 15
    for thing in things:
        for name, value in thing.items():
            found[0, INDEX[name]] = value
    return found


def enemy(slot: int, kind: int, place: float, depth: int, **more: float) -> dict[str, float]:
    about = {"type": kind / 7, "rel_segment": place / 15, "depth": depth / 255, **more}
    return {f"enemy_{slot}_{field}": value for field, value in about.items()}


def shown(values: np.ndarray, channel: str) -> dict[int, float]:
    """Relative lane -> what the channel shows there, where it shows anything; the same from both maps."""
    by_map = []
    for features in (compiled(values), in_torch(values)):
        lanes = features[0, : LANES * len(CHANNELS)].reshape(LANES, len(CHANNELS))[:, CHANNELS.index(channel)]
        by_map.append({lane - 8: float(worth) for lane, worth in enumerate(lanes) if worth > SAME})
    assert by_map[0] == near(by_map[1])
    return by_map[0]


def near(expected: dict[int, float]) -> object:
    return pytest.approx(expected, abs=SAME)


def test_an_enemy_between_two_lanes_shows_half_its_closeness_in_each():
    half_way = (255 + 16) / 2 / 255  # closeness 1/2: the middle between the far end and the rim
    flipper = enemy(0, FLIPPER, 3.5, 0) | {"enemy_0_depth": half_way}
    assert shown(scene(flipper), "flipper") == near({3: 0.25, 4: 0.25})
    assert shown(scene(flipper, on_open=True), "flipper") == near({3: 0.25, 4: 0.25})


def test_an_enemy_a_quarter_of_the_way_shows_mostly_where_it_comes_from():
    assert shown(scene(enemy(6, SPIKER, -2.25, RIM)), "spiker") == near({-2: 0.75, -3: 0.25})


def test_the_lane_opposite_on_a_closed_tube_is_at_both_ends_of_the_map():
    opposite = enemy(2, FUSEBALL, 8, RIM)
    assert shown(scene(opposite), "fuseball") == near({-8: 1.0, 8: 1.0})
    assert shown(scene(opposite, on_open=True), "fuseball") == near({8: 1.0})
    beyond = enemy(2, PULSAR, -7.5, RIM)  # half a lane past the one opposite, which is lanes -8 and 8
    assert shown(scene(beyond), "pulsar") == near({-8: 0.5, -7: 0.5, 8: 0.5})


def test_closeness_runs_from_the_far_end_to_the_rim_and_a_far_enemy_still_shows():
    depths = {RIM: 1.0, 135: 120 / 239, 254: 0.02, FAR_END: 0.02}
    for depth, expected in depths.items():
        assert shown(scene(enemy(0, TANKER, 1, depth)), "tanker") == near({1: expected})
    shot = {"enemy_shot_1_rel_segment": -1 / 15, "enemy_shot_1_depth": 135 / 255}
    assert shown(scene(shot), "enemy_shot") == near({-1: 120 / 239})
    own = {"player_shot_7_rel_segment": 0, "player_shot_7_depth": 135 / 255}
    assert shown(scene(own), "own_shot") == near({0: 120 / 239})


def test_of_two_enemies_in_a_lane_the_nearer_one_shows():
    both = enemy(0, FLIPPER, 2, 200) | enemy(1, FLIPPER, 2, RIM)
    assert shown(scene(both), "flipper") == near({2: 1.0})


def test_an_empty_slot_shows_nothing_although_its_lane_reads_15_below():
    empty = scene(on_open=True, lane=14)
    for channel in CHANNELS[: CHANNELS.index("exists")]:
        assert shown(empty, channel) == {}, channel


def test_lanes_off_an_open_tube_do_not_exist_and_have_no_spikes():
    spikes = {f"spike_height_{lane}": (lane + 1) / 16 for lane in range(16)}
    at_the_end = scene(spikes, on_open=True, lane=13)
    assert shown(at_the_end, "exists") == dict.fromkeys(range(-8, 2), 1.0)  # lanes 5 to 14
    assert shown(at_the_end, "spike") == near({offset: (14 + offset) / 16 for offset in range(-8, 2)})
    assert shown(scene(on_open=True, lane=2), "exists") == dict.fromkeys(range(-2, 9), 1.0)  # lanes 0 to 10
    round_the_tube = scene(spikes, lane=13)
    assert shown(round_the_tube, "exists") == dict.fromkeys(range(-8, 9), 1.0)
    expected = {offset: ((13 + offset) % 16 + 1) / 16 for offset in range(-8, 9)}
    assert shown(round_the_tube, "spike") == near(expected)


@pytest.mark.parametrize("kind", [FLIPPER, PULSAR])
def test_rim_riders_show_by_the_way_they_walk(kind):
    up = enemy(0, kind, 4, RIM, segment_increasing=1)
    down = enemy(1, kind, -4, RIM)
    lower = enemy(2, kind, 0, RIM + 1)
    values = scene(up, down, lower)
    assert shown(values, "rider_up") == near({4: 1.0})
    assert shown(values, "rider_down") == near({-4: 1.0})
    assert set(shown(values, CHANNELS[kind])) == {-4, 0, 4}


def test_a_fuseball_on_the_rim_is_no_rider():
    values = scene(enemy(0, FUSEBALL, 1, RIM))
    assert shown(values, "rider_up") == shown(values, "rider_down") == {}


def test_what_an_enemy_is_doing_has_channels_of_its_own():
    values = scene(
        enemy(0, FLIPPER, 1, RIM, between_segments=1, segment_increasing=1),
        enemy(1, PULSAR, 2, RIM, between_segments=1),
        enemy(2, SPIKER, 3, RIM, moving_away=1),
        enemy(3, TANKER, 4, RIM, split_kind=1 / 3),  # flippers
        enemy(4, TANKER, 5, RIM, split_kind=2 / 3),  # pulsars
        enemy(5, SPIKER, 6, RIM, split_kind=1, can_shoot=1),  # no tanker: the cargo bits mean nothing
        enemy(6, FUSEBALL, 7, RIM, between_segments=1),  # for fuseballs the direction bit is the other way round
    )
    assert shown(values, "flipping_up") == near({1: 1.0, 7: 1.0})
    assert shown(values, "flipping_down") == near({2: 1.0})
    assert shown(values, "armed") == near({6: 1.0})
    assert shown(values, "retreating") == near({3: 1.0})
    assert shown(values, "cargo") == near({5: 1.0})


def test_two_flags_say_zooming_and_pulsing():
    for state, phase, flags in ((0x04, 0x80, [0.0, 0.0]), (0x20, 0x7F, [1.0, 1.0])):  # $80 is negative: quiet
        values = scene({"game_state": state / 36, "pulsing_phase": phase / 255})
        assert compiled(values)[0, -2:].tolist() == in_torch(values)[0, -2:].tolist() == flags


# --- What makes no difference -----------------------------------------------------------------------------------------


def test_enemies_that_swap_slots_leave_the_features_as_they_are(played):
    swapped = played.copy()
    for first in (observation.ENEMY_LANES, observation.ENEMY_DEPTHS):
        slots = np.arange(first.start, first.stop)
        swapped[:, slots] = played[:, slots[::-1]]
    fields = np.arange(observation.ENEMY_SLOTS.start, observation.ENEMY_SLOTS.stop).reshape(7, 6)
    swapped[:, fields.ravel()] = played[:, fields[::-1].ravel()]
    assert (swapped != played).any()
    assert np.array_equal(compiled(swapped), compiled(played))
    assert np.array_equal(in_torch(swapped), in_torch(played))


def test_the_same_scene_further_round_a_closed_tube_looks_the_same(played):
    there = played[played[:, INDEX["level_is_open"]] == 0]
    turned = there.copy()
    lane = np.round(15 * there[:, observation.PLAYER_LANE])
    turned[:, observation.PLAYER_LANE] = (lane + 5) % 16 / 15
    turned[:, observation.SPIKES] = np.roll(there[:, observation.SPIKES], 5, axis=1)
    assert np.array_equal(compiled(turned), compiled(there))


def test_visible_only_hides_exactly_the_sixteen_hidden_values(imagined):
    network = ValueNetwork((8,))
    whole = Pupil(network).features(imagined)
    visible = Pupil(network, visible_only=True).features(imagined)
    places = [LANES * len(CHANNELS) + PLAIN.index(index) for index in observation.HIDDEN]
    names = [UNCHANGED[place - LANES * len(CHANNELS)] for place in places]
    assert names == [observation.NAMES[index] for index in observation.HIDDEN] and len(set(places)) == 16
    assert whole[:, places].any(axis=0).all() and not visible[:, places].any()
    rest = np.setdiff1d(np.arange(FEATURES), places)
    assert np.array_equal(whole[:, rest], visible[:, rest])


def test_a_visible_only_pupil_plays_the_same_whatever_the_hidden_values_are(played):
    pupil = Pupil(ValueNetwork((16,)), visible_only=True)
    changed = played.copy()
    changed[:, list(observation.HIDDEN)] = 0.7
    assert np.array_equal(pupil.values(changed), pupil.values(played))
    assert not np.array_equal(Pupil(pupil.network).values(changed), Pupil(pupil.network).values(played))


# --- The network and pupils in files ----------------------------------------------------------------------------------


def test_the_mean_of_the_action_values_is_the_value_of_the_state():
    torch.manual_seed(3)
    network, features = ValueNetwork((16, 8)), torch.rand(5, FEATURES)
    values = network(features)
    assert values.shape == (5, 44) and values.std(1).min() > 0
    assert torch.allclose(values.mean(1, keepdim=True), network.value(network.body(features)), atol=1e-6)


def saved(path, *, widths=(16, 8), visible_only=False, kind=CHECKPOINT_KIND, task_version=TASK_VERSION, state=None):
    torch.manual_seed(1)
    network = ValueNetwork(widths)
    about = {"widths": list(widths), "visible_only": visible_only} | (state or {})
    checkpoints.save(path, named_weights(network, "network"), about, kind=kind, task_version=task_version)
    return network


@pytest.mark.parametrize("visible_only", [False, True])
def test_a_pupil_from_a_file_plays_as_the_one_that_was_saved(tmp_path, played, visible_only):
    network = saved(tmp_path / "pupil.safetensors", visible_only=visible_only)
    expected = Pupil(network, visible_only=visible_only).values(played)
    pupil = load_pupil(tmp_path / "pupil.safetensors")
    assert np.array_equal(pupil.values(played), expected)
    games = Games(starts(9, seed=2, level=list(range(1, 18, 2))))
    assert pupil.act(games.frames).tolist() == pupil.values(games.frames.observation).argmax(1).tolist()


def test_a_checkpoint_of_another_kind_task_or_shape_is_refused(tmp_path):
    path = tmp_path / "pupil.safetensors"
    saved(path, kind="echelon-ppo")
    with pytest.raises(CheckpointMismatch, match="echelon-ppo, expected tempest-pqn"):
        load_pupil(path)
    saved(path, task_version=TASK_VERSION + 1)
    with pytest.raises(CheckpointMismatch, match="task version"):
        load_pupil(path)
    saved(path, state={"widths": [16, 9]})
    with pytest.raises(StateMismatch, match="another network"):
        load_pupil(path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load_pupil(tmp_path / "none.safetensors")
