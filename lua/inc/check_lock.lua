-- The first check of every acquisition: whether the key is a lock.

-- include: denied
-- include: lock_fields
-- include: owners

-- Whether the value of a field of the lock hash is a number of holds to which one more can be added.
local function counts_holds(value) return (hold_count(value) or HOLDS_MAX) < HOLDS_MAX end

-- Whether this hash can be a lock. A user's own hash must not become a lock, since it would get a TTL. If there are many
-- fields, check only those of the reentrant owners.
local function can_be_lock(lock, field_count)
	if field_count > FIELDS_MAX then
		for _, owner in ipairs(reentrant_owners) do
			local value = redis.call('HGET', lock, owner)
			if value and not counts_holds(value) then return false end
		end
		return true
	end
	local listed = redis.pcall('HGETALL', lock)
	for i = 1, #listed, 2 do
		local field, value = listed[i], listed[i + 1]
		if not is_mode(field, value) and not counts_holds(value) then return false end
	end
	return true
end

-- Set name.is_free. Return the reply if the key is no lock or cannot be read; else nil.
local function check_lock(index, name)
	local field_count = redis.pcall('HLEN', name.lock)
	if is_wrong_type(field_count) then return { -1, index, redis.call('TYPE', name.lock).ok } end
	if is_error(field_count) then return command_error('HLEN', field_count) end
	name.is_free = field_count == 0
	if not name.is_free and not can_be_lock(name.lock, field_count) then return { -1, index, NOT_A_LOCK } end
	return nil
end
