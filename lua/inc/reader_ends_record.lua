-- To record when a reader of ours expires.
-- include: now
-- include: ttl_extend
-- include: reader_ends

-- The set lasts so much longer than our readers when Java's are beside them, which may keep the lock: our expired readers
-- must be known for as long as the lock is held.
local ENDS_MS = 86400000

local function extend_ends(name, left_ms)
	local ttl_ms = left_ms
	if has_java_readers(name) then
		ttl_ms = left_ms + ENDS_MS
	end
	extend(name.ends, digits(ttl_ms))
end

-- This reader has a hold that lasts for left_ms.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- A full server allows this, and what comes after a write.
	redis.call('ZREM', name.ends, '')
	redis.call('ZADD', name.ends, 'GT', digits(now_ms() + left_ms), owner)
	extend_ends(name, left_ms)
end
