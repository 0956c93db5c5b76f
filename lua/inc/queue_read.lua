-- The queue for a fair lock. wire: Redisson's list of owners and their deadlines (RedissonFairLock). Beside
-- it each waiter of ours has a sign of life, since Redisson's deadlines can't tell the living from the dead:
-- a hash of OWNER to "ALIVE_UNTIL_MS SINCE_US RUN LISTENS_SINCE_MS NOTE", and under SEEN "LAST_MS GRACE_END_MS
-- RUN RETURN_END_MS": when it was last looked at, and until when nobody is taken for dead. RUN is the run id of
-- the server that wrote it; LISTENS_SINCE_MS is 0 where that one had no subscriber of the waiter's channel.
-- include: now
-- include: denied

local LIFE_MS = 4000         -- a waiter that was not heard of for so long is dead
local GAP_MS = 3000          -- nobody was heard of: it was the server that stood still, ...
local GRACE_MS = 2000        -- ... and all get the time to be heard of again
local RETURN_MS = 10000      -- another server took over, or it was restarted: waiters have so long to come back
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
