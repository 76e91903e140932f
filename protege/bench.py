"""Every benchmark: what was measured, a baseline in the same run, and their ratio.

The machine is noisy, so the sides of a comparison take turns in short slices and the median slice is reported.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from protege import ProtegeError

if TYPE_CHECKING:
    from protege.learn.replay import Replay

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

    from protege.tempest.config import TempestConfig
    from protege.tempest.train import Observer, train

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
    from protege.tempest.config import PRESETS
    from protege.tempest.train import LOG_SECONDS, Observer, train

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


def rainbow_update(seconds: float, stored: int = 1_000_000) -> Figures:
    """Milliseconds of a Rainbow update on 256 samples out of a million, beside a bare forward and backward pass.

    An update is everything: drawing from the replay, both networks, targets, optimiser, new priorities. All in one
    thread, except where the name says two. Beside it the optional networks, and decisions a second of the default one.
    `cpu` figures count the thread's own time, which other programs on the machine disturb less.
    """
    import torch

    from protege.learn.rainbow import Rainbow, RainbowConfig
    from protege.tempest.attention import FACTORS, AttentionConfig, RainbowPupil, build_network, shape_of

    torch.set_num_threads(1)
    config = RainbowConfig()
    memory, random = _filled_replay(stored), np.random.default_rng(1)
    network = build_network(shape_of(AttentionConfig(), config))
    observation = memory.sample(config.batch, config.beta, random).observation
    to_logits = torch.randn(network(torch.from_numpy(observation)).shape)

    def updating(threads: int = 1, **options: bool) -> Callable[[], object]:
        shape = shape_of(AttentionConfig(**options), config)
        learner = Rainbow(build_network(shape), config, factors=FACTORS, threads=threads)

        def update() -> None:
            batch = memory.sample(config.batch, config.beta, random)
            _, divergences = learner.update(batch, config.cloning)
            memory.update(batch.handle, divergences)

        return update

    def bare() -> object:
        return torch.autograd.grad(network(torch.from_numpy(observation)), list(network.parameters()), to_logits)

    def deciding(games: int) -> Callable[[], object]:
        pupil = RainbowPupil(network.frozen())
        return lambda: pupil.values(observation[:games]).argmax(1)

    cpu_s: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], object]) -> Side:
        work()  # the first time also allocates
        spent = cpu_s[name] = []

        def side() -> tuple[int, float]:
            began, before = time.perf_counter(), time.thread_time()
            work()
            spent.append(time.thread_time() - before)
            return 1, time.perf_counter() - began

        return side

    works = {"update": updating(), "bare": bare, "update_2_threads": updating(threads=2)}
    works |= {f"update_{option}": updating(**{option: True}) for option in ("self_attention", "separate_heads")}
    deciders = {f"decide_{games}": deciding(games) for games in (1, 16, 256)}
    rates = alternate({name: timed(name, work) for name, work in (works | deciders).items()}, seconds)
    figures: Figures = {f"{name}_ms": 1000 / rates[name] for name in works}
    figures |= {f"{name}_cpu_ms": 1000 * float(np.median(cpu_s[name])) for name in works if "threads" not in name}
    for kind in ("", "_cpu"):
        figures[f"ratio{kind}"] = figures[f"update{kind}_ms"] / figures[f"bare{kind}_ms"]
    for games in (1, 16, 256):
        figures[f"decisions_per_s_{games}"] = games * rates[f"decide_{games}"]
        figures[f"decisions_per_cpu_s_{games}"] = games / float(np.median(cpu_s[f"decide_{games}"]))
    return figures | {"batch": config.batch, "replay": len(memory)}


def _filled_replay(steps: int) -> "Replay":
    """A replay in which so many steps can be drawn: noise, in episodes of 500 steps."""
    from protege.learn.replay import Actor, Replay, ReplayConfig
    from protege.tempest.packing import PACKING

    dice, streams = np.random.default_rng(1), np.arange(1024)
    seen = dice.uniform(-1, 1, (len(streams), len(PACKING.scale))).astype(np.float32)
    replay = Replay(PACKING, ReplayConfig(capacity=steps + 100 * len(streams)))
    while len(replay) < steps:
        chance = dice.random(len(streams))
        actors = np.where(chance < 0.5, Actor.TEACHER, Actor.PUPIL)
        actions = dice.integers(0, 44, len(streams))
        replay.add(streams, seen, actions, chance, chance < 1 / 500, np.zeros(len(streams), np.bool_), actors, actions)
    return replay


class _PlainReplay:
    """What one would write first: both observations of every transition as they are, a binary tree in NumPy."""

    def __init__(self, capacity: int, values: int):
        self.capacity, self.position = capacity, 0
        self.observation = np.empty((capacity, values), np.float32)
        self.next_observation = np.empty((capacity, values), np.float32)
        self.action, self.reward = np.empty(capacity, np.int64), np.empty(capacity, np.float32)
        self.terminated = np.empty(capacity, np.bool_)
        self.leaves = 1 << (capacity - 1).bit_length()
        self.sums = np.zeros(2 * self.leaves)  # the children of node i are 2 i and 2 i + 1

    def add(self, *transitions: npt.NDArray[Any]) -> None:
        slots = (self.position + np.arange(len(transitions[0]))) % self.capacity
        arrays = self.observation, self.next_observation, self.action, self.reward, self.terminated
        for array, given in zip(arrays, transitions, strict=True):
            array[slots] = given
        self.position += len(slots)
        self.update(slots, np.ones(len(slots)))

    def update(self, slots: npt.NDArray[np.int64], priorities: npt.NDArray[np.float64]) -> None:
        nodes = slots + self.leaves
        self.sums[nodes] = priorities
        while nodes[0] > 1:
            nodes = np.unique(nodes >> 1)
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def sample(self, count: int, beta: float, random: np.random.Generator) -> list[npt.NDArray[Any]]:
        total = self.sums[1]
        left = (np.arange(count) + random.random(count)) * (total / count)
        nodes = np.ones(count, np.int64)
        while nodes[0] < self.leaves:
            nodes *= 2
            right = left >= self.sums[nodes]
            left -= np.where(right, self.sums[nodes], 0)
            nodes += right
        slots = nodes - self.leaves
        weight = (min(self.position, self.capacity) * self.sums[nodes] / total) ** -beta
        arrays = self.observation, self.next_observation, self.action, self.reward, self.terminated
        return [slots, weight / weight.max(), *(array[slots] for array in arrays)]


def _played(games: int, rounds: int) -> tuple[npt.NDArray[np.float32], ...]:
    """Rounds of the teacher's games: observations and those after them, rewards, terminations."""
    from protege.tempest.env import Games, starts

    all_of_them = Games(starts(games, level=[1 + i % 40 for i in range(games)]))
    found = []
    for _ in range(200 + rounds):  # past the quiet beginning of a game
        before = all_of_them.frames.observation.copy()
        frames = all_of_them.step(all_of_them.frames.advice)
        found.append((before, frames.observation.copy(), frames.reward.copy(), frames.terminated.copy()))
    seen, following, rewards, terminated = (np.array(kind[200:]) for kind in zip(*found, strict=True))
    return seen, following, rewards, terminated


def replay(seconds: float, capacity: int = 15_000_000) -> Figures:
    """Milliseconds to draw, gather and update 256 steps of a full replay; steps added a second; gigabytes.

    512 games add a step at a time. Beside it a plain NumPy replay, smaller, because as large it would not fit.
    """
    import psutil

    from protege.learn.replay import Replay, ReplayConfig, bytes_needed
    from protege.tempest.packing import PACKING

    count, rounds, values = 512, 64, len(PACKING.scale)
    plain_capacity = min(capacity, 1_000_000)
    needed = bytes_needed(PACKING, capacity) + plain_capacity * (8 * values + 32) + 10**9
    free = psutil.virtual_memory().available
    if needed > free:
        raise ProtegeError(f"this benchmark needs {needed / 1e9:.1f} GB of free memory; there are {free / 1e9:.1f} GB")
    random = np.random.default_rng(1)
    seen, following, rewards, terminated = _played(count, rounds)
    actions, streams = random.integers(0, 44, count), np.arange(count)
    never, actors = np.zeros(count, np.bool_), np.ones(count, np.int64)
    memory = Replay(PACKING, ReplayConfig(capacity=capacity))
    plain = _PlainReplay(plain_capacity, values)
    cpu: dict[str, list[float]] = {}  # seconds of each slice, for each draw or step

    def side(name: str, amount: int, work: Callable[[], None]) -> Side:
        def timed() -> tuple[int, float]:
            began, before = time.perf_counter(), time.thread_time()
            work()
            cpu.setdefault(name, []).append((time.thread_time() - before) / amount)
            return amount, time.perf_counter() - began

        return timed

    def add() -> None:
        for i in range(rounds):
            memory.add(streams, seen[i], actions, rewards[i], terminated[i], never, actors)

    def draw() -> None:
        for _ in range(20):
            batch = memory.sample(256, 0.4, random)
            memory.update(batch.handle, random.random(256))

    def plain_add() -> None:
        for i in range(rounds):
            plain.add(seen[i], following[i], actions, rewards[i], terminated[i])

    def plain_draw() -> None:
        for _ in range(20):
            batch = plain.sample(256, 0.4, random)
            plain.update(batch[0], random.random(256))

    add()  # compile
    draw()
    memory.flush()
    resident = psutil.Process().memory_info().rss
    filling = side("filling", rounds * count, add)
    slices = [filling() for _ in range(-(-capacity // (rounds * count)))]
    resident = psutil.Process().memory_info().rss - resident
    while plain.position < plain.capacity:
        plain_add()  # untimed
    draws = alternate({"ours": side("draw", 20, draw), "plain": side("plain_draw", 20, plain_draw)}, seconds)
    both = {"ours": side("add", rounds * count, add), "plain": side("plain_add", rounds * count, plain_add)}
    adds = alternate(both, seconds)
    return {
        "sample_ms": 1000 / draws["ours"],
        "sample_ms_quiet": 1000 / draws["ours_quiet"],
        "sample_cpu_ms": 1000 * float(np.median(cpu["draw"])),
        "plain_sample_ms": 1000 / draws["plain"],
        "sample_ratio": draws["ours"] / draws["plain"],
        "adds_per_s": float(np.median([done / took for done, took in slices])),
        "adds_per_cpu_s": 1 / float(np.median(cpu["filling"])),
        "adds_per_s_full": adds["ours"],
        "plain_adds_per_s_full": adds["plain"],
        "adds_ratio": adds["ours"] / adds["plain"],
        "gigabytes": memory.nbytes / 1e9,
        "gigabytes_resident": resident / 1e9,
        "plain_gigabytes_as_large": capacity * (8 * values + 32) / 1e9,
        "steps": len(memory),
        "capacity": capacity,
        "plain_capacity": plain_capacity,
        "threads": 1,
    }


def bridge(seconds: float, counts: tuple[int, ...] = (1, 8, 16, 36), stored: int = 100_000) -> Figures:
    """Frames per second that arcade clients get answered, and how long they wait for a reply, as they see it.

    At 16 clients: a server that only answers zeros, beside the bridge with a policy that costs nothing and with a small
    network. Then `fps_N`, `p50_ms_N` and `p99_ms_N` with the Rainbow network while it learns from what comes, and
    the same with `_no_training` while it does not. All clients live in one other process, and cost about as much as the
    server that answers zeros.
    """
    import torch

    from protege.tempest.network import Pupil, ValueNetwork

    torch.set_num_threads(1)
    small = Pupil(ValueNetwork((512, 256)).eval())
    memory = _filled_replay(stored)
    figures: Figures = {}
    with _ArcadeClients() as clients:
        first: dict[str, Callable[[float], Figures]] = {
            "do_nothing_{}_16": lambda s: clients.against_zeros(16, s),
            "trivial_{}_16": lambda s: clients.against(lambda frames: np.zeros(len(frames.score), np.int64), 16, s),
            "small_network_{}_16": lambda s: clients.against(small.act, 16, s),
        }
        figures |= _take_turns(first, seconds)
        for count in counts:
            sides: dict[str, Callable[[float], Figures]] = {
                f"{{}}_{count}": lambda s, n=count: clients.against_rainbow(n, s, memory, True),  # type: ignore[misc]
                f"{{}}_{count}_no_training": lambda s, n=count: clients.against_rainbow(n, s, memory, False),  # type: ignore[misc]
            }
            figures |= _take_turns(sides, seconds)
    figures["trivial_ratio"] = figures["trivial_fps_16"] / figures["do_nothing_fps_16"]
    return figures | {"updates_per_s": figures["updates_per_s_16"], "client_processes": 1, "torch_threads": 1}


def _take_turns(sides: dict[str, Callable[[float], Figures]], seconds: float) -> Figures:
    """Medians of the figures of each side, under its name with theirs in it, from five slices of each in turn."""
    found: dict[str, list[float]] = {}
    for _ in range(5):
        for name, side in sides.items():
            for figure, value in side(seconds / 5).items():
                found.setdefault(name.format(figure), []).append(value)
    return {name: float(np.median(values)) for name, values in found.items()}


class _ArcadeClients:
    """The process with the clients, and the servers they are let loose on."""

    def __enter__(self) -> "_ArcadeClients":
        command = [sys.executable, "-c", "from protege.bench import _arcade_clients; _arcade_clients()"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def play(self, port: int, count: int, seconds: float) -> Figures:
        """Let so many clients play at a port; `fps`, `p50_ms` and `p99_ms`."""
        import json

        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{port} {count} {seconds}\n")
        self.process.stdin.flush()
        found: Figures = json.loads(self.process.stdout.readline())
        return found

    def against_zeros(self, count: int, seconds: float) -> Figures:
        """A server in a thread that answers every frame with zeros."""
        import socket
        import threading

        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=_answer_zeros, args=(listener, count), daemon=True)
            thread.start()
            found = self.play(listener.getsockname()[1], count, seconds)
            thread.join()
        return found

    def against(self, act: Callable[[Any], Any], count: int, seconds: float) -> Figures:
        """The bridge with a player."""
        from protege.tempest.bridge import Agent, Bridge, BridgeConfig

        class Playing(Agent):
            def decide(self, frames: Any, clients: Any) -> tuple[Any, int]:
                return act(frames), 0

        with Bridge(Playing(), BridgeConfig(port=0)) as server:
            return self.play(server.port, count, seconds)

    def against_rainbow(self, count: int, seconds: float, memory: "Replay", training: bool) -> Figures:
        """The bridge with the Rainbow network, which learns meanwhile or not."""
        import threading

        from protege.learn.rainbow import Rainbow, RainbowConfig
        from protege.learn.replay import Actor
        from protege.tempest.attention import FACTORS, AttentionConfig, RainbowPupil, build_network, shape_of
        from protege.tempest.bridge import Agent, Bridge, BridgeConfig

        config = RainbowConfig()
        learner = Rainbow(build_network(shape_of(AttentionConfig(), config)), config, factors=FACTORS)
        dice, over = np.random.default_rng(1), threading.Event()

        class Learning(Agent):
            def decide(self, frames: Any, clients: Any) -> tuple[Any, int]:
                return RainbowPupil(learner.acting).act(frames), Actor.PUPIL

            def learn(self, steps: Any) -> None:
                memory.add(
                    steps.clients, steps.observations, steps.actions, steps.rewards, steps.terminated, steps.truncated,
                    steps.actors, steps.advice,
                )  # fmt: skip

        def update() -> None:
            while not over.is_set():
                batch = memory.sample(config.batch, config.beta, dice)
                _, divergences = learner.update(batch, config.cloning)
                memory.update(batch.handle, divergences)

        with Bridge(Learning(), BridgeConfig(port=0)) as server:
            thread = threading.Thread(target=update, daemon=True)
            began = time.perf_counter()
            if training:
                thread.start()
            found = self.play(server.port, count, seconds)
            over.set()
            if training:
                thread.join()
                found["updates_per_s"] = learner.updates / (time.perf_counter() - began)
        return found


def _answer_zeros(listener: Any, count: int) -> None:
    """Three zeros for every frame of so many clients, until they have all left."""
    import selectors

    from protege.tempest.wire import FRAME, PLAIN_GREETING

    watch, received = selectors.DefaultSelector(), dict[Any, int]()
    for _ in range(count):
        client: Any = listener.accept()[0]
        watch.register(client, selectors.EVENT_READ)
        received[client] = -len(PLAIN_GREETING)  # bytes since the last frame that was answered
    while received:
        for key, _ in watch.select():
            client = key.fileobj
            try:
                piece = len(client.recv(65536))
            except ConnectionResetError:
                piece = 0
            received[client] += piece
            if piece == 0:
                watch.unregister(client)
                client.close()
                del received[client]
            elif received[client] >= FRAME.itemsize:
                received[client] -= FRAME.itemsize
                client.send(bytes(3))


def _arcade_clients() -> None:
    """Clients that send frames of real games, over and over; lines `PORT COUNT SECONDS` say where, how many, how long.

    Packets are made beforehand: only the counter and the echo of the last reply are written into them.
    """
    import gc
    import json
    import selectors
    import socket

    from protege.tempest.wire import MOST_CLIENTS, PLAIN_GREETING

    packets = _recorded_packets(MOST_CLIENTS, 64)
    gc.disable()
    for line in sys.stdin:
        port, count, seconds = (float(word) for word in line.split())
        watch = selectors.DefaultSelector()
        sent_at: list[float] = []
        for number in range(int(count)):
            client = socket.create_connection(("127.0.0.1", int(port)))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watch.register(client, selectors.EVENT_READ, number)
            sent_at.append(time.perf_counter())
            client.sendall(PLAIN_GREETING + packets[number][0])
        turns, waits = [0] * int(count), []
        began = time.perf_counter() + 0.2  # the first frames find everything cold
        now = began
        while now < began + seconds:
            for key, _ in watch.select():
                client, number = key.fileobj, key.data  # type: ignore[assignment]
                fire, zap, spinner = client.recv(3)
                now = time.perf_counter()
                waits.append(now - sent_at[number])
                turns[number] += 1
                turn = turns[number]
                packet = packets[number][turn % 64]
                packet[23], packet[24] = turn >> 8 & 255, turn & 255
                packet[30], packet[31], packet[32], packet[33] = fire, zap, 255 * (spinner > 127), spinner
                sent_at[number] = now
                client.send(packet)
                if now < began:
                    waits.clear()
        for key in list(watch.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        took = np.array(waits)
        found = {"fps": len(took) / (now - began)}
        found |= {f"p{percent}_ms": 1000 * float(np.percentile(took, percent)) for percent in (50, 99)}
        print(json.dumps(found), flush=True)


def _recorded_packets(games: int, frames: int) -> list[list[bytearray]]:
    """So many packets of each of some games that the teacher plays."""
    from protege.tempest import wire
    from protege.tempest.env import Games, starts

    table = Games(starts(games, level=[1 + game % 12 for game in range(games)]))
    for _ in range(200):  # past the quiet beginning
        table.step(table.frames.advice)
    found: list[list[bytearray]] = [[] for _ in range(games)]
    for _ in range(frames):
        seen = table.step(table.frames.advice)
        packets, values = wire.new_packets(games), seen.observation
        packets["values"], packets["objective"], packets["subjective"] = values, seen.objective, seen.subjective
        packets["state"], packets["mode"] = np.round(values[:, 0] * 36), np.round(values[:, 1] * 255)
        packets["level"], packets["open"], packets["score"] = seen.level - 1, values[:, 29], seen.score
        packets["lane"] = packets["target"] = np.round(values[:, 5] * 15)
        for game in range(games):
            found[game].append(bytearray(packets[game].tobytes()))
    assert not table.frames.over.any(), "frames of a game that is over ask for no decision"
    return found


BENCHMARKS: dict[str, Callable[[float], Figures]] = {
    "tempest-sim": tempest_sim,
    "tempest-profile": tempest_profile,
    "train": training,
    "dashboard": dashboard,
    "rainbow-update": rainbow_update,
    "replay": replay,
    "bridge": bridge,
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
