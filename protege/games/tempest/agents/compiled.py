"""Networks on the lane map as compiled code: the greedy move of a few games without torch, and without its overhead.

A `Plan` says which layers there are and where each one's numbers lie in one vector of weights, so a player in another
process needs no more than these two. Zeros are skipped: most of a lane map and half of what follows it are.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from protege.games.tempest.agents.network import FEATURES, LaneFeatures, Pupil, ValueNetwork, Values, see
from protege.games.tempest.agents.rainbow import Body, RainbowPupil
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Frames
from protege.kernels import kernel
from protege.learn.rainbow import QNetwork

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_VISIBLE: Final = np.ones(layout.VALUES, np.float32)
_VISIBLE[list(layout.HIDDEN)] = 0.0


class Plan(NamedTuple):
    """A network's shape, as the compiled code reads it. Every game has one row of numbers; offsets are into that."""

    lanes: bool  # the layers see the lane map, otherwise the 195 values
    visible_only: bool
    layers: Ints  # (layers, 7): input's offset, output's offset, inputs, outputs, weights' offset, norm, ReLU
    advantage: int  # offset of what each move adds, or of what each factor of a move does
    value: int  # offset of the state's value; -1 if there is none
    factors: tuple[int, int]  # moves are their product; the second is 0 where there is one
    support: Doubles  # (atoms,) returns; a single one where a move has a value and no distribution
    numbers: int  # of a game


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
                assert part.eps == _NORM_EPSILON, f"a layer norm's epsilon is {_NORM_EPSILON}; got {part.eps}"
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


_NORM_EPSILON: Final = 1e-5


@kernel
def _apply(layer: Ints, weights: Floats, numbers: Floats, rows: int) -> None:
    """One layer of all games: a weight is read once for all of them."""
    source, target, inputs, outputs, at = layer[0], layer[1], layer[2], layer[3], layer[4]
    bias = weights[at + inputs * outputs : at + inputs * outputs + outputs]
    for r in range(rows):
        found = numbers[r, target : target + outputs]
        for j in range(outputs):
            found[j] = bias[j]
    for i in range(inputs):
        line = weights[at + i * outputs : at + i * outputs + outputs]
        for r in range(rows):
            x = numbers[r, source + i]
            if x != 0.0:
                found = numbers[r, target : target + outputs]
                for j in range(outputs):
                    found[j] += x * line[j]
    for r in range(rows):
        found = numbers[r, target : target + outputs]
        if layer[5] != 0:
            _normalise(found, weights[at + (inputs + 1) * outputs : at + (inputs + 3) * outputs])
        if layer[6] != 0:
            for j in range(outputs):
                found[j] = max(found[j], np.float32(0.0))


@kernel
def _normalise(found: Floats, scales: Floats) -> None:
    size, total, squares = len(found), 0.0, 0.0
    for j in range(size):
        total += found[j]
    mean = total / size
    for j in range(size):
        squares += (found[j] - mean) ** 2
    shift, scale = np.float32(mean), np.float32(1.0 / np.sqrt(squares / size + _NORM_EPSILON))
    for j in range(size):
        found[j] = (found[j] - shift) * scale * scales[j] + scales[size + j]


@kernel
def _exponentials(logits: Floats, first: int, count: int, atoms: int, found: Doubles) -> None:
    """Of each group of atoms, whose softmax does not change with a constant: the largest is 1."""
    for group in range(first, first + count):
        highest = logits[group * atoms]
        for k in range(1, atoms):
            highest = max(highest, logits[group * atoms + k])
        for k in range(atoms):
            found[group, k] = np.exp(np.float64(logits[group * atoms + k] - highest))


@kernel
def _expect(advantage: Floats, value: Floats, first: int, second: int, support: Doubles, work: Doubles,
            found: Floats) -> None:  # fmt: skip
    """The expected return of every move: a softmax over sums is a product of exponentials."""
    atoms, groups = len(support), first + second
    shared = work[groups]
    for k in range(atoms):
        shared[k] = 1.0
    if len(value):
        for k in range(atoms):
            mean = mean_second = 0.0
            for group in range(first):
                mean += advantage[group * atoms + k]
            for group in range(first, groups):
                mean_second += advantage[group * atoms + k]
            shared[k] = value[k] - mean / first - (mean_second / second if second else 0.0)
        highest = shared[0]
        for k in range(1, atoms):
            highest = max(highest, shared[k])
        for k in range(atoms):
            shared[k] = np.exp(shared[k] - highest)
    _exponentials(advantage, 0, groups, atoms, work)
    for one in range(first):
        for k in range(atoms):
            work[one, k] *= shared[k]
        for other in range(max(1, second)):
            total = weighted = 0.0
            for k in range(atoms):
                likely = work[one, k] * (work[first + other, k] if second else 1.0)
                total += likely
                weighted += likely * support[k]
            found[one * max(1, second) + other] = np.float32(weighted / total)


@kernel
def _values(layers: Ints, weights: Floats, numbers: Floats, advantage: int, value: int, first: int, second: int,
            support: Doubles, work: Doubles, found: Floats) -> None:  # fmt: skip
    rows, atoms = len(found), len(support)
    for layer in range(len(layers)):
        _apply(layers[layer], weights, numbers, rows)
    for r in range(rows):
        added = numbers[r, advantage : advantage + (first + second) * atoms]
        if atoms > 1:
            _expect(added, numbers[r, value : value + (atoms if value >= 0 else 0)], first, second, support, work,
                    found[r])  # fmt: skip
        else:
            mean = 0.0
            for a in range(first):
                mean += added[a]
            for a in range(first):
                found[r, a] = numbers[r, value] + added[a] - np.float32(mean / first)


class Greedy:
    """The player that takes the move of the highest value, by compiled code."""

    def __init__(self, plan: Plan, weights: Floats):
        self.plan, self.weights = plan, weights
        self._work = np.empty((sum(plan.factors) + 1, len(plan.support)))
        self._room(16)

    def __reduce__(self) -> tuple[type["Greedy"], tuple[Plan, Floats]]:
        return Greedy, (self.plan, self.weights)

    def _room(self, rows: int) -> None:
        self._numbers = np.empty((rows, self.plan.numbers), np.float32)
        self._features = np.empty((rows, FEATURES if self.plan.lanes else layout.VALUES), np.float32)
        self._found = np.empty((rows, len(ACTIONS)), np.float32)

    def values(self, observation: Floats) -> Floats:
        """Action values (games, 44); the array is used again by the next call."""
        rows, plan = len(observation), self.plan
        if rows > len(self._found):
            self._room(rows)
        numbers, found = self._numbers[:rows], self._found[:rows]
        features = self._features[:rows]
        if plan.lanes:
            see(observation, features, plan.visible_only)
        else:
            np.multiply(observation, _VISIBLE if plan.visible_only else 1.0, out=features)
        numbers[:, : features.shape[1]] = features
        _values(plan.layers, self.weights, numbers, plan.advantage, plan.value, *plan.factors, plan.support,
                self._work, found)  # fmt: skip
        return found

    def act(self, frames: Frames) -> Ints:
        return self.values(frames.observation).argmax(1)


def quick(player: Any) -> Any:
    """The same player by compiled code, if it is a pupil that can be; otherwise the player."""
    made = None
    if isinstance(player, Pupil | RainbowPupil):
        visible_only = isinstance(player, Pupil) and player.visible_only
        made = compiled(player.network, visible_only)
    return player if made is None else Greedy(*made)
