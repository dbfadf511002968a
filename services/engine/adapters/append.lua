-- Adds events to a run's replay log, all of them or none. Those that this writer has added before are left as they are.
--
-- KEYS[1]  the log: stream, 0-<number> -> by <writer> event <sealed>; the last one of a run: by <writer> end <sealed>
-- ARGV[1]  the writer: a name that no other process has
-- ARGV[2]  about how many events are kept
-- ARGV[3]  how long the log is kept after this, in seconds
-- ARGV[4]  the number of the first event given
-- ARGV[5]  'end' when the last event given is the run's last, else 'event'
-- ARGV[6]  the sealed events, this one and all that follow
-- Result   -1 when they are in the log; -2 when another process has written there, or the end is; else the number of
--          the last event in the log, after which events are missing

local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last = 0
if top then
  last = tonumber(string.sub(top[1], 3))
end
local first = tonumber(ARGV[4])
if first > last + 1 then
  return last
end

local ended = top and top[2][3] == 'end'
local final = first + #ARGV - 6
if ended and final > last then
  return -2
end
if first <= last then
  local there = redis.call('XRANGE', KEYS[1], '0-' .. first, '0-' .. final)
  for _, entry in ipairs(there) do
    if entry[2][2] ~= ARGV[1] then
      return -2
    end
  end
end

for number = last + 1, final do
  local name = 'event'
  if number == final then
    name = ARGV[5]
  end
  local sealed = ARGV[6 + number - first]
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '0-' .. number, 'by', ARGV[1], name, sealed)
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
return -1
