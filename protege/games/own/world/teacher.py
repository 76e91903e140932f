"""A teacher: a user's scripted player, found by name, asked in every frame."""

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, Final

from protege import ProtegeError

OF_ENVIRONMENT: Final = ("env", "environment")  # what a teacher calls what it wants instead of an observation
EXPECTED: Final = "expected package.module:name of a function over observations, or over (environment, observation)"


class BadTeacher(ProtegeError):
    """A teacher that cannot be found or asked."""


def find(place: str) -> Any:
    """What stands at `package.module:name`."""
    module, colon, name = place.partition(":")
    if not colon or not module or not name:
        raise BadTeacher(f"there is no teacher {place!r}: {EXPECTED}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # so that a file beside the user is found, as with `python -m`
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise BadTeacher(f"teacher {place!r} cannot be imported: {problem}; {EXPECTED}") from problem


def asks(place: str) -> tuple[Callable[..., Any], str]:
    """The teacher's function, and what it takes: "observation", "observations" (of all games), "env" or "both".

    A class is made once, without arguments, and then called. A teacher that has an attribute `batched` which is true
    gets the observations of all games at once.
    """
    found = find(place)
    if inspect.isclass(found):
        try:
            found = found()
        except TypeError as problem:
            raise BadTeacher(
                f"teacher {place!r} cannot be made: {problem}; a class must need no arguments"
            ) from problem
    ask = found if callable(found) else getattr(found, "act", None)
    if ask is None:
        raise BadTeacher(f"teacher {place!r} is a {type(found).__name__} that cannot be called; {EXPECTED}")
    if getattr(found, "batched", False):
        return ask, "observations"
    try:
        parameters = list(inspect.signature(ask).parameters.values())
    except (TypeError, ValueError):
        return ask, "observation"  # written in C: nothing is known of it
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = [p for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    if len(wanted) == 2:
        return ask, "both"
    if len(wanted) > 2 or not parameters:
        names = ", ".join(parameter.name for parameter in wanted) or "nothing"
        raise BadTeacher(f"teacher {place!r} takes {names}; {EXPECTED}")
    return ask, "env" if parameters[0].name in OF_ENVIRONMENT else "observation"
