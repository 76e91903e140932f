"""The recurrent core and the scale of inputs."""

import pytest
import torch
from torch import nn

from protege.learn.recurrent import InputScale, RecurrentCore

NEVER = torch.zeros(3, 7, dtype=torch.bool)


def core_and_inputs(rows=3, steps=7, inputs=5, width=4):
    torch.manual_seed(1)
    return RecurrentCore(inputs, width), torch.randn(rows, steps, inputs), torch.randn(rows, width)


def test_it_is_the_usual_gated_recurrent_unit():
    core, inputs, state = core_and_inputs()
    usual = nn.GRU(5, 4, batch_first=True)
    with torch.no_grad():
        for name, ours in (("ih", core.inwards), ("hh", core.onwards)):
            getattr(usual, f"weight_{name}_l0").copy_(ours.weight)
            getattr(usual, f"bias_{name}_l0").copy_(ours.bias.normal_())
    expected, after = usual(inputs, state[None])
    found, last = core(inputs, state, NEVER)
    assert torch.allclose(found, expected, atol=1e-6) and torch.allclose(last, after[0], atol=1e-6)


def test_a_chunk_with_beginnings_inside_gives_what_single_steps_give():
    core, inputs, state = core_and_inputs()
    starts = NEVER.clone()
    starts[0, 3] = starts[1, 0] = starts[2, 6] = True
    found, last = core(inputs, state, starts)
    for t in range(7):
        out, state = core(inputs[:, t : t + 1], state, starts[:, t : t + 1])
        assert torch.allclose(out[:, 0], found[:, t], atol=1e-6)
    assert torch.allclose(state, last, atol=1e-6)


def test_a_beginning_blanks_the_state_of_its_own_row_only():
    core, inputs, state = core_and_inputs()
    starts = NEVER.clone()
    starts[1, 2] = True
    with_start, _ = core(inputs, state, starts)
    without, _ = core(inputs, state, NEVER)
    fresh, _ = core(inputs[1:2, 2:], torch.zeros(1, 4), NEVER[:1, :5])
    assert torch.equal(with_start[[0, 2]], without[[0, 2]])
    assert torch.allclose(with_start[1, 2:], fresh[0], atol=1e-6)
    assert torch.equal(with_start[1, :2], without[1, :2])


def test_no_gradient_flows_across_a_beginning():
    core, inputs, state = core_and_inputs()
    starts = NEVER.clone()
    starts[:, 4] = True
    inputs.requires_grad_()
    out, _ = core(inputs, state, starts)
    (gradient,) = torch.autograd.grad(out[:, 6].sum(), inputs)
    assert (gradient[:, :4] == 0).all() and (gradient[:, 4:] != 0).any()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch itself
def test_it_compiles_as_one_graph():
    core, inputs, state = core_and_inputs()
    compiled = torch.compile(core, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(inputs, state, NEVER)[0], core(inputs, state, NEVER)[0])


def test_with_16_bits_around_it_the_core_walks_in_full_precision():
    core, inputs, state = core_and_inputs()
    inputs.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out, last = core(inputs, state, NEVER)
    assert out.dtype == last.dtype == torch.float32
    whole, _ = core(inputs, state, NEVER)
    for found in (out, whole):
        found.sum().backward()
    assert torch.allclose(out, whole, atol=0.02), "what comes in is rounded"
    assert inputs.grad is not None and inputs.grad.isfinite().all()


# --- scale -----------------------------------------------------------------------------------------------------------


def test_scaling_within_the_layer_is_scaling_before_it():
    torch.manual_seed(1)
    scale, layer = InputScale(torch.tensor([True, True, False])), nn.Linear(3, 4)
    samples = torch.randn(500, 3) * torch.tensor([3.0, 0.2, 1.0]) + torch.tensor([5.0, -1.0, 0.0])
    scale.note(samples)
    scaled = samples.clone()
    scaled[:, :2] = (samples[:, :2] - samples[:, :2].mean(0)) / samples[:, :2].std(0, correction=0)
    assert torch.allclose(scale.read(samples, layer), layer(scaled), atol=1e-5)
    assert scaled[:, :2].mean(0).abs().max() < 1e-5 and torch.allclose(scaled[:, :2].std(0), torch.ones(2), atol=0.01)


def test_a_large_mean_is_not_lost_to_16_bits():
    torch.manual_seed(1)
    scale, layer = InputScale(torch.tensor([True])), nn.Linear(1, 4)
    samples = 1000.0 + torch.randn(500, 1)  # 16 bits know no number between 1000 and 1004
    scale.note(samples)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = scale.read(samples, layer)
    assert torch.allclose(narrow, scale.read(samples, layer), atol=1e-3)


def test_statistics_of_pieces_are_those_of_the_whole():
    torch.manual_seed(1)
    samples = torch.randn(1000, 2) * 2.0 + 3.0
    whole, pieces = (InputScale(torch.tensor([True, True])) for _ in range(2))
    whole.note(samples)
    for piece in samples.split([1, 9, 490, 500]):
        pieces.note(piece)
    assert torch.allclose(pieces.mean, whole.mean, atol=1e-5)
    assert torch.allclose(pieces.variance, whole.variance, rtol=1e-5)
    assert pieces.count == whole.count == 1000


def test_flags_keep_their_scale_and_what_never_changes_is_not_blown_up():
    scale, layer = InputScale(torch.tensor([False, True])), nn.Linear(2, 1)
    scale.note(torch.tensor([[1.0, 7.0], [0.0, 7.0]]))
    assert scale.mean.tolist() == [0.0, 7.0] and scale.variance.tolist() == [1.0, 0.0]
    moved = scale.read(torch.tensor([[0.0, 7.01]]), layer) - scale.read(torch.tensor([[0.0, 7.0]]), layer)
    assert float(moved[0, 0].detach()) == pytest.approx(float(layer.weight[0, 1].detach()) * 0.01 / 0.05, rel=1e-2)


def test_samples_that_are_not_finite_move_no_scale():
    scale = InputScale(torch.tensor([True, True]))
    scale.note(torch.tensor([[1.0, 2.0], [3.0, float("nan")]]))
    assert scale.mean.tolist() == [0.0, 0.0] and scale.variance.tolist() == [1.0, 1.0] and scale.count == 0


def test_old_samples_fade_when_there_are_enough():
    scale = InputScale(torch.tensor([True]), most=100.0)
    scale.note(torch.zeros(1000, 1))
    scale.note(torch.ones(100, 1))
    assert float(scale.mean) == pytest.approx(0.5)
