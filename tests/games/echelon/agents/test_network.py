"""The pilots' network: sets, masks, choices, critic, and real observations of every roster."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from protege.games.echelon.agents.network import (
    FLAGS,
    HIGHEST_SPREAD,
    LOWEST_SPREAD,
    NetworkConfig,
    PilotNetwork,
    encode,
    numeric,
    pooled,
)
from protege.games.echelon.agents.pupil import look
from protege.games.echelon.task import features as at
from protege.games.echelon.task.env import Arena
from protege.games.echelon.task.features import layout_of
from protege.games.echelon.training.collect import room_for
from protege.games.echelon.world.mechs import find_roster

SMALL = NetworkConfig(width=24, slot=12, ground=8)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(1)
    return PilotNetwork(SMALL)


def made_up(rows=6, steps=4, roster="5v5", talk=False, seed=1):
    """Observations of noise, with legal choices and slots in use at random."""
    dice = torch.Generator().manual_seed(seed)
    layout = layout_of(find_roster(roster))
    seen, shared, _ = room_for(layout, talk)

    def noise(fields, *axes):
        found = {}
        for name, field in fields.items():
            number = torch.rand(*axes, *field.shape, generator=dice)
            found[name] = number if field.dtype == torch.float32 else (number * 3).to(field.dtype)
        return found

    values = noise(seen, rows, steps)
    values["legal"] = values["legal"] | False
    values["legal"][..., at.LEGAL_EWAR] = True
    values["legal"][..., at.LEGAL_TARGET : at.LEGAL_TARGET + layout.enemies] = values["enemy_mask"]
    values["legal"][..., at.LEGAL_TARGET + layout.enemies] = True
    return values, noise(shared, rows, steps)


def drawn(network, seen, seed=1):
    """Actions by chance at every step of a chunk, with their log-probabilities as they came."""
    rows, steps = seen["own"].shape[:2]
    state, dice = torch.zeros(rows, network.state_size), torch.Generator().manual_seed(seed)
    taken, log_probs = [], []
    for t in range(steps):
        done, log_prob, state = network.act(
            {name: array[:, t] for name, array in seen.items()}, state, torch.zeros(rows, dtype=torch.bool), dice
        )
        taken.append({name: array.clone() for name, array in done.items()})
        log_probs.append(log_prob.clone())
    return {name: torch.stack([step[name] for step in taken], 1) for name in taken[0]}, torch.stack(log_probs, 1)


def evaluated(network, seen, taken, starts=None, advice=None):
    rows, steps = seen["own"].shape[:2]
    starts = torch.zeros(rows, steps, dtype=torch.bool) if starts is None else starts
    return network.evaluate_actions(seen, taken, torch.zeros(rows, network.state_size), starts, advice)


# --- choices ---------------------------------------------------------------------------------------------------------


def test_a_chunk_is_evaluated_as_its_steps_were_when_they_were_played(network):
    seen, _ = made_up()
    taken, log_prob = drawn(network, seen)
    assert torch.allclose(evaluated(network, seen, taken).log_prob, log_prob, atol=1e-5)


def test_log_probs_are_the_sum_of_all_legal_choices_in_double_precision(network):
    seen, _ = made_up()
    taken, _ = drawn(network, seen)
    double = PilotNetwork(SMALL).double()
    double.load_state_dict(network.state_dict())
    wide = {name: array.double() if array.dtype == torch.float32 else array for name, array in seen.items()}
    with torch.no_grad():
        out, enemies, _ = double.remember(wide, torch.zeros(6, 24).double(), torch.zeros(6, 4, dtype=torch.bool))
        c = double.distribution(wide, out, enemies)
    u, p = taken["move"].double().numpy(), 1 / (1 + np.exp(-c.buttons.numpy()))
    move = -0.5 * ((u - c.mean.numpy()) / np.exp(c.log_spread.numpy())) ** 2 - c.log_spread.numpy()
    move += -0.5 * np.log(2 * np.pi) + 2 * np.log(np.cosh(u))
    buttons = np.log(np.where(taken["buttons"].numpy(), p, 1 - p))
    expected = (move * c.legal_move.numpy()).sum(-1) + (buttons * c.legal_buttons.numpy()).sum(-1)
    for part in ("ewar", "target"):
        chosen = taken[part].numpy()[..., None]
        expected += np.take_along_axis(getattr(c, part).numpy(), chosen, -1)[..., 0]
    assert evaluated(network, seen, taken).log_prob.detach().numpy() == pytest.approx(expected, abs=1e-4)


def test_illegal_choices_are_never_made_and_never_counted(network):
    seen, _ = made_up()
    seen["legal"][:] = False
    seen["legal"][..., at.LEGAL_EWAR] = seen["legal"][..., at.LEGAL_TARGET + 5] = True
    taken, log_prob = drawn(network, seen)
    assert not taken["buttons"].any() and (taken["ewar"] == 0).all() and (taken["target"] == 5).all()
    assert (log_prob == 0).all(), "nothing was chosen"
    found = evaluated(network, seen, taken)
    assert (found.entropy == 0).all()
    gradients = torch.autograd.grad(found.log_prob.sum() + found.entropy.sum(), network.act_head.parameters())
    assert all((gradient == 0).all() for gradient in gradients)


def test_empty_slots_mean_nothing_whatever_they_hold(network):
    seen, _ = made_up()
    taken, _ = drawn(network, seen)
    other = {name: array.clone() for name, array in seen.items()}
    for slots, mask in (("friends", "friend_mask"), ("enemies", "enemy_mask")):
        other[slots][~seen[mask]] += 100.0
    one, two = (evaluated(network, values, taken) for values in (seen, other))
    assert torch.allclose(one.log_prob, two.log_prob, atol=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_encoding_only_who_is_there_gives_what_encoding_every_slot_gives(network, share):
    dice = torch.Generator().manual_seed(3)
    double = PilotNetwork(SMALL).double()
    double.load_state_dict(network.state_dict())
    encoder, slots = double.enemies, 7
    values = torch.randn(5, 4, slots, encoder.layer.in_features, generator=dice).double()
    there = torch.rand(5, 4, slots, generator=dice) < share
    wanted, by_pool, by_score = (torch.randn(5, 4, n, generator=dice).double() for n in (12, 24, slots))
    found = {}
    for name in ("some", "all"):
        aim = wanted.clone().requires_grad_()
        if name == "some":
            others = encode(encoder, values, there)
            pool, scores = others.pooled(), others.scores(aim)
        else:
            encoded = encoder(values)
            pool, scores = pooled(encoded, there), (encoded @ aim[..., None])[..., 0] * there
        loss = (pool * by_pool).sum() + (scores * by_score).sum()
        found[name] = (pool, scores, *torch.autograd.grad(loss, [aim, *encoder.parameters()]))
    for some, every in zip(found["some"], found["all"], strict=True):
        assert torch.allclose(some, every, rtol=1e-12, atol=1e-12)


def test_the_order_of_friends_and_enemies_changes_nothing_but_where_to_point(network):
    seen, _ = made_up()
    order = torch.tensor([3, 0, 4, 1, 2])
    other = {name: array.clone() for name, array in seen.items()}
    other["enemies"], other["enemy_mask"] = seen["enemies"][..., order, :], seen["enemy_mask"][..., order]
    legal = slice(at.LEGAL_TARGET, at.LEGAL_TARGET + 5)
    other["legal"][..., legal] = seen["legal"][..., legal][..., order]
    taken, _ = drawn(network, seen)
    moved = dict(taken)
    back = torch.argsort(order)
    moved["target"] = torch.where(taken["target"] < 5, back[taken["target"].clamp(max=4)], 5)
    one, two = evaluated(network, seen, taken), evaluated(network, other, moved)
    assert torch.allclose(one.log_prob, two.log_prob, atol=1e-5)
    assert torch.allclose(one.entropy, two.entropy, atol=1e-5)


def test_spread_stays_within_its_bounds_and_differs_by_state(network):
    seen, _ = made_up()
    wild = PilotNetwork(SMALL)
    wild.load_state_dict(network.state_dict())
    with torch.no_grad():
        wild.act_head.weight.mul_(1e4)
        out, enemies, _ = wild.remember(seen, torch.zeros(6, 24), torch.zeros(6, 4, dtype=torch.bool))
        spread = wild.distribution(seen, out, enemies).log_spread
    assert LOWEST_SPREAD <= spread.min() < spread.max() <= HIGHEST_SPREAD


def test_the_likeliest_action_needs_no_random_numbers(network):
    seen, _ = made_up()
    step = {name: array[:, 0] for name, array in seen.items()}
    given = step, torch.zeros(6, 24), torch.ones(6, dtype=torch.bool)
    one, two = (network.act(*given, torch.Generator().manual_seed(seed), False)[0] for seed in (1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_advice_is_as_surprising_as_its_choices_are_unlikely_on_average(network):
    seen, _ = made_up()
    taken, log_prob = drawn(network, seen)
    legal = seen["legal"]
    choices = legal[..., : at.LEGAL_EWAR].sum(-1) + 2  # movement and buttons that are legal, warfare, target
    assert torch.allclose(evaluated(network, seen, taken, advice=taken).advice_nll * choices, -log_prob, atol=1e-4)


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, talk=True), replace(SMALL, predicts=True)])
def test_every_parameter_of_every_head_gets_gradient(config):
    torch.manual_seed(1)
    network = PilotNetwork(config)
    seen, shared = made_up(rows=20, talk=config.talk)
    taken, _ = drawn(network, seen)
    starts = torch.zeros(20, 4, dtype=torch.bool)
    starts[0, 2] = True
    found = evaluated(network, seen, taken, starts)
    loss = found.log_prob.sum() + found.entropy.sum() + network.value(shared, 5).sum()
    if found.prediction_error is not None:
        assert (found.prediction_error[:, -1] == 0).all() and found.prediction_error[0, 1] == 0, (
            "nothing to compare with"
        )
        assert (found.prediction_error[:, 0] > 0).all()
        killed = {**seen, "own": seen["own"].clone()}
        killed["own"][3, 1:] = 0.0
        assert (evaluated(network, killed, taken, starts).prediction_error[3] == 0).all(), "the dead see nothing"
        loss = loss + found.prediction_error.sum()
    names, parameters = zip(*network.named_parameters())
    for name, gradient in zip(names, torch.autograd.grad(loss, parameters)):
        assert gradient.isfinite().all() and (gradient != 0).any(), name


def test_gradients_reach_the_inputs_of_the_encoders(network):
    seen, _ = made_up()
    taken, _ = drawn(network, seen)
    for name in ("own", "friends", "enemies"):
        seen[name].requires_grad_()
    inputs = [seen[name] for name in ("own", "friends", "enemies")]
    for gradient in torch.autograd.grad(evaluated(network, seen, taken).log_prob.sum(), inputs):
        assert gradient.abs().mean() > 1e-6


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch itself
def test_it_compiles_as_one_graph(network):
    seen, _ = made_up()
    taken, _ = drawn(network, seen)
    compiled = torch.compile(network.evaluate_actions, backend="eager", fullgraph=True)
    found = compiled(seen, taken, torch.zeros(6, 24), torch.zeros(6, 4, dtype=torch.bool), None)
    assert torch.allclose(found.log_prob, evaluated(network, seen, taken).log_prob, atol=1e-6)


# --- critic ----------------------------------------------------------------------------------------------------------


def test_members_are_told_apart_and_the_dead_do_not_count(network):
    _, shared = made_up()
    shared["mechs"][..., at.MECH_OWN] = torch.tensor([1.0] * 5 + [0.0] * 5)
    shared["mechs"][..., at.MECH_ALIVE] = 1.0
    shared["mechs"][..., 4, at.MECH_ALIVE] = shared["mechs"][..., 9, at.MECH_ALIVE] = 0.0
    values = network.value(shared, 5)
    assert values.shape == (6, 4, 5) and values[..., 0].ne(values[..., 1]).all()
    shared["mechs"][..., [4, 9], at.MECH_PLACE] += 3.0
    assert torch.allclose(network.value(shared, 5)[..., :4], values[..., :4], atol=1e-6)


# --- scale and real observations -------------------------------------------------------------------------------------


def test_flags_are_what_holds_nothing_but_zero_and_one():
    for fields in (at.OWN, at.FRIEND, at.ENEMY, at.STATE, at.MECH_STATE):
        for field in fields:
            if field.name in FLAGS:
                assert (field.low, field.high) == (0.0, 1.0), field.name
        assert len(numeric(fields)) == at.width(fields)
    assert numeric(at.STATE).all() and not numeric(at.OWN)[at.OWN_CLASS]


@pytest.mark.parametrize("roster", ["1v0", "1v1", "2v2", "5v5", "10v10", "20v20", "suite-6v6"])
def test_real_observations_of_any_roster_go_through_one_network(network, roster):
    arena = Arena(2, roster, size=(60, 60), length=20)
    battle, mech = np.indices((2, arena.layout.mechs), np.int64).reshape(2, -1)
    rows = battle, mech
    seen = look(arena.observation, rows, talk=False)
    count = len(rows[0])
    taken, log_prob, state = network.act(
        seen, torch.zeros(count, network.state_size), torch.ones(count, dtype=torch.bool), torch.Generator()
    )
    assert log_prob.isfinite().all() and state.shape == (count, 24)
    assert (taken["target"] <= arena.layout.enemies).all()
    values = network.value(
        {name: torch.from_numpy(getattr(arena.observation, name)) for name in ("state", "mechs")}, arena.layout.mechs
    )
    assert values.isfinite().all()


def test_inputs_come_to_mean_zero_and_spread_one():
    torch.manual_seed(1)
    network = PilotNetwork(SMALL)
    seen, shared = made_up(rows=200, steps=10)
    seen["own"] = seen["own"] * 3.0 + 1.0
    acted = torch.ones(200, 10, dtype=torch.bool)
    acted[100:] = False
    seen["own"][100:] = 1e6  # of those who are not there
    network.note(seen, acted, shared)
    scale = network.own.scale
    scaled = (seen["own"][:100] - scale.mean) / scale.variance.sqrt()
    numbers = numeric(at.OWN)
    assert scaled.flatten(0, 1)[:, numbers].mean(0).abs().max() < 1e-3
    assert (scaled.flatten(0, 1)[:, numbers].std(0) - 1).abs().max() < 0.01
    assert "own.scale.mean" in network.state_dict(), "kept in checkpoints"


def test_log_prob_takes_any_leading_axes(network):
    seen, _ = made_up(rows=2, steps=3)
    taken, log_prob = drawn(network, seen)
    with torch.no_grad():
        out, enemies, _ = network.remember(seen, torch.zeros(2, 24), torch.zeros(2, 3, dtype=torch.bool))
        assert torch.allclose(network.distribution(seen, out, enemies).log_prob(taken), log_prob, atol=1e-5)
