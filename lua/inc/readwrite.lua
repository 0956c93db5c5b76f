-- How a read/write lock becomes free.

-- include: wake

-- How messages describe a lock that is no read/write lock.
local MUTEX_LOCK = 'plain or fair lock'

-- Delete the keys of a lock, each by its own command: while the slot of the lock moves, a command with a missing key is an error.
-- Ignore such an error of the last two commands, whose keys may already be deleted.
local function delete_all(name)
	redis.call('DEL', name.lock)
	redis.pcall('DEL', name.holds)
	redis.pcall('DEL', name.ends)
end

-- Free a lock whose last reader was removed, so that only its mode is left. Wake the next waiter, since the caller might not
-- acquire the lock.
local function free_if_empty(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		delete_all(name)
		name.is_free = true
		wake_next(name)
	end
end
