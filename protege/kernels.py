"""Compiled kernels: one decorator, one cache folder, one message.

Numba's own cache looks only at the file that holds a kernel, not at the kernels it calls. The folder's name therefore
carries a fingerprint of every source file of the package that compiles anything: change one, and all compile afresh.
"""

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


def _fingerprint() -> str:
    package = Path(__file__).parent
    digest = hashlib.sha256(f"{numba.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"@kernel" in source:
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(source)
    return digest.hexdigest()[:16]


def _use_cache() -> Path:
    folder = cache_root() / "kernels" / _fingerprint()
    config.CACHE_DIR = str(folder)
    return folder


CACHE = _use_cache()


def kernel(function: Function) -> Function:
    """Compile `function` on first use, keep the machine code, release the interpreter lock while it runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaWarning)
        return numba.njit(cache=True, nogil=True, error_model="numpy", boundscheck=False, _nrt=False)(function)  # type: ignore[no-any-return]


def announce_compilation(games: str) -> None:
    """Say once, on a machine that has no compiled code yet, why the first start takes longer."""
    if not CACHE.exists():
        print(f"Compiling {games} for this machine, once: about a minute. Later starts use {CACHE}.", file=sys.stderr)
