-- The queue of a fair lock: its head, and the removal of dead waiters.

-- include: heartbeats
-- include: publish

-- The first waiter in the queue for a fair lock; false when there is none.
local function head_of(name) return redis.call('LINDEX', name.queue, 0) end

-- A waiter of ours that listened here, on this run of the server, and does not any more: the kernel closed its
-- connection when its process ended.
local function has_unsubscribed(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	if not heartbeat or heartbeat.subscribed_since_ms == 0 or heartbeat.run ~= server_run() then return false end
	load_grace(name)
	return now_ms() >= name.return_until_ms and count_waiter_subscribers(name, owner) == 0
end

-- A waiter that listens, and one of ours has done so for a while: after a network failure it may be back a moment
-- before those in front of it.
local function was_always_subscribed(name, owner)
	local heartbeat = heartbeat_of(name, owner)
	local is_new = heartbeat and (heartbeat.subscribed_since_ms == 0 or now_ms() - heartbeat.subscribed_since_ms < HEARTBEAT_LIFETIME_MS)
	return not is_new and is_subscribed(name, owner)
end

-- What is known of Redisson's waiters to which no client listens, see remove_unsubscribed_redisson. While one of ours waits.
local function unsubscribed_key(name) return name.waiters .. ':foreign' end
local NEVER_MS = 100 * 365 * 86400000

-- A count of 1 stops at the first waiter that is found, and most that are removed stand at the head.
local function remove_waiter(name, owner)
	redis.call('LREM', name.queue, 1, owner)
	redis.call('ZREM', name.deadlines, owner)
	redis.call('HDEL', name.waiters, owner)
end

-- Deletes what no waiter needs any more, since some were removed.
local function tidy_queue(name)
	if not head_of(name) then
		redis.call('DEL', name.deadlines, name.waiters)
	elseif redis.call('HLEN', name.waiters) == 1 then
		redis.call('HDEL', name.waiters, LAST_READ)
		-- wire: only Redisson's waiters are left, whose keys have no TTL. Users have no right to PERSIST.
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

-- The waiters in front of the caller, an owner, of which that is true, from the head of the queue on, so many at most; and the one
-- behind them.
local function waiters_before(name, caller, most, matches)
	local owners, owner = {}, head_of(name)
	while #owners < most and owner and owner ~= caller and matches(name, owner) do
		owners[#owners + 1] = owner
		owner = redis.call('LINDEX', name.queue, #owners)
	end
	return owners, owner
end

local function remove_waiters(name, owners)
	for _, owner in ipairs(owners) do remove_waiter(name, owner) end
	if owners[1] then tidy_queue(name) end
end

-- Removes dead waiters from the head of the queue. Sets name.has_dead: there may be more of them than one script removes.
local function prune(name, caller)
	local dead = waiters_before(name, caller, DEAD_MAX, is_dead)
	remove_waiters(name, dead)
	name.has_dead = #dead == DEAD_MAX
end

-- No waiter in the queue listens: a network failure may have cut them all off, so they keep their positions for now. A
-- Java client that joins the queue sleeps until the last deadline in it; a waiter that comes back raises its own again.
-- By pcall: a deadline passes in any case, and is no reason to keep the lock.
local function lower_deadlines(name, silent)
	local deadline_ms = now_ms() + RETURN_MS
	for _, owner in ipairs(silent) do
		if tonumber(redis.call('ZSCORE', name.deadlines, owner) or 0) > deadline_ms then
			redis.pcall('ZADD', name.deadlines, digits(deadline_ms), owner)
		end
	end
end

-- Removes silent waiters from the head of the queue, when the one behind them, or the caller, has listened all along.
local function remove_unsubscribed(name, caller)
	local silent, owner = waiters_before(name, caller, DEAD_MAX, has_unsubscribed)
	if #silent > 0 and not owner then
		lower_deadlines(name, silent)
	elseif #silent > 0 and was_always_subscribed(name, owner) then
		remove_waiters(name, silent)
	end
end

-- To be run after prune. While dead waiters are left, the one that came last is woken, which goes on removing them.
local function wake_head(name, caller)
	if not name.has_dead then remove_unsubscribed(name, caller) end
	local owner = redis.call('LINDEX', name.queue, name.has_dead and -1 or 0)
	if owner and owner ~= caller then publish(waiter_channel(name, owner), WAKE_ONE) end
end
