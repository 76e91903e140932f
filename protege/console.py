"""The terminal of a training: what runs, a progress bar, exam results, and plain lines where there is no terminal."""

import time
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

PLAIN_LINE_SECONDS: Final = 30.0  # between progress lines where a bar cannot be drawn


class TrainingConsole:
    """Tells a person how a training goes."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console(highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=1.0, figures="")
        self.ratio = ""
        self.began = time.monotonic()
        self.done_before = 0.0
        self.next_line = 0.0

    def __enter__(self) -> "TrainingConsole":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def started(self, report: dict[str, str], done: float) -> None:
        """Print what runs and draw the bar."""
        for name, text in report.items():
            self.console.print(f"[bold]{name:>8}[/]  {escape(text)}")
        self.began, self.done_before = time.monotonic(), done
        self.bar.start()

    def progressed(self, frames: int, done: float, figures: dict[str, float]) -> None:
        """Move the bar, or print a line now and then."""
        passed = time.monotonic() - self.began
        left = (1 - done) * passed / (done - self.done_before) if done > self.done_before else None
        parts = [f"{frames / 1e6:.1f}M frames", f"{figures['frames_per_s']:,.0f}/s"]
        parts += [f"{_clock(left)} left"] if left is not None else []
        parts += [self.ratio] if self.ratio else []
        text = "  ".join(parts)
        self.bar.update(self.task, completed=done, figures=text)
        if not self.console.is_terminal and time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + PLAIN_LINE_SECONDS
            self.console.print(f"{done:4.0%}  {text}  loss {figures['loss']:.3f}")

    def examined(self, exam: dict[str, Any], teacher: float, best: bool) -> None:
        """Print an exam's result."""
        self.ratio = f"{exam['score_mean'] / teacher:.1f}x teacher"
        self.console.print(
            f"  exam  {exam['score_mean']:>9,.0f} points "
            f"({exam['score_mean_low']:,.0f}–{exam['score_mean_high']:,.0f}), {self.ratio}, "
            f"{exam['points_per_life']:,.0f} a life, level {exam['level_mean']:.0f}, "
            f"{exam['seconds']:.0f} s{', the best so far' if best else ''}"
        )

    def noted(self, text: str) -> None:
        """Print a message."""
        self.console.print(f"  {escape(text)}")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
