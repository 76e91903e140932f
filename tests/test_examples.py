"""The examples run as their README says, in an environment of their own that is made once and kept."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from examples.setup_sb3 import make

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.network
def test_another_librarys_agent_trains_on_the_environment():
    python = make()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    words = [str(python), str(ROOT / "examples" / "train_sb3.py"), "--seconds", "8", "--games", "10"]
    done = subprocess.run(words, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["timesteps"] > 0 and results["updates"] > 0 and results["seconds"] >= 8
    assert results["games"] == 10
    assert results["score_random"] > 1000, "random play makes about 5,000 points a game"
    assert results["score_before"] > 0 and results["score_after"] > 0
