"""What every test relies on: skips that name their cure, proofs left out unless asked for, one thread per worker.

`@pytest.mark.needs("mame")` marks a test that needs a program of scripts/system-packages.txt; any other name is a
Python package. Where it is missing the test skips and the summary says how to get it; with CI=true it fails instead,
because there the machine is supposed to have everything.
"""

import importlib.util
import os
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

from protege.cli.doctor import find_program

os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch reads it when first imported; two workers share the cores

ROOT = Path(__file__).parents[1]
SKIP = "needs "

hypothesis.settings.register_profile("protege", deadline=None, print_blob=True)  # compiling takes longer than deadlines
hypothesis.settings.load_profile("protege")


def listed_programs() -> dict[str, str]:
    """Programs tests may need, and the Debian package of each."""
    lines = (ROOT / "scripts" / "system-packages.txt").read_text().splitlines()
    words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {word[0]: word[1] for word in words}


PROGRAMS = listed_programs()


def cure_for(name: str) -> str | None:
    """How to get what a test needs, or None when it is here."""
    if name in PROGRAMS:
        return None if find_program(name) else f"on Debian, as root: apt-get install {PROGRAMS[name]}"
    return None if importlib.util.find_spec(name) else f"pip install {name}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for name in mark.args:
            cure = cure_for(name)
            if cure is None:
                continue
            if os.environ.get("CI", "").lower() in ("1", "true"):
                pytest.fail(f"{SKIP}{name}, which CI must have ({cure})", pytrace=False)
            pytest.skip(f"{SKIP}{name} ({cure})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith(SKIP):
            reasons[reason] += 1
    if reasons:
        terminalreporter.section("skipped for want of a program", yellow=True)
        for reason, count in sorted(reasons.items()):
            terminalreporter.line(f"{count} {'test' if count == 1 else 'tests'} skipped: {reason}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "prove" in (config.option.markexpr or ""):
        return
    proofs = [item for item in items if item.get_closest_marker("prove")]
    if proofs:
        config.hook.pytest_deselected(items=proofs)
        items[:] = [item for item in items if not item.get_closest_marker("prove")]
