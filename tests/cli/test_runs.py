"""`protege runs ...` as it is typed."""

import csv
import json
import re

import pytest

from protege.cli import __main__ as cli
from protege.runs.metrics import Metric
from protege.runs.run import create_run, resume_run

OPTION = re.compile("--[a-z]").match
METRICS = [
    Metric("loss", "", "error of the predicted values", "learning", better="lower"),
    Metric("eval_score", "points", "mean score without exploration", "evaluation", better="higher"),
    Metric("frames_per_s", "1/s", "frames simulated in a second", "speed"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEGE_RUNS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    for name, games, scores in (("short", 64, [100.0, 90.0]), ("long", 512, [100.0, 25_000.0])):
        config = {"games": games, "learner": {"rate": 0.001}}
        with create_run("tempest", "pqn", config, METRICS, name=name, score="eval_score", folder=tmp_path) as run:
            for step, score in enumerate(scores, start=1):
                run.log(step * 1000, loss=1 / step, eval_score=score)
            if name == "long":
                run.log(3000, frames_per_s=float("nan"))
            run.last.write_bytes(b"x" * 1000)
            (run.recordings / "best.mp4").write_bytes(b"x" * 3_000_000)
            run.event("toggle", "[teacher] off")
    return tmp_path


def run(*words, code=0):
    assert cli.main(["runs", *words]) == code


def last_line(capsys):
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert all(not isinstance(value, dict) for value in found.values()), "flat"
    return found


@pytest.mark.parametrize("command", ["list", "show", "compare", "export", "prune"])
def test_every_command_explains_itself_and_its_options(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["runs", command, "--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0 and "the folder of the runs" in text
    rows = [line.strip("│| ") for line in text.splitlines()]
    assert any(map(OPTION, rows)), "there are options to look at"
    for number, row in enumerate(rows):
        if OPTION(row):
            assert len(row.split("  ", 1)) == 2 or not OPTION(rows[number + 1]), row


def test_list_has_a_line_for_each_run(folder, capsys):
    run("list")
    text = capsys.readouterr().out
    assert "2 runs in" in text and "25,000" in text and text.count("finished") == 2
    run("list", "--json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["name"] for line in lines[:2]] == ["short", "long"]
    assert lines[1]["best_score"] == 25_000.0 and lines[1]["step"] == 3000
    assert lines[2]["runs"] == 2 and lines[2]["running"] == 0


def test_list_looks_where_it_is_told(folder, tmp_path, capsys):
    run("list", "--runs", str(tmp_path / "elsewhere"), "--json")
    assert last_line(capsys) == {"runs": 0, "running": 0, "disk_bytes": 0}


def test_show_tells_settings_figures_checkpoints_and_events(folder, capsys):
    run("show", "long")
    text = capsys.readouterr().out
    for part in (
        "learner.rate",
        "0.001",
        "25,000",
        "mean score without exploration",
        "last.safetensors",
        "[teacher] off",
    ):
        assert part in text
    assert "not finite 1 times" in text
    run("show", "long", "--json")
    found = last_line(capsys)
    assert found["config.games"] == 512 and found["metric.eval_score"] == 25_000.0 and found["status"] == "finished"
    assert found["metric.frames_per_s"] is None and found["checkpoints"] == 1


def test_compare_shows_what_differs_and_what_is_shared(folder, capsys):
    run("compare", "short", "long", "--json")
    text = capsys.readouterr().out
    found = json.loads(text.splitlines()[-1])
    assert found["short.config.games"] == 64 and found["long.config.games"] == 512
    assert not any("rate" in key for key in found) and not any("frames_per_s" in key for key in found)
    assert found["short.metric.eval_score"] == 90.0 and found["short.metric.eval_score.best"] == 100.0
    assert found["long.metric.loss.best"] == 0.5
    assert "25,000" in text and "settings that differ" in text


def test_export_writes_csv_to_the_terminal_or_a_file(folder, tmp_path, capsys):
    run("export", "long", "--metric", "loss", "--metric", "eval_score")
    table = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(line["step"], line["loss"], line["eval_score"]) for line in table] == [
        ("1000", "1.0", "100.0"),
        ("2000", "0.5", "25000.0"),
    ]
    run("export", "long", "--out", str(tmp_path / "all.csv"), "--json")
    told, figures = capsys.readouterr().out.splitlines()
    assert told.endswith("3 lines") and json.loads(figures)["lines"] == 3
    assert (tmp_path / "all.csv").read_text().splitlines()[0] == "step,time,loss,eval_score,frames_per_s"


@pytest.mark.parametrize(
    "words, problem",
    [
        (["show", "logn"], "did you mean long"),
        (["show", "../long"], "is no name for a run"),
        (["compare", "long"], "at least two runs"),
        (["compare", "long", "nothing"], "there is no run nothing"),
        (["export", "long", "--metric", "lss"], "did you mean loss"),
        (["export", "long", "--out", "no/such/folder/file.csv"], "cannot be written"),
        (["prune", "nothing", "--yes"], "there is no run nothing"),
    ],
)
def test_mistakes_are_one_line(folder, words, problem, capsys):
    run(*words, code=2)
    streams = capsys.readouterr()
    assert streams.err.startswith("protege: ") and problem in streams.err and streams.err.count("\n") == 1


def test_prune_deletes_only_when_told_to(folder, capsys):
    run("prune", "--keep", "1", "--json")
    assert last_line(capsys) == {"runs": 1, "disk_bytes": 3_000_000, "deleted": False}
    film = folder / "short" / "recordings" / "best.mp4"
    assert film.exists()
    run("prune", "--keep", "1", "--yes")
    assert not film.exists() and (folder / "short" / "checkpoints" / "last.safetensors").exists()
    assert (folder / "long" / "recordings" / film.name).exists()
    run("prune", "long", "--whole")
    assert "Nothing was deleted. Add --yes" in capsys.readouterr().out and (folder / "long").exists()
    run("prune", "long", "--whole", "--yes")
    assert not (folder / "long").exists() and (folder / "short").exists()


def test_prune_leaves_a_run_alone_that_is_being_trained(folder, capsys):
    with resume_run("long", METRICS, folder=folder):
        run("prune", "--keep", "0", "--whole", "--yes", "--json")
    assert last_line(capsys)["runs"] == 1 and not (folder / "short").exists() and (folder / "long").exists()
