-- Extend the lease of the permits of a hold, for every name. A name whose hold was released, is kept or has ended does not
-- change, so a renewal that arrives late does no harm.
-- Redisson RedissonPermitExpirableSemaphore.updateLeaseTimeAsync
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- Returns  as plain_renew.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, {}
local lease_ms, hold_id = ARGV[1], ARGV[2]

-- include: renew
-- include: permits
-- include: semaphore_keys

local function renew(name, _, record)
	local _, _, end_ms = hold_record_parse(record)
	local count = permits_of(record)
	name.overwritten = overwritten(name) or overwritten_side(name)
	if name.overwritten or tonumber(end_ms) <= now_ms() or count == 0 then return nil end
	if not has_all_permits(name, hold_id, count) then return nil end
	local new_end_ms = math.max(end_ms, now_ms() + lease_ms)
	-- Run an HDEL first that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse a write that needs memory.
	redis.call('HDEL', name.holds, '')
	set_permits(name, hold_id, count, new_end_ms)
	return new_end_ms - now_ms()
end

return renew_all(renew)
