-- The number in a field of a lock hash: how many holds an owner has.

-- No owner has more holds: a loop over a number that somebody wrote must not keep the server from all other clients.
local HOLDS_MAX = 10000

-- nil for what is no such number.
local function hold_count(value)
	local count = value and string.match(value, '^[1-9]%d*$') and tonumber(value)
	return count and count <= HOLDS_MAX and count or nil
end
