"""Returns, advantages and projected distributions: numbers worked by hand."""

import numpy as np
import pytest
import torch

from protege.learn.returns import gae, lambda_returns, project

# --- lambda returns ---------------------------------------------------------------------------------------------------


def column(*values):
    return np.array(values, np.float32)[:, None]


def ends(*flags):
    return np.array(flags, np.bool_)[:, None]


def test_without_lambda_a_return_is_one_reward_and_the_next_value():
    found = lambda_returns(column(1, 2), ends(0, 0), column(9, 10, 20), gamma=0.5, lambda_=0.0)
    assert found[:, 0].tolist() == [1 + 0.5 * 10, 2 + 0.5 * 20]


def test_with_a_lambda_of_one_a_return_is_the_discounted_sum_and_the_last_value():
    found = lambda_returns(column(1, 2), ends(0, 0), column(9, 10, 20), gamma=0.5, lambda_=1.0)
    assert found[:, 0].tolist() == [1 + 0.5 * (2 + 0.5 * 20), 2 + 0.5 * 20]


def test_lambda_mixes_the_two():
    found = lambda_returns(column(1, 2), ends(0, 0), column(9, 10, 20), gamma=0.5, lambda_=0.25)
    second = 2 + 0.5 * 20  # 12
    assert found[:, 0].tolist() == [1 + 0.5 * (0.75 * 10 + 0.25 * second), second]


def test_nothing_after_an_end_counts_in_a_return():
    found = lambda_returns(column(1, 2, 4), ends(0, 1, 0), column(9, 10, 20, 30), gamma=0.5, lambda_=1.0)
    assert found[:, 0].tolist() == [1 + 0.5 * 2, 2.0, 4 + 0.5 * 30]


def test_games_do_not_mix():
    rewards = np.array([[1, 0], [0, 1]], np.float32)
    found = lambda_returns(rewards, np.zeros((2, 2), np.bool_), np.zeros((3, 2), np.float32), gamma=0.5, lambda_=1.0)
    assert found.tolist() == [[1.0, 0.5], [0.0, 1.0]]


# --- advantages -------------------------------------------------------------------------------------------------------


def over_time(*numbers):
    return torch.tensor(numbers, dtype=torch.float32)[:, None]


NEVER = torch.zeros(3, 1, dtype=torch.bool)


def test_advantages_mix_td_errors_to_come():
    found = gae(over_time(1, 2, 3), over_time(0.5, 1, 1.5), over_time(1, 1.5, 2), NEVER, gamma=0.5, gae_lambda=0.5)
    # TD errors 1 + 0.5 - 0.5, 2 + 0.75 - 1, 3 + 1 - 1.5; each counts a quarter one step before.
    assert found[:, 0].tolist() == [1 + 0.25 * 2.375, 1.75 + 0.25 * 2.5, 2.5]


def test_with_a_gamma_of_zero_only_the_reward_counts():
    found = gae(over_time(1, 2, 3), over_time(0.5, 1, 1.5), over_time(9, 9, 9), NEVER, gamma=0.0, gae_lambda=0.95)
    assert found[:, 0].tolist() == [0.5, 1.0, 1.5]


def test_without_lambda_an_advantage_is_one_td_error():
    found = gae(over_time(1, 1, 1), over_time(10, 20, 30), over_time(20, 30, 40), NEVER, gamma=0.5, gae_lambda=0.0)
    assert found[:, 0].tolist() == [1 + 10 - 10, 1 + 15 - 20, 1 + 20 - 30]


def test_with_a_lambda_of_one_constant_rewards_add_up_to_the_return():
    found = gae(over_time(1, 1, 1), over_time(5, 5, 5), over_time(5, 5, 8), NEVER, gamma=0.5, gae_lambda=1.0)
    assert found[:, 0].tolist() == [1 + 0.5 + 0.25 + 1 - 5, 1 + 0.5 + 2 - 5, 1 + 4 - 5]


def test_nothing_after_an_ending_counts_in_an_advantage():
    for afterwards in (100, -7):
        found = gae(
            over_time(1, 2, afterwards),
            over_time(1, 1, 1),
            over_time(1, 0, 1),
            torch.tensor([[False], [True], [False]]),
            gamma=0.5,
            gae_lambda=1.0,
        )
        assert found[:2, 0].tolist() == [1 + 0.5 - 1 + 0.5 * (2 - 1), 2 - 1]


def test_no_gradient_comes_out_whatever_goes_in():
    values = over_time(1, 1, 1).requires_grad_()
    assert not gae(over_time(1, 1, 1), values, values, NEVER, 0.9, 0.9).requires_grad


# --- projection -------------------------------------------------------------------------------------------------------


def projected(probabilities, returns, bootstrap):
    """Of one sample, on atoms 0, 1 and 2."""
    found = project(
        torch.tensor([probabilities]), torch.tensor([returns]), torch.tensor([bootstrap]), torch.arange(3.0)
    )
    return found[0].tolist()


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
    probabilities = torch.softmax(torch.randn(3, 51), 1)
    returns, horizons = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([12.0, 3.0, 1.0])
    found = project(probabilities, returns, 0.99**horizons, support)
    expected = returns + 0.99**horizons * (probabilities @ support)  # no mass leaves these supports, so means are kept
    assert (found @ support).tolist() == pytest.approx(expected.tolist(), abs=0.1)
    assert found.sum(1).tolist() == pytest.approx([1.0] * 3)
