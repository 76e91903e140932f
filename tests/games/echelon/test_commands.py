"""Battles from the command line: played, measured, told; and one clear line for what cannot be."""

import json

import pytest

from protege.cli import __main__ as cli

pytestmark = pytest.mark.slow


def test_a_battle_is_fought_recorded_and_told(tmp_path, capsys):
    file = tmp_path / "fight.rec"
    words = ["match", "echelon", "--blue", "hard", "--red", "trivial", "--seed", "3", "--roster", "2v2"]
    assert cli.main([*words, "--out", str(file), "--json"]) == 0
    shown = capsys.readouterr().out.splitlines()
    made = json.loads(shown[-1])
    assert made["blue"] == "hard" and made["red"] == "trivial" and made["bytes"] == file.stat().st_size
    assert any(made["winner"] in line for line in shown[:-1])
    assert cli.main(["watch", "echelon", str(file), "--text"]) == 0
    account = capsys.readouterr().out
    assert "hard" in account and "trivial" in account and len(account.splitlines()) > 5


def test_the_same_seed_gives_the_same_file(tmp_path, capsys):
    first, second = tmp_path / "a.rec", tmp_path / "b.rec"
    for file in (first, second):
        assert cli.main(["match", "echelon", "--roster", "1v1", "--seed", "5", "--out", str(file)]) == 0
    assert first.read_bytes() == second.read_bytes()


def test_an_evaluation_tells_every_promised_figure(capsys):
    words = ["eval", "echelon", "--blue", "medium", "--red", "trivial", "--roster", "1v1", "--matches", "8", "--json"]
    assert cli.main(words) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    promised = "blue red matches seed blue_win_rate blue_win_rate_low blue_win_rate_high draws length_mean seconds"
    assert set(promised.split()) <= set(found)
    assert 0 <= found["blue_win_rate_low"] <= found["blue_win_rate"] <= found["blue_win_rate_high"] <= 1
    assert found["matches"] == 8


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["match", "echelon", "--blue", "hrad"], "hard"),
        (["match", "echelon", "--roster", "3v9"], "10v10"),
        (["eval", "echelon", "--matches", "7"], "both sides"),
        (["eval", "--games", "4", "echelon"], "game comes first"),
        (["watch", "echelon", "nowhere.rec", "--text"], "nowhere.rec"),
        (["watch", "echelon", "nowhere.rec"], "nowhere.rec"),
        (["watch", "echelon", "--run", "nobody"], "nobody"),
        (["watch", "echelon", "--text"], "FILE --text"),
        (["watch", "echelon", "--beside", "nowhere.rec"], "FILE --beside"),
        (["watch", "echelon", "nowhere.rec", "--run", "nobody"], "not both"),
        (["record", "echelon", "nowhere.rec", "--out", "fight.gif"], "nowhere.rec"),
        (["record", "echelon", "--out", "fight.avi"], ".gif"),
        (["match", "echelon", "--roster", "1v1", "--out", "no/such/folder/fight.rec"], "no/such/folder"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tmp_path, monkeypatch, capsys, words, reason):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("protege: ") and reason in said and len(said.splitlines()) == 1


def test_a_file_that_is_no_recording_is_said_to_be_none(tmp_path, capsys):
    file = tmp_path / "picture.rec"
    file.write_bytes(b"GIF89a" * 100)
    assert cli.main(["watch", "echelon", str(file), "--text"]) == 2
    assert "recording" in capsys.readouterr().err
