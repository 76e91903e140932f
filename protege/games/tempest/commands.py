"""Tempest's own commands: players measured, recorded, watched, played against, exported; arcade clients served."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from tyro.conf import Positional, UseAppendAction

from protege import ProtegeError
from protege.cli.evaluate import print_results
from protege.cli.options import extended, given
from protege.cli.page import page_beside, serve_page
from protege.cli.tables import print_json, size
from protege.cli.train import (
    Flag,
    kept_at,
    minutes_for_more,
    preset_field,
    print_next_steps,
    refuse_ignored,
    trained,
    untyped,
)
from protege.games import Command, find_game
from protege.machine import usable_cores
from protege.runs.run import runs_folder

if TYPE_CHECKING:
    from protege.games.tempest.arcade.bridge import BridgeConfig


@dataclass(frozen=True)
class Eval:
    """Evaluate players: every player plays the same games, each fixed by its seed."""

    # Who plays: champion, teacher, teacher-full, random, the name of a run, the path of a checkpoint, or your own
    # package.module:Class. Without it, champion.
    player: UseAppendAction[tuple[str, ...]] = ()
    games: int = 200  # games for each player
    seed: int = 1  # seed of the games: the same seed gives the same games
    level: int = 1  # the level to start at, 1 to 99
    difficulty: Literal["easy", "medium", "hard"] = "medium"  # the cabinet's difficulty switch
    lives: int = 3  # lives at the start
    max_frames: int = 200_000  # frames after which a game is truncated, and counted as such
    threads: int = 0  # threads that play; 0 for one per core
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object for each player, the last line among them


def run_eval(command: Eval) -> int:
    from protege.games.tempest.agents.players import evaluate, find_player
    from protege.games.tempest.rules.sim import Cabinet

    names = command.player or ("champion",)
    players = [find_player(name, command.runs) for name in names]  # before the first game: a typo costs no time
    cabinet = Cabinet(lives=command.lives, difficulty=command.difficulty)
    given = _chosen(command, "games", "seed", "level", "max_frames")
    results = []
    for name, player in zip(names, players, strict=True):
        with _counting(name, player, command.games) as counted:
            threads = command.threads or usable_cores()
            results.append(evaluate(name, player=counted, cabinet=cabinet, threads=threads, **given))
    title = f"Tempest from level {command.level}, {command.games} games each, seed {command.seed}"
    print_results(find_game("tempest"), results, title)
    return print_json(command, *results)


def _chosen(command: object, *names: str) -> dict[str, Any]:
    """Options that go on under the same name."""
    return {name: getattr(command, name) for name in names}


class _Counted:
    """A player that tells how many of its games are over: those that it is asked about no more."""

    def __init__(self, player: Any, tell: Callable[[int], None]):
        self.player, self.tell = player, tell
        self.before = self.begun = self.left = 0  # games of earlier batches, of this one, and what is left of it

    def act(self, frames: Any) -> Any:
        left = len(frames.score)
        if left != self.left:
            if left > self.left:  # a new batch
                self.before, self.begun = self.before + self.begun, left
            self.left = left
            self.tell(self.before + self.begun - left)
        return self.player.act(frames)


@contextmanager
def _counting(name: str, player: Any, games: int) -> Iterator[Any]:
    """The player, with a bar of its finished games if stderr is a terminal; stdout is for results."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from protege.games.tempest.agents.players import Scripted

    console = Console(stderr=True)
    name_and_bar = Progress.get_default_columns()[:2]
    with Progress(
        *name_and_bar, MofNCompleteColumn(), "games over", TimeElapsedColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    ) as bar:  # fmt: skip
        scripted = isinstance(player, Scripted)  # then games run in compiled code, which tells nothing on the way
        task = bar.add_task(escape(name), total=None if scripted else games)
        yield player if scripted else _Counted(player, lambda over: bar.update(task, completed=over))


@dataclass(frozen=True)
class Record:
    """Record a game as a film: GIF, MP4 or WebM. A game still running after 200,000 frames is truncated there."""

    out: Path  # the file to write; its ending chooses the format: .gif, .mp4 or .webm
    player: str = "champion"  # who plays, as in "protege eval"
    seed: int = 1  # seed of the game
    level: int = 1  # the level to start at
    best_of: int = 1  # play so many games and record the one with the highest score
    seconds: float = 45.0  # keep the last so many seconds of the game; 0 keeps all of it
    until_level: int = 0  # end when this level is done; 0 goes on until the game is over
    size: int = 360  # width and height of the picture
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_record(command: Record) -> int:
    from rich.console import Console
    from rich.markup import escape

    from protege.games.tempest.agents.players import MOST_FRAMES, record

    given = _chosen(command, "seed", "level", "best_of", "seconds", "until_level", "size", "runs")
    with Console(stderr=True).status(f"{escape(command.player)} plays; a game is cut after {MOST_FRAMES:,} frames"):
        made = record(command.player, command.out, **given)
    whole = "the whole game" + (f" until level {command.until_level} was done" if command.until_level else "")
    part = whole if made["first_tick"] == 0 else f"{command.seconds:g} seconds"
    cut = f", cut after {MOST_FRAMES:,} frames" if made["truncated"] else ""
    print(
        f"{made['file']}: {part} of {made['player']}, seed {made['seed']} game {made['game']}, "
        f"{made['score']:,} points, level {made['level']}{cut} ({made['bytes'] / 1e6:.1f} MB)"
    )
    return print_json(command, made)


@dataclass(frozen=True)
class Watch:
    """Watch a player in the browser: its games as glowing vectors, what it chooses and why."""

    player: str = "champion"  # who plays, as in "protege eval"
    level: int = 1  # the level to start at, 1 to 99
    games: Literal[1, 4, 9, 16] = 1  # games side by side
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines see the page
    port: int = 8765  # port, or the next free one
    no_browser: bool = False  # do not open a browser


def run_watch(command: Watch) -> int:
    from urllib.parse import urlencode

    if not 1 <= command.level <= 99:
        raise ProtegeError(f"level must be 1 to 99; got {command.level}")
    settings = {"player": command.player, "level": command.level, "games": command.games}
    return serve_page(command, f"/tempest/live?{urlencode(settings)}", {"tempest": (command.player,)})


@dataclass(frozen=True)
class Play:
    """Play yourself, in the browser: keyboard, mouse or wheel, with the champion on the same seed beside you."""

    runs: Path | None = None  # the folder of runs and high scores; by default PROTEGE_RUNS, else ./runs
    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines see the page
    port: int = 8765  # port, or the next free one
    no_browser: bool = False  # do not open a browser


def run_play(command: Play) -> int:
    return serve_page(command, "/tempest/play")


@dataclass(frozen=True)
class Export:
    """Write a pupil as an ONNX model that other programs can run, with a description of its input and output."""

    run: Positional[str]  # the name of a run (its best pupil), the path of a checkpoint, champion or champion-visible
    out: Path  # the folder to write model.onnx, description.json and README.md into
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_export(command: Export) -> int:
    from protege.games.tempest.agents.export import export

    made = export(command.run, command.out, command.runs)
    print(
        f"{made['model']}: {made['player']}, {size(made['bytes'])}\n"
        f"Checked on {made['frames']:,} frames of real games, action values up to {made['largest_value']:.3g}:\n"
        f"  against torch     largest difference {made['difference_torch']:.1e}\n"
        f"  against the pupil as it plays, difference {made['difference_played']:.1e}, "
        f"same move in {made['same_moves']:,}\n"
        f"{command.out / 'README.md'} shows how to use it."
    )
    return print_json(command, made)


@dataclass(frozen=True, kw_only=True)
class _Serving:
    """What a server is told, however it is started, besides the settings of its training."""

    run: str | None = None  # name of the run; by default one made from the date
    resume: Flag = False  # continue the run of that name, or the latest; settings typed here win over its own
    no_dashboard: Flag = False  # do not serve the page
    no_train: Flag = False  # only play, and report the scores
    player: str = "champion"  # with --no-train: who plays, as in "protege eval"
    games: int = 0  # with --no-train: stop after so many games; 0 for no limit
    allow: UseAppendAction[tuple[str, ...]] = ()  # an address or network that clients may come from; repeatable
    start_advanced: Flag = False  # clients start at the highest level the machine offers
    long_replies: Flag = False  # replies of five bytes, as newer public clients want them
    max_frames: int = 200_000  # a game still running after so many frames counts as it stands
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: Flag = False  # also print one flat JSON object on the last line


@dataclass(frozen=True, kw_only=True)
class Serve(_Serving):
    """Train on arcade clients: emulators that connect to this server, here or on other machines; or only play them."""

    host: str = "127.0.0.1"  # address to listen on; 0.0.0.0 lets other machines in, with a token or an allow-list
    port: int = 9999  # port, which firewalls must let through
    token: str = ""  # token that clients must present; PROTEGE_TOKEN in the environment keeps it private
    start_level: int = 0  # the level clients start at, 1 to 81, for clients that can be told; 0 leaves it to them


def serve_options(words: Sequence[str]) -> type[Any]:
    """Train on arcade clients: emulators that connect to this server, here or on other machines; or only play them.

    Takes every setting of protege train tempest, with learner rainbow unless another is typed. A run may have begun on
    the simulator: protege train tempest --run NAME, then protege serve --resume --run NAME.
    """
    return _with_settings(Serve, serve_options.__doc__ or "", words)


def _with_settings(kind: type[Any], help_text: str, words: Sequence[str]) -> type[Any]:
    """Options with every setting of a training added, as a preset or the run that is resumed has them."""
    import tyro

    from protege.games.tempest.training.trainer import TRAINER, for_clients

    name, config = untyped(TRAINER, words)
    config = for_clients(config, fresh="--resume" not in words)
    if given(words, "--minutes") is None:
        config = replace(config, minutes=0.0)
    made = extended(kind, help_text, [
        ("config", Annotated[TRAINER.config, tyro.conf.arg(name="")], field(default=config)),
        ("run", str | None, field(default=name)),
        preset_field(TRAINER, "settings to start from; a server goes on until it is stopped, or has had its --minutes"),
    ])  # fmt: skip
    made.typed = tuple(words)
    return made


def run_serve(command: Any) -> int:
    return _serve(command, command.host, command.port, _token(command), command.start_level)


def _serve(command: Any, host: str, port: int, token: str, start_level: int) -> int:
    """Train on whoever connects, or only play them."""
    from protege.games.tempest.agents.players import find_player
    from protege.games.tempest.arcade.bridge import BridgeConfig
    from protege.games.tempest.arcade.serve import play_clients
    from protege.games.tempest.arcade.wire import Start

    bridge = BridgeConfig(
        host, port, token=token, start=Start(start_level, command.start_advanced), longest_game=command.max_frames,
        screens=runs_folder(command.runs), **_chosen(command, "allow", "long_replies"),
    )  # fmt: skip
    if not command.no_train:
        return _train_on_clients(command, bridge)
    player, tell = find_player(command.player, command.runs), partial(print, flush=True)
    minutes, games = command.config.minutes, command.games
    with ExitStack() as ending:
        if not command.no_dashboard:
            ending.callback(page_beside(tell, runs_folder(command.runs)).close)
        found = play_clients(command.player, player, bridge, tell=tell, minutes=minutes, games=games)
    if found["games"]:
        print(
            f"{found['player']}: {found['score_mean']:,.0f} points on average "
            f"({found['score_mean_low']:,.0f}–{found['score_mean_high']:,.0f}) in {found['games']} games, "
            f"{found['points_per_life']:,.0f} a life, level {found['level_mean']:.1f}"
        )
    else:
        print("No game was played from its beginning to its end.")
    return print_json(command, found)


def _token(command: Any) -> str:
    return command.token or os.environ.get("PROTEGE_TOKEN", "")


def _train_on_clients(command: Any, bridge: "BridgeConfig") -> int:
    from protege.games.tempest.training.trainer import arcade_trainer

    trainer, began = arcade_trainer(bridge), time.monotonic()
    refuse_ignored(trainer, command.config, command.typed)
    with ExitStack() as ending:
        run = trained(
            trainer, command.config, began, ending, name=command.run, resume=command.resume, runs=command.runs,
            dashboard=not command.no_dashboard,
        )  # fmt: skip
    known_as, longer = run.name + kept_at(command.runs), minutes_for_more(run, 20)
    print_next_steps([
        ("Go on", f"protege serve --resume --run {known_as}"),
        ("On the simulator", f"protege train tempest --resume --run {known_as} --minutes {longer}"),
        ("Measure it", f"protege eval tempest --player {known_as} --player teacher"),
    ])  # fmt: skip
    return print_json(command, asdict(run.summary()) | {"seconds": time.monotonic() - began})


@dataclass(frozen=True, kw_only=True)
class Mame:
    """Start MAME clients that play Tempest for a server, and keep them alive until Ctrl-C.

    Needs MAME and your own copy of the ROM set tempest1, and says what is missing; --demo needs MAME alone.
    With --serve it takes every option of protege serve as well, settings of the training included.
    """

    demo: bool = False  # the demo cabinet: a small game of our own for the same board, built on the spot; no ROM needed
    play: bool = False  # play yourself in a window: 5 coin, 1 start, arrow keys turn, Ctrl fires, Alt zaps, Esc ends
    clients: int = 1  # games at once, 1 to 36; each takes about 200 MB of memory and up to one core
    serve: Flag = False  # also start the server, at the address of --server: learner, page and clients in one command
    server: str | None = None  # server to play for, HOST:PORT; by default 127.0.0.1:9999
    token: str = ""  # the server's token; PROTEGE_TOKEN in the environment keeps it private
    mame: Path | None = None  # the emulator; without it, the one on the PATH or in the usual places
    rom_path: Path | None = None  # the folder that holds tempest1.zip; without it, where MAME looks itself
    visible: Flag = False  # show the games in windows, at the arcade's speed
    frameskip: int | None = None  # with --visible: skip so many pictures after each, and run as fast as that allows
    overlay: Flag = False  # write over the picture what the client sees, advises and does
    start_level: int | None = None  # the level to start games at, 1 to 81, unless the server asks for another
    # Only copy the client's scripts into this folder, for another machine: with --server, --token, --start-level or
    # --overlay their settings too.
    copy_client: Path | None = None


@dataclass(frozen=True, kw_only=True)
class _ServingMame(_Serving, Mame):
    """Both."""


def mame_options(words: Sequence[str]) -> type[Any]:
    """Start MAME clients that play Tempest for a server, and keep them alive until Ctrl-C."""
    return _with_settings(_ServingMame, Mame.__doc__ or "", words) if "--serve" in words else Mame


def run_mame(command: Any) -> int:
    from rich.console import Console

    from protege.games.tempest.arcade import fleet, mame

    settings = fleet.Settings(command.server, _token(command), command.start_level, command.overlay)
    if command.copy_client is not None:
        made, start = fleet.copy_client(command.copy_client, settings)
        print(f"{command.copy_client}: {', '.join(path.name for path in made)}\nA client there starts with: {start}")
        return 0
    fleet.check_count(command.clients)
    roms = command.rom_path
    if command.demo:
        from protege.games.tempest.arcade.demo.cabinet import demo_roms

        if roms is not None:
            raise ProtegeError("--demo brings its own ROM set: leave out --rom-path")
        roms = demo_roms()
    emulator, found = mame.find_emulator(command.mame, roms, command.visible, command.frameskip)
    emulator = replace(emulator, unknown_roms=command.demo)
    if command.play:
        print(found, flush=True)
        emulator.play()
        return 0
    console = Console(highlight=False)
    tell = partial(console.print, soft_wrap=True, markup=False)
    if command.serve:
        tell(found)
        host, port = fleet.split_address(command.server)
        if host not in fleet.LOCAL:
            tell(settings.elsewhere(command.clients))
        here = "127.0.0.1" if host == fleet.EVERYWHERE else host
        with fleet.fleet_beside(emulator, replace(settings, server=f"{here}:{port}"), command.clients, tell):
            return _serve(command, host, port, _token(command), command.start_level or 0)
    settings = replace(settings, server=fleet.find_server(settings))
    tell(found)
    tell(settings.elsewhere(command.clients))
    fleet.run_fleet(emulator, settings, command.clients, console)
    return 0


@dataclass(frozen=True)
class Cabinets:
    """Simulated cabinets that play for a server as emulators do: for trying it without MAME. Ends with Ctrl-C."""

    clients: int = 8  # cabinets, 1 to 36, all in this process
    host: str = "127.0.0.1"  # the server's address
    port: int = 9999  # and its port
    token: str = ""  # the server's token; PROTEGE_TOKEN in the environment keeps it private
    seed: int = 1  # seed of the games
    level: int = 1  # the level games start at, unless the server asks for another
    minutes: float = 0.0  # stop after so many minutes; 0 for no limit
    frames: int = 0  # stop after so many frames of all cabinets together; 0 for no limit
    json: bool = False  # also print one flat JSON object on the last line


def run_cabinets(command: Cabinets) -> int:
    from protege.games.tempest.arcade import cabinets

    tell = partial(print, flush=True)
    given = _chosen(command, "clients", "host", "port", "seed", "level")
    found = cabinets.run_cabinets(
        cabinets.Cabinets(**given, token=_token(command), tell=tell), tell=tell, **_chosen(command, "minutes", "frames")
    )
    scored = f", {found['score_mean']:,.0f} points on average" if found["games"] else ""
    rate, spent = f"{found['frames_per_s']:,.0f} frames/s", found["cpu_seconds"] / found["seconds"]
    print(f"{found['clients']} cabinets: {found['frames']:,} frames, {rate}, {found['games']:,} games{scored}; "
          f"{100 * spent:.0f} % of a core")  # fmt: skip
    return print_json(command, found)


@dataclass(frozen=True)
class VerifyRom:
    """Check the simulator against your own ROM of Tempest: play it in MAME, and replay every tick in the simulator.

    Names the first byte that differs and the rule that owns it, or says how many ticks agreed.
    """

    play: str = "champion"  # who plays while it is recorded: champion, teacher, random, or as in "protege eval"
    ticks: int = 10_000  # ticks to record; 27 are a second at the arcade, and thousands a minute here
    start_level: int | None = None  # the level to start games at, 1 to 81
    trace: Path | None = None  # replay this trace, recorded before, and start no MAME
    out: Path | None = None  # keep the trace in this file
    mame: Path | None = None  # the emulator; without it, the one on the PATH or in the usual places
    rom_path: Path | None = None  # the folder that holds tempest1.zip; without it, where MAME looks itself
    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def run_verify_rom(command: VerifyRom) -> int:
    from tempfile import TemporaryDirectory

    from protege.games.tempest.arcade import mame
    from protege.games.tempest.arcade.trace import Trace
    from protege.games.tempest.arcade.verify import print_report, record, verify

    if command.ticks < 1:
        raise ProtegeError(f"--ticks must be at least 1; got {command.ticks}")
    with TemporaryDirectory(prefix="protege-trace-") as folder:
        path = command.trace or command.out or Path(folder) / "trace"
        if command.trace is None:
            emulator, found = mame.find_emulator(command.mame, command.rom_path)
            print(f"{found}\n{command.play} plays for {command.ticks:,} ticks, which are recorded", flush=True)
            record(emulator, path, **_chosen(command, "play", "ticks", "start_level", "runs"))
        trace = Trace(path)
        report = verify(trace)
    print_report(report, trace)
    print_json(command, report.figures() | {"machine": trace.machine, "whole": trace.whole})
    return 0 if report.agreed == report.ticks else 1


COMMANDS: Final = {
    "eval": Command(Eval, run_eval),
    "record": Command(Record, run_record),
    "watch": Command(Watch, run_watch),
    "play": Command(Play, run_play),
    "export": Command(Export, run_export),
    "serve": Command(serve_options, run_serve, pairs=True),
    "mame": Command(mame_options, run_mame, pairs=True),
    "cabinets": Command(Cabinets, run_cabinets),
    "verify-rom": Command(VerifyRom, run_verify_rom),
}
