-- To release a hold of permits.
-- include: permits_remove
-- include: permits_free

-- The result for the name, as in for_each_name.lua.
local function release_permits(name, hold_id)
	local hold = remove_permits(name, hold_id)
	if not hold then
		return 0
	end
	free_permits(name, hold.removed)
	return hold.is_lost and 3 or 2
end
