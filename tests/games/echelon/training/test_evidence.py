"""What a review of recurrent learners asks to be shown, on the whole learner: docs/evidence.md lists it by id.

Schedules as real trainings log them, stages and resumes, memory that stays flat, layers that stay alive, and ways to
compute that change no result.
"""

import gc
import shutil
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import psutil
import pytest
import torch

from proofs.prove_echelon_learning import indirect_kills
from protege.games.echelon.agents.network import NetworkConfig, PilotNetwork
from protege.games.echelon.agents.pupil import Pupil
from protege.games.echelon.rules.events import EVENT, KILL, MISSILE_LAUNCH
from protege.games.echelon.task.env import Arena
from protege.games.echelon.training.collect import BattleSource, NetworkOpponent
from protege.games.echelon.training.config import STAGES, Stage, find_stage
from protege.games.echelon.training.evaluation import evaluate
from protege.games.echelon.training.trainer import TRAINER
from protege.games.echelon.world.mechs import GAUSS, MISSILE
from protege.learn.ppo import PPO, PPOConfig
from protege.learn.schedules import linear
from protege.train.loop import train
from tests.games.echelon.training.tiny import TINY
from tests.learn.test_ppo import CONFIG, learner_of, weights_of
from tests.train.trainings import Notes

SMALL = NetworkConfig(16, 8, 4)
PAIR = Stage("2v2", 40, 24, (("medium", 1.0),))


def logged(run, name):
    """Steps and values of a figure."""
    series = run.metrics.series(name, most_points=10**6)
    return series.steps, series.mean


# --- schedules -------------------------------------------------------------------------------------------------------


class PowerCut(Notes):
    """Ends the training at its second evaluation."""

    def evaluated(self, result, best):
        super().evaluated(result, best)
        if len(self.results) == 2:
            raise RuntimeError("power cut")


def test_logged_rates_and_entropy_follow_the_agent_steps_before_and_after_a_resume(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    monkeypatch.setitem(STAGES, "brief", Stage("1v1", 40, 8, (("medium", 1.0),)))
    config = replace(TINY, stages=("brief",), eval_every=TINY.agent_steps // 3, autosave_seconds=0.0)
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, config, PowerCut(), name="r", folder=tmp_path)
    resumed = Notes()
    run = train(TRAINER, config, resumed, name="r", resume=True, folder=tmp_path)
    assert "resumed at agent-step" in resumed.reports[0]["run"]
    for name, first, last in (("learning_rate", 3e-4, 3e-5), ("entropy_weight", 0.05, 0.01)):
        steps, values = logged(run, name)
        shares = [step / config.agent_steps for step in [0, *steps[:-1]]]  # when the rollout began
        assert len(values) >= 6 and shares[0] == 0.0 and shares[-1] > 0.7
        assert values == pytest.approx([linear(share, first, last, 1.0) for share in shares]), name


def test_logged_rates_and_entropy_follow_the_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    monkeypatch.setitem(STAGES, "brief", Stage("1v1", 40, 8, (("medium", 1.0),)))
    config = replace(TINY, stages=("brief",), minutes=0.05, agent_steps=0, deterministic=False, eval_seconds=1e9)
    run = train(TRAINER, config, Notes(), name="r", folder=tmp_path)
    _, progress = logged(run, "progress")  # when the updates were made
    for name, first, last in (("learning_rate", 3e-4, 3e-5), ("entropy_weight", 0.05, 0.01)):
        _, values = logged(run, name)
        expected = [linear(share, first, last, 1.0) for share in progress]
        assert all(one > other for one, other in zip(values, values[1:])), "ever smaller"
        for before, value, after in zip([first, *expected], values, expected):
            assert before + 1e-9 >= value >= after - 1e-9, name
        assert values[-1] < first - 0.5 * (first - last)


# --- stages ----------------------------------------------------------------------------------------------------------


def test_a_stage_that_is_passed_gives_way_and_a_resume_stays_in_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.0)
    # One mech without enemies wins always: 2 of 2, and at least 0.34.
    easy = Stage("1v0", 40, 8, (("idle", 1.0),), ("idle",), gate=0.3, fraction=1.0)
    monkeypatch.setitem(STAGES, "first", easy)
    monkeypatch.setitem(STAGES, "second", replace(easy, size=48, gate=2.0))
    config = replace(
        TINY, stages=("first", "second"), imitation=0.0, eval_every=TINY.agent_steps // 3, autosave_seconds=0.0
    )
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, config, PowerCut(), name="r", folder=tmp_path)
    resumed = Notes()
    run = train(TRAINER, config, resumed, name="r", resume=True, folder=tmp_path)
    assert resumed.reports[0]["stage"].startswith("second: 1v0 on 48 x 48")
    texts = [event.text for event in run.metrics.events() if event.kind == "stage"]
    assert len(texts) == 1 and texts[0].startswith("first ends (success at least 34%); second begins")
    steps, stages = logged(run, "stage")
    passed = TINY.agent_steps // 3  # the first evaluation
    assert stages == [float(step > passed) for step in steps] and {0.0, 1.0} == set(stages)


# --- the learner on real battles -------------------------------------------------------------------------------------


def learner_in_battle(ppo=PPOConfig(), network=SMALL, **more):
    """A small learner, and pairs of mechs whose battles it learns from."""
    torch.manual_seed(1)
    config = replace(TINY, agents=16, ppo=replace(ppo, minibatches=2), network=network, imitation=0.0, **more)
    policy = PilotNetwork(network)
    source = BattleSource(PAIR, 0, config, policy, 1)
    source.play(0.0)
    source.note_inputs()
    return PPO(policy, config.ppo, 1, 1), source


def gradients_at_inputs(policy, rollout):
    """How strongly what mechs did depends on each of the inputs they saw, on average."""
    rows = rollout.acted.flatten(0, 2).any(-1)
    seen = {name: array.flatten(0, 2)[rows].clone() for name, array in rollout.observations.items()}
    inputs = [seen[name].requires_grad_() for name in ("own", "friends", "enemies")]
    taken = {name: array.flatten(0, 2)[rows] for name, array in rollout.actions.items()}
    starts = rollout.starts[:, :, None].expand(rollout.acted.shape).flatten(0, 2)[rows]
    evaluation = policy.evaluate_actions(seen, taken, rollout.states.flatten(0, 2)[rows], starts, None)
    return [float(found.abs().mean()) for found in torch.autograd.grad(evaluation.log_prob.sum(), inputs)]


def test_after_100_updates_gradients_still_reach_the_encoders_and_nothing_is_saturated():
    learner, source = learner_in_battle(PPOConfig(learning_rate=1e-3, target_kl=1e9))
    before = gradients_at_inputs(learner.policy, source.rollout)
    while learner.updates < 100:
        learner.update(source.rollout)
        source.play(0.0)
    after = gradients_at_inputs(learner.policy, source.rollout)
    for first, last in zip(before, after):
        assert first > 1e-5 and last > 0.1 * first, (before, after)
    moves = source.rollout.actions["move"][source.rollout.acted]
    assert float((torch.tanh(moves).abs() > 0.95).float().mean()) < 0.1


def test_what_comes_next_is_predicted_better_and_better():
    ppo = PPOConfig(prediction=1.0, learning_rate=3e-3, target_kl=1e9)
    learner, source = learner_in_battle(ppo, replace(SMALL, predicts=True))
    losses = [learner.update(source.rollout)["prediction_loss"] for _ in range(20)]
    assert losses[-1] < 0.5 * losses[0], losses


def test_with_16_bits_the_losses_are_within_a_percent_over_100_updates():
    found = []
    for narrow in (False, True):
        learner, source = learner_in_battle(PPOConfig(mixed_precision=narrow, learning_rate=1e-4, target_kl=1e9))
        rounds = []
        while learner.updates < 100:
            rounds.append(learner.update(source.rollout))
        found.append({name: np.array([figures[name] for figures in rounds]) for name in rounds[0]})
    in_32, in_16 = found
    for name in ("value_loss", "entropy"):
        assert in_16[name] == pytest.approx(in_32[name], rel=0.01), name
    # Around 0 a percent means nothing: the policy's loss is compared with how far it moves.
    assert np.abs(in_16["policy_loss"] - in_32["policy_loss"]).max() < 0.01 * np.ptp(in_32["policy_loss"]) + 1e-3


def test_states_are_blank_where_a_battle_begins():
    """A opponent, who meets the pupil, and the pupil itself: both act as if there had been no battle before."""
    torch.manual_seed(1)
    network = PilotNetwork(SMALL)
    arena = Arena(3, "1v1", size=(40, 40), length=8, seed=5)
    one, other = NetworkOpponent(network, arena), NetworkOpponent(network, arena)
    other.state.fill_(7.0)  # of a battle before
    red = np.broadcast_to(arena.battles.members.team == 1, (3, 2))
    for opponent in (one, other):
        opponent.act(arena.battles, red, arena.battles.no_actions())
    assert torch.equal(one.state[:, 1], other.state[:, 1]) and (other.state[:, 0] == 7.0).all(), "others' are not its"
    sources = [BattleSource(PAIR, 0, replace(TINY, imitation=0.0), network, 1) for _ in range(2)]
    for batch in sources[1].batches:
        batch.state.fill_(7.0)
    for source in sources:
        source.play(0.0)
    assert torch.equal(*(source.rollout.numbers["log_prob"] for source in sources))


# --- memory and ways to compute --------------------------------------------------------------------------------------


def test_a_process_does_not_grow_over_200_updates():
    learner, source = learner_in_battle(PPOConfig(epochs=5, target_kl=1e9))

    def grown_to(updates):
        while learner.updates < updates:
            learner.update(source.rollout)
            source.play(0.0)
        gc.collect()
        return psutil.Process().memory_info().rss

    before = grown_to(100)  # allocators have taken by then what they need
    assert grown_to(300) - before < 2e6, "ten kilobytes an update would be a leak"


def test_checkpointing_keeps_a_part_of_the_forward_pass():
    kept = {}
    for checkpointing in (False, True):
        learner, source = learner_in_battle(PPOConfig(checkpointing=checkpointing))
        rollout, total = source.rollout, [0]
        seen, taken = ({n: a.flatten(0, 2) for n, a in of.items()} for of in (rollout.observations, rollout.actions))
        starts = rollout.starts[:, :, None].expand(rollout.acted.shape).flatten(0, 2)
        with counted(total):
            evaluation = learner._evaluate_actions(seen, taken, rollout.states.flatten(0, 2), starts, None)
        kept[checkpointing] = total[0]
        evaluation.log_prob.sum().backward()
    assert 0 <= kept[True] < 0.3 * kept[False], kept


def test_evaluations_keep_nothing_for_a_way_back():
    total = [0]
    with counted(total):
        found = evaluate(Pupil(PilotNetwork(SMALL)), PAIR, "medium", matches=2)
    assert total == [0] and found["matches"] == 2


def test_twenty_against_twenty_are_learned_from():
    torch.manual_seed(1)
    policy = PilotNetwork(SMALL)
    source = BattleSource(find_stage("company"), 0, replace(TINY, agents=40, imitation=0.0), policy, 1)
    learner = PPO(policy, PPOConfig(minibatches=1), 1, 1)
    steps = source.play(0.0)
    source.note_inputs()
    figures = learner.update(source.rollout)
    assert source.rollout.shape.members == 20 and steps == 40 * TINY.horizon
    assert learner.updates > 0 and all(np.isfinite(list(figures.values())))
    source.close()


@contextmanager
def counted(total):
    """Add up the bytes that are kept for the way back."""

    def keep(tensor):
        total[0] += tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
def test_an_update_of_compiled_pilots_is_one_graph_and_gives_the_same(monkeypatch):
    """Traced forwards and backwards, without the code generator: that one takes a minute."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    found = []
    for compiled in (False, True):
        learner, source = learner_in_battle(PPOConfig(compiled=compiled))
        found.append((learner.update(source.rollout), weights_of(learner)))
    (figures, weights), (other_figures, other_weights) = found
    assert other_figures == pytest.approx(figures, rel=1e-4, abs=1e-6)
    assert torch.allclose(weights, other_weights, atol=2e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by torch itself
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch compiles with g++: on Debian, apt-get install g++")
def test_an_update_in_generated_code_gives_the_same():
    found = []
    for compiled in (False, True):
        learner, task = learner_of(
            replace(CONFIG, compiled=compiled, epochs=1, minibatches=2, microbatches=1),
            groups=8,
            length=2,
            horizon=4,
            chunk=2,
        )
        task.play(learner.policy)
        found.append((learner.update(task.rollout), weights_of(learner)))
    (figures, weights), (other_figures, other_weights) = found
    assert other_figures == pytest.approx(figures, rel=1e-4, abs=1e-6)
    assert torch.allclose(weights, other_weights, atol=2e-5)


# --- proofs ----------------------------------------------------------------------------------------------------------


def test_a_kill_is_indirect_if_its_own_missile_was_launched_at_a_painted_target():
    events = np.zeros(7, EVENT)
    events["kind"] = [MISSILE_LAUNCH, MISSILE_LAUNCH, KILL, KILL, KILL, KILL, KILL]
    events["amount"] = [1, 0, 0, 0, 0, 0, 0]  # the first by paint, the second by sight
    events["tick"] = [100, 100, 150, 150, 150, 150, 250]
    events["who"] = [0, 1, 0, 1, 0, 0, 0]
    events["whom"] = [2, 3, 2, 3, 3, 2, 2]
    events["weapon"] = [MISSILE] * 5 + [GAUSS, MISSILE]
    # Right; by sight; at somebody else; by gauss; the missile had long run out (50 voxels at 12 a second are 83 ticks).
    assert indirect_kills(events).tolist() == [False, False, True, False, False, False, False]
