"""The greedy move of a few games by compiled code, without torch and without its overhead (numba).

A `Plan` says which layers there are and where each one's numbers lie in one vector of weights, so a player in another
process needs no more than these two. Zeros are skipped: most of a lane map and half of what follows it are.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege.games.tempest.agents.lanes import FEATURES, see
from protege.games.tempest.task import observation as layout
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.env import Frames
from protege.kernels import kernel

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NORM_EPSILON: Final = 1e-5  # of layer norms
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
    shift, scale = np.float32(mean), np.float32(1.0 / np.sqrt(squares / size + NORM_EPSILON))
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

    def values(self, observation: Floats) -> Floats:
        """Action values (games, 44)."""
        rows, plan = len(observation), self.plan
        if rows > len(self._numbers):
            self._room(rows)
        numbers, found = self._numbers[:rows], np.empty((rows, len(ACTIONS)), np.float32)
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
