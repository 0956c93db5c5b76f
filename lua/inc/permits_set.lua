-- To set until when the permits of a hold are held.
-- include: now
-- include: permits
-- include: permit_id

-- The commands for it. how: of ZADD.
local function permits_until(name, hold_id, count, end_ms, ...)
	local permits, ends = { 'ZADD', name.permits, ... }, { 'ZADD', name.ends, ... }
	for number = 1, count do
		-- wire: a whole number of ms, as Java reads it.
		permits[#permits + 1] = digits(end_ms + AHEAD_MS)
		permits[#permits + 1] = permit_id(hold_id, number)
		ends[#ends + 1] = digits(end_ms)
		ends[#ends + 1] = permit_id(hold_id, number)
	end
	return permits, ends
end
