-- To free permits that were removed.
-- include: permits_return
-- include: permits_notify

-- So many of the hold's permits were there.
local function free_permits(name, count)
	local free = return_permits(name, count)
	if free then
		notify_of_permits(name, free, count)
	end
end
