-- Who still holds a lock after a release.

-- include: clock
-- include: lock_fields
-- include: kept
-- include: records

-- A removed hold that shortens the TTL by less than this notifies no waiter, so that short nested commands wake none.
-- Waiters may then try so much later than they could.
local LATE_MS = 5000

local function set_ttl(name, ttl_ms)
	redis.call('PEXPIRE', name.lock, digits(ttl_ms))
	redis.call('PEXPIRE', name.holds, digits(ttl_ms))
end

-- How long each of these owners holds the lock still by its records, in ms: as long as its longest hold; not above 0: all of
-- them are over, whatever TTL another hold gave the lock. math.huge: an owner has more holds than records, so these are Java's,
-- whose end is not known. records: theirs, if the caller has them.
local function owners_left_ms(name, owners, records)
	local counts, last_ms, left_ms = {}, {}, {}
	for _, record in ipairs(records or redis.call('HVALS', name.holds)) do
		local owner, _, end_ms = hold_record_parse(record)
		if owner then
			counts[owner] = (counts[owner] or 0) + 1
			last_ms[owner] = math.max(last_ms[owner] or 0, tonumber(end_ms))
		end
	end
	for _, owner in ipairs(owners) do
		local count = hold_count(redis.call('HGET', name.lock, owner)) or 0
		local is_known = count <= (counts[owner] or 0)
		left_ms[owner] = (kept_until(owner) or is_known and (last_ms[owner] or 0) or math.huge) - now_ms()
	end
	return left_ms
end

-- Leaves the lock to those of these owners that hold it still, for least_ms at least; the others are removed. The removed hold may
-- have had a longer lease: then set(name, ms) sets the TTL. Whether one of the owners is left; and whether the lock may expire
-- much earlier than the waiters know, or earlier at all where no process holds it.
local function leave_to_holders(name, owners, least_ms, set)
	local over, longest_ms, are_kept = {}, 0, true
	for owner, left_ms in pairs(owners_left_ms(name, owners)) do
		if left_ms > 0 then
			longest_ms, are_kept = math.max(longest_ms, left_ms), are_kept and kept_until(owner)
		else
			redis.call('HDEL', name.lock, owner)
			over[owner] = true
		end
	end
	remove_records(name, over)
	if longest_ms == 0 then return false end
	longest_ms = math.max(longest_ms, least_ms)
	local ttl_ms = redis.call('PTTL', name.lock)
	if longest_ms == math.huge or ttl_ms >= 0 and ttl_ms <= longest_ms then return true end
	set(name, longest_ms)
	return true, are_kept or ttl_ms > longest_ms + LATE_MS
end
