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


class Chances(NamedTuple):
    """What a mech may do next, with what probability; the last axis holds the choices."""

    mean: Tensor  # of movement and messages before they are squashed
    log_spread: Tensor
    buttons: Tensor  # logits
    ewar: Tensor  # log-probabilities
    target: Tensor  # log-probabilities: enemy slots, then nobody
    legal_move: Tensor
    legal_buttons: Tensor


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

    def remember(self, seen: Tensors, state: Tensor, starts: Tensor) -> tuple[Tensor, Others, Tensor]:
        """The core's outputs (rows, steps, width), the encoded enemies, and the state after."""
        friends = encode(self.friends, seen["friends"], seen["friend_mask"])
        enemies = encode(self.enemies, seen["enemies"], seen["enemy_mask"])
        picture = seen["map"].flatten(0, 1).to(state.dtype)  # in quarters: the weights are scaled, there are fewer
        sight = relu(conv2d(picture, self.sight.weight / at.QUARTERS, self.sight.bias, self.sight.stride))
        ground = relu(self.ground(sight.flatten(1))).reshape(*seen["map"].shape[:2], -1)
        parts = [self.own(seen["own"]), friends.pooled(), enemies.pooled(), ground]
        if self.config.talk:
            parts.append(seen["messages"].mean(-2))
        joined = relu(self.join_norm(self.join(torch.cat(parts, -1))))
        out, state = self.core(joined, state, starts)
        return out + joined, enemies, state

    def chances(self, seen: Tensors, out: Tensor, enemies: Others) -> Chances:
        """The chances of every action, in full precision whatever the layers use: they are added and compared."""
        parts = [self.numbers, self.numbers, BUTTONS, EWAR, 1]
        mean, spread, buttons, ewar, nobody = self.act_head(out).to(out.dtype).split(parts, -1)
        scores = enemies.scores(self.point(out).to(out.dtype)) * self.config.slot**-0.5
        legal, slots = seen["legal"], seen["enemies"].shape[-2]
        targets = legal[..., at.LEGAL_TARGET : at.LEGAL_TARGET + slots + 1]
        move = legal[..., : at.LEGAL_BUTTONS]
        if self.config.talk:  # whoever is alive can speak
            move = torch.cat([move, torch.ones_like(mean[..., MOVES:], dtype=torch.bool)], -1)
        return Chances(
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
        self, seen: Tensors, state: Tensor, starts: Tensor, generator: torch.Generator | None, sampled: bool = True
    ) -> tuple[Tensors, Tensor, Tensor]:
        """What these mechs (rows, ...) do now, by chance or the likeliest; its log-probability; their state after."""
        seen = {name: array[:, None] for name, array in seen.items()}
        out, enemies, state = self.remember(seen, state, starts[:, None])
        chances = self.chances(seen, out, enemies)
        if sampled:
            noise = torch.empty_like(chances.mean).normal_(generator=generator)
            uniform = torch.empty_like(chances.buttons).uniform_(generator=generator)
            taken = {
                "move": chances.mean + torch.exp(chances.log_spread) * noise,
                "buttons": uniform < torch.sigmoid(chances.buttons),
                "ewar": heads.draw_choice(chances.ewar, generator),
                "target": heads.draw_choice(chances.target, generator),
            }
        else:
            taken = {"move": chances.mean, "buttons": chances.buttons > 0}
            taken |= {"ewar": chances.ewar.argmax(-1), "target": chances.target.argmax(-1)}
        taken["buttons"] &= chances.legal_buttons
        log_prob = log_prob_of(chances, taken)
        return {name: array[:, 0] for name, array in taken.items()}, log_prob[:, 0], state

    def evaluate_actions(
        self, observations: Tensors, actions: Tensors, state: Tensor, starts: Tensor, advice: Tensors | None
    ) -> ActionEvaluation:
        out, enemies, _ = self.remember(observations, state, starts)
        chances = self.chances(observations, out, enemies)
        nll = None if advice is None else -log_prob_of(chances, advice) / choices_of(chances)
        error = self._foresee(observations, out, starts)
        return ActionEvaluation(log_prob_of(chances, actions), self._entropy(chances), nll, error)

    def value(self, shared: Tensors, members: int) -> Tensor:
        found: Tensor = self.critic(shared["state"], shared["mechs"], members)
        return found

    def _entropy(self, chances: Chances) -> Tensor:
        c = self.config
        move = torch.where(chances.legal_move, heads.squashed_entropy(chances.mean, chances.log_spread), 0.0).sum(-1)
        buttons = torch.where(chances.legal_buttons, heads.button_entropy(chances.buttons), 0.0).sum(-1)
        ewar, target = heads.choice_entropy(chances.ewar), heads.choice_entropy(chances.target)
        total = c.entropy_move * move + c.entropy_buttons * buttons + c.entropy_ewar * ewar + c.entropy_target * target
        return total / choices_of(chances)

    def _foresee(self, seen: Tensors, out: Tensor, starts: Tensor) -> Tensor | None:
        """How wrong the predicted next observation is; where none follows in the chunk, or death, not at all."""
        if self.foresight is None:
            return None
        wrong = (self.foresight(out[:, :-1]) - seen["own"][:, 1:]).square().mean(-1)
        gone = (seen["own"][:, 1:] == 0).all(-1)  # the dead see nothing, not even themselves
        wrong = torch.where(starts[:, 1:] | gone, 0.0, wrong)
        return torch.cat([wrong, torch.zeros_like(wrong[:, :1])], 1)

    @torch.no_grad()
    def note(self, seen: Tensors, acted: Tensor, shared: Tensors) -> None:
        """Move the scales of the inputs along with what was seen; `acted` says in which rows somebody was there."""
        self.own.scale.note(seen["own"][acted])
        self.friends.scale.note(seen["friends"][acted][seen["friend_mask"][acted]])
        self.enemies.scale.note(seen["enemies"][acted][seen["enemy_mask"][acted]])
        self.critic.mechs.scale.note(shared["mechs"][shared["mechs"][..., at.MECH_ALIVE] > 0])
        self.critic.state.note(shared["state"].flatten(0, -2))


def choices_of(chances: Chances) -> Tensor:
    """How many choices an action is made of, where they are legal."""
    return chances.legal_move.sum(-1) + chances.legal_buttons.sum(-1) + 2  # warfare and target


def log_prob_of(chances: Chances, taken: Tensors) -> Tensor:
    """Log-probability of all that was legal of an action."""
    move = heads.squashed_log_prob(taken["move"], chances.mean, chances.log_spread)
    buttons = heads.button_log_prob(chances.buttons, taken["buttons"])
    found = torch.where(chances.legal_move, move, 0.0).sum(-1)
    found = found + torch.where(chances.legal_buttons, buttons, 0.0).sum(-1)
    for log_probs, chosen in ((chances.ewar, taken["ewar"]), (chances.target, taken["target"])):
        found = found + log_probs.gather(-1, chosen[..., None])[..., 0]
    return found
