"""Rainbow's networks by name, and the pupil that plays with one.

All of them end in a distribution of returns for each of the 44 moves; they differ in what the layers before that see of
the 195 values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.games.tempest.agents import network as lane_network
from protege.games.tempest.agents.attention import (
    EMPTY_BELOW,
    LANES,
    WIDTH,
    Attention,
    CrowdEncoder,
    Encoder,
    TokenEncoder,
)
from protege.games.tempest.agents.lanes import FEATURES
from protege.games.tempest.agents.network import LaneFeatures, Values
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS, BUTTON_PAIRS, SPINNER_LEVELS
from protege.games.tempest.task.env import TASK_VERSION, Frames
from protege.learn.rainbow import Head, QNetwork, RainbowConfig, initialise
from protege.learn.state import restore_weights
from protege.runs import checkpoints
from protege.runs.checkpoints import CheckpointMismatch

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NetworkConfig:
    """Shape of the network."""

    # What its layers see. lanes: a map of the lanes around the player; attention: that map, and what its lanes find
    # among enemies and shots; published: the 195 values, and lanes that attend to enemies; plain: the 195 values
    network: Literal["lanes", "attention", "published", "plain"] = "lanes"
    widths: tuple[int, ...] = (512, 256)  # sizes of its layers
    stream_width: int = 0  # size of one more layer of each stream behind them; 0 for none
    layer_norm: bool = True  # normalise these layers
    dueling: bool = True  # a stream for the value of the state beside the one for what each move adds to it
    separate_heads: bool = True  # what a move adds is what its buttons add and what its spinner adds
    self_attention: bool = False  # enemies attend to each other before lanes attend to them; published only


class Body(nn.Module):
    """Features -> a layer's units (games, width): what the encoder, if there is one, makes of them joins the others.

    An encoder sees the 195 values, which are the last of the features; the first `direct` go to the layers as they are.
    """

    def __init__(self, config: NetworkConfig):
        super().__init__()
        self.direct = layout.VALUES if config.network in ("published", "plain") else FEATURES
        self.encoder: Encoder | TokenEncoder | None = None
        inputs = self.direct
        if config.network == "attention":
            self.encoder = TokenEncoder()
            inputs += TokenEncoder.outputs
        elif config.network == "published":
            self.encoder = CrowdEncoder() if config.self_attention else Encoder()
            inputs += WIDTH
        layers: list[nn.Module] = []
        for width in config.widths:
            norm = [nn.LayerNorm(width)] if config.layer_norm else []
            layers += [nn.Linear(inputs, width), *norm, nn.ReLU()]
            inputs = width
        self.trunk = nn.Sequential(*layers)
        initialise(self.trunk)

    def forward(self, features: Tensor) -> Tensor:
        if self.encoder is not None:
            features = torch.cat([features[:, : self.direct], self.encoder(features[:, -layout.VALUES :])], 1)
        found: Tensor = self.trunk(features)
        return found


def shape_of(config: NetworkConfig, rainbow: RainbowConfig, visible_only: bool = False) -> dict[str, Any]:
    """What `build_network` needs to know, for a checkpoint."""
    network = {field.name: getattr(config, field.name) for field in fields(NetworkConfig)}
    numbers = {"atoms": rainbow.atoms, "low": rainbow.low, "high": rainbow.high}
    return {"network": network, "visible_only": visible_only} | numbers


def build_network(shape: Mapping[str, Any]) -> QNetwork:
    """A network with fresh weights, which expects returns around 0."""
    shape = upgraded_shape(shape)
    config, visible_only = NetworkConfig(**shape["network"]), shape["visible_only"]
    if not config.widths:
        raise ProtegeError("a network has at least one layer: give --rainbow.widths a number")
    factors = (BUTTON_PAIRS, len(SPINNER_LEVELS)) if config.separate_heads else ()
    sizes = config.widths[-1], config.stream_width, len(ACTIONS), shape["atoms"]
    head = Head(*sizes, dueling=config.dueling, factors=factors)
    features: nn.Module = Values(visible_only)
    if config.network in ("lanes", "attention"):
        features = LaneFeatures(visible_only, values=config.network == "attention")
    network = QNetwork(Body(config), head, shape["low"], shape["high"], features)
    network.expect_nothing()
    return network


def upgraded_shape(shape: Mapping[str, Any]) -> dict[str, Any]:
    """A shape as it is written now; once there was none but the published network."""
    if "attention" not in shape:
        return dict(shape)
    old = dict(shape["attention"])
    hidden = old.pop("hidden")
    kind = "published" if old.pop("attention") else "plain"
    widths, visible_only = (hidden,) * old.pop("depth"), old.pop("visible_only")
    network = {"network": kind, "widths": widths, "stream_width": hidden // 2, **old}
    kept = {key: value for key, value in shape.items() if key != "attention"}
    return {**kept, "network": network, "visible_only": visible_only}


@dataclass(frozen=True)
class Thoughts:
    """What a pupil makes of some games."""

    values: Floats  # (games, 44)
    probabilities: Floats  # (games, 44, atoms): how likely each move leads to the return that an atom stands for
    support: Floats  # (atoms,) the returns
    attention: Floats | None  # (games, lanes, 7) by slot of the machine, mean of the heads; None if it has none


class RainbowPupil:
    """The player that takes the move of the highest expected return."""

    def __init__(self, network: QNetwork):
        self.network = network

    @property
    def attends(self) -> bool:
        return getattr(self.network.body, "encoder", None) is not None

    def values(self, observation: Floats) -> Floats:
        """Action values (games, 44)."""
        with torch.inference_mode():
            return self.network.expected(self.network(self._tensor(observation))).cpu().numpy()

    def distributions(self, observation: Floats) -> tuple[Floats, Floats]:
        """Probabilities (games, 44, atoms) of the returns that the atoms stand for (atoms,)."""
        with torch.inference_mode():
            probabilities = torch.softmax(self.network(self._tensor(observation)).float(), 2)
        return probabilities.cpu().numpy(), self.network.support.cpu().numpy()

    def act(self, frames: Frames) -> Ints:
        return self.values(frames.observation).argmax(1)

    def explain(self, observation: Floats) -> Thoughts:
        probabilities, support = self.distributions(observation)
        attention = self._attend(observation).mean(2) if self.attends else None
        return Thoughts(probabilities @ support, probabilities, support, attention)

    def attention(self, observation: Floats) -> Attention:
        """Which enemies the lanes attend to."""
        depths = observation[:, layout.ENEMY_DEPTHS]
        slots = np.argsort(np.where(depths < EMPTY_BELOW, np.inf, depths), axis=1, kind="stable")
        weights = self._attend(observation).transpose(0, 2, 1, 3)
        lane = layout.decode(observation, layout.PLAYER_LANE).clip(0, LANES - 1)
        occupied = np.take_along_axis(depths >= EMPTY_BELOW, slots, 1)
        return Attention(np.take_along_axis(weights, slots[:, None, None], 3), slots, occupied, lane)

    def _attend(self, observation: Floats) -> Floats:
        """What each lane's heads attend to (games, lanes, heads, 7)."""
        body = self.network.body
        assert isinstance(body, Body) and body.encoder is not None, "a network without attention has none to tell"
        with torch.inference_mode():
            _, weights = body.encoder.attend(self.network.features(self._tensor(observation))[:, -layout.VALUES :])
        return weights.float().cpu().numpy()

    def _tensor(self, observation: Floats) -> Tensor:
        return torch.from_numpy(observation).to(self.network.support.device)


CHECKPOINT_KIND: Final = "tempest-rainbow"


def load_pupil(path: Path) -> lane_network.Pupil | RainbowPupil:
    """The player whose weights a checkpoint of either learner holds."""
    saved = checkpoints.load(path, task_version=TASK_VERSION)
    if saved.kind == lane_network.CHECKPOINT_KIND:
        return lane_network.load_pupil(path)
    if saved.kind != CHECKPOINT_KIND:
        expected = f"{lane_network.CHECKPOINT_KIND} or {CHECKPOINT_KIND}"
        raise CheckpointMismatch(f"{path} is a checkpoint of {saved.kind}, expected {expected}")
    found = build_network(saved.state["shape"])
    restore_weights(found, saved.tensors, "network", saved.path)
    return RainbowPupil(found.frozen())
