-- The heartbeats of waiters in the queue of a fair lock: which waiters are alive.

-- include: clock
-- include: subscribers

-- wire: the queue is Redisson's list of owners, with a sorted set of deadlines (RedissonFairLock). The deadlines do not tell a
-- live waiter from a dead one. Therefore each waiter of ours has a heartbeat as well, in the hash rlock_waiters:{NAME}:
-- OWNER   "ALIVE_UNTIL_MS SINCE_US RUN SUBSCRIBED_SINCE_MS NOTE". RUN: the run id of the server that wrote it.
--         SUBSCRIBED_SINCE_MS: 0 if that server had no subscriber of the waiter's channel
-- seen    "LAST_MS GRACE_END_MS RUN RETURN_END_MS". LAST_MS: when a script last read the queue. Before GRACE_END_MS and before
--         RETURN_END_MS, no waiter of ours is considered dead (load_grace)

-- A waiter is dead this long after its last heartbeat.
local HEARTBEAT_LIFETIME_MS = 4000
-- If no script has read the queue for this long, assume that the server had stalled: all waiters then have GRACE_MS to send
-- a heartbeat.
local STALL_MS = 3000
local GRACE_MS = 2000
-- After a failover or a restart, waiters have this long to connect again.
local RETURN_MS = 10000
-- The field "seen" of the hash rlock_waiters:{NAME}. No owner has this name: rlock_owner_check refuses it.
local LAST_READ = 'seen'
-- Replaces the run id if the user may not run INFO, which returns it.
local UNKNOWN_RUN = '-'

-- The heartbeat of a waiter of ours; nil for a waiter of Redisson's.
local function heartbeat_of(name, owner)
	local heartbeat = redis.call('HGET', name.waiters, owner)
	if not heartbeat then return nil end
	local alive_until_ms, since_us, run, subscribed_since_ms, waiter_note =
		string.match(heartbeat, '^(%d+) (%d+) (%S+) (%d+) (.*)$')
	return { alive_until_ms = tonumber(alive_until_ms), since_us = tonumber(since_us), run = run,
		subscribed_since_ms = tonumber(subscribed_since_ms), note = waiter_note }
end

local known_run

-- The run id of this server, which is new after each start. INFO is called once.
local function server_run()
	local info = not known_run and redis.pcall('INFO', 'server')
	known_run = known_run or type(info) == 'string' and string.match(info, 'run_id:(%w+)') or UNKNOWN_RUN
	return known_run
end

-- Read the field LAST_READ, unless this script has done so. Set name.grace_until_ms: until then no waiter of ours is considered
-- dead, because the server had stalled, and could receive no heartbeats.
local function load_grace(name)
	if name.has_grace then return end
	local last_read_ms, grace_ms
	last_read_ms, grace_ms, name.last_run, name.last_return_ms =
		string.match(redis.call('HGET', name.waiters, LAST_READ) or '', '^(%d+) (%d+) (%S+) (%d+)$')
	local was_stalled = now_ms() - (tonumber(last_read_ms) or 0) > STALL_MS
	name.has_grace, name.grace_until_ms = true, name.grace_until_ms or was_stalled and now_ms() + GRACE_MS or tonumber(grace_ms)
end

-- Set name.run, the run id of this server, and name.return_until_ms: until then no waiter of ours is considered dead, because
-- after a failover or a restart the waiters must connect again. Call this only where one of the two matters, because INFO takes
-- as long as ten other commands.
local function load_run(name)
	if name.run then return end
	load_grace(name)
	name.run = server_run()
	if name.run == UNKNOWN_RUN then name.run = name.last_run or UNKNOWN_RUN end
	name.return_until_ms = tonumber(name.last_return_ms) or 0
	if name.last_run and name.last_run ~= UNKNOWN_RUN and name.last_run ~= name.run then
		name.return_until_ms = now_ms() + RETURN_MS
	end
end

local function is_subscribed(name, owner) return (count_waiter_subscribers(name, owner) or 0) > 0 end

-- Whether the grace is over for a waiter of ours: an earlier script found it unsubscribed, lowered its deadline (queue.lua), and the
-- waiter has not come back since. Otherwise each call with -n would begin a new grace, and none of them would acquire the lock.
local function has_not_returned(name, owner)
	local deadline_ms = redis.call('ZSCORE', name.deadlines, owner)
	return deadline_ms and tonumber(deadline_ms) <= now_ms() and not is_subscribed(name, owner)
end

-- The time from which this waiter can be considered dead, and whether it is ours. A waiter of Redisson's may live longer: see
-- is_dead. 0: the waiter has neither heartbeat nor deadline. Such a waiter can be considered dead immediately, because nothing
-- else would ever remove it.
local function death_ms(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	if not heartbeat then return tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0), false end
	load_run(name)
	-- Ignore the time in a heartbeat of another run: another server's clock may have written it.
	local is_of_another = heartbeat.run ~= name.run and heartbeat.run ~= UNKNOWN_RUN and name.run ~= UNKNOWN_RUN
	local grace_until_ms = name.grace_until_ms > now_ms() and has_not_returned(name, owner) and 0 or name.grace_until_ms
	return math.max(is_of_another and 0 or heartbeat.alive_until_ms, grace_until_ms, name.return_until_ms), true
end

-- Whether a waiter is dead.
-- wire: Redisson's deadlines follow the clocks of its clients. So a waiter of Redisson's that is subscribed is alive, whatever
-- its deadline is.
local function is_dead(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	local left_ms = heartbeat and heartbeat.alive_until_ms - now_ms() or 0
	-- A waiter of ours is alive that has sent a heartbeat by the clock of this server, and is subscribed.
	if left_ms > 0 and left_ms <= HEARTBEAT_LIFETIME_MS and is_subscribed(name, owner) then return false end
	local end_ms, is_ours = death_ms(name, owner)
	return end_ms <= now_ms() and (is_ours or not is_subscribed(name, owner))
end
