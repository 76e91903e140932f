"""Streams that come piece by piece become columns of one length."""

import numpy as np
import torch

from protege.games.tempest.training.columns import Columns, Moves
from protege.learn.pqn import PQN, PQNConfig, Rollout


def moves(first: int, count: int, *, terminated: int = -1, truncated: int = -1) -> Moves:
    """Numbered moves: what was seen is the number itself, the reward ten times that."""
    numbers = np.arange(first, first + count)
    return Moves(
        numbers[:, None].astype(np.float32), numbers, 10.0 * numbers.astype(np.float32), numbers == terminated,
        numbers == truncated, numbers + 100,
    )  # fmt: skip


def columns(horizon: int = 3) -> Columns:
    return Columns(horizon, 2, lambda seen, found: np.copyto(found, np.concatenate([seen, -seen], 1)))


def both(one: Moves, other: Moves) -> tuple[np.ndarray, Moves]:
    streams = np.repeat([4, 9], [len(one.actions), len(other.actions)])
    return streams, Moves._make([np.concatenate(pair) for pair in zip(one, other, strict=True)])


def rollout(made: Columns, least: int = 1) -> Rollout:
    found = made.rollout(least)
    assert found is not None
    return found


def test_columns_of_a_stream_follow_each_other_and_share_the_state_between_them():
    made = columns()
    for first in range(0, 8, 2):  # two moves at a time
        made.add(np.full(2, 4), moves(first, 2))
    found = rollout(made)
    assert found.actions.T.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found.features[:, :, 0].T.tolist() == [[0, 1, 2, 3], [3, 4, 5, 6]]
    assert found.features[3, 1].tolist() == [6, -6] and found.advice[0].tolist() == [100, 103]
    assert found.rewards.T.tolist() == [[0, 10, 20], [30, 40, 50]] and np.isnan(found.values).all()
    assert made.rollout(1) is None and made.pending[4].actions.tolist() == [6, 7]


def test_streams_are_kept_apart_and_lives_may_end_inside_a_column():
    made = columns()
    made.add(*both(moves(0, 3, terminated=1), moves(50, 2)))
    made.add(*both(moves(3, 1), moves(52, 3)))
    assert made.rollout(3) is None, "there are two"
    found = rollout(made, 2)
    assert found.actions.T.tolist() == [[0, 1, 2], [50, 51, 52]]
    assert found.terminated.T.tolist() == [[False, True, False], [False] * 3]


def test_nothing_is_carried_over_a_cut():
    made = columns()
    made.add(np.full(9, 4), moves(0, 9, truncated=1))  # 0 was too short; 2 to 5 and 5 to 8 are whole
    assert rollout(made).actions.T.tolist() == [[2, 3, 4], [5, 6, 7]]
    made = columns()
    made.add(np.full(7, 4), moves(0, 7, truncated=3))  # what was seen at the cut is where the first column ends
    assert rollout(made).actions.T.tolist() == [[0, 1, 2]] and made.pending[4].actions.tolist() == [4, 5, 6]
    made.forget([4])
    assert not made.pending


def test_values_that_nobody_asked_for_are_the_learners_own():
    torch.manual_seed(1)
    learner = PQN(torch.nn.Linear(2, 3), PQNConfig(minibatch=4))
    made = columns()
    made.add(np.full(8, 4), moves(0, 8)._replace(actions=np.arange(8) % 3, advice=np.zeros(8, np.int64)))
    found = rollout(made)
    found.values[0] = 7.0
    expected = learner.network(torch.from_numpy(found.features[1:])).max(2).values.detach().numpy()
    learner.update(found)
    assert (found.values[0] == 7.0).all() and np.allclose(found.values[1:], expected)
