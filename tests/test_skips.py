"""The suite's own behaviour: a missing program is named, CI does not accept it, proofs wait to be asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROGRAMS, ROOT

CONFTEST = """
from tests import conftest
conftest.PROGRAMS["no-such-program"] = "some-package"
"""
SUITE = """
import pytest

@pytest.mark.needs("no-such-program")
def test_with_the_program(): pass

@pytest.mark.needs("no-such-program", "no_such_module")
def test_with_program_and_module(): pass

@pytest.mark.needs("no_such_module")
def test_with_the_module(): pass

@pytest.mark.needs("pytest")
def test_with_something_that_is_here(): pass

@pytest.mark.prove
def test_proof(): pass
"""
SETTINGS = """
[pytest]
markers =
    needs: as in the real suite
    prove: as in the real suite
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    return tmp_path


def run_pytest(suite: Path, *options: str, ci: str = "") -> tuple[int, str]:
    environment = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    plugins = ["-p", "xdist.plugin", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    words = [sys.executable, "-m", "pytest", *plugins, *options]
    done = subprocess.run(words, cwd=suite, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_missing_program_skips_and_the_summary_says_how_to_get_it(suite):
    code, output = run_pytest(suite, "-n", "1")  # reports that come from another process count too
    assert code == 0, output
    assert "1 passed, 3 skipped" in output
    assert "2 tests skipped: needs no-such-program (on Debian, as root: apt-get install some-package)" in output
    assert "1 test skipped: needs no_such_module (pip install no_such_module)" in output


def test_in_ci_a_missing_program_fails_the_run(suite):
    code, output = run_pytest(suite, ci="true")
    assert code == 1, output
    assert "1 passed" in output and "3 errors" in output and "skipped" not in output
    assert "needs no-such-program, which CI must have" in output


def test_proofs_run_only_when_asked_for(suite):
    assert "::test_proof" not in run_pytest(suite, "-v")[1]
    code, output = run_pytest(suite, "-v", "-m", "prove", ci="true")
    assert code == 0 and "test_proof PASSED" in output and "1 passed, 4 deselected" in output


def test_the_installer_and_the_tests_read_the_same_list():
    assert PROGRAMS["mame"] == "mame" and PROGRAMS["chromium"] == "chromium"
    here = subprocess.run(["sh", ROOT / "scripts" / "system-packages"], capture_output=True, text=True)
    assert here.returncode == 2 and "usage" in here.stderr
