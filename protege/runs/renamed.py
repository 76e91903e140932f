"""Settings that have changed their names: a run that was saved with the old ones is read with the new ones."""

from collections.abc import Mapping
from typing import Any, Final

# By the group of settings that they are in.
RENAMED: Final = {
    "pqn": {"discount": "gamma", "trace": "lambda_", "gradient_limit": "max_grad_norm", "averaging": "ema"},
    "ppo": {
        "discount": "gamma",
        "trace": "gae_lambda",
        "gradient_limit": "max_grad_norm",
        "kl_limit": "target_kl",
        "parts": "microbatches",
    },
    "learner": {
        "target_every": "target_sync_every",
        "gradient_limit": "max_grad_norm",
        "cloning": "bc_weight",
        "final_cloning": "final_bc_weight",
        "cloning_frames": "bc_frames",
        "cloning_fall": "bc_fall",
        "samples_per_frame": "replay_ratio",
        "averaging": "ema",
    },
    "replay": {"steps": "n_step", "discount": "gamma", "exponent": "priority_alpha"},
    "rewards": {"discount": "gamma"},
}


def renamed(config: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """Stored settings, groups inside included, under their present names."""
    names = RENAMED.get(group, {})
    return {
        names.get(name, name): renamed(value, name) if isinstance(value, Mapping) else value
        for name, value in config.items()
    }
