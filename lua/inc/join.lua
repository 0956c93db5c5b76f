-- How a waiter joins the queue of a fair lock.

-- include: ttl
-- include: queue

-- The largest difference between the clocks of several servers that we allow for.
local SKEW_MS = 20
-- Each write of a waiter of ours to Redisson's queue or deadlines makes that key last for this long at least.
local QUEUE_MS = 86400000
-- Each waiter sends a heartbeat this often.
local RETRY_AFTER_MS = 2000
-- When the head is considered dead, this many waiters after it try again, one STAGGER_MS after the other.
local NEAR_POSITIONS = 3
local STAGGER_MS = 10
-- wire: each acquisition of Redisson's lowers all deadlines by this much.
local REDISSON_WAIT_MS = 300000
-- Each attempt searches this many positions for its waiter.
local SEARCHED_MAX = 100
-- A binary search ends when this many positions are left.
local BISECTED_TO = 16

-- The new value of the field LAST_READ: it records that a script reads the queue now.
local function read_now(name)
	load_run(name)
	return table.concat({ digits(now_ms()), digits(name.grace_until_ms), name.run, digits(name.return_until_ms) }, ' ')
end

-- Whether a waiter must not acquire the lock yet, because it came before the server stalled, or restarted without its data. Until
-- the grace time ends, waiters that were ahead of this one may come back.
local function must_await_return(name, since_us)
	load_grace(name)
	return since_us ~= nil and now_ms() < name.grace_until_ms
		and since_us / 1000 < name.grace_until_ms - GRACE_MS - SKEW_MS
end

-- The range of positions in which to insert a waiter that came at since_us. In a long queue, search by halves, which is possible
-- because our waiters are in the order of their times. The search ends at a waiter of Redisson's, because its time is not known.
local function search_by_time(name, since_us)
	local low, high = 0, redis.call('HLEN', name.waiters)
	while high - low > BISECTED_TO do
		local middle = math.floor((low + high) / 2)
		local other = redis.call('LINDEX', name.queue, middle)
		local heartbeat = other and heartbeat_of(name, other)
		if other and not heartbeat then
			return low, middle
		elseif heartbeat and heartbeat.since_us <= since_us then
			low = middle + 1
		else
			high = middle
		end
	end
	return low, high
end

-- Whether a waiter in the queue has been subscribed on this run of the server since before the grace time began. Then neither the
-- queue nor a waiter ahead of this one was lost.
local function has_kept_position(name, owner)
	load_run(name)
	local heartbeat = heartbeat_of(name, owner)
	return heartbeat and heartbeat.run == name.run and heartbeat.subscribed_since_ms > 0
		and heartbeat.subscribed_since_ms < name.grace_until_ms - GRACE_MS
end

-- Insert a waiter before those that came later, and return its position, from 0 on. So a waiter that was removed as dead, by us
-- or by a Redisson whose clock is wrong, gets its position back. ahead: how many waiters were before it until now. We do not
-- know when Redisson's waiters came: those among the first `ahead` positions stay before the waiter, and the others come after
-- it.
local function enqueue(name, owner, since_us, ahead)
	local low, high = search_by_time(name, since_us)
	for i, other in ipairs(redis.call('LRANGE', name.queue, low, ahead > high and -1 or high)) do
		local heartbeat = heartbeat_of(name, other)
		local came_later = low + i > ahead
		if heartbeat then came_later = heartbeat.since_us > since_us end
		if came_later then
			redis.call('LINSERT', name.queue, 'BEFORE', other, owner)
			return low + i - 1
		end
	end
	return write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
end

-- The position of a waiter, from 0 on; nil: the waiter is not in the queue. The second result is true if the position is only the
-- lowest that the waiter can have. was_queued: the waiter was in the queue at its last attempt.
-- A search takes longer, the farther back the waiter is. So a waiter after the first SEARCHED_MAX positions is searched for only
-- in some of its attempts: in fewer, the longer the queue is. In all other attempts return SEARCHED_MAX and true.
local function position_of(name, owner, was_queued)
	local position = redis.call('LPOS', name.queue, owner, 'MAXLEN', SEARCHED_MAX)
	if position then return position, false end
	local searches = math.ceil(redis.call('HLEN', name.waiters) / SEARCHED_MAX)
	if was_queued and now_us() % searches > 0 then return SEARCHED_MAX, true end
	return redis.call('LPOS', name.queue, owner), false
end

-- Raise the deadline of a waiter so far that it does not pass while the waiters before it have their turns. Clients of Redisson
-- remove waiters whose deadlines have passed.
local function raise_deadline(name, owner, position, deadline_ms)
	local lock_ms = math.max(redis.call('PTTL', name.lock), 0)
	local least_ms = now_ms() + lock_ms + (position + 1) * REDISSON_WAIT_MS
	if deadline_ms < least_ms then
		deadline_ms = least_ms + REDISSON_WAIT_MS
		write_for(QUEUE_MS, 'ZADD', name.deadlines, digits(deadline_ms), owner)
	end
	-- The heartbeat must exist while the waiter is in the queue, so let it last longer than the deadline. A dead waiter without a
	-- heartbeat would be taken for a waiter of Redisson's, and stay until its deadline.
	local heartbeats_ms = deadline_ms - now_ms() + HEARTBEAT_LIFETIME_MS
	extend(name.waiters, heartbeats_ms)
	-- Set a TTL, although Redisson sets none: otherwise the keys of killed waiters would stay for ever.
	local ttl_ms = digits(math.max(heartbeats_ms, QUEUE_MS))
	for _, key in ipairs({ name.queue, name.deadlines }) do
		if extend(key, ttl_ms) > NEVER_MS / 2 then redis.call('PEXPIRE', key, ttl_ms) end
	end
end

-- Since when the waiter has been subscribed to its channel on this run of the server; 0: the waiter is not subscribed, or the run
-- id is not known.
local function subscribed_since(name, owner, heartbeat, caller_subscribed)
	if caller_subscribed ~= '1' or server_run() == UNKNOWN_RUN or not is_subscribed(name, owner) then return 0 end
	local was_subscribed = heartbeat and heartbeat.run == server_run() and heartbeat.subscribed_since_ms > 0
	return was_subscribed and heartbeat.subscribed_since_ms or now_ms()
end

-- When the waiter has to try again at the latest, in ms from now.
local function retry_after(name, position, since_us)
	if position == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		return math.min(RETRY_AFTER_MS, lock_ms >= 0 and lock_ms + 1 or RETRY_AFTER_MS,
			must_await_return(name, since_us) and name.grace_until_ms - now_ms() + 1 or RETRY_AFTER_MS)
	elseif position <= NEAR_POSITIONS then
		-- A waiter near the head tries again when the head is considered dead, and removes it.
		local left_ms = death_ms(name, head_of(name)) - now_ms()
		if left_ms > 0 then return math.min(RETRY_AFTER_MS, left_ms + position * STAGGER_MS) end
	end
	return RETRY_AFTER_MS
end

-- Join the queue, or send a heartbeat for a waiter that is in it. Return two numbers: since when the waiter waits, in
-- microseconds, and in how many ms it has to try again at the latest. caller_subscribed: '1' if the waiter is subscribed to its
-- own channel. Set name.position, from 1 on; -1: this attempt did not search for the position.
local function join_queue(name, owner, waiter_note, since_us, caller_subscribed)
	-- Read all keys before the first write: if a user has overwritten one of them, the script fails here, and has written none.
	local deadline_ms = tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	local heartbeat = heartbeat_of(name, owner)
	local known_since_us = heartbeat and heartbeat.since_us
	local is_moved = since_us and known_since_us ~= since_us
	local position, is_far = position_of(name, owner, heartbeat and not is_moved and deadline_ms > 0)
	local ahead = position or 0
	if position and is_moved then
		-- since_us is not the time in the heartbeat, because the caller has chosen one time for the queues of several servers.
		-- Give the waiter the position of that time.
		redis.call('LREM', name.queue, 1, owner)
		position = nil
	end
	if not position and since_us then
		position = enqueue(name, owner, since_us, ahead)
	elseif not position then
		position = write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
	end
	name.position = is_far and -1 or position + 1
	-- The caller sends no time with its first attempt, and none with a later one if no reply has told it since when it waits.
	-- In the second case the heartbeat has that time, since an earlier attempt wrote it.
	since_us = since_us or known_since_us or now_us()
	write_for(HEARTBEAT_LIFETIME_MS, 'HSET', name.waiters, LAST_READ, read_now(name), owner, table.concat({ digits(now_ms() + HEARTBEAT_LIFETIME_MS),
		digits(since_us), name.run, digits(subscribed_since(name, owner, heartbeat, caller_subscribed)), waiter_note }, ' '))
	raise_deadline(name, owner, position, deadline_ms)
	return since_us, retry_after(name, position, since_us)
end
