-- Extend the lease of the permits of a hold, for every name. Nothing changes for a name whose hold was released or is kept
-- until some time, or has ended, so a renewal that arrives late does no harm.
-- Redisson RedissonPermitExpirableSemaphore.updateLeaseTimeAsync
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- Returns  as plain_renew.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, {}
local lease_ms, hold_id = ARGV[1], ARGV[2]

local function is_held(name, count, end_ms)
	name.overwritten = overwritten(name) or overwritten_side(name)
	return not name.overwritten and end_ms > now_ms() and count > 0 and has_all_permits(name, hold_id, count)
end

local function renew(name, _, record)
	local _, _, end_ms, token = hold_record_parse(record)
	local count = tonumber(token) or 0
	if not is_held(name, count, tonumber(end_ms)) then return nil end
	local new_end_ms = math.max(end_ms, now_ms() + lease_ms)
	local permits, ends = permits_until(name, hold_id, count, new_end_ms)
	-- A full server allows this, and what comes after a write.
	redis.call('HDEL', name.holds, '')
	redis.call(unpack(permits))
	redis.call(unpack(ends))
	extend(name.ends, ends_ttl_ms(lease_ms))
	return new_end_ms - now_ms()
end

return renew_all(renew)
