-- Which holder waiters are shown.
-- include: denied
-- include: wrong_type
-- include: hold_record

local function note_of(holds, field)
	local records = redis.pcall('HVALS', holds)
	if is_wrong_type(records) then
		-- A user wrote over the holds hash: no obstacle, it ends with the holds.
		return ''
	elseif is_error(records) then
		-- A missing right is one: raised here.
		records = redis.call('HVALS', holds)
	end
	for _, record in ipairs(records) do
		local owner, _, _, _, owner_note = hold_record_parse(record)
		if owner == field then
			return owner_note
		end
	end
	return ''
end

-- One of the holders: its field, and the note of its hold.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then
			return field, note_of(name.holds, field)
		end
	end
	return '', ''
end
