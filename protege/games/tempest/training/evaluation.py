"""How a pupil is measured: games without teacher and exploration, and what they came to.

On the simulator these are held-out games, the same every time. A source may have others, such as some games of arcade
clients; nothing here can tell.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from protege.games.tempest.agents.players import Player, play_seeded, score_figures, words
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import Frames, starts
from protege.games.tempest.task.recordings import NO_MOVE, save_recording
from protege.games.tempest.training.config import TempestConfig
from protege.learn.state import named_weights
from protege.seeds import EVALUATION
from protege.statistics import bootstrap_ratio
from protege.train.session import Cancelled, Result

SEED_OF_EVALUATIONS: Final = 2_000_000  # so that these and what people evaluate with are different games

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Pupil(Protocol):
    """A player whose weights do not change any more."""

    @property
    def network(self) -> nn.Module: ...
    def act(self, frames: Frames) -> npt.ArrayLike: ...


@dataclass(frozen=True)
class Outcome:
    """Games that somebody played to be measured."""

    score: Floats  # (games,)
    deaths: Ints
    level: Ints  # reached
    truncated: int
    seconds: float
    detail: str = ""  # what else there is to say
    busy: bool = True  # whether this kept a core busy for so long
    record: Callable[[Path, Mapping[str, Any]], None] | None = field(default=None, repr=False)  # the best game

    NAMES: ClassVar = ("score", "deaths", "level")  # the arrays

    @cached_property
    def figures(self) -> dict[str, float]:
        """Scores and points for each life lost, with 95 % intervals by bootstrap over the games."""
        low, high = bootstrap_ratio(self.score, self.deaths)
        ends = {"points_per_life_low": low, "points_per_life_high": high}
        return score_figures(self.score, self.level, int(self.deaths.sum())) | ends

    def is_below(self, other: "Outcome") -> bool:
        """Whether it is surely worse: the whole 95 % interval of the ratio of points per life lies below 1."""
        return bootstrap_ratio(self.score, self.deaths, (other.score, other.deaths))[1] < 1.0

    def joined(self, other: "Outcome") -> "Outcome":
        """The games of both."""
        arrays: Any = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.NAMES}
        return replace(self, **arrays, truncated=self.truncated + other.truncated)

    def newest(self, games: int) -> "Outcome":
        """The last of its games."""
        return replace(self, score=self.score[-games:], deaths=self.deaths[-games:], level=self.level[-games:])

    def describe(self) -> str:
        """Points per life with their interval."""
        f = self.figures
        ends = f"{f['points_per_life_low']:,.0f}–{f['points_per_life_high']:,.0f}"
        return f"{f['points_per_life']:,.0f} ({ends}) points a life"


def evaluation_games(config: TempestConfig) -> dict[str, Any]:
    """The held-out games of every evaluation, as `evaluate` wants them."""
    return {"games": config.eval_games, "seed": SEED_OF_EVALUATIONS + config.seed, "max_frames": config.eval_frames}


class _Interruptible:
    """A player, until nobody wants to know any more."""

    def __init__(self, player: Player, cancelled: threading.Event):
        self.player, self.cancelled = player, cancelled

    def act(self, frames: Frames) -> npt.ArrayLike:
        if self.cancelled.is_set():
            raise Cancelled
        return self.player.act(frames)


def held_out(player: Player, config: TempestConfig, cancelled: threading.Event, *, record: bool = False) -> Outcome:
    """Play the held-out games; with `record`, whose moves are joint actions, so that the best can be kept."""
    began, given = time.perf_counter(), evaluation_games(config)
    moves = np.full((given["games"], given["max_frames"]), NO_MOVE, np.uint8) if record else None
    ended = play_seeded(_Interruptible(player, cancelled), moves=moves, **given)
    score, deaths = words(ended, ram.SCORE), words(ended, ram.DEATHS, ram.DEATH_KINDS)
    best, truncated = int(score.argmax()), int((ended[:, ram.GAME_STATE] != ram.HIGH_SCORE_CHECK).sum())
    causes = ", ".join(f"{cause} {n}" for cause, n in zip(ram.DEATH_NAMES, deaths.sum(0), strict=True))

    def keep(path: Path, about: Mapping[str, Any]) -> None:
        assert moves is not None, "who wants a recording says so before"
        start = starts(1, seed=given["seed"], level=1, domain=EVALUATION, first=best)[0]
        known = {"score": int(score[best]), "game": best, "seed": given["seed"]}
        save_recording(path, start, moves[best], {**about, **known})

    return Outcome(
        score.astype(np.float64), deaths.sum(1), ended[:, ram.P1_LEVEL].astype(np.int64) + 1, truncated,
        time.perf_counter() - began, f"lives lost to: {causes}", record=keep if record else None,
    )  # fmt: skip


class Measuring(Protocol):
    """What a snapshot needs to know of its session."""

    teacher: float  # score of the stronger scripted teacher

    @property
    def step(self) -> int: ...
    def measure(self, snapshot: "TempestSnapshot", cancelled: threading.Event) -> Outcome: ...
    def compared(self) -> Mapping[str, tuple[str, Outcome]]: ...  # by role: who else was measured, under which name


class TempestSnapshot:
    """A pupil as it was at some frame."""

    def __init__(self, pupil: Pupil, session: Measuring, *, is_start: bool = False):
        self.pupil, self.session, self.frame, self.is_start = pupil, session, session.step, is_start
        self.outcome: Outcome
        self.found: dict[str, float] = {}

    def tensors(self) -> dict[str, Tensor]:
        return named_weights(self.pupil.network, "network")

    def evaluate(self, cancelled: threading.Event) -> Result:
        outcome = self.outcome = self.session.measure(self, cancelled)
        found, teacher = outcome.figures, self.session.teacher
        self.found, ratio = found, found["score_mean"] / max(1.0, teacher)
        names = {"eval_score": "score_mean", "eval_points_per_life": "points_per_life"}
        ends = {f"{ours}{end}": f"{theirs}{end}" for ours, theirs in names.items() for end in ("", "_low", "_high")}
        figures = {ours: found[theirs] for ours, theirs in ends.items()}
        figures |= {"teacher_score": teacher, "eval_level": found["level_mean"], "eval_ratio": ratio}
        told = ""
        for role, (name, other) in self.session.compared().items():
            theirs = other.figures
            figures |= {f"{role}_score": theirs["score_mean"], f"{role}_points_per_life": theirs["points_per_life"]}
            times = found["points_per_life"] / max(1.0, theirs["points_per_life"])
            told += f" ({times:.2f}x {name})"
        kept = ("score_mean", "score_mean_low", "score_mean_high", "points_per_life", "level_mean")
        best = int(outcome.score.max())
        return Result(
            figures=figures,
            # Points per life, not the score: these games are cut, which hides how long the best would have lasted.
            rank=(found["points_per_life"],),
            summary=f"{found['score_mean']:>9,.0f} points ({found['score_mean_low']:,.0f}–"
            f"{found['score_mean_high']:,.0f}), {ratio:.1f}x teacher, {found['points_per_life']:,.0f} a life{told}, "
            f"level {found['level_mean']:.0f}, {outcome.seconds:.0f} s",
            headline=f"{ratio:.1f}x teacher",
            detail=f"median {found['score_median']:,.0f}, best game {best:,}, {outcome.truncated} of "
            f"{len(outcome.score)} cut short; {outcome.detail}",
            seconds=outcome.seconds if outcome.busy else 0.0,
            about={"frames": self.frame} | {key: found[key] for key in kept},
        )

    def record_best_game(self, path: Path, player: str) -> None:
        """Keep the evaluation's best game, to be watched, if that can be."""
        if self.outcome.record is not None:
            self.outcome.record(path, {"player": player, "frames": self.frame})
