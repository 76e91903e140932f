"""The Rainbow learner: its update beside a bare pass, its replay beside a plain one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import torch

from protege import ProtegeError
from protege.games.tempest.agents.rainbow import NetworkConfig, RainbowPupil, build_network, shape_of
from protege.games.tempest.benchmarks.simulator import taught_games
from protege.games.tempest.task.actions import FACTORS
from protege.games.tempest.task.packing import PACKING
from protege.learn.rainbow import Rainbow, RainbowConfig
from protege.learn.replay import Actor, Replay, ReplayConfig, bytes_needed
from protege.slices import Figures, alternate, medians, timed


def rainbow_update(seconds: float, stored: int = 1_000_000) -> Figures:
    """Milliseconds of a Rainbow update on 256 samples out of a million, beside a bare forward and backward pass.

    An update is everything: drawing from the replay, both networks, targets, optimiser, new priorities. All in one
    thread, except where the name says two. Beside it the optional networks, and decisions a second of the default one.
    `cpu` figures count the thread's own time, which other programs on the machine disturb less.
    """
    torch.set_num_threads(1)
    config = RainbowConfig()
    memory, random = filled_replay(stored), np.random.default_rng(1)
    network = build_network(shape_of(NetworkConfig(), config))
    observation = memory.sample(config.batch, config.beta, random).observation
    to_logits = torch.randn(network(torch.from_numpy(observation)).shape)
    pupil = RainbowPupil(network.frozen())

    def updating(threads: int = 1, **options: Any) -> Callable[[], object]:
        learner = new_learner(config, threads, **options)
        return lambda: update(learner, memory, random)

    def bare() -> object:
        return torch.autograd.grad(network(torch.from_numpy(observation)), list(network.parameters()), to_logits)

    def deciding(games: int) -> Callable[[], object]:
        return lambda: pupil.values(observation[:games]).argmax(1)

    works = {"update": updating(), "bare": bare, "update_2_threads": updating(threads=2)}
    works |= {f"update_{option}": updating(**{option: True}) for option in ("self_attention", "separate_heads")}
    everything = works | {f"decide_{games}": deciding(games) for games in (1, 16, 256)}
    for work in everything.values():
        work()  # the first time also allocates
    cpu_s: dict[str, list[float]] = {name: [] for name in everything}
    rates = alternate({name: timed(work, 1, cpu_s[name]) for name, work in everything.items()}, seconds)
    cpu = medians(cpu_s)
    figures: Figures = {f"{name}_ms": 1000 / rates[name] for name in works}
    figures |= {f"{name}_cpu_ms": 1000 * cpu[name] for name in works if "threads" not in name}
    for kind in ("", "_cpu"):
        figures[f"ratio{kind}"] = figures[f"update{kind}_ms"] / figures[f"bare{kind}_ms"]
    for games in (1, 16, 256):
        figures[f"decisions_per_s_{games}"] = games * rates[f"decide_{games}"]
        figures[f"decisions_per_cpu_s_{games}"] = games / cpu[f"decide_{games}"]
    return figures | {"batch": config.batch, "replay": len(memory)}


def new_learner(config: RainbowConfig, threads: int = 1, **options: Any) -> Rainbow:
    """A Rainbow learner with the network of a training, or one with these options."""
    return Rainbow(build_network(shape_of(NetworkConfig(**options), config)), config, factors=FACTORS, threads=threads)


def update(learner: Rainbow, memory: Replay, random: np.random.Generator) -> None:
    batch = memory.sample(learner.config.batch, learner.config.beta, random)
    _, divergences = learner.update(batch, learner.config.bc_weight)
    memory.update(batch.handle, divergences)


def filled_replay(steps: int) -> Replay:
    """A replay in which so many steps can be drawn: noise, in episodes of 500 steps."""
    dice, streams = np.random.default_rng(1), np.arange(1024)
    observations = dice.uniform(-1, 1, (len(streams), len(PACKING.scale))).astype(np.float32)
    replay = Replay(PACKING, ReplayConfig(capacity=steps + 100 * len(streams)))
    never = np.zeros(len(streams), np.bool_)
    while len(replay) < steps:
        uniform = dice.random(len(streams))
        actors = np.where(uniform < 0.5, Actor.TEACHER, Actor.PUPIL)
        actions = dice.integers(0, 44, len(streams))
        replay.add(streams, observations, actions, uniform, uniform < 1 / 500, never, actors, actions)
    return replay


class _PlainReplay:
    """What one would write first: both observations of every transition as they are, a binary tree in NumPy."""

    def __init__(self, capacity: int, values: int):
        self.capacity, self.position = capacity, 0
        # Observation and the one after it, action, reward, terminated.
        kinds = [((values,), np.float32)] * 2 + [((), np.int64), ((), np.float32), ((), np.bool_)]
        self.arrays = [np.empty((capacity, *shape), kind) for shape, kind in kinds]
        self.leaves = 1 << (capacity - 1).bit_length()
        self.sums = np.zeros(2 * self.leaves)  # the children of node i are 2 i and 2 i + 1

    def add(self, *transitions: npt.NDArray[Any]) -> None:
        slots = (self.position + np.arange(len(transitions[0]))) % self.capacity
        for array, given in zip(self.arrays, transitions, strict=True):
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
        return [*(array[slots] for array in self.arrays), weight / weight.max(), slots]


def _played(games: int, rounds: int) -> tuple[npt.NDArray[Any], ...]:
    """Rounds of the teacher's games: observations and those after them, rewards, terminations."""
    table = taught_games(games)
    found = []
    for _ in range(rounds):
        before = table.frames.observation.copy()
        frames = table.step(table.frames.advice)
        found.append((before, frames.observation.copy(), frames.reward.copy(), frames.terminated.copy()))
    return tuple(np.array(kind) for kind in zip(*found, strict=True))


def replay(seconds: float, capacity: int = 15_000_000) -> Figures:
    """Milliseconds to draw, gather and update 256 steps of a full replay; steps added a second; gigabytes.

    512 games add a step at a time. Beside it a plain NumPy replay, smaller, because as large it would not fit.
    """
    count, rounds, values = 512, 64, len(PACKING.scale)
    plain_capacity, plain_bytes = min(capacity, 1_000_000), 8 * values + 32  # bytes a step
    needed = bytes_needed(PACKING, capacity) + plain_capacity * plain_bytes + 10**9
    free = psutil.virtual_memory().available
    if needed > free:
        raise ProtegeError(f"this benchmark needs {needed / 1e9:.1f} GB of free memory; there are {free / 1e9:.1f} GB")
    random = np.random.default_rng(1)
    observations, following, rewards, terminated = _played(count, rounds)
    actions, streams = random.integers(0, 44, count), np.arange(count)
    never, actors = np.zeros(count, np.bool_), np.ones(count, np.int64)
    memory = Replay(PACKING, ReplayConfig(capacity=capacity))
    plain = _PlainReplay(plain_capacity, values)
    cpu: dict[str, list[float]] = {"filling": [], "draw": []}  # seconds of each slice, for each step or draw

    def add() -> None:
        for i in range(rounds):
            memory.add(streams, observations[i], actions, rewards[i], terminated[i], never, actors)

    def draw(replay: Replay | _PlainReplay) -> None:
        for _ in range(20):
            replay.update(replay.sample(256, 0.4, random)[-1], random.random(256))

    def plain_add() -> None:
        for i in range(rounds):
            plain.add(observations[i], following[i], actions, rewards[i], terminated[i])

    add()  # compile
    draw(memory)
    memory.flush()
    resident = psutil.Process().memory_info().rss
    steps = rounds * count
    filling = timed(add, steps, cpu["filling"])
    slices = [filling() for _ in range(-(-capacity // steps))]
    resident = psutil.Process().memory_info().rss - resident
    while plain.position < plain.capacity:
        plain_add()  # untimed
    ours, theirs = timed(partial(draw, memory), 20, cpu["draw"]), timed(partial(draw, plain), 20)
    draws = alternate({"ours": ours, "plain": theirs}, seconds)
    adds = alternate({"ours": timed(add, steps), "plain": timed(plain_add, steps)}, seconds)
    return {
        "sample_ms": 1000 / draws["ours"], "sample_ms_quiet": 1000 / draws["ours_quiet"],
        "sample_cpu_ms": 1000 * float(np.median(cpu["draw"])),
        "plain_sample_ms": 1000 / draws["plain"], "sample_ratio": draws["ours"] / draws["plain"],
        "adds_per_s": float(np.median([done / took for done, took in slices])),
        "adds_per_cpu_s": 1 / float(np.median(cpu["filling"])),
        "adds_per_s_full": adds["ours"], "plain_adds_per_s_full": adds["plain"],
        "adds_ratio": adds["ours"] / adds["plain"],
        "gigabytes": memory.nbytes / 1e9, "gigabytes_resident": resident / 1e9,
        "plain_gigabytes_as_large": capacity * plain_bytes / 1e9,
        "steps": len(memory), "capacity": capacity, "plain_capacity": plain_capacity, "threads": 1,
    }  # fmt: skip
