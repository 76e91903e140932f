"""The machine that a program finds itself on, as far as figures and thread counts depend on it."""

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any


def usable_cores() -> int:
    """Cores that this process may use: a container or `taskset` may leave fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The processor's name, which `platform` does not know on Linux."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(errors="replace").splitlines() if listing.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """What a run's figures depend on besides its settings."""
    versions = {}
    for library in ("torch", "numpy", "numba"):
        with suppress(metadata.PackageNotFoundError):
            versions[library] = metadata.version(library)
    about = {"system": platform.platform(), "python": platform.python_version()}
    return {"cpu": processor(), "cores": usable_cores(), **about, **versions}
