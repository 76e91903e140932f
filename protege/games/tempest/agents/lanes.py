"""The lane map: the 195 values re-ordered around the player, for each of 17 lanes what is there and how close (numba).

Two enemies that have swapped memory slots, or the same scene a few lanes further round the tube, then look the same to
a network, which therefore needs a fraction of the games.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation as layout
from protege.kernels import kernel

Floats = npt.NDArray[np.float32]

REACH: Final = 8  # lanes to each side of the player: all of a closed tube
LANES: Final = 2 * REACH + 1

# What is known about each lane. Closeness runs from 0 at the far end to 1 at the rim.
CHANNELS: Final = (
    "flipper", "pulsar", "tanker", "spiker", "fuseball",  # closeness of the nearest one
    "rider_up", "rider_down",  # a flipper or pulsar on the rim, by the direction it walks in
    "enemy_shot", "spike", "own_shot",  # closeness of shots, height of the spike
    "retreating", "flipping_up", "flipping_down",  # closeness of enemies that do so
    "cargo",  # closeness of tankers that carry something worse than flippers
    "armed",  # closeness of enemies that may shoot
    "exists",
)  # fmt: skip
(
    FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL, RIDER_UP, RIDER_DOWN, ENEMY_SHOT, SPIKE, OWN_SHOT,
    RETREATING, FLIPPING_UP, FLIPPING_DOWN, CARGO, ARMED, EXISTS,
) = range(len(CHANNELS))  # fmt: skip

# Values of the observation that go to the network as they are: the player, the level, counts, timers and dangers.
PLAIN: Final = (
    layout.GAME_STATE, layout.PLAYER_ALIVE, layout.PLAYER_DEPTH, layout.ZAP_USES, layout.ZAP_TIMER, layout.SHOTS_LEFT,
    layout.LEVEL_NUMBER, layout.LEVEL_OPEN, layout.LEVEL_SHAPE,
    *range(layout.VALUES)[layout.ENEMIES_OVERALL], *range(layout.VALUES)[layout.DANGER],
)  # fmt: skip
_PLAIN = np.array(PLAIN)
FEATURES: Final = LANES * len(CHANNELS) + len(PLAIN) + 2  # two flags: zooming, pulsars live

_WIDTH = len(CHANNELS)


def _mirrored() -> list[int]:
    """For each feature the one that takes its place in a mirror: lanes and directions change sides."""
    pairs = {RIDER_UP: RIDER_DOWN, FLIPPING_UP: FLIPPING_DOWN}
    channels = {**{i: i for i in range(_WIDTH)}, **pairs, **{down: up for up, down in pairs.items()}}
    sides = {layout.DANGER_BELOW: layout.DANGER_ABOVE, layout.DANGER_ABOVE: layout.DANGER_BELOW}
    lanes = [(LANES - 1 - lane) * _WIDTH + channels[channel] for lane in range(LANES) for channel in range(_WIDTH)]
    plain = [len(lanes) + PLAIN.index(sides.get(value, value)) for value in PLAIN]
    return [*lanes, *plain, FEATURES - 2, FEATURES - 1]


MIRRORED: Final = _mirrored()
LANE_SCALE, KIND_SCALE = float(layout.LANE_SCALE), float(layout.KIND_SCALE)
RIM_DEPTH: Final = ram.RIM / layout.BYTE_SCALE + 1e-4
FAR_CLOSENESS: Final = 0.02  # an enemy at the far end is still an enemy
TO_CLOSENESS: Final = 1.0 / (1.0 - ram.RIM / layout.BYTE_SCALE)


@kernel
def _put(features: Floats, place: float, channel: int, worth: float, closed: bool) -> None:
    """Spread `worth` over the lanes next to a place, which may lie between two; the larger worth stays.

    What is beyond the reach of the map, on an open tube, shows at its end.
    """
    if not closed:
        place = max(-float(REACH), min(float(REACH), place))
    for lane in range(LANES):
        away = abs(place - (lane - REACH))
        if closed:
            away = max(0.0, min(away, 16.0 - away))
        part = worth * (1.0 - away)
        if part > features[lane * _WIDTH + channel]:
            features[lane * _WIDTH + channel] = np.float32(part)


@kernel
def _map_one(values: Floats, features: Floats) -> None:
    for i in range(LANES * _WIDTH):
        features[i] = np.float32(0.0)
    closed = values[layout.LEVEL_OPEN] == 0.0
    for slot in range(ram.ENEMY_COUNT):
        depth = float(values[layout.ENEMY_DEPTH + slot])
        if depth == 0.0:
            continue
        about = layout.ENEMY_SLOT + layout.SLOT_VALUES * slot
        place = float(values[layout.ENEMY_LANE + slot]) * LANE_SCALE
        kind = int(np.round(values[about + layout.KIND] * KIND_SCALE))
        closeness = max(FAR_CLOSENESS, TO_CLOSENESS * (1.0 - depth))
        # Fuseballs use the bit the other way round.
        upwards = (values[about + layout.INCREASING] > 0.0) != (kind == FUSEBALL)
        _put(features, place, min(kind, FUSEBALL), closeness, closed)
        if depth < RIM_DEPTH and kind <= PULSAR:
            _put(features, place, RIDER_UP if upwards else RIDER_DOWN, 1.0, closed)
        if values[about + layout.AWAY] > 0.0:
            _put(features, place, RETREATING, closeness, closed)
        if values[about + layout.BETWEEN] > 0.0:
            _put(features, place, FLIPPING_UP if upwards else FLIPPING_DOWN, closeness, closed)
        if kind == TANKER and values[about + layout.CARGO] > 0.5:
            _put(features, place, CARGO, closeness, closed)
        if values[about + layout.MAY_SHOOT] > 0.0:
            _put(features, place, ARMED, closeness, closed)
    for s in range(ram.ESHOT_COUNT):
        depth = values[layout.ENEMY_SHOT_DEPTH + s]
        if depth > 0.0:
            place = float(values[layout.ENEMY_SHOT_LANE + s]) * LANE_SCALE
            _put(features, place, ENEMY_SHOT, TO_CLOSENESS * (1.0 - depth), closed)
    for s in range(ram.PSHOT_COUNT):
        depth = values[layout.SHOT_DEPTH + s]
        if depth > 0.0:
            place = float(values[layout.SHOT_LANE + s]) * LANE_SCALE
            _put(features, place, OWN_SHOT, TO_CLOSENESS * (1.0 - depth), closed)
    own = int(np.round(values[layout.PLAYER_LANE] * LANE_SCALE))
    for lane in range(LANES):
        board = own + lane - REACH
        if closed:
            board &= 15
        if 0 <= board <= (15 if closed else 14):
            features[lane * _WIDTH + SPIKE] = values[layout.SPIKE + board]
            features[lane * _WIDTH + EXISTS] = np.float32(1.0)
    base = LANES * _WIDTH
    for i in range(len(PLAIN)):
        features[base + i] = values[_PLAIN[i]]
    features[base + len(PLAIN)] = np.float32(1.0 if values[layout.GAME_STATE] > layout.ZOOM_ABOVE else 0.0)
    features[base + len(PLAIN) + 1] = np.float32(1.0 if values[layout.PULSE_PHASE] < layout.PULSE_BELOW else 0.0)


@kernel
def lane_map(observation: Floats, features: Floats) -> None:
    """Observations (games, 195) as the network's input (games, FEATURES), written into `features`."""
    for g in range(len(observation)):
        _map_one(observation[g], features[g])


HIDDEN_FEATURES = np.array([LANES * _WIDTH + PLAIN.index(i) for i in layout.HIDDEN])


def see(observation: Floats, features: Floats, visible_only: bool) -> None:
    """The lane map of observations, written into `features`; without what a person cannot see, if so asked."""
    lane_map(observation, features)
    if visible_only:
        features[:, HIDDEN_FEATURES] = 0.0
