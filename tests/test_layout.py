"""The listing in docs/architecture.md is the layout: complete, in dependency order, and kept by every import."""

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

MOST_FILES = 15  # in a folder
OPTIONAL = ("viewer", "export", "track", "dev")


def listed() -> list[str]:
    """The package's files and folders as docs/architecture.md lists them, from top to bottom."""
    block = re.search(r"```\nprotege/\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.DOTALL)
    assert block, "docs/architecture.md has no listing that starts with protege/"
    names: list[str] = []
    folders: list[str] = []
    for line in block[1].splitlines():
        name, depth = line.split()[0], (len(line) - len(line.lstrip())) // 2
        folders = [*folders[: depth - 1], name]
        names.append("".join(folders))
    return names


ORDER = listed()


def files_on_disk() -> set[str]:
    """Files of the package; with a trailing slash, folders, and nothing of those that hold no Python."""
    found = set()
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            folders = [folder for folder in path.relative_to(PACKAGE).parents if folder.name]
            found |= {f"{folder.as_posix()}/" for folder in folders if _holds_python(folder)}
            data = [folder for folder in folders if not _holds_python(folder)]
            found.add(f"{data[-1].as_posix()}/" if data else path.relative_to(PACKAGE).as_posix())
    # A folder's __init__.py is listed only where it does something.
    return {name for name in found if not (name.endswith("__init__.py") and _says_nothing(PACKAGE / name))}


def _holds_python(folder: Path) -> bool:
    return any("__pycache__" not in path.parts for path in (PACKAGE / folder).rglob("*.py"))


def _says_nothing(path: Path) -> bool:
    return all(isinstance(node, ast.Expr) for node in ast.parse(path.read_text()).body)


def python_files() -> list[str]:
    return sorted(name for name in files_on_disk() if name.endswith(".py"))


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
    """The package file that an imported name comes from: `protege.runs.files.Lock` is in runs/files.py."""
    parts = name.split(".")[1:]
    for length in range(len(parts), 0, -1):
        stem = "/".join(parts[:length])
        for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
            if (PACKAGE / candidate).is_file():
                return candidate
    return "__init__.py"


def test_every_file_has_its_place_in_the_listing():
    assert set(ORDER) == files_on_disk()
    assert len(ORDER) == len(set(ORDER)), "something is listed twice"


@pytest.mark.parametrize("name", python_files())
def test_imports_only_point_up(name):
    for imported, _ in imports(PACKAGE / name):
        if imported.split(".")[0] != "protege":
            continue
        used = file_of(imported)
        if used not in ORDER:
            assert _says_nothing(PACKAGE / used)
            continue
        assert ORDER.index(used) < ORDER.index(name), f"{name} may not import {used}"
        games = {file.split("/")[1] for file in (name, used) if file.startswith("games/") and file.count("/") > 1}
        assert len(games) < 2, f"{name} may not import {used}: the games do not know each other"


def test_no_folder_is_crowded():
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        count = sum(1 for path in folder.glob("*.py") if path.name != "__init__.py")
        assert count <= MOST_FILES, f"{folder.relative_to(PACKAGE)} has {count} modules: make rooms"


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
