-- Whether a hold has all of its permits.
-- include: permit_id

local function has_permits(name, hold_id, count)
	for number = 1, count do
		if not redis.call('ZSCORE', name.permits, permit_id(hold_id, number)) then
			return false
		end
	end
	return true
end
