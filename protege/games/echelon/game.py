"""Echelon in one table: read it first."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protege.games import Contests, Figures, Game
from protege.games.echelon.commands import COMMANDS

if TYPE_CHECKING:
    from protege.dashboard.live import Views
    from protege.games.players import Players
    from protege.train.session import Trainer

OPPONENT: Final = "expert"  # whom players are measured against


def trainer() -> "Trainer":
    from protege.games.echelon.training.trainer import TRAINER

    return TRAINER


def players() -> "Players[Any]":
    from protege.games.echelon.agents.match import PLAYERS

    return PLAYERS


def measure(player: str, *, games: int, seed: int = 1, threads: int = 1, runs: Path | None = None) -> Figures:
    """Battles against the strongest scripted level, every map from both sides."""
    from protege.games.echelon.agents.match import evaluate

    return {"player": player} | evaluate(player, OPPONENT, matches=games, seed=seed, threads=threads, runs=runs)


def contests() -> Contests:
    from protege.games.echelon.agents.contest import CONTESTS

    return CONTESTS


def views(runs: Path | None, named: Sequence[Path]) -> "Views":
    from protege.games.echelon.page.views import EchelonViews

    return EchelonViews(runs, named)


def next_steps(run: str, config: Any, runs: Path | None) -> Sequence[tuple[str, str]]:
    """What to do with a squad that was trained, and with the copies that it left in its league."""
    steps = [
        ("Watch it fight", f"protege match echelon --blue {run} --red hard --out fight.rec"),
        ("Measure it", f"protege eval echelon --blue {run} --red expert"),
    ]
    if config.league:
        from protege.league.league import open_league
        from protege.league.ledger import CANDIDATE

        name, _, options = run.partition(" ")
        with open_league(config.league, runs) as league:
            copies = [copy.name for copy in league.copies(name) if copy.kind == CANDIDATE]
        steps += [
            ("Ratings", " ".join(["protege league list", config.league, options]).rstrip()),
            ("Promote its copy", " ".join(["protege league promote", config.league, *copies[-1:], options]).rstrip()),
        ]
    return steps


GAME: Final = Game(
    name="echelon",
    title="Echelon",
    about="ten mechs against ten on voxel maps, each with its own eyes and radio",
    unit="agent-step",
    trainer=trainer,
    players=players,
    measure=measure,
    score="blue_win_rate",
    contests=contests,
    views=views,
    commands=COMMANDS,
    benchmarks={
        "echelon-sim": "protege.games.echelon.benchmarks.battles:echelon_sim",
        "ppo": "protege.games.echelon.benchmarks.ppo:ppo",
    },
    next_steps=next_steps,
    examples=(
        ("protege train echelon --minutes 60", "squads of mechs that outfight scripted ones"),
        ("protege match echelon --blue hard --red medium --out fight.rec", "a battle, recorded"),
        ("protege watch echelon fight.rec", "that battle in 3D; --text describes it"),
        ("protege record echelon fight.rec --out fight.gif", "and as a film"),
        ("protege eval echelon --blue champion --red hard", "win rate with its 95 % interval"),
    ),
)
