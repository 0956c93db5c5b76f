-- To notify the waiters for a plain, read or write lock.
-- include: publish
-- include: others_turn
-- include: wake_queue_wake

-- Wakes those that listen to the channel of the lock: Redisson's, and the first of ours.
local function wake_others(name, message)
	give_others_turn(name, publish(name.channel, message))
end

-- The same, and wakes one of ours.
local function wake_waiters(name, message)
	wake_others(name, message)
	wake_next(name)
end
