"""What the page computes, in Node: its own unit tests, beside those of each game's part of the page."""

import subprocess
from pathlib import Path

import pytest

from protege.games import BUILT_IN

ROOT = Path(__file__).parents[2]


@pytest.mark.needs("node")
def test_what_the_page_computes():
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.test.js"))
    assert any("dashboard" in name for name in files) and any("games" in name for name in files)
    done = subprocess.run(["node", "--test", *files], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs("luacheck")
def test_the_arcade_client_has_no_mistakes_that_can_be_found_without_running_it():
    done = subprocess.run(["luacheck", "--no-color", "protege", "tests"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_shared_part_of_the_page_names_no_game():
    shared = ROOT / "protege" / "dashboard"
    assert len(BUILT_IN) >= 2
    for path in shared.rglob("*"):
        if path.suffix in (".py", ".js", ".css", ".html") and "vendor" not in path.parts:
            text = path.read_text().lower()
            assert not [game for game in BUILT_IN if game in text], path.relative_to(ROOT)
