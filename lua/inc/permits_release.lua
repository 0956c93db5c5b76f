-- To release a hold of permits.
-- include: permits_remove
-- include: permits_return
-- include: permits_notify

-- The result for the name, as in for_each_name.lua.
local function release_permits(name, hold_id)
	local hold = remove_permits(name, hold_id)
	if not hold then
		return 0
	end
	local free = return_permits(name, hold.removed)
	if free then
		notify_of_permits(name, free, hold.removed)
	end
	return (hold.is_over or hold.removed < hold.count) and 3 or 2
end
