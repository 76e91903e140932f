"""The simulator as a source of experience, and PQN at work on it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protege.games.tempest.rules import ram, sim
from protege.games.tempest.task.actions import ACTIONS, joint_actions, random_actions
from protege.games.tempest.training.config import PQNTraining, TempestConfig
from protege.games.tempest.training.pqn import PQNSession
from protege.games.tempest.training.simulator import Simulator, StartConfig
from protege.games.tempest.training.sources import SimulatorSource
from protege.games.tempest.training.trainer import session as session_of
from protege.train.session import Result
from tests.train.trainings import Alone

TINY = TempestConfig(
    pqn=PQNTraining(games=16, horizon=8, minibatch=32, widths=(16,), epsilon_frames=1), seed=3, deterministic=True
)


def session(epsilon: float = 1.0, seed: int = 3, **starting: Any) -> PQNSession:
    config = replace(TINY, seed=seed, starts=StartConfig(**starting), pqn=replace(TINY.pqn, epsilon=epsilon))
    made = session_of(config, Alone(Path("unused")))
    assert isinstance(made, PQNSession)
    made.follow()
    made.source.begin(resumed=True)  # without the teacher's first moves
    return made


def simulator(made: PQNSession) -> Simulator:
    assert isinstance(made.source, SimulatorSource)
    return made.source.simulator


def test_joint_actions_undo_the_action_table():
    assert joint_actions(ACTIONS).tolist() == list(range(44))


def test_one_random_move_in_twenty_zaps_and_every_second_fires():
    moves = random_actions(np.random.default_rng(1), 20_000)
    assert set(moves.tolist()) == set(range(44))
    assert abs((moves // 11 % 2).mean() - 0.05) < 0.01 and abs((moves // 22).mean() - 0.5) < 0.02


def test_the_warm_up_brings_games_out_of_step_and_ends_none():
    made = Simulator(16, StartConfig(), seed=3, shaping=0.0)
    made.warm_up()
    assert len(set(made.frames.frame.tolist())) > 12 and not made.frames.over.any()


def test_rewards_are_points_and_a_death_costs_ten():
    made = session(situation_fraction=0.0, restart_fraction=0.0)
    room, deaths = made.room(), 0
    content = room.rollout
    for _ in range(120):
        made.collect(room)
        deaths += int(content.terminated.sum())
        assert (content.rewards[content.terminated] == -10.0).all()
        assert (content.rewards[~content.terminated] >= 0.0).all() and content.rewards.max() <= 10.0
    assert deaths > 10


def test_shaping_adds_its_share_of_the_lane_safety_reward():
    made = Simulator(4, StartConfig(), seed=3, shaping=0.5)
    frames = made.step(np.zeros(4, np.int64))
    points = np.clip(frames.objective / 100, -10, 10)
    assert np.allclose(made.rewards(), points + 0.5 * (frames.reward - points)) and (frames.subjective != 0).any()


def test_lost_lives_are_episodes_and_leave_situations_to_start_from():
    made = session(situation_fraction=1.0)
    content = made.room()
    episodes = [episode for _ in range(150) for episode in made.collect(content).episodes]
    assert len(episodes) > 10 and all(episode.frames > 0 for episode in episodes)
    games = simulator(made)
    assert games.pool and all(ram.in_control(row) for row in games.pool)
    assert not any(sim.is_over(row) for row in games.games.rows)


def test_no_two_games_of_a_run_have_the_same_seed():
    made = Simulator(16, StartConfig(), seed=3, shaping=0.0)
    rows = np.concatenate([made.games.rows, made._new_games(50)])
    assert len({row[ram.GAME_STREAM : ram.GAME_STREAM + 8].tobytes() for row in rows}) == 66


def test_starts_go_half_as_high_again_as_the_pupil_comes_and_never_down():
    made = Simulator(2, StartConfig(top_level=20), seed=3, shaping=0.0)
    for reached, top in ((5.0, 20), (20.1, 31), (10.0, 31), (90.0, 99)):
        made.raise_top_level(reached)
        assert made.top_level == top


def test_games_go_on_exactly_from_their_state():
    torch.manual_seed(2)
    one, two = session(epsilon=0.5), session(epsilon=0.5, seed=99)
    content, other = one.room(), two.room()
    for _ in range(20):
        state = one.collect(content).after
    two.network.load_state_dict(one.network.state_dict())
    simulator(two).seed = simulator(one).seed
    simulator(two).restore(state)
    for _ in range(5):
        one.collect(content)
        two.collect(other)
        for name, array in vars(content.rollout).items():
            assert np.array_equal(array, getattr(other.rollout, name)), name


def test_the_teachers_weight_falls_with_the_pupils_score_and_never_rises():
    made = session()
    for score, weight in ((5_000.0, 0.75), (15_000.0, 0.25), (10_000.0, 0.25), (40_000.0, 0.0)):
        made.teacher, snapshot = 20_000.0, made.snapshot()
        snapshot.found = {"score_mean_low": score, "level_mean": 3.0}
        made.evaluated(snapshot, Result({}, (0.0,), ""), best=False)
        assert made.scheduled().teacher == weight


def test_without_learning_it_plays_on_and_keeps_its_weights():
    made = session()
    before = [weights.clone() for weights in made.network.parameters()]
    made.controls.learning = False
    assert made.update(made.collect(made.room())) == {}
    assert made.frames == 16 * 8 and made.learner.updates == 0
    assert all(torch.equal(old, new) for old, new in zip(before, made.network.parameters(), strict=True))
