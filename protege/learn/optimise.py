"""The optimiser step of every learner: threads, clipping, average of the weights, precision, device, finite numbers.

A learner splits a batch into microbatches; `Optimiser.map` lets threads work on them, `add_up` adds their gradients in
a fixed order, and `Optimiser.step` moves the weights. An update whose loss or gradient is not finite is skipped,
counted and explained; twenty in a row end the training with a diagnosis. So nothing of the kind reaches the weights.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.learn.state import restore_optimiser

MOST_SKIPPED: Final = 20  # updates in a row

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Gradients = list[Tensor]


def find_device(wanted: str) -> torch.device:
    """The device called "cpu", "cuda" or "mps"; for "auto" the first of cuda, mps and cpu that is there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return torch.device(next(name for name, found in there.items() if found))
    if not there[wanted]:
        known = ", ".join(name for name, found in there.items() if found)
        raise ProtegeError(f"there is no device {wanted} here, only {known}; `protege doctor --full` tries them all")
    return torch.device(wanted)


class LearningFailed(ProtegeError):
    """Updates that cannot be made any more; `report` says what was found."""

    def __init__(self, message: str, report: dict[str, Any]):
        super().__init__(message)
        self.report = report


class Step(NamedTuple):
    """An update that was made."""

    norms: list[float]  # of the gradients of each group, before they were clipped
    figures: dict[str, float]


class Optimiser:
    """Adam over the weights of a network."""

    def __init__(
        self, network: nn.Module, *, learning_rate: float, max_grad_norm: float, epsilon: float = 1e-5,
        groups: Sequence[tuple[Sequence[Tensor], float]] = (), averaged: nn.Module | None = None,
        ema: float = 1.0, mixed_precision: bool = False, threads: int = 1,
    ):  # fmt: skip
        """`groups` are parameters that are clipped apart, each with its multiple of the learning rate.

        `averaged` becomes the running average of the network's weights, in steps of `ema`; at first it is their mean.
        """
        self.network, self.averaged, self.ema = network, averaged, ema
        self.max_grad_norm, self.mixed_precision = max_grad_norm, mixed_precision
        self.parameters: list[Tensor] = list(network.parameters())
        self.device = self.parameters[0].device
        self.groups = list(groups) or [(self.parameters, 1.0)]
        place = {id(parameter): number for number, parameter in enumerate(self.parameters)}
        self._places = [[place[id(parameter)] for parameter in members] for members, _ in self.groups]
        fused = self.device.type in ("cpu", "cuda")
        self.adam = torch.optim.Adam([{"params": members} for members, _ in self.groups], eps=epsilon, fused=fused)
        self.set_rate(learning_rate)
        self.updates = 0
        self.skipped = self.skipped_in_a_row = 0  # updates that were not made
        self._problem = ""
        self.threads = threads if self.device.type == "cpu" else 1
        self.others_cpu_s = 0.0  # processor time of threads other than the caller's
        self._pool = ThreadPoolExecutor(max(1, self.threads - 1), thread_name_prefix="learner")

    def set_rate(self, rate: float) -> None:
        for group, (_, factor) in zip(self.adam.param_groups, self.groups, strict=True):
            group["lr"] = rate * factor

    def precision(self) -> torch.autocast:
        """Where layers compute in 16 bits, if it is wanted."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed_precision)

    def map(self, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
        """What `work` gives for each piece, in order. The caller and the other threads take one piece after another."""
        found: dict[int, Result] = {}
        numbers = iter(range(len(pieces)))

        def take() -> float:
            began = time.thread_time()
            for number in numbers:
                found[number] = work(pieces[number])
            return time.thread_time() - began

        others = [self._pool.submit(take) for _ in range(min(self.threads, len(pieces)) - 1)]
        take()
        self.others_cpu_s += sum(other.result() for other in others)
        return [found[number] for number in range(len(pieces))]

    @torch.no_grad()
    def step(
        self, gradients: Gradients, figures: Mapping[str, Tensor], inputs: Callable[[], Mapping[str, Tensor]]
    ) -> Step | None:
        """Move the weights, unless a number is not finite; None if so. `inputs` are what may have caused that."""
        norms = torch.stack([nn.utils.get_total_norm([gradients[n] for n in group]) for group in self._places])
        # The one moment at which the device is waited for.
        numbers = torch.cat([norms, torch.stack(list(figures.values()))]).tolist()
        made = Step(numbers[: len(norms)], dict(zip(figures, numbers[len(norms) :], strict=True)))
        if not all(map(math.isfinite, numbers)):
            self._skip(made, gradients, inputs())
            return None
        self.skipped_in_a_row = 0
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        for (members, _), norm, length in zip(self.groups, norms, made.norms, strict=True):
            if length > self.max_grad_norm:
                nn.utils.clip_grads_with_norm_(members, self.max_grad_norm, norm)
        self.adam.step()
        self.updates += 1
        if self.averaged is not None:
            step = max(self.ema, 1.0 / self.updates)
            torch._foreach_lerp_(list(self.averaged.parameters()), self.parameters, step)
        return made

    def _skip(self, step: Step, gradients: Gradients, inputs: Mapping[str, Tensor]) -> None:
        """Count and explain; raises when it has happened too often in a row."""
        self.skipped += 1
        self.skipped_in_a_row += 1
        named = list(self.network.named_parameters())
        tensors = {f"input {name}": tensor for name, tensor in inputs.items()}
        tensors |= {f"weight {name}": tensor for name, tensor in named}
        tensors |= {f"gradient {name}": gradient for (name, _), gradient in zip(named, gradients, strict=True)}
        bad = not_finite(tensors)
        name, found = next(iter(bad.items()), ("loss", "too large a number"))
        self._problem = f"update {self.updates + 1:,} was skipped: not finite in {name}: {found}"
        if self.skipped_in_a_row < MOST_SKIPPED:
            return
        report = {
            "update": self.updates,
            "skipped": self.skipped,
            "skipped_in_a_row": self.skipped_in_a_row,
            "rates": [group["lr"] for group in self.adam.param_groups],
            "gradient_norms": [_plain(norm) for norm in step.norms],
            "figures": {name: _plain(value) for name, value in step.figures.items()},
            "tensors": bad,
        }
        raise LearningFailed(
            f"{MOST_SKIPPED} updates in a row met numbers that are not finite, so learning has stopped after update "
            f"{self.updates:,}; first in {name}: {found}. If that is an input, look for where it comes from; otherwise "
            "go back to the last checkpoint with half the learning rate",
            report,
        )

    def explain(self) -> str:
        """What was wrong with the last update that was skipped since this was last asked; empty if none was."""
        told, self._problem = self._problem, ""
        return told

    def state(self) -> dict[str, Any]:
        """Everything but the weights that `restore` needs."""
        kept = ("updates", "skipped", "skipped_in_a_row")
        return {name: getattr(self, name) for name in kept} | {"optimiser": self.adam.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        restore_optimiser(self.adam, state["optimiser"])
        self.updates = state["updates"]
        self.skipped, self.skipped_in_a_row = state.get("skipped", 0), state.get("skipped_in_a_row", 0)

    def forget(self) -> None:
        """Begin again with other weights: nothing is left of earlier gradients."""
        self.adam.state.clear()


class Learner:
    """What learners have in common. Each also has

    - `update(batch, ...)`, which learns from experience and gives figures of it,
    - `set_progress(progress, factor)`, which sets what follows the budget and gives the learning rate,
    - `state()` and `restore(state)`, with all weights under "weights", named as in checkpoints.
    """

    optimiser: Optimiser

    @property
    def updates(self) -> int:
        return self.optimiser.updates

    @property
    def others_cpu_s(self) -> float:
        return self.optimiser.others_cpu_s

    def explain(self) -> str:
        """What was wrong with the last update that was skipped since this was last asked; empty if none was."""
        return self.optimiser.explain()


def add_up(parts: Sequence[Gradients], weights: Sequence[float], total: float) -> Gradients:
    """The sum of `weight / total` times the gradients of each part, in place of the first."""
    found, first = parts[0], weights[0]
    for more, weight in zip(parts[1:], weights[1:], strict=True):
        torch._foreach_add_(found, more, alpha=weight / first)
    if first != total:
        torch._foreach_mul_(found, first / total)
    return found


@torch.no_grad()
def not_finite(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Which of these hold numbers that are not finite, and where."""
    found = {}
    for name, tensor in tensors.items():
        bad = ~torch.isfinite(tensor)
        if bad.any():
            rows = bad.reshape(len(bad) if bad.dim() else 1, -1).any(1).nonzero()[:, 0].tolist()
            which = f" in rows {', '.join(map(str, rows[:8]))}" + (" and more" if len(rows) > 8 else "")
            found[name] = f"{int(bad.sum()):,} of {tensor.numel():,} numbers{which}"
    return found


def finite(figures: Mapping[str, float]) -> dict[str, float]:
    """Those that can be logged."""
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def _plain(value: float) -> float | str:
    """As JSON knows it."""
    return value if math.isfinite(value) else str(value)
