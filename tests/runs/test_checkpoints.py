"""Checkpoints: what goes in comes out exactly, what is not whole or not ours is refused, and kills lose nothing."""

import json
import os
import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

import protege
from protege.runs.checkpoints import (
    CheckpointError,
    CheckpointMismatch,
    load,
    restore_generator,
    restore_optimiser,
    restore_torch_generator,
    restore_weights,
    save,
    weights,
)
from tests.killing import kill_savers

OPTIMISERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2),
    "adam-fused": lambda p: torch.optim.Adam(p, lr=1e-2, fused=True),
    "adamw-amsgrad": lambda p: torch.optim.AdamW(p, lr=1e-2, amsgrad=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, centered=True, momentum=0.9),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
    "groups": lambda p: torch.optim.Adam([{"params": p[:1], "lr": 1e-3}, {"params": p[1:], "betas": (0.8, 0.9)}]),
}
STATES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.tuples(inside, inside)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.just("$tuple"), inside, max_size=3)
    ),
    max_leaves=12,
)


def network(hidden=8):
    return nn.Sequential(nn.Linear(4, hidden), nn.LayerNorm(hidden), nn.Linear(hidden, 2))


def train(net, optimiser, generator, updates):
    for _ in range(updates):
        optimiser.zero_grad()
        net(torch.randn(16, 4, generator=generator)).square().mean().backward()
        optimiser.step()


def saved(path, tensors=None, state=None, kind="tempest-pqn", task_version=3):
    save(path, tensors or {}, state or {}, kind=kind, task_version=task_version)
    return load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "last.safetensors"


def test_a_checkpoint_is_a_safetensors_file_that_says_what_it_is(path):
    save(path, {"network.weight": torch.ones(2, 3)}, {"frames": 7}, kind="tempest-pqn", task_version=3)
    assert load_file(path)["network.weight"].shape == (2, 3)  # any safetensors reader gets the weights
    header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
    document = json.loads(header["__metadata__"]["protege"])
    assert document["state"] == {"frames": 7} and document["protege"] == protege.__version__
    found = load(path, kind="tempest-pqn", task_version=3)
    assert (found.kind, found.task_version, found.state) == ("tempest-pqn", 3, {"frames": 7})


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_goes_on_bit_for_bit_after_a_restore(path, name):
    torch.manual_seed(1)
    net = network()
    optimiser = OPTIMISERS[name](list(net.parameters()))
    generator = torch.Generator().manual_seed(2)
    train(net, optimiser, generator, 5)
    state = {"optimiser": optimiser.state_dict(), "generator": generator.get_state()}
    checkpoint = saved(path, weights(net, "network"), state)
    train(net, optimiser, generator, 5)

    again = network()
    second = OPTIMISERS[name](list(again.parameters()))
    other = torch.Generator()
    restore_weights(again, checkpoint, "network")
    restore_optimiser(second, checkpoint.state["optimiser"])
    restore_torch_generator(other, checkpoint.state["generator"])
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
def test_numpy_generators_go_on_where_they_were(path, kind):
    generator = np.random.Generator(getattr(np.random, kind)(5))
    generator.integers(0, 100, 7, dtype=np.int32)  # leaves half a draw in the generator
    checkpoint = saved(path, state={"generator": generator.bit_generator.state})
    expected = generator.integers(0, 2**31, 50, dtype=np.int32)
    other = np.random.Generator(getattr(np.random, kind)(6))
    restore_generator(other, checkpoint.state["generator"])
    assert (other.integers(0, 2**31, 50, dtype=np.int32) == expected).all()


def test_a_generator_of_another_kind_is_refused(path):
    state = saved(path, state={"g": np.random.default_rng(1).bit_generator.state}).state["g"]
    with pytest.raises(CheckpointMismatch, match="came from PCG64, expected SFC64"):
        restore_generator(np.random.Generator(np.random.SFC64()), state)
    with pytest.raises(CheckpointMismatch, match="another kind of device: 16 bytes, expected"):
        restore_torch_generator(torch.Generator(), torch.zeros(16, dtype=torch.uint8))


@given(state=st.dictionaries(st.text(max_size=4), STATES, max_size=4))
def test_every_plain_state_comes_back_equal_and_of_the_same_type(tmp_path_factory, state):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    found = saved(path, state=state).state
    assert found == state and repr(found) == repr(state)


DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "bool"]
DTYPES += ["uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_tensors_and_arrays_of_every_kind_come_back_the_same(path, dtype, shape):
    tensor = torch.arange(int(np.prod(shape))).reshape(shape).to(getattr(torch, dtype))
    state = {"tensor": tensor, "deep": [{1: (tensor,)}]}
    if dtype != "bfloat16":
        state |= {"array": tensor.numpy(), "scalar": getattr(np, dtype if dtype != "bool" else "bool_")(1)}
    found = saved(path, {"weights": tensor}, state)
    for other in (found.tensors["weights"], found.state["tensor"], found.state["deep"][0][1][0]):
        assert other.dtype == tensor.dtype and other.shape == tensor.shape and torch.equal(other, tensor)
    if dtype != "bfloat16":
        array, scalar = found.state["array"], found.state["scalar"]
        assert array.dtype == tensor.numpy().dtype and array.shape == shape and (array == tensor.numpy()).all()
        assert type(scalar) is type(state["scalar"]) and scalar == 1


def test_numbers_json_does_not_know_and_odd_layouts_come_back(path):
    base = torch.arange(12.0).reshape(3, 4)
    state: dict[str, Any] = {
        "inf": [float("inf"), -float("inf")],
        "nan": float("nan"),
        "big": 2**127 + 1,
        "reversed": np.arange(5)[::-1],
        "read_only": np.broadcast_to(np.arange(3), (2, 3)),
        "swapped": np.arange(3, dtype=">i4"),
        "same_name": {1: torch.zeros(1), "1": torch.ones(1)},
        "0d": np.array(2.5),
    }
    tensors = {"whole": base, "tied": base, "turned": base.T, "part": base[1:], "grad": nn.Parameter(base.clone())}
    found = saved(path, tensors, state)
    assert found.state["inf"] == [float("inf"), -float("inf")] and found.state["nan"] != found.state["nan"]
    assert found.state["big"] == 2**127 + 1
    for name in ("reversed", "read_only", "swapped", "0d"):
        assert np.array_equal(found.state[name], state[name]), name
    assert found.state["same_name"][1].item() == 0 and found.state["same_name"]["1"].item() == 1
    for name, tensor in tensors.items():
        assert torch.equal(found.tensors[name], tensor), name


def test_what_cannot_be_stored_is_refused_before_anything_is_written(path):
    for value in (object(), {1, 2}, b"bytes", {(1, 2): 3}, np.array(["text"]), torch.zeros(2, dtype=torch.complex64)):
        with pytest.raises(TypeError, match="which no checkpoint can hold"):
            saved(path, state={"inside": {"thing": value}})
    assert list(path.parent.iterdir()) == []


def test_what_was_loaded_does_not_change_with_the_file(path):
    first = saved(path, {"w": torch.zeros(100_000)}, {"a": np.zeros(100_000)})
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 300_000)
    assert (first.tensors["w"] == 0).all() and (first.state["a"] == 0).all()
    first.state["a"][0] = 1  # and may be written to


def one_line(error) -> bool:
    return "\n" not in str(error.value) and str(error.value)[0] != "'"


def test_a_file_cut_short_anywhere_is_refused(path):
    saved(path, {"weights": torch.arange(50.0)}, {"frames": 5, "array": np.arange(9)})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="cut short|no safetensors file") as error:
            load(path)
        assert one_line(error)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="damaged"):
        load(path)


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(path):
    expected = saved(path, {"weights": torch.arange(50.0)}, {"frames": 5, "array": np.arange(9)})
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    bits = random.Random(1).sample(range(8, header * 8), 1500) + list(range(64))
    bits += random.Random(2).sample(range(header * 8, len(whole) * 8), 200)
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = load(path)
        except CheckpointError:
            continue
        assert repr(found) == repr(expected), f"bit {bit} passed"


class Trap:
    def __reduce__(self):
        return (os.mkdir, ("sprung",))


def test_a_pickle_is_never_opened(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    for write in (lambda: path.write_bytes(pickle.dumps(Trap())), lambda: torch.save({"w": Trap()}, path)):
        write()
        with pytest.raises(CheckpointError, match="is a pickle, which Protege never opens") as error:
            load(path)
        assert one_line(error)
    assert not (path.parent / "sprung").exists()


def test_foreign_files_are_refused(path):
    save_file({"weights": torch.ones(3)}, path)
    with pytest.raises(CheckpointError, match="was not written by Protege"):
        load(path)
    save_file({"weights": torch.ones(3)}, path, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="was not written by Protege"):
        load(path)
    for text in ("", "{", "[]", "{}", "[" * 100_000, '{"format": 1}'):
        save_file({"weights": torch.ones(3)}, path, metadata={"protege": text})
        with pytest.raises(CheckpointError, match="is damaged"):
            load(path)
    for content in (b"", b"GIF89a and more", b"\0" * 5000, random.Random(1).randbytes(5000)):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="no safetensors file|cut short|damaged"):
            load(path)
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(path.with_name("nothing"))
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(path.parent)


def test_another_format_task_or_kind_is_refused_with_what_to_do(path, monkeypatch):
    saved(path)
    with pytest.raises(
        CheckpointMismatch, match="task version 3, this is version 4: train anew, or use what it was made"
    ):
        load(path, kind="tempest-pqn", task_version=4)
    with pytest.raises(CheckpointMismatch, match="is a checkpoint of tempest-pqn, expected echelon-ppo"):
        load(path, kind="echelon-ppo")
    monkeypatch.setattr("protege.runs.checkpoints.FORMAT", 2)
    with pytest.raises(
        CheckpointError, match=f"has format 1, expected 2: it was made by Protege {protege.__version__}"
    ):
        load(path)


def test_another_network_is_refused_by_the_names_that_differ_and_left_as_it_was(path):
    checkpoint = saved(path, weights(network(8), "network") | {"network.extra": torch.ones(1)})
    other = network(9)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(
        CheckpointMismatch, match="another network: extra is unknown, 0.weight is .*8, 4.*expected .*9, 4.* and"
    ):
        restore_weights(other, checkpoint, "network")
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())
    with pytest.raises(CheckpointMismatch, match="another target: 0.weight is missing"):
        restore_weights(other, checkpoint, "target")
    with pytest.raises(CheckpointMismatch, match="0.weight is float32.* expected float64"):
        restore_weights(network(8).double(), saved(path, weights(network(8), "network")), "network")


def test_an_optimiser_of_other_parameters_is_refused(path):
    net = network()
    optimiser = torch.optim.Adam(net.parameters())
    train(net, optimiser, torch.Generator(), 1)
    state = saved(path, state={"optimiser": optimiser.state_dict()}).state["optimiser"]
    with pytest.raises(CheckpointMismatch, match="another number of parameters"):
        restore_optimiser(torch.optim.Adam(nn.Linear(2, 2).parameters()), state)
    with pytest.raises(CheckpointMismatch, match="exp_avg of parameter 0 is float32.8, 4., expected float32.9, 4."):
        restore_optimiser(torch.optim.Adam(network(9).parameters()), state)


def test_a_full_disk_leaves_the_checkpoint_before(path, monkeypatch):
    saved(path, state={"number": 1})

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        CheckpointError, match="could not be saved, what was there before is untouched: .*No space left"
    ):
        saved(path, state={"number": 2})
    assert load(path).state == {"number": 1} and len(list(path.parent.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
def test_a_kill_during_a_save_leaves_a_whole_checkpoint(tmp_path):
    result = kill_savers(tmp_path, kills=50, seed=11)
    assert result.kills == 50 and result.written > 0
