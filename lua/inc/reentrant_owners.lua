-- The owners that the lock may be had for.
-- include: request
-- include: names
-- include: denied
-- include: hold_record
-- include: hold_count
-- include: fields_max
-- include: lock_fields
-- include: wrong_type

local reentrant_owners = { fresh_owner }
for i = FIXED_ARGS + #ARG_FIELDS * #names + 1, #ARGV do
	reentrant_owners[#reentrant_owners + 1] = ARGV[i]
end

-- The first of them that has a field in the lock hash, its name being the owner and suffix.
local function holding_owner(lock, suffix)
	for _, owner in ipairs(reentrant_owners) do
		if redis.call('HEXISTS', lock, owner .. suffix) == 1 then
			return owner
		end
	end
	return nil
end

local function note_of(holds, field)
	-- What overwrote the holds is no obstacle: it ends with them. A missing right is one, and is raised.
	local listed = redis.pcall('HVALS', holds)
	if is_error(listed) then
		listed = is_wrong_type(listed) and {} or redis.call('HVALS', holds)
	end
	for _, entry in ipairs(listed) do
		local entry_owner, _, _, _, entry_note = hold_record_parse(entry)
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

-- Whether a field of the lock hash counts holds, and can count one more.
local function has_room(value)
	local count = hold_count(value)
	return count ~= nil and count < HOLDS_MAX
end

-- Whether that many fields can be those of a lock: what is somebody's own must not get a time to live. Of too
-- many those of the reentrant_owners are looked at.
local function can_be_lock(lock, fields)
	for _, owner in ipairs(fields > FIELDS_MAX and reentrant_owners or {}) do
		local value = redis.call('HGET', lock, owner)
		if value and not has_room(value) then
			return false
		end
	end
	local listed = fields <= FIELDS_MAX and redis.pcall('HGETALL', lock) or {}
	for i = 1, #listed, 2 do
		local field, value = listed[i], listed[i + 1]
		if not is_mode(field, value) and not has_room(value) then
			return false
		end
	end
	return true
end

-- Sets name.is_free. The reply to give when the key is no hash, or can't be read; else nil.
local function examine(index, name)
	local fields = redis.pcall('HLEN', name.lock)
	if is_wrong_type(fields) then
		return { -1, index, redis.call('TYPE', name.lock).ok }
	elseif is_error(fields) then
		return denied_error('HLEN', fields)
	end
	name.is_free = fields == 0
	if not can_be_lock(name.lock, fields) then
		return { -1, index, NOT_A_LOCK }
	end
	return nil
end
