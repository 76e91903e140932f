"""Compiled networks give what torch gives, whatever they are made of."""

import pickle
from typing import TypeVar

import numpy as np
import pytest
import torch

from protege.games.tempest.agents.compiled import quick
from protege.games.tempest.agents.greedy import Greedy
from protege.games.tempest.agents.network import Pupil, ValueNetwork
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.agents.rainbow import NetworkConfig, RainbowPupil, build_network, shape_of
from protege.games.tempest.task.env import Games, starts
from protege.learn.rainbow import RainbowConfig

Network = TypeVar("Network", bound=torch.nn.Module)


@pytest.fixture(scope="module")
def played() -> np.ndarray:
    """Observations of games at many levels, open and closed."""
    games = Games(starts(40, seed=3, level=list(range(1, 41))))
    seen = []
    for _ in range(120):
        games.step(games.frames.advice)
        seen.append(games.frames.observation.copy())
    return np.concatenate(seen[::12])


def with_any_weights(network: Network) -> Network:
    random = torch.Generator().manual_seed(7)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2, generator=random)
    return network


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"separate_heads": False},
        {"dueling": False},
        {"dueling": False, "separate_heads": False},
        {"stream_width": 24},
        {"layer_norm": False, "widths": (40,)},
        {"network": "plain"},
    ],
)
@pytest.mark.parametrize("visible_only", [False, True])
def test_values_of_a_rainbow_network_are_those_of_torch(shape, visible_only, played):
    config = NetworkConfig(**{"widths": (48, 32), **shape})
    network = build_network(shape_of(config, RainbowConfig(atoms=21, low=-10.0, high=40.0), visible_only))
    pupil = RainbowPupil(with_any_weights(network).frozen())
    fast = quick(pupil)
    assert isinstance(fast, Greedy)
    assert np.allclose(fast.values(played), pupil.values(played), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("visible_only", [False, True])
def test_values_of_a_pqn_network_are_those_of_torch(visible_only, played):
    pupil = Pupil(with_any_weights(ValueNetwork((48, 32))).eval(), visible_only=visible_only)
    fast = quick(pupil)
    assert isinstance(fast, Greedy)
    assert np.allclose(fast.values(played), pupil.values(played), rtol=1e-4, atol=1e-4)


def test_one_game_or_many_are_decided_alike_and_so_does_a_copy_that_was_sent_elsewhere(played):
    champion = find_player("champion")
    assert isinstance(champion, Pupil)
    fast = quick(champion)
    together = fast.values(played).copy()
    assert np.array_equal(np.concatenate([fast.values(played[i : i + 1]) for i in range(len(played))]), together)
    assert np.array_equal(pickle.loads(pickle.dumps(fast)).values(played), together)
    clear = np.partition(together, -2, 1)
    clear = clear[:, -1] - clear[:, -2] > 1e-3
    assert clear.mean() > 0.8
    assert np.array_equal(together.argmax(1)[clear], champion.values(played).argmax(1)[clear])


def test_what_only_torch_can_work_out_is_left_to_it():
    config = RainbowConfig(atoms=21)
    for kind in ("attention", "published"):
        pupil = RainbowPupil(build_network(shape_of(NetworkConfig(network=kind, widths=(16,)), config)))
        assert quick(pupil) is pupil
    assert quick("a player of one's own") == "a player of one's own"
