-- Whether a key is a lock, and free: the first look of every acquisition.
-- include: denied
-- include: wrong_type
-- include: fields_max
-- include: hold_count
-- include: lock_fields
-- include: reentrant_owners

-- Whether a field of the lock hash counts holds, and can count one more.
local function has_room(value)
	local count = hold_count(value)
	return count ~= nil and count < HOLDS_MAX
end

-- Whether these fields can be those of a lock: a user's own hash must not get a TTL. Of too many fields only those of
-- the reentrant owners are looked at.
local function can_be_lock(lock, field_count)
	if field_count > FIELDS_MAX then
		for _, owner in ipairs(reentrant_owners) do
			local value = redis.call('HGET', lock, owner)
			if value and not has_room(value) then
				return false
			end
		end
		return true
	end
	local listed = redis.pcall('HGETALL', lock)
	for i = 1, #listed, 2 do
		local field, value = listed[i], listed[i + 1]
		if not is_mode(field, value) and not has_room(value) then
			return false
		end
	end
	return true
end

-- Whether no key of a name exists, neither a lock nor a leftover of one. Most names are found like this.
local function is_absent(name)
	local keys = { name.lock, name.holds }
	keys[#keys + 1] = name.counter
	keys[#keys + 1] = name.ends
	keys[#keys + 1] = name.turn
	keys[#keys + 1] = name.writer
	return redis.pcall('EXISTS', unpack(keys)) == 0
end

-- Sets name.is_free and name.is_absent. The reply to give when the key is no lock, or can't be read; else nil.
local function examine(index, name)
	name.is_absent = is_absent(name)
	if name.is_absent then
		name.is_free = true
		return nil
	end
	local field_count = redis.pcall('HLEN', name.lock)
	if is_wrong_type(field_count) then
		return { -1, index, redis.call('TYPE', name.lock).ok }
	elseif is_error(field_count) then
		return denied_error('HLEN', field_count)
	end
	name.is_free = field_count == 0
	if not can_be_lock(name.lock, field_count) then
		return { -1, index, NOT_A_LOCK }
	end
	return nil
end
