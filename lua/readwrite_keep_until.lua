-- Keep a hold of a read or write lock until some time, instead of its release: it gets an owner that no process has.
-- Other holds go on as they are.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  hold id
-- ARGV[2]  how long to keep it, in ms
-- ARGV[3+] for each name: wake queue, turn, channel, what its timeout keys begin with
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local hold_id, left_ms = ARGV[1], ARGV[2]

local function keep(name)
	local hold = remove_hold(name, hold_id)
	if not hold or not hold.count then return 0 end
	local is_read, is_new = not is_writer_field(hold.field), not kept_until(hold.field)
	if is_read and reader_ttl_ms(name, hold.field, hold.count) == 0 then
		return release_readwrite(name, hold.field, hold.count)
	end
	local owner = hold.field
	if is_new then
		owner = kept_owner(hold.field, now_ms() + left_ms)
		redis.call('HINCRBY', name.lock, owner, 1)
	end
	if is_read then
		redis.call('SET', timeout_key(name, owner, 1), 1, 'PX', left_ms)
		record_end(name, owner, tonumber(left_ms))
		redis.call('HSET', name.holds, owner, ' ' .. hold_id)
	end
	put_kept_hold(name, hold_id, hold, owner, left_ms)
	extend(name.lock, left_ms)
	if is_new then release_readwrite(name, hold.field, hold.count) end
	return 2
end

return for_each_name(hold_id, keep)
