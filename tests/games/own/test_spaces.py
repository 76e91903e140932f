"""Spaces as arrays: names, pictures, actions out and back, and what is refused."""

import numpy as np
import pytest
from gymnasium import spaces

from protege.games.own.world.spaces import UnsupportedSpace, moves_of, sight_of


def test_numbers_of_a_dictionary_have_names_and_choices_become_flags():
    space = spaces.Dict(
        {
            "edge": spaces.Discrete(3, start=-1),
            "at": spaces.Box(-1, 1, (2,)),
            "both": spaces.Tuple([spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(1)]),
        }
    )
    sight = sight_of(space, "x")
    # Gymnasium sorts the keys of a dictionary.
    assert sight.names == (
        "at[0]", "at[1]", "both.0[0]=0", "both.0[0]=1", "both.0[1]=0", "both.0[1]=1", "both.1[0]",
        "edge=-1", "edge=0", "edge=1",
    )  # fmt: skip
    seen = sight.encode({"edge": 0, "at": np.array([0.5, -0.5]), "both": (np.array([1, 0]), np.array([1]))})
    assert seen.tolist() == [0.5, -0.5, 0, 1, 1, 0, 1, 0, 1, 0]
    assert sight.shape == (10,) and not sight.is_picture


@pytest.mark.parametrize(
    "value, said",
    [
        ({"a": 1}, "keys ['edge'] was expected, and ['a'] came"),
        ({"edge": 3}, "observation.edge in Discrete(3) was expected, and 3 came"),
        (7, "and int came"),
    ],
)
def test_an_observation_that_is_not_of_its_space_is_told(value, said):
    with pytest.raises(ValueError) as problem:
        sight_of(spaces.Dict({"edge": spaces.Discrete(3)}), "x").encode(value)
    assert said in str(problem.value)


@pytest.mark.parametrize(
    "space, picture",
    [
        (spaces.Box(0, 255, (84, 80, 3), np.uint8), (3, 84, 80)),
        (spaces.Box(0, 255, (4, 84, 80), np.uint8), (4, 84, 80)),
        (spaces.Box(0, 1, (10, 10, 7), np.bool_), (7, 10, 10)),  # type: ignore[arg-type]
        (spaces.Box(0, 255, (20, 30), np.uint8), (1, 20, 30)),
        (spaces.Box(0.0, 1.0, (3, 3, 2)), (2, 3, 3)),
    ],
)
def test_pictures_are_found_with_their_channels(space, picture):
    sight = sight_of(space, "x")
    assert sight.is_picture and sight.picture == picture
    rows = sight.pixels(np.stack([space.low, space.high]).astype(sight.dtype))
    assert rows.shape == (2, np.prod(picture)) and rows.min() == 0.0 and rows.max() == 1.0
    moved = np.moveaxis(space.sample(), -1, 0) if sight.channels_last else space.sample()
    given = np.moveaxis(moved, 0, -1) if sight.channels_last else moved
    expected = (np.asarray(moved, np.float64).ravel() - sight.low) / (sight.high - sight.low)
    assert np.allclose(sight.pixels(given[None])[0], expected)


def test_actions_go_out_and_come_back():
    one = moves_of(spaces.Discrete(3, start=5), "x")
    assert one.to_env(np.array([0, 2])).tolist() == [5, 7] and one.from_env([7, 5], 2).tolist() == [2, 0]
    several = moves_of(spaces.MultiDiscrete([2, 3]), "x")
    assert several.from_env([[1, 2], [0, 0]], 2).tolist() == [[1, 2], [0, 0]] and several.count == 2
    buttons = moves_of(spaces.MultiBinary(3), "x")
    assert buttons.sizes == (2, 2, 2) and buttons.to_env(np.array([[1, 0, 1]])).dtype == np.int8
    numbers = moves_of(spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32)), "x")
    assert numbers.random(np.array([[0.0, 0.5]])).tolist() == [[-1.0, 2.0]]
    assert numbers.from_env([[0.5, 4.0]], 1).tolist() == [[0.5, 4.0]]


@pytest.mark.parametrize(
    "space, action",
    [
        (spaces.Discrete(3), 3),
        (spaces.Discrete(3), -1),
        (spaces.Discrete(3, start=2), 1),
        (spaces.Discrete(3), 0.5),
        (spaces.Discrete(3), None),
        (spaces.Discrete(3), [1, 1]),
        (spaces.MultiDiscrete([2, 3]), [1, 3]),
        (spaces.MultiDiscrete([2, 3]), [1]),
        (spaces.Box(-1, 1, (2,)), [0.0, 1.5]),
        (spaces.Box(-1, 1, (2,)), [0.0, float("nan")]),
        (spaces.Box(-1, 1, (2,)), "left"),
    ],
)
def test_illegal_actions_are_told(space, action):
    with pytest.raises(ValueError, match="expected"):
        moves_of(space, "x").from_env(action, 1)


@pytest.mark.parametrize(
    "find, space",
    [
        (sight_of, spaces.Text(5)),
        (sight_of, spaces.Discrete(5000)),
        (sight_of, spaces.Dict({"a": spaces.Box(0, 255, (20, 20, 3), np.uint8), "b": spaces.Discrete(2)})),
        (sight_of, spaces.Box(-np.inf, np.inf, (20, 20, 3))),
        (sight_of, spaces.Box(0, 255, (40, 50, 60), np.uint8)),
        (sight_of, spaces.Dict({})),
        (moves_of, spaces.Text(5)),
        (moves_of, spaces.Box(-np.inf, np.inf, (2,))),
        (moves_of, spaces.Box(0, 5, (2,), np.int64)),
        (moves_of, spaces.Tuple([spaces.Discrete(2)])),
    ],
)
def test_spaces_that_are_not_supported_are_refused_by_name(find, space):
    with pytest.raises(UnsupportedSpace, match="^gym:Mine-v0: "):
        find(space, "gym:Mine-v0")
