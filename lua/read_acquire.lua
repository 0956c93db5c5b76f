-- Acquire the read lock of every name, or of none. Readers share the lock. An owner that has the write lock can acquire the read
-- lock as well. A reader leaves the lock to a writer of ours that has waited longer: otherwise readers that come and go would
-- starve the writer. Redisson's readers do not wait for writers.
-- Redisson RedissonReadLock.tryLockInnerAsync
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV     see inc/request.lua; of each name: wake queue, turn, channel, the start of its timeout keys
-- Returns  as plain_acquire.lua; but if a waiting writer comes before the caller, holder is this writer. Then ttl is -2 if the
--          lock is free, and -3 if readers hold it

-- include: suffix
-- include: request

local FIXED_ARGS, KEY_COUNT, may_be_fast = 5, 4, not want_token and not has_waited
local field, counter, turn, ends = fresh_owner, nil, ARGV[FIXED_ARGS + 2], KEYS[4]
local own_key = ARGV[FIXED_ARGS + 4] .. ':' .. field .. TIMEOUT .. '1'

-- include: fast_acquire
local is_added = is_fast and call('HSET', lock, 'mode', 'read', field, '1') == 2
	and call('SET', own_key, '1', 'PX', lease_ms).ok and call('ZADD', ends, end_ms, field) == 1
	and call('PEXPIRE', ends, lease_ms) == 1
-- include: fast_acquired

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }

-- include: options
-- include: names
-- include: wake

if undo_ms then
	-- include: readwrite_undo
	return undo_readwrite()
end

-- include: check_lock
-- include: holder
-- include: kept
-- include: expired_readers
-- include: readwrite
-- include: first_hold
-- include: wait

-- Write the record of the hold, and add its id to the field of the reader: see reader_holds.lua.
local function add_reader_hold(name, owner, record)
	local listed = redis.call('HGET', name.holds, owner) or ''
	write_for(lease_ms, 'HSET', name.holds, hold_id, record, owner, listed .. ' ' .. hold_id)
end

-- Whether the caller was already waiting when a reader with the turn acquired the free lock (inc/turn.lua: READERS). Such a
-- caller joins the readers even if a writer waits. That writer may have claimed the next turn only because the caller was slow to
-- make its attempt.
local function was_let_in(name)
	local turn = waits_since_us and redis.pcall('GET', name.turn)
	local until_us = type(turn) == 'string' and string.match(turn, '^' .. READERS .. ' (%d+)$')
	return until_us and waits_since_us < tonumber(until_us)
end

-- The waiting writer that came before the caller: its owner, its note, and how many ms its claim of the next turn lasts; nil:
-- none. A caller that has not waited yet always comes after a waiting writer. The current time is not compared with the time of
-- the writer, because the two could be by the clocks of two servers.
local function earlier_writer(name)
	local since_us, owner, writer_note =
		string.match(redis.call('GET', name.writer) or '', '^(%d+) (%S+) (.*)$')
	local is_earlier = since_us and not (waits_since_us and waits_since_us <= tonumber(since_us))
	if is_earlier and not was_let_in(name) then
		return owner, writer_note, redis.call('PTTL', name.writer)
	end
	return nil
end

-- The reply if an owner that does not hold this name cannot acquire it; else nil.
local function busy_reply(index, name, mode)
	if mode == 'write' and not name.is_ended_write then
		return wait_reply(index, name.kept_ms or redis.call('PTTL', name.lock), holder_of(name))
	elseif name.is_free and earlier_waiter(name) then
		return turn_reply(index)
	end
	local writer, writer_note, retry_after_ms = earlier_writer(name)
	if not writer then return nil end
	local reply = wait_reply(index, name.is_free and -2 or -3, writer, writer_note, -1)
	reply[6] = sooner_ms(reply[6], retry_after_ms + 1)
	return reply
end

-- How many ms the last kept hold of a writer still lasts. 0 or less: all kept holds of writers have ended. nil: a writer has a
-- hold that is not kept.
local function kept_write_ms(name)
	local last_ms = 0
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if is_writer_field(field) then
			local end_ms = kept_until(field)
			if not end_ms then return nil end
			last_ms = math.max(last_ms, end_ms)
		end
	end
	return last_ms - now_ms()
end

-- Return the reply if this name cannot be acquired; else nil. Set name.is_ended_write if the mode is write, but all write holds
-- were kept ones that have ended.
local function check(index, name)
	local reply = check_lock(index, name)
	if reply then return reply end
	local mode
	if not name.is_free then
		mode = redis.call('HGET', name.lock, 'mode')
		if not mode then return { -1, index, MUTEX_LOCK } end
		for _, owner in ipairs(reentrant_owners) do remove_if_expired(name, owner) end
		free_if_empty(name)
	end
	if not name.is_free then
		name.owner = holding_owner(name.lock, '') or holding_owner(name.lock, WRITE)
		if mode == 'write' then
			name.kept_ms = kept_write_ms(name)
			name.is_ended_write = name.kept_ms and name.kept_ms <= 0
		end
	end
	if not name.owner then
		reply = busy_reply(index, name, not name.is_free and mode)
		name.owner = fresh_owner
		if reply then
			-- reply[8]: let every waiting reader watch the lock, so that one message on the channel of the lock wakes all
			-- readers.
			reply[8] = 1
		end
	end
	name.field = name.owner
	return reply
end

-- Delete name.ends if the lock was deleted or has expired under our readers, and Redisson's readers have acquired it since.
-- Otherwise the owners in name.ends would be taken for readers. In that case no reader of ours
-- has come since, so none of these owners is in the lock hash, and it is enough to check one of them.
local function delete_ends_of_lost_lock(name)
	delete_overwritten_ends(name)
	local reader = redis.call('ZRANGE', name.ends, 0, 0)[1]
	if reader and redis.call('HEXISTS', name.lock, reader) == 0 then
		redis.call('DEL', name.ends)
	end
end

-- Add a hold of a reader. Other readers may have the lock.
local function add_hold(name)
	local count = 1
	if name.is_free then
		acquire_free(name, NO_TOKEN, 'mode', 'read', name.field, 1)
	else
		delete_ends_of_lost_lock(name)
		count = redis.call('HINCRBY', name.lock, name.field, 1)
		if name.is_ended_write then redis.call('HSET', name.lock, 'mode', 'read') end
		add_reader_hold(name, name.owner, new_hold_record(name, NO_TOKEN))
		extend(name.lock, lease_ms)
	end
	redis.call('SET', timeout_key(name, name.owner, count), 1, 'PX', lease_ms)
	record_end(name, name.owner, tonumber(lease_ms))
	return count, NO_TOKEN
end

-- Extend the hold of a repeated request, which the lock hash counts already.
local function repeat_hold(name, record)
	local count = tonumber(redis.call('HGET', name.lock, name.field))
	hold_record_extend(name.holds, hold_id, record, lease_ms)
	extend(name.holds, lease_ms)
	extend(name.lock, lease_ms)
	extend_reader(name, name.owner, count, lease_ms)
	record_end(name, name.owner, tonumber(lease_ms))
	return count, NO_TOKEN
end

-- Wake the waiting readers that left the free lock to this reader, since they can share it. A reader that has waited also wakes
-- the next waiter in the queue. So the readers in the queue acquire the lock one after the other, until the next waiter is a
-- writer, which claims the next turn.
local function let_others_in(name)
	local had_turn = name.is_free and redis.pcall('SET', name.turn, READERS .. ' ' .. digits(now_us()), 'XX', 'PX', TURN_MAX_MS)
	-- had_turn is also true if SET returned an error, for example because the memory is full. The message then wakes readers in
	-- vain, which does no harm.
	if had_turn then send(name.channel, WAKE_ALL) end
	leave_with_lock(name)
	if waits_since_us then
		wake_first(name)
		notify_new_head(name)
	end
end

local function acquire_shared(name)
	local record = not name.is_free and redis.call('HGET', name.holds, hold_id)
	local count, token
	if record then
		count, token = repeat_hold(name, record)
	else
		count, token = add_hold(name)
	end
	if not name.is_free then remove_expired(name) end
	let_others_in(name)
	return count, token
end

return acquire_all(HASH_RIGHTS .. READWRITE_RIGHTS, check, acquire_shared)
