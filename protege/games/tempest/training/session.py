"""What sessions of both learners have alike: teacher, starting point, evaluation, statistics, words about it."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from protege.games.tempest.agents.players import SCRIPTED, Player, evaluate
from protege.games.tempest.agents.rainbow import load_pupil, upgraded_shape
from protege.games.tempest.task.env import TASK_VERSION
from protege.games.tempest.task.recordings import SUFFIX
from protege.games.tempest.training.behaviour import Teacher
from protege.games.tempest.training.config import TempestConfig, device_of
from protege.games.tempest.training.evaluation import Outcome, Pupil, TempestSnapshot, evaluation_games
from protege.games.tempest.training.metrics import Accounts, Windows
from protege.games.tempest.training.sources import Played, Source
from protege.games.tempest.training.starting import distil, find_start
from protege.learn.state import named_weights
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.runs.run import plain
from protege.train.session import Context, Experience, Figures, Result, Session, Snapshot

UNDOING: Final = 0.5  # what is left of the learning rate where learning made the pupil worse than it was at the start


class TempestSession(Session):
    """The part of a session that does not depend on the learner."""

    learner: Any  # PQN or Rainbow
    kind: str  # of checkpoints
    follow: Callable[[], None]  # let the newest weights play, as settings and controls want it now
    pupil: Callable[[], Pupil]  # the player to be measured and kept
    distillation_loss: Callable[[Any, Tensor], tuple[Tensor, Tensor]]  # as `distil` wants it
    describe_learner: Callable[[], dict[str, str]]  # network and learner, in words

    def __init__(self, config: TempestConfig, context: Context, source: Source):
        self.config, self.context, self.source = config, context, source
        self.ahead = not config.deterministic
        cores = usable_cores()
        self.threads = 1 if config.deterministic else config.threads or min(4, cores)
        self.device = device_of(config)
        self.frames = 0
        self.trailing = 1.0  # what the pupil surely lacks of its teacher's score, as a fraction
        self.teacher = 0.0  # score of the stronger scripted teacher on the games of every evaluation
        self.inference_s = 0.0  # processor time of a decision, lately
        self.origin: Pupil | None = None  # what it began with, where that was not nothing
        self.untested = False  # that has still to be measured, before anything that was learned
        self.best: dict[str, Tensor] | None = None  # weights that are gone back to where learning made them worse
        self.care = config.start_rate if config.start_from else 1.0  # multiple of the learning rate
        self.measured: dict[str, Outcome] = {}  # others whom the pupil is compared with
        self.after: dict[str, Any] | None = None  # the games' state before what is learned from next
        self.windows = Windows()
        self.accounts = Accounts(1 if config.deterministic else min(cores, self.threads + 2))
        torch.manual_seed(config.seed)

    @property
    def step(self) -> int:
        return self.frames

    def explain(self) -> str:
        return self.learner.explain()

    def tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.learner.state()["weights"]
        return found

    def begin(self, resumed: bool) -> None:
        if self.config.start_from:
            self._begin_from(resumed)
        teachers = [evaluate(name, **evaluation_games(self.config)) for name in SCRIPTED]
        self.teacher = max(found["score_mean"] for found in teachers)
        self.follow()
        self.source.begin(resumed)
        self.accounts.start(self.frames, self.learner.updates)

    def _begin_from(self, resumed: bool) -> None:
        """Take over the weights of the starting point, and keep them to be compared with."""
        run, name = self.context.run, self.config.start_from
        if not resumed:
            path = find_start(name, run.path.parent)
            saved = checkpoints.load(path, task_version=TASK_VERSION)
            about = {key: saved.state.get(key) for key in self.about()}
            if "shape" in about and about["shape"] is not None:
                about["shape"] = upgraded_shape(about["shape"])
            if saved.kind == self.kind and plain(about) == plain(self.about()):
                self.learner.take(weights_under(saved.tensors, "network"))
            else:
                self._distil(load_pupil(path), name)
            known = self.about() | {"frames": 0}
            checkpoints.save(
                run.start, named_weights(self.pupil().network, "network"), known, kind=self.kind,
                task_version=TASK_VERSION,
            )  # fmt: skip
        if not run.start.is_file():
            return
        self.origin, self.untested = load_pupil(run.start), not resumed
        best = run.best if resumed and run.best.is_file() else run.start
        self.best = weights_under(checkpoints.load(best, kind=self.kind).tensors, "network")

    def _distil(self, origin: Any, name: str) -> None:
        tell = self.context.note
        tell(f"distilling {name} into another network: {self.config.distil_frames:,} frames of the simulator")
        torch.set_num_threads(self.threads)
        try:
            agreed = distil(origin, self.learner.network, self.distillation_loss, self.config, tell, name)
        finally:
            torch.set_num_threads(1)
        self.learner.take(self.learner.network.state_dict())
        tell(f"distilled: the same move as {name} in {agreed:.1%} of the frames", event="distilled")

    def room(self) -> Any:
        return self.source.room()

    def drain(self, ahead: Sequence[Experience]) -> Sequence[Experience]:
        if not self.source.can_wait:  # then there are no games for a last evaluation
            self.finished = "the clients are sent away; the best pupil of the evaluations on them is kept"
        return self.source.drain(ahead)

    def note(self, played: Played) -> None:
        """Count what was learned from."""
        self.frames += played.steps
        self.after = played.after
        self.windows.add(played.episodes, self.frames)
        self.accounts.acting += played.acting_s
        if played.decisions:
            self.inference_s = played.acting_s / played.decisions
        self.accounts.simulating += played.simulating_s

    def figures(self) -> Figures:
        found = self.windows.figures() | self.accounts.figures(self.frames, self.learner.updates)
        found |= self.source.figures() | {"top_level": self.source.top_level}
        self.helpers_cpu_s = self.source.cpu_s()
        return found | {"inference_ms": 1000 * self.inference_s}

    # --- evaluation ---

    def snapshot(self) -> TempestSnapshot:
        first, self.untested = self.untested, False
        if first and self.origin is not None:  # so that it is the best until something better is found
            return TempestSnapshot(self.origin, self, is_start=True)
        return TempestSnapshot(self.pupil(), self)

    def measure(self, snapshot: TempestSnapshot, cancelled: threading.Event) -> Outcome:
        """Play the games of an evaluation, and those of whoever it is to be compared with; not in the loop's thread."""
        began, others = time.thread_time(), dict[str, Player]()
        if self.config.teacher not in SCRIPTED:
            others["own_teacher"] = Teacher(self.config.teacher, self.context.run.path.parent)
        if self.origin is not None and not snapshot.is_start:
            others["start"] = self.origin
        found = self.source.measure(snapshot.pupil, others, self.measured, cancelled)
        if "client_teacher" in self.measured:  # on the clients' own games, which may be others than the simulator's
            self.teacher = self.measured["client_teacher"].figures["score_mean"]
        if snapshot.is_start:
            self.measured["start"] = found
        self.accounts.evaluating += time.thread_time() - began
        return found

    def compared(self) -> Mapping[str, tuple[str, Outcome]]:
        names = {"own_teacher": self.config.teacher, "start": "its start", "client_teacher": "teacher"}
        return {role: (names[role], outcome) for role, outcome in self.measured.items()}

    def evaluated(self, snapshot: Snapshot, result: Result, best: bool) -> None:
        assert isinstance(snapshot, TempestSnapshot)
        teacher = self.teacher
        if "own_teacher" in self.measured:
            teacher = self.measured["own_teacher"].figures["score_mean"]
        # The lower end of the interval: one lucky evaluation must not send the teacher away. And never upwards again:
        # advice that comes back distorts values which have been learned without it.
        self.trailing = min(self.trailing, max(0.0, 1.0 - snapshot.found["score_mean_low"] / max(1.0, teacher)))
        self.source.raise_top_level(snapshot.found["level_mean"])
        if best:
            run = self.context.run
            snapshot.record_best_game(run.recordings / f"best-evaluation{SUFFIX}", run.name)
            self.best = None if self.origin is None else snapshot.pupil.network.state_dict()
        elif self.origin is not None and not snapshot.is_start:
            self._look_back(snapshot.outcome)

    def _look_back(self, outcome: Outcome) -> None:
        """Undo what was learned if it has made the pupil worse than it was when it started."""
        start = self.measured["start"]
        if not outcome.is_below(start):
            return
        assert self.best is not None, "what it started from is the best there is until something is better"
        self.learner.take(self.best)
        self.care *= UNDOING
        self.context.note(
            f"fell below its start: {outcome.describe()}, which had {start.describe()}. Back to the best weights so "
            f"far, with {self.care:.3g} times the learning rate of the settings",
            event="undone",
        )

    # --- checkpoints ---

    def state(self) -> dict[str, Any]:
        learner = {name: value for name, value in self.learner.state().items() if name != "weights"}
        common = {"frames": self.frames, "trailing": self.trailing, "windows": self.windows.state(), "care": self.care}
        games = self.source.state() if self.after is None else self.after
        return common | {"learner": learner, "top_level": self.source.top_level, "games": games}

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.source.restore(state["games"], state["top_level"])
        self.learner.restore({"weights": saved.tensors, **state["learner"]})
        self.frames, self.trailing, self.care = state["frames"], state["trailing"], state.get("care", 1.0)
        self.windows.restore(state["windows"])
        return []

    def close(self) -> None:
        self.source.close()

    def describe(self) -> dict[str, str]:
        c, on_cpu = self.config, self.device.type == "cpu"
        device = "CPU" if on_cpu else f"{self.device.type.upper()} learns and chooses moves; CPU"
        learning = "one learns" if self.threads == 1 or not on_cpu else f"{self.threads} learn"
        threads = "all in one thread" if c.deterministic else f"one thread plays, {learning}, one measures"
        own = "" if c.teacher in SCRIPTED else f"{c.teacher} advises; the scripted one has "
        return {
            "game": f"Tempest {self.source.place}, task version {TASK_VERSION}, seed {c.seed}",
            **self.describe_learner(),
            "device": f"{device}, cores: {usable_cores()}; {threads}",
            "teacher": f"{own}{self.teacher:,.0f} points on the {c.eval_games} held-out games",
        } | ({"start": f"{c.start_from}, with {self.care:.3g} times the learning rate"} if c.start_from else {})


def weights_under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights of a network among those of a checkpoint, by their own names."""
    return {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
