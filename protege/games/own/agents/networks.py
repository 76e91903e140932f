"""Networks for any game: layers over features, a small convolution over pictures; values, or policy and critic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from protege.games.own.world.spaces import Array, Moves, Sight
from protege.learn.heads import choice_entropy, choice_log_probs, draw_choice, squashed_entropy, squashed_log_prob
from protege.learn.ppo import ActionEvaluation, Policy, PopArt
from protege.learn.rainbow import Head, QNetwork, initialise
from protege.learn.recurrent import RecurrentCore
from protege.learn.rollout import Field, Tensors

LARGE: Final = 36  # pixels of the shorter side from which on a convolution strides
LEAST_LOG_SPREAD, MOST_LOG_SPREAD = -3.0, 1.0
NEAR_BOUND: Final = 0.98  # of the way to a bound: a teacher's number at the bound itself would be infinitely far


def eyes(sight: Sight) -> tuple[nn.Module, int]:
    """What comes before the layers, and how many numbers it gives."""
    if not sight.is_picture:
        return nn.Identity(), sight.features
    channels, height, width = sight.picture
    if min(height, width) >= LARGE:  # as for Atari (Mnih et al., 2015), half as wide
        layers: list[nn.Module] = [nn.Conv2d(channels, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(),
                                   nn.Conv2d(32, 32, 3), nn.ReLU()]  # fmt: skip
    else:
        layers = [nn.Conv2d(channels, 16, 3, padding=0 if min(height, width) > 4 else 1), nn.ReLU()]
    whole = nn.Sequential(nn.Unflatten(1, (channels, height, width)), *layers, nn.Flatten())
    with torch.no_grad():
        return whole, whole(torch.zeros(1, sight.features)).shape[1]


def layers(inputs: int, widths: Sequence[int], norm: bool = True) -> list[nn.Module]:
    """Linear layers, each with a norm, which PQN needs in place of a target network."""
    found: list[nn.Module] = []
    for width in widths:
        found += [nn.Linear(inputs, width), *([nn.LayerNorm(width)] if norm else []), nn.ReLU()]
        inputs = width
    return found


class ValueNetwork(nn.Module):
    """Features -> the value of each choice: that of the state, and what each choice adds (Wang et al., 2016)."""

    def __init__(self, sight: Sight, moves: Moves, widths: Sequence[int]):
        super().__init__()
        look, numbers = eyes(sight)
        self.body = nn.Sequential(look, *layers(numbers, widths))
        self.head = nn.Linear(widths[-1] if widths else numbers, 1 + moves.sizes[0])
        initialise(self.body)
        nn.init.zeros_(self.head.weight)  # begins with no preference
        nn.init.zeros_(self.head.bias)

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = self.head(self.body(features))
        value, more = found[:, :1], found[:, 1:]
        return value + more - more.mean(1, keepdim=True)


def rainbow_network(sight: Sight, moves: Moves, widths: Sequence[int], atoms: int, low: float, high: float) -> QNetwork:
    """Features -> the distribution of returns of each choice."""
    look, numbers = eyes(sight)
    body = nn.Sequential(look, *layers(numbers, widths))
    initialise(body)
    head = Head(widths[-1] if widths else numbers, 0, moves.sizes[0], atoms)
    network = QNetwork(body, head, low, high)
    network.expect_nothing()
    return network


@dataclass(frozen=True)
class Moved:
    """A distribution over moves: logits of the choices, or mean and log-spread of squashed numbers."""

    moves: Moves
    first: Tensor
    log_spread: Tensor

    def _choices(self) -> list[Tensor]:
        parts = torch.split(self.first, list(self.moves.sizes), -1)
        return [choice_log_probs(part, torch.ones_like(part, dtype=torch.bool)) for part in parts]

    def sample(self, generator: torch.Generator | None) -> Tensor:
        if self.moves.kind != "numbers":
            return torch.stack([draw_choice(part, generator) for part in self._choices()], -1)
        noise = torch.empty_like(self.first).normal_(generator=generator)
        return self.first + noise * self.log_spread.exp()

    def mode(self) -> Tensor:
        if self.moves.kind != "numbers":
            return torch.stack([part.argmax(-1) for part in torch.split(self.first, list(self.moves.sizes), -1)], -1)
        return self.first

    def log_prob(self, chosen: Tensor) -> Tensor:
        if self.moves.kind != "numbers":
            picked = [part.gather(-1, chosen[..., i, None])[..., 0] for i, part in enumerate(self._choices())]
            return torch.stack(picked).sum(0)
        return squashed_log_prob(chosen, self.first, self.log_spread).sum(-1)

    def entropy(self) -> Tensor:
        """Mean over choices or numbers."""
        if self.moves.kind != "numbers":
            return torch.stack([choice_entropy(part) for part in self._choices()]).mean(0)
        return squashed_entropy(self.first, self.log_spread).mean(-1)

    def advice_nll(self, advice: Tensor) -> Tensor:
        """How unlikely a teacher's moves are. Of numbers, how far off: a density could be as high as one likes."""
        if self.moves.kind != "numbers":
            return -self.log_prob(advice) / self.moves.count
        return 2.0 * (torch.tanh(self.first) - torch.tanh(advice)).square().mean(-1)


class ActorCritic(Policy):
    """A policy over features, with a memory if it is recurrent, and a critic over the same or what a squad sees."""

    def __init__(self, sight: Sight, moves: Moves, widths: Sequence[int], *, recurrent: bool = False, seen_by: int = 1):
        """The critic looks at what so many players see, one after the other, and judges each of them."""
        super().__init__()
        self.moves = moves
        look, numbers = eyes(sight)
        self.body = nn.Sequential(look, *layers(numbers, widths))
        width = widths[-1] if widths else numbers
        self.core = RecurrentCore(width, width) if recurrent else None
        self.state_size = width if recurrent else 0
        self.head = nn.Linear(width, sum(moves.sizes) or moves.count)
        self.log_spread: Tensor = torch.zeros(0)
        if not moves.sizes:
            self.log_spread = nn.Parameter(torch.full((moves.count,), -0.5))
        self.seen_by = seen_by
        look, numbers = (nn.Identity(), seen_by * sight.features) if seen_by > 1 else eyes(sight)
        self.critic = nn.Sequential(look, *layers(numbers, widths), nn.Linear(width, seen_by))
        self.scale = PopArt()
        initialise(self)
        with torch.no_grad():
            self.head.weight.mul_(0.01)  # begins with no preference

    @property
    def value_layer(self) -> nn.Linear:
        last = self.critic[-1]  # type: ignore[index]
        assert isinstance(last, nn.Linear)
        return last

    def actions(self) -> dict[str, Field]:
        """What is stored of a move."""
        whole = self.moves.kind != "numbers"
        return {"move": Field((self.moves.count,), torch.int64 if whole else torch.float32)}

    def forward(self, features: Tensor, state: Tensor, starts: Tensor) -> tuple[Moved, Tensor]:
        """The distribution over moves in chunks (rows, steps, features), and the state after."""
        out = self.body(features.flatten(0, 1)).unflatten(0, features.shape[:2])
        if self.core is not None:
            out, state = self.core(out, state, starts)
        spread = self.log_spread.clamp(LEAST_LOG_SPREAD, MOST_LOG_SPREAD)
        return Moved(self.moves, self.head(out), spread), state

    @torch.no_grad()
    def act(
        self, features: Tensor, state: Tensor, starts: Tensor, generator: torch.Generator | None = None,
        sampled: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        """What these players (rows, features) do now, sampled or the likeliest; its log-probability; their state."""
        moved, state = self(features[:, None], state, starts[:, None])
        chosen = moved.sample(generator) if sampled else moved.mode()
        return chosen[:, 0], moved.log_prob(chosen)[:, 0], state

    def evaluate_actions(
        self, observations: Tensors, actions: Tensors, state: Tensor, starts: Tensor, advice: Tensors | None
    ) -> ActionEvaluation:
        moved, _ = self(observations["seen"], state, starts)
        nll = None if advice is None else moved.advice_nll(advice["move"])
        return ActionEvaluation(moved.log_prob(actions["move"]), moved.entropy(), nll)

    def value(self, shared: Tensors, members: int) -> Tensor:
        seen = shared["seen"]  # (..., members x features)
        groups = seen.reshape(-1, seen.shape[-1] * self.seen_by // members)
        found: Tensor = self.critic(groups).reshape(*seen.shape[:-1], members)
        return found

    def to_moves(self, chosen: Tensor) -> Array:
        """What was chosen, as an arena takes it."""
        if self.moves.kind != "numbers":
            found: Array = chosen.numpy()
            return found[:, 0] if self.moves.kind == "choice" else found
        part = 0.5 * (1.0 + np.tanh(chosen.numpy()))
        return np.asarray(self.moves.low + part * (self.moves.high - self.moves.low), np.float32)

    def from_moves(self, moves: Array) -> Tensor:
        """A teacher's moves as the policy would have chosen them."""
        if self.moves.kind != "numbers":
            return torch.from_numpy(moves.reshape(len(moves), -1))
        part = 2.0 * (moves - self.moves.low) / np.maximum(self.moves.high - self.moves.low, 1e-12) - 1.0
        return torch.from_numpy(np.arctanh(np.clip(part, -NEAR_BOUND, NEAR_BOUND)).astype(np.float32))


def parameters_of(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def plan(sight: Sight, moves: Moves) -> dict[str, Any]:
    """What a checkpoint says of a network's inputs and outputs, to be compared."""
    return {"sees": list(sight.names) or list(sight.shape), "moves": list(moves.sizes) or moves.count}
