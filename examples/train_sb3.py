"""Trains stable-baselines3's PPO on Tempest for a minute and says what that was worth.

Scores are means over whole games that were not trained on: of random play, of the network before training, and after.
See README.md in this folder for how to install stable-baselines3 beside Protege.
"""

import argparse
import json
import time
from collections.abc import Callable

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

NAME = "protege.games.tempest.task:protege/Tempest-v0"
ENVIRONMENTS = 16
TEST_SEED = 1_000_000  # training seeds count up from --seed and do not get here


class StopAfter(BaseCallback):
    """Ends training when the time is up."""

    def __init__(self, seconds: float):
        super().__init__()
        self.end = time.monotonic() + seconds

    def _on_step(self) -> bool:
        return time.monotonic() < self.end


def mean_score(act: Callable[[np.ndarray], np.ndarray], games: int) -> float:
    """Play whole games, all at once, and take each one's score when it ends."""
    envs = gymnasium.make_vec(NAME, num_envs=games, max_frames=20_000)
    observations, _ = envs.reset(seed=TEST_SEED)
    scores = np.full(games, -1)
    while (scores < 0).any():
        observations, _, terminated, truncated, infos = envs.step(act(observations))
        first_end = (terminated | truncated) & (scores < 0)
        scores[first_end] = infos["score"][first_end]
    return float(scores.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to train")
    parser.add_argument("--games", type=int, default=40, help="games per score")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small to share

    # One life is one episode: the learner should mind every death, not only the last one.
    envs = make_vec_env(NAME, n_envs=ENVIRONMENTS, seed=chosen.seed, env_kwargs={"episode": "life"})
    model = PPO(
        "MlpPolicy", envs, n_steps=256, batch_size=1024, n_epochs=4, learning_rate=5e-4, ent_coef=0.01, gamma=0.98,
        policy_kwargs={"net_arch": [128, 128]}, seed=chosen.seed, device="cpu",
    )  # fmt: skip
    generator = np.random.default_rng(chosen.seed)
    random = mean_score(lambda seen: generator.integers(0, 44, len(seen)), chosen.games)
    before = mean_score(lambda seen: model.predict(seen)[0], chosen.games)
    started = time.monotonic()
    model.learn(total_timesteps=10**9, callback=StopAfter(chosen.seconds))
    seconds = time.monotonic() - started
    after = mean_score(lambda seen: model.predict(seen)[0], chosen.games)

    print(f"random play                  {random:8.0f} points a game")
    print(f"network before training      {before:8.0f}")
    print(f"after {seconds:3.0f} s, {model.num_timesteps:7d} frames {after:8.0f}")
    results = {
        "seconds": round(seconds, 1),
        "timesteps": model.num_timesteps,
        "updates": model._n_updates,
        "games": chosen.games,
        "score_random": random,
        "score_before": before,
        "score_after": after,
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
