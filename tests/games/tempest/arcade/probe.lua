-- Runs inside MAME for tests/games/tempest/arcade/mame.py: writes the whole RAM to a file once a game tick and works
-- the controls by a list.
--
-- PROBE_DUMP    the file: 2 KiB for each tick, in the moment in which a client reads them
-- PROBE_INPUTS  "TICK NAME VALUE" as often as wanted, apart by ";": a control, an address such as $06 to write to, or
--               "snapshot", a picture in MAME's folder for them
-- PROBE_TICKS   leave after so many ticks, with code 0
-- PROBE_CLIENT  a client script to run as well; its callback comes after this one's, so both see the same memory

if probe then return end -- a reset of the machine runs the script again
probe = {}

local machine = manager.machine
local memory = machine.devices[":maincpu"].spaces["program"]
local function field(tag, mask) return machine.ioport.ports[tag]:field(mask) end
local CONTROLS = {
  fire = field(":BUTTONSP1", 0x02),
  zap = field(":BUTTONSP1", 0x01),
  start = field(":IN2", 0x20),
  coin = field(":IN0", 0x04),
  dial = field(":KNOBP1", 0x0F),
}

local inputs = {} -- by tick
for tick, name, value in (os.getenv("PROBE_INPUTS") or ""):gmatch("(%d+) (%S+) (%d+)") do
  tick = tonumber(tick)
  inputs[tick] = inputs[tick] or {}
  table.insert(inputs[tick], { name, tonumber(value) })
end

local last_tick = tonumber(os.getenv("PROBE_TICKS")) or math.huge
local dump = os.getenv("PROBE_DUMP") and assert(io.open(os.getenv("PROBE_DUMP"), "wb"))
local ticks, seen = 0, nil

local function step()
  local tick = memory:read_u8(0x03)
  if tick == seen then return end
  seen, ticks = tick, ticks + 1
  if dump then dump:write(memory:read_range(0, 0x7FF, 8)) end
  for _, input in ipairs(inputs[ticks] or {}) do
    local name, value = input[1], input[2]
    local address = name:match("^%$(%x+)$")
    if name == "snapshot" then
      machine.video:snapshot()
    elseif address then
      memory:write_u8(tonumber(address, 16), value)
    else
      CONTROLS[name]:set_value(value)
    end
  end
  if ticks >= last_tick then os.exit(0) end
end

local function guarded()
  local ok, why = xpcall(step, debug.traceback)
  if ok then return end
  io.stderr:write(why, "\n")
  os.exit(9)
end

if emu.register_frame_done then
  emu.register_frame_done(guarded)
else
  probe.subscription = emu.add_machine_frame_notifier(guarded)
end
if os.getenv("PROBE_CLIENT") then dofile(os.getenv("PROBE_CLIENT")) end
