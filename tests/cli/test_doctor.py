"""The doctor looks at machines where things are missing, odd or broken, and always answers."""

import json
import os
import re
import socket
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from protege.cli import doctor
from protege.games import Check
from protege.games.tempest.arcade import mame

KEYS = ["python", "torch", "cores", "numba", "video", "browser", "port_8765", "disk", "mame", "rom_set", "port_9999"]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without programs, with an empty home; programs put into its bin folder are found."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "GAME_FOLDERS", (str(tmp_path / "games"),))
    monkeypatch.setattr(mame, "MAME_FOLDERS", (str(tmp_path / "games"),))
    monkeypatch.setattr(mame, "ROM_FOLDERS", ("~/mame/roms", str(tmp_path / "share" / "roms")))
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def put_rom_set(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, size in mame.ROM_FILES.items():
        (folder / name).write_bytes(bytes(size))


def row(name: str) -> Check:
    return next(row for row in doctor.inspect() if row.name == name)


def test_the_last_line_is_one_flat_object_with_a_verdict_for_every_row(capsys):
    code = doctor.run_doctor(doctor.Doctor(json=True))
    flat = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(flat) == ["version", "ok", *(key for name in KEYS for key in (name, f"{name}_ok"))]
    assert all(isinstance(value, str | bool) for value in flat.values())
    assert code == 0 and flat["ok"] is True
    assert flat["torch"].startswith(metadata.version("torch")) and flat["numba"].startswith(metadata.version("numba"))


def test_on_a_bare_machine_every_miss_says_what_to_do_and_nothing_fails(bare, capsys):
    assert doctor.run_doctor(doctor.Doctor()) == 0
    assert "missing" in capsys.readouterr().out
    for name in ("browser", "MAME", "ROM set"):
        assert row(name).state == "missing" and row(name).advice and not row(name).required
    assert "~/mame/roms" in row("ROM set").found and "tempest1.zip" in row("ROM set").advice


def test_missing_libraries_are_named_and_the_code_says_that_nothing_runs(monkeypatch, capsys):
    def nothing_installed(distribution: str) -> str:
        raise metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(metadata, "version", nothing_installed)
    assert doctor.run_doctor(doctor.Doctor()) == 1
    assert "Nothing runs before this is mended: torch, numba." in capsys.readouterr().out
    assert 'pip install "protege[viewer]"' in row("video").advice


def test_mame_is_found_among_debians_games_with_its_version(bare):
    put_program(bare / "games", "mame", 'echo "0.251 (unknown)"')
    assert row("MAME") == Check("MAME", "ok", f"0.251, {bare}/games/mame")


def test_a_mame_too_old_for_our_scripts_is_no_use(bare):
    put_program(bare / "bin", "mame", 'echo "0.250 (mame0250)"')
    assert row("MAME").state == "missing" and "0.251 or newer" in row("MAME").advice


def test_the_oldest_mame_is_the_one_that_the_documents_name():
    root = Path(doctor.__file__).parents[2]
    for document in ("README.md", "docs/bridge.md", "protege/games/tempest/arcade/lua/main.lua"):
        named = re.findall(r"MAME (0\.\d+)\s(?:or newer|and\W+later)", (root / document).read_text())
        assert named == [f"0.{mame.OLDEST_MAME}"], document


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "echo 'Super Emulator 3'"])
def test_a_mame_that_does_not_answer_is_reported(bare, script):
    put_program(bare / "bin", "mame", script)
    assert row("MAME").state == "missing" and "reinstall" in row("MAME").advice


def test_a_mame_that_hangs_is_not_waited_for(bare, monkeypatch):
    monkeypatch.setattr(mame, "ASK_TIMEOUT_S", 0.2)
    put_program(bare / "bin", "mame", "exec /bin/sleep 60")
    assert row("MAME").state == "missing"


def test_roms_are_looked_for_where_mame_says_it_looks(bare):
    put_program(bare / "bin", "mame", f"""echo 'rompath  "$HOME/my roms;{bare}/elsewhere"'""")
    found = row("ROM set").found
    assert "~/my roms" in found and "~/elsewhere" in found
    put_rom_set(bare / "elsewhere" / "tempest1")
    assert row("ROM set") == Check("ROM set", "ok", "~/elsewhere/tempest1")


def test_a_rom_set_is_found_without_mame_too_and_must_be_complete(bare):
    place = bare / "mame" / "roms" / "tempest1"
    put_rom_set(place)
    assert row("ROM set") == Check("ROM set", "ok", "~/mame/roms/tempest1")
    (place / "136002-113.d1").unlink()
    assert row("ROM set").state == "missing" and "136002-113.d1" in row("ROM set").found


def test_a_browser_is_found(bare):
    put_program(bare / "bin", "chromium", "exit 0")
    assert row("browser") == Check("browser", "ok", f"{bare}/bin/chromium")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_in_use_says_who_has_it(taken_port, monkeypatch):
    monkeypatch.setattr(doctor, "DASHBOARD_PORT", taken_port)
    taken = row(f"port {taken_port}")
    assert taken.state == "in use" and f"process {os.getpid()}" in taken.found
    assert "next free port" in taken.advice


def test_the_disk_that_is_looked_at_is_the_one_that_runs_go_to(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEGE_RUNS", str(tmp_path / "elsewhere"))
    assert row("disk").found.endswith(f"for {tmp_path}/elsewhere")


def test_a_full_disk_is_required_to_be_mended(monkeypatch):
    monkeypatch.setattr(doctor, "ENOUGH_DISK_GB", 1e12)
    assert row("disk").state == "missing" and row("disk").required


def test_full_starts_torch():
    pytest.importorskip("torch")
    torch = next(row for row in doctor.inspect(full=True) if row.name == "torch")
    assert torch.state == "ok" and "CPU" in torch.found and "threads" in torch.found
