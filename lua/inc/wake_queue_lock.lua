-- To wait in the wake queue for a lock, and to come out of it with the lock.
-- include: request
-- include: wake_queue_join

local function held_reply(index, holder, holder_note, held_ms)
	return wait_reply(index, redis.call('PTTL', names[index].lock), holder, holder_note, held_ms)
end

-- The caller has the lock.
local function acquired_from_wake_queue(name)
	if waits_since_us then
		redis.pcall('ZREM', name.wake_queue, hold_id)
	end
	if not name.is_absent then
		redis.pcall('DEL', name.turn)
	end
end
