-- The keys beside the counter of a semaphore: a user may have overwritten one.

local SIDES = { { 'permits', 'zset' }, { 'ends', 'zset' }, { 'holds', 'hash' }, { 'remembered', 'string' } }

-- The type and the name of the first key that was overwritten; nil when none was, or the user may not run TYPE.
local function overwritten_side(name)
	for _, side in ipairs(SIDES) do
		local key, sound_type = name[side[1]], side[2]
		local key_type = key and redis.pcall('TYPE', key).ok
		if key_type and key_type ~= sound_type and key_type ~= 'none' then
			return key_type, key
		end
	end
	return nil
end
