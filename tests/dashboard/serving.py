"""A real dashboard server for tests, in a thread of this process, and runs for it to show."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

from protege import ProtegeError
from protege.dashboard.live import Page, Views
from protege.dashboard.server import Served, serve
from protege.runs.metrics import Card, Column, Metric
from protege.runs.run import Training, create_run

METRICS = (
    Metric(
        "eval_score", "points", "mean score on held-out games", "score", "higher", label="pupil",
        interval=("eval_score_low", "eval_score_high"), baseline="teacher_score",
    ),
    Metric("eval_score_low", "points", "lower end of the interval", "score"),
    Metric("eval_score_high", "points", "upper end of the interval", "score"),
    Metric("teacher_score", "points", "the teacher on the same games", "score", label="teacher"),
    Metric(
        "loss", "", "error of the action values", "loss", "lower",
        column=Column("Loss", 3, 3, mean=True), card=Card("loss", 1, "gauge"),
    ),
    Metric(
        "epsilon", "fraction", "probability of a random move", "exploration", control="epsilon",
        column=Column("Epsi%", 2, 2, format="percent"), card=Card("exploration", 2, "gauge", 1.0),
    ),
    Metric(
        "frames_per_s", "1/s", "frames played in a second", "speed", "higher", role="rate",
        column=Column("FPS", 1, 1, mean=True), card=Card("frames/s", 1, "plain"),
    ),
)  # fmt: skip


@contextmanager
def served(folder: Path, games: Mapping[str, Views] | None = None, **settings: Any) -> Iterator[Served]:
    """A server on some free port, unless `settings` say otherwise."""
    found: Queue[Served] = Queue()
    given = {"port": 0, **settings}
    thread = threading.Thread(target=lambda: serve(games or {}, folder=folder, ready=found.put, **given), daemon=True)
    thread.start()
    page = found.get(timeout=20)
    try:
        yield page
    finally:
        page.stop()
        thread.join(timeout=20)
        assert not thread.is_alive(), "the server did not stop"


def make_run(folder: Path, name: str, points: int = 50, metrics: tuple[Metric, ...] = METRICS) -> Training:
    """A run in training with some values: whoever asks for it closes it."""
    config = {"minutes": 10, "frames": 0, "learner": {"rate": 0.001}}
    run = create_run("tempest", "pqn", config, metrics, name=name, score="eval_score", unit="frame", folder=folder)
    log(run, range(points))
    return run


def log(run: Training, turns: range) -> None:
    """Values of a training that gets better: at turn n step 1000 n, loss 1 / (1 + n), and an exam each tenth turn."""
    for turn in turns:
        run.log(1000 * turn, loss=1 / (1 + turn), epsilon=max(0.02, 1 - turn / 20), frames_per_s=50_000.0)
        if turn % 10 == 0:
            score = 100.0 * turn
            run.log(
                1000 * turn,
                eval_score=score,
                eval_score_low=score - 50,
                eval_score_high=score + 50,
                teacher_score=2000.0,
            )


class Counting:
    """A live view that counts its ticks and repeats what it hears."""

    def __init__(self, settings):
        if settings.get("bad"):
            raise ProtegeError("this view is closed")
        self.rate = 200.0
        self.ticks = 0
        self.heard = []

    def tick(self):
        self.ticks += 1
        return json.dumps([self.ticks, self.heard]).encode()

    def hear(self, words):
        self.heard.append(words)


class Fair:
    """A game with live views, of which it keeps account, and perhaps files of its own for the page."""

    game = "fair"
    style = ()

    def __init__(self, page: Page = Page()):
        self.opened: list[Counting] = []
        self.page = page

    def about(self):
        return {"players": ["somebody"]}

    def shared(self, kind):
        return kind == "watch"

    def open(self, kind, settings):
        self.opened.append(Counting(settings))
        return self.opened[-1]

    def high_scores(self):
        return [{"initials": "ABC", "score": 5}]

    def file(self, settings):
        return settings["name"].encode()
