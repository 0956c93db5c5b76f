-- The counter of a semaphore, and the keys next to it.

-- include: value

-- Whether this text is a counter of permits: a whole number as Redis writes it, and not too large to count exactly in Lua.
local COUNTER_LENGTH_MAX = 15
local NOT_A_COUNTER = 'string that is no counter'

local function is_permits_counter(text)
	return #text <= COUNTER_LENGTH_MAX and (text == '0' or string.match(text, '^%-?[1-9]%d*$') ~= nil)
end

-- The total of a semaphore that is remembered.
-- nil when none is, and when a user has overwritten it.
local function remembered_total(name)
	local text = redis.call('GET', name.remembered)
	return text and is_permits_counter(text) and tonumber(text) or nil
end

-- The type and the name of the first key beside the counter that a user has overwritten; nil when none was.
local SIDES = { { 'permits', 'zset' }, { 'ends', 'zset' }, { 'holds', 'hash' }, { 'remembered', 'string' } }

local function overwritten_side(name)
	for _, side in ipairs(SIDES) do
		local key = name[side[1]]
		local key_type = key and other_type(key, side[2])
		if key_type then return key_type, key end
	end
	return nil
end

-- The description, in the place of a type.
local function overwritten_kind(name)
	local key_type, key = overwritten_side(name)
	return key and 'semaphore whose side key ' .. key .. ' holds a ' .. key_type
end
