"""`protege serve` and `protege mame`: arcade clients and the server they play for."""

import json
import os
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tyro.conf import UseAppendAction

from protege import ProtegeError
from protege.cli.train import kept_at, latest_run, minutes_for_more, page_beside, stored_config, trained


@dataclass(frozen=True)
class Serve:
    """Train on arcade clients: emulators that connect to this server, here or on other machines; or only play them.

    Settings beside these are those of a preset, or of the run that is resumed, which may have begun on the simulator:
    protege train tempest --learner rainbow --run NAME, then protege serve --resume --run NAME.
    """

    run: str | None = None  # the run's name; without it, one made from the date
    resume: bool = False  # go on with the run of that name, or with the latest
    preset: Literal["smoke", "laptop", "full"] | None = None  # settings of a new run; without it, full
    no_dashboard: bool = False  # do not serve the page
    no_train: bool = False  # only play, and report what the games came to
    player: str = "champion"  # with --no-train: who plays, as in "protege eval"
    games: int = 0  # with --no-train: stop after so many games; 0 for no limit
    minutes: float = 0.0  # stop after so many minutes, with --resume of the whole run; 0 for no limit
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


def run_serve(command: Serve) -> int:
    from protege.games.tempest.agents.players import find_player
    from protege.games.tempest.arcade.bridge import BridgeConfig
    from protege.games.tempest.arcade.serve import play_clients
    from protege.games.tempest.arcade.wire import Start
    from protege.runs.run import runs_folder

    config = BridgeConfig(
        host=command.host,
        port=command.port,
        token=command.token or os.environ.get("PROTEGE_TOKEN", ""),
        allow=command.allow,
        long_replies=command.long_replies,
        start=Start(command.start_level, command.start_advanced),
        longest_game=command.max_frames,
        screens=runs_folder(command.runs),
    )
    if not command.no_train:
        return _train_on_clients(command, config)
    player = find_player(command.player, command.runs)

    def tell(line: str) -> None:
        print(line, flush=True)

    with ExitStack() as ending:
        if not command.no_dashboard:
            ending.callback(page_beside(tell, runs_folder(command.runs)).close)
        found = play_clients(
            command.player, player, config, minutes=command.minutes, games=command.games, tell=tell
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
    from protege.games.tempest.training.config import PRESETS, TempestConfig
    from protege.games.tempest.training.train import train

    began, name, settings = time.monotonic(), command.run, PRESETS[command.preset or "full"]
    if command.resume:
        if command.preset is not None:
            raise ProtegeError("a resumed run has its own settings: leave out --preset")
        name = name or latest_run("tempest", command.runs, "rainbow")
        settings = stored_config(name, command.runs, TempestConfig)
        if settings.learner != "rainbow":
            raise ProtegeError(
                f"run {name} was trained by {settings.learner}; only rainbow learns from arcade clients. "
                f"To let it play them: protege serve --no-train --player {name}{kept_at(command.runs)}"
            )
    settings = replace(settings, learner="rainbow", minutes=command.minutes, frames=0, deterministic=False)
    with ExitStack() as ending:
        run = trained(
            settings, began, ending, name=name, resume=command.resume, runs=command.runs, bridge=bridge,
            dashboard=not command.no_dashboard, train=train,
        )  # fmt: skip
    known_as = run.name + kept_at(command.runs)
    print(
        f"Go on:              protege serve --resume --run {known_as}\n"
        f"On the simulator:   protege train tempest --resume --run {known_as} --minutes {minutes_for_more(run, 20)}\n"
        f"Measure it:         protege eval tempest --player {known_as} --player teacher"
    )
    if command.json:
        print(json.dumps(asdict(run.summary()) | {"seconds": time.monotonic() - began}))
    return 0


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


def run_mame(command: Mame) -> int:
    from rich.console import Console

    from protege.games.tempest.arcade import fleet, mame

    token = command.token or os.environ.get("PROTEGE_TOKEN", "")
    settings = fleet.Settings(command.server, token, command.start_level)
    if command.copy_client is not None:
        made, start = fleet.copy_client(command.copy_client, settings)
        print(f"{command.copy_client}: {', '.join(path.name for path in made)}\nA client there starts with: {start}")
        return 0
    fleet.check_count(command.clients)
    emulator, found = mame.find_emulator(command.mame, command.rom_path, command.visible, command.frameskip)
    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    if command.serve:
        tell(found)
        host, port = fleet.split_address(command.server)
        if host not in fleet.LOCAL:
            tell(settings.elsewhere(command.clients))
        here = "127.0.0.1" if host == fleet.EVERYWHERE else host
        with fleet.fleet_beside(emulator, replace(settings, server=f"{here}:{port}"), command.clients, tell):
            return _serve_clients(command, host, port)
    settings = replace(settings, server=fleet.find_server(settings))
    tell(found)
    tell(settings.elsewhere(command.clients))
    fleet.run_fleet(emulator, settings, command.clients, console)
    return 0


def _serve_clients(command: Mame, host: str, port: int) -> int:
    """The server that the clients of `protege mame --serve` play for, until Ctrl-C."""
    return run_serve(Serve(host=host, port=port, token=command.token, start_level=command.start_level or 0))
