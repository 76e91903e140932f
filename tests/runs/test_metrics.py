"""The metric log: declared names only, nothing lost, short answers about long series."""

import csv
import io
import math
import sqlite3
import threading
from decimal import Decimal

import numpy as np
import pytest
import torch

from protege.runs.metrics import Card, Column, Metric, MetricError, MetricLog, MetricWriter

LOSS = Metric("loss", "", "error of the predicted values", "learning", better="lower")
SCORE = Metric("eval_score", "points", "mean score without exploration", "evaluation", better="higher")
SPEED = Metric("frames_per_s", "1/s", "frames simulated in a second", "speed")


@pytest.fixture
def log(tmp_path):
    writer = MetricWriter(tmp_path / "metrics.sqlite", [LOSS, SCORE, SPEED])
    yield writer
    writer.close()


def test_what_was_logged_is_read_back_by_another_reader(log):
    log.log(10, loss=0.5, eval_score=100)
    log.log(20, loss=0.25)
    reader = MetricLog(log.path)
    assert {name: (point.step, point.value) for name, point in reader.latest().items()} == {
        "loss": (20, 0.25),
        "eval_score": (10, 100.0),
    }
    series = reader.series("loss")
    assert (series.steps, series.mean, series.low, series.high) == ([10, 20], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25])
    assert series.times == sorted(series.times)
    assert reader.extremes("loss") == (0.25, 0.5) and reader.extremes("frames_per_s") is None
    assert reader.declared() == [LOSS, SCORE, SPEED]
    reader.close()


def test_how_a_metric_is_shown_is_read_back(tmp_path):
    ends = [Metric(f"score_{end}", "points", "an end", "score") for end in ("low", "high")]
    shown = Metric(
        "score", "points", "mean", "score", "higher", label="pupil", interval=("score_low", "score_high"),
        baseline="loss", role="progress", control="epsilon", column=Column("Score", 1, 2, 7, "range", mean=True),
        card=Card("score", 3, "gauge", 1.0),
    )  # fmt: skip
    MetricWriter(tmp_path / "metrics.sqlite", [shown, *ends, LOSS]).close()
    assert MetricLog(tmp_path / "metrics.sqlite").declared() == [shown, *ends, LOSS]


@pytest.mark.parametrize("wrong", [{"interval": ("loss", "none")}, {"baseline": "none"}])
def test_a_metric_names_only_declared_ones(tmp_path, wrong):
    with pytest.raises(AssertionError, match="score names {'none'}, which nobody declares"):
        MetricWriter(tmp_path / "metrics.sqlite", [LOSS, Metric("score", "", "", "score", **wrong)])


OLD_TABLES = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, unit TEXT NOT NULL,
    meaning TEXT NOT NULL, family TEXT NOT NULL, better TEXT NOT NULL, not_finite INTEGER NOT NULL DEFAULT 0);
CREATE TABLE points (metric INTEGER NOT NULL, row INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
    PRIMARY KEY (metric, row)) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
INSERT INTO metrics VALUES (1, 'exam_success', 'share', 'of battles: won', 'exams', 'higher', 0);
INSERT INTO points VALUES (1, 1700000000000000, 40, 0.5);
PRAGMA user_version = 1;
"""


def test_a_file_in_which_no_metric_says_how_it_is_shown_can_be_read_and_written_on(tmp_path):
    path = tmp_path / "metrics.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(OLD_TABLES)
    database.close()
    old = Metric("exam_success", "fraction", "of battles: won", "exams", "higher")
    reader = MetricLog(path)
    assert reader.declared() == [old] and reader.latest()["exam_success"].value == 0.5
    writer = MetricWriter(path, [LOSS])
    writer.log(50, loss=1.0)
    assert reader.declared() == writer.declared() == [old, LOSS]
    assert reader.series("exam_success").steps == [40] and reader.latest()["loss"].step == 50
    reader.close()
    writer.close()


def test_an_undeclared_metric_is_refused_with_the_nearest_names_and_nothing_is_logged(log):
    with pytest.raises(MetricError, match="los was logged but never declared; did you mean loss"):
        log.log(1, eval_score=3.0, los=1.0)
    assert log.latest() == {}


@pytest.mark.parametrize("value", ["1.0", None, [1.0], torch.tensor(1.0), Decimal(1), 1j])
def test_what_is_not_a_number_is_refused(log, value):
    with pytest.raises(MetricError, match=f"loss was logged as {type(value).__name__}, expected a number"):
        log.log(1, loss=value)


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.float64(3), np.int64(3), np.uint8(3)])
def test_every_kind_of_number_is_taken(log, value):
    log.log(np.int64(1), loss=value)
    assert log.latest()["loss"].value == 3.0


def test_a_step_that_is_no_whole_number_is_refused(log):
    with pytest.raises(TypeError):
        log.log(1.5, loss=1.0)


def test_values_that_are_not_finite_become_gaps_and_are_counted(log):
    for step, value in enumerate([1.0, math.nan, math.inf, -math.inf, 2.0]):
        log.log(step, loss=value, eval_score=1.0)
    assert log.series("loss").mean == [1.0, None, None, None, 2.0]
    assert log.not_finite() == {"loss": 3}
    assert log.extremes("loss") == (1.0, 2.0)


def test_long_series_come_in_stretches_with_mean_and_extremes(log):
    for step in range(100):
        log.log(step, loss=float(step))
    series = log.series("loss", most_points=10)  # stretches of 10 steps
    assert series.steps == [9, 19, 29, 39, 49, 59, 69, 79, 89, 99]
    assert series.mean == [4.5, 14.5, 24.5, 34.5, 44.5, 54.5, 64.5, 74.5, 84.5, 94.5]
    assert series.low[:2] == [0.0, 10.0] and series.high[:2] == [9.0, 19.0]
    assert len(log.series("loss", most_points=7).steps) <= 7
    by_time = log.series("loss", most_points=10, along="time")
    assert 1 <= len(by_time.steps) <= 10 and min(x for x in by_time.low if x is not None) == 0.0


def test_a_stretch_of_steps_or_time_can_be_asked_for(log):
    for step in range(0, 100, 10):
        log.log(step, loss=float(step))
    assert log.series("loss", start=20, stop=40).steps == [20, 30, 40]
    times = log.series("loss").times
    assert log.series("loss", along="time", start=times[7]).steps == [70, 80, 90]
    assert log.series("loss", along="time", stop=times[1]).steps == [0, 10]
    assert log.series("loss", start=1000).steps == []


def test_only_what_came_later_can_be_asked_for(log):
    log.log(1, loss=1.0)
    first = log.series("loss")
    assert (
        log.series("loss", since_row=first.row).steps == [] and log.series("loss", since_row=first.row).row == first.row
    )
    log.log(2, loss=2.0)
    assert log.series("loss", since_row=first.row).steps == [2]


def test_rows_keep_their_order_when_the_clock_is_set_back(log, monkeypatch):
    log.log(1, loss=1.0)
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    log.log(2, loss=2.0)
    log.log(3, loss=3.0)
    assert log.series("loss").steps == [1, 2, 3]
    again = MetricWriter(log.path, [LOSS])
    again.log(4, loss=4.0)
    assert again.series("loss").steps == [1, 2, 3, 4]
    again.close()


def test_going_on_from_an_earlier_step_drops_what_came_after_it(log):
    for step in range(1, 6):
        log.log(step, loss=float(step), eval_score=0.0)
    row = log.series("loss").row
    assert log.rewind(3) == 4  # two metrics at steps 4 and 5
    log.log(4, loss=40.0)
    assert log.series("loss").mean == [1.0, 2.0, 3.0, 40.0]
    assert log.series("loss", since_row=row).mean == [40.0]  # a page that was open sees the new value as new


def test_metrics_of_an_earlier_start_stay_readable_but_cannot_be_logged(log):
    log.log(1, frames_per_s=5.0)
    log.close()
    louder = Metric("loss", "", "a better explanation", "learning")
    again = MetricWriter(log.path, [louder])
    assert again.latest()["frames_per_s"].value == 5.0
    assert again.declared() == [louder, SCORE, SPEED]
    with pytest.raises(MetricError, match="never declared"):
        again.log(2, frames_per_s=1.0)
    again.close()


def test_events_come_newest_last_and_from_where_the_reader_was(log):
    for number in range(5):
        log.event("autosave", f"step {number}")
    assert [event.text for event in log.events(most=2)] == ["step 3", "step 4"]
    assert [event.text for event in log.events(since=log.events()[2].id)] == ["step 3", "step 4"]


def test_csv_has_a_line_for_each_time_something_was_logged(log):
    log.log(1, loss=0.1, eval_score=5)
    log.log(2, loss=math.nan)
    log.log(3, frames_per_s=7)
    file = io.StringIO()
    assert log.export_csv(file, ["eval_score", "loss"]) == 2
    table = list(csv.reader(io.StringIO(file.getvalue())))
    assert table[0] == ["step", "time", "eval_score", "loss"]
    assert [line[0:1] + line[2:] for line in table[1:]] == [["1", "5.0", "0.1"], ["2", "", ""]]
    everything = io.StringIO()
    assert log.export_csv(everything) == 3
    with pytest.raises(MetricError, match="no metric losss; did you mean loss"):
        log.export_csv(file, ["losss"])


def test_threads_may_log_at_the_same_time(log):
    def work(name):
        for step in range(100):
            log.log(step, **{name: 1.0})

    threads = [threading.Thread(target=work, args=(name,)) for name in ("loss", "eval_score", "frames_per_s")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(log.series(name).steps) for name in ("loss", "eval_score", "frames_per_s")] == [100, 100, 100]


def test_bad_declarations_are_caught_at_once(tmp_path):
    for metrics in ([LOSS, LOSS], [Metric("Two Words", "", "", "")]):
        with pytest.raises(AssertionError):
            MetricWriter(tmp_path / "metrics.sqlite", metrics)


def test_a_file_that_is_missing_damaged_or_of_another_format_is_refused_in_one_line(tmp_path, log):
    other, damaged = tmp_path / "other.sqlite", tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"this is no database, but long enough to look at" * 100)
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for path, problem in (
        (tmp_path / "no.sqlite", "unable to open"),
        (damaged, "not a database"),
        (other, "format is 99"),
    ):
        with pytest.raises(MetricError, match=f"{path.name} cannot be read: .*{problem}"):
            MetricLog(path).latest()
    assert not (tmp_path / "no.sqlite").exists()
