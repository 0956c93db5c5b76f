-- The wake queue, and how a release notifies waiters.
--
-- rlock_queue:{NAME} is a sorted set of the hold ids of our waiters for any lock but a fair one, by the time since when they
-- wait. A waiter for several names is in the queue of each. The queue decides which waiter is woken next, not which one
-- acquires the lock. A waiter is in the queue while it sleeps. The script that wakes a waiter removes it, so a dead or stopped
-- waiter delays the others only once. A waiter that is woken and does not get the lock joins again, at its old position. All
-- commands on the queue are run by pcall: if the user has no right to it, or the server has no memory for it, waiters are woken
-- by the channel of the lock, or poll.

-- include: turn
-- include: subscribers
-- include: publish

-- Whether the lock is free, or the semaphore has a free permit.
local function is_available(name)
	if name.permits then return (tonumber(redis.pcall('GET', name.lock)) or 0) > 0 end
	return redis.pcall('EXISTS', name.lock) == 0
end

-- The HEAD_POSITIONS waiters after the first one poll every HEAD_RETRY_MS, because the first one may be dead or stopped.
local HEAD_POSITIONS = 3
local HEAD_RETRY_MS = 2000
-- A waiter that has waited longer than this gets the next turn when it is woken: our callers then do not overtake it.
local OVERTAKEN_MS = 2000
-- The next turn ends after this time if its waiter has not come.
local TURN_MAX_MS = 1000

-- Call this when a waiter has left the queue: the waiter that has thereby moved up to HEAD_POSITIONS must poll sooner than
-- it has planned. A message other than 0 and 1 is the time after which to poll, in ms.
local function notify_new_head(name)
	local last = redis.pcall('ZRANGE', name.wake_queue, HEAD_POSITIONS, HEAD_POSITIONS)
	if last[1] then send(waiter_channel(name, last[1]), HEAD_RETRY_MS) end
end

-- Wake the first waiter that is subscribed, and remove it. Return its hold id, and since when it waits; nil if there is none,
-- or the user may not publish. Waiters that are not subscribed are removed: if one of them lives, it joins again when it has
-- reconnected.
local function wake_first(name, after_us)
	for _ = 1, DEAD_MAX do
		local id, since_us = next_waiter(name, after_us)
		if not id then return nil end
		local heard = count_waiter_subscribers(name, id) ~= 0 and send(waiter_channel(name, id), WAKE_ONE) or 0
		if is_error(heard) or is_error(redis.pcall('ZREM', name.wake_queue, id)) then return nil end
		if heard > 0 then return id, since_us end
	end
	return nil
end

-- Give the next turn to a waiter that was woken, if it has waited longer than OVERTAKEN_MS, and longer than another waiter of
-- ours that has the turn. If Redisson's waiters have the turn, change nothing. id: the hold id of the waiter; in the queue of a
-- fair lock its owner.
local function give_turn(name, since_us, id)
	local waiter, other_since_us = waiter_in_turn(name)
	if now_us() - since_us <= OVERTAKEN_MS * 1000 or waiter == REDISSON then return end
	if waiter == id then
		-- Keep the number of permits that the waiter needs.
		redis.pcall('PEXPIRE', name.turn, TURN_MAX_MS)
	elseif not waiter or since_us < other_since_us then
		redis.pcall('SET', name.turn, digits(since_us) .. ' ' .. id, 'PX', TURN_MAX_MS)
	end
end

-- Wake the next waiter. Every script that leaves the lock free and does not acquire it must call this. after_us: only waiters
-- that came after that time. Return whether a waiter was woken.
local function wake_next(name, after_us)
	local id, since_us = wake_first(name, after_us)
	if not id then return false end
	give_turn(name, since_us, id)
	notify_new_head(name)
	return true
end

-- The time that Redisson needs from a message to its next attempt on a busy machine.
local REDISSON_TURN_MS = 50
-- One release out of this many gives Redisson's waiters a turn. After the others all waiters compete, as after a release of
-- Redisson's.
local REDISSON_TURN_EVERY = 4

-- After some releases, reserve the lock for Redisson's waiters: they are slower than ours, and would starve. If each release
-- did this, our waiters would starve, since a release of Redisson's wakes none of them. heard: how many clients have received
-- this release's message.
local function give_redisson_turn(name, heard)
	if heard > 0 and now_us() % REDISSON_TURN_EVERY == 0 and (count_redisson(name) or 0) > 0 then
		redis.pcall('SET', name.turn, REDISSON, 'PX', REDISSON_TURN_MS)
	end
end

-- Wake all that are subscribed to the channel of the lock: Redisson's waiters, and those of ours that watch the lock.
local function notify_channel(name, message)
	give_redisson_turn(name, publish(name.channel, message))
end

-- Notify the channel, and wake one waiter in the wake queue.
local function wake_waiters(name, message)
	notify_channel(name, message)
	wake_next(name)
end
