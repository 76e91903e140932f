-- Memory -> record -> the 195 values -> one packet. Pure: works on a string of RAM, knows no emulator.
--
-- Owns every address the client uses and the layout of a frame on the wire. The numbers are those of
-- protege/games/tempest/task/observation.py, bit for bit: computed in double precision and rounded once, while packing.

local byte, pack, unpack = string.byte, string.pack, table.unpack

local state = {}

-- Memory map. The image handed to `read` holds the bytes 0 to IMAGE_LAST.
state.GAME_STATE, state.TICK, state.GAME_MODE, state.CREDITS = 0x0000, 0x0003, 0x0005, 0x0006
state.SPINNER, state.BEST_LEVEL, state.MAX_CHOICE, state.PLAYER_LANE = 0x0050, 0x0126, 0x0127, 0x0200
state.SPIKE, state.TUBE_ANGLE = 0x03AC, 0x03EE
state.IMAGE_LAST = 0x03FD
local SCORE, LEVEL, OPEN, PULSE_PHASE = 0x0040, 0x009F, 0x0111, 0x0148
local SPEED_LOW, SPEED_HIGH, PLAYER_EDGE, ZAP_USES = 0x0160, 0x0165, 0x0201, 0x03AA
local ENEMY_TYPE, ENEMY_INFO, ENEMY_LANE, ENEMY_EDGE, ENEMY_DEPTH = 0x0283, 0x028A, 0x02B9, 0x02CC, 0x02DF
local PSHOT_LANE, PSHOT_DEPTH = 0x02AD, 0x02D3
local ESHOT_LANE, ESHOT_DEPTH, ESHOT_FRACTION = 0x02B5, 0x02DB, 0x02E6

state.PLAYING, state.ZOOM, state.ENTER_INITIALS, state.LEVEL_SELECT = 0x04, 0x20, 0x12, 0x16
state.FLIPPER, state.PULSAR, state.TANKER, state.SPIKER, state.FUSEBALL = 0, 1, 2, 3, 4
state.RIM = 0x10
state.ENEMIES, state.PSHOTS, state.ESHOTS, state.LANES = 7, 8, 4, 16
local ENEMIES, PSHOTS, ESHOTS, KINDS = state.ENEMIES, state.PSHOTS, state.ESHOTS, 5
local FUSEBALL, PULSAR, RIM = state.FUSEBALL, state.PULSAR, state.RIM
local ABSENT = -1.0

-- Ways a byte becomes a value: tables of all 256, with the largest byte that is not cut to its range.
local function scale(formula, most)
  local values = { most = most or 255 }
  for x = 0, 255 do values[x] = formula(x) end
  return values
end

local function up_to(most)
  return scale(function(x) return math.min(x, most) / most end, most)
end

local OF_255 = scale(function(x) return x / 255 end)
local OF_256 = scale(function(x) return x / 256 end)
local HEIGHT = scale(function(x) return x == 0 and 0 or (255 - x) / 255 end)
local ALIVE = scale(function(x) return x < 0x80 and 1 or 0 end)
local LOW_NIBBLE = scale(function(x) return (x & 15) / 15 end)
local SET = scale(function(x) return x == 0 and 0 or 1 end)
local SHOTS_LEFT = scale(function(x) return math.max(8 - x, 0) / 8 end, 8)
local BEAT = scale(function(x)
  local beat = x < 0x80 and x or x - 0x100
  return math.max(-12, math.min(12, beat)) / 12
end)
local DERIVED = false -- not a byte of its own: `observe` computes it

-- The 195 values in the order of the wire: name, scale, address, how many ("#" in the name counts them from 0).
-- Names in braces alternate: all of number 0, then all of number 1.
local FIELDS = {
  { "game_state", up_to(36), state.GAME_STATE },
  { "game_mode", OF_255, state.GAME_MODE },
  { "countdown_timer", OF_255, 0x0004 },
  { "p1_lives", up_to(6), 0x0048 },
  { "p1_level", up_to(98), 0x0046 },
  { "player_position", up_to(15), state.PLAYER_LANE },
  { "player_alive", ALIVE, PLAYER_EDGE },
  { "player_state_low_nibble", LOW_NIBBLE, PLAYER_EDGE },
  { "player_depth", OF_255, 0x0202 },
  { "superzapper_uses", up_to(2), ZAP_USES },
  { "superzapper_active", up_to(19), 0x0125 },
  { "player_shots_remaining", SHOTS_LEFT, 0x0135 },
  { "player_shot_#_depth", OF_256, PSHOT_DEPTH, PSHOTS },
  { "player_shot_#_rel_segment", DERIVED, nil, PSHOTS },
  { "level_number", up_to(98), LEVEL },
  { "level_is_open", SET, OPEN },
  { "level_shape", LOW_NIBBLE, LEVEL },
  { "spike_height_#", HEIGHT, state.SPIKE, state.LANES },
  { "tube_angle_#", up_to(15), state.TUBE_ANGLE, state.LANES },
  { "active_flippers", up_to(7), 0x0142 },
  { "active_pulsars", up_to(7), 0x0143 },
  { "active_tankers", up_to(7), 0x0144 },
  { "active_spikers", up_to(7), 0x0145 },
  { "active_fuseballs", up_to(7), 0x0146 },
  { "spawn_slots_flippers", up_to(7), 0x013D },
  { "spawn_slots_pulsars", up_to(7), 0x013E },
  { "spawn_slots_tankers", up_to(7), 0x013F },
  { "spawn_slots_spikers", up_to(7), 0x0140 },
  { "spawn_slots_fuseballs", up_to(7), 0x0141 },
  { "enemies_in_tube", up_to(7), 0x0108 },
  { "enemies_on_top", up_to(7), 0x0109 },
  { "enemies_pending", up_to(63), 0x03AB },
  { "pulsar_flip_rate", up_to(40), 0x00B2 },
  { "pulse_beat", BEAT, 0x0147 },
  { "pulsing_phase", OF_255, PULSE_PHASE },
  { "flipper_move_program", up_to(135), 0x015D },
  { "fuseball_move_probability", OF_255, 0x015F },
  { { "speed_flipper", "speed_pulsar", "speed_tanker", "speed_spiker", "speed_fuseball" }, DERIVED },
  {
    {
      "enemy_#_type", "enemy_#_segment_increasing", "enemy_#_between_segments",
      "enemy_#_moving_away", "enemy_#_can_shoot", "enemy_#_split_kind",
    }, DERIVED, nil, ENEMIES,
  },
  { "enemy_#_rel_segment", DERIVED, nil, ENEMIES },
  { "enemy_#_depth", OF_255, ENEMY_DEPTH, ENEMIES },
  { "enemy_#_rim_rel_segment", DERIVED, nil, ENEMIES },
  { "enemy_shot_#_depth", DERIVED, nil, ESHOTS },
  { "enemy_shot_#_rel_segment", DERIVED, nil, ESHOTS },
  { "pulsar_#_depth", DERIVED, nil, ENEMIES },
  { "pulsar_#_rel_segment", DERIVED, nil, ENEMIES },
  { "top_rail_#_rel_segment", DERIVED, nil, ENEMIES },
  { { "danger_own_lane", "danger_lane_minus_1", "danger_lane_plus_1" }, DERIVED },
  { "enemy_#_delta_segment", DERIVED, nil, ENEMIES },
  { "enemy_#_delta_depth", DERIVED, nil, ENEMIES },
}

-- FIELDS unrolled: all names; where a field begins, by its first name; and for every value that is one scaled byte its
-- place among the values, its place in the image (strings count from 1) and its scale.
state.NAMES = {}
local FIRST, BYTE_VALUE, BYTE_AT, BYTE_SCALE = {}, {}, {}, {}
for _, field in ipairs(FIELDS) do
  local names, values, address = field[1], field[2], field[3]
  if type(names) == "string" then names = { names } end
  FIRST[names[1]] = #state.NAMES + 1
  for number = 0, (field[4] or 1) - 1 do
    for _, name in ipairs(names) do
      state.NAMES[#state.NAMES + 1] = (name:gsub("#", number))
      if values ~= DERIVED then
        BYTE_VALUE[#BYTE_VALUE + 1] = #state.NAMES
        BYTE_AT[#BYTE_AT + 1] = address + number + 1
        BYTE_SCALE[#BYTE_SCALE + 1] = values
      end
    end
  end
end
state.VALUES = #state.NAMES
local VALUES, BYTES = state.VALUES, #BYTE_VALUE

local SPEEDS, PSHOT_LANES, SLOTS = FIRST["speed_flipper"], FIRST["player_shot_#_rel_segment"], FIRST["enemy_#_type"]
local PLACES, RIM_PLACES = FIRST["enemy_#_rel_segment"], FIRST["enemy_#_rim_rel_segment"]
local ESHOT_DEPTHS, ESHOT_LANES = FIRST["enemy_shot_#_depth"], FIRST["enemy_shot_#_rel_segment"]
local PULSAR_DEPTHS, PULSAR_PLACES = FIRST["pulsar_#_depth"], FIRST["pulsar_#_rel_segment"]
local RAIL_PLACES, DANGER = FIRST["top_rail_#_rel_segment"], FIRST["danger_own_lane"]
local LANE_CHANGES, DEPTH_CHANGES = FIRST["enemy_#_delta_segment"], FIRST["enemy_#_delta_depth"]

local function clamped(x, most)
  if x > most then return most end
  if x < -most then return -most end
  return x
end

-- --- The record: what rewards, advice and the packet's header are made of --------------------------------------------

-- Lists count from 1: slot 0 of the machine is kind[1]. Two records are enough for a whole run, swapped every tick.
function state.new_record()
  return {
    kind = {}, type_byte = {}, lane_of = {}, depth = {}, -- of enemies; depth 0 = no enemy
    distance = {}, place = {}, -- lanes from the player: whole, and with the part of a flip that is done
    shot_lane = {}, shot_depth = {}, shot_distance = {}, -- of the enemies' shots
  }
end

-- How many lanes from the player's to this one: the short way round on closed tubes, opposite counting as +8.
local function relative(record, lane)
  local distance = lane - record.lane
  if record.open then return distance end
  return (distance + 7 & 15) - 7
end
state.relative = relative

-- The relative lane of an enemy that is turning over, with the part of the way it has come.
local function flipping_place(record, slot, distance)
  local image, lane = record.image, record.lane_of[slot]
  local angle = byte(image, ENEMY_EDGE + slot) & 15
  local low = byte(image, state.TUBE_ANGLE + 1 + (lane - 1 & 15)) + 8
  local high = byte(image, state.TUBE_ANGLE + 1 + lane)
  local increasing = record.type_byte[slot] & 0x40 ~= 0
  local travelled = (increasing and low - angle or angle - high) & 15
  local total = low - high & 15
  local progress = total == 0 and 0.0 or math.min(travelled / total, 1.0)
  local place = increasing and distance + progress - 1.0 or distance - progress
  if not record.open then
    if place > 8 then
      place = place - 16
    elseif place < -8 then
      place = place + 16
    end
  end
  return place
end

local function read_enemies(record)
  local image = record.image
  local kind, type_byte, lane_of, depth = record.kind, record.type_byte, record.lane_of, record.depth
  local distance, place = record.distance, record.place
  for slot = 1, ENEMIES do
    depth[slot] = byte(image, ENEMY_DEPTH + slot)
    type_byte[slot] = byte(image, ENEMY_TYPE + slot)
    kind[slot] = type_byte[slot] & 7
    lane_of[slot] = byte(image, ENEMY_LANE + slot) & 15
    if depth[slot] > 0 then
      distance[slot] = relative(record, lane_of[slot])
      place[slot] = distance[slot]
      if type_byte[slot] & 0x80 ~= 0 and kind[slot] ~= FUSEBALL then
        place[slot] = flipping_place(record, slot, distance[slot])
      end
    end
  end
end

-- The decimal number in the three BCD bytes of the score; a digit above 9 counts as 9.
local function decode_score(image)
  local score = 0
  for at = SCORE + 3, SCORE + 1, -1 do
    local digits = byte(image, at)
    score = score * 100 + math.min(digits >> 4, 9) * 10 + math.min(digits & 15, 9)
  end
  return score
end

function state.read(image, record)
  record.image = image
  record.game_state = byte(image, state.GAME_STATE + 1)
  record.game_mode = byte(image, state.GAME_MODE + 1)
  record.attract = record.game_mode & 0x80 == 0
  record.score = decode_score(image)
  record.level = byte(image, LEVEL + 1)
  record.open = byte(image, OPEN + 1) ~= 0
  record.lane = byte(image, state.PLAYER_LANE + 1) & 15
  record.dying = byte(image, PLAYER_EDGE + 1) & 0x80 ~= 0
  record.zap_uses = byte(image, ZAP_USES + 1)
  record.pulse_phase = byte(image, PULSE_PHASE + 1)
  read_enemies(record)
  for shot = 1, ESHOTS do
    record.shot_lane[shot] = byte(image, ESHOT_LANE + shot) & 15
    record.shot_depth[shot] = byte(image, ESHOT_DEPTH + shot)
    record.shot_distance[shot] = relative(record, record.shot_lane[shot])
  end
end

-- --- The values ------------------------------------------------------------------------------------------------------

local function observe_enemy(record, previous, slot, values)
  local type_byte, info = record.type_byte[slot], byte(record.image, ENEMY_INFO + slot)
  local kind, depth = record.kind[slot], record.depth[slot]
  local place = clamped(record.place[slot], 15) / 15
  local at, first = slot - 1, SLOTS + 6 * (slot - 1)
  values[first], values[first + 1], values[first + 2] = kind / 7, type_byte >> 6 & 1, type_byte >> 7
  values[first + 3], values[first + 4], values[first + 5] = info >> 7, info >> 6 & 1, (info & 3) / 3
  values[PLACES + at] = place
  values[RIM_PLACES + at] = depth == RIM and place or ABSENT
  values[PULSAR_DEPTHS + at] = kind == PULSAR and depth / 255 or 0
  values[PULSAR_PLACES + at] = kind == PULSAR and place or ABSENT
  values[RAIL_PLACES + at] = kind <= PULSAR and depth <= RIM and place or ABSENT
  local lane_change, depth_change = 0, 0
  if previous and record.game_state == state.PLAYING and previous.depth[slot] > 0 and previous.kind[slot] == kind then
    lane_change, depth_change = record.lane_of[slot] - previous.lane_of[slot], depth - previous.depth[slot]
    if not record.open then
      if lane_change > 8 then
        lane_change = lane_change - 16
      elseif lane_change < -8 then
        lane_change = lane_change + 16
      end
    end
  end
  values[LANE_CHANGES + at] = clamped(lane_change, 8) / 8
  values[DEPTH_CHANGES + at] = clamped(depth_change, 128) / 128
end

local function observe_no_enemy(slot, values)
  local at, first = slot - 1, SLOTS + 6 * (slot - 1)
  for i = first, first + 5 do values[i] = 0 end
  values[PLACES + at], values[RIM_PLACES + at] = ABSENT, ABSENT
  values[PULSAR_DEPTHS + at], values[PULSAR_PLACES + at], values[RAIL_PLACES + at] = 0, ABSENT, ABSENT
  values[LANE_CHANGES + at], values[DEPTH_CHANGES + at] = 0, 0
end

-- The depth of the nearest thing in a lane: the tip of its spike, an enemy or a shot; 255 for nothing or no such lane.
local function nearest_in(record, lane)
  if record.open and (lane < 0 or lane > 15) then return 255 end
  lane = lane & 15
  local nearest = byte(record.image, state.SPIKE + 1 + lane)
  if nearest == 0 then nearest = 255 end
  for slot = 1, ENEMIES do
    local depth = record.depth[slot]
    if depth > 0 and depth < nearest and record.lane_of[slot] == lane then nearest = depth end
  end
  for shot = 1, ESHOTS do
    local depth = record.shot_depth[shot]
    if depth > 0 and depth < nearest and record.shot_lane[shot] == lane then nearest = depth end
  end
  return nearest
end

-- Fills `values` from a record and the one of the tick before (nil on the first). Returns how many bytes were above the
-- range their value has and were cut to it.
function state.observe(record, previous, values)
  local image, cut = record.image, 0
  for i = 1, BYTES do
    local x, scaled = byte(image, BYTE_AT[i]), BYTE_SCALE[i]
    if x > scaled.most then cut = cut + 1 end
    values[BYTE_VALUE[i]] = scaled[x]
  end
  for shot = 1, PSHOTS do
    local here = byte(image, PSHOT_DEPTH + shot) > 0
    values[PSHOT_LANES + shot - 1] = here and relative(record, byte(image, PSHOT_LANE + shot) & 15) / 15 or ABSENT
  end
  for kind = 1, KINDS do
    local speed = byte(image, SPEED_HIGH + kind) << 8 | byte(image, SPEED_LOW + kind)
    if speed >= 0x8000 then speed = speed - 0x10000 end
    values[SPEEDS + kind - 1] = clamped(speed, 2560) / 2560
  end
  for slot = 1, ENEMIES do
    if record.depth[slot] > 0 then
      observe_enemy(record, previous, slot, values)
    else
      observe_no_enemy(slot, values)
    end
  end
  for shot = 1, ESHOTS do
    local depth = record.shot_depth[shot]
    values[ESHOT_DEPTHS + shot - 1] = depth > 0 and (depth + byte(image, ESHOT_FRACTION + shot) / 256) / 256 or 0
    values[ESHOT_LANES + shot - 1] = depth > 0 and record.shot_distance[shot] / 15 or ABSENT
  end
  values[DANGER] = nearest_in(record, record.lane) / 255
  values[DANGER + 1] = nearest_in(record, record.lane - 1) / 255
  values[DANGER + 2] = nearest_in(record, record.lane + 1) / 255
  return cut
end

-- --- The packet ------------------------------------------------------------------------------------------------------

local HEADER = "I2ddBBBI2I4BBBi2i2BBBBB"
local FRAME = ">I2" .. HEADER .. ("f"):rep(VALUES)
local LENGTH = string.packsize(FRAME) - 2

-- `report` holds what is not in memory: rewards, advice, the last reply as it came, the frame counter.
function state.pack(record, report, values)
  return pack(
    FRAME, LENGTH, VALUES, report.subjective, report.objective, record.game_state, record.game_mode,
    report.died and 1 or 0, report.frame & 0xFFFF, record.score, report.save and 1 or 0,
    report.fire & 0xFF, report.zap & 0xFF, report.spinner,
    report.target, record.lane, record.open and 1 or 0,
    report.advice_fire and 1 or 0, report.advice_zap and 1 or 0, record.level,
    unpack(values, 1, VALUES)
  )
end

return state
