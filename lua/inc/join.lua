-- To join the queue of a fair lock.

-- include: ttl
-- include: queue

local SKEW_MS = 20              -- by what the clocks of several servers may differ
local QUEUE_MS = 86400000       -- Redisson's keys last so long at least after one of ours wrote to them
local RETRY_AFTER_MS = 2000     -- so often each waiter gives a sign of life
local NEAR_POSITIONS = 3        -- so many waiters behind the head try again when it dies, ...
local STAGGER_MS = 10           -- ... one so long after the other
local REDISSON_WAIT_MS = 300000 -- what each Java acquisition takes off all deadlines
local SEARCHED_MAX = 100        -- so many positions are searched for a waiter at each of its tries
local BISECTED_TO = 16        -- a search by halves ends at so many

local function read_now(name)
	load_grace(name)
	return table.concat({ digits(now_ms()), digits(name.grace_until_ms), name.run, digits(name.return_until_ms) }, ' ')
end

-- Whether a waiter was in the queue before the server had stalled, or was restarted without its data: then it lets
-- those come back that were in front of it.
local function must_await_return(name, since_us)
	load_grace(name)
	return since_us ~= nil and now_ms() < name.grace_until_ms
		and since_us / 1000 < name.grace_until_ms - GRACE_MS - SKEW_MS
end

-- Between which positions a waiter that came then belongs. Of a long queue this is found by halves: ours are in the order of
-- their times. One of Java's ends the search.
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

-- Whether a waiter that is in the queue has listened here since before that: the queue was not lost, and no waiter in front.
local function has_kept_position(name, owner)
	load_grace(name)
	local heartbeat = heartbeat_of(name, owner)
	return heartbeat and heartbeat.run == name.run and heartbeat.subscribed_since_ms > 0
		and heartbeat.subscribed_since_ms < name.grace_until_ms - GRACE_MS
end

-- Joins the queue in front of those that came later, so a waiter that was taken for dead, by us or by a Java client
-- whose clock is wrong, has its position again. Of Java's waiters it is not known when they came: it stays behind
-- those that were in front of it just now, and goes in front of the others. Returns the position, from 0 on.
local function enqueue(name, owner, since_us, before)
	local low, high = search_by_time(name, since_us)
	for i, other in ipairs(redis.call('LRANGE', name.queue, low, before > high and -1 or high)) do
		local heartbeat = heartbeat_of(name, other)
		local came_later = low + i > before
		if heartbeat then came_later = heartbeat.since_us > since_us end
		if came_later then
			redis.call('LINSERT', name.queue, 'BEFORE', other, owner)
			return low + i - 1
		end
	end
	return write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
end

-- The position of a waiter, from 0 on; nil: it is not in the queue. A search takes as long as the waiter is far back: one
-- that is known to be behind the first SEARCHED_MAX is searched for the less often the more wait. At other times its
-- position is that number, the least that it can be, and true is returned, too.
local function position_of(name, owner, is_known)
	local position = redis.call('LPOS', name.queue, owner, 'MAXLEN', SEARCHED_MAX)
	if position then return position, false end
	local searches = math.ceil(redis.call('HLEN', name.waiters) / SEARCHED_MAX)
	if is_known and now_us() % searches > 0 then return SEARCHED_MAX, true end
	return redis.call('LPOS', name.queue, owner), false
end

-- Sets the deadline so far ahead that Java clients don't reach it while those in front have their turns.
local function raise_deadline(name, owner, position, deadline_ms)
	local lock_ms = math.max(redis.call('PTTL', name.lock), 0)
	local least_ms = now_ms() + lock_ms + (position + 1) * REDISSON_WAIT_MS
	if deadline_ms < least_ms then
		deadline_ms = least_ms + REDISSON_WAIT_MS
		write_for(QUEUE_MS, 'ZADD', name.deadlines, digits(deadline_ms), owner)
	end
	-- The sign of life must last for as long as the waiter is in the queue: without it a dead waiter is taken for
	-- one of Java's, and stays until its deadline.
	local sign_ms = deadline_ms - now_ms() + HEARTBEAT_LIFETIME_MS
	extend(name.waiters, sign_ms)
	-- Redisson gives these no TTL, and those of killed waiters would stay for ever.
	local ttl_ms = digits(math.max(sign_ms, QUEUE_MS))
	for _, key in ipairs({ name.queue, name.deadlines }) do
		if extend(key, ttl_ms) > NEVER_MS / 2 then redis.call('PEXPIRE', key, ttl_ms) end
	end
end

-- Since when the waiter has listened to its channel on this run of the server; 0: it does not, or the user may not ask
-- which run it is.
local function subscribed_since(name, owner, heartbeat, caller_subscribed)
	if caller_subscribed ~= '1' or server_run() == UNKNOWN_RUN or not is_subscribed(name, owner) then return 0 end
	local is_known = heartbeat and heartbeat.run == server_run() and heartbeat.subscribed_since_ms > 0
	return is_known and heartbeat.subscribed_since_ms or now_ms()
end

-- When the waiter has to try again at the latest, in ms from now.
local function retry_after(name, position, since_us)
	if position == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		return math.min(RETRY_AFTER_MS, lock_ms >= 0 and lock_ms + 1 or RETRY_AFTER_MS,
			must_await_return(name, since_us) and name.grace_until_ms - now_ms() + 1 or RETRY_AFTER_MS)
	elseif position <= NEAR_POSITIONS then
		-- A dead head must not stop the queue.
		local left_ms = death_ms(name, head_of(name)) - now_ms()
		if left_ms > 0 then return math.min(RETRY_AFTER_MS, left_ms + position * STAGGER_MS) end
	end
	return RETRY_AFTER_MS
end

-- Joins the queue, or gives a sign of life of a waiter that is in it. Returns since when it waits, and when it has to
-- try again at the latest. listens: '1' when the waiter listens to its own channel. Sets name.position, from 1 on; -1: it
-- was not looked for.
local function join_queue(name, owner, waiter_note, since_us, caller_subscribed)
	-- A user may have overwritten one of these keys: then nothing is written to the others.
	local deadline_ms = tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	local heartbeat = heartbeat_of(name, owner)
	local known_since_us = heartbeat and heartbeat.since_us
	local is_moved = since_us and known_since_us ~= since_us
	local position, is_far = position_of(name, owner, heartbeat and not is_moved and deadline_ms > 0)
	local before = position or 0
	if position and is_moved then
		-- The lock is on several servers, and all their queues have the order of one server's clock.
		redis.call('LREM', name.queue, 1, owner)
		position = nil
	end
	if not position and since_us then
		position = enqueue(name, owner, since_us, before)
	elseif not position then
		position = write_for(QUEUE_MS, 'RPUSH', name.queue, owner) - 1
	end
	name.position = is_far and -1 or position + 1
	-- The caller sends no time with its first try, nor when it lost the reply to that.
	since_us = since_us or known_since_us or now_us()
	write_for(HEARTBEAT_LIFETIME_MS, 'HSET', name.waiters, LAST_READ, read_now(name), owner, table.concat({ digits(now_ms() + HEARTBEAT_LIFETIME_MS),
		digits(since_us), name.run, digits(subscribed_since(name, owner, heartbeat, caller_subscribed)), waiter_note }, ' '))
	raise_deadline(name, owner, position, deadline_ms)
	return since_us, retry_after(name, position, since_us)
end
