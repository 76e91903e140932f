"""The demo cabinet: its ROM set, its picture in real MAME, and the commands that use it."""

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from protege.cli import __main__ as cli
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig
from protege.games.tempest.arcade.demo import picture
from protege.games.tempest.arcade.demo.assembler import assemble
from protege.games.tempest.arcade.demo.cabinet import demo_program, demo_roms, rom_set, write_rom_set
from protege.games.tempest.arcade.mame import ROM_FILES, Emulator, find_rom_set
from protege.games.tempest.arcade.streams import Decisions, Places
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import Frames
from tests.games.tempest.arcade.mame import Mame, images, press, until

SNAPSHOT = Path(__file__).with_name("probe.lua")


def test_the_set_has_every_file_that_mame_expects(tmp_path):
    write_rom_set(tmp_path)
    assert find_rom_set([tmp_path]) == tmp_path / "tempest1"
    assert {name: len(content) for name, content in rom_set().items()} == ROM_FILES


def test_the_set_is_kept_in_the_cache_and_mended_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEGE_CACHE", str(tmp_path))
    folder = demo_roms()
    assert folder == tmp_path / "demo-cabinet" == demo_roms()
    file = folder / "tempest1" / "136002-113.d1"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    (folder / "tempest1" / "136002-124.r3").unlink()
    assert demo_roms() == folder and file.read_bytes() == whole and find_rom_set([folder])
    assert [path.name for path in folder.iterdir()] == ["tempest1"], "no drafts are left"


def test_nothing_of_it_is_a_rom_in_the_repository():
    package = Path(picture.__file__).parents[4]
    assert not [path for path in package.rglob("*") if path.name in ROM_FILES or zipfile.is_zipfile(path)]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("LDA #$10", "A910"), ("STA $0200,X", "9D0002"), ("LDA (LIST),Y", "B160"), ("ROR A", "6A"),
        (".word $1234", "3412"), (".table bytes", "0102"), (".org $9003", "EAEAEA"),
        ("JMP here", "4C0090"), ("LDX TICK", "A603"),
    ],
)  # fmt: skip
def test_instructions_become_the_codes_of_the_6502(line, code):
    program = assemble(f"LIST = $60\nhere: {line}", {"bytes": b"\x01\x02"}, {})
    assert program.code.hex().upper() == code


def test_a_line_that_makes_no_sense_is_quoted():
    for line in ("LDA #300", "FOO $10", "BEQ $A000", ".org $8000"):
        with pytest.raises(SyntaxError, match="line 2"):
            assemble(f"CLC\n{line}", {}, {})


def test_the_program_keeps_clear_of_the_byte_that_slows_mame_down():
    """A read of $AE1F makes MAME synchronise its processors."""
    symbols = demo_program().symbols
    code = [at for name, at in symbols.items() if name.islower() and 0x9000 <= at < 0xB000]
    assert max(code) < 0xAE00 and symbols["tube_corners"] == 0xB000


def test_a_tube_has_sixteen_corners_a_row_and_shrinks_with_depth():
    tables = picture.tables()
    corners = np.frombuffer(tables["places"], np.uint8).reshape(picture.SHAPES, 32, 16, 2).astype(int)
    across = np.ptp(corners[..., 0], axis=2)  # (shapes, rows)
    assert (np.diff(across, axis=1) <= 0).all() and (across[:, 2] > 150).all() and (across[:, 30] < 50).all()
    assert len(tables["angles"]) == 16 * picture.SHAPES and max(tables["angles"]) < 16
    assert list(tables["opens"]) == [0, 0xFF] * (picture.SHAPES // 2)


def test_commands_that_contradict_each_other_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROTEGE_CACHE", str(tmp_path))
    assert cli.main(["mame", "--demo", "--rom-path", str(tmp_path)]) == 2
    assert "leave out --rom-path" in capsys.readouterr().err


def test_a_window_over_a_homemade_set_skips_the_screen_that_waits_for_a_key(tmp_path):
    window = Emulator(Path("mame"), (tmp_path,), visible=True, unknown_roms=True)
    assert "-debugger" in window.command(tmp_path, None) and "-autoboot_script" not in window.command(tmp_path, None)
    assert "-debugger" not in Emulator(Path("mame"), (tmp_path,), visible=True).command(tmp_path, Path("x"))


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_without_a_display_no_window_is_opened(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROTEGE_CACHE", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert cli.main(["mame", "--demo", "--play"]) == 2
    assert "there is no display to open a window on" in capsys.readouterr().err


class Follower(Agent):
    """Does what the teacher advises."""

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        return Decisions(frames.advice, 0)


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_two_clients_play_the_demo_for_a_server_until_ctrl_c(tmp_path):
    with Bridge(Follower(), BridgeConfig(port=0)) as bridge:
        words = ["mame", "--demo", "--clients", "2", "--server", f"127.0.0.1:{bridge.port}"]
        environment = {**os.environ, "PROTEGE_CACHE": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "protege.cli", *words], env=environment, stdout=subprocess.PIPE, text=True
        )
        try:
            until(lambda: len(bridge.clients()) == 2 and all(client.frames > 150 for client in bridge.clients()))
            assert {client.activity for client in bridge.clients()} - {"attract"}, "they are in a game"
        finally:
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate()
    assert process.returncode == 0 and "2 clients stopped." in said and f"{tmp_path}/demo-cabinet/tempest1" in said


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_mame_draws_tube_player_enemies_shots_and_score(tmp_path):
    """What the board's vector generator makes of our lists: its colours, where they are."""
    from PIL import Image

    write_rom_set(tmp_path / "roms")
    inputs = [*press(5, "coin"), *press(10, "start"), *press(20, "fire"), (100, "fire", 1), (190, "snapshot", 1)]
    listed = ";".join(f"{tick} {name} {value}" for tick, name, value in inputs)
    told = {"PROBE_DUMP": tmp_path / "ram", "PROBE_INPUTS": listed, "PROBE_TICKS": 191}
    with Mame(tmp_path / "roms", tmp_path / "mame", SNAPSHOT, **told) as mame:
        assert mame.wait() == 0, mame.said[-5:]
    memory = images(tmp_path / "ram")[189]
    assert memory[ram.GAME_STATE] == ram.PLAYING and memory[ram.PLAYER_SHOTS] and memory[ram.ENEMIES_IN_TUBE]
    shot = np.asarray(Image.open(next((tmp_path / "mame" / "snapshot").rglob("*.png"))).convert("RGB")).astype(int)
    red, green, blue = (shot[..., i] > 60 for i in range(3))
    tube, yellow = blue & ~red & ~green, red & green & ~blue
    rows, columns = np.nonzero(tube)
    height, width = shot.shape[:2]
    assert np.ptp(columns) > 0.6 * width and np.ptp(rows) > 0.5 * height, "the tube fills the screen"
    assert abs(rows.mean() / height - 0.5) < 0.1 and abs(columns.mean() / width - 0.5) < 0.1
    score = (green & ~red & ~blue)[: height // 8]
    assert score[:, : width // 3].sum() > 50 and score[:, width // 3 :].sum() > 100, (
        "points, level and lives are on top"
    )
    assert yellow.sum() > 30, "player and shots"
    enemies = red & (shot[..., 1] < shot[..., 0] // 2)
    assert enemies.sum() > 3 and enemies[rows.min() : rows.max(), columns.min() : columns.max()].sum() == enemies.sum()
