"""What the loop drives: one learner at work on one game. The contract on one page.

A `Trainer` is the part of a game's table that training needs. Its `session` plays, learns, hands out frozen copies of
the pupil to be measured, and can be saved and restored; budget, clocks, controls, evaluation beside training, autosave
and resume are the loop's.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from protege.runs.checkpoints import Checkpoint
from protege.runs.metrics import Metric
from protege.runs.run import Training
from protege.train.controls import Controls, Scheduled

Figures = dict[str, float]


class Config(Protocol):
    """What the loop reads of a training's settings. A budget in steps is a field named after the game's unit."""

    @property
    def minutes(self) -> float: ...  # wall-clock budget of the whole run; 0 for none
    @property
    def seed(self) -> int: ...
    @property
    def eval_seconds(self) -> float: ...  # least time between two evaluations
    @property
    def eval_every(self) -> int: ...  # steps between evaluations of a deterministic run
    @property
    def autosave_seconds(self) -> float: ...
    @property
    def deterministic(self) -> bool: ...


@dataclass
class Experience:
    """What was played and is to be learned from."""

    content: Any  # as `collect` filled it; goes back to be filled again
    steps: int  # in the unit of the budget
    after: Any = None  # the games' state when it ended, for a checkpoint


@dataclass(frozen=True)
class Result:
    """What an evaluation found: figures to log, words to print, and how it ranks."""

    figures: Mapping[str, float]  # of declared metrics
    rank: tuple[float, ...]  # the larger, the better
    summary: str  # one line
    headline: str = ""  # a few words, for the progress bar
    detail: str = ""  # one more line, for whoever wants to know more
    yardstick: str = ""  # whom or what it was measured by: ranks by another one cannot be compared
    seconds: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)  # kept with the checkpoint, if it is the best


class Cancelled(Exception):
    """Nobody wants the result of an evaluation any more."""


class Snapshot(Protocol):
    """A frozen copy of the pupil."""

    def evaluate(self, cancelled: threading.Event) -> Result: ...  # held-out seeds; raises `Cancelled` once it is set
    def tensors(self) -> dict[str, Tensor]: ...  # the weights it plays with, for a checkpoint


class Context(Protocol):
    """What a session may ask of the loop."""

    @property
    def run(self) -> Training: ...
    def progress(self) -> float: ...  # fraction of the budget that is used up
    def note(self, text: str, event: str = "") -> None: ...  # tell whoever watches; with `event` the run remembers it
    def save(self) -> None: ...  # write a checkpoint now


class Session(Protocol):
    """One learner at work on one game. `collect` may run in a thread of its own; one thread calls everything else."""

    controls: Controls
    # A subclass may leave out what has a value or a body here.
    ahead: bool = False  # whether the next experience is collected while the last one is learned from
    helpers_cpu_s: float = 0.0  # processor time of processes that play for it
    finished: str = ""  # why the training ends before its budget is used up, if it does

    @property
    def step(self) -> int: ...  # learned from so far, in the unit of the budget
    def collect(self, room: Any) -> Experience: ...  # play
    def update(self, experience: Experience) -> Figures: ...  # learn; what was measured on the way, if anything
    def snapshot(self) -> Snapshot: ...  # to be measured, kept, entered into a league
    def tensors(self) -> dict[str, Tensor]: ...  # all weights of a checkpoint
    def state(self) -> dict[str, Any]: ...  # everything else that a resumed run needs
    def restore(self, saved: Checkpoint, state: Mapping[str, Any]) -> list[str]: ...  # what to tell whoever resumes

    @property
    def phase(self) -> Hashable:
        """What is trained now, such as a stage of a curriculum: a change makes evaluations under way worthless."""
        return None

    def begin(self, resumed: bool) -> None:
        """Get ready to play; unless `resumed`, from nothing."""
        return None

    def explain(self) -> str:
        """Why an update was skipped since this was last asked, or nothing."""
        return ""

    def room(self) -> Any:
        """Room for the content of one experience."""
        return None

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        """Playing has ended: what is still to be learned from. What was collected ahead a resumed run plays again."""
        return ()

    def figures(self) -> Figures:
        """What else there is to log now."""
        return {}

    def scheduled(self) -> Scheduled:
        """What settings and evaluations alone would give now, before anybody's controls."""
        return Scheduled(self.step, 0.0, 0.0)

    def evaluated(self, snapshot: Snapshot, result: Result, best: bool) -> None:
        """Draw conclusions: teacher's weight, curriculum, what enters a league."""
        return None

    def advance(self) -> None:
        """Between two updates: begin another stage or another life, if it is time."""
        return None

    def finish(self) -> bool:
        """The training ends; whether anything has changed that a checkpoint should hold."""
        return False

    def about(self) -> dict[str, Any]:
        """What every checkpoint must say for its weights to be read."""
        return {}

    def save_memory(self, wait: bool) -> str:
        """Keep what is too large for every checkpoint; what has gone wrong since the last call, or nothing."""
        return ""

    def sizes(self) -> tuple[int, int]:
        """Bytes of all arrays when full, and on disk beside the checkpoints."""
        return 0, 0

    def describe(self) -> dict[str, str]:
        """What runs, in words."""
        return {}

    def close(self) -> None:
        """Let go of threads, files and sockets."""
        return None


class Ignored(NamedTuple):
    """Why a setting has no effect beside the others, and the flags that would have one, the best first."""

    why: str
    instead: tuple[str, ...]  # one that ends with a dot stands for the setting of the same name below it


@dataclass(frozen=True)
class Trainer:
    """How a game is learned: the part of its table that needs torch."""

    game: str
    unit: str  # what a budget counts: "frame", "agent-step"
    config: type[Any]  # a frozen dataclass; the command line is made from it
    presets: Mapping[str, Any]
    learner: Callable[[Any], str]  # the name of the learner that the settings choose
    metrics: Callable[[Any], Sequence[Metric]]
    score: str  # the metric that ranks runs
    session: Callable[[Any, Context], Session]
    kind: Callable[[Any], str]  # of checkpoints
    task_version: int
    check: Callable[[Any], None] = lambda config: None  # raises if the settings do not go together
    admit: Callable[[Any, str | None, bool, Path | None], None] = lambda config, name, resume, folder: None
    ignored: Callable[[Any], Mapping[str, Ignored]] = lambda config: {}  # flags, or groups that end with a dot
    typical: Callable[[Any], Any] = lambda config: config  # settings with which an estimate sees most of a training
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] = lambda state: state  # states of earlier versions
    renamed: Mapping[str, str] = field(default_factory=dict)  # settings of earlier versions, dotted, in this order
    settings: Callable[[dict[str, Any]], dict[str, Any]] = lambda settings: settings  # what a name alone cannot tell

    def budget(self, config: Any) -> int:
        """In steps; 0 for none."""
        return int(getattr(config, f"{self.unit.replace('-', '_')}s"))


def clocks_ignored(config: Config) -> dict[str, Ignored]:
    """Settings of evaluation that have no effect: a deterministic run goes by steps, any other by the clock."""
    if config.deterministic:
        return {"--eval-seconds": Ignored("a deterministic run goes by no clock", ("--eval-every",))}
    return {"--eval-every": Ignored("only a deterministic run is evaluated by steps", ("--eval-seconds",))}
