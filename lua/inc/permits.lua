-- The permits of one hold.

-- include: ttl
-- include: permit_ids

-- The largest slot. A user may have written a larger number into a record: the field SLOTS, with a character for each slot,
-- would then take up the server's memory.
local SLOT_MAX = 1000000

-- The number of permits of a hold, and its slots, from TOKEN of its record: "2:1,4" means two permits with the slots 1 and
-- 4.
local function permits_of(record)
	local count, text = string.match(record, '^%S+ %d+ %d+ (%d+):?([%d,]*) ')
	local slots = {}
	for slot in string.gmatch(text or '', '%d+') do
		slots[#slots + 1] = math.min(slot, SLOT_MAX)
	end
	return tonumber(count) or 0, slots
end

-- Let the permits of a hold last until end_ms. Acquire those that the hold lacks, and return how many it lacked. Let name.ends
-- last for AHEAD_MS + BEHIND_MS after end_ms: a script needs the ends to reclaim the permits. The arguments after end_ms are
-- options of ZADD, such as GT.
local function set_permits(name, hold_id, count, end_ms, ...)
	local permits, ends = { 'ZADD', name.permits, ... }, { 'ZADD', name.ends, ... }
	for number = 1, count do
		-- wire: a whole number of ms, as Redisson reads it.
		permits[#permits + 1], permits[#permits + 2] = digits(end_ms + AHEAD_MS), permit_id(hold_id, number)
		ends[#ends + 1], ends[#ends + 2] = digits(end_ms), permit_id(hold_id, number)
	end
	write_for(end_ms - now_ms() + AHEAD_MS + BEHIND_MS, unpack(ends))
	return redis.call(unpack(permits))
end

local function has_all_permits(name, hold_id, count)
	for number = 1, count do
		if not redis.call('ZSCORE', name.permits, permit_id(hold_id, number)) then return false end
	end
	return true
end
