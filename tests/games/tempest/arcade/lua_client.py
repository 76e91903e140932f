"""The Lua client outside MAME: main.lua and its parts run inside Python, with a table in place of the emulator.

`Client` loads the scripts as MAME does and hands them memory images, a clock, buttons and a socket, all in the test's
hands. `expected_frame` is what the Python path says a client must send for the same memory. The real emulator is
another test's; here it would be too slow for thousands of images and too well-behaved for broken connections.
"""

import importlib
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from protege.games.tempest.rules import ram
from protege.games.tempest.rules.sim import step_game
from protege.games.tempest.task import rewards, teacher
from protege.seeds import STREAM_STEP
from tests.games.tempest.task.scenes import changed, observed, scene

FOLDER = Path(__file__).parents[4] / "protege" / "games" / "tempest" / "arcade" / "lua"
VERSIONS = ("lua53", "lua54")  # those of MAME 0.251 and of today's
IMAGE_BYTES = 0x3FE
FRAME = struct.Struct(">HHddBBBHIBBBhhBBBBB195f")
HEADER_NAMES = (
    "length count subjective objective state mode died frame score save fire zap spinner target lane open advised_fire "
    "advised_zap level"
).split()
NEUTRAL = bytes(3)
SEED = 20_240_229
SEEDED = {"PROTEGE_SEED": str(SEED)}
WELCOME = bytes([0x50, 1, 0, 0, 0])

# What the scripts use of MAME, as plain as can be. `host` is shared with Python.
EMULATOR = rb"""
local host = ...
host.fields, host.written, host.said, host.drawn, host.sockets = {}, {}, {}, {}, 0

local Socket = {}
Socket.__index = Socket
function Socket:open(name) return host.connect(name) end
function Socket:close() host.closed() end
function Socket:write(text)
  local count, answer = host.receive(text)
  self.inbox = self.inbox .. answer
  return count
end
function Socket:read(count)
  local size = math.min(count, host.chunk)
  local text = self.inbox:sub(1, size)
  self.inbox = self.inbox:sub(size + 1)
  return text
end

local memory = {}
function memory:read_u8(address) return host.rom[address] or host.ram:byte(address + 1) end
function memory:read_range(first, last, width)
  assert(width == 8)
  if host.broken then error("the memory is broken") end
  return host.ram:sub(first + 1, last + 1)
end
function memory:write_u8(address, value) host.written[address] = value & 0xFF end
function memory:write_direct_u8(address, value) host.written[address] = value & 0xFF end

local function port(tag)
  return {
    field = function(_, mask)
      return { set_value = function(_, value) host.fields[("%s %02X"):format(tag, mask)] = value end }
    end,
  }
end

local machine = {
  system = { name = host.system }, paused = false, video = { throttled = host.throttled, throttle_rate = 1.0 },
  devices = { [":maincpu"] = { spaces = { program = memory } } },
  ioport = { ports = { [":BUTTONSP1"] = port(":BUTTONSP1"), [":IN2"] = port(":IN2") } },
  render = { ui_container = { draw_text = function(_, _, _, text) table.insert(host.drawn, text) end } },
}
manager = { machine = machine }
host.machine = machine

emu = {
  osd_ticks = function()
    host.now = host.now + host.clock_step
    return host.now * 1000000 // 1
  end,
  osd_ticks_per_second = function() return 1000000 end,
  pause = function() machine.paused = true end,
  unpause = function() machine.paused = false end,
  file = function(mode)
    assert(mode == "rw")
    host.sockets = host.sockets + 1
    host.socket = setmetatable({ inbox = "" }, Socket)
    return host.socket
  end,
}
-- A notifier lives as long as its handle, as in MAME.
local alive = setmetatable({}, { __mode = "v" })
local function notifier(kind)
  return function(callback)
    local handle = { callback = callback }
    alive[kind] = handle
    return handle
  end
end
if host.notifiers then
  emu.add_machine_frame_notifier, emu.add_machine_stop_notifier = notifier("frame"), notifier("stop")
  host.each_frame = function() if alive.frame then alive.frame.callback() end end
  host.at_exit = function() if alive.stop then alive.stop.callback() end end
else
  emu.register_frame_done = function(callback) host.each_frame = callback end
  emu.register_stop = function(callback) host.at_exit = callback end
end

os.getenv = function(name) return host.environment[name] end
os.exit = function(code)
  host.exit_code = code
  error("the emulator has ended")
end
function host.run(script)
  local ok, why = pcall(script)
  if not ok and not host.exit_code then error(why, 0) end
  return host.exit_code
end
print = function(text) table.insert(host.said, text) end
io.stdout = {
  setvbuf = function() end,
  write = function(_, text)
    if host.deaf then return nil, "Broken pipe" end
    table.insert(host.said, text:sub(1, -2))
    return io.stdout
  end,
}
host.globals = {}
setmetatable(_G, { __newindex = function(globals, name, value)
  host.globals[#host.globals + 1] = name
  rawset(globals, name, value)
end })
"""


class Exit(Exception):
    """The scripts ended the emulator, with this code and after these words."""

    def __init__(self, code: int, said: list[str]):
        super().__init__(code)
        self.said = said


class Client:
    """The scripts, the emulator they think they run in, and the server they think they talk to.

    The server answers the greeting with `welcome` (None: not at all) and each frame with what `policy` returns.
    """

    def __init__(
        self,
        version: str = "lua54",
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path = FOLDER,
        policy: Callable[[bytes], bytes] = lambda frame: NEUTRAL,
        welcome: bytes | None = WELCOME,
        system: str = "tempest1",
        notifiers: bool = False,
        throttled: bool = False,
    ):
        module = importlib.import_module(f"lupa.{version}")
        self.lua: Any = module.LuaRuntime(
            encoding=None, unpack_returned_tuples=True, register_eval=False, register_builtins=False
        )
        self.policy, self.welcome, self.folder = policy, welcome, folder
        self.reachable = True  # whether a server listens
        self.connected = False
        self.greetings: list[bytes] = []
        self.frames: list[bytes] = []
        self.host = self.lua.table()
        self.set(now=100.0, clock_step=0.0001, chunk=1000, system=system.encode(), notifiers=notifiers, broken=False)
        self.set(throttled=throttled, rom=self.lua.table())
        self.set(ram=bytes(IMAGE_BYTES), connect=self._connect, closed=self._closed, receive=self._receive)
        settings = {name.encode(): value.encode() for name, value in (environment or {}).items()}
        self.set(environment=self.lua.table_from(settings))
        self.lua.execute(EMULATOR, self.host)
        self.run_script()

    def run_script(self) -> None:
        """Run main.lua, as MAME does at the start and after a reset of the machine."""
        path = self.folder / "main.lua"
        load = self.lua.eval(b"function(text, name) return assert(load(text, name)) end")
        self._run(load(path.read_bytes(), b"@" + str(path).encode()))

    def _run(self, script: Any) -> None:
        code = self.get("run")(script)
        if code is not None:
            raise Exit(code, self.said)

    def part(self, name: str) -> Any:
        """One of the modules by itself."""
        load = self.lua.eval(b"function(text, name, ...) return assert(load(text, name))(...) end")
        source = (self.folder / f"{name}.lua").read_bytes()
        given = [self.part("state")] if name in ("logic", "display") else []
        return load(source, f"@{name}.lua".encode(), *given)

    # --- the emulator's side --------------------------------------------------------------------------------------

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            self.host[name.encode()] = value

    def get(self, name: str) -> Any:
        return self.host[name.encode()]

    def video_frame(self, memory: bytes | None = None, after_s: float = 0.0) -> None:
        """One video frame of the emulator, so many seconds later, with new memory or the same."""
        self.set(now=self.get("now") + after_s, drawn=self.lua.table())
        if memory is not None:
            self.set(ram=memory[:IMAGE_BYTES])
        self._run(self.get("each_frame"))

    def exit(self) -> None:
        """The emulator stops."""
        self._run(self.get("at_exit"))

    @property
    def buttons(self) -> tuple[int, int, int]:
        """Fire, zap and start as last set."""
        fields = self.get("fields")
        return fields[b":BUTTONSP1 02"], fields[b":BUTTONSP1 01"], fields[b":IN2 20"]

    @property
    def spinner(self) -> int:
        value = self.get("written")[ram.SPINNER]
        return value - 256 if value > 127 else value  # type: ignore[no-any-return]

    @property
    def patches(self) -> dict[int, int]:
        """Bytes written so far, the spinner apart."""
        return {address: value for address, value in self.get("written").items() if address != ram.SPINNER}

    @property
    def said(self) -> list[str]:
        return [line.decode() for line in self.get("said").values()]

    @property
    def paused(self) -> bool:
        return self.get("machine")[b"paused"]  # type: ignore[no-any-return]

    @property
    def throttled(self) -> bool:
        return self.get("machine")[b"video"][b"throttled"]  # type: ignore[no-any-return]

    @property
    def throttle_rate(self) -> float:
        return self.get("machine")[b"video"][b"throttle_rate"]  # type: ignore[no-any-return]

    # --- the server's side ----------------------------------------------------------------------------------------

    def send(self, text: bytes) -> None:
        """Bytes from the server, out of turn."""
        socket = self.get("socket")
        socket[b"inbox"] = socket[b"inbox"] + text

    def _connect(self, name: bytes) -> bytes | None:
        assert name.startswith(b"socket."), name
        self.address = name.removeprefix(b"socket.").decode()
        self.connected = self.reachable
        return None if self.reachable else b"Connection refused"

    def _closed(self) -> None:
        self.connected = False

    def _receive(self, text: bytes) -> tuple[int, bytes]:
        assert self.connected, "written to a closed socket"
        if not self.reachable:
            return 0, b""
        if len(text) != FRAME.size:
            self.greetings.append(text)
            return len(text), (self.welcome or b"") if text != b"\0\0" else b""
        self.frames.append(text)
        return len(text), self.policy(text)


def header(frame: bytes) -> dict[str, Any]:
    """A frame's fields by name, without the values."""
    return dict(zip(HEADER_NAMES, FRAME.unpack(frame)))


def reply(fire: int, zap: int, spinner: int) -> bytes:
    return struct.pack("bbb", fire, zap, spinner)


def numbered(memory: bytes | bytearray, number: int) -> bytes:
    """The same memory in another tick."""
    return bytes(changed(bytearray(memory), f"{ram.TICK:X}={number & 0xFF:02X}"))


def ticks(client: Client, *memories: bytes | bytearray, after_s: float = 0.04) -> None:
    """One tick after the other, numbered on from wherever the client is."""
    for memory in memories:
        client.video_frame(numbered(memory, client.get("ram")[ram.TICK] + 1), after_s)


def in_play(lane: int = 5, more: str = "") -> bytes:
    return bytes(scene(lane, more="05=C0 " + more))


def expected_frame(row: ram.Row, number: int, seed: int, echo: bytes = NEUTRAL, save: bool = False) -> bytes:
    """What a client must send for a game's row, by the Python path; `seed` is the client's, `number` the frame's."""
    row = row.copy()
    stream = (seed + (number - 1) * int(STREAM_STEP)) % 2**64
    row[ram.PLAYER_STREAM : ram.PLAYER_STREAM + 8] = np.frombuffer(stream.to_bytes(8, "little"), np.uint8)
    row[ram.FRAMES : ram.FRAMES + 8] = 0
    target, fire, zap = teacher.advise(row, teacher.MEET)
    died = bool(rewards.died(row))
    subjective = 0.0 if died else rewards.subjective_reward(row)
    return FRAME.pack(
        FRAME.size - 2, 195, subjective, rewards.objective_reward(row), row[ram.GAME_STATE], row[ram.GAME_MODE], died,
        number % 65536, ram.bcd_score(row, ram.SCORE_LOW), save, *struct.unpack("bbb", echo),
        target, row[ram.PLAYER_LANE] & 15, bool(row[ram.OPEN]), fire, zap, row[ram.LEVEL_INDEX],
        *observed(row).tolist(),
    )  # fmt: skip


def play(client: Client, row: ram.Row, ticks: int) -> Iterator[int]:
    """Let the client work the controls of a simulated machine; yields the number of each tick it has seen."""
    for number in range(1, ticks + 1):
        client.set(written=client.lua.table())
        client.video_frame(row[: ram.RAM_BYTES].tobytes())
        yield number
        for address, value in client.patches.items():
            row[address] = value
        fire, zap, start = client.buttons
        step_game(row, bool(fire), bool(zap), bool(start), client.spinner)
