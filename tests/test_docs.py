"""What the documents say is so: files, links and functions exist, commands parse, the reference is fresh."""

import ast
import importlib
import re
import runpy
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import tyro
from tyro.conf import FlagCreatePairsOff

from protege.cli.__main__ import GROUPS, general_commands
from protege.cli.train import read_options
from protege.games import Command, find_game, games, is_place

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md"),
                 *(ROOT / "protege").rglob("champions/*.md"), ROOT / "results" / "README.md"]
    if path.name not in ("LOG.md",)
)  # fmt: skip
ARCHITECTURE = ROOT / "docs" / "architecture.md"
MOST_LINES = 200  # of the README

NAMED = re.compile(r"`(?!protege/Tempest-v0)((?:protege|tests|docs|proofs|scripts|results|examples)/[\w./*-]+)`")
LINK = re.compile(r"\]\(([^)#\s]+)?(#[\w-]*)?\)")
COMMANDS = general_commands()
PLACEHOLDERS = {"gym:ID", "pettingzoo:MODULE", "my_game.py", "package.module:GAME", "GAME", "COMMAND", "NAME"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(params=PAGES, ids=name_of)
def page(request):
    return request.param


def anchors(path: Path) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        same = sum(1 for other in found if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other))
        found.append(f"{anchor}-{same}" if same else anchor)
    return found


def test_every_path_that_is_named_exists(page):
    missing = [name for name in NAMED.findall(page.read_text()) if not list(ROOT.glob(name.rstrip("/")))]
    assert not missing, f"{name_of(page)} names {missing}"


def test_every_link_leads_somewhere(page):
    for target, anchor in LINK.findall(page.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{name_of(page)} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor[1:] in anchors(file), f"{name_of(page)} links to {target}{anchor}: {anchors(file)}"


def test_paths_of_the_architecture_exist():
    """There they are relative to the package, or to a game."""
    text = ARCHITECTURE.read_text()
    for name in re.findall(r"`([a-z_]+/[\w./]*)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        places = [ROOT, ROOT / "protege", *(ROOT / "protege" / "games").iterdir()]
        assert any((place / name).exists() for place in places), name


def names_in_files(text: str) -> Iterator[tuple[str, str]]:
    """Files and names that are said to be in them: in numbered rows of tables a file stands before, else behind."""
    for row in re.findall(r"^\| \d+ \|.*$", text, re.MULTILINE):
        file = ""
        for quoted in re.findall(r"`([^`]+)`", row):
            if quoted.endswith(".py"):
                file = quoted
            elif file:
                yield file, quoted
    for name, file in re.findall(r"`([\w.]+)`\s+\(`([\w/]+\.py)`", text):
        yield file, name


def defined_in(path: Path) -> set[str]:
    """Functions, classes and constants of a module, and those of its classes as Class.name."""

    def names(nodes: list[ast.stmt]) -> Iterator[str]:
        for node in nodes:
            match node:
                case ast.ClassDef(name=name):
                    yield name
                    yield from (f"{name}.{inner}" for inner in names(node.body))
                case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)]):
                    yield name

    return set(names(ast.parse(path.read_text()).body))


def test_functions_of_the_architecture_exist():
    named = list(names_in_files(ARCHITECTURE.read_text()))
    assert len(named) > 30
    for file, name in named:
        assert name in defined_in(ROOT / "protege" / file), f"{file} has no {name}"


def test_a_function_that_is_gone_would_be_noticed():
    rows = "| 2 | A frame, `x`. | `games/tempest/task/env.py`, `Games.step` → `_reward`, `TASK_VERSION` |\n"
    named = list(names_in_files(rows + "`Games.stop`\n(`games/tempest/task/env.py`, where games are)"))
    gone = [name for file, name in named if name not in defined_in(ROOT / "protege" / file)]
    assert gone == ["_reward", "Games.stop"]


# --- commands --------------------------------------------------------------------------------------------------------


def command_lines(text: str) -> Iterator[str]:
    """Lines of code blocks that begin with `protege`, and commands quoted in the text."""
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.strip().startswith("protege "):
                yield re.split(r"\s{2,}|#", line.strip())[0]  # then comes what it does
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    for quoted in re.findall(r"`(protege\s[^`]+)`", prose):
        yield " ".join(quoted.split())


def parse(command: str) -> None:
    """Read a command line as the command would, and do nothing; raises SystemExit where it cannot be read."""
    words = shlex.split(command)[1:]
    if not words or words[-1] in ("--help", "--version") or any("|" in word or "..." in word for word in words):
        return
    first, *rest = words
    if first in GROUPS and rest:
        first, rest = f"{first} {rest[0]}", rest[1:]
    if first in COMMANDS and rest and not (first == "doctor" and is_place(rest[0])):
        return read(COMMANDS[first], rest)
    named = rest[0] if rest and (rest[0] in games() or is_place(rest[0]) and rest[0] not in PLACEHOLDERS) else ""
    needed = {"gym:LunarLander": "pygame", "pettingzoo:mpe2": "mpe2"}
    if any(named.startswith(place) and not find_spec(package) for place, package in needed.items()):
        return None  # its options depend on the environment, which needs a package of its own
    if named:
        rest = rest[1:]
    if not rest:
        known = {*GROUPS, *COMMANDS, "train", "eval", *(name for game in games().values() for name in game.commands)}
        assert first in known, command
        return None
    if PLACEHOLDERS & set(rest[:1]):
        return None
    offered = [game for game in games().values() if first in game.commands or first in ("train", "eval")]
    game = find_game(named) if named else offered[0]
    assert named or len(offered) == 1, f"{command}: which game?"
    if first == "train":
        read_options(game, game.trainer(), [word for word in rest if word != "--resume"])
        return None
    return read(game.commands[first], rest)


def read(command: Command, words: list[str]) -> None:
    words = [word for word in words if not command.pairs or word != "--resume"]  # there is no such run here
    kind = command.options if isinstance(command.options, type) else command.options(words)
    tyro.cli(kind, args=words, config=() if command.pairs else (FlagCreatePairsOff,))


def test_every_command_that_is_shown_can_be_read(page, capsys):
    for command in dict.fromkeys(command_lines(page.read_text())):
        try:
            parse(command)
        except SystemExit:
            pytest.fail(f"{name_of(page)}: {command}\n{capsys.readouterr().err}")


def test_a_wrong_flag_would_be_noticed():
    with pytest.raises(SystemExit):
        parse("protege eval tempest --playre champion")


# --- the rest --------------------------------------------------------------------------------------------------------


def test_tests_named_as_evidence_exist():
    text = (ROOT / "docs" / "evidence.md").read_text()
    defined = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    named = set(re.findall(r"`(test_\w+)`", text))
    assert named and not named - defined


def test_rows_that_are_quoted_exist(page):
    rows = {path.stem for path in (ROOT / "results").glob("*.json")}
    quoted = re.findall(r"\b[a-z][\w-]*-2\d{3}-\d\d-\d\d(?:-\d)?\b", page.read_text())
    assert not set(quoted) - rows


def test_the_reference_is_what_the_code_declares():
    written = runpy.run_path(str(ROOT / "scripts" / "reference"))["page"]()
    assert (ROOT / "docs" / "reference.md").read_text() == written, "run scripts/reference"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= MOST_LINES


def test_every_name_of_the_package_that_is_quoted_can_be_imported(page):
    for name in set(re.findall(r"\bprotege(?:\.[a-zA-Z_]\w*)+", page.read_text())):
        parts = name.split(".")
        stems = [n for n in range(len(parts), 0, -1) if is_module(parts[:n])]
        assert stems, name
        found = importlib.import_module(".".join(parts[: stems[0]]))
        for attribute in parts[stems[0] :]:
            found = getattr(found, attribute)


def is_module(parts: list[str]) -> bool:
    place = ROOT.joinpath(*parts)
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()
