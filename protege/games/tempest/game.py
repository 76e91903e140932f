"""Tempest in one table: read it first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from protege.games import Figures, Game, later
from protege.games.tempest.commands import COMMANDS

HERE: Final = "protege.games.tempest"


def measure(player: str, *, games: int, seed: int = 1, threads: int = 1, runs: Path | None = None) -> Figures:
    """Scores of whole games."""
    from protege.games.tempest.agents.players import evaluate, find_player

    return evaluate(player, games=games, seed=seed, threads=threads, player=find_player(player, runs))


def table(results: Sequence[Figures]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Figures as people read them."""
    from protege.games.tempest.agents.players import TABLE_HEAD, table_rows

    return TABLE_HEAD, table_rows(results)


def next_steps(run: str, config: Any, runs: Path | None) -> Sequence[tuple[str, str]]:
    """What to do with a pupil that was trained."""
    name = run.split()[0]
    return (
        ("Watch it play", f"protege watch tempest --player {run}"),
        ("A film of it", f"protege record tempest --player {run} --out {name}.gif"),
        ("On real MAME", f"protege serve --no-train --player {run}, and beside it protege mame"),
        ("Measure it again", f"protege eval tempest --player {run} --player teacher --games 500"),
    )


GAME: Final = Game(
    name="tempest",
    title="Tempest",
    about="the arcade game of 1981: a tube, its rim, and what climbs up to it",
    unit="frame",
    trainer=later(f"{HERE}.training.trainer:TRAINER"),
    players=later(f"{HERE}.agents.players:PLAYERS"),
    measure=measure,
    score="score_mean",
    table=table,
    teachers=("teacher", "teacher-full", "random"),
    contests=later(f"{HERE}.agents.contest:CONTESTS"),
    views=later(f"{HERE}.page.views:TempestViews"),
    commands=COMMANDS,
    benchmarks={
        "tempest-sim": f"{HERE}.benchmarks.simulator:tempest_sim",
        "tempest-profile": f"{HERE}.benchmarks.simulator:tempest_profile",
        "train": f"{HERE}.benchmarks.training:training",
        "dashboard": f"{HERE}.benchmarks.training:dashboard",
        "rainbow-update": f"{HERE}.benchmarks.replay:rainbow_update",
        "replay": f"{HERE}.benchmarks.replay:replay",
        "bridge": f"{HERE}.benchmarks.bridge:bridge",
    },
    checks=later(f"{HERE}.arcade.checks:checks"),
    next_steps=next_steps,
    examples=(
        ("protege watch tempest --player champion", "its games, live in the browser"),
        ("protege play tempest", "play yourself, beside the champion"),
        ("protege train tempest --minutes 10", "a pupil that outplays its teacher"),
        ("protege eval tempest --player champion --player teacher", "mean scores with 95 % intervals"),
        ("protege record tempest --player champion --out game.gif", "a game as a film"),
        ("protege export champion --out champion", "an ONNX model for other programs"),
        ("protege mame --serve --clients 2", "train on real games in MAME"),
        ("protege mame --demo --play", "a small game of our own in MAME, without a ROM"),
        ("protege league list tempest", "ratings of every player"),
        ("protege bench tempest-sim", "how fast the simulator is here"),
    ),
)
