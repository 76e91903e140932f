"""Every benchmark: what was measured, a baseline in the same run, and their ratio.

The machine is noisy, so the sides of a comparison take turns in short slices and the median slice is reported.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from protege import ProtegeError

Figures = dict[str, Any]
Side = Callable[[], tuple[int, float]]  # a little work: how much was done, in how many seconds
SLICES = 31  # of each side


def alternate(sides: dict[str, Side], seconds: float) -> dict[str, float]:
    """Run the sides in turn (ABAB...), each slice long enough to share `seconds`.

    The median rate of each side, and as `NAME_quiet` its best decile: on a shared host the median moves by half
    within an hour, the best decile hardly.
    """
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(SLICES):
        for name, side in sides.items():
            done, spent = 0, 0.0
            while spent < seconds / (SLICES * len(sides)):
                amount, took = side()
                done, spent = done + amount, spent + took
            rates[name].append(done / spent)
    medians = {name: float(np.median(found)) for name, found in rates.items()}
    return medians | {f"{name}_quiet": float(np.percentile(found, 90)) for name, found in rates.items()}


def tempest_sim(seconds: float) -> Figures:
    """Frames per second of the simulator: rules alone, and with observation, teacher and rewards.

    The teacher plays, from levels 1 to 40. The rules alone replay its moves game by game, and again all games in step,
    as a learner needs them.
    """
    from protege.tempest import ram, sim
    from protege.tempest.env import Games, starts
    from protege.tempest.players import words

    count = 1024
    turns = iter(range(1, 1_000_000))

    def renew(games: Games) -> None:
        over = np.flatnonzero(games.frames.over)
        if len(over):
            games.put(over, starts(len(over), level=[1 + i % 40 for i in over.tolist()], seed=next(turns)))

    def games_of(threads: int) -> Games:
        games = Games(starts(count, level=[1 + i % 40 for i in range(count)]), threads=threads)
        for _ in range(200):  # past the quiet beginning of a game
            games.step(games.frames.advice)
            renew(games)
        return games

    def everything(games: Games) -> Side:
        def side() -> tuple[int, float]:
            renew(games)  # untimed: starting games is no part of a frame
            before = words(games.rows, ram.FRAMES)
            began = time.perf_counter()
            for _ in range(32):
                games.step(games.frames.advice)
            took = time.perf_counter() - began
            return int((words(games.rows, ram.FRAMES) - before).sum()), took

        return side

    one = games_of(1)
    start = one.rows.copy()
    commands = []
    for _ in range(96):  # the teacher's moves from here, so that the rules can be timed alone
        commands.append(one.frames.advice.copy())
        one.step(commands[-1])
    rows = start.copy()

    moves = np.array(commands)

    def rules_alone() -> tuple[int, float]:
        rows[:] = start
        began = time.perf_counter()
        sim.replay_games(rows, moves)
        return int((words(rows, ram.FRAMES) - words(start, ram.FRAMES)).sum()), time.perf_counter() - began

    def rules_in_step() -> tuple[int, float]:
        rows[:] = start
        began = time.perf_counter()
        for command in commands:
            sim.step_games(rows, 0, count, command, True)
        return int((words(rows, ram.FRAMES) - words(start, ram.FRAMES)).sum()), time.perf_counter() - began

    rules_alone(), rules_in_step()  # compile
    sides: dict[str, Side] = {
        "sim_frames_per_s": rules_alone,
        "sim_frames_per_s_in_step": rules_in_step,
        "all_frames_per_s": everything(one),
        "all_frames_per_s_2_threads": everything(games_of(2)),
    }
    pong = _ale_pong()
    if pong is not None:
        sides["ale_frames_per_s"] = pong
    figures: Figures = dict(alternate(sides, seconds))
    for kind in ("", "_quiet"):
        two_threads, one_thread = figures[f"all_frames_per_s_2_threads{kind}"], figures[f"all_frames_per_s{kind}"]
        figures[f"two_threads_ratio{kind}"] = two_threads / one_thread
    figures.setdefault("ale_frames_per_s", None)
    figures["ale_ratio"] = figures["all_frames_per_s"] / figures["ale_frames_per_s"] if pong else None
    return figures | {"bytes_per_game": ram.ROW_BYTES, "games": count}


def tempest_profile(seconds: float) -> Figures:
    """Nanoseconds that each part of a frame takes, timed alone over the same 1,024 games in the middle of play.

    Alone a part meets warm caches and branches it has learned: the parts add up to less than the whole, and the
    difference is what the processor loses on surprises.
    """
    from protege.kernels import kernel
    from protege.tempest import enemies, env, nymphs, observe, player, ram, sim, teacher
    from protege.tempest.ram import Row, Rows

    games = env.Games(env.starts(1024, level=[1 + i % 40 for i in range(1024)]))
    for _ in range(300):
        games.step(games.frames.advice)
    start = games.rows[games.rows[:, ram.GAME_STATE] == ram.PLAYING]
    seen = np.zeros((len(start), observe.VALUES), np.float32)

    def over_all(part: Callable[[Row], None]) -> Callable[[Rows], None]:
        @kernel
        def loop(rows: Rows) -> None:
            for g in range(len(rows)):
                part(rows[g])

        return loop

    @kernel
    def observe_all(rows: Rows, out: npt.NDArray[np.float32]) -> None:
        for g in range(len(rows)):
            observe.observe(rows[g], out[g])

    @kernel
    def whole_tick(row: Row) -> None:
        sim.step_game(row, True, False, False, 12)

    @kernel
    def advice(row: Row) -> None:
        teacher.advise(row, teacher.MEET)

    @kernel
    def rewards(row: Row) -> None:
        row[ram.PREVIOUS_KNOWN] = np.uint8(1 + 0 * (env.objective_reward(row) + env.subjective_reward(row)))

    parts = {
        "player_moves": player.move_player, "player_fires": player.fire, "nymphs": nymphs.move_nymphs,
        "enemies_move": enemies.move_enemies, "enemy_shots": enemies.move_enemy_shots,
        "player_shots": player.move_player_shots, "enemies_fire": enemies.enemies_fire, "hits": player.check_shots,
        "explosions": sim.run_blasts, "remembering": sim.remember, "whole_tick": whole_tick,
        "teacher": advice, "rewards": rewards,
    }  # fmt: skip
    loops = {name: over_all(part) for name, part in parts.items()}
    loops["observation"] = lambda rows: observe_all(rows, seen)
    figures: Figures = {}
    rows = start.copy()
    for name, loop in loops.items():
        took: list[float] = []
        began = time.perf_counter()
        while len(took) < 5 or time.perf_counter() - began < seconds / len(loops):
            rows[:] = start
            before = time.perf_counter()
            loop(rows)
            took.append(time.perf_counter() - before)
        figures[f"{name}_ns"] = float(np.median(took[1:])) / len(start) * 1e9
    return figures | {"games": len(start)}


def _ale_pong() -> Side | None:
    """A slice of Pong in the Arcade Learning Environment, one act a frame; None where it is not installed."""
    try:
        import ale_py
        from ale_py import roms
    except ImportError:
        return None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", 1)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path("pong"))  # type: ignore[arg-type]
    actions = ale.getMinimalActionSet()

    def slice_of_pong() -> tuple[int, float]:
        began = time.perf_counter()
        for i in range(200):
            ale.act(actions[i // 8 % len(actions)])
            if ale.game_over():
                ale.reset_game()
        return 200, time.perf_counter() - began

    return slice_of_pong


def training(seconds: float) -> Figures:
    """Frames per second of a whole training, and where the cores' time goes; beside it the same work in one thread.

    `frames_per_s` counts everything from the first rollout to the last: exams, checkpoints and logging too.
    """
    import tempfile
    from pathlib import Path

    from protege.tempest.train import Observer, TempestConfig, train

    class Timing(Observer):
        """An observer with a clock."""

        def __init__(self) -> None:
            self.began = self.ended = 0.0
            self.frames = 0
            self.figures: dict[str, float] = {}

        def started(self, report: dict[str, str], done: float) -> None:
            self.began = time.perf_counter()

        def progressed(self, frames: int, done: float, figures: dict[str, float]) -> None:
            self.ended, self.frames, self.figures = time.perf_counter(), frames, figures

    def rate_of(config: TempestConfig) -> tuple[float, Timing]:
        timing = Timing()
        with tempfile.TemporaryDirectory() as folder:
            train(config, timing, folder=Path(folder))
        return timing.frames / (timing.ended - timing.began), timing

    slice_s = max(8.0, seconds / 4)
    together = TempestConfig(minutes=slice_s / 60, exam_seconds=slice_s)
    rates, alone, shares = [], [], []
    for _ in range(2):
        rate, timing = rate_of(together)
        rates.append(rate)
        shares.append({name: value for name, value in timing.figures.items() if name.startswith("share_")})
        # The same schedule, so many frames that both take about as long; exams at the same point.
        frames = int(rate * slice_s / 2)
        in_turn = TempestConfig(frames=frames, exam_every=frames // 2, deterministic=True)
        alone.append(rate_of(in_turn)[0])
    found = {name: float(np.mean([share[name] for share in shares])) for name in shares[0]}
    both = {"frames_per_s": float(np.median(rates)), "frames_per_s_one_thread": float(np.median(alone))}
    return both | {"threads_ratio": both["frames_per_s"] / both["frames_per_s_one_thread"]} | found


VIEWERS = 20  # of the dashboard; each follows the run's news and its live game


def dashboard(seconds: float) -> Figures:
    """CPU time that a frame costs a training with 20 viewers at its page, beside the same training unwatched.

    The page is served as `protege train` does it. Every second report of the training is measured, the ones between
    let the viewers come or go; `seconds` is how long each side is measured.
    """
    import tempfile
    from pathlib import Path

    from protege.dashboard.beside import READY, Beside
    from protege.runs import Training
    from protege.tempest.train import LOG_SECONDS, PRESETS, Observer, train

    class Meter(Observer):
        """The training's observer: sends viewers in and out, and notes what a frame cost meanwhile."""

        def __init__(self) -> None:
            self.costs: dict[bool, list[float]] = {False: [], True: []}  # CPU seconds a frame, by whether it is watched
            self.watched, self.settling = False, True
            self.before = 0, 0.0
            self.viewers: subprocess.Popen[str] | None = None
            self.received = 0

        def prepare(self, run: Training) -> None:
            self.run = run
            words = ["dashboard", "--no-browser", "--runs", str(run.path.parent), "--port", "0"]
            self.page = Beside(words, self.page_is_there)

        def page_is_there(self, line: str) -> None:
            if line.startswith(READY):
                url = line.removeprefix(READY).partition("#")[0]
                command = [sys.executable, "-c", "from protege.bench import _viewers; _viewers()", url, self.run.name]
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
                self.viewers = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]

        def progressed(self, frames: int, done: float, figures: dict[str, float]) -> None:
            now = frames, time.process_time()
            if self.viewers is None or not self.run.last.is_file():  # there is something to watch once it has saved
                self.run.send("save")
                return
            if not self.settling:
                self.costs[self.watched].append((now[1] - self.before[1]) / (now[0] - self.before[0]))
                self.watched = not self.watched
                self.received = self.ask("in" if self.watched else "out")
            self.settling, self.before = not self.settling, now
            if len(self.costs[True]) >= max(3, seconds / LOG_SECONDS):
                self.run.send("stop")

        def ask(self, words: str) -> int:
            """Tell the viewers; they answer how many bytes they have read so far."""
            assert self.viewers is not None and self.viewers.stdin is not None and self.viewers.stdout is not None
            self.viewers.stdin.write(f"{words}\n")
            self.viewers.stdin.flush()
            return int(self.viewers.stdout.readline())

    meter = Meter()
    never = 1e9
    config = replace(PRESETS["laptop"], minutes=0.0, exam_games=8, exam_seconds=never, autosave_seconds=never)
    with tempfile.TemporaryDirectory() as folder:
        try:
            train(config, meter, name="watched", folder=Path(folder), prepare=meter.prepare)
        finally:
            meter.page.close()
            if meter.viewers is not None:
                meter.viewers.communicate()
    alone, watched = (float(np.median(meter.costs[side])) for side in (False, True))
    return {
        "cost": watched / alone - 1,
        "cpu_us_per_frame": 1e6 * alone,
        "cpu_us_per_frame_watched": 1e6 * watched,
        "viewers": VIEWERS,
        "megabytes_read": meter.received / 1e6,
        "slices": len(meter.costs[True]),
    }


def _viewers() -> None:
    """Viewers of a page, who come at the word `in` on standard input and leave at any other.

    Sockets that speak just enough to be let in: whoever measures a server should cost less than it.
    """
    import asyncio

    url, run = sys.argv[1:]
    host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
    received = 0

    async def view(path: str, words: bytes) -> None:
        nonlocal received
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


BENCHMARKS: dict[str, Callable[[float], Figures]] = {
    "tempest-sim": tempest_sim,
    "tempest-profile": tempest_profile,
    "train": training,
    "dashboard": dashboard,
}


def run_benchmark(name: str, *, seconds: float = 10.0) -> Figures:
    """Run one benchmark for about so many seconds."""
    if name not in BENCHMARKS:
        raise ProtegeError(f"no benchmark named {name!r}: there are {', '.join(BENCHMARKS)}")
    if not seconds > 0:
        raise ProtegeError(f"a benchmark takes time: seconds must be above 0, got {seconds}")
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    wall, cpu = time.perf_counter(), time.process_time()
    figures = BENCHMARKS[name](seconds)
    return {
        "benchmark": name,
        **figures,
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "load_before": load_before,
        "cores": os.cpu_count(),
    }
