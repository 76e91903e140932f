"""Settings of a training that is over in seconds."""

from protege.games.echelon.agents.network import NetworkConfig
from protege.games.echelon.training.config import EchelonConfig
from protege.learn.ppo import PPOConfig

TINY = EchelonConfig(
    minutes=0.0,
    agent_steps=16 * 8 * 6,  # six rollouts, while all are alive
    stages=("O3",),
    agents=16,
    horizon=8,
    chunk=4,
    network=NetworkConfig(16, 8, 4),
    ppo=PPOConfig(minibatches=2),
    imitation=0.5,
    exam_matches=2,
    exam_every=16 * 8 * 3,
    deterministic=True,
)
