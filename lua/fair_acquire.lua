-- Acquire the fair lock of every name, or of none. A free lock can be acquired if its queue is empty, or has the caller at its
-- head. Otherwise a caller that waits joins the queue of every name.
-- Redisson RedissonFairLock.tryLockInnerAsync; but deadlines are by the server's clock, and an acquisition does not lower those of
--          other waiters
-- KEYS     for each name: lock hash, holds hash, fencing counter, Redisson's queue and deadlines, our waiters
-- ARGV     see inc/request.lua; for each name: the wake queue and the turn of the plain lock, channel
-- Returns  as plain_acquire.lua; but ttl -2 says that the lock is free, and is left to another waiter. Then holder is the owner at
--          the head of the queue. It is empty if the queue is empty, or the caller is its head: then a waiter for the plain lock
--          has the next turn.

-- include: request

-- A caller that has waited does not take the fast path. That path takes a missing queue for an empty one, but the server may have
-- lost the queue, with waiters ahead of the caller.
local FIXED_ARGS, KEY_COUNT, may_be_fast = 5, 6, not has_waited
local field, counter, turn, own_key, ends = fresh_owner, KEYS[3], ARGV[FIXED_ARGS + 2], nil, nil

-- include: fast_acquire
local is_added = is_fast and call('HSET', lock, field, '1') == 1
-- include: fast_acquired

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'counter', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }

-- include: options
-- include: names
-- include: join

if undo_ms then
	-- include: mutex_keep
	-- include: last

	local NOT_SUBSCRIBED = '0'

	-- Release the lock, and join the queue again at the old position. Wake a waiter for the plain lock, but not the next waiter
	-- in the queue: the caller is before it, and tries again soon.
	local function release_and_enqueue(name, field, count, hold)
		-- Do not join the queue if the owner has another hold, or is an inherited owner: the hold is a re-entry, which needs no
		-- position. Do not join it either if a user has overwritten a key of the queue, because there is no position to keep.
		if count > 1 or field ~= fresh_owner or is_wrong_type(leave_error(name)) then
			return release_mutex(name, field, count)
		end
		redis.call('HDEL', name.lock, fresh_owner)
		if not leave_to_rest(name) then redis.call('DEL', name.lock, name.holds) end
		if redis.call('EXISTS', name.waiters) == 0 then
			-- This caller starts the queue, so no earlier waiter can come back to it: set no grace time, during which the caller
			-- would have to wait for them.
			name.grace_until_ms = 0
		end
		join_queue(name, fresh_owner, hold.note, waits_since_us, NOT_SUBSCRIBED)
		wake_waiters(name, WAKE_ONE)
		return 2
	end

	if may_wait then return release_all(hold_id, release_and_enqueue) end

	-- wire: leave the queue as RedissonFairLock.acquireFailedAsync does, but keep the deadlines of other waiters, and wake the
	-- next one.
	local was_head = {}
	for index, name in ipairs(names) do
		was_head[index] = redis.pcall('LINDEX', name.queue, 0) == fresh_owner
	end
	remember_holds(released_id, kept_ms)
	-- Release the locks first: whatever fails in the queue, they must not stay held.
	local results = release_all(hold_id, release_mutex, nil, kept_ms ~= '0' and keep)
	for index, name in ipairs(names) do
		-- If a user has overwritten a key of the queue, there is no queue to leave.
		if not is_wrong_type(leave_error(name)) then
			dequeue(name, fresh_owner)
			if waiter_in_turn(name) == fresh_owner then redis.pcall('DEL', name.turn) end
			if was_head[index] and redis.call('EXISTS', name.lock) == 0 then
				prune(name)
				wake_head(name)
			end
		end
	end
	return results
end

-- include: check_lock
-- include: holder
-- include: unsubscribed
-- include: next_turn
-- include: mutex

-- Record that the queue was read now by a caller that does not join it: load_grace measures from this time whether the server
-- had stalled. Use pcall: a server whose memory is full refuses this write, and the caller must learn all the same whether the
-- lock is held.
local function record_read(name)
	if redis.call('EXISTS', name.waiters) == 1 then
		redis.pcall('HSET', name.waiters, LAST_READ, read_now(name))
	end
end

-- Whether a waiter for the plain lock has the next turn and came before the caller.
local function is_turn_of_plain(name)
	local waiter = earlier_waiter(name)
	return waiter and waiter ~= REDISSON and waiter ~= fresh_owner
end

-- Whether the caller can acquire a lock that it does not hold.
local function is_our_turn(name)
	if not name.is_free or name.head and name.head ~= fresh_owner or is_turn_of_plain(name) then return false end
	return not must_await_return(name, waits_since_us) or name.head and has_kept_position(name, fresh_owner)
end

-- The error of a server whose memory is full; else nil. The command changes nothing, but needs memory.
local function memory_error(name)
	local reply = redis.pcall('ZADD', name.deadlines, 'XX', 0, '')
	return is_memory_error(reply) and reply or nil
end

-- Remove dead waiters, set name.head, and wake the head of the queue, which may not know that it is next: the waiter before it was
-- dead, or the lock has expired. A waiter of Redisson 3.13.6 also needs this message, because it sleeps too long.
local function prune_and_wake(name)
	prune(name, fresh_owner)
	name.head = head_of(name)
	if name.is_free and name.head ~= fresh_owner then
		remove_unsubscribed_redisson(name, fresh_owner)
		wake_head(name, fresh_owner)
		name.head = head_of(name)
	end
end

local function check(index, name)
	local reply = check_lock(index, name)
	if reply then return reply end
	if is_readwrite_lock(name) then return { -1, index, READWRITE_LOCK } end
	name.owner = holding_owner(name.lock, '')
	name.is_ours = name.owner ~= nil
	-- A server whose memory is full denies the heartbeats of all waiters, so take none of them for dead.
	name.denial = memory_error(name)
	if name.denial and name.is_free then return name.denial end
	if name.denial then
		name.head = head_of(name)
	else
		prune_and_wake(name)
	end
	name.owner = name.owner or fresh_owner
	name.field = name.owner
	name.is_busy = not name.is_ours and not is_our_turn(name)
	return nil
end

-- Join the queue of each name that the caller does not hold. Return two numbers: since when the caller waits, in microseconds,
-- and in how many ms it has to try again at the latest.
-- Do not join a queue while the memory of the server is full: after another write the server would allow that, and the caller would
-- come before waiters whose heartbeats it denies.
local function join_all()
	local since_us, least_retry_after_ms = waits_since_us, nil
	for _, name in ipairs(names) do
		if name.denial then
			least_retry_after_ms = RETRY_AFTER_MS
		elseif not name.is_ours then
			local retry_after_ms
			since_us, retry_after_ms = join_queue(name, fresh_owner, note, waits_since_us, caller_subscribed)
			least_retry_after_ms = math.min(least_retry_after_ms or retry_after_ms, retry_after_ms)
		end
	end
	return since_us, least_retry_after_ms
end

-- Whether a queue has more dead waiters at its head than one script removes.
local function has_dead_waiters()
	for _, name in ipairs(names) do
		if name.has_dead then return true end
	end
	return false
end

-- The reply for a busy name. It names the holder; or, if the lock is free, the head of the queue, unless that is the caller.
local function busy_reply(index)
	local name, since_us, retry_after_ms = names[index], waits_since_us, -1
	if may_wait then
		since_us, retry_after_ms = join_all()
	else
		for _, read in ipairs(names) do record_read(read) end
	end
	if has_dead_waiters() then retry_after_ms = 0 end
	local ttl_ms, holder, holder_note, held_ms = -2, '', '', -1
	if not name.is_free then
		ttl_ms = redis.call('PTTL', name.lock)
		holder, holder_note, held_ms = holder_of(name)
	elseif name.head and name.head ~= fresh_owner then
		local heartbeat = heartbeat_of(name, name.head)
		holder = name.head
		holder_note = heartbeat and heartbeat.note or ''
	end
	return { 0, index, ttl_ms, holder, holder_note, retry_after_ms, since_us and digits(since_us) or '', 1, held_ms,
		name.position or 0 }
end

-- Remove the heartbeat and the deadline of a waiter whose queue another client has deleted. Use pcall, so that an error does not
-- make the acquisition fail: both expire in any case.
local function remove_heartbeat(name, owner)
	redis.pcall('ZREM', name.deadlines, owner)
	redis.pcall('HDEL', name.waiters, owner)
	if redis.pcall('HLEN', name.waiters) == 1 then
		redis.pcall('HDEL', name.waiters, LAST_READ)
	end
end

local function acquire_and_dequeue(name)
	local count, token = mutex_acquire(name)
	redis.pcall('DEL', name.turn)
	-- Leave the queue also after a re-entry: while the caller waited, its owner may have acquired the lock by another request.
	if name.head then
		dequeue(name, fresh_owner)
	elseif waits_since_us then
		remove_heartbeat(name, fresh_owner)
	end
	return count, token
end

return acquire_all(HASH_RIGHTS .. QUEUE_RIGHTS .. JOIN_RIGHTS, check, acquire_and_dequeue, busy_reply)
