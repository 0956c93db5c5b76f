-- Which waiters in the queue of a fair lock are alive.
--
-- wire: the queue is Redisson's list of owners, and their deadlines (RedissonFairLock).

-- include: clock
-- include: subscribers

-- The queue for a fair lock. wire: Redisson's list of owners, and their deadlines (RedissonFairLock). Redisson's
-- deadlines can't tell a live waiter from a dead one, so each waiter of ours has a sign of life beside them: a hash
-- of OWNER to "ALIVE_UNTIL_MS SINCE_US RUN LISTENS_SINCE_MS NOTE", and under LAST_READ "LAST_MS GRACE_END_MS RUN
-- RETURN_END_MS": when a script last read the queue, and until when no waiter is taken for dead. RUN is the run id of
-- the server that wrote it. LISTENS_SINCE_MS is 0 where that server had no subscriber of the waiter's channel.
local HEARTBEAT_LIFETIME_MS = 4000         -- a waiter without a sign of life for so long is dead
local STALL_MS = 3000          -- no waiter gave one for so long: the server had stalled, ...
local GRACE_MS = 2000        -- ... and all waiters get so long to give one again
local RETURN_MS = 10000      -- another server took over, or it was restarted: waiters have so long to come back
local LAST_READ = 'seen'          -- no owner: rlock_owner_check denies it
local UNKNOWN_RUN = '-'          -- the user may not ask for the run id

-- The sign of life of a waiter of ours; nil for one of Java's.
local function heartbeat_of(name, owner)
	local heartbeat = redis.call('HGET', name.waiters, owner)
	if not heartbeat then return nil end
	local alive_until_ms, since_us, run, subscribed_since_ms, waiter_note =
		string.match(heartbeat, '^(%d+) (%d+) (%S+) (%d+) (.*)$')
	return { alive_until_ms = tonumber(alive_until_ms), since_us = tonumber(since_us), run = run,
		subscribed_since_ms = tonumber(subscribed_since_ms), note = waiter_note }
end

local known_run

-- Which run of which server this is; asked once.
local function server_run()
	local info = not known_run and redis.pcall('INFO', 'server')
	known_run = known_run or type(info) == 'string' and string.match(info, 'run_id:(%w+)') or UNKNOWN_RUN
	return known_run
end

-- Sets once until when no waiter is taken for dead: name.grace_until_ms after the server had stalled, name.return_until_ms after
-- another run of it began, to which all waiters have to come back first.
local function load_grace(name)
	if name.run then return end
	local seen_ms, grace_ms, run, return_ms =
		string.match(redis.call('HGET', name.waiters, LAST_READ) or '', '^(%d+) (%d+) (%S+) (%d+)$')
	local is_gap = now_ms() - (tonumber(seen_ms) or 0) > STALL_MS
	if not name.grace_until_ms then
		name.grace_until_ms = is_gap and now_ms() + GRACE_MS or tonumber(grace_ms)
	end
	name.run = server_run()
	if name.run == UNKNOWN_RUN then name.run = run or UNKNOWN_RUN end
	name.return_until_ms = tonumber(return_ms) or 0
	if run and run ~= UNKNOWN_RUN and run ~= name.run then
		name.return_until_ms = now_ms() + RETURN_MS
	end
end

local function is_subscribed(name, owner) return (count_waiter_subscribers(name, owner) or 0) > 0 end

-- When this waiter is to be taken for dead, unless it is Java's and listens; and whether it is ours. Java's without a
-- deadline would never leave.
local function death_ms(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	if not heartbeat then return tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0), false end
	load_grace(name)
	-- Maybe it was written by another server's clock.
	local is_of_another = heartbeat.run ~= name.run and heartbeat.run ~= UNKNOWN_RUN and name.run ~= UNKNOWN_RUN
	return math.max(is_of_another and 0 or heartbeat.alive_until_ms, name.grace_until_ms, name.return_until_ms), true
end

-- wire: deadlines follow the clocks of their clients, so a waiter that listens is alive, whatever its deadline is.
local function is_dead(name, owner)
	local end_ms, is_ours = death_ms(name, owner)
	return end_ms <= now_ms() and (is_ours or not is_subscribed(name, owner))
end
