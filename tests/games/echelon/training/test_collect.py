"""Battles that a pupil practises in: who leads whom, what is stored, and batches that go on where they were saved."""

from dataclasses import replace
from math import pi

import numpy as np
import pytest
import torch

from protege.games.echelon.agents.match import Idle
from protege.games.echelon.agents.network import NetworkConfig, PilotNetwork
from protege.games.echelon.agents.pupil import Pupil, advice_of, look, write_actions
from protege.games.echelon.rules.battle import BY_TIME
from protege.games.echelon.rules.sim import Battles
from protege.games.echelon.task import features as at
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.training.collect import BattleBatch, BattleSource, maps_of
from protege.games.echelon.training.config import (
    PRESETS,
    SELF,
    BadTraining,
    EchelonConfig,
    Stage,
    check,
    find_stage,
    stages_of,
)
from protege.games.echelon.training.evaluation import setting_of
from protege.games.echelon.world.maps import WALL_HEIGHT, open_field, over_and_over
from protege.games.echelon.world.mechs import BLUE, HEAVY, MEDIUM, NOBODY, RED, REINFORCED, SCOUT
from protege.learn.ppo import PPOConfig
from tests.games.echelon.rules.fields import act, field, named, placed

TINY = EchelonConfig(
    agents=16, horizon=8, chunk=4, network=NetworkConfig(16, 8, 4), ppo=PPOConfig(minibatches=2), imitation=1.0,
    advisor="hard",
)  # fmt: skip
DUEL = Stage("2v2", 40, 24, (("medium", 0.5), ("easy", 0.25), (SELF, 0.25)))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(1)
    return PilotNetwork(TINY.network)


def practice_of(network, stage=DUEL, config=TINY, threads=1):
    return BattleSource(stage, 0, config, network, threads)


def test_places_are_shared_out_between_the_pupil_itself_and_its_opponents(network):
    source = practice_of(network, config=replace(TINY, agents=40))
    assert sum(len(batch.arena) for batch in source.batches) == 16, "2.5 learning mechs in a battle, on average"
    for batch in source.batches:
        assert batch.alone == 2 and batch.groups == 2 * 2 + 6
        assert (batch.learns.sum(1) == [4, 4, 2, 2, 2, 2, 2, 2]).all()
        assert set(batch.opponent[2:]) <= {0, 1} and (batch.opponent[:2] == NOBODY).all()
        everybody = sum((mask.astype(int) for mask in batch.masks), batch.learns.astype(int))
        assert (everybody == 1).all(), "each mech has one player"


def test_sides_are_drawn_for_each_battle_and_the_critic_sees_the_own_side_first(network):
    source = practice_of(network, replace(DUEL, length=6), replace(TINY, horizon=40, chunk=8))
    sides = []
    for batch in source.batches:
        batch.play(network, source.rooms[0] if batch is source.batches[0] else source.rooms[1])
        sides += list(batch.team[batch.alone * 2 :])
        shared = batch._shared(batch.arena.observation)
        assert (shared["mechs"][:, :2, at.MECH_OWN] == 1).all() and (shared["mechs"][:, 2:, at.MECH_OWN] == 0).all()
    assert {BLUE, RED} == {int(side) for side in sides}


def test_a_rollout_holds_what_was_seen_done_and_advised(network):
    source = practice_of(network)
    first = source.batches[0]
    seen = look(first.arena.observation, first.rows, talk=False)
    source.play(0.0)
    room = source.rooms[0]
    assert torch.equal(room.observations["own"][0, :, :, 0].flatten(0, 1), seen["own"])
    assert room.starts[0, :, 0].all() and not room.starts[0, :, 1].any()
    assert room.acted[0].all() and (room.numbers["log_prob"][0] != 0).all()
    assert (room.states[0] == 0).all() and (room.states[1] != 0).any()
    assert room.advice["move"].abs().max() <= np.arctanh(0.931)
    assert (source.rollout.roles == torch.tensor([3, 0])).all(), "a heavy and a scout"


def test_what_is_stored_is_evaluated_as_it_was_played(network):
    source = practice_of(network)
    source.play(0.0)
    rollout = source.rollout
    with torch.no_grad():
        found = network.evaluate_actions(
            {name: array.flatten(0, 2) for name, array in rollout.observations.items()},
            {name: array.flatten(0, 2) for name, array in rollout.actions.items()},
            rollout.states.flatten(0, 2),
            rollout.starts[:, :, None].expand(-1, -1, 2, -1).flatten(0, 2),
            {name: array.flatten(0, 2) for name, array in rollout.advice.items()},
        )
    acted = rollout.acted.flatten(0, 2)
    assert torch.allclose(found.log_prob[acted], rollout.numbers["log_prob"].flatten(0, 2)[acted], atol=1e-4)
    assert found.advice_nll[acted].max() < 1e4, "all advice is legal"


def test_battles_end_together_and_the_next_begins_with_a_blank_state(network):
    source = practice_of(network, replace(DUEL, length=6))
    source.play(0.0)
    rollout = source.rollout
    ended = (rollout.terminated | rollout.truncated).permute(1, 0, 2).flatten(1)  # (groups, time)
    starts = rollout.starts.permute(1, 0, 2).flatten(1)
    assert ended[:, 5].all() and not ended[:, :5].any(), "six decisions a battle"
    assert torch.equal(starts[:, 1:], ended[:, :-1])
    assert [len(batch.episodes) for batch in source.batches] == [6, 6] or all(
        batch.episodes for batch in source.batches
    )


def test_a_winner_at_the_end_of_time_is_final_and_only_a_draw_is_cut(network):
    batch = BattleBatch(replace(DUEL, length=3, opponents=(("idle", 1.0),)), TINY, 4, 0, None)
    source = practice_of(network, replace(DUEL, length=3, opponents=(("idle", 1.0),)))
    room = source.rooms[0]
    assert batch.groups == len(source.batches[0].battle)
    source.batches[0].play(network, room)
    cut, decided = room.truncated[0, :, 2], room.terminated[0, :, 2]
    assert (cut ^ decided).all(), "every battle ended at its third decision, one way or the other"
    assert (room.numbers["cut_values"][0, :, :, 2][~cut] == 0).all()
    assert (room.numbers["cut_values"][0, :, :, 2][cut] != 0).all()
    assert source.batches[0].arena.battles.records["ending"].max() <= BY_TIME


def test_threads_change_nothing(network):
    rollouts = []
    for threads in (1, 2):
        source = practice_of(network, threads=threads)
        source.play(0.0)
        rollouts.append(source.rollout)
    for name in ("log_prob", "reward"):
        assert torch.equal(*(rollout.numbers[name] for rollout in rollouts)), name


def test_a_crew_goes_on_where_it_was_saved(network):
    one, other = practice_of(network), practice_of(network)
    one.play(0.0)
    kept = [batch.save() for batch in one.batches]
    one.play(0.0)
    expected = {name: array.clone() for name, array in one.rollout.observations.items()}
    for batch, saved in zip(other.batches, kept):
        batch.load(saved)
    other.play(0.0)
    for name, array in expected.items():
        assert torch.equal(array, other.rollout.observations[name]), name
    assert torch.equal(one.rollout.numbers["reward"], other.rollout.numbers["reward"])


def test_another_pupil_may_be_the_opponent_and_is_remembered_too(network, tmp_path):
    from protege.games.echelon.agents.pupil import KIND, about
    from protege.games.echelon.task.env import TASK_VERSION
    from protege.learn.state import named_weights
    from protege.runs import checkpoints

    path = tmp_path / "other.safetensors"
    layout = practice_of(network).batches[0].arena.layout
    checkpoints.save(
        path, named_weights(network, "network"), about(TINY.network, layout), kind=KIND, task_version=TASK_VERSION
    )
    stage = replace(DUEL, opponents=((str(path), 1.0),))
    one, other = practice_of(network, stage), practice_of(network, stage)
    one.play(0.0)
    kept = [batch.save() for batch in one.batches]
    assert any(name.startswith("state") for name in kept[0]["minds"])
    one.play(0.0)
    for batch, saved in zip(other.batches, kept):
        batch.load(saved)
    other.play(0.0)
    assert torch.equal(one.rollout.numbers["reward"], other.rollout.numbers["reward"])


def test_rewards_follow_the_schedule_of_the_training(network):
    source = practice_of(network)
    shares = []
    for progress in (0.0, 0.25, 1.0):
        source.play(progress)
        shares.append(float(source.batches[0].arena.weights["own_fraction"][0]))
    assert shares == [1.0, 0.75, 0.5]


def test_the_pupil_alone_cannot_lead_two_sides_that_differ(network):
    with pytest.raises(BadTraining, match="sides of roster 1v0 differ"):
        practice_of(network, Stage("1v0", 40, 20, ((SELF, 1.0),)))


# --- the pupil as a player -------------------------------------------------------------------------------------------


def test_a_pupil_in_a_match_does_what_it_does_in_training(network):
    source = practice_of(network, replace(DUEL, opponents=(("idle", 1.0),)))
    batch = source.batches[0]
    pupil, actions = Pupil(network, sampled=False), batch.arena.battles.no_actions()
    state = torch.zeros(batch.groups * batch.size, network.state_size)
    for decision in range(3):
        starts = torch.full((len(state),), decision == 0)
        seen = look(batch.arena.observation, batch.rows, talk=False)
        taken, _, state = network.act(seen, state, starts, None, sampled=False)
        expected = batch.arena.battles.no_actions()
        write_actions(taken, batch.arena.observation, batch.rows, expected)
        pupil.act(batch.arena.battles, batch.learns, actions)
        for name in ("move", "buttons", "ewar", "target"):
            assert np.array_equal(getattr(actions, name)[batch.rows], getattr(expected, name)[batch.rows]), name
        batch.arena.step(actions)


def test_advice_leads_back_to_the_actions_it_came_from(network):
    batch = practice_of(network).batches[0]
    battles, teacher = batch.arena.battles, Teacher("hard")
    given, written = battles.no_actions(), battles.no_actions()
    for _ in range(20):
        teacher.act(battles, np.ones_like(batch.learns), given)
        batch.arena.step(given)
    teacher.act(battles, batch.learns, given)
    write_actions(
        advice_of(given, batch.arena.observation, batch.rows, False), batch.arena.observation, batch.rows, written
    )
    assert np.allclose(given.move[batch.rows].clip(-0.93, 0.93), written.move[batch.rows], atol=1e-5)
    assert np.array_equal(given.buttons[batch.rows] != 0, written.buttons[batch.rows] != 0)
    listed = (batch.arena.observation.enemy_index[batch.rows] == given.target[batch.rows][:, None]).any(1)
    assert np.array_equal(np.where(listed, given.target[batch.rows], NOBODY), written.target[batch.rows])


def test_idle_does_nothing(network):
    batch = practice_of(network).batches[0]
    actions = batch.arena.battles.no_actions()
    for rows in actions:
        rows[...] = 1
    Idle().act(batch.arena.battles, batch.learns, actions)
    assert (actions.move[batch.learns] == 0).all() and (actions.target[batch.learns] == NOBODY).all()
    assert (actions.move[~batch.learns] == 1).all()


# --- maps ------------------------------------------------------------------------------------------------------------


def test_an_open_field_lets_everybody_stand_and_walk_to_the_zone():
    for wall in (False, True):
        world = open_field([1, 2, 3], (40, 40), "2v2", wall=wall)
        battles = Battles(world, find_roster_of("2v2"), length=5)
        assert len(battles.records) == 3
        assert (world.distance[:, :, 6, 6] < 60000).all(), "there is a way"
        assert (world.blocked[0, 20, 20] != 0) == wall


def find_roster_of(name):
    from protege.games.echelon.world.mechs import find_roster

    return find_roster(name)


def test_a_wall_hides_the_teams_from_each_other():
    world = open_field(list(range(8)), (40, 40), "2v2", wall=True)
    battles = Battles(world, find_roster_of("2v2"), length=5)
    assert (battles.mechs["sees"] == [0b0010, 0b0001, 0b1000, 0b0100]).all(), "only its own partner"


def test_a_missile_clears_the_wall_where_a_partner_paints_the_target():
    def hits(height):
        battles = field(
            placed(BLUE, HEAVY, 14, 20), placed(BLUE, SCOUT, 24, 20), placed(RED, MEDIUM, 30, 20, yaw=pi),
            build=lambda material: material[:height, 6:34, 19:21].fill(REINFORCED),
        )  # fmt: skip
        act(battles, {1: {"primary": True}})
        happened = act(battles, {0: {"secondary": True}}, decisions=16)
        assert named(happened, "missile_launch")[0]["amount"] == 1, "by paint"
        return named(happened, "projectile_hit")

    assert [hit["whom"] for hit in hits(WALL_HEIGHT)] == [2]
    assert not hits(WALL_HEIGHT + 4)


def test_maps_over_and_over_are_the_same_maps_with_other_chances():
    maps = open_field([1, 2], (40, 40), "1v1")
    made = over_and_over(maps, [10, 11, 12], (40, 40), "1v1")
    assert np.array_equal(made.spawn, maps.spawn[[0, 1, 0]]) and made.seed.tolist() == [10, 11, 12]


def test_stages_on_few_maps_train_and_are_evaluated_on_the_same(network):
    stage = replace(DUEL, maps=1)
    source = practice_of(network, stage)
    maps = maps_of(stage, TINY.seed)
    assert maps is not None
    for batch in source.batches:
        assert (batch.arena.battles.world.spawn == maps.spawn[0]).all()
    evaluated = setting_of(stage, source.maps).maps([5, 6], (40, 40), "2v2")
    assert (evaluated.spawn == maps.spawn[0]).all()


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deterministic": True}, "budget in agent-steps"),
        ({"deterministic": True, "agent_steps": 1, "device": "cuda"}, "leave out --device cuda"),
        ({"minutes": 0.0}, "--imitation falls .* add --minutes 60 or --agent-steps"),
        ({"minutes": 0.0, "imitation": 0.0, "stages": ("O1", "O2")}, "--stages end by fractions of a budget"),
        ({"horizon": 10}, "multiple of 4"),
        ({"ppo": PPOConfig(gamma=0.9)}, "discount alike"),
        ({"ppo": PPOConfig(prediction=0.1)}, "go together"),
        ({"stages": ("O8",)}, "no stage is called 'O8'"),
        ({"opponents": ("hard=no",)}, "NAME or NAME=WEIGHT"),
        ({"eval_matches": 3}, "both sides"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(change, message):
    with pytest.raises(BadTraining, match=message):
        check(replace(TINY, **change))


@pytest.mark.parametrize("config", PRESETS.values(), ids=PRESETS)
def test_every_preset_has_a_budget_that_its_schedules_go_by(config):
    check(config)
    assert config.minutes > 0 or config.agent_steps > 0


def test_opponents_may_be_chosen_for_all_stages():
    config = replace(TINY, stages=("O3", "squad"), opponents=("hard", "self=0.5"))
    assert [stage.opponents for stage in stages_of(config)] == [(("hard", 1.0), ("self", 0.5))] * 2
    assert find_stage("O3").opponents == (("medium", 1.0),)
