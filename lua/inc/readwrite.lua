-- Read and write locks: what is left after a release.

local MUTEX_LOCK = 'plain or fair lock'

-- Each key alone: while the slot of the lock moves a command with a key that is missing is an error, and of the lock whose last
-- hold was removed there are no others left.
local function delete_all(name)
	redis.call('DEL', name.lock)
	redis.pcall('DEL', name.holds)
	redis.pcall('DEL', name.ends)
end

-- Frees a lock of which only its mode is left, since its last reader was removed. The caller may not acquire it.
local function free_if_empty(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		delete_all(name)
		name.is_free = true
		wake_next(name)
	end
end

-- How long the longest of our readers lasts, but for the one whose field is except; 0 when none does.
local function longest_reader_ms(name, except)
	for position = 0, EXPIRED_MAX - 1 do
		local owner = redis.call('ZRANGE', name.ends, position, position, 'REV')[1]
		if not owner then return 0 end
		local left_ms = owner ~= except and our_reader_ttl_ms(name, owner) or 0
		if left_ms > 0 then return left_ms end
	end
	-- There may be others: a request looks again when the recorded end of the first ones is over.
	return math.max(redis.call('PTTL', name.lock), LATE_MS)
end

-- How long a lock with many readers is held still. nil where that takes a look at each field: there is a writer, or
-- one of Java's readers may last longest.
local function many_readers_ms(name, except)
	if redis.call('HLEN', name.lock) <= FIELDS_MAX then return nil end
	if redis.call('HGET', name.lock, 'mode') ~= 'read' then return nil end
	local left_ms = longest_reader_ms(name, except)
	local ours = redis.call('ZCARD', name.ends)
	local are_all_ours = redis.call('HLEN', name.lock) - 1 == ours
	if are_all_ours or left_ms >= redis.call('PTTL', name.lock) then return left_ms end
	return nil
end

-- What is on the lock, but for that field: the fields of the writer and of kept holds of one; how long the longest reader
-- lasts.
local function holders_left(name, except)
	local left = { writers = {}, reads_ms = 0 }
	local many_ms = many_readers_ms(name, except)
	if many_ms then
		left.reads_ms = many_ms
		return left
	end
	local listed = redis.call('HGETALL', name.lock)
	for i = 1, #listed, 2 do
		local field, count = listed[i], hold_count(listed[i + 1])
		if field ~= 'mode' and field ~= except and is_writer_field(field) then
			left.writers[#left.writers + 1] = field
		elseif count and field ~= except then
			left.reads_ms = math.max(left.reads_ms, reader_ttl_ms(name, field, count))
		end
	end
	return left
end

local function set_all_ttls(name, ttl_ms)
	set_ttl(name, ttl_ms)
	if not has_java_readers(name) then redis.pcall('PEXPIRE', name.ends, digits(ttl_ms)) end
end

local function leave_free(name, was_write)
	delete_all(name)
	if not is_regained_next(name) then redis.pcall('DEL', name.turn) end
	-- wire: a writer wakes all waiters, the last reader wakes one.
	wake_waiters(name, was_write and WAKE_ALL or WAKE_ONE)
	return 2
end

-- Leaves the lock to the holds that are left: a write lock, a read lock, or free. 1 or 2, as in inc/names.lua.
local function settle(name, left, was_write)
	if redis.call('HLEN', name.lock) <= 1 then return leave_free(name, was_write) end
	local is_held, is_earlier
	if left.writers[1] then is_held, is_earlier = leave_to(name, left.writers, left.reads_ms, set_all_ttls) end
	if is_earlier then wake_waiters(name, WAKE_ALL) end
	if is_held then return 1 end
	if left.reads_ms > 0 then
		set_all_ttls(name, left.reads_ms)
		if redis.call('HGET', name.lock, 'mode') == 'write' then
			redis.call('HSET', name.lock, 'mode', 'read')
			-- Other readers may acquire it now. Redisson does not notify them.
			publish(name.channel, WAKE_ALL)
		end
		return 1
	end
	return leave_free(name, was_write or left.writers[1])
end

-- Sets name.own_ms, how long the longest hold of this owner lasts, if it is a reader, and name.left, what is on the lock
-- without the hold, and without the other holds of a reader. To be run before anything of the hold is changed: it is an
-- error while a timeout key is at another node.
local function look_at_readers(name, field, count)
	local is_read = not is_writer_field(field)
	-- A writer alone: while its slot moves even to look for readers is an error.
	if not is_read and redis.call('HLEN', name.lock) == 2 then
		name.own_ms, name.left = 0, { writers = { count > 1 and field or nil }, reads_ms = 0 }
		return
	end
	remove_expired(name)
	name.own_ms = is_read and reader_ttl_ms(name, field, count) or 0
	name.left = holders_left(name, (is_read or count == 1) and field)
end

-- Which of a reader's timeout keys belongs to which hold is not known: the holds that it keeps all last as long as the
-- longest of them.
local function release_read(name, owner, count)
	if name.own_ms == 0 then
		remove_readers(name, { [owner] = true })
		settle(name, name.left, false)
		return 3
	end
	-- wire: the last key is deleted, whichever hold is released.
	redis.call('DEL', timeout_key(name, owner, count))
	if count == 1 then
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		-- As in delete_all: it had no other field, maybe.
		redis.pcall('HDEL', name.holds, owner)
		return settle(name, name.left, false)
	end
	redis.call('HINCRBY', name.lock, owner, -1)
	remove_reader_hold(name, owner)
	local _, records = reader_holds(name, owner, count - 1)
	local left_ms = math.min(name.own_ms, owners_left_ms(name, { owner }, records)[owner])
	if left_ms <= 0 then
		for number = 1, count - 1 do redis.call('DEL', timeout_key(name, owner, number)) end
		remove_readers(name, { [owner] = true })
		return settle(name, name.left, false)
	end
	for number = 1, count - 1 do
		redis.call('SET', timeout_key(name, owner, number), 1, 'PX', digits(left_ms))
	end
	redis.call('ZADD', name.ends, 'XX', digits(now_ms() + left_ms), owner)
	name.left.reads_ms = math.max(name.left.reads_ms, left_ms)
	return settle(name, name.left, false)
end

-- After look_at_readers.
local function release_readwrite(name, field, count)
	if not is_writer_field(field) then return release_read(name, field, count) end
	remove_one(name, field, count)
	return settle(name, name.left, true)
end

-- So that the readers come in that wait for the turn of this waiting writer. An error, or nil.
local function end_writers_turn(owner)
	for _, name in ipairs(names) do
		local turn = redis.pcall('GET', name.writer)
		if is_error(turn) and not is_wrong_type(turn) then return command_error('GET', turn) end
		if type(turn) == 'string' and string.match(turn, '^%d+ (%S+) ') == owner then
			redis.call('DEL', name.writer)
			publish(name.channel, WAKE_ALL)
		end
	end
	return nil
end
