-- The frame of every release.
-- include: for_each_name
-- include: remove_hold

-- Releases a hold by release_one(name, field, count, note), on every name.
local function release_all(hold_id, release_one)
	local function release(name)
		local hold = remove_hold(name, hold_id)
		if not hold then
			return 0
		elseif not hold.count then
			return 3
		end
		return release_one(name, hold.field, hold.count, hold.note)
	end
	return for_each_name(hold_id, release)
end
