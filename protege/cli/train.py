"""`protege train`: settings typed, stored or preset, a run with its console and page, and what to do next."""

import math
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import tyro
from tyro.conf import FlagCreatePairsOff

from protege import ProtegeError
from protege.cli.evaluate import measure_all
from protege.cli.options import extended, given
from protege.cli.page import page_beside
from protege.cli.tables import print_json, print_table
from protege.games import Game
from protege.runs.run import Run, RunError, Training, flat, list_runs, open_run, plain, runs_folder

if TYPE_CHECKING:
    from protege.train.session import Trainer

PRESET: Final = "laptop"  # where a game has one of this name, else its first
COMPARED: Final = 200  # games of each player

# Settings can be switched off as well, where a preset or the run that is resumed has them on; these need no opposite.
Flag = FlagCreatePairsOff[bool]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every training can be told besides its settings."""

    run: str | None = None  # name of the run; by default one made from the date
    resume: Flag = False  # continue the run of that name, or the latest; settings typed here win over its own
    no_dashboard: Flag = False  # do not serve the page
    wandb: Flag = False  # also log to Weights & Biases; offline unless WANDB_MODE says otherwise
    dry_run: Flag = False  # estimate memory, disk and time, and train nothing
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: Flag = False  # also print one flat JSON object on the last line


def run_train(game: Game, arguments: Sequence[str]) -> int:
    """Train a pupil; a game's own settings are listed by "protege train GAME --help"."""
    began = time.monotonic()
    trainer = game.trainer()
    command = read_options(game, trainer, arguments)
    if command.dry_run:
        from protege.train.estimate import estimate

        needs = estimate(trainer, command.config, command.runs)
        print_table("Nothing was trained. A real start would need about:", (), [[k, v] for k, v in needs.items()])
        return print_json(command, needs)
    with ExitStack() as ending:
        run = trained(
            trainer, command.config, began, ending, name=command.run, resume=command.resume, runs=command.runs,
            wandb=command.wandb, dashboard=not command.no_dashboard, place=game.place,
        )  # fmt: skip
        figures = _compare(game, run, command)
        named = run.name + kept_at(command.runs)
        usual = trainer.presets.get(default_preset(trainer), command.config)
        longer = minutes_for_more(run, command.config.minutes or usual.minutes or 10)
        print_next_steps([
            ("Go on for longer", f"protege train {game.place} --resume --run {named} --minutes {longer}"),
            ("Its charts", f"protege dashboard --run {named}"),
            *game.next_steps(named, command.config, command.runs),
        ])  # fmt: skip
        spent = {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time()}
        return print_json(command, asdict(run.summary()) | spent | figures)


def read_options(game: Game, trainer: "Trainer", arguments: Sequence[str]) -> Any:
    """The command as typed, on top of a preset or of what the run to be resumed was trained with."""
    name, config = untyped(trainer, arguments)
    default = train_options(game, trainer)(run=name, config=config)
    command = tyro.cli(type(default), prog=f"protege train {game.place}", args=arguments, default=default)
    refuse_ignored(trainer, command.config, arguments)
    return command


def untyped(trainer: "Trainer", arguments: Sequence[str]) -> tuple[str | None, Any]:
    """The run that is resumed, if any, and the settings before those that are typed: its own, or of a preset."""
    preset, name = given(arguments, "--preset"), given(arguments, "--run")
    config = trainer.presets.get(preset or default_preset(trainer), trainer.config())
    if "--resume" in arguments:
        if preset is not None:
            raise ProtegeError("a resumed run has its own settings: leave out --preset, and type what shall change")
        runs = given(arguments, "--runs")
        name = name or latest_run(trainer.game, runs)
        config = stored_config(name, runs, trainer)
    # A budget that is typed takes the place of the other kind.
    if given(arguments, f"--{trainer.unit}s") is not None:
        config = replace(config, minutes=0.0)
    elif given(arguments, "--minutes") is not None:
        config = replace(config, **{f"{trainer.unit.replace('-', '_')}s": 0})
    return name, config


def train_options(game: Game, trainer: "Trainer") -> Any:
    """A dataclass of everything a training of this game can be told."""
    help_of = tyro.conf.arg
    fields: list[Any] = [("config", Annotated[trainer.config, help_of(name="")])]
    if trainer.presets:
        lengths = ", ".join(f"{name} {_length(trainer, config)}" for name, config in trainer.presets.items())
        fields.append(preset_field(trainer, f"settings to start from: {lengths}"))
    if game.teachers:
        who = "its teacher" if callable(game.teachers) else ", ".join(game.teachers)
        told = help_of(help=f"games of the final comparison with {who}; 0 skips it")
        fields.append(("compare", Annotated[int, told], field(default=COMPARED)))
    return extended(Options, f"Train a pupil of {game.title} ({game.about}).", fields)


def preset_field(trainer: "Trainer", text: str) -> Any:
    """The option that chooses among the presets."""
    names: Any = Literal[tuple(trainer.presets)]
    return "preset", Annotated[names, tyro.conf.arg(help=text)], field(default=default_preset(trainer))


def default_preset(trainer: "Trainer") -> str:
    return PRESET if PRESET in trainer.presets else next(iter(trainer.presets), "")


def _length(trainer: "Trainer", config: Any) -> str:
    if config.minutes:
        return f"takes {config.minutes:g} minutes"
    budget = trainer.budget(config)
    return f"takes {budget:,} {trainer.unit}s" if budget else "goes on until it is stopped"


def refuse_ignored(trainer: "Trainer", config: Any, arguments: Sequence[str]) -> None:
    """Raise if a setting was typed that has no effect beside the others, and name the one that would."""
    known = {f"--{name.replace('_', '-')}" for name in flat(plain(config))}
    for word in arguments:
        flag = word.partition("=")[0].replace("_", "-").replace("--no-", "--").replace(".no-", ".")
        for key, ignored in trainer.ignored(config).items():
            group = key.endswith(".")
            if not (flag.startswith(key) if group else flag == key):
                continue
            rest = flag.removeprefix(key)
            instead = [f"{other}{rest}" if other.endswith(".") else other for other in ignored.instead]
            works = [other for other in instead if not group or " " in other or other in known]
            raise ProtegeError(f"{flag} would have no effect: {ignored.why}" + "".join(f"; use {w}" for w in works[:1]))


def latest_run(game: str, folder: str | Path | None) -> str:
    """The run of a game that was started last."""
    place = Path(folder) if folder else None
    found = [run.name for run in list_runs(place) if run.game == game]
    if not found:
        raise RunError(f"there is no {game} run to resume in {runs_folder(place)}")
    return found[-1]


def stored_config(name: str, folder: str | Path | None, trainer: "Trainer") -> Any:
    """The settings a run was last trained with."""
    with open_run(name, Path(folder) if folder else None) as run:
        info = run.info()
    if info.game != trainer.game:
        raise RunError(f"run {name} was trained on {info.game}, not on {trainer.game}")
    known = flat(plain(trainer.config()))
    settings = trainer.settings(renamed(flat(info.config), trainer.renamed, known))
    unknown = ", ".join(key for key in settings if key not in known)
    nested: dict[str, Any] = {}
    for key, value in settings.items():
        *groups, last = key.split(".")
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    try:
        config = msgspec.convert(nested, trainer.config)
    except msgspec.ValidationError as error:
        unknown = str(error)
    if unknown:
        raise RunError(f"run {name} was trained with settings this version does not know: {unknown}")
    return config


def renamed(settings: Mapping[str, Any], names: Mapping[str, str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Flat settings by the names they have now; only those that are not `known` any more are renamed."""
    found = dict(settings)
    for old, new in names.items():
        for key in [key for key in found if key not in known]:
            if key == old or old[-1] == "." and key.startswith(old):
                found[new + key.removeprefix(old)] = found.pop(key)
    return found


def trained(
    trainer: "Trainer", config: Any, began: float, ending: ExitStack, *, name: str | None, resume: bool,
    runs: Path | None, dashboard: bool, place: str = "", wandb: bool = False,
) -> Run:  # fmt: skip
    """A training with its console, its page and its mirrors; returns the run when it has ended."""
    from protege.cli.console import TrainingConsole
    from protege.runs.trackers import attach_mirrors, check_wandb
    from protege.train.loop import train

    if wandb:
        check_wandb()
    with TrainingConsole() as console:

        def prepare(run: Training) -> None:
            console.follow(run)
            for line in attach_mirrors(run, wandb=wandb):
                console.noted(line)
            if dashboard:
                # An address that is broken over two lines is of no use.
                tell = partial(console.console.print, soft_wrap=True, markup=False)
                ending.callback(page_beside(tell, run.path.parent, place).close)

        return train(trainer, config, console, name=name, resume=resume, folder=runs, began=began, prepare=prepare)


def _compare(game: Game, run: Run, command: Any) -> dict[str, Any]:
    """Measure the pupil beside its teachers; its own figures, or none."""
    games = command.compare if game.teachers else 0
    if not games or run.status() == "stopped":  # who stops a training does not want to wait
        return {}
    print(f"Measuring {run.name} beside its teachers: {games} games each, some of them long.")
    known = game.teachers(command.config) if callable(game.teachers) else game.teachers
    pupil, *teachers = measure_all(game, (run.name, *known), games=games, runs=command.runs)
    if game.score:
        best = max(teachers, key=lambda result: float(result[game.score]))
        if best[game.score] > 0:
            ratio = pupil[game.score] / best[game.score]
            print(f"{run.name} scores {ratio:.1f} times as much as the strongest of them, {best['player']}.\n")
    return pupil


def print_next_steps(steps: Sequence[tuple[str, str]]) -> None:
    """What can be done next, and the commands for it."""
    for label, command in steps:
        print(f"{label + ':':<19} {command}")


def minutes_for_more(run: Run, more: float) -> int:
    """The budget with which a run goes on for so many minutes more: budgets are those of whole runs."""
    from protege.runs.checkpoints import load

    return math.ceil((load(run.last).state["elapsed_s"] if run.last.is_file() else 0.0) / 60 + more)


def kept_at(runs: Path | None) -> str:
    """What a command needs besides the name of a run that was kept in this folder."""
    return f" --runs {shlex.quote(str(runs))}" if runs else ""
