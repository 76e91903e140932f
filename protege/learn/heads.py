"""Probabilities of actions: squashed Gaussians, buttons, and one choice among legal ones. Pure functions of tensors.

A squashed Gaussian draws `u`, and tanh(u) is what is done. What is stored is `u`: tanh is never inverted, so nothing is
lost near the ends. Whatever is not legal has no part in a probability or an entropy.
"""

import math
from typing import Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softplus

ILLEGAL: Final = -1e9  # the logit of a choice that cannot be made
HALF_LOG_TAU: Final = 0.5 * math.log(2 * math.pi)
NODES, WEIGHTS = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(8))


def squash_slope(u: Tensor) -> Tensor:
    """log(1 - tanh(u)^2), the logarithm of tanh's slope, without loss of digits for large |u|."""
    return 2.0 * (math.log(2.0) - u - softplus(-2.0 * u))


def squashed_log_prob(u: Tensor, mean: Tensor, log_spread: Tensor) -> Tensor:
    """Log-density of tanh(u), one for each number."""
    offset = (u - mean) * torch.exp(-log_spread)
    return -0.5 * offset * offset - log_spread - HALF_LOG_TAU - squash_slope(u)


def squashed_entropy(mean: Tensor, log_spread: Tensor) -> Tensor:
    """Entropy of tanh(u), one for each number; by quadrature, so mean and spread both get gradient."""
    nodes, weights = NODES.to(mean), (WEIGHTS / WEIGHTS.sum()).to(mean)
    u = mean[..., None] + torch.exp(log_spread)[..., None] * nodes
    return 0.5 + HALF_LOG_TAU + log_spread + (squash_slope(u) * weights).sum(-1)


def button_log_prob(logits: Tensor, pressed: Tensor) -> Tensor:
    """Log-probability of each button being pressed or not, as it was."""
    return -softplus(torch.where(pressed, -logits, logits))


def button_entropy(logits: Tensor) -> Tensor:
    """Entropy of each button."""
    return softplus(logits) - logits * torch.sigmoid(logits)


def choice_log_probs(logits: Tensor, legal: Tensor) -> Tensor:
    """Log-probabilities along the last axis; those of illegal choices are far below any other."""
    return log_softmax(torch.where(legal, logits, ILLEGAL), -1)


def choice_entropy(log_probs: Tensor) -> Tensor:
    """Entropy of a choice from what `choice_log_probs` gave."""
    return -(log_probs.exp() * log_probs).sum(-1)


def draw_choice(log_probs: Tensor, generator: torch.Generator | None) -> Tensor:
    """Choose along the last axis, at random."""
    noise = torch.empty_like(log_probs).exponential_(generator=generator)
    return torch.argmax(log_probs - noise.log(), -1)
