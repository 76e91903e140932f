"""The terminal of a training: what runs, rows of figures, evaluations, a progress bar, and single-key controls.

Keys that change the training send the same commands as the page, through the run's inbox, and the training's answer is
what appears. Without a terminal there are no keys and no bar, only plain lines.
"""

import textwrap
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from protege import ProtegeError
from protege.cli.keys import Keys
from protege.runs.metrics import Column, Metric
from protege.runs.run import Run
from protege.train.controls import CONTROLS, Report
from protege.train.loop import Observer
from protege.train.session import Result

ROW_SECONDS: Final = 30.0
HEADER_ROWS: Final = 30  # after so many rows the header comes again
CONFIRMED: Final = ("command", "report")  # events that were on the screen already

AGAIN_SECONDS: Final = 4.0  # the second press of a key that wants two must follow within so long
STEP_WIDTH: Final = 11

# The control of each key and what the key sends; capital letters are keys of their own only where both are listed.
KEYS: Final = {
    key: (control, arguments) for control in CONTROLS.values() for key, arguments in control.key_arguments().items()
}
HELP: Final = (
    *((" ".join(control.keys), control.key_help) for control in CONTROLS.values()),
    ("space", "a row of figures now"), ("h", "header of the rows"), ("c", "clear the screen"), ("v", "verbose on/off"),
    ("?", "this list"),
)  # fmt: skip


def short(value: float) -> str:
    """A number in at most six characters."""
    size = abs(value)
    for least, scale, unit in ((999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"), (9999.5, 1e3, "k")):
        if size >= least:
            return f"{value / scale:.3g}{unit}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 0.001 or size == 0 else f"{value:.1g}"


FORMATS: Final[dict[str, Callable[..., str]]] = {
    "short": short,
    "percent": lambda value: f"{100 * value:.3g}",
    "thousands": lambda value: f"{value / 1000:,.0f}",
    "exponent": lambda value: f"{value:.2g}",
    "range": lambda *values: f"{short(min(values))}…{short(max(values))}",
    "mix": lambda *parts: "/".join(f"{100 * part / (sum(parts) or 1):.0f}" for part in parts),
}


class Rows:
    """Figures gathered between two rows, and the rows made of them. The columns are those that metrics declare."""

    def __init__(self) -> None:
        self.columns: dict[Column, list[Metric]] = {}
        self.last: dict[str, float] = {}
        self.since: dict[str, list[float]] = {}

    def declare(self, metrics: Sequence[Metric]) -> None:
        found = {metric.column for metric in metrics if metric.column is not None}
        self.columns = {
            column: [metric for metric in metrics if metric.column == column]
            for column in sorted(found, key=lambda column: column.place)
        }

    def add(self, figures: dict[str, float]) -> None:
        self.last |= figures
        for name, value in figures.items():
            self.since.setdefault(name, []).append(value)

    def fitting(self, width: int) -> tuple[Column, ...]:
        """The columns for a width, in their order: the most important ones that have room."""
        kept = set()
        for column in sorted(self.columns, key=lambda column: column.rank):
            width -= column.width + 1
            if width < 0:
                break
            kept.add(column)
        return tuple(column for column in self.columns if column in kept)

    def cell(self, column: Column, overridden: bool) -> str:
        names = [metric.name for metric in self.columns[column]]
        if not all(name in self.last for name in names):
            return "-"
        since = [self.since.get(name) if column.mean else None for name in names]
        values = [sum(values) / len(values) if values else self.last[name] for name, values in zip(names, since)]
        return FORMATS[column.format](*values) + "*" * overridden


class TrainingConsole(Observer):
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
        self.keys = Keys(self.console.file, self.press, self.console.show_cursor)  # the bar hides it
        self.run: Run | None = None
        self.controls: dict[str, dict[str, Any]] = {}
        self.rows = Rows()
        self.turn = RLock()  # the training, its signals and the keys all print
        self.shown: tuple[Column, ...] = ()  # columns of the last header
        self.rows_since_header = 0
        self.verbose = False
        self.last_event = 0
        self.result, self.left = "", ""
        self.unit = "step"  # what the training counts
        self.rate = ""  # the metric that says how fast it does
        self.step, self.done = 0, 0.0
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
        metrics = run.metrics.declared()
        self.unit = run.info().unit
        self.rate = next((metric.name for metric in metrics if metric.role == "rate"), "")
        self.rows.declare(metrics)

    def started(self, report: dict[str, str], progress: float) -> None:
        """Print what runs, draw the bar, listen to keys."""
        if self.keys.there:
            report = report | {"keys": "? lists them; q saves and quits"}
        for name, text in report.items():
            self._tell(f"{name:>8}  ", text)
        self.began, self.done_before, self.done = time.monotonic(), progress, progress
        self.bar.start()
        self.keys.start()

    def progressed(self, step: int, progress: float, figures: dict[str, float]) -> None:
        """Move the bar; print a row now and then."""
        with self.turn:
            self.step, self.done = step, progress
            self.rows.add(figures)
            passed, spent = time.monotonic() - self.began, progress - self.done_before
            self.left = _clock(max(0.0, 1 - progress) * passed / spent) if spent > 0 else ""
            parts = [f"{step / 1e6:.1f}M {self.unit}s"]
            parts += [f"{figures[self.rate]:,.0f}/s"] if self.rate in figures else []
            parts += [f"{self.left} left"] * bool(self.left) + [self.result] * bool(self.result)
            self.bar.update(self.task, completed=progress, figures="  ".join(parts))
            if time.monotonic() >= self.next_row:
                self.print_row()
            if self.verbose:
                self._print_events()

    def evaluated(self, result: Result, best: bool) -> None:
        """Print the result of an evaluation in the game's own words."""
        self.result = result.headline
        self.rows.add(dict(result.figures))
        self._tell("  eval  ", f"{result.summary}{', the best so far' if best else ''}")
        if self.verbose and result.detail:
            self._tell("        ", result.detail, "dim")

    def controlled(self, controls: dict[str, dict[str, Any]]) -> None:
        """Remember how the controls stand: what a person has overridden is marked in the rows."""
        self.controls = controls
        self.bar.update(self.task, description="training" if controls["learning"]["on"] else "not learning")

    def noted(self, text: str) -> None:
        self._tell("  ", text)

    def reported(self, report: Report) -> None:
        title, _, table = report.text().partition("\n")
        self._print(Text(title, "bold").append(f"\n{table}", "not bold"))

    def print_header(self) -> None:
        with self.turn:
            self.shown = self._fitting()
            self.rows_since_header = 0
            name = self.unit.rpartition("-")[2].capitalize()
            first = f"{name:>{STEP_WIDTH}}" + ("" if self.console.is_terminal else f"{'Done':>5} {'Left':>8}")
            titles = "".join(f" {column.title:>{column.width}}" for column in self.shown)
            self._print(Text(first + titles, style="bold"))

    def print_row(self) -> None:
        """Print the figures since the row before."""
        with self.turn:
            if self._fitting() != self.shown or self.rows_since_header >= HEADER_ROWS:
                self.print_header()
            row = Text(f"{self.step:>{STEP_WIDTH},}")
            if not self.console.is_terminal:
                row.append(f"{self.done:>5.0%} {self.left or '-':>8}")
            for column in self.shown:
                control = self.controls.get(self.rows.columns[column][0].control, {})
                overridden = control.get("overridden", False)
                row.append(f" {self.rows.cell(column, overridden):>{column.width}}", "yellow" if overridden else "")
            self._print(row)
            self.rows.since.clear()
            self.rows_since_header += 1
            self.next_row = time.monotonic() + ROW_SECONDS

    def _fitting(self) -> tuple[Column, ...]:
        # A file has no width; a terminal's last column is left free, because some wrap after it.
        return self.rows.fitting(self.console.width - STEP_WIDTH - 1 if self.console.is_terminal else 10_000)

    def press(self, key: str) -> None:
        key = key if key in KEYS else key.lower()
        control, arguments = KEYS.get(key, (None, {}))
        own = {"?": self._print_help, " ": self.print_row, "h": self.print_header, "v": self._toggle_verbose}
        own["c"] = self._clear
        if control is not None and control.key_asks and not self._is_pressed_again(key):
            self.noted(f"{control.key_asks} Press {key} again within {AGAIN_SECONDS:g} seconds")
        elif control is not None:
            self._send(control.name, arguments)
        elif key in own:
            own[key]()
        elif key.isprintable():
            self.noted(f"no key {key}: ? lists those there are")

    def _clear(self) -> None:
        self.console.clear()
        self.print_header()

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
        lines = -(-len(HELP) // max(1, min(3, self.console.width // 39)))
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
        self.noted("verbose on: events and details of evaluations" if self.verbose else "verbose off")

    def _print_events(self) -> None:
        assert self.run is not None
        for event in self.run.metrics.events(since=self.last_event):
            self.last_event = event.id
            if event.kind not in CONFIRMED:
                when = time.strftime("%H:%M:%S", time.localtime(event.time))
                self._tell(f"  {when}  ", f"{event.kind}: {event.text}", "dim")

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
