"""Options that many commands have, and those that depend on what was typed before them."""

from collections.abc import Sequence
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, TypeVar

Base = TypeVar("Base")


@dataclass(frozen=True, kw_only=True)
class RunsOptions:
    """What every command that looks at runs can be told."""

    runs: Path | None = None  # the folder of the runs; by default PROTEGE_RUNS, else ./runs
    json: bool = False  # also print one flat JSON object on the last line


def given(words: Sequence[str], flag: str) -> str | None:
    """The value typed after a flag, looked up before the whole line is read."""
    for index, word in enumerate(words):
        if word == flag and index + 1 < len(words):
            return words[index + 1]
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return None


def extended(base: type[Base], help_text: str, fields: Sequence[Any] = ()) -> type[Base]:
    """A dataclass of options with more fields, as `dataclasses.make_dataclass` takes them, and another help text."""
    # Of the same name and module as its base: the comments that explain the fields are looked up there.
    kind = make_dataclass(base.__name__, fields, bases=(base,), frozen=True, kw_only=True)
    kind.__module__, kind.__doc__ = base.__module__, help_text
    return kind
