-- Takes a slot for a lease, unless every slot is taken. Asked again, the same lease lasts anew.
--
-- KEYS[1]  the leases: zset, lease id -> expiry in ms by this server's clock
-- ARGV[1]  the lease's id
-- ARGV[2]  how long a lease lasts, in ms
-- ARGV[3]  the number of slots
-- Result   {1 when the lease is held now, else 0; the number of leases held now}

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)

local active = redis.call('ZCARD', KEYS[1])
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  if active >= tonumber(ARGV[3]) then
    return {0, active}
  end
  active = active + 1
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
return {1, active}
