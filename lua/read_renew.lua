-- Extend the lease of a hold of a read lock, for every name. Only the owner's own holds are extended, so those of a dead reader
-- expire.
-- Redisson renewal.ReadLockTask
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  lease in ms
-- ARGV[2]  hold id
-- ARGV[3+] for each name: the start of its timeout keys
-- Returns  as plain_renew.lua

local lease_ms, hold_id = ARGV[1], ARGV[2]
local KEY_COUNT, ends = 3, KEYS[3]

-- include: suffix
-- include: fast_renew
-- The fast path needs a hold that is the only one of its owner, and a lock whose readers are all ours. Otherwise the slow path
-- must extend more timeout keys of the owner, or give name.ends a longer TTL (readers.lua: record_end).
local is_held = is_fast and call('HGET', lock, field) == '1'
	and call('PEXPIRE', ARGV[3] .. ':' .. field .. TIMEOUT .. '1', lease_ms, 'GT') == 1
local field_count = is_held and call('HLEN', lock)
is_held = (field_count == 2 or type(field_count) == 'number' and field_count - 1 == call('ZCARD', ends))
	and type(call('ZADD', ends, 'GT', end_ms, field)) == 'number' and call('PEXPIRE', ends, lease_ms, 'GT') == 1
-- include: fast_renewed

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'timeouts' }

-- include: renew
-- include: lock_fields
-- include: readers

local function renew(name, field)
	local count = hold_count(read_field(name, name.lock, field))
	-- A reader whose holds have expired has lost the lock. A later request removes its field.
	if not count or reader_ttl_ms(name, field, count) == 0 then return nil end
	extend_reader(name, field, count, lease_ms)
	record_end(name, field, tonumber(lease_ms))
	local ttl_ms = reader_ttl_ms(name, field, count)
	extend(name.lock, lease_ms)
	return ttl_ms
end

return renew_all(renew)
