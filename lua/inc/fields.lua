-- What stands in the hash of a lock, of whatever kind. A hash with anything else is somebody's own.

-- wire: Redisson's read/write locks keep their mode in this field
local function is_mode(field, value)
	return field == 'mode' and (value == 'read' or value == 'write')
end

-- So many fields of a lock are looked at one by one. It may have many more, since each reader has one.
local FIELDS_MAX = 16

-- How many holds a field counts; nil for what is no such number, or more than any owner has: no loop over it may
-- keep the server from all others.
local HOLDS_MAX = 10000
local function hold_count(value)
	local count = value and string.match(value, '^[1-9]%d*$') and tonumber(value)
	return count and count <= HOLDS_MAX and count or nil
end
