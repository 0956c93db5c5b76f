-- How attempts to acquire a read or write lock are undone: see request.lua.

-- include: denied
-- include: readwrite_keep
-- include: leave
-- include: last

-- If this owner is the waiting writer that has claimed the next turn, delete the claim, and wake the readers that wait for this
-- writer. Return an error, or nil.
local function end_writers_turn(owner)
	for _, name in ipairs(names) do
		local turn = redis.pcall('GET', name.writer)
		if is_error(turn) and not is_wrong_type(turn) then return command_error('GET', turn) end
		if type(turn) == 'string' and string.match(turn, '^%d+ (%S+) ') == owner then
			redis.call('DEL', name.writer)
			publish(name.channel, WAKE_ALL)
		end
	end
	return nil
end

-- Undo all attempts, and return the reply.
local function undo_readwrite()
	remember_holds(released_id, kept_ms)
	for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
	local results = release_all(hold_id, release_readwrite, measure_readers, kept_ms ~= '0' and keep)
	local err = end_writers_turn(fresh_owner)
	if err then return err end
	reserve_all()
	return results
end
