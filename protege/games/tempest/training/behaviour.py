"""Who advises a pupil, and who chooses each move of one that learns from a memory: teacher, chance or network."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from protege.games.tempest.agents.greedy import Greedy
from protege.games.tempest.agents.players import SCRIPTED, Player, find_player
from protege.games.tempest.arcade.streams import Decisions
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import (
    Ints,
    joint_actions,
    nearest_actions,
    random_actions,
    to_commands,
    without_zap,
    zaps,
)
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import GAME_STATE, decode
from protege.learn.replay import Actor

Act = Callable[[Frames], Any]  # joint actions (games,) of a player


class Exploration(NamedTuple):
    """How often a move is somebody else's than the pupil's; as it is here, never."""

    epsilon: float = 0.0  # probability of a random move
    teacher: float = 0.0  # probability of the teacher's move
    zoom_epsilon: float = 1.0  # factors on these in a zoom
    zoom_teacher: float = 1.0
    zap_gate: float = 1.0  # probability that a zap which is not the teacher's is let through
    zap_penalty: float = 0.0  # reward for one that is not


class Teacher:
    """Whose advice a pupil learns from: the scripted teacher's, which frames bring along, or any other player's."""

    def __init__(self, name: str, runs: Path | None = None, player: Player | None = None):
        """`player` is the one of this name, where somebody has it already."""
        self.name, self.runs, self.player = name, runs, player
        if player is None and name not in SCRIPTED:
            self.player = find_player(name, runs)

    def __reduce__(self) -> Any:
        """To another process go compiled players alone; others are made there again."""
        return Teacher, (self.name, self.runs, self.player if isinstance(self.player, Greedy) else None)

    def advise(self, frames: Frames) -> Ints:
        """What it would do in each of these frames: joint actions."""
        if self.player is None:
            return joint_actions(frames.advice)
        return nearest_actions(to_commands(self.player.act(frames), len(frames.score)))

    act = advise


SCRIPTED_TEACHER: Final = Teacher("teacher")


class Behaviour:
    """Chooses moves: the teacher's, at random, or the pupil's; and keeps back zaps that the gate stops."""

    def __init__(self, random: np.random.Generator):
        self.random = random

    def decide(
        self, frames: Frames, act: Act, explore: Exploration, advice: Ints | None = None, greedy: Ints | None = None
    ) -> Decisions:
        """What to do in these frames.

        `advice` is what the teacher would do, where that is not the scripted one; `greedy` what `act` would answer,
        where that is known already.
        """
        count = len(frames.observation)
        zoom = decode(frames.observation, GAME_STATE) == ram.ZOOM
        chance = self.random.random((3, count))
        by_teacher = chance[0] < explore.teacher * np.where(zoom, explore.zoom_teacher, 1.0)
        at_random = ~by_teacher & (chance[1] < explore.epsilon * np.where(zoom, explore.zoom_epsilon, 1.0))
        actions = joint_actions(frames.advice) if advice is None else advice.copy()
        actions[at_random] = random_actions(self.random, int(at_random.sum()))
        own = np.flatnonzero(~by_teacher & ~at_random)
        if greedy is not None:
            actions[own] = greedy[own]
        elif len(own) == count:
            actions = np.array(act(frames), np.int64)
        elif len(own):
            actions[own] = act(Frames._make([part[own] for part in frames]))
        stopped = ~by_teacher & zaps(actions) & (chance[2] >= explore.zap_gate)
        actions[stopped] = without_zap(actions[stopped])
        actors = np.where(by_teacher, Actor.TEACHER, np.where(at_random, Actor.RANDOM, Actor.PUPIL)).astype(np.int8)
        return Decisions(actions, actors, np.where(stopped, np.float32(explore.zap_penalty), np.float32(0)))
