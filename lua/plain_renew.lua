-- Extend the lease of a hold of a plain, fair or write lock, for every name. A name whose hold was released or is kept does not
-- change, so a renewal that arrives late does no harm.
-- Redisson renewal.LockTask
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- Returns  0  the only name was renewed, and its TTL is the lease
--          {0, ttl in ms}  all names were renewed; the smallest TTL
--          {0, ttl in ms, {index, request}}  all names were renewed, and a hold was asked to stop: the number of the first such
--            name, and the request (inc/suffix.lua)
--          {index}  a hold was lost: the number of the first such name; all holds that are not lost were renewed
--          {index, type}  as {index}; the hold was lost because a user has overwritten a key of the name with a value of this
--            type

local lease_ms, hold_id = ARGV[1], ARGV[2]
local KEY_COUNT = 2

-- include: suffix
-- include: fast_renew
local is_held = is_fast and call('HEXISTS', lock, field) == 1
-- include: fast_renewed

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds' }, {}

-- include: renew

local function renew(name, owner)
	if not read_field(name, name.lock, owner) then return nil end
	return extend(name.lock, lease_ms)
end

return renew_all(renew)
