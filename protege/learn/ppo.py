"""Clipped policy updates (PPO) of recurrent players with a central critic, over chunks of their experience.

One call of the policy walks a whole chunk, beginnings of episodes inside. A minibatch is a random set of chunks of
whole groups; several threads share it, and their gradients are added in a fixed order, so that the number of threads
changes nothing. The critic predicts returns on a running scale, which is undone before advantages are worked out.
"""

import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss
from torch.utils.checkpoint import checkpoint

from protege.learn.rainbow import LearningFailed, linear
from protege.learn.rollout import Rollout, Tensors, scaled_by_role

LEAST_SPREAD = 1e-2  # of returns: a critic's scale is never finer
SCALE_STEP = 0.05  # how far one rollout moves the scale, once there have been some
FOLLOWED = 0.3  # weight of advice from which on it is followed however far it leads
WORST = 3.0  # a bad choice that has become likelier counts at most so many times: it would drown the rest of a batch


@dataclass(frozen=True)
class PPOConfig:
    """Settings of the learner."""

    epochs: int = 2  # times each step is learned from, unless the policy has moved too far before
    minibatches: int = 8  # optimiser steps in an epoch
    discount: float = 0.995  # worth of a reward one step later
    trace: float = 0.95  # lambda: how far an advantage looks before it trusts the critic
    clip: float = 0.2  # a probability may change by this share before it is held
    learning_rate: float = 3e-4  # at the start
    final_learning_rate: float = 3e-5  # when the budget is used up
    critic_rate: float = 2.0  # the critic's learning rate as a multiple of the policy's
    entropy: float = 0.05  # weight of the mean entropy of the choices, at the start
    final_entropy: float = 0.01  # when the budget is used up
    value_weight: float = 0.5  # of the critic's error
    gradient_limit: float = 2.0  # gradients of the policy, or of the critic, longer than this are shortened to it
    kl_limit: float = 0.02  # a rollout is left as soon as a minibatch finds the policy further away than this
    burn_in: int = 0  # first steps of each chunk that only warm the state up
    prediction: float = 0.0  # weight of predicting the next observation; 0 for a policy without that head
    recompute: bool = False  # work advantages out anew for every epoch
    parts: int = 2  # pieces of a minibatch that may be worked on at once
    checkpointing: bool = False  # keep less of the forward pass and do it twice: less memory
    compiled: bool = False  # let torch compile the policy
    mixed_precision: bool = False  # 16-bit arithmetic in the policy's layers


class Judged(NamedTuple):
    """What a policy says about steps (rows, steps)."""

    log_prob: Tensor  # of what was done
    entropy: Tensor  # mean over the choices that were legal
    surprise: Tensor | None = None  # of a teacher's choices: minus their log-probability, on average
    misprediction: Tensor | None = None  # error of the predicted next observation


class ValueScale(nn.Module):
    """The scale on which a critic predicts returns. It moves with them, and the critic's last layer moves along."""

    mean: Tensor
    spread: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros((), dtype=torch.float64))
        self.register_buffer("spread", torch.ones((), dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def scaled(self, returns: Tensor) -> Tensor:
        """Returns as the critic predicts them."""
        return (returns - self.mean.to(returns)) / self.spread.to(returns)

    def restored(self, values: Tensor) -> Tensor:
        """What the critic predicts, as returns."""
        return values * self.spread.to(values) + self.mean.to(values)

    @torch.no_grad()
    def note(self, returns: Tensor, layer: nn.Linear) -> None:
        """Move to more returns; `layer`, the critic's last, goes on predicting what it has learned to predict."""
        variance, mean = torch.var_mean(returns.double(), correction=0)
        self.count += 1
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
    scale: ValueScale

    @property
    def value_layer(self) -> nn.Linear:
        """The critic's last."""
        raise NotImplementedError

    def judge(self, seen: Tensors, taken: Tensors, state: Tensor, starts: Tensor, advice: Tensors | None) -> Judged:
        """What is to be said about chunks (rows, steps) of what members saw and did, and a teacher would have done."""
        raise NotImplementedError

    def value(self, shared: Tensors, members: int) -> Tensor:
        """What each member can expect, on the critic's scale; (..., members) for shared (..., values)."""
        raise NotImplementedError


class PPO:
    """The learner: a policy, its optimiser, and one round of updates per rollout."""

    def __init__(self, policy: Policy, config: PPOConfig, threads: int = 1, seed: int = 0):
        self.policy, self.config = policy, config
        self.device = next(policy.parameters()).device
        critic = {id(parameter) for parameter in policy.critic.parameters()}
        self.parameters = list(policy.parameters())
        groups = [
            {"params": [p for p in self.parameters if (id(p) in critic) == own], "factor": factor}
            for own, factor in ((False, 1.0), (True, config.critic_rate))
        ]
        fused = self.device.type in ("cpu", "cuda")
        self.optimiser = torch.optim.Adam(groups, lr=config.learning_rate, eps=1e-5, fused=fused)
        self.order = torch.Generator().manual_seed(seed)  # in which chunks are learned from
        self.updates = 0
        self.entropy_weight = config.entropy
        self.cpu_s = 0.0  # processor time of all threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="learner")
        self._judge: Callable[..., Judged] = policy.judge
        if config.compiled:
            self._judge = torch.compile(policy.judge, fullgraph=True, dynamic=True)
        if config.checkpointing:
            whole = self._judge
            self._judge = lambda *arguments: checkpoint(whole, *arguments, use_reentrant=False)

    def set_progress(self, done: float, factor: float = 1.0) -> float:
        """Set learning rates and entropy's weight for the share of the budget that is used up; returns the rate."""
        c = self.config
        rate = factor * linear(done, c.learning_rate, c.final_learning_rate, 1.0)
        self.entropy_weight = linear(done, c.entropy, c.final_entropy, 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["factor"]
        return rate

    # --- one rollout ---

    def learn(self, rollout: Rollout, imitation: float = 0.0) -> dict[str, float]:
        """One round of updates; `imitation` is the weight of a teacher's advice. Returns means over the updates."""
        c, numbers = self.config, rollout.numbers
        figures = self._find_advantages(rollout)
        self.policy.scale.note(numbers["returns"][rollout.acted], self.policy.value_layer)
        advantages = scaled_by_role(numbers["advantages"], rollout.acted, rollout.roles)
        sums: dict[str, float] = {}
        rounds, stopped = 0, False
        limit = math.inf if imitation >= FOLLOWED else c.kl_limit
        for epoch in range(c.epochs):
            if epoch > 0 and c.recompute:
                self._find_advantages(rollout)
                advantages = scaled_by_role(numbers["advantages"], rollout.acted, rollout.roles)
            order = torch.randperm(rollout.shape.chunks * rollout.shape.groups, generator=self.order)
            for picked in torch.tensor_split(order, c.minibatches):
                found = self._update(rollout, advantages, picked, imitation)
                if found is None:
                    continue
                sums = {name: sums.get(name, 0.0) + value for name, value in found.items()}
                rounds += 1
                stopped = found["kl"] > limit
                if stopped:
                    break
            if stopped:
                break
        means = {name: value / max(rounds, 1) for name, value in sums.items()}
        return figures | means | {"rounds": rounds / (c.epochs * c.minibatches)}

    def values(self, rollout: Rollout) -> tuple[Tensor, Tensor]:
        """What the critic expects at each step (chunks, groups, members, steps), and after the last of them."""
        members, device = rollout.shape.members, self.device

        @torch.no_grad()
        def of(shared: Tensors) -> Tensor:
            return self.policy.value({name: a.to(device) for name, a in shared.items()}, members).cpu()

        def of_chunk(chunk: int) -> Tensor:
            return of({name: array[chunk] for name, array in rollout.shared.items()}).transpose(1, 2)

        chunks = self._together(of_chunk, range(rollout.shape.chunks))
        return self.policy.scale.restored(torch.stack(chunks)), self.policy.scale.restored(of(rollout.after))

    def _find_advantages(self, rollout: Rollout) -> dict[str, float]:
        """Advantages and returns, from the critic as it is now; what there is to say about them."""
        numbers, acted = rollout.numbers, rollout.acted
        rollout.find_advantages(*self.values(rollout), self.config.discount, self.config.trace)
        returns, values, found = (numbers[name][acted] for name in ("returns", "values", "advantages"))
        self._check_finite({"rewards": numbers["reward"], "values": values, "returns": returns})
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

    # --- one update ---

    def _update(
        self, rollout: Rollout, advantages: Tensor, picked: Tensor, imitation: float
    ) -> dict[str, float] | None:
        """One optimiser step on chunks of groups; None if nobody acted in them."""
        counted = self._counted(rollout, picked)
        count = int(counted.sum())
        if count == 0:
            return None
        parts = [part for part in torch.tensor_split(picked, self.config.parts) if len(part)]
        found = self._together(lambda part: self._gradients(rollout, advantages, part, imitation, count), parts)
        gradients: list[Tensor] = found[0][0]
        figures: dict[str, float] = found[0][1]
        for more, other in found[1:]:
            torch._foreach_add_(gradients, more)
            figures = {name: value + other[name] for name, value in figures.items()}
        self._check_finite(figures)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        norms = self._shorten()
        self.optimiser.step()
        self.updates += 1
        clipped = sum(norm > self.config.gradient_limit for norm in norms) / len(norms)
        return figures | {"gradient_norm": math.hypot(*norms), "gradient_clipped": clipped}

    def _shorten(self) -> list[float]:
        """Limit the gradients of policy and critic, each by itself; their norms before that."""
        norms = []
        for group in self.optimiser.param_groups:
            norm = nn.utils.get_total_norm([p.grad for p in group["params"]])
            if not bool(norm.isfinite()):
                self._check_finite({f"the gradient of {name}": p.grad for name, p in self.policy.named_parameters()})
            nn.utils.clip_grads_with_norm_(group["params"], self.config.gradient_limit, norm)
            norms.append(float(norm))
        return norms

    def _counted(self, rollout: Rollout, picked: Tensor) -> Tensor:
        """(picked, members, steps): what of these chunks is learned from."""
        counted = rollout.acted.flatten(0, 1)[picked]
        if self.config.burn_in:
            counted[..., : self.config.burn_in] = False
        return counted

    def _gradients(
        self, rollout: Rollout, advantages: Tensor, picked: Tensor, imitation: float, count: int
    ) -> tuple[list[Tensor], dict[str, float]]:
        """Gradients of some chunks' share of a minibatch with `count` steps, and their share of its figures."""
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
        narrow = torch.autocast(device.type, torch.bfloat16) if c.mixed_precision else nullcontext()
        with narrow:
            advice = of_members(rollout.advice) if imitation > 0 else None
            judged = self._judge(of_members(rollout.seen), of_members(rollout.taken), state, starts, advice)
            values = self.policy.value(of_groups(rollout.shared), members).transpose(1, 2)

        def total(of: Tensor, over: Tensor = mask) -> Tensor:
            return torch.where(over, of, 0.0).sum() / count

        change = (judged.log_prob - about["log_prob"]).clamp(-20.0, 20.0)
        ratio = torch.exp(change)
        held = ratio.clamp(1.0 - c.clip, 1.0 + c.clip)
        worth = torch.minimum(ratio * about["advantages"], held * about["advantages"])
        policy_loss = -total(torch.where(about["advantages"] < 0, worth.clamp(min=WORST * about["advantages"]), worth))
        entropy = total(judged.entropy)
        returns = rollout.numbers["returns"].flatten(0, 1)[picked].to(device)
        misses = smooth_l1_loss(values, self.policy.scale.scaled(returns), reduction="none")
        value_loss = total(misses, counted.to(device))
        loss = policy_loss - self.entropy_weight * entropy + c.value_weight * value_loss
        figures = {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy}
        if judged.surprise is not None:
            figures["imitation_loss"] = total(judged.surprise)
            loss = loss + imitation * figures["imitation_loss"]
        if judged.misprediction is not None:
            figures["prediction_loss"] = total(judged.misprediction)
            loss = loss + c.prediction * figures["prediction_loss"]
        gradients = list(torch.autograd.grad(loss, self.parameters))
        with torch.no_grad():
            figures["kl"] = total(ratio - 1.0 - change)
            figures["clip_fraction"] = total(((ratio - 1.0).abs() > c.clip).float())
            return gradients, {name: float(value.detach()) for name, value in figures.items()}

    # --- helpers ---

    def _together(self, work: Callable[[Any], Any], pieces: Iterable[Any]) -> list[Any]:
        """What `work` gives for each piece, in order; the pool's threads share the pieces."""

        def timed(piece: Any) -> tuple[Any, float]:
            began = time.thread_time()
            return work(piece), time.thread_time() - began

        found = list(self._pool.map(timed, pieces))
        self.cpu_s += sum(spent for _, spent in found)
        return [result for result, _ in found]

    def _check_finite(self, numbers: dict[str, Any]) -> None:
        """Raise, before anything is changed by them, if some of these are not finite."""
        bad = [name for name, value in numbers.items() if not bool(torch.as_tensor(value).isfinite().all())]
        if bad:
            report = {"update": self.updates, "not_finite": bad}
            raise LearningFailed(
                f"update {self.updates} was not made: {', '.join(bad)} not finite; the last checkpoint is good", report
            )
