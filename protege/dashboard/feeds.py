"""What is new in run folders: read once for any number of viewers, and told in small pieces.

A viewer says which row and event it has seen last; the answer holds only what came later. To a new one it is the whole
history, with the last minute, ten minutes and hour as detailed as all before them: pages compress time in the same way.
"""

import threading
import time
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from protege.runs.metrics import MICROSECOND, MetricLog, Series
from protege.runs.run import open_run

STRETCHES_S: Final = (3600.0, 600.0, 60.0)  # ages at which the history becomes finer
POINTS_A_STRETCH: Final = 100
MOST_EVENTS: Final = 60
COLUMNS: Final = ("steps", "times", "mean", "low", "high")
REMEMBERED_S: Final = 0.5  # an answer is good for so long for others who are as far


Number = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]


class Place(msgspec.Struct, frozen=True):
    """How far a viewer is in one run."""

    row: Number = 0
    event: Number = 0
    status: str = ""


class Wanted(msgspec.Struct):
    """What a viewer sends: the runs to follow, and how far it is in each."""

    watch: Annotated[dict[str, Place], msgspec.Meta(max_length=16)]


class Feeds:
    """The news of every run in a folder. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._turn = threading.Lock()
        self._remembered: dict[tuple[str, Place], tuple[float, dict[str, Any] | None]] = {}

    def news(self, name: str, place: Place) -> dict[str, Any] | None:
        """What came after a place, and the new place; None if nothing did."""
        with self._turn:
            now = time.monotonic()
            self._remembered = {key: kept for key, kept in self._remembered.items() if now - kept[0] < REMEMBERED_S}
            if (name, place) not in self._remembered:
                self._remembered[name, place] = now, self._read(name, place)
            return self._remembered[name, place][1]

    def _read(self, name: str, place: Place) -> dict[str, Any] | None:
        with open_run(name, self.folder) as run:
            log, status = run.metrics, run.status()
            latest = log.latest()
            rows = {metric: round(point.time * MICROSECOND) for metric, point in latest.items()}
            newest = max(rows.values(), default=0)
            events = log.events(since=place.event, most=MOST_EVENTS)
            if newest <= place.row and not events and status == place.status:
                return None
            points = {
                metric: columns(log.series(metric, since_row=place.row)) if place.row else history(log, metric, newest)
                for metric, row in rows.items()
                if row > place.row
            }
            return {
                "run": name, "status": status, "controls": run.controls(), "points": points,
                "row": max(newest, place.row), "step": max((point.step for point in latest.values()), default=0),
                "event": events[-1].id if events else place.event, "events": [event._asdict() for event in events],
            }  # fmt: skip


def history(log: MetricLog, metric: str, newest: int) -> dict[str, Any]:
    """A whole metric, finer towards the newest row."""
    now = newest / MICROSECOND
    pieces, start = [], None
    for age in (*STRETCHES_S, 0.0):
        stop = now - age
        pieces.append(columns(log.series(metric, most_points=POINTS_A_STRETCH, along="time", start=start, stop=stop)))
        start = stop + 1 / MICROSECOND
    return {key: [value for piece in pieces for value in piece.get(key, piece["mean"])] for key in COLUMNS}


def columns(series: Series) -> dict[str, Any]:
    """A series as it is sent: six digits are more than a screen shows."""
    found: dict[str, Any] = {"steps": series.steps, "times": series.times}
    for key in ("mean", "low", "high"):
        found[key] = [value if value is None else float(f"{value:.6g}") for value in getattr(series, key)]
    return found if found["low"] != found["high"] else {key: found[key] for key in COLUMNS[:3]}
