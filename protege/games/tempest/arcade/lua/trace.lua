-- Records what the program does in every tick, for protege verify-rom: memory as the tick begins, the random bytes it
-- reads, memory as it ends. Runs beside the client, which plays. The file's format is in docs/tempest-rules.md.
--
-- PROTEGE_TRACE        the file to write
-- PROTEGE_TRACE_TICKS  leave after so many ticks, with code 0

if protege_trace then return end -- a soft reset runs the script again
protege_trace = { taps = {} } -- a global: MAME drops a tap that nobody holds

local MOST_RUN, GAP = 255, 4 -- bytes in a run; unchanged bytes worth sending for one run less
local LAST, TICK, SINCE_TICK, IRQS = 0x7FF, 0x03, 0x53, 9
local NOISE = { 0x60CA, 0x60DA }
local MOST_SILENT = 3600 -- video frames without a tick: then this program has none that can be told

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local machine = manager.machine
local memory = machine.devices[":maincpu"].spaces["program"]
local limit = math.tointeger(tonumber(os.getenv("PROTEGE_TRACE_TICKS") or "")) or math.maxinteger
local file = assert(io.open(os.getenv("PROTEGE_TRACE"), "wb"))
local name = ("MAME %s %s"):format(emu.app_version(), machine.system.name):sub(1, 255)
file:write(("<c8Bs1"):pack("PROTRACE", 1, name))

local before, reads = nil, {} -- of the tick that is under way
local ended = ("\0"):rep(LAST + 1) -- memory after the last one
local ticks, silent = 0, 0

-- Where two images differ, as runs.
local function changes(old, new)
  local runs, at = {}, 1
  while at <= #new do
    if old:sub(at, at + 63) == new:sub(at, at + 63) then
      at = at + 64
    elseif old:byte(at) == new:byte(at) then
      at = at + 1
    else
      local last = at
      for i = at + 1, math.min(at + MOST_RUN - 1, #new) do
        if old:byte(i) ~= new:byte(i) then last = i end
        if i - last >= GAP then break end
      end
      runs[#runs + 1] = ("<I2s1"):pack(at - 1, new:sub(at, last))
      at = last + 1
    end
  end
  return ("<I2"):pack(#runs) .. table.concat(runs)
end

local function record(kind, body) file:write(("<Bs2"):pack(kind, body)) end

-- The program zeroes its count of interrupts as a tick begins; interrupts only ever add to it.
local function begins(_, value)
  if value ~= 0 or memory:read_u8(SINCE_TICK) < IRQS then return end
  before, reads = memory:read_range(0, LAST, 8), {}
end

-- INC writes the old value before the new one, and what a tap sees is not in memory yet.
local function ends(_, value)
  if not before or value == memory:read_u8(TICK) or ticks >= limit then return end
  local image = memory:read_range(0, LAST, 8)
  image = image:sub(1, TICK) .. string.char(value) .. image:sub(TICK + 2)
  record(1, changes(ended, before) .. ("<I2"):pack(#reads) .. table.concat(reads) .. changes(before, image))
  ended, before, ticks, silent = image, nil, ticks + 1, 0
end

local function hear(register)
  return function(_, value)
    if before then reads[#reads + 1] = string.char(register, value & 0xFF) end
  end
end

local function guarded(what)
  return function(...)
    local ok, why = xpcall(what, debug.traceback, ...)
    if ok then return end
    io.stderr:write("protege: error in the trace: ", why:match("^[^\n]*"), "\n")
    os.exit(7)
  end
end

local taps = protege_trace.taps
taps[1] = memory:install_write_tap(SINCE_TICK, SINCE_TICK, "tick begins", guarded(begins))
taps[2] = memory:install_write_tap(TICK, TICK, "tick ends", guarded(ends))
for register, address in ipairs(NOISE) do
  taps[register + 2] = memory:install_read_tap(address, address, "noise", guarded(hear(register)))
end

local function each_video_frame()
  silent = silent + 1
  if silent > MOST_SILENT then error("no tick of the game for a minute: is this Tempest?") end
  if ticks < limit then return end
  record(2, ("<I4"):pack(ticks))
  file:close()
  os.exit(0)
end
if emu.register_frame_done then
  emu.register_frame_done(guarded(each_video_frame))
else
  protege_trace.frames = emu.add_machine_frame_notifier(guarded(each_video_frame))
end

dofile(folder .. "main.lua")
