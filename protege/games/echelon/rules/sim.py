"""The rules of Echelon: many battles at once, each advanced by decisions of five ticks.

`Battles` holds a batch, takes everybody's actions and advances all battles by one decision; the modules it calls hold
the parts of a tick, in order. A battle's future depends on its record, its map and its actions alone: not on the batch,
the threads or the machine. docs/echelon.md pins every rule down.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import isfinite, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.echelon.rules.battle import BATTLE, MESSAGE, MOST_MECHS, Battle, Record, give_order, tick_key
from protege.games.echelon.rules.condition import pass_time, switch_reactors
from protege.games.echelon.rules.damage import apply_hits, clear_pending
from protege.games.echelon.rules.movement import find_neighbours, move_all, stands_free
from protege.games.echelon.rules.outcome import decide_outcome, hold_zone
from protege.games.echelon.rules.sensors import perceive
from protege.games.echelon.rules.shots import move_shots, thin_clouds, warn_of_missiles
from protege.games.echelon.rules.weapons import fire_all
from protege.games.echelon.world.mechs import BUILD, NOBODY, Members, Records, Roster, Rules
from protege.games.echelon.world.paths import SLACK, Queue, path_queue, update_paths
from protege.games.echelon.world.portable_math import SIMULATION, sin_cos, start_stream
from protege.games.echelon.world.voxels import World
from protege.kernels import kernel
from protege.seeds import STREAM_STEP, random_bits

VERSION: Final = 1  # of the rules: battles of another version cannot be continued
STANDARD_LENGTH: Final = 500  # decisions, 125 s
SHARE: Final = 16  # battles that a thread takes at once, at most
BUTTONS: Final = 5  # primary, secondary, tertiary, special, vent

Flags = npt.NDArray[np.bool_]
Given = npt.NDArray[Any] | None
Advance = Callable[["Actions", Queue, int, int], None]


class BadActions(ProtegeError):
    """Actions of a wrong shape or type."""


class BattleOver(ProtegeError):
    """A finished battle was asked to go on."""


class BattleMismatch(ProtegeError):
    """A saved battle that is not of this kind."""


class Actions(NamedTuple):
    """What everybody wants, for one decision. Rows of dead mechs are ignored."""

    move: npt.NDArray[np.float32]  # (battles, mechs, 4): forward, strafe, vertical, turn, each in [-1, 1]
    buttons: npt.NDArray[np.uint8]  # (battles, mechs, BUTTONS), pressed if not 0
    ewar: npt.NDArray[np.int64]  # (battles, mechs): off, jam, counter
    target: npt.NDArray[np.int64]  # (battles, mechs): index of the focus target, or NOBODY
    message: npt.NDArray[np.float32]  # (battles, mechs, MESSAGE), each number in [-1, 1]
    order: npt.NDArray[np.int64]  # (battles, mechs, 3): kind of order, to whom, about which mech


@kernel
def clean(value: float, mech: Record) -> float:
    """A number in [-1, 1]; what is not finite becomes 0 and is counted."""
    if not isfinite(value):
        mech.bad_actions += 1
        return 0.0
    return min(max(value, -1.0), 1.0)


@kernel
def take_controls(battle: Battle, actions: Actions, b: int, i: int) -> None:
    """What one living mech's player wants, made legal."""
    mech, move = battle.mechs[i], actions.move[b, i]
    mech.forward, mech.strafe = clean(move[0], mech), clean(move[1], mech)
    mech.vertical, mech.turn = clean(move[2], mech), clean(move[3], mech)
    length = sqrt(mech.forward * mech.forward + mech.strafe * mech.strafe)
    if length > 1.0:
        mech.forward, mech.strafe = mech.forward / length, mech.strafe / length
    mech.buttons, mech.ewar, mech.focus = 0, 0, NOBODY
    for button in range(BUTTONS):
        if actions.buttons[b, i, button]:
            mech.buttons |= 1 << button
    mode, target = actions.ewar[b, i], actions.target[b, i]
    if mode < 0 or mode > 2:
        mech.bad_actions += 1
    elif battle.rules.chassis[mech.kind].has_ewar:
        mech.ewar = mode
    if 0 <= target < battle.count and battle.mechs[target].alive and battle.mechs[target].team != mech.team:
        mech.focus = target


@kernel
def tick(battle: Battle, world: World, b: int) -> None:
    battle.tick += 1
    for team in range(2):
        battle.key[team] = tick_key(battle.stream[team], battle.tick)
    thin_clouds(battle)
    pass_time(battle, world.material[b])
    move_shots(battle, world, b)
    fire_all(battle)
    apply_hits(battle, world, b)
    switch_reactors(battle)
    move_all(battle, world.blocked[b])


@kernel
def take_actions(battle: Battle, actions: Actions, b: int) -> None:
    """Begin a decision: nothing has happened yet, and everybody wants something."""
    battle.decision += 1
    battle.event_count = battle.events_lost = battle.change_count = battle.changes_lost = 0
    for i in range(battle.count):
        mech = battle.mechs[i]
        mech.hit = 0
        mech.hurt_x = mech.hurt_y = mech.hurt_z = 0.0
        if mech.alive:
            take_controls(battle, actions, b, i)
            give_order(battle, i, actions.order[b, i])


@kernel
def take_messages(battle: Battle, actions: Actions, b: int) -> None:
    """Keep what everybody says for the next picture; the dead are silent."""
    for i in range(battle.count):
        mech = battle.mechs[i]
        for n in range(MESSAGE):
            battle.messages[i, n] = clean(actions.message[b, i, n], mech) if mech.alive else 0.0


@kernel
def run(records: Records, world: World, actions: Actions, queue: Queue, first: int, last: int) -> None:
    """One decision in battles first..last-1: actions, ticks, zone and score, the new picture, the end, new paths."""
    for b in range(first, last):
        battle = records[b]
        take_actions(battle, actions, b)
        find_neighbours(battle)
        for _ in range(battle.rules.ticks_per_decision):
            tick(battle, world, b)
        take_messages(battle, actions, b)
        hold_zone(battle, world.zone[b])
        warn_of_missiles(battle)
        perceive(battle, world.opaque[b])
        decide_outcome(battle)
        update_paths(world, b, queue, SLACK)


@kernel
def place(battle: Battle, spawn: npt.NDArray[np.float64], members: Members, i: int) -> None:
    """Put a mech on the field, whole and cold; what is not set here is 0."""
    mech, chassis = battle.mechs[i], battle.rules.chassis[members.kind[i]]
    mech.team, mech.kind, mech.pack = members.team[i], members.kind[i], members.pack[i]
    mech.rank, mech.suite, mech.leader = members.rank[i], members.suite[i], members.leader[i]
    mech.half_width, mech.half_height = chassis.half_width, chassis.height / 2.0
    mech.x, mech.y, mech.z, mech.yaw = spawn[i, 0], spawn[i, 1], spawn[i, 2], spawn[i, 3]
    mech.sin, mech.cos = sin_cos(mech.yaw)
    mech.hp, mech.leg_hp, mech.stability, mech.jet = chassis.hp, chassis.leg_hp, chassis.stability, 1.0
    mech.alive = 1
    mech.painter = mech.focus = mech.order_from = mech.order_target = NOBODY
    clear_pending(battle, i)
    battle.members[mech.team] += 1
    battle.living[mech.team] += 1


@kernel
def begin(records: Records, world: World, members: Members, b: int, length: int, stream: np.uint64) -> int:
    """Start a battle whose record is blank but for its rules; the mech that has no room to stand, or NOBODY."""
    battle = records[b]
    battle.length, battle.winner, battle.count = length, NOBODY, len(members.team)
    for team in range(2):
        battle.stream[team] = random_bits(stream + STREAM_STEP * np.uint64(team + 1))
    for i in range(battle.count):
        place(battle, world.spawn[b], members, i)
        if not stands_free(battle.mechs[i], world.blocked[b]):
            return i
    perceive(battle, world.opaque[b])
    return NOBODY


class Battles:
    """A batch of battles on the maps of a `World`, all with the same roster and rules."""

    def __init__(
        self, world: World, roster: Roster, rules: Rules = BUILD, length: int = STANDARD_LENGTH, threads: int = 1
    ):
        """Start a battle on every map; `length` is in decisions."""
        self.world, self.roster, self.rules, self.length = world, roster, rules, length
        self.members = roster.members()
        self.count, self.mech_count = world.spawn.shape[:2]
        mechs = len(self.members.team)
        if mechs != self.mech_count:
            told = f"the maps have places for {self.mech_count} mechs, roster {roster.name} has {mechs}"
            raise ProtegeError(f"{told}: generate the maps for this roster")
        if mechs > MOST_MECHS:
            raise ProtegeError(f"at most {MOST_MECHS} mechs fit in a battle, roster {roster.name} has {mechs}")
        if length < 1:
            raise ProtegeError(f"a battle lasts at least 1 decision; got {length}")
        self.records = np.zeros(self.count, BATTLE)
        self._bytes = self.records.view(np.uint8).reshape(self.count, BATTLE.itemsize)
        self._numbers = rules.record()
        self._idle = self.no_actions()
        edges = [*range(0, self.count, min(SHARE, -(-self.count // threads))), self.count]
        self._shares = list(zip(edges, edges[1:]))
        self._queues = {first: path_queue(world.blocked.shape[2], world.blocked.shape[1]) for first, _ in self._shares}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None
        self.reset()

    def reset(self, battles: Iterable[int] | None = None) -> None:
        """Start these battles (default: all) on their maps as they are now, with the maps' seeds."""
        rng = np.zeros(1, np.uint64)
        for b in range(self.count) if battles is None else battles:
            self._bytes[b] = 0
            self.records[b]["rules"] = self._numbers
            start_stream(rng, self.world.seed[b], SIMULATION)
            stuck = begin(self.records, self.world, self.members, b, self.length, rng[0])
            if stuck != NOBODY:
                where = ", ".join(map(str, self.world.spawn[b, stuck, :3]))
                raise ProtegeError(f"mech {stuck} of battle {b} would start in a wall or outside the map at {where}")

    def actions(
        self, move: Given, buttons: Given, ewar: Given = None, target: Given = None,
        message: Given = None, order: Given = None,
    ) -> Actions:  # fmt: skip
        """Arrays as the kernels take them; what is left out is off, nobody, silence."""
        given = zip(Actions._fields, (move, buttons, ewar, target, message, order))
        return Actions(*(self._checked(name, value) for name, value in given))

    def step(self, actions: Actions, advance: Advance | None = None) -> None:
        """Advance every battle by one decision; `advance`, if given, does that for a share of them instead of `run`."""
        over = np.flatnonzero(self.over)
        if len(over):
            raise BattleOver(f"battle {over[0]} is over: reset it before the next step")
        work, checked = advance or partial(run, self.records, self.world), self.actions(*actions)
        self.share_out(lambda first, last: work(checked, self._queues[first], first, last))

    def share_out(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call `work(*arguments, first, last)` for battles first..last-1, share by share; each thread takes the next.

        Threads that have more to do, such as a map to make, leave the rest to others. Shares of a few battles cost more
        than they gain: between two kernels a thread may have to wait for another to let go of the interpreter.
        """
        left = iter(self._shares)  # that of a list may be asked by several threads

        def take() -> None:
            for share in left:
                work(*arguments, *share)

        others = [self._pool.submit(take) for _ in range(self._threads - 1)] if self._pool is not None else []
        try:
            take()
        finally:
            for other in others:
                other.result()

    @property
    def mechs(self) -> Records:
        """(battles, mechs) MECH: a view, so that `mechs["hp"]` is hit points of everybody."""
        return self.records["mechs"][:, : self.mech_count]

    @property
    def over(self) -> Flags:
        """(battles,): whether it has ended."""
        return np.asarray(self.records["over"] != 0)

    def save(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of all arrays, records as bytes: enough to go on from here, here or elsewhere."""
        saved = {name: array.copy() for name, array in self.world._asdict().items()}
        return saved | {"records": self._bytes.copy(), "version": np.array([VERSION])}

    def load(self, saved: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what `save` gave: battles of the same number, map size and version."""
        expected = self.save()
        for name, array in expected.items():
            if name not in saved or saved[name].shape != array.shape or saved[name].dtype != array.dtype:
                raise BattleMismatch(f"saved battles do not fit these: {name} is missing or differs in shape or type")
        if saved["version"][0] != VERSION:
            raise BattleMismatch(f"saved battles follow version {saved['version'][0]} of the rules, these {VERSION}")
        for name, array in self.world._asdict().items():
            array[...] = saved[name]
        self._bytes[...] = saved["records"]

    def no_actions(self) -> Actions:
        rows = self.count, self.mech_count
        return Actions(
            np.zeros((*rows, 4), np.float32), np.zeros((*rows, BUTTONS), np.uint8), np.zeros(rows, np.int64),
            np.full(rows, NOBODY), np.zeros((*rows, MESSAGE), np.float32), np.zeros((*rows, 3), np.int64),
        )  # fmt: skip

    def _checked(self, name: str, value: Given) -> npt.NDArray[Any]:
        """An action array in the type the kernels take."""
        expected = getattr(self._idle, name)
        if value is None:
            return expected  # type: ignore[no-any-return]
        found = np.asarray(value)
        if found.shape != expected.shape:
            raise BadActions(f"{name} must have shape {expected.shape}; got {found.shape}")
        kinds, meant = ("fiu", "numbers") if expected.dtype.kind == "f" else ("biu", "whole numbers")
        if found.dtype.kind not in kinds:
            raise BadActions(f"{name} must hold {meant}; got {found.dtype}")
        if name == "buttons":
            found = found != 0
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, and is counted as such
            return np.ascontiguousarray(found, expected.dtype)
