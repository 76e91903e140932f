"""Experience of recurrent players: who is gone, what was cut, and roles, worked out by hand."""

import pytest
import torch

from protege.learn.rollout import Field, Rollout, Shape, scaled_by_role, without_gone


def test_who_is_gone_is_worth_what_the_others_are_on_average():
    values = torch.tensor([[1.0, 2.0], [3.0, 9.0], [9.0, 9.0]])  # (members, steps)
    there = torch.tensor([[True, True], [True, False], [False, False]])
    none = torch.zeros_like(values)
    assert without_gone(values, there, none).tolist() == [[1.0, 2.0], [3.0, 2.0], [2.0, 2.0]]
    assert without_gone(values, torch.zeros_like(there), none).tolist() == [[0.0, 0.0]] * 3


def test_who_is_gone_has_lost_its_potential_already():
    values = torch.tensor([[1.0], [3.0], [9.0]])
    there = torch.tensor([[True], [True], [False]])
    potential = torch.tensor([[0.5], [0.25], [7.0]])
    # Those who are there will lose 0.5 and 0.25 before the end, and their values say so.
    assert without_gone(values, there, potential).tolist() == [[1.0], [3.0], [(1.5 + 3.25) / 2]]


def rollout_of(groups=1, members=2, horizon=4, chunk=2):
    rollout = Rollout(Shape(groups, members, horizon, chunk), {"x": Field((3,))}, {"s": Field((1,))}, {}, 5)
    rollout.acted[:] = True
    rollout.remains[:] = True
    return rollout


def by_time(array, group=0, member=0):
    return array[:, group, member].flatten().tolist()


def test_rewards_of_the_group_reach_a_member_that_died():
    rollout = rollout_of()
    rollout.acted[0, 0, 1, 1] = rollout.acted[1, 0, 1, :] = False  # the second member acts once and dies
    rollout.remains[0, 1] = False
    rollout.terminated[1, 0, 1] = True
    rollout.numbers["reward"][1, 0, :, 1] = 8.0  # victory at the end, for the dead as well
    values = torch.zeros(2, 1, 2, 2)
    rollout.find_advantages(values, torch.zeros(1, 2), gamma=0.5, gae_lambda=1.0)
    assert by_time(rollout.numbers["advantages"], member=1)[0] == 0.5**3 * 8.0
    assert by_time(rollout.numbers["advantages"], member=0) == [1.0, 2.0, 4.0, 8.0]


def test_a_member_that_dies_goes_on_with_the_value_of_the_others():
    rollout = rollout_of()
    rollout.acted[0, 0, 1, 1] = rollout.acted[1, 0, 1, :] = False
    values = torch.full((2, 1, 2, 2), -100.0)  # what the critic says about the dead means nothing
    values[:, :, 0] = 4.0
    values[0, 0, 1, 0] = 1.0
    rollout.find_advantages(values, torch.tensor([[4.0, -100.0]]), gamma=0.5, gae_lambda=0.0)
    assert by_time(rollout.numbers["advantages"], member=1)[0] == 0.5 * 4.0 - 1.0


def test_an_episode_that_was_cut_goes_on_in_the_critics_eyes():
    rollout = rollout_of(members=1)
    rollout.truncated[0, 0, 1] = True
    rollout.starts[1, 0, 0] = True
    rollout.numbers["cut_values"][0, 0, 0, 1] = 6.0
    values = torch.tensor([[[[1.0, 1.0]]], [[[50.0, 50.0]]]])
    rollout.find_advantages(values, torch.tensor([[50.0]]), gamma=0.5, gae_lambda=1.0)
    found = by_time(rollout.numbers["advantages"])
    assert found[1] == 0.5 * 6.0 - 1.0, "the value of its last observation, not that of the next episode"
    assert found[0] == 0.5 * 1.0 - 1.0 + 0.5 * found[1]
    assert by_time(rollout.numbers["returns"])[1] == 3.0


def test_the_last_step_looks_at_what_comes_after_the_horizon():
    rollout = rollout_of(members=1)
    rollout.find_advantages(torch.zeros(2, 1, 1, 2), torch.tensor([[2.0]]), gamma=0.5, gae_lambda=1.0)
    assert by_time(rollout.numbers["advantages"]) == [0.125, 0.25, 0.5, 1.0]


def test_a_part_is_the_same_memory():
    rollout = rollout_of(groups=3)
    part = rollout.part(1, 3)
    part.observations["x"][0, 1, 0, 1] = 7.0
    part.numbers["reward"][1, 0, 1, 0] = 3.0
    part.after["s"][0] = 2.0
    assert rollout.observations["x"][0, 2, 0, 1].tolist() == [7.0] * 3
    assert rollout.numbers["reward"][1, 1, 1, 0] == 3.0 and rollout.after["s"][1] == 2.0
    assert part.shape.groups == 2


def test_nothing_is_allocated_again_when_advantages_are_found():
    rollout = rollout_of()
    before = {name: array.data_ptr() for name, array in rollout.numbers.items()}
    for _ in range(3):
        rollout.find_advantages(torch.zeros(2, 1, 2, 2), torch.zeros(1, 2), 0.9, 0.9)
    assert {name: array.data_ptr() for name, array in rollout.numbers.items()} == before


def test_each_role_has_its_own_scale_and_the_gone_have_no_part_in_it():
    values = torch.tensor([[[[1.0, 3.0], [100.0, 300.0], [5.0, 999.0]]]])  # one chunk, one group, three members
    counted = torch.tensor([[[[True, True], [True, True], [True, False]]]])
    found = scaled_by_role(values, counted, torch.tensor([[0, 1, 0]]))
    spread = (8 / 3) ** 0.5  # of 1, 3 and 5
    assert found[0, 0, 0].tolist() == pytest.approx([-2 / spread, 0.0])
    assert found[0, 0, 1].tolist() == pytest.approx([-1.0, 1.0])
    assert found[0, 0, 2].tolist() == pytest.approx([2 / spread, 0.0])


def test_each_role_pulls_as_strongly_at_the_weights():
    noise = torch.Generator().manual_seed(1)
    values = torch.randn(16, 32, 2, 8, generator=noise)
    values[:, :, 1] *= 100.0  # its rewards are a hundred times as large
    inputs = torch.randn(16, 32, 2, 8, 5, generator=noise)
    roles, counted = torch.tensor([[0, 1]]).expand(32, 2), torch.ones(values.shape, dtype=torch.bool)

    def pulls(advantages):
        weights = torch.zeros(5, requires_grad=True)
        log_prob = torch.nn.functional.logsigmoid(inputs @ weights)
        losses = (-(advantages * log_prob)[:, :, role].sum() for role in (0, 1))
        one, other = (torch.autograd.grad(loss, weights, retain_graph=True)[0].norm() for loss in losses)
        return float(one / (one + other))

    assert pulls(values) < 0.05 and pulls(scaled_by_role(values, counted, roles)) == pytest.approx(0.5, abs=0.15)
