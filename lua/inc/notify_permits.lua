-- Messages to waiters for permits.

-- include: clock
-- include: wake

local WOKEN_MAX = 16 -- by one script; those wake the next ones

-- free: how many permits are free; more: how many of them were not before. wire: RSemaphore and
-- RPermitExpirableSemaphore publish how many are free.
local function notify_of_permits(name, free, more)
	if free <= 0 then return end
	give_redisson_turn(name, publish(name.channel, digits(free)))
	for _ = 1, math.min(free, more, WOKEN_MAX) do
		if not wake_next(name) then return end
	end
end
