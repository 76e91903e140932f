"""What a player can do: 44 joint actions, each two buttons and one of 11 spinner levels, and how they are numbered.

A command is (fire, zap, spinner), the spinner a signed number of steps; a joint action is the number of a command whose
spinner is one of the levels: 11 x (2 x fire + zap) + the level's place.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.rules.sim import Commands
from protege.kernels import kernel

Ints = npt.NDArray[np.int64]

SPINNER_LEVELS: Final = np.array([0, 12, 9, 6, 3, 1, -1, -3, -6, -9, -12], np.int8)
FULL_TURN: Final = 12  # every command of the teacher lies nearest to this level
BUTTON_PAIRS: Final = 4
RANDOM_ZAPS: Final = 0.05  # of random actions: there are two zaps in a level

# (fire, zap, spinner) of the joint actions.
ACTIONS: Final = np.array(
    [(fire, zap, spinner) for fire in (0, 1) for zap in (0, 1) for spinner in SPINNER_LEVELS.tolist()], np.int8
)
# What each joint action is in a mirror: the same buttons, the spinner turned the other way.
MIRRORED: Final = [
    len(SPINNER_LEVELS) * buttons + SPINNER_LEVELS.tolist().index(-spinner)
    for buttons in range(BUTTON_PAIRS)
    for spinner in SPINNER_LEVELS.tolist()
]
# What else than the whole action a pupil and its teacher can agree in: a label for each action.
FACTORS: Final = {
    "buttons": [action // len(SPINNER_LEVELS) for action in range(len(ACTIONS))],
    "direction": [int(np.sign(spinner)) for _, _, spinner in ACTIONS.tolist()],
}

# Spinner commands by lane distance 0..15.
_TURNS: Final = np.array([0] + [round(min(0.9, 0.3 + 0.05 * d) * 32) for d in range(1, 16)], np.int64)
# Joint actions by fire, zap and the spinner's byte.
_JOINT: Final = np.full((2, 2, 256), -1, np.int64)
_JOINT[ACTIONS[:, 0], ACTIONS[:, 1], ACTIONS[:, 2].astype(np.int64) & 255] = np.arange(len(ACTIONS))
# The level nearest to each of the spinner's bytes.
_NEAREST: Final = SPINNER_LEVELS[np.abs(np.arange(256).astype(np.int8)[:, None] - SPINNER_LEVELS.astype(int)).argmin(1)]


@kernel
def turn_by(lanes: int) -> int:
    """The spinner command (up to 29) that turns over so many lanes; positive commands turn towards lower ones."""
    return -_TURNS[lanes] if lanes > 0 else _TURNS[-lanes]


@kernel
def quantised(spinner: int) -> int:
    """A teacher's spinner command as the nearest of the 11 levels, which is a full turn or none."""
    return FULL_TURN if spinner > 0 else (-FULL_TURN if spinner < 0 else 0)


@kernel
def joint_action(fire: int, zap: int, spinner: int) -> int:
    """The joint action of a command, -1 where its spinner is none of the 11 levels."""
    return _JOINT[fire, zap, spinner & 255]


def joint_actions(commands: Commands) -> Ints:
    """Commands (games, 3) as joint actions, -1 where the spinner is none of the 11 levels."""
    return _JOINT[commands[:, 0], commands[:, 1], commands[:, 2].astype(np.int64) & 255]


def nearest_actions(commands: Commands) -> Ints:
    """The joint actions that come nearest to commands (games, 3), whatever turns they make."""
    levels = _NEAREST[commands[:, 2].astype(np.int64) & 255].astype(np.int64)
    return _JOINT[(commands[:, 0] != 0).astype(np.int64), (commands[:, 1] != 0).astype(np.int64), levels & 255]


def zaps(actions: Ints) -> npt.NDArray[np.bool_]:
    return actions // len(SPINNER_LEVELS) % 2 == 1


def without_zap(actions: Ints) -> Ints:
    """The same joint actions, all of which zap, with that button released."""
    return actions - len(SPINNER_LEVELS)


def random_actions(random: np.random.Generator, count: int) -> Ints:
    """Joint actions at random, few of which zap."""
    fire = random.random(count) < 0.5
    zap = random.random(count) < RANDOM_ZAPS
    return (2 * fire + zap) * len(SPINNER_LEVELS) + random.integers(0, len(SPINNER_LEVELS), count)


def to_commands(actions: npt.ArrayLike, games: int) -> Commands:
    """Joint actions (games,) or commands (games, 3) as commands; anything else is refused."""
    given = np.asarray(actions)
    if given.shape not in ((games,), (games, 3)) or given.dtype.kind not in "iu":
        raise ProtegeError(
            f"actions must be whole numbers of shape ({games},) for joint actions 0..{len(ACTIONS) - 1} or "
            f"({games}, 3) for fire, zap, spinner; got {given.dtype} of shape {given.shape}"
        )
    if given.ndim == 2:
        if given.dtype != np.int8 and games and (given.min() < -128 or given.max() > 127):
            raise ProtegeError(f"commands are signed bytes, -128..127; got {int(given.min())}..{int(given.max())}")
        return given.astype(np.int8, copy=False)
    if games and (given.min() < 0 or given.max() >= len(ACTIONS)):
        raise ProtegeError(f"joint actions are 0..{len(ACTIONS) - 1}; got {int(given.min())}..{int(given.max())}")
    return ACTIONS[given]
