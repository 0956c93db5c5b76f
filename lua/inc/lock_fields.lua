-- The fields of a lock hash: for each owner the number of its holds, and for a read/write lock its mode. A hash with any other
-- field belongs to a user.

-- The largest number of holds of an owner. A user may have written a larger number, and a script must not loop that often.
local HOLDS_MAX = 10000

-- The number of holds that a value of the lock hash stands for; nil if the value is no such number, or above HOLDS_MAX.
local function hold_count(value)
	local count = tonumber(string.match(value or '', '^[1-9]%d*$'))
	return count and count <= HOLDS_MAX and count or nil
end

-- How messages describe a hash that is not a lock.
local NOT_A_LOCK = 'hash that is no lock'

-- wire: the field "mode" of Redisson's read/write locks.
local function is_mode(field, value)
	return field == 'mode' and (value == 'read' or value == 'write')
end

-- If a lock hash has more fields than this, a script does not look at all of them: each reader has a field, and there may be many
-- readers.
local FIELDS_MAX = 16
