"""The battles that a pupil practises in: batches of battles in step, their opponents, and what is remembered of both.

Each place of a batch plays battle after battle. In some both sides learn; in the others a scripted player or another
pupil, drawn for each battle, leads the side that the pupil does not have. A batch depends on its seed, the weights and
whom it is given to meet, not on the other batches or on threads. `BattleSource` is all batches of a stage with one
rollout that they fill.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from protege.games.echelon.agents.match import Player, find_player
from protege.games.echelon.agents.network import MOVES, PilotNetwork
from protege.games.echelon.agents.pupil import SHARED, Pupil, advice_of, look, observed, play_by, write_actions
from protege.games.echelon.rules.battle import MESSAGE
from protege.games.echelon.rules.sim import BUTTONS, Actions, Battles, Flags
from protege.games.echelon.task.env import Arena
from protege.games.echelon.task.features import Layout, arrays_of
from protege.games.echelon.task.rewards import PARTS
from protege.games.echelon.task.teacher import Teacher
from protege.games.echelon.training.config import SELF, BadTraining, EchelonConfig, Stage, alone_in
from protege.games.echelon.world.maps import MapMaker, generate, open_field
from protege.games.echelon.world.mechs import BLUE, CLASS_NAMES, NOBODY, RED, find_roster
from protege.games.echelon.world.voxels import World
from protege.learn.rollout import Field, Fields, Rollout, Shape, Tensors, without_gone
from protege.learn.state import restore_generator, restore_torch_generator
from protege.seeds import TRAINING, seed_of

BATCHES: Final = 2  # always, so that the number of threads changes nothing
FIELD_MAPS: Final = 64  # fields that are not generated are drawn from so many
MAPS: Final = 2**24  # a number no batch has: the maps that are played over and over have their seeds there

Ints = npt.NDArray[np.int64]
Finder = Callable[[str], Player]


@dataclass
class Episode:
    """A battle of one learning team, for the statistics."""

    opponent: str
    result: float  # 1 won, 0.5 drawn, 0 lost
    decisions: int
    earned: float  # reward of a member, on average
    by_class: Mapping[str, float] = field(default_factory=dict)  # the same for each class of mech that there is
    seed: int = 0  # of the map
    team: int = BLUE  # the side that learned


def maps_of(stage: Stage, seed: int) -> World | None:
    """The maps of a stage that are played over and over; None if every battle has a new one."""
    if stage.ground == "generated" and not stage.maps:
        return None
    maker: MapMaker = generate if stage.ground == "generated" else partial(open_field, wall=stage.ground == "wall")
    seeds = [seed_of(TRAINING, seed, MAPS + n) for n in range(stage.maps or FIELD_MAPS)]
    return maker(seeds, (stage.size, stage.size), stage.roster)


def room_for(layout: Layout, talk: bool) -> tuple[Fields, Fields, Fields]:
    """What is stored of a step: observations of a mech, what its team shares, actions."""
    stored = {name: Field(shape, getattr(torch, dtype)) for name, (shape, dtype) in arrays_of(layout).items()}
    actions = {
        "move": Field((MOVES + (MESSAGE if talk else 0),)),
        "buttons": Field((BUTTONS,), torch.bool),
        "ewar": Field((), torch.int64),
        "target": Field((), torch.int64),
    }
    return {name: stored[name] for name in observed(talk)}, {name: stored[name] for name in SHARED}, actions


class NetworkOpponent:
    """A pupil as an opponent. It goes by what the arena has observed for everybody, so that any number cost little."""

    def __init__(self, network: PilotNetwork, arena: Arena):
        """The weights may be shared with other network opponents; what it remembers is its own."""
        self.network, self.arena = network, arena
        self.state = torch.zeros(len(arena), arena.layout.mechs, network.state_size)

    def act(self, battles: Battles, mechs: Flags, actions: Actions) -> None:
        play_by(self.network, battles, mechs, self.arena.observation, self.state, actions)


class BattleBatch:
    """Some battles in step."""

    def __init__(
        self, stage: Stage, config: EchelonConfig, battles: int, number: int, maps: World | None,
        find: Finder = find_player,
    ):  # fmt: skip
        """`number` tells the batches of a training apart; `find` makes opponents of names."""
        self.talk, self.find = config.network.talk, find
        seed = seed_of(TRAINING, config.seed, number)
        self.arena = Arena(
            battles, stage.roster, size=(stage.size, stage.size), length=stage.length, seed=seed, maps=maps,
            rewards=replace(config.rewards, **dict(stage.rewards)),
        )  # fmt: skip
        self.random = np.random.default_rng(seed)
        self.noise = torch.Generator().manual_seed(seed % 2**63)
        roster = find_roster(stage.roster)
        self.mirrored = roster.blue == roster.red
        self.members = [np.flatnonzero(self.arena.battles.members.team == team) for team in (BLUE, RED)]
        self.size = len(self.members[BLUE])
        alone = round(battles * alone_in(stage.opponents))
        if alone and not self.mirrored:
            raise BadTraining(f"the sides of roster {stage.roster} differ, so the pupil cannot lead both")
        self.advisor = Teacher(config.advisor) if config.imitation > 0 else None
        # Groups: both teams of the places where both learn, then one of each other place.
        self.battle = np.concatenate([np.repeat(np.arange(alone), 2), np.arange(alone, battles)])
        self.team = np.concatenate([np.tile([BLUE, RED], alone), np.zeros(battles - alone, np.int64)])
        self.alone = alone
        self.opponent = np.full(battles, NOBODY)
        self.names: list[str] = []
        self.players: list[Player] = []
        self.meet({name: weight for name, weight in stage.opponents if name != SELF})
        self._assign(range(battles))
        self.state = torch.zeros(self.groups, self.size, config.network.width)
        self.fresh = np.ones(self.groups, np.bool_)
        self.earned = np.zeros((self.groups, self.size))
        self.actions = self.arena.battles.no_actions()
        self.advised = self.arena.battles.no_actions()
        self.episodes: list[Episode] = []
        self.parts = np.zeros(len(PARTS))  # absolute rewards of the last rollout, by part
        self.simulating_s = self.acting_s = 0.0  # processor time

    @property
    def groups(self) -> int:
        """Learning teams."""
        return len(self.battle)

    @property
    def roles(self) -> Ints:
        """(groups, members): classes."""
        kinds = self.arena.battles.members.kind
        return np.tile(kinds[self.members[BLUE]], (self.groups, 1))

    def meet(self, weights: Mapping[str, float]) -> None:
        """Draw opponents of these names from now on; whoever else is in a battle stays until it ends."""
        busy = [self.names[n] for n in np.unique(self.opponent) if n != NOBODY]
        names = list(dict.fromkeys([*weights, *busy]))
        self.opponent = np.array([n if n == NOBODY else names.index(self.names[n]) for n in self.opponent])
        self._invite(names)
        found = np.array([weights.get(name, 0.0) for name in names])
        self.probabilities = found / found.sum() if len(weights) else found

    def _invite(self, names: Sequence[str]) -> None:
        """These are the opponents, in this order; those who are here already keep what they remember."""
        here = dict(zip(self.names, self.players))
        found = [here[name] if name in here else self.find(name) for name in names]
        self.players = [NetworkOpponent(one.network, self.arena) if isinstance(one, Pupil) else one for one in found]
        self.names = list(names)
        self._find_rows()

    def begin_anew(self) -> None:
        """Leave all battles as they are and begin others."""
        self.arena.begin(range(len(self.arena)))
        self._assign(range(len(self.arena)))
        self.fresh[:], self.earned[:] = True, 0.0

    def _assign(self, places: Any) -> None:
        """Draw side and opponent of the battles that begin in these places."""
        for b in places:
            if b >= self.alone:
                self.team[self.alone + b] = self.random.integers(2) if self.mirrored else BLUE
                self.opponent[b] = self.random.choice(len(self.names), p=self.probabilities)
        self._find_rows()

    def _find_rows(self) -> None:
        """Which rows of the arena's arrays are whose."""
        mechs = np.stack([self.members[team] for team in self.team])  # (groups, members)
        self.rows = np.repeat(self.battle, self.size), mechs.ravel()
        learns = np.zeros((len(self.arena), self.arena.layout.mechs), np.bool_)
        learns[self.rows] = True
        self.learns = learns
        self.masks = [~learns & (self.opponent == n)[:, None] for n in range(len(self.names))]

    # --- playing ---

    def play(self, network: PilotNetwork, rollout: Rollout, advised: bool = True) -> None:
        """Fill a rollout; `advised`: with advice, if there is an advisor."""
        self.episodes, self.parts = [], np.zeros(len(PARTS))
        self.simulating_s, began = 0.0, time.thread_time()
        for t in range(rollout.shape.horizon):
            self._step(network, rollout, advised, *divmod(t, rollout.shape.chunk))
        for name, array in self._shared(self.arena.observation).items():
            rollout.after[name].copy_(array)
        rollout.remains.copy_(self._of_members(self.arena.observation.alive))
        rollout.potential_after.copy_(self._of_members(self.arena.potential()))
        self.acting_s = time.thread_time() - began - self.simulating_s

    def _step(self, network: PilotNetwork, rollout: Rollout, advised: bool, chunk: int, step: int) -> None:
        """One decision of everybody."""
        arena, at = self.arena, (chunk, slice(None), slice(None), step)
        observations = look(arena.observation, self.rows, self.talk)
        starts = torch.from_numpy(self.fresh)
        if step == 0:
            rollout.states[chunk].copy_(self.state)
        for name, array in self._shared(arena.observation).items():
            rollout.shared[name][chunk, :, step] = array
        rollout.starts[chunk, :, step] = starts
        rollout.acted[at] = self._of_members(arena.observation.alive)
        rollout.numbers["potential"][at] = self._of_members(arena.potential())
        actions, log_prob, state = network.act(
            observations, self.state.flatten(0, 1), starts.repeat_interleave(self.size), self.noise
        )
        shape = self.groups, self.size
        self.state = state.reshape(*shape, -1)
        rollout.numbers["log_prob"][at] = log_prob.reshape(shape)
        write_actions(actions, arena.observation, self.rows, self.actions)
        stored = [(rollout.observations, observations), (rollout.actions, actions)]
        if self.advisor is not None and advised:
            self.advisor.act(arena.battles, self.learns, self.advised)
            stored.append((rollout.advice, advice_of(self.advised, arena.observation, self.rows, self.talk)))
        for room, values in stored:
            for name, array in room.items():
                array[at] = values[name].reshape(*shape, *values[name].shape[1:])
        self._advance(network, rollout, chunk, step)

    def _advance(self, network: PilotNetwork, rollout: Rollout, chunk: int, step: int) -> None:
        """Let the opponents choose, the battles go on, and the next ones begin."""
        began = time.thread_time()
        for player, mask in zip(self.players, self.masks):
            player.act(self.arena.battles, mask, self.actions)
        seeds = self.arena.battles.world.seed[self.battle]  # copied: the next battles overwrite them
        frames = self.arena.step(self.actions)
        self.simulating_s += time.thread_time() - began
        at = (chunk, slice(None), slice(None), step)
        rollout.numbers["reward"][at] = self._of_members(frames.reward)
        acted = frames.acted[self.rows]
        self.parts += np.abs(frames.parts[self.rows][acted]).sum(0)
        self.earned += frames.reward[self.rows].reshape(self.groups, self.size)
        over, winner = frames.over[self.battle], frames.winner[self.battle]
        # A winner at the end of time is as good as any: only what time leaves undecided goes on in the critic's eyes.
        undecided = over & (winner == NOBODY) & frames.truncated[self.rows].reshape(self.groups, -1).any(1)
        rollout.terminated[chunk, :, step] = torch.from_numpy(over & ~undecided)
        rollout.truncated[chunk, :, step] = torch.from_numpy(undecided)
        if undecided.any():
            shared = {name: array[undecided] for name, array in self._shared(frames.final).items()}
            left = self._of_members(frames.final.alive)[undecided][..., None]
            with torch.no_grad():
                values = network.scale.denormalise(network.value(shared, self.size))[..., None]
            potential = rollout.numbers["potential"][at][undecided][..., None]  # as of one step before
            values = without_gone(values, left, potential)[..., 0]
            rollout.numbers["cut_values"][chunk, np.flatnonzero(undecided), :, step] = values
        self.fresh = over
        if over.any():
            self._note(over, winner, frames.decisions[self.battle], seeds)
            self._assign(np.flatnonzero(frames.over))

    def _note(self, over: npt.NDArray[np.bool_], winner: Ints, decisions: Ints, seeds: npt.NDArray[np.uint64]) -> None:
        """Remember how battles ended; the pupil against itself wins as often as it loses, and is left out."""
        roles = self.roles[0]  # alike in all teams
        for g in np.flatnonzero(over):
            number, earned = self.opponent[self.battle[g]], self.earned[g]
            if number != NOBODY:
                result = 0.5 if winner[g] == NOBODY else float(winner[g] == self.team[g])
                self.episodes.append(
                    Episode(
                        self.names[number], result, int(decisions[g]), float(earned.mean()),
                        {CLASS_NAMES[role]: float(earned[roles == role].mean()) for role in np.unique(roles)},
                        int(seeds[g]), int(self.team[g]),
                    )
                )  # fmt: skip
        self.earned[over] = 0.0

    def _of_members(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array[self.rows].reshape(self.groups, self.size))

    def _shared(self, observation: Any) -> Tensors:
        where = self.battle, self.team
        return {name: torch.from_numpy(getattr(observation, name)[where]) for name in SHARED}

    # --- saving ---

    def _minds(self) -> dict[str, npt.NDArray[Any]]:
        """What players keep in mind between decisions."""
        found = {}
        for number, player in enumerate([*self.players, self.advisor]):
            if isinstance(player, Teacher):
                found[f"mind {number}"] = player.minds(self.arena.battles).view(np.uint8)
            elif isinstance(player, NetworkOpponent):
                found[f"state {number}"] = player.state.numpy()
        return found

    def save(self) -> dict[str, Any]:
        """Everything needed to go on from here, bit by bit."""
        return {name: getattr(self, name).copy() for name in ("team", "opponent", "names", "fresh", "earned")} | {
            "arena": self.arena.save(),
            "minds": {name: array.copy() for name, array in self._minds().items()},
            "state": self.state.clone(),
            "random": self.random.bit_generator.state,
            "noise": self.noise.get_state(),
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        self.arena.load(saved["arena"])
        weights = dict(zip(self.names, self.probabilities))
        self._invite(saved["names"])
        for name, array in self._minds().items():
            array[...] = saved["minds"][name]
        self.team[:], self.opponent[:] = saved["team"], saved["opponent"]
        self.meet(weights)
        self.state = torch.as_tensor(saved["state"])
        self.fresh = np.array(saved["fresh"])
        self.earned[:] = saved["earned"]
        restore_generator(self.random, saved["random"])
        restore_torch_generator(self.noise, saved["noise"])


class BattleSource:
    """All batches of a stage, and the rollout they fill."""

    def __init__(
        self, stage: Stage, number: int, config: EchelonConfig, network: PilotNetwork, threads: int,
        find: Finder = find_player,
    ):  # fmt: skip
        """`number` is the stage's in the curriculum; `find` makes opponents of names."""
        self.network = network
        self.maps = maps_of(stage, config.seed)
        team = int((find_roster(stage.roster).members().team == BLUE).sum())
        battles = max(BATCHES, round(config.agents / (team * (1.0 + alone_in(stage.opponents)))))
        sizes = [battles * (n + 1) // BATCHES - battles * n // BATCHES for n in range(BATCHES)]
        self.batches = [
            BattleBatch(stage, config, size, number << 8 | n, self.maps, find) for n, size in enumerate(sizes)
        ]
        groups = [batch.groups for batch in self.batches]
        fields = room_for(self.batches[0].arena.layout, config.network.talk)
        shape = Shape(sum(groups), team, config.horizon, config.chunk)
        self.rollout = Rollout(shape, *fields, network.state_size, advised=config.imitation > 0)
        edges = np.cumsum([0, *groups]).tolist()
        self.rooms = [self.rollout.part(first, last) for first, last in zip(edges, edges[1:])]
        for batch, room in zip(self.batches, self.rooms):
            room.roles.copy_(torch.from_numpy(batch.roles))
        self.pool = ThreadPoolExecutor(min(threads, BATCHES), thread_name_prefix="batch")

    def play(self, progress: float, advised: bool = True) -> int:
        """Fill the rollout; agent-steps in it. `progress` is the fraction of the training that is done."""
        for batch in self.batches:
            batch.arena.schedule(progress)
        work = [
            self.pool.submit(batch.play, self.network, room, advised) for batch, room in zip(self.batches, self.rooms)
        ]
        for part in work:
            part.result()
        return int(self.rollout.acted.sum())

    def meet(self, weights: Mapping[str, float]) -> None:
        """Opponents of the battles that begin from now on."""
        for batch in self.batches:
            batch.meet(weights)

    def begin_anew(self) -> None:
        for batch in self.batches:
            batch.begin_anew()

    def note_inputs(self) -> None:
        """Move the scales of the network's inputs along, with the first chunk of a rollout."""
        rollout = self.rollout
        observations = {name: array[0] for name, array in rollout.observations.items()}
        self.network.note(observations, rollout.acted[0], {name: array[0] for name, array in rollout.shared.items()})

    def close(self) -> None:
        self.pool.shutdown()
