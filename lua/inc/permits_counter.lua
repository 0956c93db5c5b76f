-- Whether this text is a counter of permits: a whole number as Redis writes it, and not too large to count exactly in Lua.

local COUNTER_LENGTH_MAX = 15
local NOT_A_COUNTER = 'string that is no counter'

local function is_permits_counter(text)
	return #text <= COUNTER_LENGTH_MAX and (text == '0' or string.match(text, '^%-?[1-9]%d*$') ~= nil)
end
