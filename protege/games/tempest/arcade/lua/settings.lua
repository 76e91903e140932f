-- The client's settings: from the environment (PROTEGE_SERVER and so on) or, for what is not there, from lines
-- "name = value" of settings.txt beside the scripts (lines that begin with "#" are comments). Pure.

local settings = {}

local function whole_number(least, most)
  return function(text)
    local number = math.tointeger(tonumber(text))
    return number and number >= least and number <= most and number or nil
  end
end

local function seconds(text)
  local number = tonumber(text)
  return number and number >= 0 and number <= 3600 and number or nil
end

local function yes_or_no(text)
  local meaning = { yes = true, on = true, ["1"] = true, no = false, off = false, ["0"] = false }
  return meaning[text:lower()]
end

local function address(text)
  if not text:find(":", 1, true) then text = text .. ":9999" end
  local host, port = text:match("^([%w%.%-]+):(%d+)$")
  port = port and whole_number(1, 65535)(port)
  return port and host .. ":" .. port or nil
end

local function text_up_to(most)
  return function(text) return #text <= most and text or nil end
end

local function start_level(text)
  return text:lower() == "highest" and "highest" or whole_number(1, 81)(text)
end

-- Name, default, reader (nil for what makes no sense), what makes sense.
local KNOWN = {
  { "server", "127.0.0.1:9999", address, "host:port, the host best as a number such as 192.168.0.7" },
  { "token", "", text_up_to(128), "at most 128 bytes" },
  { "name", "", text_up_to(64), "at most 64 bytes, by which the server shows this client" },
  { "start_level", 1, start_level, "1 to 81, or highest for the highest level the game offers" },
  { "overlay", false, yes_or_no, "yes or no" },
  { "report_s", 0, seconds, "seconds between two status lines, at most 3600, 0 for none" },
  { "stop_file", "", text_up_to(4096), "a path" },
  { "seed", 0, whole_number(math.mininteger, math.maxinteger), "a whole number, 0 to draw one" },
  { "unlock_level", 0, whole_number(0, 81), "the level up to which the start menu goes, 0 to leave it alone" },
  { "disarm_checksum", true, yes_or_no, "yes or no" },
}

local function lines_of(text)
  local found = {}
  local number = 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    if line:find("%S") and not line:find("^%s*#") then
      local name, value = line:match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
      if not name then return nil, ("line %d of settings.txt is not name = value"):format(number) end
      found[name:lower()] = value
    end
  end
  return found
end

-- All settings by name; or nil and what is wrong, in one line.
function settings.read(getenv, file_text)
  local in_file, why = lines_of(file_text or "")
  if not in_file then return nil, why end
  local chosen = {}
  for _, known in ipairs(KNOWN) do
    local name, default, reader, sense = table.unpack(known)
    local variable = "PROTEGE_" .. name:upper()
    local text, place = getenv(variable), variable
    if not text or text == "" then
      text, place = in_file[name], name .. " in settings.txt"
    end
    in_file[name] = nil
    chosen[name] = default
    if text and text ~= "" then chosen[name] = reader(text) end
    if chosen[name] == nil then return nil, ("%s must be %s; found %q"):format(place, sense, text) end
  end
  local unknown = next(in_file)
  if unknown then return nil, ("settings.txt has an unknown setting: %s"):format(unknown) end
  return chosen
end

return settings
