-- The readers of a read/write lock, and how long each one lasts.

-- include: ttl
-- include: value
-- include: reader_holds

-- How long the longest of a reader's holds lasts, in ms; 0: all have expired. count: the number in its field of the lock hash.
-- wire: each hold has a timeout key of its own, numbered from 1 on (RedissonReadLock). While the slot of the lock moves to
-- another node of a cluster, a timeout key that is not on this node may be on that one. Raise an error then: the client sends the
-- request again.
local function reader_ttl_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		local ttl_ms = redis.call('PTTL', key)
		if ttl_ms < 0 then
			-- wire: run a command that fails while the slot moves, because a node serves no command with two keys of which one is
			-- missing. PTTL does not fail: the new node serves it.
			redis.call('EXISTS', name.lock, key)
		end
		longest_ms = math.max(longest_ms, ttl_ms)
	end
	return longest_ms
end

-- The sorted set name.ends has the owners of our readers, each with the time when the last of its timeout keys expires. A
-- script thus finds expired readers, and the longest one, without reading all of them. Redisson's readers are not in the set.

-- Delete a value that a user wrote over the set. Readers are in it again after their next renewal.
local function delete_overwritten_ends(name)
	if other_type(name.ends, 'zset') then redis.call('DEL', name.ends) end
end

-- Whether readers of Redisson's are in the lock. Write one command a line: in an error of an old server only the line number
-- shows which right is missing.
local function has_java_readers(name)
	if redis.call('HGET', name.lock, 'mode') ~= 'read' then return false end
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HLEN', name.lock) - 1 > ours
end

-- If Redisson's readers are in the lock, the set lasts this much longer than our readers. While Redisson's readers keep the lock,
-- scripts must know our expired readers, to remove them.
local ENDS_MS = 86400000

-- Record that this reader lasts left_ms at least.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- Run a ZREM first that removes nothing, because no member is ''. A server whose memory is full allows ZREM, and after it
	-- every write of this script. Without the ZREM it would refuse ZADD, which needs memory.
	redis.call('ZREM', name.ends, '')
	-- Set the TTL before and after the write, as write_for does. Do not call write_for: an error in one of its lines
	-- would not show which right is missing.
	extend(name.ends, digits(left_ms))
	redis.call('ZADD', name.ends, 'GT', digits(now_ms() + left_ms), owner)
	extend(name.ends, digits(left_ms))
	if has_java_readers(name) then extend(name.ends, digits(left_ms + ENDS_MS)) end
end

-- Extend the holds of a reader that last less than lease_ms. A hold whose timeout key has expired gets a new key.
local function extend_reader(name, owner, count, lease_ms)
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		-- A server whose memory is full lets a script extend a key, but not create one: try PEXPIRE first.
		if redis.call('PTTL', key) < tonumber(lease_ms)
			and redis.call('PEXPIRE', key, lease_ms) == 0 then
			redis.call('SET', key, 1, 'PX', lease_ms)
		end
	end
end
