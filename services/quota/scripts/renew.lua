-- Keeps a lease. One that was lost is taken again, also past the limit: what runs already must be counted.
--
-- KEYS[1]  the leases: zset, lease id -> expiry in ms by this server's clock
-- ARGV[1]  the lease's id
-- ARGV[2]  how long a lease lasts, in ms
-- Result   1 when the lease had been lost, else 0

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)

return redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
