-- The frame of every release.
-- include: remove_hold

-- Gives a hold back by release_one(name, field, count, note), on every name.
local function release_all(hold_id, release_one)
	return for_each_name(hold_id, function(name)
		local hold = remove_hold(name, hold_id)
		if not hold then
			return 0
		end
		return hold.count and release_one(name, hold.field, hold.count, hold.note) or 3
	end)
end
