"""The command line as a newcomer meets it: help, mistakes, interruptions."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import protege
from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.cli.doctor import Doctor
from protege.games import BUILT_IN, Command, games
from tests.dashboard.serving import make_run

PAIRS = [f"{name} {game.name}" for game in games().values() for name in ("train", *game.commands)]
OPTION = re.compile("[│| ]{0,3}--[a-z]").match


def failing(error: BaseException):
    def run(_):
        raise error

    return Command(Doctor, run)


def test_help_names_every_command_and_imports_nothing_heavy():
    heavy = "[name for name in ('numba', 'torch', 'numpy', 'gymnasium', 'rich.live') if name in sys.modules]"
    code = f"import sys\nfrom protege.cli.__main__ import main\nmain(['--help'])\nprint({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert all(f"  {command.split()[0]} " in done.stdout for command in (*PAIRS, *cli.general_commands()))
    assert all(f"  {game.name} " in done.stdout and game.about in done.stdout for game in games().values())
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [*PAIRS, *cli.general_commands(), "play", "serve", "mame", "export", "match"])
def test_every_command_and_option_is_explained(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command.split(), "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    rows = text.splitlines()
    assert any(map(OPTION, rows)), "there are options to look at"
    for number, row in enumerate(rows):
        if OPTION(row):
            explained = len(row.strip("│| ").split("  ", 1)) == 2 or not OPTION(rows[number + 1])
            assert explained, f"{command} does not explain {row}"


def test_without_a_command_the_help_appears(capsys):
    assert cli.main([]) == 0
    assert capsys.readouterr().out.startswith("usage: protege COMMAND [GAME]")


@pytest.mark.parametrize("words, named", [
    ("train --help", [f"protege train {name}" for name in BUILT_IN]),
    ("watch --help", ["protege watch tempest", "protege watch echelon"]),
    ("runs --help", ["protege runs list", "protege runs prune"]),
    ("league", ["protege league init", "protege league payoff"]),
])  # fmt: skip
def test_what_else_must_be_typed_is_listed(words, named, capsys):
    assert cli.main(words.split()) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in named)


def test_version_is_one_line(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"protege {protege.__version__}\n"


@pytest.mark.parametrize("words, answer", [
    ("evl", "there is no command 'evl': protege --help lists them; did you mean eval"),
    ("echelom", "did you mean echelon"),
    ("tempest", "the command comes first: protege train tempest"),
    ("eval tempets", "there is no game 'tempets': use tempest, echelon, gym:ID, pettingzoo:MODULE, a file "
     "my_game.py, or package.module:GAME; did you mean tempest?"),
    ("train pong", "there is no game 'pong'"),
    ("train pong.py", "there is no file pong.py"),
    ("eval no.such.module:GAME", "cannot be imported: No module named 'no'"),
    ("eval protege.games:GAME", "holds nothing under the name GAME"),
    ("eval --games 4 tempest", "the game comes first"),
    ("match tempest", "Tempest has no command match: it has cabinets, eval, export"),
    ("play echelon", "Echelon has no command play"),
    ("runs lst", "not 'lst'; did you mean list?"),
    ("bench tempest-sin", "did you mean tempest-sim"),
])  # fmt: skip
def test_a_mistake_is_answered_in_one_line_with_what_there_is(words, answer, capsys):
    assert cli.main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("protege: ") and answer in line


def test_a_command_without_its_game_or_with_a_wrong_value_is_refused_with_code_2(capsys):
    assert cli.main(["eval"]) == 2
    assert "protege eval needs a game" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        cli.main(["eval", "tempest", "--games", "many"])
    assert stop.value.code == 2 and capsys.readouterr().err


def test_a_problem_the_user_can_mend_is_one_line_on_stderr(monkeypatch, capsys):
    error = ProtegeError("level 0 was asked for,\nlevels are 1 to 99")
    monkeypatch.setitem(cli.COMMANDS, "doctor", failing(error))
    assert cli.main(["doctor"]) == 2
    streams = capsys.readouterr()
    assert streams.err == "protege: level 0 was asked for, levels are 1 to 99\n" and streams.out == ""


def test_other_errors_are_not_hidden(monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "doctor", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


def test_ctrl_c_ends_quietly(monkeypatch, capsys):
    monkeypatch.setitem(cli.COMMANDS, "doctor", failing(KeyboardInterrupt()))
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error():
    # More output than a pipe holds, so that the write is still going on when the reader has gone.
    code = (
        "import sys\nfrom protege.cli import __main__ as cli\nfrom protege.cli.doctor import Doctor\n"
        "cli.COMMANDS['doctor'] = cli.Command(Doctor, lambda _: print('line\\n' * 100_000) or 0)\n"
        "sys.exit(cli.main(['doctor']))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stderr
        writer.stdout.readline()
        writer.stdout.close()
        errors = writer.stderr.read()
        assert writer.wait(timeout=60) == 141
    assert errors == b""


@pytest.mark.parametrize(
    "words",
    [
        "eval tempest --player mine", "record tempest --player mine --out a.gif", "export mine --out a",
        "serve --no-train --player mine", "eval echelon --blue mine", "match echelon --red mine",
        "record echelon --blue mine --out a.gif",
    ],
)  # fmt: skip
def test_runs_of_another_folder_are_found_by_name(words, tmp_path, capsys):
    make_run(tmp_path, "mine", 0).close()
    assert cli.main([*words.split(), "--runs", str(tmp_path)]) == 2
    assert "run mine has no checkpoint yet" in capsys.readouterr().err


def test_players_may_be_given_several_times(monkeypatch):
    seen: list[Any] = []
    commands = games()["tempest"].commands

    def remember(options: Any) -> int:
        seen.append(options)
        return 0

    monkeypatch.setitem(commands, "eval", Command(commands["eval"].options, remember))
    assert cli.main(["eval", "tempest", "--player", "teacher", "--player", "random", "--games", "7"]) == 0
    assert seen[0].player == ("teacher", "random") and seen[0].games == 7
    assert seen[0].max_frames == 200_000 and seen[0].level == 1 and seen[0].difficulty == "medium"


def test_nothing_but_the_table_names_a_game():
    package = Path(protege.__file__).parent
    rooms, endings = ("learn", "train", "runs", "league", "dashboard", "cli"), (".py", ".js", ".html", ".css")
    files = [path for room in rooms for path in (package / room).rglob("*") if path.suffix in endings]
    names = re.compile("|".join(BUILT_IN), re.IGNORECASE)
    strays = [
        f"{path.relative_to(package)}: {line.strip()[:80]}"
        for path in files
        for line in path.read_text().splitlines()
        if "vendor" not in path.parts and names.search(line)
    ]
    assert len(files) > 50 and strays == []
