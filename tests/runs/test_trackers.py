"""Mirrors of a training's values, with the real TensorBoard and the real Weights & Biases, offline."""

import math
import os
import struct
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from protege import ProtegeError
from protege.runs.metrics import Metric, MetricError
from protege.runs.run import Training, create_run, open_run, resume_run
from protege.runs.trackers import attach_mirrors

METRICS = [
    Metric("loss", "", "error of the predicted values", "learning", better="lower"),
    Metric("eval_score", "points", "mean score without exploration", "points per life", better="higher"),
]
KILLED = """
import os, signal, sys
from pathlib import Path
from protege.runs.run import create_run
from protege.runs.trackers import attach_mirrors
from tests.runs.test_trackers import METRICS
run = create_run("tempest", "pqn", {}, METRICS, name="first", folder=Path(sys.argv[1]))
attach_mirrors(run)
run.log(10, loss=0.5)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch):
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)


def create(folder: Path) -> Training:
    return create_run("tempest", "pqn", {"games": 64}, METRICS, name="first", folder=folder)


def events(run: Training) -> list[tuple[str, str]]:
    return [(event.kind, event.text) for event in run.metrics.events() if event.kind == "mirror dropped"]


# --- Any mirror -------------------------------------------------------------------------------------------------------


class Listener:
    """Writes down what it is told, and fails when told to."""

    def __init__(self, failing: str = ""):
        self.failing = failing
        self.heard: list[tuple[object, ...]] = []

    def hear(self, *words: object) -> None:
        self.heard.append(words)
        if words[0] == self.failing:
            raise ZeroDivisionError("no more")

    def log(self, step: int, values: dict[str, float]) -> None:
        self.hear("log", step, values)

    def rewind(self, step: int) -> None:
        self.hear("rewind", step)

    def close(self) -> None:
        self.hear("close")


def test_a_mirror_hears_what_was_logged_after_it_is_in_the_file(tmp_path):
    class Reader(Listener):
        def log(self, step, values):
            assert run.metrics.latest()["loss"].value == values["loss"]
            super().log(step, values)

    mirror = Reader()
    with create(tmp_path) as run:
        run.log(1, loss=3)
        run.mirrors.append(mirror)
        run.log(2, loss=2)
        run.rewind(1)
        assert events(run) == []
    assert mirror.heard == [("log", 2, {"loss": 2.0}), ("rewind", 1), ("close",)]


def test_what_the_file_refuses_no_mirror_hears(tmp_path):
    mirror = Listener()
    with create(tmp_path) as run:
        run.mirrors.append(mirror)
        with pytest.raises(MetricError, match="never declared"):
            run.log(1, los=1.0)
    assert mirror.heard == [("close",)]


@pytest.mark.parametrize("failing", ["log", "rewind", "close"])
def test_a_mirror_that_fails_is_dropped_with_one_event_and_the_others_go_on(tmp_path, failing):
    broken, good = Listener(failing), Listener()
    with create(tmp_path) as run:
        run.mirrors += [broken, good]
        for step in (1, 2):
            run.log(step, loss=1.0)
        run.rewind(1)
        run.log(2, loss=0.5)
    ending = open_run("first", tmp_path)
    assert [(e.kind, e.text) for e in ending.metrics.events()][1:] == [
        ("mirror dropped", "Listener: ZeroDivisionError('no more')")
    ]
    assert ending.status() == "finished" and ending.metrics.series("loss").steps == [1, 2]
    assert [words[0] for words in good.heard] == ["log", "log", "rewind", "log", "close"]
    heard = [words[0] for words in broken.heard]
    assert heard.count(failing) == (2 if failing == "close" else 1) and heard[-1] == "close"


def test_a_run_that_crashes_closes_its_mirrors_and_keeps_its_own_error(tmp_path):
    mirror = Listener("close")
    with pytest.raises(KeyError), create(tmp_path) as run:
        run.mirrors.append(mirror)
        raise KeyError("something else")
    assert mirror.heard[0] == ("close",) and open_run("first", tmp_path).status() == "crashed"


def test_the_optional_packages_are_imported_only_when_a_mirror_is_made():
    code = (
        "import sys, protege.runs.trackers; print([m for m in ('torch', 'tensorboard', 'wandb') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


# --- TensorBoard ------------------------------------------------------------------------------------------------------


def curves(run_folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag -> (step, value), as TensorBoard itself reads the files."""
    accumulator = import_module("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(run_folder / "tensorboard"))
    reader.Reload()
    return {tag: [(point.step, point.value) for point in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


@pytest.mark.needs("tensorboard")
def test_tensorboard_shows_the_values_by_family(tmp_path):
    with create(tmp_path) as run:
        assert attach_mirrors(run) == [f"TensorBoard: tensorboard --logdir {tmp_path / 'first' / 'tensorboard'}"]
        run.log(1000, loss=0.5, eval_score=20_000)
        run.log(2000, loss=0.25)
    found = curves(run.path)
    assert found == {"learning/loss": [(1000, 0.5), (2000, 0.25)], "points per life/eval_score": [(1000, 20_000.0)]}


@pytest.mark.needs("tensorboard")
def test_a_value_that_is_not_finite_reaches_tensorboard_as_it_is(tmp_path):
    with create(tmp_path) as run:
        attach_mirrors(run)
        run.log(1, loss=float("nan"))
        run.log(2, loss=float("inf"))
    (_, first), (_, second) = curves(run.path)["learning/loss"]
    assert math.isnan(first) and second == math.inf and events(run) == []


@pytest.mark.needs("tensorboard")
def test_resuming_does_not_make_curves_go_back(tmp_path):
    with create(tmp_path) as run:
        attach_mirrors(run)
        for step in (10, 20, 30, 40):
            run.log(step, loss=step / 10)
    for loss in (7.0, 8.0):  # twice resumed from the checkpoint of step 20
        with resume_run("first", METRICS, folder=tmp_path) as run:
            attach_mirrors(run)
            run.rewind(20)
            run.log(30, loss=loss)
            run.log(35, loss=loss)
    expected = [(10, 1.0), (20, 2.0), (30, 8.0), (35, 8.0)]
    assert curves(run.path)["learning/loss"] == expected
    assert run.metrics.series("loss").steps == [step for step, _ in expected]


@pytest.mark.needs("tensorboard")
def test_a_run_that_starts_afresh_leaves_no_old_curve(tmp_path):
    with create(tmp_path) as run:
        attach_mirrors(run)
        run.log(0, loss=1.0)
        run.log(10, loss=1.0)
    with resume_run("first", METRICS, folder=tmp_path) as run:
        attach_mirrors(run)
        run.rewind(-1)
        run.log(5, loss=2.0)
    assert curves(run.path)["learning/loss"] == [(5, 2.0)]


@pytest.mark.needs("tensorboard")
def test_a_killed_process_loses_no_value(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=Path(__file__).parents[2], timeout=60)
    assert curves(tmp_path / "first") == {"learning/loss": [(10, 0.5)]}


@pytest.mark.needs("tensorboard")
def test_an_event_file_that_takes_no_more_drops_tensorboard_and_nothing_else(tmp_path):
    with create(tmp_path) as run:
        attach_mirrors(run)
        run.mirrors[0].close()  # from here on writing raises
        run.log(1, loss=1.0)
        run.log(2, loss=1.0)
        assert run.mirrors == [] and run.metrics.series("loss").steps == [1, 2]
        ((_, text),) = events(run)
    assert "TensorBoard" in text and "closed file" in text


@pytest.mark.needs("tensorboard")
def test_a_folder_that_cannot_be_made_leaves_tensorboard_out(tmp_path):
    with create(tmp_path) as run:
        run.tensorboard.write_text("a file where the folder should be")
        (line,) = attach_mirrors(run)
        run.log(1, loss=1.0)
        assert "left out" in line and run.mirrors == [] and len(events(run)) == 1


def test_without_tensorboard_there_is_no_mirror(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # what Python does for a package that is not there
    with create(tmp_path) as run:
        assert attach_mirrors(run) == [] and run.mirrors == [] and not run.tensorboard.exists()


# --- Weights & Biases -------------------------------------------------------------------------------------------------

BLOCK = 32768
PIECE = struct.Struct("<IHB")  # checksum, length, kind: 1 whole, 2 first, 3 middle, 4 last


def records(path: Path) -> list[bytes]:
    """What an offline file holds: a header of 7 bytes, then blocks of records that may be cut into pieces."""
    content = path.read_bytes()
    assert content[:4] == b":W&B"
    found, record, place = [], b"", 7
    while place < len(content):
        left = BLOCK - place % BLOCK
        if left < PIECE.size:
            place += left
            continue
        _, length, kind = PIECE.unpack_from(content, place)
        record += content[place + PIECE.size : place + PIECE.size + length]
        place += PIECE.size + length
        if kind in (1, 4):
            found.append(record)
            record = b""
    return found


def offline_runs(run: Training) -> list[tuple[str, str, list[tuple[int, dict[str, float]]]]]:
    """(id, name, [(step, values), ...]) of every start, in the order of starts."""
    record_type = import_module("wandb.proto.wandb_internal_pb2").Record
    found = []
    for path in sorted(run.wandb.glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns):
        parsed = [record_type.FromString(record) for record in records(path)]
        (about,) = [record.run for record in parsed if record.WhichOneof("record_type") == "run"]
        history = []
        for record in parsed:
            if record.WhichOneof("record_type") == "history":
                items = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
                values = {key: float(text) for key, text in items.items() if not key.startswith("_")}
                history.append((int(items["_step"]), values))
        found.append((about.run_id, about.display_name, history))
    return found


@pytest.mark.needs("wandb")
def test_weights_and_biases_is_written_into_the_runs_folder(tmp_path, capfd):
    with create(tmp_path) as run:
        lines = attach_mirrors(run, wandb=True)
        assert lines[0] == f"Weights & Biases, offline: {tmp_path / 'first' / 'wandb'}"
        run.log(1000, loss=0.5, eval_score=20_000)
        run.log(2000, loss=0.25)
        run.log(2000, eval_score=30_000)
    with resume_run("first", METRICS, folder=tmp_path) as run:
        attach_mirrors(run, wandb=True)
        run.rewind(1000)
        run.log(1500, loss=0.125)
        assert events(run) == []
    first, second = offline_runs(run)
    assert first[2] == [
        (1000, {"learning/loss": 0.5, "points per life/eval_score": 20_000.0}),
        (2000, {"learning/loss": 0.25, "points per life/eval_score": 30_000.0}),
    ]
    assert second[2] == [(1500, {"learning/loss": 0.125})]
    assert first[:2] == second[:2] and first[1] == "first" and first[0].startswith("first-20")
    assert capfd.readouterr() == ("", ""), "the terminal belongs to the training"


@pytest.mark.needs("wandb")
def test_the_environment_chooses_the_mode(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    with create(tmp_path) as run:
        assert attach_mirrors(run, wandb=True)[0].startswith("Weights & Biases, disabled")
        run.log(1, loss=1.0)
        assert events(run) == []
    assert not list(tmp_path.rglob("*.wandb"))


@pytest.mark.needs("wandb")
def test_a_mode_that_wandb_does_not_know_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "sideways")
    with create(tmp_path) as run, pytest.raises(ProtegeError, match="WANDB_MODE=sideways"):
        attach_mirrors(run, wandb=True)


def test_asking_for_weights_and_biases_without_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with create(tmp_path) as run, pytest.raises(ProtegeError, match=r'pip install "protege\[track\]"'):
        attach_mirrors(run, wandb=True)


def test_nobody_asks_for_weights_and_biases_unless_told_to(tmp_path):
    with create(tmp_path) as run:
        attach_mirrors(run)
        assert not any("Biases" in type(mirror).__name__ for mirror in run.mirrors)
    assert not run.wandb.exists()
