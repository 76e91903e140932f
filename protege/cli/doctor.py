"""What works on this machine: one row per thing Protege can use, and what to do about each miss.

Every check looks and never raises: a thing that is missing or broken is a row, not an error. Libraries are asked for
their version without importing them, so the answer comes quickly; `full` starts torch and tries its devices.
"""

import os
import platform
import shutil
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import psutil
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from protege import __version__
from protege.cli.tables import print_json
from protege.games import BUILT_IN, Check, games
from protege.machine import usable_cores
from protege.runs.files import short_path
from protege.runs.run import runs_folder

OLDEST_PYTHON = (3, 11)
DASHBOARD_PORT = 8765
ENOUGH_DISK_GB = 5.0
GAME_FOLDERS = ("/usr/games", "/usr/local/games")  # Debian puts MAME there; root's PATH often lacks them
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox", "firefox-esr")

needed = partial(Check, required=True)


@dataclass(frozen=True)
class Doctor:
    """Say what works on this machine and what to do about what does not."""

    full: bool = False  # also start torch and try its devices: a few seconds more
    json: bool = False  # also print one flat JSON object on the last line


def find_program(name: str) -> Path | None:
    """Where a program is: on the PATH, or where Debian keeps its games."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *GAME_FOLDERS])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def inspect(full: bool = False) -> list[Check]:
    """All rows, in the order they are shown: what everything needs, then what single games do."""
    page = check_port(DASHBOARD_PORT, "dashboard", "the dashboard takes the next free port")
    rows = [_python(), _torch(full), _cores(), _numba(), _video(), _browser(), page, _disk()]
    return rows + [row for game in games().values() for row in game.checks()]


def run_doctor(command: Doctor) -> int:
    """Print the table; 1 when something required is missing."""
    rows = inspect(command.full)
    table = Table(title=f"Protege {__version__}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("", "", "found", "what to do"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "")
    for row in rows:
        colour = "green" if row.state == "ok" else "red" if row.required else "yellow"
        table.add_row(f"[{colour}]{row.state}[/{colour}]", row.name, escape(row.found), escape(row.advice))
    console = Console(highlight=False)
    console.print(table)
    broken = [row.name for row in rows if row.required and row.state != "ok"]
    if broken:
        console.print(f"\nNothing runs before this is mended: {', '.join(broken)}.", style="red")
    else:
        console.print("\nEverything the simulator needs is here; a miss above only closes the feature it names.")
    flat: dict[str, str | bool] = {"version": __version__, "ok": not broken}
    for row in rows:
        key = row.name.lower().replace(" ", "_")
        flat |= {key: row.found, f"{key}_ok": row.state == "ok"}
    print_json(command, flat)
    return 1 if broken else 0


def _python() -> Check:
    found = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return needed("Python", "missing", found, f"install Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return needed("Python", "ok", found)


def _torch(full: bool) -> Check:
    version = _version("torch")
    if version is None:
        return needed("torch", "missing", "not installed", "pip install protege")
    if not full:
        if sys.platform == "darwin" and platform.machine() == "arm64":
            device = "Apple GPU likely (--full tries it)"
        elif "+cpu" not in version and (find_program("nvidia-smi") or Path("/proc/driver/nvidia").exists()):
            device = "NVIDIA driver present (--full tries it)"
        else:
            device = "CPU"
        return needed("torch", "ok", f"{version}, {device}")
    try:
        import torch

        devices = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        devices += ["mps"] if torch.backends.mps.is_available() else []
        for device in devices:
            torch.ones(2, 2, device=device).sum().item()
        names = [torch.cuda.get_device_name(d) if d.startswith("cuda") else d.upper() for d in devices]
    except (ImportError, OSError, RuntimeError) as error:
        return needed("torch", "missing", f"{version}, does not work: {_first_line(error)}", "reinstall torch")
    return needed("torch", "ok", f"{version}, {', '.join(names)}, {torch.get_num_threads()} threads")


def _cores() -> Check:
    usable = usable_cores()
    load = psutil.getloadavg()[0]
    found = f"{usable} for threads, load {load:.1f}, {psutil.virtual_memory().total / 2**30:.0f} GiB memory"
    limits = [f"{name}={os.environ[name]}" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if name in os.environ]
    busy = "other work slows training down: measure when it is done" if load > usable else ""
    return Check("cores", "ok", ", ".join([found, *limits]), busy)


def _numba() -> Check:
    version = _version("numba")
    if version is None:
        return needed("numba", "missing", "not installed", "pip install protege")
    try:
        from protege.kernels import kernel_cache
    except (ImportError, OSError) as error:
        found = f"{version}, does not start: {_first_line(error)}"
        return needed("numba", "missing", found, "reinstall numba and llvmlite")
    folders = [kernel_cache(f"games/{name}") for name in BUILT_IN]
    where = short_path(folders[0].parent)
    if not os.access(_nearest_folder(folders[0]), os.W_OK):
        advice = "set PROTEGE_CACHE to a folder you can write to"
        return needed("numba", "missing", f"{version}, cannot write {where}", advice)
    if any(folder.exists() for folder in folders):
        return needed("numba", "ok", f"{version}, compiled code in {where}")
    return needed("numba", "ok", f"{version}, nothing compiled yet", f"the first start fills {where}")


def _video() -> Check:
    imageio, av = _version("imageio"), _version("av")
    advice = 'pip install "protege[viewer]"'
    if imageio is None:
        return Check("video", "missing", "imageio is not installed: no recordings", advice)
    if av is None:
        return Check("video", "ok", f"GIF (imageio {imageio}), no MP4 or WebM", advice)
    return Check("video", "ok", f"GIF, MP4, WebM (imageio {imageio}, av {av})")


def _browser() -> Check:
    for name in BROWSERS:
        if path := find_program(name):
            return Check("browser", "ok", str(path))
    if sys.platform in ("darwin", "win32"):
        with suppress(webbrowser.Error, AttributeError):
            return Check("browser", "ok", webbrowser.get().name)
    advice = "apt-get install chromium, or open the dashboard's address from another machine"
    return Check("browser", "missing", "none found", advice)


def check_port(port: int, use: str, advice: str) -> Check:
    """Whether a port is free."""
    name = f"port {port}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # there it would allow a second listener
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return Check(name, "in use", f"taken by {_listener(port)}", advice)
    return Check(name, "ok", f"free, for the {use}")


def _listener(port: int) -> str:
    with suppress(psutil.Error, OSError):  # another user's process, or a system that does not tell
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN:
                if connection.pid is not None:
                    return f"{psutil.Process(connection.pid).name()}, process {connection.pid}"
    return "another program"


def _disk() -> Check:
    folder = runs_folder().absolute()
    try:
        free_gb = shutil.disk_usage(_nearest_folder(folder)).free / 1e9
    except OSError as error:
        return needed("disk", "missing", f"{short_path(folder)}: {_first_line(error)}", "change to another folder")
    found = f"{free_gb:.0f} GB free for {short_path(folder)}"
    if free_gb < ENOUGH_DISK_GB:
        return needed("disk", "missing", found, f"make room: a long run may need {ENOUGH_DISK_GB:.0f} GB")
    return needed("disk", "ok", found)


def _version(distribution: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(distribution)
    return None


def _nearest_folder(path: Path) -> Path:
    """The path itself or the closest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
