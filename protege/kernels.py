"""Compiled kernels: one decorator, one cache folder for each part of the package, one message.

Numba's own cache looks only at the file that holds a kernel, not at the kernels it calls. A cache folder's name
therefore carries a fingerprint of every source file of that part of the package that compiles anything, and of those
that belong to no part: change one, and the part compiles afresh. Kernels in one part call none of another.
"""

import functools
import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numba
from numba.core import config

Function = TypeVar("Function", bound=Callable[..., object])


def cache_root() -> Path:
    """Where Protege keeps what it can make again; `PROTEGE_CACHE` moves it."""
    chosen = os.environ.get("PROTEGE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "protege"


@functools.cache
def kernel_cache(part: str) -> Path:
    """Where the machine code of a part of the package, such as "games/tempest", is kept; "" is all parts together."""
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode() + Path(__file__).read_bytes())
    for path in sorted({*package.glob("*.py"), *(package / part).rglob("*.py")}):
        source = path.read_bytes()
        if b"@kernel" in source:
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(source)
    return cache_root() / "kernels" / f"{part.replace('/', '-') or 'all'}-{digest.hexdigest()[:16]}"


def part_of(module: str) -> str:
    """The part that a module's kernels belong to: "games/tempest" for protege.games.tempest.rules.sim."""
    words = module.split(".")[1:-1]
    return "/".join(words[: 2 if words[:1] == ["games"] else 1])


def kernel(function: Function) -> Function:
    """Compile `function` on first use, keep the machine code, release the interpreter lock while it runs."""
    config.CACHE_DIR = str(kernel_cache(part_of(function.__module__)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaWarning)
        return numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False, _nrt=False)(function)  # type: ignore[no-any-return]


def announce_compilation(what: str, module: str) -> None:
    """Say once, on a machine that has no compiled code yet, why the first start takes longer."""
    folder = kernel_cache(part_of(module))
    if not folder.exists():
        print(f"Compiling {what} for this machine, once: about a minute. Later starts use {folder}.", file=sys.stderr)
