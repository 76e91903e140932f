"""The pupil: a small network on top of the lane map, and the player that uses both.

`LaneMap` is the map in torch, for export; `lanes.lane_map` the same compiled, for speed; a test holds them together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege.games.tempest.agents.lanes import (
    FAR_CLOSENESS,
    FEATURES,
    FUSEBALL,
    HIDDEN_FEATURES,
    KIND_SCALE,
    LANE_SCALE,
    PLAIN,
    PULSAR,
    REACH,
    RIM_DEPTH,
    TANKER,
    TO_CLOSENESS,
    see,
)
from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import TASK_VERSION, Frames
from protege.learn.state import restore_weights
from protege.runs import checkpoints

Floats = npt.NDArray[np.float32]


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
        kind = torch.round(kind * KIND_SCALE)
        depth = values[:, layout.ENEMY_DEPTHS]
        present = depth != 0
        closeness = (TO_CLOSENESS * (1.0 - depth)).clamp(min=FAR_CLOSENESS)
        rider = (depth < RIM_DEPTH) & (kind <= PULSAR)
        up = (increasing > 0) != (kind == FUSEBALL)
        flips = between > 0
        worths = [closeness * (kind.clamp(max=FUSEBALL) == k) for k in range(FUSEBALL + 1)]
        worths += [(rider & up).float(), (rider & ~up).float()]
        carries = (kind == TANKER) & (cargo > 0.5)
        worths += [closeness * which for which in (away > 0, flips & up, flips & ~up, carries, may_shoot > 0)]
        near = self._nearness(values[:, layout.ENEMY_LANES], closed)  # (games, 7, 17)
        found = [(near * (worth * present)[:, :, None]).amax(1) for worth in worths]
        shots = self._shots(values[:, layout.ENEMY_SHOT_DEPTHS], values[:, layout.ENEMY_SHOT_LANES], closed)
        own_shots = self._shots(values[:, layout.SHOT_DEPTHS], values[:, layout.SHOT_LANES], closed)
        board = torch.round(values[:, layout.PLAYER_LANE, None] * LANE_SCALE) + self.lanes
        wrapped = torch.remainder(board, 16.0)
        exists = closed[:, None] | ((board >= 0) & (board <= 14))
        spikes = values[:, layout.SPIKES].gather(1, wrapped.long()) * exists
        channels = [*found[:7], shots, spikes, own_shots, *found[7:], exists.float()]
        zooming = (values[:, layout.GAME_STATE, None] > layout.ZOOM_ABOVE).float()
        pulsing = (values[:, layout.PULSE_PHASE, None] < layout.PULSE_BELOW).float()
        plain = values.index_select(1, self.plain)
        return torch.cat([torch.stack(channels, 2).flatten(1), plain, zooming, pulsing], 1)

    def _nearness(self, lanes: Tensor, closed: Tensor) -> Tensor:
        round_tube = (lanes[:, :, None] * LANE_SCALE - self.lanes).abs()
        on_board = ((lanes[:, :, None] * LANE_SCALE).clamp(-REACH, REACH) - self.lanes).abs()
        away = torch.where(closed[:, None, None], torch.minimum(round_tube, 16.0 - round_tube).clamp(min=0), on_board)
        return (1.0 - away).clamp(min=0)

    def _shots(self, depth: Tensor, lanes: Tensor, closed: Tensor) -> Tensor:
        worth = TO_CLOSENESS * (1.0 - depth) * (depth > 0)
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
        visible[HIDDEN_FEATURES] = 0.0
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
