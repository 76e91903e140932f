"""Clipped policy updates (PPO) of recurrent players with a central critic, over chunks of their experience.

One call of the policy walks a whole chunk, beginnings of episodes inside. A minibatch is a random set of chunks of
whole groups; several threads share it, and their gradients are added in a fixed order, so that the number of threads
changes nothing. The critic predicts returns on a running scale, which is undone before advantages are worked out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss
from torch.utils.checkpoint import checkpoint

from protege.learn.optimise import Gradients, Learner, Optimiser, Step, add_up, finite
from protege.learn.rollout import Rollout, Tensors, scaled_by_role
from protege.learn.schedules import linear
from protege.learn.state import named_weights, restore_torch_generator, restore_weights

LEAST_SPREAD: Final = 1e-2  # of returns: a critic's scale is never finer
SCALE_STEP: Final = 0.05  # how far one rollout moves the scale, once there have been some
FOLLOWED: Final = 0.3  # weight of advice from which on it is followed however far it leads
# A bad action that has become likelier counts at most so many times, or it would drown the rest of a batch: the second
# clip of dual-clip PPO (Ye et al., 2020, "Mastering Complex Control in MOBA Games").
DUAL_CLIP: Final = 3.0


@dataclass(frozen=True)
class PPOConfig:
    """Settings of the learner."""

    epochs: int = 2  # passes over a rollout, unless the policy moves too far before
    minibatches: int = 8  # optimiser steps in an epoch
    gamma: float = 0.995  # discount factor, per step
    gae_lambda: float = 0.95  # lambda of generalised advantage estimation
    clip: float = 0.2  # a probability may change by this fraction before its gain is clipped
    learning_rate: float = 3e-4  # at the start
    final_learning_rate: float = 3e-5  # when the budget is used up
    critic_rate: float = 2.0  # the critic's learning rate as a multiple of the policy's
    entropy: float = 0.05  # weight of the mean entropy of the choices, at the start
    final_entropy: float = 0.01  # when the budget is used up
    value_weight: float = 0.5  # of the critic's error
    max_grad_norm: float = 2.0  # norm to which the gradients of policy and critic are clipped, each
    target_kl: float = 0.02  # KL divergence at which the updates from a rollout stop
    burn_in: int = 0  # first steps of each chunk that only warm up the recurrent state
    prediction: float = 0.0  # weight of predicting the next observation; 0 for a policy without that head
    recompute: bool = False  # recompute the advantages in every epoch
    microbatches: int = 2  # of a minibatch, which threads may work on at once
    checkpointing: bool = False  # recompute activations in the backward pass: less memory, more time
    compiled: bool = False  # let torch compile the policy
    mixed_precision: bool = False  # 16-bit arithmetic in the policy's layers


class ActionEvaluation(NamedTuple):
    """What a policy says about steps (rows, steps)."""

    log_prob: Tensor  # of the actions
    entropy: Tensor  # mean over the choices that were legal
    advice_nll: Tensor | None = None  # negative log-likelihood of a teacher's choices, on average
    prediction_error: Tensor | None = None  # of the next observation


class PopArt(nn.Module):
    """The scale on which a critic predicts returns. It moves with them, and the critic's last layer moves along.

    After van Hasselt et al. (2016), "Learning values across many orders of magnitude".
    """

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Buffer(torch.zeros((), dtype=torch.float64))
        self.spread = nn.Buffer(torch.ones((), dtype=torch.float64))
        self.count = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def normalise(self, returns: Tensor) -> Tensor:
        """Returns as the critic predicts them."""
        return (returns - self.mean.to(returns)) / self.spread.to(returns)

    def denormalise(self, values: Tensor) -> Tensor:
        """What the critic predicts, as returns."""
        return values * self.spread.to(values) + self.mean.to(values)

    @torch.no_grad()
    def update(self, returns: Tensor, layer: nn.Linear) -> None:
        """Move to more returns, if all are finite; `layer`, the critic's last, goes on predicting what it predicted."""
        variance, mean = torch.var_mean(returns.double(), correction=0)
        if not math.isfinite(variance):
            return
        self.count.add_(1)
        step = max(SCALE_STEP, 1.0 / float(self.count))
        before_mean, before_spread = self.mean.clone(), self.spread.clone()
        second = torch.lerp(self.spread.square() + self.mean.square(), variance + mean.square(), step)
        self.mean.lerp_(mean, step)
        self.spread.copy_((second - self.mean.square()).clamp(min=LEAST_SPREAD**2).sqrt())
        if int(self.count) > 1:
            layer.weight.mul_((before_spread / self.spread).to(layer.weight))
            layer.bias.copy_((layer.bias.double() * before_spread + before_mean - self.mean) / self.spread)


class Policy(nn.Module):
    """What the learner needs of a network. The critic has no state of its own: it may know everything."""

    critic: nn.Module
    scale: PopArt

    @property
    def value_layer(self) -> nn.Linear:
        """The critic's last."""
        raise NotImplementedError

    def evaluate_actions(
        self, observations: Tensors, actions: Tensors, state: Tensor, starts: Tensor, advice: Tensors | None
    ) -> ActionEvaluation:
        """Of chunks (rows, steps) of what members saw and did, and of what a teacher would have done."""
        raise NotImplementedError

    def value(self, shared: Tensors, members: int) -> Tensor:
        """What each member can expect, on the critic's scale; (..., members) for shared (..., values)."""
        raise NotImplementedError


class PPO(Learner):
    """The learner: a policy, its optimiser, and one round of updates per rollout."""

    def __init__(self, policy: Policy, config: PPOConfig, threads: int = 1, seed: int = 0):
        self.policy, self.config = policy, config
        critic = {id(parameter) for parameter in policy.critic.parameters()}
        groups = [
            ([p for p in policy.parameters() if (id(p) in critic) == own], factor)
            for own, factor in ((False, 1.0), (True, config.critic_rate))
        ]
        self.optimiser = Optimiser(
            policy, learning_rate=config.learning_rate, max_grad_norm=config.max_grad_norm, groups=groups,
            mixed_precision=config.mixed_precision, threads=threads,
        )  # fmt: skip
        self.device = self.optimiser.device
        self.order = torch.Generator().manual_seed(seed)  # in which chunks are learned from
        self.entropy_weight = config.entropy
        self._evaluate_actions: Callable[..., ActionEvaluation] = policy.evaluate_actions
        if config.compiled:
            self._evaluate_actions = torch.compile(policy.evaluate_actions, fullgraph=True, dynamic=True)
        if config.checkpointing:
            whole = self._evaluate_actions
            self._evaluate_actions = lambda *arguments: checkpoint(whole, *arguments, use_reentrant=False)

    def set_progress(self, progress: float, factor: float = 1.0) -> float:
        """Set learning rates and entropy's weight for the fraction of the budget that is used up; returns the rate."""
        c = self.config
        rate = factor * linear(progress, c.learning_rate, c.final_learning_rate, 1.0)
        self.entropy_weight = linear(progress, c.entropy, c.final_entropy, 1.0)
        self.optimiser.set_rate(rate)
        return rate

    def update(self, rollout: Rollout, imitation: float = 0.0) -> dict[str, float]:
        """One round of updates; `imitation` is the weight of a teacher's advice. Returns means over the updates."""
        c, numbers = self.config, rollout.numbers
        figures = self._find_advantages(rollout)
        self.policy.scale.update(numbers["returns"][rollout.acted], self.policy.value_layer)
        advantages = scaled_by_role(numbers["advantages"], rollout.acted, rollout.roles)
        sums: dict[str, float] = {}
        rounds, stopped = 0, False
        target_kl = math.inf if imitation >= FOLLOWED else c.target_kl
        for epoch in range(c.epochs):
            if epoch > 0 and c.recompute:
                self._find_advantages(rollout)
                advantages = scaled_by_role(numbers["advantages"], rollout.acted, rollout.roles)
            order = torch.randperm(rollout.shape.chunks * rollout.shape.groups, generator=self.order)
            for picked in torch.tensor_split(order, c.minibatches):
                made = self._update(rollout, advantages, picked, imitation)
                if made is None:
                    continue
                clipped = sum(norm > c.max_grad_norm for norm in made.norms) / len(made.norms)
                found = made.figures | {"gradient_norm": math.hypot(*made.norms), "gradient_clipped": clipped}
                sums = {name: sums.get(name, 0.0) + value for name, value in found.items()}
                rounds += 1
                stopped = found["kl"] > target_kl
                if stopped:
                    break
            if stopped:
                break
        figures |= {name: value / rounds for name, value in sums.items()}
        return finite(figures | {"rounds": rounds / (c.epochs * c.minibatches), "skipped": self.optimiser.skipped})

    def values(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """What the critic expects at each step (chunks, groups, members, steps), and after the last of them."""
        members, device = rollout.shape.members, self.device

        @torch.no_grad()
        def of(shared: Tensors) -> Tensor:
            return self.policy.value({name: a.to(device) for name, a in shared.items()}, members).cpu()

        by_chunk = [{name: array[c] for name, array in rollout.shared.items()} for c in range(rollout.shape.chunks)]
        values = torch.stack(self.optimiser.map(lambda shared: of(shared).transpose(1, 2), by_chunk))
        return self.policy.scale.denormalise(values), self.policy.scale.denormalise(of(rollout.after))

    def _find_advantages(self, rollout: Rollout) -> dict[str, float]:
        """Advantages and returns, from the critic as it is now; what there is to say about them."""
        numbers, acted = rollout.numbers, rollout.acted
        rollout.find_advantages(*self.values(rollout), self.config.gamma, self.config.gae_lambda)
        returns, values, found = (numbers[name][acted] for name in ("returns", "values", "advantages"))
        variance = returns.var(correction=0)
        return {
            "explained_variance": float(1.0 - (returns - values).var(correction=0) / variance.clamp(min=1e-12)),
            "return_mean": float(returns.mean()),
            "return_std": float(variance.sqrt()),
            "return_p999": float(returns.abs().quantile(0.999)),
            "return_max": float(returns.abs().max()),
            "value_mean": float(values.mean()),
            "value_std": float(values.std(correction=0)),
            "advantage_std": float(found.std(correction=0)),
        }

    def _update(self, rollout: Rollout, advantages: Tensor, picked: Tensor, imitation: float) -> Step | None:
        """One optimiser step on chunks of groups; None if nobody acted in them, or if it was skipped."""
        count = int(self._counted(rollout, picked).sum())
        if count == 0:
            return None
        microbatches = [part for part in torch.tensor_split(picked, self.config.microbatches) if len(part)]
        found = self.optimiser.map(lambda m: self._gradients(rollout, advantages, m, imitation, count), microbatches)
        gradients = add_up([gradients for gradients, _ in found], [1.0] * len(found), 1.0)
        zero = torch.zeros((), dtype=torch.float64, device=self.device)
        figures = {name: sum((figures[name] for _, figures in found), zero) for name in found[0][1]}
        return self.optimiser.step(gradients, figures, lambda: self._inputs(rollout, picked))

    def _counted(self, rollout: Rollout, picked: Tensor) -> Tensor:
        """(picked, members, steps): what of these chunks is learned from."""
        counted = rollout.acted.flatten(0, 1)[picked]
        if self.config.burn_in:
            counted[..., : self.config.burn_in] = False
        return counted

    def _gradients(
        self, rollout: Rollout, advantages: Tensor, picked: Tensor, imitation: float, count: int
    ) -> tuple[Gradients, Tensors]:
        """Gradients of some chunks, a microbatch of a minibatch with `count` steps, and their part of its figures."""
        c, device, members = self.config, self.device, rollout.shape.members
        counted = self._counted(rollout, picked)
        groups, who = counted.any(-1).nonzero(as_tuple=True)  # the gone are not even looked at
        rows = picked[groups] * members + who

        def of_members(arrays: Tensors) -> Tensors:
            return {name: array.flatten(0, 2)[rows].to(device) for name, array in arrays.items()}

        def of_groups(arrays: Tensors) -> Tensors:
            return {name: array.flatten(0, 1)[picked].to(device) for name, array in arrays.items()}

        about = of_members({"advantages": advantages, "log_prob": rollout.numbers["log_prob"]})
        state = rollout.states.flatten(0, 2)[rows].to(device)
        starts = rollout.starts.flatten(0, 1)[picked[groups]].to(device)
        mask = counted[groups, who].to(device)
        with self.optimiser.precision():
            advice = of_members(rollout.advice) if imitation > 0 else None
            evaluation = self._evaluate_actions(
                of_members(rollout.observations), of_members(rollout.actions), state, starts, advice
            )
            values = self.policy.value(of_groups(rollout.shared), members).transpose(1, 2)

        def total(of: Tensor, over: Tensor = mask) -> Tensor:
            return torch.where(over, of, 0.0).sum() / count

        advantage = about["advantages"]
        log_ratio = (evaluation.log_prob - about["log_prob"]).clamp(-20.0, 20.0)
        ratio = torch.exp(log_ratio)
        clipped = ratio.clamp(1.0 - c.clip, 1.0 + c.clip)
        surrogate = torch.minimum(ratio * advantage, clipped * advantage)
        policy_loss = -total(torch.where(advantage < 0, surrogate.clamp(min=DUAL_CLIP * advantage), surrogate))
        entropy = total(evaluation.entropy)
        returns = rollout.numbers["returns"].flatten(0, 1)[picked].to(device)
        value_errors = smooth_l1_loss(values, self.policy.scale.normalise(returns), reduction="none")
        value_loss = total(value_errors, counted.to(device))
        loss = policy_loss - self.entropy_weight * entropy + c.value_weight * value_loss
        figures = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        if evaluation.advice_nll is not None:
            figures["imitation_loss"] = total(evaluation.advice_nll)
            loss = loss + imitation * figures["imitation_loss"]
        if evaluation.prediction_error is not None:
            figures["prediction_loss"] = total(evaluation.prediction_error)
            loss = loss + c.prediction * figures["prediction_loss"]
        gradients = list(torch.autograd.grad(loss, self.optimiser.parameters))
        with torch.no_grad():
            figures["kl"] = total(ratio - 1.0 - log_ratio)
            figures["clip_fraction"] = total(((ratio - 1.0).abs() > c.clip).float())
            return gradients, {name: value.detach().double() for name, value in figures.items()}

    def _inputs(self, rollout: Rollout, picked: Tensor) -> Tensors:
        """What an update that was skipped came from: numbers of the whole rollout, and these chunks' observations."""
        found = {name: rollout.numbers[name] for name in ("reward", "log_prob", "values", "returns")}
        for kind in (rollout.observations, rollout.shared):
            found |= {name: array.flatten(0, 1)[picked] for name, array in kind.items()}
        return found

    def state(self) -> dict[str, Any]:
        kept = {"weights": named_weights(self.policy, "network"), "order": self.order.get_state()}
        return kept | self.optimiser.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        restore_weights(self.policy, state["weights"], "network")
        restore_torch_generator(self.order, state["order"])
        self.optimiser.restore(state)
