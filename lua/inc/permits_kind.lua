-- What a name is whose side key was overwritten.
-- include: permits_sides

-- What is said of its type. nil when none was.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end
