-- The number in a field of a lock hash: how many holds an owner has.

-- No owner has more: a number that a user wrote there must not keep the server from its other clients, by a loop over
-- it.
local HOLDS_MAX = 10000

-- nil for what is no such number.
local function hold_count(value)
	local count = tonumber(string.match(value or '', '^[1-9]%d*$'))
	if count and count > HOLDS_MAX then
		return nil
	end
	return count
end
