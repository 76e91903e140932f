"""Attention of lanes to what is in the tube: the published encoder, one that sees shots as well, and reports on both.

An encoder turns observations into numbers for the layers behind it, and can say what each of the 16 lanes attends to.
The published one (`Encoder`) lets absolute lanes attend to the 7 enemies and averages what they found. `TokenEncoder`
lets lanes around the player attend to enemies, their shots and the player's own, by how near each is, and keeps what
every lane found.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from protege.games.tempest.agents.lanes import LANES as RELATIVE_LANES
from protege.games.tempest.agents.lanes import REACH
from protege.games.tempest.rules import ram
from protege.games.tempest.task import observation as layout
from protege.learn.rainbow import initialise

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

WIDTH: Final = 128  # of a token
HEADS, HEAD_WIDTH = 8, WIDTH // 8
COLUMNS: Final = 16  # numbers that stand for a token
LANES, ENEMIES = ram.LANE_COUNT, ram.ENEMY_COUNT
EMPTY_BELOW: Final = 1e-6  # depth of a slot that holds no enemy

# For each slot the 12 values of an enemy's token that are in the observation.
_ENEMY_VALUES: Final = [
    [
        *(layout.ENEMY_SLOT + layout.SLOT_VALUES * slot + value for value in range(layout.SLOT_VALUES)),
        *(first + slot for first in (
            layout.ENEMY_LANE, layout.ENEMY_DEPTH, layout.RIM_LANE, layout.TOP_RAIL_LANE, layout.LANE_CHANGE,
            layout.DEPTH_CHANGE,
        )),
    ]
    for slot in range(ENEMIES)
]  # fmt: skip


class Embedding(nn.Module):
    """A linear layer and a layer norm, in two factors whose product the norm's output is.

    With x the features and a 1, the linear layer less its mean is C x for a matrix C of few columns, and the variance
    of that is a quadratic form of x. So the norm's output is a basis times x / deviation, plus an offset: all that
    depends on the token are as many numbers as it has features, and one. They are filled up to 16, the last of them a 1
    that brings the offset in: multiplying by narrower matrices takes longer.
    """

    def __init__(self, features: int):
        super().__init__()
        self.linear = nn.Linear(features, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)

    def factors(self) -> tuple[Tensor, Tensor]:
        """The basis (width, 16) and the form of the variance (16, 16)."""
        columns = torch.cat([self.linear.weight, self.linear.bias[:, None]], 1)
        centred = functional.pad(columns - columns.mean(0), (0, COLUMNS - columns.shape[1]))
        return _offset(centred * self.norm.weight[:, None], self.norm.bias), centred.T @ centred / WIDTH


def _offset(matrix: Tensor, offset: Tensor) -> Tensor:
    """A matrix (rows, 16) that also adds an offset (rows,) when it multiplies numbers of which the last is 1."""
    return matrix + functional.pad(offset[:, None], (COLUMNS - 1, 0))


class Folded(NamedTuple):
    """The encoder's weights, multiplied out as far as they can be without knowing the tokens."""

    lane_variance: Tensor
    enemy_variance: Tensor
    query: Tensor
    output: Tensor
    lane: Tensor  # what the lane itself adds to the output


class Encoder(nn.Module):
    """Observations (games, 195) -> what the lanes see of the enemies (games, 128).

    Lanes and enemies are embedded and normed, lanes attend to enemies with 8 heads of 16, the result is added to the
    lane, normed, and averaged over the lanes. Enemy tokens are a matrix times 16 numbers (see `Embedding`), so keys and
    values need not be made: the keys' matrix is folded into that of the queries, the values' into that of the output,
    and every head attends to the 16 numbers themselves.

    The order of the slots makes no difference, so nothing is sorted here. Empty slots get no attention; where all are
    empty all are attended to, alike.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lanes = Embedding(5)
        self.enemies = Embedding(14)
        self.input = nn.Linear(WIDTH, 3 * WIDTH)  # queries, keys, values
        self.output = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        angles = 2 * math.pi * torch.arange(LANES) / LANES
        around = torch.stack([torch.sin(angles), torch.cos(angles), torch.ones(LANES)], 1)
        fixed = {
            "lane_rest": functional.pad(around, (0, COLUMNS - 6)),  # what never changes in a token
            "enemy_rest": torch.tensor([1.0, 0.0]).repeat(ENEMIES, 1),
            "last": functional.one_hot(torch.tensor(COLUMNS - 1), COLUMNS).float(),
            "numbers": torch.arange(LANES, dtype=torch.float32),
            "enemy_values": torch.tensor(_ENEMY_VALUES).flatten(),
        }
        for name, tensor in fixed.items():
            self.register_buffer(name, tensor, persistent=False)
        self.folded: Folded | None = None
        self.reset_parameters()

    lane_rest: Tensor
    enemy_rest: Tensor
    last: Tensor
    numbers: Tensor
    enemy_values: Tensor

    def reset_parameters(self) -> None:
        """Forget everything that was learned."""
        initialise(self)
        for layer in self.modules():
            if isinstance(layer, nn.LayerNorm):
                layer.reset_parameters()

    @torch.no_grad()
    def fold(self) -> None:
        """Multiply the weights out once for all: from now on they must not change."""
        self.folded = self._fold()

    def forward(self, observation: Tensor) -> Tensor:
        return self.attend(observation)[0]

    def attend(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """The summary, and what each head of each lane attends to (games, 16, 8, 7)."""
        folded = self.folded or self._fold()
        lanes = self._scaled(self._lane_tokens(observation), folded.lane_variance)
        enemies = self._scaled(self._enemy_tokens(observation), folded.enemy_variance)
        occupied = observation[:, layout.ENEMY_DEPTHS] >= EMPTY_BELOW
        attended = occupied | ~occupied.any(1, keepdim=True)
        seen, weights = self._look(lanes, enemies, torch.log(attended.to(lanes.dtype)), folded)
        found = torch.addmm(lanes.flatten(0, 1) @ folded.lane.T, seen, folded.output.T)
        # The norm's own weights come after the mean, where there is a sixteenth of the numbers.
        mean = functional.layer_norm(found, (WIDTH,)).view(-1, LANES, WIDTH).mean(1)
        return mean * self.norm.weight + self.norm.bias, weights

    def _look(self, lanes: Tensor, enemies: Tensor, mask: Tensor, folded: Folded) -> tuple[Tensor, Tensor]:
        """What all heads of a lane see (games x 16, 8 x 16), and the weights; the mask is 0 or minus infinity."""
        queries = (lanes @ folded.query.T).view(-1, LANES * HEADS, COLUMNS)
        # Enemies in rows: a softmax along columns is several times as fast as one along rows of 7.
        weights = torch.softmax(torch.baddbmm(mask[:, :, None], enemies, queries.transpose(1, 2)), 1).transpose(1, 2)
        return (weights @ enemies).view(-1, HEADS * COLUMNS), weights.reshape(-1, LANES, HEADS, ENEMIES)

    def _fold(self) -> Folded:
        lanes, lane_variance = self.lanes.factors()
        enemies, enemy_variance = self.enemies.factors()
        biases = self.input.bias.view(3, WIDTH)
        query, key, value = (
            _offset(weight @ tokens, bias).view(HEADS, HEAD_WIDTH, COLUMNS)
            for weight, tokens, bias in zip(self.input.weight.chunk(3), (lanes, enemies, enemies), biases, strict=True)
        )
        query = (key.transpose(1, 2) @ query).flatten(0, 1) / math.sqrt(HEAD_WIDTH)
        output = self.output.weight.view(WIDTH, HEADS, HEAD_WIDTH).transpose(0, 1) @ value  # (heads, width, 16)
        lane = _offset(lanes, self.output.bias)
        return Folded(lane_variance, enemy_variance, query, output.transpose(0, 1).flatten(1), lane)

    def _scaled(self, tokens: Tensor, variance: Tensor) -> Tensor:
        """Tokens (..., 16) over the deviation that their embedding has, the last number 1."""
        spread = ((tokens @ variance) * tokens).sum(-1, keepdim=True)
        return torch.addcmul(self.last, tokens, torch.rsqrt(spread + self.norm.eps))

    def _lane_tokens(self, observation: Tensor) -> Tensor:
        """Spike, angle, whether the player is here, sine and cosine of the lane, 1, zeros (games, 16, 16)."""
        board = observation[:, layout.SPIKES.start : layout.ANGLES.stop].view(-1, 2, LANES).transpose(1, 2)
        own = torch.round(observation[:, layout.PLAYER_LANE, None] * layout.LANE_SCALE).clamp(0, LANES - 1)
        here = (own == self.numbers).to(observation.dtype)
        return torch.cat([board, here[:, :, None], self.lane_rest.expand(observation.shape[0], -1, -1)], 2)

    def _enemy_tokens(self, observation: Tensor) -> Tensor:
        """The 12 values of a slot, sine and cosine of its place on the circle of lanes, 1, zero (games, 7, 16)."""
        values = observation.index_select(1, self.enemy_values).view(observation.shape[0], ENEMIES, -1)
        lane = layout.LANE_SCALE * (observation[:, layout.PLAYER_LANE, None] + observation[:, layout.ENEMY_LANES])
        angle = (2 * math.pi / LANES * lane)[:, :, None]
        rest = self.enemy_rest.expand(observation.shape[0], -1, -1)
        return torch.cat([values, torch.sin(angle), torch.cos(angle), rest], 2)


class CrowdEncoder(Encoder):
    """The encoder in which enemies first attend to each other, after which their tokens are no longer of 16 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.crowd_input = nn.Linear(WIDTH, 3 * WIDTH)
        self.crowd_output = nn.Linear(WIDTH, WIDTH)
        self.crowd_norm = nn.LayerNorm(WIDTH)
        self.reset_parameters()

    def _look(self, lanes: Tensor, enemies: Tensor, mask: Tensor, folded: Folded) -> tuple[Tensor, Tensor]:
        tokens = enemies @ self.enemies.factors()[0].T  # (games, 7, width)
        mask = mask[:, None, None]
        query, key, value = self._heads(self.crowd_input(tokens), 3)
        weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(HEAD_WIDTH) + mask, 3)
        tokens = self.crowd_norm(tokens + self.crowd_output((weights @ value).transpose(1, 2).flatten(2)))
        key, value = self._heads(functional.linear(tokens, self.input.weight[WIDTH:], self.input.bias[WIDTH:]), 2)
        (query,) = self._heads(lanes @ folded.query.T, 1)
        weights = torch.softmax(query @ key.transpose(2, 3) + mask, 3)
        return (weights @ value).transpose(1, 2).reshape(-1, WIDTH), weights.transpose(1, 2)

    @staticmethod
    def _heads(projected: Tensor, parts: int) -> Tensor:
        """Tokens (games, tokens, parts x width) as (parts, games, heads, tokens, head's width)."""
        return projected.view(projected.shape[0], -1, parts, HEADS, HEAD_WIDTH).permute(2, 0, 3, 1, 4)

    def _fold(self) -> Folded:
        lanes, lane_variance = self.lanes.factors()
        _, enemy_variance = self.enemies.factors()
        query = _offset(self.input.weight[:WIDTH] @ lanes, self.input.bias[:WIDTH]) / math.sqrt(HEAD_WIDTH)
        return Folded(lane_variance, enemy_variance, query, self.output.weight, _offset(lanes, self.output.bias))


class TokenEncoder(nn.Module):
    """Observations (games, 195) -> what 17 lanes around the player find (games, 17 x 16).

    A token is an enemy, one of their shots or one of the player's. A lane's query is its place alone, so a head's score
    of a token is what the token says for itself, less the square of how far away it is times the head's own sharpness.
    A last token stands for nothing and scores 0: empty lanes have something to attend to.
    """

    TOKENS: Final = ram.ENEMY_COUNT + ram.ESHOT_COUNT + ram.PSHOT_COUNT
    VALUES: Final = 16  # that a head reads off a token, and that a lane is summed up in
    HEADS: Final = 4
    KINDS: Final = 5

    outputs: Final = RELATIVE_LANES * VALUES

    def __init__(self) -> None:
        super().__init__()
        inputs = self.KINDS + layout.SLOT_VALUES - 1 + 5  # kind, the slot's flags, depth, changes, which shot
        width = self.HEADS * self.VALUES
        self.embed = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.score, self.value = nn.Linear(width, self.HEADS), nn.Linear(width, width)
        self.lane = nn.Linear(width, self.VALUES)
        self.sharpness = nn.Parameter(torch.linspace(0.3, 2.0, self.HEADS))
        initialise(self)
        self.register_buffer("places", torch.arange(-REACH, REACH + 1, dtype=torch.float32), persistent=False)

    places: Tensor

    def forward(self, observation: Tensor) -> Tensor:
        return self._find(observation)[0].flatten(1)

    def attend(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and what each head of each absolute lane attends to among the enemies (games, 16, heads, 7)."""
        found, weights = self._find(observation)
        own = torch.round(observation[:, layout.PLAYER_LANE] * layout.LANE_SCALE)
        away = torch.arange(LANES, device=own.device) - own[:, None]
        closed = observation[:, layout.LEVEL_OPEN, None] == 0
        away = torch.where(closed, torch.remainder(away + REACH, 16.0) - REACH, away.clamp(-REACH, REACH))
        lanes = (away + REACH).long()[:, :, None, None].expand(-1, -1, self.HEADS, ENEMIES)
        return found.flatten(1), weights[..., :ENEMIES].gather(1, lanes)

    def _find(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """What lanes find (games, 17, 16), and their heads' weights of all tokens (games, 17, heads, tokens + 1)."""
        tokens, places, present = self._tokens(observation)
        embedded = self.embed(tokens)
        away = (places[:, None] - self.places[:, None]).abs()  # (games, 17, tokens)
        closed = observation[:, layout.LEVEL_OPEN, None, None] == 0
        away = torch.where(closed, torch.minimum(away, (16.0 - away).abs()), away)
        scores = self.score(embedded).masked_fill(~present[:, :, None], -torch.inf).transpose(1, 2)
        scores = scores[:, None] - (self.sharpness[:, None] * away[:, :, None]).square()
        weights = torch.softmax(functional.pad(scores, (0, 1)), -1)
        values = self.value(embedded).unflatten(2, (self.HEADS, self.VALUES)).transpose(1, 2)
        read = weights[..., :-1].transpose(1, 2) @ values  # (games, heads, 17, values)
        return torch.relu(self.lane(read.transpose(1, 2).flatten(2))), weights

    def _tokens(self, observation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (games, tokens, inputs), where each is relative to the player, in lanes, and whether it is there."""
        depth = torch.cat(
            [observation[:, which] for which in (layout.ENEMY_DEPTHS, layout.ENEMY_SHOT_DEPTHS, layout.SHOT_DEPTHS)], 1
        )
        lane = torch.cat(
            [observation[:, which] for which in (layout.ENEMY_LANES, layout.ENEMY_SHOT_LANES, layout.SHOT_LANES)], 1
        )
        about = observation[:, layout.ENEMY_SLOTS].reshape(-1, ENEMIES, layout.SLOT_VALUES)
        kind = torch.round(about[..., 0] * layout.KIND_SCALE).long().clamp(0, self.KINDS - 1)
        change = torch.stack([observation[:, layout.LANE_MOTION], observation[:, layout.DEPTH_MOTION]], 2)
        kinds = functional.one_hot(kind, self.KINDS).to(about.dtype)
        enemies = torch.cat([kinds, about[..., 1:], change], 2)
        rest = functional.pad(enemies, (0, 0, 0, self.TOKENS - ENEMIES))
        which = torch.zeros(self.TOKENS, 2, device=depth.device)
        which[ENEMIES : ENEMIES + ram.ESHOT_COUNT, 0] = 1.0
        which[ENEMIES + ram.ESHOT_COUNT :, 1] = 1.0
        tokens = torch.cat([rest, which.expand(len(depth), -1, -1), depth[:, :, None]], 2)
        return tokens, lane * layout.LANE_SCALE, depth >= EMPTY_BELOW


@dataclass(frozen=True)
class Attention:
    """Who attends to whom in some games; enemies nearest first, empty slots last."""

    weights: Floats  # (games, heads, lanes, 7); what those of one lane and head lack of 1 went to shots or to nothing
    slots: Ints  # (games, 7) which slot of the machine each enemy is in
    occupied: npt.NDArray[np.bool_]  # (games, 7)
    lane: Ints  # (games,) the player's own


class ReportRow(NamedTuple):
    """A line of the attention report."""

    name: str
    values: tuple[float, ...]  # one for each head, each slot, or one in all; none where no frame allows an answer
    meaning: str


def attention_report(found: Attention) -> list[ReportRow]:
    """How the network attends, from some hundred frames: where attention goes, and whether its heads differ."""
    weights, occupied = found.weights, found.occupied
    count_of_heads = weights.shape[1]
    count = occupied.sum(1)
    some, several = count > 0, count > 1
    chosen = weights[several]  # a single enemy gets all attention, whatever the network has learned
    at_enemies = chosen.sum(3, keepdims=True)
    chosen = chosen / np.maximum(at_enemies, 1e-30)
    nats = np.log(np.maximum(chosen, 1e-30)) * -chosen
    entropy = nats.sum(3) / np.log(np.maximum(count[several], 2))[:, None, None]
    largest = chosen.max(3)  # (frames, heads, lanes)
    at_player = np.take_along_axis(largest, found.lane[several][:, None, None], 2)
    last = count[several][:, None, None, None] - 1
    farthest = np.take_along_axis(chosen, np.broadcast_to(last, (*chosen.shape[:3], 1)), 3)
    apart = np.abs(chosen[:, :, None] - chosen[:, None]).sum(4).mean((0, 3)) / 2 if len(chosen) else np.zeros((0, 1))
    leaked = (weights * ~occupied[:, None, None])[some].sum(3)

    def heads(values: Floats) -> tuple[float, ...]:
        return tuple(np.moveaxis(values, 1, 0).reshape(count_of_heads, -1).mean(1).tolist()) if len(values) else ()

    return [
        ReportRow("slots occupied", tuple(occupied.mean(0).tolist()), "fraction of frames, nearest enemy first"),
        ReportRow("at enemies", heads(at_enemies), "by head; the rest goes to shots, or nowhere"),
        ReportRow("entropy", heads(entropy), "by head; 0 one enemy alone, 1 all alike"),
        ReportRow("player's lane", heads(at_player), "by head; largest weight in the player's own lane"),
        ReportRow("all lanes", heads(largest), "by head; largest weight, mean over the lanes"),
        ReportRow("nearest enemy", heads(chosen[..., 0]), "by head; its weight"),
        ReportRow("farthest enemy", heads(farthest), "by head; its weight"),
        ReportRow(
            "difference", tuple((apart.sum(1) / (count_of_heads - 1)).tolist()), "by head; from the other heads, 0 to 1"
        ),
        ReportRow("leakage", (float(leaked.max()),) if len(leaked) else (), "largest weight on empty slots; must be 0"),
    ]
