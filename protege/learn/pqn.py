"""Parallel Q-learning without replay, for simulators that outrun any memory.

Many games advance together for a horizon; Q(lambda) returns come from the values seen while acting, so a sample costs
one forward pass to act and one forward and backward pass to learn. Layer norm in the network takes the place of the
target network. Follows PQN (Gallici et al., 2024), with one addition: distillation towards a teacher's action, weighted
by the caller.
"""

import copy
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

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
    averaging: float = 0.01  # step of the running average of the weights, the player that is measured and kept


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


Network = TypeVar("Network", bound=nn.Module)


class PQN(Generic[Network]):
    """The learner: a network, its optimiser, and one round of updates per rollout.

    `averaged` is the running average of the network's weights. It plays better than any of the weights it averages
    while the learning rate is high.
    """

    def __init__(self, network: Network, config: PQNConfig):
        self.network = network
        self.averaged: Network = copy.deepcopy(network).requires_grad_(False)
        self.config = config
        fused = next(network.parameters()).device.type in ("cpu", "cuda")
        self.optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, eps=1e-5, fused=fused)
        self.updates = 0
        self.others_cpu_s = 0.0  # processor time of threads other than the caller's
        self._pool = ThreadPoolExecutor(64, thread_name_prefix="learner")  # threads start when first needed

    def set_progress(self, done: float, factor: float = 1.0) -> float:
        """Set the learning rate for the share of the budget that is used up, times a factor; returns it."""
        c = self.config
        rate = factor * (c.learning_rate + (c.final_learning_rate - c.learning_rate) * min(1.0, max(0.0, done)))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return rate

    def learn(
        self, rollout: Rollout, distillation: float, generator: torch.Generator, threads: int = 1
    ) -> dict[str, float]:
        """One round: every sample `epochs` times, in random order. Returns means over the updates.

        Several threads share each minibatch. (Each its own minibatch would be simpler, but then gradients are one
        update old when they are applied, and at this learning rate that undoes most of the learning.)
        """
        c = self.config
        returns = lambda_returns(rollout.rewards, rollout.terminated, rollout.values, c.discount, c.trace)
        device = next(self.network.parameters()).device
        features = torch.from_numpy(rollout.features[:-1].reshape(-1, rollout.features.shape[-1])).to(device)
        samples = [features] + [
            torch.from_numpy(array.reshape(-1)).to(device) for array in (rollout.actions, returns, rollout.advice)
        ]
        totals = torch.zeros(5, dtype=torch.float64)
        rounds = 0

        def share(picked: Tensor) -> tuple[list[Tensor], Tensor, float]:
            began = time.thread_time()
            gradients, figures = self._gradients([array[picked] for array in samples], distillation)
            return gradients, figures, time.thread_time() - began

        for _ in range(c.epochs):
            for picked in torch.split(torch.randperm(len(features), generator=generator), c.minibatch):
                parts = torch.tensor_split(picked, threads)
                others = [self._pool.submit(share, part) for part in parts[1:]]
                gradients, figures, _ = share(parts[0])
                figures *= len(parts[0]) / len(picked)
                for part, other in zip(parts[1:], others, strict=True):
                    more, their_figures, spent = other.result()
                    torch._foreach_add_(gradients, more, alpha=len(part) / len(parts[0]))
                    figures += their_figures * (len(part) / len(picked))
                    self.others_cpu_s += spent
                if threads > 1:
                    torch._foreach_mul_(gradients, len(parts[0]) / len(picked))
                totals[:4] += figures
                totals[4] += self._apply(gradients)
                rounds += 1
        loss, cloning, agreement, value, norm = (totals / rounds).tolist()
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

    def _gradients(self, samples: list[Tensor], distillation: float) -> tuple[list[Tensor], Tensor]:
        """Gradients of some samples, and their loss, distillation loss, agreement and mean value."""
        features, actions, targets, advice = samples
        values = self.network(features)
        chosen = values.gather(1, actions[:, None])[:, 0]
        # Squared, although single errors are large: a loss that limits them makes rare deaths look cheap.
        loss = 0.5 * nn.functional.mse_loss(chosen, targets)
        cloning = torch.zeros(())
        total = loss
        if distillation > 0:
            cloning = nn.functional.cross_entropy(values / self.config.temperature, advice)
            total = loss + distillation * cloning
        gradients = list(torch.autograd.grad(total, list(self.network.parameters())))
        with torch.no_grad():
            agreement = (values.argmax(1) == advice).float().mean()
            return gradients, torch.stack([loss, cloning, agreement, chosen.mean()]).double().cpu()

    @torch.no_grad()
    def _apply(self, gradients: list[Tensor]) -> float:
        """One step of the optimiser; returns the length of the gradient."""
        parameters: list[Tensor] = list(self.network.parameters())
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = nn.utils.clip_grad_norm_(parameters, self.config.gradient_limit)
        self.optimiser.step()
        self.updates += 1
        step = max(self.config.averaging, 1.0 / self.updates)  # at first the mean of all weights there were
        torch._foreach_lerp_(list(self.averaged.parameters()), parameters, step)
        return float(norm)
