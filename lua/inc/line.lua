-- The line for a fair lock. wire: Redisson's list of owners and their deadlines (RedissonFairLock). Beside
-- it each waiter of ours has a sign of life, since Redisson's deadlines can't tell the living from the dead:
-- a hash of OWNER to "ALIVE_UNTIL_MS SINCE_US RUN LISTENS_SINCE_MS NOTE", and under SEEN "LAST_MS GRACE_END_MS
-- RUN RETURN_END_MS": when it was last looked at, and until when nobody is taken for dead. RUN is the run id of
-- the server that wrote it; LISTENS_SINCE_MS is 0 where that one had no subscriber of the waiter's channel.
-- Needs: now, refused, extend, publish.
local LIFE_MS = 4000         -- a waiter that was not heard of for so long is dead
local GAP_MS = 3000          -- nobody was heard of: it was the server that stood still, ...
local GRACE_MS = 2000        -- ... and all get the time to be heard of again
local SKEW_MS = 20           -- by what the clocks of several servers may differ
local RETURN_MS = 10000      -- another server took over, or it was restarted: waiters have so long to come back
local QUEUE_MS = 86400000    -- Redisson's keys last so long at least after one of ours wrote to them
local SEEN = 'seen'          -- no owner: those have a colon in them
local UNKNOWN = '-'          -- the user may not ask for the run id

-- The sign of life of a waiter of ours; nil for another's.
local function sign_of_life(name, owner)
	local sign = redis.call('HGET', name.waiters, owner)
	if not sign then
		return nil
	end
	local alive_until_ms, since_us, run, listens_since_ms, waiter_note =
		string.match(sign, '^(%d+) (%d+) (%S+) (%d+) (.*)$')
	return { alive_until_ms = tonumber(alive_until_ms), since_us = tonumber(since_us), run = run,
		listens_since_ms = tonumber(listens_since_ms), note = waiter_note }
end

local known_run

-- Which run of which server this is; worked out once.
local function server_run()
	if not known_run then
		local info = redis.pcall('INFO', 'server')
		known_run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or UNKNOWN
	end
	return known_run
end

-- Until when nobody is taken for dead, worked out once: grace_ms after the server stood still, return_ms after
-- another run of it was seen, to which all have to come back first.
local function recall(name)
	if name.run then
		return
	end
	local seen_ms, grace_ms, run, return_ms =
		string.match(redis.call('HGET', name.waiters, SEEN) or '', '^(%d+) (%d+) (%S+) (%d+)$')
	local is_gap = now_ms - (tonumber(seen_ms) or 0) > GAP_MS
	name.grace_ms = name.grace_ms or is_gap and now_ms + GRACE_MS or tonumber(grace_ms)
	name.run = server_run() ~= UNKNOWN and server_run() or run or UNKNOWN
	local is_other_run = run and run ~= UNKNOWN and run ~= name.run
	name.return_ms = is_other_run and now_ms + RETURN_MS or tonumber(return_ms) or 0
end

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

-- Somebody looks at the line, who may not come to stand in it: the time of grace runs from now on.
local function note_look(name)
	if redis.call('EXISTS', name.waiters) == 1 then
		redis.call('HSET', name.waiters, SEEN, seen_now(name))
	end
end

-- wire: each waiter listens to a channel of its own.
local function own_channel(name, owner)
	return name.channel .. ':' .. owner
end

-- How many listen to the waiter's own channel; nil when the user may not ask. What PUBLISH returns would count
-- those that listen to a pattern, too, such as a monitor of all channels.
local function count_listeners(name, owner)
	local reply = redis.pcall('PUBSUB', 'NUMSUB', own_channel(name, owner))
	return not is_error(reply) and tonumber(reply[2]) or nil
end

local function is_heard(name, owner)
	return (count_listeners(name, owner) or 0) > 0
end

-- When this waiter is to be taken for dead, unless it is another's and listens. One of those without a deadline
-- would never leave.
local function death_ms(name, owner)
	local sign = sign_of_life(name, owner)
	if not sign then
		return tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0)
	end
	recall(name)
	local is_of_other_run = sign.run ~= name.run and sign.run ~= UNKNOWN and name.run ~= UNKNOWN
	-- Another server had another clock.
	return math.max(is_of_other_run and 0 or sign.alive_until_ms, name.grace_ms, name.return_ms)
end

-- wire: deadlines follow the clocks of their clients, so one that listens is alive, whatever its deadline is.
local function is_dead(name, owner)
	return death_ms(name, owner) <= now_ms
		and (sign_of_life(name, owner) ~= nil or not is_heard(name, owner))
end

-- One of ours that listened here, on this run of the server, and does not any more: its connection was closed when
-- it ended.
local function is_silent(name, owner)
	local sign = sign_of_life(name, owner)
	if not sign or sign.listens_since_ms == 0 or sign.run ~= server_run() then
		return false
	end
	recall(name)
	return now_ms >= name.return_ms and count_listeners(name, owner) == 0
end

-- One that is heard, and one of ours has been so for a while: one that was cut off together with those in front may
-- be back a moment before them.
local function is_heard_all_along(name, owner)
	local sign = sign_of_life(name, owner)
	local is_new = sign and (sign.listens_since_ms == 0 or now_ms - sign.listens_since_ms < LIFE_MS)
	return not is_new and is_heard(name, owner)
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
		{ 'PUBSUB', 'NUMSUB', right = 'pubsub|numsub' },
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
	while head and head ~= asker and is_dead(name, head) do
		step_out(name, head)
		head = head_of(name)
	end
end

-- Nobody in the line is heard: all of them may have been cut off at once, and keep their places for now. A Java client
-- that joins them sleeps until the last one's deadline; whoever comes back raises his own again. By pcall: what would
-- end later anyway is no reason to keep the lock.
local function lower_deadlines(name, silent)
	local deadline_ms = now_ms + RETURN_MS
	for _, owner in ipairs(silent) do
		if tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0) > deadline_ms then
			redis.pcall('ZADD', name.deadlines, digits(deadline_ms), owner)
		end
	end
end

-- Those at the head that are silent go, when the one behind them has been heard all along. Who asks is there.
local function drop_silent(name, asker)
	local silent = {}
	local owner = head_of(name)
	while owner and owner ~= asker and is_silent(name, owner) do
		silent[#silent + 1] = owner
		owner = redis.call('LINDEX', name.queue, #silent)
	end
	if #silent > 0 and not owner then
		lower_deadlines(name, silent)
	elseif #silent > 0 and is_heard_all_along(name, owner) then
		for _, gone in ipairs(silent) do
			step_out(name, gone)
		end
	end
end

local function wake_head(name, asker)
	drop_silent(name, asker)
	local head = head_of(name)
	if head and head ~= asker then
		publish(own_channel(name, head), WAKE_ONE)
	end
end
