-- To read a lock that a user may have overwritten, without a look at types before.
-- include: denied
-- include: overwritten

-- A field of the lock or the holds hash of a name; nil when there is none. Where that may be because one of them was
-- overwritten, sets name.overwritten to the type of what is there.
local function read_field(name, key, field)
	local value = redis.pcall('HGET', key, field)
	if value and not is_error(value) then
		return value
	end
	name.overwritten = overwritten(name)
	-- A missing right is an error: raised here.
	return not name.overwritten and redis.call('HGET', key, field) or nil
end
