"""What a run measured: declared metrics, their values over time, and events, in one SQLite file.

One process writes (`MetricWriter`), any number read meanwhile (`MetricLog`). Every metric is declared once, with all
that terminal and page need to show it. What was logged is in the file when the call returns, so a kill loses nothing.
"""

import csv
import difflib
import json
import math
import operator
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from numbers import Real
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

import msgspec

from protege import ProtegeError

FORMAT: Final = 1
PATIENCE_S: Final = 10.0  # how long to wait for another process's transaction
MICROSECOND: Final = 1_000_000
NUMBERS: Final = (float, int, Real)

# The row number is the time in microseconds: it orders a metric's values, says when they came, and is never used twice.
TABLES = """
CREATE TABLE IF NOT EXISTS metrics (id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, unit TEXT NOT NULL,
    meaning TEXT NOT NULL, family TEXT NOT NULL, better TEXT NOT NULL, not_finite INTEGER NOT NULL DEFAULT 0,
    shown TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS points (metric INTEGER NOT NULL, row INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
    PRIMARY KEY (metric, row)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, kind TEXT NOT NULL,
    text TEXT NOT NULL);
"""
PLAIN: Final = ("name", "unit", "meaning", "family", "better")  # have columns of their own; `shown` holds the rest


class MetricError(ProtegeError):
    """A metric that nobody declared, a value that is no number, or a file that cannot be used."""


@dataclass(frozen=True)
class Column:
    """A column of the terminal's rows. Metrics that are declared with the same column share it."""

    title: str
    place: int  # from left to right
    rank: int  # where there is not room for all, those with the highest rank go first
    width: int = 6
    format: Literal["short", "percent", "thousands", "exponent", "range", "mix"] = "short"
    mean: bool = False  # over the time since the row before, not the last value


@dataclass(frozen=True)
class Card:
    """A headline figure of the page. Metrics that are declared with the same card share it."""

    title: str
    place: int  # from left to right, among the gauges or among the others
    format: Literal["unit", "plain", "range", "mix", "gauge"] = "unit"  # plain: the title says the unit already
    most: float | None = None  # end of a gauge's scale; without it the highest value so far sets it


@dataclass(frozen=True)
class Metric:
    """One figure a training logs and how it is shown; declared once, in the game's table of metrics."""

    name: str  # small letters, digits and _
    unit: str  # "points", "1/s", "fraction" for what is read in percent, or "" for a plain number
    meaning: str  # one line for someone who has never seen it
    family: str  # metrics of a family share a chart
    better: Literal["higher", "lower", ""] = ""  # which end is the best value, where there is one
    label: str = ""  # in the chart's legend; without it the name
    interval: tuple[str, str] | None = None  # the metrics that are the ends of its 95 % interval, drawn as a band
    baseline: str = ""  # the metric it is compared with, such as the teacher's score
    role: Literal["", "rate", "progress"] = ""  # steps a second, or the fraction of the budget that is used up
    control: str = ""  # the control that overrides its schedule
    column: Column | None = None
    card: Card | None = None


class Point(NamedTuple):
    """A logged value; None where it was not finite."""

    step: int
    time: float  # seconds since 1970
    value: float | None


class Event(NamedTuple):
    """Something that happened once: resumed, autosave, a toggle."""

    id: int
    time: float
    kind: str
    text: str


@dataclass(frozen=True)
class Series:
    """A metric in columns. Where there are more values than points asked for, a point is a stretch of values."""

    row: int  # as `since_row` it gives only what came later
    steps: list[int]  # of the last value in each stretch
    times: list[float]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class MetricLog:
    """Reads the file, also while it is being written. Threads may share it."""

    _mode = "mode=ro"
    _formats: tuple[int, ...] = (FORMAT,)

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._turn = threading.Lock()

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        with self._turn:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def declared(self) -> list[Metric]:
        """Every metric, in the order of declaration."""
        shown = "shown" if _knows_how_to_show(self._rows("PRAGMA table_info(metrics)")) else "''"
        rows = self._rows(f"SELECT {', '.join(PLAIN)}, {shown} FROM metrics ORDER BY id")
        return [_metric(dict(zip(PLAIN, plain)), shown) for *plain, shown in rows]

    def latest(self) -> dict[str, Point]:
        """The newest value of every metric that has one."""
        rows = self._rows(
            "SELECT name, step, row, value FROM metrics JOIN points ON metric = id"
            " AND row = (SELECT max(row) FROM points WHERE metric = id) ORDER BY id"
        )
        return {name: Point(step, row / MICROSECOND, value) for name, step, row, value in rows}

    def extremes(self, name: str) -> tuple[float, float] | None:
        """Lowest and highest finite value, or None when there is none."""
        ((low, high),) = self._rows("SELECT min(value), max(value) FROM points WHERE metric = ?", [self._id(name)])
        return None if low is None else (low, high)

    def not_finite(self) -> dict[str, int]:
        """How often a metric was NaN or infinite, where that happened."""
        return dict(self._rows("SELECT name, not_finite FROM metrics WHERE not_finite > 0 ORDER BY id"))

    def series(
        self, name: str, *, since_row: int = 0, most_points: int = 500, along: Literal["step", "time"] = "step",
        start: float | None = None, stop: float | None = None,
    ) -> Series:  # fmt: skip
        """A metric in at most `most_points` equal stretches of steps or time, from `start` to `stop` of that axis."""
        axis, scale = ("step", 1) if along == "step" else ("row", MICROSECOND)
        where, values = "metric = ? AND row > ?", [self._id(name), since_row]
        for bound, sign in ((start, ">="), (stop, "<=")):
            if bound is not None:
                where += f" AND {axis} {sign} ?"
                values.append(round(bound * scale))
        bounds = f"SELECT count(*), min({axis}), max({axis}) FROM points WHERE {where}"
        ((count, first, last),) = self._rows(bounds, values)
        stretch = "row" if count <= most_points else f"({axis} - {first}) / {(last - first) // most_points + 1}"
        rows = self._rows(
            f"SELECT max(row), max(step), avg(value), min(value), max(value) FROM points WHERE {where}"
            f" GROUP BY {stretch} ORDER BY max(row)", values,
        )  # fmt: skip
        ends, steps, mean, low, high = ([row[column] for row in rows] for column in range(5))
        times, newest = [end / MICROSECOND for end in ends], ends[-1] if ends else since_row
        return Series(newest, steps, times, mean, low, high)

    def events(self, since: int = 0, most: int = 200) -> list[Event]:
        """The newest events after number `since`, oldest first."""
        query = "SELECT id, time, kind, text FROM events WHERE id > ? ORDER BY id DESC LIMIT ?"
        return [Event(*row) for row in reversed(self._rows(query, (since, most)))]

    def export_csv(self, file: TextIO, names: Sequence[str] = ()) -> int:
        """Write metrics (all, if none is named) with one line for each time they were logged; returns the lines."""
        names = list(dict.fromkeys(names)) or [metric.name for metric in self.declared()]
        columns = {self._id(name): column for column, name in enumerate(names, start=2)}
        query = f"SELECT row, step, metric, value FROM points WHERE metric IN ({', '.join('?' * len(columns))})"
        lines: dict[int, list[str]] = {}
        for row, step, metric, value in self._rows(f"{query} ORDER BY row", list(columns)):
            if row not in lines:
                when = datetime.fromtimestamp(row / MICROSECOND, UTC).isoformat()
                lines[row] = [str(step), when, *[""] * len(names)]
            lines[row][columns[metric]] = "" if value is None else repr(value)
        csv.writer(file, lineterminator="\n").writerows([["step", "time", *names], *lines.values()])
        return len(lines)

    def _id(self, name: str) -> int:
        found = self._rows("SELECT id FROM metrics WHERE name = ?", (name,))
        if not found:
            raise MetricError(f"there is no metric {name}{near(name, (metric.name for metric in self.declared()))}")
        return int(found[0][0])

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            try:
                return self._opened().execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise MetricError(f"{self.path} cannot be read: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            # Reading a file that may be written needs another file beside it. Where none can be made, nobody writes.
            mode = self._mode if os.access(self.path.parent, os.W_OK) else "immutable=1"
            uri = f"{self.path.absolute().as_uri()}?{mode}"
            connection = sqlite3.connect(uri, PATIENCE_S, uri=True, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Raise unless the file has a format that can be read."""
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        if version not in self._formats:
            raise sqlite3.DatabaseError(f"its format is {version}, expected {FORMAT}")


class MetricWriter(MetricLog):
    """Also writes. Metrics declared before stay readable; only those declared now can be logged."""

    _mode = "mode=rwc"
    _formats = (0, FORMAT)  # 0 is a new file

    def __init__(self, path: Path, metrics: Sequence[Metric]) -> None:
        super().__init__(path)
        names = [metric.name for metric in metrics]
        for name, metric in zip(names, metrics):
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name), f"metric {name!r}: small letters, digits and _ only"
            assert names.count(name) == 1, f"metric {name} is declared twice"
            named = {*(metric.interval or ()), metric.baseline} - {""}
            assert named <= set(names), f"metric {name} names {named - set(names)}, which nobody declares"
        rows = [(*map(about.pop, PLAIN), json.dumps(about)) for about in map(asdict, metrics)]
        with self._transaction() as database:
            database.executemany(
                f"INSERT INTO metrics ({', '.join(PLAIN)}, shown) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET unit = excluded.unit, meaning = excluded.meaning,"
                " family = excluded.family, better = excluded.better, shown = excluded.shown", rows,
            )  # fmt: skip
        ids = dict(self._rows("SELECT name, id FROM metrics"))
        self._ids = {name: ids[name] for name in names}
        newest = "SELECT coalesce(max((SELECT max(row) FROM points WHERE metric = id)), 0) FROM metrics"
        ((self._row,),) = self._rows(newest)

    def log(self, step: int, /, **values: float) -> None:
        step = operator.index(step)
        points: list[tuple[int, float | None]] = []
        for name, value in values.items():
            metric = self._ids.get(name)
            if metric is None:
                raise MetricError(f"metric {name} was logged but never declared{near(name, self._ids)}")
            if not isinstance(value, NUMBERS):
                raise MetricError(f"metric {name} was logged as {type(value).__name__}, expected a number")
            value = float(value)
            points.append((metric, value if math.isfinite(value) else None))
        with self._transaction() as database:
            row = max(self._row + 1, time.time_ns() // 1000)  # the clock may have been set back
            rows = [(metric, row, step, value) for metric, value in points]
            database.executemany("INSERT INTO points VALUES (?, ?, ?, ?)", rows)
            lost = [(metric,) for metric, value in points if value is None]
            database.executemany("UPDATE metrics SET not_finite = not_finite + 1 WHERE id = ?", lost)
            self._row = row

    def event(self, kind: str, text: str) -> None:
        with self._transaction() as database:
            database.execute("INSERT INTO events (time, kind, text) VALUES (?, ?, ?)", (time.time(), kind, text))

    def rewind(self, step: int) -> int:
        """Drop values logged after the step that training goes on from, so that no step has two; returns how many."""
        with self._transaction() as database:
            return database.execute("DELETE FROM points WHERE step > ?", (operator.index(step),)).rowcount

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        # No waiting for the disk at every commit: what a killed process wrote is safe with the system; after a power
        # cut the newest values may be missing, but the file is whole.
        connection.execute("PRAGMA synchronous = NORMAL")
        super()._prepare(connection)
        connection.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT")
        if not _knows_how_to_show(connection.execute("PRAGMA table_info(metrics)").fetchall()):
            connection.execute("ALTER TABLE metrics ADD COLUMN shown TEXT NOT NULL DEFAULT ''")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            try:
                with self._opened() as database:  # commits, or rolls back
                    database.execute("BEGIN IMMEDIATE")
                    yield database
            except sqlite3.Error as error:
                raise MetricError(f"{self.path} cannot be written: {error}") from error


def near(name: str, known: Iterable[str]) -> str:
    """The end of an error message that offers similar names."""
    found = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def _metric(plain: dict[str, str], shown: str) -> Metric:
    if not shown and plain["unit"] == "share":  # written when metrics did not say yet how they are shown
        plain["unit"] = "fraction"
    return msgspec.convert(plain | json.loads(shown or "{}"), Metric)


def _knows_how_to_show(columns: Sequence[Sequence[Any]]) -> bool:
    return any(column[1] == "shown" for column in columns)
