"""What all learners share: devices, threads, and updates that must not be made."""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from protege import ProtegeError
from protege.learn.optimise import (
    MOST_SKIPPED,
    LearningFailed,
    Optimiser,
    add_up,
    find_device,
)
from protege.learn.pqn import PQN, PQNConfig, Rollout
from protege.learn.rainbow import Head, QNetwork, Rainbow, RainbowConfig
from protege.runs import checkpoints
from tests.learn import test_ppo
from tests.learn.test_rainbow import make_batch

# --- devices and threads ----------------------------------------------------------------------------------------------


def only_there(monkeypatch, *devices):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in devices)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in devices)


@pytest.mark.parametrize(("there", "chosen"), [(("cuda", "mps"), "cuda"), (("mps",), "mps"), ((), "cpu")])
def test_without_a_wish_a_gpu_is_used_where_there_is_one(there, chosen, monkeypatch):
    only_there(monkeypatch, *there)
    assert find_device("auto").type == chosen and find_device("cpu").type == "cpu"


def test_a_device_that_is_not_there_is_refused_with_those_that_are(monkeypatch):
    only_there(monkeypatch, "mps")
    with pytest.raises(ProtegeError, match="no device cuda here, only mps, cpu; `protege doctor --full`"):
        find_device("cuda")


def optimiser_of(threads=1):
    return Optimiser(nn.Linear(2, 2), learning_rate=0.1, max_grad_norm=1.0, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_share_pieces_whose_results_come_back_in_order(threads):
    optimiser = optimiser_of(threads)
    assert optimiser.map(lambda piece: sum(range(piece)), [20_000, 3, 5]) == [199_990_000, 3, 10]
    assert (optimiser.others_cpu_s > 0) == (threads > 1)


def test_what_goes_wrong_in_a_thread_goes_wrong_for_the_caller():
    def work(piece):
        raise ValueError(f"piece {piece}")

    for threads in (1, 2):
        with pytest.raises(ValueError, match="piece"):
            optimiser_of(threads).map(work, [1, 2, 3])


def test_gradients_are_added_by_weight():
    def parts():
        return [[torch.tensor([8.0]), torch.tensor([0.0])], [torch.tensor([4.0]), torch.tensor([2.0])]]

    assert add_up(parts(), [1.0, 1.0], 1.0) == [torch.tensor([12.0]), torch.tensor([2.0])]
    assert add_up(parts(), [1, 3], 4) == [torch.tensor([5.0]), torch.tensor([1.5])]  # a quarter and three quarters


# --- numbers that are not finite --------------------------------------------------------------------------------------


class WithPQN:
    """Every kind of learner with one batch, which makes one update."""

    inputs = {"rewards": ("rewards", "input returns"), "features": ("features", "input features")}

    def __init__(self):
        torch.manual_seed(3)
        config = PQNConfig(games=6, horizon=3, minibatch=18, epochs=1, learning_rate=0.01)
        self.learner = PQN(nn.Linear(5, 4), config)
        self.network = self.learner.network
        random = np.random.default_rng(4)
        self.batch = Rollout.empty(config.horizon, config.games, 5)
        self.batch.features[:], self.batch.rewards[:] = random.random((4, 6, 5)), random.random((3, 6))
        self.batch.actions[:], self.batch.advice[:] = random.integers(0, 4, (2, 3, 6))

    def update(self, batch):
        return self.learner.update(batch, 0.5)

    def poisoned(self, what, number):
        batch = copy.deepcopy(self.batch)
        getattr(batch, what)[1, 2] = number
        return batch


class WithRainbow:
    inputs = {name: (name, f"input {name}") for name in ("observation", "next_observation", "returns", "weight")}

    def __init__(self):
        torch.manual_seed(4)
        config = RainbowConfig(target_sync_every=4, acting_every=3, warm_up=10, learning_rate=0.01, ema=0.3)
        self.learner = Rainbow(QNetwork(nn.Linear(3, 8), Head(8, 8, 4, 11), -5.0, 5.0), config)
        self.network = self.learner.network
        self.batch = make_batch(16, teacher_action=[1] * 16)

    def update(self, batch):
        figures, divergences = self.learner.update(batch, 0.5)
        assert np.isfinite(divergences).all() and (divergences >= 0).all(), "they become priorities"
        return figures

    def poisoned(self, what, number):
        batch = copy.deepcopy(self.batch)
        getattr(batch, what)[5] = number
        return batch


class WithPPO:
    inputs = {
        "reward": ("reward", "input reward"),
        "state": ("state", "input values"),  # of the critic, which alone sees it
    }

    def __init__(self):
        self.learner, task = test_ppo.learner_of(replace(test_ppo.CONFIG, epochs=1, minibatches=1), groups=4)
        self.network = self.learner.policy
        task.play(self.learner.policy)
        self.batch = task.rollout

    def update(self, batch):
        return self.learner.update(batch)

    def poisoned(self, what, number):
        batch = copy.deepcopy(self.batch)
        room = {"reward": batch.numbers, "cue": batch.observations, "state": batch.shared}[what]
        room[what][0, 1, 0] = number
        return batch


KINDS: list[Any] = [WithPQN, WithRainbow, WithPPO]
POISONS = [(kind, what) for kind in KINDS for what in kind.inputs]


def kept(state):
    """Everything that an update changes, as numbers by name."""
    found = {name: tensor.clone() for name, tensor in state["weights"].items()}
    for parameter, values in state["optimiser"]["state"].items():
        found |= {f"{name} of {parameter}": torch.as_tensor(value).clone() for name, value in values.items()}
    return found | {"updates": torch.tensor(state["updates"])}


def alike(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize(("kind", "what"), POISONS)
def test_a_poisoned_batch_changes_nothing_and_the_next_good_one_is_learned_from(kind, what, number, tmp_path):
    made = kind()
    learner = made.learner
    assert made.update(made.batch)["skipped"] == 0 and not learner.explain()
    before = kept(learner.state())
    field, named = made.inputs[what]
    figures = made.update(made.poisoned(field, number))
    assert figures["skipped"] == 1 and all(map(math.isfinite, figures.values()))
    assert alike(kept(learner.state()), before)
    assert learner.explain().startswith(f"update 2 was skipped: not finite in {named}: ") and not learner.explain()

    state = learner.state()
    path = tmp_path / "last.safetensors"
    checkpoints.save(path, state.pop("weights"), {"learner": state}, kind="test", task_version=1)
    saved = checkpoints.load(path)
    assert alike(kept({"weights": saved.tensors, **saved.state["learner"]}), before)

    figures = made.update(made.batch)
    after = kept(learner.state())
    assert figures["skipped"] == 1 and learner.updates == 2 and figures["gradient_norm"] > 0
    assert all(bool(tensor.isfinite().all()) for tensor in after.values())
    assert not alike(after, before)


@pytest.mark.parametrize("kind", KINDS)
def test_twenty_skipped_updates_in_a_row_end_the_training_with_a_diagnosis(kind):
    made = kind()
    learner, bad = made.learner, made.poisoned(*next(iter(made.inputs.values()))[:1], math.inf)
    for _ in range(MOST_SKIPPED - 1):
        made.update(bad)
    made.update(made.batch)  # one that works starts the count again
    name, parameter = next(made.network.named_parameters())
    with torch.no_grad():
        parameter.view(-1)[0] = math.nan
    for _ in range(MOST_SKIPPED - 1):
        made.update(made.batch)
    with pytest.raises(LearningFailed, match=r"20 updates in a row met .* stopped after update 1; first in") as failure:
        made.update(made.batch)
    report = failure.value.report
    assert report["skipped_in_a_row"] == 20 and report["skipped"] == 39 and report["update"] == 1
    assert "nan" in report["figures"].values() and report["tensors"][f"weight {name}"].startswith("1 of ")
    with pytest.raises(ProtegeError, match=f"is not saved, because numbers in it are not finite: {name}"):
        learner.state()


def test_an_observation_that_is_not_finite_leaves_the_policy_alone():
    made = WithPPO()
    before = [parameter.clone() for parameter in made.learner.optimiser.groups[0][0]]
    figures = made.update(made.poisoned("cue", math.nan))
    assert figures["skipped"] == 1 and figures["rounds"] == 0 and made.learner.updates == 0
    assert all(torch.equal(*pair) for pair in zip(before, made.learner.optimiser.groups[0][0]))
    assert "not finite in input cue: " in made.learner.explain()


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_that_is_not_finite_is_found_even_where_the_loss_is(kind):
    made = kind()
    name, parameter = next(made.network.named_parameters())
    parameter.register_hook(lambda gradient: gradient * math.inf)
    made.update(made.batch)
    assert made.learner.updates == 0
    assert made.learner.explain().startswith(f"update 1 was skipped: not finite in gradient {name}: ")


# --- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_learner_goes_on_to_the_last_bit(kind, tmp_path):
    made, other = kind(), kind()
    for _ in range(5):
        made.update(made.batch)
    made.update(made.poisoned(*next(iter(made.inputs.values()))[:1], math.nan))
    state = made.learner.state()
    path = tmp_path / "learner.safetensors"
    checkpoints.save(path, state.pop("weights"), {"learner": state}, kind="test", task_version=1)
    saved = checkpoints.load(path)
    other.learner.restore({"weights": saved.tensors, **saved.state["learner"]})
    for _ in range(5):
        assert made.update(made.batch) == other.update(made.batch)
    assert alike(kept(made.learner.state()), kept(other.learner.state()))
    assert other.learner.updates == 10 and other.learner.optimiser.skipped == 1
