"""What sessions of both learners have alike: evaluation on held-out games, statistics, what they say of themselves."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from protege.games.tempest.agents.players import evaluate
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import TASK_VERSION, Frames, starts
from protege.games.tempest.task.recordings import NO_MOVE, SUFFIX, save_recording
from protege.games.tempest.training.config import TempestConfig, device_of
from protege.games.tempest.training.metrics import Accounts, Windows
from protege.games.tempest.training.simulator import Episode
from protege.learn.state import named_weights
from protege.machine import usable_cores
from protege.runs import checkpoints
from protege.seeds import EVALUATION
from protege.train.session import Cancelled, Context, Experience, Figures, Result, Session, Snapshot

SEED_OF_EVALUATIONS: Final = 2_000_000  # so that these and what people evaluate with are different games


@dataclass
class Played(Experience):
    """Frames of training games, and the lives that ended in them."""

    episodes: list[Episode] = field(default_factory=list)
    simulating_s: float = 0.0  # processor time
    acting_s: float = 0.0
    decisions: int = 0  # calls that this time went into, each on many games


class Pupil(Protocol):
    """A player whose weights do not change any more."""

    @property
    def network(self) -> nn.Module: ...
    def act(self, frames: Frames) -> npt.ArrayLike: ...


class TempestSnapshot:
    """A pupil as it was at some frame."""

    def __init__(self, pupil: Pupil, session: "TempestSession"):
        self.pupil, self.session, self.frame = pupil, session, session.step
        self.cancelled = threading.Event()
        self.found: dict[str, Any] = {}

    def tensors(self) -> dict[str, Tensor]:
        return named_weights(self.pupil.network, "network")

    def evaluate(self, cancelled: threading.Event) -> Result:
        self.cancelled, began = cancelled, time.thread_time()
        games, teacher = self.session.evaluation_games(), self.session.teacher
        self.moves = np.full((games["games"], games["max_frames"]), NO_MOVE, np.uint8)
        found = self.found = evaluate("pupil", player=self, moves=self.moves, **games)
        self.session.accounts.evaluating += time.thread_time() - began
        ratio = found["score_mean"] / teacher
        deaths = ", ".join(f"{cause} {found[f'deaths_{cause}']}" for cause in ram.DEATH_NAMES)
        kept = ("score_mean", "score_mean_low", "score_mean_high", "points_per_life", "level_mean")
        return Result(
            figures={
                "eval_score": found["score_mean"], "eval_score_low": found["score_mean_low"],
                "eval_score_high": found["score_mean_high"], "teacher_score": teacher,
                "eval_points_per_life": found["points_per_life"], "eval_level": found["level_mean"],
                "eval_ratio": ratio,
            },
            # Points per life, not the score: these games are cut, which hides how long the best would have lasted.
            rank=(found["points_per_life"],),
            summary=f"{found['score_mean']:>9,.0f} points ({found['score_mean_low']:,.0f}–"
            f"{found['score_mean_high']:,.0f}), {ratio:.1f}x teacher, {found['points_per_life']:,.0f} a life, "
            f"level {found['level_mean']:.0f}, {found['seconds']:.0f} s",
            headline=f"{ratio:.1f}x teacher",
            detail=f"median {found['score_median']:,.0f}, best game {found['best_score']:,}, {found['truncated']} of "
            f"{found['games']} cut short; lives lost to: {deaths}",
            seconds=found["seconds"],
            about={"frames": self.frame} | {key: found[key] for key in kept},
        )  # fmt: skip

    def act(self, frames: Frames) -> npt.ArrayLike:
        """The pupil's moves, until nobody wants to know any more."""
        if self.cancelled.is_set():
            raise Cancelled
        return self.pupil.act(frames)

    def record_best_game(self, path: Path, player: str) -> None:
        """Keep the evaluation's best game, to be watched."""
        found = self.found
        best, seed = found["best_game"], found["seed"]
        start = starts(1, seed=seed, level=found["level"], domain=EVALUATION, first=best)[0]
        about = {"score": found["best_score"], "game": best, "seed": seed, "frames": self.frame}
        save_recording(path, start, self.moves[best], {"player": player} | about)


class TempestSession(Session):
    """The part of a session that does not depend on the learner."""

    learner: Any  # PQN or Rainbow
    source: Any  # of games
    pupil: Callable[[], Pupil]  # the player to be measured and kept
    describe_learner: Callable[[], dict[str, str]]  # network and learner, in words
    place = "simulator"  # where the games are

    def __init__(self, config: TempestConfig, context: Context):
        self.config, self.context = config, context
        self.ahead = not config.deterministic
        cores = usable_cores()
        self.threads = 1 if config.deterministic else config.threads or min(4, cores)
        self.device = device_of(config)
        self.frames = 0
        self.trailing = 1.0  # what the pupil lacks of the teacher's score, as a fraction
        self.inference_s = 0.0  # processor time of a decision, lately
        self.teacher = 0.0  # score of the stronger teacher on the games of every evaluation
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
        teachers = [evaluate(name, **self.evaluation_games()) for name in ("teacher", "teacher-full")]
        self.teacher = max(found["score_mean"] for found in teachers)
        self.accounts.start(self.frames, self.learner.updates)

    def evaluation_games(self) -> dict[str, Any]:
        """The games of every evaluation, as `evaluate` wants them."""
        c = self.config
        return {"games": c.eval_games, "seed": SEED_OF_EVALUATIONS + c.seed, "max_frames": c.eval_frames}

    def note(self, played: Played) -> None:
        """Count what was learned from."""
        self.frames += played.steps
        self.windows.add(played.episodes, self.frames)
        self.accounts.acting += played.acting_s
        if played.decisions:
            self.inference_s = played.acting_s / played.decisions
        self.accounts.simulating += played.simulating_s

    def figures(self) -> Figures:
        found = self.windows.figures() | self.accounts.figures(self.frames, self.learner.updates)
        return found | {"inference_ms": 1000 * self.inference_s}

    def snapshot(self) -> TempestSnapshot:
        return TempestSnapshot(self.pupil(), self)

    def evaluated(self, snapshot: Snapshot, result: Result, best: bool) -> None:
        assert isinstance(snapshot, TempestSnapshot)
        # Never upwards again: advice that comes back distorts values which have been learned without it.
        self.trailing = min(self.trailing, max(0.0, 1.0 - snapshot.found["score_mean"] / self.teacher))
        self.source.raise_top_level(snapshot.found["level_mean"])
        if best:
            run = self.context.run
            snapshot.record_best_game(run.recordings / f"best-evaluation{SUFFIX}", run.name)

    def state(self) -> dict[str, Any]:
        learner = {name: value for name, value in self.learner.state().items() if name != "weights"}
        common = {"frames": self.frames, "trailing": self.trailing, "windows": self.windows.state()}
        return common | {"learner": learner, "top_level": self.source.top_level}

    def restore(self, saved: checkpoints.Checkpoint, state: Mapping[str, Any]) -> list[str]:
        self.learner.restore({"weights": saved.tensors, **state["learner"]})
        self.frames, self.trailing = state["frames"], state["trailing"]
        self.windows.restore(state["windows"])
        return []

    def describe(self) -> dict[str, str]:
        c, on_cpu = self.config, self.device.type == "cpu"
        device = "CPU" if on_cpu else f"{self.device.type.upper()} learns and chooses moves; CPU"
        learning = "one learns" if self.threads == 1 or not on_cpu else f"{self.threads} learn"
        threads = "all in one thread" if c.deterministic else f"one thread plays, {learning}, one measures"
        return {
            "game": f"Tempest {self.place}, task version {TASK_VERSION}, seed {c.seed}",
            **self.describe_learner(),
            "device": f"{device}, cores: {usable_cores()}; {threads}",
            "teacher": f"{self.teacher:,.0f} points on the {c.eval_games} held-out games",
        }
