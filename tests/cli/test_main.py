"""The command line as a newcomer meets it: help, mistakes, interruptions."""

import re
import subprocess
import sys

import pytest

import protege
from protege import ProtegeError
from protege.cli import __main__ as cli
from protege.cli.playing import Eval
from tests.dashboard.serving import make_run

COMMANDS = ("eval", "record", "watch", "play", "serve", "mame", "export", "dashboard", "bench", "doctor")
OPTION = re.compile("--[a-z]").match


def failing(error: BaseException):
    def command(_):
        raise error

    return command


def test_help_names_every_command_and_imports_nothing_heavy():
    heavy = "[name for name in ('numba', 'torch', 'numpy', 'gymnasium', 'rich.live') if name in sys.modules]"
    code = f"import sys\nfrom protege import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\nprint({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert all(f" {command} " in done.stdout for command in ("train", *COMMANDS))
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [*COMMANDS, "train tempest"])
def test_every_command_and_option_is_explained(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*command.split(), "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    rows = [line.strip("│| ") for line in text.splitlines()]
    assert any(map(OPTION, rows)), "there are options to look at"
    for number, row in enumerate(rows):
        if OPTION(row):
            explained = len(row.split("  ", 1)) == 2 or not OPTION(rows[number + 1])
            assert explained, f"{command} does not explain {row}"


def test_without_a_command_the_help_appears(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert stop.value.code == 0 and "usage: protege" in capsys.readouterr().out


def test_version_is_one_line(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"protege {protege.__version__}\n"


@pytest.mark.parametrize("words", [["evl"], ["eval", "pong"], ["eval"], ["eval", "tempest", "--games", "many"]])
def test_a_mistyped_command_line_is_refused_with_code_2(words, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert capsys.readouterr().err


def test_a_problem_the_user_can_mend_is_one_line_on_stderr(monkeypatch, capsys):
    error = ProtegeError("level 0 was asked for,\nlevels are 1 to 99")
    monkeypatch.setitem(cli.RUN, cli.Doctor, failing(error))
    assert cli.main(["doctor"]) == 2
    streams = capsys.readouterr()
    assert streams.err == "protege: level 0 was asked for, levels are 1 to 99\n" and streams.out == ""


def test_other_errors_are_not_hidden(monkeypatch):
    monkeypatch.setitem(cli.RUN, cli.Doctor, failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["doctor"])


def test_ctrl_c_ends_quietly(monkeypatch, capsys):
    monkeypatch.setitem(cli.RUN, cli.Doctor, failing(KeyboardInterrupt()))
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error():
    # More output than a pipe holds, so that the write is still going on when the reader has gone.
    code = (
        "import sys\nfrom protege import cli\n"
        "cli.RUN[cli.Doctor] = lambda _: print('line\\n' * 100_000) or 0\n"
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
    seen: list[Eval] = []

    def remember(command: Eval) -> int:
        seen.append(command)
        return 0

    monkeypatch.setitem(cli.RUN, Eval, remember)
    assert cli.main(["eval", "tempest", "--player", "teacher", "--player", "random", "--games", "7"]) == 0
    assert seen[0].player == ("teacher", "random") and seen[0].games == 7
    assert seen[0].max_frames == 200_000 and seen[0].level == 1 and seen[0].difficulty == "medium"
