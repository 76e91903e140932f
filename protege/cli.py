"""The commands: reads the command line, wires the parts together, and turns errors into one line.

Everything heavy is imported inside the command that needs it, so `protege --help` answers at once. Long because every
command is here with the help text of each of its options, which is what a reader looks for in one place.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, OmitSubcommandPrefixes, Positional, UseAppendAction, subcommand

from protege import ProtegeError, __version__

Game = Literal["tempest"]
Benchmark = Literal["tempest-sim", "tempest-profile", "train", "dashboard", "replay", "rainbow-update", "bridge"]

USAGE_ERROR = 2
INTERRUPTED = 130  # what a shell reports for a program ended by Ctrl-C
BROKEN_PIPE = 141  # and for one whose reader went away


@dataclass(frozen=True)
class Train:
    """Train a pupil; "protege train tempest --help" lists everything that can be set."""

    game: Positional[Game]  # the game to learn


@dataclass(frozen=True)
class Eval:
    """Measure players: every player plays the same games, each fixed by its seed."""

    game: Positional[Game]  # the game to play
    # Who plays: champion, teacher, teacher-full, random, the name of a run, the path of a checkpoint, or your own
    # package.module:Class. Without it, champion.
    player: UseAppendAction[tuple[str, ...]] = ()
    games: int = 200  # games for each player
    seed: int = 1  # the games follow from this number: the same seed gives the same games
    level: int = 1  # the level to start at, 1 to 99
    difficulty: Literal["easy", "medium", "hard"] = "medium"  # the cabinet's difficulty switch
    lives: int = 3  # lives at the start
    max_frames: int = 200_000  # a game still running after so many frames is cut and counted as truncated
    threads: int = 0  # threads that play; 0 uses every core
    json: bool = False  # also print one flat JSON object for each player, the last line among them


@dataclass(frozen=True)
class Record:
    """Record a game as a GIF, MP4 or WebM file."""

    game: Positional[Game]  # the game to play
    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    player: str = "champion"  # who plays, as in "protege eval"
    seed: int = 1  # the game follows from this number
    level: int = 1  # the level to start at
    best_of: int = 1  # play so many games and record the one with the highest score
    seconds: float = 45.0  # keep the last so many seconds of the game; 0 keeps all of it
    size: int = 360  # width and height of the picture


@dataclass(frozen=True)
class Bench:
    """Measure how fast something is on this machine, beside a baseline in the same run."""

    name: Positional[Benchmark]  # what to measure
    seconds: float = 10.0  # about how long each part is measured
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class Dashboard:
    """Serve the page: every run of a folder, past or present, with live play and controls."""

    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    run: str | None = None  # the run to show first; without it, the newest
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser
    until_stdin_closes: bool = False  # end when standard input does: how a training takes its page along


@dataclass(frozen=True)
class Watch:
    """Watch a player in the browser: its games as glowing vectors, what it chooses and why."""

    game: Positional[Game]  # the game to watch
    player: str = "champion"  # who plays, as in "protege eval"
    level: int = 1  # the level to start at, 1 to 99
    games: Literal[1, 4, 9, 16] = 1  # games side by side
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser


@dataclass(frozen=True)
class Play:
    """Play yourself, in the browser: keyboard, mouse or wheel, with the champion on the same seed beside you."""

    game: Positional[Game]  # the game to play
    runs: Path | None = None  # the folder that holds runs and high scores; without it PROTEGE_RUNS, or else ./runs
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines see the page
    port: int = 8765  # the port, or the next one that is free
    no_browser: bool = False  # do not open a browser


@dataclass(frozen=True)
class Serve:
    """Train on arcade clients: emulators that connect to this server, here or on other machines; or only play them.

    Settings beside these are those of a preset, or of the run that is resumed, which may have begun on the simulator:
    protege train tempest --learner rainbow --run NAME, then protege serve --resume --run NAME.
    """

    run: str | None = None  # the run's name; without it, one made from the date
    resume: bool = False  # go on with the run of that name, or with the latest
    preset: Literal["smoke", "laptop", "full"] = "full"  # settings of a new run
    no_dashboard: bool = False  # do not serve the page
    no_train: bool = False  # only play, and report what the games came to
    player: str = "champion"  # with --no-train: who plays, as in "protege eval"
    games: int = 0  # with --no-train: stop after so many games; 0 for no limit
    minutes: float = 0.0  # stop after so many minutes; 0 for no limit
    host: str = "127.0.0.1"  # the address to listen at; 0.0.0.0 lets other machines in, with a token or an allow-list
    port: int = 9999  # the port, which other machines' firewalls must let through
    token: str = ""  # what clients must know; the environment variable PROTEGE_TOKEN does as well, and stays private
    allow: UseAppendAction[tuple[str, ...]] = ()  # an address or network clients may come from, as often as needed
    start_level: int = 0  # the level clients start at, 1 to 81, where they can be told; 0 leaves it to them
    start_advanced: bool = False  # they start at the highest level the machine offers
    long_replies: bool = False  # replies of five bytes, as newer public clients want them
    max_frames: int = 200_000  # a game still running after so many frames counts as it stands
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class Mame:
    """Start MAME clients that play Tempest for a server, and keep them alive until Ctrl-C.

    Needs MAME and your own copy of the ROM set tempest1; says what is missing.
    """

    clients: int = 1  # games at once, 1 to 36; each takes about 200 MB of memory and up to one core
    serve: bool = False  # also start the server, at the address of --server: learner, page and clients in one command
    server: str | None = None  # whom to play for, HOST:PORT; without it 127.0.0.1:9999
    token: str = ""  # what the server asks for; the environment variable PROTEGE_TOKEN does as well
    mame: Path | None = None  # the emulator; without it, the one on the PATH or in the usual places
    rom_path: Path | None = None  # the folder that holds tempest1.zip; without it, where MAME looks itself
    visible: bool = False  # show the games in windows, at the arcade's speed
    frameskip: int | None = None  # with --visible: skip so many pictures after each, and run as fast as that allows
    start_level: int | None = None  # the level to start games at, 1 to 81, unless the server has a wish of its own
    # Only copy the client's scripts into this folder, for another machine: with --server, --token or --start-level
    # their settings too.
    copy_client: Path | None = None


@dataclass(frozen=True)
class Export:
    """Write a pupil as an ONNX model that other programs can run, with a description of its input and output."""

    run: Positional[str]  # the name of a run (its best pupil), the path of a checkpoint, champion or champion-visible
    out: Path  # the folder to write model.onnx, description.json and README.md into
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class Doctor:
    """Say what works on this machine and what to do about what does not."""

    full: bool = False  # also start torch and try its devices: a few seconds more
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class RunsList:
    """List the runs: what they train, how far they are, how good they got, how much disk they use."""

    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object for each run, and last one for all of them


@dataclass(frozen=True)
class RunsShow:
    """Show one run: settings, newest figures, checkpoints and what happened."""

    name: Positional[str]  # the run
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class RunsCompare:
    """Put runs side by side: the settings that differ and the figures they share."""

    names: Positional[tuple[str, ...]]  # two runs or more
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class RunsExport:
    """Write figures of a run as CSV: one line for each time they were logged."""

    name: Positional[str]  # the run
    metric: UseAppendAction[tuple[str, ...]] = ()  # a figure to export, as often as needed; without it, all of them
    out: Path | None = None  # the file to write; without it, the terminal
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs


@dataclass(frozen=True)
class RunsPrune:
    """Free disk space: delete recordings and numbered checkpoints of old runs, or whole runs.

    Says what it would delete; only --yes deletes. A run that is being trained is left alone.
    """

    names: Positional[tuple[str, ...]] = ()  # runs to prune; without any, all but the newest
    keep: int = 5  # how many of the newest runs stay as they are, when no names are given
    whole: bool = False  # delete whole runs, not only their recordings and numbered checkpoints
    yes: bool = False  # really delete
    runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
    json: bool = False  # also print one flat JSON object on the last line


@dataclass(frozen=True)
class Runs:
    """Look after run folders: list, show, compare, export, prune."""

    command: (
        Annotated[RunsList, subcommand("list")]
        | Annotated[RunsShow, subcommand("show")]
        | Annotated[RunsCompare, subcommand("compare")]
        | Annotated[RunsExport, subcommand("export")]
        | Annotated[RunsPrune, subcommand("prune")]
    )


def run_train(arguments: Sequence[str]) -> int:
    """`protege train GAME ...`: read apart from the other commands, because its settings belong to the learner."""
    began = time.monotonic()
    if arguments[:1] != ["tempest"]:
        tyro.cli(Train, prog="protege train", args=arguments)  # says what is wrong, or helps
        raise AssertionError("tyro.cli exits when the game is not known")
    from protege.tempest.config import PRESETS, TempestConfig

    @dataclass(frozen=True)
    class TrainTempest:
        """Train a pupil on the Tempest simulator, then measure it beside its teachers."""

        config: Annotated[TempestConfig, tyro.conf.arg(name="")]
        run: str | None = None  # the run's name; without it, one made from the date
        resume: bool = False  # go on with the run of that name, or with the latest; what is typed here wins
        preset: Literal["smoke", "laptop", "full"] = "laptop"  # settings to start from: half a minute, ten, days
        compare: int = 200  # games of pupil, teachers and chance at the end; 0 leaves the table out
        no_dashboard: bool = False  # do not serve the page
        wandb: bool = False  # also log to Weights & Biases; offline unless WANDB_MODE says otherwise
        dry_run: bool = False  # estimate memory, disk and time, then stop
        runs: Path | None = None  # the folder that holds the runs; without it PROTEGE_RUNS, or else ./runs
        json: bool = False  # also print one flat JSON object on the last line

    chosen = _given(arguments, "--preset") or "laptop"
    default = TrainTempest(PRESETS.get(chosen, TempestConfig()))
    if "--resume" in arguments:
        name = _given(arguments, "--run") or _latest_run("tempest", _given(arguments, "--runs"))
        default = replace(default, run=name, config=_stored_config(name, _given(arguments, "--runs"), TempestConfig))
    # A budget that is typed takes the place of the other kind.
    if _given(arguments, "--frames") is not None:
        default = replace(default, config=replace(default.config, minutes=0.0))
    elif _given(arguments, "--minutes") is not None:
        default = replace(default, config=replace(default.config, frames=0))
    command = tyro.cli(
        TrainTempest, prog="protege train tempest", args=arguments[1:], default=default, config=(FlagCreatePairsOff,)
    )
    with ExitStack() as ending:
        return _train_tempest(command, began, ending)


def _train_tempest(command: Any, began: float, ending: ExitStack) -> int:
    from protege.tempest.players import find_player, measure
    from protege.tempest.train import estimate
    from protege.trackers import check_wandb

    if command.dry_run:
        figures = estimate(command.config)
        _print_table("Nothing was trained. A real start would need about:", (), [[k, v] for k, v in figures.items()])
        return 0
    if command.wandb:
        check_wandb()
    run = _trained(
        command.config, began, ending, name=command.run, resume=command.resume, runs=command.runs,
        wandb=command.wandb, dashboard=not command.no_dashboard,
    )  # fmt: skip
    results = []
    if command.compare and run.status() != "stopped":  # who stops a training does not want to wait
        print(f"Measuring {run.name} beside its teachers: {command.compare} games each, some of them long.")
        for name in (run.name, "teacher", "teacher-full", "random"):
            threads = os.cpu_count() or 1
            player = find_player(name, command.runs)
            results.append(measure(name, games=command.compare, player=player, threads=threads))
        _print_results(results)
        strongest = max(results[1], results[2], key=lambda result: result["score_mean"])
        ratio = results[0]["score_mean"] / strongest["score_mean"]
        print(f"{run.name} scores {ratio:.1f} times as much as the stronger teacher, {strongest['player']}.\n")
    longer = 2 * command.config.minutes or 20
    print(
        f"Go on for longer:   protege train tempest --resume --run {run.name} --minutes {longer:g}\n"
        f"See it play:        protege record tempest --player {run.name} --out {run.name}.gif\n"
        f"Measure it again:   protege eval tempest --player {run.name} --player teacher --games 500"
    )
    if command.json:
        summary = asdict(run.summary()) | {"seconds": time.monotonic() - began, "cpu_seconds": time.process_time()}
        print(json.dumps(summary | (results[0] if results else {})))
    return 0


def _trained(
    config: Any, began: float, ending: ExitStack, *, name: str | None, resume: bool, runs: Path | None,
    dashboard: bool, wandb: bool = False, bridge: Any = None,
) -> Any:  # fmt: skip
    """A training with its console, its page and its mirrors; returns the run when it has ended."""
    from protege.console import TrainingConsole
    from protege.runs import Training
    from protege.tempest.train import train
    from protege.trackers import attach_mirrors

    with TrainingConsole() as console:

        def prepare(run: Training) -> None:
            console.follow(run)
            for line in attach_mirrors(run, wandb=wandb):
                console.noted(line)
            if dashboard:
                ending.callback(_page_beside(console.console, run.path.parent).close)

        return train(
            config, console, name=name, resume=resume, folder=runs, began=began, prepare=prepare, bridge=bridge
        )


def _page_beside(console: Any, runs: Path) -> Any:
    """The page of a folder of runs in a process of its own; the console says where it is."""
    from protege.dashboard.beside import Beside

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)  # an address that is broken over two lines is of no use

    return Beside(["dashboard", "--no-browser", "--runs", str(runs)], tell)


def _given(arguments: Sequence[str], flag: str) -> str | None:
    """The value typed after a flag, looked up before the whole line is read."""
    for index, word in enumerate(arguments):
        if word == flag and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return None


def _latest_run(game: str, folder: str | Path | None) -> str:
    from protege.runs import RunError, list_runs, runs_folder

    place = Path(folder) if folder else None
    found = [summary.name for summary in list_runs(place) if summary.game == game]
    if not found:
        raise RunError(f"there is no {game} run to resume in {runs_folder(place)}")
    return found[-1]


def _stored_config(name: str, folder: str | Path | None, kind: type[Any]) -> Any:
    """The settings a run was last trained with."""
    import msgspec

    from protege.runs import RunError, open_run

    with open_run(name, Path(folder) if folder else None) as run:
        try:
            return msgspec.convert(run.info().config, kind)
        except msgspec.ValidationError as error:
            raise RunError(f"run {name} was trained with settings this version does not know: {error}") from error


def run_eval(command: Eval) -> int:
    from protege.tempest.players import find_player, measure
    from protege.tempest.sim import Cabinet

    names = command.player or ("champion",)
    players = [find_player(name) for name in names]  # all of them before the first game: a typo costs no time
    cabinet = Cabinet(lives=command.lives, difficulty=command.difficulty)
    results = [
        measure(
            name,
            player=player,
            games=command.games,
            seed=command.seed,
            level=command.level,
            cabinet=cabinet,
            max_frames=command.max_frames,
            threads=command.threads or os.cpu_count() or 1,
        )
        for name, player in zip(names, players, strict=True)
    ]
    _print_results(results)
    if command.json:
        for result in results:
            print(json.dumps(result))
    return 0


def _print_results(results: Sequence[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from protege.tempest.players import TABLE_HEAD, table_rows

    one = results[0]
    title = f"Tempest from level {one['level']}, {one['games']} games each, seed {one['seed']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in TABLE_HEAD:
        table.add_column(
            name, no_wrap=name != TABLE_HEAD[-1], justify="left" if name in ("player", TABLE_HEAD[-1]) else "right"
        )
    for line in table_rows(results):
        table.add_row(*line)
    Console().print(table)


def run_record(command: Record) -> int:
    from protege.tempest.players import record

    made = record(
        command.player,
        command.out,
        seed=command.seed,
        level=command.level,
        best_of=command.best_of,
        seconds=command.seconds,
        size=command.size,
    )
    part = "the whole game" if made["first_tick"] == 0 else f"the last {command.seconds:g} seconds"
    print(
        f"{made['file']}: {part} of {made['player']}, seed {made['seed']} game {made['game']}, "
        f"{made['score']:,} points, level {made['level']} ({made['bytes'] / 1e6:.1f} MB)"
    )
    return 0


def run_bench(command: Bench) -> int:
    from rich.console import Console
    from rich.table import Table

    from protege.bench import run_benchmark

    figures = run_benchmark(command.name, seconds=command.seconds)
    table = Table("figure", "value", title=command.name, title_justify="left")
    for name, value in figures.items():
        table.add_row(name, f"{value:,.2f}" if isinstance(value, float) else str(value))
    Console().print(table)
    if command.json:
        print(json.dumps(figures))
    return 0


def run_dashboard(command: Dashboard) -> int:
    if command.until_stdin_closes and hasattr(os, "nice"):
        os.nice(5)  # beside a training, which is what the machine is busy for
    return _serve(command, f"/run/{command.run}" if command.run else "", ())


def run_watch(command: Watch) -> int:
    from urllib.parse import urlencode

    if not 1 <= command.level <= 99:
        raise ProtegeError(f"level must be 1 to 99; got {command.level}")
    settings = {"player": command.player, "level": command.level, "games": command.games}
    return _serve(command, f"/live?{urlencode(settings)}", (command.player,))


def run_play(command: Play) -> int:
    return _serve(command, "/play", ())


def _serve(command: Dashboard | Watch | Play, view: str, players: Sequence[str]) -> int:
    """Serve until Ctrl-C, with the page opened at a view; `players` are those a page could not name by itself."""
    import webbrowser

    from protege.dashboard.server import Served, serve
    from protege.tempest.live import TempestShows

    def ready(page: Served) -> None:
        print(f"dashboard: {page.link(view)}", flush=True)
        if page.note:
            print(f"  {page.note}", flush=True)
        has_screen = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not command.no_browser and has_screen:  # without one, a text browser might take over the terminal
            webbrowser.open(page.link(view))

    serve(
        {"tempest": TempestShows(command.runs, players)}, folder=command.runs, host=command.host, port=command.port,
        ready=ready, until_stdin_closes=isinstance(command, Dashboard) and command.until_stdin_closes,
    )  # fmt: skip
    return 0


def run_serve(command: Serve) -> int:
    from protege.tempest.bridge import BridgeConfig
    from protege.tempest.players import find_player
    from protege.tempest.serve import play_clients
    from protege.tempest.wire import Start

    config = BridgeConfig(
        host=command.host,
        port=command.port,
        token=command.token or os.environ.get("PROTEGE_TOKEN", ""),
        allow=command.allow,
        long_replies=command.long_replies,
        start=Start(command.start_level, command.start_advanced),
        longest_game=command.max_frames,
    )
    if not command.no_train:
        return _train_on_clients(command, config)
    player = find_player(command.player, command.runs)
    found = play_clients(
        command.player, player, config, minutes=command.minutes, games=command.games,
        tell=lambda line: print(line, flush=True),
    )  # fmt: skip
    if found["games"]:
        print(
            f"{found['player']}: {found['score_mean']:,.0f} points on average "
            f"({found['score_mean_low']:,.0f}–{found['score_mean_high']:,.0f}) in {found['games']} games, "
            f"{found['points_per_life']:,.0f} a life, level {found['level_mean']:.1f}"
        )
    else:
        print("No game was played from its beginning to its end.")
    if command.json:
        print(json.dumps(found))
    return 0


def _train_on_clients(command: Serve, bridge: Any) -> int:
    from protege.tempest.config import PRESETS, TempestConfig

    began, name, settings = time.monotonic(), command.run, PRESETS[command.preset]
    if command.resume:
        name = name or _latest_run("tempest", command.runs)
        settings = _stored_config(name, command.runs, TempestConfig)
        if settings.learner != "rainbow":
            raise ProtegeError(f"run {name} was trained by {settings.learner}; only rainbow learns from arcade clients")
    settings = replace(settings, learner="rainbow", minutes=command.minutes, frames=0, deterministic=False)
    with ExitStack() as ending:
        run = _trained(
            settings, began, ending, name=name, resume=command.resume, runs=command.runs, bridge=bridge,
            dashboard=not command.no_dashboard,
        )  # fmt: skip
    print(
        f"Go on:              protege serve --resume --run {run.name}\n"
        f"On the simulator:   protege train tempest --resume --run {run.name} --minutes 20\n"
        f"Measure it:         protege eval tempest --player {run.name} --player teacher"
    )
    if command.json:
        print(json.dumps(asdict(run.summary()) | {"seconds": time.monotonic() - began}))
    return 0


def run_mame(command: Mame) -> int:
    from rich.console import Console

    from protege.tempest import arcade, mame

    token = command.token or os.environ.get("PROTEGE_TOKEN", "")
    settings = arcade.Settings(command.server, token, command.start_level)
    if command.copy_client is not None:
        made, start = arcade.copy_client(command.copy_client, settings)
        print(f"{command.copy_client}: {', '.join(path.name for path in made)}\nA client there starts with: {start}")
        return 0
    arcade.check_count(command.clients)
    emulator, found = mame.find_emulator(command.mame, command.rom_path, command.visible, command.frameskip)
    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    if command.serve:
        tell(found)
        host, port = arcade.split_address(command.server)
        here = "127.0.0.1" if host == "0.0.0.0" else host  # listening everywhere includes this machine
        with arcade.fleet_beside(emulator, replace(settings, server=f"{here}:{port}"), command.clients, tell):
            return _serve_clients(command, host, port)
    settings = replace(settings, server=arcade.find_server(settings))
    tell(found)
    tell(settings.elsewhere(command.clients))
    arcade.run_fleet(emulator, settings, command.clients, console)
    return 0


def _serve_clients(command: Mame, host: str, port: int) -> int:
    """The server that the clients of `protege mame --serve` play for, until Ctrl-C."""
    return run_serve(Serve(host=host, port=port, token=command.token, start_level=command.start_level or 0))


def run_export(command: Export) -> int:
    from protege.tempest.export import export

    made = export(command.run, command.out, command.runs)
    print(
        f"{made['model']}: {made['player']}, {_size(made['bytes'])}\n"
        f"Checked on {made['frames']:,} frames of real games, action values up to {made['largest_value']:.3g}:\n"
        f"  against torch          largest difference {made['difference_torch']:.1e}\n"
        f"  against compiled code  largest difference {made['difference_compiled']:.1e}, "
        f"same move in {made['same_moves']:,}\n"
        f"{command.out / 'README.md'} shows how to use it."
    )
    if command.json:
        print(json.dumps(made))
    return 0


def run_doctor(command: Doctor) -> int:
    from protege.doctor import report

    return report(full=command.full, as_json=command.json)


def run_runs(command: Runs) -> int:
    wanted: Any = command.command
    return RUN[type(wanted)](wanted)


def run_runs_list(command: RunsList) -> int:
    from protege.runs import list_runs, runs_folder

    summaries = list_runs(command.runs)
    rows = [
        [s.name, s.status, f"{s.step:,}", _number(s.best_score), _size(s.disk_bytes), s.created[:16].replace("T", " ")]
        for s in summaries
    ]
    total = sum(summary.disk_bytes for summary in summaries)
    head = ("run", "status", "step", "best score", "disk", "created (UTC)")
    _print_table(f"{_count(rows, 'run')} in {runs_folder(command.runs)}, {_size(total)}", head, rows, numbers=(2, 3, 4))
    if command.json:
        for summary in summaries:
            print(json.dumps(asdict(summary)))
        training = sum(summary.status == "running" for summary in summaries)
        print(json.dumps({"runs": len(rows), "running": training, "disk_bytes": total}))
    return 0


def run_runs_show(command: RunsShow) -> int:
    from protege.runs import flat, open_run

    with open_run(command.name, command.runs) as run:
        info, summary, latest = run.info(), run.summary(), run.metrics.latest()
        declared, not_finite, events = run.metrics.declared(), run.metrics.not_finite(), run.metrics.events(most=12)
    commit = info.commit.hash[:12] + (" with changes" if info.commit.dirty else "") if info.commit else "unknown"
    settings = flat(info.config)
    about = {
        "status": f"{summary.status} at step {summary.step:,}, best score {_number(summary.best_score) or 'none'}",
        "created": f"{info.created} with Protege {info.protege}, commit {commit}",
        "started": ", ".join(f"{start.kind} {start.time[:16]}" for start in info.starts),
        "machine": ", ".join(f"{key} {value}" for key, value in info.machine.items()),
        "disk": f"{_size(summary.disk_bytes)} in {run.path}",
    }
    _print_table(f"{run.name}: {info.game}, {info.learner}", (), [[key, value] for key, value in about.items()])
    _print_table("settings", (), [[key, json.dumps(value)] for key, value in settings.items()])
    figures = [
        [
            m.family,
            m.name,
            _number(latest[m.name].value, "not finite"),
            m.unit,
            m.meaning + _times(not_finite.get(m.name)),
        ]
        for m in declared
        if m.name in latest
    ]
    _print_table("newest figures", ("family", "figure", "value", "unit", "meaning"), figures, numbers=(2,))
    files = [[path.name, _size(path.stat().st_size), _date(path.stat().st_mtime)] for path in run.all_checkpoints()]
    _print_table("checkpoints", (), files, numbers=(1,))
    _print_table("events", (), [[_date(event.time), event.kind, event.text] for event in events])
    if command.json:
        found = {**asdict(summary), "commit": info.commit and info.commit.hash, "checkpoints": len(files)}
        found |= {f"config.{key}": value for key, value in settings.items()}
        print(json.dumps(found | {f"metric.{name}": point.value for name, point in latest.items()}))
    return 0


def run_runs_compare(command: RunsCompare) -> int:
    from protege.runs import RunError, flat, open_run

    if len(set(command.names)) < 2:
        raise RunError("name at least two runs to compare")
    found: dict[str, dict[str, Any]] = {}
    for name in command.names:
        with open_run(name, command.runs) as run:
            metrics = {metric.name: metric for metric in run.metrics.declared()}
            figures = {f"metric.{name}": point.value for name, point in run.metrics.latest().items()}
            for key in [key for key in figures if metrics[key.removeprefix("metric.")].better]:
                metric = metrics[key.removeprefix("metric.")]
                extremes = run.metrics.extremes(metric.name)
                figures[f"{key}.best"] = extremes and extremes[metric.better == "higher"]
            settings = {f"config.{key}": value for key, value in flat(run.info().config).items()}
            found[name] = {**settings, **figures, "step": run.summary().step}
    every = list(dict.fromkeys(key for values in found.values() for key in values))
    differing = [k for k in every if k.startswith("config.") and len({repr(v.get(k)) for v in found.values()}) > 1]
    shared = [k for k in every if not k.startswith("config.") and all(k in values for values in found.values())]
    head, columns = ("", *found), tuple(range(1, len(found) + 1))
    rows = [[k.removeprefix("config."), *(json.dumps(v.get(k)) for v in found.values())] for k in differing]
    _print_table("settings that differ", head, rows, numbers=columns)
    rows = [[k.removeprefix("metric."), *(_number(v[k]) for v in found.values())] for k in sorted(shared)]
    _print_table("figures that all have: newest, and best", head, rows, numbers=columns)
    if command.json:
        print(
            json.dumps(
                {f"{name}.{key}": values.get(key) for name, values in found.items() for key in differing + shared}
            )
        )
    return 0


def run_runs_export(command: RunsExport) -> int:
    from protege.files import replacing
    from protege.runs import RunError, open_run

    with open_run(command.name, command.runs) as run:
        if command.out is None:
            run.metrics.export_csv(sys.stdout, command.metric)
            return 0
        try:
            with replacing(command.out) as draft, draft.open("w", newline="", encoding="utf-8") as file:
                lines = run.metrics.export_csv(file, command.metric)
        except OSError as error:
            raise RunError(f"{command.out} cannot be written: {error.strerror}") from error
    print(f"{command.out}: {lines:,} lines")
    return 0


def run_runs_prune(command: RunsPrune) -> int:
    from protege.runs import plan_prune, prune

    removals = plan_prune(command.names, keep=command.keep, whole=command.whole, folder=command.runs)
    total = sum(removal.disk_bytes for removal in removals)
    what = "everything" if command.whole else "recordings and numbered checkpoints"
    rows = [[r.run, "everything" if command.whole else _count(r.paths, "file"), _size(r.disk_bytes)] for r in removals]
    _print_table(f"{what} of {_count(rows, 'run')}, {_size(total)}", (), rows, numbers=(2,))
    if command.yes:
        prune(removals, command.runs)
        print("deleted")
    else:
        print("Nothing was deleted. Add --yes to delete it." if removals else "There is nothing to delete.")
    if command.json:
        print(json.dumps({"runs": len(rows), "disk_bytes": total, "deleted": command.yes}))
    return 0


def _print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: tuple[int, ...] = ()) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows and not head:
        return
    box = SIMPLE_HEAD if head else None
    table = Table(box=box, padding=(0, 1, 0, 0), show_header=bool(head))
    for number, name in enumerate(head or rows[0]):
        table.add_column(name if head else "", justify="right" if number in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(word) for word in row))  # as it is: what a run holds is not markup
    Console().print(Text(title, style="bold"), table)


def _number(value: float | None, missing: str = "") -> str:
    if value is None:
        return missing
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"


def _times(not_finite: int | None) -> str:
    return f" (not finite {not_finite} times)" if not_finite else ""


Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Eval, subcommand("eval")]
    | Annotated[Record, subcommand("record")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Runs, subcommand("runs"), OmitSubcommandPrefixes]
    | Annotated[Export, subcommand("export")]
    | Annotated[Dashboard, subcommand("dashboard")]
    | Annotated[Watch, subcommand("watch")]
    | Annotated[Play, subcommand("play")]
    | Annotated[Serve, subcommand("serve")]
    | Annotated[Mame, subcommand("mame")]
    | Annotated[Doctor, subcommand("doctor")]
)
RUN: dict[type[Any], Callable[[Any], int]] = {
    Eval: run_eval,
    Record: run_record,
    Bench: run_bench,
    Runs: run_runs,
    RunsList: run_runs_list,
    RunsShow: run_runs_show,
    RunsCompare: run_runs_compare,
    RunsExport: run_runs_export,
    RunsPrune: run_runs_prune,
    Dashboard: run_dashboard,
    Watch: run_watch,
    Play: run_play,
    Serve: run_serve,
    Mame: run_mame,
    Export: run_export,
    Doctor: run_doctor,
}
DESCRIPTION = f"""Protege {__version__} trains game agents that outplay their teachers.

  protege train tempest --minutes 10                                    a pupil that outplays its teacher
  protege doctor                                                        what works on this machine
  protege eval tempest --player champion --player teacher --games 200   who scores how much
  protege watch tempest --player champion                               its games, live in the browser
  protege play tempest                                                  your turn
  protege record tempest --player champion --out game.gif               a game to look at
  protege dashboard                                                     charts of every run, live play, controls
  protege serve --no-train --player champion                            play whoever connects from an arcade machine
  protege mame --clients 4                                              real games in MAME, for a server
  protege bench tempest-sim                                             how fast the simulator is here
  protege runs list                                                     what was trained, and how well
  protege export champion --out champion                                an ONNX model for other programs

"protege COMMAND --help" explains each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for a mistake the user can mend, or what the command says."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments in (["--version"], ["-V"]):
        print(f"protege {__version__}")
        return 0
    try:
        code = run_train(arguments[1:]) if arguments[:1] == ["train"] else _run_command(arguments)
        sys.stdout.flush()  # a reader that went away shows here, where it is caught, not at exit
        return code
    except ProtegeError as error:
        print(f"protege: {' '.join(str(error).split())}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the exit has nothing left to flush
        return BROKEN_PIPE


def _run_command(arguments: Sequence[str]) -> int:
    command = tyro.cli(
        Command, prog="protege", description=DESCRIPTION, args=arguments or ["--help"], config=(FlagCreatePairsOff,)
    )
    return RUN[type(command)](command)


if __name__ == "__main__":
    sys.exit(main())
