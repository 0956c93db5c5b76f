-- To record when a reader of ours ends.
-- include: now
-- include: ttl_extend
-- include: reader_ends

local ENDS_MS = 86400000 -- beside Java's readers, who may keep the lock so long, it outlasts ours by so much

-- Those in it that have ended must be known for as long as others keep the lock.
local function extend_ends(name, left_ms)
	extend(name.ends, digits(left_ms + (has_java_readers(name) and ENDS_MS or 0)))
end

-- This reader has a hold that lasts so long.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- A full server allows this, and what stands behind a write.
	redis.call('ZREM', name.ends, '')
	redis.call('ZADD', name.ends, 'GT', digits(now_ms + left_ms), owner)
	extend_ends(name, left_ms)
end
