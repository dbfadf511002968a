-- Gives a lease back. One that isn't held changes nothing.
--
-- KEYS[1]  the leases: zset, lease id -> expiry in ms by this server's clock
-- ARGV[1]  the lease's id
-- Result   1 when the lease was held, else 0

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)

return redis.call('ZREM', KEYS[1], ARGV[1])
