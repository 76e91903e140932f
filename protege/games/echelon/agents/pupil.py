"""A trained network as a player of battles, and its weights on disk."""

from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from protege.games.echelon.agents.network import MOVES, NetworkConfig, PilotNetwork
from protege.games.echelon.rules.sim import Actions, Battles, Flags
from protege.games.echelon.task import observation as sight
from protege.games.echelon.task.env import TASK_VERSION
from protege.games.echelon.task.features import LEGAL_EWAR, LEGAL_TARGET, Layout, layout_of, schema
from protege.games.echelon.task.observation import Observation
from protege.games.echelon.world.mechs import NOBODY
from protege.learn.rollout import Tensors
from protege.learn.state import restore_weights
from protege.runs import checkpoints
from protege.runs.checkpoints import Checkpoint, CheckpointMismatch

KIND: Final = "echelon-ppo"  # of checkpoints
ADVISED_MOST: Final = 0.93  # a teacher's full throttle as the pupil copies it: near 1 tanh is flat
SHARED: Final = ("state", "mechs")  # what the critic of a team sees

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # battles, mechs


def observed(talk: bool) -> tuple[str, ...]:
    """The arrays that a network observes."""
    return "own", "friends", "friend_mask", "enemies", "enemy_mask", "map", "legal", *(("messages",) if talk else ())


def look(observation: Observation, rows: Rows, talk: bool) -> Tensors:
    """What these mechs see, as the network takes it."""
    return {name: torch.from_numpy(getattr(observation, name)[rows]) for name in observed(talk)}


def write_actions(actions: Tensors, observation: Observation, rows: Rows, out: Actions) -> None:
    """What a network lets these mechs do, into their rows of what battles take."""
    move = torch.tanh(actions["move"]).numpy()
    out.move[rows] = move[..., :MOVES]
    out.message[rows] = move[..., MOVES:] if move.shape[-1] > MOVES else 0.0
    out.buttons[rows] = actions["buttons"].numpy()
    out.ewar[rows] = actions["ewar"].numpy()
    slots = observation.enemy_index[rows]
    listed = np.concatenate([slots, np.full_like(slots[..., :1], NOBODY)], -1)
    out.target[rows] = np.take_along_axis(listed, actions["target"].numpy()[..., None], -1)[..., 0]
    out.order[rows] = 0


def advice_of(actions: Actions, observation: Observation, rows: Rows, talk: bool) -> Tensors:
    """What a scripted player would do, in the form in which the network's own actions are stored."""
    numbers = np.concatenate([actions.move[rows], actions.message[rows]], -1) if talk else actions.move[rows]
    slots, target, ewar = observation.enemy_index[rows], actions.target[rows], actions.ewar[rows]
    pointed = (slots == target[..., None]) & (target != NOBODY)[..., None]
    legal = observation.legal[rows][..., LEGAL_EWAR:LEGAL_TARGET]
    allowed = np.take_along_axis(legal, ewar[..., None], -1)[..., 0]
    return {
        "move": torch.atanh(torch.from_numpy(numbers).clamp(-ADVISED_MOST, ADVISED_MOST)),
        "buttons": torch.from_numpy(actions.buttons[rows] != 0),
        "ewar": torch.from_numpy(np.where(allowed, ewar, 0)),
        "target": torch.from_numpy(np.where(pointed.any(-1), pointed.argmax(-1), slots.shape[-1])),
    }


def play_by(
    network: PilotNetwork, battles: Battles, mechs: Flags, observation: Observation, state: torch.Tensor, out: Actions,
    sampled: bool = True,
) -> None:  # fmt: skip
    """Write what a network lets these mechs do; its state goes on, and where a battle begins it forgets the last."""
    rows: Any = np.nonzero(mechs)
    if len(rows[0]) == 0:
        return
    starts = torch.from_numpy(battles.records["decision"] == 0)[rows[0]]
    # Other numbers in every decision, side and batch of battles, and the same whenever it is asked. Opponents in one
    # batch have different battles, so none draws the same numbers as another; the generator knows 32 bits.
    mixed = battles.world.seed * np.uint64(0x9E3779B97F4A7C15) + battles.records["decision"].astype(np.uint64)
    moment = int(mixed.sum(dtype=np.uint64)) + int(rows[1][0]) + int(rows[0][0]) * 0x9E3779B1
    noise = torch.Generator().manual_seed(moment % 2**32)
    observations = look(observation, rows, network.config.talk)
    actions, _, state[rows] = network.act(observations, state[rows], starts, noise, sampled)
    write_actions(actions, observation, rows, out)


class _View:
    """What a pupil sees and remembers of a batch of battles."""

    def __init__(self, battles: Battles, state_size: int):
        layout = layout_of(battles.roster)
        self.observation = sight.empty_observation(battles.count, layout)
        self.scratch = sight.make_scratch(battles.world, layout, battles.rules)
        self.state = torch.zeros(battles.count, battles.mech_count, state_size)
        self.team = battles.members.team

    def update(self, battles: Battles) -> None:
        """Look at the battles as they are now; those that begin are new."""
        self.scratch.ground.scars[battles.records["decision"] == 0] = 0
        battles.share_out(sight.observe, battles.records, battles.world, self.scratch, self.observation)


class Pupil:
    """A player with a network's weights, for any mechs of any batch of battles."""

    channels: Final = {"value": ("value",)}  # what it tells about its decisions

    def __init__(self, network: PilotNetwork, *, sampled: bool = True):
        """`sampled`: actions by their probabilities, as in training; otherwise always the likeliest."""
        self.network = network.eval()
        self.sampled = sampled
        self._views: WeakKeyDictionary[Battles, _View] = WeakKeyDictionary()
        self._last: _View | None = None

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        if mechs.any():
            view = self._last = self._view(battles)
            view.update(battles)
            play_by(self.network, battles, mechs, view.observation, view.state, actions, self.sampled)

    @torch.no_grad()
    def thoughts(self) -> dict[str, npt.NDArray[np.float32]]:
        """What the critic expected of every mech (battles, mechs, 1) when the pupil last decided."""
        assert self._last is not None, "it has decided before"
        observation, team = self._last.observation, self._last.team
        found = np.zeros((*observation.alive.shape, 1), np.float32)
        for side in np.unique(team):
            shared = {name: torch.from_numpy(getattr(observation, name)[:, side]) for name in SHARED}
            values = self.network.scale.denormalise(self.network.value(shared, int((team == side).sum())))
            found[:, team == side, 0] = values.numpy()
        return {"value": found}

    def walk(self, battles: Battles, b: int) -> float:
        """How far the first mech of battle b had to walk to the zone when it was last looked at."""
        return float(self._view(battles).scratch.walk[b, 0])

    def _view(self, battles: Battles) -> _View:
        if battles not in self._views:
            self._views[battles] = _View(battles, self.network.state_size)
        return self._views[battles]


def about(config: NetworkConfig, layout: Layout) -> dict[str, Any]:
    """What a checkpoint must say for its weights to be read."""
    return {"network": dict(vars(config)), "schema": schema(layout)["version"]}


def check_schema(saved: Checkpoint, layout: Layout) -> None:
    """Raise unless a checkpoint's network was trained on observations that mean what they mean now."""
    expected = schema(layout)["version"]
    if saved.state["schema"] != expected:
        raise CheckpointMismatch(
            f"{saved.path} was trained on observations of schema {saved.state['schema']}, these are {expected}: "
            f"train anew, or use commit {saved.commit or 'unknown'}"
        )


def load_network(path: Path) -> PilotNetwork:
    saved = checkpoints.load(path, kind=KIND, task_version=TASK_VERSION)
    check_schema(saved, Layout(1, 1, 1, 1))
    network = PilotNetwork(NetworkConfig(**saved.state["network"]))
    restore_weights(network, saved.tensors, "network", saved.path)
    return network
