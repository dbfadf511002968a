-- Reads the leases held now.
--
-- KEYS[1]  the leases: zset, lease id -> expiry in ms by this server's clock
-- Result   {id, expiry, id, expiry, ...}, the one that expires first in front

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)

return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
