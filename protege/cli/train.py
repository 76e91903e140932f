"""`protege train`: settings typed, stored or preset, a run with its console and page, and the table at the end."""

import json
import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional

from protege import ProtegeError
from protege.cli.playing import print_results
from protege.cli.tables import print_table
from protege.machine import usable_cores

# Settings can be switched off as well, where a preset or the run that is resumed has them on; these need no opposite.
Flag = FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class Train:
    """Train a pupil; "protege train tempest --help" and "... echelon --help" list everything that can be set."""

    game: Positional[Literal["tempest", "echelon"]]  # the game to learn


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every training can be told besides its settings."""

    run: str | None = None  # the run's name; without it, one made from the date
    resume: Flag = False  # go on with the run of that name, or with the latest; what is typed here wins
    no_dashboard: Flag = False  # do not serve the page
    wandb: Flag = False  # also log to Weights & Biases; offline unless WANDB_MODE says otherwise
    dry_run: Flag = False  # estimate memory, disk and time, then stop
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: Flag = False  # also print one flat JSON object on the last line


def run_train(arguments: Sequence[str]) -> int:
    """`protege train GAME ...`: read apart from the other commands, because its settings belong to the learner."""
    began = time.monotonic()
    if arguments[:1] not in (["tempest"], ["echelon"]):
        tyro.cli(Train, prog="protege train", args=arguments)  # says what is wrong, or helps
        raise AssertionError("tyro.cli exits when the game is not known")
    command = _tempest_command(arguments[1:]) if arguments[0] == "tempest" else _echelon_command(arguments[1:])
    with ExitStack() as ending:
        return (_train_tempest if arguments[0] == "tempest" else _train_echelon)(command, began, ending)


def _tempest_command(arguments: Sequence[str]) -> Any:
    from protege.games.tempest.training.config import PRESETS, TempestConfig

    @dataclass(frozen=True, kw_only=True)
    class TrainTempest(Options):
        """Train a pupil on the Tempest simulator, then measure it beside its teachers."""

        config: Annotated[TempestConfig, tyro.conf.arg(name="")]
        preset: Literal["smoke", "laptop", "full"] = "laptop"  # settings to start from: half a minute, ten, days
        compare: int = 200  # games of pupil, teachers and chance at the end; 0 leaves the table out

    return _read("tempest", arguments, TrainTempest, TempestConfig, PRESETS, "frames")


def _echelon_command(arguments: Sequence[str]) -> Any:
    from protege.games.echelon.training.config import PRESETS, EchelonConfig

    @dataclass(frozen=True, kw_only=True)
    class TrainEchelon(Options):
        """Train mech pilots from scratch, or go on with some, and measure them against scripted ones."""

        config: Annotated[EchelonConfig, tyro.conf.arg(name="")]
        preset: Literal["smoke", "laptop", "full"] = "laptop"  # settings to start from: half a minute, an hour, days

    return _read("echelon", arguments, TrainEchelon, EchelonConfig, PRESETS, "agent_steps")


def _read(game: str, arguments: Sequence[str], kind: Any, settings: Any, presets: Mapping[str, Any], steps: str) -> Any:
    """The command as typed, on top of a preset or of what the run to be resumed was trained with.

    `steps` is the setting that gives a budget in steps instead of minutes.
    """
    chosen = _given(arguments, "--preset") or "laptop"
    default = kind(config=presets.get(chosen, settings()))
    if "--resume" in arguments:
        if _given(arguments, "--preset") is not None:
            raise ProtegeError("a resumed run has its own settings: leave out --preset, and type what shall change")
        name = _given(arguments, "--run") or latest_run(game, _given(arguments, "--runs"))
        default = replace(default, run=name, config=stored_config(name, _given(arguments, "--runs"), settings))
    # A budget that is typed takes the place of the other kind.
    if _given(arguments, "--" + steps.replace("_", "-")) is not None:
        default = replace(default, config=replace(default.config, minutes=0.0))
    elif _given(arguments, "--minutes") is not None:
        default = replace(default, config=replace(default.config, **{steps: 0}))
    return tyro.cli(kind, prog=f"protege train {game}", args=arguments, default=default)


def _print_estimate(figures: Mapping[str, str], as_json: bool) -> int:
    print_table("Nothing was trained. A real start would need about:", (), [[k, v] for k, v in figures.items()])
    if as_json:
        print(json.dumps(figures))
    return 0


def kept_at(runs: Path | None) -> str:
    """What a command needs besides the name of a run that was kept in this folder."""
    return f" --runs {shlex.quote(str(runs))}" if runs else ""


def _run_of(command: Any, began: float, ending: ExitStack, train: Callable[..., Any]) -> Any:
    """The run, when it has ended."""
    from protege.runs.trackers import check_wandb

    if command.wandb:
        check_wandb()
    return trained(
        command.config, began, ending, name=command.run, resume=command.resume, runs=command.runs,
        wandb=command.wandb, dashboard=not command.no_dashboard, train=train,
    )  # fmt: skip


def _train_tempest(command: Any, began: float, ending: ExitStack) -> int:
    from protege.games.tempest.agents.players import find_player, measure
    from protege.games.tempest.training.train import estimate, train

    if command.dry_run:
        return _print_estimate(estimate(command.config), command.json)
    run = _run_of(command, began, ending, train)
    results = []
    if command.compare and run.status() != "stopped":  # who stops a training does not want to wait
        print(f"Measuring {run.name} beside its teachers: {command.compare} games each, some of them long.")
        for name in (run.name, "teacher", "teacher-full", "random"):
            threads = usable_cores()
            player = find_player(name, command.runs)
            results.append(measure(name, games=command.compare, player=player, threads=threads))
        print_results(results)
        strongest = max(results[1], results[2], key=lambda result: result["score_mean"])
        ratio = results[0]["score_mean"] / strongest["score_mean"]
        print(f"{run.name} scores {ratio:.1f} times as much as the stronger teacher, {strongest['player']}.\n")
    longer, name = minutes_for_more(run, command.config.minutes or 20), run.name + kept_at(command.runs)
    print(
        f"Go on for longer:   protege train tempest --resume --run {name} --minutes {longer}\n"
        f"Watch it play:      protege watch tempest --player {name}\n"
        f"Its charts:         protege dashboard --run {name}\n"
        f"A film of it:       protege record tempest --player {name} --out {run.name}.gif\n"
        f"On real MAME:       protege serve --no-train --player {name}, and beside it protege mame\n"
        f"Measure it again:   protege eval tempest --player {name} --player teacher --games 500"
    )
    if command.json:
        summary = asdict(run.summary()) | {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time()}
        print(json.dumps(summary | (results[0] if results else {})))
    return 0


def _train_echelon(command: Any, began: float, ending: ExitStack) -> int:
    from protege.games.echelon.training.train import estimate, train

    if command.dry_run:
        return _print_estimate(estimate(command.config, command.runs), command.json)
    run = _run_of(command, began, ending, train)
    if command.config.league:
        _print_league(command.config.league, run.name, command.runs)
    longer, name = minutes_for_more(run, command.config.minutes or 60), run.name + kept_at(command.runs)
    print(
        f"Go on for longer:   protege train echelon --resume --run {name} --minutes {longer}\n"
        f"Watch it fight:     protege match echelon --blue {name} --red hard --out fight.rec\n"
        f"Its charts:         protege dashboard --run {name}\n"
        f"Measure it:         protege eval echelon --blue {name} --red expert"
    )
    if command.json:
        summary = asdict(run.summary()) | {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time()}
        print(json.dumps(summary))
    return 0


def _print_league(name: str, run: str, runs: Path | None) -> None:
    """What to do with what a training has left in its league."""
    from protege.league.league import open_league
    from protege.league.ledger import CANDIDATE

    with open_league(name, runs) as league:
        copies = [copy for copy in league.copies(run) if copy.kind == CANDIDATE]
    newest, place = f" {copies[-1].name}" if copies else "", kept_at(runs)
    print(f"Who is how strong:  protege league list {name}{place}")
    print(f"May its copy stay:  protege league promote {name}{newest}{place}")


def trained(
    config: Any, began: float, ending: ExitStack, *, name: str | None, resume: bool, runs: Path | None,
    dashboard: bool, train: Callable[..., Any], wandb: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """A training with its console, its page and its mirrors; returns the run when it has ended.

    `train` is a game's own, `options` what it takes besides.
    """
    from protege.cli.console import TrainingConsole
    from protege.runs.run import Training
    from protege.runs.trackers import attach_mirrors

    with TrainingConsole() as console:

        def prepare(run: Training) -> None:
            console.follow(run)
            for line in attach_mirrors(run, wandb=wandb):
                console.noted(line)
            if dashboard:
                # An address that is broken over two lines is of no use.
                tell = partial(console.console.print, soft_wrap=True, markup=False)
                ending.callback(page_beside(tell, run.path.parent).close)

        return train(config, console, name=name, resume=resume, folder=runs, began=began, prepare=prepare, **options)


def page_beside(tell: Callable[[str], None], runs: Path) -> Any:
    """The page of a folder of runs in a process of its own; `tell` gets the line that says where it is."""
    from protege.dashboard.process import ServerProcess

    return ServerProcess(["dashboard", "--no-browser", "--runs", str(runs)], tell)


def minutes_for_more(run: Any, more: float) -> int:
    """The budget with which a run goes on for so many minutes more: budgets are those of whole runs."""
    from protege.runs.checkpoints import load

    used_s = load(run.last).state["elapsed_s"] if run.last.is_file() else 0.0
    return math.ceil(used_s / 60 + more)


def _given(arguments: Sequence[str], flag: str) -> str | None:
    """The value typed after a flag, looked up before the whole line is read."""
    for index, word in enumerate(arguments):
        if word == flag and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return None


def latest_run(game: str, folder: str | Path | None, learner: str = "") -> str:
    """The run that was started last, of those of a game and, if it matters, a learner."""
    from protege.runs.run import RunError, list_runs, runs_folder

    place = Path(folder) if folder else None
    found = [run.name for run in list_runs(place) if run.game == game and learner in ("", run.learner)]
    if not found:
        by = f" by {learner}" if learner else ""
        raise RunError(f"there is no {game} run{by} to resume in {runs_folder(place)}")
    return found[-1]


def stored_config(name: str, folder: str | Path | None, kind: type[Any]) -> Any:
    """The settings a run was last trained with."""
    import msgspec

    from protege.runs.run import RunError, open_run

    with open_run(name, Path(folder) if folder else None) as run:
        try:
            return msgspec.convert(run.info().config, kind)
        except msgspec.ValidationError as error:
            raise RunError(f"run {name} was trained with settings this version does not know: {error}") from error
