-- How the hold of a read or write lock is kept until some time. The script sets hold_id and kept_ms.

-- include: readwrite_release
-- include: kept
-- include: keep

-- Create the timeout key of a kept hold. False: the slot of the lock moves to another node, so no key can be created on this
-- one.
local function make_timeout_key(name, owner)
	local key = timeout_key(name, owner, 1)
	-- Run an HDEL first that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse a write that needs memory.
	redis.call('HDEL', name.holds, '')
	local reply = redis.pcall('SET', key, 1, 'PX', kept_ms)
	if is_elsewhere(reply) then return false end
	-- Run SET again, to raise its error.
	if is_error(reply) then redis.call('SET', key, 1, 'PX', kept_ms) end
	return true
end

local function keep(name, field, count, hold)
	local is_read = not is_writer_field(field)
	if must_be_released(name, field, hold_id) or is_read and name.own_ms == 0 then return false end
	local is_new = not kept_until(field)
	local owner = is_new and kept_owner(field, now_ms() + kept_ms) or field
	if is_read and not make_timeout_key(name, owner) then
		-- Keep the owner of the hold, whose timeout keys exist: that of a new owner could not be created. Without a timeout key a
		-- writer would acquire the lock too early.
		is_new, owner = false, field
		extend_reader(name, field, count, kept_ms)
	end
	put_kept_hold(name, hold_id, hold, owner, kept_ms)
	if is_new then redis.call('HINCRBY', name.lock, owner, 1) end
	if is_read then
		record_end(name, owner, tonumber(kept_ms))
		name.left.reads_ms = math.max(name.left.reads_ms, kept_ms)
		if is_new then redis.call('HSET', name.holds, owner, ' ' .. hold_id) end
	else
		table.insert(name.left.writers, owner)
	end
	extend(name.lock, kept_ms)
	if is_new then release_readwrite(name, field, count) end
	return true
end
