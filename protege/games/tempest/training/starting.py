"""A pupil that does not begin from nothing: whose weights it takes over, and how they get into another network.

A network of the same shape takes the weights as they are. Any other is distilled: it learns the action values of the
original in games that are played by the original at first, and more and more by itself, so that it also learns what to
do where its own mistakes lead.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from protege.games.players import UnknownPlayer
from protege.games.tempest.agents.players import BUILT_IN, PLAYERS
from protege.games.tempest.rules.levels import LAST_LEVEL
from protege.games.tempest.task.actions import ACTIONS
from protege.games.tempest.task.observation import VALUES
from protege.games.tempest.training.config import TempestConfig
from protege.games.tempest.training.simulator import Simulator
from protege.runs.metrics import near
from protege.runs.run import list_runs

Floats = npt.NDArray[np.float32]

GAMES: Final = 256  # advance together while a network is distilled
KEPT: Final = 65_536  # frames that are learned from again
BATCH: Final = 1024
RATE: Final = 1e-3  # falls to 0
TEMPERATURE: Final = 0.03  # of the softmax over action values whose divergence is part of the loss, in units of reward
TOLD_S: Final = 15.0  # between two lines of progress


class Values(Protocol):
    """A pupil that can say what its moves are worth."""

    def values(self, observation: Floats) -> Floats: ...


def find_start(name: str, runs: Path | None = None) -> Path:
    """The file with the weights to start from."""
    found = PLAYERS.checkpoint_of(name, runs)
    if found is not None:
        return found
    why = f"{name} has no weights to start from" if name in BUILT_IN else f"there is no {name!r} to start from"
    known = [*PLAYERS.champions, *(run.name for run in list_runs(runs))]
    raise UnknownPlayer(
        f"{why}: use {', '.join(PLAYERS.champions)}, the name of a run or the path of a checkpoint{near(name, known)}"
    )


def divergence(values: Tensor, wanted: Tensor) -> Tensor:
    """How far the policies of two sets of action values (games, 44) are apart: KL divergence of their softmax."""
    ours, theirs = (torch.log_softmax(given / TEMPERATURE, 1) for given in (values, wanted))
    return functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)


def distil(
    origin: Values, network: nn.Module, loss: Callable[[Floats, Tensor], tuple[Tensor, Tensor]], config: TempestConfig,
    tell: Callable[[str], None], name: str,
) -> float:  # fmt: skip
    """Teach a network the action values of another; the fraction of frames in which both choose the same at the end.

    `loss` gives, for observations and the values wanted, the loss of a batch and the network's own values.
    """
    random = np.random.default_rng(config.seed)
    games = Simulator(GAMES, replace(config.starts, top_level=LAST_LEVEL), seed=config.seed, shaping=0.0)
    games.warm_up()
    seen, worth = np.empty((KEPT, VALUES), np.float32), np.empty((KEPT, len(ACTIONS)), np.float32)
    parameters = list(network.parameters())
    adam = torch.optim.Adam(parameters)
    rounds = -(-config.distil_frames // GAMES)
    agreed, next_told = 0.0, time.monotonic() + TOLD_S
    for number in range(rounds):
        done = number / rounds
        if number % 32 == 0:
            games.remember()
        observation = games.frames.observation
        wanted = origin.values(observation)
        with torch.no_grad():
            own = loss(observation, torch.from_numpy(wanted))[1].argmax(1).cpu().numpy()
        best = wanted.argmax(1)
        agreed += 0.02 * (float((own == best).mean()) - agreed)
        at = number * GAMES % KEPT
        seen[at : at + GAMES], worth[at : at + GAMES] = observation, wanted
        games.step(np.where(np.arange(GAMES) < done * GAMES, own, best))
        games.replace_lost()
        picked = random.integers(0, min(KEPT, (number + 1) * GAMES), BATCH)
        for group in adam.param_groups:
            group["lr"] = RATE * (1.0 - done)
        found, _ = loss(seen[picked], torch.from_numpy(worth[picked]))
        for parameter, gradient in zip(parameters, torch.autograd.grad(found, parameters), strict=True):
            parameter.grad = gradient
        nn.utils.clip_grad_norm_(parameters, 10.0)
        adam.step()
        if time.monotonic() >= next_told:
            next_told = time.monotonic() + TOLD_S
            tell(f"distilling {name}: {done:.0%}, the same move in {agreed:.0%} of the frames")
    network.zero_grad(set_to_none=True)
    return agreed
