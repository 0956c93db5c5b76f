-- How long a lock is to last, by the ends of its holds.
-- include: now
-- include: hold_record
-- include: hold_count

-- A removed hold that shortens the TTL by less than this notifies no waiter, so that short nested commands wake none.
-- Waiters may then try so much later than they could.
local LATE_MS = 5000

local function set_ttl(name, ttl_ms)
	redis.call('PEXPIRE', name.lock, digits(ttl_ms))
	redis.call('PEXPIRE', name.holds, digits(ttl_ms))
end

-- How long the longest of these owners' holds lasts; 0 when none of them does. nil when an owner has more holds than
-- have a record: they are Java's, and their end is not known.
local function longest_hold_ms(name, owners)
	local counts, last_ms, longest_ms = {}, {}, 0
	for _, record in ipairs(redis.call('HVALS', name.holds)) do
		local owner, _, end_ms = hold_record_parse(record)
		if owner then
			counts[owner] = (counts[owner] or 0) + 1
			last_ms[owner] = math.max(last_ms[owner] or 0, tonumber(end_ms))
		end
	end
	for _, owner in ipairs(owners) do
		local count = hold_count(redis.call('HGET', name.lock, owner)) or 0
		if count > (counts[owner] or 0) then
			return nil
		end
		longest_ms = math.max(longest_ms, (last_ms[owner] or 0) - now_ms())
	end
	return longest_ms
end
