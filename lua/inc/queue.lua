-- The queue of a fair lock: its head, and the removal of dead waiters.

-- include: heartbeats
-- include: publish

-- The first waiter in the queue; false if there is none.
local function head_of(name) return redis.call('LINDEX', name.queue, 0) end

-- Whether the process of a waiter of ours seems to have ended: the waiter was subscribed on this run of the server, and is not any
-- more, because the kernel has closed its connection; or it never was, and its last heartbeat has ended.
local function is_silent(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	if not heartbeat or heartbeat.subscribed_since_ms == 0 and heartbeat.alive_until_ms > now_ms() then return false end
	if count_waiter_subscribers(name, owner) ~= 0 then return false end
	load_run(name)
	return heartbeat.run == server_run() and now_ms() >= name.return_until_ms
end

-- Whether a silent waiter was subscribed. A waiter that never was must not be removed, as it may be alive: a server that had stalled
-- has received no heartbeat.
local function has_unsubscribed(name, owner)
	return is_silent(name, owner) and heartbeat_of(name, owner).subscribed_since_ms > 0
end

-- Whether a waiter is subscribed, and, if it is ours, has been so for HEARTBEAT_LIFETIME_MS. The time matters because after a
-- network failure a waiter may be back a moment before those ahead of it, which are then not dead.
local function was_always_subscribed(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	local is_new = heartbeat and (heartbeat.subscribed_since_ms == 0 or now_ms() - heartbeat.subscribed_since_ms < HEARTBEAT_LIFETIME_MS)
	return not is_new and is_subscribed(name, owner)
end

-- The key in which unsubscribed.lua stores the result of a check. The key exists only while a waiter of ours is in the
-- queue.
local function unsubscribed_key(name) return name.waiters .. ':foreign' end
local NEVER_MS = 100 * 365 * 86400000

-- Remove a waiter. LREM with count 1 stops at the first match, and most waiters that are removed are at the head.
local function remove_waiter(name, owner)
	redis.call('LREM', name.queue, 1, owner)
	redis.call('ZREM', name.deadlines, owner)
	redis.call('HDEL', name.waiters, owner)
end

-- Call this after waiters were removed: delete the keys and fields that no waiter needs any more.
local function tidy_queue(name)
	if not head_of(name) then
		redis.call('DEL', name.deadlines, name.waiters)
	elseif redis.call('HLEN', name.waiters) == 1 then
		redis.call('HDEL', name.waiters, LAST_READ)
		-- wire: only Redisson's waiters are left, whose keys have no TTL. Set a very long TTL rather than none:
		-- users have no right to PERSIST.
		for _, key in ipairs({ name.queue, name.deadlines }) do redis.pcall('PEXPIRE', key, digits(NEVER_MS)) end
	else
		return
	end
	redis.pcall('DEL', unsubscribed_key(name))
end

local function dequeue(name, owner)
	remove_waiter(name, owner)
	tidy_queue(name)
end

-- The first waiters in the queue for which matches(name, owner) is true, at most count_max; and the waiter after them. The list
-- ends before the first waiter that does not match, and before the caller. caller: the owner of the caller, or nil.
local function waiters_before(name, caller, count_max, matches)
	local owners, owner = {}, head_of(name)
	while #owners < count_max and owner and owner ~= caller and matches(name, owner) do
		owners[#owners + 1] = owner
		owner = redis.call('LINDEX', name.queue, #owners)
	end
	return owners, owner
end

local function remove_waiters(name, owners)
	for _, owner in ipairs(owners) do remove_waiter(name, owner) end
	if owners[1] then tidy_queue(name) end
end

-- Remove dead waiters from the head of the queue. Set name.has_dead if there may be more of them than one script removes.
local function prune(name, caller)
	local dead = waiters_before(name, caller, DEAD_MAX, is_dead)
	remove_waiters(name, dead)
	name.has_dead = #dead == DEAD_MAX
end

-- Lower the deadlines of these waiters, which keep their positions for now. Call this if no waiter in the queue is subscribed: a
-- network failure may have cut them all off. The deadlines must be soon, because a Redisson that joins the queue sleeps until the
-- last deadline. A waiter that comes back raises its deadline again. Use pcall: if the user may not write, the deadlines pass
-- anyway, and the script must do the rest.
local function lower_deadlines(name, silent)
	local deadline_ms = now_ms() + RETURN_MS
	for _, owner in ipairs(silent) do
		if tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0) > deadline_ms then
			redis.pcall('ZADD', name.deadlines, digits(deadline_ms), owner)
		end
	end
end

-- Remove unsubscribed waiters from the head of the queue, but only if the waiter after the silent ones, or the caller, was always
-- subscribed. Otherwise a network failure may have cut all of them off.
local function remove_unsubscribed(name, caller)
	local silent, owner = waiters_before(name, caller, DEAD_MAX, is_silent)
	if #silent > 0 and not owner then
		lower_deadlines(name, silent)
	elseif #silent > 0 and was_always_subscribed(name, owner) then
		remove_waiters(name, (waiters_before(name, caller, DEAD_MAX, has_unsubscribed)))
	end
end

-- Wake the head of the queue. Call prune first. If dead waiters are left, wake the last waiter instead, which continues to
-- remove them.
local function wake_head(name, caller)
	if not name.has_dead then remove_unsubscribed(name, caller) end
	local owner = redis.call('LINDEX', name.queue, name.has_dead and -1 or 0)
	if owner and owner ~= caller then publish(waiter_channel(name, owner), WAKE_ONE) end
end
