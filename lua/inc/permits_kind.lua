-- Describes a semaphore of which another key than the counter was overwritten.
-- include: permits_sides

-- The description, in the place of a type; nil when no such key was overwritten.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end
