-- Which holder waiters are shown.
-- include: holder_record

-- One of the holders: its field, its note, and for how long it has held the lock, in ms; -1: it is not known.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then
			return field, record_of(name.holds, field)
		end
	end
	return '', '', -1
end
