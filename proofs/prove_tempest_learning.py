"""Proofs about learning Tempest: what ten minutes, an hour and the champions are worth, measured on held-out seeds."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from proofs.row import ROOT, Stopwatch, machine, write_row
from protege.games.tempest.agents.players import CHAMPIONS, evaluate, find_player
from protege.games.tempest.training.config import TempestConfig

pytestmark = pytest.mark.prove

TEACHERS = ("teacher", "teacher-full")
SEED = 7  # of the games that are measured on: no exam and no example uses it
LEVELS = (1, 9, 17, 33, 65)
Watch = Callable[[psutil.Process], None]  # looks at a training once a second


def train_run(folder: Path, name: str, *flags: str, watch: Watch | None = None) -> dict[str, float]:
    """Train with the command a user would type; wall clock and processor time of the whole command."""
    words = ["train", "tempest", "--run", name, "--runs", str(folder), "--compare", "0", "--no-dashboard", *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    process = psutil.Popen([sys.executable, "-m", "protege.cli", *words], env=environment)
    used = 0.0
    while process.poll() is None:
        with_children = [process, *process.children(recursive=True)]
        used = max(used, sum(sum(one.cpu_times()[:2]) for one in with_children))
        if watch is not None:
            watch(process)
        time.sleep(1)
    assert process.returncode == 0
    return {"training_seconds": round(time.perf_counter() - began, 1), "training_cpu_seconds": round(used, 1)}


def measured(name: str, player: str, folder: Path | None, games: int, level: int = 1) -> dict[str, Any]:
    found = evaluate(name, player=find_player(player, folder), games=games, seed=SEED, level=level, threads=2)
    print(json.dumps(found), flush=True)
    return found


def stronger(teachers: list[dict[str, Any]]) -> float:
    return max(float(found["score_mean"]) for found in teachers)


def learning_proof(tmp_path: Path, minutes: float, seeds: tuple[int, ...], times: float, row_name: str) -> None:
    before = machine()
    teachers = [measured(name, name, None, 500) for name in TEACHERS]
    runs = []
    for seed in seeds:
        spent = train_run(tmp_path, f"seed-{seed}", "--minutes", str(minutes), "--seed", str(seed))
        pupil = measured(f"{minutes:g} minutes, seed {seed}", f"seed-{seed}", tmp_path, 500)
        ratios = {
            key: round(pupil[f"score_mean{part}"] / stronger(teachers), 2)
            for key, part in (("ratio", ""), ("ratio_low", "_low"), ("ratio_high", "_high"))
        }
        runs.append({"training_seed": seed, **spent, **ratios, **pupil})
    row = {
        "command": f"protege train tempest --minutes {minutes:g} --seed S, then protege eval tempest --games 500 "
        f"--seed {SEED} (make prove {row_name})",
        "seeds": f"training seeds {', '.join(map(str, seeds))}; 500 evaluation games of seed {SEED}",
        "budget": f"{minutes:g} minutes of wall clock, start-up, compilation and exams included",
        "machine": before,
        "figures": runs,
        "teacher": teachers,
    }
    print(write_row(f"tempest-{row_name}", row).read_text())
    assert all(run["ratio_low"] >= times for run in runs)


def test_ten_minutes(tmp_path):
    learning_proof(tmp_path, 10, (1, 2, 3), 5.0, "ten_minutes")


def test_sixty_minutes(tmp_path):
    learning_proof(tmp_path, 60, (1,), 10.0, "sixty_minutes")


@pytest.mark.parametrize("name", CHAMPIONS)
def test_champion(name):
    clock = Stopwatch()
    games = {level: 200 if level == 1 else 100 for level in LEVELS}
    figures = [measured(name, name, None, games[level], level) for level in LEVELS]
    teachers = [measured(teacher, teacher, None, games[level], level) for teacher in TEACHERS for level in LEVELS]
    row = {
        "command": f"protege eval tempest --player {name} --games N --seed {SEED} --level L (make prove {name})",
        "seeds": f"games of seed {SEED}: {', '.join(f'{count} from level {level}' for level, count in games.items())}",
        **clock.spent(),
        "figures": figures,
        "teacher": teachers,
    }
    print(write_row(f"tempest-{name}", row).read_text())
    assert figures[0]["score_mean_low"] >= 20 * stronger(teachers[:: len(LEVELS)])


ALTERNATIVES = {
    "as it is": (),
    "another seed": ("--seed", "2"),
    "no teacher": ("--distillation", "0"),
    "lambda 0.65": ("--pqn.trace", "0.65"),
    "256 x 256": ("--widths", "256", "256"),
}


def test_alternatives(tmp_path):
    """Score against minutes for each change alone, 4 minutes each: half an hour in all."""
    before = machine()
    from protege.runs.run import open_run

    rows = []
    for number, (what, flags) in enumerate(ALTERNATIVES.items()):
        seed = () if "--seed" in flags else ("--seed", "1")
        spent = train_run(tmp_path, f"alternative-{number}", "--minutes", "4", *seed, *flags)
        with open_run(f"alternative-{number}", tmp_path) as run:
            curve = run.metrics.series("eval_score", most_points=1000)
            lives = run.metrics.series("eval_points_per_life", most_points=1000)
        first = min(curve.times)
        found = measured(what, f"alternative-{number}", tmp_path, 200)
        exams = [
            {"minutes": round((when - first) / 60 + 0.5, 1), "frames": step, "score": score, "points_per_life": life}
            for when, step, score, life in zip(curve.times, curve.steps, curve.mean, lives.mean, strict=True)
        ]
        rows.append({"change": what, "flags": " ".join(flags), **spent, **found, "exams": exams})
    teachers = [measured(name, name, None, 200) for name in TEACHERS]
    row = {
        "command": "protege train tempest --minutes 4 FLAGS, then protege eval (make prove alternatives)",
        "seeds": f"training seed 1 unless said; 200 evaluation games of seed {SEED}",
        "budget": "4 minutes of wall clock each",
        "machine": before,
        "config": str(TempestConfig()),
        "figures": rows,
        "teacher": teachers,
    }
    print(write_row("tempest-alternatives", row).read_text())
    assert all(found["exams"] for found in rows)
    assert rows[0]["score_mean_low"] > stronger(teachers), "four minutes as they are take the pupil past its teacher"
