-- The line for a fair lock. wire: Redisson's list of owners and their deadlines (RedissonFairLock). Beside
-- it each waiter of ours has a sign of life, since Redisson's deadlines can't tell the living from the dead:
-- a hash of OWNER to "ALIVE_UNTIL_MS SINCE_US LISTENS NOTE", and under SEEN when it was last looked at, and until
-- when nobody is taken for dead. Needs: now, refused, extend, publish.
local LIFE_MS = 4000         -- a waiter that was not heard of for so long is dead
local LOOK_MS = 2000         -- so often each of them is heard of
local GAP_MS = 3000          -- nobody was heard of: it was the server that stood still, ...
local GRACE_MS = 2000        -- ... and all get the time to be heard of again
local SKEW_MS = 20           -- by what the clocks of several servers may differ
local NEAR_PLACES = 3        -- so many behind the head see to it that a dead one does not stop the line
local REDISSON_WAIT_MS = 300000 -- what each Java acquisition takes off all deadlines
local START_S = 10           -- in which those who wait come back to a server that was restarted
local QUEUE_MS = 86400000    -- Redisson's keys last so long at least after one of ours wrote to them
local SEEN = 'seen'          -- no owner: those have a colon in them

-- Until when this waiter of ours is alive, since when he waits, whether he listens to his channel, and his
-- note; nil for another's.
local function sign_of_life(name, owner)
	local sign = redis.call('HGET', name.waiters, owner)
	if not sign then
		return nil
	end
	local alive_until_ms, since_us, listens, waiter_note =
		string.match(sign, '^(%d+) (%d+) ([01]) (.*)$')
	return tonumber(alive_until_ms), tonumber(since_us), listens == '1', waiter_note
end

-- Until when nobody is taken for dead; worked out once.
local function grace_end_ms(name)
	if name.grace_ms then
		return name.grace_ms
	end
	local seen_ms, grace_ms = string.match(redis.call('HGET', name.waiters, SEEN) or '', '^(%d+) (%d+)$')
	local is_gap = now_ms - (tonumber(seen_ms) or 0) > GAP_MS
	name.grace_ms = is_gap and now_ms + GRACE_MS or tonumber(grace_ms)
	return name.grace_ms
end

-- Who waited before the server stood still, or was started again without what it knew, lets those come back who
-- came before him.
local function is_early(name, since_us)
	local grace_ms = grace_end_ms(name)
	return since_us ~= nil and now_ms < grace_ms and since_us / 1000 < grace_ms - GRACE_MS - SKEW_MS
end

-- Somebody looks at the line, who may not come to stand in it: the time of grace runs from now on.
local function note_look(name)
	if redis.call('EXISTS', name.waiters) == 1 then
		redis.call('HSET', name.waiters, SEEN, digits(now_ms) .. ' ' .. digits(grace_end_ms(name)))
	end
end

-- When this waiter is to be taken for dead. Others' are judged by their deadline alone; one without any
-- would never leave.
local function death_ms(name, owner)
	local alive_until_ms = sign_of_life(name, owner)
	if alive_until_ms then
		return math.max(alive_until_ms, grace_end_ms(name))
	end
	return tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
end

local function head_of(name)
	return redis.call('LINDEX', name.queue, 0)
end

local function step_out(name, owner)
	redis.call('LREM', name.queue, 0, owner)
	redis.call('ZREM', name.deadlines, owner)
	redis.call('HDEL', name.waiters, owner)
	if not head_of(name) then
		redis.call('DEL', name.deadlines, name.waiters)
	elseif redis.call('HLEN', name.waiters) == 1 then
		redis.call('HDEL', name.waiters, SEEN)
	end
end

-- Each of the commands that it takes to leave the line, or to move it on, in a form that does nothing: the error
-- of the first that is refused, else nil. A script that failed in the middle would not say which one it was.
local function refusal_in_line(name)
	return do_all({
		{ 'LINDEX', name.queue, 0 },
		{ 'LREM', name.queue, 0, '' },
		{ 'ZSCORE', name.deadlines, '' },
		{ 'ZREM', name.deadlines, '' },
		{ 'HGET', name.waiters, '' },
		{ 'HLEN', name.waiters },
		{ 'HDEL', name.waiters, '' },
		redis.pcall('EXISTS', name.waiters) == 0 and { 'DEL', name.waiters } or nil,
	})
end

-- The error when nobody can stand in the line now, since he would find no room or could not leave it again. What
-- needs memory goes first: a server that is full lets a script that has written go on.
local function refusal_to_stand(name)
	return do_all({ { 'ZADD', name.deadlines, 'XX', 0, '' } }) or refusal_in_line(name)
end

-- Removes those at the head that are dead, which who asks is not.
local function prune(name, asker)
	local head = head_of(name)
	while head and head ~= asker and death_ms(name, head) <= now_ms do
		step_out(name, head)
		head = head_of(name)
	end
end

-- When nobody hears what is sent to one of ours who listens, he has gone: his connection was closed with
-- him. But a server that was just started has lost all that listened to it.
local function should_hear(name, owner)
	local _, _, listens = sign_of_life(name, owner)
	if not listens then
		return false
	end
	local info = redis.pcall('INFO', 'server')
	local uptime_s = type(info) == 'string' and string.match(info, 'uptime_in_seconds:(%d+)')
	return (tonumber(uptime_s) or 0) >= START_S
end

-- wire: each waiter listens to a channel of his own.
local function wake_head(name, asker)
	local head = head_of(name)
	while head and head ~= asker do
		local heard = publish(name.channel .. ':' .. head, WAKE_ONE)
		if heard ~= 0 or not should_hear(name, head) then
			return
		end
		step_out(name, head)
		head = head_of(name)
	end
end

-- Into the line, before those who came later: one that was taken for dead, by us or by a Java client whose
-- clock is wrong, has his place again. Those that aren't ours came when he was out of it; but for so many at the
-- head that stood in front of him just now. Places count from 1 here, and from 0 in what is returned.
local function step_in(name, owner, since_us, in_front)
	for place, other in ipairs(redis.call('LRANGE', name.queue, 0, -1)) do
		local _, other_since_us = sign_of_life(name, other)
		local is_behind = other_since_us and other_since_us > since_us
			or not other_since_us and place > in_front
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

-- Stand in the line, or show that we still do. Since when, and when to do so again at the latest, in ms.
-- listens: '1' when what is published to us is heard.
local function stand(name, owner, waiter_note, since_us, listens)
	local place = redis.call('LPOS', name.queue, owner)
	local grace_ms = grace_end_ms(name)
	local _, known_since_us = sign_of_life(name, owner)
	local in_front = place or 0
	if place and since_us and known_since_us ~= since_us then
		-- The same lock on several servers: all lines are in the order of one of their clocks.
		redis.call('LREM', name.queue, 0, owner)
		place = nil
	end
	if not place and since_us then
		place = step_in(name, owner, since_us, in_front)
	elseif not place then
		place = redis.call('RPUSH', name.queue, owner) - 1
	end
	-- Without a known one it is the first try; or the answer to that was lost.
	since_us = since_us or known_since_us or now_us
	redis.call('HSET', name.waiters,
		owner, table.concat({ digits(now_ms + LIFE_MS), digits(since_us), listens, waiter_note }, ' '),
		SEEN, digits(now_ms) .. ' ' .. digits(grace_ms))
	keep_deadline_ahead(name, owner, place)
	local look_ms = LOOK_MS
	if place == 0 then
		local lock_ms = redis.call('PTTL', name.lock)
		look_ms = lock_ms >= 0 and math.min(look_ms, lock_ms + 1) or look_ms
		if is_early(name, since_us) then
			look_ms = math.min(look_ms, grace_ms - now_ms + 1)
		end
	elseif place <= NEAR_PLACES then
		look_ms = math.min(look_ms, death_ms(name, head_of(name)) - now_ms + place * 10)
	end
	return since_us, look_ms
end
