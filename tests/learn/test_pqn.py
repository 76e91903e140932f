"""Parallel Q-learning: threads, the average of the weights, and small worlds whose answers are known."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from protege.learn.pqn import PQN, PQNConfig, Rollout
from tests.learn import small_worlds
from tests.learn.small_worlds import Ints, Outcome


class Table(nn.Module):
    """A value for each state and action: what can be learned exactly."""

    def __init__(self, states: int, actions: int):
        super().__init__()
        self.values = nn.Linear(states, actions, bias=False)
        nn.init.zeros_(self.values.weight)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.values(features)  # type: ignore[no-any-return]


def test_threads_share_a_minibatch_and_learn_the_same() -> None:
    config = PQNConfig(games=6, horizon=3, minibatch=9, learning_rate=0.01)
    found = []
    for threads in (1, 2, 4):
        torch.manual_seed(3)
        learner = PQN(nn.Linear(5, 4), config, threads, seed=5)
        random = np.random.default_rng(4)
        rollout = Rollout.empty(config.horizon, config.games, 5)
        rollout.features[:], rollout.rewards[:] = random.random((4, 6, 5)), random.random((3, 6))
        rollout.actions[:], rollout.advice[:] = random.integers(0, 4, (2, 3, 6))
        figures = learner.update(rollout, 0.5)
        found.append((figures, learner.network.weight.detach()))
        assert learner.updates == 4 and (learner.others_cpu_s > 0) == (threads > 1)
    for figures, weights in found[1:]:
        assert figures == pytest.approx(found[0][0], rel=1e-5)
        assert torch.allclose(weights, found[0][1], atol=1e-6)


def test_the_average_starts_as_the_mean_of_all_weights_and_then_follows_slowly() -> None:
    config = PQNConfig(games=4, horizon=2, minibatch=8, epochs=1, ema=0.4, learning_rate=0.1)
    learner = PQN(Table(1, 1), config)
    rollout = Rollout.empty(config.horizon, config.games, 1)
    rollout.features[:] = 1.0
    seen, average = [], 0.0
    for number in range(1, 6):
        rollout.rewards[:] = number  # another target in every round
        learner.update(rollout)
        seen.append(learner.network.values.weight.item())
        average += max(0.4, 1 / number) * (seen[-1] - average)
        assert learner.averaged.values.weight.item() == pytest.approx(average, abs=1e-6)
    assert len(set(seen)) == 5


def train(
    states: int, actions: int, step: Callable[[Ints, Ints], Outcome],
    *, gamma: float, lambda_: float, rounds: int, start: int = 0,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Learn a small world by random behaviour; returns its table of values (states, actions)."""
    config = PQNConfig(games=64, horizon=16, minibatch=256, gamma=gamma, lambda_=lambda_, learning_rate=0.05)
    table = Table(states, actions)
    learner = PQN(table, config, seed=1)
    generator = np.random.default_rng(1)
    place = np.full(config.games, start)
    rollout = Rollout.empty(config.horizon, config.games, states)
    one_hot = np.eye(states, dtype=np.float32)
    for done in range(rounds):
        learner.set_progress(done / rounds)
        for t in range(config.horizon + 1):
            rollout.features[t] = one_hot[place]
            with torch.no_grad():
                rollout.values[t] = learner.network(torch.from_numpy(rollout.features[t])).max(1).values.numpy()
            if t < config.horizon:
                rollout.actions[t] = generator.integers(0, actions, config.games)
                place, rollout.rewards[t], rollout.terminated[t] = step(place, rollout.actions[t])
                place = np.where(rollout.terminated[t], start, place)
        learner.update(rollout)
    return np.asarray(table.values.weight.detach().numpy().T)


@pytest.mark.slow
def test_a_chain_is_solved_to_its_known_values() -> None:
    found = train(5, 2, small_worlds.chain, gamma=0.9, lambda_=0.0, rounds=400)
    assert found[:, 1] == pytest.approx([0.9**4, 0.9**3, 0.9**2, 0.9, 1.0], abs=0.02)
    assert found[:, 0] == pytest.approx([0.9 * 0.9**4] * 5, abs=0.02)  # left: start again


@pytest.mark.slow
def test_a_delayed_reward_is_credited_to_the_move_that_earned_it() -> None:
    found = train(21, 2, small_worlds.delay, gamma=0.95, lambda_=0.8, rounds=300)
    assert found[0, 1] == pytest.approx(0.95**10, abs=0.03)
    assert found[0, 0] == pytest.approx(0.0, abs=0.03)


@pytest.mark.slow
def test_a_gridworld_is_solved_to_its_optimal_values() -> None:
    found = train(small_worlds.GRID**2, 4, small_worlds.grid, gamma=0.9, lambda_=0.0, rounds=500)
    assert found[:-1].max(1) == pytest.approx(small_worlds.grid_values(0.9), abs=0.03)


def test_distillation_makes_the_teachers_action_the_best_one() -> None:
    config = PQNConfig(games=8, horizon=4, minibatch=32, learning_rate=0.1)
    learner = PQN(Table(3, 5), config)
    rollout = Rollout.empty(config.horizon, config.games, 3)
    rollout.features[:, :, 1] = 1.0
    rollout.advice[:] = 3
    for _ in range(20):
        figures = learner.update(rollout, 1.0)
    assert figures["agreement"] == 1.0
    assert learner.network(torch.eye(3)[1]).argmax() == 3


def test_the_learning_rate_falls_with_the_budget() -> None:
    learner = PQN(Table(2, 2), PQNConfig(learning_rate=1.0, final_learning_rate=0.2))
    assert learner.set_progress(0.0) == 1.0
    assert learner.set_progress(0.5) == pytest.approx(0.6)
    assert learner.set_progress(2.0) == pytest.approx(0.2)
