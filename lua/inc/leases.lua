-- How long a lock is to last by the leases of its holds. Needs: entry, now.
local function set_ttl(name, ttl_ms)
	redis.call('PEXPIRE', name.lock, digits(ttl_ms))
	redis.call('PEXPIRE', name.holds, digits(ttl_ms))
	if name.ends then
		redis.call('PEXPIRE', name.ends, digits(ttl_ms))
	end
end

-- The longest lease among the holds of which is_wanted(field) is true, or of all; 0 when there is none of
-- ours.
local function longest_lease_ms(name, is_wanted)
	local longest_ms = 0
	for _, entry in ipairs(redis.call('HVALS', name.holds)) do
		local field, _, entry_lease_ms = entry_parse(entry)
		if not is_wanted or is_wanted(field) then
			longest_ms = math.max(longest_ms, tonumber(entry_lease_ms) or 0)
		end
	end
	return longest_ms
end
