-- The permits of one hold.

-- include: ttl
-- include: permit_ids

local SLOT_MAX = 1000000 -- a number that a user wrote must not take up the server's memory

-- How many permits a hold has, and its slots, by its record.
local function permits_of(record)
	local count, text = string.match(record, '^%S+ %d+ %d+ (%d+):?([%d,]*) ')
	local slots = {}
	for slot in string.gmatch(text or '', '%d+') do
		slots[#slots + 1] = math.min(slot, SLOT_MAX)
	end
	return tonumber(count) or 0, slots
end

-- Sets until when the permits of a hold are held; returns how many were not before. Their ends are kept until they are
-- reclaimed by their deadlines, too. What follows the hold's end are words for ZADD.
local function set_permits(name, hold_id, count, end_ms, ...)
	local permits, ends = { 'ZADD', name.permits, ... }, { 'ZADD', name.ends, ... }
	for number = 1, count do
		-- wire: a whole number of ms, as Java reads it.
		permits[#permits + 1], permits[#permits + 2] = digits(end_ms + AHEAD_MS), permit_id(hold_id, number)
		ends[#ends + 1], ends[#ends + 2] = digits(end_ms), permit_id(hold_id, number)
	end
	write_for(end_ms - now_ms() + AHEAD_MS + BEHIND_MS, unpack(ends))
	return redis.call(unpack(permits))
end

-- Whether a hold has all of its permits.
local function has_all_permits(name, hold_id, count)
	for number = 1, count do
		if not redis.call('ZSCORE', name.permits, permit_id(hold_id, number)) then return false end
	end
	return true
end
