"""The task: many games at once. Commands in, Frames out.

`Games` is what learners and evaluation use: rows of memory advanced in place by compiled code. Only frames count: ticks
in which the player has control; the ticks between two frames (dying, zooming in, menus) pass inside a step.
"""

from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple
from weakref import finalize

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Row, Rows, get
from protege.games.tempest.rules.sim import Commands
from protege.games.tempest.task.actions import quantised, to_commands
from protege.games.tempest.task.observation import VALUES, observe, observe_level
from protege.games.tempest.task.rewards import died, objective_reward, scaled_reward, subjective_reward
from protege.games.tempest.task.teacher import RULE_SETS, advise, spinner_to
from protege.kernels import announce_compilation, kernel
from protege.seeds import TRAINING, seed_of

TASK_VERSION: Final = 1  # rules, observation and rewards; a checkpoint of another version is refused

Floats = npt.NDArray[np.float32]
Signal = npt.NDArray[np.int64]


class Frames(NamedTuple):
    """What one step of many games produced. The arrays are reused by the next step: copy what must last."""

    observation: Floats  # (games, 195) of the coming frame
    objective: Floats  # points of the frame that was played, -1000 for a death
    subjective: Floats  # lane-safety shaping of that frame
    reward: Floats  # both scaled, added and clipped; learners get `learned_reward`, the same only with --shaping 1
    terminated: npt.NDArray[np.bool_]  # that frame cost a life
    over: npt.NDArray[np.bool_]  # and with it the game
    score: npt.NDArray[np.int64]  # unwrapped, without the start bonus
    level: npt.NDArray[np.int64]
    lives: npt.NDArray[np.int64]
    frame: npt.NDArray[np.int64]  # frames played in this game
    advice: Commands  # the teacher's command, its spinner one of the 11 levels
    advice_full: Commands  # the same with the spinner up to 29
    uniform: npt.NDArray[np.float64]  # a random number from the player's own stream, fresh every frame


def new_frames(games: int) -> Frames:
    rewards = [np.zeros(games, np.float32) for _ in range(3)]
    flags = [np.zeros(games, np.bool_) for _ in range(2)]
    counts = [np.zeros(games, np.int64) for _ in range(4)]
    commands = [np.zeros((games, 3), np.int8) for _ in range(2)]
    observation = np.zeros((games, VALUES), np.float32)
    return Frames._make([observation, *rewards, *flags, *counts, *commands, np.zeros(games)])


@kernel
def _look(row: Row, g: int, rules: int, new_level: bool, frames: Frames) -> None:
    """The coming frame of one game, into place g of the arrays."""
    if new_level:
        observe_level(row, frames.observation[g])
    observe(row, frames.observation[g])
    frames.score[g] = np.int64(ram.get_word(row, ram.SCORE))
    frames.level[g] = get(row, ram.LEVEL_INDEX) + 1
    frames.lives[g] = get(row, ram.LIVES)
    frames.frame[g] = np.int64(ram.get_word(row, ram.FRAMES))
    if rules >= 0:
        target, fire, zap = advise(row, rules)
        spinner = spinner_to(row, target)
        frames.advice[g, 0] = frames.advice_full[g, 0] = 1 if fire else 0
        frames.advice[g, 1] = frames.advice_full[g, 1] = 1 if zap else 0
        frames.advice[g, 2] = quantised(spinner)
        frames.advice_full[g, 2] = spinner
    frames.uniform[g] = ram.player_uniform(row, ram.FOR_PLAYER)


@kernel
def _advance(rows: Rows, first: int, last: int, commands: Commands, rules: int, frames: Frames) -> None:
    """Play one frame of games first..last-1 and look at the next one."""
    for g in range(first, last):
        row = rows[g]
        if sim.is_over(row):
            frames.objective[g] = frames.subjective[g] = frames.reward[g] = 0.0
            frames.terminated[g], frames.over[g] = False, True
            continue
        fire, zap = commands[g, 0] != 0, commands[g, 1] != 0
        spinner: int = np.int64(commands[g, 2])  # type: ignore[assignment]
        ticks = 0
        while True:  # one call for both kinds of tick: the compiler keeps one copy of the rules
            sim.step_game(row, fire, zap, False, spinner)
            if ticks == 0:  # what the frame just played was worth
                lost, points = died(row), objective_reward(row)
                shaping = 0.0 if lost else subjective_reward(row)
                frames.objective[g], frames.subjective[g] = points, shaping
                frames.reward[g], frames.terminated[g] = scaled_reward(points, shaping), lost
            ticks += 1
            if ram.in_control(row) or sim.is_over(row):
                break
            fire, zap, spinner = False, False, 0
        frames.over[g] = sim.is_over(row)
        _look(row, g, rules, ticks > 1, frames)


@kernel
def _look_at(rows: Rows, which: npt.NDArray[np.int64], rules: int, frames: Frames) -> None:
    for i in range(len(which)):
        _look(rows[which[i]], which[i], rules, True, frames)


SPIN: Final = 200_000  # looks at a signal before a helper goes to sleep: about 0.2 ms


@kernel
def _serve(
    rows: Rows, first: int, last: int, commands: Commands, rules: int, frames: Frames, given: Signal, finished: Signal
) -> None:
    """Play each step that is given, until dismissed or nothing came for a while."""
    looks = 0
    while looks <= SPIN and given[1] == 0:
        if given[0] == finished[0]:
            finished[1] += 1  # or the compiler would look at the signal only once
            looks += 1
        else:
            _advance(rows, first, last, commands, rules, frames)
            finished[0] += 1
            looks = 0


@kernel
def _await_finish(given: Signal, finished: Signal) -> None:
    while given[0] != finished[0]:
        given[2] += 1


class _Helper:
    """A thread that plays its share of each step.

    A step lasts a millisecond, and on a virtual machine waking a sleeping thread can take as long again. So a helper
    waits for the next step in compiled code, without the interpreter, and sleeps only when none comes for a while.
    """

    def __init__(self, *share: Any):  # the first arguments of `_serve`
        # given: steps, dismissal, scratch; finished: steps, scratch. Apart, so that the two sides share no cache line.
        self.given, self.finished = np.zeros(16, np.int64), np.zeros(16, np.int64)
        self.asleep = False
        self.wake: SimpleQueue[None] = SimpleQueue()
        Thread(target=self._run, args=share, name="games", daemon=True).start()

    def start(self) -> None:
        """Let it play its share of the commands as they stand."""
        self.given[0] += 1
        if self.asleep:
            self.asleep = False
            self.wake.put(None)

    def _run(self, *share: Any) -> None:
        while not self.given[1]:
            _serve(*share, self.given, self.finished)  # type: ignore[call-arg]
            self.asleep = True  # first say so, then look once more: whoever gives a step does it the other way round
            if self.given[0] == self.finished[0]:
                self.wake.get()


def _dismiss(helpers: list[_Helper]) -> None:
    while helpers:
        helper = helpers.pop()
        helper.given[1] = 1
        helper.start()


class Games:
    """Many games of Tempest, advanced together; a finished one waits until it is given a new row."""

    def __init__(self, rows: Rows, *, rules: str | None = "meet", threads: int = 1):
        """`rows` are started games (see `starts`); without `rules` the teacher is not asked."""
        if rows.ndim != 2 or rows.shape[1] != ram.ROW_BYTES or rows.dtype != np.uint8:
            raise ProtegeError(
                f"games are rows of {ram.ROW_BYTES} bytes; got {rows.dtype} of shape {rows.shape}: "
                "use protege.games.tempest.task.env.starts or a snapshot of this version"
            )
        if rules is not None and rules not in RULE_SETS:
            raise ProtegeError(f"the teacher's rules are one of {', '.join(RULE_SETS)}; got {rules!r}")
        announce_compilation("the game", __name__)
        self.rows = np.array(rows, order="C")
        self.frames = new_frames(len(rows))
        self._rules = -1 if rules is None else RULE_SETS[rules]
        self._threads = max(1, threads)
        self._helpers: list[_Helper] = []
        finalize(self, _dismiss, self._helpers)
        self._share_out()
        _look_at(self.rows, np.arange(len(rows)), self._rules, self.frames)

    def _share_out(self) -> None:
        """Give every thread its share of the games; helpers hold on to the arrays, so new arrays need new helpers."""
        _dismiss(self._helpers)
        self._commands = np.zeros((len(self.rows), 3), np.int8)
        edges = [len(self.rows) * i // self._threads for i in range(self._threads + 1)]
        self._own_share = edges[1]
        for first, last in zip(edges[1:-1], edges[2:], strict=True):
            self._helpers.append(_Helper(self.rows, first, last, self._commands, self._rules, self.frames))

    def __len__(self) -> int:
        return len(self.rows)

    def step(self, actions: npt.ArrayLike) -> Frames:
        self._commands[:] = to_commands(actions, len(self.rows))
        for helper in self._helpers:
            helper.start()
        _advance(self.rows, 0, self._own_share, self._commands, self._rules, self.frames)
        for helper in self._helpers:
            _await_finish(helper.given, helper.finished)
        return self.frames

    def keep(self, which: npt.NDArray[np.int64]) -> None:
        """Go on with these games only."""
        self.rows = self.rows[which]
        self.frames = Frames._make([array[which] for array in self.frames])
        self._share_out()

    def put(self, which: npt.NDArray[np.int64], rows: Rows) -> None:
        """Replace games: new ones for those that are over, or snapshots taken earlier."""
        if rows.shape != (len(which), ram.ROW_BYTES):
            raise ProtegeError(f"{len(which)} snapshots of {ram.ROW_BYTES} bytes are needed; got shape {rows.shape}")
        self.rows[which] = rows
        self.frames.over[which] = rows[:, ram.GAME_STATE] == ram.HIGH_SCORE_CHECK
        self.frames.terminated[which] = False
        _look_at(self.rows, np.asarray(which, np.int64), self._rules, self.frames)

    def snapshot(self, which: int) -> bytes:
        """One whole game; give it to `from_snapshot`, here or elsewhere."""
        return self.rows[which].tobytes()


def from_snapshot(snapshot: bytes) -> Row:
    if len(snapshot) != ram.ROW_BYTES:
        raise ProtegeError(f"a snapshot of a game is {ram.ROW_BYTES} bytes; got {len(snapshot)}")
    return np.frombuffer(snapshot, np.uint8).copy()


def starts(
    games: int, *, seed: int = 0, level: int | Sequence[int] = 1, cabinet: sim.Cabinet = sim.Cabinet(),
    domain: int = TRAINING, first: int = 0,
) -> Rows:  # fmt: skip
    """Freshly started games number first, first + 1, ... of a seed; levels are given one for all or one each."""
    each = [level] * games if isinstance(level, int) else list(level)
    rows = [sim.start_game(each[i], cabinet, seed_of(domain, seed, first + i)) for i in range(games)]
    return np.array(rows).reshape(games, ram.ROW_BYTES)
