-- Plain and fair locks.

local READWRITE_LOCK = 'read/write lock'

-- wire: a plain and a fair lock have one field, the owner's, with the number of its holds. Redisson's read/write locks
-- keep their mode in another.
local function is_readwrite_lock(name) return redis.call('HEXISTS', name.lock, 'mode') == 1 end

local function mutex_acquire(name)
	if not name.is_free then return reenter(name) end
	return acquire_free(name, issue_token(name), name.field, 1)
end

-- wire: Redisson's waiters for a plain lock listen to the channel itself, the head of a fair lock's queue to a
-- channel of its own. Both kinds may wait for one lock.
local function notify_waiters(name)
	wake_waiters(name, WAKE_ONE)
	local there = redis.pcall('EXISTS', name.queue)
	if there == 0 or is_elsewhere(there) then return end
	-- The lock is released by now, and stays so whatever right to the queue the user lacks.
	local err = leave_error(name)
	publish_error = publish_error or err
	if err then return end
	prune(name)
	wake_head(name)
	-- Callers for the plain lock would be faster each time. Where dead waiters are left, the head is one.
	local head = not name.has_dead and head_of(name)
	local sign = head and sign_of_life(name, head)
	if sign then give_turn(name, sign.since_us, head) end
end

-- Leaves the lock to the holds that are left. False: none is.
local function leave_to_others(name)
	local is_held, is_earlier = leave_to(name, redis.call('HKEYS', name.lock), 0, set_ttl)
	if is_earlier then notify_waiters(name) end
	return is_held
end

local function release_mutex(name, owner, count)
	-- Where its slot is on its way to another node, even to look for a key that is gone is an error.
	local is_last = count == 1 and redis.pcall('HLEN', name.lock) == 1
	remove_one(name, owner, count)
	if not is_last and leave_to_others(name) then return 1 end
	redis.pcall('DEL', name.lock, name.holds)
	notify_waiters(name)
	return 2
end
