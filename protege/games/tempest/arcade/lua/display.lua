-- The overlay: a few lines of text over the game. Making the lines is pure; drawing them needs MAME.

local state = ... -- the module of state.lua
local display = {}

local KIND_NAMES = {
  [state.FLIPPER] = "flipper",
  [state.PULSAR] = "pulsar",
  [state.TANKER] = "tanker",
  [state.SPIKER] = "spiker",
  [state.FUSEBALL] = "fuseball",
}
local TEXT_COLOUR, BACKGROUND = 0xFFFFFFFF, 0xB0000000 -- alpha, red, green, blue
local LINE_HEIGHT = 0.03 -- of the picture

-- What the client sees, is paid, is advised and does, for this tick.
function display.lines(record, report, controls, link)
  local lines = {
    ("%s %s, frame %d"):format(link.status == "away" and "no server at" or "server", link.server, report.frame),
    ("state $%02X mode $%02X  level %d %s"):format(
      record.game_state, record.game_mode, record.level + 1, record.open and "open" or "closed"),
    ("score %06d  objective %+.0f  subjective %+.2f%s"):format(
      record.score, report.objective, report.subjective, report.died and "  LIFE LOST" or ""),
    ("lane %d  fire %d zap %d spinner %+d"):format(record.lane, controls.fire, controls.zap, controls.spinner),
    ("teacher: lane %d%s%s"):format(
      report.target, report.advice_fire and " fire" or "", report.advice_zap and " zap" or ""),
  }
  for slot = 1, state.ENEMIES do
    if record.depth[slot] > 0 then
      lines[#lines + 1] = ("%d %-8s lane %2d (%+.1f)  depth $%02X"):format(
        slot - 1, KIND_NAMES[record.kind[slot]] or "?", record.lane_of[slot], record.place[slot], record.depth[slot])
    end
  end
  for shot = 1, state.ESHOTS do
    if record.shot_depth[shot] > 0 then
      lines[#lines + 1] = ("shot lane %2d (%+d)  depth $%02X"):format(
        record.shot_lane[shot], record.shot_distance[shot], record.shot_depth[shot])
    end
  end
  if report.cut > 0 then
    lines[#lines + 1] = ("%d bytes cut to their range, %d so far"):format(report.cut, report.cut_so_far)
  end
  return lines
end

-- `container` is the one of MAME's own menus: unlike the screen's it is upright. It is emptied after every video frame,
-- so this is called in each.
function display.draw(container, lines)
  for i = 1, #lines do container:draw_text("left", (i - 1) * LINE_HEIGHT, lines[i], TEXT_COLOUR, BACKGROUND) end
end

return display
