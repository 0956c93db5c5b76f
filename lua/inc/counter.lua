-- The counter of a semaphore, and its total.

-- The longest text that is read as a counter: Lua cannot count longer numbers exactly.
local COUNTER_LENGTH_MAX = 15
-- How messages describe a string that is not a counter.
local NOT_A_COUNTER = 'string that is no counter'

-- Whether this text is a whole number as Redis writes it.
local function is_permits_counter(text)
	return #text <= COUNTER_LENGTH_MAX and (text == '0' or string.match(text, '^%-?[1-9]%d*$') ~= nil)
end

-- The number of permits in all that the server remembers; nil if it remembers none, or a user has overwritten the key.
local function remembered_total(name)
	local text = redis.call('GET', name.remembered)
	return text and is_permits_counter(text) and tonumber(text) or nil
end
