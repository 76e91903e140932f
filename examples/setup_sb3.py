"""Makes the environment that train_sb3.py runs in, unless it is there, and prints its Python.

Stable-baselines3 follows its own versions of what Protege uses too, so it gets a virtual environment of its own in
Protege's cache folder. The versions both need are Protege's, from requirements.lock: the compiled game is then shared.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

from protege.kernels import cache_root

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("torch", "stable-baselines3==2.9.2", "sb3-contrib==2.9.2", "numba")


def wanted() -> str:
    """What the environment was made from; another answer means making it again."""
    lock = (ROOT / "requirements.lock").read_text()
    return "\n".join([sys.version, str(ROOT), *PACKAGES, lock])


def make() -> Path:
    """The Python of the environment, made first where it is missing or out of date."""
    folder = cache_root() / "sb3-venv"
    stamp = folder / "made-from.txt"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if stamp.is_file() and stamp.read_text() == wanted():
        return python
    print(f"Making {folder}: a minute or two, 1.2 GB, once", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # Without these two, pip would see the packages of the environment that runs this script.
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    for words in (["--constraint", str(ROOT / "requirements.lock"), *PACKAGES], ["--no-deps", "--editable", str(ROOT)]):
        subprocess.run([*install, *words], env=clean, stdout=sys.stderr, check=True)
    stamp.write_text(wanted())
    return python


if __name__ == "__main__":
    print(make())
