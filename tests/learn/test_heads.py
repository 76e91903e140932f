"""Chances of actions against references in double precision."""

import math

import numpy as np
import pytest
import torch

from protege.learn.heads import (
    button_entropy,
    button_log_prob,
    choice_entropy,
    choice_log_probs,
    draw_choice,
    squash_slope,
    squashed_entropy,
    squashed_log_prob,
)


def test_slope_of_tanh_keeps_its_digits_where_tanh_has_run_out_of_them():
    u = np.linspace(-12.0, 12.0, 97)
    exact = -2.0 * np.log(np.cosh(u))  # 1 - tanh^2 = 1 / cosh^2
    assert squash_slope(torch.tensor(u, dtype=torch.float32)).numpy() == pytest.approx(exact, abs=1e-5)


def test_squashed_log_prob_is_that_of_the_gaussian_less_the_slope_of_tanh():
    u, mean, log_spread = np.linspace(-12.0, 12.0, 49), 0.3, -0.7
    gaussian = -0.5 * ((u - mean) / np.exp(log_spread)) ** 2 - log_spread - 0.5 * np.log(2 * np.pi)
    exact = gaussian + 2.0 * np.log(np.cosh(u))
    found = squashed_log_prob(torch.tensor(u, dtype=torch.float32), torch.tensor(mean), torch.tensor(log_spread))
    assert found.numpy() == pytest.approx(exact, rel=1e-5, abs=1e-5)


def test_squashed_densities_add_up_to_one():
    u = torch.linspace(-9.0, 9.0, 200_001, dtype=torch.float64)
    for mean, log_spread in ((0.0, 0.0), (1.5, -1.0), (-2.0, 0.5)):
        density = squashed_log_prob(u, torch.tensor(mean).double(), torch.tensor(log_spread).double()).exp()
        assert float(torch.trapezoid(density, torch.tanh(u))) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("mean", [0.0, 0.7, -2.0])
@pytest.mark.parametrize("log_spread", [-3.0, -0.7, 0.5])
def test_entropy_by_quadrature_is_what_a_million_draws_give(mean, log_spread):
    dice = torch.Generator().manual_seed(1)
    u = mean + math.exp(log_spread) * torch.randn(1_000_000, dtype=torch.float64, generator=dice)
    drawn = float(-squashed_log_prob(u, torch.tensor(mean).double(), torch.tensor(log_spread).double()).mean())
    found = float(squashed_entropy(torch.tensor(mean), torch.tensor(log_spread)))
    assert found == pytest.approx(drawn, abs=0.02 * max(1.0, abs(drawn)))


def test_entropy_pulls_at_mean_and_spread():
    mean, log_spread = torch.tensor(1.0, requires_grad=True), torch.tensor(-0.5, requires_grad=True)
    by_mean, by_spread = torch.autograd.grad(squashed_entropy(mean, log_spread), (mean, log_spread))
    assert by_mean < -0.5, "nearer to the middle there is more room"
    assert by_spread > 0.1, "and a wider spread says less"


def test_buttons():
    logits, pressed = torch.tensor([0.0, 2.0, -2.0, 40.0]), torch.tensor([True, True, True, False])
    p = 1 / (1 + np.exp(-np.array([0.0, 2.0, -2.0])))
    assert button_log_prob(logits, pressed).tolist() == pytest.approx([*np.log(p), -40.0], rel=1e-6)
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert button_entropy(logits).tolist() == pytest.approx([*entropy, 0.0], abs=1e-6)


def test_choices_that_are_not_legal_have_no_part():
    logits = torch.tensor([[1.0, 5.0, 2.0]], requires_grad=True)
    found = choice_log_probs(logits, torch.tensor([[True, False, True]]))
    total = np.exp(1.0) + np.exp(2.0)
    p = np.array([np.exp(1.0), np.exp(2.0)]) / total
    assert found[0, [0, 2]].tolist() == pytest.approx(np.log(p).tolist(), rel=1e-6)
    assert choice_entropy(found).tolist()[0] == pytest.approx(float(-(p * np.log(p)).sum()), rel=1e-6)
    (gradient,) = torch.autograd.grad(choice_entropy(found).sum() + found[0, 0], logits)
    assert gradient[0, 1] == 0 and gradient.isfinite().all()


def test_the_only_legal_choice_is_certain_and_teaches_nothing():
    logits = torch.tensor([3.0, -1.0], requires_grad=True)
    found = choice_log_probs(logits, torch.tensor([False, True]))
    assert found[1] == 0.0 and choice_entropy(found) == 0.0
    (gradient,) = torch.autograd.grad(found[1] + choice_entropy(found), logits)
    assert gradient.tolist() == [0.0, 0.0]


def test_choices_are_drawn_as_often_as_they_are_likely():
    log_probs = choice_log_probs(torch.tensor([0.0, math.log(3.0), 9.0]), torch.tensor([True, True, False]))
    dice = torch.Generator().manual_seed(1)
    drawn = draw_choice(log_probs.expand(40_000, 3), dice)
    share = torch.bincount(drawn, minlength=3) / len(drawn)
    assert share.tolist() == pytest.approx([0.25, 0.75, 0.0], abs=0.01)
