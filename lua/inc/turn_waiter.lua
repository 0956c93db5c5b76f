-- To find out which waiter has the next turn.
-- include: turn

-- Its hold id, and since when it waits; or OTHERS; or nil.
local function waiter_in_turn(name)
	local turn = redis.pcall('GET', name.turn)
	if type(turn) ~= 'string' or turn == OTHERS then
		return turn == OTHERS and turn or nil
	end
	local since_us, id = string.match(turn, '^(%d+) (.+)$')
	return id, tonumber(since_us)
end
