"""Parallel Q-learning without replay, for simulators that outrun any memory.

Many games advance together for a horizon; Q(lambda) returns come from the values seen while acting, so a sample costs
one forward pass to act and one forward and backward pass to learn. Layer norm in the network takes the place of the
target network. Follows PQN (Gallici et al., 2024), with one addition: distillation towards a teacher's action, weighted
by the caller.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import tyro
from torch import Tensor, nn

from protege.learn.optimise import Gradients, Learner, Optimiser, Step, add_up, finite
from protege.learn.returns import Floats, lambda_returns
from protege.learn.schedules import linear
from protege.learn.state import named_weights, restore_torch_generator, restore_weights


@dataclass(frozen=True)
class PQNConfig:
    """Settings of the learner."""

    games: int = 512  # games that advance together
    horizon: int = 32  # frames of each game between two rounds of updates
    minibatch: int = 2048  # samples per update
    epochs: int = 2  # passes over the samples of a rollout
    gamma: float = 0.99  # discount factor, per frame
    # lambda of the Q(lambda) returns
    lambda_: Annotated[float, tyro.conf.arg(name="lambda")] = 0.8
    learning_rate: float = 1e-3  # at the start; decays linearly to final_learning_rate
    final_learning_rate: float = 5e-5  # when the budget is used up
    max_grad_norm: float = 10.0  # norm to which gradients are clipped
    temperature: float = 0.25  # of the softmax over action values that is distilled, in units of reward
    ema: float = 0.01  # step of the running average of the weights, which is evaluated and kept


@dataclass
class Rollout:
    """A horizon of experience of many games; arrays are (horizon, games, ...), those marked + one longer."""

    features: Floats  # + what the network saw
    values: Floats  # + greedy value of each state when it was acted in, not a number where nobody asked
    actions: npt.NDArray[np.int64]
    rewards: Floats
    terminated: npt.NDArray[np.bool_]
    advice: npt.NDArray[np.int64]  # the teacher's action in each state

    @classmethod
    def empty(cls, horizon: int, games: int, features: int) -> "Rollout":
        """Room for one rollout."""
        t, n = horizon, games
        return cls(
            features=np.zeros((t + 1, n, features), np.float32),
            values=np.zeros((t + 1, n), np.float32),
            actions=np.zeros((t, n), np.int64),
            rewards=np.zeros((t, n), np.float32),
            terminated=np.zeros((t, n), np.bool_),
            advice=np.zeros((t, n), np.int64),
        )


Network = TypeVar("Network", bound=nn.Module)
Samples = dict[str, Tensor]


class PQN(Learner, Generic[Network]):
    """The learner: a network, its optimiser, and one round of updates per rollout.

    `averaged` is the running average of the network's weights. It plays better than any of the weights it averages
    while the learning rate is high.
    """

    def __init__(self, network: Network, config: PQNConfig, threads: int = 1, seed: int = 0):
        self.network = network
        self.averaged: Network = copy.deepcopy(network).requires_grad_(False)
        self.config = config
        self.optimiser = Optimiser(
            network, learning_rate=config.learning_rate, max_grad_norm=config.max_grad_norm, averaged=self.averaged,
            ema=config.ema, threads=threads,
        )  # fmt: skip
        self.order = torch.Generator().manual_seed(seed)  # in which samples are learned from

    def set_progress(self, progress: float, factor: float = 1.0) -> float:
        """Set the learning rate for the fraction of the budget that is used up, times a factor; returns it."""
        rate = factor * linear(progress, self.config.learning_rate, self.config.final_learning_rate, 1.0)
        self.optimiser.set_rate(rate)
        return rate

    def update(self, rollout: Rollout, distillation: float = 0.0) -> dict[str, float]:
        """One round: every sample `epochs` times, in random order. Returns means over the updates.

        Several threads share each minibatch. (Each its own minibatch would be simpler, but then gradients are one
        update old when they are applied, and at this learning rate that undoes most of the learning.)
        """
        c, device = self.config, self.optimiser.device
        self._value(rollout)
        returns = lambda_returns(rollout.rewards, rollout.terminated, rollout.values, c.gamma, c.lambda_)
        arrays: dict[str, npt.NDArray[Any]] = {"features": rollout.features[:-1], "actions": rollout.actions}
        arrays |= {"returns": returns, "advice": rollout.advice}
        samples = {name: torch.from_numpy(a.reshape(-1, *a.shape[2:])).to(device) for name, a in arrays.items()}
        sums: dict[str, float] = {}
        rounds = 0
        for _ in range(c.epochs):
            for picked in torch.split(torch.randperm(returns.size, generator=self.order), c.minibatch):
                made = self._update(samples, picked, distillation)
                if made is not None:
                    found = made.figures | {"gradient_norm": made.norms[0]}
                    sums = {name: sums.get(name, 0.0) + value for name, value in found.items()}
                    rounds += 1
        figures = {name: value / rounds for name, value in sums.items()} | {"return_mean": float(returns.mean())}
        figures |= {"q_min": float(rollout.values.min()), "q_max": float(rollout.values.max())}
        return finite(figures | {"skipped": self.optimiser.skipped})

    @torch.no_grad()
    def _value(self, rollout: Rollout) -> None:
        """Fill in values that nobody asked for while acting."""
        for t in np.flatnonzero(np.isnan(rollout.values).any(1)):
            seen = torch.from_numpy(rollout.features[t]).to(self.optimiser.device)
            rollout.values[t] = self.network(seen).max(1).values.cpu().numpy()

    def _update(self, samples: Samples, picked: Tensor, distillation: float) -> Step | None:
        microbatches = [part for part in torch.tensor_split(picked, self.optimiser.threads) if len(part)]
        found = self.optimiser.map(lambda part: self._gradients(samples, part, distillation), microbatches)
        sizes = [len(part) for part in microbatches]
        gradients = add_up([gradients for gradients, _ in found], sizes, len(picked))
        figures = {
            name: sum((means[name] * (size / len(picked)) for size, (_, means) in zip(sizes, found)), torch.zeros(()))
            for name in found[0][1]
        }
        return self.optimiser.step(gradients, figures, lambda: {name: array[picked] for name, array in samples.items()})

    def _gradients(self, samples: Samples, picked: Tensor, distillation: float) -> tuple[Gradients, Samples]:
        """Gradients of some samples' mean loss, and means for the figures."""
        features, actions, targets, advice = (samples[k][picked] for k in ("features", "actions", "returns", "advice"))
        values = self.network(features)
        chosen = values.gather(1, actions[:, None])[:, 0]
        # Squared, although single errors are large: a loss that limits them makes rare deaths look cheap.
        loss = 0.5 * nn.functional.mse_loss(chosen, targets)
        distilled = torch.zeros(())
        total = loss
        if distillation > 0:
            distilled = nn.functional.cross_entropy(values / self.config.temperature, advice)
            total = loss + distillation * distilled
        gradients = list(torch.autograd.grad(total, self.optimiser.parameters))
        with torch.no_grad():
            agreement = (values.argmax(1) == advice).float().mean()
            figures = {"loss": loss, "distillation_loss": distilled, "agreement": agreement, "q_mean": chosen.mean()}
            return gradients, {name: value.detach().double().cpu() for name, value in figures.items()}

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from these weights; nothing is left of what was learned before."""
        for network in (self.network, self.averaged):
            network.load_state_dict(weights)
        self.optimiser.forget()

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs; the weights that are measured and kept are under "network"."""
        kept = named_weights(self.averaged, "network") | named_weights(self.network, "learned")
        return {"weights": kept, "order": self.order.get_state()} | self.optimiser.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        restore_weights(self.averaged, state["weights"], "network")
        restore_weights(self.network, state["weights"], "learned")
        restore_torch_generator(self.order, state["order"])
        self.optimiser.restore(state)
