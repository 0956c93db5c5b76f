-- To find out which waiter has the next turn.
-- include: turn

-- Its hold id, since when it waits, and for how many permits; or OTHERS; or nil.
local function waiter_in_turn(name)
	local turn = redis.pcall('GET', name.turn)
	if type(turn) ~= 'string' or turn == OTHERS then
		return turn == OTHERS and turn or nil
	end
	local since_us, id, permits = string.match(turn, '^(%d+) (%S+) ?(%d*)$')
	return id, tonumber(since_us), tonumber(permits) or 1
end
