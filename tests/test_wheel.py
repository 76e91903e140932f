"""What a user installs: the built wheel holds everything, and works in an empty environment far from the source."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import protege

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.needs("build", "hatchling")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def package_files() -> set[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "protege"]
    listing = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so there is no telling which files are the project's")
    return {name for name in listing.stdout.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_holds_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("protege/")}
    assert inside == package_files()
    assert wheel.name.startswith(f"protege-{protege.__version__}-py3-none-any")


@pytest.mark.network
def test_the_wheel_evaluates_in_an_empty_environment(wheel, tmp_path):
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROTEGE", "VIRTUAL_ENV"))
    }

    def run(*words: str | Path, seconds: float) -> str:
        done = subprocess.run(words, cwd=elsewhere, env=clean, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    # Without bytecode: most of what comes along is never imported here.
    words = ("install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run(programs / "pip", *words, wheel, seconds=1800)
    run(programs / "pip", "check", seconds=120)

    scores = run(programs / "protege", "eval", "tempest", "--player", "teacher", "--games", "4", "--json", seconds=600)
    figures = json.loads(scores.splitlines()[-1])
    assert figures["player"] == "teacher" and figures["games"] == 4 and figures["level"] == 1
    assert figures["score_mean_low"] <= figures["score_mean"] <= figures["score_mean_high"]
    assert figures["score_mean"] > 0 and figures["frames_mean"] > 0 and figures["points_per_life"] > 0

    report = json.loads(run(programs / "protege", "doctor", "--json", seconds=120).splitlines()[-1])
    assert report["ok"] is True and report["version"] == protege.__version__
