-- The permits of a semaphore that are held: a sorted set of their ids, by when each may be reclaimed.
-- wire: RPermitExpirableSemaphore's. Its clients reclaim by their own clocks, so the deadline of a permit of ours is later
-- than the end of its lease, which is in a sorted set of ours, and one of theirs is reclaimed later than it says.
local AHEAD_MS = 10000 -- a Java client whose clock is ahead by less reclaims no permit in its lease
local BEHIND_MS = 5000 -- a Java client whose clock is behind by less loses no permit before its deadline
