-- The connection to the server: greeting, one frame out and one reply in, timeouts, back-off. Never waits.
--
-- Pure: sockets come from `open(address)`, seconds from `now()`, random numbers from `chance()`. A socket has `write`,
-- `read` and `close`; `read` returns at once with whatever has come, and "" also when the other side is gone. Hence two
-- rules: a silent server is known by the clock alone, and after silence nothing more is written, because a second
-- write to a closed peer ends the whole emulator where broken pipes are signals.

local link = {}
link.__index = link

local MARK, VERSION = 0x50, 1
local PLAIN_GREETING = "\0\0" -- of clients that know no versions; nobody answers it
local GREETING_TIMEOUT_S, REPLY_TIMEOUT_S = 5.0, 3.5
local FIRST_DELAY_S, LAST_DELAY_S = 0.5, 30.0
local REST_PER_ATTEMPT = 10 -- connecting to a host that drops packets blocks; rest this many times as long
local VERDICTS = {
  "the token is missing or wrong: set PROTEGE_TOKEN to the server's",
  "the server has all the clients it takes",
}

-- `settings`: server ("host:port"), token, name.
function link.new(settings, open, now, chance, say)
  local self = setmetatable({}, link)
  self.server, self.open, self.now, self.chance, self.say = settings.server, open, now, chance, say
  self.greeting = string.pack(">BBs2", MARK, VERSION, string.pack("s1s1", settings.token, settings.name))
  self.connected = "connected to " .. settings.server
  self.plain = false -- whether to try the plain greeting next
  self.status = "away" -- away, greeting, ready or waiting
  self.pending = "" -- bytes of an answer that has only partly come
  self.delay, self.retry_at, self.deadline = FIRST_DELAY_S, -math.huge, 0
  self.reply = { fire = 0, zap = 0, spinner = 0 } -- the last one of this connection
  self.advanced, self.level, self.refused = false, 0, false -- what the server said to the greeting
  return self
end

function link:tell(text)
  if text ~= self.told then
    self.told = text
    self.say(text)
  end
end

function link:close()
  if self.socket then self.socket:close() end
  self.socket, self.status, self.pending = nil, "away", ""
end

-- Closes, and says when to try again.
function link:fail(why, attempt_s)
  self:close()
  self:tell(("%s: %s; trying again by itself"):format(self.server, why))
  local delay = self.delay * (0.75 + 0.5 * self.chance()) -- apart, so that many clients do not return in one instant
  self.retry_at = self.now() + math.max(delay, REST_PER_ATTEMPT * (attempt_s or 0))
  self.delay = math.min(2 * self.delay, LAST_DELAY_S)
end

function link:connect()
  self.refused = false
  local started = self.now()
  local socket, why = self.open(self.server)
  if not socket then return self:fail(why, self.now() - started) end
  self.socket = socket
  local greeting = self.plain and PLAIN_GREETING or self.greeting
  if socket:write(greeting) ~= #greeting then return self:fail("the connection broke") end
  if self.plain then return self:begin(false, 0) end
  self.status, self.deadline = "greeting", self.now() + GREETING_TIMEOUT_S
end

-- Frames may follow. `advanced` and `level` are where the server wants games to start; level 0 is no wish.
function link:begin(advanced, level)
  self.advanced, self.level = advanced, level
  self.reply.fire, self.reply.zap, self.reply.spinner = 0, 0, 0
  self.status = "ready"
end

-- The next `count` bytes once all have come; nil until then. What has come is kept.
function link:take(count)
  local text = self.socket:read(count - #self.pending)
  if text and #text > 0 then self.pending = self.pending .. text end
  if #self.pending < count then return nil end
  text, self.pending = self.pending, ""
  return text
end

function link:greet()
  local answer = self:take(5)
  if not answer then
    if self.now() > self.deadline then
      self.plain = self.pending == "" -- an old server closes without a word
      self:fail("no answer to the greeting")
    end
    return
  end
  local mark, _, verdict, advanced, level = answer:byte(1, 5)
  if mark ~= MARK then return self:fail("what answers is no server of Protege") end
  if verdict ~= 0 then
    self.refused = true
    return self:fail(VERDICTS[verdict] or "the server refuses this client")
  end
  self:begin(advanced ~= 0, level)
end

-- Called often while no reply is awaited: connects when it is time, and completes the greeting.
function link:poll()
  if self.status == "away" and self.now() >= self.retry_at then self:connect() end
  if self.status == "greeting" then self:greet() end
end

function link:send(frame)
  if self.socket:write(frame) ~= #frame then return self:fail("the connection broke") end
  self.status, self.deadline = "waiting", self.now() + REPLY_TIMEOUT_S
end

-- The reply once it is complete, else nil; too late and the connection is given up.
function link:receive()
  local bytes = self:take(3)
  if not bytes then
    if self.now() > self.deadline then
      self.plain = false
      self:fail(("no reply for %.1f s"):format(REPLY_TIMEOUT_S))
    end
    return nil
  end
  local reply = self.reply
  reply.fire, reply.zap, reply.spinner = string.unpack("bbb", bytes)
  self.status, self.delay = "ready", FIRST_DELAY_S
  self:tell(self.connected)
  return reply
end

return link
