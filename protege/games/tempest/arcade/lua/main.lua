-- Plays Tempest for a server, from inside MAME: mame tempest1 -autoboot_script main.lua
--
-- One packet out and one command in per game tick. All calls into the emulator are here, in `emulator`; what the
-- numbers mean is state.lua's business, what is decided logic.lua's, the connection link.lua's. Runs on MAME 0.251 and
-- later, whose Lua is 5.3 or 5.4: functions are asked for, never version numbers.

if protege_client then return end -- a soft reset runs the script again, and the old callbacks go on
protege_client = {} -- a global: MAME drops a subscription that nobody holds

local folder = debug.getinfo(1, "S").source:match("^@(.*[/\\])") or ""
local function part(name, ...) return assert(loadfile(folder .. name .. ".lua"))(...) end
local settings_reader, state = part("settings"), part("state")
local logic, display, link_class = part("logic", state), part("display", state), part("link")

local HELD_RATE = 16 -- looks a sixtieth of a second at a held machine
local LAST_REPLY_S = 0.5 -- how long at exit
local SAVE_EVERY_S = 300
local LAUNCHER_EVERY_S = 0.5 -- between two looks at whoever started this client

io.stdout:setvbuf("line")
local function say(text) print("protege: " .. text) end

local function refuse(text)
  say(text)
  os.exit(2)
end

-- --- The emulator ----------------------------------------------------------------------------------------------------

local machine = manager.machine
local cpu = machine.devices[":maincpu"]
if not machine.system.name:find("^tempest") or not cpu then
  refuse("this client plays tempest1, the machine here is " .. machine.system.name)
end
local memory, ports, video = cpu.spaces["program"], machine.ioport.ports, machine.video
local ticks_per_second = emu.osd_ticks_per_second()
local throttled, throttle_rate = video.throttled, video.throttle_rate -- as the user asked for
local held, idle = false, false -- whether this client has paused the machine, or slowed it down

local function field(tag, mask) -- by mask, because names may be translated
  local found = ports[tag] and ports[tag]:field(mask)
  if not found then refuse(("the machine has no input %s 0x%02X"):format(tag, mask)) end
  return found
end

local fire_button, zap_button = field(":BUTTONSP1", 0x02), field(":BUTTONSP1", 0x01)
local start_button = field(":IN2", 0x20)

local emulator = {}

function emulator.seconds() return emu.osd_ticks() / ticks_per_second end -- real time, also while paused

function emulator.tick() return memory:read_u8(state.TICK) end

function emulator.image() return memory:read_range(0, state.IMAGE_LAST, 8) end -- cheaper than its bytes one by one

function emulator.write(address, value) memory:write_u8(address, value & 0xFF) end

-- From 180,000 points on the first revision takes itself for a copy, by a wrong checksum of its own, and counts up the
-- byte of memory that the last two digits of the score name. Two no-operations in place of that instruction end it;
-- where another one stands, nothing is written. docs/tempest-rules.md has the story.
function emulator.disarm_checksum()
  if memory:read_u8(0xA591) ~= 0xF6 or memory:read_u8(0xA592) ~= 0x00 then return end
  memory:write_direct_u8(0xA591, 0xEA)
  memory:write_direct_u8(0xA592, 0xEA)
end

function emulator.open(address)
  local socket = emu.file("rw")
  local why = socket:open("socket." .. address)
  if why then return nil, tostring(why) end
  return socket
end

function emulator.press(controls)
  fire_button:set_value(controls.fire)
  zap_button:set_value(controls.zap)
  start_button:set_value(controls.start)
  emulator.write(state.SPINNER, controls.spinner)
end

-- MAME has no sleep for scripts. But a paused machine sleeps between its video frames, which come sixty times a second
-- times the throttle rate: so a late reply is looked for about once a millisecond, and the core is free meanwhile.
function emulator.hold(yes)
  if yes == held then return end
  held = yes
  video.throttle_rate = yes and HELD_RATE * throttle_rate or throttle_rate
  if yes then emu.pause() else emu.unpause() end
end

-- In real time, or as fast as the user lets it.
function emulator.idle(yes)
  if yes == idle then return end
  idle = yes
  video.throttled = throttled or yes
end

function emulator.draw(lines) display.draw(machine.render.ui_container, lines) end

function emulator.subscribe(each_frame, at_exit)
  if emu.register_frame_done then
    emu.register_frame_done(each_frame)
  else
    protege_client.frames = emu.add_machine_frame_notifier(each_frame)
  end
  if emu.add_machine_stop_notifier then
    protege_client.stop = emu.add_machine_stop_notifier(at_exit)
  else
    emu.register_stop(at_exit)
  end
end

-- --- The client ------------------------------------------------------------------------------------------------------

local file = io.open(folder .. "settings.txt")
local settings, wrong = settings_reader.read(os.getenv, file and file:read("a"))
if file then file:close() end
if not settings then refuse(wrong) end

-- Clients started together must differ, so the clock alone will not do.
local function draw_seed()
  local noise = io.open("/dev/urandom", "rb")
  local bytes = noise and noise:read(16) or ""
  if noise then noise:close() end
  return logic.seed_from(bytes, tostring({}), tostring(emu.osd_ticks()), tostring(os.time()), settings.name)
end

local seed, draws = settings.seed ~= 0 and settings.seed or draw_seed(), 0
local function chance()
  draws = draws + 1
  return logic.chance(~seed, draws)
end

-- How long a reply is waited for in a loop before the machine is held. At normal speed somebody may be watching, and a
-- paused picture is dim.
local spin_s = throttled and 0.025 or 0.0005

local link = link_class.new(settings, emulator.open, emulator.seconds, chance, say)
local record, previous, fresh = state.new_record(), state.new_record(), true -- fresh: there is no previous tick
local values = {}
local report = { frame = 0, save = false, cut_so_far = 0 }
local controls = { fire = 0, zap = 0, spinner = 0, start = 0 }
-- An emulated machine is the same after the same ticks, its noise included: clients of a pupil that never rolls dice
-- would all play the same game, if they did not start it at different times.
local wish = { ticks = 0, late = settings.seed ~= 0 and 0 or math.floor(50 * chance()) }
local lines = {} -- of the overlay
local last_tick, saved_at, launcher_at, status_at, stage = nil, emulator.seconds(), 0, 0, "start"

-- Memory patches: credits, without which no game would ever begin, and what the settings ask for.
local function patch()
  if record.attract then emulator.write(state.CREDITS, 2) end
  if settings.unlock_level > 0 and record.image:byte(state.BEST_LEVEL + 1) < settings.unlock_level - 1 then
    emulator.write(state.BEST_LEVEL, settings.unlock_level - 1)
  end
  if settings.disarm_checksum then emulator.disarm_checksum() end
end

-- Reads memory and computes everything the packet holds.
local function look()
  record, previous = previous, record
  stage = "memory"
  state.read(emulator.image(), record)
  report.frame = report.frame + 1
  stage = "patches"
  patch()
  stage = "rewards"
  local before = not fresh and previous or nil
  report.objective, report.subjective, report.died = logic.rewards(record, before)
  stage = "advice"
  report.target, report.advice_fire, report.advice_zap = logic.advise(record, logic.chance(seed, report.frame))
  stage = "values"
  report.cut = state.observe(record, before, values)
  report.cut_so_far = report.cut_so_far + report.cut
  fresh = false
end

local function send()
  stage = "packet"
  local reply = link.reply
  report.fire, report.zap, report.spinner = reply.fire, reply.zap, reply.spinner
  local frame = state.pack(record, report, values)
  stage = "connection"
  link:send(frame)
end

-- The reply if it comes within so many seconds; nil if not, or if the connection was given up meanwhile.
local function await(seconds)
  local give_up = emulator.seconds() + seconds
  repeat
    local reply = link:receive()
    if reply then return reply end
  until link.status ~= "waiting" or emulator.seconds() > give_up
end

local function act(reply)
  stage = "controls"
  wish.advanced, wish.level = settings.start_level == "highest", settings.start_level
  if link.advanced or link.level > 0 then wish.advanced, wish.level = link.advanced, link.level end
  logic.control(record, report.frame, reply, wish, controls)
  emulator.press(controls)
  if controls.cursor then
    emulator.write(state.PLAYER_LANE, controls.cursor)
    if record.image:byte(state.MAX_CHOICE + 1) < controls.cursor then
      emulator.write(state.MAX_CHOICE, controls.cursor)
    end
  end
  if settings.overlay then lines = display.lines(record, report, controls, link) end
end

-- One look at the connection and, if the game's counter says that a tick has passed, one packet and one command.
local function step()
  stage = "connection"
  if link.status == "waiting" then -- the reply was late, and the machine is held
    local reply = link:receive()
    if link.status == "waiting" then return end
    emulator.hold(false)
    return act(reply)
  end
  link:poll()
  emulator.idle(link.status == "away") -- nobody plays: no need to hurry
  local tick = emulator.tick()
  if tick == last_tick then return end
  last_tick = tick
  look()
  if link.status ~= "ready" then return act(nil) end
  report.save = emulator.seconds() - saved_at >= SAVE_EVERY_S
  if report.save then saved_at = emulator.seconds() end
  send()
  local reply = link.status == "waiting" and await(spin_s)
  if link.status == "waiting" then return emulator.hold(true) end
  act(reply)
end

-- The last frame asks the server to save. If no tick has passed since the one before, it pays nothing and keeps its
-- number.
local function leave()
  if link.status == "waiting" then await(LAST_REPLY_S) end
  if link.status == "ready" then
    if emulator.tick() ~= last_tick then
      look()
    else
      report.objective, report.subjective, report.died = 0.0, 0.0, false
    end
    report.save = true
    send()
    if link.status == "waiting" then await(LAST_REPLY_S) end
  end
  link:close()
end

local function leave_guarded()
  local ok, why = xpcall(leave, debug.traceback)
  if not ok then say("error at exit: " .. why) end
end

-- MAME without a window takes no signal to end, so whoever starts many clients puts a file where they look, and reads
-- their status lines. When nobody reads them any more, nobody wants the client either.
local function heed_launcher()
  local now = emulator.seconds()
  if now < launcher_at then return end
  launcher_at = now + LAUNCHER_EVERY_S
  local stop = settings.stop_file ~= "" and io.open(settings.stop_file)
  if settings.report_s > 0 and now >= status_at then
    status_at = now + settings.report_s
    local connected = link.status == "ready" or link.status == "waiting"
    local word = link.refused and "refused" or connected and "connected" or "waiting"
    stop = not io.stdout:write(("protege: frames %d state %s\n"):format(report.frame, word)) or stop
  end
  if stop then
    leave_guarded()
    os.exit(0)
  end
end

local function each_video_frame()
  stage = "launcher"
  heed_launcher()
  step()
  stage = "overlay"
  if settings.overlay then emulator.draw(lines) end
end

local reported = {} -- by stage: an error in every frame is said once
local function recover(why)
  if not reported[stage] then
    reported[stage] = true
    say(("error in stage %s; the game goes on without the server's commands: %s"):format(stage, why))
  end
  fresh = true -- the record may be half read
  if link.status ~= "away" then link:fail("an error in the client") end
  controls.fire, controls.zap, controls.spinner, controls.start = 0, 0, 0, 0
  pcall(emulator.press, controls)
  emulator.hold(false)
end

emulator.subscribe(
  function()
    local ok, why = xpcall(each_video_frame, debug.traceback)
    if not ok then recover(why) end
  end,
  function()
    leave_guarded()
    -- MAMEs without stop notifiers often crash while they take down Lua; by now they have saved everything.
    if not emu.add_machine_stop_notifier then os.exit(0) end
  end
)
say("plays for " .. settings.server)
