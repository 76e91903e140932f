"""Who chooses each move of a pupil that learns from a memory: teacher, chance or network."""

import numpy as np
import torch

from protege.games.tempest.arcade.streams import Decisions
from protege.games.tempest.rules import ram
from protege.games.tempest.task.actions import joint_actions, random_actions, without_zap, zaps
from protege.games.tempest.task.env import Frames
from protege.games.tempest.task.observation import GAME_STATE, decode
from protege.games.tempest.training.config import RainbowTraining
from protege.learn.rainbow import QNetwork
from protege.learn.replay import Actor


class Behaviour:
    """Chooses moves: the teacher's, at random, or the network's best; and keeps back zaps that the gate stops."""

    def __init__(self, config: RainbowTraining, random: np.random.Generator):
        self.config, self.random = config, random

    def decide(self, frames: Frames, network: QNetwork, *, epsilon: float, teacher: float) -> Decisions:
        """What to do in these frames."""
        c, count = self.config, len(frames.observation)
        zoom = decode(frames.observation, GAME_STATE) == ram.ZOOM
        chance = self.random.random((3, count))
        by_teacher = chance[0] < teacher * np.where(zoom, c.zoom_teacher, 1.0)
        at_random = ~by_teacher & (chance[1] < epsilon * np.where(zoom, c.zoom_epsilon, 1.0))
        actions = joint_actions(frames.advice)
        actions[at_random] = random_actions(self.random, int(at_random.sum()))
        own = np.flatnonzero(~by_teacher & ~at_random)
        if len(own):
            with torch.inference_mode():
                observations = torch.from_numpy(frames.observation[own]).to(network.support.device)
                actions[own] = network.expected(network(observations)).argmax(1).cpu().numpy()
        stopped = ~by_teacher & zaps(actions) & (chance[2] >= c.zap_gate)
        actions[stopped] = without_zap(actions[stopped])
        actors = np.where(by_teacher, Actor.TEACHER, np.where(at_random, Actor.RANDOM, Actor.PUPIL)).astype(np.int8)
        return Decisions(actions, actors, np.where(stopped, np.float32(c.zap_penalty), np.float32(0)))
