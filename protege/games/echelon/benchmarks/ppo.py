"""The recurrent learner: chunks beside single steps, whole trainings, and another library on the same task."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from protege.slices import Figures

if TYPE_CHECKING:
    from torch import Tensor

    from protege.games.echelon.agents.network import PilotNetwork
    from protege.learn.rollout import Tensors

STEPS: Final = 512
CHUNK: Final = 16
TOGETHER: Final = 3200  # steps that are judged in one call, at most: more do not fit into a processor's cache
OTHERS: Final = 64  # environments of the other library, one mech each
HORIZON: Final = 64  # decisions of each between its updates, as many as ours
BATCHES: Final = 8  # its updates in an epoch, as many as ours
# Of the wall clock, of the processor time, and of the mechs: what a whole training tells of itself.
SHARES: Final = tuple("time_playing time_learning time_else cpu_simulating cpu_acting cpu_learning living".split())
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
    import torch

    torch.set_num_threads(1)
    figures = _chunks(10, max(2, round(seconds / 4))) | {
        f"{name}_640": value for name, value in _chunks(640, 1).items()
    }
    figures |= training(max(20.0, 2 * seconds))
    return figures | _beside_others(max(15.0, seconds))


# --- chunks ----------------------------------------------------------------------------------------------------------


def _chunks(mechs: int, rounds: int) -> Figures:
    import torch

    from protege.games.echelon.agents.network import PilotNetwork

    torch.manual_seed(1)
    network = PilotNetwork()
    seen, taken, starts = _made_up(mechs)
    states = _states(network, seen, starts)
    times: dict[str, list[float]] = {"chunked": [], "stepwise": []}
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for _ in range(rounds):
        for name, work in (("chunked", _by_chunks), ("stepwise", _by_steps)):
            network.zero_grad()
            began = time.thread_time()
            log_prob = work(network, seen, taken, starts, states)
            times[name].append(time.thread_time() - began)
            found[name] = log_prob, torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    (one, by_one), (other, by_other) = found["chunked"], found["stepwise"]
    chunked, stepwise = (float(np.median(times[name])) for name in ("chunked", "stepwise"))
    return {
        "chunked_vs_stepwise": stepwise / chunked,
        "chunked_ms": 1000 * chunked,
        "stepwise_ms": 1000 * stepwise,
        "chunked_difference": float((one - other).abs().max()),
        "chunked_gradient_difference": float((by_one - by_other).norm() / by_other.norm()),
    }


def _made_up(mechs: int) -> "tuple[Tensors, Tensors, Tensor]":
    """What mechs might see and do, (mechs, steps): noise, with battles that begin now and then."""
    import torch

    from protege.games.echelon.task import features as at
    from protege.games.echelon.training.collect import room_for
    from protege.games.echelon.world.mechs import find_roster

    dice = torch.Generator().manual_seed(1)
    layout = at.layout_of(find_roster("10v10"))
    fields, _, actions = room_for(layout, talk=False)

    def noise(named: Any) -> Any:
        numbers = {name: torch.rand(mechs, STEPS, *field.shape, generator=dice) for name, field in named.items()}
        return {name: (2 * numbers[name]).to(field.dtype) for name, field in named.items()}

    seen, taken = noise(fields), noise(actions)
    seen["legal"][..., at.LEGAL_EWAR] = seen["legal"][..., at.LEGAL_TARGET + layout.enemies] = True
    taken["ewar"].zero_()
    taken["target"].fill_(layout.enemies)
    return seen, taken, torch.rand(mechs, STEPS, generator=dice) < 0.005


def _states(network: "PilotNetwork", seen: "Tensors", starts: "Tensor") -> "Tensor":
    """The state before each chunk, (chunks, mechs, width), as acting would have stored it."""
    import torch

    state = torch.zeros(len(starts), network.state_size)
    found = []
    with torch.no_grad():
        for first in range(0, STEPS, CHUNK):
            found.append(state)
            part = slice(first, first + CHUNK)
            _, _, state = network.remember({name: a[:, part] for name, a in seen.items()}, state, starts[:, part])
    return torch.stack(found)


def _by_chunks(
    network: "PilotNetwork", seen: "Tensors", taken: "Tensors", starts: "Tensor", states: "Tensor"
) -> "Tensor":
    """Log-probabilities (mechs, steps), all chunks of some mechs in one call; leaves gradients of their sum."""
    import torch

    def cut(array: "Tensor") -> "Tensor":
        return array.reshape(-1, CHUNK, *array.shape[2:])

    rows_together = max(1, TOGETHER // STEPS)
    found = []
    for first in range(0, len(starts), rows_together):
        rows = slice(first, first + rows_together)
        evaluation = network.evaluate_actions(
            {name: cut(array[rows]) for name, array in seen.items()},
            {name: cut(array[rows]) for name, array in taken.items()},
            states[:, rows].transpose(0, 1).flatten(0, 1), cut(starts[rows]), None,
        )  # fmt: skip
        torch.autograd.backward(evaluation.log_prob.sum())
        found.append(evaluation.log_prob.detach().reshape(-1, STEPS))
    return torch.cat(found)


def _by_steps(
    network: "PilotNetwork", seen: "Tensors", taken: "Tensors", starts: "Tensor", states: "Tensor"
) -> "Tensor":
    """The same, one call for each step."""
    import torch

    from protege.games.echelon.agents.network import log_prob_of

    found = []
    for first in range(0, STEPS, CHUNK):
        state, chunk = states[first // CHUNK], []
        for t in range(first, first + CHUNK):
            step = {name: array[:, t : t + 1] for name, array in seen.items()}
            out, enemies, state = network.remember(step, state, starts[:, t : t + 1])
            done = {name: array[:, t : t + 1] for name, array in taken.items()}
            chunk.append(log_prob_of(network.chances(step, out, enemies), done))
        whole = torch.cat(chunk, 1)
        torch.autograd.backward(whole.sum())
        found.append(whole.detach())
    return torch.cat(found, 1)


# --- whole trainings -------------------------------------------------------------------------------------------------


def training(slice_s: float, slices: int = SLICES) -> Figures:
    """Slices of a 10v10 training with two threads and with one, in turn; `_quiet` is the best of them."""
    from dataclasses import replace

    from protege.games.echelon.training.config import EchelonConfig

    config = EchelonConfig(minutes=slice_s / 60, eval_matches=2, eval_seconds=1e9, autosave_seconds=slice_s / 2)
    _rate_of(replace(config, minutes=0.0, agent_steps=1))  # the first rollout of a process waits for compiled code
    rates: dict[int, list[float]] = {2: [], 1: []}
    shares: list[dict[str, float]] = []
    for _ in range(slices):
        for threads, found in rates.items():
            rate, figures = _rate_of(replace(config, threads=threads))
            found.append(rate)
            if threads == 2:
                shares.append({name: figures[name] for name in SHARES})
    both = {
        "train_agent_steps_per_s": float(np.median(rates[2])),
        "train_agent_steps_per_s_quiet": max(rates[2]),
        "train_agent_steps_per_s_one_thread": float(np.median(rates[1])),
    }
    both["threads_ratio"] = both["train_agent_steps_per_s"] / both["train_agent_steps_per_s_one_thread"]
    return both | {name: float(np.mean([share[name] for share in shares])) for name in SHARES} | {"threads": 2}


def _rate_of(config: Any) -> tuple[float, dict[str, float]]:
    """Agent-steps per second of a training from its first rollout to its last, and its last figures."""
    import tempfile

    from protege.games.echelon.training.trainer import TRAINER
    from protege.train.loop import Observer, train

    class Timing(Observer):
        """An observer with a clock."""

        def __init__(self) -> None:
            self.began = self.ended = 0.0
            self.steps = 0
            self.figures: dict[str, float] = {}

        def started(self, report: dict[str, str], done: float) -> None:
            self.began = time.perf_counter()

        def progressed(self, step: int, done: float, figures: dict[str, float]) -> None:
            self.ended, self.steps, self.figures = time.perf_counter(), step, figures

    timing = Timing()
    with tempfile.TemporaryDirectory() as folder:
        train(TRAINER, config, timing, folder=Path(folder))
    return timing.steps / (timing.ended - timing.began), timing.figures


# --- beside another library ------------------------------------------------------------------------------------------


def _beside_others(slice_s: float) -> Figures:
    """Agent-steps per second on a task for one agent, ours and sb3-contrib's; None where that is not installed."""
    from protege.games.echelon.training.config import EchelonConfig
    from protege.kernels import cache_root

    config = EchelonConfig(minutes=slice_s / 60, stages=("O1",), eval_matches=2, eval_seconds=1e9, autosave_seconds=1e9)
    python = cache_root() / "sb3-venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ours, theirs = [], []
    for _ in range(2):
        ours.append(_rate_of(config)[0])
        theirs.append(_rate_of_others(python, slice_s, config.network.width))
    figures: Figures = {"single_agent_steps_per_s": float(np.median(ours))}
    found = [rate for rate in theirs if rate is not None]
    figures["sb3_agent_steps_per_s"] = float(np.median(found)) if found else None
    figures["sb3_recurrent_ratio"] = float(np.median(ours) / np.median(found)) if found else None
    return figures


def _rate_of_others(python: Path, slice_s: float, width: int) -> float | None:
    """The same task, trained by sb3-contrib's RecurrentPPO in an environment of its own."""
    if not python.is_file():
        return None
    code = "from protege.games.echelon.benchmarks.ppo import _other_library; _other_library()"
    found = subprocess.run([str(python), "-c", code, str(slice_s), str(width)], capture_output=True, text=True)
    return float(json.loads(found.stdout.splitlines()[-1])) if found.returncode == 0 else None


def _other_library() -> None:
    """Print how many steps a second sb3-contrib's RecurrentPPO trains; seconds and width come as arguments."""
    from importlib import import_module

    import gymnasium
    import torch

    from protege.games.echelon.task.env import Arena

    # By name: these two are in an environment of their own, and no dependency of Protege's.
    recurrent = import_module("sb3_contrib").RecurrentPPO
    side_by_side = import_module("stable_baselines3.common.vec_env").DummyVecEnv

    class Single(gymnasium.Env[Any, Any]):
        """One mech on its way to the zone."""

        def __init__(self, seed: int) -> None:
            self.arena = Arena(1, "1v0", size=(40, 40), length=120, seed=seed)
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._seen().shape)
            self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (4,))
            self.actions = self.arena.battles.no_actions()

        def _seen(self) -> Any:
            seen = self.arena.observation
            return np.concatenate([seen.own[0, 0], seen.map[0, 0].ravel() / 4]).astype(np.float32)

        def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
            return self._seen(), {}  # an arena begins the next battle by itself

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            self.actions.move[0, 0] = action
            frames = self.arena.step(self.actions)
            ended = bool(frames.terminated[0, 0]), bool(frames.truncated[0, 0])
            return self._seen(), float(frames.reward[0, 0]), *ended, {}

    def made(number: int) -> Callable[[], Single]:
        return lambda: Single(number)

    seconds, width = float(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(2)
    task = side_by_side([made(number) for number in range(OTHERS)])
    sizes, rollout = {"lstm_hidden_size": width, "net_arch": [width]}, OTHERS * HORIZON
    model = recurrent(
        "MlpLstmPolicy", task, n_steps=HORIZON, batch_size=rollout // BATCHES, n_epochs=2, policy_kwargs=sizes
    )
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        model.learn(rollout, reset_num_timesteps=False)  # one rollout, and the updates from it
    print(json.dumps(model.num_timesteps / (time.perf_counter() - began)))
