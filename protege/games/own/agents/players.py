"""Players of any world by name, what they earn on held-out episodes, and a pupil's weights as a player.

A player is anything with `act(arena)`, which answers with the moves of all games (`arena.observation` is what is seen
in them). Built in are the teacher and random play; runs and checkpoints are pupils.
"""

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege import ProtegeError
from protege.games.own.agents.networks import ActorCritic, ValueNetwork, plan, rainbow_network
from protege.games.own.agents.scaling import Scaling
from protege.games.own.world.arena import Arena, Episode, World
from protege.games.own.world.spaces import Array, Moves, Sight
from protege.games.players import Players, UnknownPlayer
from protege.learn.rainbow import QNetwork
from protege.learn.state import named_weights, restore_weights
from protege.runs import checkpoints
from protege.runs.run import list_runs, open_run
from protege.seeds import EVALUATION
from protege.statistics import bootstrap, interquartile_mean, mean
from protege.train.session import Cancelled

LONGEST: Final = 20_000  # frames after which an episode is cut, if nothing else is said
TEACHER: Final = "teacher"


class Player(Protocol):
    """Who decides."""

    def act(self, arena: Arena) -> Array: ...


class Random:
    """Any move, from the game's own seed."""

    def act(self, arena: Arena) -> Array:
        return arena.moves.random(arena.uniform())


class Teacher:
    """Does what it advises."""

    def act(self, arena: Arena) -> Array:
        return arena.advice()


def build(shape: Mapping[str, Any], sight: Sight, moves: Moves) -> nn.Module:
    """The network of a checkpoint."""
    widths = tuple(int(width) for width in shape["widths"])
    match shape["learner"]:
        case "pqn":
            return ValueNetwork(sight, moves, widths)
        case "rainbow":
            return rainbow_network(sight, moves, widths, shape["atoms"], shape["low"], shape["high"])
        case "ppo":
            return ActorCritic(sight, moves, widths, recurrent=bool(shape["recurrent"]), seen_by=int(shape["seen_by"]))
    raise ProtegeError(f"a checkpoint of learner {shape['learner']!r} is of another version")


class Pupil:
    """What a network does, without exploration."""

    def __init__(self, network: nn.Module, scaling: Scaling):
        self.network, self.scaling = copy.deepcopy(network).requires_grad_(False).eval(), copy.copy(scaling)
        self.state = torch.zeros(0, 0)  # of a recurrent one, by game

    @torch.inference_mode()
    def act(self, arena: Arena) -> Array:
        seen, network = torch.from_numpy(self.scaling.see(arena.observation)), self.network
        if isinstance(network, ActorCritic):
            if len(self.state) != arena.count:
                self.state = torch.zeros(arena.count, network.state_size)
            starts = torch.from_numpy(arena.frame == 0)
            chosen, _, self.state = network.act(seen, self.state, starts, sampled=False)
            return network.to_moves(chosen)
        values = network(seen)
        found: Array = (network.expected(values) if isinstance(network, QNetwork) else values).argmax(1).numpy()
        return found

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        return named_weights(self.network, "network") | scaling_tensors(self.scaling)


def scaling_tensors(scaling: Scaling) -> dict[str, Tensor]:
    return {f"scaling.{name}": torch.as_tensor(value, dtype=torch.float64) for name, value in scaling.state().items()}


def restore_scaling(scaling: Scaling, tensors: Mapping[str, Tensor]) -> None:
    mean_of, variance, count = (tensors[f"scaling.{name}"].numpy() for name in ("mean", "variance", "count"))
    scaling.restore({"mean": mean_of, "variance": variance, "count": float(count)})


def load_pupil(path: Path, world: World) -> Pupil:
    """The pupil of a checkpoint, refused if it has learned something else."""
    saved = checkpoints.load(path, kind=world.kind, task_version=world.version)
    sight, moves = world.spaces
    if saved.state["plan"] != plan(sight, moves):
        raise checkpoints.CheckpointMismatch(
            f"{path} was trained on {saved.state['place']} when it was seen or played differently: train anew"
        )
    network, scaling = build(saved.state["shape"], sight, moves), Scaling(sight)
    restore_weights(network, saved.tensors, "network", path)
    restore_scaling(scaling, saved.tensors)
    return Pupil(network, scaling)


@dataclass(frozen=True)
class OwnPlayers(Players[Any]):
    """The players of one world."""

    def find(self, name: str, runs: Path | None = None) -> Any:
        found = super().find(name, runs)
        if not hasattr(found, "act"):
            raise UnknownPlayer(f"player {name!r} has no method {self.needs}")
        return found


def players_of(world: World) -> OwnPlayers:
    scripted: dict[str, Callable[[], Any]] = {"random": Random}
    if world.teaches:
        scripted = {TEACHER: Teacher, **scripted}
    return OwnPlayers(scripted, {}, lambda path: load_pupil(path, world), "act(arena); see docs/your-own-game.md")


def teacher_of(game: str, names: Sequence[str], runs: Path | None) -> str:
    """The teacher of the named runs, or else of the newest run of a game that has one; empty if there is none."""
    own = [run.name for run in list_runs(runs) if run.game == game]
    for name in [*(name for name in names if name in own), *reversed(own)]:
        with open_run(name, runs) as run:
            if teacher := run.info().config.get(TEACHER, ""):
                return str(teacher)
    return ""


def play(
    world: World, player: Player, games: int, seed: int, longest: int = LONGEST,
    cancelled: threading.Event | None = None, domain: int = EVALUATION, first: int = 0,
) -> list[Episode]:  # fmt: skip
    """Whole episodes from number `first` on, each fixed by its seed, in their order."""
    found: dict[int, Episode] = {}
    arena = Arena(world, min(games, world.at_once), domain, seed, longest, begun=first)
    try:
        while len(found) < games:
            if cancelled is not None and cancelled.is_set():
                raise Cancelled
            moves = player.act(arena)
            try:
                moves = arena.moves.from_env(arena.moves.to_env(np.asarray(moves)), arena.count)
            except (ValueError, IndexError, TypeError) as problem:
                raise arena.fault(f"the player is wrong: {problem}") from problem
            arena.step(moves)
            found |= {episode.number: episode for episode in arena.taken_episodes() if episode.number < first + games}
    finally:
        arena.close()
    return [found[number] for number in range(first, first + games)]


def evaluate(
    world: World, name: str, player: Player, *, games: int, seed: int = 1, longest: int = LONGEST,
    cancelled: threading.Event | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One row of results for one player, with 95 % intervals."""
    if games < 1:
        raise ProtegeError(f"an evaluation needs at least one game; got {games}")
    began = time.perf_counter()
    episodes = play(world, player, games, seed, longest, cancelled)
    returns: npt.NDArray[np.float64] = np.array([episode.reward for episode in episodes])
    (low, high), (iqm_low, iqm_high) = bootstrap(returns, mean), bootstrap(returns, interquartile_mean)
    return {
        "player": name, "games": games, "seed": seed,
        "return_mean": float(returns.mean()), "return_mean_low": low, "return_mean_high": high,
        "return_median": float(np.median(returns)),
        "return_iqm": float(interquartile_mean(returns)), "return_iqm_low": iqm_low, "return_iqm_high": iqm_high,
        "return_min": float(returns.min()), "return_max": float(returns.max()),
        "frames_mean": float(np.mean([episode.frames for episode in episodes])),
        "truncated": sum(episode.truncated for episode in episodes),
        "best_game": int(returns.argmax()),
        "seconds": time.perf_counter() - began,
    }  # fmt: skip


TABLE_HEAD: Final = ("player", "mean return (95 %)", "median", "lowest", "frames", "truncated")


def table_rows(results: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            r["player"], f"{r['return_mean']:,.4g} ({r['return_mean_low']:,.4g}–{r['return_mean_high']:,.4g})",
            f"{r['return_median']:,.4g}", f"{r['return_min']:,.4g}", f"{r['frames_mean']:,.0f}", f"{r['truncated']:,}",
        )
        for r in results
    ]  # fmt: skip
