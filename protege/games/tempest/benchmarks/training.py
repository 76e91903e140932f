"""What a whole training does in a second, and what people who watch it cost."""

import asyncio
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from protege.cli.page import READY, ServerProcess
from protege.games.tempest.training.config import PRESETS, TempestConfig
from protege.games.tempest.training.trainer import TRAINER
from protege.runs.run import Training
from protege.slices import Child, Figures, medians, training_rate
from protege.train.loop import LOG_SECONDS, Observer, train

VIEWERS = 20  # of the dashboard; each follows the run's news and its live game
NEVER = 1e9


def training(seconds: float) -> Figures:
    """Frames per second of a whole training, and where the cores' time goes; beside it the same work in one thread.

    `frames_per_s` counts everything from the first rollout to the last: evaluations, checkpoints and logging too.
    """
    slice_s = max(8.0, seconds / 4)
    together = TempestConfig(minutes=slice_s / 60, eval_seconds=slice_s)
    rates, alone, fractions = [], [], []
    for _ in range(2):
        rate, figures = training_rate(TRAINER, together)
        rates.append(rate)
        fractions.append({name: value for name, value in figures.items() if name.startswith("time_")})
        # The same schedule, so many frames that both take about as long; evaluations at the same point.
        frames = int(rate * slice_s / 2)
        in_turn = TempestConfig(frames=frames, eval_every=frames // 2, deterministic=True)
        alone.append(training_rate(TRAINER, in_turn)[0])
    found = {name: float(np.mean([fraction[name] for fraction in fractions])) for name in fractions[0]}
    both = medians({"frames_per_s": rates, "frames_per_s_one_thread": alone})
    return both | {"threads_ratio": both["frames_per_s"] / both["frames_per_s_one_thread"]} | found


class _Meter(Observer):
    """The training's observer: sends viewers in and out, and notes what a frame cost meanwhile."""

    def __init__(self, slices: float) -> None:
        self.slices = slices
        self.costs: dict[bool, list[float]] = {False: [], True: []}  # CPU seconds a frame, by whether it is watched
        self.watched, self.settling = False, True
        self.before = 0, 0.0
        self.viewers: Child | None = None
        self.received = 0

    def prepare(self, run: Training) -> None:
        self.run = run
        words = ["dashboard", "--no-browser", "--runs", str(run.path.parent), "--port", "0"]
        self.page = ServerProcess(words, self.page_is_there)

    def page_is_there(self, line: str) -> None:
        if line.startswith(READY):
            self.viewers = Child(viewers, line.removeprefix(READY).partition("#")[0], self.run.name)

    def progressed(self, step: int, progress: float, figures: dict[str, float]) -> None:
        now = step, time.process_time()
        if self.viewers is None or not self.run.last.is_file():  # there is something to watch once it has saved
            self.run.send("save")
            return
        if not self.settling:
            self.costs[self.watched].append((now[1] - self.before[1]) / (now[0] - self.before[0]))
            self.watched = not self.watched
            self.received = int(self.viewers.ask("in" if self.watched else "out"))
        self.settling, self.before = not self.settling, now
        if len(self.costs[True]) >= self.slices:
            self.run.send("stop")


def dashboard(seconds: float) -> Figures:
    """CPU time that a frame costs a training with 20 viewers at its page, beside the same training unwatched.

    The page is served as `protege train` does it. Every second report of the training is measured, the ones between
    let the viewers come or go; `seconds` is how long each side is measured.
    """
    meter = _Meter(max(3, seconds / LOG_SECONDS))
    config = replace(PRESETS["laptop"], minutes=0.0, eval_games=8, eval_seconds=NEVER, autosave_seconds=NEVER)
    with TemporaryDirectory() as folder:
        try:
            train(TRAINER, config, meter, name="watched", folder=Path(folder), prepare=meter.prepare)
        finally:
            meter.page.close()
            if meter.viewers is not None:
                meter.viewers.close()
    alone, watched = (float(np.median(meter.costs[side])) for side in (False, True))
    return {
        "cost": watched / alone - 1, "cpu_us_per_frame": 1e6 * alone, "cpu_us_per_frame_watched": 1e6 * watched,
        "viewers": VIEWERS, "megabytes_read": meter.received / 1e6, "slices": len(meter.costs[True]),
    }  # fmt: skip


def viewers() -> None:
    """Viewers of a page, who come at the word `in` on standard input and leave at any other; they tell bytes read."""
    url, run = sys.argv[1:]
    host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    received = 0

    async def view(path: str, words: bytes) -> None:
        nonlocal received
        # Just enough to be let in: whoever measures a server should cost less than it.
        reader, writer = await asyncio.open_connection(host, int(port))
        hello = f"GET /api/{path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade"
        key = "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        writer.write("\r\n".join([*hello, *key, "", ""]).encode())
        writer.write(bytes([0x81, 0x80 | len(words), 0, 0, 0, 0]) + words)  # one text, under a mask of zeros
        try:
            while piece := await reader.read(65536):
                received += len(piece)
        finally:
            writer.close()

    async def come_and_go() -> None:
        present: list[asyncio.Task[None]] = []
        lines = ("feed", b'{"watch": {"%s": {}}}' % run.encode()), (f"games/tempest/watch?player={run}", b"{}")
        while word := await asyncio.to_thread(sys.stdin.readline):
            for task in present:
                task.cancel()
            await asyncio.gather(*present, return_exceptions=True)
            coming = word.strip() == "in"
            present = [asyncio.create_task(view(*line)) for line in lines for _ in range(VIEWERS)] if coming else []
            print(received, flush=True)

    asyncio.run(come_and_go())
