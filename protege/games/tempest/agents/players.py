"""Players by name, what they score, and films of their games.

A player is anything with `act(frames)`, which answers with joint actions (games,) or commands (games, 3). Built in are
the two teachers, random play and the champions; runs and checkpoints are pupils; `package.module:Class` names a user's
own.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from protege import ProtegeError
from protege.games.players import Players
from protege.games.tempest.rules import ram, sim
from protege.games.tempest.rules.ram import Row, Rows
from protege.games.tempest.task import drawing
from protege.games.tempest.task.actions import ACTIONS, quantised, to_commands
from protege.games.tempest.task.env import Frames, Games, starts
from protege.games.tempest.task.recordings import Moves, Replay
from protege.games.tempest.task.teacher import MEET, advise, spinner_to
from protege.kernels import announce_compilation, kernel
from protege.seeds import EVALUATION
from protege.statistics import bootstrap, interquartile_mean, mean
from protege.video import check_video_path, write_video

Ints = npt.NDArray[np.int64]

BATCH = 1024  # games evaluated side by side
MOST_FRAMES = 200_000  # a game still running after so many is cut


class Player(Protocol):
    """Who decides."""

    def act(self, frames: Frames) -> npt.ArrayLike: ...  # joint actions (games,) or commands (games, 3)


class Scripted:
    """The built-in players: the teacher, its spinner quantised or in full, and random play.

    They need no observation, so whole games of theirs run in compiled code.
    """

    def __init__(self, manner: int):
        self.manner = manner

    def act(self, frames: Frames) -> npt.ArrayLike:
        if self.manner == RANDOM:
            return (frames.uniform * len(ACTIONS)).astype(np.int64)
        return frames.advice if self.manner == QUANTISED else frames.advice_full

    def play_out(self, rows: Rows, max_frames: int, threads: int) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda part: _play_out(part, self.manner, max_frames), np.array_split(rows, threads)))


QUANTISED, IN_FULL, RANDOM = 0, 1, 2  # manners of the built-in players


@kernel
def _play_out(rows: Rows, manner: int, max_frames: int) -> None:
    for g in range(len(rows)):
        row = rows[g]
        while not sim.is_over(row) and ram.get_word(row, ram.FRAMES) < np.uint64(max_frames):
            fire, zap, spinner = False, False, 0
            if not ram.in_control(row):
                pass
            elif manner == RANDOM:
                action = ACTIONS[int(ram.player_uniform(row, ram.FOR_PLAYER) * len(ACTIONS))]
                fire, zap = action[0] != 0, action[1] != 0
                spinner = np.int64(action[2])  # type: ignore[assignment]
            else:
                target, fire, zap = advise(row, MEET)
                spinner = spinner_to(row, target)
                if manner == QUANTISED:
                    spinner = quantised(spinner)
            sim.step_game(row, fire, zap, False, spinner)


BUILT_IN = {"teacher": QUANTISED, "teacher-full": IN_FULL, "random": RANDOM}
SCRIPTED: Final = ("teacher", "teacher-full")  # every frame comes with their advice
CHAMPIONS = {
    name: Path(__file__).parents[1] / "champions" / f"{name}.safetensors" for name in ("champion", "champion-visible")
}


def _load(path: Path) -> Player:
    from protege.games.tempest.agents.rainbow import load_pupil

    return load_pupil(path)


PLAYERS: Final = Players[Player](
    {name: partial(Scripted, manner) for name, manner in BUILT_IN.items()}, CHAMPIONS, _load,
    "act(frames); see docs/tempest.md for a five-line example",
)  # fmt: skip
find_player: Final = PLAYERS.find
checkpoint_of: Final = PLAYERS.checkpoint_of


def play(
    player: Player, rows: Rows, *, max_frames: int = MOST_FRAMES, threads: int = 1, moves: Moves | None = None
) -> Rows:
    """Play every game to its end, or to `max_frames`; returns the games as they ended, in the same order.

    Joint actions go into `moves` (games, max_frames), if given, for recordings.
    """
    if isinstance(player, Scripted):
        announce_compilation("the game", __name__)
        ended = rows.copy()
        player.play_out(ended, max_frames, threads)
        return ended
    ended = np.empty_like(rows)
    where = np.arange(len(rows))
    games = Games(rows, threads=threads)
    while len(where):
        actions = player.act(games.frames)
        if moves is not None:
            moves[where, games.frames.frame] = actions
        frames = games.step(actions)
        stopped = frames.over | (frames.frame >= max_frames)
        if stopped.any():
            ended[where[stopped]] = games.rows[stopped]
            where = where[~stopped]
            games.keep(np.flatnonzero(~stopped))
    return ended


def words(rows: Rows, address: int, count: int = 1) -> Ints:
    """64-bit words of the margins: (games,), or (games, count) for several in a row."""
    found = np.ascontiguousarray(rows[:, address : address + 8 * count]).view(np.int64)
    return found[:, 0] if count == 1 else found


def score_figures(score: npt.NDArray[np.float64], level: npt.NDArray[np.int64], deaths: int) -> dict[str, float | int]:
    """What games came to, by score and level of each and deaths in all, with 95 % intervals."""
    mean_low, mean_high = bootstrap(score, mean)
    iqm_low, iqm_high = bootstrap(score, interquartile_mean)
    return {
        "score_mean": float(score.mean()), "score_mean_low": mean_low, "score_mean_high": mean_high,
        "score_median": float(np.median(score)), "score_iqm": float(interquartile_mean(score)),
        "score_iqm_low": iqm_low, "score_iqm_high": iqm_high, "points_per_life": float(score.sum() / max(1, deaths)),
        "level_mean": float(level.mean()), "level_max": int(level.max()),
    }  # fmt: skip


def play_seeded(
    player: Player, *, games: int, seed: int, level: int = 1, cabinet: sim.Cabinet = sim.Cabinet(),
    max_frames: int = MOST_FRAMES, threads: int = 1, moves: Moves | None = None,
) -> Rows:  # fmt: skip
    """The evaluation games of a seed, as they ended; `moves` as in `play`."""
    parts = []
    for first in range(0, games, BATCH):
        count = min(BATCH, games - first)
        rows = starts(count, seed=seed, level=level, cabinet=cabinet, domain=EVALUATION, first=first)
        kept = None if moves is None else moves[first : first + BATCH]
        parts.append(play(player, rows, max_frames=max_frames, threads=threads, moves=kept))
    return np.concatenate(parts)


def evaluate(
    name: str, *, games: int, seed: int = 1, level: int = 1, cabinet: sim.Cabinet = sim.Cabinet(),
    max_frames: int = MOST_FRAMES, threads: int = 1, player: Player | None = None, moves: Moves | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One row of results for one player: the games of a seed, with 95 % intervals; `moves` as in `play`."""
    if games < 1:
        raise ProtegeError(f"an evaluation needs at least one game; got {games}")
    if max_frames < 1:
        raise ProtegeError(f"games are cut after at least one frame; got {max_frames}")
    began = time.perf_counter()
    ended = play_seeded(
        player or find_player(name), games=games, seed=seed, level=level, cabinet=cabinet, max_frames=max_frames,
        threads=threads, moves=moves,
    )  # fmt: skip
    score = words(ended, ram.SCORE).astype(np.float64)
    deaths = words(ended, ram.DEATHS, ram.DEATH_KINDS).sum(axis=0)
    return {
        "player": name, "games": games, "seed": seed, "level": level,
        **score_figures(score, ended[:, ram.P1_LEVEL].astype(np.int64) + 1, int(deaths.sum())),
        "frames_mean": float(words(ended, ram.FRAMES).mean()),
        "truncated": int((ended[:, ram.GAME_STATE] != ram.HIGH_SCORE_CHECK).sum()),
        **{f"deaths_{cause}": int(count) for cause, count in zip(ram.DEATH_NAMES, deaths, strict=True)},
        "start_bonus_mean": float(words(ended, ram.START_BONUS).mean()),
        "best_game": int(score.argmax()), "best_score": int(score.max()),
        "seconds": time.perf_counter() - began,
    }  # fmt: skip


def film(player: Player, row: Row, max_frames: int = MOST_FRAMES) -> Iterator[Row]:
    """A game tick by tick, also those between frames; each row is to be drawn before the next is asked for."""
    games = Games(row[None])
    live = games.rows[0]
    while not sim.is_over(live) and not (isinstance(player, Replay) and player.is_finished()):
        if ram.get_word(live, ram.FRAMES) >= max_frames:
            return
        fire, zap, spinner = to_commands(player.act(games.frames), 1)[0].tolist()
        sim.step_game(live, fire != 0, zap != 0, False, spinner)
        yield live
        while not ram.in_control(live) and not sim.is_over(live):
            sim.step_game(live, False, False, False, 0)
            yield live
        games.put(np.array([0]), live[None])


def record(
    name: str, out: Path, *, seed: int = 1, level: int = 1, best_of: int = 1, seconds: float = 45.0,
    until_level: int = 0, size: int = 360, runs: Path | None = None, max_frames: int = MOST_FRAMES,
) -> dict[str, Any]:  # fmt: skip
    """Film the last `seconds` of a game (0: all of it) into a GIF, MP4 or WebM; of several games, the best.

    With `until_level`, the film ends when that level is done.
    """
    check_video_path(out)
    player = find_player(name, runs)
    rows = starts(best_of, seed=seed, level=level, domain=EVALUATION)
    chosen = int(words(play(player, rows, max_frames=max_frames), ram.SCORE).argmax()) if best_of > 1 else 0

    def shown() -> Iterator[Row]:
        for live in film(player, rows[chosen].copy(), max_frames):
            if until_level and live[ram.P1_LEVEL] >= until_level:
                return
            yield live

    ticks = sum(1 for _ in shown())
    first = 0 if seconds <= 0 else max(0, ticks - int(seconds * ram.TICKS_PER_SECOND))
    step = 2  # every second tick is smooth enough and halves the file
    score, reached, frames = 0, level, 0

    def pictures() -> Iterator[npt.NDArray[np.uint8]]:
        nonlocal score, reached, frames
        for tick, live in enumerate(shown()):
            score, frames = int(ram.get_word(live, ram.SCORE)), int(ram.get_word(live, ram.FRAMES))
            reached = int(live[ram.P1_LEVEL]) + 1
            if tick >= first and (tick - first) % step == 0:
                yield drawing.render(live, size, size)

    write_video(pictures(), out, ram.TICKS_PER_SECOND / step)
    return {
        "player": name, "seed": seed, "game": chosen, "score": score, "level": reached,
        "ticks": ticks, "first_tick": first, "truncated": frames >= max_frames,
        "file": str(out), "bytes": out.stat().st_size,
    }  # fmt: skip


def table_rows(results: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    for r in results:
        deaths = sorted(((r[f"deaths_{cause}"], cause) for cause in ram.DEATH_NAMES), reverse=True)
        lost = max(1, sum(count for count, _ in deaths))
        causes = ", ".join(f"{cause} {count / lost:.0%}" for count, cause in deaths if count / lost >= 0.005)
        score = f"{r['score_mean']:,.0f} ({r['score_mean_low']:,.0f}–{r['score_mean_high']:,.0f})"
        figures = f"{r['score_median']:,.0f}", f"{r['points_per_life']:,.0f}", f"{r['level_mean']:.1f}"
        lines.append((r["player"], score, *figures, causes))
    return lines


TABLE_HEAD = ("player", "mean score (95 %)", "median", "per life", "level", "deaths by")
