"""Networks of torch as plans and weights for compiled code, where that can work them out."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from protege.games.tempest.agents.greedy import NORM_EPSILON, Greedy, Plan
from protege.games.tempest.agents.lanes import FEATURES
from protege.games.tempest.agents.network import LaneFeatures, Pupil, ValueNetwork, Values
from protege.games.tempest.agents.rainbow import Body, RainbowPupil
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.learn.rainbow import QNetwork

Floats = npt.NDArray[np.float32]


def compiled(network: nn.Module, visible_only: bool = False) -> tuple[Plan, Floats] | None:
    """The plan and the weights of a network; None for one that only torch can work out.

    `visible_only` is for networks whose features are made elsewhere; Rainbow's know it themselves.
    """
    lanes, head = True, None
    if isinstance(network, ValueNetwork):
        body: nn.Module = network.body
    elif isinstance(network, QNetwork) and isinstance(network.body, Body) and network.body.encoder is None:
        body, head, features = network.body.trunk, network.head, network.features
        if len(head.factors) > 2 or not isinstance(features, LaneFeatures | Values):
            return None
        lanes, visible_only = isinstance(features, LaneFeatures), features.visible_only
    else:
        return None
    made = _Maker(FEATURES if lanes else layout.VALUES)
    trunk = made.add(0, body)
    if isinstance(network, ValueNetwork):
        value, advantage = made.add(trunk, network.value), made.add(trunk, network.advantage)
        factors, support = (len(ACTIONS), 0), np.zeros(1)
    else:
        assert head is not None and isinstance(network, QNetwork)
        value = -1 if head.value is None else made.add(trunk, head.value)
        advantage = made.add(made.add(trunk, head.hidden), head.advantage)
        factors = (head.factors[0], head.factors[1] if len(head.factors) == 2 else 0)
        support = network.support.double().cpu().numpy()
    weights = np.concatenate(made.weights)
    layers = np.array(made.layers, np.int64)
    return Plan(lanes, visible_only, layers, advantage, value, factors, support, made.end), weights


class _Maker:
    """Collects layers and their weights."""

    def __init__(self, inputs: int):
        self.layers: list[list[int]] = []
        self.weights: list[Floats] = []
        self.end = inputs  # of the numbers of a game
        self.stored = 0

    def add(self, source: int, module: nn.Module) -> int:
        """Append linear layers, each with its norm and ReLU; returns the offset of the last one's output."""
        for part in module if isinstance(module, nn.Sequential) else (module,):
            if isinstance(part, nn.Linear):
                self.layers.append([source, self.end, part.in_features, part.out_features, self.stored, 0, 0])
                source, self.end = self.end, self.end + part.out_features
                self._keep(part.weight.T, part.bias)
            elif isinstance(part, nn.LayerNorm):
                assert part.eps == NORM_EPSILON, f"a layer norm's epsilon is {NORM_EPSILON}; got {part.eps}"
                self.layers[-1][5] = 1
                self._keep(part.weight, part.bias)
            else:
                assert isinstance(part, nn.ReLU), f"{part} is not part of a compiled network"
                self.layers[-1][6] = 1
        return source

    def _keep(self, *tensors: torch.Tensor) -> None:
        for tensor in tensors:
            self.weights.append(tensor.detach().float().cpu().contiguous().numpy().reshape(-1))
            self.stored += tensor.numel()


def quick(player: Any) -> Any:
    """The same player by compiled code, if it is a pupil that can be; otherwise the player."""
    made = None
    if isinstance(player, Pupil | RainbowPupil):
        visible_only = isinstance(player, Pupil) and player.visible_only
        made = compiled(player.network, visible_only)
    return player if made is None else Greedy(*made)
