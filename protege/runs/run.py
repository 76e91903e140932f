"""A run on disk: what was trained and how, what was measured, what it was told to do, and who is training it.

Owns every path and file name inside the runs folder. One process at a time trains a run, under a lock that the system
frees when it dies, so a kill at any moment leaves a run that opens; anyone may read it meanwhile and send it commands.
Knows no game, no learner and no tensor.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, Self

import msgspec

from protege import ProtegeError, __version__
from protege.machine import machine
from protege.runs.files import InUse, Lock, is_locked, remove_drafts, replacing
from protege.runs.metrics import Metric, MetricError, MetricLog, MetricWriter, near

FORMAT: Final = 1
COMMAND_BYTES: Final = 4096  # a write of so little to a file opened for appending never mixes with another
INBOX_BYTES: Final = 65536  # commands are read in pieces of at most so much
DELETED: Final = ".deleted-"
LEAGUE_FILE: Final = "league.sqlite"  # leagues are kept beside runs, each in a folder of its own

Status = Literal["running", "finished", "stopped", "crashed", "damaged"]


class RunError(ProtegeError):
    """A run that is missing, damaged, in use, or used wrongly."""


class Command(NamedTuple):
    """What somebody asked a training to do."""

    name: str
    arguments: dict[str, Any]
    time: float  # seconds since 1970


class Commit(msgspec.Struct, frozen=True):
    """The source that trained the run."""

    hash: str
    dirty: bool  # with changes that no commit holds


class Start(msgspec.Struct, frozen=True):
    """One process that trained the run."""

    kind: Literal["fresh", "resumed"]
    time: str
    process: int
    protege: str
    commit: Commit | None
    changed: dict[str, Any]  # settings that differ from before, each as [old, new]


class RunInfo(msgspec.Struct):
    """What run.json holds."""

    format: int
    name: str
    game: str
    learner: str
    created: str
    protege: str
    commit: Commit | None
    machine: dict[str, Any]
    config: dict[str, Any]
    score: str | None  # the metric that says how well the player plays
    status: Status  # as last written; `Run.status` also looks whether anybody is training
    starts: list[Start]
    unit: str = "step"  # what its steps are: "frame", "agent-step"


class Mirror(Protocol):
    """Another place where the values of a training are shown; whatever it raises, the training goes on without it."""

    def log(self, step: int, values: dict[str, float]) -> None: ...  # these are in the run's own file now
    def rewind(self, step: int) -> None: ...  # training goes on from this step: values of later ones do not count
    def close(self) -> None: ...  # there is nothing more to come


@dataclass(frozen=True)
class Summary:
    """A run's line in the index."""

    name: str
    game: str
    learner: str
    status: Status
    created: str
    started: str  # the last time
    step: int
    best_score: float | None
    score_unit: str
    disk_bytes: int


class Run:
    """A run folder for reading, also while it is being trained, and for sending commands."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name
        self.checkpoints = path / "checkpoints"
        self.last, self.best = self.checkpoints / "last.safetensors", self.checkpoints / "best.safetensors"
        self.start = self.checkpoints / "start.safetensors"  # what it began with, where that was not nothing
        self.replay = self.checkpoints / "replay"
        self.diagnosis = path / "diagnosis.json"
        self.recordings = path / "recordings"
        self.tensorboard = path / "tensorboard"
        self.wandb = path / "wandb"  # the library's own name for it
        self._info_file = path / "run.json"
        self._commands_file = path / "commands.jsonl"
        self._controls_file = path / "controls.json"
        self._lock_file = path / "lock"
        self.metrics = MetricLog(path / "metrics.sqlite")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        self.close()

    def close(self) -> None:
        self.metrics.close()

    def exists(self) -> bool:
        """Whether this is a run; its folder may have other uses or be half made."""
        return self._info_file.is_file()

    def info(self) -> RunInfo:
        """What run.json says now."""
        try:
            info = msgspec.json.decode(self._info_file.read_bytes(), type=RunInfo)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RunError(f"run {self.name} cannot be used, its run.json is damaged: {error}") from error
        if info.format != FORMAT:
            expected = f"expected {FORMAT}: it was made by Protege {info.protege}"
            raise RunError(f"run {self.name} has format {info.format}, {expected}")
        return info

    def is_training(self) -> bool:
        return is_locked(self._lock_file)

    def status(self) -> Status:
        """What the run is doing, or how it ended."""
        recorded = self.info().status
        return "running" if self.is_training() else "crashed" if recorded == "running" else recorded

    def summary(self) -> Summary:
        """The run's line in the index; raises when something about the run is damaged."""
        info = self.info()
        extremes = self.metrics.extremes(info.score) if info.score else None
        step = max((point.step for point in self.metrics.latest().values()), default=0)
        unit = next((metric.unit for metric in self.metrics.declared() if metric.name == info.score), "")
        return Summary(
            self.name, info.game, info.learner, self.status(), info.created, info.starts[-1].time, step,
            extremes[1] if extremes else None, unit, disk_use(self.path),
        )  # fmt: skip

    def controls(self) -> dict[str, Any]:
        """What can be changed in the training and how that stands, by command; empty if no training has said so."""
        try:
            return dict(json.loads(self._controls_file.read_bytes()))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"run {self.name} cannot be shown, its controls.json is damaged: {error}") from error

    def all_checkpoints(self) -> list[Path]:
        """Best and last, as far as they are there."""
        return [path for path in (self.best, self.last) if path.is_file()]

    def send(self, command: str, **arguments: Any) -> None:
        """Ask the process that trains this run to do something; it looks once in every turn of its loop."""
        try:
            text = json.dumps({"command": command, "arguments": arguments, "time": time.time()}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise RunError(f"command {command} cannot be sent: {error}") from error
        line = f"\n{text}\n".encode()  # on a line of its own even if an earlier sender could not finish
        if len(line) > COMMAND_BYTES:
            raise RunError(f"command {command} has {len(line)} bytes, at most {COMMAND_BYTES} can be sent")
        if not self.is_training():
            raise RunError(f"run {self.name} is not being trained, so nobody would read the command {command}")
        with self._commands_file.open("ab", buffering=0) as inbox:
            written = inbox.write(line)
        if written < len(line):
            raise RunError(f"command {command} could not be written to {self._commands_file}: is the disk full?")


class Training(Run):
    """A run that this process trains, and nobody else. Use it with `with`, so that its end is recorded."""

    def __init__(self, path: Path, lock: Lock, metrics: Sequence[Metric]) -> None:
        super().__init__(path)
        self._lock = lock
        for folder in (self.path, self.checkpoints, self.recordings):
            folder.mkdir(exist_ok=True)
            remove_drafts(folder)
        self.metrics: MetricWriter = MetricWriter(self.metrics.path, metrics)
        self.mirrors: list[Mirror] = []
        self._ending: Status = "finished"
        self.command_offset = self._inbox_size()  # how far the inbox was read; a checkpoint may keep it

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if error is not None:
            self._ending = "stopped" if isinstance(error, KeyboardInterrupt | SystemExit) else "crashed"
            with suppress(MetricError):  # a full disk may be what ended it
                self.event(self._ending, f"{type(error).__name__}: {error}"[:1000])
        self.close()

    def close(self) -> None:
        """Record how the run ended and let others have it."""
        if self._lock.is_held():
            try:
                self._tell_mirrors(lambda mirror: mirror.close())
                super().close()
                info = self.info()
                info.status = self._ending
                _write_json(self._info_file, msgspec.to_builtins(info), indent=2)
            finally:
                self._lock.release()

    def diagnose(self, report: dict[str, Any]) -> Path:
        """Keep what was found when learning could not go on; returns the file."""
        with replacing(self.diagnosis) as draft:
            draft.write_text(json.dumps(report, indent=2))  # NaN is what it is about
        return self.diagnosis

    def stop(self) -> None:
        """Say that the run ends before its budget is used up; closing records it."""
        self._ending = "stopped"

    def log(self, step: int, /, **values: float) -> None:
        """Append what was measured at a step; it is in the file when this returns. Undeclared names raise."""
        self.metrics.log(step, **values)
        if self.mirrors:
            found = {name: float(value) for name, value in values.items()}
            self._tell_mirrors(lambda mirror: mirror.log(step, found))

    def event(self, kind: str, text: str) -> None:
        self.metrics.event(kind, text)

    def show_controls(self, controls: Mapping[str, Any]) -> None:
        """Let others see how the controls stand; log an event, too, because readers look when there is one."""
        _write_json(self._controls_file, controls)

    def rewind(self, step: int) -> None:
        """Drop values logged after the step that training goes on from, so that no step has two."""
        self.metrics.rewind(step)
        self._tell_mirrors(lambda mirror: mirror.rewind(step))

    def commands(self) -> list[Command]:
        """Commands that arrived since the last call. A line that makes no sense becomes an event, not an error."""
        size = self._inbox_size()
        if size <= self.command_offset:
            self.command_offset = size
            return []
        with self._commands_file.open("rb") as inbox:
            inbox.seek(self.command_offset)
            piece = inbox.read(INBOX_BYTES)
        # What follows the last line end is still being written, unless it is more than any sender writes.
        whole = piece.rfind(b"\n") + 1 or (len(piece) if len(piece) > COMMAND_BYTES else 0)
        self.command_offset += whole
        found = []
        for line in filter(bytes.strip, piece[:whole].split(b"\n")):
            try:
                told = json.loads(line)
                found.append(Command(str(told["command"]), dict(told["arguments"]), float(told["time"])))
            except (ValueError, KeyError, TypeError, RecursionError):
                self.event("damaged command", repr(line[:200]))
        return found

    def _tell_mirrors(self, message: Callable[[Mirror], None]) -> None:
        for mirror in tuple(self.mirrors):
            try:
                message(mirror)
            except Exception as problem:  # of another project's library: it could be any
                self.mirrors.remove(mirror)
                with suppress(MetricError):  # a full disk may be what stopped the mirror
                    self.event("mirror dropped", f"{type(mirror).__name__}: {problem!r}"[:1000])
                with suppress(Exception):
                    mirror.close()

    def _begin(self, info: RunInfo, kind: Literal["fresh", "resumed"], changed: dict[str, Any]) -> Self:
        info.status = "running"
        info.starts.append(Start(kind, now(), os.getpid(), __version__, source_commit(), changed))
        _write_json(self._info_file, msgspec.to_builtins(info), indent=2)
        self.event(kind, f"process {os.getpid()}, Protege {__version__}")
        return self

    def _inbox_size(self) -> int:
        return self._commands_file.stat().st_size if self._commands_file.exists() else 0


def create_run(
    game: str, learner: str, config: object, metrics: Sequence[Metric], *, score: str | None = None,
    unit: str = "step", name: str | None = None, folder: Path | None = None,
) -> Training:  # fmt: skip
    """A new run of this process. `config` is a dataclass or a mapping; `score` is the metric that ranks runs."""
    assert score in {None, *(metric.name for metric in metrics)}, f"score metric {score} is not declared"
    settings, folder, number = plain(config), runs_folder(folder), 1
    default = f"{game}-{learner}-{datetime.now():%Y%m%d-%H%M%S}"
    path = folder / checked_name(default if name is None else name)
    try:
        while name is None and path.exists():
            number += 1
            path = folder / f"{default}-{number}"
        path.mkdir(parents=True, exist_ok=name is not None)
    except OSError as error:
        raise RunError(f"no run can be made in {folder}: {error}") from error
    if (path / LEAGUE_FILE).exists():
        raise RunError(f"{path} holds a league: choose another name for the run")
    with _locking(path) as lock:
        if Run(path).exists():  # without run.json it is the rest of a start that was killed
            raise RunError(f"run {path.name} exists: resume it, or choose another name")
        run = Training(path, lock, metrics)
        made = now(), __version__, source_commit(), machine()
        info = RunInfo(FORMAT, path.name, game, learner, *made, settings, score, "running", [], unit)
        return run._begin(info, "fresh", {})


def resume_run(
    name: str, metrics: Sequence[Metric], *, config: object | None = None, score: str | None = None,
    unit: str | None = None, folder: Path | None = None,
) -> Training:  # fmt: skip
    """An existing run that this process goes on with. A given config, score or unit replaces the stored one."""
    path = open_run(name, folder).path
    with _locking(path) as lock:
        info = Run(path).info()
        before = info.config
        info.config = before if config is None else plain(config)
        info.score, info.unit = score or info.score, unit or info.unit
        return Training(path, lock, metrics)._begin(info, "resumed", differences(before, info.config))


def open_run(name: str, folder: Path | None = None) -> Run:
    """An existing run, for reading."""
    folder = runs_folder(folder)
    run = Run(folder / checked_name(name))
    if not run.exists():
        known = [path.name for path in _run_paths(folder)]
        raise RunError(f"there is no run {name} in {folder}{near(name, known) or f' (of {len(known)})'}")
    return run


def weights_of(name: str, champions: Mapping[str, Path], folder: Path | None = None) -> Path | None:
    """The file with the weights of a champion, a run (its best, else its last) or a path; None if there is none."""
    if name in champions:
        return champions[name]
    if name.endswith(".safetensors") or Path(name).is_file():
        return Path(name)
    try:
        run = open_run(name, folder)
    except RunError:
        return None
    if found := run.all_checkpoints():
        return found[0]
    raise RunError(f"run {name} has no checkpoint yet: wait for the first one, a minute or two after its start")


def list_runs(folder: Path | None = None) -> list[Summary]:
    """Every run, the one started last at the end."""
    found = []
    for path in _run_paths(runs_folder(folder)):
        with Run(path) as run:
            try:
                found.append(run.summary())
            except (RunError, MetricError):
                found.append(Summary(run.name, "", "", "damaged", "", "", 0, None, "", disk_use(path)))
    return sorted(found, key=lambda summary: (summary.started, summary.name))


def runs_folder(chosen: Path | None = None) -> Path:
    """Where runs are kept: as chosen, else where `PROTEGE_RUNS` says, else ./runs."""
    return chosen or Path(os.environ.get("PROTEGE_RUNS") or "runs")


def checked_name(name: str) -> str:
    """The name of a run, if it is one: it must never lead out of the runs folder."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name) or name.endswith("."):
        rule = "use up to 100 letters, digits, dots, - and _, with no dot at either end"
        raise RunError(f"{name!r} is no name for a run: {rule}")
    return name


@dataclass(frozen=True)
class Removal:
    """What pruning takes from one run."""

    run: str
    paths: tuple[Path, ...]  # the run's folder alone when all of it goes
    disk_bytes: int


def plan_prune(
    names: Sequence[str] = (), *, keep: int = 5, whole: bool = False, folder: Path | None = None
) -> list[Removal]:
    """Recordings of the named runs, or of all but the `keep` started last; or `whole` runs. None being trained."""
    folder = runs_folder(folder)
    chosen = [open_run(name, folder).name for name in names]
    if not names:
        listed = [summary.name for summary in list_runs(folder) if summary.status != "damaged"]
        chosen = listed[: max(0, len(listed) - max(0, keep))]
    removals = []
    for run in (Run(folder / name) for name in chosen):
        if run.is_training() or run.path.is_symlink() or (run.path / LEAGUE_FILE).exists():
            continue
        paths = (run.path,) if whole else tuple(sorted(run.recordings.glob("*")))
        if paths:
            removals.append(Removal(run.name, paths, disk_use(*paths)))
    return removals


def prune(removals: Sequence[Removal], folder: Path | None = None) -> None:
    folder = runs_folder(folder)
    for removal in removals:
        with _locking(folder / removal.run) as lock:
            for path in removal.paths:
                if path == folder / removal.run:  # gone at once, even if deleting is cut short
                    path.rename(folder / f"{DELETED}{removal.run}")
                elif path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            lock.release()
    for path in folder.glob(f"{DELETED}*"):
        shutil.rmtree(path)


def disk_use(*paths: Path) -> int:
    """Bytes in files and folders; a file under two names counts once."""
    seen = {}
    for path in paths:
        for file in [path, *path.rglob("*")]:
            with suppress(FileNotFoundError):  # a training may be replacing it
                about = file.lstat()
                seen[about.st_dev, about.st_ino] = about.st_size if file.is_file() else 0
    return sum(seen.values())


def plain(config: object) -> dict[str, Any]:
    """A dataclass or mapping as JSON holds it: tuples become lists, paths become text."""
    settings = asdict(config) if is_dataclass(config) and not isinstance(config, type) else config
    assert isinstance(settings, Mapping), f"expected a dataclass or a mapping, found {type(config).__name__}"
    # Through text, so that a resumed run compares like with like.
    return dict(json.loads(json.dumps(settings, default=os.fspath, allow_nan=False)))


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under dotted names."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that are not the same, each as [before, after]; None stands for one that is not there."""
    old, new = flat(before), flat(after)
    return {key: [old.get(key), new.get(key)] for key in {**old, **new} if old.get(key) != new.get(key)}


@cache
def source_commit() -> Commit | None:
    """The commit of Protege's own source when it was first asked for, where it runs from a checkout."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True, timeout=10).stdout

    try:
        # Installed somewhere below another project's checkout, the package is not among that project's files.
        git("ls-files", "--error-unmatch", "__init__.py")
        return Commit(git("rev-parse", "HEAD").strip(), bool(git("status", "--porcelain", "--untracked-files=no")))
    except (OSError, subprocess.SubprocessError):
        return None


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _write_json(path: Path, contents: Any, indent: int | None = None) -> None:
    text = json.dumps(contents, indent=indent, allow_nan=False)
    with replacing(path) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8")


def _run_paths(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("[!.]*")) if Run(path).exists()]


@contextmanager
def _locking(path: Path) -> Iterator[Lock]:
    """Lock a run, and let go again if what follows fails."""
    try:
        lock = Lock(path / "lock")
    except InUse as error:
        raise RunError(f"run {path.name} is in use by {error}: stop that first, or use another run") from error
    try:
        yield lock
    except BaseException:
        lock.release()
        raise
