"""The listing in the README is the layout: complete, in dependency order, and kept by every import."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import protege

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "protege"

# Top to bottom: a file may import only files above it. Files that do not exist yet keep their place.
ORDER = """
    __init__.py py.typed machine.py kernels.py files.py metrics.py runs.py switches.py training.py trackers.py
    checkpoints.py glicko.py matchmaking.py ledger.py league.py evaluate.py standings.py
    learn/__init__.py learn/packing.py learn/sumtree.py learn/replay.py learn/replay_file.py learn/rainbow.py
    learn/pqn.py learn/heads.py learn/recurrent.py learn/rollout.py learn/ppo.py
    tempest/__init__.py tempest/ram.py tempest/levels.py tempest/nymphs.py tempest/enemies.py tempest/player.py
    tempest/states.py tempest/sim.py tempest/draw.py tempest/observe.py tempest/packing.py tempest/teacher.py
    tempest/env.py tempest/gym.py
    tempest/wire.py tempest/streams.py tempest/screens.py tempest/bridge.py tempest/mame.py tempest/arcade.py
    tempest/lua/
    tempest/network.py tempest/attention.py tempest/recording.py tempest/players.py tempest/contest.py
    tempest/serve.py tempest/live.py
    tempest/human.py tempest/shows.py tempest/export.py tempest/collect.py tempest/config.py tempest/gauges.py
    tempest/practice.py tempest/rainbow.py
    tempest/cabinets.py tempest/train.py
    echelon/__init__.py echelon/exact.py echelon/mechs.py echelon/voxels.py echelon/paths.py echelon/biomes.py
    echelon/routes.py echelon/world.py echelon/grounds.py echelon/sight.py echelon/battle.py echelon/condition.py
    echelon/damage.py
    echelon/shots.py echelon/weapons.py echelon/movement.py echelon/sensors.py echelon/outcome.py echelon/sim.py
    echelon/features.py echelon/displays.py echelon/surroundings.py echelon/legal.py echelon/observe.py
    echelon/rewards.py echelon/env.py echelon/zoo.py
    echelon/tactics.py echelon/teacher.py echelon/network.py echelon/pupil.py echelon/recording.py echelon/account.py
    echelon/scenery.py echelon/film.py echelon/shows.py
    echelon/match.py echelon/contest.py echelon/config.py echelon/collect.py echelon/rivals.py
    echelon/gauges.py echelon/exams.py echelon/train.py
    dashboard/__init__.py dashboard/guard.py dashboard/shows.py dashboard/feeds.py dashboard/leagues.py
    dashboard/server.py dashboard/beside.py dashboard/static/
    champions/ leagues/
    keys.py console.py
    bench/slices.py bench/tempest.py bench/learning.py bench/memory.py bench/arcade.py bench/echelon.py bench/ppo.py
    bench/__init__.py
    doctor.py
    commands/__init__.py commands/tables.py commands/playing.py commands/training.py commands/arcade.py
    commands/echelon.py commands/league.py commands/runs.py
    cli.py
""".split()
GAMES = ("tempest", "echelon")
OPTIONAL = ("viewer", "export", "track", "dev")


def files_on_disk() -> set[str]:
    """Files of the package, and with a trailing slash the folders that hold no Python."""
    found = set()
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            data = [folder for folder in path.relative_to(PACKAGE).parents if not _holds_python(folder)]
            found.add(f"{data[-1].as_posix()}/" if data else path.relative_to(PACKAGE).as_posix())
    return found


def _holds_python(folder: Path) -> bool:
    return any("__pycache__" not in path.parts for path in (PACKAGE / folder).rglob("*.py"))


def python_files() -> list[str]:
    return sorted(name for name in files_on_disk() if name.endswith(".py"))


def listed_in_readme() -> list[str]:
    """The package's part of the README's listing, folders prefixed, from top to bottom."""
    block = re.search(r"```\nprotege/\n(.*?)\n(?=\S)", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "README.md has no listing that starts with protege/"
    names, folder = [], ""
    for line in block[1].splitlines():
        name = line.split()[0]
        if line.startswith("    "):
            names.append(folder + name)
        elif name.rstrip("/") != name and f"{name}__init__.py" in ORDER:
            folder = name
        else:
            names.append(name)
    return names


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Full names of everything imported anywhere in a file, and whether importing the file needs them."""

    def walk(node: ast.AST, needed: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, needed) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path.name} line {child.lineno}: write imports in full"
                yield from ((f"{child.module}.{alias.name}", needed) for alias in child.names)
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Try)
            typing_only = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            yield from walk(child, needed and not inside and not typing_only)

    return walk(ast.parse(path.read_text()), True)


def file_of(name: str) -> str:
    """The package file that an imported name comes from: `protege.tempest.ram.TICK` is in tempest/ram.py."""
    parts = name.split(".")[1:]
    for length in range(len(parts), 0, -1):
        stem = "/".join(parts[:length])
        for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
            if (PACKAGE / candidate).is_file():
                return candidate
    return "__init__.py"


def test_every_file_has_its_place_and_the_readme_lists_exactly_what_is_there():
    on_disk = files_on_disk()
    assert on_disk <= set(ORDER), f"no place in ORDER for {sorted(on_disk - set(ORDER))}"
    assert listed_in_readme() == [name for name in ORDER if name in on_disk]


@pytest.mark.parametrize("name", python_files())
def test_imports_only_point_up(name):
    for imported, _ in imports(PACKAGE / name):
        if imported.split(".")[0] != "protege":
            continue
        used = file_of(imported)
        assert ORDER.index(used) < ORDER.index(name), f"{name} may not import {used}"
        games = {file.split("/")[0] for file in (name, used)} & set(GAMES)
        assert len(games) < 2, f"{name} may not import {used}: the games do not know each other"


def distribution_name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;]", requirement.strip(), maxsplit=1)[0]).lower()


@pytest.mark.parametrize("name", python_files())
def test_everything_imported_is_declared_and_extras_are_imported_only_where_used(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {distribution_name(requirement) for requirement in project["dependencies"]}
    extras = {distribution_name(r) for extra in OPTIONAL for r in project["optional-dependencies"][extra]}
    providers = metadata.packages_distributions()
    for imported, needed in imports(PACKAGE / name):
        top = imported.split(".")[0]
        if top == "protege" or top in sys.stdlib_module_names:
            continue
        distributions = {distribution_name(provider) for provider in providers.get(top, [top])}
        if needed:
            assert distributions & core, f"{name} imports {top} at the top: it must be a dependency in pyproject.toml"
        else:
            assert distributions & (core | extras), f"{name} imports {top}: no dependency or extra declares it"


def test_the_version_is_the_newest_in_the_changelog():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == protege.__version__


def test_the_lock_file_holds_exact_versions_and_nothing_else():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    bad = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)]
    assert not bad, f"expected name==version, found {bad}"
    assert lines == sorted(lines, key=str.lower), "sorted, so that changes are easy to read"


def project_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so there is no telling which files are the project's")
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_machine_or_a_package_host():
    # Written in pieces, so that this file does not contain what it looks for.
    machine_paths = [
        r"/ro" + r"ot/",
        r"/ho" + r"me/[a-z]",
        r"/wo" + r"rk/",
        r"/Us" + r"ers/[a-z]",
        r"C:\\\\Us" + r"ers",
    ]
    hosts = ["py" + r"pi\.org", "pythonh" + r"osted", r"registry\.npm" + "js", r"deb\.deb" + r"ian\.org"]
    hosts += [r"download\.pyt" + "orch", "--index" + "-url", "--extra-" + "index", "--find" + "-links"]
    forbidden = re.compile("|".join([*machine_paths, *hosts]))
    for path in project_files():
        if "vendor" in path.parts:
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = forbidden.search(text)
        assert not found, f"{path.relative_to(ROOT)} names {found[0]!r}"
