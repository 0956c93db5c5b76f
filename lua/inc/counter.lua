-- The counter of a semaphore, and the keys that belong to it.

-- include: value

-- A longer number cannot be counted exactly in Lua.
local COUNTER_LENGTH_MAX = 15
-- What messages call a string that is not a counter.
local NOT_A_COUNTER = 'string that is no counter'

-- Whether this text is a whole number as Redis writes it.
local function is_permits_counter(text)
	return #text <= COUNTER_LENGTH_MAX and (text == '0' or string.match(text, '^%-?[1-9]%d*$') ~= nil)
end

-- The total that was remembered; nil if there is none, or a user has overwritten it.
local function remembered_total(name)
	local text = redis.call('GET', name.remembered)
	return text and is_permits_counter(text) and tonumber(text) or nil
end

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

-- The same as a description, for a reply that has a type.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end
