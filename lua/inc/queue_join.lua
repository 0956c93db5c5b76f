-- To join the queue for a fair lock. It is apart from queue_leave.lua to keep fair_leave.lua short: that one is sent
-- without waiting for the reply, and a server that had stalled reads only the first 16 kB of a closed connection.
-- include: now
-- include: ttl_extend
-- include: queue_read
-- include: queue_head

local SKEW_MS = 20              -- by what the clocks of several servers may differ
local QUEUE_MS = 86400000       -- Redisson's keys last so long at least after one of ours wrote to them
local RETRY_AFTER_MS = 2000     -- so often each waiter gives a sign of life
local NEAR_POSITIONS = 3        -- so many waiters behind the head try again when it dies, ...
local STAGGER_MS = 10           -- ... one so long after the other
local REDISSON_WAIT_MS = 300000 -- what each Java acquisition takes off all deadlines

local function seen_now(name)
	recall(name)
	return table.concat({ digits(now_ms()), digits(name.grace_until_ms), name.run, digits(name.return_until_ms) }, ' ')
end

-- Whether a waiter was in the queue before the server had stalled, or was restarted without its data: then it lets
-- those come back that were in front of it.
local function is_early(name, since_us)
	recall(name)
	return since_us ~= nil and now_ms() < name.grace_until_ms
		and since_us / 1000 < name.grace_until_ms - GRACE_MS - SKEW_MS
end

-- Joins the queue in front of those that came later, so a waiter that was taken for dead, by us or by a Java client
-- whose clock is wrong, has its position again. Of Java's waiters it is not known when they came: it stays behind
-- those that were in front of it just now, and goes in front of the others. Returns the position, from 0 on.
local function enqueue(name, owner, since_us, in_front)
	for i, other in ipairs(redis.call('LRANGE', name.queue, 0, -1)) do
		local sign = sign_of_life(name, other)
		local came_later = i > in_front
		if sign then
			came_later = sign.since_us > since_us
		end
		if came_later then
			redis.call('LINSERT', name.queue, 'BEFORE', other, owner)
			return i - 1
		end
	end
	return redis.call('RPUSH', name.queue, owner) - 1
end

-- Sets the deadline so far ahead that Java clients don't reach it while those in front have their turns.
local function keep_deadline_ahead(name, owner, position)
	local lock_ms = math.max(redis.call('PTTL', name.lock), 0)
	local least_ms = now_ms() + lock_ms + (position + 1) * REDISSON_WAIT_MS
	local deadline_ms = tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	if deadline_ms < least_ms then
		deadline_ms = least_ms + REDISSON_WAIT_MS
		redis.call('ZADD', name.deadlines, digits(deadline_ms), owner)
	end
	-- The sign of life must last for as long as the waiter is in the queue: without it a dead waiter is taken for
	-- one of Java's, and stays until its deadline.
	local sign_ms = deadline_ms - now_ms() + LIFE_MS
	extend(name.waiters, sign_ms)
	-- Redisson gives these no TTL, and those of killed waiters would stay for ever.
	extend(name.queue, math.max(sign_ms, QUEUE_MS))
	extend(name.deadlines, math.max(sign_ms, QUEUE_MS))
end

-- Since when the waiter has listened to its channel on this run of the server; 0: it does not, or the user may not ask
-- which run it is.
local function listens_since(name, owner, sign, listens)
	if listens ~= '1' or server_run() == UNKNOWN or not is_heard(name, owner) then
		return 0
	end
	if sign and sign.run == server_run() and sign.listens_since_ms > 0 then
		return sign.listens_since_ms
	end
	return now_ms()
end

-- When the waiter has to try again at the latest, in ms from now.
local function retry_after(name, position, since_us)
	local retry_after_ms = RETRY_AFTER_MS
	if position == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		if lock_ms >= 0 then
			retry_after_ms = math.min(retry_after_ms, lock_ms + 1)
		end
		if is_early(name, since_us) then
			retry_after_ms = math.min(retry_after_ms, name.grace_until_ms - now_ms() + 1)
		end
	elseif position <= NEAR_POSITIONS then
		-- A dead head must not stop the queue.
		local left_ms = death_ms(name, head_of(name)) - now_ms()
		if left_ms > 0 then
			retry_after_ms = math.min(retry_after_ms, left_ms + position * STAGGER_MS)
		end
	end
	return retry_after_ms
end

-- Joins the queue, or gives a sign of life of a waiter that is in it. Returns since when it waits, and when it has to
-- try again at the latest. listens: '1' when the waiter listens to its own channel.
local function join_queue(name, owner, waiter_note, since_us, listens)
	local position = redis.call('LPOS', name.queue, owner)
	local sign = sign_of_life(name, owner)
	local known_since_us = sign and sign.since_us
	local in_front = position or 0
	if position and since_us and known_since_us ~= since_us then
		-- The lock is on several servers, and all their queues have the order of one server's clock.
		redis.call('LREM', name.queue, 0, owner)
		position = nil
	end
	if not position and since_us then
		position = enqueue(name, owner, since_us, in_front)
	elseif not position then
		position = redis.call('RPUSH', name.queue, owner) - 1
	end
	-- The caller sends no time with its first try, nor when it lost the reply to that.
	since_us = since_us or known_since_us or now_us()
	local seen = seen_now(name)
	redis.call('HSET', name.waiters, SEEN, seen, owner, table.concat({ digits(now_ms() + LIFE_MS),
		digits(since_us), name.run, digits(listens_since(name, owner, sign, listens)), waiter_note }, ' '))
	keep_deadline_ahead(name, owner, position)
	return since_us, retry_after(name, position, since_us)
end
