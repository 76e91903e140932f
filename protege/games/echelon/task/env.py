"""The task: many battles with observations, rewards and ever new maps. Actions in, Frames out.

`Arena` is what learners use; its arrays are overwritten by the next step. A battle that ends is followed at once by
another: the seed, its place in the batch and how many battles were played there decide on which map, and nothing else,
neither the number of battles nor that of threads. One battle for PettingZoo is in zoo.py.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.rules.battle import BY_TIME
from protege.games.echelon.rules.sim import STANDARD_LENGTH, Actions, BadActions, BattleMismatch, Battles, Flags, run
from protege.games.echelon.task import observation as sight
from protege.games.echelon.task.displays import Values
from protege.games.echelon.task.features import ORDER_KINDS, layout_of, schema
from protege.games.echelon.task.observation import Observation, Scratch, observe
from protege.games.echelon.task.rewards import PARTS, REWARD_STATE, RewardConfig, compute_rewards, reset_reward_state
from protege.games.echelon.world.maps import STANDARD, MapMaker, generate, over_and_over
from protege.games.echelon.world.mechs import BUILD, NOBODY, Records, Rules, find_roster
from protege.games.echelon.world.paths import Queue
from protege.games.echelon.world.voxels import World
from protege.kernels import kernel
from protege.seeds import TRAINING, seed_of

TASK_VERSION: Final = 1  # rules, observation and rewards; a checkpoint of another version is refused
MAP_PLACE: Final = 2**31 - 1  # a place no battle has: the maps that are played over and over have their seeds there

Ints = npt.NDArray[np.int64]


class Choices(NamedTuple):
    """What players want who see slots, not indices."""

    move: npt.NDArray[Any]  # (battles, mechs, 4): forward, strafe, vertical, turn, each in [-1, 1]
    buttons: npt.NDArray[Any]  # (battles, mechs, 5)
    ewar: npt.NDArray[Any]  # (battles, mechs): off, jam, counter
    target: npt.NDArray[Any]  # (battles, mechs): enemy slot; the number of slots stands for none
    message: npt.NDArray[Any] | None = None  # (battles, mechs, 8), each in [-1, 1]
    order: npt.NDArray[Any] | None = None  # (battles, mechs, 3): kind, friend slot, enemy slot


class Frames(NamedTuple):
    """What one step of many battles produced. Observations and rewards are reused by the next: copy what must last."""

    observation: Observation  # to act on next: after a battle's end, the first of the next battle
    final: Observation  # of battles that ended in this step, the last; other rows mean nothing
    reward: npt.NDArray[np.float32]  # (battles, mechs)
    parts: npt.NDArray[np.float32]  # (battles, mechs, PARTS): what the reward is made of
    acted: Flags  # (battles, mechs): alive when the step began; other rows are no experience
    terminated: Flags  # (battles, mechs): dead, or in a battle that was decided
    truncated: Flags  # (battles, mechs): alive when time ran out
    over: Flags  # (battles,): the battle ended in this step
    winner: Ints  # (battles,): of a battle that ended: its team, or NOBODY
    ending: Ints  # (battles,): how it ended
    score: npt.NDArray[np.float64]  # (battles, teams)
    decisions: Ints  # (battles,): made in the battle so far


@kernel
def advance(
    records: Records, world: World, scratch: Scratch, weights: Records, reward_state: Records, reward: Values,
    parts: Values, out: Observation, actions: Actions, queue: Queue, turns: Ints,
) -> None:  # fmt: skip
    """A decision in the battles of these numbers and all that follows it."""
    # In one kernel, so that threads need not wait between; battle by battle, so that each stays in the cache.
    for b in turns:
        run(records, world, actions, queue, b, b + 1)
        observe(records, world, scratch, out, b, b + 1)
        compute_rewards(records, scratch.walk, weights, reward_state, reward, parts, b, b + 1)


class Arena:
    """Battles in step, each followed by the next."""

    def __init__(
        self, battles: int = 64, roster: str = "10v10", *, size: tuple[int, int] = STANDARD,
        length: int = STANDARD_LENGTH, rules: Rules = BUILD, rewards: RewardConfig = RewardConfig(), seed: int = 0,
        domain: int = TRAINING, maps: int | World | None = None, threads: int = 1, auto_reset: bool = True,
    ):  # fmt: skip
        """`length` in decisions; `maps`: play on these, or so many, over and over, not on a new one in every battle."""
        if battles < 1 or (isinstance(maps, int) and maps < 1):
            raise ProtegeError(f"at least one battle and one map are needed; got {battles} battles and {maps} maps")
        self.roster, self.size, self.seed, self.domain, self.auto_reset = roster, size, seed, domain, auto_reset
        self.layout = layout_of(find_roster(roster))
        self.schema = schema(self.layout)
        self.rewards, self.weights = rewards, rewards.weights()
        self.number = np.zeros(battles, np.int64)  # of each place's next battle
        if isinstance(maps, int):
            maps = generate([self._seed(MAP_PLACE, n) for n in range(maps)], size, roster)
        self.maps = maps
        world = self._lay_out(None, range(battles))
        self.battles = Battles(world, find_roster(roster), rules, length, threads)
        self.observation, self.final = (sight.empty_observation(battles, self.layout) for _ in range(2))
        self.reward = np.zeros((battles, self.layout.mechs), np.float32)
        self.parts = np.zeros((battles, self.layout.mechs, len(PARTS)), np.float32)
        self._scratch = sight.make_scratch(world, self.layout, rules)
        self._reward_state = np.zeros((battles, self.layout.mechs), REWARD_STATE)
        self._open(range(battles))

    def __len__(self) -> int:
        return len(self.number)

    def reset(self, seed: int | None = None) -> Observation:
        """Begin everywhere with the first battle of a seed (default: the one before)."""
        self.seed = self.seed if seed is None else seed
        self.number[:] = 0
        self.begin(range(len(self)))
        return self.observation

    def begin(self, which: Sequence[int]) -> None:
        """Begin the next battle in these places."""
        self._lay_out(self.battles.world, which)
        self.battles.reset(which)
        self._open(which)

    def potential(self) -> npt.NDArray[np.float32]:
        """(battles, mechs): what those who are alive were paid for being where they are, and will lose again."""
        return np.asarray(self._reward_state["potential"] * self.weights["own_fraction"], np.float32)

    def schedule(self, progress: float) -> None:
        """Take the rewards' weights of this fraction of a training from the next step on."""
        self.weights = self.rewards.weights(progress)

    def _seed(self, place: int, number: int) -> int:
        return seed_of(self.domain, self.seed, place << 32 | number)

    def _lay_out(self, world: World | None, which: Sequence[int]) -> World:
        seeds = [self._seed(b, int(self.number[b])) for b in which]
        self.number[list(which)] += 1
        make: MapMaker = generate if self.maps is None else partial(over_and_over, self.maps)
        return make(seeds, self.size, self.roster, world, list(which))

    def _open(self, which: Sequence[int]) -> None:
        for b in which:
            self._scratch.ground.scars[b] = 0
            observe(self.battles.records, self.battles.world, self._scratch, self.observation, b, b + 1)
            reset_reward_state(self.battles.records, self._scratch.walk, self.weights, self._reward_state, b)

    def decode(self, choices: Choices) -> Actions:
        """Choices by slot as battles take them: an empty slot is nobody, and an order to nobody is none."""
        given = self.battles.actions(*choices)
        slots, friends, order = self.layout.enemies, self.layout.friends, given.order
        for name, values, most in (
            ("ewar", given.ewar, 2),
            ("target", given.target, slots),
            ("the kind of an order", order[..., 0], ORDER_KINDS - 1),
            ("the friend slot of an order", order[..., 1], friends - 1),
            ("the enemy slot of an order", order[..., 2], slots - 1),
        ):
            if values.min() < 0 or values.max() > most:
                raise BadActions(f"{name} must be 0..{most}; got {values.min()}..{values.max()}")
        for name, numbers in (("move", given.move), ("message", given.message)):
            if not np.isfinite(numbers).all():
                b, i = np.argwhere(~np.isfinite(numbers))[0][:2]
                raise BadActions(f"{name} of mech {i} in battle {b} must be finite; got {numbers[b, i].tolist()}")
        told, past_the_last = self.observation, ((0, 0), (0, 0), (0, 1))
        enemies = np.pad(told.enemy_index, past_the_last, constant_values=NOBODY).astype(np.int64)
        target = np.take_along_axis(enemies, given.target[..., None], 2)[..., 0]
        whom = np.take_along_axis(told.friend_index, order[..., 1:2], 2)
        kind, about = np.where(whom == NOBODY, 0, order[..., :1]), np.take_along_axis(enemies, order[..., 2:], 2)
        return given._replace(target=target, order=np.concatenate([kind, whom, about], 2))

    def step(self, actions: Actions) -> Frames:
        """One decision in every battle."""
        each, battles = self.reward.shape, len(self)
        frames = Frames(
            self.observation, self.final, self.reward, self.parts, acted=self.observation.alive.copy(),
            terminated=np.zeros(each, np.bool_), truncated=np.zeros(each, np.bool_), over=np.zeros(battles, np.bool_),
            winner=np.zeros(battles, np.int64), ending=np.zeros(battles, np.int64), score=np.zeros((battles, 2)),
            decisions=np.zeros(battles, np.int64),
        )  # fmt: skip
        # battles near their end first: where one ends a map is made, while other threads go on with the rest
        turns = np.argsort(self.battles.records["living"].min(1), kind="stable")
        self.battles.step(actions, partial(self._advance, frames, turns))
        return frames

    def _advance(self, frames: Frames, turns: Ints, actions: Actions, queue: Queue, first: int, last: int) -> None:
        """A decision, rewards and observations after it, and new battles where it was the last."""
        turns, records = turns[first:last], self.battles.records
        advance(
            records, self.battles.world, self._scratch, self.weights, self._reward_state,
            self.reward, self.parts, self.observation, actions, queue, turns,
        )  # fmt: skip
        over, ending, alive = records["over"][turns], records["ending"][turns], self.battles.mechs["alive"][turns] != 0
        cut = alive & (ending == BY_TIME)[:, None]
        frames.terminated[turns], frames.truncated[turns] = ((over[:, None] != 0) | ~alive) & ~cut, cut
        frames.over[turns], frames.ending[turns] = over, ending
        frames.winner[turns], frames.score[turns] = records["winner"][turns], records["score"][turns]
        frames.decisions[turns] = records["decision"][turns]
        ended = turns[frames.over[turns]]
        if self.auto_reset and len(ended):
            for name, kept in self.final._asdict().items():
                kept[ended] = getattr(self.observation, name)[ended]
            self.begin(ended.tolist())

    def save(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of all that the coming steps depend on."""
        seed = np.array([self.seed & 2**64 - 1], np.uint64)
        return self.battles.save() | {name: array.copy() for name, array in self._own().items()} | {"arena_seed": seed}

    def load(self, saved: Mapping[str, npt.NDArray[Any]]) -> Observation:
        """Go on from what `save` gave, in an arena made alike."""
        for name, array in self._own().items():
            if name not in saved or saved[name].shape != array.shape:
                raise BattleMismatch(f"saved battles do not fit this arena: {name} is missing or has another shape")
        self.battles.load(saved)
        for name, array in self._own().items():
            array[...] = saved[name]
        self.seed = int(saved["arena_seed"][0])
        observe(self.battles.records, self.battles.world, self._scratch, self.observation, 0, len(self))
        return self.observation

    def _own(self) -> dict[str, npt.NDArray[Any]]:
        """What an arena keeps besides its battles, by the names that saved runs have."""
        return {"number": self.number, "scars": self._scratch.ground.scars, "books": self._reward_state.view(np.uint8)}
