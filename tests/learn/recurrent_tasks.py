"""Small tasks with known answers for the recurrent learner, and a small policy for them."""

import torch
from torch import Tensor, nn

from protege.learn.heads import choice_entropy, choice_log_probs, draw_choice, squashed_entropy, squashed_log_prob
from protege.learn.ppo import ActionEvaluation, Policy, PopArt
from protege.learn.recurrent import RecurrentCore
from protege.learn.rollout import Field, Rollout, Shape

WIDTH = 16


class SmallPolicy(Policy):
    """A core, a choice of two and a number; the critic sees what is shared."""

    def __init__(self, inputs: int = 2, shared: int = 3):
        super().__init__()
        self.inwards = nn.Linear(inputs, WIDTH)
        self.core = RecurrentCore(WIDTH, WIDTH)
        self.choose = nn.Linear(WIDTH, 2)
        self.steer = nn.Linear(WIDTH, 2)
        self.last = nn.Linear(WIDTH, 1)
        self.critic = nn.Sequential(nn.Linear(shared, WIDTH), nn.Tanh(), self.last)
        self.scale = PopArt()

    @property
    def value_layer(self) -> nn.Linear:
        return self.last

    def distributions(
        self, observations: Tensor, state: Tensor, starts: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        out, state = self.core(torch.relu(self.inwards(observations)), state, starts)
        mean, log_spread = self.steer(out).unbind(-1)
        logits = self.choose(out)
        choice = choice_log_probs(logits, torch.ones_like(logits, dtype=torch.bool))
        return choice, mean, log_spread.clamp(-3, 0.5), state

    def evaluate_actions(self, observations, actions, state, starts, advice):
        choice, mean, log_spread, _ = self.distributions(observations["cue"], state, starts)

        def log_prob(what):
            return choice.gather(-1, what["choice"][..., None])[..., 0] + squashed_log_prob(what["u"], mean, log_spread)

        entropy = (choice_entropy(choice) + squashed_entropy(mean, log_spread)) / 2
        return ActionEvaluation(log_prob(actions), entropy, None if advice is None else -log_prob(advice))

    def value(self, shared, members):
        return self.critic(shared["state"]).expand(*shared["state"].shape[:-1], members)


class Recall:
    """A cue of 0 or 1 at the first step, nothing after it; the last step's choice should be the cue.

    Besides, at every step a number should be one half. Members of a group get cues of their own.
    """

    def __init__(self, groups: int = 32, members: int = 1, length: int = 8, horizon: int = 32, chunk: int = 8, seed=0):
        self.length, self.members, self.groups = length, members, groups
        self.noise = torch.Generator().manual_seed(seed)
        self.rollout = Rollout(
            Shape(groups, members, horizon, chunk), {"cue": Field((2,))}, {"state": Field((3,))},
            {"choice": Field((), torch.int64), "u": Field(())}, WIDTH,
        )  # fmt: skip
        self.rollout.acted[:] = self.rollout.remains[:] = True
        self.state = torch.zeros(groups, members, WIDTH)
        self.clock = torch.randint(0, length, (groups,), generator=self.noise)  # groups are out of step
        self.cue = torch.randint(0, 2, (groups, members), generator=self.noise)
        self.score = 0.0
        self.scale = 1.0  # of rewards

    def shared(self) -> Tensor:
        """What a critic may know: how far the episode is."""
        part = self.clock / self.length
        return torch.stack([part, part**2, torch.ones_like(part)], -1)

    @torch.no_grad()
    def play(self, policy: SmallPolicy) -> float:
        """Fill the rollout; the share of right answers."""
        rollout, right, asked = self.rollout, 0.0, 0
        for t in range(rollout.shape.horizon):
            c, s = divmod(t, rollout.shape.chunk)
            starts = self.clock == 0
            if s == 0:
                rollout.states[c] = self.state
            cue = torch.zeros(self.groups, self.members, 2)
            cue.scatter_(-1, self.cue[..., None], starts[:, None, None].float().expand(-1, self.members, 1))
            rows, begins = self.groups * self.members, starts.repeat_interleave(self.members)
            choice, mean, log_spread, state = policy.distributions(
                cue.reshape(rows, 1, 2), self.state.reshape(rows, WIDTH), begins[:, None]
            )
            self.state = state.reshape(self.groups, self.members, WIDTH)
            chosen = draw_choice(choice, self.noise)
            u = mean + log_spread.exp() * torch.randn(mean.shape, generator=self.noise)
            log_prob = choice.gather(-1, chosen[..., None])[..., 0] + squashed_log_prob(u, mean, log_spread)
            ends = self.clock == self.length - 1
            shaped = (self.groups, self.members)
            good = (chosen.reshape(shaped) == self.cue).float()
            reward = good * ends[:, None] - 0.2 * (torch.tanh(u.reshape(shaped)) - 0.5) ** 2
            at = (c, slice(None), slice(None), s)
            rollout.observations["cue"][at], rollout.shared["state"][c, :, s] = cue, self.shared()
            rollout.actions["choice"][at], rollout.actions["u"][at] = chosen.reshape(shaped), u.reshape(shaped)
            rollout.numbers["log_prob"][at] = log_prob.reshape(shaped)
            rollout.numbers["reward"][at] = self.scale * reward
            rollout.starts[c, :, s], rollout.terminated[c, :, s] = starts, ends
            right, asked = right + float(good[ends].sum()), asked + int(ends.sum()) * self.members
            self.clock = torch.where(ends, 0, self.clock + 1)
            fresh = torch.randint(0, 2, shaped, generator=self.noise)
            self.cue = torch.where(ends[:, None], fresh, self.cue)
        rollout.after["state"].copy_(self.shared())
        self.score = right / max(asked, 1)
        return self.score
