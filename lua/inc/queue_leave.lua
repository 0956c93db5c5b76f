-- To leave the queue for a fair lock, and to let the next waiter have its turn.
-- include: now
-- include: rights
-- include: publish
-- include: queue_read
-- include: queue_head
-- include: queue_silent

local function dequeue(name, owner)
	redis.call('LREM', name.queue, 0, owner)
	redis.call('ZREM', name.deadlines, owner)
	redis.call('HDEL', name.waiters, owner)
	if not head_of(name) then
		redis.call('DEL', name.deadlines, name.waiters)
	elseif redis.call('HLEN', name.waiters) == 1 then
		redis.call('HDEL', name.waiters, SEEN)
	end
end

-- The error when no waiter can leave this queue, or be removed from it; else nil.
local function leave_error(name)
	local steps = {
		{ 'LINDEX', name.queue, 0 },
		{ 'LREM', name.queue, 0, '' },
		{ 'ZSCORE', name.deadlines, '' },
		{ 'ZREM', name.deadlines, '' },
		{ 'HGET', name.waiters, '' },
		{ 'HLEN', name.waiters },
		{ 'HDEL', name.waiters, '' },
	}
	if redis.pcall('EXISTS', name.waiters) == 0 then
		steps[#steps + 1] = { 'DEL', name.waiters }
	end
	return try_all(steps)
end

-- Removes dead waiters from the head of the queue. The caller, an owner, is alive.
local function prune(name, caller)
	local head = head_of(name)
	while head and head ~= caller and is_dead(name, head) do
		dequeue(name, head)
		head = head_of(name)
	end
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
local function remove_silent(name, caller)
	local silent = {}
	local owner = head_of(name)
	while owner and owner ~= caller and is_silent(name, owner) do
		silent[#silent + 1] = owner
		owner = redis.call('LINDEX', name.queue, #silent)
	end
	if #silent == 0 then
		return
	elseif not owner then
		lower_deadlines(name, silent)
	elseif is_heard_all_along(name, owner) then
		for _, gone in ipairs(silent) do
			dequeue(name, gone)
		end
	end
end

local function wake_head(name, caller)
	remove_silent(name, caller)
	local head = head_of(name)
	if head and head ~= caller then
		publish(own_channel(name, head), WAKE_ONE)
	end
end
