"""Proofs about Rainbow: what its frames and 90 minutes are worth, and each of its parts; that it stays small."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from proofs.prove_tempest_learning import SEED, TEACHERS, Watch, measured, stronger, train_run
from proofs.row import machine, write_row
from protege.games.tempest.training.config import PRESETS
from protege.runs import checkpoints
from protege.runs.run import open_run

pytestmark = pytest.mark.prove

RAINBOW = ("--learner", "rainbow")


def learned(
    folder: Path, name: str, minutes: float, flags: tuple[str, ...], games: int, watch: Watch | None = None
) -> dict[str, Any]:
    spent = train_run(folder, name, "--minutes", f"{minutes:g}", "--seed", "1", *flags, watch=watch)
    return {"what": name, "flags": " ".join(flags), **spent, **measured(name, name, folder, games)}


def test_ninety_minutes(tmp_path):
    """The Rainbow pupil against both teachers, a thousand games each; and a process that stops growing."""
    before, sizes, name = machine(), list[tuple[float, float]](), "rainbow-90-minutes"

    def watch(process: psutil.Process) -> None:
        """Once a minute: how long the memory has been full, and megabytes of the process."""
        now = time.monotonic()
        if sizes and now - sizes[-1][0] < 60 or not (tmp_path / name).exists():
            return
        with open_run(name, tmp_path) as run:
            newest = run.metrics.latest().get("replay_size")
        if newest is not None and (newest.value or 0) >= PRESETS["laptop"].rainbow.replay.capacity - 100_000:
            sizes.append((now, process.memory_info().rss / 1e6))

    found = learned(tmp_path, name, 90, RAINBOW, 1000, watch)
    full_minutes = (sizes[-1][0] - sizes[0][0]) / 60
    early, late = (float(np.median([size for _, size in part])) for part in (sizes[:15], sizes[-15:]))
    found |= {"minutes_full": round(full_minutes), "megabytes": round(early), "megabytes_at_end": round(late)}
    teachers = [measured(name, name, None, 1000) for name in TEACHERS]
    row = {
        "command": "protege train tempest --learner rainbow --minutes 90 --seed 1, then protege eval tempest "
        f"--games 1000 --seed {SEED} (make prove ninety_minutes)",
        "seeds": f"training seed 1; 1,000 evaluation games of seed {SEED}",
        "budget": "90 minutes of wall clock, start-up, compilation and evaluations included",
        "machine": before,
        "config": str(PRESETS["laptop"].rainbow),
        "figures": [found | {"ratio": round(found["score_mean"] / stronger(teachers), 2)}],
        "teacher": teachers,
    }
    print(write_row("tempest-rainbow-ninety_minutes", row).read_text())
    assert found["score_mean_low"] > max(teacher["score_mean_high"] for teacher in teachers)
    assert full_minutes >= 60 and late < 1.02 * early + 20


# What is changed, and the flags that do it: parts taken away, added or set otherwise.
PARTS: dict[str, tuple[str, ...]] = {
    "as it is": (),
    "published network": ("--rainbow.network", "published", "--rainbow.widths", "384", "384"),
    "attention": ("--rainbow.network", "attention"),
    "all 44 moves apart": ("--rainbow.no-separate-heads",),
    "no mirror images": ("--rainbow.no-mirror",),
    "priorities": ("--rainbow.replay.priority-alpha", "0.7", "--rainbow.beta", "1"),
    "priorities, published beta": ("--rainbow.replay.priority-alpha", "0.7", "--rainbow.beta", "0.4"),
    "returns of one step": ("--rainbow.replay.n-step", "1"),
    "returns of five steps": ("--rainbow.replay.n-step", "5"),
    "returns of eight steps": ("--rainbow.replay.n-step", "8"),
    "returns of twelve steps": ("--rainbow.replay.n-step", "12"),
    "twelve steps, own moves only": ("--rainbow.replay.n-step", "12", "--rainbow.replay.cut-off-policy"),
    "a mean, no distribution": ("--rainbow.atoms", "2"),
    "no cloning": ("--rainbow.bc-weight", "0", "--rainbow.final-bc-weight", "0"),
    "no teacher at all": (
        "--rainbow.bc-weight", "0", "--rainbow.final-bc-weight", "0", "--rainbow.warm-frames", "0",
        "--rainbow.warm-updates", "0", "--rainbow.teacher-fraction", "0",
    ),
    "teacher lets go by result": ("--rainbow.teacher-by", "result"),
    "zap gate": ("--rainbow.zap-gate", "0.01"),
    "replay ratio 2": ("--rainbow.replay-ratio", "2"),
    "replay ratio 8": ("--rainbow.replay-ratio", "8"),
}  # fmt: skip
PART_FRAMES = 1_000_000


@pytest.mark.parametrize("part", PARTS)
def test_rainbow_parts(tmp_path, part):
    """Three seeds of a million frames, one core each, two at a time: about a quarter of an hour for a part."""
    before, seeds = machine(), (1, 2, 3)
    budget = ("--frames", f"{PART_FRAMES}", "--minutes", "0", "--threads", "1", "--eval-seconds", "600")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        trained = [
            pool.submit(train_run, tmp_path, f"seed-{seed}", *RAINBOW, *budget, "--seed", f"{seed}", *PARTS[part])
            for seed in seeds
        ]
    figures: list[dict[str, Any]] = [
        {"part": part, "training_seed": seed, **spent.result(), **measured(part, f"seed-{seed}", tmp_path, 200)}
        for seed, spent in zip(seeds, trained, strict=True)
    ]
    teachers = [measured(name, name, None, 200) for name in TEACHERS]
    row = {
        "command": f"protege train tempest {' '.join((*RAINBOW, *budget, *PARTS[part]))} --seed S, then protege eval "
        f"tempest --games 200 --seed {SEED} (make prove rainbow_parts)",
        "seeds": f"training seeds 1 to 3; 200 evaluation games of seed {SEED}",
        "budget": f"{PART_FRAMES:,} frames on one core",
        "machine": before,
        "config": str(PRESETS["laptop"].rainbow),
        "figures": figures,
        "score_median": float(np.median([found["score_mean"] for found in figures])),
        "teacher": teachers,
    }
    print(write_row(f"tempest-rainbow-part-{part.replace(',', '').replace(' ', '_')}", row).read_text())
    assert all(found["training_cpu_seconds"] > 0 for found in figures)


LOOKS = {"0.5M": 500_000, "3.5M": 3_500_000, "10M": 10_000_000}  # frames after which a pupil is measured
TIMES = {"0.5M": 1, "3.5M": 8, "10M": 20}  # the stronger teacher, at each


def keep_looks(run: Path) -> Watch:
    """Copies the newest checkpoint that has not passed a look yet, so that each look is at no more than its frames."""

    def watch(_: psutil.Process) -> None:
        newest = run / "checkpoints" / "last.safetensors"
        if not newest.exists():
            return
        copy = run / "look.safetensors"
        shutil.copyfile(newest, copy)
        step = checkpoints.load(copy).state["step"]
        for name, frames in LOOKS.items():
            if step <= frames:
                shutil.copyfile(copy, run / f"{name}.safetensors")

    return watch


@pytest.mark.parametrize("seed", (1, 2, 3))
def test_rainbow_by_frames(tmp_path, seed):
    """One training of each learner, measured on the way; an hour of two cores a seed. PROVE_KEEP keeps the weights."""
    before, folder = machine(), Path(os.environ.get("PROVE_KEEP", tmp_path))
    figures: list[dict[str, Any]] = []
    for learner in ("rainbow", "pqn"):
        name = f"by-frames-{learner}-{seed}"
        flags: tuple[str, ...] = (
            "--learner",
            learner,
            "--frames",
            f"{LOOKS['10M']}",
            "--minutes",
            "0",
            "--seed",
            f"{seed}",
        )
        flags += ("--eval-seconds", "300") if learner == "rainbow" else ()  # PQN lets go of its teacher by evaluations
        spent = train_run(folder, name, *flags, "--autosave-seconds", "3", watch=keep_looks(folder / name))
        for look in LOOKS:
            weights = folder / name / f"{look}.safetensors"
            found = measured(f"{learner}, {look} frames", str(weights), None, 500)
            figures.append({"frames": checkpoints.load(weights).state["step"], **spent, **found})
    teachers = [measured(name, name, None, 500) for name in TEACHERS]
    for found in figures:
        found["ratio"] = round(found["score_mean"] / stronger(teachers), 2)
    row = {
        "command": f"protege train tempest --learner L --frames 10000000 --minutes 0 --seed {seed} (rainbow with "
        "--eval-seconds 300), checkpoints at the frames named, then protege eval tempest --games 500 "
        f"--seed {SEED} (make prove rainbow_by_frames)",
        "seeds": f"training seed {seed}; 500 evaluation games of seed {SEED}",
        "budget": "10,000,000 frames of one training per learner; seconds are those of the whole training",
        "machine": before,
        "config": str(PRESETS["laptop"].rainbow),
        "figures": figures,
        "teacher": teachers,
    }
    print(write_row(f"tempest-rainbow-by_frames-seed-{seed}", row).read_text())
    rainbow, pqn = figures[: len(LOOKS)], figures[len(LOOKS) :]
    assert [found["ratio"] >= times for found, times in zip(rainbow, TIMES.values())] == [True] * len(LOOKS)
    assert all(ours["score_mean"] >= 2 * theirs["score_mean"] for ours, theirs in zip(rainbow, pqn))
