"""Starts and watches MAME clients.

Keeps N of them alive, tells how fast they run, and ends them by their process ids. What a client does inside MAME is
the business of the scripts in lua/, which are told their settings through the environment or a file beside them.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psutil
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.bridge import BEHIND
from protege.games.tempest.arcade.mame import HEADLESS, ROM_SET, ArcadeError, Emulator
from protege.games.tempest.rules.levels import START_LEVELS

SCRIPTS: Final = Path(__file__).parent / "lua"
SETTINGS_FILE: Final = "settings.txt"
DEFAULT_SERVER: Final = f"127.0.0.1:{wire.PORT}"
LOCAL: Final = ("localhost", "127.0.0.1")
EVERYWHERE: Final = "0.0.0.0"  # where a server listens that other machines can reach
FOLDER_PREFIX: Final = "protege-mame-"
GREETING_S: Final = 5.0
LOOK_S: Final = 0.2
STAGGER_S: Final = 0.2  # between the first starts, so that many do not load the machine in one instant
REPORT_S: Final = 2  # between two status lines of a client
STARTING: Final = "starting"  # until the first of them
REPORT: Final = re.compile(r"protege: frames (\d+) state (\w+)")
STEADY_S: Final = 60.0  # a client that ran for so long starts with the shortest pause again
LONGEST_PAUSE_S: Final = 60.0
MOST_FALSE_STARTS: Final = 3  # in a row: then something is wrong that patience will not mend
STOP_S: Final = 10.0  # a busy machine takes seconds
PLAIN_LINE_S: Final = 10.0


@dataclass(frozen=True)
class Settings:
    """What the scripts inside MAME are told; what is None or empty they decide themselves."""

    server: str | None = None
    token: str = ""
    start_level: int | None = None
    overlay: bool = False

    def __post_init__(self) -> None:
        if self.start_level is not None and not 1 <= self.start_level <= START_LEVELS[-1]:
            raise ArcadeError(f"no game starts at level {self.start_level}", f"give 1 to {START_LEVELS[-1]}")

    def by_name(self) -> dict[str, str]:
        """Those that say something, as the scripts call them."""
        return {name: "yes" if value is True else str(value) for name, value in asdict(self).items() if value}

    def elsewhere(self, clients: int) -> str:
        """How to start the same on another machine."""
        host, port = split_address(self.server)
        server = f"THIS-MACHINE:{port}" if host in (*LOCAL, EVERYWHERE) else f"{host}:{port}"
        words = ["protege", "mame", "--clients", str(clients), "--server", server]
        words += ["--start-level", str(self.start_level)] if self.start_level else []
        secret = ' --token "$PROTEGE_TOKEN"' if self.token else ""
        return f"On another machine: {shlex.join(words)}{secret}"


def split_address(address: str | None) -> tuple[str, int]:
    host, _, port = (address or DEFAULT_SERVER).rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ArcadeError(f"{address} is no server address", f"give HOST:PORT, such as {DEFAULT_SERVER}")
    return host, int(port)


def find_server(settings: Settings) -> str:
    """The server's address with the host as a number, once it has answered a greeting."""
    host, port = split_address(settings.server)
    address = f"{host}:{port}"
    try:
        # A number, because MAME looks names up inside a frame, and the game stands still meanwhile.
        number = str(socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
        with socket.create_connection((number, port), timeout=GREETING_S) as connection:
            connection.sendall(wire.greet(settings.token, "protege mame"))
            with connection.makefile("rb") as answers:
                answer = answers.read(wire.ANSWER.size)
    except socket.gaierror as error:
        raise ArcadeError(
            f"there is no machine called {host}", "give another name or number: --server HOST:PORT"
        ) from error
    except OSError as error:
        raise ArcadeError(
            f"no server answers at {address} ({error.strerror or error})",
            "start one with protege serve, or let --serve do it, or give another address with --server HOST:PORT",
        ) from error
    if answer and (len(answer) < wire.ANSWER.size or answer[0] != wire.MARK):
        raise ArcadeError(f"what answers at {address} is no server of Protege", "give another with --server HOST:PORT")
    if answer and answer[2] == wire.WRONG_TOKEN:
        raise ArcadeError(f"the server at {address} asks for a token, and not this one", "give its own with --token")
    if answer and answer[2] == wire.FULL:
        raise ArcadeError(f"the server at {address} has all the clients it takes", "stop some, or start another server")
    return f"{number}:{port}"  # also when nothing came: servers without our greeting close, and our client copes


@dataclass
class Client:
    """One place in the fleet: the process in it, and what became of those before."""

    number: int
    due: float  # when the next process starts
    process: "subprocess.Popen[str] | None" = None
    listener: threading.Thread | None = None
    state: str = STARTING
    frames: int = 0  # of this process
    rate: float = 0.0  # frames in a second
    restarts: int = 0
    false_starts: int = 0  # in a row
    pause_s: float = 0.5
    started: float = 0.0
    said: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        before, seen = 0, time.monotonic()
        with process.stdout as lines:
            for line in lines:
                report = REPORT.search(line)
                if report is None:
                    self.said.append(line.strip())
                    continue
                now = time.monotonic()
                self.frames, self.state = int(report[1]), report[2]
                self.rate = (self.frames - before) / max(now - seen, 1e-3)
                before, seen = self.frames, now


def check_count(clients: int) -> None:
    if not 1 <= clients <= wire.MOST_CLIENTS:
        raise ArcadeError(f"{clients} clients were asked for", f"a server takes 1 to {wire.MOST_CLIENTS}")


class Fleet:
    """N clients, kept alive until stopped."""

    def __init__(self, emulator: Emulator, settings: Settings, count: int, folder: Path):
        first = time.monotonic()
        self.clients = [Client(number, first + STAGGER_S * number) for number in range(1, count + 1)]
        self._emulator, self._settings, self._folder = emulator, settings, folder
        self._stop_file = folder / "stop"  # because MAME without a window takes no notice of a signal to end

    def tend(self) -> None:
        """Start the clients that are due, and look after those that have ended."""
        now = time.monotonic()
        for client in self.clients:
            if client.process is None:
                if now >= client.due:
                    self._start(client, now)
            elif client.process.poll() is not None:
                self._bury(client, now)

    def stop(self) -> None:
        """End them all: first asked, so that they say goodbye to the server, then forced."""
        self._stop_file.touch()
        alive = [client.process for client in self.clients if client.process is not None]
        deadline = time.monotonic() + STOP_S
        for process in alive:
            try:
                process.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for client in self.clients:
            client.process = None

    def _start(self, client: Client, now: float) -> None:
        name = f"{socket.gethostname()[: wire.LONGEST_NAME // 2]}-{client.number}"
        told = {"PROTEGE_NAME": name, "PROTEGE_REPORT_S": str(REPORT_S), "PROTEGE_STOP_FILE": str(self._stop_file)}
        folder = self._folder / f"client-{client.number}"
        told |= {f"PROTEGE_{name.upper()}": text for name, text in self._settings.by_name().items()}
        client.process = self._emulator.start(folder, SCRIPTS / "main.lua", told)
        if os.name != "nt":
            with suppress(psutil.Error):  # it may have ended already
                # While it waits for a reply it is busy, and the server must come first.
                psutil.Process(client.process.pid).nice(BEHIND)
        client.state, client.frames, client.rate, client.started = STARTING, 0, 0.0, now
        client.listener = threading.Thread(target=client.listen, args=(client.process,), name=name, daemon=True)
        client.listener.start()

    def _bury(self, client: Client, now: float) -> None:
        assert client.process is not None and client.listener is not None
        code = client.process.wait()
        client.listener.join()  # its last words may be still on their way
        client.false_starts = client.false_starts + 1 if client.state == STARTING else 0
        if client.false_starts >= MOST_FALSE_STARTS:
            reason = next((line for line in reversed(client.said) if line), "it gave no reason")
            ended = f"client {client.number} ended {client.false_starts} times before it began, with exit code {code}"
            raise ArcadeError(f"{ended}: {reason}", "mend that and start again")
        client.pause_s = 0.5 if now - client.started > STEADY_S else min(2 * client.pause_s, LONGEST_PAUSE_S)
        client.process, client.state, client.rate = None, f"ended with code {code}", 0.0
        client.restarts, client.due = client.restarts + 1, now + client.pause_s


def run_fleet(emulator: Emulator, settings: Settings, count: int, console: Console) -> None:
    """Keep N clients alive and show them, until Ctrl-C or a signal to end."""
    with TemporaryDirectory(prefix=FOLDER_PREFIX) as folder, _asked_to_stop() as stop:
        fleet = Fleet(emulator, settings, count, Path(folder))
        try:
            with _shown(fleet, console) as show:
                while not stop.wait(LOOK_S):
                    fleet.tend()
                    show()
        finally:
            fleet.stop()
    console.print(f"{count} {'client' if count == 1 else 'clients'} stopped.")


@contextmanager
def fleet_beside(emulator: Emulator, settings: Settings, count: int, tell: Callable[[str], None]) -> Iterator[Fleet]:
    """Keep N clients alive while the block runs; `tell` gets a line if they cannot be.

    A signal to end is made into Ctrl-C, so that it leaves the block too.
    """
    stop = threading.Event()

    def tend() -> None:
        try:
            while not stop.wait(LOOK_S):
                fleet.tend()
        except ArcadeError as error:
            tell(f"no more MAME clients: {error}")

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        fleet = Fleet(emulator, settings, count, Path(folder))
        tending = threading.Thread(target=tend, name="fleet", daemon=True)
        tending.start()
        try:
            yield fleet
        finally:
            signal.signal(signal.SIGTERM, before)
            stop.set()
            tending.join()
            fleet.stop()


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    stop = threading.Event()
    names = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {name: signal.signal(getattr(signal, name), lambda *_: stop.set()) for name in names}
    try:
        yield stop
    finally:
        for name, handler in before.items():
            signal.signal(getattr(signal, name), handler)


@contextmanager
def _shown(fleet: Fleet, console: Console) -> Iterator[Callable[[], None]]:
    """A live table in a terminal; elsewhere a line now and then."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda: live.update(Group(_table(fleet.clients), _summary(fleet.clients)), refresh=True)
        return
    due = time.monotonic() + REPORT_S

    def line() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + PLAIN_LINE_S
            console.print(_summary(fleet.clients), soft_wrap=True)

    yield line


def _table(clients: Sequence[Client]) -> Table:
    table = Table("client", "process", "state", "frames/s", "frames", "restarts", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in (0, 1, 3, 4, 5):
        table.columns[column].justify = "right"
    for client in clients:
        process = "" if client.process is None else str(client.process.pid)
        numbers = (f"{client.rate:,.0f}", f"{client.frames:,}", str(client.restarts))
        table.add_row(str(client.number), process, client.state, *numbers)
    return table


def _summary(clients: Sequence[Client]) -> str:
    running = sum(client.process is not None for client in clients)
    connected = sum(client.state == "connected" for client in clients)
    rate, restarts = sum(client.rate for client in clients), sum(client.restarts for client in clients)
    return (
        f"{running} of {len(clients)} clients run, {connected} connected, {rate:,.0f} frames/s together, "
        f"{restarts} {'restart' if restarts == 1 else 'restarts'}"
    )


def copy_client(folder: Path, settings: Settings) -> tuple[list[Path], str]:
    """Copy the scripts, with a file for settings if any say something; and the command that starts a client there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = [Path(shutil.copy(script, folder)) for script in sorted(SCRIPTS.glob("*.lua"))]
        if given := settings.by_name():
            made.append(folder / SETTINGS_FILE)
            made[-1].touch(mode=0o600)  # a token is nobody else's business
            made[-1].write_text("".join(f"{name} = {text}\n" for name, text in given.items()))
    except OSError as error:
        raise ArcadeError(f"{folder} cannot be written: {error.strerror}", "give another folder") from error
    words = ["mame", ROM_SET, "-skip_gameinfo", "-sound", "none", *HEADLESS]
    return made, shlex.join([*words, "-autoboot_script", str(folder / "main.lua")])
