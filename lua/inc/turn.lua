-- The next turn: the reservation of a free lock for one waiter.

-- The key rlock_turn:{NAME} has one of these values. While the key exists, our callers leave the free lock to that waiter,
-- although they would be faster. Redisson does not read the key. Times are in microseconds.
-- "SINCE ID"   the waiter with this hold id, which has waited since then. In the queue of a fair lock, ID is the owner
-- "SINCE ID PERMITS"   the same, for a waiter that needs several permits of a semaphore
-- '-'   Redisson's waiters
local REDISSON = '-'

-- "readers UNTIL"   readers hold the lock. A reader that has waited since before UNTIL may join them
local READERS = 'readers'

-- A request that regains a lost hold on one server (lib/regain.c) sends this as the time since when it waits. So it comes
-- before every waiter.
local REGAIN_US = 1

-- The waiter that has the next turn: its hold id, since when it waits, and how many permits it needs; or REDISSON; or nil.
local function waiter_in_turn(name)
	local turn = redis.pcall('GET', name.turn)
	if type(turn) ~= 'string' or turn == REDISSON then return turn == REDISSON and turn or nil end
	local since_us, id, permits = string.match(turn, '^(%d+) (%S+) ?(%d*)$')
	return id, tonumber(since_us), tonumber(permits) or 1
end

-- Whether the next turn belongs to a hold that a quorum of servers has and this server has lost.
local function is_regained_next(name)
	local _, since_us = waiter_in_turn(name)
	return since_us == REGAIN_US
end
