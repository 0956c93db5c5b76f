-- The permits of a semaphore that are held.

-- Semaphores.

-- The permits of a semaphore that are held: a sorted set of their ids, by when each may be reclaimed.
-- wire: RPermitExpirableSemaphore's. Its clients reclaim by their own clocks, so the deadline of a permit of ours is later
-- than the end of its lease, which is in a sorted set of ours, and one of theirs is reclaimed later than it says.
local AHEAD_MS = 10000 -- a Java client whose clock is ahead by less reclaims no permit in its lease
local BEHIND_MS = 5000 -- a Java client whose clock is behind by less loses no permit before its deadline

-- wire: RPermitExpirableSemaphore's deadline of a permit without a lease.
local NO_DEADLINE_MS = 922337203685477
local function permit_id(hold_id, number) return hold_id .. ':' .. number end

local function printable_id(id)
	return #id == 16 and string.gsub(id, '.', function(byte)
		return string.format('%02x', string.byte(byte))
	end) or id
end

-- The hold that a permit of ours belongs to; nil for one of Java's.
local OUR_ID = '^(' .. string.rep('%x', 32) .. '):%d+$'
local function hold_of(id) return string.match(id, OUR_ID) end
