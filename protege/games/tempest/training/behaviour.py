"""Who advises a pupil, and who chooses each move of one that learns from a memory: teacher, chance or network."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from protege.games.tempest.agents.players import Player, find_player
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
from protege.games.tempest.training.config import SCRIPTED, RainbowTraining
from protege.learn.rainbow import QNetwork
from protege.learn.replay import Actor


class Choices(NamedTuple):
    """The moves of some games."""

    actions: Ints  # joint actions
    actors: Any  # who chose them
    penalties: Any = 0.0  # rewards for choosing them
    values: Any = np.nan  # what the pupil expects of its best moves, if it was asked


class Teacher:
    """Whose advice a pupil learns from: the scripted teacher's, which frames bring along, or any other player's."""

    def __init__(self, name: str, runs: Path | None = None):
        self.name = name
        self.player: Player | None = None if name in SCRIPTED else find_player(name, runs)

    def advise(self, frames: Frames) -> Ints:
        """What it would do in each of these frames: joint actions."""
        if self.player is None:
            return joint_actions(frames.advice)
        return nearest_actions(to_commands(self.player.act(frames), len(frames.score)))


class Behaviour:
    """Chooses moves: the teacher's, at random, or the network's best; and keeps back zaps that the gate stops."""

    def __init__(self, config: RainbowTraining, random: np.random.Generator):
        self.config, self.random = config, random

    def decide(self, frames: Frames, advice: Ints, network: QNetwork, *, epsilon: float, teacher: float) -> Choices:
        """What to do in these frames, in which the teacher would take the actions `advice`."""
        c, count = self.config, len(frames.observation)
        zoom = decode(frames.observation, GAME_STATE) == ram.ZOOM
        chance = self.random.random((3, count))
        by_teacher = chance[0] < teacher * np.where(zoom, c.zoom_teacher, 1.0)
        at_random = ~by_teacher & (chance[1] < epsilon * np.where(zoom, c.zoom_epsilon, 1.0))
        actions = advice.copy()
        actions[at_random] = random_actions(self.random, int(at_random.sum()))
        own = np.flatnonzero(~by_teacher & ~at_random)
        if len(own):
            with torch.inference_mode():
                observations = torch.from_numpy(frames.observation[own]).to(network.support.device)
                actions[own] = network.expected(network(observations)).argmax(1).cpu().numpy()
        stopped = ~by_teacher & zaps(actions) & (chance[2] >= c.zap_gate)
        actions[stopped] = without_zap(actions[stopped])
        actors = np.where(by_teacher, Actor.TEACHER, np.where(at_random, Actor.RANDOM, Actor.PUPIL)).astype(np.int8)
        return Choices(actions, actors, np.where(stopped, np.float32(c.zap_penalty), np.float32(0)))
