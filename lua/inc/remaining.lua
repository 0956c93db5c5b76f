-- The holds that keep a lock after one hold was released, and how long.

-- include: clock
-- include: lock_fields
-- include: kept
-- include: records

-- If a release shortens the TTL of the lock by less than this, it notifies no waiter: short nested commands would wake waiters
-- in vain. A waiter then tries at most this much later than it could.
local LATE_MS = 5000

local function set_ttl(name, ttl_ms)
	redis.call('PEXPIRE', name.lock, digits(ttl_ms))
	redis.call('PEXPIRE', name.holds, digits(ttl_ms))
end

-- For each of these owners, how many ms it still holds the lock. END_MS of the longest hold of the owner decides, whatever TTL
-- another hold gave the lock. 0 or less: all leases of the owner have ended. math.huge: the owner has more holds than records, so
-- some are Redisson's, whose end is not known. records: the records of these owners, if the caller has read them.
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

-- Call this after a release. Remove the owners in this list whose leases have ended. Lower the TTL to the longest remaining
-- lease, but not below least_ms; set(name, ms) sets the TTL.
-- Return whether an owner is left, and whether to notify the waiters: the lock may now expire much earlier than they know, or
-- all remaining holds are kept ones.
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
