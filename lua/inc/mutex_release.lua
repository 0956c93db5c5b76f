-- Give back one hold of a plain or fair lock: give_one. Needs: entry, refused, publish, now, lingering,
-- leases, line.

-- Whether somebody holds the lock yet; one that lingers is nobody's.
local function has_owner(name)
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		if not lingering_end(owner) then
			return true
		end
	end
	return false
end

-- With its last other hold gone the lock ends when the last of those that linger does. Whether there is
-- one that does still.
local function leave_to_lingering(name)
	local last_ms = 0
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		last_ms = math.max(last_ms, lingering_end(owner) or 0)
	end
	if last_ms <= now_ms then
		return false
	end
	set_ttl(name, last_ms - now_ms)
	return true
end

-- The lock is given back already, and stays so whatever the user has no right to in the line.
local function tell_head(name)
	local refusal = refusal_in_line(name)
	if not refusal then
		prune(name)
		wake_head(name)
	end
	untold = untold or refusal
end

-- wire: Redisson's waiters of a plain lock listen to the channel itself, the first in a fair lock's line to
-- one of his own. Both kinds may wait for one lock.
local function tell_waiters(name)
	publish(name.channel, WAKE_ONE)
	if redis.pcall('EXISTS', name.queue) == 1 then
		tell_head(name)
	end
end

-- The hold that is gone may have lasted longer than those that stay.
local function limit_to_longest_hold(name)
	local longest_ms = longest_hold_ms(name, redis.call('HKEYS', name.lock))
	local ttl_ms = redis.call('PTTL', name.lock)
	if longest_ms and longest_ms > 0 and ttl_ms > longest_ms then
		set_ttl(name, longest_ms)
		-- Earlier than those who wait were told.
		if ttl_ms > longest_ms + LATE_MS then
			tell_waiters(name)
		end
	end
end

local function give_one(name, owner, count)
	if count > 1 then
		redis.call('HINCRBY', name.lock, owner, -1)
	else
		redis.call('HDEL', name.lock, owner)
	end
	if has_owner(name) then
		limit_to_longest_hold(name)
		return 1
	end
	if leave_to_lingering(name) then
		-- Earlier than those who wait were told.
		tell_waiters(name)
		return 1
	end
	redis.call('DEL', name.lock, name.holds)
	tell_waiters(name)
	return 2
end
