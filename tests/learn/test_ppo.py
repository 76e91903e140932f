"""Clipped policy updates: what is learned, from whom, and how far."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from protege.learn.ppo import PPO, PopArt, PPOConfig
from protege.learn.rollout import scaled_by_role
from tests.learn.recurrent_tasks import Recall, SmallPolicy

CONFIG = PPOConfig(
    learning_rate=3e-3, final_learning_rate=3e-3, minibatches=4, epochs=3, entropy=0.01, final_entropy=0.01,
    gamma=0.95, target_kl=0.1, critic_rate=1.0,
)  # fmt: skip


def learner_of(config=CONFIG, threads=1, seed=0, **task):
    torch.manual_seed(seed)
    policy = SmallPolicy()
    return PPO(policy, config, threads, seed), Recall(seed=seed, **task)


def weights_of(learner):
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()])


# --- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns_to_remember_a_cue_for_seven_steps():
    learner, task = learner_of()
    scores, explained = [], []
    for _ in range(100):
        scores.append(task.play(learner.policy))
        explained.append(learner.update(task.rollout)["explained_variance"])
    assert sum(scores[:3]) / 3 < 0.65 and sum(scores[-10:]) / 10 > 0.93
    assert sum(explained[-10:]) / 10 > 0.5
    _, mean, _, _ = learner.policy.distributions(
        torch.zeros(1, 1, 2), torch.zeros(1, 16), torch.ones(1, 1, dtype=torch.bool)
    )
    assert math.tanh(float(mean.detach())) == pytest.approx(0.5, abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_memory_reaches_beyond_the_chunk_through_stored_states(seed):
    # Chunks of one step: no gradient leads from the answer to the cue, and only what is stored says what the cue was.
    learner, task = learner_of(seed=seed, length=2, horizon=8, chunk=1)
    for _ in range(40):
        task.play(learner.policy)
        learner.update(task.rollout)
    assert sum(task.play(learner.policy) for _ in range(5)) / 5 > 0.9


def test_rewards_ten_times_as_large_teach_the_same():
    advantages = []
    critic_alone = replace(CONFIG, learning_rate=1e-9, final_learning_rate=1e-9, critic_rate=3e6, epochs=1)
    for scale in (1.0, 10.0):
        learner, task = learner_of(critic_alone)
        task.scale = scale
        for _ in range(20):
            task.play(learner.policy)
            learner.update(task.rollout)
        found = scaled_by_role(task.rollout.numbers["advantages"], task.rollout.acted, task.rollout.roles)
        advantages.append(found.flatten())
    assert float(torch.corrcoef(torch.stack(advantages))[0, 1]) > 0.995
    assert float((advantages[0] - advantages[1]).abs().mean()) < 0.05


# --- one update ------------------------------------------------------------------------------------------------------


def test_a_whole_chunk_is_evaluated_as_single_steps_are():
    learner, task = learner_of(groups=4)
    task.play(learner.policy)
    rollout, policy = task.rollout, learner.policy
    found = policy.evaluate_actions(
        {"cue": rollout.observations["cue"].flatten(0, 2)}, {n: a.flatten(0, 2) for n, a in rollout.actions.items()},
        rollout.states.flatten(0, 2), rollout.starts.flatten(0, 1), None,
    )  # fmt: skip
    assert torch.allclose(found.log_prob, rollout.numbers["log_prob"].flatten(0, 2), atol=1e-5)


def test_the_first_minibatch_finds_the_policy_that_played():
    learner, task = learner_of(replace(CONFIG, epochs=1, minibatches=1))
    task.play(learner.policy)
    figures = learner.update(task.rollout)
    assert figures["kl"] == pytest.approx(0.0, abs=1e-6) and figures["clip_fraction"] == 0.0


def test_what_the_gone_saw_and_did_changes_nothing():
    results = []
    for junk in (0.0, 1e3):
        learner, task = learner_of(replace(CONFIG, minibatches=2), members=2)
        task.play(learner.policy)
        rollout = task.rollout
        rollout.acted[:, :, 1] = rollout.remains[:, 1] = False
        rollout.observations["cue"][:, :, 1] += junk
        rollout.numbers["log_prob"][:, :, 1] -= junk
        learner.update(rollout)
        results.append(weights_of(learner))
    assert torch.equal(*results)


def test_a_minibatch_without_anybody_is_left_out():
    learner, task = learner_of()
    task.play(learner.policy)
    task.rollout.acted[:] = False
    task.rollout.acted[0, 0, 0, 0] = True
    before = learner.updates
    learner.update(task.rollout)
    assert learner.updates - before == CONFIG.epochs, "one chunk in one minibatch of each epoch"


def test_threads_change_nothing():
    results = []
    for threads in (1, 2):
        learner, task = learner_of(threads=threads)
        for _ in range(2):
            task.play(learner.policy)
            learner.update(task.rollout)
        results.append(weights_of(learner))
    assert torch.equal(*results)


def test_the_same_seed_takes_the_chunks_in_the_same_order():
    results = []
    for _ in range(2):
        learner, task = learner_of()
        torch.manual_seed(torch.randint(1000, ()))  # the learner has a generator of its own
        task.play(learner.policy)
        learner.update(task.rollout)
        results.append(weights_of(learner))
    assert torch.equal(*results)


def test_gradients_are_those_of_a_fresh_start_each_time():
    learner, task = learner_of(replace(CONFIG, epochs=1, minibatches=1, learning_rate=0.0, final_learning_rate=0.0))
    task.play(learner.policy)
    before = copy.deepcopy(learner.policy.state_dict())
    norms = []
    for _ in range(3):
        learner.policy.load_state_dict(before)  # the critic's scale moves with every round
        norms.append(learner.update(task.rollout)["gradient_norm"])
    assert norms[1] == pytest.approx(norms[2], rel=1e-6), "nothing is left over from the one before"


def test_every_parameter_gets_gradient():
    learner, task = learner_of(replace(CONFIG, epochs=1, minibatches=1))
    task.play(learner.policy)
    before = {name: p.detach().clone() for name, p in learner.policy.named_parameters()}
    learner.update(task.rollout)
    for name, parameter in learner.policy.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and (parameter.grad != 0).any(), name
        assert not torch.equal(parameter.detach(), before[name]), name


def test_a_policy_that_moves_too_far_is_left_alone():
    learner, task = learner_of(replace(CONFIG, learning_rate=0.5, final_learning_rate=0.5, epochs=10, target_kl=0.02))
    task.play(learner.policy)
    figures = learner.update(task.rollout)
    assert figures["rounds"] < 0.5 and learner.updates < 20


def test_strong_advice_is_followed_however_far_it_leads_and_weak_advice_is_not():
    far = replace(CONFIG, learning_rate=0.5, final_learning_rate=0.5, epochs=10, target_kl=0.02)
    for weight, all_rounds in ((1.0, True), (0.1, False)):
        learner, task = learner_of(far)
        task.play(learner.policy)
        task.rollout.advice = task.rollout.actions
        assert (learner.update(task.rollout, weight)["rounds"] == 1.0) == all_rounds


def test_a_bad_choice_that_has_become_likely_counts_three_times_at_most():
    learner, task = learner_of()
    task.play(learner.policy)
    rollout = task.rollout
    rollout.numbers["log_prob"] -= 5.0  # now 148 times as likely as it was
    picked = torch.arange(rollout.shape.chunks * rollout.shape.groups)
    for advantage, loss in ((-1.0, 3.0), (1.0, -1.2)):
        advantages = torch.full_like(rollout.numbers["advantages"], advantage)
        _, figures = learner._gradients(rollout, advantages, picked, 0.0, int(rollout.acted.sum()))
        assert figures["policy_loss"] == pytest.approx(loss, abs=1e-4)


def test_gradients_of_policy_and_critic_are_limited_apart():
    gradients = []
    for factor in (1.0, 1000.0):
        learner, task = learner_of(replace(CONFIG, epochs=1, minibatches=1, max_grad_norm=0.05))
        task.play(learner.policy)
        for parameter in learner.optimiser.adam.param_groups[0]["params"]:
            parameter.register_hook(lambda gradient, factor=factor: gradient * factor)
        figures = learner.update(task.rollout)
        policy, critic = ([p.grad for p in group["params"]] for group in learner.optimiser.adam.param_groups)
        assert float(nn.utils.get_total_norm(policy)) == pytest.approx(0.05, rel=1e-3)
        gradients.append(torch.cat([gradient.flatten() for gradient in critic]))
    assert torch.equal(*gradients) and figures["gradient_clipped"] >= 0.5 and figures["gradient_norm"] > 5.0


def test_rates_and_entropy_follow_the_share_of_the_budget():
    learner, _ = learner_of(PPOConfig())
    for done, rate, entropy in ((0.0, 3e-4, 0.05), (0.5, 1.65e-4, 0.03), (1.0, 3e-5, 0.01), (1.5, 3e-5, 0.01)):
        assert learner.set_progress(done) == pytest.approx(rate)
        assert learner.entropy_weight == pytest.approx(entropy)
        assert [group["lr"] for group in learner.optimiser.adam.param_groups] == pytest.approx([rate, 2 * rate])
    learner.set_progress(0.0, factor=0.5)
    assert learner.optimiser.adam.param_groups[0]["lr"] == pytest.approx(1.5e-4)


def test_the_critic_has_a_rate_of_its_own():
    learner, _ = learner_of()
    policy, critic = (group["params"] for group in learner.optimiser.adam.param_groups)
    assert {id(p) for p in critic} == {id(p) for p in learner.policy.critic.parameters()}
    assert len(policy) + len(critic) == len(list(learner.policy.parameters()))


def test_imitation_makes_a_teachers_choices_likely():
    learner, task = learner_of()
    actions = task.rollout.actions
    task.rollout.advice = {"choice": torch.ones_like(actions["choice"]), "u": torch.zeros_like(actions["u"])}
    losses = []
    for _ in range(15):
        task.play(learner.policy)
        losses.append(learner.update(task.rollout, imitation=1.0)["imitation_loss"])
    assert losses[-1] < losses[0] - 0.5
    assert float((task.rollout.actions["choice"] == 1).float().mean()) > 0.9


@pytest.mark.parametrize("switch", [{"checkpointing": True}, {"microbatches": 1}, {"microbatches": 3}])
def test_ways_to_compute_the_same(switch):
    results = []
    for config in (CONFIG, replace(CONFIG, **switch)):
        learner, task = learner_of(config)
        task.play(learner.policy)
        learner.update(task.rollout)
        results.append(weights_of(learner))
    assert torch.allclose(results[0], results[1], atol=2e-5)


def test_advantages_may_be_worked_out_anew_for_every_epoch():
    distances = []
    for recompute in (False, True):
        learner, task = learner_of(replace(CONFIG, recompute=recompute, epochs=2))
        task.play(learner.policy)
        learner.update(task.rollout)
        distances.append(float((task.rollout.numbers["values"] - learner.values(task.rollout)[0]).abs().mean()))
    assert distances[1] < 0.8 * distances[0], "the last ones come from a critic that is one epoch old, not two"


def test_steps_of_a_burn_in_are_not_learned_from():
    learner, task = learner_of(replace(CONFIG, burn_in=2, epochs=1, minibatches=1))
    other, same = learner_of(replace(CONFIG, burn_in=2, epochs=1, minibatches=1))
    task.play(learner.policy)
    same.play(other.policy)
    same.rollout.numbers["log_prob"][..., :2] -= 5.0  # would change every ratio
    learner.update(task.rollout)
    other.update(same.rollout)
    assert torch.equal(weights_of(learner), weights_of(other))


# --- the critic's scale ----------------------------------------------------------------------------------------------


def test_a_scale_that_moves_leaves_predictions_where_they_were():
    torch.manual_seed(0)
    scale, layer = PopArt(), nn.Linear(4, 1)
    features, first = torch.randn(10, 4), layer.weight.clone()
    scale.update(100.0 + 7.0 * torch.randn(5000), layer)
    assert torch.equal(layer.weight, first), "at first there is nothing to keep"
    assert float(scale.mean) == pytest.approx(100.0, abs=0.5) and float(scale.spread) == pytest.approx(7.0, rel=0.05)
    before = scale.denormalise(layer(features))
    for _ in range(3):
        scale.update(-3.0 + torch.randn(5000), layer)
    assert torch.allclose(scale.denormalise(layer(features)), before, atol=1e-3)


def test_returns_and_their_scale_are_two_ways_of_one_number():
    scale, layer = PopArt(), nn.Linear(1, 1)
    scale.update(torch.tensor([2.0, 6.0]), layer)
    assert scale.normalise(torch.tensor([2.0, 6.0])).tolist() == [-1.0, 1.0]
    assert scale.denormalise(torch.tensor([-1.0, 1.0])).tolist() == [2.0, 6.0]


def test_returns_that_are_all_alike_do_not_blow_the_scale_up():
    scale, layer = PopArt(), nn.Linear(1, 1)
    scale.update(torch.zeros(100), layer)
    assert float(scale.spread) == pytest.approx(0.01)


def test_memory_stays_flat_over_many_updates():
    import gc
    import tracemalloc

    learner, task = learner_of(groups=4)

    def held_after(rounds):
        for _ in range(rounds):
            task.play(learner.policy)
            learner.update(task.rollout)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    pointers = task.rollout.numbers["advantages"].data_ptr()
    tracemalloc.start()
    before, after = held_after(10), held_after(20)
    tracemalloc.stop()
    assert after - before < 200_000, "ten kilobytes a round would be a leak"
    assert task.rollout.numbers["advantages"].data_ptr() == pointers
