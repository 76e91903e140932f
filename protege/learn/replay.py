"""Prioritised n-step experience memory: millions of steps of many games, each observation kept once, packed.

Steps of all streams (a stream is a client or a simulated game) lie in one ring in the order they came, and each says
where the next one of its stream lies. A step can be drawn once the n steps after it are there or its episode is over:
then its return, its horizon and what follows are worked out, and again on resume, when n and gamma may change.

One thread may add while another draws and updates and a third saves: a lock guards every method, held for well under a
millisecond at a time, and by saving for about one per block. The game is unknown: its `Packing` comes from outside.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.kernels import announce_compilation, kernel
from protege.learn.packing import Codes, Floats, Ints, Packing, first_foreign, pack, unpack
from protege.learn.sumtree import WIDTH, Tree, find, sum_all, sum_up, tree_over

LEAST_PRIORITY: Final = 1e-6
TOP_DECAY: Final = 0.999  # of the recent maximum, per update
PROBES: Final = 4096  # steps looked at for percentiles
BLOCK: Final = 8192  # steps copied at a time for saving


class Actor(IntEnum):
    """Who chose an action."""

    PUPIL = 1  # greedily
    TEACHER = 2
    RANDOM = 3


PUPIL: Final = int(Actor.PUPIL)
NOBODY: Final = 0  # in an actor's place: no action to learn from
NO_ADVICE: Final = 255


class ReplayError(ProtegeError):
    """A memory that is used wrongly, or cannot be saved or loaded."""


@dataclass(frozen=True)
class ReplayConfig:
    """Settings of the memory."""

    capacity: int = 15_000_000  # capacity in steps
    n_step: int = 12  # steps of the n-step returns
    gamma: float = 0.99  # discount factor, per step
    cut_off_policy: bool = False  # end a return before the first later action that is not the pupil's own
    priority_alpha: float = 0.7  # exponent of the priorities: 0 samples uniformly, 1 in proportion
    new_limit: float = 3.0  # a new step has the highest recent priority, but at most so many times the mean
    terminal_floor: float = 3.0  # and at least this priority if its return ends in a death, whatever the limit


class Batch(NamedTuple):
    """Steps drawn from the memory, each with what came of it within its horizon."""

    observation: Floats  # (count, values)
    action: Ints
    returns: Floats  # discounted sum of the rewards up to the horizon
    next_observation: Floats  # (count, values) after the horizon; after a termination the last one before it
    bootstrap: Floats  # what the value of the next observation counts: gamma ** horizon, 0 after a termination
    horizon: Ints
    actor: Ints  # of the step itself
    own: Ints  # steps until another actor took over; as many as the horizon if none did
    teacher_action: Ints  # what the teacher advised; -1 where nobody asked
    weight: Floats  # of importance, 1 for the largest
    handle: Ints  # for `update`

    @property
    def teacher(self) -> npt.NDArray[np.bool_]:
        """Which steps are the teacher's."""
        return np.equal(self.actor, Actor.TEACHER)


def _record(*fields: str) -> np.dtype[np.void]:
    return np.dtype((np.record, [tuple(field.split()) for field in fields]))


# `ahead` is how much further on in the ring the stream goes on, 0 if it does not.
STEP: Final = _record("reward f4", "ahead u4", "action u1", "advice u1", "actor u1", "terminated u1")
# What came of a step: `reach` is how much further on in the ring lies what was seen after the horizon.
WINDOW: Final = _record("returns f4", "reach u4", "horizon u1", "own u1", "deadly u1", "unused u1")
Records = Any  # arrays of either: NumPy's types do not know the fields


class Store(NamedTuple):
    """All that the memory holds. The step added at position p (the first at 0) is in slot p modulo the capacity."""

    rows: Codes  # (capacity, columns)
    steps: Records  # (capacity,)
    windows: Records  # (capacity,) of steps that can be drawn, worked out with the last two of these
    tree: Tree  # a leaf is above 0 if its step can be drawn
    counts: Ints  # steps that can be drawn, by actor; in NOBODY's place those that were lost before they could
    lengths: Ints  # (streams,) steps of the episode so far
    waiting: Ints  # (streams, n) positions of the last n of them, number k at k modulo n
    gamma: float
    cut: bool  # windows end before actions that are not the pupil's


# --- kernels ---------------------------------------------------------------------------------------------------------


@kernel
def look_ahead(store: Store, slot: int) -> None:
    """Work out a step's window: at most n steps, and never further than results are known."""
    first, window = store.steps[slot].actor, store.windows[slot]
    at, reach, horizon, own, deadly = slot, 0, 0, 0, 0
    returns, weight = 0.0, 1.0
    while horizon < store.waiting.shape[1] and deadly == 0:
        step = store.steps[at]
        unknown = step.ahead == 0 and step.terminated == 0
        if unknown or (store.cut and horizon > 0 and step.actor != PUPIL):
            break
        returns += weight * step.reward
        weight *= store.gamma
        if own == horizon and step.actor == first:
            own += 1
        horizon += 1
        deadly = step.terminated
        if deadly == 0:
            reach += step.ahead
            at = (slot + reach) % len(store.steps)
    window.returns, window.reach, window.horizon, window.own, window.deadly = returns, reach, horizon, own, deadly


@kernel
def look_ahead_all(store: Store) -> None:
    """Work out all windows."""
    for slot in range(len(store.steps)):
        if store.tree.sums[slot] > 0:
            look_ahead(store, slot)


@kernel
def make_ready(store: Store, position: int, newest: int, priority: float, touched: Ints, count: int) -> int:
    """Let a step whose window is complete be drawn, unless it was overwritten while it waited."""
    slot = position % len(store.steps)
    actor = store.steps[slot].actor
    if position > newest - len(store.steps) and actor != NOBODY:
        look_ahead(store, slot)
        store.counts[actor] += 1
        store.tree.sums[slot] = priority
        touched[count] = slot
        count += 1
    return count


@kernel
def end_stream(store: Store, stream: int, newest: int, priority: float, touched: Ints, count: int) -> int:
    """An episode is over: everything that waited in it is complete, with shorter horizons."""
    length, horizon = store.lengths[stream], store.waiting.shape[1]
    for number in range(max(0, length - horizon), length):
        count = make_ready(store, store.waiting[stream, number % horizon], newest, priority, touched, count)
    store.lengths[stream] = 0
    return count


@kernel
def write(
    store: Store, first: int, streams: Ints, steps: Records, truncated: npt.NDArray[np.bool_],
    priority: float, terminal_priority: float, touched: Ints,
) -> int:  # fmt: skip
    """Put steps at position `first` and after; returns how many leaves were touched."""
    capacity, horizon = len(store.steps), store.waiting.shape[1]
    count = 0
    for i in range(len(streams)):
        stream, position = streams[i], first + i
        slot = position % capacity
        overwritten = store.steps[slot].actor
        if store.tree.sums[slot] > 0:
            store.counts[overwritten] -= 1
        elif overwritten != NOBODY:
            store.counts[NOBODY] += 1
        store.steps[slot] = steps[i]
        store.tree.sums[slot] = 0
        touched[count] = slot
        count += 1
        length = store.lengths[stream]
        if length > 0:
            previous = store.waiting[stream, (length - 1) % horizon]
            if previous > position - capacity:
                store.steps[previous % capacity].ahead = position - previous
        if length >= horizon:
            count = make_ready(store, store.waiting[stream, length % horizon], position, priority, touched, count)
        store.waiting[stream, length % horizon] = position
        store.lengths[stream] = length + 1
        if steps[i].terminated:
            count = end_stream(store, stream, position, terminal_priority, touched, count)
        elif truncated[i]:
            count = end_stream(store, stream, position, priority, touched, count)
    return count


@kernel
def end_all(store: Store, newest: int, priority: float, touched: Ints) -> int:
    """End all streams where they are. What the last step led to is unknown: only what was seen then is of use."""
    capacity, horizon = len(store.steps), store.waiting.shape[1]
    count = 0
    for stream in range(len(store.lengths)):
        if store.lengths[stream] > 0:
            last = store.waiting[stream, (store.lengths[stream] - 1) % horizon]
            if last > newest - capacity and store.steps[last % capacity].actor != NOBODY:
                store.steps[last % capacity].actor = NOBODY
                store.counts[NOBODY] += 1
            count = end_stream(store, stream, newest, priority, touched, count)
    return count


@kernel
def read(store: Store, slots: Ints, batch: Batch, ends: Ints) -> None:
    """What the slots hold, except observations; `ends` are the slots of what was seen after the horizon."""
    for i in range(len(slots)):
        step, window = store.steps[slots[i]], store.windows[slots[i]]
        batch.action[i], batch.actor[i] = step.action, step.actor
        batch.teacher_action[i] = -1 if step.advice == NO_ADVICE else np.int64(step.advice)
        batch.returns[i], batch.horizon[i], batch.own[i] = window.returns, window.horizon, window.own
        batch.bootstrap[i] = 0.0 if window.deadly else store.gamma ** np.int64(window.horizon)
        ends[i] = (slots[i] + window.reach) % len(store.steps)


# --- the memory ------------------------------------------------------------------------------------------------------


def bytes_needed(packing: Packing, capacity: int) -> int:
    """Memory that a replay takes once it is full."""
    return int(capacity * (2 * packing.columns + STEP.itemsize + WINDOW.itemsize + 4 * WIDTH / (WIDTH - 1)))


class Block(NamedTuple):
    """Consecutive steps on their way to or from a file."""

    first: int  # position
    rows: Codes
    steps: Records
    leaves: Floats


class Replay:
    """The memory. Whatever is random comes from the generator handed in."""

    def __init__(self, packing: Packing, config: ReplayConfig = ReplayConfig()):
        if config.capacity < 2 or not 1 <= config.n_step <= 255:
            raise ReplayError(f"a replay holds 2 steps at least, and returns have 1 to 255 steps; got {config}")
        announce_compilation("the replay", __name__)
        self.packing, self.config = packing, config
        self.stale = 0  # priorities that came after their steps were overwritten
        self._lock = threading.RLock()
        self._position = 0  # where the next step goes: the number of steps ever added
        self._since = 0  # the position when it was last empty
        self._top = 1.0  # the highest recent priority, to the power of alpha
        try:
            self._store = self._empty()
        except MemoryError as error:
            size = f"{config.capacity:,} steps takes {bytes_needed(packing, config.capacity) / 1e9:,.1f} GB"
            raise ReplayError(f"a replay of {size}, more than there is: choose a smaller capacity") from error

    def _empty(self) -> Store:
        """Memory that the system provides only as it is written."""
        capacity = self.config.capacity
        return Store(
            rows=np.empty((capacity, self.packing.columns), np.int16),
            steps=np.zeros(capacity, STEP),
            windows=np.empty(capacity, WINDOW),
            tree=tree_over(capacity),
            counts=np.zeros(1 + len(Actor), np.int64),
            lengths=np.zeros(0, np.int64),
            waiting=np.zeros((0, self.config.n_step), np.int64),
            gamma=self.config.gamma,
            cut=self.config.cut_off_policy,
        )

    def __len__(self) -> int:
        """Steps that can be drawn."""
        return int(self._store.counts[1:].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; the system provides them as they are filled."""
        arrays = (*self._store, *self._store.tree, *self.packing)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def add(
        self, streams: npt.ArrayLike, observations: npt.ArrayLike, actions: npt.ArrayLike, rewards: npt.ArrayLike,
        terminated: npt.ArrayLike, truncated: npt.ArrayLike, actors: npt.ArrayLike,
        advice: npt.ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Steps in the order they were taken: what was seen, done and received, by whom, and how it ended.

        Streams are small numbers, one for each client or game. An action of -1 counts in the returns of the steps
        before it, but is not learned from. A truncated step is where a stream was cut: the last thing seen, whose
        action and reward came to nothing; it takes the room of a step.
        """
        observed, numbers = np.ascontiguousarray(observations, np.float32), np.ascontiguousarray(streams, np.int64)
        given = {"actions": actions, "rewards": rewards, "terminated": terminated, "truncated": truncated}
        given |= {"actors": actors, "advice": np.full(len(numbers), -1) if advice is None else advice}
        arrays = {name: np.asarray(array) for name, array in given.items()}
        self._check(numbers, observed, arrays)
        cut = arrays["truncated"].astype(np.bool_) & ~arrays["terminated"].astype(np.bool_)
        steps = np.zeros(len(numbers), STEP)
        steps["reward"], steps["terminated"] = arrays["rewards"], arrays["terminated"]
        steps["action"], steps["advice"] = arrays["actions"], arrays["advice"]  # -1 becomes 255
        steps["actor"] = np.where((arrays["actions"] < 0) | cut, NOBODY, arrays["actors"])
        with self._lock:
            self._know(int(numbers.max(initial=-1)) + 1)
            priorities = self._new_priorities()
            done = 0
            while done < len(numbers):
                slot = self._position % self.config.capacity
                part = slice(done, done + self.config.capacity - slot)
                size = len(numbers[part])
                pack(observed[part], self.packing, self._store.rows[slot : slot + size])
                touched = np.empty(size * (self.config.n_step + 2), np.int64)
                count = write(self._store, self._position, numbers[part], steps[part], cut[part], *priorities, touched)
                sum_up(self._store.tree, touched[:count])
                self._position += size
                done += size

    def _check(self, numbers: Ints, observed: Floats, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Refuse what would do harm later; nothing has been written yet."""
        wanted = dict.fromkeys(arrays, numbers.shape) | {"observations": (len(numbers), len(self.packing.scale))}
        for name, array in (arrays | {"observations": observed}).items():
            if array.shape != wanted[name]:
                raise ReplayError(f"{name} of {len(numbers)} steps must have shape {wanted[name]}; got {array.shape}")
        limits: dict[str, tuple[float, float]] = {"actions": (-1, 254), "actors": (1, len(Actor)), "advice": (-1, 254)}
        limits |= {"streams": (0, self.config.capacity), "rewards": (-1e30, 1e30)}
        for name, (low, high) in limits.items() if len(numbers) else ():
            array = numbers if name == "streams" else arrays[name]
            if not low <= array.min() <= array.max() <= high:
                raise ReplayError(f"{name} lie between {low} and {high}; found {array.min()} to {array.max()}")
        foreign = first_foreign(observed)
        if foreign >= 0:
            i, j = divmod(foreign, observed.shape[1])
            raise ReplayError(f"values lie in [-1, 1]; value {j} of stream {numbers[i]} is {observed[i, j]}")

    def _know(self, streams: int) -> None:
        """Make room for streams not seen before."""
        more = streams - len(self._store.lengths)
        if more <= 0:
            return
        needed = streams * (self.config.n_step + 1)
        if needed > self.config.capacity:
            raise ReplayError(
                f"{streams} streams with returns of {self.config.n_step} steps need a capacity of {needed:,} at least; "
                f"it is {self.config.capacity:,}"
            )
        lengths, waiting = np.pad(self._store.lengths, (0, more)), np.pad(self._store.waiting, ((0, more), (0, 0)))
        self._store = self._store._replace(lengths=lengths, waiting=waiting)

    def _new_priorities(self) -> tuple[float, float]:
        """Of a new step, and of one whose return ends with a life; to the power of alpha."""
        c, steps = self.config, len(self)
        usual = min(self._top, c.new_limit * float(self._store.tree.sums[-1]) / steps) if steps else self._top
        return usual, max(usual, c.terminal_floor**c.priority_alpha)

    def abandon(self) -> None:
        """The games do not go on, as after a resume: end all streams; the last step of each is lost."""
        with self._lock:
            touched = np.empty(self._store.waiting.size, np.int64)
            count = end_all(self._store, self._position - 1, self._new_priorities()[0], touched)
            sum_up(self._store.tree, touched[:count])

    def sample(self, count: int, beta: float, random: np.random.Generator) -> Batch:
        """One step from each of `count` equal parts of all priority; weights undo priorities to the power of `beta`."""
        both = np.empty((2 * count, len(self.packing.scale)), np.float32)
        returns, bootstrap, weight = np.empty((3, count), np.float32)
        action, horizon, actor, own, advice, slots, ends = np.empty((7, count), np.int64)
        now, following = both[:count], both[count:]
        batch = Batch(now, action, returns, following, bootstrap, horizon, actor, own, advice, weight, slots)
        with self._lock:
            store, newest = self._store, self._position - 1
            total = float(store.tree.sums[-1])
            if total == 0:
                raise ReplayError("nothing can be drawn yet: a step needs the steps after it, or an end")
            find(store.tree, (np.arange(count) + random.random(count)) * (total / count), slots)
            read(store, slots, batch, ends)
            rows, priority = store.rows[np.concatenate([slots, ends])], store.tree.sums[slots]
        unpack(rows, self.packing, both)
        # (steps * priority / total) ** -beta, over its largest: the steps and the total cancel.
        weight[:] = (priority / priority.min()) ** np.float32(-beta)
        slots[:] = newest - (newest - slots) % self.config.capacity
        return batch

    def update(self, handles: Ints, priorities: npt.ArrayLike) -> None:
        """New priorities of drawn steps, such as their losses; steps overwritten meanwhile are left out."""
        given = np.asarray(priorities, np.float64)
        assert np.isfinite(given).all() and given.min() >= 0, f"priorities are numbers from 0 on: {given}"
        leaves = np.maximum(given, LEAST_PRIORITY) ** self.config.priority_alpha
        with self._lock:
            alive = handles >= self._oldest()
            self.stale += len(alive) - int(alive.sum())
            slots = handles[alive] % self.config.capacity
            self._store.tree.sums[slots] = leaves[alive]
            sum_up(self._store.tree, slots)
            self._top = max(self._top * TOP_DECAY, float(leaves.max()))

    def _oldest(self) -> int:
        return max(self._since, self._position - self.config.capacity)

    def flush(self) -> None:
        """Forget all steps and give their memory back; what is counted goes on."""
        with self._lock:
            lost = self._store.counts[NOBODY]
            self._store = self._empty()
            self._store.counts[NOBODY] = lost
            self._since = self._position

    def figures(self) -> dict[str, float]:
        """Sizes, fractions of the actors, and percentiles over evenly spaced steps: of ages, in steps that were added
        since, as steps are drawn; and of priorities to the power of alpha.
        """
        with self._lock:
            filled = self._position - self._oldest()
            ages = np.unique(np.linspace(0, max(filled - 1, 0), PROBES).astype(np.int64))
            leaves = self._store.tree.sums[(self._position - 1 - ages) % self.config.capacity]
            lost, *counts = self._store.counts.tolist()
        found: dict[str, float] = {"steps": sum(counts), "filled": filled / self.config.capacity}
        found |= {"dropped": lost, "stale": self.stale}
        found |= {actor.name.lower(): counts[actor - 1] / max(sum(counts), 1) for actor in Actor}
        ages, leaves = ages[leaves > 0], leaves[leaves > 0]
        parts = np.cumsum(leaves, dtype=np.float64)
        for percent in (10, 50, 90) if len(ages) else ():
            found[f"age_p{percent}"] = int(ages[np.searchsorted(parts, parts[-1] * percent / 100)])
            found[f"priority_p{percent}"] = float(np.percentile(leaves, percent))
        return found

    def state(self) -> dict[str, Any]:
        """All but the steps, which `block` gives: they are those from position `first` to before `end`."""
        with self._lock:
            found: dict[str, Any] = {"first": self._oldest(), "end": self._position, "top": self._top}
            found |= {"dropped": int(self._store.counts[NOBODY]), "stale": self.stale}
            lengths, waiting = self._store.lengths.tolist(), self._store.waiting.copy()
        horizon = self.config.n_step
        found["waiting"] = {
            str(stream): [int(waiting[stream, k % horizon]) for k in range(max(0, count - horizon), count)]
            for stream, count in enumerate(lengths)
            if count > 0
        }
        return found

    def block(self, first: int, end: int) -> Block:
        """A copy of the next few thousand steps from `first` on, or from the oldest that is still there, with the
        priorities of this moment. Nothing shows of steps from `end` on, which others may have added meanwhile.
        """
        with self._lock:
            first = max(first, self._oldest())
            slot = first % self.config.capacity
            part = slice(slot, min(slot + BLOCK, slot + max(0, end - first), self.config.capacity))
            rows, steps = self._store.rows[part].copy(), self._store.steps[part].copy()
            leaves = self._store.tree.sums[part].copy()
        steps["ahead"][first + np.arange(len(steps)) + steps["ahead"] >= end] = 0
        return Block(first, rows, steps, leaves)

    def restore(self, state: dict[str, Any], blocks: Iterable[Block]) -> None:
        """Replace what is here by a state and its blocks: all steps, or the newest that there is room for."""
        capacity, end = self.config.capacity, int(state["end"])
        with self._lock:
            self.flush()
            self._know(1 + max(map(int, state["waiting"]), default=-1))
            self._position = self._since = end
            self._top, self.stale = float(state["top"]), int(state["stale"])
            for block in blocks:
                spare = max(0, end - capacity - block.first)
                slots = np.arange(block.first + spare, block.first + len(block.steps)) % capacity
                self._store.rows[slots], self._store.steps[slots] = block.rows[spare:], block.steps[spare:]
                self._store.tree.sums[slots] = block.leaves[spare:]
                self._since = min(self._since, max(block.first, end - capacity))
            for stream, positions in state["waiting"].items():
                self._wait(int(stream), [position for position in positions if position >= self._since])
            store = self._store
            store.counts[:] = np.bincount(store.steps["actor"][store.tree.sums[:capacity] > 0], minlength=4)
            store.counts[NOBODY] = state["dropped"]
            sum_all(store.tree)
            look_ahead_all(store)

    def _wait(self, stream: int, positions: list[int]) -> None:
        """Let a stream go on after these steps, of which some may be complete if returns are shorter than they were."""
        store, still = self._store, positions[-self.config.n_step :]
        store.waiting[stream, : len(still)], store.lengths[stream] = still, len(still)
        slots = np.array(positions, np.int64) % self.config.capacity
        complete = np.arange(len(positions)) < len(positions) - len(still)
        store.tree.sums[slots] = np.where(complete & (store.steps["actor"][slots] != NOBODY), self._top, 0)
