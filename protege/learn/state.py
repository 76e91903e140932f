"""Weights, optimisers and random generators as plain data, and back again: exactly, or refused with what differs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from protege import ProtegeError

SHOWN: Final = 4  # problems in a message before it only counts them


class StateMismatch(ProtegeError):
    """A state of something else: another network, optimiser or generator."""


def named_weights(module: torch.nn.Module, prefix: str) -> dict[str, Tensor]:
    """A network's tensors under `prefix.`, for a checkpoint; raises if a number in them is not finite."""
    found = module.state_dict()
    bad = [name for name, tensor in found.items() if not bool(tensor.isfinite().all())]
    if bad:
        raise ProtegeError(
            f"the {prefix} is not saved, because numbers in it are not finite: {_some(bad)}; what was saved before is "
            "untouched"
        )
    return {f"{prefix}.{name}": tensor for name, tensor in found.items()}


def restore_weights(
    module: torch.nn.Module, tensors: Mapping[str, Tensor], prefix: str, source: Path | str = "the checkpoint"
) -> None:
    """Put what `named_weights` gave into a network of the same shape; raises before anything is changed otherwise."""
    dotted = f"{prefix}."
    found = {name[len(dotted) :]: tensor for name, tensor in tensors.items() if name.startswith(dotted)}
    wanted = module.state_dict()
    problems = [f"{name} is missing" for name in wanted if name not in found]
    problems += [f"{name} is unknown" for name in found if name not in wanted]
    problems += [
        f"{name} is {_shape(found[name])}, expected {_shape(tensor)}"
        for name, tensor in wanted.items()
        if name in found and _shape(found[name]) != _shape(tensor)
    ]
    if problems:
        raise StateMismatch(f"{source} holds another {prefix}: {_some(problems)}")
    module.load_state_dict(found)


def restore_optimiser(optimiser: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Put what `optimiser.state_dict()` gave back into an optimiser over the same parameters, exactly."""
    current = optimiser.state_dict()["param_groups"]
    if [len(group["params"]) for group in state["param_groups"]] != [len(group["params"]) for group in current]:
        raise StateMismatch("the optimiser was saved for another number of parameters")
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    parameters = dict(zip(numbers, (p for group in optimiser.param_groups for p in group["params"]), strict=True))
    problems = [
        f"{key} of parameter {number} is {_shape(value)}, expected {_shape(parameters[number])}"
        for number, values in state["state"].items()
        for key, value in values.items()
        if isinstance(value, Tensor) and value.dim() > 0 and value.shape != parameters[number].shape
    ]
    if problems:
        raise StateMismatch(f"the optimiser was saved for other parameters: {_some(problems)}")
    # How a step is computed is the business of the device, which may be another one than before.
    ways = ("fused", "foreach", "capturable")
    groups = [
        {**group, **{way: own[way] for way in ways if way in own}}
        for group, own in zip(state["param_groups"], current, strict=True)
    ]
    optimiser.load_state_dict({**state, "param_groups": groups})


def restore_generator(generator: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Put what `generator.bit_generator.state` gave back into a generator of the same kind."""
    kind = type(generator.bit_generator).__name__
    if state["bit_generator"] != kind:
        raise StateMismatch(f"random numbers came from {state['bit_generator']}, expected {kind}")
    generator.bit_generator.state = state


def restore_torch_generator(generator: torch.Generator, state: Tensor) -> None:
    """Put what `generator.get_state()` gave back into a generator on the same kind of device."""
    expected = generator.get_state()
    if state.shape != expected.shape:
        raise StateMismatch(
            f"random numbers came from another kind of device: {state.numel()} bytes, expected {expected.numel()}"
        )
    generator.set_state(state)


def _shape(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _some(problems: list[str]) -> str:
    rest = len(problems) - SHOWN
    return ", ".join(problems[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
