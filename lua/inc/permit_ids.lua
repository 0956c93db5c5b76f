-- The permits of a semaphore that are held: a sorted set of their ids, by the time when each may be reclaimed.
-- wire: the set is RPermitExpirableSemaphore's, whose clients reclaim permits by their own clocks. Therefore the deadline of
-- our permits is later than the end of their lease, which is in a sorted set of ours, name.ends. And we reclaim Redisson's
-- permits later than their deadline.

-- A client of Redisson's whose clock is ahead by less than this does not reclaim a permit of ours within its lease.
local AHEAD_MS = 10000
-- A client of Redisson's whose clock is behind by less than this does not lose a permit before its deadline.
local BEHIND_MS = 5000

-- wire: the deadline of a permit without a lease.
local NO_DEADLINE_MS = 922337203685477
-- The id of a permit of ours.
local function permit_id(hold_id, number) return hold_id .. ':' .. number end
