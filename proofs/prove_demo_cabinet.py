"""Real MAME with the demo cabinet: what a pupil learns on it, beside its teachers on the cabinet's own games."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from proofs.commands import command, free_port, learning_curves
from proofs.row import Stopwatch, write_row
from protege.runs.run import list_runs, open_run

pytestmark = [pytest.mark.prove, pytest.mark.mame, pytest.mark.needs("mame")]

MINUTES = float(os.environ.get("PROTEGE_MINUTES", "60"))  # fewer to try it
GAMES = int(os.environ.get("PROTEGE_GAMES", "100"))  # of each player
CLIENTS = 2
CURVE = ("reward_100k", "training_level", "episode_length", "agreement")


def played(folder: Path, player: str) -> dict[str, Any]:
    """A player's games on the cabinet, by MAME clients; figures as `serve --no-train` tells them."""
    port = str(free_port())
    serve = [
        "serve",
        "--no-train",
        "--player",
        player,
        "--games",
        str(GAMES),
        "--port",
        port,
        "--no-dashboard",
        "--json",
    ]
    with command(folder, *serve, stdout=subprocess.PIPE) as server:
        assert server.stdout
        lines = [next(line for line in server.stdout if "bridge:" in line)]  # it listens
        address = f"127.0.0.1:{port}"
        with command(
            folder, "mame", "--demo", "--clients", str(CLIENTS), "--server", address, stdout=subprocess.DEVNULL
        ):
            lines += server.stdout
    found: dict[str, Any] = json.loads(lines[-1])
    print(json.dumps(found), flush=True)
    return found


def test_demo_cabinet(tmp_path):
    """`make prove demo_cabinet`; PROTEGE_MINUTES=3 PROTEGE_GAMES=4 to try it."""
    clock = Stopwatch()
    server = f"127.0.0.1:{free_port()}"
    words = ["mame", "--demo", "--serve", "--clients", str(CLIENTS), "--server", server]
    with command(tmp_path, *words) as training:
        until = time.monotonic() + 60 * MINUTES
        while time.monotonic() < until:
            assert training.poll() is None, "the training ended by itself"
            time.sleep(1)
    assert training.returncode == 0
    (run,) = list_runs(tmp_path)
    with open_run(run.name, tmp_path) as trained:
        pupil = played(tmp_path, str(trained.last))
    teachers = [played(tmp_path, name) for name in ("teacher", "teacher-full", "random")]
    row = {
        "command": f"protege {' '.join(words[:-2])} for {MINUTES:g} minutes, then protege serve --no-train --player P "
        f"--games {GAMES} beside protege mame --demo --clients {CLIENTS} (make prove demo_cabinet)",
        "seeds": "drawn by each client; the cabinet's noise depends on when it is read",
        "budget": f"{MINUTES:g} minutes of wall clock, start-up and compilation included; {CLIENTS} clients",
        **clock.spent(),
        "figures": [pupil | {"player": "the pupil as the training left it", "frames_learned": run.step}],
        "learning_curve": learning_curves(run.name, tmp_path, CURVE),
        "teacher": teachers,
    }
    print(write_row("demo-cabinet", row).read_text())
    assert pupil["score_mean_low"] > max(found["score_mean_high"] for found in teachers), "intervals apart"
