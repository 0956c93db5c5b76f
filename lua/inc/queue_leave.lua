-- To leave the queue for a fair lock, and to move it on.
-- include: now
-- include: rights
-- include: publish
-- include: queue_read

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

-- The error when the queue can't be left, or moved on; else nil.
local function leave_error(name)
	return try_all({
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

-- Removes those at the head that are dead, which who asks is not.
local function prune(name, asker)
	local head = head_of(name)
	while head and head ~= asker and is_dead(name, head) do
		dequeue(name, head)
		head = head_of(name)
	end
end

-- Nobody in the queue is heard: all may have been cut off at once, and keep their positions for now. A Java client
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
local function remove_silent(name, asker)
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
			dequeue(name, gone)
		end
	end
end

local function wake_head(name, asker)
	remove_silent(name, asker)
	local head = head_of(name)
	if head and head ~= asker then
		publish(own_channel(name, head), WAKE_ONE)
	end
end
