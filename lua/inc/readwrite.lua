-- Read and write locks: what all of their acquisitions and releases do.

-- include: wake

-- Read and write locks: what is left after a release.
local MUTEX_LOCK = 'plain or fair lock'

-- Each key alone: while the slot of the lock moves a command with a key that is missing is an error, and of the lock whose last
-- hold was removed there are no others left.
local function delete_all(name)
	redis.call('DEL', name.lock)
	redis.pcall('DEL', name.holds)
	redis.pcall('DEL', name.ends)
end

-- Frees a lock of which only its mode is left, since its last reader was removed. The caller may not acquire it.
local function free_if_empty(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		delete_all(name)
		name.is_free = true
		wake_next(name)
	end
end
