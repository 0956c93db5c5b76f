-- What the hash of a lock of any kind consists of: the numbers of hold_count.lua, and a mode. A hash with anything
-- else in it is a user's own.
local NOT_A_LOCK = 'hash that is no lock'

-- wire: Redisson's read/write locks keep their mode in this field.
local function is_mode(field, value)
	return field == 'mode' and (value == 'read' or value == 'write')
end
