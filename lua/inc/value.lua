-- Keys that a user may have overwritten, and servers that are replicas.

-- include: error

-- The error to give when this server is a replica, else nil: it knows what its master told it some time ago, so it can't grant a
-- lock, and what it lacks is not lost. A write that changes nothing finds it out, one that each holder has the right to; it
-- comes after all other commands, since a full server lets a script that has written go on.
local function replica_error(name)
	local reply = redis.pcall('HDEL', name.holds, '')
	return is_error(reply) and has_text(reply, 'READONLY') and reply or nil
end

-- The type of what a user wrote over a key; nil when nothing is there, or what ought to be, or the user may not ask: then the next
-- command fails.
local function other_type(key, sound_type)
	local key_type = redis.pcall('TYPE', key).ok
	return key_type ~= sound_type and key_type ~= 'none' and key_type or nil
end

-- The type of what was written over the lock, the counter of a semaphore, or the holds hash of a name: by that the lock is lost.
local function overwritten(name)
	return other_type(name.lock, name.permits and 'string' or 'hash') or other_type(name.holds, 'hash')
end

-- A field of the lock or the holds hash of a name; nil when there is none. Where that may be because one of them was
-- overwritten, sets name.overwritten to the type of what is there.
local function read_field(name, key, field)
	local value = redis.pcall('HGET', key, field)
	if value and not is_error(value) then return value end
	name.overwritten = overwritten(name)
	-- A missing right is an error: raised here.
	return not name.overwritten and redis.call('HGET', key, field) or nil
end
