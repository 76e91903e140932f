"""Distributional Q-learning from replay: heads, targets, one update at a time, and the copy of the weights that plays.

C51 (Bellemare et al., 2017) with double selection, dueling streams, n-step targets and importance weights, as Rainbow
(Hessel et al., 2018) combines them, and behaviour cloning of a teacher's actions. The replay hands over a `Batch`;
figures and each sample's divergence, its new priority, come back. Each network sees an observation once: the online one
the states, with gradients, and the next states, without; the target network the next states.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege.learn.optimise import Gradients, Learner, Optimiser, add_up
from protege.learn.replay import Batch
from protege.learn.returns import Floats, project
from protege.learn.schedules import linear, warm_up_cosine
from protege.learn.state import named_weights, restore_weights

FIRST_SPREAD: Final = 0.1  # of the returns that a fresh network expects, as a fraction of its support


@dataclass(frozen=True)
class RainbowConfig:
    """Settings of the learner."""

    batch: int = 256  # samples per update
    learning_rate: float = 5e-5  # at its peak, after the warm-up
    final_learning_rate: float = 2e-5  # where each period of the schedule ends
    warm_up: int = 5_000  # updates over which the learning rate rises to its peak
    period: int = 3_000_000  # updates of one fall of the learning rate, after which it starts again at its peak
    adam_epsilon: float = 1.5e-4  # epsilon of Adam
    target_sync_every: int = 2_500  # updates between copies of the weights into the target network
    acting_every: int = 100  # updates between copies of the weights for the player
    max_grad_norm: float = 5.0  # norm to which gradients are clipped
    atoms: int = 51  # atoms of the return distribution
    low: float = -100.0  # lowest atom
    high: float = 100.0  # highest atom
    beta: float = 0.4  # exponent of the importance weights at the start; rises to 1
    beta_frames: int = 10_000_000  # frames over which it does
    bc_weight: float = 1.0  # initial weight of behaviour cloning in the loss
    final_bc_weight: float = 0.001  # final weight of behaviour cloning
    bc_frames: int = 500_000  # frames before that weight starts to decay
    bc_fall: int = 2_000_000  # frames over which it decays
    margin: float = 0.5  # by which behaviour cloning wants the teacher's action to lead all others, in units of reward
    minimum_fill: int = 10_000  # transitions in the replay before the first update
    replay_ratio: float = 3.2  # how often each frame is learned from, on average; updates wait for frames
    ema: float = 1.0  # step of the running average of the weights, which is evaluated and kept; 1 for the newest
    mirror: bool = True  # learn from the mirror image of every second sample, where the network's features have one
    mixed_precision: bool = True  # half precision where it is safe, on CUDA devices that have bfloat16

    def beta_at(self, frames: int) -> float:
        """How far importance weights undo the priorities."""
        return linear(frames, self.beta, 1.0, self.beta_frames)

    def bc_weight_at(self, frames: int) -> float:
        """Weight of behaviour cloning in the loss."""
        return linear(frames, self.bc_weight, self.final_bc_weight, self.bc_fall, start=self.bc_frames)


# --- distributions -------------------------------------------------------------------------------------------------


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

    Both streams have a layer of `hidden` units of their own, or none if that is 0. With `factors`, such as (4, 11), an
    action is one choice of each factor, the last one counting fastest. Each factor has advantages of its own and an
    action's are their sum: 15 to learn in place of 44, still one value per action.
    """

    def __init__(
        self, inputs: int, hidden: int, actions: int, atoms: int, *, dueling: bool = True, factors: Sequence[int] = ()
    ):
        super().__init__()
        self.factors = tuple(factors) or (actions,)
        assert math.prod(self.factors) == actions, f"{factors} do not multiply to {actions}"
        self.atoms = atoms
        width = hidden or inputs

        def own() -> list[nn.Module]:
            return [nn.Linear(inputs, hidden), nn.ReLU()] if hidden else []

        self.hidden = nn.Sequential(*own())
        self.advantage = nn.Linear(width, sum(self.factors) * atoms)
        self.value: nn.Sequential | None = None
        if dueling:
            self.value = nn.Sequential(*own(), nn.Linear(width, atoms))
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
    """Observations -> logits (batch, actions, atoms): any body, a head, and the returns that the atoms stand for.

    `features` prepares observations for the body and has no weights, so a learner that asks several networks about the
    same observations prepares them once.
    """

    def __init__(self, body: nn.Module, head: Head, low: float, high: float, features: nn.Module | None = None):
        super().__init__()
        self.features = nn.Identity() if features is None else features
        self.body = body
        self.head = head
        self.register_buffer("support", torch.linspace(low, high, head.atoms), persistent=False)

    support: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        return self.head.all(self.streams(self.features(observation)))

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

    def streams(self, features: Tensor) -> Streams:
        """What the head makes logits of."""
        return self.head.streams(self.body(features))

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
    """What is learned from: a batch, or a microbatch of one, on the device."""

    observation: Tensor
    action: Tensor
    returns: Tensor
    next_observation: Tensor
    bootstrap: Tensor
    teacher: Tensor
    teacher_action: Tensor
    weight: Tensor

    def split(self, microbatches: int) -> "list[_Samples]":
        columns = [torch.tensor_split(getattr(self, field.name), microbatches) for field in fields(self)]
        return [_Samples(*part) for part in zip(*columns, strict=True)]


class Mirror(NamedTuple):
    """What a game's mirror image looks like: for each feature and each action the one that takes its place.

    A game that goes on in the mirror as it does in front of it teaches twice as much with every sample.
    """

    features: Sequence[int]
    actions: Sequence[int]


class _Findings(NamedTuple):
    """What a microbatch gives."""

    gradients: Gradients
    sums: dict[str, Tensor]  # over the samples
    lowest: Tensor  # action value
    highest: Tensor
    divergence: Tensor  # (samples,)


class Rainbow(Learner):
    """The learner: online and target network, optimiser, and one update per batch.

    `acting` is a copy of the weights for whoever plays. It is replaced as a whole, never changed: a player in another
    thread takes it once per decision and never sees half an update. `factors` name what else than the whole action two
    players can agree in: a label for each action, such as its spinner's direction. `mirror` is used if the settings
    want it.
    """

    def __init__(
        self,
        network: QNetwork,
        config: RainbowConfig,
        *,
        factors: Mapping[str, Sequence[int]] | None = None,
        mirror: Mirror | None = None,
        threads: int = 1,
    ):
        self.config = config
        self.device = next(network.parameters()).device
        self.network = network
        self.averaged = copy.deepcopy(network).requires_grad_(False)
        self.target = network.frozen()
        self.acting = network.frozen()
        halves = config.mixed_precision and self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        self.optimiser = Optimiser(
            network, learning_rate=0.0, max_grad_norm=config.max_grad_norm, epsilon=config.adam_epsilon,
            averaged=self.averaged, ema=config.ema, mixed_precision=halves, threads=threads,
        )  # fmt: skip
        self.progress: float | None = None  # fraction of the budget, where the learning rate falls with it
        self.rate_factor = 1.0  # of the whole schedule, peak and floor alike
        self._mirror: tuple[Tensor, Tensor] | None = None
        if mirror is not None and config.mirror:
            features, actions = (torch.tensor(indices, device=self.device) for indices in mirror)
            self._mirror = features, actions
        self._factors = {name: torch.tensor(labels, device=self.device) for name, labels in (factors or {}).items()}

    def set_progress(self, progress: float | None, factor: float = 1.0) -> float:
        """Set the fraction of the budget that the learning rate falls with, None for no budget; returns the rate."""
        self.progress, self.rate_factor = progress, factor
        return self.rate()

    def rate(self) -> float:
        """The learning rate of the next update."""
        c = self.config
        rate = warm_up_cosine(
            self.updates, c.learning_rate, c.final_learning_rate, c.warm_up, c.period, self.progress
        )  # fmt: skip
        return rate * self.rate_factor

    def update(self, batch: Batch, bc_weight: float = 0.0) -> tuple[dict[str, float], Floats]:
        """Learn from a batch; returns figures and how far each sample was from its target (batch,).

        Of an update that is skipped there are no figures, and a sample that cannot be learned from is at distance 0.
        """
        samples = _Samples(*(self._on_device(getattr(batch, field.name)) for field in fields(_Samples)))
        rate, rows = self.rate(), len(samples.action)
        self.optimiser.set_rate(rate)
        found = self.optimiser.map(
            lambda part: self._findings(part, bc_weight, rows), samples.split(self.optimiser.threads)
        )
        gradients = add_up([part.gradients for part in found], [1.0] * len(found), 1.0)
        zero = torch.zeros((), device=self.device)
        sums = {name: sum((part.sums[name] for part in found), zero) for name in found[0].sums}
        sums["q_min"] = torch.stack([part.lowest for part in found]).min()
        sums["q_max"] = torch.stack([part.highest for part in found]).max()
        made = self.optimiser.step(gradients, sums, lambda: self._inputs(samples))
        divergences: Floats = torch.cat([part.divergence for part in found]).cpu().numpy()
        if made is None:
            return {"skipped": self.optimiser.skipped}, np.nan_to_num(divergences, nan=0.0, posinf=0.0)
        if self.updates % self.config.target_sync_every == 0:
            self.target = self.network.frozen()
        if self.updates % self.config.acting_every == 0:
            self.acting = self.network.frozen()
        figures = self._figures(rows, made.figures)
        return figures | {"gradient_norm": made.norms[0], "learning_rate": rate}, divergences

    # --- one update ---

    def _on_device(self, array: npt.NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def _findings(self, samples: _Samples, bc_weight: float, total: int) -> _Findings:
        """Of a microbatch of `total` samples."""
        precision, samples = self.optimiser.precision, self._prepared(samples)
        target = self._target(samples)
        with precision():
            streams = self.network.streams(samples.observation)
        with torch.no_grad(), precision():
            values = self.network.expected(self.network.head.all(streams))
            greedy = values.argmax(1)
            advice = torch.where(samples.teacher & (samples.teacher_action < 0), samples.action, samples.teacher_action)
            known = advice >= 0
            advice = advice.clamp(min=0)
            rival = rival_of(values, advice, self.config.margin)
        picked = samples.action[:, None]
        if bc_weight > 0:
            picked = torch.stack([samples.action, advice, rival], 1)
        with precision():
            logits = self.network.head.some(streams, picked)
        log_probs = torch.log_softmax(logits.float(), -1)
        cross_entropy = -(target * log_probs[:, 0]).sum(1)
        loss = (samples.weight * cross_entropy).sum()
        bc_loss = torch.zeros_like(loss)
        if bc_weight > 0:
            # Only what the lead lacks is learned, so a teacher's action that leads is left at the value that it has.
            value = log_probs[:, 1:].exp() @ self.network.support
            lacking = value[:, 1] - value[:, 0] + self.config.margin * (rival != advice)
            bc_loss = (lacking * known).sum()
        gradients = list(torch.autograd.grad((loss + bc_weight * bc_loss) / total, self.optimiser.parameters))
        with torch.no_grad():
            divergences = divergence(target, cross_entropy)
            sums = {"loss": loss, "bc_loss": bc_loss, "divergence": divergences.sum()}
            sums["return_mean"] = samples.returns.sum()
            sums["q_mean"] = values.gather(1, samples.action[:, None]).sum()
            sums |= {"advised": known.sum(), "agreement": ((greedy == advice) & known).sum()}
            for name, table in self._factors.items():
                sums[f"agreement_{name}"] = ((table[greedy] == table[advice]) & known).sum()
            sums = {name: value.detach().float() for name, value in sums.items()}
            return _Findings(gradients, sums, values.min(), values.max(), divergences)

    def _prepared(self, samples: _Samples) -> _Samples:
        """Samples with features in place of observations, every second one as its mirror image."""
        now, following = (self.network.features(x) for x in (samples.observation, samples.next_observation))
        if self._mirror is None:
            return replace(samples, observation=now, next_observation=following)
        features, actions = self._mirror
        now[::2], following[::2] = now[::2, features], following[::2, features]
        action, advice = samples.action.clone(), samples.teacher_action.clone()
        action[::2] = actions[action[::2]]
        advice[::2] = torch.where(advice[::2] < 0, -1, actions[advice[::2].clamp(min=0)])
        return replace(samples, observation=now, next_observation=following, action=action, teacher_action=advice)

    @torch.no_grad()
    def _target(self, samples: _Samples) -> Tensor:
        """Where the distributions of the moves made should be (samples, atoms)."""
        features = samples.next_observation
        with self.optimiser.precision():
            values = self.network.expected(self.network.head.all(self.network.streams(features)))
            best = values.argmax(1, keepdim=True)
            logits = self.target.head.some(self.target.streams(features), best)[:, 0]
        return project(torch.softmax(logits.float(), -1), samples.returns, samples.bootstrap, self.network.support)

    def _figures(self, rows: int, sums: Mapping[str, float]) -> dict[str, float]:
        """Means of the sums, of agreements and cloning over the samples whose advice is known."""
        known = sums["advised"]
        figures = {}
        for name, value in sums.items():
            if name in ("q_min", "q_max"):
                figures[name] = value
            elif name == "bc_loss":
                figures[name] = value / max(1.0, known)
            elif not name.startswith("agreement"):
                figures[name] = value / rows
            elif known:
                figures[name] = value / known
        return figures | {"skipped": self.optimiser.skipped}

    def _inputs(self, samples: _Samples) -> dict[str, Tensor]:
        """What an update that was skipped came from."""
        found = {field.name: getattr(samples, field.name) for field in fields(samples)}
        return found | {f"target {name}": tensor for name, tensor in self.target.named_parameters()}

    # --- checkpoints ---

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Go on from these weights; nothing is left of what was learned before."""
        for network in (self.network, self.averaged):
            network.load_state_dict(weights)
        self.target, self.acting = self.network.frozen(), self.network.frozen()
        self.optimiser.forget()

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs; the weights that are measured and kept are under "network"."""
        networks = {"network": self.averaged, "learned": self.network, "target": self.target, "acting": self.acting}
        kept = {k: v for prefix, network in networks.items() for k, v in named_weights(network, prefix).items()}
        return {"weights": kept} | self.optimiser.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave, to the last bit."""
        target, acting = copy.deepcopy(self.network), copy.deepcopy(self.network)
        networks = {"network": self.averaged, "learned": self.network, "target": target, "acting": acting}
        for prefix, network in networks.items():
            restore_weights(network, state["weights"], prefix)
        self.target, self.acting = target.frozen(), acting.frozen()
        self.optimiser.restore(state)
