-- How long the ends of leases are kept: until permits are reclaimed by their deadlines, too.
-- include: now
-- include: permits

local function ends_ttl_ms(lease_ms)
	return digits(lease_ms + AHEAD_MS + BEHIND_MS)
end
