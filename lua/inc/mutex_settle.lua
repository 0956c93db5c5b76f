-- What becomes of a plain or fair lock, one hold of which was removed.
-- include: now
-- include: kept_hold
-- include: hold_ttl
-- include: mutex_notify

-- Whether the lock has another owner than those of kept holds.
local function has_owner(name)
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		if not kept_until(owner) then
			return true
		end
	end
	return false
end

-- Makes a lock without such an owner last until its last kept hold ends. False: there is none.
local function leave_to_kept_holds(name)
	local last_ms = 0
	for _, owner in ipairs(redis.call('HKEYS', name.lock)) do
		last_ms = math.max(last_ms, kept_until(owner) or 0)
	end
	if last_ms <= now_ms() then
		return false
	end
	set_ttl(name, last_ms - now_ms())
	return true
end

-- The removed hold may have had a longer lease than those that stay.
local function limit_to_longest_hold(name)
	local longest_ms = longest_hold_ms(name, redis.call('HKEYS', name.lock))
	local ttl_ms = redis.call('PTTL', name.lock)
	if longest_ms and longest_ms > 0 and ttl_ms > longest_ms then
		set_ttl(name, longest_ms)
		-- The lock may expire much earlier than the waiters know.
		if ttl_ms > longest_ms + LATE_MS then
			notify_waiters(name)
		end
	end
end
