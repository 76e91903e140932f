"""The task for one mech, trained by sb3-contrib: prints agent-steps a second, given seconds and the network's width.

Runs in that library's environment (examples/setup_sb3.py), which lacks most of what Protege needs: imports little.
"""

import sys
import time
from functools import partial
from importlib import import_module
from typing import Any, Final

import gymnasium
import numpy as np
import torch

from protege.games.echelon.task.env import Arena

ENVIRONMENTS: Final = 64  # one mech each
HORIZON: Final = 64  # decisions of each between two updates, as many as ours
BATCHES: Final = 8  # updates in an epoch, as many as ours


class Single(gymnasium.Env[Any, Any]):
    """One mech on its way to the zone."""

    def __init__(self, seed: int) -> None:
        self.arena = Arena(1, "1v0", size=(40, 40), length=120, seed=seed)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._observe().shape)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (4,))
        self.actions = self.arena.battles.no_actions()

    def _observe(self) -> Any:
        observation = self.arena.observation
        return np.concatenate([observation.own[0, 0], observation.map[0, 0].ravel() / 4]).astype(np.float32)

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        return self._observe(), {}  # an arena begins the next battle by itself

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.move[0, 0] = action
        frames = self.arena.step(self.actions)
        ended = bool(frames.terminated[0, 0]), bool(frames.truncated[0, 0])
        return self._observe(), float(frames.reward[0, 0]), *ended, {}


def recurrent_ppo(seconds: float, width: int) -> float:
    """Steps a second of RecurrentPPO."""
    # By name: these two are no dependency of Protege's.
    library, task = import_module("sb3_contrib"), import_module("stable_baselines3.common.vec_env")
    torch.set_num_threads(2)
    rollout = ENVIRONMENTS * HORIZON
    model = library.RecurrentPPO(
        "MlpLstmPolicy", task.DummyVecEnv([partial(Single, number) for number in range(ENVIRONMENTS)]),
        n_steps=HORIZON, batch_size=rollout // BATCHES, n_epochs=2,
        policy_kwargs={"lstm_hidden_size": width, "net_arch": [width]},
    )  # fmt: skip
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        model.learn(rollout, reset_num_timesteps=False)  # one rollout, and the updates from it
    return float(model.num_timesteps / (time.perf_counter() - began))


if __name__ == "__main__":
    print(recurrent_ppo(float(sys.argv[1]), int(sys.argv[2])))
