"""The Rainbow learner: numbers worked by hand, updates that go wrong, and small worlds whose answers are known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from protege.learn.rainbow import (
    MOST_SKIPPED,
    Head,
    LearningFailed,
    NoSuchDevice,
    QNetwork,
    Rainbow,
    RainbowConfig,
    Streams,
    beta_at,
    cloning_at,
    divergence,
    find_device,
    learning_rate_at,
    linear,
    project,
    rival_of,
)
from protege.learn.replay import Actor, Batch
from protege.runs import checkpoints
from tests.learn import small_worlds
from tests.learn.small_worlds import Ints, Outcome

Floats = npt.NDArray[np.float32]


# --- schedules --------------------------------------------------------------------------------------------------------


def test_a_linear_schedule_is_constant_before_and_after_its_fall():
    assert [linear(t, 1.0, 0.2, 100, start=50) for t in (0, 50, 75, 150, 999)] == pytest.approx([1, 1, 0.8, 0.2, 0.2])


def test_beta_and_the_cloning_weight_follow_the_frames():
    config = RainbowConfig()
    assert [beta_at(config, f) for f in (0, 5_000_000, 20_000_000)] == pytest.approx([0.4, 0.7, 1.0])
    frames = (0, 500_000, 1_500_000, 2_500_000, 9_000_000)
    assert [cloning_at(config, f) for f in frames] == pytest.approx([1.0, 1.0, 0.5005, 0.001, 0.001])


def test_the_learning_rate_warms_up_then_falls_like_a_cosine_and_starts_again():
    config = RainbowConfig(learning_rate=5e-5, final_learning_rate=2e-5, warm_up=5_000, period=3_000_000)
    rates = [learning_rate_at(config, u) for u in (0, 2_499, 5_000, 1_505_000, 3_004_999, 3_005_000)]
    assert rates == pytest.approx([1e-8, 2.5e-5, 5e-5, 3.5e-5, 2e-5, 5e-5], rel=1e-5)
    within_a_budget = [learning_rate_at(config, u, share) for u, share in ((2_499, 0.0), (9_000, 0.5), (9_001, 1.0))]
    assert within_a_budget == pytest.approx([2.5e-5, 3.5e-5, 2e-5], rel=1e-5)


def test_halving_the_learning_rate_below_its_floor_does_not_turn_the_schedule_round():
    learner = Rainbow(table(1, 2), RainbowConfig(learning_rate=8e-5, final_learning_rate=2e-5, warm_up=0, period=10))
    learner.rate_scale = 0.5**4
    rates = []
    for learner.updates in range(10):
        rates.append(learner.rate())
    assert rates == sorted(rates, reverse=True) and rates[0] == pytest.approx(5e-6)
    inverted = RainbowConfig(learning_rate=1e-5, final_learning_rate=2e-5, warm_up=0, period=10)
    assert {learning_rate_at(inverted, update) for update in range(10)} == {1e-5}


# --- devices ----------------------------------------------------------------------------------------------------------


def only_there(monkeypatch, *devices: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in devices)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in devices)


@pytest.mark.parametrize(("there", "chosen"), [(("cuda", "mps"), "cuda"), (("mps",), "mps"), ((), "cpu")])
def test_without_a_wish_a_gpu_is_used_where_there_is_one(there, chosen, monkeypatch):
    only_there(monkeypatch, *there)
    assert find_device("auto").type == chosen and find_device("cpu").type == "cpu"


def test_a_device_that_is_not_there_is_refused_with_those_that_are(monkeypatch):
    only_there(monkeypatch, "mps")
    with pytest.raises(NoSuchDevice, match="no device cuda here, only mps, cpu; `protege doctor --full`"):
        find_device("cuda")


# --- distributions ----------------------------------------------------------------------------------------------------


def row(*values: float) -> torch.Tensor:
    return torch.tensor([values])


def projected(chances: tuple[float, ...], returns: float, bootstrap: float) -> list[float]:
    support = torch.tensor([0.0, 1.0, 2.0])
    found: list[float] = project(row(*chances), torch.tensor([returns]), torch.tensor([bootstrap]), support)[0].tolist()
    return found


def test_a_moved_atom_shares_its_mass_by_distance():
    # Atoms 0, 1, 2 move to 0.25, 0.75, 1.25: quarters and three quarters of their mass.
    found = projected((0.5, 0.25, 0.25), 0.25, 0.5)
    assert found == pytest.approx([0.5 * 0.75 + 0.25 * 0.25, 0.5 * 0.25 + 0.25 * 0.75 + 0.25 * 0.75, 0.25 * 0.25])


def test_an_atom_that_lands_on_another_gives_it_all_its_mass():
    assert projected((0.2, 0.5, 0.3), 1.0, 0.5) == pytest.approx([0.0, 0.2 + 0.25, 0.25 + 0.3])  # to 1, 1.5, 2
    assert projected((0.2, 0.5, 0.3), 0.0, 1.0) == pytest.approx([0.2, 0.5, 0.3])


def test_what_would_leave_the_support_stays_at_its_ends():
    assert projected((0.2, 0.5, 0.3), 1.5, 1.0) == pytest.approx([0.0, 0.1, 0.1 + 0.5 + 0.3])  # to 1.5, 2.5, 3.5
    assert projected((0.2, 0.5, 0.3), -9.0, 1.0) == [1.0, 0.0, 0.0]


def test_after_the_end_of_an_episode_only_the_rewards_count():
    assert projected((0.1, 0.1, 0.8), 0.25, 0.0) == pytest.approx([0.75, 0.25, 0.0])


def test_each_sample_has_a_horizon_of_its_own():
    support = torch.linspace(-100, 100, 51)
    torch.manual_seed(1)
    chances = torch.softmax(torch.randn(3, 51), 1)
    returns, horizons = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([12.0, 3.0, 1.0])
    found = project(chances, returns, 0.99**horizons, support)
    expected = returns + 0.99**horizons * (chances @ support)  # no mass leaves these supports, so means are kept
    assert (found @ support).tolist() == pytest.approx(expected.tolist(), abs=0.1)
    assert found.sum(1).tolist() == pytest.approx([1.0] * 3)


def test_the_divergence_is_the_cross_entropy_less_the_targets_own_entropy():
    target, predicted = row(0.5, 0.5), row(0.25, 0.75)
    cross_entropy = -(target * predicted.log()).sum(1)
    expected = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert divergence(target, cross_entropy).item() == pytest.approx(expected)


def test_a_noisy_target_that_is_predicted_perfectly_has_no_priority():
    noisy = torch.full((1, 51), 1 / 51)
    assert divergence(noisy, -(noisy * noisy.log()).sum(1)).item() == pytest.approx(0.0, abs=1e-6)
    certain = row(0.0, 1.0)
    assert divergence(certain, torch.tensor([0.3])).item() == pytest.approx(0.3)


def test_the_rival_is_whoever_keeps_the_teacher_from_leading_by_the_margin():
    values = torch.tensor([[1.0, 2.0, 0.0], [1.0, 2.0, 1.6], [1.0, 2.0, 1.4], [1.0, 1.0, 1.0]])
    assert rival_of(values, torch.tensor([0, 1, 1, 1]), 0.5).tolist() == [1, 2, 1, 0]


# --- networks ---------------------------------------------------------------------------------------------------------


class Table(Head):
    """Logits for each state and action: what can be learned exactly."""

    def __init__(self, states: int, actions: int, atoms: int):
        nn.Module.__init__(self)
        self.atoms, self.factors = atoms, (actions, 1)
        self.logits = nn.Parameter(torch.zeros(states, actions, atoms))

    def streams(self, features: torch.Tensor) -> Streams:
        return Streams(features, None)

    def all(self, streams: Streams) -> torch.Tensor:
        return torch.einsum("bs,san->ban", streams.hidden, self.logits)


def table(states: int, actions: int, *, low: float = 0.0, high: float = 2.0, atoms: int = 3) -> QNetwork:
    """States as one-hot observations, each with logits of its own; at first all returns are as likely."""
    return QNetwork(nn.Identity(), Table(states, actions, atoms), low, high)


def set_chances(network: QNetwork, state: int, action: int, *chances: float) -> None:
    assert isinstance(network.head, Table)
    with torch.no_grad():
        network.head.logits[state, action] = torch.tensor(chances).log()


def gradient_of(learner: Rainbow) -> torch.Tensor:
    """Of a table's logits (states, actions, atoms)."""
    assert isinstance(learner.network.head, Table) and learner.network.head.logits.grad is not None
    return learner.network.head.logits.grad


def make_batch(size: int, states: int = 3, actions: int = 4, **columns: npt.ArrayLike) -> Batch:
    """Random transitions, except for the columns that are given."""
    dice = np.random.default_rng(size)
    ones = np.ones(size, np.int64)
    batch = Batch(
        observation=dice.normal(size=(size, states)).astype(np.float32),
        action=dice.integers(0, actions, size),
        returns=dice.normal(size=size).astype(np.float32),
        next_observation=dice.normal(size=(size, states)).astype(np.float32),
        bootstrap=dice.choice([0.0, 0.886, 0.99], size).astype(np.float32),
        horizon=ones,
        actor=ones * Actor.PUPIL,
        own=ones,
        teacher_action=-ones,
        weight=np.ones(size, np.float32),
        handle=np.arange(size),
    )
    return batch._replace(**{name: np.asarray(v, getattr(batch, name).dtype) for name, v in columns.items()})


def by_teacher(size: int) -> list[Actor]:
    return [Actor.TEACHER] * size


def small_learner(config: RainbowConfig = RainbowConfig(), threads: int = 1) -> Any:
    torch.manual_seed(4)
    network = QNetwork(nn.Linear(3, 8), Head(8, 8, 4, 11), -5.0, 5.0)
    return Rainbow(network, config, threads=threads)


def test_the_mean_of_a_dueling_heads_logits_is_the_value_stream():
    head, features = Head(6, 5, 4, 3), torch.randn(7, 6)
    logits = head(features)
    assert logits.shape == (7, 4, 3) and head.value is not None
    assert torch.allclose(logits.mean(1), head.value(features), atol=1e-6)
    plain = Head(6, 5, 4, 3, dueling=False)
    assert torch.equal(plain(features), plain.advantage(plain.hidden(features)).view(7, 4, 3))


def test_factors_add_up_to_one_joint_value_with_the_last_factor_counting_fastest():
    head, features = Head(6, 5, 6, 3, dueling=False, factors=(2, 3)), torch.randn(7, 6)
    first, second = head.advantage(head.hidden(features)).view(7, 5, 3).split((2, 3), 1)
    found = head(features)
    for action in range(6):
        assert torch.allclose(found[:, action], first[:, action // 3] + second[:, action % 3])


@pytest.mark.parametrize("factors", [(), (2, 3)])
@pytest.mark.parametrize("dueling", [True, False])
def test_the_logits_of_some_actions_are_those_of_all_with_the_same_gradients(dueling, factors):
    torch.manual_seed(2)
    head = Head(6, 5, 6, 3, dueling=dueling, factors=factors)
    features = torch.randn(9, 6, requires_grad=True)
    picked = torch.tensor([[0, 0, 4], [4, 5, 4], [1, 2, 0]] * 3)  # some twice, one by no sample
    streams = head.streams(features)
    whole = head.all(streams).gather(1, picked[:, :, None].expand(-1, -1, 3))
    found = head.some(streams, picked)
    assert torch.allclose(found, whole, atol=1e-6)
    outer, inputs = torch.randn(9, 3, 3), [features, *head.parameters()]
    for one, other in zip(
        torch.autograd.grad(found, inputs, outer, retain_graph=True),
        torch.autograd.grad(whole, inputs, outer),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-5)


def test_values_are_the_means_of_the_distributions():
    network = table(1, 2)
    set_chances(network, 0, 0, 0.2, 0.3, 0.5)
    values = network.expected(network(torch.ones(1, 1)))
    assert values[0].tolist() == pytest.approx([0.3 + 2 * 0.5, 1.0])


# --- one update -------------------------------------------------------------------------------------------------------


def test_the_online_network_picks_the_next_action_and_the_target_network_says_what_it_is_worth():
    learner = Rainbow(table(2, 2), RainbowConfig())
    set_chances(learner.network, 1, 0, 0.6, 0.2, 0.2)  # online: action 1 is better in state 1
    set_chances(learner.target, 1, 0, 0.01, 0.01, 0.98)  # the target prefers 0, which must not matter
    set_chances(learner.target, 1, 1, 0.5, 0.25, 0.25)
    set_chances(learner.network, 0, 1, 0.25, 0.5, 0.25)  # the move that was made
    batch = make_batch(1, 2, action=[1], observation=[[1, 0]], next_observation=[[0, 1]], returns=[0], bootstrap=[1])
    figures, divergences = learner.update(batch)
    cross_entropy = -(0.5 * math.log(0.25) + 0.25 * math.log(0.5) + 0.25 * math.log(0.25))
    entropy = -(0.5 * math.log(0.5) + 0.5 * math.log(0.25))
    assert figures["loss"] == pytest.approx(cross_entropy)
    assert divergences.tolist() == pytest.approx([cross_entropy - entropy])
    assert figures["q_mean"] == pytest.approx(1.0) and figures["divergence"] == pytest.approx(divergences[0])


def test_an_update_sees_every_observation_once_with_each_network():
    learner = small_learner()
    seen: dict[str, int] = {"online": 0, "target": 0}

    def count(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
            seen[name] += len(inputs[0])

        return hook

    learner.network.body.register_forward_hook(count("online"))
    learner.target.body.register_forward_hook(count("target"))
    learner.update(make_batch(16, actor=by_teacher(16)), cloning=1.0)
    assert seen == {"online": 2 * 16, "target": 16}  # states and next states; next states


def test_importance_weights_scale_what_a_sample_teaches():
    moved = []
    for weights in ([1.0, 0.0], [0.5, 0.0], [1.0, 1.0]):
        learner = Rainbow(table(2, 2), RainbowConfig())
        batch = make_batch(2, 2, observation=np.eye(2), action=[0, 1], returns=[2, 2], bootstrap=[0, 0], weight=weights)
        learner.update(batch)
        moved.append(gradient_of(learner))
    whole, half, both = moved
    assert torch.allclose(half, whole / 2) and (whole[1] == 0).all()
    # A target of 2 alone, a third predicted for each: minus the target, plus the prediction, over two samples.
    assert whole[0, 0].tolist() == pytest.approx([1 / 6, 1 / 6, -1 / 3])
    assert torch.allclose(both[1, 1], whole[0, 0])


def test_long_gradients_are_shortened_to_the_limit():
    learner = small_learner(RainbowConfig(gradient_limit=0.01))
    figures, _ = learner.update(make_batch(8))
    applied = nn.utils.get_total_norm([p.grad for p in learner.network.parameters() if p.grad is not None])
    assert figures["gradient_norm"] > 0.01 and applied.item() == pytest.approx(0.01, rel=1e-4)


def test_the_target_is_copied_whole_at_its_period_and_stays_as_it_is_between():
    learner = small_learner(RainbowConfig(target_every=3, warm_up=0, learning_rate=0.01))
    for update in range(1, 8):
        before = [p.clone() for p in learner.target.parameters()]
        learner.update(make_batch(8))
        same = [torch.equal(a, b) for a, b in zip(learner.target.parameters(), before, strict=True)]
        current = [torch.equal(*p) for p in zip(learner.target.parameters(), learner.network.parameters(), strict=True)]
        assert all(current) if update % 3 == 0 else all(same)


def test_who_plays_keeps_the_weights_he_took_while_learning_goes_on():
    learner = small_learner(RainbowConfig(acting_every=2, warm_up=0, learning_rate=0.01))
    taken, observation = learner.acting, torch.randn(5, 3)
    before = taken(observation)
    for _ in range(2):
        learner.update(make_batch(8))
    assert torch.equal(taken(observation), before)
    assert learner.acting is not taken and torch.equal(learner.acting(observation), learner.network(observation))


def test_who_is_measured_has_the_average_of_the_weights():
    learner = small_learner(RainbowConfig(averaging=0.25, warm_up=0, learning_rate=0.01))
    seen = []
    for _ in range(6):
        learner.update(make_batch(8))
        seen.append(learner.network.body.weight.detach().clone())
    # The mean of the first four, then a quarter of each newer one.
    expected = torch.stack(seen[:4]).mean(0)
    for newer in seen[4:]:
        expected = 0.75 * expected + 0.25 * newer
    assert torch.allclose(learner.averaged.body.weight, expected, atol=1e-6)
    assert torch.equal(learner.tensors()["network.body.weight"], learner.averaged.body.weight)


@pytest.mark.parametrize("dueling", [True, False])
@pytest.mark.parametrize("factors", [(), (2, 2)])
def test_a_fresh_network_that_expects_nothing_expects_returns_around_0(dueling, factors):
    torch.manual_seed(1)
    network = QNetwork(nn.Linear(3, 8), Head(8, 8, 4, 51, dueling=dueling, factors=factors), -10.0, 40.0)
    observation = torch.randn(200, 3)
    before = network.expected(network(observation))
    network.expect_nothing()
    after = network.expected(network(observation))
    assert before.mean() > 10 and abs(after.mean()) < 2 and after.std() < 3


def test_agreement_counts_where_the_teachers_action_is_known():
    learner = Rainbow(table(4, 4), RainbowConfig(), factors={"half": [0, 0, 1, 1]})
    for state in range(4):
        set_chances(learner.network, state, 2, 0.1, 0.1, 0.8)  # it always prefers action 2
    batch = make_batch(4, 4, observation=np.eye(4), action=[2, 3, 0, 0])
    batch.actor[:2] = Actor.TEACHER  # two moves by the teacher, advice on a third, nothing on the last
    batch.teacher_action[:] = [-1, -1, 2, -1]
    figures, _ = learner.update(batch)
    assert figures["advised"] == 0.75
    assert figures["agreement"] == pytest.approx(2 / 3) and figures["agreement_half"] == 1.0
    assert "agreement" not in learner.update(make_batch(4, 4))[0]


def test_figures_are_finite_numbers_of_one_update():
    figures, divergences = small_learner().update(make_batch(64, actor=by_teacher(64)), cloning=0.5)
    assert set(figures) == {
        "loss", "cloning_loss", "divergence", "return_mean", "gradient_norm", "q_min", "q_mean", "q_max", "advised",
        "agreement", "learning_rate", "skipped",
    }  # fmt: skip
    assert all(math.isfinite(value) for value in figures.values())
    assert figures["q_min"] <= figures["q_mean"] <= figures["q_max"]
    assert divergences.shape == (64,) and divergences.dtype == np.float32 and (divergences >= 0).all()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_batch_and_learn_the_same(threads):
    alone, shared = small_learner(), small_learner(threads=threads)
    batch = make_batch(32, actor=[Actor.TEACHER, Actor.PUPIL] * 16)
    expected, found = alone.update(batch, cloning=1.0), shared.update(batch, cloning=1.0)
    assert found[0] == pytest.approx(expected[0], rel=1e-4)
    assert found[1] == pytest.approx(expected[1], rel=1e-4)
    for one, other in zip(alone.network.parameters(), shared.network.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert shared.others_cpu_s > 0 == alone.others_cpu_s


def test_half_precision_teaches_nearly_the_same():
    whole, halved = small_learner(), small_learner()
    halved.halves = True  # elsewhere only on devices that are good at it
    batch = make_batch(64, actor=by_teacher(64))
    expected, found = (learner.update(batch, 1.0)[0] for learner in (whole, halved))
    assert found["loss"] != expected["loss"] and found["loss"] == pytest.approx(expected["loss"], rel=0.02)
    for one, other in zip(whole.network.parameters(), halved.network.parameters(), strict=True):
        assert torch.linalg.vector_norm(one.grad - other.grad) < 0.1 * torch.linalg.vector_norm(one.grad) + 1e-3


# --- cloning ----------------------------------------------------------------------------------------------------------


def cloning_gradient(values_of_teacher: tuple[float, ...]) -> torch.Tensor:
    """What cloning changes in the logits (actions, atoms) of a state, where the others' values are 1."""
    gradients = []
    for cloning in (0.0, 1.0):
        learner = Rainbow(table(1, 3), RainbowConfig(margin=0.5))
        set_chances(learner.network, 0, 1, *values_of_teacher)
        batch = make_batch(1, 1, observation=[[1]], next_observation=[[1]], action=[1], actor=by_teacher(1))
        learner.update(batch, cloning)
        gradients.append(gradient_of(learner)[0])
    return gradients[1] - gradients[0]


def test_cloning_lifts_the_teachers_action_above_its_rival():
    found = cloning_gradient((1 / 3, 1 / 3, 1 / 3))
    # d value / d logit = chance x (return - value): a third of -1, 0 and 1.
    assert found[1].tolist() == pytest.approx([1 / 3, 0, -1 / 3], abs=1e-6)
    assert found[0].tolist() == pytest.approx([-1 / 3, 0, 1 / 3], abs=1e-6) and (found[2] == 0).all()


def test_cloning_leaves_alone_what_leads_by_the_margin():
    assert (cloning_gradient((0.1, 0.2, 0.7)) == 0).all()  # a value of 1.6 against 1
    assert (cloning_gradient((0.2, 0.3, 0.5)) != 0).any()  # 1.3 against 1


def test_cloning_follows_the_advice_where_the_pupil_moved_otherwise():
    learner = Rainbow(table(1, 3), RainbowConfig(warm_up=0, learning_rate=0.05, target_every=10))
    batch = make_batch(8, 1, 3, observation=np.ones((8, 1)), action=[0] * 8, teacher_action=[2] * 8, bootstrap=[0] * 8)
    for _ in range(60):
        figures, _ = learner.update(batch, cloning=1.0)
    assert figures["agreement"] == 1.0 and figures["cloning_loss"] == pytest.approx(0.0, abs=0.02)


def test_cloning_does_not_bend_the_value_of_what_the_teacher_does():
    # Two moves whose returns are known: the teacher's pays 1, the other 0.9. A softmax over raw values would go on
    # pushing them apart for ever; the margin moves only what it must, and the move that is made keeps its value.
    learner = Rainbow(table(1, 2, atoms=21), RainbowConfig(warm_up=0, learning_rate=0.02, margin=0.5))
    batch = make_batch(
        16, 1, 2, observation=np.ones((16, 1)), action=[0, 1] * 8, returns=[1.0, 0.9] * 8, bootstrap=[0] * 16,
        actor=[Actor.TEACHER, Actor.RANDOM] * 8,
    )  # fmt: skip
    for _ in range(600):
        learner.update(batch, cloning=0.1)
    teacher, other = learner.network.expected(learner.network(torch.ones(1, 1)))[0].tolist()
    assert teacher == pytest.approx(1.0, abs=0.05)
    assert other == pytest.approx(0.9, abs=0.05)
    for _ in range(600):
        learner.update(batch, cloning=0.0)
    values = learner.network.expected(learner.network(torch.ones(1, 1)))
    assert values[0].tolist() == pytest.approx([1.0, 0.9], abs=0.01)


# --- updates that cannot be made --------------------------------------------------------------------------------------


def weights_of(learner: Rainbow) -> list[torch.Tensor]:
    return [p.detach().clone() for p in learner.network.parameters()]


@pytest.mark.parametrize("column", ["observation", "next_observation", "returns", "weight"])
def test_an_update_with_a_poisoned_input_is_skipped_and_explained(column):
    learner = small_learner()
    batch = make_batch(16)
    getattr(batch, column)[5] = np.nan
    before = weights_of(learner)
    figures, divergences = learner.update(batch)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.network.parameters(), strict=True))
    assert learner.updates == 0 and learner.skipped == 1 and figures == {"skipped": 1}
    first, *_ = learner.problem["tensors"].items()
    assert first[0] == f"input {column}" and first[1].endswith("in rows 5")
    assert np.isfinite(divergences).all()
    if column != "weight":
        assert divergences[5] == 0 and (np.delete(divergences, 5) > 0).all()


def test_a_gradient_that_is_not_finite_is_found_even_where_the_loss_is():
    learner = small_learner()
    learner.network.body.weight.register_hook(lambda gradient: gradient * math.inf)
    learner.update(make_batch(16))
    assert [name for name in learner.problem["tensors"] if not name.startswith("gradient")] == []
    assert learner.skipped == 1 and learner.updates == 0


def test_learning_stops_with_a_diagnosis_after_twenty_skipped_updates_in_a_row():
    learner = small_learner()
    good, bad = make_batch(16), make_batch(16)
    bad.returns[3] = np.inf
    for _ in range(MOST_SKIPPED - 1):
        learner.update(bad)
    learner.update(good)  # one that works starts the count again
    with torch.no_grad():
        learner.network.body.weight[0, 0] = math.nan
    for _ in range(MOST_SKIPPED - 1):
        learner.update(good)
    with pytest.raises(LearningFailed, match=r"20 updates in a row .* weight body\.weight: 1 of 24 numbers") as failure:
        learner.update(good)
    report = failure.value.report
    assert report["skipped_in_a_row"] == 20 and report["skipped"] == 39 and report["update"] == 1
    assert report["figures"]["loss"] == "nan" and "weight body.weight" in report["tensors"]


# --- going on ---------------------------------------------------------------------------------------------------------


def test_a_restored_learner_goes_on_to_the_last_bit(tmp_path):
    config = RainbowConfig(target_every=4, acting_every=3, warm_up=10, learning_rate=0.01, averaging=0.3)
    learner = small_learner(config)
    batches = [make_batch(8 + i, actor=by_teacher(8 + i)) for i in range(10)]
    for batch in batches[:5]:
        learner.update(batch, 0.5)
    learner.rate_scale = 0.5
    path = tmp_path / "learner.safetensors"
    checkpoints.save(path, learner.tensors(), {"learner": learner.state()}, kind="test", task_version=1)
    saved = checkpoints.load(path)
    other = Rainbow(QNetwork(nn.Linear(3, 8), Head(8, 8, 4, 11), -5.0, 5.0), config)
    other.restore(saved, saved.state["learner"])
    assert torch.equal(other.acting(torch.ones(1, 3)), learner.acting(torch.ones(1, 3)))
    for batch in batches[5:]:
        one, two = learner.update(batch, 0.5), other.update(batch, 0.5)
        assert one[0] == two[0] and np.array_equal(one[1], two[1])
    for name, tensor in learner.tensors().items():
        assert torch.equal(tensor, other.tensors()[name]), name


# --- small worlds -----------------------------------------------------------------------------------------------------


def train(
    states: int, actions: int, step: Callable[[Ints, Ints], Outcome],
    *, discount: float, steps: int, updates: int, start: int = 0,
) -> Floats:  # fmt: skip
    """Learn a small world by random behaviour from an even memory; returns its table of values (states, actions)."""
    torch.manual_seed(1)
    config = RainbowConfig(learning_rate=0.01, final_learning_rate=1e-4, warm_up=0, period=updates, target_every=50)
    body = nn.Sequential(nn.Linear(states, 32), nn.ReLU())
    network = QNetwork(body, Head(32, 32, actions, 51), -1.0, 1.5)
    learner = Rainbow(network, config)
    dice = np.random.default_rng(1)
    memory = _memory(states, actions, step, dice, discount, steps, start)
    for _ in range(updates):
        picked = dice.integers(0, len(memory.action), 64)
        learner.update(Batch._make(array[picked] for array in memory))
    with torch.no_grad():
        found: Floats = network.expected(network(torch.eye(states))).numpy()
    return found


def _memory(
    states: int, actions: int, step: Callable[[Ints, Ints], Outcome], dice: np.random.Generator,
    discount: float, steps: int, start: int,
) -> Batch:  # fmt: skip
    """Some games of random moves, as transitions of up to `steps` steps."""
    games, frames = 128, 200
    place = np.full(games, start)
    places, moves = [place], []
    rewards: list[Floats] = []
    ends: list[npt.NDArray[np.bool_]] = []
    for _ in range(frames):
        moves.append(dice.integers(0, actions, games))
        place, reward, over = step(place, moves[-1])
        place = np.where(over, start, place)
        places.append(place)
        rewards.append(reward)
        ends.append(over)
    found: dict[str, list[npt.NDArray[np.generic]]] = {name: [] for name in ("from", "move", "sum", "to", "boot")}
    for t in range(frames - steps):
        total, worth = np.zeros(games), np.ones(games)
        for k in range(steps):
            total += worth * rewards[t + k]
            worth *= np.where(ends[t + k], 0.0, discount)
        for name, values in zip(found, (places[t], moves[t], total, places[t + steps], worth), strict=True):
            found[name].append(values)
    columns = {name: np.concatenate(values) for name, values in found.items()}
    one_hot = np.eye(states, dtype=np.float32)
    return make_batch(
        len(columns["move"]),
        observation=one_hot[columns["from"]],
        action=columns["move"],
        returns=columns["sum"],
        next_observation=one_hot[columns["to"]],
        bootstrap=columns["boot"],
    )


@pytest.mark.slow
def test_a_chain_is_solved_to_its_known_values():
    found = train(5, 2, small_worlds.chain, discount=0.9, steps=1, updates=3000)
    assert found[:, 1] == pytest.approx([0.9**4, 0.9**3, 0.9**2, 0.9, 1.0], abs=0.03)
    assert found[:, 0] == pytest.approx([0.9 * 0.9**4] * 5, abs=0.03)  # left: start again


@pytest.mark.slow
def test_a_delayed_reward_is_credited_to_the_move_that_earned_it():
    found = train(21, 2, small_worlds.delay, discount=0.95, steps=12, updates=1500)
    assert found[0, 1] == pytest.approx(0.95**10, abs=0.03)
    assert found[0, 0] == pytest.approx(0.0, abs=0.03)


@pytest.mark.slow
def test_a_gridworld_is_solved_to_its_optimal_values():
    found = train(small_worlds.GRID**2, 4, small_worlds.grid, discount=0.9, steps=1, updates=4000)
    assert found[:-1].max(1) == pytest.approx(small_worlds.grid_values(0.9), abs=0.04)
