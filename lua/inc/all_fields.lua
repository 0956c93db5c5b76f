-- All fields of a lock hash.

-- include: lock_fields

-- Split the reply of HGETALL for a lock hash. Return its mode (nil: none), the number of holds of each owner, and the list of
-- the owners. All nil: the hash is not a lock.
local function fields_of(listed)
	local mode, counts, fields = nil, {}, {}
	for i = 1, #listed, 2 do
		local field, value = listed[i], listed[i + 1]
		if is_mode(field, value) then
			mode = value
		elseif not hold_count(value) then
			return nil, nil, nil
		else
			counts[field], fields[#fields + 1] = hold_count(value), field
		end
	end
	return mode, counts, fields
end
