"""Weights, optimisers and generators: put back exactly, or refused with what differs."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from protege import ProtegeError
from protege.learn.state import (
    StateMismatch,
    named_weights,
    restore_generator,
    restore_optimiser,
    restore_torch_generator,
    restore_weights,
)

OPTIMISERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adam-fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "adamw-amsgrad": lambda p: torch.optim.AdamW(p, lr=1e-2, amsgrad=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, centered=True, momentum=0.9),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
    "groups": lambda p: torch.optim.Adam([{"params": p[:1], "lr": 1e-3}, {"params": p[1:], "betas": (0.8, 0.9)}]),
}


def network(hidden=8):
    return nn.Sequential(nn.Linear(4, hidden), nn.LayerNorm(hidden), nn.Linear(hidden, 2))


def train(net, optimiser, generator, updates):
    for _ in range(updates):
        optimiser.zero_grad()
        net(torch.randn(16, 4, generator=generator)).square().mean().backward()
        optimiser.step()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_goes_on_bit_for_bit_after_a_restore(name):
    torch.manual_seed(1)
    net = network()
    optimiser = OPTIMISERS[name](list(net.parameters()))
    generator = torch.Generator().manual_seed(2)
    train(net, optimiser, generator, 5)
    state: dict[str, Any] = {"optimiser": optimiser.state_dict(), "generator": generator.get_state()}
    tensors = {name: tensor.clone() for name, tensor in named_weights(net, "network").items()}
    state = copy.deepcopy(state)
    train(net, optimiser, generator, 5)

    again = network()
    second = OPTIMISERS[name](list(again.parameters()))
    other = torch.Generator()
    restore_weights(again, tensors, "network")
    restore_optimiser(second, state["optimiser"])
    restore_torch_generator(other, state["generator"])
    train(again, second, other, 5)
    for one, two in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)
    assert str(second.state_dict()) == str(optimiser.state_dict())  # also the types: betas stay a tuple


@pytest.mark.parametrize(("before", "after"), [("adam", "adam-fused"), ("adam-fused", "adam")])
def test_an_optimiser_computes_its_steps_in_the_way_of_its_own_device(before, after):
    net = network()
    optimiser = OPTIMISERS[before](list(net.parameters()))
    train(net, optimiser, torch.Generator(), 2)
    again = OPTIMISERS[after](list(net.parameters()))
    restore_optimiser(again, optimiser.state_dict())
    assert again.param_groups[0]["fused"] == (True if after == "adam-fused" else None)
    train(net, again, torch.Generator(), 1)


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_numpy_generators_go_on_where_they_were(kind):
    generator = np.random.Generator(getattr(np.random, kind)(5))
    generator.integers(0, 100, 7, dtype=np.int32)  # leaves half a draw in the generator
    state = copy.deepcopy(generator.bit_generator.state)
    expected = generator.integers(0, 2**31, 50, dtype=np.int32)
    other = np.random.Generator(getattr(np.random, kind)(6))
    restore_generator(other, state)
    assert (other.integers(0, 2**31, 50, dtype=np.int32) == expected).all()


def test_a_generator_of_another_kind_is_refused():
    state = np.random.default_rng(1).bit_generator.state
    with pytest.raises(StateMismatch, match="came from PCG64, expected SFC64"):
        restore_generator(np.random.Generator(np.random.SFC64()), state)
    with pytest.raises(StateMismatch, match="another kind of device: 16 bytes, expected"):
        restore_torch_generator(torch.Generator(), torch.zeros(16, dtype=torch.uint8))


def test_another_network_is_refused_by_the_names_that_differ_and_left_as_it_was():
    tensors = named_weights(network(8), "network") | {"network.extra": torch.ones(1)}
    other = network(9)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(
        StateMismatch, match="another network: extra is unknown, 0.weight is .*8, 4.*expected .*9, 4.* and"
    ):
        restore_weights(other, tensors, "network")
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())
    with pytest.raises(StateMismatch, match="another target: 0.weight is missing"):
        restore_weights(other, tensors, "target")
    with pytest.raises(StateMismatch, match="0.weight is float32.* expected float64"):
        restore_weights(network(8).double(), named_weights(network(8), "network"), "network")


def test_an_optimiser_of_other_parameters_is_refused():
    net = network()
    optimiser = torch.optim.Adam(net.parameters())
    train(net, optimiser, torch.Generator(), 1)
    state = optimiser.state_dict()
    with pytest.raises(StateMismatch, match="another number of parameters"):
        restore_optimiser(torch.optim.Adam(nn.Linear(2, 2).parameters()), state)
    with pytest.raises(StateMismatch, match="exp_avg of parameter 0 is float32.8, 4., expected float32.9, 4."):
        restore_optimiser(torch.optim.Adam(network(9).parameters()), state)


def test_weights_that_are_not_finite_are_not_handed_out():
    net = network()
    with torch.no_grad():
        net[1].bias[3] = math.inf
    with pytest.raises(ProtegeError, match="the network is not saved, .* not finite: 1.bias; what was saved before"):
        named_weights(net, "network")
