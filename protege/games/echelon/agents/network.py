"""The network of mech pilots: what a mech sees -> what it does, and for training what a team can expect.

Friends and enemies are sets: each that is there is encoded alike, and the largest and the mean of what comes out go on,
so rosters of any size share the weights. The target is chosen by pointing at an enemy's encoding. Inputs keep a running
scale, which is worked into the first layers. The critic sees the whole battle and is not needed to play.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, relu

from protege.games.echelon.rules.battle import MESSAGE
from protege.games.echelon.rules.sim import BUTTONS
from protege.games.echelon.task import features as at
from protege.games.echelon.task.features import CELLS, CHANNELS, ENEMY, FRIEND, MECH_STATE, OWN, STATE, Fields, width
from protege.learn import heads
from protege.learn.ppo import ActionEvaluation, Policy, PopArt
from protege.learn.recurrent import InputScale, RecurrentCore
from protege.learn.rollout import Tensors

MOVES: Final = 4
EWAR: Final = 3
# Of movement before it is squashed, as logarithms. A smaller one would end exploration where a teacher is imitated
# well, and gradients grow with its inverse.
LOWEST_SPREAD, HIGHEST_SPREAD, FIRST_SPREAD = -2.0, 0.5, -0.7

# Values that are 0 or 1 keep their scale.
FLAGS: Final = frozenset(
    "class suite can shut hot legged grounded painted warned hit watched ewar inside focus buttons order fallen "
    "same_pack commands_me under_me ordered fights emits seen reported fits own alive known".split()
)


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the network."""

    width: int = 96  # of the recurrent core and what surrounds it
    slot: int = 48  # of the encoding of a friend, an enemy, or in the critic of any mech
    ground: int = 32  # of the encoding of the map
    talk: bool = False  # hear and send messages
    predicts: bool = False  # has a head for the next observation; needed by --ppo.prediction
    entropy_move: float = 1.0  # weights of the choices in the entropy that is rewarded
    entropy_buttons: float = 1.0
    entropy_ewar: float = 1.0
    entropy_target: float = 1.0


class ActionDistribution(NamedTuple):
    """How likely a mech is to do what; the last axis holds the choices."""

    mean: Tensor  # of movement and messages before they are squashed
    log_spread: Tensor
    buttons: Tensor  # logits
    ewar: Tensor  # log-probabilities
    target: Tensor  # log-probabilities: enemy slots, then nobody
    legal_move: Tensor
    legal_buttons: Tensor

    def sample(self, generator: torch.Generator | None) -> Tensors:
        """Actions by their probabilities."""
        noise = torch.empty_like(self.mean).normal_(generator=generator)
        uniform = torch.empty_like(self.buttons).uniform_(generator=generator)
        return {
            "move": self.mean + torch.exp(self.log_spread) * noise,
            "buttons": (uniform < torch.sigmoid(self.buttons)) & self.legal_buttons,
            "ewar": heads.draw_choice(self.ewar, generator),
            "target": heads.draw_choice(self.target, generator),
        }

    def mode(self) -> Tensors:
        """The likeliest actions."""
        buttons, ewar, target = self.buttons > 0, self.ewar.argmax(-1), self.target.argmax(-1)
        return {"move": self.mean, "buttons": buttons & self.legal_buttons, "ewar": ewar, "target": target}

    def choices(self) -> Tensor:
        """How many choices an action is made of, where they are legal."""
        return self.legal_move.sum(-1) + self.legal_buttons.sum(-1) + 2  # warfare and target

    def log_prob(self, actions: Tensors) -> Tensor:
        """Log-probability of all that is legal of these actions."""
        move = heads.squashed_log_prob(actions["move"], self.mean, self.log_spread)
        buttons = heads.button_log_prob(self.buttons, actions["buttons"])
        found = torch.where(self.legal_move, move, 0.0).sum(-1)
        found = found + torch.where(self.legal_buttons, buttons, 0.0).sum(-1)
        for log_probs, chosen in ((self.ewar, actions["ewar"]), (self.target, actions["target"])):
            found = found + log_probs.gather(-1, chosen[..., None])[..., 0]
        return found

    def entropy(self, weights: NetworkConfig) -> Tensor:
        """Mean over the choices, each kind with its weight."""
        move = torch.where(self.legal_move, heads.squashed_entropy(self.mean, self.log_spread), 0.0).sum(-1)
        buttons = torch.where(self.legal_buttons, heads.button_entropy(self.buttons), 0.0).sum(-1)
        total = weights.entropy_move * move + weights.entropy_buttons * buttons
        total = total + weights.entropy_ewar * heads.choice_entropy(self.ewar)
        return (total + weights.entropy_target * heads.choice_entropy(self.target)) / self.choices()


def numeric(fields: Fields) -> Tensor:
    """Which values of these fields are put on a scale."""
    return torch.tensor([field.name not in FLAGS for field in fields for _ in range(field.size)])


def layer(inputs: int, outputs: int, gain: float = 2**0.5) -> nn.Linear:
    """A linear layer with orthogonal weights."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Encoder(nn.Module):
    """Values on their scale -> a layer with layer norm."""

    def __init__(self, fields: Fields, outputs: int):
        super().__init__()
        self.scale = InputScale(numeric(fields))
        self.layer = layer(width(fields), outputs)
        self.norm = nn.LayerNorm(outputs)

    def forward(self, values: Tensor) -> Tensor:
        return relu(self.norm(self.scale.read(values, self.layer)))


def pooled(encoded: Tensor, there: Tensor) -> Tensor:
    """The largest and the mean over the slots (..., slots, width) that are there; 0 if none is."""
    weight = there.to(encoded.dtype)[..., None]
    kept = encoded * weight  # encodings are never negative, so that 0 is below all of them
    return torch.cat([kept.max(-2).values, kept.sum(-2) / weight.sum(-2).clamp(min=1.0)], -1)


class _Pool(torch.autograd.Function):
    """The largest and the mean of each row's encodings, which are never negative; torch's own gradient is slow."""

    @staticmethod
    def forward(ctx: Any, encoded: Tensor, row: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        largest = torch.segment_reduce(encoded, "max", lengths=count, initial=0.0, unsafe=True)
        weight = 1.0 / count.clamp(min=1).to(encoded.dtype)[:, None]
        ctx.save_for_backward(encoded, row, largest, weight)
        return largest, torch.segment_reduce(encoded, "sum", lengths=count, unsafe=True) * weight

    @staticmethod
    def backward(ctx: Any, by_largest: Tensor, by_mean: Tensor) -> tuple[Tensor, None, None]:
        encoded, row, largest, weight = ctx.saved_tensors
        is_largest = largest.index_select(0, row).eq_(encoded)
        found = (by_mean * weight).index_select(0, row)
        return found.addcmul_(is_largest, by_largest.index_select(0, row)), None, None


class Others(NamedTuple):
    """Friends or enemies of many mechs: only those that are there, because most slots are empty most of the time."""

    encoded: Tensor  # (there, width)
    place: Tensor  # (there,): row and slot as one number, rising
    row: Tensor  # (there,)
    there: Tensor  # (..., slots)

    def pooled(self) -> Tensor:
        """The largest and the mean encoding in each row, (..., 2 width); 0 where nobody is."""
        count = self.there.flatten(0, -2).sum(-1)
        return torch.cat(_Pool.apply(self.encoded, self.row, count), -1).reshape(*self.there.shape[:-1], -1)

    def scores(self, wanted: Tensor) -> Tensor:
        """How well each slot (..., slots) fits what its row (..., width) wants; 0 where nobody is."""
        found = (self.encoded * wanted.flatten(0, -2)[self.row]).sum(-1)
        return found.new_zeros(self.there.numel()).index_put((self.place,), found).reshape(self.there.shape)


def encode(encoder: Encoder, values: Tensor, there: Tensor) -> Others:
    """Encode what is there of slots (..., slots, values)."""
    place = there.flatten().nonzero()[:, 0]
    row = place // there.shape[-1]
    return Others(encoder(values.flatten(0, -2).index_select(0, place)), place, row, there)


class Critic(nn.Module):
    """The whole battle from a team's side -> what each of its members can expect."""

    def __init__(self, config: NetworkConfig):
        super().__init__()
        self.mechs = Encoder(MECH_STATE, config.slot)
        self.state = InputScale(numeric(STATE))
        self.join = layer(5 * config.slot, config.width)
        self.join_state = layer(width(STATE), config.width)
        self.norm = nn.LayerNorm(config.width)
        self.last = layer(config.width, 1, 1.0)

    def forward(self, state: Tensor, mechs: Tensor, members: int) -> Tensor:
        encoded = self.mechs(mechs)
        own, alive = mechs[..., at.MECH_OWN] > 0, mechs[..., at.MECH_ALIVE] > 0
        whole = torch.cat([pooled(encoded, own & alive), pooled(encoded, ~own & alive)], -1)
        each = encoded[..., :members, :]
        slot = each.shape[-1]
        # The same as one layer over all of it, without repeating for each member what they share.
        joined = each @ self.join.weight[:, :slot].T
        joined = joined + (whole @ self.join.weight[:, slot:].T + self.join.bias)[..., None, :]
        joined = joined + self.state.read(state, self.join_state)[..., None, :]
        found: Tensor = self.last(relu(self.norm(joined)))
        return found[..., 0].to(state.dtype)


class PilotNetwork(Policy):
    """The policy of every mech, and the critic of its team."""

    critic: Critic

    def __init__(self, config: NetworkConfig = NetworkConfig()):
        super().__init__()
        self.config = config
        size, slot, ground = config.width, config.slot, config.ground
        self.own = Encoder(OWN, size)
        self.friends = Encoder(FRIEND, slot)
        self.enemies = Encoder(ENEMY, slot)
        self.sight = nn.Conv2d(len(CHANNELS), 8, 3, stride=2)
        self.ground = layer(8 * ((CELLS - 1) // 2) ** 2, ground)
        heard = MESSAGE if config.talk else 0
        self.join = layer(size + 4 * slot + ground + heard, size)
        self.join_norm = nn.LayerNorm(size)
        self.core = RecurrentCore(size, size)
        self.numbers = numbers = MOVES + heard  # that are squashed
        self.act_head = layer(size, 2 * numbers + BUTTONS + EWAR + 1, 0.01)
        self.point = layer(size, slot, 0.1)
        self.foresight = layer(size, width(OWN)) if config.predicts else None
        self.critic = Critic(config)
        self.scale = PopArt()
        with torch.no_grad():
            start = (FIRST_SPREAD - LOWEST_SPREAD) / (HIGHEST_SPREAD - LOWEST_SPREAD)
            self.act_head.bias[numbers : 2 * numbers] = torch.logit(torch.tensor(start))

    @property
    def value_layer(self) -> nn.Linear:
        return self.critic.last

    @property
    def state_size(self) -> int:
        """Numbers of the recurrent state of one mech."""
        return self.config.width

    def remember(self, observations: Tensors, state: Tensor, starts: Tensor) -> tuple[Tensor, Others, Tensor]:
        """The core's outputs (rows, steps, width), the encoded enemies, and the state after."""
        friends = encode(self.friends, observations["friends"], observations["friend_mask"])
        enemies = encode(self.enemies, observations["enemies"], observations["enemy_mask"])
        # In quarters: the weights are scaled, there are fewer.
        picture = observations["map"].flatten(0, 1).to(state.dtype)
        sight = relu(conv2d(picture, self.sight.weight / at.QUARTERS, self.sight.bias, self.sight.stride))
        ground = relu(self.ground(sight.flatten(1))).reshape(*observations["map"].shape[:2], -1)
        parts = [self.own(observations["own"]), friends.pooled(), enemies.pooled(), ground]
        if self.config.talk:
            parts.append(observations["messages"].mean(-2))
        joined = relu(self.join_norm(self.join(torch.cat(parts, -1))))
        out, state = self.core(joined, state, starts)
        return out + joined, enemies, state

    def distribution(self, observations: Tensors, out: Tensor, enemies: Others) -> ActionDistribution:
        """How likely each action is, in full precision whatever the layers use: it is added up and compared."""
        parts = [self.numbers, self.numbers, BUTTONS, EWAR, 1]
        mean, spread, buttons, ewar, nobody = self.act_head(out).to(out.dtype).split(parts, -1)
        scores = enemies.scores(self.point(out).to(out.dtype)) * self.config.slot**-0.5
        legal, slots = observations["legal"], observations["enemies"].shape[-2]
        targets = legal[..., at.LEGAL_TARGET : at.LEGAL_TARGET + slots + 1]
        move = legal[..., : at.LEGAL_BUTTONS]
        if self.config.talk:  # whoever is alive can speak
            move = torch.cat([move, torch.ones_like(mean[..., MOVES:], dtype=torch.bool)], -1)
        return ActionDistribution(
            mean=mean,
            log_spread=LOWEST_SPREAD + (HIGHEST_SPREAD - LOWEST_SPREAD) * torch.sigmoid(spread),
            buttons=buttons,
            ewar=heads.choice_log_probs(ewar, legal[..., at.LEGAL_EWAR : at.LEGAL_TARGET]),
            target=heads.choice_log_probs(torch.cat([scores, nobody], -1), targets),
            legal_move=move,
            legal_buttons=legal[..., at.LEGAL_BUTTONS : at.LEGAL_EWAR],
        )

    @torch.inference_mode()
    def act(
        self, observations: Tensors, state: Tensor, starts: Tensor, generator: torch.Generator | None,
        sampled: bool = True,
    ) -> tuple[Tensors, Tensor, Tensor]:  # fmt: skip
        """What these mechs (rows, ...) do now, sampled or the likeliest; its log-probability; their state after."""
        observations = {name: array[:, None] for name, array in observations.items()}
        out, enemies, state = self.remember(observations, state, starts[:, None])
        dist = self.distribution(observations, out, enemies)
        actions = dist.sample(generator) if sampled else dist.mode()
        return {name: array[:, 0] for name, array in actions.items()}, dist.log_prob(actions)[:, 0], state

    def evaluate_actions(
        self, observations: Tensors, actions: Tensors, state: Tensor, starts: Tensor, advice: Tensors | None
    ) -> ActionEvaluation:
        out, enemies, _ = self.remember(observations, state, starts)
        dist = self.distribution(observations, out, enemies)
        nll = None if advice is None else -dist.log_prob(advice) / dist.choices()
        error = self._foresee(observations, out, starts)
        return ActionEvaluation(dist.log_prob(actions), dist.entropy(self.config), nll, error)

    def value(self, shared: Tensors, members: int) -> Tensor:
        found: Tensor = self.critic(shared["state"], shared["mechs"], members)
        return found

    def _foresee(self, observations: Tensors, out: Tensor, starts: Tensor) -> Tensor | None:
        """How wrong the predicted next observation is; where none follows in the chunk, or death, not at all."""
        if self.foresight is None:
            return None
        wrong = (self.foresight(out[:, :-1]) - observations["own"][:, 1:]).square().mean(-1)
        gone = (observations["own"][:, 1:] == 0).all(-1)  # the dead see nothing, not even themselves
        wrong = torch.where(starts[:, 1:] | gone, 0.0, wrong)
        return torch.cat([wrong, torch.zeros_like(wrong[:, :1])], 1)

    @torch.no_grad()
    def note(self, observations: Tensors, acted: Tensor, shared: Tensors) -> None:
        """Move the scales of the inputs along with the observations; `acted` says in which rows somebody was there."""
        self.own.scale.note(observations["own"][acted])
        self.friends.scale.note(observations["friends"][acted][observations["friend_mask"][acted]])
        self.enemies.scale.note(observations["enemies"][acted][observations["enemy_mask"][acted]])
        self.critic.mechs.scale.note(shared["mechs"][shared["mechs"][..., at.MECH_ALIVE] > 0])
        self.critic.state.note(shared["state"].flatten(0, -2))
