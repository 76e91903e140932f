"""Parts of recurrent policies: a core that walks whole chunks at once, and inputs on a common scale."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

LEAST_SPREAD = 0.05  # inputs that hardly ever change are not blown up beyond this


class _Walk(torch.autograd.Function):
    """The steps of a chunk; gradients by hand, so that those of the weights are one product over all steps."""

    @staticmethod
    def forward(
        ctx: Any, given: Tensor, state: Tensor, keep: Tensor, weight: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`given` (steps, rows, 3 width): what inputs add to the gates; `keep` (steps, rows, 1): 0 at beginnings."""
        steps, rows, width = given.shape[0], given.shape[1], state.shape[1]
        kept, gates, fresh, inner = (given.new_empty(steps, rows, n * width) for n in (1, 2, 1, 1))
        outputs = given.new_empty(steps, rows, width)
        for t in range(steps):
            torch.mul(state, keep[t], out=kept[t])
            onwards = torch.addmm(bias, kept[t], weight.t())
            torch.sigmoid(given[t, :, : 2 * width] + onwards[:, : 2 * width], out=gates[t])
            inner[t] = onwards[:, 2 * width :]
            torch.tanh(torch.addcmul(given[t, :, 2 * width :], gates[t, :, :width], inner[t]), out=fresh[t])
            state = torch.lerp(fresh[t], kept[t], gates[t, :, width:], out=outputs[t])
        ctx.save_for_backward(keep, weight, kept, gates, fresh, inner)
        return outputs, state.clone()

    @staticmethod
    def backward(ctx: Any, by_outputs: Tensor, by_state: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time, then all weights at once."""
        keep, weight, kept, gates, fresh, inner = ctx.saved_tensors
        steps, rows, width = kept.shape
        by_given, by_onwards = (kept.new_empty(steps, rows, 3 * width) for _ in range(2))
        slopes = gates * (1.0 - gates)
        for t in range(steps - 1, -1, -1):
            reset, update = gates[t].chunk(2, -1)
            by_state = by_state + by_outputs[t]
            by_fresh = by_state * (1.0 - update) * (1.0 - fresh[t] * fresh[t])
            by_given[t, :, :width] = by_fresh * inner[t] * slopes[t, :, :width]
            by_given[t, :, width : 2 * width] = by_state * (kept[t] - fresh[t]) * slopes[t, :, width:]
            by_given[t, :, 2 * width :] = by_fresh
            by_onwards[t, :, : 2 * width] = by_given[t, :, : 2 * width]
            by_onwards[t, :, 2 * width :] = by_fresh * reset
            by_state = torch.addmm(by_state * update, by_onwards[t], weight) * keep[t]
        flat = by_onwards.flatten(0, 1)
        return by_given, by_state, None, flat.t() @ kept.flatten(0, 1), flat.sum(0)


class RecurrentCore(nn.Module):
    """Gated recurrent units over chunks of steps, with beginnings of episodes inside; the state is (rows, width)."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.inwards = nn.Linear(inputs, 3 * width)
        self.onwards = nn.Linear(width, 3 * width)
        for layer in (self.inwards, self.onwards):
            for gate in layer.weight.chunk(3):
                nn.init.orthogonal_(gate)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor, state: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (rows, steps, width) and the state after, which is blank before steps that are `starts`."""
        weight, bias = self.onwards.weight, self.onwards.bias
        given = self.inwards(inputs.transpose(0, 1)).to(weight)  # whatever needs no state, of all steps in one product
        keep = torch.logical_not(starts).t().to(weight)[..., None]
        with torch.autocast(given.device.type, enabled=False):  # with 16 bits, a state would forget by rounding
            outputs, state = _Walk.apply(given, state, keep, weight, bias)
        return outputs.transpose(0, 1), state


class InputScale(nn.Module):
    """Running mean and spread of inputs, worked into the layer that reads them: scaling costs nothing per sample."""

    def __init__(self, scaled: Tensor, most: float = 5e6):
        """`scaled` (inputs,) says which are put on a scale; flags are not. Beyond `most` samples, old ones fade."""
        super().__init__()
        self.most = most
        self.scaled = nn.Buffer(scaled.clone())
        self.mean = nn.Buffer(torch.zeros(len(scaled)))
        self.variance = nn.Buffer(torch.ones(len(scaled)))
        self.count = nn.Buffer(torch.zeros(()))

    def read(self, inputs: Tensor, layer: nn.Linear) -> Tensor:
        """What `layer` makes of the inputs on their scale."""
        with torch.autocast(inputs.device.type, enabled=False):  # a difference of large numbers: 16 bits do not hold it
            weight = layer.weight / self.variance.sqrt().clamp(min=LEAST_SPREAD)
            return linear(inputs, weight, layer.bias - weight @ self.mean)

    @torch.no_grad()
    def note(self, samples: Tensor) -> None:
        """Count in more samples (samples, inputs), unless a number in them is not finite."""
        if len(samples) == 0:
            return
        variance, mean = torch.var_mean(samples.double(), 0, correction=0)
        if not bool(variance.isfinite().all()):
            return
        count = float(self.count)
        fraction = len(samples) / (count + len(samples))
        shift = mean - self.mean
        merged = self.variance + fraction * (variance - self.variance + (1.0 - fraction) * shift * shift)
        if count == 0.0:
            merged = variance
        self.variance.copy_(torch.where(self.scaled, merged, 1.0))
        self.mean.copy_(torch.where(self.scaled, self.mean + fraction * shift, 0.0))
        self.count.fill_(min(count + len(samples), self.most))
