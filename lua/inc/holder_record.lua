-- What a holder has written into its record.
-- include: denied
-- include: wrong_type
-- include: hold_record
-- include: now

-- The note of its hold, and for how long it has held the lock, in ms; -1: it is not known.
local function record_of(holds, field)
	local records = redis.pcall('HVALS', holds)
	if is_wrong_type(records) then
		-- A user wrote over the holds hash: no obstacle, it ends with the holds.
		return '', -1
	elseif is_error(records) then
		-- A missing right is an obstacle: this call raises the error.
		records = redis.call('HVALS', holds)
	end
	for _, record in ipairs(records) do
		local owner, since_ms, _, _, owner_note = hold_record_parse(record)
		if owner == field then
			return owner_note, math.max(now_ms() - since_ms, 0)
		end
	end
	return '', -1
end
