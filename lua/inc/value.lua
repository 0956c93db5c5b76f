-- Keys that a user may have overwritten with another type, and servers that are replicas.

-- include: error

-- The error to return if this server is a replica; else nil. A replica cannot grant a lock, and its data may be stale, so a key
-- that it lacks is not lost. Detect it by a write that changes nothing and that each holder may do. Call this after all other
-- commands: after any write, a server whose memory is full lets the script write more.
local function replica_error(name)
	local reply = redis.pcall('HDEL', name.holds, '')
	return is_error(reply) and has_text(reply, 'READONLY') and reply or nil
end

-- The type of what a user wrote over a key. nil: the key has the expected type, does not exist, or the user may not run TYPE. If
-- the user may not run TYPE, the next command on an overwritten key fails.
local function other_type(key, sound_type)
	local key_type = redis.pcall('TYPE', key).ok
	return key_type ~= sound_type and key_type ~= 'none' and key_type or nil
end

-- The type of what a user wrote over the lock, the counter of a semaphore, or the holds hash: the lock is then lost.
local function overwritten(name)
	return other_type(name.lock, name.permits and 'string' or 'hash') or other_type(name.holds, 'hash')
end
