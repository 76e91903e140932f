"""The emulator: where MAME and its ROM set are, what is missing in plain words, and how a client is started in it."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from protege import ProtegeError
from protege.runs.files import short_path

OLDEST_MAME: Final = 251  # of 0.251: nothing older was ever tried
ASK_TIMEOUT_S: Final = 10.0

ROM_SET: Final = "tempest1"
PARENT_SET: Final = "tempest"  # collections that store what is common only once keep part of the files there
OTHER_SETS: Final = ("tempest", "tempest1r", "tempest2", "tempest3", "temptube")
ROM_FILES: Final = {
    **{f"136002-{name}": 2048 for name in (
        "113.d1", "114.e1", "115.f1", "116.h1", "117.j1", "118.k1", "119.lm1", "120.mn1", "121.p1", "122.r1",
        "123.np3", "124.r3")},
    **{f"136002-{name}": 256 for name in ("125.d7", "127.e1", "128.f1", "129.h1", "130.j1", "131.k1", "132.l1")},
    "136002-126.a1": 32,
}  # fmt: skip

# Beyond the PATH. Debian keeps MAME among its games, where root's PATH often does not look.
MAME_FOLDERS: Final = (
    "/usr/games", "/usr/local/games", "/usr/local/bin", "/snap/bin",
    "/opt/homebrew/bin", "/opt/local/bin", "/Applications/mame", "~/Applications/mame", "~/mame",
    "C:/mame", "C:/Program Files/mame", "~/scoop/shims",
)  # fmt: skip
MAME_NAMES: Final = ("mame", "mame64")
ROM_FOLDERS: Final = ("~/mame/roms", "/usr/local/share/games/mame/roms", "/usr/share/games/mame/roms")

# The limit, in seconds of the game, is years away; without one MAME warns that it has no window.
HEADLESS: Final = ("-video", "none", "-nothrottle", "-seconds_to_run", "100000000")
MOST_FRAMESKIP: Final = 10


class ArcadeError(ProtegeError):
    """What was found, and what to do about it."""

    def __init__(self, found: str, advice: str):
        super().__init__(f"{found}; {advice}")
        self.found, self.advice = found, advice


def find_mame(given: Path | None = None) -> Path:
    """The emulator: the one given, or the first on the PATH and in the usual places."""
    if given is not None:
        found = shutil.which(given.expanduser())
        if found is None:
            raise ArcadeError(f"{given} is not a program", "give the path of MAME itself with --mame PATH")
        return Path(found)
    folders = [str(Path(folder).expanduser()) for folder in MAME_FOLDERS]
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])
    for name in MAME_NAMES:
        if found := shutil.which(name, path=path):
            return Path(found)
    raise ArcadeError(
        "MAME is not installed, or not where it is usually found",
        "install it (Debian: apt-get install mame; macOS: brew install mame; Windows: mamedev.org) or give its path "
        "with --mame PATH",
    )


def mame_version(mame: Path) -> str:
    """What `mame -version` says, if our scripts run in it."""
    answer = _ask(mame, "-version")
    number = re.match(r"0\.(\d+)", answer or "")
    if number is None:
        raise ArcadeError(f"{mame} does not answer -version as MAME does", "reinstall MAME, or give --mame PATH")
    if int(number[1]) < OLDEST_MAME:
        raise ArcadeError(f"{mame} is MAME {number[0]}", f"install 0.{OLDEST_MAME} or newer")
    return number[0]


def rom_folders(mame: Path | None) -> list[Path]:
    """Where MAME looks for ROM sets: its own word for it, or Debian's folders where there is no MAME to ask."""
    settings = _ask(mame, "-showconfig") if mame else None
    for line in (settings or "").splitlines():
        name, _, value = line.strip().partition(" ")
        if mame and name == "rompath" and value.strip():
            folders = [Path(os.path.expandvars(part.strip(' "'))).expanduser() for part in value.split(";")]
            # One that is not absolute may be meant from here or from beside the program.
            return list(dict.fromkeys(place for f in folders for place in (f.absolute(), mame.parent / f)))
    return [Path(folder).expanduser() for folder in ROM_FOLDERS]


def find_rom_set(folders: Sequence[Path]) -> Path:
    """The set's file or folder, complete by names and sizes; MAME itself judges the contents."""
    places = [place for name in (ROM_SET, PARENT_SET) for folder in folders for place in _forms(folder / name)]
    own = [place for place in places if place.stem == ROM_SET]
    looked = ", ".join(short_path(folder) for folder in folders)
    held: dict[str, int] = {}
    for place in reversed(places):  # what the set itself holds comes before what its parent holds
        if place.suffix == ".7z":
            return place  # MAME can look inside, we cannot
        held |= _contents(place)
    missing = [name for name in ROM_FILES if name not in held]
    if not own and missing:
        others = [place.name for name in OTHER_SETS for folder in folders for place in _forms(folder / name)]
        also = f" (there is {', '.join(others)}, another version of the game)" if others else ""
        raise ArcadeError(
            f"no ROM set {ROM_SET} in {looked}{also}",
            f"put your own {ROM_SET}.zip into {short_path(folders[0])}, or give its folder with --rom-path DIR; "
            "protege mame --demo needs none",
        )
    found = " and ".join(short_path(place) for place in places)
    if missing:
        raise ArcadeError(
            f"{found}: {len(missing)} of the {len(ROM_FILES)} files of {ROM_SET} are missing: {', '.join(missing)}",
            f"a set that shares files with its parent needs {PARENT_SET}.zip beside it",
        )
    wrong = [f"{name} has {held[name]} bytes, not {size}" for name, size in ROM_FILES.items() if held[name] != size]
    if wrong:
        raise ArcadeError(f"{found}: {', '.join(wrong)}", f"get a sound copy of {ROM_SET}")
    return (own or places)[0]


def _forms(stem: Path) -> list[Path]:
    """A set is a folder or an archive."""
    forms = (stem, stem.with_name(f"{stem.name}.zip"), stem.with_name(f"{stem.name}.7z"))
    return [form for form in forms if form.exists()]


def _contents(place: Path) -> dict[str, int]:
    if place.is_dir():
        return {file.name: file.stat().st_size for file in place.rglob("*") if file.is_file()}
    try:
        with zipfile.ZipFile(place) as archive:
            return {Path(entry.filename).name: entry.file_size for entry in archive.infolist()}
    except (zipfile.BadZipFile, OSError) as error:
        advice = f"get a sound copy of {place.name}"
        raise ArcadeError(f"{short_path(place)} cannot be read: {error}", advice) from error


def _ask(program: Path, option: str) -> str | None:
    """What a program prints when asked with one option, or None when it fails or takes too long."""
    quiet = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    here = program.parent if os.name == "nt" else None  # there it reads the settings beside it
    try:
        answer = subprocess.run(
            [program, option], capture_output=True, text=True, errors="replace", timeout=ASK_TIMEOUT_S, env=quiet,
            cwd=here,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


@dataclass(frozen=True)
class Emulator:
    """How MAME is started."""

    mame: Path
    roms: tuple[Path, ...]  # folders
    visible: bool = False
    frameskip: int | None = None
    unknown_roms: bool = False  # homemade: before a window MAME would wait for a key, as their checksums are wrong

    def command(self, folder: Path, script: Path | None) -> list[str]:
        """The command line of a client that keeps its files in `folder`; without a script a person plays."""
        words = [str(self.mame), ROM_SET, "-noreadconfig", "-noplugins", "-skip_gameinfo"]
        words += ["-sound", "none"] if script or self.unknown_roms else []
        words += ["-rompath", ";".join(map(str, self.roms)), "-homepath", str(folder)]
        for kind in ("cfg", "nvram", "state", "snapshot", "diff"):
            words += [f"-{kind}_directory", str(folder / kind)]
        if not self.visible:
            words += HEADLESS
        elif self.frameskip is None:
            words += ["-window", "-nomaximize", "-throttle"]
        else:
            words += ["-window", "-nomaximize", "-nothrottle", "-noautoframeskip", "-frameskip", str(self.frameskip)]
        if self.visible and self.unknown_roms:
            words += ["-debug", "-debugger", "none"]  # skips that screen, and debugs nothing
        return words if script is None else [*words, "-autoboot_delay", "0", "-autoboot_script", str(script)]

    def play(self) -> None:
        """A window for a person at the keyboard, until it is closed."""
        if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise ArcadeError("there is no display to open a window on", "start it on a desktop, or leave out --play")
        with TemporaryDirectory(prefix="protege-mame-") as folder:
            words = replace(self, visible=True).command(Path(folder), None)
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace")
        if done.returncode:
            said = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it gave no reason")
            raise ArcadeError(f"MAME ended with exit code {done.returncode}: {said}", "mend that and start again")

    def start(self, folder: Path, script: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
        """Start a client in a new folder; its output is a pipe."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        process_env = {**os.environ, **environment}
        if not self.visible:
            process_env["SDL_VIDEODRIVER"] = "dummy"
        return subprocess.Popen(
            self.command(folder, script), env=process_env, cwd=folder, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            # Broken pipes stay ignored, as Python has them: else a server that goes away takes MAME with it.
            restore_signals=False,
            # Away from the terminal, so that Ctrl-C reaches us alone and we end each client.
            start_new_session=os.name != "nt",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )  # fmt: skip


def find_emulator(
    mame: Path | None = None, rom_path: Path | None = None, visible: bool = False, frameskip: int | None = None
) -> tuple[Emulator, str]:
    """The emulator with its ROM set, both looked at, and a line that says what they are."""
    if frameskip is not None and not (visible and 0 <= frameskip <= MOST_FRAMESKIP):
        raise ArcadeError(
            f"--frameskip {frameskip} makes no sense",
            f"give 0 to {MOST_FRAMESKIP}, and --visible: else nothing is drawn",
        )
    program = find_mame(mame)
    version = mame_version(program)
    folders = [rom_path.expanduser().absolute()] if rom_path else rom_folders(program)
    found = f"MAME {version} ({program}), ROM set {short_path(find_rom_set(folders))}"
    return Emulator(program, tuple(folders), visible, frameskip), found
