"""`protege mame`: what it looks for and says, and how it looks after real MAME processes."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from protege.cli import __main__ as cli
from protege.games.tempest.arcade import mame, wire
from protege.games.tempest.arcade.bridge import Agent, Bridge, BridgeConfig
from protege.games.tempest.arcade.demo.cabinet import write_rom_set
from protege.games.tempest.arcade.fleet import SCRIPTS, Fleet, Settings, find_server, fleet_beside
from protege.games.tempest.arcade.mame import ROM_FILES, ArcadeError, Emulator, find_mame, find_rom_set
from protege.games.tempest.arcade.streams import Decisions, Places
from protege.games.tempest.rules import ram
from protege.games.tempest.task.env import Frames
from protege.runs.checkpoints import load
from protege.runs.run import open_run
from tests.games.tempest.arcade.mame import PATIENCE_S, PROBE, Mame, images, press, until


class Follower(Agent):
    """Does what the teacher advises."""

    def decide(self, frames: Frames, clients: Places) -> Decisions:
        return Decisions(frames.advice, 0)


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    with Bridge(Follower(), BridgeConfig(port=0)) as bridge:
        yield bridge


@pytest.fixture
def roms(tmp_path: Path) -> Path:
    write_rom_set(tmp_path / "roms")
    return tmp_path / "roms"


def server(bridge: Bridge) -> str:
    return f"127.0.0.1:{bridge.port}"


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as there:
        return int(there.getsockname()[1])


# --- what is missing -------------------------------------------------------------------------------------------------


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without MAME."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(mame, "MAME_FOLDERS", ())
    return tmp_path


@pytest.fixture
def stranger(bare: Path) -> Path:
    """A machine with a program that calls itself MAME and looks for ROM sets in an empty folder."""
    (bare / "bin").mkdir()
    program = bare / "bin" / "mame"
    program.write_text(f"#!/bin/sh\necho '0.251 (unknown)'\necho 'rompath {bare}/empty'\n")
    program.chmod(0o755)
    return bare


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(["mame", *words]) == 2
    streams = capsys.readouterr()
    line, end, rest = streams.err.partition("\n")
    assert line.startswith("protege: ") and end and not rest and not streams.out, "one line"
    return line


def test_without_mame_it_says_how_to_get_it(bare, capsys):
    line = complaint(capsys)
    assert "MAME is not installed" in line and "apt-get install mame" in line and "--mame PATH" in line
    assert "is not a program" in complaint(capsys, "--mame", str(bare / "nothing"))


def test_without_the_rom_set_it_says_what_it_looked_for_and_where(stranger, capsys):
    line = complaint(capsys)
    assert f"no ROM set tempest1 in {stranger}/empty" in line and "tempest1.zip" in line and "--rom-path DIR" in line
    (stranger / "empty").mkdir()
    (stranger / "empty" / "tempest2.zip").touch()
    assert "there is tempest2.zip, another version of the game" in complaint(capsys)


def test_an_incomplete_rom_set_is_told_by_its_files(stranger, capsys):
    write_rom_set(stranger / "mine")
    (stranger / "mine" / "tempest1" / "136002-113.d1").unlink()
    (stranger / "mine" / "tempest1" / "136002-126.a1").unlink()
    line = complaint(capsys, "--rom-path", str(stranger / "mine"))
    assert "2 of the 20 files of tempest1 are missing: 136002-113.d1, 136002-126.a1" in line and "tempest.zip" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--server", "9999"], "9999 is no server address; give HOST:PORT"),
        (["--server", "127.0.0.1:99999"], "is no server address"),
        (["--server", "no-such-machine.invalid:9999"], "there is no machine called no-such-machine.invalid"),
        (["--server", f"127.0.0.1:{closed_port()}"], "start one with protege serve"),
        (["--frameskip", "5"], "--visible"),
        (["--clients", "37"], "a server takes 1 to 36"),
        (["--clients", "0"], "a server takes 1 to 36"),
        (["--start-level", "82"], "give 1 to 81"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(stranger, capsys, words, said):
    write_rom_set(stranger / "mine")
    assert said in complaint(capsys, "--rom-path", str(stranger / "mine"), *words)


# --- the ROM set -----------------------------------------------------------------------------------------------------


def archive(path: Path, names: list[str], under: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(under + name, bytes(ROM_FILES[name]))
    return path


PROGRAM = [name for name, size in ROM_FILES.items() if size == 2048]
PROMS = [name for name in ROM_FILES if name not in PROGRAM]


def test_a_set_may_be_a_zip_or_share_files_with_its_parent_or_be_inside_it(tmp_path):
    for name in ("whole", "split", "merged"):
        (tmp_path / name).mkdir()
    whole = archive(tmp_path / "whole" / "tempest1.zip", list(ROM_FILES))
    split = archive(tmp_path / "split" / "tempest1.zip", PROGRAM)
    archive(tmp_path / "split" / "tempest.zip", PROMS)
    merged = archive(tmp_path / "merged" / "tempest.zip", list(ROM_FILES), under="tempest1/")
    assert find_rom_set([tmp_path / "nowhere", tmp_path / "whole"]) == whole
    assert find_rom_set([tmp_path / "split"]) == split
    assert find_rom_set([tmp_path / "merged"]) == merged
    (tmp_path / "split" / "tempest.zip").unlink()
    with pytest.raises(ArcadeError, match="8 of the 20 files.*136002-125.d7.*needs tempest.zip beside it"):
        find_rom_set([tmp_path / "split"])


def test_files_of_the_wrong_size_and_broken_archives_are_named(roms, tmp_path):
    (roms / "tempest1" / "136002-126.a1").write_bytes(bytes(31))
    with pytest.raises(ArcadeError, match="136002-126.a1 has 31 bytes, not 32"):
        find_rom_set([roms])
    (tmp_path / "tempest1.zip").write_bytes(b"no archive")
    with pytest.raises(ArcadeError, match=r"tempest1.zip cannot be read.*get a sound copy"):
        find_rom_set([tmp_path])


# --- the server ------------------------------------------------------------------------------------------------------


def test_a_server_is_asked_before_clients_are_started(bridge):
    assert find_server(Settings(f"localhost:{bridge.port}")) == server(bridge), "the host as a number"
    with Bridge(Follower(), BridgeConfig(port=0, token="sesame", most_clients=1)) as strict:
        with pytest.raises(ArcadeError, match="asks for a token, and not this one"):
            find_server(Settings(server(strict), token="wrong"))
        with socket.create_connection(("127.0.0.1", strict.port)) as guest:
            guest.sendall(wire.greet("sesame"))
            until(strict.clients)
            with pytest.raises(ArcadeError, match="has all the clients it takes"):
                find_server(Settings(server(strict), token="sesame"))


@contextmanager
def answering(said: bytes) -> Iterator[str]:
    """Something that answers whoever connects, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as there:

        def answer() -> None:
            connection, _ = there.accept()
            with connection:
                connection.sendall(said)
                connection.recv(1000)

        threading.Thread(target=answer, daemon=True).start()
        yield f"127.0.0.1:{there.getsockname()[1]}"


def test_other_servers_are_told_apart_from_older_ones_of_our_kind():
    with answering(b"HTTP/1.1 400 Bad Request\r\n") as web, pytest.raises(ArcadeError, match="no server of Protege"):
        find_server(Settings(web))
    with answering(b"") as old:
        assert find_server(Settings(old)) == old


# --- other machines --------------------------------------------------------------------------------------------------


def test_the_client_is_copied_with_what_it_has_to_know(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PROTEGE_TOKEN", "open sesame")
    assert cli.main(["mame", "--copy-client", str(tmp_path / "copy"), "--server", "10.1.2.3:9999", "--overlay"]) == 0
    copied = {path.name: path.read_text() for path in (tmp_path / "copy").iterdir()}
    assert copied.pop("settings.txt") == "server = 10.1.2.3:9999\ntoken = open sesame\noverlay = yes\n"
    assert copied == {path.name: path.read_text() for path in SCRIPTS.glob("*.lua")} and "main.lua" in copied
    start = shlex.split(capsys.readouterr().out.partition("starts with: ")[2])
    assert start[:2] == ["mame", "tempest1"] and start[-2:] == ["-autoboot_script", str(tmp_path / "copy" / "main.lua")]


def test_without_settings_no_file_of_them_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("PROTEGE_TOKEN", raising=False)
    assert cli.main(["mame", "--copy-client", str(tmp_path / "copy")]) == 0
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {path.name for path in SCRIPTS.glob("*.lua")}


def test_the_command_for_other_machines_names_a_server_they_can_reach():
    assert Settings().elsewhere(4) == "On another machine: protege mame --clients 4 --server THIS-MACHINE:9999"
    assert "--server THIS-MACHINE:7777" in Settings("0.0.0.0:7777").elsewhere(4)
    told = Settings("10.1.2.3:7777", token="sesame", start_level=9).elsewhere(1)
    assert told.endswith('protege mame --clients 1 --server 10.1.2.3:7777 --start-level 9 --token "$PROTEGE_TOKEN"')


# --- how clients are started -----------------------------------------------------------------------------------------


def options(**settings: Any) -> str:
    command = Emulator(Path("/usr/games/mame"), (Path("/roms"),), **settings).command(Path("/own"), Path("/main.lua"))
    return " ".join(command)


def test_clients_run_without_a_window_as_fast_as_they_can_unless_they_are_to_be_seen():
    hidden = options()
    assert hidden.startswith("/usr/games/mame tempest1 ") and hidden.endswith("-autoboot_script /main.lua")
    assert "-video none -nothrottle" in hidden and "-cfg_directory /own/cfg -nvram_directory /own/nvram" in hidden
    assert "-window -nomaximize -throttle" in options(visible=True) and "-video none" not in options(visible=True)
    assert "-nothrottle -noautoframeskip -frameskip 5" in options(visible=True, frameskip=5)


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_a_client_that_dies_again_and_again_is_started_after_longer_and_longer_pauses(tmp_path):
    program = tmp_path / "mame"
    program.write_text("#!/bin/sh\necho protege: frames 5 state connected\n")
    program.chmod(0o755)
    fleet = Fleet(Emulator(program, (tmp_path,)), Settings(), 1, tmp_path / "own")
    (tmp_path / "own").mkdir()
    (client,) = fleet.clients
    starts: list[float] = []
    while client.restarts < 3:
        before = client.process
        fleet.tend()
        if client.process is not None and before is None:
            starts.append(time.monotonic())
        time.sleep(0.01)
    assert starts[1] - starts[0] >= 1.0 and starts[2] - starts[1] >= 2.0 and client.pause_s == 4.0
    assert client.false_starts == 0, "it had begun each time"


# --- real MAME -------------------------------------------------------------------------------------------------------


class Launcher:
    """`protege mame` in a process of its own, what it told, and the emulators it started."""

    def __init__(self, folder: Path, words: list[str], output: int = subprocess.PIPE):
        command = [sys.executable, "-m", "protege.cli", "mame", *words]
        places = {"TMPDIR": str(folder), "PROTEGE_RUNS": str(folder / "runs")}
        self.process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, text=True, env={**os.environ, **places}
        )
        self.itself = psutil.Process(self.process.pid)
        self.seen: set[psutil.Process] = set()
        self.told: list[str] = []
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.told.append(line)

    def clients(self) -> list[psutil.Process]:
        found = []
        for child in self.itself.children():
            with suppress(psutil.NoSuchProcess):  # it may end while it is looked at
                if child.name().startswith("mame"):
                    found.append(child)
        self.seen.update(found)
        return found

    def end(self, patience_s: float = 60.0) -> str:
        """Ask it to end, and everything it told."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=patience_s)
        self.listener.join()
        assert code == 0, self.told
        return "".join(self.told)

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.itself, *self.seen):
            if process.is_running():
                process.kill()
        self.process.wait()
        self.listener.join()
        if self.process.stdout:
            self.process.stdout.close()


@pytest.mark.mame
@pytest.mark.needs("mame")
@pytest.mark.skipif(os.name == "nt", reason="a shell of another kind")
def test_the_command_that_copying_prints_starts_a_client_as_it_is(tmp_path, bridge, capsys):
    folder = tmp_path / "the client"  # a name that a shell would take for two
    assert cli.main(["mame", "--copy-client", str(folder), "--server", server(bridge)]) == 0
    printed = capsys.readouterr().out.partition("A client there starts with: ")[2].strip()
    home = tmp_path / "home"
    write_rom_set(home / "mame" / "roms")  # where MAME looks by itself
    # Another machine: nothing of ours in its environment, no screen, MAME on the PATH.
    path = os.pathsep.join([str(find_mame().parent), os.environ.get("PATH", os.defpath)])
    client = subprocess.Popen(
        printed, shell=True, cwd=tmp_path, env={"HOME": str(home), "PATH": path}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: any(there.frames > 20 and there.activity == "playing" for there in bridge.clients()))
        assert client.poll() is None and bridge.tallies.keys() == {"came"}
    finally:
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_clients_are_started_revived_and_ended(roms, tmp_path, bridge):
    with Launcher(tmp_path, ["--clients", "2", "--server", server(bridge), "--rom-path", str(roms)]) as launcher:
        until(lambda: len(bridge.clients()) == 2 and all(client.frames > 20 for client in bridge.clients()))
        assert {client.name for client in bridge.clients()} == {f"{socket.gethostname()}-{n}" for n in (1, 2)}
        first, second = launcher.clients()
        first.kill()
        until(lambda: len(launcher.clients()) == 2 and first not in launcher.clients())
        assert second in launcher.clients()
        until(lambda: len(bridge.clients()) == 2)
        until(lambda: any("of 2 clients run" in line for line in launcher.told))
        output = launcher.end()
        assert bridge.tallies["saves passed on"] == 1, "they left in good order"
        assert not any(process.is_running() for process in launcher.seen), "nothing is left"
        assert not list(tmp_path.glob("protege-mame-*"))
    assert output.splitlines()[0].startswith("MAME 0.") and str(roms / "tempest1") in output
    assert "On another machine: protege mame --clients 2" in output
    assert output.endswith("2 clients stopped.\n")


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_one_command_starts_learner_page_and_clients_and_ends_them(roms, tmp_path):
    words = ["--serve", "--clients", "2", "--server", f"127.0.0.1:{closed_port()}", "--rom-path", str(roms)]
    with Launcher(tmp_path, words) as launcher:
        told = launcher.told
        until(lambda: sum("came" in line for line in told) >= 2 and any("dashboard: " in line for line in told), 180.0)
        assert len(launcher.clients()) == 2
        page = next(line for line in told if "dashboard: " in line).partition("dashboard: ")[2].partition("#")[0]
        until(lambda: json.load(urlopen(f"{page}api/runs"))[0]["step"] > 0, 180.0)
        (run,) = json.load(urlopen(f"{page}api/runs"))
        (arcade,) = json.load(urlopen(f"{page}api/games/tempest"))["arcades"]
        assert arcade == {"server": words[4].partition(":")[2], "player": run["name"]}
        launcher.end(120.0)
        assert not any(process.is_running() for process in launcher.seen), "nothing is left"
    with open_run(run["name"], tmp_path / "runs") as left:
        assert load(left.last).state["step"] > 0 and left.status() == "stopped"
    assert any(f"protege serve --resume --run {run['name']}" in line for line in told)


@pytest.mark.mame
@pytest.mark.needs("mame")
@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals")
def test_in_a_terminal_there_is_a_table_and_ctrl_c_ends_it(roms, tmp_path, bridge):
    screen, terminal = os.openpty()
    drawn = bytearray()

    def watch() -> None:
        try:
            while piece := os.read(screen, 4096):
                drawn.extend(piece)
        except OSError:  # the other end is closed
            pass

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with Launcher(tmp_path, ["--server", server(bridge), "--rom-path", str(roms)], terminal) as launcher:
        until(lambda: b" connected " in drawn)
        until(lambda: launcher.clients())
        launcher.process.send_signal(signal.SIGINT)
        assert launcher.process.wait(timeout=60) == 0
        assert not any(process.is_running() for process in launcher.seen)
    os.close(terminal)
    watcher.join()
    os.close(screen)
    assert b"frames/s" in drawn and b"1 client stopped." in drawn


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_clients_leave_when_whoever_started_them_is_killed(roms, tmp_path, bridge):
    with Launcher(tmp_path, ["--server", server(bridge), "--rom-path", str(roms)]) as launcher:
        until(lambda: bridge.clients() and launcher.clients())
        launcher.process.kill()
        until(lambda: not any(process.is_running() for process in launcher.seen))


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_clients_beside_a_server_live_as_long_as_it_and_a_signal_to_end_is_as_good_as_ctrl_c(roms, bridge):
    emulator, settings = Emulator(find_mame(), (roms,)), Settings(server(bridge))
    with pytest.raises(KeyboardInterrupt), fleet_beside(emulator, settings, 1, print) as fleet:
        until(bridge.clients)
        process = fleet.clients[0].process
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE_S)
    assert process is not None and process.poll() == 0
    until(lambda: not bridge.clients())


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_a_client_that_cannot_start_ends_the_fleet_with_what_mame_said(tmp_path):
    (tmp_path / "empty").mkdir()
    fleet = Fleet(Emulator(find_mame(), (tmp_path / "empty",)), Settings(), 1, tmp_path)
    with pytest.raises(ArcadeError, match=r"ended 3 times before it began.*Required files are missing"):
        for _ in range(1000):
            fleet.tend()
            time.sleep(0.05)
    assert fleet.clients[0].restarts == 2


@pytest.mark.mame
@pytest.mark.needs("mame")
def test_switches_that_somebody_changed_are_as_they_left_the_factory_at_the_next_start(roms, tmp_path):
    five_lives = '<port tag=":DSW2" type="DIPSWITCH" mask="192" defvalue="0" value="128" />'
    changed = f'<mameconfig version="10"><system name="tempest1"><input>{five_lives}</input></system></mameconfig>'
    inputs = ";".join(f"{t} {n} {v}" for t, n, v in [(4, "$06", 1), *press(5, "start")])
    told = {"PROBE_DUMP": str(tmp_path / "ram"), "PROBE_INPUTS": inputs, "PROBE_TICKS": "12"}

    def lives() -> int:
        return images(tmp_path / "ram")[-1][ram.LIVES]

    folder = tmp_path / "client"
    (folder / "cfg").mkdir(parents=True)
    (folder / "cfg" / "tempest1.cfg").write_text(changed)
    command = Emulator(find_mame(), (roms,)).command(folder, PROBE)
    subprocess.run(command, env={**os.environ, **told, "SDL_VIDEODRIVER": "dummy"}, capture_output=True, timeout=60)
    assert lives() == 5, "MAME takes the switches from there"
    with Mame(roms, folder, PROBE, **told) as client:
        client.wait()
    assert lives() == 3
