"""Run folders with real files and real processes: made, read, told, killed, listed, pruned."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import protege
from protege.runs.metrics import Metric, MetricError
from protege.runs.run import (
    COMMAND_BYTES,
    Commit,
    RunError,
    Training,
    create_run,
    differences,
    disk_use,
    list_runs,
    open_run,
    plan_prune,
    prune,
    resume_run,
    runs_folder,
    source_commit,
)
from tests.killing import kill_loggers
from tests.runs.processes import bury, started

METRICS = [
    Metric("loss", "", "error of the predicted values", "learning", better="lower"),
    Metric("eval_score", "points", "mean score without exploration", "evaluation", better="higher"),
]
TRAIN = """
import sys, time
from pathlib import Path
from protege.runs.metrics import Metric
from protege.runs.run import create_run
run = create_run("tempest", "pqn", {}, [Metric("loss", "", "", "")], name=sys.argv[1], folder=Path(sys.argv[2]))
print("training", flush=True)
step = 0
while True:
    step += 1
    run.log(step, loss=float(step))
    for command in run.commands():
        print(command.name, command.arguments, flush=True)
    time.sleep(0.001)
"""


@dataclass(frozen=True)
class Learner:
    rate: float = 1e-3
    layers: tuple[int, ...] = (256, 256)


@dataclass(frozen=True)
class Config:
    games: int = 512
    learner: Learner = field(default_factory=Learner)
    start: Path = Path("somewhere")


def create(folder, name="first", **options) -> Training:
    return create_run("tempest", "pqn", Config(), METRICS, name=name, score="eval_score", folder=folder, **options)


def trainer(folder, name="other"):
    return started(TRAIN, name, str(folder), says="training")


def test_a_run_says_what_was_trained_and_how(tmp_path):
    with create(tmp_path) as run:
        assert run.status() == "running"
    written = json.loads((tmp_path / "first" / "run.json").read_text())
    assert written["format"] == 1 and written["protege"] == protege.__version__
    assert (written["name"], written["game"], written["learner"]) == ("first", "tempest", "pqn")
    assert written["config"] == {
        "games": 512,
        "learner": {"rate": 1e-3, "layers": [256, 256]},
        "start": "somewhere",
    }
    assert {"cpu", "cores", "python", "torch"} <= set(written["machine"])
    assert [start["kind"] for start in written["starts"]] == ["fresh"] and written["status"] == "finished"
    commit = source_commit()
    assert commit is None or re.fullmatch("[0-9a-f]{40}", commit.hash)
    assert open_run("first", tmp_path).info().commit == commit


def test_importing_runs_needs_no_torch():
    code = "import sys, protege.runs.run; print([m for m in ('torch', 'numpy', 'numba') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_folder_is_the_one_given_or_the_machines_or_the_usual_one(monkeypatch, tmp_path):
    monkeypatch.delenv("PROTEGE_RUNS", raising=False)
    assert runs_folder() == Path("runs")
    monkeypatch.setenv("PROTEGE_RUNS", str(tmp_path))
    assert runs_folder() == tmp_path and runs_folder(Path("here")) == Path("here")


def test_without_a_name_runs_are_named_after_game_learner_and_time(tmp_path):
    runs = [create(tmp_path, name=None) for _ in range(3)]
    for run in runs:
        assert re.fullmatch(r"tempest-pqn-\d{8}-\d{6}(-\d)?", run.name)
        run.close()
    assert len({run.name for run in runs}) == 3


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "../up", "a/b", "a\\b", "-x", "a b", "a\n", "é", "a.", "x" * 101]
)
def test_names_cannot_lead_anywhere_else(tmp_path, name):
    for use in (lambda: create(tmp_path / "runs", name=name or " "), lambda: open_run(name, tmp_path / "runs")):
        with pytest.raises(RunError, match="is no name for a run"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_run_is_refused_with_near_names(tmp_path):
    create(tmp_path, "tempest-long").close()
    with pytest.raises(RunError, match="no run tempest-lnog in .*; did you mean tempest-long"):
        open_run("tempest-lnog", tmp_path)
    with pytest.raises(RunError, match="no run anything in"):
        open_run("anything", tmp_path / "nowhere")


def test_a_name_is_used_once(tmp_path):
    create(tmp_path).close()
    with pytest.raises(RunError, match="run first exists: resume it, or choose another name"):
        create(tmp_path)
    assert open_run("first", tmp_path).status() == "finished"


def test_a_folder_left_by_a_start_that_was_killed_can_be_used(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "metrics.sqlite").touch()
    assert list_runs(tmp_path) == []
    create(tmp_path).close()
    assert [summary.name for summary in list_runs(tmp_path)] == ["first"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="no run can be made in"):
        create(tmp_path / "file")


def test_a_second_training_of_a_run_is_refused_and_told_who_has_it(tmp_path):
    process = trainer(tmp_path)
    try:
        for use in (lambda: resume_run("other", METRICS, folder=tmp_path), lambda: create(tmp_path, "other")):
            with pytest.raises(RunError, match=f"run other is in use by process {process.pid} on "):
                use()
        assert open_run("other", tmp_path).status() == "running"
    finally:
        bury(process)
    assert open_run("other", tmp_path).status() == "crashed"
    with resume_run("other", METRICS, folder=tmp_path) as run:
        assert [start.kind for start in run.info().starts] == ["fresh", "resumed"]
    assert open_run("other", tmp_path).status() == "finished"


@pytest.mark.parametrize(
    "error, status", [(None, "finished"), (KeyboardInterrupt(), "stopped"), (ZeroDivisionError("x / 0"), "crashed")]
)
def test_how_a_run_ended_is_kept(tmp_path, error, status):
    try:
        with create(tmp_path):
            if error:
                raise error
    except (KeyboardInterrupt, ZeroDivisionError):
        pass
    with open_run("first", tmp_path) as run:
        assert run.status() == status
        if status == "crashed":
            assert run.metrics.events()[-1][2:] == ("crashed", "ZeroDivisionError: x / 0")


def test_a_run_can_end_before_its_budget(tmp_path):
    with create(tmp_path) as run:
        run.stop()
    assert open_run("first", tmp_path).status() == "stopped"


def test_resuming_keeps_what_was_there_and_notes_what_changed(tmp_path):
    with create(tmp_path) as run:
        run.log(5, loss=1.0)
        draft = run.checkpoints / ".last.safetensors.1-2.tmp"
        draft.touch()
    with resume_run("first", METRICS, config=Config(games=8), folder=tmp_path) as run:
        assert not draft.exists()
        run.log(6, loss=0.5)
        assert run.metrics.series("loss").steps == [5, 6]
        info = run.info()
    assert info.config["games"] == 8 and info.starts[1].changed == {"games": [512, 8]}
    assert [event.kind for event in open_run("first", tmp_path).metrics.events()] == ["fresh", "resumed"]


def test_settings_that_differ_are_found_at_any_depth():
    assert differences({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 4, "d": 3}, "e": [5]}) == {
        "b.c": [2, 4],
        "e": [None, [5]],
    }


def test_a_run_is_read_while_another_process_writes_it(tmp_path):
    process = trainer(tmp_path)
    try:
        with open_run("other", tmp_path) as run:
            seen: list[int] = []
            row = 0
            deadline = time.monotonic() + 30
            while len(seen) < 200 and time.monotonic() < deadline:
                series = run.metrics.series("loss", since_row=row, most_points=10**9)
                row = series.row
                seen += series.steps
            assert seen == list(range(1, len(seen) + 1)) and len(seen) >= 200
    finally:
        bury(process)


def test_commands_reach_the_process_that_trains(tmp_path):
    process = trainer(tmp_path)
    try:
        with open_run("other", tmp_path) as run:
            run.send("epsilon", value=0.25)
            run.send("save")
        assert process.stdout.readline() == "epsilon {'value': 0.25}\n"
        assert process.stdout.readline() == "save {}\n"
    finally:
        bury(process)
    with pytest.raises(RunError, match="run other is not being trained, so nobody would read the command save"):
        open_run("other", tmp_path).send("save")


def test_commands_sent_before_the_start_are_not_carried_out(tmp_path):
    with create(tmp_path) as run:
        run.send("quit")
        offset = run.command_offset
    with resume_run("first", METRICS, folder=tmp_path) as run:
        assert run.commands() == []
        run.command_offset = offset  # unless a checkpoint says that they were not read
        assert [command.name for command in run.commands()] == ["quit"]
        assert run.commands() == []


def test_a_half_written_command_waits_for_its_end_and_a_damaged_one_becomes_an_event(tmp_path):
    with create(tmp_path) as run:
        inbox = tmp_path / "first" / "commands.jsonl"

        def append(text: bytes) -> None:
            with inbox.open("ab") as file:
                file.write(text)

        append(b'{"command": "save", "argum')
        assert run.commands() == []
        append(b'ents": {}, "time": 1}\n')
        assert [command.name for command in run.commands()] == ["save"]
        append(b'{"command": "sa')  # its sender died
        run.send("pause")
        assert [command.name for command in run.commands()] == ["pause"]
        damaged = [
            b"\xff\xfe",
            b"[1]",
            b'"text"',
            b'{"command": "x"}',
            b"[" * 3000,
            b'{"command":1,"arguments":2,"time":3}',
        ]
        append(b"\n".join(damaged) + b"\n")
        assert run.commands() == []
        kinds = [event.kind for event in run.metrics.events() if event.kind == "damaged command"]
        assert len(kinds) == 1 + len(damaged)
        append(b"x" * 200_000)  # nothing that `send` wrote
        run.send("go on")
        assert [c.name for _ in range(10) for c in run.commands()] == ["go on"]
        inbox.unlink()
        assert run.commands() == []
        run.send("again")
        assert [command.name for command in run.commands()] == ["again"]


def test_commands_that_cannot_be_sent_are_refused(tmp_path):
    with create(tmp_path) as run:
        with pytest.raises(RunError, match=f"at most {COMMAND_BYTES}"):
            run.send("note", text="x" * COMMAND_BYTES)
        for value in (float("nan"), object()):
            with pytest.raises(RunError, match="cannot be sent"):
                run.send("set", value=value)
        assert run.commands() == []


def test_many_senders_at_once_lose_nothing(tmp_path):
    with create(tmp_path) as run:
        code = "import sys; from pathlib import Path; from protege.runs.run import open_run\n"
        code += "run = open_run('first', Path(sys.argv[1]))\n"
        code += "for n in range(200): run.send('set', sender=sys.argv[2], n=n, padding='x' * 500)"
        senders = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(sender)]) for sender in range(3)]
        found = []
        while any(sender.poll() is None for sender in senders):
            found += run.commands()
        found += [command for _ in range(20) for command in run.commands()]  # what is left comes in pieces
        assert [sender.returncode for sender in senders] == [0, 0, 0]
        assert sorted((c.arguments["sender"], c.arguments["n"]) for c in found) == [
            (str(sender), n) for sender in range(3) for n in range(200)
        ]


def test_the_index_tells_status_progress_score_and_disk_use(tmp_path):
    with create(tmp_path, "done") as run:
        run.log(10, eval_score=300.0)
        run.log(20, eval_score=200.0, loss=0.1)
    with create(tmp_path, "now"):
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / "run.json").write_text("{")
        (tmp_path / "notes.txt").touch()
        found = {summary.name: summary for summary in list_runs(tmp_path)}
    assert {name: summary.status for name, summary in found.items()} == {
        "done": "finished",
        "now": "running",
        "broken": "damaged",
    }
    done = found["done"]
    assert (done.step, done.best_score, done.disk_bytes) == (20, 300.0, disk_use(tmp_path / "done"))
    assert list(found) == ["broken", "done", "now"]  # by their last start


def test_disk_use_counts_a_file_with_two_names_once(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 1000)
    os.link(tmp_path / "a", tmp_path / "b")
    assert disk_use(tmp_path) == 1000


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xff"])
def test_a_damaged_run_file_is_one_line(tmp_path, content):
    create(tmp_path).close()
    (tmp_path / "first" / "run.json").write_bytes(content)
    with pytest.raises(RunError, match="run first cannot be used, its run.json is damaged"):
        open_run("first", tmp_path).info()
    with pytest.raises(RunError, match="damaged"):
        resume_run("first", METRICS, folder=tmp_path)
    assert not open_run("first", tmp_path).is_training()


def test_a_run_of_another_format_is_refused(tmp_path):
    create(tmp_path).close()
    path = tmp_path / "first" / "run.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(RunError, match="run first has format 7, expected 1: it was made by Protege"):
        open_run("first", tmp_path).info()


def test_a_failed_start_leaves_the_run_free(tmp_path):
    create(tmp_path).close()
    with pytest.raises(AssertionError):
        resume_run("first", [METRICS[0], METRICS[0]], folder=tmp_path)
    (tmp_path / "first" / "metrics.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(MetricError):
        resume_run("first", METRICS, folder=tmp_path)
    assert not open_run("first", tmp_path).is_training()


def bulky_run(folder, name):
    with create(folder, name) as run:
        run.last.write_bytes(b"x" * 100)
        (run.recordings / "game.tempest").write_bytes(b"x" * 1000)
        (run.recordings / "best.mp4").write_bytes(b"x" * 500)
        return run.path


def test_pruning_takes_the_bulky_parts_of_all_but_the_newest(tmp_path):
    paths = [bulky_run(tmp_path, name) for name in ("a", "b", "c")]
    planned = plan_prune(keep=1, folder=tmp_path)
    assert [(removal.run, removal.disk_bytes) for removal in planned] == [("a", 1500), ("b", 1500)]
    assert (paths[0] / "recordings" / "best.mp4").exists()  # a plan deletes nothing
    prune(planned, tmp_path)
    assert [path.name for path in (paths[0] / "checkpoints").iterdir()] == ["last.safetensors"]
    assert list((paths[0] / "recordings").iterdir()) == []
    assert (paths[2] / "recordings" / "best.mp4").exists()
    assert plan_prune(keep=1, folder=tmp_path) == []
    assert [summary.status for summary in list_runs(tmp_path)] == ["finished"] * 3


def test_whole_runs_go_at_once_and_only_those_named(tmp_path):
    for name in ("a", "b"):
        bulky_run(tmp_path, name)
    (tmp_path / ".deleted-earlier").mkdir()  # pruning was cut short
    prune(plan_prune(["a"], whole=True, folder=tmp_path), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]
    with pytest.raises(RunError, match="no run a in"):
        plan_prune(["a"], folder=tmp_path)
    assert [removal.run for removal in plan_prune(keep=0, whole=True, folder=tmp_path)] == ["b"]
    assert plan_prune(keep=-3, folder=tmp_path) == plan_prune(keep=0, folder=tmp_path)


def test_a_run_being_trained_or_linked_from_elsewhere_is_never_pruned(tmp_path):
    elsewhere = bulky_run(tmp_path / "elsewhere", "linked")
    folder = tmp_path / "runs"
    with create(folder, "busy") as run:
        (run.recordings / "game.mp4").touch()
        (folder / "linked").symlink_to(elsewhere)
        assert plan_prune(keep=0, whole=True, folder=folder) == []
    planned = plan_prune(["busy"], whole=True, folder=folder)
    with resume_run("busy", METRICS, folder=folder), pytest.raises(RunError, match="in use"):
        prune(planned, folder)
    assert (folder / "busy" / "run.json").exists()


def test_the_commit_is_of_this_source_only(monkeypatch, tmp_path):
    def answers(words, **_):
        if words[1] == "ls-files":
            raise subprocess.CalledProcessError(1, words)
        return subprocess.CompletedProcess(words, 0, stdout="0" * 40)

    monkeypatch.setattr("subprocess.run", answers)
    assert source_commit.__wrapped__() is None  # installed inside somebody else's checkout
    monkeypatch.setattr("subprocess.run", lambda words, **_: subprocess.CompletedProcess(words, 0, stdout="ab\n"))
    assert source_commit.__wrapped__() == Commit("ab", dirty=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writers are forked")
def test_a_kill_while_logging_loses_nothing_that_was_logged(tmp_path):
    result = kill_loggers(tmp_path, kills=10, seed=7)
    assert result.kills == 10 and result.written > 0
