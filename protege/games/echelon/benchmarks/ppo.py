"""The recurrent learner: chunks beside single steps, whole trainings, and another library on the same task."""

import subprocess
import sys
import time
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from protege.games.echelon.agents.network import PilotNetwork
from protege.games.echelon.task import features as at
from protege.games.echelon.training.collect import room_for
from protege.games.echelon.training.config import EchelonConfig
from protege.games.echelon.training.trainer import TRAINER
from protege.games.echelon.world.mechs import find_roster
from protege.kernels import cache_root
from protege.learn.rollout import Tensors
from protege.slices import Figures, medians, training_rate

STEPS: Final = 512
CHUNK: Final = 16
TOGETHER: Final = 3200  # steps that are evaluated in one call, at most: more do not fit into a processor's cache
# Of the wall clock, of the processor time, and of the mechs: what a whole training tells of itself.
FRACTIONS: Final = tuple("time_playing time_learning time_else cpu_simulating cpu_acting cpu_learning living".split())
SLICES: Final = 3  # of a training, with each number of threads: other programs use the machine too


def ppo(seconds: float) -> Figures:
    """What a chunked update gains, what a whole training does in a second, and how that compares with sb3-contrib.

    `chunked_vs_stepwise` compares the time of a forward and backward pass over 512 steps of 10 mechs, in one thread, by
    chunks of 16 with stored states and by one call for each step. `train_agent_steps_per_s` counts decisions of living,
    learning mechs of a whole 10v10 training from its first rollout to its last: battles against scripted players,
    updates, logging and saving; evaluations, which have a thread of their own, and an advisor are left out. `time_`
    figures tell where its wall clock went. `sb3_recurrent_ratio` compares whole rounds of rollout and updates on a task
    for one agent, with equal widths, horizons, epochs and updates in an epoch: 640 mechs of ours, 64 environments of
    theirs.
    """
    torch.set_num_threads(1)
    figures = _chunks(10, max(2, round(seconds / 4)))
    figures |= {f"{name}_640": value for name, value in _chunks(640, 1).items()}
    return figures | training(max(20.0, 2 * seconds)) | _beside_others(max(15.0, seconds))


def _chunks(mechs: int, rounds: int) -> Figures:
    torch.manual_seed(1)
    network = PilotNetwork()
    observations, actions, starts = _made_up(mechs)
    states = _states(network, observations, starts)
    times: dict[str, list[float]] = {"chunked": [], "stepwise": []}
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for _ in range(rounds):
        for name, work in (("chunked", _by_chunks), ("stepwise", _by_steps)):
            network.zero_grad()
            began = time.thread_time()
            log_prob = work(network, observations, actions, starts, states)
            times[name].append(time.thread_time() - began)
            found[name] = log_prob, torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    (one, by_one), (other, by_other) = found["chunked"], found["stepwise"]
    median = medians(times)
    return {
        "chunked_vs_stepwise": median["stepwise"] / median["chunked"],
        **{f"{name}_ms": 1000 * seconds for name, seconds in median.items()},
        "chunked_difference": float((one - other).abs().max()),
        "chunked_gradient_difference": float((by_one - by_other).norm() / by_other.norm()),
    }


def _made_up(mechs: int) -> tuple[Tensors, Tensors, Tensor]:
    """What mechs might see and do, (mechs, steps): noise, with battles that begin now and then."""
    dice = torch.Generator().manual_seed(1)
    layout = at.layout_of(find_roster("10v10"))
    observed, _, acted = room_for(layout, talk=False)

    def noise(named: Any) -> Any:
        numbers = {name: torch.rand(mechs, STEPS, *field.shape, generator=dice) for name, field in named.items()}
        return {name: (2 * numbers[name]).to(field.dtype) for name, field in named.items()}

    observations, actions = noise(observed), noise(acted)
    observations["legal"][..., at.LEGAL_EWAR] = observations["legal"][..., at.LEGAL_TARGET + layout.enemies] = True
    actions["ewar"].zero_()
    actions["target"].fill_(layout.enemies)
    return observations, actions, torch.rand(mechs, STEPS, generator=dice) < 0.005


@torch.no_grad()
def _states(network: PilotNetwork, observations: Tensors, starts: Tensor) -> Tensor:
    """The state before each chunk, (chunks, mechs, width), as acting would have stored it."""
    state = torch.zeros(len(starts), network.state_size)
    found = []
    for first in range(0, STEPS, CHUNK):
        found.append(state)
        part = slice(first, first + CHUNK)
        _, _, state = network.remember(_steps(observations, part), state, starts[:, part])
    return torch.stack(found)


def _steps(arrays: Tensors, which: slice) -> Tensors:
    return {name: array[:, which] for name, array in arrays.items()}


def _by_chunks(
    network: PilotNetwork, observations: Tensors, actions: Tensors, starts: Tensor, states: Tensor
) -> Tensor:
    """Log-probabilities (mechs, steps), all chunks of some mechs in one call; leaves gradients of their sum."""

    def cut(arrays: Tensors, rows: slice) -> Tensors:
        return {name: array[rows].reshape(-1, CHUNK, *array.shape[2:]) for name, array in arrays.items()}

    rows_together = max(1, TOGETHER // STEPS)
    found = []
    for first in range(0, len(starts), rows_together):
        rows = slice(first, first + rows_together)
        before, starting = states[:, rows].transpose(0, 1).flatten(0, 1), starts[rows].reshape(-1, CHUNK)
        log_prob = network.evaluate_actions(
            cut(observations, rows), cut(actions, rows), before, starting, None
        ).log_prob
        torch.autograd.backward(log_prob.sum())
        found.append(log_prob.detach().reshape(-1, STEPS))
    return torch.cat(found)


def _by_steps(network: PilotNetwork, observations: Tensors, actions: Tensors, starts: Tensor, states: Tensor) -> Tensor:
    """The same, one call for each step."""
    found = []
    for first in range(0, STEPS, CHUNK):
        state, chunk = states[first // CHUNK], []
        for t in range(first, first + CHUNK):
            now = slice(t, t + 1)
            step = _steps(observations, now)
            out, enemies, state = network.remember(step, state, starts[:, now])
            chunk.append(network.distribution(step, out, enemies).log_prob(_steps(actions, now)))
        whole = torch.cat(chunk, 1)
        torch.autograd.backward(whole.sum())
        found.append(whole.detach())
    return torch.cat(found, 1)


def training(slice_s: float, slices: int = SLICES) -> Figures:
    """Slices of a 10v10 training with two threads and with one, in turn; `_quiet` is the best of them."""
    config = EchelonConfig(minutes=slice_s / 60, eval_matches=2, eval_seconds=1e9, autosave_seconds=slice_s / 2)
    training_rate(TRAINER, replace(config, minutes=0.0, agent_steps=1))  # waits for compiled code
    one, two, fractions = [], [], []
    for _ in range(slices):
        rate, figures = training_rate(TRAINER, replace(config, threads=2))
        two.append(rate)
        fractions.append([figures[name] for name in FRACTIONS])
        one.append(training_rate(TRAINER, replace(config, threads=1))[0])
    found = medians({"train_agent_steps_per_s": two, "train_agent_steps_per_s_one_thread": one})
    return {
        **found,
        "train_agent_steps_per_s_quiet": max(two),
        "threads_ratio": found["train_agent_steps_per_s"] / found["train_agent_steps_per_s_one_thread"],
        **dict(zip(FRACTIONS, np.mean(fractions, axis=0).tolist())),
        "threads": 2,
    }


def _beside_others(slice_s: float) -> Figures:
    """Agent-steps per second on a task for one agent, ours and sb3-contrib's; None where that is not installed."""
    config = EchelonConfig(minutes=slice_s / 60, stages=("O1",), eval_matches=2, eval_seconds=1e9, autosave_seconds=1e9)
    python = cache_root() / "sb3-venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ours, theirs = [], []
    for _ in range(2):
        ours.append(training_rate(TRAINER, config)[0])
        command = [str(python), "-m", f"{__package__}.sb3", str(slice_s), str(config.network.width)]
        found = subprocess.run(command, capture_output=True, text=True) if python.is_file() else None
        if found is not None and found.returncode == 0:
            theirs.append(float(found.stdout.splitlines()[-1]))
    rate, other = float(np.median(ours)), float(np.median(theirs)) if theirs else None
    ratio = rate / other if other else None
    return {"single_agent_steps_per_s": rate, "sb3_agent_steps_per_s": other, "sb3_recurrent_ratio": ratio}
