-- Who holds a lock, and what its record says.

-- include: error
-- include: clock
-- include: record

-- The note of the hold, and for how long it has lasted, in ms; nil when a user wrote over the record.
local function note_and_age(record)
	local _, since_ms, _, _, owner_note = hold_record_parse(record)
	if owner_note then return owner_note, math.max(now_ms() - since_ms, 0) end
end

-- The same of the owner's hold; -1: it is not known.
local function owner_note_and_age(holds, field)
	local records = redis.pcall('HVALS', holds)
	-- A user wrote over the holds hash: no obstacle, it ends with the holds.
	if is_wrong_type(records) then return '', -1 end
	-- A missing right is an obstacle: this call raises the error.
	if is_error(records) then records = redis.call('HVALS', holds) end
	for _, record in ipairs(records) do
		-- There may be thousands: those of others are not parsed.
		if string.sub(record, 1, #field + 1) == field .. ' ' then
			local owner_note, held_ms = note_and_age(record)
			if owner_note then return owner_note, held_ms end
		end
	end
	return '', -1
end

-- One of the holders: its field, its note, and for how long it has held the lock, in ms; -1: it is not known.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then return field, owner_note_and_age(name.holds, field) end
	end
	return '', '', -1
end
