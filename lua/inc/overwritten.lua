-- A value that a user wrote over the lock, the counter of a semaphore, or the holds hash of a name: the lock is lost by
-- that.

-- The type of that value. nil when there is none, or when the user may not ask: then the next command fails.
local function overwritten(name)
	for _, key in ipairs({ name.lock, name.holds }) do
		local key_type = redis.pcall('TYPE', key).ok
		local sound_type = key == name.lock and name.permits and 'string' or 'hash'
		if key_type and key_type ~= sound_type and key_type ~= 'none' then
			return key_type
		end
	end
	return nil
end
