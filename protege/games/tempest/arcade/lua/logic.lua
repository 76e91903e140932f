-- What the client decides from records: advice of the scripted teacher, rewards, and who works the controls when.
-- Pure: the same numbers as teacher.py (rule set "meet") and env.py in protege/games/tempest/task.

local state = ... -- the module of state.lua
local logic = {}

local byte, abs, min = string.byte, math.abs, math.min
local FLIPPER, PULSAR, TANKER, SPIKER, FUSEBALL =
  state.FLIPPER, state.PULSAR, state.TANKER, state.SPIKER, state.FUSEBALL
local ENEMIES, ESHOTS, LANES, RIM = state.ENEMIES, state.ESHOTS, state.LANES, state.RIM
local PLAYING, ZOOM = state.PLAYING, state.ZOOM
local relative = state.relative

-- --- Random numbers --------------------------------------------------------------------------------------------------

-- splitmix64, as in protege/games/tempest/rules/ram.py: the n-th number of a seed, in [0, 1).
function logic.chance(seed, n)
  local z = seed + n * 0x9E3779B97F4A7C15
  z = (z ~ z >> 30) * 0xBF58476D1CE4E5B9
  z = (z ~ z >> 27) * 0x94D049BB133111EB
  return ((z ~ z >> 31) >> 11) * 2.0 ^ -53
end

-- A seed from whatever differs between two clients started in the same second: any texts, mixed (FNV-1a).
function logic.seed_from(...)
  local seed = 0xCBF29CE484222325
  for _, text in ipairs({ ... }) do
    for i = 1, #text do seed = (seed ~ byte(text, i)) * 0x100000001B3 end
  end
  return seed
end

-- --- Advice ----------------------------------------------------------------------------------------------------------

local NEAR, REACH, FUSEBALL_NEAR = 0x60, 2, 0x40 -- depth of threats; lanes; depth of fuseballs
local FIRE_PROBABILITY = 0.95
local HUNT_ORDER = { FUSEBALL, FLIPPER, TANKER, SPIKER } -- pulsars are never hunted

local function exists(record, lane)
  return not record.open or lane >= 0 and lane <= 14
end

-- A lane as a target: wrapped on closed tubes, at most 14 on open ones.
local function on_board(record, lane)
  if record.open then return min(lane, 14) end
  return lane & 15
end

-- The lane with the shortest spike, then the nearest, then the lowest; the present lane if nothing beats it.
local function steer_zoom(record)
  local best, best_rank = nil, math.huge
  local stay = on_board(record, record.lane)
  for i = -1, record.open and LANES - 2 or LANES - 1 do
    local lane = i < 0 and stay or i
    local tip = byte(record.image, state.SPIKE + 1 + lane)
    local height = tip == 0 and 0 or 255 - tip
    local rank = height << 8 | abs(relative(record, lane))
    if rank < best_rank then
      best, best_rank = lane, rank
    end
  end
  return best
end

-- The signed distance of the nearest close flipper, pulsar or shot. On the rim the part of a flip that is done counts.
local function nearest_threat(record)
  local nearest
  for slot = 1, ENEMIES do
    local depth = record.depth[slot]
    if depth > 0 and depth <= NEAR and record.kind[slot] <= PULSAR then
      local distance = depth <= RIM and record.place[slot] or record.distance[slot]
      if abs(distance) <= REACH and (not nearest or abs(distance) < abs(nearest)) then nearest = distance end
    end
  end
  for shot = 1, ESHOTS do
    local depth, distance = record.shot_depth[shot], record.shot_distance[shot]
    if depth > 0 and depth <= NEAR and abs(distance) <= REACH then
      if not nearest or abs(distance) < abs(nearest) then nearest = distance end
    end
  end
  return nearest
end

-- Three lanes away from the nearest shallow fuseball, to its other side; at an open end as far as there are lanes, and
-- if there is none, three the other way. Nil without such a fuseball.
local function flee_fuseball(record)
  local nearest
  for slot = 1, ENEMIES do
    local depth = record.depth[slot]
    if record.kind[slot] == FUSEBALL and depth > 0 and depth <= FUSEBALL_NEAR then
      local distance = record.distance[slot]
      if abs(distance) <= REACH and (not nearest or abs(distance) < abs(nearest)) then nearest = distance end
    end
  end
  if not nearest then return nil end
  local side = nearest <= 0 and 1 or -1
  for direction = side, -side, -2 * side do
    for far = 3, 1, -1 do
      local lane = record.lane + direction * far
      if exists(record, lane) then return on_board(record, lane) end
    end
  end
  return on_board(record, record.lane)
end

local function holds_pulsar(record, lane)
  for slot = 1, ENEMIES do
    if record.depth[slot] > 0 and record.kind[slot] == PULSAR and record.lane_of[slot] == lane then return true end
  end
  return false
end

-- During a pulse: the nearest lane without a pulsar if the own one holds any, lower side first.
local function leave_pulsar(record)
  local phase = record.pulse_phase
  if phase < 1 or phase > 127 or not holds_pulsar(record, record.lane) then return nil end
  for far = 1, LANES - 1 do
    for side = -1, 1, 2 do
      local lane = record.lane + side * far
      if exists(record, lane) and not holds_pulsar(record, lane & 15) then return on_board(record, lane) end
    end
  end
  return on_board(record, record.lane)
end

-- The lane of the nearest enemy of the most urgent type present, then the shallower; the present lane if none.
local function hunt(record)
  for i = 1, #HUNT_ORDER do
    local best, best_rank = nil, math.huge
    for slot = 1, ENEMIES do
      if record.depth[slot] > 0 and record.kind[slot] == HUNT_ORDER[i] then
        local rank = abs(record.distance[slot]) << 8 | record.depth[slot]
        if rank < best_rank then
          best, best_rank = record.lane_of[slot], rank
        end
      end
    end
    if best then return on_board(record, best) end
  end
  return on_board(record, record.lane)
end

local function wants_zap(record)
  local near = 0
  for slot = 1, ENEMIES do
    local depth = record.depth[slot]
    if depth > 0 and depth <= NEAR then near = near + 1 end
  end
  return near >= 3 and record.zap_uses < 2
end

-- Target lane, fire, zap. Fire is the chance of this frame, a number in [0, 1), whatever else.
function logic.advise(record, chance)
  local fire = chance < FIRE_PROBABILITY
  if record.game_state == ZOOM then return steer_zoom(record), fire, false end
  local threat = nearest_threat(record)
  if threat then
    local side = threat < 0 and 1 or -1
    local lane = record.lane + side
    return on_board(record, exists(record, lane) and lane or record.lane - side), fire, false
  end
  if record.game_state ~= PLAYING then return on_board(record, record.lane), fire, false end
  local target = flee_fuseball(record) or leave_pulsar(record)
  if target then return target, fire, false end
  return hunt(record), fire, wants_zap(record)
end

-- --- Rewards ---------------------------------------------------------------------------------------------------------

local DEATH_PENALTY, LEVEL_BONUS = -1000.0, 1000 -- a score change from LEVEL_BONUS on is not paid
local THREAT_DEPTH = 0x80

local function threatened(record, lane)
  for slot = 1, ENEMIES do
    local depth = record.depth[slot]
    if depth > 0 and depth <= THREAT_DEPTH and record.lane_of[slot] == lane then return true end
  end
  for shot = 1, ESHOTS do
    local depth = record.shot_depth[shot]
    if depth > 0 and depth <= THREAT_DEPTH and record.shot_lane[shot] == lane then return true end
  end
  return false
end

-- How safe the player's lane and its neighbours are; half as much for standing still.
local function lane_safety(record, previous)
  if record.game_state ~= PLAYING and record.game_state ~= ZOOM then return 0.0 end
  local total = 0.0
  for offset = -2, 2 do
    local lane = record.lane + offset
    if offset == 0 or exists(record, lane) then
      local worth = 2.0 / (1 << abs(offset))
      total = total + (threatened(record, lane & 15) and -worth or worth)
    end
  end
  local moved = previous and record.lane ~= previous.lane
  return moved and total or 0.5 * total
end

-- Objective and subjective reward of the tick that ended, and whether it cost a life. `previous` is nil on the first.
function logic.rewards(record, previous)
  if not previous then return 0.0, lane_safety(record, nil), false end
  if record.dying and not previous.dying then return DEATH_PENALTY, 0.0, true end
  local points = record.score - previous.score
  if points <= 0 or points >= LEVEL_BONUS then points = 0 end
  return points + 0.0, lane_safety(record, previous), false
end

-- --- Controls --------------------------------------------------------------------------------------------------------

local START_LEVELS = { -- one-based levels by menu entry
  1, 3, 5, 7, 9, 11, 13, 15, 17, 20, 22, 24, 26, 28, 31, 33, 36, 40, 44, 47, 49, 52, 56, 60, 63, 65, 73, 81,
}
local MENU_TICKS, START_EVERY, LETTER_EVERY = 10, 50, 10

-- The menu entry, from 0, of the highest start level not above the wanted one.
function logic.menu_entry(level)
  local entry = 0
  for i = 1, #START_LEVELS do
    if START_LEVELS[i] <= level then entry = i - 1 end
  end
  return entry
end

-- Fills `controls` (fire, zap, spinner, start; and `cursor`, the menu entry to write, or nil) for the coming tick.
-- `reply` is the server's command or nil. `wish` says where to start: `level`, or `advanced` for the highest level on
-- offer; it also counts the ticks spent in the menu, and says how late this client presses start.
function logic.control(record, frame, reply, wish, controls)
  controls.fire, controls.zap, controls.spinner, controls.start, controls.cursor = 0, 0, 0, 0, nil
  if record.game_state == state.ENTER_INITIALS then
    controls.fire = frame % LETTER_EVERY == 0 and 1 or 0
  elseif record.game_state == state.LEVEL_SELECT then
    wish.ticks = wish.ticks + 1
    if wish.ticks <= MENU_TICKS then
      if wish.advanced then
        controls.cursor = byte(record.image, state.MAX_CHOICE + 1)
      elseif wish.level > 1 then
        controls.cursor = logic.menu_entry(wish.level)
      end
    elseif wish.ticks == MENU_TICKS + 1 then
      controls.fire = 1
    end
  elseif record.attract then
    wish.ticks = 0
    controls.start = (frame - wish.late) % START_EVERY == 0 and 1 or 0
  elseif reply and (record.game_state == PLAYING or record.game_state == ZOOM) then
    controls.fire = reply.fire > 0 and 1 or 0
    controls.zap = reply.zap > 0 and 1 or 0
    controls.spinner = reply.spinner
  end
  return controls
end

return logic
