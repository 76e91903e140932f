"""Settings of runs from before: read under their present names, and trainings go on with them."""

import json

import msgspec

from protege.games.echelon.training.config import EchelonConfig
from protege.games.tempest.training.config import TempestConfig
from protege.runs.renamed import renamed
from protege.runs.run import create_run, open_run

TEMPEST = {
    "learner": "rainbow",
    "pqn": {"games": 64, "discount": 0.9, "trace": 0.7, "gradient_limit": 3.0, "averaging": 0.2},
    "rainbow": {
        "games": 8,
        "learner": {
            "target_every": 7,
            "gradient_limit": 2.0,
            "cloning": 0.5,
            "final_cloning": 0.1,
            "cloning_frames": 11,
            "cloning_fall": 12,
            "samples_per_frame": 1.5,
            "averaging": 0.3,
        },
        "replay": {"capacity": 100, "steps": 4, "discount": 0.8, "exponent": 0.6},
    },
}
ECHELON = {
    "ppo": {"discount": 0.9, "trace": 0.8, "gradient_limit": 1.0, "kl_limit": 0.5, "parts": 3},
    "rewards": {"discount": 0.9},
}


def test_a_run_saved_with_old_names_is_read_with_the_present_ones(tmp_path):
    with create_run("tempest", "rainbow", {}, [], name="old", folder=tmp_path) as run:
        pass
    file = run.path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"config": TEMPEST}))
    c = msgspec.convert(open_run("old", tmp_path).info().config, TempestConfig)
    assert (c.pqn.games, c.pqn.gamma, c.pqn.lambda_, c.pqn.max_grad_norm, c.pqn.ema) == (64, 0.9, 0.7, 3.0, 0.2)
    learner, replay = c.rainbow.learner, c.rainbow.replay
    assert (learner.target_sync_every, learner.max_grad_norm, learner.replay_ratio, learner.ema) == (7, 2.0, 1.5, 0.3)
    assert (learner.bc_weight, learner.final_bc_weight, learner.bc_frames, learner.bc_fall) == (0.5, 0.1, 11, 12)
    assert (replay.capacity, replay.n_step, replay.gamma, replay.priority_alpha) == (100, 4, 0.8, 0.6)
    assert c.learner == "rainbow" and c.rainbow.games == 8


def test_settings_of_recurrent_trainings_are_read_too():
    c = msgspec.convert(renamed(ECHELON), EchelonConfig)
    assert (c.ppo.gamma, c.ppo.gae_lambda, c.ppo.max_grad_norm) == (0.9, 0.8, 1.0)
    assert (c.ppo.target_kl, c.ppo.microbatches, c.rewards.gamma) == (0.5, 3, 0.9)


def test_present_names_stay_as_they_are():
    present = {"pqn": {"gamma": 0.5, "lambda_": 0.1}, "steps": 3, "discount": 1}
    assert renamed(present) == present
