-- How a field is read that a user may have overwritten.

-- include: value

-- A field of the lock hash or of the holds hash; nil if it does not exist. If that may be because a user has overwritten one of
-- the hashes, set name.overwritten to the type.
local function read_field(name, key, field)
	local value = redis.pcall('HGET', key, field)
	if value and not is_error(value) then return value end
	name.overwritten = overwritten(name)
	-- If no key was overwritten, run HGET again: it raises the error of a missing right.
	return not name.overwritten and redis.call('HGET', key, field) or nil
end
