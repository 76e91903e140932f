"""What experience is worth: targets of the learners as pure functions. n-step returns are worked out in the replay."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats = npt.NDArray[np.float32]


def lambda_returns(
    rewards: Floats, terminated: npt.NDArray[np.bool_], values: Floats, gamma: float, lambda_: float
) -> Floats:
    """Q(lambda) returns (horizon, games): the mixture of n-step returns that bootstraps from greedy values.

    `values` has one row more than `rewards`; a terminated step ends its return, whatever follows in the row.
    """
    returns = np.empty_like(rewards)
    following = values[-1]
    for t in range(len(rewards) - 1, -1, -1):
        ahead = (1 - lambda_) * values[t + 1] + lambda_ * following
        following = rewards[t] + gamma * np.where(terminated[t], 0, ahead)
        returns[t] = following
    return returns


@torch.no_grad()
def gae(rewards: Tensor, values: Tensor, next_values: Tensor, ended: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates (Schulman et al., 2016, eq. 16); the first axis is time.

    `next_values` are those of the states that the steps led to: 0 where the episode was terminated, that of its last
    observation where it was truncated. Nothing after an ending counts.
    """
    advantages = torch.empty_like(rewards)
    ahead = torch.zeros_like(rewards[0])
    keep = gamma * gae_lambda * torch.logical_not(ended).to(rewards.dtype)
    td_errors = rewards + gamma * next_values - values
    for t in range(len(rewards) - 1, -1, -1):
        ahead = td_errors[t] + keep[t] * ahead
        advantages[t] = ahead
    return advantages


def project(probabilities: Tensor, returns: Tensor, bootstrap: Tensor, support: Tensor) -> Tensor:
    """The distribution (batch, atoms) of `returns + bootstrap * Z`, where Z has these probabilities on the support.

    Each atom moves and shares its mass among the two nearest atoms of the support (Bellemare et al., 2017, eq. 7); the
    mean is kept, except for what would leave the support and stays at its end.
    """
    assert probabilities.shape == (len(returns), len(support)) and returns.shape == bootstrap.shape
    moved = returns[:, None] + bootstrap[:, None] * support
    place = ((moved - support[0]) / (support[1] - support[0])).clamp(0, len(support) - 1)
    below = place.long().clamp(0, len(support) - 2)  # also where a place is not a number: that shows in the masses
    upper = probabilities * (place - below)
    found = torch.zeros_like(probabilities).scatter_add_(1, below, probabilities - upper)
    return found.scatter_add_(1, below + 1, upper)
