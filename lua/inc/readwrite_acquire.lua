-- What acquisitions of a read and of a write lock share.
-- include: wake_queue_wake
local MUTEX_LOCK = 'plain or fair lock'

-- Frees a lock of which only its mode is left, since its last reader was removed. The caller may not acquire it.
local function free_if_empty(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		redis.call('DEL', name.lock, name.holds, name.ends)
		name.is_free = true
		wake_next(name)
	end
end
