"""The pupil: a fixed map of the lanes around the player, a small network on top of it, and the player that uses both.

All it sees are the 195 values. The lane map re-orders them around the player: for each of 17 lanes, what is there and
how close. Two enemies that have swapped memory slots, or the same scene a few lanes further round the tube, then look
the same to the network, which therefore needs a fraction of the games. `LaneMap` is the map in torch, for export;
`lane_map` the same compiled, for speed; a test holds them together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import TASK_VERSION, Frames
from protege.kernels import kernel
from protege.learn.state import restore_weights
from protege.runs import checkpoints

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
    _FLIPPER, _PULSAR, _TANKER, _SPIKER, _FUSEBALL, _RIDER_UP, _RIDER_DOWN, _ENEMY_SHOT, _SPIKE, _OWN_SHOT,
    _RETREATING, _FLIPPING_UP, _FLIPPING_DOWN, _CARGO, _ARMED, _EXISTS,
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
    pairs = {_RIDER_UP: _RIDER_DOWN, _FLIPPING_UP: _FLIPPING_DOWN}
    channels = {**{i: i for i in range(_WIDTH)}, **pairs, **{down: up for up, down in pairs.items()}}
    sides = {layout.DANGER_BELOW: layout.DANGER_ABOVE, layout.DANGER_ABOVE: layout.DANGER_BELOW}
    lanes = [(LANES - 1 - lane) * _WIDTH + channels[channel] for lane in range(LANES) for channel in range(_WIDTH)]
    plain = [len(lanes) + PLAIN.index(sides.get(value, value)) for value in PLAIN]
    return [*lanes, *plain, FEATURES - 2, FEATURES - 1]


MIRRORED: Final = _mirrored()
_LANE_SCALE, _KIND_SCALE = float(layout.LANE_SCALE), float(layout.KIND_SCALE)
_RIM_DEPTH: Final = ram.RIM / layout.BYTE_SCALE + 1e-4
_FAR_CLOSENESS: Final = 0.02  # an enemy at the far end is still an enemy
_TO_CLOSENESS: Final = 1.0 / (1.0 - ram.RIM / layout.BYTE_SCALE)


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
        place = float(values[layout.ENEMY_LANE + slot]) * _LANE_SCALE
        kind = int(np.round(values[about + layout.KIND] * _KIND_SCALE))
        closeness = max(_FAR_CLOSENESS, _TO_CLOSENESS * (1.0 - depth))
        # Fuseballs use the bit the other way round.
        upwards = (values[about + layout.INCREASING] > 0.0) != (kind == _FUSEBALL)
        _put(features, place, min(kind, _FUSEBALL), closeness, closed)
        if depth < _RIM_DEPTH and kind <= _PULSAR:
            _put(features, place, _RIDER_UP if upwards else _RIDER_DOWN, 1.0, closed)
        if values[about + layout.AWAY] > 0.0:
            _put(features, place, _RETREATING, closeness, closed)
        if values[about + layout.BETWEEN] > 0.0:
            _put(features, place, _FLIPPING_UP if upwards else _FLIPPING_DOWN, closeness, closed)
        if kind == _TANKER and values[about + layout.CARGO] > 0.5:
            _put(features, place, _CARGO, closeness, closed)
        if values[about + layout.MAY_SHOOT] > 0.0:
            _put(features, place, _ARMED, closeness, closed)
    for s in range(ram.ESHOT_COUNT):
        depth = values[layout.ENEMY_SHOT_DEPTH + s]
        if depth > 0.0:
            place = float(values[layout.ENEMY_SHOT_LANE + s]) * _LANE_SCALE
            _put(features, place, _ENEMY_SHOT, _TO_CLOSENESS * (1.0 - depth), closed)
    for s in range(ram.PSHOT_COUNT):
        depth = values[layout.SHOT_DEPTH + s]
        if depth > 0.0:
            place = float(values[layout.SHOT_LANE + s]) * _LANE_SCALE
            _put(features, place, _OWN_SHOT, _TO_CLOSENESS * (1.0 - depth), closed)
    own = int(np.round(values[layout.PLAYER_LANE] * _LANE_SCALE))
    for lane in range(LANES):
        board = own + lane - REACH
        if closed:
            board &= 15
        if 0 <= board <= (15 if closed else 14):
            features[lane * _WIDTH + _SPIKE] = values[layout.SPIKE + board]
            features[lane * _WIDTH + _EXISTS] = np.float32(1.0)
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


class LaneMap(nn.Module):
    """`lane_map` in torch, for programs without the compiled one."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("lanes", torch.arange(-REACH, REACH + 1, dtype=torch.float32), persistent=False)
        self.register_buffer("plain", torch.tensor(PLAIN), persistent=False)

    lanes: Tensor
    plain: Tensor

    def forward(self, values: Tensor) -> Tensor:
        closed = values[:, layout.LEVEL_OPEN] == 0
        about = values[:, layout.ENEMY_SLOTS].reshape(-1, ram.ENEMY_COUNT, layout.SLOT_VALUES)
        kind, increasing, between, away, may_shoot, cargo = about.unbind(2)
        kind = torch.round(kind * _KIND_SCALE)
        depth = values[:, layout.ENEMY_DEPTHS]
        present = depth != 0
        closeness = (_TO_CLOSENESS * (1.0 - depth)).clamp(min=_FAR_CLOSENESS)
        rider = (depth < _RIM_DEPTH) & (kind <= _PULSAR)
        up = (increasing > 0) != (kind == _FUSEBALL)
        flips = between > 0
        worths = [closeness * (kind.clamp(max=_FUSEBALL) == k) for k in range(_FUSEBALL + 1)]
        worths += [(rider & up).float(), (rider & ~up).float()]
        carries = (kind == _TANKER) & (cargo > 0.5)
        worths += [closeness * which for which in (away > 0, flips & up, flips & ~up, carries, may_shoot > 0)]
        near = self._nearness(values[:, layout.ENEMY_LANES], closed)  # (games, 7, 17)
        found = [(near * (worth * present)[:, :, None]).amax(1) for worth in worths]
        shots = self._shots(values[:, layout.ENEMY_SHOT_DEPTHS], values[:, layout.ENEMY_SHOT_LANES], closed)
        own_shots = self._shots(values[:, layout.SHOT_DEPTHS], values[:, layout.SHOT_LANES], closed)
        board = torch.round(values[:, layout.PLAYER_LANE, None] * _LANE_SCALE) + self.lanes
        wrapped = torch.remainder(board, 16.0)
        exists = closed[:, None] | ((board >= 0) & (board <= 14))
        spikes = values[:, layout.SPIKES].gather(1, wrapped.long()) * exists
        channels = [*found[:7], shots, spikes, own_shots, *found[7:], exists.float()]
        zooming = (values[:, layout.GAME_STATE, None] > layout.ZOOM_ABOVE).float()
        pulsing = (values[:, layout.PULSE_PHASE, None] < layout.PULSE_BELOW).float()
        plain = values.index_select(1, self.plain)
        return torch.cat([torch.stack(channels, 2).flatten(1), plain, zooming, pulsing], 1)

    def _nearness(self, lanes: Tensor, closed: Tensor) -> Tensor:
        round_tube = (lanes[:, :, None] * _LANE_SCALE - self.lanes).abs()
        on_board = ((lanes[:, :, None] * _LANE_SCALE).clamp(-REACH, REACH) - self.lanes).abs()
        away = torch.where(closed[:, None, None], torch.minimum(round_tube, 16.0 - round_tube).clamp(min=0), on_board)
        return (1.0 - away).clamp(min=0)

    def _shots(self, depth: Tensor, lanes: Tensor, closed: Tensor) -> Tensor:
        worth = _TO_CLOSENESS * (1.0 - depth) * (depth > 0)
        return (self._nearness(lanes, closed) * worth[:, :, None]).amax(1)


class ValueNetwork(nn.Module):
    """Features (games, FEATURES) -> action values (games, 44): layers with layer norm, then a dueling head."""

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        sizes = [FEATURES, *widths]
        layers: list[nn.Module] = []
        for inner, outer in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [nn.Linear(inner, outer), nn.LayerNorm(outer), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.value = nn.Linear(sizes[-1], 1)
        self.advantage = nn.Linear(sizes[-1], len(ACTIONS))

    def forward(self, features: Tensor) -> Tensor:
        hidden = self.body(features)
        advantage = self.advantage(hidden)
        values: Tensor = self.value(hidden) + advantage - advantage.mean(-1, keepdim=True)
        return values


_HIDDEN_FEATURES = np.array([LANES * _WIDTH + PLAIN.index(i) for i in layout.HIDDEN])


def see(observation: Floats, features: Floats, visible_only: bool) -> None:
    """The lane map of observations, written into `features`; without what a person cannot see, if so asked."""
    lane_map(observation, features)
    if visible_only:
        features[:, _HIDDEN_FEATURES] = 0.0


class Values(nn.Module):
    """The 195 values themselves, without what a person cannot see, if so asked."""

    def __init__(self, visible_only: bool):
        super().__init__()
        visible = torch.ones(layout.VALUES)
        visible[list(layout.HIDDEN)] = 0.0
        self.register_buffer("visible", visible, persistent=False)
        self.visible_only = visible_only

    visible: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        return observation * self.visible if self.visible_only else observation


class LaneFeatures(nn.Module):
    """Observations (games, 195) -> their lane map (games, FEATURES), with `values` followed by the values themselves.

    Compiled on the CPU, in torch elsewhere and where somebody exports the network.
    """

    def __init__(self, visible_only: bool, *, values: bool = False):
        super().__init__()
        self.portable, self.values = LaneMap(), Values(visible_only) if values else None
        visible = torch.ones(FEATURES)
        visible[_HIDDEN_FEATURES] = 0.0
        self.register_buffer("visible", visible, persistent=False)
        self.visible_only = visible_only

    visible: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        if observation.device.type == "cpu" and not torch.compiler.is_compiling():
            seen = np.empty((len(observation), FEATURES), np.float32)
            see(np.ascontiguousarray(observation.numpy()), seen, self.visible_only)
            features = torch.from_numpy(seen)
        else:
            features = self.portable(observation)
            if self.visible_only:
                features = features * self.visible
        return features if self.values is None else torch.cat([features, self.values(observation)], 1)


class Pupil:
    """The player that takes the action of the highest value."""

    def __init__(self, network: ValueNetwork, *, visible_only: bool = False):
        self.network, self.visible_only = network, visible_only

    def features(self, observation: Floats) -> Floats:
        features = np.empty((len(observation), FEATURES), np.float32)
        see(observation, features, self.visible_only)
        return features

    def best(self, features: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """The best actions (games,) and their values, of features that were made already."""
        with torch.inference_mode():
            values, actions = self.network(torch.from_numpy(features)).max(1)
        return actions.numpy(), values.numpy()

    def values(self, observation: Floats) -> Floats:
        """Action values (games, 44)."""
        with torch.inference_mode():
            found: Floats = self.network(torch.from_numpy(self.features(observation))).numpy()
        return found

    def act(self, frames: Frames) -> npt.NDArray[np.int64]:
        return self.values(frames.observation).argmax(1)


CHECKPOINT_KIND: Final = "tempest-pqn"


def load_pupil(path: Path) -> Pupil:
    saved = checkpoints.load(path, kind=CHECKPOINT_KIND, task_version=TASK_VERSION)
    network = ValueNetwork(saved.state["widths"])
    restore_weights(network, saved.tensors, "network", saved.path)
    return Pupil(network.eval(), visible_only=saved.state["visible_only"])
