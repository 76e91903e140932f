"""The terminal of a training: what runs, a row of figures now and then, exams, a progress bar, and single-key controls.

Keys that change the training send the same commands as the page, through the run's inbox, and the training's answer is
what appears. Without a terminal there are no keys and no bar, only plain lines.
"""

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from protege import ProtegeError
from protege.cli.keys import Keys
from protege.runs.run import Run
from protege.train.controls import Report

ROW_SECONDS: Final = 30.0
HEADER_ROWS: Final = 30  # after so many rows the header comes again
CONFIRMED: Final = ("command", "report")  # events that were on the screen already

# What each key sends; capital letters are keys of their own only where both are listed.
COMMANDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "q": ("stop", {}),
    "s": ("save", {}),
    "x": ("evaluate", {}),
    "t": ("learning", {}),
    "p": ("greedy", {}),
    "P": ("pulse", {}),
    "4": ("epsilon", {"step": -1}),
    "5": ("epsilon", {"schedule": True}),
    "6": ("epsilon", {"step": 1}),
    "7": ("teacher", {"step": -1}),
    "8": ("teacher", {"schedule": True}),
    "9": ("teacher", {"step": 1}),
    "o": ("teacher_off", {}),
    "e": ("teacher_only", {}),
    "l": ("learning_rate", {"step": -1}),
    "L": ("learning_rate", {"step": 1}),
    "a": ("attention", {}),
    "b": ("replay", {}),
    "f": ("flush", {}),
    "w": ("clients", {}),
}
TWICE: Final = {"f": "empty the replay?"}  # keys that count at their second press, and what the first asks
AGAIN_SECONDS: Final = 4.0  # the second must follow the first within so long
HELP: Final = (
    ("q", "save and quit"), ("s", "save now"), ("x", "measure the pupil now"), ("t", "learning on/off"),
    ("4 5 6", "epsilon down, on schedule, up"), ("p", "greedy on/off: epsilon 0"),
    ("P", "epsilon pulse on/off"), ("7 8 9", "teacher down, on schedule, up"), ("o", "teacher off, and back"),
    ("e", "teacher only, and back"), ("L l", "learning rate doubled, halved"), ("a", "attention report"),
    ("b", "replay statistics"), ("f", "empty the replay: press twice"),
    ("w", "who is connected, one by one"), ("space", "a row of figures now"),
    ("h", "header of the rows"), ("c", "clear the screen"), ("v", "verbose on/off"), ("?", "this list"),
)  # fmt: skip


# --- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the rows. It is there if the learner declares its metrics and the terminal is wide enough."""

    title: str
    metrics: tuple[str, ...]  # all of them are shown; with `either`, the first that is declared
    rank: int  # the least important, with the highest rank, make room first
    width: int = 6
    show: Callable[..., str] = lambda value: short(value)
    either: bool = False
    mean: bool = False  # over the time since the row before, not the last value
    control: str = ""  # marked with * while a person has overridden this one


def short(value: float) -> str:
    """A number in at most six characters."""
    size = abs(value)
    for least, scale, unit in ((999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"), (9999.5, 1e3, "k")):
        if size >= least:
            return f"{value / scale:.3g}{unit}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 0.001 or size == 0 else f"{value:.1g}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g}"


def _range(low: float, high: float) -> str:
    return f"{short(low)}…{short(high)}"


def _mix(*parts: float) -> str:
    return "/".join(f"{100 * part / (sum(parts) or 1):.0f}" for part in parts)


COLUMNS: Final = (
    Column("FPS", ("frames_per_s",), 1, mean=True),
    Column("Steps/s", ("agent_steps_per_s",), -13, width=7, mean=True),
    Column("Win%", ("win_rate",), -12, show=_percent),
    Column("Exam%", ("exam_success",), -11, show=_percent),
    Column("Earned", ("battle_reward",), -10),
    Column("Sec", ("battle_length",), -5, width=4),
    Column("PLoss", ("policy_loss",), -3, width=7, mean=True),
    Column("VLoss", ("value_loss",), -8, mean=True),
    Column("Imit", ("imitation_loss",), -4, mean=True),
    Column("Entr", ("entropy",), -9, mean=True),
    Column("KL", ("kl",), -7, width=7, mean=True),
    Column("Clip%", ("clip_fraction",), -2, show=_percent, mean=True),
    Column("ExVar", ("explained_variance",), -6, mean=True),
    Column("Stg", ("stage",), -1, width=3),
    Column("Epsi%", ("epsilon",), 2, show=_percent, control="epsilon"),
    Column("Tchr%", ("teacher_share", "distillation"), 3, show=_percent, either=True, control="teacher"),
    Column("100K", ("reward_100k",), 4),
    Column("1M", ("reward_1m",), 7),
    Column("5M", ("reward_5m",), 15),
    Column("Loss", ("loss",), 5, mean=True),
    Column("Agree%", ("agreement",), 14, show=_percent, mean=True),
    Column("EpLen", ("episode_length",), 10),
    Column("BCLoss", ("bc_loss", "distillation_loss"), 18, either=True, mean=True),
    Column("Clnt", ("clients",), 21, width=4),
    Column("Levl", ("training_level",), 6, width=4),
    Column("Inf-ms", ("inference_ms",), 19, mean=True),
    Column("Upd/s", ("updates_per_s",), 8, mean=True),
    Column("Smp/F", ("replay_ratio",), 22, width=5, mean=True),
    Column("GrNorm", ("gradient_norm",), 16, mean=True),
    Column("Q-Range", ("q_min", "q_max"), 17, width=13, show=_range),
    Column("Mem-k", ("replay_size",), 11, width=7, show=lambda value: f"{value / 1000:,.0f}"),
    Column("T/P/R%", ("replay_teacher", "replay_pupil", "replay_random"), 12, width=9, show=_mix),
    Column("Drop", ("dropped",), 13, width=5),
    Column("LR", ("learning_rate",), 9, width=8, show=lambda value: f"{value:.2g}", control="learning_rate"),
)
FRAME_WIDTH: Final = 11


class Rows:
    """Figures gathered between two rows, and the rows made of them. The columns depend on what a learner declares."""

    def __init__(self) -> None:
        self.columns: tuple[Column, ...] = ()
        self.last: dict[str, float] = {}
        self.since: dict[str, list[float]] = {}

    def declare(self, metrics: Sequence[str]) -> None:
        """Keep the columns of these metrics."""
        self.columns = tuple(
            column for column in COLUMNS if (any if column.either else all)(name in metrics for name in column.metrics)
        )

    def add(self, figures: dict[str, float]) -> None:
        """New figures."""
        self.last |= figures
        for name, value in figures.items():
            self.since.setdefault(name, []).append(value)

    def fitting(self, width: int) -> tuple[Column, ...]:
        """The columns for a width, in their order: the most important ones that have room."""
        kept: set[str] = set()
        for column in sorted(self.columns, key=lambda column: column.rank):
            width -= column.width + 1
            if width < 0:
                break
            kept.add(column.title)
        return tuple(column for column in self.columns if column.title in kept)

    def cell(self, column: Column, overridden: bool) -> str:
        """What a column shows now."""
        names = [name for name in column.metrics if name in self.last]
        names = names[:1] if column.either else names
        if not names or (not column.either and len(names) < len(column.metrics)):
            return "-"
        values = [self._mean(name) if column.mean else self.last[name] for name in names]
        return column.show(*values) + "*" * overridden

    def _mean(self, name: str) -> float:
        values = self.since.get(name)
        return sum(values) / len(values) if values else self.last[name]


# --- the console ---------------------------------------------------------------------------------------------------


class TrainingConsole:
    """Tells a person how a training goes, and the training what the person wants."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self.console,
            refresh_per_second=2,  # its figures change as seldom, and drawing takes time from the training
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=1.0, figures="")
        self.keys = Keys(self.console.file, self.press, self._stopped)
        self.run: Run | None = None
        self.switches: dict[str, dict[str, Any]] = {}
        self.rows = Rows()
        self.turn = RLock()  # the training, its signals and the keys all print
        self.shown: tuple[Column, ...] = ()  # columns of the last header
        self.rows_since_header = 0
        self.verbose = False
        self.last_event = 0
        self.ratio, self.left = "", ""
        self.unit = "frame"  # what the training counts
        self.frames, self.done = 0, 0.0
        self.began = time.monotonic()
        self.done_before = 0.0
        self.next_row = 0.0
        self.pressed_once, self.pressed_at = "", 0.0  # a key that wants a second press

    def __enter__(self) -> "TrainingConsole":
        self.keys.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.bar.stop()
        finally:
            self.keys.__exit__()

    def follow(self, run: Run) -> None:
        """The run that is trained: its metrics become columns, and keys are sent to it."""
        self.run = run
        names = [metric.name for metric in run.metrics.declared()]
        self.unit = "frame" if "frames_per_s" in names else "agent-step"
        self.rows.declare(names)

    # --- what the training tells ---

    def started(self, report: dict[str, str], done: float) -> None:
        """Print what runs, draw the bar, listen to keys."""
        if self.keys.there:
            report = report | {"keys": "? lists them; q saves and quits"}
        for name, text in report.items():
            self._tell(f"{name:>8}  ", text)
        self.began, self.done_before, self.done = time.monotonic(), done, done
        self.bar.start()
        self.keys.start()

    def progressed(self, frames: int, done: float, figures: dict[str, float]) -> None:
        """Move the bar; print a row now and then."""
        with self.turn:
            self.frames, self.done = frames, done
            self.rows.add(figures)
            passed = time.monotonic() - self.began
            self.left = _clock((1 - done) * passed / (done - self.done_before)) if done > self.done_before else ""
            rate = figures[f"{self.unit.replace('-', '_')}s_per_s"]
            parts = [f"{frames / 1e6:.1f}M {self.unit}s", f"{rate:,.0f}/s"]
            parts += [f"{self.left} left"] * bool(self.left) + [self.ratio] * bool(self.ratio)
            self.bar.update(self.task, completed=done, figures="  ".join(parts))
            if time.monotonic() >= self.next_row:
                self.print_row()
            if self.verbose:
                self._print_events()

    def examined(self, exam: dict[str, Any], teacher: float, best: bool) -> None:
        """Print an exam's result."""
        if "summary" in exam:  # a game that says by itself what it found
            self.ratio = f"{exam['success']:.0%} against {exam['opponent']}"
            self._tell("  exam  ", f"{exam['summary']}{', the best so far' if best else ''}")
            return
        self.ratio = f"{exam['score_mean'] / teacher:.1f}x teacher"
        between = f"{exam['score_mean_low']:,.0f}–{exam['score_mean_high']:,.0f}"
        self._tell(
            "  exam  ",
            f"{exam['score_mean']:>9,.0f} points ({between}), {self.ratio}, "
            f"{exam['points_per_life']:,.0f} a life, level {exam['level_mean']:.0f}, "
            f"{exam['seconds']:.0f} s{', the best so far' if best else ''}",
        )
        if self.verbose:
            ends = ", ".join(f"{name.removeprefix('deaths_')} {n}" for name, n in exam.items() if name[:7] == "deaths_")
            self._tell(
                "        ",
                f"median {exam['score_median']:,.0f}, best game {exam['best_score']:,}, {exam['truncated']} of "
                f"{exam['games']} cut short; lives lost to: {ends}",
                "dim",
            )

    def switched(self, switches: dict[str, dict[str, Any]]) -> None:
        """Remember how the controls stand: what a person has overridden is marked in the rows."""
        self.switches = switches
        learning = switches["learning"]["on"]
        self.bar.update(self.task, description="training" if learning else "not learning")

    def noted(self, text: str) -> None:
        """Print a message."""
        self._tell("  ", text)

    def reported(self, report: Report) -> None:
        """Print a table."""
        title, _, table = report.text().partition("\n")
        self._print(Text(title, "bold").append(f"\n{table}", "not bold"))

    # --- rows ---

    def print_header(self) -> None:
        """Print the names of the columns."""
        with self.turn:
            self.shown = self._fitting()
            self.rows_since_header = 0
            name = "Frame" if self.unit == "frame" else "Step"
            first = f"{name:>{FRAME_WIDTH}}" + ("" if self.console.is_terminal else f"{'Done':>5} {'Left':>8}")
            titles = "".join(f" {column.title:>{column.width}}" for column in self.shown)
            self._print(Text(first + titles, style="bold"))

    def print_row(self) -> None:
        """Print the figures since the row before."""
        with self.turn:
            if self._fitting() != self.shown or self.rows_since_header >= HEADER_ROWS:
                self.print_header()
            row = Text(f"{self.frames:>{FRAME_WIDTH},}")
            if not self.console.is_terminal:
                row.append(f"{self.done:>5.0%} {self.left or '-':>8}")
            for column in self.shown:
                overridden = self.switches.get(column.control, {}).get("overridden", False)
                cell = self.rows.cell(column, overridden)
                row.append(f" {cell:>{column.width}}", "yellow" if overridden else "")
            self._print(row)
            self.rows.since.clear()
            self.rows_since_header += 1
            self.next_row = time.monotonic() + ROW_SECONDS

    def _fitting(self) -> tuple[Column, ...]:
        # A file has no width; a terminal's last column is left free, because some wrap after it.
        return self.rows.fitting(self.console.width - FRAME_WIDTH - 1 if self.console.is_terminal else 10_000)

    # --- keys ---

    def press(self, key: str) -> None:
        """Do what a key asks for."""
        key = key if key in COMMANDS else key.lower()
        if key in TWICE and not self._is_pressed_again(key):
            self.noted(f"{TWICE[key]} Press {key} again within {AGAIN_SECONDS:g} seconds")
        elif key in COMMANDS:
            self._send(*COMMANDS[key])
        elif key == "?":
            self._print_help()
        elif key == " ":
            self.print_row()
        elif key == "h":
            self.print_header()
        elif key == "c":
            self.console.clear()
            self.print_header()
        elif key == "v":
            self._toggle_verbose()
        elif key.isprintable():
            self.noted(f"no key {key}: ? lists those there are")

    def _is_pressed_again(self, key: str) -> bool:
        now = time.monotonic()
        again = key == self.pressed_once and now - self.pressed_at < AGAIN_SECONDS
        self.pressed_once, self.pressed_at = "" if again else key, now
        return again

    def _send(self, command: str, arguments: dict[str, Any]) -> None:
        assert self.run is not None, "a training that has started has a run"
        try:
            self.run.send(command, **arguments)
        except (ProtegeError, OSError) as problem:
            self.noted(str(problem))

    def _print_help(self) -> None:
        columns = max(1, min(3, self.console.width // 39))
        lines = -(-len(HELP) // columns)
        for line in range(lines):
            row = Text()
            for key, meaning in HELP[line::lines]:
                row.append(f"  {key:>5}  ", "bold cyan").append(f"{meaning:<30}")
            row.rstrip()
            self._print(row)

    def _toggle_verbose(self) -> None:
        with self.turn:
            self.verbose = not self.verbose
            if self.run is not None:
                self.last_event = max((event.id for event in self.run.metrics.events(most=1)), default=0)
        self.noted("verbose on: events and details of exams" if self.verbose else "verbose off")

    def _print_events(self) -> None:
        assert self.run is not None
        for event in self.run.metrics.events(since=self.last_event):
            self.last_event = event.id
            if event.kind not in CONFIRMED:
                when = time.strftime("%H:%M:%S", time.localtime(event.time))
                self._tell(f"  {when}  ", f"{event.kind}: {event.text}", "dim")

    # --- printing ---

    def _stopped(self, stopped: bool) -> None:
        self.console.show_cursor(stopped)  # the bar hides it

    def _tell(self, label: str, text: str, style: str = "") -> None:
        """Print a text after a label, and under it where it needs more lines than one."""
        if self.console.is_terminal:  # a file has no width
            text = f"\n{' ' * len(label)}".join(textwrap.wrap(text, max(20, self.console.width - len(label) - 1)))
        self._print(Text(label, "bold" if not style else style).append(text, style or "not bold"))

    def _print(self, text: Text) -> None:
        """Print lines as they are, above the bar."""
        self.console.print(text, soft_wrap=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
