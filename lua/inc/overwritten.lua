-- The type of what somebody has written over the lock or the holds hash of a name, which is lost by that; nil when
-- nobody has, or when the user may not ask: then the next command tells.
local function overwritten(name)
	for _, key in ipairs({ name.lock, name.holds }) do
		local key_type = redis.pcall('TYPE', key).ok
		if key_type and key_type ~= 'hash' and key_type ~= 'none' then
			return key_type
		end
	end
	return nil
end
