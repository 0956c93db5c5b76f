-- What is left of a plain or fair lock of which a hold has gone.
-- include: now
-- include: kept_hold
-- include: hold_ttl
-- include: mutex_notify

-- Whether somebody holds the lock yet; one that lingers is nobody's.
local function has_owner(name)
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		if not kept_until(owner) then
			return true
		end
	end
	return false
end

-- With its last other hold gone the lock ends when the last of those that keep does. Whether there is
-- one that does still.
local function leave_to_kept_holds(name)
	local last_ms = 0
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		last_ms = math.max(last_ms, kept_until(owner) or 0)
	end
	if last_ms <= now_ms then
		return false
	end
	set_ttl(name, last_ms - now_ms)
	return true
end

-- The hold that is gone may have lasted longer than those that stay.
local function limit_to_longest_hold(name)
	local longest_ms = longest_hold_ms(name, redis.call('HKEYS', name.lock))
	local ttl_ms = redis.call('PTTL', name.lock)
	if longest_ms and longest_ms > 0 and ttl_ms > longest_ms then
		set_ttl(name, longest_ms)
		-- Earlier than those who wait were told.
		if ttl_ms > longest_ms + LATE_MS then
			notify_waiters(name)
		end
	end
end
