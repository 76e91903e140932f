"""Real MAME for tests: started headless with the demo cabinet, listened to, and always ended."""

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

from protege.games.tempest.arcade import wire
from protege.games.tempest.arcade.fleet import SCRIPTS
from protege.games.tempest.arcade.mame import Emulator, find_mame
from protege.games.tempest.rules import ram

PROBE = Path(__file__).with_name("probe.lua")
CLIENT = SCRIPTS / "main.lua"
PATIENCE_S = 60.0  # for anything that should take a few seconds: the machine may be busy


def until(what: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + patience_s
    while not what():
        assert time.monotonic() < deadline, f"not within {patience_s:g} s"
        time.sleep(0.02)


class Mame:
    """A MAME process with a script; the block's end is its own."""

    def __init__(self, roms: Path, folder: Path, script: Path = CLIENT, **environment: object):
        self.folder = folder
        given = {name: str(value) for name, value in environment.items()}
        self.process = Emulator(find_mame(), (roms,)).start(folder, script, given)
        self.said: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._listener.join()

    def _listen(self) -> None:
        assert self.process.stdout
        with self.process.stdout as lines:
            self.said += (line.rstrip() for line in lines)

    def wait(self) -> int:
        """Its exit code, once it has ended by itself."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"MAME did not end; it said {self.said[-5:]}") from None


def probed(roms: Path, folder: Path, ticks: int, inputs: Sequence[tuple[int, str, int]] = ()) -> list[bytes]:
    """RAM after each of so many ticks, with controls worked by (tick, name, value); the first tick is number 1."""
    listed = ";".join(f"{tick} {name} {value}" for tick, name, value in inputs)
    dump = folder.with_suffix(".ram")
    with Mame(roms, folder, PROBE, PROBE_DUMP=dump, PROBE_INPUTS=listed, PROBE_TICKS=ticks) as mame:
        assert mame.wait() == 0, mame.said[-5:]
    return images(dump)


def images(dump: Path) -> list[bytes]:
    """The memory images of a probe's file."""
    everything = dump.read_bytes()
    return [everything[i : i + ram.RAM_BYTES] for i in range(0, len(everything), ram.RAM_BYTES)]


def press(tick: int, name: str, ticks: int = 2) -> list[tuple[int, str, int]]:
    """A button held for some ticks."""
    return [(tick, name, 1), (tick + ticks, name, 0)]


# --- what goes over the wire -----------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """Both directions of one connection."""

    sent: bytearray = field(default_factory=bytearray)  # by the client
    replied: bytearray = field(default_factory=bytearray)

    def frames(self) -> wire.Packets:
        """The whole frames behind the greeting."""
        found = wire.read_greeting(memoryview(bytes(self.sent)))
        assert found is not None
        body = bytes(self.sent[found[1] :])
        return np.frombuffer(body[: len(body) // wire.FRAME.itemsize * wire.FRAME.itemsize], wire.FRAME)

    def commands(self) -> list[tuple[int, int, int]]:
        """The replies behind the answer to the greeting."""
        body = bytes(self.replied[wire.ANSWER.size :])
        return list(wire.REPLY.iter_unpack(body[: len(body) // wire.REPLY.size * wire.REPLY.size]))


class Tap:
    """Stands between clients and a server, passes everything on and keeps a copy."""

    def __init__(self, port: int):
        self.server_port = port
        self.recorded: list[Recorded] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def reset(self) -> None:
        """Break every connection as a machine does that loses its power: no goodbye."""
        while self._open:
            connection = self._open.pop()
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.server_port))
                except OSError:
                    client.close()
                    continue
                self._open += [client, server]
                recorded = Recorded()
                self.recorded.append(recorded)
                for source, target, kept in ((client, server, recorded.sent), (server, client, recorded.replied)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=_pass_on, args=(source, target, kept), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    with suppress(OSError):
        while received := source.recv(65536):
            kept += received
            target.sendall(received)
        target.shutdown(socket.SHUT_RDWR)
