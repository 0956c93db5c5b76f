-- The keys of a semaphore other than its counter.

-- include: value

local SIDES = { { 'permits', 'zset' }, { 'ends', 'zset' }, { 'holds', 'hash' }, { 'remembered', 'string' } }

-- The type and the name of the first of these keys that a user has overwritten; nil: none.
local function overwritten_side(name)
	for _, side in ipairs(SIDES) do
		local key = name[side[1]]
		local key_type = key and other_type(key, side[2])
		if key_type then return key_type, key end
	end
	return nil
end

-- The text for a reply about the first overwritten key, with its type; nil: none is overwritten.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end
