"""Fixed-horizon experience of recurrent players, and the advantages in it.

Players come in groups that begin and end together, such as the members of a team; what a critic may know is stored once
for a group. Arrays are cut into chunks of steps, the axes being (chunks, groups, members, steps, ...), so that a chunk
of a member's life is one piece of memory. All is allocated once and written over by the next rollout. Knows no game.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from protege.learn.returns import gae

Tensors = dict[str, Tensor]


class Field(NamedTuple):
    """What is stored under a name at each step."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32


Fields = Mapping[str, Field]


class Shape(NamedTuple):
    """How much a rollout holds."""

    groups: int
    members: int  # of a group
    horizon: int  # steps
    chunk: int  # steps that are learned from in one piece; the horizon is a multiple

    @property
    def chunks(self) -> int:
        return self.horizon // self.chunk


class Rollout:
    """Room for one horizon of experience."""

    def __init__(
        self, shape: Shape, observations: Fields, shared: Fields, actions: Fields, state_size: int,
        advised: bool = False,
    ) -> None:  # fmt: skip
        """Observations and actions are of each member, `shared` of each group; `advised`: with room for a teacher's."""
        assert shape.horizon % shape.chunk == 0, f"a horizon of {shape.horizon} is no multiple of {shape.chunk}"
        self.shape = shape
        c, g, m, t = shape.chunks, shape.groups, shape.members, shape.chunk

        def room(fields: Fields, *axes: int) -> Tensors:
            return {name: torch.zeros(*axes, *field.shape, dtype=field.dtype) for name, field in fields.items()}

        self.observations = room(observations, c, g, m, t)
        self.actions = room(actions, c, g, m, t)
        self.advice = room(actions, c, g, m, t) if advised else {}
        self.shared = room(shared, c, g, t)
        self.after = room(shared, g)  # what is shared once the last step is made
        names = ("log_prob", "reward", "values", "cut_values", "advantages", "returns", "potential")
        self.numbers = room({name: Field(()) for name in names}, c, g, m, t)
        self.acted = torch.zeros(c, g, m, t, dtype=torch.bool)  # other steps are no experience: the member was gone
        self.remains = torch.zeros(g, m, dtype=torch.bool)  # who would act next
        self.potential_after = torch.zeros(g, m)
        self.starts = torch.zeros(c, g, t, dtype=torch.bool)  # an episode began before this step
        self.terminated = torch.zeros(c, g, t, dtype=torch.bool)  # the episode was decided by this step
        self.truncated = torch.zeros(c, g, t, dtype=torch.bool)  # it was cut by it; `cut_values` say what was left
        self.states = torch.zeros(c, g, m, state_size)  # of the recurrent core before each chunk
        self.roles = torch.zeros(g, m, dtype=torch.int64)  # whose advantages are alike

    def part(self, first: int, last: int) -> "Rollout":
        """Groups first..last-1 of the same memory, for a collector of its own."""
        part = object.__new__(Rollout)
        part.shape = self.shape._replace(groups=last - first)
        for name in ("observations", "actions", "advice", "shared", "numbers"):
            setattr(part, name, {key: array[:, first:last] for key, array in getattr(self, name).items()})
        for name in ("acted", "starts", "terminated", "truncated", "states"):
            setattr(part, name, getattr(self, name)[:, first:last])
        for name in ("remains", "roles", "potential_after"):
            setattr(part, name, getattr(self, name)[first:last])
        part.after = {key: array[first:last] for key, array in self.after.items()}
        return part

    def nbytes(self) -> int:
        named = (self.observations, self.actions, self.advice, self.shared, self.after, self.numbers)
        arrays = [array for group in named for array in group.values()] + [self.acted, self.states]
        return sum(array.numel() * array.element_size() for array in arrays)

    @torch.no_grad()
    def find_advantages(self, values: Tensor, following: Tensor, gamma: float, gae_lambda: float) -> None:
        """Fill in values, advantages and returns; `values` are of all steps, `following` (groups, members) comes after.

        Who has gone has the mean value of the group's others: members share what becomes of the group, and death is no
        way out of a defeat. A potential that rewards are shaped with is missing from the value of those who
        have it, because they lose it again; who has gone has lost it.
        """
        self.numbers["values"].copy_(values)
        by_time = _by_time(without_gone(values, self.acted, self.numbers["potential"]))
        after = without_gone(following[..., None], self.remains[..., None], self.potential_after[..., None])[..., 0]
        cut = _by_time(self.numbers["cut_values"])
        terminated, truncated = (_by_time(flags[:, :, None]) for flags in (self.terminated, self.truncated))
        next_values = torch.where(truncated, cut, torch.cat([by_time[1:], after[None]])).masked_fill(terminated, 0.0)
        found = gae(_by_time(self.numbers["reward"]), by_time, next_values, terminated | truncated, gamma, gae_lambda)
        by_chunk = found.reshape(self.shape.chunks, self.shape.chunk, *found.shape[1:])
        self.numbers["advantages"].copy_(by_chunk.permute(0, 2, 3, 1))
        torch.add(self.numbers["advantages"], self.numbers["values"], out=self.numbers["returns"])


def _by_time(array: Tensor) -> Tensor:
    """(chunks, groups, members, steps) as (time, groups, members)."""
    return array.permute(0, 3, 1, 2).flatten(0, 1)


def without_gone(values: Tensor, there: Tensor, potential: Tensor) -> Tensor:
    """Values (..., members, steps) in which who is not there has the mean, without potential, of those who are."""
    weight = there.to(values.dtype)
    mean = ((values + potential) * weight).sum(-2, keepdim=True) / weight.sum(-2, keepdim=True).clamp(min=1.0)
    return torch.where(there, values, mean)


@torch.no_grad()
def scaled_by_role(values: Tensor, counted: Tensor, roles: Tensor) -> Tensor:
    """(chunks, groups, members, steps) on mean 0 and spread 1 within each role, over what is counted; the rest is 0."""
    found = torch.zeros_like(values)
    spread_roles = roles[None, :, :, None].expand_as(values)
    for role in torch.unique(roles):
        own = counted & (spread_roles == role)
        if own.any():
            variance, mean = torch.var_mean(values[own], correction=0)
            found[own] = (values[own] - mean) / (variance.sqrt() + 1e-8)
    return found
