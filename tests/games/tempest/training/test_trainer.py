"""Training on the simulator: a short run does everything, and what is killed goes on where it was saved."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.cli.train import minutes_for_more
from protege.games.tempest.agents.network import Pupil
from protege.games.tempest.agents.players import find_player
from protege.games.tempest.training.config import PRESETS, PQNTraining, TempestConfig
from protege.games.tempest.training.metrics import METRICS, Accounts, Windows
from protege.games.tempest.training.simulator import Episode
from protege.games.tempest.training.trainer import TRAINER
from protege.learn.rainbow import Rainbow
from protege.learn.state import StateMismatch
from protege.runs.checkpoints import load
from protege.runs.run import create_run, open_run
from protege.train.estimate import estimate
from protege.train.loop import train
from tests.train.trainings import Crash, Notes, assert_same

ROOT = Path(__file__).parents[4]
TINY = TempestConfig(
    minutes=0.0,
    frames=16 * 8 * 12,  # twelve rollouts
    pqn=PQNTraining(games=16, horizon=8, minibatch=32, widths=(16,), epsilon_frames=500),
    eval_games=2,
    eval_frames=200,
    eval_every=16 * 8 * 5,
    deterministic=True,
)


def last_state(run):
    return load(run.last)


# --- whole runs ----------------------------------------------------------------------------------------------------


def test_a_short_run_logs_every_declared_figure_and_leaves_a_player(tmp_path, monkeypatch):
    monkeypatch.setattr("protege.train.loop.LOG_SECONDS", 0.1)  # it may be over in two seconds
    config = replace(PRESETS["smoke"], minutes=0.0, frames=100_000, eval_frames=500, eval_seconds=0.2)
    notes = Notes()
    run = train(TRAINER, config, notes, name="short", folder=tmp_path)
    with open_run("short", tmp_path) as found:
        assert found.status() == "finished"
        logged = set(found.metrics.latest())
    assert logged == {metric.name for metric in METRICS["pqn"]}
    assert len(notes.results) >= 2 and notes.reports[0]["run"].endswith("fresh")
    player = find_player("short", tmp_path)
    best = load(run.best)
    assert best.state["points_per_life"] == max(result.rank[0] for result in notes.results)
    assert isinstance(player, Pupil) and torch.equal(player.network.value.weight, best.tensors["network.value.weight"])


def test_a_deterministic_run_gives_the_same_numbers_twice(tmp_path):
    one = train(TRAINER, TINY, Notes(), name="one", folder=tmp_path)
    two = train(TRAINER, TINY, Notes(), name="two", folder=tmp_path)
    assert_same(last_state(one), last_state(two))


def test_a_resumed_deterministic_run_goes_on_as_if_it_had_never_stopped(tmp_path):
    saving = replace(TINY, autosave_seconds=0.0)
    whole = train(TRAINER, saving, Notes(), name="whole", folder=tmp_path)
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, saving, Crash(), name="parts", folder=tmp_path)
    notes = Notes()
    resumed = train(TRAINER, saving, notes, name="parts", resume=True, folder=tmp_path)
    assert notes.reports[0]["run"].endswith("resumed at frame 512"), (
        "the evaluation came at frame 640, before that save"
    )
    assert_same(last_state(whole), last_state(resumed))


def test_what_is_logged_after_the_checkpoint_is_logged_once(tmp_path):
    train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    train(TRAINER, replace(TINY, frames=2 * TINY.frames), Notes(), name="r", resume=True, folder=tmp_path)
    with open_run("r", tmp_path) as run:
        steps = run.metrics.series("eval_score", most_points=1000).steps
        assert steps == sorted(steps) and run.info().starts[-1].changed == {"frames": [TINY.frames, 2 * TINY.frames]}


@pytest.mark.parametrize("typed, needed", [(["--minutes", "3"], "3.0 minutes"), (["--frames", "64"], "0.0 minutes")])
def test_a_budget_typed_at_a_resume_takes_the_place_of_the_stored_one(typed, needed, tmp_path, capsys):
    train(TRAINER, replace(TINY, deterministic=False, minutes=9.0), Notes(), name="r", folder=tmp_path)
    cli.main(["train", "tempest", "--resume", "--run", "r", "--runs", str(tmp_path), "--dry-run", *typed])
    assert needed in capsys.readouterr().out


@pytest.mark.parametrize(
    "typed, save_replay, deterministic",
    [
        ([], True, True),
        (["--save-replay", "--deterministic"], True, True),
        (["--no-save-replay", "--no-deterministic"], False, False),
    ],
)
def test_what_is_typed_at_a_resume_wins(typed, save_replay, deterministic, tmp_path, capsys, monkeypatch):
    stored = replace(TINY, deterministic=True, rainbow=replace(TINY.rainbow, save_replay=True))
    create_run("tempest", "pqn", stored, METRICS["pqn"], name="r", score="eval_score", folder=tmp_path).close()
    seen: list[TempestConfig] = []

    def remember(trainer: Any, config: TempestConfig, folder: Path | None) -> dict[str, str]:
        seen.append(config)
        return {"memory": "1 MB"}

    monkeypatch.setattr("protege.train.estimate.estimate", remember)
    words = ["train", "tempest", "--resume", "--run", "r", "--runs", str(tmp_path), "--dry-run", "--json"]
    assert cli.main([*words, *typed]) == 0
    assert (seen[0].rainbow.save_replay, seen[0].deterministic) == (save_replay, deterministic)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"memory": "1 MB"}


def test_what_can_be_done_next_is_told_with_the_folder_the_run_is_in(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "my runs"
    create_run("tempest", "pqn", TINY, METRICS["pqn"], name="r", score="eval_score", folder=folder).close()
    monkeypatch.setattr("protege.train.loop.train", lambda *_, **options: open_run("r", options["folder"]))
    assert cli.main(["train", "tempest", "--run", "r", "--runs", str(folder), "--compare", "0", "--no-dashboard"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if " protege " in line]
    assert len(told) == 6 and all(f"r --runs '{folder}'" in line for line in told)


def test_another_network_is_refused_and_the_checkpoint_stays(tmp_path):
    run = train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    before = run.last.read_bytes()
    with pytest.raises(StateMismatch, match="network"):
        train(
            TRAINER, replace(TINY, pqn=replace(TINY.pqn, widths=(17,))), Notes(), name="r", resume=True, folder=tmp_path
        )
    assert run.last.read_bytes() == before


def test_a_run_that_never_saved_starts_afresh(tmp_path):
    run = train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    run.last.unlink()
    notes = Notes()
    train(TRAINER, TINY, notes, name="r", resume=True, folder=tmp_path)
    assert notes.reports[0]["run"].endswith("fresh") and "before its first checkpoint" in notes.notes[0]


def test_the_inbox_stops_saves_and_evaluates(tmp_path):
    endless = replace(TINY, frames=10**9, deterministic=False, eval_seconds=1e9, autosave_seconds=1e9)
    notes = Notes()
    trainer = threading.Thread(target=train, args=(TRAINER, endless, notes), kwargs={"name": "r", "folder": tmp_path})
    trainer.start()
    deadline = time.monotonic() + 120

    def wait_for(what):
        while not what():
            assert time.monotonic() < deadline and trainer.is_alive()
            time.sleep(0.02)

    wait_for(lambda: notes.reports)
    with open_run("r", tmp_path) as run:
        for name in ("evaluate", "save", "dance"):
            run.send(name)
        wait_for(lambda: len(notes.notes) == 3 and notes.results)
        assert run.last.is_file() and notes.notes[2] == "dance means nothing to this learner"
        run.send("stop")
        trainer.join(timeout=60)
        assert not trainer.is_alive() and run.status() == "stopped"


def test_without_learning_games_go_on_and_nothing_is_learned(tmp_path):
    run = train(TRAINER, TINY, Notes(), name="r", folder=tmp_path, prepare=lambda run: run.send("learning", on=False))
    state = last_state(run).state
    assert state["session"]["learner"]["updates"] == 8, (
        "of the first rollout alone, 128 samples twice in minibatches of 32"
    )
    assert state["step"] == TINY.frames


def test_what_a_person_has_changed_survives_a_resume_but_learning_is_on_again(tmp_path):
    def prepare(run):
        run.send("epsilon", value=0.5)
        run.send("teacher_off")
        run.send("learning_rate", step=1)
        run.send("learning", on=False)

    before, after = Notes(), Notes()
    train(TRAINER, TINY, before, name="r", folder=tmp_path, prepare=prepare)
    assert before.notes[:2] == ["epsilon 50 %, fixed", "teacher off: teacher 0 %"]
    run = train(TRAINER, replace(TINY, frames=2 * TINY.frames), after, name="r", resume=True, folder=tmp_path)
    assert after.reports[0]["controls"] == "epsilon fixed at 50 %, teacher off, learning rate times 2, as before"
    assert after.controls == before.controls | {"learning": {"on": True}} == run.switches()
    assert last_state(run).state["session"]["learner"]["updates"] == 8 + 12 * 8
    rates = [group["lr"] for group in last_state(run).state["session"]["learner"]["optimiser"]["param_groups"]]
    assert rates == [pytest.approx(2 * (1e-3 - (1e-3 - 5e-5) * 23 / 24))], "twice the schedule, 23 of 24 rollouts on"


def test_bad_settings_are_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ProtegeError, match="needs a budget in frames"):
        train(TRAINER, replace(TINY, frames=0), Notes(), folder=tmp_path / "runs")
    with pytest.raises(ProtegeError, match="smaller than one minibatch"):
        train(TRAINER, replace(TINY, pqn=replace(TINY.pqn, minibatch=4096)), Notes(), folder=tmp_path / "runs")
    with pytest.raises(ProtegeError, match="a deterministic run works on the CPU alone: leave out --device cuda"):
        train(TRAINER, replace(TINY, learner="rainbow", device="cuda"), Notes(), folder=tmp_path / "runs")
    with pytest.raises(ProtegeError, match="learner pqn works on the CPU alone"):
        train(TRAINER, replace(TINY, deterministic=False, device="mps"), Notes(), folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["train tempest", "train echelon", "serve"])
def test_a_preset_beside_a_resume_is_refused(command, capsys):
    assert cli.main([*command.split(), "--resume", "--run", "r", "--preset", "smoke"]) != 0
    assert "a resumed run has its own settings: leave out --preset" in " ".join(capsys.readouterr().err.split())


# --- budgets of whole runs ---


def test_a_resume_with_nothing_left_says_so(tmp_path):
    train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    by_frames, by_minutes = Notes(), Notes()
    train(TRAINER, TINY, by_frames, name="r", resume=True, folder=tmp_path)
    assert by_frames.notes[0] == "1,536 of 1,536 frames are used: give more with --frames"
    an_hour_ago = time.monotonic() - 3600
    timed = replace(TINY, deterministic=False, frames=0, minutes=20.0)
    run = train(TRAINER, timed, by_minutes, name="r", resume=True, folder=tmp_path, began=an_hour_ago)
    assert re.fullmatch("6[0-4] of 20 minutes are used: give more with --minutes", by_minutes.notes[0])
    assert minutes_for_more(run, 20.0) in range(81, 87), "those of the hour before, of this test, and 20 more"


def test_a_longer_budget_comes_with_a_warning_that_scores_fall_first(tmp_path):
    warning = "with a longer budget the learning rate rises again: expect lower scores at first"
    train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    notes = Notes()
    train(TRAINER, replace(TINY, frames=2 * TINY.frames), notes, name="r", resume=True, folder=tmp_path)
    assert notes.notes[0] == warning
    with pytest.raises(RuntimeError, match="power cut"):
        train(TRAINER, replace(TINY, autosave_seconds=0.0), Crash(), name="cut", folder=tmp_path)
    notes = Notes()
    train(TRAINER, TINY, notes, name="cut", resume=True, folder=tmp_path)
    assert warning not in notes.notes, "its budget is the same"


def test_processor_time_of_earlier_starts_counts(tmp_path):
    run = train(TRAINER, TINY, Notes(), name="r", folder=tmp_path)
    before = last_state(run).state
    resumed = train(TRAINER, replace(TINY, frames=2 * TINY.frames), Notes(), name="r", resume=True, folder=tmp_path)
    after = last_state(resumed).state
    assert after["cpu_s"] > before["cpu_s"] > 0.0 and after["elapsed_s"] > before["elapsed_s"]


def test_an_estimate_names_memory_disk_and_time():
    found = estimate(TRAINER, replace(TINY, deterministic=False, minutes=10.0, frames=0))
    assert found["time"] == "10.0 minutes" and set(found) == {"memory", "disk", "time", "frames"}
    assert estimate(TRAINER, replace(TINY, deterministic=False, frames=0))["time"] == "until it is stopped"


def test_an_estimate_of_rainbow_counts_its_updates(monkeypatch):
    update = Rainbow.update

    def slow(*given):
        time.sleep(0.02)
        return update(*given)

    monkeypatch.setattr(Rainbow, "update", slow)
    config = PRESETS["smoke"]
    rainbow = replace(config.rainbow, warm_frames=100_000, minimum_fill=50_000)
    found = estimate(TRAINER, replace(config, learner="rainbow", minutes=0.0, frames=100_000, rainbow=rainbow))
    # 3.2 samples of each frame in batches of 64: 5,000 updates of 20 ms and more.
    assert float(found["time"].removesuffix(" minutes").replace(",", "")) > 5_000 * 0.02 / 60


# --- killed runs ---------------------------------------------------------------------------------------------------


def start_training(folder, *more):
    words = ["train", "tempest", "--run", "k", "--runs", str(folder), "--compare", "0"]
    words += [] if "--resume" in more else ["--preset", "smoke"]
    words += ["--minutes", "0", "--autosave-seconds", "0.2", "--eval-frames", "300", "--no-dashboard", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "protege.cli", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def wait_for_frames(process, run, more_than):
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(process.stdout.read().decode())
        if run.last.is_file() and load(run.last).state["step"] > more_than:
            return
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


@pytest.mark.slow
def test_a_run_killed_at_random_moments_always_goes_on_from_its_last_checkpoint(tmp_path):
    moments, frames = random.Random(5), 0
    for number in range(3):
        process = start_training(tmp_path, *(["--resume"] if number else []))
        try:
            deadline = time.monotonic() + 180
            while not (tmp_path / "k" / "run.json").is_file():
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.02)
            with open_run("k", tmp_path) as run:
                wait_for_frames(process, run, frames)
                time.sleep(moments.uniform(0, 0.5))  # saves come every 0.2 s, so a kill may meet one
                process.send_signal(signal.SIGKILL)
                process.wait()
                assert run.status() == "crashed"
                now = load(run.last).state["step"]
                assert now > frames, "a resumed run goes on, it does not start again"
                frames = now
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    process = start_training(tmp_path, "--resume", "--frames", str(frames + 50_000))
    output = process.communicate(timeout=300)[0].decode()
    assert process.returncode == 0, output
    assert f"resumed at frame {frames:,}" in " ".join(output.split())
    with open_run("k", tmp_path) as run:
        assert run.status() == "finished"
        steps = run.metrics.series("loss", most_points=10**6).steps
        assert steps == sorted(set(steps)), "no step is logged twice"


@pytest.mark.slow
def test_ctrl_c_saves_and_ends_the_run(tmp_path):
    process = start_training(tmp_path, "--autosave-seconds", "1000")
    try:
        deadline = time.monotonic() + 180
        metrics = None
        while time.monotonic() < deadline and not metrics:
            assert process.poll() is None
            time.sleep(0.1)
            if (tmp_path / "k" / "run.json").is_file():
                with open_run("k", tmp_path) as run:
                    metrics = (run.path / "metrics.sqlite").is_file() and run.metrics.latest()
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=60)[0].decode()
    finally:
        process.kill()
        process.wait()
    assert "saving and stopping" in output and process.returncode == 0
    with open_run("k", tmp_path) as run:
        assert run.status() == "stopped" and load(run.last).state["step"] > 0


# --- parts ---------------------------------------------------------------------------------------------------------


def test_windows_average_over_the_lives_of_their_span():
    windows = Windows()
    windows.add([Episode(10, 100.0, 1)], 1_000)
    windows.add([Episode(20, 200.0, 3), Episode(40, 600.0, 5)], 200_000)
    found = windows.figures()
    assert found["reward_100k"] == 400.0 and found["reward_1m"] == 300.0 and found["reward_5m"] == 300.0
    assert found["episode_length"] == 30.0 and found["training_level"] == 4.0
    windows.add([], 5_001_000)
    assert len(windows.lives) == 2
    again = Windows()
    again.restore(windows.state())
    assert again.figures() == windows.figures()


def test_shares_of_the_time_add_up_to_one():
    accounts = Accounts(2)
    accounts.start(0, 0)
    time.sleep(0.05)
    accounts.learning = 0.02
    shares = accounts.shares()
    assert sum(shares.values()) == pytest.approx(1.0) and shares["time_waiting"] > 0.5


def test_every_figure_is_explained_in_the_docs():
    text = (ROOT / "docs" / "learning.md").read_text()
    every = [*METRICS["pqn"], *METRICS["rainbow"]]
    missing = [m.name for m in every if f"| `{m.name}` | {m.unit or 'number'} | {m.meaning} |" not in text]
    assert not missing, f"docs/learning.md lacks {missing}"
