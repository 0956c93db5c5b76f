-- Keep a hold of a read or write lock until some time, instead of its release: it gets an owner that no process has.
-- Other holds go on as they are.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  hold id; with what is to be remembered of the hold, "HOLD_ID TTL_MS KIND END"
-- ARGV[2]  how long to keep it, in ms
-- ARGV[3+] for each name: wake queue, turn, channel, what its timeout keys begin with
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local left_ms = tonumber(ARGV[2])
local hold_id = id_of_ending_hold(left_ms, #KEY_FIELDS)

-- What comes before anything of the hold is changed: a new timeout key can't be made while the slot of the lock moves.
local function prepare(name, field, count)
	look_at_readers(name, field, count)
	name.kept_owner = kept_until(field) and field or kept_owner(field, now_ms() + left_ms)
	if name.own_ms > 0 then
		-- A full server allows this, and what comes after a write.
		redis.call('HDEL', name.holds, '')
		redis.call('SET', timeout_key(name, name.kept_owner, 1), 1, 'PX', digits(left_ms))
	end
end

local function keep(name)
	local hold = remove_hold(name, hold_id, prepare)
	if not hold or not hold.count then return 0 end
	local owner, is_read = name.kept_owner, not is_writer_field(hold.field)
	if hold.is_told then redis.call('DEL', timeout_key(name, owner, 1)) end
	if hold.is_told or is_read and name.own_ms == 0 then return release_readwrite(name, hold.field, hold.count) end
	local is_new = owner ~= hold.field
	if is_new then redis.call('HINCRBY', name.lock, owner, 1) end
	if is_read then
		record_end(name, owner, left_ms)
		name.left.reads_ms = math.max(name.left.reads_ms, left_ms)
	else
		table.insert(name.left.writers, owner)
	end
	put_kept_hold(name, hold_id, hold, owner, left_ms)
	if is_read then redis.call('HSET', name.holds, owner, ' ' .. hold_id) end
	extend(name.lock, digits(left_ms))
	if is_new then release_readwrite(name, hold.field, hold.count) end
	return 2
end

return for_each_name(hold_id, keep)
