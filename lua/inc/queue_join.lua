-- To join the queue for a fair lock. Apart from queue_leave.lua since only an acquisition needs it: a script that
-- leaves is sent without waiting for an answer, and a server that stood still reads no more than the first 16 kB of
-- what a connection that was closed has sent.
-- include: now
-- include: ttl_extend
-- include: queue_read

local SKEW_MS = 20              -- by what the clocks of several servers may differ
local QUEUE_MS = 86400000       -- Redisson's keys last so long at least after one of ours wrote to them
local RETRY_AFTER_MS = 2000     -- so often each waiter is heard of
local NEAR_POSITIONS = 3           -- so many behind the head see to it that a dead one does not stop the queue
local REDISSON_WAIT_MS = 300000 -- what each Java acquisition takes off all deadlines

local function seen_now(name)
	recall(name)
	return table.concat({ digits(now_ms), digits(name.grace_ms), name.run, digits(name.return_ms) }, ' ')
end

-- Who waited before the server stood still, or was started again without what it knew, lets those come back who
-- came before him.
local function is_early(name, since_us)
	recall(name)
	return since_us ~= nil and now_ms < name.grace_ms
		and since_us / 1000 < name.grace_ms - GRACE_MS - SKEW_MS
end

-- Into the queue, before those who came later: one that was taken for dead, by us or by a Java client whose
-- clock is wrong, has its position again. Those that aren't ours came when it was out of it; but for so many at the
-- head that stood in front of him just now. Places count from 1 here, and from 0 in what is returned.
local function enqueue(name, owner, since_us, in_front)
	for place, other in ipairs(redis.call('LRANGE', name.queue, 0, -1)) do
		local sign = sign_of_life(name, other)
		local is_behind = sign and sign.since_us > since_us or not sign and place > in_front
		if is_behind then
			redis.call('LINSERT', name.queue, 'BEFORE', other, owner)
			return place - 1
		end
	end
	return redis.call('RPUSH', name.queue, owner) - 1
end

-- Well ahead of what Java clients take off it while those in front have their turns.
local function keep_deadline_ahead(name, owner, place)
	local lock_ms = math.max(redis.call('PTTL', name.lock), 0)
	local least_ms = now_ms + lock_ms + (place + 1) * REDISSON_WAIT_MS
	local deadline_ms = tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	if deadline_ms < least_ms then
		deadline_ms = least_ms + REDISSON_WAIT_MS
		redis.call('ZADD', name.deadlines, digits(deadline_ms), owner)
	end
	-- The sign must be there for as long as the place is: without it a dead waiter is taken for
	-- another's, and stays until his deadline.
	local sign_ms = deadline_ms - now_ms + LIFE_MS
	extend(name.waiters, sign_ms)
	-- Redisson gives these no time to live, and those of killed waiters would stay for ever.
	extend(name.queue, math.max(sign_ms, QUEUE_MS))
	extend(name.deadlines, math.max(sign_ms, QUEUE_MS))
end

-- Since when this run of the server has a subscriber of our own channel, as our last sign of life and we ourselves
-- know; 0 when it has none, or when nobody can tell which run it is.
local function listens_since(name, owner, sign, listens)
	if listens ~= '1' or server_run() == UNKNOWN or not is_heard(name, owner) then
		return 0
	end
	local is_known = sign and sign.run == server_run() and sign.listens_since_ms > 0
	return is_known and sign.listens_since_ms or now_ms
end

-- Join the queue, or show that we still wait in it. Since when, and when to do so again at the latest, in ms.
-- listens: '1' when what is published to us is heard.
local function join_queue(name, owner, waiter_note, since_us, listens)
	local place = redis.call('LPOS', name.queue, owner)
	local sign = sign_of_life(name, owner)
	local known_since_us = sign and sign.since_us
	local in_front = place or 0
	if place and since_us and known_since_us ~= since_us then
		-- The same lock on several servers: all queues are in the order of one of their clocks.
		redis.call('LREM', name.queue, 0, owner)
		place = nil
	end
	if not place and since_us then
		place = enqueue(name, owner, since_us, in_front)
	elseif not place then
		place = redis.call('RPUSH', name.queue, owner) - 1
	end
	-- Without a known one it is the first try; or the answer to that was lost.
	since_us = since_us or known_since_us or now_us
	local seen = seen_now(name)
	redis.call('HSET', name.waiters, SEEN, seen, owner, table.concat({ digits(now_ms + LIFE_MS),
		digits(since_us), name.run, digits(listens_since(name, owner, sign, listens)), waiter_note }, ' '))
	keep_deadline_ahead(name, owner, place)
	local retry_after_ms = RETRY_AFTER_MS
	if place == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		retry_after_ms = lock_ms >= 0 and math.min(retry_after_ms, lock_ms + 1) or retry_after_ms
		if is_early(name, since_us) then
			retry_after_ms = math.min(retry_after_ms, name.grace_ms - now_ms + 1)
		end
	elseif place <= NEAR_POSITIONS then
		local left_ms = death_ms(name, head_of(name)) - now_ms
		retry_after_ms = left_ms > 0 and math.min(retry_after_ms, left_ms + place * 10) or retry_after_ms
	end
	return since_us, retry_after_ms
end
