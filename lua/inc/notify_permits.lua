-- How waiters for permits are notified.

-- include: clock
-- include: wake

-- A script wakes at most this many waiters. Each of these, when it has acquired its permits, wakes the next one.
local WOKEN_MAX = 16

-- Notify waiters of free permits. free: how many permits are free; more: how many of them were not free before.
-- wire: RSemaphore and RPermitExpirableSemaphore publish the number of free permits.
local function notify_of_permits(name, free, more)
	if free <= 0 then return end
	give_redisson_turn(name, publish(name.channel, digits(free)))
	for _ = 1, math.min(free, more, WOKEN_MAX) do
		if not wake_next(name) then return end
	end
end
