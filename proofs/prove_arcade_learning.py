"""What a pupil learns behind the bridge, from simulated cabinets, beside the teachers on the simulator."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proofs.commands import command, free_port, learning_curves
from proofs.prove_tempest_learning import SEED, TEACHERS, measured, stronger
from proofs.row import Stopwatch, write_row
from protege.games.tempest.agents.players import evaluate, find_player
from protege.runs.run import open_run

pytestmark = pytest.mark.prove

CLIENTS = 8
CURVE = (
    "eval_score", "eval_points_per_life", "eval_points_per_life_low", "eval_points_per_life_high",
    "start_points_per_life", "updates_per_s", "frames_per_s", "replay_ratio", "held_ms", "latency_ms",
)  # fmt: skip


class Form(NamedTuple):
    """One way to learn from cabinets."""

    minutes: float
    cores: int  # for server and cabinets together
    times: float  # the stronger teacher's score that is to be reached
    flags: tuple[str, ...] = ()


FORMS = {
    "sixty_minutes": Form(60, 2, 8.0),
    "thirty_minutes_one_core": Form(30, 1, 5.0),
    "from_champion": Form(60, 2, 50.0, ("--learner", "pqn", "--start-from", "champion")),
}


@pytest.mark.parametrize("form", FORMS)
def test_through_the_bridge(tmp_path, form):
    """From scratch or from the champion; PROVE_MINUTES=2 to try it, PROVE_KEEP keeps the weights."""
    clock, (minutes, cores, times, flags) = Stopwatch(), FORMS[form]
    minutes = float(os.environ.get("PROVE_MINUTES", minutes))
    folder, port, all_cores = Path(os.environ.get("PROVE_KEEP", tmp_path)), str(free_port()), os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(all_cores)[:cores]))
    try:
        spent = _trained(folder, form, minutes, port, flags)
    finally:
        os.sched_setaffinity(0, all_cores)
    pupil = measured(f"{form} through the bridge", form, folder, 200)
    teachers = [measured(name, name, None, 200) for name in TEACHERS]
    others = [evaluate("champion", player=find_player("champion"), games=200, seed=SEED, threads=2)] if flags else []
    ratio = round(pupil["score_mean"] / stronger(teachers), 2)
    row = {
        "command": f"protege serve --minutes {minutes:g} {' '.join(flags)} beside protege cabinets --clients {CLIENTS}"
        f", then protege eval tempest --games 200 --seed {SEED} (make prove through_the_bridge)",
        "seeds": f"training seed 1, cabinets of seed 1; 200 evaluation games of seed {SEED}",
        "budget": f"{minutes:g} minutes of wall clock; cores for server and cabinets together: {cores}",
        **clock.spent(),
        "figures": [spent | pupil | {"ratio": ratio}, *others],
        "learning_curve": learning_curves(form, folder, CURVE),
        "teacher": teachers,
    }
    print(write_row(f"tempest-bridge-{form}", row).read_text())
    assert ratio >= times


def _trained(folder: Path, name: str, minutes: float, port: str, flags: tuple[str, ...]) -> dict[str, Any]:
    """Serve the cabinets until the budget is used up; what that took."""
    serve = ["serve", "--run", name, "--minutes", f"{minutes:g}", "--port", port, "--no-dashboard", *flags]
    cabinets = ["cabinets", "--clients", str(CLIENTS), "--port", port]
    with command(folder, *serve) as server, command(folder, *cabinets, stdout=subprocess.DEVNULL):
        until = time.monotonic() + 60 * minutes + 600
        while server.poll() is None:
            assert time.monotonic() < until, "the server goes on beyond its budget"
            time.sleep(1)
    assert server.returncode == 0
    with open_run(name, folder) as run:
        newest = run.metrics.latest()
        spent = {key: newest[key].value for key in ("cpu_minutes", "updates_per_s")}
        return {"frames": newest["frames_per_s"].step, **spent}
