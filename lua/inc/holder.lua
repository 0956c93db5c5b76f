-- What a waiter is shown about the holder: its note, and how long it has held the lock.

-- include: error
-- include: clock
-- include: record

-- The note of a hold, and its age in ms; nil if a user has overwritten the record.
local function note_and_age(record)
	local _, since_ms, _, _, owner_note = hold_record_parse(record)
	if owner_note then return owner_note, math.max(now_ms() - since_ms, 0) end
end

-- The note of one of the owner's holds, and its age in ms; '', -1 if there is no record.
local function owner_note_and_age(holds, field)
	local records = redis.pcall('HVALS', holds)
	-- A user has overwritten the holds hash, so there is no record. Continue without one: the key is deleted when the lock is.
	if is_wrong_type(records) then return '', -1 end
	-- Run HVALS again, to raise its error.
	if is_error(records) then records = redis.call('HVALS', holds) end
	for _, record in ipairs(records) do
		-- Do not parse the records of other owners: there may be thousands.
		if string.sub(record, 1, #field + 1) == field .. ' ' then
			local owner_note, held_ms = note_and_age(record)
			if owner_note then return owner_note, held_ms end
		end
	end
	return '', -1
end

-- One of the holders: its field, its note, and how long it has held the lock, in ms; -1 if that is not known.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then return field, owner_note_and_age(name.holds, field) end
	end
	return '', '', -1
end
