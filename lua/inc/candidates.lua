-- The owners that the lock may be had for. Needs: request, names.
local candidates = { fresh_owner }
for i = FIXED_ARGS + #ARG_FIELDS * #names + 1, #ARGV do
	candidates[#candidates + 1] = ARGV[i]
end

-- The first of them that has a field in the lock hash, its name being the owner and suffix.
local function holding_candidate(lock, suffix)
	for _, owner in ipairs(candidates) do
		if redis.call('HEXISTS', lock, owner .. suffix) == 1 then
			return owner
		end
	end
	return nil
end

local function note_of(holds, field)
	for _, entry in ipairs(redis.call('HVALS', holds)) do
		local entry_owner, _, _, _, entry_note = entry_parse(entry)
		if entry_owner == field then
			return entry_note
		end
	end
	return ''
end

-- One that holds it, for those who wait: field, note.
local function holder_of(name)
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' then
			return field, note_of(name.holds, field)
		end
	end
	return '', ''
end

-- Sets name.is_free. The reply to give when the key is no hash, or can't be read; else nil.
local function look(index, name)
	local fields = redis.pcall('HLEN', name.lock)
	if is_other_type(fields) then
		return { -1, index, redis.call('TYPE', name.lock).ok }
	elseif is_error(fields) then
		return refused('HLEN', fields)
	end
	name.is_free = fields == 0
	return nil
end
