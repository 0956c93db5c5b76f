-- How a release notifies the waiters for a plain or fair lock.

-- include: wake
-- include: queue
-- include: queue_rights

-- Whether the slot of the lock moves to another node, and one of these keys is missing on this node. Both nodes then refuse a
-- command with several keys. For a single missing key the new node would only reply that it does not exist.
-- If this is true, do not judge or remove waiters: their keys may be on the other node. An error after the lock was deleted would
-- make the caller release it again.
local function is_moving(name)
	return is_elsewhere(redis.pcall('EXISTS', name.lock, name.queue, name.deadlines, name.waiters))
end

-- Wake the head of the queue of the fair lock.
local function notify_head(name)
	prune(name)
	wake_head(name)
	-- Reserve the lock for the head: callers for the plain lock are faster, so the head would starve. If prune left dead
	-- waiters, the head is one of them and gets no turn.
	local head = not name.has_dead and head_of(name)
	local heartbeat = head and heartbeat_of(name, head)
	if heartbeat then give_turn(name, heartbeat.since_us, head) end
end

-- Wake a waiter for the plain lock, and the head of the queue of the fair lock: waiters of both kinds can wait for the same lock.
-- wire: Redisson's waiters for a plain lock subscribe to the channel of the lock, each waiter for a fair lock to a channel of its
-- own.
local function notify_waiters(name)
	wake_waiters(name, WAKE_ONE)
	local there = redis.pcall('EXISTS', name.queue)
	if there == 0 or is_elsewhere(there) then return end
	if is_in_cluster and is_moving(name) then
		publish(waiter_channel(name, head_of(name)), WAKE_ONE)
		return
	end
	local is_done, raised = pcall(notify_head, name)
	if is_done then return end
	-- A missing right to the queue does not undo the release: report it with the reply.
	local err = leave_error(name)
	if not err then error(raised, 0) end
	publish_error = publish_error or err
end
