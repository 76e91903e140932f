"""`protege doctor` for one game: does it keep its promises, how fast is it, what would training it cost."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from protege import ProtegeError
from protege.games import Check
from protege.games.own.agents.players import Random, Teacher, evaluate
from protege.games.own.training.config import OwnConfig
from protege.games.own.training.trainer import trainer_of
from protege.games.own.world.arena import Arena, World
from protege.games.own.world.spaces import Array
from protege.seeds import EVALUATION
from protege.train.estimate import estimate

EPISODES: Final = 20  # of the teacher and of random play
FRAMES: Final = 200  # that must repeat themselves
SPEED_S: Final = 1.0


def checks(name: str, worlds: Callable[[str], World], teacher: str) -> list[Check]:
    """All rows; a row that depends on one that is missing is left out."""
    rows: list[Check] = []

    def row(title: str, look: Callable[[], tuple[str, str]], required: bool = False) -> bool:
        """Add what a look finds, and what to do about it; what it raises is what is missing."""
        try:
            found, advice = look()
            rows.append(Check(title, "ok", found, advice, required))
        except ProtegeError as problem:
            rows.append(Check(title, "missing", " ".join(str(problem).split()), required=required))
        return rows[-1].state == "ok"

    def usable() -> tuple[str, str]:
        sight, moves = worlds("").spaces
        sees = f"a picture {' x '.join(map(str, sight.shape))}" if sight.is_picture else f"{sight.features} numbers"
        learners = "pqn, rainbow or ppo" if moves.is_discrete else "ppo"
        return f"{sees}, actions in {moves.space}", f"learner {learners}"

    if not row("spaces", usable, required=True):
        return rows
    world = worlds("")
    row("checker", lambda: _checker(world))
    if not row("episodes", lambda: _returns(world, "random", Random()), required=True):
        return rows
    row("seeding", lambda: _seeding(world))
    row("determinism", lambda: _determinism(world))
    row("speed", lambda: _speed(world))
    if teacher or world.teaches:
        row("teacher", lambda: _returns(worlds(teacher), teacher or "its own", Teacher()), required=True)
    if all(one.state == "ok" for one in rows if one.required):
        row("training", lambda: _training(name, worlds, teacher))
    return rows


def _checker(world: World) -> tuple[str, str]:
    """What Gymnasium's own checker says."""
    games = world.make(1)
    envs = getattr(games, "envs", None)
    if not envs:
        return "not an environment of Gymnasium's", ""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            check_env(envs[0].unwrapped, skip_render_check=True)
        except Exception as problem:  # of a user's own code: it could be any
            raise ProtegeError(f"Gymnasium's checker: {type(problem).__name__}: {problem}") from problem
        finally:
            envs[0].close()
    remarks = [" ".join(str(one.message).split()) for one in told]
    return f"Gymnasium {gymnasium.__version__}'s has {len(remarks) or 'no'} remarks", "; ".join(remarks)[:300]


def _walk(world: World, seed: int, frames: int) -> list[Array]:
    """All that random play sees and earns."""
    arena = Arena(world, 1, EVALUATION, seed)
    try:
        found = [arena.observation]
        for _ in range(frames):
            step = arena.step(arena.moves.random(arena.uniform()))
            found += [arena.observation, step.reward, step.terminated, step.truncated, step.last]
        return found
    finally:
        arena.close()


def _same(ones: Sequence[Array], others: Sequence[Array]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(ones, others, strict=True))


def _seeding(world: World) -> tuple[str, str]:
    if not _same(_walk(world, 1, 0), _walk(world, 1, 0)):
        raise ProtegeError(f"{world.place}: two resets with the same seed show different things")
    differ = not all(_same(_walk(world, 1, 0), _walk(world, seed, 0)) for seed in range(2, 6))
    return "the same seed begins the same episode", "" if differ else "five seeds begin alike: does it use its seed?"


def _determinism(world: World) -> tuple[str, str]:
    if not _same(_walk(world, 1, FRAMES), _walk(world, 1, FRAMES)):
        raise ProtegeError(f"{world.place}: the same seed and actions lead to different episodes")
    return f"the same seed and actions give the same {FRAMES} frames", ""


def _speed(world: World) -> tuple[str, str]:
    arena, frames, began = Arena(world, min(16, world.at_once), EVALUATION, 1), 0, time.perf_counter()
    try:
        while time.perf_counter() - began < SPEED_S:
            arena.step(arena.moves.random(arena.uniform()))
            frames += arena.count
    finally:
        arena.close()
    return f"{frames / (time.perf_counter() - began):,.0f} frames a second in one thread, played at random", ""


def _returns(world: World, name: str, player: Any) -> tuple[str, str]:
    found = evaluate(world, name, player, games=EPISODES)
    interval = f"({found['return_mean_low']:,.4g}–{found['return_mean_high']:,.4g})"
    cut = f"{found['truncated']} of them cut" if found["truncated"] else ""
    return (
        f"{name}: return {found['return_mean']:,.4g} {interval} in {EPISODES} episodes of {found['frames_mean']:,.0f} "
        "frames", cut,
    )  # fmt: skip


def _training(name: str, worlds: Callable[[str], World], teacher: str) -> tuple[str, str]:
    trainer = trainer_of(name, worlds)
    config: OwnConfig = replace(trainer.presets["laptop"], teacher=teacher, eval_games=EPISODES)
    needs = estimate(trainer, config)
    return f"{config.minutes:g} minutes, preset laptop: " + ", ".join(f"{what} {n}" for what, n in needs.items()), ""
