-- The queue of our waiters for a plain lock, a write lock or a semaphore: a sorted set of their hold ids, by the time
-- since when each waits.
-- It says which of them is woken next, and never which acquires the lock. A waiter is in it while it sleeps. The script
-- that wakes it removes it, so that one that is dead or stopped costs one turn. One that then tries in vain joins again,
-- at its old position. Commands are run by pcall: without a right or the memory for the queue waiters are woken by the
-- channel of the lock, and by their own clock.
-- include: channel

local FRONT_POSITIONS = 3 -- so many waiters behind the first try again so soon, in case that one dies or is stopped
local FRONT_MS = 2000
local DEAD_MAX = 1000     -- are removed at once: a script must not keep the server from its other clients

-- Each waiter in it listens to a channel of its own.
local function waiter_channel(name, id)
	return name.channel .. ':' .. id
end

-- In the place of an id: the channel to which each of ours listens that also listens to the channel of the lock.
local OURS = 'rlock'

-- The first waiter in it, and since when it waits; nil when there is none.
local function next_waiter(name)
	local first = redis.pcall('ZRANGE', name.wake_queue, 0, 0, 'WITHSCORES')
	return first[1], tonumber(first[2])
end
