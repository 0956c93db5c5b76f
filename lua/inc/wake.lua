-- To wake waiters: the wake queue of all kinds but fair locks.

-- include: turn
-- include: subscribers
-- include: publish

local function is_available(name)
	if name.permits then return (tonumber(redis.pcall('GET', name.lock)) or 0) > 0 end
	return redis.pcall('EXISTS', name.lock) == 0
end

-- The queue of our waiters for any lock but a fair one: a sorted set of their hold ids, by the time since when each waits. A
-- waiter for several names is in the queue of each.
-- It says which of them is woken next, and never which acquires the lock. A waiter is in it while it sleeps. The script
-- that wakes it removes it, so that one that is dead or stopped costs one turn. One that then tries in vain joins again,
-- at its old position. Commands are run by pcall: without a right or the memory for the queue waiters are woken by the
-- channel of the lock, and by their own clock.
local HEAD_POSITIONS = 3 -- so many waiters behind the first try again so soon, in case that one dies or is stopped
local HEAD_RETRY_MS = 2000
local OVERTAKEN_MS = 2000  -- a waiter that waits for longer is not overtaken any more by callers of ours, ...
local TURN_MAX_MS = 1000   -- ... unless it does not come for so long

-- One has left the queue: the waiter that comes to the front by that learns it here, since its own next try may be late.
-- A number other than 0 and 1 tells it how soon to try.
local function notify_new_head(name)
	local last = redis.pcall('ZRANGE', name.wake_queue, HEAD_POSITIONS, HEAD_POSITIONS)
	if last[1] then send(waiter_channel(name, last[1]), HEAD_RETRY_MS) end
end

-- The next one that listens: its hold id, and since when it waits. nil when there is none, or no right to notify it. Those
-- that do not listen are removed: one of them that lives will try when it has subscribed again.
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

-- Gives the next turn to a waiter that was woken, where it has waited for long, and for longer than the one that has it. Its id
-- is the owner of one in the queue of a fair lock.
local function give_turn(name, since_us, id)
	local waiter, other_since_us = waiter_in_turn(name)
	if now_us() - since_us > OVERTAKEN_MS * 1000 and waiter ~= REDISSON
		and (not waiter or waiter == id or since_us < other_since_us) then
		redis.pcall('SET', name.turn, digits(since_us) .. ' ' .. id, 'PX', TURN_MAX_MS)
	end
end

-- To be run by whatever leaves the lock free and does not acquire it. Whether there was one to wake, of those that came
-- after a time where one is given.
local function wake_next(name, after_us)
	local id, since_us = wake_first(name, after_us)
	if not id then return false end
	give_turn(name, since_us, id)
	notify_new_head(name)
	return true
end

local REDISSON_TURN_MS = 50 -- what Redisson needs from a message to its next try on a busy machine
local REDISSON_TURN_EVERY = 4  -- one of so many releases gives a turn: after the others all compete, as after those of Redisson

-- Gives Redisson's waiters a turn after some releases: they are slower than ours, and would starve. After more releases ours
-- would, of which a release of Redisson's wakes none sooner. heard: how many clients heard of this release.
local function give_redisson_turn(name, heard)
	if heard > 0 and now_us() % REDISSON_TURN_EVERY == 0 and (count_redisson(name) or 0) > 0 then
		redis.pcall('SET', name.turn, REDISSON, 'PX', REDISSON_TURN_MS)
	end
end

-- Wakes those that listen to the channel of the lock: Redisson's, and the first of ours.
local function notify_channel(name, message)
	give_redisson_turn(name, publish(name.channel, message))
end

-- The same, and wakes one of ours.
local function wake_waiters(name, message)
	notify_channel(name, message)
	wake_next(name)
end
