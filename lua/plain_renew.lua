-- Extend the lease of a hold of a plain, fair or write lock, for every name. Nothing changes for a name whose hold was
-- released or is kept until some time, so a renewal that arrives late does no harm.
-- Redisson renewal.LockTask
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- Returns  0  renewed: the TTL is the lease
--          {0, ttl in ms}  all renewed; the smallest TTL among them
--          {0, ttl in ms, {index, request}}  the same, and the first name of which the hold is asked to stop
--          {index}  the first name that is not held any more; all that are held were renewed
--          {index, type}  the same, and why: its key was overwritten with a value of that type

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
