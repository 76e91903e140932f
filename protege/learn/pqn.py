"""Parallel Q-learning without replay, for simulators that outrun any memory.

Many games advance together for a horizon; Q(lambda) returns come from the values seen while acting, so a sample costs
one forward pass to act and one forward and backward pass to learn. Layer norm in the network takes the place of the
target network. Follows PQN (Gallici et al., 2024), with one addition: distillation towards a teacher's action, weighted
by the caller.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PQNConfig:
    """Settings of the learner."""

    games: int = 512  # games that advance together
    horizon: int = 32  # frames of each game between two rounds of updates
    minibatch: int = 2048  # samples per update
    epochs: int = 2  # times each sample is learned from
    discount: float = 0.99  # worth of a reward one frame later
    trace: float = 0.8  # lambda: how far a return looks before it trusts the value estimate
    learning_rate: float = 1e-3  # at the start; falls linearly to final_learning_rate
    final_learning_rate: float = 5e-5  # when the budget is used up
    gradient_limit: float = 10.0  # gradients longer than this are shortened to it
    temperature: float = 0.25  # in points of reward: how sharply action values turn into the distilled policy


@dataclass
class Rollout:
    """A horizon of experience of many games; arrays are (horizon, games, ...), those marked + one longer."""

    features: Floats  # + what the network saw
    values: Floats  # + greedy value of each state when it was acted in
    actions: npt.NDArray[np.int64]
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    advice: npt.NDArray[np.int64]  # the teacher's action in each state

    @classmethod
    def empty(cls, config: PQNConfig, features: int) -> "Rollout":
        """Room for one rollout."""
        t, n = config.horizon, config.games
        return cls(
            features=np.zeros((t + 1, n, features), np.float32),
            values=np.zeros((t + 1, n), np.float32),
            actions=np.zeros((t, n), np.int64),
            rewards=np.zeros((t, n), np.float32),
            terminated=np.zeros((t, n), np.bool_),
            advice=np.zeros((t, n), np.int64),
        )


def lambda_returns(
    rewards: Floats, terminated: npt.NDArray[np.bool_], values: Floats, discount: float, trace: float
) -> Floats:
    """Q(lambda) returns (horizon, games): the mixture of n-step returns that bootstraps from greedy values.

    `values` has one row more than `rewards`; a terminated step ends its return, whatever follows in the row.
    """
    returns = np.empty_like(rewards)
    following = values[-1]
    for t in range(len(rewards) - 1, -1, -1):
        ahead = (1 - trace) * values[t + 1] + trace * following
        following = rewards[t] + discount * np.where(terminated[t], 0, ahead)
        returns[t] = following
    return returns


class PQN:
    """The learner: a network, its optimiser, and one round of updates per rollout."""

    def __init__(self, network: nn.Module, config: PQNConfig):
        self.network = network
        self.config = config
        fused = next(network.parameters()).device.type in ("cpu", "cuda")
        self.optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5, fused=fused)
        self.updates = 0

    def set_progress(self, done: float) -> float:
        """Set the learning rate for the share of the budget that is used up; returns it."""
        c = self.config
        rate = c.learning_rate + (c.final_learning_rate - c.learning_rate) * min(1.0, max(0.0, done))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return rate

    def learn(self, rollout: Rollout, distillation: float, generator: torch.Generator) -> dict[str, float]:
        """One round: every sample `epochs` times, in random order. Returns means over the updates."""
        c = self.config
        returns = lambda_returns(rollout.rewards, rollout.terminated, rollout.values, c.discount, c.trace)
        device = next(self.network.parameters()).device
        features = torch.from_numpy(rollout.features[:-1].reshape(-1, rollout.features.shape[-1])).to(device)
        actions, advice, targets = (
            torch.from_numpy(array.reshape(-1)).to(device) for array in (rollout.actions, rollout.advice, returns)
        )
        totals = torch.zeros(5, dtype=torch.float64)
        rounds = 0
        for _ in range(c.epochs):
            order = torch.randperm(len(targets), generator=generator)
            for first in range(0, len(order), c.minibatch):
                picked = order[first : first + c.minibatch]
                totals += self._update(features[picked], actions[picked], targets[picked], advice[picked], distillation)
                rounds += 1
        loss, cloning, agreement, norm, value = (totals / rounds).tolist()
        return {
            "loss": loss,
            "distillation_loss": cloning,
            "agreement": agreement,
            "gradient_norm": norm,
            "q_mean": value,
            "q_min": float(rollout.values.min()),
            "q_max": float(rollout.values.max()),
            "return_mean": float(returns.mean()),
        }

    def _update(
        self, features: Tensor, actions: Tensor, targets: Tensor, advice: Tensor, distillation: float
    ) -> Tensor:
        values = self.network(features)
        chosen = values.gather(1, actions[:, None])[:, 0]
        # Squared, although single errors are large: a loss that limits them makes rare deaths look cheap.
        loss = 0.5 * nn.functional.mse_loss(chosen, targets)
        cloning = torch.zeros(())
        total = loss
        if distillation > 0:
            cloning = nn.functional.cross_entropy(values / self.config.temperature, advice)
            total = loss + distillation * cloning
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.config.gradient_limit)
        self.optimiser.step()
        self.updates += 1
        with torch.no_grad():
            agreement = (values.argmax(1) == advice).float().mean()
        return torch.stack([loss.detach(), cloning.detach(), agreement, norm, chosen.detach().mean()]).double().cpu()
