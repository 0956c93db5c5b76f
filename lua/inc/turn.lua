-- The reservation of a free lock for one waiter: the next turn is that waiter's.

-- Which waiter has the next turn of a free lock: a string beside it, "SINCE ID", since when it waits and its hold id, or
-- REDISSON. While it is there callers of ours that would be faster leave the lock to that waiter. Java does not know it.
-- A waiter for several permits of a semaphore adds how many, "SINCE ID PERMITS": so many are left to it.
local REDISSON = '-' -- Redisson's waiters, and those of older versions

-- While readers hold a lock: "READERS UNTIL", those that waited before that time come in beside the one that had the turn.
local READERS = 'readers'

-- Since when a request waits by which a server regains a hold: it is older than all waiters. lib/regain.c sends it.
local REGAIN_US = 1

-- Its hold id, since when it waits, and for how many permits; or REDISSON; or nil.
local function waiter_in_turn(name)
	local turn = redis.pcall('GET', name.turn)
	if type(turn) ~= 'string' or turn == REDISSON then return turn == REDISSON and turn or nil end
	local since_us, id, permits = string.match(turn, '^(%d+) (%S+) ?(%d*)$')
	return id, tonumber(since_us), tonumber(permits) or 1
end

-- Whether the next turn is that of a hold which a quorum of servers has, and this one has lost.
local function is_regained_next(name)
	local _, since_us = waiter_in_turn(name)
	return since_us == REGAIN_US
end
