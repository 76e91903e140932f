"""Proofs about learning Echelon: stages of growing difficulty from scratch, and what the champion is worth."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from proofs.row import ROOT, Stopwatch, machine, write_row
from protege.games.echelon.agents.match import Match, checkpoint_of, evaluate, find_player, play
from protege.games.echelon.agents.pupil import Pupil, load_network
from protege.games.echelon.recordings.recording import Recording
from protege.games.echelon.rules.events import KILL, MISSILE_LAUNCH
from protege.games.echelon.training.collect import maps_of
from protege.games.echelon.training.config import find_stage
from protege.games.echelon.training.evaluation import evaluate as evaluate_pupil
from protege.games.echelon.training.evaluation import setting_of
from protege.games.echelon.world.mechs import BLUE, MISSILE, TICK_S, WEAPONS
from protege.runs.run import open_run
from protege.seeds import EVALUATION, seed_of

pytestmark = pytest.mark.prove

SEED = 7  # of the battles that are measured on: no evaluation uses it
MATCHES = 200
# Small stages from nothing, without a teacher: few battles, so that there are many updates.
ALONE = (
    "--imitation 0 --agents 128 --horizon 32 --ppo.minibatches 4 --ppo.epochs 4 --ppo.final-learning-rate 1e-4 "
    "--ppo.entropy 0.02 --ppo.final-entropy 0 --ppo.kl-limit 0.05"
).split()
OFTEN = "--eval-matches 200 --eval-seconds 20".split()  # battles of few are soon over
NEARLY_ALWAYS = "--eval-matches 400 --eval-seconds 40 --until 0.985".split()  # 399 of 400
# Training seeds, minutes on two cores at most, flags besides, and the least that the lower end of the interval may be.
STAGES: dict[str, tuple[tuple[int, ...], float, list[str], float]] = {
    "O1": ((1, 2, 3), 5.0, [*ALONE, *NEARLY_ALWAYS], 0.97),
    "O2": ((1, 2, 3), 10.0, [*ALONE, *NEARLY_ALWAYS], 0.97),
    "O3": ((1, 2, 3), 20.0, [*ALONE, *OFTEN, "--until", "0.93"], 0.90),
    "O4": ((1,), 16.0, ["--eval-matches", "100", "--imitation-fraction", "0.4"], 0.50),
    "O5": ((1,), 30.0, ["--eval-matches", "100", "--imitation-fraction", "0.1", "--until", "0.92"], 0.90),
    "O6": ((1,), 45.0, ["--eval-matches", "100", "--imitation-fraction", "0.07", "--until", "0.92"], 0.90),
    "O7": ((1,), 25.0, ["--eval-matches", "100", "--imitation-fraction", "0.3", "--until", "0.85"], 0.75),
}


def train_run(folder: Path, name: str, *flags: str) -> dict[str, float]:
    """Train with the command a user would type; wall clock and processor time of the whole command."""
    words = ["train", "echelon", "--run", name, "--runs", str(folder), "--no-dashboard", *flags]
    began, used = time.perf_counter(), 0.0
    process = psutil.Popen([sys.executable, "-m", "protege.cli", *words], env={**os.environ, "PYTHONPATH": str(ROOT)})
    while process.poll() is None:
        used = max(used, sum(process.cpu_times()[:2]))
        time.sleep(1)
    assert process.returncode == 0
    return {"training_seconds": round(time.perf_counter() - began, 1), "training_cpu_seconds": round(used, 1)}


def stage_proof(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """Train a stage with each of its seeds, evaluate each pupil, and leave a row behind."""
    seeds, minutes, flags, least = STAGES[name]
    stage, before, runs = find_stage(name), machine(), []
    for seed in seeds:
        run = f"{name}-{seed}"
        spent = train_run(tmp_path, run, "--stages", name, "--minutes", str(minutes), "--seed", str(seed), *flags)
        path = checkpoint_of(run, tmp_path)
        assert path is not None
        found: dict[str, Any] = {"training_seed": seed, **spent}
        for kind, sampled in (("likeliest", False), ("sampled", True)):
            result = evaluate_pupil(
                Pupil(load_network(path), sampled=sampled), stage, stage.evaluated_by[0], maps=maps_of(stage, seed),
                matches=MATCHES, seed=SEED, threads=2,
            )  # fmt: skip
            found |= {f"{kind}_{key}": result[key] for key in ("success", "success_low", "success_high", "length_mean")}
        if name == "O4":
            found |= {
                f"indirect_missile_kills_in_wins_against_{red}": indirect_share(path, red) for red in stage.evaluated_by
            }
        if name == "O7":
            unseen = evaluate_pupil(
                Pupil(load_network(path)), stage, stage.evaluated_by[0], matches=100, seed=SEED, threads=2
            )
            found |= {
                key.replace("success", "unseen"): unseen[key] for key in ("success", "success_low", "success_high")
            }
            found["gap"] = found["sampled_success"] - unseen["success"]
        runs.append(found)
    row = {
        "command": f"protege train echelon --stages {name} --minutes {minutes:g} {' '.join(flags)}".strip()
        + f" --seed S (make prove echelon_{name})",
        "seeds": f"training seeds {', '.join(map(str, seeds))}; {MATCHES} evaluation battles of seed {SEED}",
        "budget": f"{minutes:g} minutes of wall clock at most, start-up, compilation and evaluations included",
        "machine": before,
        "figures": runs,
    }
    print(write_row(f"echelon-{name}", row).read_text())
    for found in runs:
        assert max(found["likeliest_success_low"], found["sampled_success_low"]) >= least, found
    return runs


def indirect_kills(events: Any) -> Any:
    """Which events are kills by a missile that was launched at the victim because somebody else had painted it."""
    flight = round(WEAPONS[MISSILE].reach / WEAPONS[MISSILE].speed / TICK_S)  # ticks, at most
    launches = events[(events["kind"] == MISSILE_LAUNCH) & (events["amount"] > 0)]

    def launched(kill: Any) -> bool:
        since = kill["tick"] - launches["tick"]
        same = (launches["who"] == kill["who"]) & (launches["whom"] == kill["whom"])
        return bool((same & (since >= 0) & (since <= flight)).any())

    killed = (events["kind"] == KILL) & (events["weapon"] == MISSILE)
    return np.array([bool(of_missile) and launched(event) for of_missile, event in zip(killed, events)], np.bool_)


def indirect_share(path: Path, red: str, battles: int = 100) -> float:
    """Of wins on the walled field, the share with a kill by missile, launched at what somebody else had painted."""
    stage, wins = find_stage("O4"), []

    def look(_: int, made: bytes) -> None:
        recording = Recording(made)
        if recording.header["result"]["winner"] == BLUE:
            events = recording.everything()[0]["events"]
            blue = np.array([mech["team"] for mech in recording.header["mechs"]])[events["who"]] == BLUE
            wins.append(bool((blue & indirect_kills(events)).any()))

    matches = [Match(seed_of(EVALUATION, SEED, index)) for index in range(battles)]
    play(Pupil(load_network(path)), find_player(red), matches, setting_of(stage, maps_of(stage, 1)), recorded=look)
    return float(np.mean(wins)) if wins else 0.0


def test_echelon_O1(tmp_path):
    """One mech, no enemy: 99 % are in the zone within 1.5 times the time that the shortest way takes."""
    stage_proof(tmp_path, "O1")


def test_echelon_O2(tmp_path):
    """A duel with an opponent that stands still: 99 % are won by a kill within 20 s."""
    stage_proof(tmp_path, "O2")


def test_echelon_O3(tmp_path):
    """A duel with `medium`: above 90 %."""
    stage_proof(tmp_path, "O3")


def test_echelon_O4(tmp_path):
    """A heavy and a scout with a wall between the teams: most wins come with missiles at targets the other painted."""
    runs = stage_proof(tmp_path, "O4")
    assert all(run["indirect_missile_kills_in_wins_against_idle"] > 0.5 for run in runs)


def test_echelon_O4_moving(tmp_path):
    """The same pair, trained on against two that move and shoot at random: most wins come with such missiles too."""
    before, stage = machine(), find_stage("O4")
    (_, minutes, flags, _), going_on = STAGES["O4"], "--minutes 24 --imitation 0 --ppo.learning-rate 5e-4"
    met = "--opponents random=0.85 idle=0.15 --eval-matches 100"
    first = train_run(tmp_path, "still", "--stages", "O4", "--minutes", f"{minutes:g}", "--seed", "1", *flags)
    on = [*going_on.split(), "--seed", "1", "--start-from", "still", *met.split()]
    second = train_run(tmp_path, "moving", "--stages", "O4", *on)
    path = checkpoint_of("moving", tmp_path)
    assert path is not None
    found: dict[str, Any] = {"training": [first, second]}
    for red in ("random", "idle", "hard"):
        result = evaluate_pupil(
            Pupil(load_network(path)), stage, red, maps=maps_of(stage, 1), matches=MATCHES, seed=SEED, threads=2
        )
        found[red] = {key: result[key] for key in ("success", "success_low", "success_high")}
        found[red]["indirect_missile_kills_in_wins"] = indirect_share(path, red, MATCHES)
    row = {
        "command": f"make prove echelon_O4_moving: stage O4, then --start-from it {going_on} {met}",
        "seeds": f"training seed 1; {MATCHES} evaluation battles of seed {SEED} against each, sampled actions",
        "budget": f"{minutes:g} and 24 minutes of wall clock, start-up, compilation and evaluations included",
        "machine": before,
        "figures": found,
    }
    print(write_row("echelon-O4-moving", row).read_text())
    assert found["random"]["indirect_missile_kills_in_wins"] > 0.5


def test_echelon_O5(tmp_path):
    """Five against five on one map: above 90 %."""
    stage_proof(tmp_path, "O5")


def test_echelon_O6(tmp_path):
    """Ten against ten on one map, from both sides: above 90 %."""
    stage_proof(tmp_path, "O6")


def test_echelon_O7(tmp_path):
    """Ten against ten on 100 maps: above 75 % on maps it has never seen, at most 10 points less than on its own."""
    runs = stage_proof(tmp_path, "O7")
    assert all(run["unseen"] > 0.75 and run["gap"] < 0.1 for run in runs)


def test_echelon_champion():
    """The champion on unseen maps, each from both sides: at least 90 % against `hard`, 75 % against `expert`."""
    clock = Stopwatch()
    found = {red: evaluate("champion", red, matches=MATCHES, seed=SEED, threads=2) for red in ("hard", "expert")}
    row = {
        "command": "protege eval echelon --blue champion --red hard|expert --seed 7 (make prove echelon_champion)",
        "seeds": f"{MATCHES // 2} evaluation maps of seed {SEED}, each from both sides",
        **clock.spent(),
        "figures": found,
    }
    print(write_row("echelon-champion", row).read_text())
    assert found["hard"]["blue_win_rate"] >= 0.90
    assert found["expert"]["blue_win_rate"] >= 0.75


def test_echelon_training_health(tmp_path):
    """A hundred updates and more of a 10v10 training: gradients, policy change and critic stay within bounds."""
    before = machine()
    spent = train_run(tmp_path, "health", "--minutes", "10", "--seed", "1")
    with open_run("health", tmp_path) as run:
        series = {
            name: np.array([value for value in run.metrics.series(name, most_points=10**6).mean if value is not None])
            for name in ("gradient_norm", "gradient_clipped", "kl", "clip_fraction", "explained_variance", "saturation",
                         "return_std", "advantage_std", "value_std", "return_max")
        }  # fmt: skip
        lost = run.metrics.not_finite()
    half = {name: values[len(values) // 2 :] for name, values in series.items()}
    found = {name: round(float(np.median(values)), 4) for name, values in half.items()}
    found |= {f"{name}_first_half": round(float(np.median(v[: len(v) // 2])), 4) for name, v in series.items()}
    row = {
        "command": "protege train echelon --minutes 10 --seed 1 (make prove echelon_training_health)",
        "seeds": "training seed 1", "budget": "10 minutes", "machine": before, "figures": found | spent,
    }  # fmt: skip
    print(write_row("echelon-training-health", row).read_text())
    assert lost == {}
    assert 0.1 <= found["gradient_norm"] <= 2.0 and 0.01 <= found["gradient_clipped"] <= 0.6
    assert 0.003 <= found["kl"] <= 0.03 and 0.02 <= found["clip_fraction"] <= 0.25
    assert found["explained_variance"] > 0.5 and found["saturation"] < 0.1
    for name in ("return_std", "value_std", "advantage_std"):
        low, high = np.percentile(half[name], [1, 99])
        assert high < 10 * low, name
