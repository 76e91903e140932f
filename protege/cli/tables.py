"""Tables and numbers as the terminal shows them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: tuple[int, ...] = (), wrap: bool = True
) -> None:
    """A table; `numbers` are columns that stand to the right, and without `wrap` only the last one is broken."""
    if not rows and not head:
        return
    table = Table(box=SIMPLE_HEAD if head else None, padding=(0, 1, 0, 0), show_header=bool(head))
    for number, name in enumerate(head or rows[0]):
        table.add_column(
            name if head else "", justify="right" if number in numbers else "left", overflow="fold",
            no_wrap=not wrap and number + 1 < len(head),
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(word) for word in row))  # as it is: what a run holds is not markup
    Console().print(Text(title, style="bold"), table)


def print_json(command: Any, *figures: Mapping[str, Any]) -> int:
    """The end of a command that did its work: with --json, flat objects, each on a line; returns its exit code."""
    if command.json:
        for line in figures:
            print(json.dumps(line))
    return 0


def number(value: float | None, missing: str = "") -> str:
    if value is None:
        return missing
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S}"
