"""Distributional Q-learning from replay: heads, targets, one update at a time, and the copy of the weights that plays.

C51 (Bellemare et al., 2017) with double selection, dueling streams, n-step targets and importance weights, as Rainbow
(Hessel et al., 2018) combines them, and a cloning term towards a teacher's actions. The replay hands over a `Batch`;
figures and each sample's divergence, its new priority, come back. Each network sees an observation once: the online one
the states, with gradients, and the next states, without; the target network the next states.
"""

import copy
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.learn.replay import Batch
from protege.runs import checkpoints

Floats = npt.NDArray[np.float32]

MOST_SKIPPED: Final = 20  # updates in a row
FIRST_SPREAD: Final = 0.1  # of the returns that a fresh network expects, as a share of its support


@dataclass(frozen=True)
class RainbowConfig:
    """Settings of the learner."""

    batch: int = 256  # samples per update
    learning_rate: float = 5e-5  # at its peak, after the warm-up
    final_learning_rate: float = 2e-5  # where each period of the schedule ends
    warm_up: int = 5_000  # updates over which the learning rate rises to its peak
    period: int = 3_000_000  # updates of one fall of the learning rate, after which it starts again at its peak
    adam_epsilon: float = 1.5e-4  # keeps the optimiser's steps small where gradients are tiny
    target_every: int = 2_500  # updates between copies of the weights into the target network
    acting_every: int = 100  # updates between copies of the weights for the player
    gradient_limit: float = 5.0  # gradients longer than this are shortened to it
    atoms: int = 51  # points on which the distribution of returns is kept
    low: float = -100.0  # lowest return of the distribution
    high: float = 100.0  # highest return of the distribution
    beta: float = 0.4  # how far importance weights undo the priorities at the start; 1 is wholly
    beta_frames: int = 10_000_000  # frames over which beta rises to 1
    cloning: float = 1.0  # weight of the teacher's actions in the loss at first
    final_cloning: float = 0.001  # that weight at last
    cloning_frames: int = 500_000  # frames before that weight starts to fall
    cloning_fall: int = 2_000_000  # frames over which it falls
    margin: float = 0.5  # in points of reward: by how much cloning wants the teacher's action to lead all others
    minimum_fill: int = 10_000  # transitions in the memory before the first update
    samples_per_frame: float = 3.2  # how often each frame is learned from, on average; updates wait for frames
    averaging: float = 1.0  # step of the running average of the weights, the player that is measured; 1 for the newest
    mixed_precision: bool = True  # half precision where it is safe, on CUDA devices that have bfloat16


class NoSuchDevice(ProtegeError):
    """A device that this machine, or this build of torch, does not have."""


def find_device(wanted: str) -> torch.device:
    """The device called "cpu", "cuda" or "mps"; for "auto" the first of cuda, mps and cpu that is there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return torch.device(next(name for name, found in there.items() if found))
    if not there[wanted]:
        known = ", ".join(name for name, found in there.items() if found)
        raise NoSuchDevice(f"there is no device {wanted} here, only {known}; `protege doctor --full` tries them all")
    return torch.device(wanted)


class LearningFailed(ProtegeError):
    """Updates that cannot be made any more; `report` says what was found."""

    def __init__(self, message: str, report: dict[str, Any]):
        super().__init__(message)
        self.report = report


# --- schedules -----------------------------------------------------------------------------------------------------


def linear(now: float, first: float, last: float, length: float, start: float = 0.0) -> float:
    """From `first` at `start` to `last` at `start + length`, constant before and after."""
    share = (now - start) / length if length > 0 else float(now >= start)
    return first + (last - first) * min(1.0, max(0.0, share))


def beta_at(config: RainbowConfig, frames: int) -> float:
    """How far importance weights undo the priorities."""
    return linear(frames, config.beta, 1.0, config.beta_frames)


def cloning_at(config: RainbowConfig, frames: int) -> float:
    """Weight of the teacher's actions in the loss."""
    return linear(frames, config.cloning, config.final_cloning, config.cloning_fall, start=config.cloning_frames)


def learning_rate_at(config: RainbowConfig, update: int, budget: float | None = None) -> float:
    """A linear warm-up, then cosine falls from the peak to the floor, which is never above the peak.

    Where there is a `budget`, a single fall: it is the share that is used up.
    """
    if update < config.warm_up:
        return config.learning_rate * (update + 1) / config.warm_up
    floor = min(config.final_learning_rate, config.learning_rate)
    turn = (update - config.warm_up) % config.period / config.period if budget is None else min(1.0, budget)
    return floor + (config.learning_rate - floor) * (1 + math.cos(math.pi * turn)) / 2


# --- distributions -------------------------------------------------------------------------------------------------


def project(probabilities: Tensor, returns: Tensor, bootstrap: Tensor, support: Tensor) -> Tensor:
    """The distribution (batch, atoms) of `returns + bootstrap * Z`, where Z has these probabilities on the support.

    Each atom moves and shares its mass among the two nearest atoms of the support; the mean is kept, except for what
    would leave the support and stays at its end.
    """
    assert probabilities.shape == (len(returns), len(support)) and returns.shape == bootstrap.shape
    moved = returns[:, None] + bootstrap[:, None] * support
    place = ((moved - support[0]) / (support[1] - support[0])).clamp(0, len(support) - 1)
    below = place.long().clamp(0, len(support) - 2)  # also where a place is not a number: that shows in the masses
    upper = probabilities * (place - below)
    found = torch.zeros_like(probabilities).scatter_add_(1, below, probabilities - upper)
    return found.scatter_add_(1, below + 1, upper)


def divergence(target: Tensor, cross_entropy: Tensor) -> Tensor:
    """How far predictions are from their targets (batch,): cross-entropy less what the target itself is uncertain of.

    As a priority the cross-entropy would bring noisy states back for ever, however well they are predicted.
    """
    return (cross_entropy + torch.xlogy(target, target).sum(1)).clamp(min=0)


def rival_of(values: Tensor, teacher: Tensor, margin: float) -> Tensor:
    """The action (batch,) that most keeps the teacher's from leading by the margin; the teacher's own if none does."""
    handicap = values.gather(1, teacher[:, None]) - margin
    return values.scatter(1, teacher[:, None], handicap).argmax(1)


# --- networks ------------------------------------------------------------------------------------------------------


def initialise(module: nn.Module) -> None:
    """Xavier weights and no biases in every linear layer."""
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)


class _Grouped(torch.autograd.Function):
    """A linear layer with its outputs in groups, of which each row wants one: rows (rows, inputs) -> (rows, outputs).

    A small product for each group, in place of a large one of which nearly everything would be thrown away.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, group: Tensor) -> Tensor:
        order = group.argsort()
        rows = rows[order]
        ctx.sizes = sizes = torch.bincount(group, minlength=len(weight)).tolist()
        ctx.save_for_backward(rows, weight, group, order)
        found = rows.new_empty(len(rows), weight.shape[1])
        parts = zip(sizes, torch.split(rows, sizes), weight, bias, torch.split(found, sizes), strict=True)
        for size, part, to_output, offset, result in parts:
            if size:
                torch.addmm(offset, part, to_output.T, out=result)
        return torch.empty_like(found).index_copy_(0, order, found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        rows, weight, group, order = ctx.saved_tensors
        (gradient,) = gradients
        to_rows, to_weight = torch.empty_like(rows), torch.zeros_like(weight)
        columns = (torch.split(ordered, ctx.sizes) for ordered in (gradient[order], rows, to_rows))
        for size, outer, part, result, of_group, to_group in zip(ctx.sizes, *columns, weight, to_weight, strict=True):
            if size:
                torch.mm(outer, of_group, out=result)
                torch.mm(outer.T, part, out=to_group)
        to_bias = gradient.new_zeros(weight.shape[:2]).index_add_(0, group, gradient)
        return torch.empty_like(rows).index_copy_(0, order, to_rows), to_weight, to_bias, None


class Streams(NamedTuple):
    """What a head has worked out before it comes to single actions."""

    hidden: Tensor  # (batch, hidden) of the advantages
    value: Tensor | None  # (batch, atoms)


class Head(nn.Module):
    """Features (batch, inputs) -> logits of the return's distribution for every action (batch, actions, atoms).

    With `factors`, such as (4, 11), an action is one choice of each factor, the last one counting fastest. Each factor
    has advantages of its own and an action's are their sum: 15 to learn in place of 44, still one value per action.
    """

    def __init__(
        self, inputs: int, hidden: int, actions: int, atoms: int, *, dueling: bool = True, factors: Sequence[int] = ()
    ):
        super().__init__()
        self.factors = tuple(factors) or (actions,)
        assert math.prod(self.factors) == actions, f"{factors} do not multiply to {actions}"
        self.atoms = atoms
        self.hidden = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.advantage = nn.Linear(hidden, sum(self.factors) * atoms)
        self.value: nn.Sequential | None = None
        if dueling:
            self.value = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, atoms))
        initialise(self)

    def forward(self, features: Tensor) -> Tensor:
        return self.all(self.streams(features))

    def streams(self, features: Tensor) -> Streams:
        """For `all` and `some`."""
        return Streams(self.hidden(features), None if self.value is None else self.value(features))

    def all(self, streams: Streams) -> Tensor:
        """The logits of all actions (batch, actions, atoms)."""
        first, *more = self.advantage(streams.hidden).unflatten(1, (-1, self.atoms)).split(self.factors, 1)
        logits: Tensor = first
        for factor in more:
            logits = (logits[:, :, None] + factor[:, None]).flatten(1, 2)
        if streams.value is not None:
            logits = logits + (streams.value - logits.mean(1))[:, None]
        return logits

    def some(self, streams: Streams, actions: Tensor) -> Tensor:
        """The logits of some actions (batch, some) of each sample (batch, some, atoms)."""
        if len(self.factors) > 1 or actions.device.type != "cpu" or streams.hidden.dtype != torch.float32:
            return self.all(streams).gather(1, actions[:, :, None].expand(-1, -1, self.atoms))
        weight, bias = (
            self.advantage.weight.view(*self.factors, self.atoms, -1),
            self.advantage.bias.view(-1, self.atoms),
        )
        rows = streams.hidden[:, None].expand(-1, actions.shape[1], -1).flatten(0, 1)
        logits: Tensor = _Grouped.apply(rows, weight, bias, actions.flatten()).view(*actions.shape, self.atoms)
        if streams.value is not None:
            mean = nn.functional.linear(streams.hidden, weight.mean(0), bias.mean(0))
            logits = logits + (streams.value - mean)[:, None]
        return logits


@runtime_checkable
class Foldable(Protocol):
    """A part of a network that can prepare itself for weights that never change again."""

    def fold(self) -> None: ...


class QNetwork(nn.Module):
    """Observations -> logits (batch, actions, atoms): any body, a head, and the returns that the atoms stand for."""

    def __init__(self, body: nn.Module, head: Head, low: float, high: float):
        super().__init__()
        self.body = body
        self.head = head
        self.register_buffer("support", torch.linspace(low, high, head.atoms), persistent=False)

    support: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        return self.head.all(self.streams(observation))

    @torch.no_grad()
    def expect_nothing(self) -> None:
        """Begin with returns around 0: coming down from a lopsided support's middle takes thousands of updates."""
        prior = -0.5 * (self.support / (FIRST_SPREAD * (self.support[-1] - self.support[0]))).square()
        head = self.head
        if head.value is None:
            head.advantage.bias.copy_((prior / len(head.factors)).repeat(sum(head.factors)))
        else:
            last = head.value[-1]
            assert isinstance(last, nn.Linear), "a value stream ends in a layer of atoms"
            last.bias.copy_(prior)

    def streams(self, observation: Tensor) -> Streams:
        """What the head makes logits of."""
        return self.head.streams(self.body(observation))

    def expected(self, logits: Tensor) -> Tensor:
        """Action values (batch, actions) of logits."""
        return torch.softmax(logits.float(), -1) @ self.support

    def frozen(self) -> "QNetwork":
        """A copy to be asked and never changed, so what its weights alone determine is worked out once."""
        copied = copy.deepcopy(self).requires_grad_(False)
        for part in copied.modules():
            if isinstance(part, Foldable):
                part.fold()
        return copied


# --- the learner ---------------------------------------------------------------------------------------------------


@dataclass
class _Samples:
    """What is learned from: a batch, or a thread's share of one, on the device."""

    observation: Tensor
    action: Tensor
    returns: Tensor
    next_observation: Tensor
    bootstrap: Tensor
    teacher: Tensor
    teacher_action: Tensor
    weight: Tensor

    def split(self, parts: int) -> "list[_Samples]":
        columns = [torch.tensor_split(getattr(self, field.name), parts) for field in fields(self)]
        return [_Samples(*part) for part in zip(*columns, strict=True)]


@dataclass
class _Findings:
    """What a share of a batch gives."""

    gradients: list[Tensor]
    sums: Tensor  # over the samples: loss, cloning loss, divergence, return, value of the move, advice, agreements
    lowest: Tensor  # action value
    highest: Tensor
    divergence: Tensor  # (samples,)
    cpu_s: float = 0.0


class Rainbow:
    """The learner: online and target network, optimiser, and one update per batch.

    `acting` is a copy of the weights for whoever plays. It is replaced as a whole, never changed: a player in another
    thread takes it once per decision and never sees half an update. `factors` name what else than the whole action two
    players can agree in: a label for each action, such as its spinner's direction.
    """

    def __init__(
        self,
        network: QNetwork,
        config: RainbowConfig,
        *,
        factors: Mapping[str, Sequence[int]] | None = None,
        threads: int = 1,
    ):
        self.config = config
        self.device = next(network.parameters()).device
        self.network = network
        self.averaged = copy.deepcopy(network).requires_grad_(False)
        self.target = network.frozen()
        self.acting = network.frozen()
        fused = self.device.type in ("cpu", "cuda")
        self.optimiser = torch.optim.Adam(network.parameters(), lr=0.0, eps=config.adam_epsilon, fused=fused)
        self.updates = 0
        self.rate_scale = 1.0  # of the whole schedule, peak and floor alike
        self.budget: float | None = None  # share of it that is used up, where the learning rate falls with it
        self.skipped = 0  # updates that were not made, because a number in them was not finite
        self.skipped_in_a_row = 0
        self.problem: dict[str, Any] = {}  # what was found at the last of them
        self.others_cpu_s = 0.0  # processor time of threads other than the caller's
        self.threads = threads if self.device.type == "cpu" else 1
        self._factors = {name: torch.tensor(labels, device=self.device) for name, labels in (factors or {}).items()}
        self.halves = config.mixed_precision and self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        self._pool = ThreadPoolExecutor(64, thread_name_prefix="learner")  # threads start when first needed

    def update(self, batch: Batch, cloning: float = 0.0) -> tuple[dict[str, float], Floats]:
        """Learn from a batch; returns figures and how far each sample was from its target (batch,).

        `cloning` is the weight of the teacher's actions. An update with a number that is not finite is skipped:
        `problem` then says why, and a sample that cannot be learned from is at distance 0.
        """
        samples = _Samples(*(self._on_device(getattr(batch, field.name)) for field in fields(_Samples)))
        found = self._findings(samples, cloning)
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(found.gradients)))
        # The one moment at which the device is waited for.
        lowest, highest, length, *sums = torch.cat(
            [torch.stack([found.lowest, found.highest, norm]), found.sums]
        ).tolist()
        divergences: Floats = found.divergence.cpu().numpy()
        figures = self._figures(len(divergences), lowest, highest, length, sums)
        if not all(map(math.isfinite, (length, *sums))):
            self._skip(samples, figures, found.gradients)
            return {"skipped": self.skipped}, np.nan_to_num(divergences, nan=0.0, posinf=0.0)
        self.skipped_in_a_row = 0
        figures["learning_rate"] = self._step(found.gradients, length)
        return figures, divergences

    def rate(self) -> float:
        """The learning rate of the next update."""
        return learning_rate_at(self.config, self.updates, self.budget) * self.rate_scale

    # --- one update ---

    def _on_device(self, array: npt.NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def _findings(self, samples: _Samples, cloning: float) -> _Findings:
        """Of the whole batch; threads share it, and their gradients add up."""
        total = len(samples.action)
        first, *rest = samples.split(self.threads)
        others = [self._pool.submit(self._share, part, cloning, total) for part in rest]
        found = self._share(first, cloning, total)
        for other in others:
            more = other.result()
            torch._foreach_add_(found.gradients, more.gradients)
            found.sums += more.sums
            found.lowest = torch.minimum(found.lowest, more.lowest)
            found.highest = torch.maximum(found.highest, more.highest)
            found.divergence = torch.cat([found.divergence, more.divergence])
            self.others_cpu_s += more.cpu_s
        return found

    def _share(self, samples: _Samples, cloning: float, total: int) -> _Findings:
        began = time.thread_time()
        target = self._target(samples)
        with self._precision():
            streams = self.network.streams(samples.observation)
        with torch.no_grad(), self._precision():
            values = self.network.expected(self.network.head.all(streams))
            greedy = values.argmax(1)
            advice = torch.where(samples.teacher & (samples.teacher_action < 0), samples.action, samples.teacher_action)
            known = advice >= 0
            advice = advice.clamp(min=0)
            rival = rival_of(values, advice, self.config.margin)
        picked = samples.action[:, None]
        if cloning > 0:
            picked = torch.stack([samples.action, advice, rival], 1)
        with self._precision():
            logits = self.network.head.some(streams, picked)
        chances = torch.log_softmax(logits.float(), -1)
        cross_entropy = -(target * chances[:, 0]).sum(1)
        loss = (samples.weight * cross_entropy).sum()
        cloned = torch.zeros_like(loss)
        if cloning > 0:
            # Only what the lead lacks is learned, so a teacher's action that leads is left at the value that it has.
            worth = chances[:, 1:].exp() @ self.network.support
            lacking = worth[:, 1] - worth[:, 0] + self.config.margin * (rival != advice)
            cloned = (lacking * known).sum()
        gradients = list(torch.autograd.grad((loss + cloning * cloned) / total, list(self.network.parameters())))
        with torch.no_grad():
            surprise = divergence(target, cross_entropy)
            agreements = [(greedy == advice) & known]
            agreements += [(table[greedy] == table[advice]) & known for table in self._factors.values()]
            chosen = values.gather(1, samples.action[:, None])
            sums = [loss, cloned, surprise.sum(), samples.returns.sum(), chosen.sum(), known.sum()]
            sums += [agreed.sum() for agreed in agreements]
            found = _Findings(gradients, torch.stack([s.float() for s in sums]), values.min(), values.max(), surprise)
        found.cpu_s = time.thread_time() - began
        return found

    @torch.no_grad()
    def _target(self, samples: _Samples) -> Tensor:
        """Where the distributions of the moves made should be (samples, atoms)."""
        with self._precision():
            best = self.network.expected(self.network(samples.next_observation)).argmax(1, keepdim=True)
            logits = self.target.head.some(self.target.streams(samples.next_observation), best)[:, 0]
        return project(torch.softmax(logits.float(), -1), samples.returns, samples.bootstrap, self.network.support)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.halves)

    def _figures(
        self, rows: int, lowest: float, highest: float, norm: float, sums: Sequence[float]
    ) -> dict[str, float]:
        loss, cloned, surprise, returns, value, known, *agreements = sums
        figures = {
            "loss": loss / rows,
            "bc_loss": cloned / max(1.0, known),
            "divergence": surprise / rows,
            "return_mean": returns / rows,
            "gradient_norm": norm,
            "q_min": lowest,
            "q_mean": value / rows,
            "q_max": highest,
            "advised": known / rows,
            "skipped": self.skipped,
        }
        if known:
            names = ["agreement", *(f"agreement_{name}" for name in self._factors)]
            figures |= {name: agreed / known for name, agreed in zip(names, agreements, strict=True)}
        return figures

    @torch.no_grad()
    def _step(self, gradients: list[Tensor], norm: float) -> float:
        """Move the weights; returns the learning rate."""
        if norm > self.config.gradient_limit:
            torch._foreach_mul_(gradients, self.config.gradient_limit / norm)
        for parameter, gradient in zip(self.network.parameters(), gradients, strict=True):
            parameter.grad = gradient
        rate = self.rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.updates += 1
        step = max(self.config.averaging, 1.0 / self.updates)  # at first the mean of all weights there were
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self.network.parameters()), step)
        if self.updates % self.config.target_every == 0:
            self.target = self.network.frozen()
        if self.updates % self.config.acting_every == 0:
            self.acting = self.network.frozen()
        return rate

    # --- updates that cannot be made ---

    def _skip(self, samples: _Samples, figures: dict[str, float], gradients: list[Tensor]) -> None:
        """Count and explain; raises when it has happened too often in a row."""
        self.skipped += 1
        self.skipped_in_a_row += 1
        tensors = self._not_finite(samples, gradients)
        self.problem = {
            "update": self.updates,
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
            "rate": self.rate(),
            "tensors": tensors,
            "figures": {name: value if math.isfinite(value) else str(value) for name, value in figures.items()},
        }
        if self.skipped_in_a_row < MOST_SKIPPED:
            return
        name, found = next(iter(tensors.items()), ("loss", "too large a number"))
        raise LearningFailed(
            f"{MOST_SKIPPED} updates in a row met numbers that are not finite, so learning has stopped after update "
            f"{self.updates:,}; first in {name}: {found}. If that is an input, look for where it comes from; otherwise "
            "go back to the last checkpoint with half the learning rate",
            self.problem,
        )

    @torch.no_grad()
    def _not_finite(self, samples: _Samples, gradients: list[Tensor]) -> dict[str, str]:
        """Every tensor of an update that holds a number which is not finite, causes before effects."""
        names = [name for name, _ in self.network.named_parameters()]
        tensors = {f"input {field.name}": getattr(samples, field.name) for field in fields(samples)}
        tensors |= {f"weight {name}": tensor for name, tensor in self.network.named_parameters()}
        tensors |= {f"target weight {name}": tensor for name, tensor in self.target.named_parameters()}
        tensors["output"] = self.network(samples.observation)
        tensors["output for next observations"] = self.network(samples.next_observation)
        tensors["target output"] = self.target(samples.next_observation)
        tensors |= {f"gradient {name}": gradient for name, gradient in zip(names, gradients, strict=True)}
        found = {}
        for name, tensor in tensors.items():
            bad = ~torch.isfinite(tensor)
            if bad.any():
                rows = bad.reshape(len(bad), -1).any(1).nonzero()[:, 0].tolist()
                which = f" in rows {', '.join(map(str, rows[:8]))}" + (" and more" if len(rows) > 8 else "")
                found[name] = f"{int(bad.sum()):,} of {tensor.numel():,} numbers{which}"
        return found

    # --- checkpoints ---

    def tensors(self) -> dict[str, Tensor]:
        """The weights of all networks, for a checkpoint; those that are measured and kept are under "network"."""
        networks = {"network": self.averaged, "learned": self.network, "target": self.target, "acting": self.acting}
        return {k: v for prefix, network in networks.items() for k, v in checkpoints.weights(network, prefix).items()}

    def state(self) -> dict[str, Any]:
        """Everything else that `restore` needs."""
        kept = ("updates", "rate_scale", "skipped", "skipped_in_a_row")
        return {name: getattr(self, name) for name in kept} | {"optimiser": self.optimiser.state_dict()}

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> None:
        """Go on from what `tensors` and `state` gave, to the last bit."""
        target, acting = copy.deepcopy(self.network), copy.deepcopy(self.network)
        networks = {"network": self.averaged, "learned": self.network, "target": target, "acting": acting}
        for prefix, network in networks.items():
            checkpoints.restore_weights(network, saved, prefix)
        checkpoints.restore_optimiser(self.optimiser, state["optimiser"])
        self.target, self.acting = target.frozen(), acting.frozen()
        self.updates, self.rate_scale = state["updates"], state["rate_scale"]
        self.skipped, self.skipped_in_a_row = state["skipped"], state["skipped_in_a_row"]
